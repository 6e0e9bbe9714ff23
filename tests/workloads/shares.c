/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Four functions that share the CPU about 8 : 4 : 2 : 1, the last two below a common caller.
 *
 * usage: shares [CPU-SECONDS]
 */
#include <stdlib.h>

#include "truth.h"

NOINLINE int alpha(unsigned long n)
{
	BURN(n);
	return 1;
}

NOINLINE int beta(unsigned long n)
{
	BURN(n);
	return 2;
}

NOINLINE int gamma_leaf(unsigned long n)
{
	BURN(n);
	return 3;
}

NOINLINE int delta_leaf(unsigned long n)
{
	BURN(n);
	return 4;
}

static struct truth truths[] = { { "alpha", 0 }, { "beta", 0 }, { "gamma_leaf", 0 }, { "delta_leaf", 0 } };
static volatile int sum;

NOINLINE int common_caller(void)
{
	for (int i = 0; i < 2; i++)
		TRUTH(&truths[2], sum += gamma_leaf(truth_length()));
	TRUTH(&truths[3], sum += delta_leaf(truth_length()));
	return sum;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;

	while (truth_now() < seconds) {
		for (int i = 0; i < 8; i++)
			TRUTH(&truths[0], sum += alpha(truth_length()));
		for (int i = 0; i < 4; i++)
			TRUTH(&truths[1], sum += beta(truth_length()));
		sum += common_caller();
	}
	truth_print(truths, 4);
	return 0;
}
