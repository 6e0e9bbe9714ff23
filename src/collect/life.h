/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a pid is still the process it was: pids are used again.
 */
#ifndef XP_COLLECT_LIFE_H
#define XP_COLLECT_LIFE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct xp_life {
	uint64_t created;	/* CLOCK_MONOTONIC ns: it was there then; 0: not known */
	uint64_t start_time;	/* as in struct xp_proc_info; 0: not read yet */
};

/*
 * True while that process runs, if only by threads other than its first. Reads its start time when
 * it was not known; then one that began after `created` is another.
 */
bool xp_life_goes_on(struct xp_life *life, pid_t pid);

#endif
