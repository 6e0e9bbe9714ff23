/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What /proc says about a process.
 */
#ifndef XP_TARGET_PROC_H
#define XP_TARGET_PROC_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"

struct xp_proc_info {
	pid_t pid, ppid;
	uint64_t start_time;		/* clock ticks after boot; with pid the identity */
	char comm[16];			/* may hold any byte but NUL */
	char state;			/* R S D Z T ... */
	bool kernel_thread;
	uid_t uid;			/* effective */
	pid_t tgid;			/* != pid: this is a thread's id */
};

/* -ESRCH when there is none. The comm in /proc/PID/stat may hold blanks and parentheses. */
int xp_proc_read(struct xp_proc_info *info, pid_t pid, struct xp_err *err);
/*
 * Whether this process can be profiled: exists, is a process and not a thread, is no kernel thread,
 * no zombie, and its maps may be read. The error says what, why and what next.
 */
int xp_proc_check_target(struct xp_proc_info *info, pid_t pid, struct xp_err *err);

struct xp_proc_thread {
	pid_t tid;
	char comm[16];
};
struct xp_proc_threads { XP_VEC(struct xp_proc_thread) list; };

int xp_proc_threads_read(struct xp_proc_threads *t, pid_t pid, struct xp_err *err);
void xp_proc_threads_release(struct xp_proc_threads *t);
/* The direct and indirect children alive now (by ppid), appended to list. */
struct xp_pids { XP_VEC(pid_t) list; };
int xp_proc_descendants(struct xp_pids *out, pid_t pid);

#endif
