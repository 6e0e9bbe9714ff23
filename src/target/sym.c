// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The table of functions: named ones, then unwind entries, then what is left of code sections.
 *
 * Functions may overlap (aliases, labels, assembler with several entries). So that a look-up is one
 * binary search, they are laid flat once: a sorted list of pieces, each with the function that its
 * addresses belong to.
 */
#include "target/sym.h"

#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/sym_impl.h"

/*
 * Functions are aligned to 16 bytes, so a gap up to this is padding, or the end of a function whose
 * unwind entry stops early: glibc's clone3 (2.36, sysdeps/unix/sysv/linux/x86_64/clone3.S) ends its
 * entry before the system call. It belongs to the function before, as in the unwind rows.
 */
#define PADDING_MAX 16
#define NAMELESS_MAX 0x10000	/* bytes of code between neighbours that pass for one function */
#define NAMES_MIN (1u << 20)
#define NAME_MAX_BYTES (64u << 10)

struct pieces { XP_VEC(struct xp_piece) list; };
struct ranges { XP_VEC(struct xp_cfi_func) list; };

int xp_sym_add(struct xp_symtab *st, uint64_t start, uint64_t end, const char *name, size_t n,
	       const char *suffix)
{
	size_t extra = strlen(suffix), at = st->names.len;
	struct xp_func *f;

	if (start >= end || st->funcs.n >= XP_FUNC_NONE)
		return 0;
	if (n > NAME_MAX_BYTES || n + extra + 1 > st->names_max - at ||
	    n + extra + 1 > XP_FUNC_NO_NAME - 1 - at) {
		st->names_max = at;	/* nothing more is taken */
		return 0;
	}
	xp_buf_put(&st->names, name, n);
	xp_buf_put(&st->names, suffix, extra + 1);
	f = xp_vec_push(&st->funcs);
	if (!f || st->names.failed)
		return -ENOMEM;
	*f = (struct xp_func){ start, end, (uint32_t)at };
	return 0;
}

const struct xp_func *xp_sym_starting_at(const struct xp_symtab *st, uint64_t start)
{
	size_t low = 0, high = st->named;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (st->funcs.v[mid].start < start)
			low = mid + 1;
		else
			high = mid;
	}
	return low < st->named && st->funcs.v[low].start == start ? &st->funcs.v[low] : NULL;
}

/*
 * By start; of two with the same, the one that was added first, which has the smaller name
 * offset.
 */
static int by_start(const void *a, const void *b)
{
	const struct xp_func *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static void sort_and_unite(struct xp_symtab *st)
{
	struct xp_func *v = st->funcs.v;
	size_t kept = 0;

	if (st->funcs.n)
		qsort(v, st->funcs.n, sizeof(*v), by_start);
	for (size_t i = 0; i < st->funcs.n; i++) {
		if (!kept || v[kept - 1].start != v[i].start)
			v[kept++] = v[i];
	}
	st->funcs.n = kept;
	st->named = kept;
}

/* Addresses from start on belong to func. Starts never go down. */
static int emit(struct pieces *p, uint64_t start, uint32_t func)
{
	struct xp_piece *last;

	if (p->list.n && p->list.v[p->list.n - 1].start == start)
		p->list.n--;
	if (p->list.n ? p->list.v[p->list.n - 1].func == func : func == XP_FUNC_NONE)
		return 0;
	last = xp_vec_push(&p->list);
	if (!last)
		return -ENOMEM;
	*last = (struct xp_piece){ start, func };
	return 0;
}

struct stack { XP_VEC(uint32_t) list; };

/* Ends every open function that ends at or before an address: what it covered shows again. */
static int close_until(struct pieces *p, struct stack *open, const struct xp_func *funcs,
		       uint64_t until)
{
	int rc = 0;

	while (!rc && open->list.n && funcs[open->list.v[open->list.n - 1]].end <= until) {
		uint64_t end = funcs[open->list.v[open->list.n - 1]].end;

		while (open->list.n && funcs[open->list.v[open->list.n - 1]].end <= end)
			open->list.n--;
		rc = emit(p, end, open->list.n ? open->list.v[open->list.n - 1] : XP_FUNC_NONE);
	}
	return rc;
}

/* Lays the named functions flat: of several around an address the one that starts last has it. */
static int flatten(struct pieces *p, const struct xp_func *funcs, size_t n)
{
	struct stack open = { XP_VEC_INIT };
	int rc = 0;

	for (size_t i = 0; !rc && i < n; i++) {
		uint32_t *top;

		rc = close_until(p, &open, funcs, funcs[i].start);
		if (rc)
			break;
		top = xp_vec_push(&open.list);
		if (top)
			*top = (uint32_t)i;
		rc = top ? emit(p, funcs[i].start, (uint32_t)i) : -ENOMEM;
	}
	if (!rc)
		rc = close_until(p, &open, funcs, UINT64_MAX);
	xp_vec_release(&open.list);
	return rc;
}

/* Index of a function without a name, the last one when it is the same. */
static uint32_t nameless(struct xp_symtab *st, uint64_t start, uint64_t end)
{
	struct xp_func *f = st->funcs.n ? &st->funcs.v[st->funcs.n - 1] : NULL;

	if (f && f->name == XP_FUNC_NO_NAME && f->start == start && f->end == end)
		return (uint32_t)(st->funcs.n - 1);
	f = st->funcs.n < XP_FUNC_NONE ? xp_vec_push(&st->funcs) : NULL;
	if (!f)
		return XP_FUNC_NONE;
	*f = (struct xp_func){ start, end, XP_FUNC_NO_NAME };
	return (uint32_t)(st->funcs.n - 1);
}

/*
 * Fills the gap [from, to) with ranges. An unwind entry keeps its bounds (`whole`) though only a
 * part of it shows; what is left of a section is bounded by the gap, and goes to the function
 * before when it is padding. *next moves on with the gaps.
 */
static int fill_gap(struct xp_symtab *st, struct pieces *p, const struct ranges *r, bool whole,
		    uint64_t from, uint64_t to, size_t *next)
{
	uint32_t before = p->list.n ? p->list.v[p->list.n - 1].func : XP_FUNC_NONE;
	int rc = emit(p, from, XP_FUNC_NONE);

	while (*next < r->list.n && r->list.v[*next].end <= from)
		(*next)++;
	for (size_t i = *next; !rc && i < r->list.n && r->list.v[i].start < to; i++) {
		struct xp_cfi_func f = r->list.v[i];
		uint64_t start = f.start > from ? f.start : from, end = f.end < to ? f.end : to;
		uint32_t func;

		if (!whole && end - start <= PADDING_MAX) {
			rc = start == from ? emit(p, start, before) : 0;
			continue;
		}
		/* Code without any information (a stripped Go program's) is no function. */
		if (!whole && end - start > NAMELESS_MAX)
			continue;
		func = whole ? nameless(st, f.start, f.end) : nameless(st, start, end);
		if (func == XP_FUNC_NONE)
			return -ENOMEM;
		rc = emit(p, start, func);
		if (!rc)
			rc = emit(p, end, XP_FUNC_NONE);
	}
	return rc;
}

/* Puts ranges (sorted, not overlapping) where no function is yet. */
static int fill(struct xp_symtab *st, struct pieces *p, const struct ranges *r, bool whole)
{
	struct pieces old = *p;
	size_t next = 0;
	int rc = 0;

	*p = (struct pieces){ XP_VEC_INIT };
	for (size_t i = 0; !rc && i <= old.list.n; i++) {
		uint64_t from = i ? old.list.v[i - 1].start : 0;
		uint64_t to = i < old.list.n ? old.list.v[i].start : UINT64_MAX;
		uint32_t func = i ? old.list.v[i - 1].func : XP_FUNC_NONE;

		if (func != XP_FUNC_NONE)
			rc = emit(p, from, func);
		else
			rc = fill_gap(st, p, r, whole, from, to, &next);
	}
	xp_vec_release(&old.list);
	return rc;
}

static int add_range(struct ranges *r, uint64_t start, uint64_t size)
{
	struct xp_cfi_func *f;

	if (size == 0 || size > UINT64_MAX - start)
		return 0;
	f = xp_vec_push(&r->list);
	if (!f)
		return -ENOMEM;
	*f = (struct xp_cfi_func){ start, start + size };
	return 0;
}

static int by_range(const void *a, const void *b)
{
	const struct xp_cfi_func *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* The code sections, or the executable segments of a file without sections; sorted, cut apart. */
static int read_code(struct ranges *r, const struct xp_elf *elf)
{
	size_t n = xp_elf_section_count(elf), kept = 0;
	uint64_t last = 0;
	int rc = 0;

	for (size_t i = 1; !rc && i < n; i++) {
		struct xp_section s;
		const char *name;

		if (xp_elf_section_at(elf, i, &name, &s) && s.data &&
		    (s.flags & (SHF_ALLOC | SHF_EXECINSTR)) == (SHF_ALLOC | SHF_EXECINSTR))
			rc = add_range(r, s.addr, s.size);
	}
	for (size_t i = 0; !rc && n == 0 && i < elf->nsegments; i++) {
		if (elf->segments[i].exec)
			rc = add_range(r, elf->segments[i].vaddr, elf->segments[i].filesz);
	}
	if (rc || !r->list.n)
		return rc;
	qsort(r->list.v, r->list.n, sizeof(*r->list.v), by_range);
	for (size_t i = 0; i < r->list.n; i++) {
		struct xp_cfi_func f = r->list.v[i];

		f.start = f.start > last ? f.start : last;
		if (f.start >= f.end)
			continue;
		last = f.end;
		r->list.v[kept++] = f;
	}
	r->list.n = kept;
	return 0;
}

/* crti's functions, which stripped files do not name: they are all of their sections. */
static int add_init_fini(struct xp_symtab *st, const struct xp_elf *elf)
{
	static const char *const names[][2] = { { ".init", "_init" }, { ".fini", "_fini" } };
	int rc = 0;

	for (size_t i = 0; !rc && i < 2; i++) {
		struct xp_section s;

		if (xp_elf_section(elf, names[i][0], &s) && (s.flags & SHF_EXECINSTR) && s.data)
			rc = xp_sym_add(st, s.addr, s.addr + s.size, names[i][1],
					strlen(names[i][1]), "");
	}
	return rc;
}

static int add_named(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi)
{
	int rc = xp_sym_read_tables(st, elf, cfi);

	/* From here on named functions are looked up while others are appended. */
	st->named = st->funcs.n;
	if (!rc)
		rc = add_init_fini(st, elf);
	if (!rc && elf->machine == EM_X86_64)
		rc = xp_sym_read_plt(st, elf);
	if (!rc && elf->machine == EM_X86_64)
		rc = xp_sym_read_start(st, elf, cfi);
	sort_and_unite(st);
	return rc;
}

static int lay_out(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi)
{
	struct ranges entries = { XP_VEC_INIT }, code = { XP_VEC_INIT };
	struct pieces p = { XP_VEC_INIT };
	int rc = flatten(&p, st->funcs.v, st->funcs.n);

	if (!rc && cfi) {
		entries.list.v = cfi->funcs.v;		/* borrowed */
		entries.list.n = cfi->funcs.n;
		rc = fill(st, &p, &entries, true);
	}
	if (!rc)
		rc = read_code(&code, elf);
	if (!rc)
		rc = fill(st, &p, &code, false);
	st->pieces.v = p.list.v;
	st->pieces.n = p.list.n;
	st->pieces.cap = p.list.cap;
	xp_vec_release(&code.list);
	return rc;
}

int xp_symtab_new(struct xp_symtab **out, const struct xp_elf *elf, const struct xp_cfi *cfi,
		  struct xp_err *err)
{
	struct xp_symtab *st = calloc(1, sizeof(*st));
	int rc = st ? 0 : -ENOMEM;

	*out = NULL;
	if (!rc) {
		st->names_max = NAMES_MIN;
		rc = add_named(st, elf, cfi);
	}
	if (!rc)
		rc = lay_out(st, elf, cfi);
	if (rc) {
		xp_symtab_free(st);
		return xp_err_sys(err, -rc, "cannot read the symbols");
	}
	*out = st;
	return 0;
}

void xp_symtab_free(struct xp_symtab *st)
{
	if (!st)
		return;
	xp_vec_release(&st->funcs);
	xp_vec_release(&st->pieces);
	xp_buf_release(&st->names);
	free(st);
}

bool xp_symtab_find(const struct xp_symtab *st, uint64_t vaddr, struct xp_sym *out)
{
	size_t low = 0, high = st->pieces.n;
	const struct xp_func *f;

	/* The first piece that starts above the address; the one before has it. */
	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (st->pieces.v[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || st->pieces.v[low - 1].func == XP_FUNC_NONE)
		return false;
	f = &st->funcs.v[st->pieces.v[low - 1].func];
	out->start = f->start;
	out->end = f->end;
	out->name = f->name == XP_FUNC_NO_NAME ? NULL : (const char *)st->names.data + f->name;
	return true;
}

size_t xp_symtab_count(const struct xp_symtab *st)
{
	return st->named;
}

const char *xp_symtab_source(const struct xp_symtab *st)
{
	return st->source;
}
