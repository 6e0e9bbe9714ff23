/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Kernel symbols from /proc/kallsyms: text symbols (t, T, w, W), sorted, with the module's name.
 *
 * With kernel.kptr_restrict every address reads as 0: then the table is empty and `restricted` says
 * why, so that frames become [kernel+unknown] and one warning is printed.
 */
#ifndef XP_TARGET_KSYMS_H
#define XP_TARGET_KSYMS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"

struct xp_ksyms;

struct xp_ksym {
	uint64_t start, end;
	const char *name;
	const char *module;	/* "[kernel]", or "[nf_tables]" and the like */
};

/* path NULL: /proc/kallsyms. */
int xp_ksyms_new(struct xp_ksyms **ks, const char *path, struct xp_err *err);
void xp_ksyms_free(struct xp_ksyms *ks);
bool xp_ksyms_find(const struct xp_ksyms *ks, uint64_t addr, struct xp_ksym *out);
bool xp_ksyms_restricted(const struct xp_ksyms *ks);

#endif
