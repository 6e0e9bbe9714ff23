/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process that lives for a short while: two functions at 2 : 1.
 *
 * usage: short [MILLISECONDS]
 */
#include <stdlib.h>

#include "truth.h"

NOINLINE long short_hot(unsigned long n)
{
	BURN(n);
	return 1;
}

NOINLINE long short_warm(unsigned long n)
{
	BURN(n);
	return 2;
}

int main(int argc, char **argv)
{
	double seconds = (argc > 1 ? atof(argv[1]) : 50) / 1000;
	struct truth t[] = { { "short_hot", 0 }, { "short_warm", 0 } };
	volatile long sum = 0;

	while (truth_now() < seconds) {
		TRUTH(&t[0], sum += short_hot(100000));
		TRUTH(&t[1], sum += short_warm(50000));
	}
	truth_print(t, 2);
	return 0;
}
