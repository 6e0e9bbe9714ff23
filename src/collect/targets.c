/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child shares the ranges of its parent until it changes something: the kernel side has copied the
 * parent's entry at fork already. Ranges that nobody refers to are given back a while later, because
 * a walker on another CPU, or a child whose fork we have not heard of yet, may still read them.
 */
#include "collect/targets.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"
#include "target/proc.h"

#define RETIRE_NS 1000000000ull
#define SWEEP_MAX 64

int xp_targets_init(struct xp_targets *t)
{
	memset(t, 0, sizeof(*t));
	return 0;
}

static void free_target(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	if (t->runtimes)
		xp_runtimes_detach(t->runtimes, &target->attached, now);
	xp_maps_release(&target->process.maps);
	free(target);
}

void xp_targets_release(struct xp_targets *t)
{
	for (size_t i = 0; i < t->list.n; i++) {
		if (t->list.v[i]->set && !--t->list.v[i]->set->refs)
			free(t->list.v[i]->set);
		free_target(t, t->list.v[i], 0);
	}
	for (size_t i = 0; i < t->retired.n; i++)
		free(t->retired.v[i]);
	xp_vec_release(&t->list);
	xp_vec_release(&t->retired);
	xp_map_release(&t->by_pid);
	xp_map_release(&t->threads);
}

struct xp_target *xp_targets_find(const struct xp_targets *t, pid_t pid)
{
	uint64_t *p = xp_map_get(&t->by_pid, (uint64_t)pid);

	return p ? (struct xp_target *)(uintptr_t)*p : NULL;
}

unsigned xp_targets_alive(const struct xp_targets *t)
{
	unsigned n = 0;

	for (size_t i = 0; i < t->list.n; i++)
		n += !t->list.v[i]->exited;
	return n;
}

/* A new target without mappings; one of the same pid that has exited is forgotten. */
static struct xp_target *add_target(struct xp_targets *t, pid_t pid)
{
	struct xp_target *target = calloc(1, sizeof(*target)), **slot;
	struct xp_target *old = xp_targets_find(t, pid);

	if (!target)
		return NULL;
	if (old)
		old->exited = true;
	target->process.pid = pid;
	slot = xp_vec_push(&t->list);
	if (!slot || xp_map_set(&t->by_pid, pid, (uintptr_t)target)) {
		if (slot)
			t->list.n--;
		free(target);
		return NULL;
	}
	*slot = target;
	t->seen++;
	return target;
}

static void drop_set(struct xp_targets *t, struct xp_target *target)
{
	struct xp_range_set *set = target->set, **slot;

	target->set = NULL;
	if (!set || --set->refs)
		return;
	slot = xp_vec_push(&t->retired);
	if (slot)
		*slot = set;
	else
		free(set);	/* its ranges stay taken: harmless, and memory is out anyway */
}

/* Gives a mapping its dso, with published tables. */
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

/* Replaces the mappings by what /proc says now; only executable ones are kept. */
static int read_maps(struct xp_targets *t, struct xp_target *target, uint64_t now,
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
	}
	xp_maps_release(&all);
	target->since = now;
	target->dirty = true;
	return r ? xp_err_sys(err, -r, "mappings of process %d", (int)target->process.pid) : 0;
}

/* Whether what is published is as good as an empty list. */
static bool keeps_set(const struct xp_target *target)
{
	const struct xp_range_set *set = target->set;

	return set && (!set->span.count || set->generation >= target->min_generation);
}

/* Tells the kernel side where the target's ranges and its runtimes' parameters are. */
static int put_entry(struct xp_targets *t, const struct xp_target *target)
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
	return r == -E2BIG ? 0 : r;	/* process table full: counted as untracked by the kernel side */
}

static int publish(struct xp_targets *t, struct xp_target *target)
{
	struct xp_range_set *set = calloc(1, sizeof(*set));
	int r;

	if (!set)
		return -ENOMEM;
	r = xp_tables_put_ranges(t->tables, &target->process.maps, &set->span);
	/* Without room what is published stays, if it is of use; retired ranges may make room soon. */
	target->dirty = r == -ENOSPC;
	if (r && (r != -ENOSPC || keeps_set(target))) {
		free(set);
		return r == -ENOSPC ? 0 : r;
	}
	drop_set(t, target);
	set->refs = 1;
	set->generation = ++t->generation;
	target->set = set;
	return put_entry(t, target);
}

/* Attaches what is ready and tells the kernel side; looks only when something may have changed. */
static int update_runtimes(struct xp_targets *t, struct xp_target *target, bool remapped,
			   uint64_t now)
{
	int r;

	if (!remapped && target->runtimes_known && !xp_runtimes_waiting(&target->attached))
		return 0;
	r = xp_runtimes_update(t->runtimes, &target->process, &target->attached, now);
	target->runtimes_known = true;
	return r > 0 && target->set ? put_entry(t, target) : r < 0 ? r : 0;
}

static int name_process(struct xp_targets *t, struct xp_target *target)
{
	struct xp_proc_threads threads = { 0 };
	struct xp_proc_info info;
	uint32_t id;

	if (xp_proc_read(&info, target->process.pid, NULL))
		return 0;
	memcpy(target->process.comm, info.comm, sizeof(info.comm));
	/* Now, while they live: a thread that ends is not asked for its name any more. */
	xp_proc_threads_read(&threads, target->process.pid, NULL);
	for (size_t i = 0; i < threads.list.n; i++)
		xp_targets_thread(t, target->process.pid, threads.list.v[i].tid, &id);
	xp_proc_threads_release(&threads);
	return 0;
}

int xp_targets_attach(struct xp_targets *t, pid_t pid, uint64_t now, struct xp_err *err)
{
	struct xp_target *target;
	int r;

	if (xp_targets_find(t, pid))
		return 0;
	target = add_target(t, pid);
	if (!target)
		return xp_err_sys(err, ENOMEM, "process %d", (int)pid);
	name_process(t, target);
	r = read_maps(t, target, now, err);
	if (r) {
		xp_targets_exited(t, pid);
		return r;
	}
	r = publish(t, target);
	if (!r && t->runtimes)
		r = update_runtimes(t, target, true, now);
	return r ? xp_err_sys(err, -r, "cannot publish process %d", (int)pid) : 0;
}

int xp_targets_adopt(struct xp_targets *t, pid_t pid, uint64_t now)
{
	struct xp_proc_info info;
	struct xp_target *target;
	int r;

	if (xp_targets_find(t, pid) || xp_proc_read(&info, pid, NULL))
		return 0;
	r = xp_targets_attach(t, pid, now, NULL);
	target = xp_targets_find(t, pid);
	if (target)	/* it may have gone through an exec that we did not hear of */
		target->min_generation = r ? UINT32_MAX : target->set->generation;
	return r == -ENOMEM ? r : 0;
}

int xp_targets_add_child(struct xp_targets *t, pid_t pid, struct xp_err *err)
{
	struct xp_target *target = add_target(t, pid);

	if (!target)
		return xp_err_sys(err, ENOMEM, "process %d", (int)pid);
	target->before_exec = true;
	return publish(t, target);
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

static int apply_mmap(struct xp_targets *t, struct xp_target *target, const struct xp_event *e,
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
		target->min_generation = t->generation + 1;
	if (!r)
		r = xp_maps_add(&target->process.maps, &m);
	target->dirty = true;
	free(m.path);
	return r;
}

static int name_thread(struct xp_targets *t, pid_t pid, pid_t tid, const char *comm, uint32_t *id)
{
	struct xp_thread thread = { .pid = pid, .tid = tid };
	int r = xp_strings_addz(&t->profile->strings, comm, &thread.comm);

	if (!r)
		r = xp_profile_add_thread(t->profile, &thread, id);
	if (!r)
		r = xp_map_set(&t->threads, (uint64_t)pid << 32 | (uint32_t)tid, *id);
	return r;
}

static int apply_exec(struct xp_targets *t, struct xp_target *target, const struct xp_event *e)
{
	if (e->time < target->since)	/* the mappings are those of the new image already */
		return 0;
	xp_maps_release(&target->process.maps);
	target->min_generation = t->generation + 1;
	target->before_exec = false;
	target->dirty = true;
	if (t->runtimes)
		xp_runtimes_detach(t->runtimes, &target->attached, e->time);
	return 0;
}

static int apply_comm(struct xp_targets *t, struct xp_target *target, const struct xp_event *e,
		      const char *text)
{
	uint32_t id;

	if (e->pid == e->tid)
		snprintf(target->process.comm, sizeof(target->process.comm), "%s", text);
	return name_thread(t, e->pid, e->tid, text, &id);
}

/* The name a new thread or process starts with: that of the thread that made it. */
static int inherit_name(struct xp_targets *t, const struct xp_event *e)
{
	uint32_t parent, id, comm;
	int r = xp_targets_thread(t, e->ppid, e->ptid, &parent);

	if (r)
		return r;
	comm = t->profile->threads.v[parent].comm;
	return name_thread(t, e->pid, e->tid, xp_strings_get(&t->profile->strings, comm).p, &id);
}

static int apply_fork(struct xp_targets *t, struct xp_target *parent, const struct xp_event *e)
{
	struct xp_target *child = xp_targets_find(t, e->pid);
	int r;

	if (e->pid == e->ppid)
		return inherit_name(t, e);
	if (!t->follow_children || (child && e->time < child->since))
		return 0;
	child = add_target(t, e->pid);
	if (!child)
		return -ENOMEM;
	memcpy(child->process.comm, parent->process.comm, sizeof(child->process.comm));
	child->min_generation = parent->min_generation;
	child->before_exec = parent->before_exec;
	r = xp_maps_copy(&child->process.maps, &parent->process.maps);
	if (r)
		return r;
	if (t->runtimes)
		xp_runtimes_inherit(t->runtimes, &child->attached, &parent->attached);
	child->dirty = parent->dirty || !parent->set;
	if (!child->dirty) {
		child->set = parent->set;
		child->set->refs++;
		put_entry(t, child);
	}
	return inherit_name(t, e);
}

int xp_targets_event(struct xp_targets *t, const struct xp_event *e, const char *text)
{
	pid_t owner = e->type == XP_EVENT_FORK ? e->ppid : e->pid;
	struct xp_target *target = xp_targets_find(t, owner);
	int r;

	if (!target || target->exited)
		return 0;
	switch (e->type) {
	case XP_EVENT_MMAP:
		return apply_mmap(t, target, e, text);
	case XP_EVENT_EXEC:
		r = apply_exec(t, target, e);
		return r ? r : apply_comm(t, target, e, text);
	case XP_EVENT_COMM:
		return apply_comm(t, target, e, text);
	case XP_EVENT_FORK:
		return apply_fork(t, target, e);
	case XP_EVENT_EXIT:
		break;
	}
	return 0;
}

void xp_targets_exited(struct xp_targets *t, pid_t pid)
{
	struct xp_target *target = xp_targets_find(t, pid);

	if (target)
		target->exited = true;
}

/* Forgets the exited. Their pids may be somebody else's by now: only our own entries are removed. */
static void bury(struct xp_targets *t, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->list.n; i++) {
		struct xp_target *target = t->list.v[i];

		if (!target->exited) {
			t->list.v[kept++] = target;
			continue;
		}
		if (xp_targets_find(t, target->process.pid) == target) {
			xp_map_remove(&t->by_pid, target->process.pid);
			t->port.remove(t->port.ctx, target->process.pid);
		}
		drop_set(t, target);
		free_target(t, target, now);
	}
	t->list.n = kept;
}

static void free_retired(struct xp_targets *t, uint64_t now)
{
	size_t kept = 0;

	for (size_t i = 0; i < t->retired.n; i++) {
		struct xp_range_set *set = t->retired.v[i];

		if (!set->retired)
			set->retired = now;
		if (now - set->retired < RETIRE_NS) {
			t->retired.v[kept++] = set;
			continue;
		}
		xp_tables_drop_ranges(t->tables, set->span);
		free(set);
	}
	t->retired.n = kept;
}

int xp_targets_settle(struct xp_targets *t, uint64_t now)
{
	int r = 0;

	bury(t, now);
	for (size_t i = 0; !r && i < t->list.n; i++) {
		struct xp_target *target = t->list.v[i];
		bool dirty = target->dirty;

		/* Tables first: looking for runtimes may mean reading a file's code. */
		if (dirty)
			r = publish(t, target);
		if (!r && t->runtimes && !target->before_exec)
			r = update_runtimes(t, target, dirty, now);
	}
	free_retired(t, now);
	return r;
}

bool xp_targets_waiting(const struct xp_targets *t)
{
	for (size_t i = 0; i < t->list.n; i++)
		if (xp_runtimes_waiting(&t->list.v[i]->attached))
			return true;
	return false;
}

int xp_targets_resync(struct xp_targets *t, uint64_t now)
{
	int r = 0;

	for (size_t i = 0; r != -ENOMEM && i < t->list.n; i++) {
		struct xp_target *target = t->list.v[i];

		if (target->exited || target->before_exec)
			continue;
		r = read_maps(t, target, now, NULL);
		target->min_generation = t->generation + 1;
	}
	return r == -ENOMEM ? r : 0;
}

static bool has_ended(pid_t pid)
{
	struct xp_proc_info info;

	return xp_proc_read(&info, pid, NULL) == -ESRCH || info.state == 'Z' || info.state == 'X';
}

/* A process whose first thread has ended is a zombie by its state while other threads run. */
static bool is_gone(pid_t pid)
{
	struct xp_proc_threads threads = { 0 };
	bool gone = has_ended(pid);

	if (!gone || xp_proc_threads_read(&threads, pid, NULL))
		return gone;
	for (size_t i = 0; gone && i < threads.list.n; i++)
		gone = has_ended(threads.list.v[i].tid);
	xp_proc_threads_release(&threads);
	return gone;
}

void xp_targets_sweep(struct xp_targets *t)
{
	for (size_t i = 0; i < t->list.n && i < SWEEP_MAX; i++) {
		struct xp_target *target = t->list.v[t->sweep++ % t->list.n];

		if (!target->exited && is_gone(target->process.pid))
			target->exited = true;
	}
}

int xp_targets_thread(struct xp_targets *t, pid_t pid, pid_t tid, uint32_t *id)
{
	uint64_t *known = xp_map_get(&t->threads, (uint64_t)pid << 32 | (uint32_t)tid);
	struct xp_target *target = xp_targets_find(t, pid);
	struct xp_buf b = XP_BUF_INIT;
	char path[64];
	int r;

	if (known) {
		*id = *known;
		return 0;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (!xp_read_file(path, &b, 64) && b.len) {
		b.data[b.len - 1] = 0;	/* the newline */
		r = name_thread(t, pid, tid, (const char *)b.data, id);
	} else {
		r = name_thread(t, pid, tid, target ? target->process.comm : "?", id);
	}
	xp_buf_release(&b);
	return r;
}
