/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes that are sampled: their mappings through time, what the kernel side walks with, and
 * the names of their threads.
 *
 * Each publication of an address space has a generation. A raw sample says which one it was walked
 * with; one that was published before the address space was replaced (exec, another file at the same
 * addresses) is not trusted beyond its leaf.
 */
#ifndef XP_COLLECT_TARGETS_H
#define XP_COLLECT_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "collect/runtimes.h"
#include "collect/sideband.h"
#include "collect/tables.h"
#include "profile/profile.h"
#include "target/dso.h"
#include "target/process.h"

/* How targets reach the kernel side; filled by session.c, replaced by tests. */
struct xp_targets_port {
	int (*put)(void *ctx, const struct xp_proc *proc);
	int (*remove)(void *ctx, pid_t pid);
	void *ctx;
};

struct xp_range_set {		/* a published address space, shared by forked children */
	struct xp_span span;
	uint32_t generation;
	unsigned refs;
	uint64_t retired;	/* ns, when the last reference went; 0: in use */
};

struct xp_target {
	struct xp_process process;
	struct xp_range_set *set;	/* NULL: nothing published */
	struct xp_attached attached;	/* its runtimes */
	uint32_t min_generation;	/* samples walked with an older one are cut at their leaf */
	uint64_t since;			/* ns: mappings were read from /proc then; older events are known */
	bool before_exec;		/* our own child, still running our code: not sampled */
	bool dirty;			/* mappings changed since they were published */
	bool runtimes_known;		/* they were looked for since the target was added */
	bool exited;
};

struct xp_targets {
	struct xp_dsos *dsos;		/* borrowed, like the next two */
	struct xp_tables *tables;
	struct xp_profile *profile;
	struct xp_runtimes_state *runtimes;	/* NULL: none are looked for */
	struct xp_targets_port port;
	bool follow_children;
	XP_VEC(struct xp_target *) list;
	struct xp_map by_pid;		/* pid -> struct xp_target * */
	struct xp_map threads;		/* pid << 32 | tid -> thread id in the profile */
	XP_VEC(struct xp_range_set *) retired;
	uint32_t generation;
	unsigned seen;			/* processes that were ever a target */
	size_t sweep;			/* index of the next one to be looked at */
};

int xp_targets_init(struct xp_targets *t);
void xp_targets_release(struct xp_targets *t);

/* A running process: reads its mappings, builds tables, publishes. */
int xp_targets_attach(struct xp_targets *t, pid_t pid, uint64_t now, struct xp_err *err);
/*
 * A process that is sampled though we do not know it: the event of its fork was lost. Does nothing
 * when it is known or gone. 0 or -ENOMEM.
 */
int xp_targets_adopt(struct xp_targets *t, pid_t pid, uint64_t now);
/* Our own child that waits to exec. */
int xp_targets_add_child(struct xp_targets *t, pid_t pid, struct xp_err *err);
/* Applies one event. 0 or -ENOMEM. */
int xp_targets_event(struct xp_targets *t, const struct xp_event *e, const char *text);
/* The last thread of a process has gone. */
void xp_targets_exited(struct xp_targets *t, pid_t pid);
/* Publishes what changed, forgets who exited, frees ranges that no walker can use any more. */
int xp_targets_settle(struct xp_targets *t, uint64_t now);
/* Reads all mappings again: after events were lost. */
int xp_targets_resync(struct xp_targets *t, uint64_t now);
/* Marks those whose process is gone without our having been told; looks at a few of them a call. */
void xp_targets_sweep(struct xp_targets *t);

struct xp_target *xp_targets_find(const struct xp_targets *t, pid_t pid);	/* NULL: not one */
/* The profile's thread, by its name at this time. 0 or -ENOMEM. */
int xp_targets_thread(struct xp_targets *t, pid_t pid, pid_t tid, uint32_t *id);
unsigned xp_targets_alive(const struct xp_targets *t);
/* Some runtime is about to start: settle again within a few milliseconds. */
bool xp_targets_waiting(const struct xp_targets *t);

#endif
