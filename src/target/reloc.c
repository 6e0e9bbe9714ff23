// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Relocations and named symbols, every index checked.
 */
#include "target/reloc.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int read_section(struct xp_relocs *r, const struct xp_section *s)
{
	int rc = xp_vec_reserve(&r->list, r->list.n + s->size / sizeof(Elf64_Rela));

	for (size_t at = 0; !rc && s->size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		struct xp_reloc *out = xp_vec_push(&r->list);
		Elf64_Rela rela;

		if (!out)
			return -ENOMEM;
		memcpy(&rela, s->data + at, sizeof(rela));
		out->at = rela.r_offset;
		out->addend = rela.r_addend;
		out->type = (uint32_t)ELF64_R_TYPE(rela.r_info);
		out->symbol = (uint32_t)ELF64_R_SYM(rela.r_info);
		out->table = s->link;
	}
	return rc;
}

static int by_address(const void *a, const void *b)
{
	const struct xp_reloc *x = a, *y = b;

	return (x->at > y->at) - (x->at < y->at);
}

int xp_relocs_read(struct xp_relocs *r, const struct xp_elf *elf)
{
	size_t n = xp_elf_section_count(elf), room = elf->size / sizeof(Elf64_Rela);
	int rc = 0;

	memset(r, 0, sizeof(*r));
	for (size_t i = 1; !rc && i < n; i++) {
		struct xp_section s;
		const char *name;

		if (!xp_elf_section_at(elf, i, &name, &s) || s.type != SHT_RELA || !s.data ||
		    !(s.flags & SHF_ALLOC) || s.entsize != sizeof(Elf64_Rela))
			continue;
		/* Sections that lie upon each other could add up to any amount. */
		if (s.size / sizeof(Elf64_Rela) > room)
			break;
		room -= s.size / sizeof(Elf64_Rela);
		rc = read_section(r, &s);
	}
	if (rc)
		xp_relocs_release(r);
	else if (r->list.n)
		qsort(r->list.v, r->list.n, sizeof(*r->list.v), by_address);
	return rc;
}

void xp_relocs_release(struct xp_relocs *r)
{
	xp_vec_release(&r->list);
}

const struct xp_reloc *xp_reloc_at(const struct xp_relocs *r, uint64_t at)
{
	struct xp_reloc key = { .at = at };

	if (!r->list.n)
		return NULL;
	return bsearch(&key, r->list.v, r->list.n, sizeof(*r->list.v), by_address);
}

static bool symbol_at(const struct xp_section *table, uint64_t i, Elf64_Sym *sym)
{
	if (table->entsize != sizeof(*sym) || !table->data || i >= table->size / sizeof(*sym))
		return false;
	memcpy(sym, table->data + i * sizeof(*sym), sizeof(*sym));
	return true;
}

bool xp_reloc_value(const struct xp_elf *elf, const struct xp_reloc *r, uint64_t *value)
{
	struct xp_section table;
	const char *name;
	Elf64_Sym sym;

	if (!r->symbol || !xp_elf_section_at(elf, r->table, &name, &table) ||
	    (table.type != SHT_DYNSYM && table.type != SHT_SYMTAB) ||
	    !symbol_at(&table, r->symbol, &sym) || sym.st_shndx == SHN_UNDEF)
		return false;
	*value = sym.st_value;
	return true;
}

static bool section_of_type(const struct xp_elf *elf, uint32_t type, struct xp_section *out)
{
	size_t n = xp_elf_section_count(elf);

	for (size_t i = 1; i < n; i++) {
		const char *name;

		if (xp_elf_section_at(elf, i, &name, out) && out->type == type && out->data)
			return true;
	}
	return false;
}

/* A table of symbols and the strings of their names. */
struct names { struct xp_section symbols, strings; };

static bool open_names(const struct xp_elf *elf, uint32_t type, struct names *n)
{
	const char *name;

	return section_of_type(elf, type, &n->symbols) &&
	       xp_elf_section_at(elf, n->symbols.link, &name, &n->strings) && n->strings.data;
}

static bool has_name(const struct names *n, const Elf64_Sym *sym, const char *name)
{
	size_t len = strlen(name) + 1;

	return sym->st_name < n->strings.size && len <= n->strings.size - sym->st_name &&
	       memcmp(n->strings.data + sym->st_name, name, len) == 0;
}

static bool accept(const struct names *n, uint64_t i, const char *name, bool local,
		   struct xp_export *out)
{
	Elf64_Sym sym;

	if (!symbol_at(&n->symbols, i, &sym) || sym.st_shndx == SHN_UNDEF ||
	    (!local && ELF64_ST_BIND(sym.st_info) == STB_LOCAL) || !has_name(n, &sym, name))
		return false;
	*out = (struct xp_export){ sym.st_value, sym.st_size, ELF64_ST_TYPE(sym.st_info) };
	return true;
}

static bool find_linear(const struct names *n, const char *name, bool local,
			struct xp_export *out)
{
	for (uint64_t i = 1; i < n->symbols.size / sizeof(Elf64_Sym); i++) {
		if (accept(n, i, name, local, out))
			return true;
	}
	return false;
}

static uint32_t gnu_hash(const char *name)
{
	uint32_t h = 5381;

	for (; *name; name++)
		h = h * 33 + (uint8_t)*name;
	return h;
}

static uint32_t u32_at(const struct xp_section *s, uint64_t i)
{
	uint32_t v;

	memcpy(&v, s->data + i * 4, 4);
	return v;
}

/*
 * By DT_GNU_HASH: four words (buckets, first symbol, words of the filter, its shift), the filter of
 * 64-bit words, the buckets, and a hash for each symbol from the first on; bit 0 ends a bucket's
 * chain. 1: found, 0: not there, -1: the table is damaged.
 */
static int find_hashed(const struct names *n, const struct xp_section *h, const char *name,
		       struct xp_export *out)
{
	uint64_t words = h->size / 4, buckets, chains, i;
	uint32_t hash = gnu_hash(name), nbuckets, first;

	if (words < 4)
		return -1;
	nbuckets = u32_at(h, 0);
	first = u32_at(h, 1);
	buckets = 4 + 2 * (uint64_t)u32_at(h, 2);
	chains = buckets + nbuckets;
	if (!nbuckets || chains > words)
		return -1;
	i = u32_at(h, buckets + hash % nbuckets);
	if (i == 0)
		return 0;
	if (i < first)
		return -1;
	for (; i - first < words - chains; i++) {
		uint32_t found = u32_at(h, chains + (i - first));

		if ((found | 1) == (hash | 1) && accept(n, i, name, false, out))
			return 1;
		if (found & 1)
			return 0;
	}
	return -1;
}

bool xp_elf_export(const struct xp_elf *elf, const char *name, struct xp_export *out)
{
	struct xp_section hash;
	struct names n;
	int found = -1;

	if (!open_names(elf, SHT_DYNSYM, &n))
		return false;
	if (section_of_type(elf, SHT_GNU_HASH, &hash))
		found = find_hashed(&n, &hash, name, out);
	return found < 0 ? find_linear(&n, name, false, out) : found;
}

bool xp_elf_symbol(const struct xp_elf *elf, const char *name, struct xp_export *out)
{
	struct names n;

	return open_names(elf, SHT_SYMTAB, &n) && find_linear(&n, name, true, out);
}
