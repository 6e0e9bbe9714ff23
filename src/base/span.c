// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * First-fit allocator of index ranges. The free list is a sorted array: there are few holes, and a
 * search from the front packs the table at its start.
 */
#include "base/span.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

int xp_spans_init(struct xp_spans *s, uint32_t size, uint32_t boundary)
{
	struct xp_span *all;

	memset(s, 0, sizeof(*s));
	s->size = size;
	s->boundary = boundary;
	if (!size)
		return 0;
	all = xp_vec_push(&s->free);
	if (!all)
		return -ENOMEM;
	all->count = size;
	return 0;
}

void xp_spans_release(struct xp_spans *s)
{
	xp_vec_release(&s->free);
	s->size = s->used = 0;
}

/* Makes a hole in the list at position at. */
static int list_insert(struct xp_spans *s, size_t at, struct xp_span span)
{
	if (!xp_vec_push(&s->free))
		return -ENOMEM;
	memmove(&s->free.v[at + 1], &s->free.v[at], (s->free.n - 1 - at) * sizeof(span));
	s->free.v[at] = span;
	return 0;
}

static void list_remove(struct xp_spans *s, size_t at)
{
	s->free.n--;
	memmove(&s->free.v[at], &s->free.v[at + 1], (s->free.n - at) * sizeof(*s->free.v));
}

/* The first place for count indexes in a free range, kept off the boundaries. */
static bool place(const struct xp_spans *s, const struct xp_span *f, uint32_t count,
		  uint32_t *first)
{
	uint64_t at = f->first, end = (uint64_t)f->first + f->count, b = s->boundary;

	if (b && at / b != (at + count - 1) / b)
		at = (at / b + 1) * b;
	*first = (uint32_t)at;
	return at + count <= end;
}

/* Cuts [first, first + count) out of the free range at position i. */
static int carve(struct xp_spans *s, size_t i, uint32_t first, uint32_t count)
{
	struct xp_span *f = &s->free.v[i];
	uint32_t before = first - f->first, after = f->count - before - count;

	if (before && after) {
		if (list_insert(s, i + 1, (struct xp_span){ first + count, after }))
			return -ENOMEM;
		s->free.v[i].count = before;
	} else if (before) {
		f->count = before;
	} else if (after) {
		*f = (struct xp_span){ first + count, after };
	} else {
		list_remove(s, i);
	}
	return 0;
}

int xp_spans_take(struct xp_spans *s, uint32_t count, uint32_t *first)
{
	uint32_t at;

	if (!count || (s->boundary && count > s->boundary))
		return -ENOSPC;
	for (size_t i = 0; i < s->free.n; i++) {
		if (!place(s, &s->free.v[i], count, &at))
			continue;
		if (carve(s, i, at, count))
			return -ENOMEM;
		s->used += count;
		*first = at;
		return 0;
	}
	return -ENOSPC;
}

int xp_spans_give(struct xp_spans *s, uint32_t first, uint32_t count)
{
	uint64_t end = (uint64_t)first + count;
	struct xp_span *before, *after;
	size_t i = 0;

	while (i < s->free.n && s->free.v[i].first < first)
		i++;
	before = i ? &s->free.v[i - 1] : NULL;
	after = i < s->free.n ? &s->free.v[i] : NULL;
	if (!count || end > s->size || (after && end > after->first) ||
	    (before && before->first + before->count > first))
		return -EINVAL;
	if (before && before->first + before->count != first)
		before = NULL;
	if (after && after->first != end)
		after = NULL;
	if (before) {
		before->count += count + (after ? after->count : 0);
		if (after)
			list_remove(s, i);
	} else if (after) {
		*after = (struct xp_span){ first, count + after->count };
	} else if (list_insert(s, i, (struct xp_span){ first, count })) {
		return -ENOMEM;
	}
	s->used -= count;
	return 0;
}
