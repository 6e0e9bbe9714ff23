// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the state that call frame instructions lead to, to the rule that a row can hold; and what
 * that needs to know about each architecture.
 */
#include "target/cfi_impl.h"

#include <dwarf.h>
#include <elf.h>
#include <string.h>

#define SLOT_SIZE 8u
#define RA_SLOT_MAX 255
#define SAVE_SLOT_MAX (XP_SAVE_LOST - 1)

/*
 * What binutils writes for .plt (2.40, bfd/elf64-x86-64.c): rsp + 8, and 8 more once the entry's
 * push is done. At which byte of the entry that is depends on the kind of table.
 */
static const uint8_t x86_64_plt[] = {
	DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
	DW_OP_lit3, DW_OP_shl, DW_OP_plus,
};

/* Register numbers: System V ABI, AMD64 supplement, figure 3.36. */
static const struct xp_cfi_arch arches[] = {
	{
		.machine = EM_X86_64,
		.sp = 7,
		.fp = 6,
		.saved = { [XP_SAVED_RBX] = 3, [XP_SAVED_R12] = 12, [XP_SAVED_R13] = 13,
			   [XP_SAVED_R14] = 14, [XP_SAVED_R15] = 15 },
		.plt = x86_64_plt,
		.plt_len = sizeof(x86_64_plt),
		.plt_limit = 6,
	},
};

const struct xp_cfi_arch *xp_cfi_arch_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++) {
		if (arches[i].machine == machine)
			return &arches[i];
	}
	return NULL;
}

/* n for a place at CFA - 8 * n, or 0 when there is no such n up to max. */
static unsigned slot_of(struct xp_cfi_place place, unsigned max)
{
	uint32_t depth = -(uint32_t)place.off;		/* huge for places above the CFA */

	if (place.how != XP_CFI_SLOT || depth % SLOT_SIZE || depth / SLOT_SIZE > max)
		return 0;
	return depth / SLOT_SIZE;
}

/* The limit in a PLT's expression, or -1 when it is another expression. */
static int plt_limit(const struct xp_cfi_arch *arch, const struct xp_cfi_state *s)
{
	size_t at = arch->plt_limit;

	if (!arch->plt || s->expr_len != arch->plt_len || memcmp(s->expr, arch->plt, at) ||
	    memcmp(s->expr + at + 1, arch->plt + at + 1, arch->plt_len - at - 1))
		return -1;
	if (s->expr[at] < DW_OP_lit0 || s->expr[at] > DW_OP_lit31)
		return -1;
	return s->expr[at] - DW_OP_lit0;
}

/*
 * DW_OP_breg<reg> <off>, DW_OP_deref, DW_OP_plus_uconst <add>: OpenSSL's assembler keeps the stack
 * pointer that it found in its frame and says so like this (3.0, crypto/perlasm/x86_64-xlate.pl,
 * cfa_expression). The addition may be missing; false for any other expression.
 */
static bool deref_of(const struct xp_cfi_state *s, uint8_t reg, int64_t *off, uint16_t *add)
{
	struct xp_cur c = xp_cur_of(s->expr, s->expr_len);
	uint64_t n = 0;

	if (xp_cur_u8(&c) != DW_OP_breg0 + reg)
		return false;
	*off = xp_cur_sleb(&c);
	if (xp_cur_u8(&c) != DW_OP_deref)
		return false;
	if (xp_cur_left(&c)) {
		if (xp_cur_u8(&c) != DW_OP_plus_uconst)
			return false;
		n = xp_cur_uleb(&c);
	}
	*add = (uint16_t)n;
	return n <= UINT16_MAX && !c.bad && !xp_cur_left(&c);
}

static enum xp_rule_kind expression_cfa(const struct xp_cfi_arch *arch, const struct xp_cfi_state *s,
					int64_t *off, uint16_t *add)
{
	int limit = plt_limit(arch, s);

	if (limit >= 0) {
		*off = limit;
		return XP_RULE_PLT;
	}
	if (deref_of(s, arch->fp, off, add))
		return XP_RULE_DEREF_FP;
	if (deref_of(s, arch->sp, off, add))
		return XP_RULE_DEREF_SP;
	return XP_RULE_BAD;
}

/* Sets kind, reg and cfa_off; false when the CFA does not fit. */
static bool set_cfa(struct xp_rule *rule, const struct xp_cfi_arch *arch,
		    const struct xp_cfi_state *s)
{
	int64_t off = s->off;

	if (s->base == XP_CFA_NONE)
		return false;
	if (s->base == XP_CFA_EXPRESSION) {
		rule->kind = expression_cfa(arch, s, &off, &rule->deref_add);
	} else if (s->reg == arch->sp) {
		rule->kind = XP_RULE_SP;
	} else if (s->reg == arch->fp) {
		rule->kind = XP_RULE_FP;
	} else if (s->reg <= UINT8_MAX) {
		rule->kind = XP_RULE_REG;
		rule->reg = (uint8_t)s->reg;
	} else {
		return false;
	}
	rule->cfa_off = (int32_t)off;
	return rule->kind != XP_RULE_BAD && off == (int32_t)off;
}

static int16_t fp_place(struct xp_cfi_place place)
{
	if (place.how == XP_CFI_UNSPECIFIED)
		return XP_FP_SAME;
	if (place.how == XP_CFI_AT_FP)
		return XP_FP_AT_FP;
	if (place.how != XP_CFI_SLOT || place.off < INT16_MIN || place.off >= XP_FP_AT_FP)
		return XP_FP_LOST;
	return (int16_t)place.off;
}

static uint8_t save_place(struct xp_cfi_place place)
{
	unsigned slot;

	if (place.how == XP_CFI_UNSPECIFIED)
		return 0;
	slot = slot_of(place, SAVE_SLOT_MAX);
	return slot ? (uint8_t)slot : XP_SAVE_LOST;
}

struct xp_rule xp_cfi_rule(const struct xp_cfi_arch *arch, const struct xp_cfi_cie *cie,
			   const struct xp_cfi_state *s)
{
	unsigned ra = slot_of(s->place[XP_CFI_RA], RA_SLOT_MAX);
	bool in_register = s->place[XP_CFI_RA].how == XP_CFI_REGISTER;
	struct xp_rule rule = { .ra = (uint8_t)ra };

	if (s->place[XP_CFI_RA].how == XP_CFI_UNDEFINED)
		return (struct xp_rule){ .kind = XP_RULE_END };
	/*
	 * The kernel's signal frame is described by expressions. Code that only borrows the 'S' to
	 * say that its caller's pc is exact has ordinary places and is unwound by them.
	 */
	if (cie->signal && (s->base == XP_CFA_EXPRESSION || !ra))
		return (struct xp_rule){ .kind = XP_RULE_SIGNAL };
	if ((!ra && !in_register) || s->place[XP_CFI_SP].how != XP_CFI_UNSPECIFIED ||
	    !set_cfa(&rule, arch, s) || (in_register && rule.kind == XP_RULE_REG))
		return (struct xp_rule){ .kind = XP_RULE_BAD };
	if (in_register)
		rule.reg = (uint8_t)s->place[XP_CFI_RA].off;
	rule.fp_off = fp_place(s->place[XP_CFI_FP]);
	for (unsigned i = 0; i < XP_SAVED_N; i++)
		rule.save[i] = save_place(s->place[XP_CFI_SAVED + i]);
	return rule;
}
