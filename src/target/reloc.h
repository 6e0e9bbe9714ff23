/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Relocations and named symbols of an ELF image (System V ABI, chapter 4, "Relocation", "Symbol
 * Table"; the GNU hash table as glibc's elf/dl-lookup.c reads it).
 */
#ifndef XP_TARGET_RELOC_H
#define XP_TARGET_RELOC_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "target/elf.h"

struct xp_reloc {
	uint64_t at;		/* vaddr of what is relocated */
	int64_t addend;
	uint32_t type;		/* R_X86_64_* */
	uint32_t symbol;	/* index into the table; 0: none */
	uint32_t table;		/* section index of that table */
};

struct xp_relocs { XP_VEC(struct xp_reloc) list; };	/* sorted by at */

/* The dynamic relocations with addends (SHT_RELA of allocated sections). 0 or -ENOMEM. */
int xp_relocs_read(struct xp_relocs *r, const struct xp_elf *elf);
void xp_relocs_release(struct xp_relocs *r);
/* The relocation of the word at an address, or NULL. */
const struct xp_reloc *xp_reloc_at(const struct xp_relocs *r, uint64_t at);
/* Value of its symbol; false when it has none or the symbol is defined elsewhere. */
bool xp_reloc_value(const struct xp_elf *elf, const struct xp_reloc *r, uint64_t *value);

struct xp_export {
	uint64_t value, size;	/* vaddr; of STT_TLS an offset in the block */
	uint8_t type;		/* STT_* */
};

/* A symbol that .dynsym defines, global or weak; found by the hash table when there is one. */
bool xp_elf_export(const struct xp_elf *elf, const char *name, struct xp_export *out);
/* The same in .symtab, local ones too. */
bool xp_elf_symbol(const struct xp_elf *elf, const char *name, struct xp_export *out);

#endif
