/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of functions in one ELF image: .symtab and .dynsym merged, sizes respected, and the bounds
 * of unwind entries where there is no symbol.
 *
 * Functions, indirect functions and untyped labels of executable sections count. A symbol of size
 * 0 reaches to the next symbol, the end of its unwind entry, the start of another one or the end
 * of its section, whichever is first; inside a symbol that has a size it is left out. Of several
 * symbols at one address: functions before labels; global before weak before local; then not
 * starting with "_"; then the shorter. Of several around an address the one that starts last. PLT
 * stubs are named NAME@plt from the relocations they use, the first one ".plt". A stripped
 * program's `main` is the address that _start loads into rdi (glibc's crt1,
 * sysdeps/x86_64/start.S); .init and .fini are _init and _fini. Code of a section that has
 * neither symbol nor unwind entry is bounded by its neighbours where these are at most 64 KiB apart,
 * so that a pc in it still belongs to something that has a start. Gaps up to 16 bytes belong to the function before: an address
 * found there lies past that function's end.
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
/*
 * The function around an address; false when it lies in no executable section and no unwind
 * entry.
 */
bool xp_symtab_find(const struct xp_symtab *st, uint64_t vaddr, struct xp_sym *out);
/* Number of functions with a name. */
size_t xp_symtab_count(const struct xp_symtab *st);
/* ".symtab", ".dynsym", ".symtab+.dynsym", or "none": where names came from. A static string. */
const char *xp_symtab_source(const struct xp_symtab *st);

#endif
