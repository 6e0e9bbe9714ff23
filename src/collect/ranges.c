/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ranges that nobody refers to are given back a while later, because a walker on another CPU, or a
 * child whose fork we have not heard of yet, may still read them. They hold their files until then,
 * so rows outlive every range that points to them.
 */
#include "collect/ranges.h"

#include <errno.h>
#include <stdlib.h>

#define RETIRE_NS 1000000000ull

static void free_set(struct xp_range_set *set, struct xp_dsos *dsos)
{
	for (size_t i = 0; i < set->dsos.n; i++)
		xp_dso_put(dsos, set->dsos.v[i]);
	xp_vec_release(&set->dsos);
	free(set);
}

void xp_range_sets_release(struct xp_range_sets *sets, struct xp_dsos *dsos)
{
	for (size_t i = 0; i < sets->retired.n; i++)
		free_set(sets->retired.v[i], dsos);
	xp_vec_release(&sets->retired);
}

/* Takes a reference to each file; one file's mappings mostly follow each other. */
static int hold_files(struct xp_range_set *set, const struct xp_maps *maps)
{
	const struct xp_dso *last = NULL;

	for (size_t i = 0; i < maps->list.n; i++) {
		struct xp_dso *dso = maps->list.v[i].user, **slot;

		if (!dso || dso == last)
			continue;
		slot = xp_vec_push(&set->dsos);
		if (!slot)
			return -ENOMEM;
		*slot = dso;
		xp_dso_ref(dso);
		last = dso;
	}
	return 0;
}

int xp_range_set_new_empty(struct xp_range_sets *sets, struct xp_range_set **out)
{
	struct xp_range_set *set = calloc(1, sizeof(*set));

	if (!set)
		return -ENOMEM;
	set->refs = 1;
	set->generation = ++sets->generation;
	*out = set;
	return 0;
}

int xp_range_set_new(struct xp_range_sets *sets, struct xp_tables *tables, struct xp_dsos *dsos,
		     const struct xp_maps *maps, struct xp_range_set **out)
{
	struct xp_range_set *set;
	struct xp_span span;
	int r = xp_tables_put_ranges(tables, maps, &span);

	if (r)
		return r;
	r = xp_range_set_new_empty(sets, &set);
	if (r) {
		xp_tables_drop_ranges(tables, span);
		return r;
	}
	set->span = span;
	r = hold_files(set, maps);
	if (r) {
		xp_tables_drop_ranges(tables, span);	/* nobody has been told of them */
		free_set(set, dsos);
		return r;
	}
	*out = set;
	return 0;
}

void xp_range_set_put(struct xp_range_sets *sets, struct xp_range_set *set, struct xp_dsos *dsos)
{
	struct xp_range_set **slot;

	if (!set || --set->refs)
		return;
	slot = xp_vec_push(&sets->retired);
	if (slot)
		*slot = set;
	else
		free_set(set, dsos);	/* its ranges stay taken: harmless, memory is out anyway */
}

void xp_range_sets_settle(struct xp_range_sets *sets, struct xp_tables *tables,
			  struct xp_dsos *dsos, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < sets->retired.n; i++) {
		struct xp_range_set *set = sets->retired.v[i];

		if (!set->retired)
			set->retired = now;
		if (now - set->retired < RETIRE_NS) {
			sets->retired.v[kept++] = set;
			continue;
		}
		xp_tables_drop_ranges(tables, set->span);
		free_set(set, dsos);
	}
	sets->retired.n = kept;
}

static void remove_at(struct xp_replaced *r, unsigned i)
{
	r->n--;
	for (; i < r->n; i++)
		r->v[i] = r->v[i + 1];
}

/* Kept by age. What it overlaps becomes part of it: a library that comes and goes is one entry. */
void xp_replaced_add(struct xp_replaced *r, uint64_t start, uint64_t end, uint32_t generation,
		     uint32_t *min_generation)
{
	for (unsigned i = 0; i < r->n;) {
		const struct xp_replaced_range *old = &r->v[i];

		if (old->start >= end || start >= old->end) {
			i++;
			continue;
		}
		start = old->start < start ? old->start : start;
		end = old->end > end ? old->end : end;
		remove_at(r, i);
		i = 0;
	}
	if (r->n == XP_REPLACED_MAX) {
		if (r->v[0].generation > *min_generation)
			*min_generation = r->v[0].generation;
		remove_at(r, 0);
	}
	r->v[r->n++] = (struct xp_replaced_range){ start, end, generation };
}

bool xp_replaced_none(const struct xp_replaced *r, uint32_t generation,
		      const struct xp_raw_frame *frames, uint32_t n)
{
	for (unsigned i = 0; i < r->n; i++) {
		if (generation >= r->v[i].generation)
			continue;
		/* A return address may be the first byte after the code that called. */
		for (uint32_t j = 0; j < n; j++)
			if (frames[j].pc >= r->v[i].start && frames[j].pc <= r->v[i].end)
				return false;
	}
	return true;
}
