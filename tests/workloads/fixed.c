/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A stack of exactly N frames with this program's own functions in it, all the time spent in the leaf;
 * or, with a third argument, a fixed amount of work, for measurements of slow-down.
 *
 * usage: fixed FRAMES SECONDS            run for so much CPU time ("truth frames N")
 *        fixed FRAMES loops ITERATIONS   do so much work ("truth cpu SECONDS", "truth elapsed")
 *
 * FRAMES counts main, the recursion and the leaf; libc's start-up frames (3 with glibc: two in libc
 * and _start) come on top.
 */
#include <stdlib.h>
#include <string.h>

#include "truth.h"

static volatile long sum;
static double seconds;
static unsigned long loops;

NOINLINE void fixed_leaf(void)
{
	if (loops) {
		BURN(loops);
		return;
	}
	do {
		BURN(3000000);
	} while (truth_now() < seconds);
}

NOINLINE long fixed_step(long n)
{
	if (n <= 0)
		fixed_leaf();
	else
		sum += fixed_step(n - 1);
	return sum + n;
}

int main(int argc, char **argv)
{
	double begin = truth_clock(CLOCK_MONOTONIC), cpu = truth_now();
	long frames = argc > 1 ? atol(argv[1]) : 8;

	if (argc > 3 && !strcmp(argv[2], "loops"))
		loops = strtoul(argv[3], NULL, 10);
	else
		seconds = argc > 2 ? atof(argv[2]) : 2;
	sum += fixed_step(frames - 3);
	printf("truth frames %ld\ntruth cpu %.6f\n", frames, truth_now() - cpu);
	printf("truth elapsed %.6f\n", truth_clock(CLOCK_MONOTONIC) - begin);
	return 0;
}
