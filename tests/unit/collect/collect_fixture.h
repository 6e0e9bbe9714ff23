/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What stands around src/collect/targets.c: tables over ordinary memory, a profile, and a port that
 * remembers what the kernel side would have been told.
 */
#ifndef XP_TEST_COLLECT_FIXTURE_H
#define XP_TEST_COLLECT_FIXTURE_H

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "collect/targets.h"

/* Allocated to the exact size, zeroed like the maps. */
static inline struct xp_tables_memory make_tables_memory(uint32_t nblocks, uint32_t npages,
							 uint32_t nranges)
{
	struct xp_tables_memory m = { .nblocks = nblocks, .npages = npages, .nranges = nranges };

	m.rows = calloc((size_t)nblocks << XP_BLOCK_SHIFT, sizeof(*m.rows));
	m.pages = calloc(npages, sizeof(*m.pages));
	m.rules = calloc(XP_RULES_MAX, sizeof(*m.rules));
	m.ranges = calloc(nranges, sizeof(*m.ranges));
	if (!m.rows || !m.pages || !m.rules || !m.ranges)
		abort();
	return m;
}

static inline void free_tables_memory(struct xp_tables_memory *m)
{
	free(m->rows);
	free(m->pages);
	free(m->rules);
	free(m->ranges);
}

struct fixture {
	struct xp_tables_memory memory;
	struct xp_tables tables;
	struct xp_profile profile;
	struct xp_targets targets;
	XP_VEC(struct xp_proc) puts;		/* as told to the kernel side */
	XP_VEC(pid_t) removed;
	int put_result;
};

static inline int fixture_put(void *ctx, const struct xp_proc *proc)
{
	struct fixture *f = ctx;
	struct xp_proc *slot = xp_vec_push(&f->puts);

	if (!slot)
		abort();
	*slot = *proc;
	return f->put_result;
}

static inline int fixture_remove(void *ctx, pid_t pid)
{
	struct fixture *f = ctx;
	pid_t *slot = xp_vec_push(&f->removed);

	if (!slot)
		abort();
	*slot = pid;
	return 0;
}

static inline struct fixture *fixture_new(uint32_t nranges)
{
	struct fixture *f = calloc(1, sizeof(*f));

	if (!f)
		abort();
	f->memory = make_tables_memory(8, 4096, nranges);
	if (xp_targets_init(&f->targets) || xp_tables_init(&f->tables, &f->memory) ||
	    xp_profile_init(&f->profile))
		abort();
	f->targets.dsos = xp_dsos_new();
	if (!f->targets.dsos)
		abort();
	f->targets.tables = &f->tables;
	f->targets.profile = &f->profile;
	f->targets.follow_children = true;
	f->targets.port = (struct xp_targets_port){ fixture_put, fixture_remove, f };
	return f;
}

static inline void fixture_free(struct fixture *f)
{
	struct xp_dsos *dsos = f->targets.dsos;

	xp_targets_release(&f->targets);
	xp_tables_release(&f->tables);
	xp_profile_release(&f->profile);
	xp_dsos_free(dsos);
	xp_vec_release(&f->puts);
	xp_vec_release(&f->removed);
	free_tables_memory(&f->memory);
	free(f);
}

/* What the kernel side was told last about a process; count 0, generation 0: nothing. */
static inline struct xp_proc last_put(const struct fixture *f, pid_t pid)
{
	for (size_t i = f->puts.n; i > 0; i--)
		if (f->puts.v[i - 1].tgid == (uint32_t)pid)
			return f->puts.v[i - 1];
	return (struct xp_proc){ 0 };
}

static inline bool was_removed(const struct fixture *f, pid_t pid)
{
	for (size_t i = 0; i < f->removed.n; i++)
		if (f->removed.v[i] == pid)
			return true;
	return false;
}

/* The published range around an address, or NULL. */
static inline const struct xp_range *published(const struct fixture *f, pid_t pid, uint64_t addr)
{
	struct xp_proc proc = last_put(f, pid);

	for (uint32_t i = proc.first; i < proc.first + proc.count; i++)
		if (f->memory.ranges[i].start <= addr && addr < f->memory.ranges[i].end)
			return &f->memory.ranges[i];
	return NULL;
}

static inline struct xp_event event_of(enum xp_event_type type, uint64_t time, pid_t pid)
{
	return (struct xp_event){ .type = type, .time = time, .pid = pid, .tid = pid };
}

static inline struct xp_event fork_of(uint64_t time, pid_t parent, pid_t child)
{
	struct xp_event e = event_of(XP_EVENT_FORK, time, child);

	e.ppid = e.ptid = parent;
	return e;
}

static inline struct xp_event mmap_of(uint64_t time, pid_t pid, uint64_t start, uint64_t len,
				      uint64_t ino)
{
	struct xp_event e = event_of(XP_EVENT_MMAP, time, pid);

	e.start = start;
	e.len = len;
	e.ino = ino;
	e.dev = ino ? 0xff : 0;
	return e;
}

#endif
