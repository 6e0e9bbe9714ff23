/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * First-fit allocator of index ranges [0, size): who owns which rows, pages or mappings of a table
 * that lives elsewhere. Neighbouring free ranges join.
 */
#ifndef XP_BASE_SPAN_H
#define XP_BASE_SPAN_H

#include <stdint.h>

#include "base/vec.h"

struct xp_span {
	uint32_t first, count;
};

struct xp_spans {
	XP_VEC(struct xp_span) free;	/* sorted by first, none adjacent */
	uint32_t size, used, boundary;	/* boundary: no range crosses a multiple of it; 0: none */
};

int xp_spans_init(struct xp_spans *s, uint32_t size, uint32_t boundary);	/* 0 or -ENOMEM */
void xp_spans_release(struct xp_spans *s);
/* Takes count (> 0) indexes; their first in *first. 0, -ENOSPC or -ENOMEM. */
int xp_spans_take(struct xp_spans *s, uint32_t count, uint32_t *first);
/*
 * Gives back a range that was taken (whole). 0, -ENOMEM, then the range stays used, or -EINVAL when
 * part of it is free already or outside.
 */
int xp_spans_give(struct xp_spans *s, uint32_t first, uint32_t count);

#endif
