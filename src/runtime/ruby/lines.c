// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Lines of one iseq. Ruby keeps the positions of its instruction table as ranks of a bit vector
 * (iseq.c, succ_index_table_create() and succ_index_lookup(), since 2.5); here they are counted
 * back into a plain sorted array, which a binary search answers from.
 */
#include "runtime/ruby/lines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* The first 54 positions: ranks of 7 bits, nine in a word. */
#define IMMEDIATE 54
#define RANKS_IN_WORD 9
#define IMMEDIATE_BYTES (IMMEDIATE / RANKS_IN_WORD * 8)

struct block {			/* the next 512 positions each */
	uint32_t rank, pad;	/* set bits before this block */
	uint64_t small_ranks;	/* 7 times 9 bits: set bits of the block before its word 1 to 7 */
	uint64_t bits[8];
};

_Static_assert(sizeof(struct block) == 80, "as the process has it");

/* Rows up to and including this count begin at `position`, which nothing before reached. */
static void fill(struct xp_ruby_lines *lines, uint32_t *known, uint32_t count, uint32_t position)
{
	while (*known < count && *known < lines->n)
		lines->positions[(*known)++] = position;
}

static void fill_immediate(struct xp_ruby_lines *lines, uint32_t *known, const uint64_t *words,
			   uint32_t code_size)
{
	for (uint32_t x = 0; x < IMMEDIATE && x < code_size; x++)
		fill(lines, known, words[x / RANKS_IN_WORD] >> (x % RANKS_IN_WORD * 7) & 0x7f, x);
}

/* Only the words with the first bits of new rows are looked at bit by bit. */
static void fill_block(struct xp_ruby_lines *lines, uint32_t *known, const struct block *block,
		       uint32_t first, uint32_t code_size)
{
	for (unsigned w = 0; w < 8; w++) {
		uint32_t rank = block->rank +
				(w ? block->small_ranks >> ((w - 1) * 9) & 0x1ff : 0);
		uint64_t bits = block->bits[w];

		for (; bits; bits &= bits - 1) {
			uint32_t x = first + w * 64 + __builtin_ctzll(bits);

			if (x < code_size)
				fill(lines, known, ++rank, x);
		}
	}
}

static int read_succ(struct xp_ruby_lines *lines, const struct xp_mem *mem,
		     const struct xp_ruby_insns *insns)
{
	uint64_t immediate[IMMEDIATE_BYTES / 8], at = insns->succ + IMMEDIATE_BYTES;
	uint32_t known = 0, blocks = 0, first = IMMEDIATE;
	struct block piece[16];
	int r = xp_mem_read(mem, insns->succ, immediate, sizeof(immediate));

	if (r)
		return r;
	fill_immediate(lines, &known, immediate, insns->code_size);
	if (insns->code_size > IMMEDIATE)
		blocks = (insns->code_size - IMMEDIATE + 511) / 512;
	while (blocks) {
		uint32_t n = blocks < 16 ? blocks : 16;

		r = xp_mem_read(mem, at, piece, n * sizeof(piece[0]));
		if (r)
			return r;
		for (uint32_t i = 0; i < n; i++, first += 512)
			fill_block(lines, &known, &piece[i], first, insns->code_size);
		at += n * sizeof(piece[0]);
		blocks -= n;
	}
	/* Ruby's own lookup never answers a row whose bit is missing. */
	lines->n = known;
	return known ? 0 : -EINVAL;
}

static int read_positions(struct xp_ruby_lines *lines, const struct xp_mem *mem,
			  const struct xp_ruby_insns *insns)
{
	int r;

	if (lines->n == 1) {
		lines->positions[0] = 0;
		return 0;
	}
	if (insns->succ)
		return read_succ(lines, mem, insns);
	if (!insns->positions)
		return -EINVAL;
	r = xp_mem_read(mem, insns->positions, lines->positions, lines->n * 4ul);
	for (uint32_t i = 1; !r && i < lines->n; i++) {
		if (lines->positions[i] < lines->positions[i - 1])
			r = -EINVAL;
	}
	return r;
}

static int read_lines(struct xp_ruby_lines *lines, const struct xp_mem *mem,
		      const struct xp_ruby_insns *insns)
{
	uint8_t piece[4096];
	uint32_t per = sizeof(piece) / insns->entry_size;

	for (uint32_t i = 0; i < lines->n; i += per) {
		uint32_t n = lines->n - i < per ? lines->n - i : per;
		int r = xp_mem_read(mem, insns->body + (uint64_t)i * insns->entry_size, piece,
				    (size_t)n * insns->entry_size);

		if (r)
			return r;
		for (uint32_t k = 0; k < n; k++) {
			int32_t line;

			memcpy(&line, piece + k * insns->entry_size, sizeof(line));
			lines->lines[i + k] = line > 0 ? line : 0;
		}
	}
	return 0;
}

int xp_ruby_lines_read(struct xp_ruby_lines *lines, const struct xp_mem *mem,
		       const struct xp_ruby_insns *insns)
{
	int r;

	*lines = (struct xp_ruby_lines)XP_RUBY_LINES_INIT;
	if (!insns->size || insns->size > XP_RUBY_LINES_MAX || insns->code_size > XP_RUBY_CODE_MAX)
		return 0;
	if (insns->entry_size < 4 || insns->entry_size > 64)
		return -EINVAL;
	lines->positions = calloc(insns->size, 2 * sizeof(uint32_t));
	if (!lines->positions)
		return -ENOMEM;
	lines->n = insns->size;
	lines->lines = lines->positions + insns->size;
	r = read_positions(lines, mem, insns);
	if (!r)
		r = read_lines(lines, mem, insns);
	if (r)
		xp_ruby_lines_release(lines);
	return r;
}

void xp_ruby_lines_release(struct xp_ruby_lines *lines)
{
	free(lines->positions);
	*lines = (struct xp_ruby_lines)XP_RUBY_LINES_INIT;
}

uint32_t xp_ruby_lines_row(const struct xp_ruby_lines *lines, uint32_t position)
{
	uint32_t from = 0, to = lines->n;

	while (from < to) {
		uint32_t middle = from + (to - from) / 2;

		if (lines->positions[middle] <= position)
			from = middle + 1;
		else
			to = middle;
	}
	return from ? from - 1 : XP_RUBY_NO_ROW;
}
