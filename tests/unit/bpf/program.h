/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A small hand-made program to be walked: one mapping of two pages at TEXT, whose functions lie 256
 * bytes apart and have a rule each, and a stack.
 */
#ifndef XP_TEST_PROGRAM_H
#define XP_TEST_PROGRAM_H

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

static inline int read_stack(void *to, uint32_t n, uint64_t addr)
{
	if (addr < STACK || addr - STACK > sizeof(stack) - n)
		return -EFAULT;
	memcpy(to, (const char *)stack + (addr - STACK), n);
	return 0;
}

/* Function i (from 0, at FUNC(i)) gets rule i; all begin as XP_RULE_NONE. */
static inline int setup(void **state)
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

static inline struct xp_rule sp_rule(int32_t cfa_off)
{
	return (struct xp_rule){ .kind = XP_RULE_SP, .cfa_off = cfa_off, .fp_off = XP_FP_SAME,
				 .ra = 1 };
}

static inline struct xp_rule fp_rule(void)
{
	return (struct xp_rule){ .kind = XP_RULE_FP, .cfa_off = 16, .fp_off = -16, .ra = 1 };
}

static inline void end_rule(int i)
{
	rules[i] = (struct xp_rule){ .kind = XP_RULE_END };
}

static inline void walk(void)
{
	walk_begin(&w, &regs);
	xp_native_walk(&w);
	assert_int_equal(w.words, 2 * w.frames);
}

/* The walk gives these pcs, leaf first, and this end. */
static inline void expect_walk(enum xp_end end, uint32_t n, ...)
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

/* The frame has these flags; the next one's stack pointer is its CFA. */
static inline void expect_cfa(uint32_t i, uint64_t cfa, unsigned flags)
{
	const struct xp_raw_frame *next = i + 1 < w.frames ? walk_frame(&w, i + 1) : NULL;

	assert_int_equal(frame_flags(walk_frame(&w, i)) & ~XP_FRAME_BY_SP, flags);
	if (next && !(flags & XP_FRAME_SIGNAL))
		assert_int_equal(frame_sp(next), cfa);
}

static inline struct xp_rule reg_rule(uint8_t reg)
{
	return (struct xp_rule){ .kind = XP_RULE_REG, .reg = reg, .cfa_off = 8, .ra = 1,
				 .fp_off = XP_FP_SAME };
}

#endif
