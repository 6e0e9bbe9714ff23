/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Where stacks end, or cannot be followed. usage: ends KIND [CPU-SECONDS]
 *
 *   bare       a thread in assembler without unwind information that keeps no frame pointer
 *   jit        code without a file that points rbp into its caller's caller's frame
 *   coroutine  a function of makecontext() that returns to another context
 *   signal     a handler that interrupts a loop
 *   threads    many threads that end at once
 */
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/time.h>
#ifdef __GLIBC__
#include <ucontext.h>
#endif

#include "truth.h"

static double seconds = 2;

/* The gaps around it are wider than 16 bytes, so it is no padding of a function with rows. */
void bare_burn(void);
__asm__(".text\n.skip 64, 0xcc\n.globl bare_burn\n.type bare_burn, @function\n"
	"bare_burn:\n\tpush %rbx\n\tmov $20000, %ecx\n1:\tdec %ecx\n\tjnz 1b\n"
	"\tpop %rbx\n\tret\n.size bare_burn, .-bare_burn\n.skip 64, 0xcc\n");

NOINLINE void calls_bare(void)
{
	for (int i = 0; i < 100; i++)
		bare_burn();
	__asm__ volatile("" ::: "memory");
}

static void *bare_thread(void *arg)
{
	while (truth_now() < seconds)
		calls_bare();
	return arg;
}

static void bare(void)
{
	pthread_t thread;

	pthread_create(&thread, NULL, bare_thread, NULL);
	pthread_join(thread, NULL);
}

/* push %rbp; lea 0x38(%rsp),%rbp; mov $0x10000,%ecx; 1: dec %ecx; jne 1b; pop %rbp; ret */
static const unsigned char jit_code[] = {
	0x55, 0x48, 0x8d, 0x6c, 0x24, 0x38, 0xb9, 0, 0, 1, 0, 0xff, 0xc9, 0x75, 0xfc, 0x5d, 0xc3,
};
static void (*jitted)(void);

NOINLINE long jit_inner(void)
{
	volatile long pad[2] = { 0 };

	jitted();
	return pad[0];
}

NOINLINE long jit_outer(void)
{
	volatile long pad[4] = { 0 };

	return jit_inner() + pad[1];
}

static void jit(void)
{
	void *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	volatile long sum = 0;

	if (p == MAP_FAILED)
		abort();
	memcpy(p, jit_code, sizeof(jit_code));
	memcpy(&jitted, &p, sizeof(p));
	while (truth_now() < seconds)
		sum += jit_outer();
}

#ifdef __GLIBC__
static ucontext_t main_context, context;

NOINLINE void in_coroutine(void)
{
	while (truth_now() < seconds)
		BURN(truth_length());
}

static void coroutine(void)
{
	static char stack[65536];

	getcontext(&context);
	context.uc_stack.ss_sp = stack;
	context.uc_stack.ss_size = sizeof(stack);
	context.uc_link = &main_context;
	makecontext(&context, in_coroutine, 0);
	swapcontext(&main_context, &context);
}
#else
static void coroutine(void)
{
}
#endif

NOINLINE void on_signal(int number)
{
	(void)number;
	BURN(2000000);
}

NOINLINE void interrupted(void)
{
	while (truth_now() < seconds)
		BURN(truth_length());
}

static void signals(void)
{
	struct sigaction action = { .sa_handler = on_signal };
	struct itimerval timer = { { 0, 10000 }, { 0, 10000 } };

	sigaction(SIGALRM, &action, NULL);
	setitimer(ITIMER_REAL, &timer, NULL);
	interrupted();
}

static void *short_thread(void *arg)
{
	BURN(10000);
	return arg;
}

static void threads(void)
{
	pthread_t all[32];

	while (truth_clock(CLOCK_PROCESS_CPUTIME_ID) < seconds) {
		for (int i = 0; i < 32; i++)
			pthread_create(&all[i], NULL, short_thread, NULL);
		for (int i = 0; i < 32; i++)
			pthread_join(all[i], NULL);
	}
}

int main(int argc, char **argv)
{
	static const struct {
		const char *name;
		void (*run)(void);
	} kinds[] = { { "bare", bare }, { "jit", jit }, { "coroutine", coroutine },
		      { "signal", signals }, { "threads", threads } };

	if (argc > 2)
		seconds = atof(argv[2]);
	for (size_t i = 0; argc > 1 && i < sizeof(kinds) / sizeof(*kinds); i++) {
		if (strcmp(argv[1], kinds[i].name) == 0) {
			kinds[i].run();
			return 0;
		}
	}
	return 2;
}
