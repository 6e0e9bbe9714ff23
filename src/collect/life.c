/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Start times are counted from boot with the time asleep (proc_pid_stat(5)), events are not
 * (CLOCK_MONOTONIC). A machine that slept in between makes a start look earlier than it was: then a
 * process is taken for the one we know, never the other way round.
 */
#include "collect/life.h"

#include <errno.h>
#include <time.h>
#include <unistd.h>

#include "target/proc.h"

#define SLACK_NS 1000000000ull	/* no pid is used again so soon */

static int64_t ns_of(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return t.tv_sec * 1000000000ll + t.tv_nsec;
}

/* A start time as CLOCK_MONOTONIC has it. */
static int64_t started(uint64_t ticks)
{
	int64_t asleep = ns_of(CLOCK_BOOTTIME) - ns_of(CLOCK_MONOTONIC);

	return (int64_t)(ticks * (1000000000ull / sysconf(_SC_CLK_TCK))) - asleep;
}

static bool is_another(const struct xp_life *life, const struct xp_proc_info *info)
{
	if (life->start_time)
		return info->start_time != life->start_time;
	return life->created && started(info->start_time) > (int64_t)(life->created + SLACK_NS);
}

static bool has_ended(pid_t pid)
{
	struct xp_proc_info info;

	return xp_proc_read(&info, pid, NULL) == -ESRCH || info.state == 'Z' || info.state == 'X';
}

/* A process whose first thread has ended is a zombie by its state while other threads run. */
static bool threads_have_ended(pid_t pid)
{
	struct xp_proc_threads threads = { 0 };
	bool ended = true;

	if (!xp_proc_threads_read(&threads, pid, NULL))
		for (size_t i = 0; ended && i < threads.list.n; i++)
			ended = has_ended(threads.list.v[i].tid);
	xp_proc_threads_release(&threads);
	return ended;
}

bool xp_life_goes_on(struct xp_life *life, pid_t pid)
{
	struct xp_proc_info info;
	int r = xp_proc_read(&info, pid, NULL);

	if (r == -ESRCH || (!r && is_another(life, &info)))
		return false;
	if (!r)
		life->start_time = info.start_time;
	return (info.state != 'Z' && info.state != 'X') || !threads_have_ended(pid);
}
