/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time below the functions of asm.S. usage: asmmain [CPU-SECONDS]
 */
#include <stdlib.h>

#include "truth.h"

typedef long (*callee)(unsigned long n);

long asm_cfi(callee fn, unsigned long n);
long asm_rbp_data(callee fn, unsigned long n);
long asm_nocfi(callee fn, unsigned long n);
long asm_unsized(unsigned long n);

NOINLINE long below_asm(unsigned long n)
{
	BURN(n);
	return 1;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	struct truth t[] = { { "asm_cfi", 0 }, { "asm_rbp_data", 0 }, { "asm_nocfi", 0 },
			     { "asm_unsized", 0 } };
	volatile long sum = 0;

	while (truth_now() < seconds) {
		TRUTH(&t[0], sum += asm_cfi(below_asm, truth_length()));
		TRUTH(&t[1], sum += asm_rbp_data(below_asm, truth_length()));
		TRUTH(&t[2], sum += asm_nocfi(below_asm, truth_length()));
		TRUTH(&t[3], sum += asm_unsized(truth_length()));
	}
	truth_print(t, 4);
	return 0;
}
