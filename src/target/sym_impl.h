/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Inside of the symbol table: what its readers (sym_read.c, sym_x86.c) add and sym.c puts in order.
 */
#ifndef XP_TARGET_SYM_IMPL_H
#define XP_TARGET_SYM_IMPL_H

#include "base/buf.h"
#include "base/vec.h"
#include "target/sym.h"

#define XP_FUNC_NO_NAME UINT32_MAX

struct xp_func {
	uint64_t start, end;	/* [start, end), never empty */
	uint32_t name;		/* offset into names, or XP_FUNC_NO_NAME */
};

/* From start to the next piece an address belongs to this function. */
struct xp_piece {
	uint64_t start;
	uint32_t func;		/* index, or XP_FUNC_NONE */
};

#define XP_FUNC_NONE UINT32_MAX

struct xp_symtab {
	XP_VEC(struct xp_func) funcs;	/* the ones with names first, sorted by start */
	XP_VEC(struct xp_piece) pieces;	/* sorted; neighbours differ */
	struct xp_buf names;		/* NUL-terminated strings */
	size_t names_max;		/* bytes: a hostile table may use one string very often */
	size_t named;
	const char *source;
};

/* Adds a function; n bytes of name. One whose name no longer fits is left out. 0 or -ENOMEM. */
int xp_sym_add(struct xp_symtab *st, uint64_t start, uint64_t end, const char *name, size_t n,
	       const char *suffix);
/* Whether the functions read from tables (sorted) have one that starts here; NULL when not. */
const struct xp_func *xp_sym_starting_at(const struct xp_symtab *st, uint64_t start);

/* .symtab and .dynsym: fills funcs, sorted by start, with distinct starts. */
int xp_sym_read_tables(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi);

/* From x86-64 machine code, appended: PLT stubs; _start and main of a stripped program. */
int xp_sym_read_plt(struct xp_symtab *st, const struct xp_elf *elf);
int xp_sym_read_start(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi);

#endif
