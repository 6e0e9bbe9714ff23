// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions that only x86-64 machine code tells: PLT stubs, and main of a stripped program.
 *
 * A stub jumps through a slot of the GOT, and the relocation of that slot names the function
 * (System V ABI for x86-64, "Procedure Linkage Table"). With control-flow protection the calls go
 * to .plt.sec, whose stubs jump; those of .plt push the relocation's index for the lazy resolver.
 */
#include <elf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/sym_impl.h"

struct slot {
	uint64_t got;		/* r_offset */
	const char *name;	/* in the image; NULL: the function at `target` */
	uint64_t target;
};

struct slots {
	XP_VEC(struct slot) list;	/* sorted by got */
	XP_VEC(const char *) lazy;	/* names by index in .rela.plt; NULL when there is none */
};

struct dynsym {
	struct xp_section symbols, strings;
	size_t last;			/* of the last NUL in strings */
};

static uint32_t le32(const uint8_t *p)
{
	return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

/* Where a 32-bit displacement at p, the last part of its instruction, points from vaddr. */
static uint64_t relative(const uint8_t *p, uint64_t vaddr)
{
	return vaddr + 4 + (uint64_t)(int64_t)(int32_t)le32(p);
}

static const char *symbol_name(const struct dynsym *d, uint64_t index)
{
	Elf64_Sym sym;
	const char *name;

	if (index == 0 || index >= d->symbols.size / sizeof(sym))
		return NULL;
	memcpy(&sym, d->symbols.data + index * sizeof(sym), sizeof(sym));
	if (sym.st_name > d->last)
		return NULL;
	name = (const char *)d->strings.data + sym.st_name;
	return name[0] ? name : NULL;
}

/* The symbols that a relocation section refers to; empty when it has none (a static program). */
static struct dynsym read_dynsym(const struct xp_elf *elf, uint32_t link)
{
	struct dynsym d = { 0 }, none = { 0 };
	const uint8_t *nul;
	const char *name;

	if (link == 0 || !xp_elf_section_at(elf, link, &name, &d.symbols) || !d.symbols.data ||
	    !xp_elf_section_at(elf, d.symbols.link, &name, &d.strings) || !d.strings.data)
		return none;
	nul = memrchr(d.strings.data, 0, d.strings.size);
	if (!nul)
		return none;
	d.last = (size_t)(nul - d.strings.data);
	return d;
}

static int read_relocations(struct slots *slots, const struct xp_elf *elf,
			    const struct xp_section *rela, bool plt)
{
	struct dynsym d = read_dynsym(elf, rela->link);

	for (size_t at = 0; rela->size - at >= sizeof(Elf64_Rela); at += sizeof(Elf64_Rela)) {
		const char *name = NULL, **lazy;
		struct slot *slot;
		Elf64_Rela r;
		uint64_t type;

		memcpy(&r, rela->data + at, sizeof(r));
		type = ELF64_R_TYPE(r.r_info);
		if (type == R_X86_64_JUMP_SLOT || type == R_X86_64_GLOB_DAT)
			name = symbol_name(&d, ELF64_R_SYM(r.r_info));
		if (plt) {
			lazy = xp_vec_push(&slots->lazy);
			if (!lazy)
				return -ENOMEM;
			*lazy = name;
		}
		if (!name && type != R_X86_64_IRELATIVE)
			continue;
		slot = xp_vec_push(&slots->list);
		if (!slot)
			return -ENOMEM;
		*slot = (struct slot){ r.r_offset, name, (uint64_t)r.r_addend };
	}
	return 0;
}

static int by_got(const void *a, const void *b)
{
	const struct slot *x = a, *y = b;

	return (x->got > y->got) - (x->got < y->got);
}

static const struct slot *slot_at(const struct slots *slots, uint64_t got)
{
	struct slot key = { .got = got };

	if (!slots->list.n)
		return NULL;
	return bsearch(&key, slots->list.v, slots->list.n, sizeof(key), by_got);
}

/*
 * The name of what a stub leads to, or NULL. Shapes: [endbr64] [bnd] jmp *slot(%rip), and
 * [endbr64] push $index, as GNU ld, gold and lld write them.
 */
static const char *stub_target(const struct xp_symtab *st, const struct slots *slots,
			       const uint8_t *p, size_t n, uint64_t vaddr)
{
	static const uint8_t endbr64[] = { 0xf3, 0x0f, 0x1e, 0xfa };
	size_t at = 0;

	if (n >= 8 && memcmp(p, endbr64, 4) == 0)
		at = 4;
	if (n - at >= 5 && p[at] == 0x68) {
		uint32_t index = le32(p + at + 1);

		return index < slots->lazy.n ? slots->lazy.v[index] : NULL;
	}
	if (n - at >= 1 && p[at] == 0xf2)
		at++;
	if (n - at >= 6 && p[at] == 0xff && p[at + 1] == 0x25) {
		const struct slot *slot = slot_at(slots, relative(p + at + 2, vaddr + at + 2));
		const struct xp_func *f;

		if (!slot || slot->name)
			return slot ? slot->name : NULL;
		f = xp_sym_starting_at(st, slot->target);
		return f ? (const char *)st->names.data + f->name : NULL;
	}
	return NULL;
}

static int add_stubs(struct xp_symtab *st, const struct slots *slots, const struct xp_section *s)
{
	size_t size = s->entsize == 8 ? 8 : 16;
	int rc = 0;

	for (size_t at = 0; !rc && s->size - at >= size; at += size) {
		const uint8_t *p = s->data + at;
		uint64_t vaddr = s->addr + at;
		const char *name = stub_target(st, slots, p, size, vaddr);
		char copy[1024];

		if (name) {
			size_t n = strnlen(name, sizeof(copy));

			n = n < sizeof(copy) ? n : sizeof(copy) - 1;
			/* The name may lie in the table that grows. */
			memcpy(copy, name, n);
			copy[n] = 0;
			rc = xp_sym_add(st, vaddr, vaddr + size, copy, strcspn(copy, "@"), "@plt");
		} else if (size == 16 && p[0] == 0xff && p[1] == 0x35) {
			/* push of the link map: the head, which enters the resolver. */
			rc = xp_sym_add(st, vaddr, vaddr + size, ".plt", 4, "");
		}
	}
	return rc;
}

int xp_sym_read_plt(struct xp_symtab *st, const struct xp_elf *elf)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got", ".iplt" };
	struct slots slots = { XP_VEC_INIT, XP_VEC_INIT };
	struct xp_section s;
	int rc = 0;

	if (xp_elf_section(elf, ".rela.plt", &s) && s.data)
		rc = read_relocations(&slots, elf, &s, true);
	if (!rc && xp_elf_section(elf, ".rela.dyn", &s) && s.data)
		rc = read_relocations(&slots, elf, &s, false);
	if (slots.list.n)
		qsort(slots.list.v, slots.list.n, sizeof(*slots.list.v), by_got);
	for (size_t i = 0; !rc && i < sizeof(names) / sizeof(*names); i++) {
		if (xp_elf_section(elf, names[i], &s) && s.data && (s.flags & SHF_EXECINSTR))
			rc = add_stubs(st, &slots, &s);
	}
	xp_vec_release(&slots.list);
	xp_vec_release(&slots.lazy);
	return rc;
}

/*
 * glibc's _start: [endbr64] xor %ebp,%ebp ... lea or mov main,%rdi; call __libc_start_main. The
 * linker turns the load of main's address into any of three instructions (ABI, "GOTPCRELX").
 * Returns the address, or 0.
 */
static uint64_t main_of_start(const uint8_t *p, size_t n, uint64_t vaddr)
{
	size_t at = n >= 4 && p[0] == 0xf3 && p[1] == 0x0f && p[2] == 0x1e && p[3] == 0xfa ? 4 : 0;

	if (n - at < 2 || p[at] != 0x31 || p[at + 1] != 0xed)
		return 0;
	for (; at + 13 <= n; at++) {
		const uint8_t *load = p + at, *call;
		uint64_t target;

		if (load[0] == 0x48 && load[1] == 0x8d && load[2] == 0x3d) {
			target = relative(load + 3, vaddr + at + 3);
			call = load + 7;
		} else if (load[0] == 0x48 && load[1] == 0xc7 && load[2] == 0xc7) {
			target = (uint64_t)(int64_t)(int32_t)le32(load + 3);
			call = load + 7;
		} else if (load[0] == 0xbf) {
			target = le32(load + 1);
			call = load + 5;
		} else {
			continue;
		}
		if ((call[0] == 0xff && call[1] == 0x15) || call[0] == 0xe8 ||
		    (call[0] == 0x67 && call[1] == 0xe8))
			return target;
	}
	return 0;
}

/* Names an unwind entry that starts at an address and that no symbol covers. */
static int name_entry(struct xp_symtab *st, const struct xp_cfi *cfi, uint64_t start,
		      const char *name)
{
	const struct xp_cfi_func *f = xp_cfi_func_at(cfi, start);

	if (!f || f->start != start)
		return 0;
	for (size_t i = 0; i < st->named && st->funcs.v[i].start <= start; i++) {
		if (st->funcs.v[i].end > start)
			return 0;
	}
	return xp_sym_add(st, f->start, f->end, name, strlen(name), "");
}

int xp_sym_read_start(struct xp_symtab *st, const struct xp_elf *elf, const struct xp_cfi *cfi)
{
	const uint8_t *code = NULL;
	uint64_t target = 0;
	size_t n;
	int rc;

	if (!cfi || !elf->entry)
		return 0;
	for (n = 64; !code && n >= 16; n -= 8)
		code = xp_elf_at_vaddr(elf, elf->entry, n);
	if (code)
		target = main_of_start(code, n + 8, elf->entry);
	if (!target)
		return 0;
	rc = name_entry(st, cfi, elf->entry, "_start");
	return rc ? rc : name_entry(st, cfi, target, "main");
}
