/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Assertions about tables of unwind rows.
 */
#ifndef XP_TESTS_TARGET_CFI_CHECK_H
#define XP_TESTS_TARGET_CFI_CHECK_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "target/cfi.h"

static inline void assert_rule(const char *name, const struct xp_rule *got,
			       const struct xp_rule *want)
{
	assert_non_null(got);
	if (memcmp(got, want, sizeof(*got)))
		fail_msg("%s: kind %u reg %u cfa %d fp %d ra %u save %u %u %u %u %u", name,
			 got->kind, got->reg, got->cfa_off, got->fp_off, got->ra, got->save[0],
			 got->save[1], got->save[2], got->save[3], got->save[4]);
}

/* Rule of the i-th row, which must be at vaddr. */
static inline void assert_row(const char *name, const struct xp_cfi *cfi, size_t i,
			      uint64_t vaddr, struct xp_rule want)
{
	if (i >= cfi->rows.n || cfi->rows.v[i].vaddr != vaddr)
		fail_msg("%s: row %zu of %zu is at 0x%lx, not 0x%lx", name, i, cfi->rows.n,
			 i < cfi->rows.n ? (unsigned long)cfi->rows.v[i].vaddr : 0,
			 (unsigned long)vaddr);
	assert_rule(name, &cfi->rules.v[cfi->rows.v[i].rule], &want);
}

/* What holds for every table, whatever the input. */
static inline void assert_sound(const struct xp_cfi *cfi)
{
	const struct xp_rule none = { .kind = XP_RULE_NONE };

	for (size_t i = 1; i < cfi->rows.n; i++) {
		assert_true(cfi->rows.v[i - 1].vaddr < cfi->rows.v[i].vaddr);
		assert_int_not_equal(cfi->rows.v[i - 1].rule, cfi->rows.v[i].rule);
	}
	for (size_t i = 1; i < cfi->funcs.n; i++)
		assert_true(cfi->funcs.v[i - 1].end <= cfi->funcs.v[i].start);
	for (size_t i = 0; i < cfi->rows.n; i++)
		assert_true(cfi->rows.v[i].rule < cfi->rules.n);
	if (cfi->rows.n)
		assert_rule("last row", &cfi->rules.v[cfi->rows.v[cfi->rows.n - 1].rule], &none);
	assert_int_equal(cfi->rows.n == 0, cfi->funcs.n == 0);
	/* A few trampolines have bounds without an FDE. */
	assert_true(cfi->funcs.n + cfi->bad_fdes <= cfi->nfdes + 32);
}

#endif
