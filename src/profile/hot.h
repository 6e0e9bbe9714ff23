/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Self and total per function. A function is (runtime, name, dso); total counts a sample once
 * however often the function is on its stack.
 */
#ifndef XP_PROFILE_HOT_H
#define XP_PROFILE_HOT_H

#include "profile/view.h"

struct xp_hot_row {
	uint32_t runtime, name, dso;	/* as in struct xp_frame */
	uint32_t file, line;		/* with most self weight, or where all frames agree; else 0 */
	uint8_t kind;			/* of the frame with most self weight */
	uint64_t self, total;
};

struct xp_hot {
	XP_VEC(struct xp_hot_row) rows;
	uint64_t weight;		/* of all samples in view */
	uint64_t hidden;		/* of those without a frame that the view shows */
};

/* 0 or -ENOMEM; release in both cases. Rows are in the order of xp_hot_sort() by total. */
int xp_hot_build(struct xp_hot *h, const struct xp_view *view);
void xp_hot_release(struct xp_hot *h);
/* Heaviest first; equal ones by the other weight, name, file and runtime: no two runs differ. */
void xp_hot_sort(struct xp_hot *h, const struct xp_profile *p, bool by_self);

#endif
