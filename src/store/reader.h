/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads a sample file (xprof-data(5)) into a profile. Everything in it is hostile.
 */
#ifndef XP_STORE_READER_H
#define XP_STORE_READER_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "profile/profile.h"

struct xp_read_result {
	bool complete;		/* an end chunk was reached and nothing was wrong before it */
	uint64_t offset;	/* of the first byte that was not used, when not complete */
	uint64_t size;		/* bytes read in all */
	char problem[200];	/* why it is not complete, for a message */
};

/*
 * path "-" is stdin. 0 with result->complete false when the file ends early or is damaged: the
 * profile then holds all chunks before; it must be a fresh one. A negative errno with err set when nothing can be used: not
 * there, empty, not a sample file, a newer version.
 */
int xp_reader_load(const char *path, struct xp_profile *p, struct xp_read_result *result,
		   struct xp_err *err);
/* The same from a descriptor, which stays the caller's; name is for messages. */
int xp_reader_load_fd(int fd, const char *name, struct xp_profile *p,
		      struct xp_read_result *result, struct xp_err *err);

#endif
