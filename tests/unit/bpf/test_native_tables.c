/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/native.bpf.c's look-ups: which mapping, which page, which row; then random tables, registers
 * and memory, which must never be read outside and always end with a reason.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "machine.h"

#define WALKS 100000
#define MANY_RANGES 20000

static struct xp_walk w;

static int read_nothing(void *to, uint32_t n, uint64_t addr)
{
	(void)to;
	(void)n;
	(void)addr;
	return -EFAULT;
}

static void *exactly(size_t n, size_t size)
{
	void *p = calloc(n, size);

	assert_non_null(p);
	return p;
}

/* Ranges i at 0x100000 * (i + 1), half as long, one after the other. */
static struct xp_range *make_ranges(uint32_t n)
{
	struct xp_range *r = exactly(n, sizeof(*r));

	for (uint32_t i = 0; i < n; i++) {
		r[i].start = 0x100000ull * (i + 1);
		r[i].end = r[i].start + 0x80000;
	}
	return r;
}

/* The range that a walk with this part of the pool finds, as an index; -1: none. */
static long range_of(uint32_t first, uint32_t count, uint64_t pc)
{
	memset(&w, 0, sizeof(w));
	w.proc.first = first;
	w.proc.count = count;
	if (!find_range(&w, pc))
		return -1;
	assert_true(w.range.start <= pc && pc < w.range.end);
	return (long)(w.range.start / 0x100000) - 1;
}

static void check_ranges(uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		uint64_t start = machine.ranges[i].start;

		assert_int_equal(range_of(first, count, start - 1), -1);
		assert_int_equal(range_of(first, count, start), i);
		assert_int_equal(range_of(first, count, start + 0x7ffff), i);
		assert_int_equal(range_of(first, count, start + 0x80000), -1);
	}
}

static void mappings_are_found(void **state)
{
	struct xp_range *r = make_ranges(64);

	(void)state;
	machine = (struct machine){ .ranges = r, .nranges = 64, .read = read_nothing };
	for (uint32_t count = 0; count < 64; count++)
		check_ranges(0, count);
	check_ranges(17, 9);
	check_ranges(63, 1);
	/* Others' ranges are not this process's. */
	assert_int_equal(range_of(17, 9, r[16].start), -1);
	assert_int_equal(range_of(17, 9, r[26].start), -1);
	assert_int_equal(range_of(0, 0, r[0].start), -1);
	assert_int_equal(range_of(0, 64, 0), -1);
	assert_int_equal(range_of(0, 64, UINT64_MAX), -1);
	free(r);
}

static void twenty_thousand_mappings(void **state)
{
	struct xp_range *r = make_ranges(MANY_RANGES);

	(void)state;
	machine = (struct machine){ .ranges = r, .nranges = MANY_RANGES, .read = read_nothing };
	check_ranges(0, MANY_RANGES);
	free(r);
	r = make_ranges(32767);			/* the most that are published for a process */
	machine = (struct machine){ .ranges = r, .nranges = 32767, .read = read_nothing };
	check_ranges(0, 32767);
	free(r);
}

/* A process entry that is wrong must not lead outside the pool. */
static void wrong_range_numbers(void **state)
{
	static const uint32_t odd[] = { 0, 1, 7, 8, 9, 0x7fffffff, 0x80000000, 0xfffffffe,
					0xffffffff };
	struct xp_range *r = make_ranges(8);

	(void)state;
	machine = (struct machine){ .ranges = r, .nranges = 8, .read = read_nothing };
	for (size_t i = 0; i < sizeof(odd) / sizeof(*odd); i++) {
		for (size_t k = 0; k < sizeof(odd) / sizeof(*odd); k++) {
			range_of(odd[i], odd[k], r[7].start);
			range_of(odd[i], odd[k], 0);
			range_of(odd[i], odd[k], UINT64_MAX);
		}
	}
	free(r);
}

static void the_last_mapping_is_remembered(void **state)
{
	struct xp_range *r = make_ranges(2);

	(void)state;
	machine = (struct machine){ .ranges = r, .nranges = 2, .read = read_nothing };
	memset(&w, 0, sizeof(w));
	w.proc.count = 2;
	assert_true(find_range(&w, r[1].start));
	machine.nranges = 0;			/* nothing to look up any more */
	assert_true(find_range(&w, r[1].start + 5));
	assert_false(find_range(&w, r[0].start));
	assert_true(find_range(&w, r[1].start));
	assert_false(find_range(&w, r[1].end));
	free(r);
}

static void ends_without_a_mapping(void **state)
{
	struct xp_range *r = make_ranges(1);
	struct xp_regs regs = { .ip = 0x1234, .sp = 0x1000 };

	(void)state;
	machine = (struct machine){ .ranges = r, .nranges = 1, .read = read_nothing };
	walk_begin(&w, &regs);
	xp_native_walk(&w);
	assert_int_equal(w.sample.end, XP_END_NO_MAPPING);
	assert_int_equal(w.frames, 1);
	assert_int_equal(walk_frame(&w, 0)->pc, 0x1234);
	walk_begin(&w, &regs);
	w.proc.count = 0;
	xp_native_walk(&w);
	assert_int_equal(w.sample.end, XP_END_NO_PROCESS);
	assert_int_equal(w.frames, 1);
	free(r);
}

/* The number of the rule at a virtual address by w.range, -1: none. */
static long rule_at(uint64_t vaddr)
{
	const struct xp_rule *rule = find_rule(&w, w.range.bias + vaddr);

	return rule ? (long)(rule - machine.rules) : -1;
}

static void rows_are_found(void **state)
{
	uint32_t *rows = exactly(2 * XP_BLOCK_ROWS, sizeof(*rows));
	struct xp_page *pages = exactly(4, sizeof(*pages));
	struct xp_rule *rules = exactly(20, sizeof(*rules));

	(void)state;
	machine = (struct machine){ rows, pages, rules, NULL, 2, 4, 20, 0, read_nothing, 0 };
	memset(&w, 0, sizeof(w));
	w.range = (struct xp_range){ 0x7000000, 0x7040000, 0x7000000, 0, 4 };
	rows[0] = XP_ROW(0, 1);
	rows[1] = XP_ROW(0x10, 2);
	rows[2] = XP_ROW(0xffff, 3);
	pages[0] = (struct xp_page){ 0, 3 };
	/* In the second block, at its very end. */
	pages[1] = (struct xp_page){ 2 * XP_BLOCK_ROWS - 2, 2 };
	rows[2 * XP_BLOCK_ROWS - 2] = XP_ROW(0x100, 4);
	rows[2 * XP_BLOCK_ROWS - 1] = XP_ROW(0x200, 19);
	/* page 2 has none; page 3 names a block that is not there */
	pages[3] = (struct xp_page){ 2 * XP_BLOCK_ROWS, 2 };
	assert_int_equal(rule_at(0), 1);
	assert_int_equal(rule_at(0xf), 1);
	assert_int_equal(rule_at(0x10), 2);
	assert_int_equal(rule_at(0xfffe), 2);
	assert_int_equal(rule_at(0xffff), 3);
	assert_int_equal(rule_at(0x100ff), -1);		/* before the first row of its page */
	assert_int_equal(rule_at(0x10100), 4);
	assert_int_equal(rule_at(0x1ffff), 19);
	assert_int_equal(rule_at(0x20000), -1);
	assert_int_equal(rule_at(0x30000), -1);
	assert_int_equal(rule_at(0x40000), -1);		/* behind the last page */
	assert_int_equal(rule_at(UINT64_MAX), -1);	/* below the bias */
	w.range.page = 4;				/* pages that are not there */
	assert_int_equal(rule_at(0), -1);
	w.range.page = UINT32_MAX;			/* wraps to page 0, which is there */
	assert_int_equal(rule_at(0x10010), 2);
	w.range.page = 0;
	w.range.npages = 0;
	assert_int_equal(rule_at(0), -1);
	rows[0] = XP_ROW(0, 20);			/* a rule that is not there */
	w.range.npages = 4;
	assert_int_equal(rule_at(0), -1);
	free(rows);
	free(pages);
	free(rules);
}

/* The most rows of a page: each of them is told apart. */
static void a_full_page(void **state)
{
	uint32_t *rows = exactly(XP_BLOCK_ROWS, sizeof(*rows));
	struct xp_page *pages = exactly(1, sizeof(*pages));
	struct xp_rule *rules = exactly(XP_RULES_MAX, sizeof(*rules));

	(void)state;
	machine = (struct machine){ rows, pages, rules, NULL, 1, 1, XP_RULES_MAX, 0,
				    read_nothing, 0 };
	memset(&w, 0, sizeof(w));
	w.range.npages = 1;
	pages[0] = (struct xp_page){ XP_BLOCK_ROWS - XP_PAGE_ROWS_MAX, XP_PAGE_ROWS_MAX };
	for (uint32_t i = 0; i < XP_PAGE_ROWS_MAX; i++)
		rows[pages[0].first + i] = XP_ROW(4 * i, 0xffff - i);
	for (uint32_t i = 0; i < XP_PAGE_ROWS_MAX; i++) {
		assert_int_equal(rule_at(4 * i), 0xffff - i);
		assert_int_equal(rule_at(4 * i + 3), 0xffff - i);
	}
	free(rows);
	free(pages);
	free(rules);
}

/* splitmix64 (Vigna): a fixed seed, so that a failure can be repeated. */
static uint64_t seed = 0x5eed;

static uint64_t rnd(void)
{
	uint64_t z = (seed += 0x9e3779b97f4a7c15ull);

	z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9ull;
	z = (z ^ (z >> 27)) * 0x94d049bb133111ebull;
	return z ^ (z >> 31);
}

#define HOST_TEXT 0x400000ull
#define HOST_STACK 0x7fff0000ull
#define HOST_WORDS 2048

static uint64_t memory[HOST_WORDS];

/* Something that may look like an address of code or stack, or anything. */
static uint64_t some_address(void)
{
	switch (rnd() % 8) {
	case 0:
		return rnd();
	case 1:
		return 0;
	case 2:
		return UINT64_MAX - rnd() % 32;
	case 3: case 4:
		return HOST_STACK + rnd() % sizeof(memory);
	default:
		return HOST_TEXT + rnd() % 0x80000;
	}
}

static int read_memory(void *to, uint32_t n, uint64_t addr)
{
	if (addr < HOST_STACK || addr - HOST_STACK > sizeof(memory) - n)
		return -EFAULT;
	memcpy(to, (const char *)memory + (addr - HOST_STACK), n);
	return 0;
}

struct hostile {
	uint32_t *rows;
	struct xp_page pages[8];
	struct xp_rule rules[64];
	struct xp_range ranges[16];
};

static struct xp_rule random_rule(bool tame)
{
	uint64_t bits[2] = { rnd(), rnd() };
	struct xp_rule rule;

	if (tame && rnd() % 8)
		return (struct xp_rule){ .kind = XP_RULE_SP, .ra = 1, .fp_off = XP_FP_SAME,
					 .cfa_off = 8 + 8 * (int32_t)(rnd() % 4) };
	memcpy(&rule, bits, sizeof(rule));
	if (rnd() % 8)
		rule.kind = (uint8_t)(rnd() % XP_RULE_KINDS);
	if (rnd() % 8)
		rule.cfa_off = (int32_t)(rnd() % 256) - 32;
	if (rnd() % 4)
		rule.ra = 1;
	if (rnd() % 4)
		rule.reg &= 15;
	if (rnd() % 2)
		rule.fp_off = rnd() % 2 ? XP_FP_SAME : XP_FP_LOST;
	return rule;
}

static struct xp_range random_range(bool tame, int i)
{
	struct xp_range r = {
		.start = HOST_TEXT + 0x8000ull * (uint64_t)i,
		.end = HOST_TEXT + 0x8000ull * (uint64_t)(i + 1),
		.bias = HOST_TEXT,
		.npages = 8,
	};

	if (tame)
		return r;
	if (!(rnd() % 8))
		r.start = rnd();
	if (!(rnd() % 8))
		r.end = rnd();
	if (!(rnd() % 4))
		r.bias = rnd();
	r.page = (uint32_t)(rnd() % 4 ? rnd() % 8 : rnd());
	r.npages = (uint32_t)(rnd() % 4 ? rnd() % 9 : rnd());
	return r;
}

/* Tame tables are in order, with random rules: else hardly a walk gets far. */
static void randomize_tables(struct hostile *h)
{
	bool tame = rnd() % 2;

	for (uint32_t i = 0; i < XP_BLOCK_ROWS; i++) {
		if (tame)
			h->rows[i] = XP_ROW(16 * i, rnd() & 63);
		else
			h->rows[i] = (uint32_t)rnd() & (i % 4 ? 0xffff003f : UINT32_MAX);
	}
	for (uint32_t i = 0; i < 8; i++) {
		h->pages[i] = (struct xp_page){ 4096 * i, 4096 };
		if (tame)
			continue;
		h->pages[i].first = (uint32_t)(rnd() % 4 ? rnd() % XP_BLOCK_ROWS : rnd());
		h->pages[i].count = (uint32_t)(rnd() % 4 ? rnd() % 20000 : rnd());
	}
	for (int i = 0; i < 64; i++)
		h->rules[i] = random_rule(tame);
	for (int i = 0; i < 16; i++)
		h->ranges[i] = random_range(tame, i);
}

static void check_hostile_walk(void)
{
	struct xp_regs regs;
	uint32_t before = rnd() % 2 ? 0 : XP_KERNEL_FRAMES_MAX;

	for (size_t i = 0; i < sizeof(regs) / 8; i++)
		((__u64 *)&regs)[i] = some_address();
	if (rnd() % 8) {
		regs.ip = HOST_TEXT + rnd() % 0x80000;
		regs.sp = HOST_STACK + rnd() % sizeof(memory) / 8 * 8;
	}
	walk_begin(&w, &regs);
	w.words = before;
	if (!(rnd() % 8)) {
		w.proc.first = (uint32_t)rnd();
		w.proc.count = (uint32_t)rnd();
	}
	machine.reads = 0;
	xp_native_walk(&w);
	assert_true(w.sample.end < XP_END_REASONS && w.sample.end != XP_END_NONE);
	assert_true(w.frames >= 1 && w.frames <= XP_NATIVE_FRAMES_MAX);
	assert_int_equal(w.words, before + 2 * w.frames);
	assert_true(w.words <= XP_SAMPLE_WORDS);
	assert_true(machine.reads <= 3ul * w.frames);
	assert_int_equal(walk_frame(&w, 0)->pc, regs.ip);
	for (uint32_t i = 0; i < w.frames; i++)
		assert_true(frame_flags(walk_frame(&w, i)) < 2 * XP_FRAME_BY_SP);
}

static void hostile_tables_and_memory(void **state)
{
	struct hostile *h = exactly(1, sizeof(*h));
	unsigned long ends[XP_END_REASONS] = { 0 }, deep = 0;

	(void)state;
	h->rows = exactly(XP_BLOCK_ROWS, sizeof(*h->rows));
	machine = (struct machine){ h->rows, h->pages, h->rules, h->ranges, 1, 8, 64, 16,
				    read_memory, 0 };
	for (int i = 0; i < WALKS; i++) {
		if (i % 200 == 0)
			randomize_tables(h);
		if (i % 10 == 0)
			for (int k = 0; k < HOST_WORDS; k++)
				memory[k] = some_address();
		check_hostile_walk();
		ends[w.sample.end]++;
		deep += w.frames > 3;
	}
	free(h->rows);
	free(h);
	/* The run was worth something: every end that these walks can have was seen. */
	for (int end = XP_END_OUTERMOST; end < XP_END_REASONS; end++) {
		if (end == XP_END_TAIL_CALLS || end == XP_END_EXITING || end == XP_END_32BIT ||
		    end == XP_END_STACK_SWITCH)
			assert_int_equal(ends[end], 0);
		else if (end != XP_END_TOO_DEEP && end != XP_END_NO_PROCESS)
			assert_true(ends[end] > 0);
	}
	assert_true(deep > WALKS / 100);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_are_found),
		cmocka_unit_test(twenty_thousand_mappings),
		cmocka_unit_test(wrong_range_numbers),
		cmocka_unit_test(the_last_mapping_is_remembered),
		cmocka_unit_test(ends_without_a_mapping),
		cmocka_unit_test(rows_are_found),
		cmocka_unit_test(a_full_page),
		cmocka_unit_test(hostile_tables_and_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
