/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes a sample file (xprof-data(5)) while it is being recorded.
 *
 * The profile's tables grow; the writer appends what is new since its last chunk, then the samples.
 * A chunk is complete in itself (magic, kind, lengths, checksum, zstd); nothing is patched later, so
 * a kill at any moment leaves a readable prefix.
 */
#ifndef XP_STORE_WRITER_H
#define XP_STORE_WRITER_H

#include <stdint.h>

#include "base/err.h"
#include "profile/profile.h"

struct xp_writer;

/*
 * How to wait for the reader of a pipe: until fd can be written to, or, when fd is -1, a moment
 * before the next attempt to open a named pipe that nobody reads yet. 0, or a negative errno to
 * give up.
 */
struct xp_writer_wait {
	int (*fn)(void *ctx, int fd);
	void *ctx;
};

/*
 * Opens path for writing: "-" is stdout. An existing regular file is renamed to PATH.old first; the
 * new one has mode 0600 and, when SUDO_UID and SUDO_GID are set and we are root, their owner. Writes
 * the file header. The profile outlives the writer, as does what wait's ctx points to; with wait NULL
 * pipes are waited for without end.
 */
int xp_writer_open(struct xp_writer **w, const char *path, const struct xp_writer_wait *wait,
		   struct xp_profile *p, struct xp_err *err);
/* Encodes everything of the profile that is new, samples included, into the pending chunk; writes it
 * when it is large enough. Samples already encoded are removed from p->samples. */
int xp_writer_append(struct xp_writer *w, struct xp_err *err);
/* Writes the pending chunk, meta and counters now. */
int xp_writer_flush(struct xp_writer *w, struct xp_err *err);
/* Flushes, writes the end chunk, closes (the first error of all is reported). w is freed. */
int xp_writer_close(struct xp_writer *w, struct xp_err *err);
/* Closes without an end chunk: after an error. w may be NULL. */
void xp_writer_abort(struct xp_writer *w);

struct xp_writer_stats {
	uint64_t bytes;			/* in the file so far */
	uint64_t raw_bytes;		/* before compression */
	uint64_t samples, sample_bytes;	/* sample records alone, before compression */
};
void xp_writer_stats(const struct xp_writer *w, struct xp_writer_stats *out);

#endif
