// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz entry of the reader of call frame information: the input is the bytes of .eh_frame, of
 * .debug_frame, and of both, one half each. Besides not crashing, the table must be sorted, without
 * equal neighbours, and end in a row without a rule.
 */
#include <elf.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include "target/cfi.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_rows(const struct xp_cfi *cfi)
{
	for (size_t i = 0; i < cfi->rows.n; i++) {
		check(cfi->rows.v[i].rule < cfi->rules.n);
		check(cfi->rules.v[cfi->rows.v[i].rule].kind < XP_RULE_KINDS);
		if (i == 0)
			continue;
		check(cfi->rows.v[i - 1].vaddr < cfi->rows.v[i].vaddr);
		check(cfi->rows.v[i - 1].rule != cfi->rows.v[i].rule);
	}
	if (cfi->rows.n)
		check(cfi->rules.v[cfi->rows.v[cfi->rows.n - 1].rule].kind == XP_RULE_NONE);
}

static void check_funcs(const struct xp_cfi *cfi)
{
	for (size_t i = 0; i < cfi->funcs.n; i++) {
		const struct xp_cfi_func *func = &cfi->funcs.v[i];

		check(func->start < func->end);
		check(i == 0 || func[-1].end <= func->start);
		check(xp_cfi_func_at(cfi, func->start) == func);
		check(xp_cfi_func_at(cfi, func->end - 1) == func);
		check(xp_cfi_rule_at(cfi, func->end - 1)->kind != XP_RULE_NONE);
	}
	check(cfi->funcs.n + cfi->bad_fdes <= cfi->nfdes);
}

static void build(const struct xp_section *eh_frame, const struct xp_section *debug_frame)
{
	struct xp_cfi cfi;

	if (xp_cfi_build_sections(&cfi, EM_X86_64, eh_frame, debug_frame, NULL) == 0) {
		check_rows(&cfi);
		check_funcs(&cfi);
		check((cfi.source != NULL) == (cfi.rows.n != 0));
	}
	xp_cfi_release(&cfi);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xp_section eh = { .data = data, .size = size, .addr = 0x100000 };
	struct xp_section debug = { .data = data, .size = size };

	build(&eh, NULL);
	build(NULL, &debug);
	eh.size /= 2;
	debug.data += eh.size;
	debug.size -= eh.size;
	build(&eh, &debug);
	return 0;
}
