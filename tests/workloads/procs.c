/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Processes that come and go.
 *
 * usage: procs fork N SECONDS    N children at once, child i spends SECONDS in child_work_i (N <= 4)
 *        procs prefork SECONDS   4 children, each replaced after 0.1 s of CPU time; parent waits
 *        procs orphan SECONDS    the parent sleeps 1 s, forks and ends; the child spends SECONDS
 *                                in child_work_0
 *        procs vfork N           N times vfork, exec of "procs spin 0.02"
 *        procs exec SECONDS      spends SECONDS in before_exec, then execs "procs spin SECONDS"
 *        procs spin SECONDS      spends SECONDS in after_exec
 */
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "truth.h"

static volatile long sum;

#define CHILD_WORK(i)			\
	NOINLINE int child_work_##i(unsigned long n)	\
	{				\
		BURN(n);		\
		return i;		\
	}

CHILD_WORK(0)
CHILD_WORK(1)
CHILD_WORK(2)
CHILD_WORK(3)

static int (*const works[])(unsigned long n) = { child_work_0, child_work_1, child_work_2, child_work_3 };
static const char *const names[] = { "child_work_0", "child_work_1", "child_work_2", "child_work_3" };

NOINLINE int before_exec(unsigned long n)
{
	BURN(n);
	return 1;
}

NOINLINE int after_exec(unsigned long n)
{
	BURN(n);
	return 2;
}

static void spend(const char *name, int (*work)(unsigned long n), double seconds)
{
	struct truth t = { name, 0 };
	double end = truth_now() + seconds;	/* the clock goes on over exec */

	while (truth_now() < end)
		TRUTH(&t, sum += work(truth_length()));
	truth_print(&t, 1);
}

static pid_t start_child(int i, double seconds)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	spend(names[i], works[i], seconds);
	_exit(0);
}

static int prefork(double seconds)
{
	double end = truth_clock(CLOCK_MONOTONIC) + seconds;
	int next = 0;

	for (; next < 4; next++)
		start_child(next, 0.1);
	while (wait(NULL) > 0)
		if (truth_clock(CLOCK_MONOTONIC) < end)
			start_child(next++ % 4, 0.1);
	return 0;
}

/* A function of its own: what lives across vfork must not change between the two returns. */
NOINLINE int vfork_once(const char *self, char *const *argv)
{
	pid_t pid = vfork();

	if (pid == 0) {
		execv(self, argv);
		_exit(127);
	}
	return pid < 0 || waitpid(pid, NULL, 0) < 0;
}

static int vforks(int n)
{
	char *argv[] = { "procs", "spin", "0.02", NULL };

	for (int i = 0; i < n; i++)
		if (vfork_once("/proc/self/exe", argv))
			return 1;
	return 0;
}

int main(int argc, char **argv)
{
	const char *mode = argc > 2 ? argv[1] : "";
	double seconds = atof(argc > 2 ? argv[argc - 1] : "0");

	if (!strcmp(mode, "fork") && argc == 4) {
		for (int i = 0; i < atoi(argv[2]) && i < 4; i++)
			start_child(i, seconds);
		while (wait(NULL) > 0)
			;
	} else if (!strcmp(mode, "prefork")) {
		return prefork(seconds);
	} else if (!strcmp(mode, "orphan")) {
		sleep(1);
		start_child(0, seconds);
	} else if (!strcmp(mode, "vfork")) {
		return vforks(atoi(argv[2]));
	} else if (!strcmp(mode, "exec")) {
		spend("before_exec", before_exec, seconds);
		execl("/proc/self/exe", "procs", "spin", argv[2], NULL);
		return 127;
	} else if (!strcmp(mode, "spin")) {
		spend("after_exec", after_exec, seconds);
	} else {
		fprintf(stderr, "usage: procs fork N SECONDS | prefork|orphan|exec|spin SECONDS | vfork N\n");
		return 2;
	}
	return 0;
}
