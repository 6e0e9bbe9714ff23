/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xprof-stop -p PID -n COUNT: for comparing stacks with another unwinder's.
 *
 * The kernel side, in a test build, sends SIGSTOP to the task that it has just sampled, so the task
 * stands at exactly the sampled instruction. Prints the sampled stack, waits for a line on stdin,
 * lets the task go on, COUNT times. A test program: it stops only what it is pointed at.
 */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bpf/abi.h"
#include "collect/bpf.h"
#include "collect/raw.h"
#include "collect/session.h"
#include "profile/profile.h"

static bool seen;

/* STACK tid T n N end REASON kernel K: pc pc pc ... (leaf first) */
static void print_raw(void *ctx, const void *data)
{
	const struct xp_raw_sample *head = data;
	const uint64_t *kernel = (const uint64_t *)(head + 1);
	const struct xp_raw_frame *native = (const struct xp_raw_frame *)(kernel + head->nkernel);

	(void)ctx;
	seen = true;
	printf("STACK tid %u n %u end %s kernel %u:", head->tid, head->nnative,
	       xp_end_name(head->end), head->nkernel);
	for (unsigned i = 0; i < head->nnative; i++)
		printf(" %llx", (unsigned long long)native[i].pc);
	putchar('\n');
	fflush(stdout);
}

static int fail(const struct xp_err *err)
{
	fprintf(stderr, "xprof-stop: %s\n%s\n", err->what, err->hint);
	return 1;
}

/* One stop; false when no sample came within five seconds. */
static bool one_stop(struct xp_session *s, pid_t pid, struct xp_err *err)
{
	char line[64];

	seen = false;
	xp_bpf_arm_stop(xp_session_bpf(s));
	for (int i = 0; i < 100 && !seen; i++)
		if (xp_session_wait(s, 50, NULL, err))
			return false;
	if (!seen) {
		printf("NOSAMPLE\n");
		fflush(stdout);
	} else if (!fgets(line, sizeof(line), stdin)) {
		kill(pid, SIGCONT);
		return false;
	}
	kill(pid, SIGCONT);
	return true;
}

int main(int argc, char **argv)
{
	struct xp_session_options options = { .frequency = 997, .ring_bytes = 1 << 20 };
	struct xp_err err = XP_ERR_INIT;
	struct xp_profile profile;
	struct xp_session *s;
	int opt, count = 1;
	pid_t pid = 0;

	while ((opt = getopt(argc, argv, "p:n:t")) != -1) {
		if (opt == 'p')
			pid = atoi(optarg);
		else if (opt == 'n')
			count = atoi(optarg);
		else if (opt == 't')
			options.tail_calls = true;
		else
			return 2;
	}
	if (pid <= 0 || xp_profile_init(&profile))
		return 2;
	if (xp_session_new(&s, &options, &profile, &err) || xp_session_add_process(s, pid, &err) ||
	    xp_session_start(s, &err))
		return fail(&err);
	xp_session_on_raw(s, print_raw, NULL);
	for (int i = 0; i < count; i++) {
		if (!one_stop(s, pid, &err))
			break;
		usleep(20000 + rand() % 30000);
	}
	xp_session_free(s);
	xp_profile_release(&profile);
	return err.status ? fail(&err) : 0;
}
