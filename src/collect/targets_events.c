/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Applies one event of the kernel to the targets.
 */
#include "collect/targets_impl.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int apply_exec(struct xp_targets *t, struct xp_target *target, const struct xp_event *e)
{
	if (e->time < target->since)	/* the mappings are those of the new image already */
		return 0;
	xp_maps_release(&target->process.maps);
	target->min_generation = t->sets.generation + 1;
	target->replaced.n = 0;
	if (target->before_exec)
		xp_targets_drop_held(t);
	target->before_exec = false;
	target->dirty = true;
	if (t->runtimes)
		xp_runtimes_detach(t->runtimes, &target->attached, e->time);
	return 0;
}

static int apply_comm(struct xp_targets *t, struct xp_target *target, const struct xp_event *e,
		      const char *text)
{
	if (e->pid == e->tid)
		snprintf(target->process.comm, sizeof(target->process.comm), "%s", text);
	return xp_thread_names_set(&t->threads, e->pid, e->tid, text);
}

/* The name a new thread or process starts with: that of the thread that made it. */
static int inherit_name(struct xp_targets *t, const struct xp_target *parent,
			const struct xp_event *e)
{
	char comm[16];

	xp_thread_names_get(&t->threads, e->ppid, e->ptid, parent->process.comm, comm);
	return xp_thread_names_set(&t->threads, e->pid, e->tid, comm);
}

static int apply_fork(struct xp_targets *t, struct xp_target *parent, const struct xp_event *e)
{
	struct xp_target *child = xp_targets_find(t, e->pid);
	int r;

	if (e->pid == e->ppid)
		return inherit_name(t, parent, e);
	if (!t->follow_children || (child && e->time < child->since))
		return 0;
	child = xp_target_add(t, e->pid, e->time);
	if (!child)
		return -ENOMEM;
	memcpy(child->process.comm, parent->process.comm, sizeof(child->process.comm));
	child->min_generation = parent->min_generation;
	child->replaced = parent->replaced;
	child->before_exec = parent->before_exec;
	child->released = parent->released;
	child->read = parent->read;
	r = xp_maps_copy(&child->process.maps, &parent->process.maps);
	if (r)
		return r;
	if (t->runtimes)
		xp_runtimes_inherit(t->runtimes, &child->attached, &parent->attached);
	child->dirty = parent->dirty || !parent->set;
	if (!child->dirty) {
		child->set = parent->set;
		child->set->refs++;
		child->published = parent->published;
		xp_target_put_entry(t, child);
	}
	return inherit_name(t, parent, e);
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
		return xp_target_mmap(t, target, e, text);
	case XP_EVENT_EXEC:
		r = apply_exec(t, target, e);
		return r ? r : apply_comm(t, target, e, text);
	case XP_EVENT_COMM:
		return apply_comm(t, target, e, text);
	case XP_EVENT_FORK:
		return apply_fork(t, target, e);
	case XP_EVENT_EXIT:
		xp_thread_names_ended(&t->threads, e->pid, e->tid, e->time);
		break;
	}
	return 0;
}
