/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the test programs share: work that burns CPU in a function of its own, and the CPU time each
 * such function really took, printed at the end as lines "truth NAME SECONDS".
 *
 * A piece of work has a random length, so that its rhythm cannot lock to the sampling rate.
 */
#ifndef XP_TESTS_TRUTH_H
#define XP_TESTS_TRUTH_H

#include <stdio.h>
#include <time.h>

#ifdef __clang__
#define NOINLINE __attribute__((noinline))
#else
#define NOINLINE __attribute__((noipa))
#endif

/* A loop of the caller's own: the leaf is the function that uses it, at every optimization. */
#define BURN(n)								\
	do {								\
		volatile unsigned long burn_ = 1;			\
		for (unsigned long i_ = 0; i_ < (n); i_++)		\
			burn_ = burn_ * 6364136223846793005ul + i_;	\
	} while (0)

struct truth {
	const char *name;
	double seconds;
};

static inline double truth_clock(clockid_t clock)
{
	struct timespec t;

	clock_gettime(clock, &t);
	return (double)t.tv_sec + (double)t.tv_nsec / 1e9;
}

/* CPU seconds of the calling thread. */
static inline double truth_now(void)
{
	return truth_clock(CLOCK_THREAD_CPUTIME_ID);
}

/* Runs a statement and books its CPU time. */
#define TRUTH(t, statement)						\
	do {								\
		double start_ = truth_now();				\
		statement;						\
		(t)->seconds += truth_now() - start_;			\
	} while (0)

/* Iterations for BURN: some 0.1 to 0.6 ms. */
static inline unsigned long truth_length(void)
{
	static __thread unsigned long state = 88172645463325252ul;

	state ^= state << 13;
	state ^= state >> 7;
	state ^= state << 17;
	return 60000 + state % 300000;
}

static inline void truth_print(const struct truth *t, int n)
{
	for (int i = 0; i < n; i++)
		printf("truth %s %.6f\n", t[i].name, t[i].seconds);
	fflush(stdout);
}

#endif
