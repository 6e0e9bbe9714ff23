/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of every shape an unwinder meets, under a leaf of every kind.
 *
 * usage: shapes SHAPE LEAF DEPTH [SECONDS]
 *
 * SHAPE  plain | alloca | args | big | realign | mixed | signal | altstack | thread
 * LEAF   burn | qsort | vdso | string | syscall | printf
 *
 * Every frame between main and the leaf is one of ours, so a whole stack of the shapes "plain" to
 * "mixed" has exactly DEPTH frames named step_*. Without SECONDS it runs for ever.
 */
#include <alloca.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "truth.h"

static volatile unsigned long sink;
static void (*leaf)(void);
static int shape, depth;

static int compare(const void *a, const void *b)
{
	BURN(20);
	return *(const int *)a - *(const int *)b;
}

NOINLINE void leaf_burn(void)
{
	BURN(2000);
	sink++;
}

NOINLINE void leaf_qsort(void)
{
	int v[64];

	for (int i = 0; i < 64; i++)
		v[i] = i * 7919 & 63;
	qsort(v, 64, sizeof(v[0]), compare);
	sink += (unsigned long)v[3];
}

NOINLINE void leaf_vdso(void)
{
	struct timespec t;

	for (int i = 0; i < 20; i++) {
		clock_gettime(CLOCK_MONOTONIC, &t);
		sink += (unsigned long)t.tv_nsec;
	}
}

NOINLINE void leaf_string(void)
{
	char b[512];

	for (size_t i = 1; i < 200; i++) {
		memset(b, 'a' + (int)(sink & 7), i);
		b[i] = 0;
		sink += strlen(b) + (strchr(b, 'z') != NULL);
	}
}

NOINLINE void leaf_syscall(void)
{
	for (int i = 0; i < 10; i++)
		sink += (unsigned long)syscall(SYS_getppid);
}

NOINLINE void leaf_printf(void)
{
	char b[200];

	sink += (unsigned long)snprintf(b, sizeof(b), "%d %s %f", (int)sink, "abc", 1.5 + (double)sink);
}

NOINLINE long step(int d, long x);

NOINLINE long step_plain(int d, long x)
{
	long r = step(d - 1, x + 1);

	sink += (unsigned long)r;
	return r + d;
}

/* The size is known at run time only: the stack pointer is no base any more. */
NOINLINE long step_alloca(int d, long x)
{
	volatile char *p = alloca(16 + ((size_t)d & 7) * 16);
	long r;

	p[0] = (char)x;
	r = step(d - 1, x + p[0]);
	sink += (unsigned long)p[0];
	return r + 1;
}

/* Arguments on the stack: pushes before the call. */
NOINLINE long step_args(int d, long a, long b, long c, long e, long f, long g, long h, long i)
{
	long r = step(d - 1, a ^ b);

	sink += (unsigned long)r;
	return r + a * b + c * e + f * g + h * i;
}

NOINLINE long step_big(int d, long x)
{
	volatile char big[5000];
	long r;

	big[0] = (char)x;
	big[4999] = (char)d;
	r = step(d - 1, x);
	return r + big[4999] + big[0];
}

/* Wants more alignment than a call gives. */
NOINLINE long step_realign(int d, long x)
{
	volatile double v[8] __attribute__((aligned(64)));
	long r;

	v[0] = (double)x;
	sink += (unsigned long)&v & 63;
	r = step(d - 1, x);
	return r + (long)v[0];
}

NOINLINE long step(int d, long x)
{
	long r = 0;

	if (d <= 0) {
		leaf();
		return x + (long)sink;
	}
	switch (shape == 5 ? d % 5 : shape) {
	case 0:
		r = step_plain(d, x);
		break;
	case 1:
		r = step_alloca(d, x);
		break;
	case 2:
		r = step_args(d, x, 1, 2, 3, 4, 5, 6, 7);
		break;
	case 3:
		r = step_big(d, x);
		break;
	case 4:
		r = step_realign(d, x);
		break;
	}
	sink += (unsigned long)r;
	return r + d;
}

static void on_alarm(int sig)
{
	(void)sig;
	for (int i = 0; i < 30; i++)
		sink += (unsigned long)step(6, i);
}

static void alarms(int flags)
{
	struct itimerval every = { { 0, 2000 }, { 0, 2000 } };
	struct sigaction sa = { .sa_handler = on_alarm, .sa_flags = flags | SA_RESTART };
	stack_t alt = { .ss_sp = malloc(256 << 10), .ss_size = 256 << 10 };

	if (flags)
		sigaltstack(&alt, NULL);
	sigaction(SIGALRM, &sa, NULL);
	setitimer(ITIMER_REAL, &every, NULL);
}

static void *thread(void *seconds)
{
	double end = *(double *)seconds;

	while (truth_now() < end)
		sink += (unsigned long)step(depth, 1);
	return NULL;
}

static int pick(const char *name, const char *const *names)
{
	for (int i = 0; names[i]; i++)
		if (!strcmp(name, names[i]))
			return i;
	fprintf(stderr, "shapes: no such choice: %s\n", name);
	exit(2);
}

int main(int argc, char **argv)
{
	static const char *const shapes[] = { "plain", "alloca", "args", "big", "realign", "mixed",
					      "signal", "altstack", "thread", NULL };
	static const char *const leaves[] = { "burn", "qsort", "vdso", "string", "syscall", "printf",
					      NULL };
	static void (*const functions[])(void) = { leaf_burn, leaf_qsort, leaf_vdso, leaf_string,
						   leaf_syscall, leaf_printf };
	double seconds = argc > 4 ? atof(argv[4]) : 1e9;
	pthread_t t;

	if (argc < 4) {
		fprintf(stderr, "usage: shapes SHAPE LEAF DEPTH [SECONDS]\n");
		return 2;
	}
	shape = pick(argv[1], shapes);
	leaf = functions[pick(argv[2], leaves)];
	depth = atoi(argv[3]);
	if (shape == 6 || shape == 7)
		alarms(shape == 7 ? SA_ONSTACK : 0);
	if (shape == 8)
		pthread_create(&t, NULL, thread, &seconds);
	if (shape > 5)
		shape = 5;
	while (truth_now() < seconds)
		sink += (unsigned long)step(depth, 1);
	printf("truth depth %d\n", depth);
	return 0;
}
