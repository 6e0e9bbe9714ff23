/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Files mapped into memory that others may cut short while we read them.
 *
 * Reading a page that is no longer in the file raises SIGBUS. For mappings made here that is no
 * end: from that page on they read as zeros, and are marked as damaged. Behind the last byte of
 * the file there is always at least one zero, so a string that has lost its end still ends.
 */
#ifndef XP_BASE_FILEMAP_H
#define XP_BASE_FILEMAP_H

#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xp_filemap {
	uint8_t *data;			/* NULL: not mapped */
	size_t size, mapped;		/* bytes of the file; of the mapping, in whole pages */
	bool writable;			/* what is written stays private */
	volatile sig_atomic_t damaged;	/* a part was not there when it was read */
	struct xp_filemap *next, **link;	/* of the list that the signal handler looks through */
};

/*
 * Maps the first size bytes (more than 0) of a file privately. 0 or a negative errno. The struct
 * must stay where it is until it is closed; the descriptor may be closed at once. A handler for
 * SIGBUS is installed if it is not there; it leaves other faults to the one that was there before.
 */
int xp_filemap_open(struct xp_filemap *m, int fd, size_t size, bool writable);
/* Unmaps; legal on one that was never opened but zeroed. */
void xp_filemap_close(struct xp_filemap *m);

#endif
