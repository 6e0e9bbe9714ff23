// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The interpreter loop of a Ruby without symbols.
 *
 * vm_exec_core() jumps from instruction to instruction through a table of its labels' addresses
 * (vm_exec.c, "direct threaded code"; vm.inc): about 200 words in a row, each with a relative
 * relocation, all into one function. No other table comes near. What calls it is vm_exec().
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "runtime/ruby/image_impl.h"

#define LABELS_MIN 100		/* 202 in 3.1.2 */
#define STUB_MAX 64		/* bytes; rb_vm_get_insns_address_table() is a jump to the loop */

static int fail(const struct xp_ruby_reader *r, const char *what)
{
	return xp_err_set(r->err, ENOTSUP, "ruby %s: %s", r->image->version, what);
}

/* The longest run of neighbouring words that are relocated into one function. */
static void find_labels(struct xp_ruby_reader *r)
{
	const struct xp_cfi_func *here = NULL;
	uint64_t next = 0;
	unsigned n = 0;

	for (size_t i = 0; i < r->relocs.list.n; i++) {
		const struct xp_reloc *reloc = &r->relocs.list.v[i];
		uint64_t to = (uint64_t)reloc->addend;
		const struct xp_cfi_func *f = here;

		if (reloc->type != R_X86_64_RELATIVE) {
			n = 0;
			continue;
		}
		if (!f || to < f->start || to >= f->end)
			f = xp_cfi_func_at(r->cfi, to);
		n = f && f == here && n && reloc->at == next ? n + 1 : f != NULL;
		here = f;
		next = reloc->at + 8;
		if (n > r->labels) {
			r->labels = n;
			r->image->core[0] = f->start;
			r->image->core[1] = f->end;
		}
	}
}

/* A function with a call or jump to the loop. False when there are more than can be told. */
static bool add_caller(struct xp_ruby_reader *r, uint64_t at)
{
	const struct xp_cfi_func *f = xp_cfi_func_at(r->cfi, at);
	uint64_t *ranges = r->image->vm_exec;

	if (!f || f->end - f->start < STUB_MAX || f->start == r->image->core[0])
		return true;
	for (unsigned i = 0; i < 4; i += 2) {
		if (ranges[i + 1] && ranges[i] != f->start)
			continue;
		ranges[i] = f->start;
		ranges[i + 1] = f->end;
		return true;
	}
	return false;
}

/*
 * Direct calls (e8) and jumps (e9) to the loop, wherever the bytes stand: one that is no
 * instruction would have to hold this very distance.
 */
static bool find_callers(struct xp_ruby_reader *r, const struct xp_segment *s)
{
	const uint8_t *code = xp_elf_at_vaddr(r->elf, s->vaddr, s->filesz);
	uint32_t want = (uint32_t)(r->image->core[0] - s->vaddr - 5);

	if (!code || s->filesz < 5)
		return true;
	for (uint64_t i = 0; i < s->filesz - 4; i++) {
		uint32_t distance;

		memcpy(&distance, code + i + 1, 4);
		if (distance + (uint32_t)i != want || (code[i] & 0xfe) != 0xe8)
			continue;
		if (!add_caller(r, s->vaddr + i))
			return false;
	}
	return true;
}

int xp_ruby_read_loop(struct xp_ruby_reader *r)
{
	const uint64_t *ranges = r->image->vm_exec;
	struct xp_export sym;

	find_labels(r);
	if (r->labels < LABELS_MIN)
		return fail(r, "interpreter loop: no table of its labels");
	for (size_t i = 0; i < r->elf->nsegments; i++) {
		if (r->elf->segments[i].exec && !find_callers(r, &r->elf->segments[i]))
			return fail(r, "interpreter loop: called from more than two functions");
	}
	if (!ranges[1])
		return fail(r, "interpreter loop: nothing calls it");
	if ((xp_elf_symbol(r->elf, "vm_exec_core", &sym)) && sym.value != r->image->core[0])
		return fail(r, "interpreter loop: not what is named vm_exec_core");
	if (xp_elf_export(r->elf, "rb_vm_exec", &sym) && sym.value != ranges[0] &&
	    sym.value != ranges[2])
		return fail(r, "interpreter loop: rb_vm_exec does not call it");
	return 0;
}
