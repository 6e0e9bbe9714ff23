/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/native.bpf.c step by step: the kinds of rules, every end, steps by frame pointer.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "program.h"

static void stack_pointer_rules(void **state)
{
	(void)state;
	rules[0] = sp_rule(0x20);
	rules[1] = sp_rule(8);
	end_rule(2);
	stack[3] = IN(1);
	stack[4] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	expect_cfa(0, AT(4), 0);
	expect_cfa(1, AT(5), 0);
	expect_cfa(2, 0, 0);
	assert_int_equal(w.sample.flags, 0);
	assert_int_equal(machine.reads, 2);
}

static void frame_pointer_rules(void **state)
{
	(void)state;
	regs.bp = AT(10);
	rules[0] = fp_rule();
	rules[1] = fp_rule();
	end_rule(2);
	stack[10] = AT(20);
	stack[11] = IN(1);
	stack[20] = 0x1234;
	stack[21] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	expect_cfa(0, AT(12), 0);
	expect_cfa(1, AT(22), 0);
	assert_int_equal(w.fp, 0x1234);
	/* Frame pointer and return address side by side are one read. */
	assert_int_equal(machine.reads, 2);
	assert_int_equal(w.sample.flags, 0);
}

/* The frame pointer saved elsewhere, kept, and lost. */
static void saved_frame_pointer(void **state)
{
	(void)state;
	regs.bp = 0x77;
	rules[0] = sp_rule(0x30);
	rules[0].fp_off = -24;
	rules[1] = sp_rule(8);
	rules[2] = fp_rule();
	end_rule(3);
	stack[3] = AT(20);
	stack[5] = IN(1);
	stack[6] = IN(2);
	stack[21] = IN(3);
	expect_walk(XP_END_OUTERMOST, 4, IN(0), IN(1), IN(2), IN(3));
	rules[1].fp_off = XP_FP_LOST;
	expect_walk(XP_END_BAD_RULE, 3, IN(0), IN(1), IN(2));
	rules[2].kind = XP_RULE_DEREF_FP;
	expect_walk(XP_END_BAD_RULE, 3, IN(0), IN(1), IN(2));
	rules[2] = (struct xp_rule){ .kind = XP_RULE_NONE };
	expect_walk(XP_END_NO_ROWS, 3, IN(0), IN(1), IN(2));
	/* Found again by a frame further out. */
	rules[2] = sp_rule(16);
	rules[2].fp_off = -16;
	rules[3] = fp_rule();
	end_rule(4);
	stack[7] = AT(30);
	stack[8] = IN(3);
	stack[31] = IN(4);
	expect_walk(XP_END_OUTERMOST, 5, IN(0), IN(1), IN(2), IN(3), IN(4));
	/* A save slot that cannot be read. */
	rules[0].fp_off = 0x7000;
	regs.sp = AT(STACK_WORDS - 10);
	stack[STACK_WORDS - 5] = IN(1);
	expect_walk(XP_END_READ, 1, IN(0));
}

/* Functions that realign their stack save the frame pointer where the new one points. */
static void frame_pointer_saved_at_itself(void **state)
{
	(void)state;
	regs.bp = AT(15);
	rules[0] = sp_rule(0x30);
	rules[0].fp_off = XP_FP_AT_FP;
	rules[1] = fp_rule();
	end_rule(2);
	stack[5] = IN(1);
	stack[15] = AT(20);
	stack[21] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	expect_cfa(1, AT(22), 0);
	regs.bp = 0x1000;
	expect_walk(XP_END_READ, 1, IN(0));
	/* Not known, so nothing can be saved there. */
	regs.bp = AT(15);
	rules[1] = sp_rule(8);
	rules[1].fp_off = XP_FP_LOST;
	rules[2] = sp_rule(8);
	rules[2].fp_off = XP_FP_AT_FP;
	rules[3] = fp_rule();
	stack[6] = IN(2);
	stack[7] = IN(3);
	expect_walk(XP_END_BAD_RULE, 4, IN(0), IN(1), IN(2), IN(3));
}

/* Within a PLT entry the push at 11 moves the CFA. */
static void plt_rule(void **state)
{
	(void)state;
	rules[0] = (struct xp_rule){ .kind = XP_RULE_PLT, .cfa_off = 11, .fp_off = XP_FP_SAME,
				     .ra = 1 };
	end_rule(1);
	end_rule(2);
	stack[0] = IN(1);
	stack[1] = IN(2);
	for (unsigned i = 0; i < 32; i++) {
		regs.ip = FUNC(0) + 0x20 + i;
		expect_walk(XP_END_OUTERMOST, 2, regs.ip, (i & 15) >= 11 ? IN(2) : IN(1));
		expect_cfa(0, AT((i & 15) >= 11 ? 2 : 1), 0);
	}
}

static void dereferenced_rules(void **state)
{
	(void)state;
	regs.bp = AT(4);
	rules[0] = (struct xp_rule){ .kind = XP_RULE_DEREF_FP, .cfa_off = -8, .ra = 1 };
	rules[1] = (struct xp_rule){ .kind = XP_RULE_DEREF_SP, .cfa_off = 16, .fp_off = XP_FP_SAME,
				     .ra = 1 };
	end_rule(2);
	stack[3] = AT(10);		/* CFA of the leaf */
	stack[9] = IN(1);
	stack[10] = 0x99;
	stack[12] = AT(30);
	stack[29] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	expect_cfa(0, AT(10), 0);
	expect_cfa(1, AT(30), 0);
	assert_int_equal(w.fp, 0x99);
	/* The same a distance before the CFA. */
	rules[0].deref_add = rules[1].deref_add = 56;
	stack[3] = AT(3);
	stack[12] = AT(23);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	expect_cfa(0, AT(10), 0);
	expect_cfa(1, AT(30), 0);
	rules[1].cfa_off = 0x7fffffff;
	expect_walk(XP_END_READ, 2, IN(0), IN(1));
	regs.bp = 8;
	expect_walk(XP_END_READ, 1, IN(0));
}

static void bad_rules(void **state)
{
	(void)state;
	rules[0].kind = XP_RULE_BAD;
	expect_walk(XP_END_BAD_RULE, 1, IN(0));
	expect_cfa(0, 0, 0);
	for (unsigned kind = XP_RULE_KINDS; kind < 256; kind++) {
		rules[0].kind = (uint8_t)kind;
		expect_walk(XP_END_BAD_RULE, 1, IN(0));
	}
}

/* A return address is looked up one byte before: a call may be a function's last instruction. */
static void return_addresses_are_looked_up_before(void **state)
{
	(void)state;
	rules[0] = sp_rule(8);
	rules[1] = sp_rule(16);
	end_rule(2);
	end_rule(3);
	stack[0] = FUNC(2);		/* after the last call of function 1 */
	stack[2] = IN(3);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), FUNC(2), IN(3));
	regs.ip = FUNC(2);
	expect_walk(XP_END_OUTERMOST, 1, FUNC(2));
	/* So the end of a mapping is inside it for a return address, and its start is not. */
	regs.ip = IN(0);
	stack[0] = TEXT + 0x20000;
	expect_walk(XP_END_FP_ZERO, 2, IN(0), TEXT + 0x20000);
	stack[0] = TEXT;
	expect_walk(XP_END_NO_MAPPING, 1, IN(0));
	regs.ip = TEXT + 0x20000;
	expect_walk(XP_END_NO_MAPPING, 1, TEXT + 0x20000);
}

static void stacks_must_go_up(void **state)
{
	(void)state;
	rules[0] = sp_rule(0);
	expect_walk(XP_END_BACKWARDS, 1, IN(0));
	rules[0] = sp_rule(-8);
	expect_walk(XP_END_BACKWARDS, 1, IN(0));
	rules[0] = fp_rule();
	regs.sp = AT(50);
	regs.bp = AT(48);
	expect_walk(XP_END_BACKWARDS, 1, IN(0));
	expect_cfa(0, 0, 0);
	regs.bp = AT(49);
	end_rule(1);
	stack[50] = IN(1);
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
	regs.sp = UINT64_MAX - 3;		/* wraps */
	rules[0] = sp_rule(8);
	expect_walk(XP_END_BACKWARDS, 1, IN(0));
}

static void unreadable_and_zero_return_addresses(void **state)
{
	(void)state;
	rules[0] = sp_rule(8);
	regs.sp = STACK - 0x1000;
	expect_walk(XP_END_READ, 1, IN(0));
	regs.sp = AT(STACK_WORDS);
	expect_walk(XP_END_READ, 1, IN(0));
	regs.sp = AT(0);
	expect_walk(XP_END_FIBER, 1, IN(0));
	expect_cfa(0, AT(1), 0);
	regs.bp = AT(STACK_WORDS - 1);	/* the pair ends outside */
	rules[0] = fp_rule();
	expect_walk(XP_END_READ, 1, IN(0));
	/* Unwound by rows into nowhere: the pc is not pushed. */
	rules[0] = sp_rule(8);
	stack[0] = 0xdeadbeef;
	expect_walk(XP_END_NO_MAPPING, 1, IN(0));
}

static void the_depth_is_limited(void **state)
{
	(void)state;
	rules[0] = sp_rule(8);
	rules[1] = sp_rule(8);
	end_rule(2);
	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack[i] = IN(1) + i % 64;
	/* As many as fit, and the end: whole. */
	stack[XP_NATIVE_FRAMES_MAX - 2] = IN(2);
	walk();
	assert_int_equal(w.sample.end, XP_END_OUTERMOST);
	assert_int_equal(w.frames, XP_NATIVE_FRAMES_MAX);
	/* One more: cut at the root, the leaf's side is right. */
	stack[XP_NATIVE_FRAMES_MAX - 2] = IN(1);
	stack[XP_NATIVE_FRAMES_MAX - 1] = IN(2);
	walk();
	assert_int_equal(w.sample.end, XP_END_TOO_DEEP);
	assert_int_equal(w.frames, XP_NATIVE_FRAMES_MAX);
	assert_int_equal(walk_frame(&w, 0)->pc, IN(0));
	for (uint32_t i = 1; i < XP_NATIVE_FRAMES_MAX; i++) {
		assert_int_equal(walk_frame(&w, i)->pc, stack[i - 1]);
		assert_int_equal(frame_sp(walk_frame(&w, i)), AT(i));
	}
}

/* With a kernel stack before them, the native frames still fit and follow it. */
static void frames_follow_the_kernel_stack(void **state)
{
	(void)state;
	rules[0] = rules[1] = sp_rule(8);
	for (unsigned i = 0; i < STACK_WORDS; i++)
		stack[i] = IN(1);
	walk_begin(&w, &regs);
	w.words = XP_KERNEL_FRAMES_MAX;
	memset(w.payload, 0xab, XP_KERNEL_FRAMES_MAX * 8);
	xp_native_walk(&w);
	assert_int_equal(w.frames, XP_NATIVE_FRAMES_MAX);
	assert_int_equal(w.words, XP_KERNEL_FRAMES_MAX + 2 * XP_NATIVE_FRAMES_MAX);
	assert_true(w.words <= XP_SAMPLE_WORDS);
	for (int i = 0; i < XP_KERNEL_FRAMES_MAX; i++)
		assert_int_equal(w.payload[i], 0xababababababababull);
	assert_int_equal(walk_frame(&w, 0)->pc, IN(0));
	assert_int_equal(walk_frame(&w, XP_NATIVE_FRAMES_MAX - 1)->pc, IN(1));
	assert_int_equal(w.payload[w.words], 0);
}

/* Code without rows: rule 0 is XP_RULE_NONE here. */
static void frame_pointer_steps(void **state)
{
	(void)state;
	regs.sp = AT(10);
	end_rule(1);
	stack[21] = IN(1);
	stack[20] = 0x4242;
	regs.bp = AT(20);
	walk_begin(&w, &regs);
	w.saved_at[XP_SAVED_RBX] = AT(3);
	xp_native_walk(&w);
	assert_int_equal(w.sample.end, XP_END_OUTERMOST);
	assert_int_equal(w.frames, 2);
	expect_cfa(0, AT(22), XP_FRAME_BY_FP);
	assert_int_equal(w.sample.flags, XP_RAW_USED_FP);
	assert_int_equal(w.fp, 0x4242);
	assert_int_equal(w.sp, AT(22));
	assert_int_equal(w.saved_lost, (1 << XP_SAVED_N) - 1);
	/* The registers are not known any more. */
	rules[1] = reg_rule(3);
	expect_walk(XP_END_BAD_RULE, 2, IN(0), IN(1));
	regs.bp = 0;
	/* The end of a chain, or no frame pointer at all: user space has to judge the frame. */
	expect_walk(XP_END_FP_ZERO, 1, IN(0));
	expect_cfa(0, 0, XP_FRAME_BY_FP);
	assert_int_equal(w.sample.flags, XP_RAW_USED_FP);
	regs.bp = AT(9);			/* below the stack pointer */
	expect_walk(XP_END_NO_ROWS, 1, IN(0));
	regs.bp = AT(20) + 4;
	expect_walk(XP_END_NO_ROWS, 1, IN(0));
	regs.bp = AT(10) + FP_FRAME_MAX + 8;
	expect_walk(XP_END_NO_ROWS, 1, IN(0));
	regs.bp = AT(10) + FP_FRAME_MAX;	/* far, but a frame pointer: there is no memory */
	expect_walk(XP_END_READ, 1, IN(0));
	assert_int_equal(w.sample.flags, 0);
	regs.bp = AT(30);			/* the end of a chain: no return address */
	expect_walk(XP_END_FP_ZERO, 1, IN(0));
	expect_cfa(0, 0, XP_FRAME_BY_FP);
	assert_int_equal(w.sample.flags, XP_RAW_USED_FP);
	regs.bp = AT(10);			/* nothing but the saved pair is on the stack */
	stack[11] = IN(1);
	end_rule(1);
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
}

/* Code that keeps frame pointers between code that has rows. */
static void mixed_steps(void **state)
{
	(void)state;
	rules[0] = sp_rule(8);
	rules[2] = sp_rule(32);
	rules[2].fp_off = -24;
	end_rule(4);
	regs.bp = AT(10);
	stack[0] = IN(1);			/* no rows */
	stack[10] = AT(999);
	stack[11] = IN(2);
	stack[13] = AT(20);
	stack[15] = IN(3);			/* no rows */
	stack[20] = 1;
	stack[21] = IN(4);
	expect_walk(XP_END_OUTERMOST, 5, IN(0), IN(1), IN(2), IN(3), IN(4));
	expect_cfa(0, AT(1), 0);
	expect_cfa(1, AT(12), XP_FRAME_BY_FP);
	expect_cfa(2, AT(16), 0);
	expect_cfa(3, AT(22), XP_FRAME_BY_FP);
}

/* Frames that are left by the stack pointer are told: their code may have moved it elsewhere. */
static void steps_by_the_stack_pointer_are_told(void **state)
{
	(void)state;
	regs.bp = AT(3);
	rules[0] = sp_rule(16);
	rules[1] = fp_rule();
	end_rule(2);
	stack[1] = IN(1);
	stack[4] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	assert_int_equal(frame_flags(walk_frame(&w, 0)), XP_FRAME_BY_SP);
	assert_int_equal(frame_flags(walk_frame(&w, 1)), 0);
	assert_int_equal(frame_flags(walk_frame(&w, 2)), 0);
}

/* Behind clone's system call: the new thread has no caller, its parent has. */
static void threads_that_have_just_begun(void **state)
{
	(void)state;
	rules[0] = sp_rule(8);
	rules[0].kind = XP_RULE_FORK;
	end_rule(1);
	stack[0] = IN(1);
	regs.ax = 0;
	expect_walk(XP_END_OUTERMOST, 1, IN(0));
	regs.ax = 4711;
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
	regs.ax = (__u64)-11;
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
	/* Another register, and one that is none. */
	rules[0].reg = 3;
	regs.bx = 0;
	expect_walk(XP_END_OUTERMOST, 1, IN(0));
	rules[0].reg = 200;
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
	/* Only the leaf's registers are those after the call. */
	rules[0] = sp_rule(8);
	rules[2] = sp_rule(8);
	rules[2].kind = XP_RULE_FORK;
	regs.ax = 0;
	stack[0] = IN(2);
	stack[1] = IN(1);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(2), IN(1));
}

/* The leaf's words follow the frames when it was left by frame pointer, and only then. */
static void words_at_the_leaf(void **state)
{
	const struct xp_raw_part *part;

	(void)state;
	regs.bp = AT(20);
	end_rule(1);
	stack[21] = IN(1);
	for (int i = 0; i < XP_LEAF_WORDS; i++)
		stack[i] = 0x1000 + (uint64_t)i;
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
	push_leaf_words(&w);
	assert_int_equal(w.words, 4 + 2 + XP_LEAF_WORDS);
	assert_int_equal(w.sample.nparts, 1);
	part = (const struct xp_raw_part *)&w.payload[4];
	assert_int_equal(part->runtime, XP_RUNTIME_NATIVE);
	assert_int_equal(part->nacts, XP_LEAF_WORDS);
	assert_int_equal(part->nframes, 0);
	assert_int_equal(part->end, XP_VM_END_NONE);
	for (int i = 0; i < XP_LEAF_WORDS; i++)
		assert_int_equal(w.payload[6 + i], 0x1000 + i);
	/* Another frame was left so. */
	rules[0] = sp_rule(8);
	rules[1] = (struct xp_rule){ .kind = XP_RULE_NONE };
	end_rule(2);
	stack[0] = IN(1);
	stack[21] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	assert_int_equal(w.sample.flags, XP_RAW_USED_FP);
	push_leaf_words(&w);
	assert_int_equal(w.words, 6);
	/* Words that cannot be read. */
	rules[0] = (struct xp_rule){ .kind = XP_RULE_NONE };
	regs.sp = AT(STACK_WORDS - 4);
	regs.bp = AT(STACK_WORDS - 4);
	stack[STACK_WORDS - 3] = IN(2);
	expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(2));
	push_leaf_words(&w);
	assert_int_equal(w.words, 4);
	assert_int_equal(w.sample.nparts, 0);
}

static void high_addresses_keep_their_flags_apart(void **state)
{
	(void)state;
	regs.bp = AT(20);
	regs.sp = AT(1);
	end_rule(1);
	stack[21] = IN(1);
	walk_begin(&w, &regs);
	w.sp = 0xffff123456789abcull;
	push_frame(&w, 5);
	flag_frame(&w, XP_FRAME_SIGNAL);
	assert_int_equal(frame_sp(walk_frame(&w, 0)), 0x123456789abcull);
	assert_int_equal(frame_flags(walk_frame(&w, 0)), XP_FRAME_SIGNAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(stack_pointer_rules, setup),
		cmocka_unit_test_setup(frame_pointer_rules, setup),
		cmocka_unit_test_setup(saved_frame_pointer, setup),
		cmocka_unit_test_setup(frame_pointer_saved_at_itself, setup),
		cmocka_unit_test_setup(plt_rule, setup),
		cmocka_unit_test_setup(dereferenced_rules, setup),
		cmocka_unit_test_setup(bad_rules, setup),
		cmocka_unit_test_setup(return_addresses_are_looked_up_before, setup),
		cmocka_unit_test_setup(stacks_must_go_up, setup),
		cmocka_unit_test_setup(unreadable_and_zero_return_addresses, setup),
		cmocka_unit_test_setup(the_depth_is_limited, setup),
		cmocka_unit_test_setup(frames_follow_the_kernel_stack, setup),
		cmocka_unit_test_setup(frame_pointer_steps, setup),
		cmocka_unit_test_setup(mixed_steps, setup),
		cmocka_unit_test_setup(steps_by_the_stack_pointer_are_told, setup),
		cmocka_unit_test_setup(threads_that_have_just_begun, setup),
		cmocka_unit_test_setup(words_at_the_leaf, setup),
		cmocka_unit_test_setup(high_addresses_keep_their_flags_apart, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
