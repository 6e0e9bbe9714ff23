/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions in one ELF image: .symtab and .dynsym merged, sizes respected, and the bounds
 * of unwind entries where there is no symbol.
 *
 * A symbol of size 0 reaches to the next symbol or to the end of its section, whichever is first,
 * and only when no unwind entry says otherwise. Of several symbols at one address: global before
 * weak before local; then not starting with "_" ; then the shorter. PLT stubs are named NAME@plt
 * from the relocations they use. A stripped program's `main` is the address that _start loads into
 * rdi (glibc's crt1, sysdeps/x86_64/start.S).
 */
#ifndef XP_TARGET_SYM_H
#define XP_TARGET_SYM_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "target/cfi.h"
#include "target/elf.h"

struct xp_symtab;

struct xp_sym {
	uint64_t start, end;	/* [start, end) in ELF virtual addresses */
	const char *name;	/* as in the file, mangled; NULL: only the bounds are known */
};

/* The table copies what it needs; elf and cfi may be freed afterwards. cfi may be NULL. */
int xp_symtab_new(struct xp_symtab **st, const struct xp_elf *elf, const struct xp_cfi *cfi,
		  struct xp_err *err);
void xp_symtab_free(struct xp_symtab *st);
/* The function around an address; false when neither a symbol nor an unwind entry covers it. */
bool xp_symtab_find(const struct xp_symtab *st, uint64_t vaddr, struct xp_sym *out);
size_t xp_symtab_count(const struct xp_symtab *st);
/* ".symtab", ".dynsym", ".symtab+.dynsym", or "none": where names came from. */
const char *xp_symtab_source(const struct xp_symtab *st);

#endif
