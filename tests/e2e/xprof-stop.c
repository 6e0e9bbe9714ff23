/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xprof-stop -p PID -n COUNT [-r] [-t]: for comparing stacks with another unwinder's.
 *
 * The kernel side, in a test build, sends SIGSTOP to the task that it has just sampled, so the task
 * stands at exactly the sampled instruction. Prints the sampled stack, waits for a line on stdin,
 * lets the task go on, COUNT times. With -r also, before the line is awaited, what the sample says
 * of language runtimes and the named, merged stack as a report has it:
 *
 *	PART RUNTIME end N acts_end N flags X state X acts X,X,...
 *	VM FLAGS CODE OWNER PC			raw frames of that part, leaf first, hexadecimal
 *	FRAME<tab>KIND<tab>RUNTIME<tab>NAME<tab>FILE<tab>LINE	merged, leaf first
 *	END
 *
 * -t: the variant of the walker without bpf_loop. A test program: it stops only what it is pointed
 * at.
 */
#include <inttypes.h>
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
#include "runtime/runtime.h"

static struct {
	bool seen, runtimes;
	uint64_t time;		/* of the sample */
} stop;

static void print_part(const struct xp_raw_vm *part)
{
	const struct xp_raw_part *head = part->head;

	printf("PART %s end %u acts_end %u flags %x state %x acts ",
	       xp_runtimes[head->runtime]->name, head->end, head->acts_end, head->flags,
	       head->state);
	for (unsigned i = 0; i < head->nacts; i++)
		printf("%s%" PRIx64, i ? "," : "", part->acts[i]);
	putchar('\n');
	for (unsigned i = 0; i < head->nframes; i++) {
		const struct xp_raw_vm_frame *f = (const struct xp_raw_vm_frame *)part->frames + i;

		printf("VM %x %llx %llx %llx\n", (unsigned)(f->code_flags >> 48),
		       (unsigned long long)(f->code_flags & 0xffffffffffff),
		       (unsigned long long)f->owner, (unsigned long long)f->pc);
	}
}

static void print_parts(const struct xp_raw_sample *head)
{
	size_t size = sizeof(*head) + XP_SAMPLE_WORDS * 8;	/* it was checked before */
	const uint8_t *at = NULL;
	struct xp_raw_vm part;
	struct xp_raw raw;

	if (!xp_raw_parse(head, size, &raw))
		return;
	while (xp_raw_next_part(&raw, &at, &part))
		print_part(&part);
}

/* STACK tid T n N end REASON kernel K: pc pc pc ... (leaf first) */
static void print_raw(void *ctx, const void *data)
{
	const struct xp_raw_sample *head = data;
	const uint64_t *kernel = (const uint64_t *)(head + 1);
	const struct xp_raw_frame *native = (const struct xp_raw_frame *)(kernel + head->nkernel);

	(void)ctx;
	stop.seen = true;
	stop.time = head->time;
	printf("STACK tid %u n %u end %s kernel %u:", head->tid, head->nnative,
	       xp_end_name(head->end), head->nkernel);
	for (unsigned i = 0; i < head->nnative; i++)
		printf(" %llx", (unsigned long long)native[i].pc);
	putchar('\n');
	if (stop.runtimes)
		print_parts(head);
	fflush(stdout);
}

static const char *text(const struct xp_profile *p, uint32_t id)
{
	return xp_strings_get(&p->strings, id).p;
}

static void print_merged(const struct xp_profile *p, uint32_t stack)
{
	for (; stack != XP_NO_ID; stack = p->stacks.v[stack].parent) {
		const struct xp_frame *f = &p->frames.v[p->stacks.v[stack].frame];

		printf("FRAME\t%s\t%s\t%s\t%s\t%u\n", xp_frame_kind_name(f->kind),
		       text(p, f->runtime), text(p, f->name), text(p, f->file), f->line);
	}
	puts("END");
	fflush(stdout);
}

/* Waits for the stopped sample to be named; false: an error, or it is not for the profile. */
static bool show_merged(struct xp_session *s, const struct xp_profile *p, struct xp_err *err)
{
	for (int i = 0; i < 500; i++) {
		for (size_t k = p->samples.n; k > 0; k--) {
			if (p->samples.v[k - 1].time != stop.time)
				continue;
			print_merged(p, p->samples.v[k - 1].stack);
			return true;
		}
		if (xp_session_wait(s, 10, NULL, err))
			return false;
	}
	puts("END");
	fflush(stdout);
	return true;
}

static int fail(const struct xp_err *err)
{
	fprintf(stderr, "xprof-stop: %s\n%s\n", err->what, err->hint);
	return 1;
}

/* Waits for a stop, at most five seconds. False: an error. */
static bool wait_for_stop(struct xp_session *s, struct xp_err *err)
{
	stop.seen = false;
	xp_bpf_arm_stop(xp_session_bpf(s));
	for (int i = 0; i < 100 && !stop.seen; i++)
		if (xp_session_wait(s, 50, NULL, err))
			return false;
	if (!stop.seen) {
		printf("NOSAMPLE\n");
		fflush(stdout);
	}
	return true;
}

/* One stop; false when nothing more is wanted or possible. */
static bool one_stop(struct xp_session *s, const struct xp_profile *p, pid_t pid,
		     struct xp_err *err)
{
	bool more = wait_for_stop(s, err);
	char line[64];

	if (more && stop.seen && stop.runtimes)
		more = show_merged(s, p, err);
	if (more && stop.seen)
		more = fgets(line, sizeof(line), stdin);
	kill(pid, SIGCONT);
	return more;
}

int main(int argc, char **argv)
{
	struct xp_session_options options = { .frequency = 997, .ring_bytes = 1 << 20 };
	struct xp_err err = XP_ERR_INIT;
	struct xp_profile profile;
	struct xp_session *s;
	int opt, count = 1;
	pid_t pid = 0;

	while ((opt = getopt(argc, argv, "p:n:rt")) != -1) {
		if (opt == 'p')
			pid = atoi(optarg);
		else if (opt == 'n')
			count = atoi(optarg);
		else if (opt == 'r')
			stop.runtimes = true;
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
		if (!one_stop(s, &profile, pid, &err))
			break;
		usleep(20000 + rand() % 30000);
	}
	xp_session_free(s);
	xp_profile_release(&profile);
	return err.status ? fail(&err) : 0;
}
