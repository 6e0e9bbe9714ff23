/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The processes that are sampled: their mappings through time, what the kernel side walks with, and
 * the names of their threads.
 *
 * Each publication of an address space has a generation. A raw sample says which one it was walked
 * with; one that was published before the address space was replaced (exec) is not trusted beyond
 * its leaf, nor is one with a frame in code that was replaced since.
 */
#ifndef XP_COLLECT_TARGETS_H
#define XP_COLLECT_TARGETS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "collect/life.h"
#include "collect/ranges.h"
#include "collect/runtimes.h"
#include "collect/sideband.h"
#include "collect/tables.h"
#include "collect/threads.h"
#include "profile/profile.h"
#include "target/dso.h"
#include "target/process.h"

/* How targets reach the kernel side; filled by session.c, replaced by tests. */
struct xp_targets_port {
	int (*put)(void *ctx, const struct xp_proc *proc);
	int (*remove)(void *ctx, pid_t pid);
	void *ctx;
};

struct xp_target {
	struct xp_process process;
	struct xp_range_set *set;	/* NULL: nothing published */
	struct xp_attached attached;	/* its runtimes */
	uint32_t min_generation;	/* samples walked with an older one are cut at their leaf */
	struct xp_replaced replaced;	/* what else of older ones is not believed */
	struct xp_life life;
	uint64_t since;			/* ns: mappings were read then; older events are known */
	size_t read;			/* executable mappings that there were then */
	uint64_t published;		/* ns: of set */
	uint64_t first_sample;		/* ns: after the release, while before_exec */
	bool before_exec;		/* our own child, still running our code: not sampled */
	bool released;			/* ... and told to exec, which is known to have succeeded */
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
	struct xp_thread_names threads;
	struct xp_range_sets sets;
	XP_VEC(struct xp_dso *) held;	/* files of our own child, until its exec */
	uint64_t dsos_swept;		/* ns */
	pid_t refused;			/* not adopted, and when that was */
	uint64_t refused_at;
	unsigned seen;			/* processes that were ever a target */
	size_t sweep;			/* index of the next one to be looked at */
};

int xp_targets_init(struct xp_targets *t);
void xp_targets_release(struct xp_targets *t);

/* A running process: reads its mappings, builds tables, publishes. */
int xp_targets_attach(struct xp_targets *t, pid_t pid, uint64_t now, struct xp_err *err);
/*
 * To be called for every sample. A process that is sampled though we do not know it: the event of
 * its fork was lost. Does nothing when it is known or gone. Or our own child, whose exec we should
 * have heard of: its mappings are read. 0 or -ENOMEM.
 */
int xp_targets_adopt(struct xp_targets *t, pid_t pid, uint64_t now);
/*
 * A file that our own child is about to map: its rows are published and its runtimes probed now. It
 * is held until the child's exec. A file that cannot be opened is passed over. 0 or -ENOMEM.
 */
int xp_targets_prepare(struct xp_targets *t, const char *path);
/* Looks for a target's runtimes now, not when things settle. 0 or -ENOMEM. */
int xp_targets_attach_runtimes(struct xp_targets *t, struct xp_target *target, uint64_t now);
/* Our own child that waits to exec. */
int xp_targets_add_child(struct xp_targets *t, pid_t pid, struct xp_err *err);
/* Its exec has succeeded: should the event of it be lost, it is found out all the same. */
void xp_targets_released(struct xp_targets *t, pid_t pid);
/* Applies one event. 0 or -ENOMEM. */
int xp_targets_event(struct xp_targets *t, const struct xp_event *e, const char *text);
/* The last thread of a process has gone. */
void xp_targets_exited(struct xp_targets *t, pid_t pid);
/* The same at a time (ns): of a target that was created later it was another process's end. */
void xp_targets_ended(struct xp_targets *t, pid_t pid, uint64_t time);
/*
 * Publishes what changed, forgets who exited, frees ranges that no walker can use any more, gives
 * up files that nobody has mapped for two seconds.
 */
int xp_targets_settle(struct xp_targets *t, uint64_t now);
/* Reads all mappings again: after events were lost. */
int xp_targets_resync(struct xp_targets *t, uint64_t now);
/* Marks those whose process is gone without our having been told; looks at a few of them a call. */
void xp_targets_sweep(struct xp_targets *t);

/*
 * Whether the frames of a sample of this generation were found with code that is the target's; else
 * only the leaf is sure. n: of frames.
 */
bool xp_target_trusts(const struct xp_target *target, uint32_t generation,
		      const struct xp_raw_frame *frames, uint32_t n);
struct xp_target *xp_targets_find(const struct xp_targets *t, pid_t pid);	/* NULL: not one */
/* The profile's thread, by its name at this time. 0 or -ENOMEM. */
int xp_targets_thread(struct xp_targets *t, pid_t pid, pid_t tid, uint32_t *id);
unsigned xp_targets_alive(const struct xp_targets *t);
/* Some runtime is about to start: settle again within a few milliseconds. */
bool xp_targets_waiting(const struct xp_targets *t);

#endif
