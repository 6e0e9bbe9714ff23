/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/batch: raw samples placed by the mappings of their process, then named.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect/batch.h"
#include "collect/raw.h"
#include "collect_fixture.h"

#define GHOST 5000000		/* above the kernel's limit of 2^22: nobody has it */
#define HIGH 0x7e0000000000ull

struct world {
	struct fixture *f;
	struct xp_native native;
	struct xp_merger merger;
	struct xp_batch batch;
};

static struct world world;

static int setup(void **state)
{
	(void)state;
	memset(&world, 0, sizeof(world));
	world.f = fixture_new(4096);
	xp_merger_init(&world.merger, &world.f->profile);
	return xp_native_init(&world.native, &world.f->profile);
}

static int teardown(void **state)
{
	(void)state;
	xp_batch_release(&world.batch);
	xp_native_release(&world.native);
	xp_merger_release(&world.merger);
	fixture_free(world.f);
	return 0;
}

/* A raw sample with its payload, as the ring would hold it. */
struct raw {
	struct xp_raw_sample head;
	uint64_t words[600];
};

static struct raw raw_of(pid_t pid, uint32_t generation, uint8_t end)
{
	return (struct raw){ .head = { .kind = XP_RAW_SAMPLE, .time = 1000, .pid = (uint32_t)pid,
				       .tid = (uint32_t)pid, .generation = generation,
				       .end = end } };
}

static void put_kernel(struct raw *r, uint64_t addr)
{
	r->words[r->head.nkernel++] = addr;
}

static void put_native(struct raw *r, uint64_t pc, unsigned flags)
{
	uint64_t *at = &r->words[r->head.nkernel + 2 * r->head.nnative++];

	at[0] = pc;
	at[1] = 0x7ffd00000000ull | (uint64_t)flags << 48;
}

static size_t raw_size(const struct raw *r)
{
	return sizeof(r->head) + r->head.nkernel * 8ul + r->head.nnative * 16ul;
}

/* Takes and places it; the result of the placing. */
static int place(const struct raw *r)
{
	size_t n = world.batch.raws.n;

	assert_int_equal(xp_batch_add(&world.batch, r, raw_size(r)), 0);
	return xp_batch_place(&world.batch, &world.batch.raws.v[n], &world.f->targets);
}

/* The last sample's place i. */
static const struct xp_place *placed(size_t i)
{
	const struct xp_placed *p = &world.batch.placed.v[world.batch.placed.n - 1];

	assert_true(i < p->nnative + p->nkernel);
	return &world.batch.places.v[p->first + i];
}

static const struct xp_placed *last(void)
{
	assert_true(world.batch.placed.n > 0);
	return &world.batch.placed.v[world.batch.placed.n - 1];
}

static struct xp_target *attach_self(void)
{
	assert_int_equal(xp_targets_attach(&world.f->targets, getpid(), 100, NULL), 0);
	return xp_targets_find(&world.f->targets, getpid());
}

/* Names the last sample; its frames' names, root first, joined by ';'. */
static const char *name(void)
{
	static char text[4096];
	const struct xp_profile *p = &world.f->profile;
	uint32_t path[64], n = 0, at;
	size_t len = 0;

	assert_int_equal(xp_batch_name(&world.batch, last(), &world.native, &world.merger), 0);
	assert_true(p->samples.n > 0);
	for (at = p->samples.v[p->samples.n - 1].stack; at != XP_NO_ID && n < 64;
	     at = p->stacks.v[at].parent)
		path[n++] = p->stacks.v[at].frame;
	text[0] = 0;
	while (n--) {
		uint32_t id = p->frames.v[path[n]].name;

		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", len ? ";" : "",
					xp_strings_get(&p->strings, id).p);
	}
	return text;
}

static void records_are_taken_and_sorted(void **state)
{
	struct xp_raw_note gone = { XP_RAW_EXIT, 5, 30 };
	static const uint64_t times[] = { 50, 20, 40, 20 };
	struct xp_batch *b = &world.batch;

	(void)state;
	for (uint32_t i = 0; i < 4; i++) {
		struct raw r = raw_of(GHOST, i, 0);

		r.head.time = times[i];
		for (uint32_t k = 0; k < i; k++)
			put_kernel(&r, k);
		assert_int_equal(xp_batch_add(b, &r, raw_size(&r)), 0);
	}
	assert_int_equal(xp_batch_add(b, &gone, sizeof(gone)), 0);
	for (size_t n = 0; n < sizeof(gone); n++)
		assert_int_equal(xp_batch_add(b, &gone, n), -EINVAL);
	assert_int_equal(b->raws.n, 5);
	xp_batch_sort(b);
	for (size_t i = 0; i < 5; i++) {
		static const uint64_t sorted[] = { 20, 20, 30, 40, 50 };

		assert_int_equal(b->raws.v[i].time, sorted[i]);
		assert_int_equal(b->raws.v[i].offset % 8, 0);
	}
	/* Of equal times the one that came first. */
	assert_true(b->raws.v[0].offset < b->raws.v[1].offset);
	assert_int_equal(b->raws.v[2].kind, XP_RAW_EXIT);
	xp_batch_clear_raw(b);
	assert_int_equal(b->raws.n, 0);
	xp_batch_sort(b);
}

/* Odd lengths do not put the next record out of line. */
static void records_of_odd_length(void **state)
{
	struct raw r = raw_of(GHOST, 0, 0);
	uint8_t junk[64] = { 9 };

	(void)state;
	for (size_t n = 16; n < sizeof(junk); n++) {
		assert_int_equal(xp_batch_add(&world.batch, junk, n), 0);
		assert_int_equal(xp_batch_add(&world.batch, &r, raw_size(&r)), 0);
	}
	for (size_t i = 0; i < world.batch.raws.n; i++)
		assert_int_equal(xp_batch_place(&world.batch, &world.batch.raws.v[i],
						&world.f->targets), i % 2 ? 0 : -EINVAL);
}

static void malformed_records(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	put_native(&r, (uintptr_t)name, 0);
	assert_int_equal(xp_batch_add(&world.batch, &r, raw_size(&r) - 1), 0);
	assert_int_equal(xp_batch_place(&world.batch, &world.batch.raws.v[0], &world.f->targets),
			 -EINVAL);
	r.head.end = XP_END_REASONS;
	assert_int_equal(place(&r), -EINVAL);
	r.head.end = 0;
	r.head.kind = 77;
	assert_int_equal(place(&r), -EINVAL);
	assert_int_equal(world.batch.placed.n, 0);
	assert_int_equal(world.batch.places.n, 0);
}

static void frames_get_their_places(void **state)
{
	struct xp_target *t = attach_self();
	const struct xp_mapping *m = xp_maps_find(&t->process.maps, (uintptr_t)name);
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	uint64_t leaf, caller;

	(void)state;
	assert_non_null(m);
	assert_true(xp_dso_vaddr(m->user, m, (uintptr_t)name, &leaf));
	assert_true(xp_dso_vaddr(m->user, m, (uintptr_t)place - 1, &caller));
	put_native(&r, (uintptr_t)name, 0);
	put_native(&r, (uintptr_t)place, 0);	/* the call is before it */
	put_native(&r, (uintptr_t)name, XP_FRAME_SIGNAL);
	put_native(&r, m->start, 0);		/* interrupted at its first byte */
	put_native(&r, m->start, 0);		/* cannot be returned to: the call is outside */
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 6);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	assert_int_equal(last()->time, 1000);
	assert_int_equal(placed(0)->kind, XP_PLACE_DSO);
	assert_ptr_equal(placed(0)->dso, m->user);
	assert_true(placed(0)->exact);
	assert_int_equal(placed(0)->addr, leaf);
	assert_int_equal(placed(1)->kind, XP_PLACE_DSO);
	assert_false(placed(1)->exact);
	assert_int_equal(placed(1)->addr, caller + 1);
	/* Nothing calls a trampoline: its pc is its first byte. */
	assert_true(placed(2)->exact);
	assert_int_equal(placed(2)->addr, leaf);
	assert_int_equal(placed(3)->kind, XP_PLACE_DSO);
	assert_true(placed(3)->exact);
	assert_int_equal(placed(4)->kind, XP_PLACE_UNKNOWN);
	assert_int_equal(placed(4)->addr, m->start);
	assert_int_equal(placed(5)->kind, XP_PLACE_UNKNOWN);
	assert_int_equal(placed(5)->addr, HIGH);
}

static void memory_without_a_file(void **state)
{
	struct xp_event e = mmap_of(200, getpid(), HIGH, 0x1000, 0);
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	assert_int_equal(xp_targets_event(&world.f->targets, &e, "//anon"), 0);
	/* And a file that cannot be opened. */
	e = mmap_of(200, getpid(), HIGH + 0x1000, 0x1000, 12);
	assert_int_equal(xp_targets_event(&world.f->targets, &e, "/nowhere/lib.so"), 0);
	put_native(&r, HIGH + 8, 0);
	put_native(&r, HIGH + 0x1000, 0);
	put_native(&r, HIGH + 0x1008, 0);
	put_native(&r, 0, 0);
	put_native(&r, UINT64_MAX, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(placed(0)->kind, XP_PLACE_ANON);
	assert_int_equal(placed(0)->addr, HIGH + 8);
	assert_int_equal(placed(1)->kind, XP_PLACE_ANON);
	assert_int_equal(placed(2)->kind, XP_PLACE_UNKNOWN);
	assert_int_equal(placed(3)->kind, XP_PLACE_UNKNOWN);
	assert_int_equal(placed(4)->kind, XP_PLACE_UNKNOWN);
	assert_string_equal(name(), "[unknown];[unknown];[unknown];[jit];[jit]");
}

static void kernel_frames_follow(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	put_kernel(&r, 0xffffffff81000010ull);
	put_kernel(&r, 0xffffffff81000020ull);
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->nkernel, 2);
	assert_int_equal(placed(0)->kind, XP_PLACE_UNKNOWN);
	assert_int_equal(placed(1)->kind, XP_PLACE_KERNEL);
	assert_int_equal(placed(1)->addr, 0xffffffff81000010ull);
	assert_true(placed(1)->exact);
	assert_int_equal(placed(2)->addr, 0xffffffff81000020ull);
	assert_false(placed(2)->exact);
}

/* Walked with the tables of another address space: cut to a leaf that is still code here. */
static void stale_generations(void **state)
{
	struct xp_target *t = attach_self();
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	put_kernel(&r, 0xffffffff81000010ull);
	put_native(&r, (uintptr_t)name, 0);
	put_native(&r, (uintptr_t)place, 0);
	t->min_generation = 2;
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->nkernel, 1);
	assert_int_equal(last()->end, XP_END_NO_PROCESS);
	assert_int_equal(placed(0)->kind, XP_PLACE_DSO);
	assert_int_equal(placed(1)->kind, XP_PLACE_KERNEL);
	r.head.generation = 2;
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 2);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	/* The leaf is code of the old image. */
	r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 0);
	assert_int_equal(last()->end, XP_END_NO_PROCESS);
	assert_string_equal(name(), "[truncated: process not known yet]");
	/* No user frames: nothing to doubt. */
	r = raw_of(getpid(), 1, XP_END_NONE);
	put_kernel(&r, 0xffffffff81000010ull);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->end, XP_END_NONE);
}

static void samples_of_nobody(void **state)
{
	struct raw r = raw_of(GHOST, 1, XP_END_OUTERMOST);
	const struct xp_thread *thread;

	(void)state;
	put_native(&r, HIGH, 0);
	put_native(&r, HIGH + 8, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 0);
	assert_int_equal(last()->end, XP_END_NO_PROCESS);
	thread = &world.f->profile.threads.v[last()->thread];
	assert_int_equal(thread->pid, GHOST);
	assert_string_equal(xp_strings_get(&world.f->profile.strings, thread->comm).p, "?");
}

/* The event of its fork was lost: from its first sample on it is known. */
static void samples_of_an_unknown_child(void **state)
{
	struct raw r = raw_of(0, 1, XP_END_OUTERMOST);
	const struct xp_target *child;
	pid_t pid;

	(void)state;
	attach_self();
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		pause();
		_exit(0);
	}
	r.head.pid = r.head.tid = (uint32_t)pid;
	put_native(&r, (uintptr_t)name, 0);
	put_native(&r, (uintptr_t)place, 0);
	assert_int_equal(place(&r), 0);
	child = xp_targets_find(&world.f->targets, pid);
	assert_non_null(child);
	assert_int_equal(last_put(world.f, pid).generation, 2);
	assert_non_null(published(world.f, pid, (uintptr_t)name));
	assert_int_equal(last()->nnative, 1);		/* walked with who knows which tables */
	assert_int_equal(last()->end, XP_END_NO_PROCESS);
	assert_int_equal(placed(0)->kind, XP_PLACE_DSO);
	r.head.generation = 2;
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 2);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void our_own_child_before_its_exec(void **state)
{
	struct raw r = raw_of(GHOST, 1, XP_END_NO_PROCESS);
	struct xp_event e = event_of(XP_EVENT_EXEC, 2000, GHOST);

	(void)state;
	assert_int_equal(xp_targets_add_child(&world.f->targets, GHOST, NULL), 0);
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 1);
	assert_int_equal(world.batch.placed.n, 0);
	assert_int_equal(world.batch.places.n, 0);
	assert_int_equal(xp_targets_event(&world.f->targets, &e, "program"), 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(world.batch.placed.n, 1);
}

/* Each end with its mark at the root, each loss of kernel frames before them. */
static void marks(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	put_kernel(&r, 1);		/* no kernel address: named unknown, whatever kernel runs */
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[unknown];[kernel+unknown]");
	r.head.end = XP_END_FP_ZERO;
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[unknown];[kernel+unknown]");
	r.head.end = XP_END_READ;
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[truncated: stack unreadable];[unknown];[kernel+unknown]");
	r.head.end = XP_END_TOO_DEEP;
	r.head.flags = XP_RAW_KERNEL_CUT | XP_RAW_IN_KERNEL;
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[truncated: too deep];[unknown];"
			    "[truncated: kernel stack too deep];[kernel+unknown]");
	r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	r.head.flags = XP_RAW_KERNEL_LOST;
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[unknown];[truncated: no kernel stack]");
	r = raw_of(getpid(), 1, XP_END_EXITING);
	put_kernel(&r, 1);
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[exiting];[kernel+unknown]");
	r = raw_of(getpid(), 1, XP_END_NONE);
	assert_int_equal(place(&r), 0);
	assert_string_equal(name(), "[no stack]");
}

/* Goes to another stack, and then calls. */
extern const char test_switch[], test_switch_in[], test_switch_after[];
__asm__(".text\n.globl test_switch, test_switch_in, test_switch_after\n"
	".type test_switch, @function\n"
	"test_switch:\n.cfi_startproc\nnop\nmov (%rdi), %rsp\n"
	"test_switch_in:\ncall *%rax\n"
	"test_switch_after:\nret\n.cfi_endproc\n"
	".size test_switch, .-test_switch\n");

/* Rows are right for the stack that the code came from. */
static void stack_switches(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	put_native(&r, (uintptr_t)name, 0);
	put_native(&r, (uintptr_t)test_switch_after, XP_FRAME_BY_SP);
	put_native(&r, (uintptr_t)place + 1, XP_FRAME_BY_SP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 2);
	assert_int_equal(last()->end, XP_END_STACK_SWITCH);
	assert_string_equal(name(), "[truncated: stack switch];test_switch;name");
	/* Left by another register, or before the switch. */
	r.words[3] &= 0xffffffffffffull;
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 3);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	r = raw_of(getpid(), 1, XP_END_NO_MAPPING);
	put_native(&r, (uintptr_t)test_switch, XP_FRAME_BY_SP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->end, XP_END_NO_MAPPING);
	/* The walk had been cut right there: the code tells why. */
	r = raw_of(getpid(), 1, XP_END_NO_MAPPING);
	put_native(&r, (uintptr_t)test_switch_in, XP_FRAME_BY_SP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->end, XP_END_STACK_SWITCH);
}

/* A runtime's activation leads on out of its JIT's code; out of any other it skips what is between. */
static void resumptions(void **state)
{
	struct xp_event e = mmap_of(200, getpid(), HIGH, 0x1000, 0);
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	struct xp_attachment *a;

	(void)state;
	attach_self();
	assert_int_equal(xp_targets_event(&world.f->targets, &e, "//anon"), 0);
	a = &xp_targets_find(&world.f->targets, getpid())->attached.by_id[XP_RUNTIME_RUBY];
	a->status = XP_ATTACHED;
	a->dso = XP_NO_ID;
	put_native(&r, HIGH + 8, XP_FRAME_RESUMED);
	put_native(&r, (uintptr_t)name, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 2);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	/* The part that would tell what was skipped is not shown. */
	a->status = XP_WAITING;
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->end, XP_END_NO_PROCESS);
	a->status = XP_ATTACHED;
	r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	put_native(&r, (uintptr_t)place + 1, XP_FRAME_RESUMED);
	put_native(&r, (uintptr_t)name, 0);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	a->status = XP_NOT_PROBED;
}

/* The end of a chain of frame pointers must be as believable as its steps. */
static void ends_by_frame_pointer(void **state)
{
	struct xp_event e = mmap_of(200, getpid(), HIGH, 0x1000, 0);
	struct raw r = raw_of(getpid(), 1, XP_END_FP_ZERO);

	(void)state;
	attach_self();
	assert_int_equal(xp_targets_event(&world.f->targets, &e, "//anon"), 0);
	put_native(&r, (uintptr_t)name, XP_FRAME_BY_FP);	/* no frame there yet */
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	/* In code without a file nothing proves it. */
	r = raw_of(getpid(), 1, XP_END_FP_ZERO);
	put_native(&r, HIGH + 8, XP_FRAME_BY_FP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(placed(0)->kind, XP_PLACE_ANON);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	/* What it led to is nowhere: so it was none. */
	r = raw_of(getpid(), 1, XP_END_NO_MAPPING);
	put_native(&r, (uintptr_t)name, XP_FRAME_BY_FP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	/* A walk that ended for another reason keeps it. */
	r = raw_of(getpid(), 1, XP_END_READ);
	put_native(&r, (uintptr_t)name, XP_FRAME_BY_FP);
	assert_int_equal(place(&r), 0);
	assert_int_equal(last()->end, XP_END_READ);
}

/* A page of code without a file: at 0x100 a function that keeps a frame pointer. */
static uint8_t *jit_page(void)
{
	/* push; mov; call; pop; ret */
	static const uint8_t code[] = { 0x55, 0x48, 0x89, 0xe5, 0xe8, 0, 0, 0, 0, 0x5d, 0xc3 };
	uint8_t *p = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC,
			  MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	assert_ptr_not_equal(p, MAP_FAILED);
	memset(p, 0xcc, 4096);
	memcpy(p + 0x100, code, sizeof(code));
	return p;
}

/* Places a sample of a leaf there with a word on its stack; rbp leads to caller. */
static void place_jit(const uint8_t *leaf, uint64_t word, uint64_t caller)
{
	struct xp_raw_part part = { .runtime = XP_RUNTIME_NATIVE, .nacts = XP_LEAF_WORDS };
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	size_t n = world.batch.raws.n;

	put_native(&r, (uintptr_t)leaf, XP_FRAME_BY_FP);
	put_native(&r, caller, 0);
	r.words[3] += 0x100;
	r.head.flags = XP_RAW_USED_FP;
	r.head.nparts = 1;
	memcpy(&r.words[4], &part, sizeof(part));
	r.words[6] = word;
	assert_int_equal(xp_batch_add(&world.batch, &r, raw_size(&r) + (2 + XP_LEAF_WORDS) * 8), 0);
	assert_int_equal(xp_batch_place(&world.batch, &world.batch.raws.v[n], &world.f->targets), 0);
}

/* A leaf without a frame of its own: its caller was left out. */
static void skipped_callers(void **state)
{
	uint8_t *code = jit_page();
	uint64_t back = (uintptr_t)code + 0x109, caller = (uintptr_t)test_switch_after;

	(void)state;
	attach_self();
	/* At the return: the word is the return address. */
	place_jit(code + 0x10a, back, caller);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	assert_int_equal(last()->nnative, 3);
	assert_int_equal(placed(0)->addr, (uintptr_t)code + 0x10a);
	assert_int_equal(placed(1)->kind, XP_PLACE_ANON);
	assert_int_equal(placed(1)->addr, back);
	assert_false(placed(1)->exact);
	assert_int_equal(placed(2)->kind, XP_PLACE_DSO);
	assert_int_equal(world.batch.natives.v[last()->first_native + 1].sp, 0x7ffd00000008ull);
	assert_int_equal(world.batch.natives.v[last()->first_native + 2].sp, 0x7ffd00000100ull);
	/* The same without such a word, and with one that leads to another kind of code. */
	place_jit(code + 0x10a, back - 1, caller);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	place_jit(code + 0x10a, caller, caller);
	assert_int_equal(last()->nnative, 1);
	/* Within the frame the words do not matter, but the caller must follow a call. */
	memset(code + 0x104, 0x90, 5);
	memcpy(code + 0x109, "\xeb\xfe", 2);
	xp_batch_clear_raw(&world.batch);
	place_jit(code + 0x105, back, caller);
	assert_int_equal(last()->nnative, 2);
	assert_int_equal(last()->end, XP_END_OUTERMOST);
	place_jit(code + 0x105, back, caller + 1);
	assert_int_equal(last()->nnative, 1);
	/* Other code behind it: only a stack without a return address is believed. */
	place_jit(code + 0x200, caller, caller);
	assert_int_equal(last()->nnative, 1);
	assert_int_equal(last()->end, XP_END_NO_ROWS);
	place_jit(code + 0x200, 5, caller);
	assert_int_equal(last()->nnative, 2);
	munmap(code, 4096);
}

/* The entry of the function that a coroutine returns to is no part of the function before. */
extern const char test_start[];
__asm__(".text\n.skip 32, 0xcc\n.globl test_start\n.type test_start, @function\n"
	"test_start:\n.cfi_startproc\nmov %rbx, %rsp\nmov (%rsp), %rdi\nhlt\n.cfi_endproc\n"
	".size test_start, .-test_start\n");

static void coroutine_starts(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);

	(void)state;
	attach_self();
	put_native(&r, (uintptr_t)name, 0);
	put_native(&r, (uintptr_t)test_start, 0);
	assert_int_equal(place(&r), 0);
	assert_true(placed(1)->exact);
	assert_string_equal(name(), "test_start;name");
	/* Only where the walk came to the end of the stack. */
	r.head.end = XP_END_READ;
	assert_int_equal(place(&r), 0);
	assert_false(placed(1)->exact);
}

static void every_end_can_be_named(void **state)
{
	(void)state;
	attach_self();
	for (uint8_t end = 0; end < XP_END_REASONS; end++) {
		struct raw r = raw_of(getpid(), 1, end);

		put_native(&r, HIGH, 0);
		assert_int_equal(place(&r), 0);
		assert_non_null(strstr(name(), "[unknown]"));
		assert_int_equal(!!strstr(name(), "[truncated: "), !xp_end_complete(end));
	}
}

static void samples_reach_the_profile(void **state)
{
	struct raw r = raw_of(getpid(), 1, XP_END_OUTERMOST);
	const struct xp_sample *s;

	(void)state;
	attach_self();
	put_native(&r, HIGH, 0);
	assert_int_equal(place(&r), 0);
	name();
	name();
	assert_int_equal(world.f->profile.samples.n, 2);
	s = world.f->profile.samples.v;
	assert_int_equal(s[0].time, 1000);
	assert_int_equal(s[0].weight, 1);
	assert_int_equal(s[0].stack, s[1].stack);
	assert_int_equal(world.f->profile.threads.v[s[0].thread].pid, getpid());
	xp_batch_clear_placed(&world.batch);
	assert_int_equal(world.batch.placed.n, 0);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(records_are_taken_and_sorted),
		TEST(records_of_odd_length),
		TEST(malformed_records),
		TEST(frames_get_their_places),
		TEST(memory_without_a_file),
		TEST(kernel_frames_follow),
		TEST(stale_generations),
		TEST(samples_of_nobody),
		TEST(samples_of_an_unknown_child),
		TEST(our_own_child_before_its_exec),
		TEST(marks),
		TEST(stack_switches),
		TEST(ends_by_frame_pointer),
		TEST(resumptions),
		TEST(skipped_callers),
		TEST(coroutine_starts),
		TEST(every_end_can_be_named),
		TEST(samples_reach_the_profile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
