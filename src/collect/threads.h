/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the targets' threads are called now. A thread becomes one of the profile only when a sample
 * asks for it: most threads of a program that starts many are never sampled.
 */
#ifndef XP_COLLECT_THREADS_H
#define XP_COLLECT_THREADS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/hash.h"
#include "base/vec.h"
#include "profile/profile.h"

struct xp_thread_name {
	pid_t pid, tid;			/* pid 0: free */
	char comm[16];
	uint32_t id;			/* in the profile, by this name; XP_NO_ID: not there yet */
	uint32_t prev, next;		/* of the same process, or the free ones; XP_NO_ID: none */
	bool ended;
};

struct xp_thread_end {
	pid_t pid, tid;
	uint64_t time;			/* ns */
};

struct xp_thread_names {
	struct xp_map index;		/* pid << 32 | tid -> index; tid 0: the process's first */
	XP_VEC(struct xp_thread_name) list;
	XP_VEC(struct xp_thread_end) ends;
	uint32_t free;			/* index of the first free one */
	size_t limit;			/* more than so many: look who is still there */
};

void xp_thread_names_init(struct xp_thread_names *names);
void xp_thread_names_release(struct xp_thread_names *names);
/* Its name from now on, cut at 15 bytes. 0 or -ENOMEM. */
int xp_thread_names_set(struct xp_thread_names *names, pid_t pid, pid_t tid, const char *comm);
/*
 * Copies its name: the one known (then true), or else that in /proc, or the one given for want of a
 * better.
 */
bool xp_thread_names_get(const struct xp_thread_names *names, pid_t pid, pid_t tid,
			 const char *otherwise, char comm[16]);
/* Adds a thread of that name to the profile and, when it is known, remembers so. 0 or -ENOMEM. */
int xp_thread_names_add(struct xp_thread_names *names, struct xp_profile *profile, pid_t pid,
			pid_t tid, const char *comm, uint32_t *id);
/* Its id in the profile by its present name; XP_NO_ID: not known or not added yet. */
uint32_t xp_thread_names_id(const struct xp_thread_names *names, pid_t pid, pid_t tid);
/* It has ended; forgotten a little later, for the kernel samples it to its very end. */
void xp_thread_names_ended(struct xp_thread_names *names, pid_t pid, pid_t tid, uint64_t time);
/* Forgets all threads of a process. */
void xp_thread_names_forget(struct xp_thread_names *names, pid_t pid);
/* Forgets the ended, and whom we were not told about when there are very many. */
void xp_thread_names_settle(struct xp_thread_names *names, uint64_t now);

#endif
