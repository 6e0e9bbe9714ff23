/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names as they may be printed. They come from other programs, who can call a function, a thread or
 * a file anything.
 */
#ifndef XP_OUTPUT_NAME_H
#define XP_OUTPUT_NAME_H

#include "base/buf.h"

#define XP_NAME_MAX 1000	/* bytes; longer names are cut and end in "..." */

enum xp_name_flags {
	XP_NAME_FRAME = 1,	/* a frame of a folded stack: no ';', and no number as the last word */
	XP_NAME_ROOT = 2,	/* the same with '_' for blanks, as stackcollapse-perf.pl writes comms */
};

/*
 * Appends the name as safe text (base/text.h) that has single blanks only, none at its ends, and is
 * never empty: "[unknown]". Appends nothing when out of memory (out->failed).
 */
void xp_name_put(struct xp_buf *out, const void *name, size_t n, unsigned flags);

#endif
