// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unwind rows from .debug_frame: its forms by hand-made bytes, and which functions are taken from
 * it when there is an .eh_frame as well. Real files: test_cfi_files.c.
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

/* A block of exactly that size, so that the sanitizer sees reads past it. */
static struct xp_section section_of(const struct cfi_asm *a)
{
	struct xp_section section = { .data = malloc(a->b.len), .size = a->b.len,
				      .addr = a->debug_frame ? 0 : CFI_ASM_VADDR };

	assert_false(a->b.failed);
	assert_non_null(section.data);
	memcpy((void *)section.data, a->b.data, a->b.len);
	return section;
}

/* From one section or both; their contents are released. */
static struct xp_cfi build_of(struct cfi_asm *eh, struct cfi_asm *debug)
{
	struct xp_section eh_frame = { 0 }, debug_frame = section_of(debug);
	struct xp_cfi cfi;

	if (eh)
		eh_frame = section_of(eh);
	assert_int_equal(xp_cfi_build_sections(&cfi, EM_X86_64, eh ? &eh_frame : NULL, &debug_frame,
					       NULL), 0);
	assert_sound(&cfi);
	free((void *)eh_frame.data);
	free((void *)debug_frame.data);
	if (eh)
		xp_buf_release(&eh->b);
	xp_buf_release(&debug->b);
	return cfi;
}

static struct cfi_asm usual(void)
{
	struct cfi_asm a = { .debug_frame = true };

	cfi_asm_cie(&a, "", NULL, 0);
	return a;
}

static struct cfi_asm usual_eh(void)
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
		cfi = build_of(NULL, &a);
		assert_row(c->name, &cfi, 0, TEXT, c->rows[0].rule);
		for (; n < 6 && c->rows[n].off; n++)
			assert_row(c->name, &cfi, n, TEXT + c->rows[n].off, c->rows[n].rule);
		assert_int_equal(cfi.rows.n, n + 1);
		assert_string_equal(cfi.source, ".debug_frame");
		xp_cfi_release(&cfi);
	}
}

static void malformed_instructions(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(bad_cases) / sizeof(*bad_cases); i++) {
		const struct bad_case *c = &bad_cases[i];
		struct cfi_asm a = usual();
		struct xp_cfi cfi;

		cfi_asm_fde(&a, TEXT, LEN, c->insns, c->n);
		cfi = build_of(NULL, &a);
		if (cfi.nfdes != 1 || cfi.bad_fdes != 1 || cfi.rows.n || cfi.source)
			fail_msg("%s was taken", c->name);
		xp_cfi_release(&cfi);
	}
}

/* The operand of set_loc is an address. */
static void set_loc(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&a, TEXT, LEN, BYTES(0x01, 0x20, 0x10, 0, 0, 0, 0, 0, 0, 0x0e, 16));
	cfi = build_of(NULL, &a);
	assert_row("set_loc", &cfi, 0, TEXT, (struct xp_rule)SP(8));
	assert_row("set_loc", &cfi, 1, TEXT + 0x20, (struct xp_rule)SP(16));
	xp_cfi_release(&cfi);
}

static const struct cie_case debug_cies[] = {
	{ "version 1", CIE(1, 0, 1, 0x78, 16, BODY), true, SP(8) },
	{ "version 3", CIE(3, 0, 1, 0x78, 0x90, 0, BODY), true, SP(8) },
	{ "version 4", CIE(4, 0, 8, 0, 1, 0x78, 16, BODY), true, SP(8) },
	{ "version 4 of 32 bits", CIE(4, 0, 4, 0, 1, 0x78, 16, BODY), false, SP(8) },
	{ "version 4 with segments", CIE(4, 0, 8, 4, 1, 0x78, 16, BODY), false, SP(8) },
	{ "version 5", CIE(5, 0, 8, 0, 1, 0x78, 16, BODY), false, SP(8) },
	{ "S, signal frame",
	  CIE(1, 'S', 0, 1, 0x78, 16, 0x0f, 4, 0x77, 0xa0, 1, 6, 0x10, 16, 3, 0x77, 0xa8, 1), true,
	  ONLY(SIGNAL) },
	{ "S, ordinary places", CIE(1, 'S', 0, 1, 0x78, 16, BODY), true, SP(8) },
	{ "R without data", CIE(1, 'R', 0, 1, 0x78, 16, BODY), false, SP(8) },
	{ "letter not known", CIE(1, 'a', 'r', 'm', 0, 1, 0x78, 16, BODY), false, SP(8) },
	{ "relative addresses", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY), false, SP(8) },
	{ "outermost", CIE(1, 0, 1, 0x78, 16, BODY, 7, 16), true, ONLY(END) },
	{ "cut off", CIE(1, 0, 1), false, SP(8) },
	{ "empty", .ok = false },
};

static void common_entries(void **state)
{
	(void)state;
	for (size_t i = 0; i < 2 * sizeof(debug_cies) / sizeof(*debug_cies); i++) {
		const struct cie_case *c = &debug_cies[i / 2];
		struct cfi_asm a = { .debug_frame = true, .dwarf64 = i % 2 };
		struct xp_cfi cfi;

		cfi_asm_raw_cie(&a, c->rest, c->n);
		cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
		cfi = build_of(NULL, &a);
		if (cfi.nfdes != 1 || cfi.bad_fdes != !c->ok)
			fail_msg("%s: %zu of %zu FDEs are malformed", c->name, cfi.bad_fdes,
				 cfi.nfdes);
		if (c->ok)
			assert_row(c->name, &cfi, 0, TEXT, c->rule);
		xp_cfi_release(&cfi);
	}
}

/* An encoding without a relation changes the size of addresses; the FDE has a length of data. */
static void encoded_addresses(void **state)
{
	struct cfi_asm a = { .debug_frame = true };
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_cie(&a, "zR", BYTES(0x03));
	cfi_asm_open_fde(&a);
	xp_buf_u32(&a.b, TEXT);
	xp_buf_u32(&a.b, LEN);
	xp_buf_put(&a.b, BYTES(1, 0xff, 0x0e, 16));
	cfi_asm_close(&a);
	cfi = build_of(NULL, &a);
	assert_row("udata4", &cfi, 0, TEXT, (struct xp_rule)SP(16));
	xp_cfi_release(&cfi);
}

/* Pointers count from the section's start: to the CIE, into it, to the FDE, past the end. */
static void common_entry_pointers(void **state)
{
	static const struct { int64_t add; bool ok; } table[] = {
		{ 0, true }, { 1, false }, { 4, false }, { -4, false }, { 20, false },
		{ 0x10000, false }, { 0x80000000, false }, { 0xfffffff0, false },
	};

	(void)state;
	for (size_t i = 0; i < 2 * sizeof(table) / sizeof(*table); i++) {
		struct cfi_asm a = { .debug_frame = true, .dwarf64 = i % 2 };
		struct xp_cfi cfi;
		uint64_t pointer;

		xp_buf_put(&a.b, BYTES(0, 0, 0, 0));	/* a length of 0, which is skipped */
		cfi_asm_cie(&a, "", NULL, 0);
		cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
		pointer = a.cie + (uint64_t)table[i / 2].add;
		memcpy(a.b.data + a.body, &pointer, a.dwarf64 ? 8 : 4);
		cfi = build_of(NULL, &a);
		assert_int_equal(cfi.nfdes, 1);
		assert_int_equal(cfi.bad_fdes, !table[i / 2].ok);
		xp_cfi_release(&cfi);
	}
}

/* A CIE may follow its FDE. */
static void common_entry_after(void **state)
{
	struct cfi_asm a = { .debug_frame = true };
	struct xp_cfi cfi;

	(void)state;
	a.cie = 24;		/* where it will be: 4 of length, 4 of id, 16 of addresses */
	cfi_asm_fde(&a, TEXT, LEN, NULL, 0);
	cfi_asm_cie(&a, "", NULL, 0);
	cfi = build_of(NULL, &a);
	assert_int_equal(cfi.bad_fdes, 0);
	assert_row("after", &cfi, 0, TEXT, (struct xp_rule)SP(8));
	xp_cfi_release(&cfi);
}

static void cut_off(void **state)
{
	struct cfi_asm whole = usual();

	(void)state;
	cfi_asm_fde(&whole, TEXT, LEN, BYTES(0x0e, 16));
	for (size_t n = 1; n < whole.b.len; n++) {
		struct cfi_asm a = { .debug_frame = true };
		struct xp_cfi cfi;

		xp_buf_put(&a.b, whole.b.data, n);
		cfi = build_of(NULL, &a);
		assert_int_equal(cfi.rows.n, 0);
		xp_cfi_release(&cfi);
	}
	xp_buf_release(&whole.b);
}

/* What the linker has discarded, empty functions, and the same function twice. */
static void left_out(void **state)
{
	struct cfi_asm a = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&a, 0, 0x5000, BYTES(0x0e, 48));
	cfi_asm_fde(&a, TEXT, LEN, BYTES(0x0e, 16));
	cfi_asm_fde(&a, TEXT, 0, BYTES(0x0e, 24));
	cfi_asm_fde(&a, TEXT, LEN, BYTES(0x0e, 32));
	cfi_asm_fde(&a, UINT64_MAX, LEN, BYTES(0x0e, 40));	/* malformed: wraps round */
	cfi_asm_fde(&a, TEXT + 1, LEN, BYTES(0x0e, 40));	/* overlaps */
	cfi = build_of(NULL, &a);
	assert_int_equal(cfi.nfdes, 6);
	assert_int_equal(cfi.bad_fdes, 2);
	assert_int_equal(cfi.rows.n, 2);
	assert_row("left out", &cfi, 0, TEXT, (struct xp_rule)SP(16));
	xp_cfi_release(&cfi);
}

/* .debug_frame has what .eh_frame has not: before, between and after its functions. */
static void gaps_are_filled(void **state)
{
	struct cfi_asm eh = usual_eh(), debug = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&eh, 0x2000, 0x100, BYTES(0x0e, 16));
	cfi_asm_fde(&eh, 0x3000, 0x100, BYTES(0x0e, 24));
	cfi_asm_fde(&debug, 0x1f00, 0x100, BYTES(0x0e, 32));
	cfi_asm_fde(&debug, 0x2000, 0x100, BYTES(0x0e, 40));	/* the same as above */
	cfi_asm_fde(&debug, 0x2108, 0x10, BYTES(0x0e, 40));
	cfi_asm_fde(&debug, 0x3000, 0x80, BYTES(0x0e, 48));	/* a part of it */
	cfi_asm_fde(&debug, 0x3080, 0x80, BYTES(0x0e, 48));
	cfi_asm_fde(&debug, 0x4000, 0x10, BYTES(0x0e, 48));
	cfi = build_of(&eh, &debug);
	assert_int_equal(cfi.nfdes, 8);
	assert_int_equal(cfi.bad_fdes, 0);
	assert_int_equal(cfi.funcs.n, 5);
	assert_int_equal(cfi.rows.n, 8);
	assert_row("filled", &cfi, 0, 0x1f00, (struct xp_rule)SP(32));
	assert_row("filled", &cfi, 1, 0x2000, (struct xp_rule)SP(16));
	assert_row("filled", &cfi, 2, 0x2108, (struct xp_rule)SP(40));
	assert_row("filled", &cfi, 3, 0x2118, (struct xp_rule)ONLY(NONE));
	assert_row("filled", &cfi, 4, 0x3000, (struct xp_rule)SP(24));
	assert_row("filled", &cfi, 5, 0x3100, (struct xp_rule)ONLY(NONE));
	assert_row("filled", &cfi, 6, 0x4000, (struct xp_rule)SP(48));
	assert_row("filled", &cfi, 7, 0x4010, (struct xp_rule)ONLY(NONE));
	assert_string_equal(cfi.source, ".eh_frame+.debug_frame");
	xp_cfi_release(&cfi);
}

static void eh_frame_wins(void **state)
{
	struct cfi_asm eh = usual_eh(), debug = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&eh, 0x2000, 0x100, BYTES(0x0e, 16));
	cfi_asm_fde(&debug, 0x1000, 0x1001, BYTES(0x0e, 32));	/* runs into it */
	cfi_asm_fde(&debug, 0x20ff, 0x100, BYTES(0x0e, 40));	/* begins in it */
	cfi = build_of(&eh, &debug);
	assert_int_equal(cfi.bad_fdes, 2);
	assert_int_equal(cfi.rows.n, 2);
	assert_row("wins", &cfi, 0, 0x2000, (struct xp_rule)SP(16));
	assert_string_equal(cfi.source, ".eh_frame");
	xp_cfi_release(&cfi);
}

/* A function whose instructions are malformed in .eh_frame. */
static void instead_of_malformed(void **state)
{
	struct cfi_asm eh = usual_eh(), debug = usual();
	struct xp_cfi cfi;

	(void)state;
	cfi_asm_fde(&eh, TEXT, LEN, BYTES(0x0e, 16, 0x41, 0x3f));
	cfi_asm_fde(&debug, TEXT, LEN, BYTES(0x0e, 24));
	cfi = build_of(&eh, &debug);
	assert_int_equal(cfi.bad_fdes, 1);
	assert_row("instead", &cfi, 0, TEXT, (struct xp_rule)SP(24));
	assert_string_equal(cfi.source, ".debug_frame");
	xp_cfi_release(&cfi);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(instructions),
		cmocka_unit_test(malformed_instructions),
		cmocka_unit_test(set_loc),
		cmocka_unit_test(common_entries),
		cmocka_unit_test(encoded_addresses),
		cmocka_unit_test(common_entry_pointers),
		cmocka_unit_test(common_entry_after),
		cmocka_unit_test(cut_off),
		cmocka_unit_test(left_out),
		cmocka_unit_test(gaps_are_filled),
		cmocka_unit_test(eh_frame_wins),
		cmocka_unit_test(instead_of_malformed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
