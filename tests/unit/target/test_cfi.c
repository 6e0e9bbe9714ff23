// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unwind rows: each call frame instruction by hand-made bytes and the exact rows they must give,
 * the rules between functions, and entries that are malformed. Real files: test_cfi_files.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>

#include "cfi_asm.h"
#include "cfi_cases.h"
#include "cfi_check.h"
#include "target/cfi.h"

static struct xp_cfi build_of(const struct cfi_asm *a)
{
	/* A block of exactly that size, so that the sanitizer sees reads past it. */
	struct xp_section section = { .data = malloc(a->b.len), .size = a->b.len,
				      .addr = CFI_ASM_VADDR };
	struct xp_cfi cfi;

	assert_false(a->b.failed);
	assert_non_null(section.data);
	memcpy((void *)section.data, a->b.data, a->b.len);
	assert_int_equal(xp_cfi_build_sections(&cfi, EM_X86_64, &section, NULL, NULL), 0);
	free((void *)section.data);
	return cfi;
}

static struct cfi_asm usual(void)
{
	struct cfi_asm a = { 0 };

	cfi_asm_cie(&a, "zR", BYTES(0x1b));
	return a;
}

static void instructions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		const struct insn_case *c = &cases[i];
		struct cfi_asm a = usual();
		struct xp_cfi cfi;
		size_t n = 1;

		cfi_asm_fde(&a, TEXT, LEN, c->insns, c->n);
		cfi = build_of(&a);
		if (cfi.bad_fdes)
			fail_msg("%s: FDE is malformed", c->name);
		assert_row(c->name, &cfi, 0, TEXT, c->rows[0].rule);
		for (; n < 6 && c->rows[n].off; n++)
			assert_row(c->name, &cfi, n, TEXT + c->rows[n].off, c->rows[n].rule);
		assert_row(c->name, &cfi, n, TEXT + LEN, (struct xp_rule)ONLY(NONE));
		if (cfi.rows.n != n + 1)
			fail_msg("%s: %zu rows", c->name, cfi.rows.n);
		assert_sound(&cfi);
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

/* A malformed FDE goes whole, the ones around it stay. */
static void malformed_instructions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_cases) / sizeof(*bad_cases); i++) {
		const struct bad_case *c = &bad_cases[i];
		struct cfi_asm a = usual();
		struct xp_cfi cfi;

		cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
		cfi_asm_fde(&a, TEXT + LEN, LEN, c->insns, c->n);
		cfi_asm_fde(&a, TEXT + 2 * LEN, LEN, BYTES(0x0e, 24));
		cfi = build_of(&a);
		if (cfi.nfdes != 3 || cfi.bad_fdes != 1)
			fail_msg("%s: %zu of %zu FDEs are malformed", c->name, cfi.bad_fdes,
				 cfi.nfdes);
		assert_int_equal(cfi.funcs.n, 2);
		assert_row(c->name, &cfi, 0, TEXT, (struct xp_rule)SP(8));
		assert_row(c->name, &cfi, 1, TEXT + LEN, (struct xp_rule)ONLY(NONE));
		assert_row(c->name, &cfi, 2, TEXT + 2 * LEN, (struct xp_rule)SP(24));
		assert_sound(&cfi);
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

static void set_loc(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;
	uint32_t to;

	(void)state;
	cfi_asm_fde(&a, TEXT, LEN, BYTES(0x01, 0, 0, 0, 0, 0x0e, 16));
	to = (uint32_t)(TEXT + 0x20 - (CFI_ASM_VADDR + a.b.len - 6));
	memcpy(a.b.data + a.b.len - 6, &to, sizeof(to));
	cfi = build_of(&a);
	assert_row("set_loc", &cfi, 0, TEXT, (struct xp_rule)SP(8));
	assert_row("set_loc", &cfi, 1, TEXT + 0x20, (struct xp_rule)SP(16));
	assert_row("set_loc", &cfi, 2, TEXT + LEN, (struct xp_rule)ONLY(NONE));
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

static void common_entries(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(cie_cases) / sizeof(*cie_cases); i++) {
		const struct cie_case *c = &cie_cases[i];
		struct cfi_asm a = { 0 };
		struct xp_cfi cfi;

		cfi_asm_raw_cie(&a, c->rest, c->n);
		cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
		cfi = build_of(&a);
		if (cfi.nfdes != 1 || cfi.bad_fdes != !c->ok)
			fail_msg("%s: %zu of %zu FDEs are malformed", c->name, cfi.bad_fdes,
				 cfi.nfdes);
		if (c->ok) {
			assert_row(c->name, &cfi, 0, TEXT, c->rule);
			assert_int_equal(cfi.bad_rows, c->rule.kind == XP_RULE_BAD);
		}
		assert_sound(&cfi);
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

static void code_alignment(void **state)
{
	struct cfi_asm a = { 0 };
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_raw_cie(&a, BYTES(1, 'z', 'R', 0, 4, 0x7c, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 2));
	cfi_asm_fde(&a, TEXT, LEN, BYTES(0x42, 0x86, 4));
	cfi = build_of(&a);
	assert_row("factors", &cfi, 0, TEXT, (struct xp_rule)SP(8));
	assert_row("factors", &cfi, 1, TEXT + 8, (struct xp_rule)RULE(SP, 0, 8, -16, 1, 0));
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

static void encodings(void **state)
{
	static const struct { uint8_t encoding; unsigned size; bool ok; } table[] = {
		{ 0x00, 8, true }, { 0x02, 2, true }, { 0x03, 4, true }, { 0x04, 8, true },
		{ 0x0a, 2, true }, { 0x0b, 4, true }, { 0x0c, 8, true }, { 0x01, 0, true },
		{ 0x09, 0, true }, { 0x10, 8, true }, { 0x13, 4, true }, { 0x14, 8, true },
		{ 0x1b, 4, true }, { 0x1c, 8, true }, { 0x11, 0, true }, { 0x05, 8, false },
		{ 0x0f, 8, false }, { 0x20, 8, false }, { 0x3b, 4, false }, { 0x40, 8, false },
		{ 0x50, 8, false }, { 0x9b, 4, false }, { 0x80, 8, false }, { 0xff, 8, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct cfi_asm a = { 0 };
		struct xp_cfi cfi;
		bool pcrel = (table[i].encoding & 0x70) == 0x10;
		uint64_t want = pcrel ? CFI_ASM_VADDR + TEXT : TEXT, start = want, len = LEN;

		cfi_asm_cie(&a, "zR", &table[i].encoding, 1);
		cfi_asm_open_fde(&a);
		if (pcrel)
			start -= CFI_ASM_VADDR + a.b.len;
		if (table[i].size) {
			xp_buf_put(&a.b, &start, table[i].size);
			xp_buf_put(&a.b, &len, table[i].size);
		} else {
			xp_buf_uleb(&a.b, start);
			xp_buf_put(&a.b, BYTES(LEN | 0x80, 0));
		}
		xp_buf_u8(&a.b, 0);
		cfi_asm_close(&a);
		cfi = build_of(&a);
		if (table[i].ok && (cfi.rows.n != 2 || cfi.rows.v[0].vaddr != want ||
				    cfi.rows.v[1].vaddr != want + LEN))
			fail_msg("encoding 0x%02x", table[i].encoding);
		if (!table[i].ok && cfi.bad_fdes != 1)
			fail_msg("encoding 0x%02x was taken", table[i].encoding);
		assert_sound(&cfi);
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

/* Without an augmentation addresses are plain and FDEs have no augmentation length. */
static void no_augmentation(void **state)
{
	struct cfi_asm a = { 0 };
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_cie(&a, "", NULL, 0);
	cfi_asm_open_fde(&a);
	xp_buf_u64(&a.b, TEXT);
	xp_buf_u64(&a.b, LEN);
	xp_buf_put(&a.b, BYTES(0x0e, 16));
	cfi_asm_close(&a);
	cfi = build_of(&a);
	assert_int_equal(cfi.bad_fdes, 0);
	assert_row("plain", &cfi, 0, TEXT, (struct xp_rule)SP(16));
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

/* The long form of lengths, with ids of four and of eight bytes. */
static void dwarf64(void **state)
{
	(void)state;
	for (unsigned extra = 0; extra <= 4; extra += 4) {
		static const uint8_t zeros[4];
		struct cfi_asm a = { .dwarf64 = true };
		struct xp_cfi cfi;

		cfi_asm_open(&a);
		xp_buf_u32(&a.b, 0);
		xp_buf_put(&a.b, zeros, extra);
		xp_buf_put(&a.b, BYTES(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY));
		cfi_asm_close(&a);
		cfi_asm_open_fde(&a);
		xp_buf_put(&a.b, zeros, extra);
		xp_buf_u32(&a.b, (uint32_t)(TEXT - (CFI_ASM_VADDR + a.b.len)));
		xp_buf_u32(&a.b, LEN);
		xp_buf_put(&a.b, BYTES(0, 0x0e, 24));
		cfi_asm_close(&a);
		cfi = build_of(&a);
		assert_int_equal(cfi.nfdes, 1);
		assert_int_equal(cfi.bad_fdes, 0);
		assert_row("64-bit form", &cfi, 0, TEXT, (struct xp_rule)SP(24));
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

/* Gaps up to 16 bytes are padding of the function before; longer ones have no rule. */
static void gaps(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&a, 0x1031, 0x20, BYTES(0x0e, 24));		/* 17 bytes after the next */
	cfi_asm_fde(&a, 0x1000, 0x20, BYTES(0x0e, 16));
	cfi_asm_fde(&a, 0x1061, 0x20, BYTES(0x0e, 32));		/* 16 bytes after the first */
	cfi_asm_fde(&a, 0x1081, 0x20, BYTES(0x0e, 32));		/* no gap, the same rule */
	cfi = build_of(&a);
	assert_int_equal(cfi.rows.n, 5);
	assert_row("gaps", &cfi, 0, 0x1000, (struct xp_rule)SP(16));
	assert_row("gaps", &cfi, 1, 0x1020, (struct xp_rule)ONLY(NONE));
	assert_row("gaps", &cfi, 2, 0x1031, (struct xp_rule)SP(24));
	assert_row("gaps", &cfi, 3, 0x1061, (struct xp_rule)SP(32));
	assert_row("gaps", &cfi, 4, 0x10a1, (struct xp_rule)ONLY(NONE));
	assert_int_equal(cfi.funcs.n, 4);
	assert_int_equal(cfi.rules.n, 4);
	assert_string_equal(cfi.source, ".eh_frame");

	assert_null(xp_cfi_rule_at(&cfi, 0xfff));
	assert_int_equal(xp_cfi_rule_at(&cfi, 0x1000)->cfa_off, 16);
	assert_int_equal(xp_cfi_rule_at(&cfi, 0x101f)->cfa_off, 16);
	assert_int_equal(xp_cfi_rule_at(&cfi, 0x1020)->kind, XP_RULE_NONE);
	assert_int_equal(xp_cfi_rule_at(&cfi, 0x1060)->cfa_off, 24);
	assert_int_equal(xp_cfi_rule_at(&cfi, UINT64_MAX)->kind, XP_RULE_NONE);
	assert_null(xp_cfi_func_at(&cfi, 0xfff));
	assert_ptr_equal(xp_cfi_func_at(&cfi, 0x1000), &cfi.funcs.v[0]);
	assert_ptr_equal(xp_cfi_func_at(&cfi, 0x1050), &cfi.funcs.v[1]);
	assert_null(xp_cfi_func_at(&cfi, 0x1051));
	assert_null(xp_cfi_func_at(&cfi, 0x1020));
	assert_ptr_equal(xp_cfi_func_at(&cfi, 0x10a0), &cfi.funcs.v[3]);
	assert_null(xp_cfi_func_at(&cfi, 0x10a1));
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

static void left_out(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;
	size_t discarded;

	(void)state;
	cfi_asm_fde(&a, 0x1010, 0x30, BYTES(0x0e, 24));		/* overlaps the next */
	cfi_asm_fde(&a, 0x1000, 0x20, BYTES(0x0e, 16));
	cfi_asm_fde(&a, 0x1000, 0x80, BYTES(0x0e, 32));		/* the same start, but later */
	cfi_asm_fde(&a, 0x2000, 0, BYTES(0x0e, 40));		/* no code */
	cfi_asm_fde(&a, 0, 0x4000, BYTES(0x0e, 48));		/* address 0 */
	cfi_asm_fde(&a, 0x3000, 0x4000, BYTES(0x0e, 48));	/* null pointer */
	discarded = a.b.len - 11;
	memset(a.b.data + discarded, 0, 4);
	cfi = build_of(&a);
	assert_int_equal(cfi.nfdes, 6);
	assert_int_equal(cfi.bad_fdes, 2);
	assert_int_equal(cfi.rows.n, 2);
	assert_row("overlap", &cfi, 0, 0x1000, (struct xp_rule)SP(16));
	assert_row("overlap", &cfi, 1, 0x1020, (struct xp_rule)ONLY(NONE));
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

static void nothing_to_read(void **state)
{
	struct cfi_asm a = usual();
	struct xp_section none = { 0 }, section;
	struct xp_cfi cfi;

	(void)state;
	assert_int_equal(xp_cfi_build_sections(&cfi, EM_X86_64, &none, NULL, NULL), 0);
	assert_int_equal(cfi.rows.n, 0);
	assert_null(xp_cfi_rule_at(&cfi, TEXT));
	assert_null(xp_cfi_func_at(&cfi, TEXT));
	xp_cfi_release(&cfi);
	cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
	section = (struct xp_section){ .data = a.b.data, .size = a.b.len, .addr = CFI_ASM_VADDR };
	assert_int_equal(xp_cfi_build_sections(&cfi, EM_RISCV, &section, NULL, NULL), 0);
	assert_int_equal(cfi.rows.n, 0);
	assert_null(cfi.source);
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

/* Pointers to the CIE, into its middle, before the section, into the FDE itself. */
static void common_entry_pointers(void **state)
{
	static const struct { uint32_t add; bool ok; } table[] = {
		{ 0, true }, { 1, false }, { 4, false }, { (uint32_t)-4, false },
		{ 0x10000, false }, { 0x80000000, false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct cfi_asm a = usual();
		struct xp_cfi cfi;
		uint32_t pointer;

		cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
		pointer = (uint32_t)(a.body - a.cie) + table[i].add;
		memcpy(a.b.data + a.body, &pointer, sizeof(pointer));
		cfi = build_of(&a);
		assert_int_equal(cfi.nfdes, 1);
		assert_int_equal(cfi.bad_fdes, !table[i].ok);
		assert_int_equal(cfi.funcs.n, table[i].ok);
		xp_cfi_release(&cfi);
		xp_buf_release(&a.b);
	}
}

/* Zero words between entries are skipped: linkers put several ends into one section. */
static void zero_lengths(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;

	(void)state;
	xp_buf_u32(&a.b, 0);
	cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
	xp_buf_u32(&a.b, 0);
	cfi = build_of(&a);
	assert_int_equal(cfi.funcs.n, 1);
	assert_int_equal(cfi.bad_fdes, 0);
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
}

/* More rows than the limit: that FDE goes, what fits stays, and the table ends as it should. */
static void too_many_rows(void **state)
{
	struct cfi_asm a = usual();
	struct xp_buf many = XP_BUF_INIT;
	struct xp_cfi cfi;

	(void)state;
	for (unsigned i = 0; i < 4000000; i++)
		xp_buf_put(&many, BYTES(0x41, 0x0e, (uint8_t)(8 + 8 * (i & 1))));
	cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
	cfi_asm_fde(&a, 0x10000, 5000000, many.data, many.len);
	cfi = build_of(&a);
	assert_int_equal(cfi.nfdes, 2);
	assert_int_equal(cfi.bad_fdes, 1);
	assert_int_equal(cfi.rows.n, 2);
	assert_sound(&cfi);
	xp_cfi_release(&cfi);
	xp_buf_release(&a.b);
	xp_buf_release(&many);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(malformed_instructions),
		cmocka_unit_test(set_loc),
		cmocka_unit_test(common_entries),
		cmocka_unit_test(code_alignment),
		cmocka_unit_test(encodings),
		cmocka_unit_test(no_augmentation),
		cmocka_unit_test(dwarf64),
		cmocka_unit_test(gaps),
		cmocka_unit_test(left_out),
		cmocka_unit_test(nothing_to_read),
		cmocka_unit_test(common_entry_pointers),
		cmocka_unit_test(zero_lengths),
		cmocka_unit_test(too_many_rows),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
