/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/ruby/lines: tables of every shape against a search through all positions; hostile ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "runtime/ruby/lines.h"

#define BASE 0x10000ull
#define BODY 0x10000u		/* offsets in the memory */
#define SUCC 0x80000u
#define POSITIONS 0x90000u
#define SIZE 0xa0000u
#define CODE_MAX 4096u

static uint8_t memory[SIZE];
static uint8_t starts[CODE_MAX];	/* 1: a row begins at this word of code */
static uint32_t seed = 1;

static uint32_t rnd(uint32_t below)
{
	seed = seed * 1664525u + 1013904223u;
	return (seed >> 8) % below;
}

static void put(size_t at, const void *p, size_t n)
{
	memcpy(memory + at, p, n);
}

/* The bit vector as Ruby builds it, written from its definition. */
static void put_succ(uint32_t size)
{
	uint32_t rank = 0, x = 0;
	uint64_t word;

	memset(memory + SUCC, 0, POSITIONS - SUCC);
	for (; x < 54 && x < size; x++) {
		rank += starts[x];
		memcpy(&word, memory + SUCC + x / 9 * 8, 8);
		word |= (uint64_t)rank << (x % 9 * 7);
		put(SUCC + x / 9 * 8, &word, 8);
	}
	for (uint32_t block = 0; 54 + block * 512 < size; block++) {
		uint64_t small = 0, bits[8] = { 0 };
		uint32_t at = SUCC + 48 + block * 80, before = rank;

		put(at, &rank, 4);
		for (uint32_t i = 0; i < 512; i++) {
			uint32_t here = 54 + block * 512 + i;

			if (i % 64 == 0 && i)
				small |= (uint64_t)(rank - before) << ((i / 64 - 1) * 9);
			if (here < size && starts[here]) {
				bits[i / 64] |= 1ull << i % 64;
				rank++;
			}
		}
		put(at + 8, &small, 8);
		put(at + 16, bits, sizeof(bits));
	}
}

/* Rows where `starts` says, lines counted from 100; returns how many. */
static uint32_t put_rows(uint32_t size, uint32_t entry_size)
{
	uint32_t n = 0;

	for (uint32_t x = 0; x < size; x++) {
		uint32_t line = 100 + n;

		if (!starts[x])
			continue;
		put(BODY + n * entry_size, &line, 4);
		put(POSITIONS + n * 4, &x, 4);
		n++;
	}
	return n;
}

static void check_all(const struct xp_ruby_insns *insns, uint32_t size)
{
	struct xp_mem mem = xp_mem_of_array(BASE, memory, SIZE);
	struct xp_ruby_lines lines;
	uint32_t expected = XP_RUBY_NO_ROW;

	assert_int_equal(xp_ruby_lines_read(&lines, &mem, insns), 0);
	assert_int_equal(lines.n, insns->size);
	for (uint32_t x = 0; x < size; x++) {
		uint32_t row = xp_ruby_lines_row(&lines, x);

		if (starts[x])
			expected++;
		assert_int_equal(row, expected);
		if (row != XP_RUBY_NO_ROW)
			assert_int_equal(lines.lines[row], 100 + row);
	}
	xp_ruby_lines_release(&lines);
	assert_int_equal(lines.n, 0);
}

/* Both forms of the table, with a share of 1 / every of the words beginning a row. */
static void check_pattern(uint32_t size, uint32_t every, uint32_t entry_size)
{
	struct xp_ruby_insns insns = {
		.body = BASE + BODY, .succ = BASE + SUCC, .entry_size = entry_size,
		.code_size = size,
	};

	/* At least two rows: one is told by a rule of its own, tested elsewhere. */
	memset(starts, 0, sizeof(starts));
	for (uint32_t x = 0; x < size; x++)
		starts[x] = x == 0 || x + 1 == size || rnd(every) == 0;
	put_succ(size);
	insns.size = put_rows(size, entry_size);
	check_all(&insns, size);
	insns.succ = 0;
	insns.positions = BASE + POSITIONS;
	check_all(&insns, size);
}

static void random_tables(void **state)
{
	static const uint32_t sizes[] = { 2, 9, 10, 53, 54, 55, 63, 64, 117, 118, 119, 182, 565,
					  566, 567, 1077, 1078, 1079, 4096 };

	(void)state;
	for (size_t i = 0; i < sizeof(sizes) / sizeof(sizes[0]); i++) {
		for (uint32_t every = 1; every <= 600; every = every * 2 + 1)
			check_pattern(sizes[i], every, i % 2 ? 12 : 8);
	}
	for (int i = 0; i < 300; i++)
		check_pattern(2 + rnd(CODE_MAX - 2), 1 + rnd(40), 12);
}

static int read_with(struct xp_ruby_lines *lines, const struct xp_ruby_insns *insns)
{
	struct xp_mem mem = xp_mem_of_array(BASE, memory, SIZE);
	int r = xp_ruby_lines_read(lines, &mem, insns);

	if (r)
		assert_int_equal(lines->n, 0);
	return r;
}

static void one_row_and_none(void **state)
{
	struct xp_ruby_insns insns = { .body = BASE + BODY, .entry_size = 12, .code_size = 20 };
	struct xp_ruby_lines lines;
	uint32_t line = 42;

	(void)state;
	assert_int_equal(read_with(&lines, &insns), 0);
	assert_int_equal(xp_ruby_lines_row(&lines, 0), XP_RUBY_NO_ROW);
	put(BODY, &line, 4);
	insns.size = 1;
	assert_int_equal(read_with(&lines, &insns), 0);
	assert_int_equal(xp_ruby_lines_row(&lines, 19), 0);
	assert_int_equal(lines.lines[0], 42);
	xp_ruby_lines_release(&lines);
}

static void negative_line_is_none(void **state)
{
	struct xp_ruby_insns insns = { .body = BASE + BODY, .entry_size = 12, .size = 1,
				       .code_size = 4 };
	struct xp_ruby_lines lines;
	int32_t line = -3;

	(void)state;
	put(BODY, &line, 4);
	assert_int_equal(read_with(&lines, &insns), 0);
	assert_int_equal(lines.lines[0], 0);
	xp_ruby_lines_release(&lines);
}

static void hostile_tables(void **state)
{
	struct xp_ruby_insns good = { .body = BASE + BODY, .succ = BASE + SUCC, .size = 3,
				      .entry_size = 12, .code_size = 100 }, bad;
	struct xp_ruby_lines lines;
	uint32_t descending[3] = { 0, 9, 5 };

	(void)state;
	bad = good;
	bad.size = UINT32_MAX;
	assert_int_equal(read_with(&lines, &bad), 0);
	assert_int_equal(lines.n, 0);
	bad = good;
	bad.code_size = UINT32_MAX;
	assert_int_equal(read_with(&lines, &bad), 0);
	assert_int_equal(lines.n, 0);
	bad = good;
	bad.entry_size = 0;
	assert_int_equal(read_with(&lines, &bad), -EINVAL);
	bad = good;
	bad.succ = 1;
	assert_int_equal(read_with(&lines, &bad), -EFAULT);
	bad = good;
	bad.body = UINT64_MAX - 4;
	memset(memory + SUCC, 0xff, POSITIONS - SUCC);
	assert_int_equal(read_with(&lines, &bad), -EFAULT);
	bad = good;
	bad.succ = 0;
	assert_int_equal(read_with(&lines, &bad), -EINVAL);
	bad.positions = BASE + POSITIONS;
	put(POSITIONS, descending, sizeof(descending));
	assert_int_equal(read_with(&lines, &bad), -EINVAL);
	/* More rows than the bits tell of: those that they do tell of. */
	memset(starts, 0, sizeof(starts));
	starts[0] = starts[60] = 1;
	put_succ(100);
	assert_int_equal(read_with(&lines, &good), 0);
	assert_int_equal(lines.n, 2);
	assert_int_equal(xp_ruby_lines_row(&lines, 59), 0);
	assert_int_equal(xp_ruby_lines_row(&lines, 99), 1);
	xp_ruby_lines_release(&lines);
	/* No bits at all. */
	memset(memory + SUCC, 0, POSITIONS - SUCC);
	assert_int_equal(read_with(&lines, &good), -EINVAL);
}

static void random_bytes(void **state)
{
	struct xp_ruby_insns insns = { .body = BASE + BODY, .succ = BASE + SUCC, .entry_size = 12 };
	struct xp_ruby_lines lines;

	(void)state;
	for (int i = 0; i < 200; i++) {
		for (uint32_t at = SUCC; at < SUCC + 2048; at++)
			memory[at] = rnd(256);
		insns.size = 1 + rnd(3000);
		insns.code_size = rnd(12000);
		if (read_with(&lines, &insns))
			continue;
		for (uint32_t x = 0; x < insns.code_size; x++) {
			uint32_t row = xp_ruby_lines_row(&lines, x);

			assert_true(row < lines.n || row == XP_RUBY_NO_ROW);
		}
		xp_ruby_lines_release(&lines);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(random_tables),
		cmocka_unit_test(one_row_and_none),
		cmocka_unit_test(negative_line_is_none),
		cmocka_unit_test(hostile_tables),
		cmocka_unit_test(random_bytes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
