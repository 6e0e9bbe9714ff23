/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Threads with hostile names, each with the same work: what a folded line must survive.
 *
 * usage: names SECONDS
 */
#include <pthread.h>
#include <stdlib.h>
#include <sys/prctl.h>

#include "truth.h"

static const char *const odd[] = { "a;b", "x 7", "[ET 0]", "\033[31m", "\xff\xfe", " ", "", "t\tb\nnl",
				   "\xc3\xa9 12 5", "cut-in-utf8-12\xe2\x82\xac" };

#define NAMES ((int)(sizeof(odd) / sizeof(odd[0])))

static double seconds;
static volatile long sum;

NOINLINE long named_work(unsigned long n)
{
	BURN(n);
	return 1;
}

static void *run(void *name)
{
	prctl(PR_SET_NAME, name);
	while (truth_now() < seconds)
		sum += named_work(truth_length());
	return NULL;
}

int main(int argc, char **argv)
{
	pthread_t t[NAMES];

	seconds = (argc > 1 ? atof(argv[1]) : 2) / NAMES;
	for (int i = 0; i < NAMES; i++)
		if (pthread_create(&t[i], NULL, run, (void *)odd[i]))
			return 1;
	for (int i = 0; i < NAMES; i++)
		pthread_join(t[i], NULL);
	printf("truth names %d\n", NAMES);
	return 0;
}
