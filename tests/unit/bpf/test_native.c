/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/native.bpf.c step by step: every kind of rule, every end, over a small hand-made program.
 *
 * The program is one mapping of two pages at TEXT, whose functions lie 256 bytes apart, and a stack.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "machine.h"

#define TEXT 0x555500000000ull
#define STACK 0x7ffd00000000ull
#define STACK_WORDS 8192
#define AT(word) (STACK + 8 * (uint64_t)(word))
#define FUNC(n) (TEXT + 0x100 * (uint64_t)(n))
#define IN(n) (FUNC(n) + 0x20)

static uint32_t rows[XP_BLOCK_ROWS];
static struct xp_page pages[2];
static struct xp_rule rules[256];
static struct xp_range ranges[1];
static uint64_t stack[STACK_WORDS];
static struct xp_regs regs;
static struct xp_walk w;

static int read_stack(void *to, uint32_t n, uint64_t addr)
{
	if (addr < STACK || addr - STACK > sizeof(stack) - n)
		return -EFAULT;
	memcpy(to, (const char *)stack + (addr - STACK), n);
	return 0;
}

/* Function i (from 0, at FUNC(i)) gets rule i; all begin as XP_RULE_NONE. */
static int setup(void **state)
{
	(void)state;
	memset(rules, 0, sizeof(rules));
	memset(stack, 0, sizeof(stack));
	memset(&regs, 0, sizeof(regs));
	for (uint32_t i = 0; i < 256; i++)
		rows[i] = XP_ROW(i * 0x100, i);
	pages[0] = (struct xp_page){ 0, 256 };
	pages[1] = (struct xp_page){ 0, 0 };
	ranges[0] = (struct xp_range){ TEXT, TEXT + 0x20000, TEXT, 0, 2 };
	machine = (struct machine){ rows, pages, rules, ranges, 1, 2, 256, 1, read_stack, 0 };
	regs.ip = IN(0);
	regs.sp = AT(0);
	return 0;
}

static struct xp_rule sp_rule(int32_t cfa_off)
{
	return (struct xp_rule){ .kind = XP_RULE_SP, .cfa_off = cfa_off, .fp_off = XP_FP_SAME,
				 .ra = 1 };
}

static struct xp_rule fp_rule(void)
{
	return (struct xp_rule){ .kind = XP_RULE_FP, .cfa_off = 16, .fp_off = -16, .ra = 1 };
}

static void end_rule(int i)
{
	rules[i] = (struct xp_rule){ .kind = XP_RULE_END };
}

static void walk(void)
{
	walk_begin(&w, &regs);
	xp_native_walk(&w);
	assert_int_equal(w.words, 2 * w.frames);
}

/* The walk gives these pcs, leaf first, and this end. */
static void expect_walk(enum xp_end end, uint32_t n, ...)
{
	va_list ap;

	walk();
	va_start(ap, n);
	assert_int_equal(w.sample.end, end);
	assert_int_equal(w.frames, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(walk_frame(&w, i)->pc, va_arg(ap, uint64_t));
	va_end(ap);
}

static void expect_cfa(uint32_t i, uint64_t cfa, unsigned flags)
{
	assert_int_equal(frame_cfa(walk_frame(&w, i)), cfa);
	assert_int_equal(frame_flags(walk_frame(&w, i)), flags);
}

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
	rules[0] = (struct xp_rule){ .kind = XP_RULE_DEREF_FP, .cfa_off = -8, .fp_off = 0, .ra = 1 };
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
	rules[1].cfa_off = 0x7fffffff;
	expect_walk(XP_END_READ, 2, IN(0), IN(1));
	regs.bp = 8;
	expect_walk(XP_END_READ, 1, IN(0));
}

static struct xp_rule reg_rule(uint8_t reg)
{
	return (struct xp_rule){ .kind = XP_RULE_REG, .reg = reg, .cfa_off = 8, .ra = 1,
				 .fp_off = XP_FP_SAME };
}

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
	for (uint8_t reg = 0; reg < 17; reg++) {
		rules[0] = sp_rule(0x30);
		rules[1] = reg_rule(reg);
		regs.r10 = regs.ax = AT(49);
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

/* A return address is looked up one byte before: the call may be its function's last instruction. */
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
		assert_int_equal(frame_cfa(walk_frame(&w, i)), AT(i + 1));
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
	expect_walk(XP_END_FP_ZERO, 1, IN(0));
	assert_int_equal(w.sample.flags, 0);
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

static void high_addresses_keep_their_flags_apart(void **state)
{
	(void)state;
	regs.bp = AT(20);
	regs.sp = AT(1);
	end_rule(1);
	stack[21] = IN(1);
	walk_begin(&w, &regs);
	set_cfa(&w, 0, 0);	/* a frame of its own is not needed: words 0 wraps to the last one */
	assert_int_equal(w.payload[XP_SAMPLE_WORDS - 1], 0);
	push_frame(&w, 5);
	set_cfa(&w, 0xffff123456789abcull, XP_FRAME_SIGNAL);
	assert_int_equal(frame_cfa(walk_frame(&w, 0)), 0x123456789abcull);
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
		cmocka_unit_test_setup(register_rules_at_the_leaf, setup),
		cmocka_unit_test_setup(register_rules_below_the_leaf, setup),
		cmocka_unit_test_setup(save_slots, setup),
		cmocka_unit_test_setup(signal_frames, setup),
		cmocka_unit_test_setup(registers_of_a_signal_frame, setup),
		cmocka_unit_test_setup(odd_signal_frames, setup),
		cmocka_unit_test_setup(bad_rules, setup),
		cmocka_unit_test_setup(return_addresses_are_looked_up_before, setup),
		cmocka_unit_test_setup(stacks_must_go_up, setup),
		cmocka_unit_test_setup(unreadable_and_zero_return_addresses, setup),
		cmocka_unit_test_setup(the_depth_is_limited, setup),
		cmocka_unit_test_setup(frames_follow_the_kernel_stack, setup),
		cmocka_unit_test_setup(frame_pointer_steps, setup),
		cmocka_unit_test_setup(mixed_steps, setup),
		cmocka_unit_test_setup(high_addresses_keep_their_flags_apart, setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
