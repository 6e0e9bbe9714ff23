// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values followed through the machine code of a small function.
 *
 * From the first instruction to the last one as they stand, jumps not taken: the functions looked
 * at are a few loads in a row, with at most a test between them. A register that an instruction
 * writes in a way not understood is unknown from there on, so what is told was really computed so.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "runtime/ruby/image_impl.h"

#define CODE_MAX 4096		/* bytes of a function that are looked at */
#define INSNS_MAX 512
#define CALLER_SAVED 0x0fc7	/* rax rcx rdx rsi rdi r8 to r11 (System V ABI for x86-64) */

static const struct xp_ruby_value unknown;

static bool clip(const struct xp_ruby_reader *r, struct xp_ruby_code *code)
{
	if (code->end <= code->start)
		return false;
	if (code->end - code->start > CODE_MAX)
		code->end = code->start + CODE_MAX;
	return xp_elf_at_vaddr(r->elf, code->start, code->end - code->start) != NULL;
}

bool xp_ruby_function_at(const struct xp_ruby_reader *r, uint64_t vaddr, struct xp_ruby_code *out)
{
	const struct xp_cfi_func *f = xp_cfi_func_at(r->cfi, vaddr);

	if (!f)
		return false;
	*out = (struct xp_ruby_code){ f->start, f->end };
	return true;
}

bool xp_ruby_function(const struct xp_ruby_reader *r, const char *name, struct xp_ruby_code *out)
{
	struct xp_export sym;

	if (!xp_elf_export(r->elf, name, &sym) || sym.type != STT_FUNC)
		return false;
	if (!xp_ruby_function_at(r, sym.value, out) || out->start != sym.value) {
		if (sym.size > UINT64_MAX - sym.value)
			return false;
		*out = (struct xp_ruby_code){ sym.value, sym.value + sym.size };
	}
	return clip(r, out);
}

/* What the word at a fixed address holds once the file is loaded. */
static struct xp_ruby_value load_fixed(const struct xp_ruby_reader *r, uint64_t at)
{
	const struct xp_reloc *reloc = xp_reloc_at(&r->relocs, at);
	struct xp_ruby_value v = { .base = XP_RUBY_V_ADDR, .n = at, .depth = 1 };
	uint64_t value;

	if (!reloc)
		return v;
	switch (reloc->type) {
	case R_X86_64_RELATIVE:
		return (struct xp_ruby_value){ .base = XP_RUBY_V_ADDR,
					       .n = (uint64_t)reloc->addend };
	case R_X86_64_GLOB_DAT:
	case R_X86_64_64:
		if (!xp_reloc_value(r->elf, reloc, &value))
			return unknown;
		return (struct xp_ruby_value){ .base = XP_RUBY_V_ADDR,
					       .n = value + (uint64_t)reloc->addend };
	case R_X86_64_TPOFF64:
		return (struct xp_ruby_value){ .base = XP_RUBY_V_TP_OFFSET, .n = at };
	}
	return unknown;
}

static struct xp_ruby_value load(struct xp_ruby_value v, int64_t off)
{
	if (v.base == XP_RUBY_V_UNKNOWN || v.shift || v.depth == XP_RUBY_V_DEPTH)
		return unknown;
	v.off[v.depth++] = (int64_t)((uint64_t)v.add + (uint64_t)off);
	v.add = 0;
	return v;
}

static struct xp_ruby_value load_fs(const struct xp_ruby_trace *t, const struct xp_operand *o)
{
	struct xp_ruby_value tp = { .base = XP_RUBY_V_TP };

	if (o->index != XP_REG_NONE)
		return unknown;
	if (o->base < XP_REGS) {
		struct xp_ruby_value v = t->regs[o->base];

		if (v.base != XP_RUBY_V_TP_OFFSET || v.depth)
			return unknown;
		v.base = XP_RUBY_V_INITIAL;
		return load(v, o->value);
	}
	if (o->base != XP_REG_NONE)
		return unknown;
	/* The word at the thread pointer is the thread pointer itself (ELF TLS ABI, variant II). */
	return o->value == 0 ? tp : load(tp, o->value);
}

/* The value of an operand; of a memory operand what is loaded from it. */
static struct xp_ruby_value read_operand(const struct xp_ruby_trace *t,
					 const struct xp_operand *o)
{
	if (o->kind == XP_OPERAND_REG)
		return o->reg < XP_REGS ? t->regs[o->reg] : unknown;
	if (o->kind != XP_OPERAND_MEM || o->gs)
		return unknown;
	if (o->fs)
		return load_fs(t, o);
	if (o->fixed)
		return load_fixed(t->r, (uint64_t)o->value);
	if (o->base >= XP_REGS || o->index != XP_REG_NONE)
		return unknown;
	if (o->base == XP_RSP)
		return t->has_spilled && t->spilled.at == o->value ? t->spilled.value : unknown;
	return load(t->regs[o->base], o->value);
}

/* lea: the address itself. */
static struct xp_ruby_value address_of(const struct xp_ruby_trace *t, const struct xp_operand *o)
{
	struct xp_ruby_value v;

	if (o->fixed)
		return (struct xp_ruby_value){ .base = XP_RUBY_V_ADDR, .n = (uint64_t)o->value };
	if (o->base >= XP_REGS || o->index != XP_REG_NONE || o->fs || o->gs)
		return unknown;
	v = t->regs[o->base];
	v.add = (int64_t)((uint64_t)v.add + (uint64_t)o->value);
	return v.shift ? unknown : v;
}

/* The sum of the thread pointer and an offset in the GOT, in either order. */
static struct xp_ruby_value add(struct xp_ruby_value a, struct xp_ruby_value b)
{
	if (a.base == XP_RUBY_V_TP_OFFSET && b.base == XP_RUBY_V_TP) {
		struct xp_ruby_value swap = a;

		a = b;
		b = swap;
	}
	if (a.base != XP_RUBY_V_TP || b.base != XP_RUBY_V_TP_OFFSET || a.depth || b.depth ||
	    a.add || b.add)
		return unknown;
	b.base = XP_RUBY_V_INITIAL;
	return b;
}

/* What the call of __tls_get_addr gives for a pair of words in the GOT; unknown for other calls. */
static struct xp_ruby_value call_result(const struct xp_ruby_trace *t)
{
	const struct xp_ruby_value *arg = &t->regs[XP_RDI];
	const struct xp_reloc *reloc;

	if (arg->base != XP_RUBY_V_ADDR || arg->depth || arg->add)
		return unknown;
	reloc = xp_reloc_at(&t->r->relocs, arg->n);
	if (!reloc || reloc->type != R_X86_64_DTPMOD64)
		return unknown;
	return (struct xp_ruby_value){ .base = XP_RUBY_V_DYNAMIC, .n = arg->n };
}

static void forget(struct xp_ruby_trace *t, unsigned mask)
{
	for (unsigned i = 0; i < XP_REGS; i++) {
		if (mask & (1u << i))
			t->regs[i] = unknown;
	}
	if (mask & (1u << XP_RSP))
		t->has_spilled = false;
}

static void store(struct xp_ruby_trace *t, const struct xp_operand *to, struct xp_ruby_value v)
{
	if (to->fs || to->gs || to->base != XP_RSP || to->index != XP_REG_NONE || to->size != 8)
		return;
	t->spilled.at = to->value;
	t->spilled.value = v;
	t->has_spilled = true;
}

static struct xp_ruby_value result_of(const struct xp_ruby_trace *t, const struct xp_insn *insn,
				      const struct xp_ruby_value *v)
{
	struct xp_ruby_value result = v[0];

	switch (insn->op) {
	case XP_INSN_MOV:
		return v[1];
	case XP_INSN_LEA:
		return address_of(t, &insn->operands[1]);
	case XP_INSN_ADD:
		return add(v[0], v[1]);
	case XP_INSN_SHR:
		if (insn->noperands == 2 && insn->operands[1].kind != XP_OPERAND_IMM)
			return unknown;
		result.shift += insn->noperands == 2 ? (uint8_t)insn->operands[1].value & 63 : 1;
		return result.base && result.shift < 64 ? result : unknown;
	}
	return unknown;
}

static void apply(struct xp_ruby_trace *t, const struct xp_insn *insn,
		  const struct xp_ruby_value *v)
{
	const struct xp_operand *to = &insn->operands[0];
	struct xp_ruby_value result = unknown;

	if (insn->op == XP_INSN_CALL) {
		result = call_result(t);
		forget(t, CALLER_SAVED);
		t->regs[XP_RAX] = result;
		return;
	}
	if (insn->noperands)
		result = result_of(t, insn, v);
	forget(t, insn->writes);
	if (to->kind == XP_OPERAND_REG && to->reg < XP_REGS && (insn->writes >> to->reg & 1))
		t->regs[to->reg] = to->reg == XP_RSP ? unknown : result;
	else if (to->kind == XP_OPERAND_MEM && insn->op == XP_INSN_MOV)
		store(t, to, result);
}

static int run(struct xp_ruby_trace *t, const struct xp_ruby_code *code, bool inner)
{
	const uint8_t *p = xp_elf_at_vaddr(t->r->elf, code->start, code->end - code->start);
	struct xp_disasm *d = NULL;
	struct xp_insn insn;
	int rc = 0;

	if (!p)
		return 0;
	rc = xp_disasm_new(&d, p, code->end - code->start, code->start);
	for (unsigned n = 0; !rc && n < INSNS_MAX && xp_disasm_next(d, &insn); n++) {
		struct xp_ruby_value v[XP_INSN_OPERANDS] = { unknown, unknown };
		struct xp_ruby_code callee;

		for (unsigned i = 0; i < insn.noperands; i++)
			v[i] = read_operand(t, &insn.operands[i]);
		if (t->visit(t, &insn, v))
			rc = 1;
		else if (insn.op == XP_INSN_CALL && t->follow_calls && !inner &&
			 insn.operands[0].kind == XP_OPERAND_IMM &&
			 call_result(t).base == XP_RUBY_V_UNKNOWN &&
			 xp_ruby_function_at(t->r, (uint64_t)insn.operands[0].value, &callee) &&
			 callee.start == (uint64_t)insn.operands[0].value && clip(t->r, &callee))
			rc = run(t, &callee, true);
		else
			apply(t, &insn, v);
		if (inner && insn.op == XP_INSN_RET)
			break;
	}
	xp_disasm_free(d);
	return rc;
}

int xp_ruby_trace_run(struct xp_ruby_trace *t, const struct xp_ruby_code *code)
{
	memset(t->regs, 0, sizeof(t->regs));
	t->has_spilled = false;
	t->regs[XP_RDI].base = XP_RUBY_V_ARG;
	return run(t, code, false);
}
