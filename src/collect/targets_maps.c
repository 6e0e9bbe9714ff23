/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mappings of one target and what is published of them.
 */
#include "collect/targets_impl.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/*
 * Unmapping is not told. A list that has grown to twice what was read last is read again, once a
 * second at most.
 */
#define MANY_MAPPINGS 16384
#define READ_AGAIN_NS 1000000000ull
#define LONG_LIST 4096
#define RANGE_NS 15000ull		/* 65,536 a second: half of what there is */

/* Hooks of mappings: each has a reference to its file. */
static void ref_dso(void *ctx, void *user)
{
	(void)ctx;
	xp_dso_ref(user);
}

static void put_dso(void *ctx, void *user)
{
	const struct xp_targets *t = ctx;

	xp_dso_put(t->dsos, user);
}

void xp_target_own_maps(struct xp_targets *t, struct xp_target *target)
{
	target->process.maps.get = ref_dso;
	target->process.maps.put = put_dso;
	target->process.maps.ctx = t;
}

/* Gives a mapping its dso, with published tables. The reference is the caller's to give back. */
static int annotate(struct xp_targets *t, pid_t pid, struct xp_mapping *m)
{
	struct xp_dso *dso;

	if (!m->ino && strcmp(m->path, "[vdso]"))
		return 0;
	dso = xp_dsos_get(t->dsos, pid, m);
	if (!dso)
		return -ENOMEM;
	m->user = dso;
	return xp_tables_add(t->tables, dso);
}

int xp_target_read_maps(struct xp_targets *t, struct xp_target *target, uint64_t now,
			struct xp_err *err)
{
	struct xp_maps all = { 0 };
	int r = xp_maps_read(&all, target->process.pid, err);

	if (r)
		return r;
	xp_maps_release(&target->process.maps);
	for (size_t i = 0; !r && i < all.list.n; i++) {
		struct xp_mapping *m = &all.list.v[i];

		if (!m->exec)
			continue;
		r = annotate(t, target->process.pid, m);
		if (!r)
			r = xp_maps_add(&target->process.maps, m);
		xp_dso_put(t->dsos, m->user);
	}
	xp_maps_release(&all);
	target->since = now;
	target->read = target->process.maps.list.n;
	target->dirty = true;
	return r ? xp_err_sys(err, -r, "mappings of process %d", (int)target->process.pid) : 0;
}

/* Whether what is published is as good as an empty list. */
static bool keeps_set(const struct xp_target *target)
{
	const struct xp_range_set *set = target->set;

	return set && (!set->span.count || set->generation >= target->min_generation);
}

int xp_target_put_entry(struct xp_targets *t, const struct xp_target *target)
{
	struct xp_proc entry = {
		.tgid = target->process.pid,
		.first = target->set->span.first,
		.count = target->set->span.count,
		.generation = target->set->generation,
	};
	int r;

	for (int id = 0; id < XP_RUNTIMES_N; id++)
		entry.slots[id] = target->attached.by_id[id].slot;
	r = t->port.put(t->port.ctx, &entry);
	/* A full process table: the kernel side counts what it does not know as untracked. */
	return r == -E2BIG ? 0 : r;
}

/* Ranges are written anew and come back a second later: a long list must not take all there are. */
bool xp_target_may_wait(const struct xp_target *target, uint64_t now)
{
	return target->set && target->set->span.count >= LONG_LIST && keeps_set(target) &&
	       now < target->published + target->set->span.count * RANGE_NS;
}

int xp_target_publish(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	struct xp_range_set *set;
	int r = xp_range_set_new(&t->sets, t->tables, t->dsos, &target->process.maps, &set);

	/* Without room what is published stays, if it is of use; retired ranges make room soon. */
	target->dirty = r == -ENOSPC;
	if (r == -ENOSPC && keeps_set(target))
		return 0;
	if (r == -ENOSPC)
		r = xp_range_set_new_empty(&t->sets, &set);
	if (r)
		return r;
	xp_range_set_put(&t->sets, target->set, t->dsos);
	target->set = set;
	target->published = now;
	return xp_target_put_entry(t, target);
}

int xp_target_shorten(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	size_t n = target->process.maps.list.n;
	int r;

	if (n < MANY_MAPPINGS || n < 2 * target->read || now < target->since + READ_AGAIN_NS)
		return 0;
	r = xp_target_read_maps(t, target, now, NULL);
	if (r)
		target->read = n;
	return r == -ENOMEM ? r : 0;
}

static bool same_mapping(const struct xp_mapping *a, const struct xp_mapping *b)
{
	return a->start == b->start && a->end == b->end && a->offset == b->offset &&
	       a->dev == b->dev && a->ino == b->ino;
}

/* Whether code walked with tables lies where the new mapping goes. */
static bool replaces_code(const struct xp_maps *maps, const struct xp_mapping *new)
{
	for (size_t i = 0; i < maps->list.n; i++) {
		const struct xp_mapping *m = &maps->list.v[i];

		if (m->start < new->end && new->start < m->end && (m->user || new->user))
			return true;
	}
	return false;
}

int xp_target_mmap(struct xp_targets *t, struct xp_target *target, const struct xp_event *e,
		   const char *text)
{
	struct xp_mapping m = {
		.start = e->start,
		.end = e->start + e->len,
		.offset = e->offset,
		.dev = e->dev,
		.ino = e->ino,
		.exec = true,
	};
	struct xp_mapping *old = xp_maps_find(&target->process.maps, e->start);
	size_t n = strlen(text);
	int r;

	if (m.end <= m.start || e->time < target->since || (old && same_mapping(old, &m)))
		return 0;
	m.deleted = n > 10 && !strcmp(text + n - 10, " (deleted)");
	if (m.deleted)
		n -= 10;
	/* "//anon" is how the kernel's event calls what /proc/PID/maps leaves blank. */
	m.path = strcmp(text, "//anon") ? strndup(text, n) : strdup("");
	if (!m.path)
		return -ENOMEM;
	r = annotate(t, target->process.pid, &m);
	if (!r && replaces_code(&target->process.maps, &m))
		xp_replaced_add(&target->replaced, m.start, m.end, t->sets.generation + 1,
				&target->min_generation);
	if (!r)
		r = xp_maps_add(&target->process.maps, &m);
	xp_dso_put(t->dsos, m.user);
	target->dirty = true;
	free(m.path);
	return r;
}
