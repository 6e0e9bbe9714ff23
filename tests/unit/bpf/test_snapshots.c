/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Stacks of live programs, recorded by tests/lib/snapshot.c, walked again: the pcs must be those
 * that libdwfl found when the program stood there. Then with each piece of memory missing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <glob.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"
#include "collect/raw.h"
#include "machine.h"

struct word {
	uint64_t addr, value;
};

static struct {
	struct xp_regs regs;
	XP_VEC(uint32_t) rows;
	XP_VEC(struct xp_page) pages;
	XP_VEC(struct xp_rule) rules;
	XP_VEC(struct xp_range) ranges;
	XP_VEC(struct word) memory;		/* sorted */
	XP_VEC(uint64_t) pcs;
	char end[32];
} snap;

static struct xp_walk w;
static size_t missing;			/* index into memory of a word that cannot be read */

static void release(void)
{
	xp_vec_release(&snap.rows);
	xp_vec_release(&snap.pages);
	xp_vec_release(&snap.rules);
	xp_vec_release(&snap.ranges);
	xp_vec_release(&snap.memory);
	xp_vec_release(&snap.pcs);
	memset(&snap, 0, sizeof(snap));
}

static uint64_t number(char **at)
{
	char *end;
	uint64_t value = strtoull(*at, &end, 16);

	if (end == *at)
		fail_msg("a number is missing: %.40s", *at);
	*at = end;
	return value;
}

static void add_range(char *at)
{
	struct xp_range *r = xp_vec_push(&snap.ranges);

	assert_non_null(r);
	r->start = number(&at);
	r->end = number(&at);
	r->bias = number(&at);
	r->npages = (uint32_t)number(&at);
	r->page = (uint32_t)snap.pages.n;
	assert_true(r->npages <= 65536);
	for (uint32_t i = 0; i < r->npages; i++)
		assert_non_null(xp_vec_push(&snap.pages));
}

static struct xp_page *page_at(char *at)
{
	uint64_t range = number(&at), n = number(&at);
	struct xp_page *page;

	assert_true(range < snap.ranges.n && n < snap.ranges.v[range].npages);
	page = &snap.pages.v[snap.ranges.v[range].page + n];
	page->first = (uint32_t)snap.rows.n;
	return page;
}

static void add_rule(char *at)
{
	struct xp_rule *r = xp_vec_push(&snap.rules);

	assert_non_null(r);
	r->kind = (uint8_t)number(&at);
	r->fp_off = (int16_t)number(&at);
	r->reg = (uint8_t)number(&at);
	r->cfa_off = (int32_t)number(&at);
	for (int i = 0; i < XP_SAVED_N; i++)
		r->save[i] = (uint8_t)number(&at);
	r->ra = (uint8_t)number(&at);
	r->deref_add = *at ? (uint16_t)number(&at) : 0;	/* older files lack it */
}

static void add_memory(char *at)
{
	uint64_t addr = number(&at);

	for (; *at == ' '; addr += 8) {
		struct word *word = xp_vec_push(&snap.memory);

		assert_non_null(word);
		assert_true(snap.memory.n < 2 || word[-1].addr < addr);
		word->addr = addr;
		word->value = number(&at);
	}
}

static void parse_line(char *line)
{
	static struct xp_page *page;
	char *at = strchr(line, ' ');
	size_t n = at ? (size_t)(at - line) : 0;

	if (!n || *line == '#')
		return;
	if (!strncmp(line, "regs", n)) {
		for (int i = 0; i < XP_REGS_N; i++)
			((__u64 *)&snap.regs)[i] = number(&at);
	} else if (!strncmp(line, "range", n)) {
		add_range(at);
	} else if (!strncmp(line, "page", n)) {
		page = page_at(at);
	} else if (!strncmp(line, "row", n)) {
		uint32_t *row = xp_vec_push(&snap.rows);

		assert_true(row && page);
		*row = (uint32_t)number(&at);
		page->count++;
	} else if (!strncmp(line, "rule", n)) {
		add_rule(at);
	} else if (!strncmp(line, "mem", n)) {
		add_memory(at);
	} else if (!strncmp(line, "pc", n)) {
		uint64_t *pc = xp_vec_push(&snap.pcs);

		assert_non_null(pc);
		*pc = number(&at);
	} else if (!strncmp(line, "end", n)) {
		snprintf(snap.end, sizeof(snap.end), "%s", at + 1);
	} else {
		fail_msg("a line of no kind: %.40s", line);
	}
}

static int find_word(uint64_t addr, uint64_t *value)
{
	size_t lo = 0, hi = snap.memory.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (snap.memory.v[mid].addr <= addr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || lo - 1 == missing || snap.memory.v[lo - 1].addr != addr)
		return -EFAULT;
	*value = snap.memory.v[lo - 1].value;
	return 0;
}

static int read_snapshot(void *to, uint32_t n, uint64_t addr)
{
	uint64_t value;

	if (addr % 8 || n % 8)
		return -EFAULT;
	for (uint32_t i = 0; i < n; i += 8) {
		if (find_word(addr + i, &value))
			return -EFAULT;
		memcpy((char *)to + i, &value, 8);
	}
	return 0;
}

static void load(const char *path)
{
	struct xp_buf text = XP_BUF_INIT;
	char *save, *line;

	release();
	assert_int_equal(xp_read_file(path, &text, 1 << 20), 0);
	xp_buf_u8(&text, 0);
	assert_false(text.failed);
	for (line = strtok_r((char *)text.data, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		parse_line(line);
	xp_buf_release(&text);
	/* The walker sees whole blocks. */
	assert_int_equal(xp_vec_reserve(&snap.rows, XP_BLOCK_ROWS), 0);
	assert_true(snap.rows.n < XP_BLOCK_ROWS && snap.rows.n > 0);
	machine = (struct machine){
		snap.rows.v, snap.pages.v, snap.rules.v, snap.ranges.v, 1,
		(uint32_t)snap.pages.n, (uint32_t)snap.rules.n, (uint32_t)snap.ranges.n,
		read_snapshot, 0,
	};
}

static void walk(void)
{
	walk_begin(&w, &snap.regs);
	xp_native_walk(&w);
}

/* Without one word the stack is cut or, where that is not needed, the same; never another. */
static void check_with_missing_memory(const char *path)
{
	size_t needed = 0;

	for (missing = 0; missing < snap.memory.n; missing++) {
		walk();
		assert_true(w.frames >= 1 && w.frames <= snap.pcs.n);
		for (uint32_t i = 0; i < w.frames; i++)
			assert_int_equal(walk_frame(&w, i)->pc, snap.pcs.v[i]);
		if (w.frames < snap.pcs.n) {
			assert_int_equal(w.sample.end, XP_END_READ);
			needed++;
		}
	}
	missing = SIZE_MAX;
	/* A return address for each caller at least. */
	if (needed < snap.pcs.n - 1)
		fail_msg("%s: only %zu words are needed", path, needed);
}

static void check_file(const char *path)
{
	missing = SIZE_MAX;
	load(path);
	walk();
	assert_string_equal(xp_end_name(w.sample.end), snap.end);
	for (uint32_t i = 0; i < w.frames && i < snap.pcs.n; i++)
		if (walk_frame(&w, i)->pc != snap.pcs.v[i])
			fail_msg("%s: frame %u is %llx, not %llx", path, i,
				 (unsigned long long)walk_frame(&w, i)->pc,
				 (unsigned long long)snap.pcs.v[i]);
	assert_int_equal(w.frames, snap.pcs.n);
	check_with_missing_memory(path);
	release();
}

static void recorded_stacks(void **state)
{
	const char *top = getenv("top_srcdir");
	char pattern[4096];
	glob_t files;

	(void)state;
	snprintf(pattern, sizeof(pattern), "%s/tests/snapshots/*.txt", top ? top : ".");
	assert_int_equal(glob(pattern, 0, NULL, &files), 0);
	assert_true(files.gl_pathc >= 8);
	for (size_t i = 0; i < files.gl_pathc; i++)
		check_file(files.gl_pathv[i]);
	globfree(&files);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(recorded_stacks),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
