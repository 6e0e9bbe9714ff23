/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * From the records of one data chunk to a profile's tables.
 *
 * A record's id in the file is its place in its table there; the profile interns, so its id may be
 * another one, and the maps here lead from the first to the second.
 */
#ifndef XP_STORE_RECORDS_H
#define XP_STORE_RECORDS_H

#include "base/vec.h"
#include "profile/profile.h"

struct xp_fact {			/* a meta or counter record of the chunk being read */
	bool counter;
	uint32_t key;			/* profile's string id */
	uint64_t value;			/* the same, or a number */
};

struct xp_records {
	struct xp_profile *p;		/* not owned */
	XP_VEC(uint32_t) strings, dsos, frames, stacks, threads;	/* file id -> profile id */
	XP_VEC(uint32_t) depths;	/* of stacks, by file id */
	XP_VEC(struct xp_fact) facts;
	uint64_t samples;
	uint64_t time;			/* us, of the last sample */
	const char *problem;		/* of a failed call, static text */
};

int xp_records_init(struct xp_records *r, struct xp_profile *p);	/* 0 or -ENOMEM */
void xp_records_release(struct xp_records *r);
/*
 * Adds all records of a chunk. 0, -ENOMEM, or -EBADMSG with problem set: then no sample of the chunk has
 * come into the profile.
 */
int xp_records_add(struct xp_records *r, const void *data, size_t n);
/* Whether the end chunk's totals agree. 0 or -EBADMSG with problem set. */
int xp_records_check_end(struct xp_records *r, const void *data, size_t n);

#endif
