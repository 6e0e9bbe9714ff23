// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz entry of the ELF reader and the symbol table: the input is a whole file. Besides not crashing,
 * all that is handed out must lie inside the image, and every function found must hold its address.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/cfi.h"
#include "target/elf.h"
#include "target/sym.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_view(const struct xp_elf *elf, const struct xp_section *s)
{
	if (s->data)
		check(s->data >= elf->data && s->size <= elf->size &&
		      (size_t)(s->data - elf->data) <= elf->size - s->size);
}

static void check_segments(const struct xp_elf *elf)
{
	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct xp_segment *s = &elf->segments[i];
		uint64_t vaddr;

		if (s->filesz == 0)
			continue;
		check(s->offset <= elf->size && s->filesz <= elf->size - s->offset);
		check(xp_elf_at_vaddr(elf, s->vaddr, 1) != NULL);
		check(!s->exec || xp_elf_vaddr_of_offset(elf, s->offset, &vaddr));
	}
}

static void check_symbols(const struct xp_elf *elf, const struct xp_cfi *cfi)
{
	struct xp_symtab *st;
	struct xp_sym sym;

	if (xp_symtab_new(&st, elf, cfi, NULL))
		return;
	for (size_t i = 0; i < elf->nsegments; i++) {
		for (uint64_t at = 0; at < elf->segments[i].filesz && at < 8192; at++) {
			uint64_t vaddr = elf->segments[i].vaddr + at;

			if (!xp_symtab_find(st, vaddr, &sym))
				continue;
			check(sym.start <= vaddr && (vaddr < sym.end || vaddr - sym.end < 16));
			check(!sym.name || strlen(sym.name) > 0);
		}
	}
	xp_symtab_free(st);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char hex[2 * XP_BUILD_ID_MAX + 1];
	struct xp_section s;
	struct xp_elf *elf;
	struct xp_cfi cfi;

	if (xp_elf_open_mem(&elf, data, size, NULL))
		return 0;
	for (size_t i = 0; i < xp_elf_section_count(elf); i++) {
		const char *name;

		if (xp_elf_section_at(elf, i, &name, &s))
			check_view(elf, &s);
	}
	if (xp_elf_eh_frame_hdr(elf, &s))
		check_view(elf, &s);
	xp_elf_build_id_hex(elf, hex);
	check(strlen(hex) == 2 * elf->build_id_len);
	check_segments(elf);
	check_symbols(elf, NULL);
	if (xp_cfi_build(&cfi, elf, NULL) == 0)
		check_symbols(elf, &cfi);
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
	return 0;
}
