/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/native.bpf.c in code that has no rows, JIT code above all: the walk goes on at the innermost
 * activation of a runtime above the stack pointer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "program.h"

#define VM 1			/* the function that activations are of, and its landing label */
#define LANDING FUNC(VM)
#define JIT(n) IN(100 + (n))	/* mapped, without rows */
#define NOWHERE 0x123450ull	/* in no mapping */

static struct xp_activation acts[XP_ACTS_MAX];
static uint32_t nacts;
static bool on_stack;
static unsigned long steps;

static int resume_setup(void **state)
{
	setup(state);
	memset(acts, 0, sizeof(acts));
	nacts = 0;
	on_stack = true;
	regs.ip = JIT(0);
	return 0;
}

static void add_act(uint64_t sp, uint64_t fp)
{
	acts[nacts++] = (struct xp_activation){ sp, fp };
}

static void walk_acts(void)
{
	walk_begin(&w, &regs);
	memcpy(w.acts, acts, sizeof(acts));
	w.nacts = nacts;
	w.on_stack = on_stack;
	w.act_pc = LANDING;
	machine.reads = 0;
	for (steps = 1; !step(&w); steps++)
		assert_true(steps < STEPS_MAX);	/* the kernel's loop is not longer */
}

static const struct xp_raw_frame *frame(uint32_t i)
{
	return (const struct xp_raw_frame *)w.payload + i;
}

static bool resumed(uint32_t i)
{
	return frame_flags(frame(i)) & XP_FRAME_RESUMED;
}

/* These pcs, leaf first, and this end; one in `from` (bit per frame) was left by an activation. */
static void expect_acts(enum xp_end end, unsigned from, uint32_t n, ...)
{
	va_list ap;

	walk_acts();
	va_start(ap, n);
	assert_int_equal(w.sample.end, end);
	assert_int_equal(w.frames, n);
	for (uint32_t i = 0; i < n; i++) {
		assert_int_equal(frame(i)->pc, va_arg(ap, uint64_t));
		assert_int_equal(resumed(i), from >> i & 1);
	}
	va_end(ap);
}

/* The VM's function at word i of the stack: 8 words below its return address to `caller`. */
static void put_vm(unsigned i, uint64_t caller)
{
	rules[VM] = sp_rule(72);
	stack[i + 8] = caller;
	add_act(AT(i), 0x77);
}

static void out_of_a_leaf(void **state)
{
	(void)state;
	put_vm(50, IN(2));
	end_rule(2);
	expect_acts(XP_END_OUTERMOST, 1, 3, JIT(0), LANDING, IN(2));
	assert_int_equal(frame_sp(frame(0)), AT(0));
	assert_int_equal(frame_sp(frame(1)), AT(50));
	assert_int_equal(frame_sp(frame(2)), AT(59));
	assert_int_equal(machine.reads, 1);	/* the return address of the VM's function */
	/* A frame pointer that leads somewhere is not asked. */
	regs.bp = AT(20);
	stack[21] = IN(2);
	expect_acts(XP_END_OUTERMOST, 1, 3, JIT(0), LANDING, IN(2));
	assert_int_equal(w.sample.flags & XP_RAW_USED_FP, 0);
	nacts = 0;
	expect_acts(XP_END_OUTERMOST, 0, 2, JIT(0), IN(2));
	assert_int_equal(frame_flags(frame(0)) & XP_FRAME_BY_FP, XP_FRAME_BY_FP);
}

/* Code that is in no mapping: a leaf is shown; between other frames it is not known to be code. */
static void out_of_no_mapping(void **state)
{
	(void)state;
	put_vm(50, IN(2));
	end_rule(2);
	regs.ip = NOWHERE;
	expect_acts(XP_END_OUTERMOST, 1, 3, NOWHERE, LANDING, IN(2));
	regs.ip = IN(0);
	rules[0] = sp_rule(8);
	stack[0] = NOWHERE;
	expect_acts(XP_END_OUTERMOST, 1, 3, IN(0), LANDING, IN(2));
	nacts = 0;
	expect_acts(XP_END_NO_MAPPING, 0, 1, IN(0));
	machine.nranges = 0;			/* a process that is not known yet */
	nacts = 1;
	expect_acts(XP_END_NO_PROCESS, 1, 1, IN(0));
}

static void in_the_middle(void **state)
{
	(void)state;
	regs.ip = IN(0);			/* C, called by JIT, by the VM, by C, by JIT ... */
	rules[0] = sp_rule(24);
	stack[2] = JIT(0);
	put_vm(50, IN(3));
	rules[3] = sp_rule(16);
	stack[60] = JIT(1);
	put_vm(100, IN(4));
	rules[4] = sp_rule(8);
	stack[109] = JIT(2);
	put_vm(200, IN(5));
	end_rule(5);
	expect_acts(XP_END_OUTERMOST, 0x92, 10, IN(0), JIT(0), LANDING, IN(3), JIT(1), LANDING,
		    IN(4), JIT(2), LANDING, IN(5));
	assert_int_equal(frame_sp(frame(2)), AT(50));
	assert_int_equal(frame_sp(frame(5)), AT(100));
	assert_int_equal(frame_sp(frame(8)), AT(200));
}

/* The landing label is an instruction that runs: its row is its own, not the one before it. */
static void the_pc_is_exact(void **state)
{
	(void)state;
	put_vm(50, FUNC(3));			/* the return address behind a call that is last */
	rules[VM - 1].kind = XP_RULE_BAD;
	end_rule(2);
	end_rule(3);
	rules[3].kind = XP_RULE_BAD;
	expect_acts(XP_END_OUTERMOST, 1, 3, JIT(0), LANDING, FUNC(3));
}

static void the_frame_pointer_goes_along(void **state)
{
	(void)state;
	add_act(AT(50), AT(70));
	rules[VM] = fp_rule();
	stack[70] = AT(90);
	stack[71] = IN(2);
	rules[2] = fp_rule();
	stack[90] = 0x1234;
	stack[91] = IN(3);
	end_rule(3);
	regs.bp = 0x5;
	expect_acts(XP_END_OUTERMOST, 1, 4, JIT(0), LANDING, IN(2), IN(3));
	assert_int_equal(w.fp, 0x1234);
	assert_int_equal(frame_sp(frame(2)), AT(72));
	/* Known again also where it had been lost. */
	regs.ip = IN(0);
	rules[0] = sp_rule(8);
	rules[0].fp_off = XP_FP_LOST;
	stack[0] = JIT(0);
	expect_acts(XP_END_OUTERMOST, 2, 5, IN(0), JIT(0), LANDING, IN(2), IN(3));
}

/* Nothing is known of the others, until somebody has saved them. */
static void registers_are_lost(void **state)
{
	(void)state;
	regs.bx = AT(80);
	regs.ax = AT(80);
	put_vm(50, IN(2));
	rules[2] = reg_rule(3);
	expect_acts(XP_END_BAD_RULE, 1, 3, JIT(0), LANDING, IN(2));
	assert_int_equal(w.saved_lost, (1 << XP_SAVED_N) - 1);
	rules[VM].save[XP_SAVED_RBX] = 2;	/* by the VM's function */
	stack[57] = AT(80);
	stack[80] = IN(3);
	end_rule(3);
	expect_acts(XP_END_OUTERMOST, 1, 4, JIT(0), LANDING, IN(2), IN(3));
	/* The landing label has no more than the callee-saved registers. */
	rules[VM] = reg_rule(0);
	expect_acts(XP_END_BAD_RULE, 1, 2, JIT(0), LANDING);
	rules[VM] = reg_rule(3);
	expect_acts(XP_END_BAD_RULE, 1, 2, JIT(0), LANDING);
}

static void out_of_a_signal(void **state)
{
	uint64_t *gregs = &stack[XP_GREGS_OFFSET / 8];

	(void)state;
	regs.ip = IN(0);
	rules[0].kind = XP_RULE_SIGNAL;
	gregs[10] = 0x99;			/* rbp */
	gregs[15] = AT(40);			/* rsp */
	gregs[16] = JIT(7);			/* rip */
	put_vm(50, IN(2));
	end_rule(2);
	expect_acts(XP_END_OUTERMOST, 2, 4, IN(0), JIT(7), LANDING, IN(2));
	assert_int_equal(frame_flags(frame(0)) & XP_FRAME_SIGNAL, XP_FRAME_SIGNAL);
	assert_int_equal(frame_sp(frame(1)), AT(40));
}

/* In a fiber switch the activations may be another stack's. */
static void never_off_the_stack(void **state)
{
	(void)state;
	put_vm(50, IN(2));
	end_rule(2);
	on_stack = false;
	regs.bp = 1;
	expect_acts(XP_END_NO_ROWS, 0, 1, JIT(0));
	regs.bp = AT(20);
	stack[21] = IN(2);
	expect_acts(XP_END_OUTERMOST, 0, 2, JIT(0), IN(2));
	regs.ip = NOWHERE;
	expect_acts(XP_END_NO_MAPPING, 0, 1, NOWHERE);
	machine.nranges = 0;
	expect_acts(XP_END_NO_PROCESS, 0, 1, NOWHERE);
}

/* Activations that lie below the stack pointer, or at it, have been walked over or are a leaf's. */
static void younger_ones_are_skipped(void **state)
{
	(void)state;
	end_rule(2);
	regs.sp = AT(2000);
	regs.bp = 1;
	for (uint32_t n = 0; n <= 100; n++) {
		nacts = 0;
		for (uint32_t i = 0; i < n; i++)
			add_act(AT(2000 - n + 1 + i), i);	/* the last one is at it */
		regs.ip = JIT(0);
		expect_acts(XP_END_NO_ROWS, 0, 1, JIT(0));
		regs.ip = NOWHERE;
		expect_acts(XP_END_NO_MAPPING, 0, 1, NOWHERE);
		put_vm(2001, IN(2));
		expect_acts(XP_END_OUTERMOST, 1, 3, NOWHERE, LANDING, IN(2));
		regs.ip = JIT(0);
		expect_acts(XP_END_OUTERMOST, 1, 3, JIT(0), LANDING, IN(2));
		assert_int_equal(frame_sp(frame(1)), AT(2001));
		/* One step for each RESUME_STEPS of them, beside that of each frame. */
		assert_int_equal(steps, 3 + (n ? (n - 1) / RESUME_STEPS : 0));
		assert_int_equal(machine.reads, 1);
	}
}

static void as_many_as_there_can_be(void **state)
{
	(void)state;
	end_rule(2);
	for (uint32_t i = 0; i < XP_ACTS_MAX - 1; i++)
		add_act(AT(1 + i), i);
	put_vm(2000, IN(2));
	regs.sp = AT(1500);
	expect_acts(XP_END_OUTERMOST, 1, 3, JIT(0), LANDING, IN(2));
	assert_int_equal(frame_sp(frame(1)), AT(2000));
	regs.sp = AT(2000);
	regs.bp = 0;
	expect_acts(XP_END_FP_ZERO, 0, 1, JIT(0));
}

/* A landing label that has no rows either leads to the next activation; each is a frame. */
static void label_without_rows(void **state)
{
	(void)state;
	for (uint32_t i = 0; i < 40; i++)
		add_act(AT(10 + 10 * i), i < 39 ? 1 : 0);
	walk_acts();
	assert_int_equal(w.sample.end, XP_END_FP_ZERO);
	assert_int_equal(w.frames, 41);
	for (uint32_t i = 1; i < 41; i++) {
		assert_int_equal(frame(i)->pc, LANDING);
		assert_int_equal(frame_sp(frame(i)), AT(10 * i));
		assert_int_equal(resumed(i - 1), true);
	}
	assert_false(resumed(40));
}

/* Frames that an activation leads to count like others. */
static void the_depth_is_limited(void **state)
{
	(void)state;
	rules[2] = sp_rule(8);
	for (unsigned i = 59; i < STACK_WORDS; i++)
		stack[i] = IN(2);
	put_vm(50, IN(2));
	walk_acts();
	assert_int_equal(w.sample.end, XP_END_TOO_DEEP);
	assert_int_equal(w.frames, XP_NATIVE_FRAMES_MAX);
	assert_int_equal(steps, XP_NATIVE_FRAMES_MAX + 1);
	/* The last frame that fits is JIT code; and all activations are looked at on the way. */
	nacts = 0;
	for (unsigned i = 0; i < XP_ACTS_MAX - 1; i++)
		add_act(AT(i), 0);
	put_vm(4000, IN(2));
	rules[0] = sp_rule(8);
	for (unsigned i = 0; i < XP_NATIVE_FRAMES_MAX; i++)
		stack[i] = IN(0);
	stack[XP_NATIVE_FRAMES_MAX - 2] = JIT(0);
	regs.ip = IN(0);
	walk_acts();
	assert_int_equal(w.sample.end, XP_END_TOO_DEEP);
	assert_int_equal(w.frames, XP_NATIVE_FRAMES_MAX);
	assert_true(resumed(XP_NATIVE_FRAMES_MAX - 1));
	assert_int_equal(w.pc, LANDING);	/* what is not pushed any more */
	assert_int_equal(w.sp, AT(4000));
	assert_int_equal(steps, XP_NATIVE_FRAMES_MAX + 1 + XP_ACTS_MAX / RESUME_STEPS - 1);
}

/* Code in no mapping above each activation: such steps push no frame. */
static void the_steps_suffice(void **state)
{
	(void)state;
	rules[VM] = sp_rule(8);
	for (unsigned i = 0; i < XP_ACTS_MAX; i++) {
		add_act(AT(100 + 2 * i), 0);
		stack[100 + 2 * i] = NOWHERE;
	}
	regs.ip = NOWHERE;
	walk_acts();
	assert_int_equal(w.sample.end, XP_END_NO_MAPPING);
	assert_int_equal(w.frames, 1 + XP_ACTS_MAX);
	assert_int_equal(steps, 2 * w.frames - 1);
}

static uint32_t seed = 1;

static uint32_t any(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* The list need not ascend, nor lie on the stack, nor be the process's at all. */
static void hostile(void **state)
{
	unsigned long far = 0, jumps = 0;

	(void)state;
	for (unsigned n = 0; n < 3000; n++) {
		for (unsigned i = 0; i < 64; i++)
			rules[any(256)] = any(8) ? sp_rule(8 + (int32_t)any(16) * 8)
				: (struct xp_rule){ .kind = (uint8_t)any(XP_RULE_KINDS),
						    .cfa_off = (int32_t)any(256) - 64,
						    .fp_off = (int16_t)any(65536),
						    .reg = (uint8_t)any(32), .ra = (uint8_t)any(3) };
		for (unsigned i = 0; i < 2000; i++)
			stack[any(STACK_WORDS)] = any(8) ? IN(any(300)) : AT(any(STACK_WORDS));
		for (unsigned i = 0; i < 40; i++)
			acts[any(4) ? i : any(XP_ACTS_MAX)] = (struct xp_activation){
				any(8) ? AT(200 * i + any(200)) : ~0ull - any(100),
				AT(any(9000)) };
		nacts = any(2) ? any(50) : any(XP_ACTS_MAX + 1);
		regs.ip = any(8) ? IN(any(256)) : NOWHERE;
		regs.sp = AT(any(STACK_WORDS / 4));
		rules[VM] = sp_rule(8 * (1 + (int32_t)any(4)));
		walk_acts();
		assert_true(w.sample.end > XP_END_NONE && w.sample.end < XP_END_REASONS);
		assert_true(w.frames >= 1 && w.frames <= XP_NATIVE_FRAMES_MAX);
		assert_true(w.act <= nacts);
		far += w.frames > 20;
		for (uint32_t i = 0; i < w.frames; i++)
			jumps += resumed(i);
	}
	assert_true(far > 100 && jumps > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(out_of_a_leaf, resume_setup),
		cmocka_unit_test_setup(out_of_no_mapping, resume_setup),
		cmocka_unit_test_setup(in_the_middle, resume_setup),
		cmocka_unit_test_setup(the_pc_is_exact, resume_setup),
		cmocka_unit_test_setup(the_frame_pointer_goes_along, resume_setup),
		cmocka_unit_test_setup(registers_are_lost, resume_setup),
		cmocka_unit_test_setup(out_of_a_signal, resume_setup),
		cmocka_unit_test_setup(never_off_the_stack, resume_setup),
		cmocka_unit_test_setup(younger_ones_are_skipped, resume_setup),
		cmocka_unit_test_setup(as_many_as_there_can_be, resume_setup),
		cmocka_unit_test_setup(label_without_rows, resume_setup),
		cmocka_unit_test_setup(the_depth_is_limited, resume_setup),
		cmocka_unit_test_setup(the_steps_suffice, resume_setup),
		cmocka_unit_test_setup(hostile, resume_setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
