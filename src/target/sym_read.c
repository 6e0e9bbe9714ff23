// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions from .symtab and .dynsym (System V ABI, chapter 4, "Symbol Table").
 *
 * Both tables are read into one list of candidates, which is sorted so that of those with the same
 * address the best comes first; the others only lend it their size.
 */
#include "target/sym_impl.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct candidate {
	uint64_t start, end;	/* end 0: the symbol has no size */
	uint64_t limit;		/* end of its section */
	const char *name;	/* in the image, terminated */
	unsigned rank;		/* smaller is better */
};

struct candidates { XP_VEC(struct candidate) list; };

struct text {
	uint64_t start, end;	/* of a section, both 0 when it holds no code */
};

/* Bounds of the code sections by section index; n entries. */
static struct text *read_texts(const struct xp_elf *elf, size_t n)
{
	struct text *texts = calloc(n + 1, sizeof(*texts));

	for (size_t i = 0; texts && i < n; i++) {
		struct xp_section s;
		const char *name;

		if (xp_elf_section_at(elf, i, &name, &s) &&
		    (s.flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR))
			texts[i] = (struct text){ s.addr, s.addr + s.size };
	}
	return texts;
}

static unsigned rank_of(const Elf64_Sym *sym)
{
	unsigned bind = ELF64_ST_BIND(sym->st_info);

	return (ELF64_ST_TYPE(sym->st_info) == STT_NOTYPE ? 4 : 0) +
	       (bind == STB_LOCAL ? 2 : bind == STB_WEAK ? 1 : 0);
}

/*
 * The name at an offset of a string table, whose last NUL is at `last`; NULL when it is of no
 * use.
 */
static const char *name_of(const struct xp_section *strings, size_t last, const Elf64_Sym *sym)
{
	const char *name;

	if (sym->st_name > last)
		return NULL;
	name = (const char *)strings->data + sym->st_name;
	/* Labels of the assembler that should not have been kept. */
	return name[0] == 0 || (name[0] == '.' && name[1] == 'L') ? NULL : name;
}

static int add_candidate(struct candidates *out, const Elf64_Sym *sym, const struct text *text,
			 const char *name)
{
	unsigned type = ELF64_ST_TYPE(sym->st_info);
	struct candidate *c;

	if (type != STT_FUNC && type != STT_GNU_IFUNC && type != STT_NOTYPE)
		return 0;
	if (!name || sym->st_value < text->start || sym->st_value >= text->end)
		return 0;
	c = xp_vec_push(&out->list);
	if (!c)
		return -ENOMEM;
	c->start = sym->st_value;
	c->limit = text->end;
	if (sym->st_size)
		c->end = sym->st_size < text->end - sym->st_value ?
			 sym->st_value + sym->st_size : text->end;
	c->name = name;
	c->rank = rank_of(sym);
	return 0;
}

/* One symbol table. Names get room for each string twice, since names may share their tails. */
static int read_table(struct candidates *out, const struct xp_elf *elf,
		      const struct xp_section *table, const struct text *texts, size_t ntexts,
		      size_t *names_max)
{
	struct xp_section strings;
	const char *section;
	const uint8_t *nul;

	if (table->entsize != sizeof(Elf64_Sym) ||
	    !xp_elf_section_at(elf, table->link, &section, &strings) || !strings.data)
		return 0;
	nul = memrchr(strings.data, 0, strings.size);
	if (!nul)
		return 0;
	*names_max += 2 * strings.size;
	for (size_t at = 0; table->size - at >= sizeof(Elf64_Sym); at += sizeof(Elf64_Sym)) {
		Elf64_Sym sym;
		int rc;

		memcpy(&sym, table->data + at, sizeof(sym));
		if (sym.st_shndx == SHN_UNDEF || sym.st_shndx >= ntexts)
			continue;
		rc = add_candidate(out, &sym, &texts[sym.st_shndx],
				   name_of(&strings, (size_t)(nul - strings.data), &sym));
		if (rc)
			return rc;
	}
	return 0;
}

static int read_all(struct candidates *out, const struct xp_elf *elf, struct xp_symtab *st)
{
	size_t n = xp_elf_section_count(elf);
	struct text *texts = read_texts(elf, n);
	size_t found[2] = { 0, 0 };
	bool seen[2] = { false, false };
	int rc = texts ? 0 : -ENOMEM;

	for (size_t i = 1; !rc && i < n; i++) {
		size_t before = out->list.n;
		struct xp_section s;
		const char *name;
		int dynamic;

		if (!xp_elf_section_at(elf, i, &name, &s) || !s.data ||
		    (s.type != SHT_SYMTAB && s.type != SHT_DYNSYM))
			continue;
		/* One of each: more are not allowed, and reading them all could take forever. */
		dynamic = s.type == SHT_DYNSYM;
		if (seen[dynamic])
			continue;
		seen[dynamic] = true;
		rc = read_table(out, elf, &s, texts, n, &st->names_max);
		found[dynamic] = out->list.n - before;
	}
	st->source = found[0] && found[1] ? ".symtab+.dynsym" : found[0] ? ".symtab" :
		     found[1] ? ".dynsym" : "none";
	free(texts);
	return rc;
}

static int by_start_and_rank(const void *a, const void *b)
{
	const struct candidate *x = a, *y = b;
	size_t nx, ny;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	if (x->rank != y->rank)
		return x->rank < y->rank ? -1 : 1;
	if ((x->name[0] == '_') != (y->name[0] == '_'))
		return x->name[0] == '_' ? 1 : -1;
	/* Bounded, since a hostile table may compare the same long string again and again. */
	nx = strnlen(x->name, 256);
	ny = strnlen(y->name, 256);
	if (nx != ny)
		return nx < ny ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

/* Leaves one candidate for each address. */
static void unite(struct candidates *c)
{
	size_t kept = 0;

	for (size_t i = 0; i < c->list.n; i++) {
		struct candidate *v = c->list.v;

		if (kept && v[kept - 1].start == v[i].start) {
			if (v[kept - 1].end < v[i].end)
				v[kept - 1].end = v[i].end;
		} else {
			v[kept++] = v[i];
		}
	}
	c->list.n = kept;
}

/* Where a symbol without a size ends; *fde moves on to the first entry that ends above start. */
static uint64_t end_without_size(const struct candidate *c, uint64_t next,
				 const struct xp_cfi *cfi, size_t *fde)
{
	uint64_t end = next < c->limit ? next : c->limit;

	while (cfi && *fde < cfi->funcs.n && cfi->funcs.v[*fde].end <= c->start)
		(*fde)++;
	if (cfi && *fde < cfi->funcs.n) {
		const struct xp_cfi_func *f = &cfi->funcs.v[*fde];
		uint64_t edge = f->start <= c->start ? f->end : f->start;

		if (edge < end)
			end = edge;
	}
	return end;
}

static int add_all(struct xp_symtab *st, const struct candidates *c, const struct xp_cfi *cfi)
{
	uint64_t covered = 0;		/* highest end of the symbols with a size so far */
	size_t fde = 0;

	for (size_t i = 0; i < c->list.n && st->names.len < st->names_max; i++) {
		const struct candidate *v = &c->list.v[i];
		uint64_t next = i + 1 < c->list.n ? v[1].start : UINT64_MAX;
		uint64_t end = v->end;
		const char *at;
		int rc;

		if (!end && v->start < covered)
			continue;
		if (!end)
			end = end_without_size(v, next, cfi, &fde);
		else if (end > covered)
			covered = end;
		/* memmove@@GLIBC_2.2.5: a version is no part of the name. */
		at = strchr(v->name + 1, '@');
		rc = xp_sym_add(st, v->start, end, v->name,
				at ? (size_t)(at - v->name) : strlen(v->name), "");
		if (rc)
			return rc;
	}
	return 0;
}

int xp_sym_read_tables(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi)
{
	struct candidates c = { XP_VEC_INIT };
	int rc = read_all(&c, elf, st);

	if (!rc && c.list.n) {
		qsort(c.list.v, c.list.n, sizeof(*c.list.v), by_start_and_rank);
		unite(&c);
		rc = add_all(st, &c, cfi);
	}
	xp_vec_release(&c.list);
	return rc;
}
