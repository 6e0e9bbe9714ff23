/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which part of a profile is looked at: the threads that pass a filter, and whether frames of kinds
 * internal and gc are shown. Every way to sum up a profile takes one, so that they agree.
 */
#ifndef XP_PROFILE_VIEW_H
#define XP_PROFILE_VIEW_H

#include "profile/profile.h"

struct xp_filter {
	const char *comm;		/* exact name; NULL: every */
	const int *pids, *tids;
	size_t npids, ntids;		/* 0: every */
};

struct xp_view {
	const struct xp_profile *p;	/* not owned */
	bool *threads;			/* by thread id: its samples count */
	bool internals;
	bool no_gc;			/* the collector's time is its caller's */
};

/* The profile must not gain threads while the view is in use. 0 or -ENOMEM. */
int xp_view_init(struct xp_view *v, const struct xp_profile *p, const struct xp_filter *filter,
		 bool internals);
void xp_view_release(struct xp_view *v);
/* Samples of the threads in view, by weight. */
uint64_t xp_view_weight(const struct xp_view *v);

static inline bool xp_view_shows(const struct xp_view *v, const struct xp_frame *f)
{
	if (f->kind == XP_FRAME_GC)
		return !v->no_gc;
	return v->internals || f->kind != XP_FRAME_INTERNAL;
}

#endif
