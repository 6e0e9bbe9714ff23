/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/native.bpf.c: which registers are known where; frames of signals, which know them all.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "program.h"

/* At the leaf every register is known; by DWARF's numbers (System V ABI x86-64, figure 3.36). */
static void register_rules_at_the_leaf(void **state)
{
	__u64 *const by_dwarf[16] = {
		&regs.ax, &regs.dx, &regs.cx, &regs.bx, &regs.si, &regs.di, &regs.bp, &regs.sp,
		&regs.r8, &regs.r9, &regs.r10, &regs.r11, &regs.r12, &regs.r13, &regs.r14,
		&regs.r15,
	};

	(void)state;
	end_rule(1);
	stack[100] = IN(1);
	for (uint8_t reg = 0; reg < 16; reg++) {
		if (reg == XP_DWARF_SP)		/* has a kind of its own */
			continue;
		rules[0] = reg_rule(reg);
		*by_dwarf[reg] = AT(100);
		expect_walk(XP_END_OUTERMOST, 2, IN(0), IN(1));
		expect_cfa(0, AT(101), 0);
		*by_dwarf[reg] = 0;
		expect_walk(XP_END_BACKWARDS, 1, IN(0));
	}
	for (unsigned reg = 16; reg < 256; reg++) {
		rules[0] = reg_rule((uint8_t)reg);
		expect_walk(XP_END_BAD_RULE, 1, IN(0));
	}
	rules[0] = reg_rule(XP_DWARF_SP);
	expect_walk(XP_END_BAD_RULE, 1, IN(0));
}

/* Further out only what was saved on the way is known. */
static void register_rules_below_the_leaf(void **state)
{
	static const uint8_t saved[XP_SAVED_N] = { 3, 12, 13, 14, 15 };

	(void)state;
	end_rule(2);
	stack[5] = IN(1);
	stack[49] = IN(2);
	regs.bx = regs.r12 = regs.r13 = regs.r14 = regs.r15 = regs.r10 = regs.ax = AT(49);
	for (uint8_t reg = 0; reg < 17; reg++) {
		rules[0] = sp_rule(0x30);
		rules[1] = reg_rule(reg);
		/* Those that a callee must keep still are what the leaf has. */
		if (memchr(saved, reg, sizeof(saved)))
			expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
		else
			expect_walk(XP_END_BAD_RULE, 2, IN(0), IN(1));
	}
	for (int i = 0; i < XP_SAVED_N; i++) {
		rules[0] = sp_rule(0x30);
		rules[0].save[i] = 4;
		rules[1] = reg_rule(saved[i]);
		stack[2] = AT(49);
		expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
		expect_cfa(1, AT(50), 0);
		rules[0].save[i] = XP_SAVE_LOST;
		expect_walk(XP_END_BAD_RULE, 2, IN(0), IN(1));
		rules[0].save[i] = 100;		/* below the stack: cannot be read */
		expect_walk(XP_END_BAD_RULE, 2, IN(0), IN(1));
	}
}

static void save_slots(void **state)
{
	(void)state;
	rules[0] = sp_rule(0x30);
	memcpy(rules[0].save, (uint8_t[]){ 2, 0, XP_SAVE_LOST, 6, 254 }, XP_SAVED_N);
	rules[1] = sp_rule(0x40);
	memcpy(rules[1].save, (uint8_t[]){ 0, 3, 5, XP_SAVE_LOST, 0 }, XP_SAVED_N);
	end_rule(2);
	stack[5] = IN(1);
	stack[13] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
	assert_int_equal(w.saved_at[XP_SAVED_RBX], AT(4));
	assert_int_equal(w.saved_at[XP_SAVED_R12], AT(11));
	assert_int_equal(w.saved_at[XP_SAVED_R13], AT(9));
	assert_int_equal(w.saved_at[XP_SAVED_R15], AT(6) - 8 * 254);
	assert_int_equal(w.saved_lost, 1 << XP_SAVED_R14);
	/* Nobody asked for them, so none was read. */
	assert_int_equal(machine.reads, 2);
}

/* The ucontext at the stack pointer when the trampoline runs: gregs r8..r15 rdi rsi rbp rbx ... */
static uint64_t *put_ucontext(unsigned word, uint64_t pc, uint64_t sp, uint64_t fp)
{
	uint64_t *gregs = &stack[word + 5];

	for (uint64_t i = 0; i < 18; i++)
		gregs[i] = 0xee00 + i;
	gregs[10] = fp;
	gregs[15] = sp;
	gregs[16] = pc;
	return gregs;
}

static void signal_frames(void **state)
{
	uint64_t *gregs;

	(void)state;
	rules[0] = sp_rule(0x10);
	rules[0].save[XP_SAVED_R12] = XP_SAVE_LOST;
	rules[1].kind = XP_RULE_SIGNAL;
	rules[2] = sp_rule(8);
	end_rule(3);
	stack[1] = FUNC(1) + 1;
	/* The interrupted pc is a function's first byte: the one before would be another rule. */
	rules[4] = fp_rule();
	gregs = put_ucontext(2, FUNC(4), AT(60), AT(70));
	stack[71] = IN(3);
	expect_walk(XP_END_OUTERMOST, 4, IN(0), FUNC(1) + 1, FUNC(4), IN(3));
	expect_cfa(1, AT(2), XP_FRAME_SIGNAL);
	expect_cfa(2, AT(72), 0);
	assert_int_equal(w.saved_lost, 0);
	assert_int_equal(w.gregs, AT(7));
	for (int i = 0; i < XP_SAVED_N; i++) {
		static const uint8_t place[XP_SAVED_N] = { 11, 4, 5, 6, 7 };

		assert_int_equal(w.saved_at[i], AT(7 + place[i]));
	}
	/* Every register of the interrupted code is known, and only for that frame. */
	rules[4] = reg_rule(10);
	gregs[2] = AT(80);
	stack[80] = IN(5);
	rules[5] = reg_rule(10);
	expect_walk(XP_END_BAD_RULE, 4, IN(0), FUNC(1) + 1, FUNC(4), IN(5));
	rules[5] = reg_rule(12);	/* saved by nobody since: still where the kernel put it */
	gregs[4] = AT(90);
	stack[90] = IN(3);
	expect_walk(XP_END_OUTERMOST, 5, IN(0), FUNC(1) + 1, FUNC(4), IN(5), IN(3));
}

/* All sixteen registers come from the right place of the ucontext (arch/x86 sigcontext.h). */
static void registers_of_a_signal_frame(void **state)
{
	static const uint8_t greg_of[16] = { 13, 12, 14, 11, 9, 8, 10, 15, 0, 1, 2, 3, 4, 5, 6, 7 };

	(void)state;
	rules[0].kind = XP_RULE_SIGNAL;
	end_rule(1);
	stack[100] = IN(1);
	for (uint8_t reg = 0; reg < 16; reg++) {
		uint64_t *gregs = put_ucontext(0, FUNC(2), AT(60), 0);

		rules[2] = reg_rule(reg);
		if (reg == XP_DWARF_SP)
			continue;
		gregs[greg_of[reg]] = AT(100);
		expect_walk(XP_END_OUTERMOST, 3, IN(0), FUNC(2), IN(1));
	}
}

static void odd_signal_frames(void **state)
{
	(void)state;
	rules[0].kind = XP_RULE_SIGNAL;
	put_ucontext(0, 0, AT(60), 0);		/* a jump to address 0 was interrupted */
	expect_walk(XP_END_NO_MAPPING, 1, IN(0));
	put_ucontext(0, IN(0), AT(0), 0);	/* leads to itself: ends all the same */
	walk();
	assert_int_equal(w.sample.end, XP_END_TOO_DEEP);
	regs.sp = AT(STACK_WORDS - 20);
	expect_walk(XP_END_READ, 1, IN(0));
	regs.sp = UINT64_MAX - 10;
	expect_walk(XP_END_READ, 1, IN(0));
	/* A handler on an alternate stack above the interrupted one: not backwards. */
	regs.sp = AT(500);
	put_ucontext(500, IN(1), AT(60), 0);
	rules[1] = sp_rule(8);
	end_rule(2);
	stack[60] = IN(2);
	expect_walk(XP_END_OUTERMOST, 3, IN(0), IN(1), IN(2));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(register_rules_at_the_leaf, setup),
		cmocka_unit_test_setup(register_rules_below_the_leaf, setup),
		cmocka_unit_test_setup(save_slots, setup),
		cmocka_unit_test_setup(signal_frames, setup),
		cmocka_unit_test_setup(registers_of_a_signal_frame, setup),
		cmocka_unit_test_setup(odd_signal_frames, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
