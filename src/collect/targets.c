/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A child shares the ranges of its parent until it changes something: the kernel side has copied
 * the parent's entry at fork already.
 */
#include "collect/targets_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "target/proc.h"

#define SWEEP_MAX 64
#define DSOS_SWEEP_NS 500000000ull	/* XP_DSO_SWEEPS of them: two seconds and more */
#define REFUSED_NS 1000000000ull
#define EXEC_HEARD_NS 100000000ull	/* by then the event of an exec has come, or was lost */

int xp_targets_init(struct xp_targets *t)
{
	memset(t, 0, sizeof(*t));
	xp_thread_names_init(&t->threads);
	return 0;
}

static void free_target(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	if (t->runtimes)
		xp_runtimes_detach(t->runtimes, &target->attached, now);
	xp_range_set_put(&t->sets, target->set, t->dsos);
	xp_maps_release(&target->process.maps);
	free(target);
}

void xp_targets_drop_held(struct xp_targets *t)
{
	for (size_t i = 0; i < t->held.n; i++)
		xp_dso_put(t->dsos, t->held.v[i]);
	xp_vec_release(&t->held);
}

void xp_targets_release(struct xp_targets *t)
{
	for (size_t i = 0; i < t->list.n; i++)
		free_target(t, t->list.v[i], 0);
	xp_range_sets_release(&t->sets, t->dsos);
	xp_targets_drop_held(t);
	xp_vec_release(&t->list);
	xp_map_release(&t->by_pid);
	xp_thread_names_release(&t->threads);
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

/* One of the same pid has exited, then, and is forgotten. */
struct xp_target *xp_target_add(struct xp_targets *t, pid_t pid, uint64_t created)
{
	struct xp_target *target = calloc(1, sizeof(*target)), **slot;
	struct xp_target *old = xp_targets_find(t, pid);

	if (!target)
		return NULL;
	if (old) {
		old->exited = true;
		xp_thread_names_forget(&t->threads, pid);
	}
	target->process.pid = pid;
	xp_target_own_maps(t, target);
	target->life.created = created;
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

/* Attaches what is ready and tells the kernel side; looks only when something may have changed. */
static int update_runtimes(struct xp_targets *t, struct xp_target *target, bool remapped,
			   uint64_t now)
{
	int r;

	if (!remapped && target->runtimes_known && !xp_runtimes_waiting(&target->attached))
		return 0;
	r = xp_runtimes_update(t->runtimes, &target->process, &target->attached, now);
	target->runtimes_known = true;
	return r > 0 && target->set ? xp_target_put_entry(t, target) : r < 0 ? r : 0;
}

int xp_targets_attach_runtimes(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	return t->runtimes ? update_runtimes(t, target, true, now) : 0;
}

static int name_process(struct xp_targets *t, struct xp_target *target)
{
	struct xp_proc_threads threads = { 0 };
	struct xp_proc_info info;
	pid_t pid = target->process.pid;
	int r = 0;

	if (xp_proc_read(&info, pid, NULL))
		return 0;
	memcpy(target->process.comm, info.comm, sizeof(info.comm));
	target->life.start_time = info.start_time;
	/* Now, while they live: a thread that ends is not asked for its name any more. */
	xp_proc_threads_read(&threads, pid, NULL);
	for (size_t i = 0; !r && i < threads.list.n; i++)
		if (threads.list.v[i].comm[0])	/* else it has ended since */
			r = xp_thread_names_set(&t->threads, pid, threads.list.v[i].tid,
						threads.list.v[i].comm);
	xp_proc_threads_release(&threads);
	return r;
}

int xp_targets_attach(struct xp_targets *t, pid_t pid, uint64_t now, struct xp_err *err)
{
	struct xp_target *target = xp_targets_find(t, pid);
	int r;

	if (target && !target->exited)
		return 0;
	target = xp_target_add(t, pid, now);
	if (!target)
		return xp_err_sys(err, ENOMEM, "process %d", (int)pid);
	r = name_process(t, target);
	if (r)
		return xp_err_sys(err, -r, "process %d", (int)pid);
	r = xp_target_read_maps(t, target, now, err);
	if (r) {
		xp_targets_exited(t, pid);
		return r;
	}
	r = xp_target_publish(t, target, now);
	if (!r && t->runtimes)
		r = update_runtimes(t, target, true, now);
	return r ? xp_err_sys(err, -r, "cannot publish process %d", (int)pid) : 0;
}

/* Whether the pid is that of a living process, and not of the target that has just exited. */
static bool may_adopt(pid_t pid, const struct xp_target *exited)
{
	struct xp_proc_info info;

	return !xp_proc_read(&info, pid, NULL) && info.state != 'Z' && info.state != 'X' &&
	       (!exited || (exited->life.start_time &&
			    exited->life.start_time != info.start_time));
}

static int adopt(struct xp_targets *t, pid_t pid, uint64_t now)
{
	struct xp_target *target = xp_targets_find(t, pid);
	int r = -ESRCH;

	if (pid == t->refused && now - t->refused_at < REFUSED_NS)
		return 0;
	if (may_adopt(pid, target)) {
		r = xp_targets_attach(t, pid, now, NULL);
		target = xp_targets_find(t, pid);
		if (target)	/* it may have gone through an exec that we did not hear of */
			target->min_generation = r ? UINT32_MAX : target->set->generation;
	}
	if (r) {
		t->refused = pid;
		t->refused_at = now;
	}
	return r == -ENOMEM ? r : 0;
}

/* Reads all mappings again: what was walked before is not to be trusted. */
static int see_again(struct xp_targets *t, struct xp_target *target, uint64_t now)
{
	int r = xp_target_read_maps(t, target, now, NULL);

	if (r != -ENOMEM && target->before_exec) {
		target->before_exec = false;
		xp_targets_drop_held(t);
		r = name_process(t, target);
	}
	target->min_generation = t->sets.generation + 1;
	target->replaced.n = 0;
	return r == -ENOMEM ? r : 0;
}

int xp_targets_adopt(struct xp_targets *t, pid_t pid, uint64_t now)
{
	struct xp_target *target = xp_targets_find(t, pid);

	if (!target || target->exited)
		return adopt(t, pid, now);
	if (!target->before_exec || !target->released)
		return 0;
	if (!target->first_sample)
		target->first_sample = now;
	return now < target->first_sample + EXEC_HEARD_NS ? 0 : see_again(t, target, now);
}

int xp_targets_prepare(struct xp_targets *t, const char *path)
{
	struct xp_dso *dso = xp_dsos_get_path(t->dsos, path, NULL), **slot;
	int r;

	if (!dso)
		return errno == ENOMEM ? -ENOMEM : 0;
	slot = xp_vec_push(&t->held);
	if (!slot) {
		xp_dso_put(t->dsos, dso);
		return -ENOMEM;
	}
	*slot = dso;
	r = xp_tables_add(t->tables, dso);
	return !r && t->runtimes ? xp_runtimes_probe(t->runtimes, dso) : r;
}

int xp_targets_add_child(struct xp_targets *t, pid_t pid, struct xp_err *err)
{
	struct xp_target *target = xp_target_add(t, pid, 0);

	if (!target)
		return xp_err_sys(err, ENOMEM, "process %d", (int)pid);
	xp_life_goes_on(&target->life, pid);	/* reads its start time */
	target->before_exec = true;
	return xp_target_publish(t, target, 0);
}

void xp_targets_released(struct xp_targets *t, pid_t pid)
{
	struct xp_target *target = xp_targets_find(t, pid);

	if (target)
		target->released = true;
}

void xp_targets_exited(struct xp_targets *t, pid_t pid)
{
	struct xp_target *target = xp_targets_find(t, pid);

	if (target)
		target->exited = true;
}

void xp_targets_ended(struct xp_targets *t, pid_t pid, uint64_t time)
{
	const struct xp_target *target = xp_targets_find(t, pid);

	if (target && time >= target->life.created)
		xp_targets_exited(t, pid);
}

bool xp_target_trusts(const struct xp_target *target, uint32_t generation,
		      const struct xp_raw_frame *frames, uint32_t n)
{
	return generation >= target->min_generation &&
	       xp_replaced_none(&target->replaced, generation, frames, n);
}

/* Forgets the exited. Their pids may be others' by now: only our own entries are removed. */
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
			xp_thread_names_forget(&t->threads, target->process.pid);
			t->port.remove(t->port.ctx, target->process.pid);
		}
		free_target(t, target, now);
	}
	t->list.n = kept;
}

static void forget_rows(void *ctx, struct xp_dso *dso)
{
	xp_tables_remove(ctx, dso);
}

/* What nobody refers to any more: ranges first, then the rows that only they have pointed to. */
static void collect_garbage(struct xp_targets *t, uint64_t now)
{
	xp_range_sets_settle(&t->sets, t->tables, t->dsos, now);
	xp_thread_names_settle(&t->threads, now);
	if (now - t->dsos_swept < DSOS_SWEEP_NS)
		return;
	t->dsos_swept = now;
	xp_dsos_sweep(t->dsos, forget_rows, t->tables);
}

int xp_targets_settle(struct xp_targets *t, uint64_t now)
{
	int r = 0;

	bury(t, now);
	for (size_t i = 0; !r && i < t->list.n; i++) {
		struct xp_target *target = t->list.v[i];
		bool dirty;

		r = xp_target_shorten(t, target, now);
		dirty = target->dirty && !xp_target_may_wait(target, now);
		/* Tables first: looking for runtimes may mean reading a file's code. */
		if (!r && dirty)
			r = xp_target_publish(t, target, now);
		if (!r && t->runtimes && !target->before_exec)
			r = update_runtimes(t, target, dirty, now);
	}
	collect_garbage(t, now);
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

	for (size_t i = 0; !r && i < t->list.n; i++) {
		struct xp_target *target = t->list.v[i];

		if (!target->exited && (!target->before_exec || target->released))
			r = see_again(t, target, now);
	}
	return r;
}

void xp_targets_sweep(struct xp_targets *t)
{
	for (size_t i = 0; i < t->list.n && i < SWEEP_MAX; i++) {
		struct xp_target *target = t->list.v[t->sweep++ % t->list.n];

		if (!target->exited && !xp_life_goes_on(&target->life, target->process.pid))
			target->exited = true;
	}
}

int xp_targets_thread(struct xp_targets *t, pid_t pid, pid_t tid, uint32_t *id)
{
	const struct xp_target *target = xp_targets_find(t, pid);
	char comm[16];
	bool known;
	int r = 0;

	*id = xp_thread_names_id(&t->threads, pid, tid);
	if (*id != XP_NO_ID)
		return 0;
	known = xp_thread_names_get(&t->threads, pid, tid, target ? target->process.comm : "?",
				    comm);
	if (!known && target && !target->exited)
		r = xp_thread_names_set(&t->threads, pid, tid, comm);
	return r ? r : xp_thread_names_add(&t->threads, t->profile, pid, tid, comm, id);
}
