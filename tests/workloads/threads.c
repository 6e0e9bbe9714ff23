/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Many threads, or threads without end.
 *
 * usage: threads many N SECONDS     N threads named worker-00.., SECONDS of CPU time together
 *        threads churn SECONDS      a thread at a time, each with 5 ms of work
 */
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "truth.h"

#define THREADS_MAX 256

struct worker {
	pthread_t id;
	struct truth truth;
	char name[16];
	double seconds;
};

static struct worker workers[THREADS_MAX];
static volatile long sum;

NOINLINE long thread_work(unsigned long n)
{
	BURN(n);
	return 1;
}

static void *run(void *arg)
{
	struct worker *w = arg;

	prctl(PR_SET_NAME, w->name);
	while (truth_now() < w->seconds)
		TRUTH(&w->truth, sum += thread_work(truth_length()));
	return NULL;
}

static int many(int n, double seconds)
{
	if (n < 1 || n > THREADS_MAX)
		return 2;
	for (int i = 0; i < n; i++) {
		struct worker *w = &workers[i];

		snprintf(w->name, sizeof(w->name), "worker-%02d", i);
		w->seconds = seconds / n;
		w->truth.name = w->name;
		if (pthread_create(&w->id, NULL, run, w))
			return 1;
	}
	for (int i = 0; i < n; i++) {
		pthread_join(workers[i].id, NULL);
		truth_print(&workers[i].truth, 1);
	}
	return 0;
}

static int churn(double seconds)
{
	double end = truth_clock(CLOCK_PROCESS_CPUTIME_ID) + seconds;
	struct truth total = { "thread_work", 0 };
	int count = 0;

	while (truth_clock(CLOCK_PROCESS_CPUTIME_ID) < end) {
		struct worker *w = &workers[count++ % 2];

		*w = (struct worker){ .name = "churn", .seconds = 0.005 };
		if (pthread_create(&w->id, NULL, run, w))
			return 1;
		pthread_join(w->id, NULL);
		total.seconds += w->truth.seconds;
	}
	truth_print(&total, 1);
	printf("threads %d\n", count);
	return 0;
}

int main(int argc, char **argv)
{
	if (argc == 4 && !strcmp(argv[1], "many"))
		return many(atoi(argv[2]), atof(argv[3]));
	if (argc == 3 && !strcmp(argv[1], "churn"))
		return churn(atof(argv[2]));
	fprintf(stderr, "usage: threads many N SECONDS | churn SECONDS\n");
	return 2;
}
