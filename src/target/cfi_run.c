// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Runs call frame instructions (DWARF 5, section 6.4.2; the GNU ones as in GCC 12,
 * libgcc/unwind-dw2.c).
 *
 * Only where the tracked registers are saved matters. Whatever else an instruction says about one
 * of them leaves a place that rows cannot hold, never one that looks unchanged. Instructions that
 * are not known make the whole FDE malformed: their operands cannot be skipped.
 */
#include "target/cfi_impl.h"

#include <dwarf.h>
#include <errno.h>

/* The instruction with an operand of six bits is in the upper two bits. */
#define PRIMARY_MASK 0xc0
#define OPERAND_MASK 0x3f

/* Most numbers take one byte. */
static uint64_t uleb(struct xp_cur *c)
{
	if (c->p < c->end && *c->p < 0x80)
		return *c->p++;
	return xp_cur_uleb(c);
}

/* A product of hostile numbers; one that overflows becomes a value that fits nowhere. */
static int64_t scaled(int64_t v, int64_t factor)
{
	int64_t product;

	return __builtin_mul_overflow(v, factor, &product) ? INT64_MAX : product;
}

static int64_t unsigned_offset(struct xp_cur *c, int64_t factor)
{
	uint64_t v = uleb(c);

	return v > INT64_MAX ? INT64_MAX : scaled((int64_t)v, factor);
}

static enum xp_cfi_column column_of(const struct xp_cfi_run *run, uint64_t reg)
{
	const struct xp_cfi_arch *arch = run->arch;

	if (reg == run->cie->ra)
		return XP_CFI_RA;
	if (reg == arch->sp)
		return XP_CFI_SP;
	if (reg == arch->fp)
		return XP_CFI_FP;
	for (unsigned i = 0; i < XP_SAVED_N; i++) {
		if (reg == arch->saved[i])
			return XP_CFI_SAVED + i;
	}
	return XP_CFI_UNTRACKED;
}

static void set_place(struct xp_cfi_run *run, uint64_t reg, enum xp_cfi_how how)
{
	enum xp_cfi_column col = column_of(run, reg);

	if (col != XP_CFI_UNTRACKED)
		run->state.place[col] = (struct xp_cfi_place){ 0, how };
}

static void set_slot(struct xp_cfi_run *run, uint64_t reg, int64_t off)
{
	enum xp_cfi_column col = column_of(run, reg);

	if (col == XP_CFI_UNTRACKED)
		return;
	if (off != (int32_t)off)
		run->state.place[col] = (struct xp_cfi_place){ 0, XP_CFI_ELSEWHERE };
	else
		run->state.place[col] = (struct xp_cfi_place){ (int32_t)off, XP_CFI_SLOT };
}

/*
 * The caller's value itself is CFA + off. For the stack pointer with off 0 that is what every
 * unwinder assumes; nothing else fits a row.
 */
static void set_value(struct xp_cfi_run *run, uint64_t reg, int64_t off)
{
	bool usual = column_of(run, reg) == XP_CFI_SP && off == 0;

	set_place(run, reg, usual ? XP_CFI_UNSPECIFIED : XP_CFI_ELSEWHERE);
}

/* The stack pointer unchanged would be another value than the CFA, which rows take for granted. */
static void set_same(struct xp_cfi_run *run, uint64_t reg)
{
	bool sp = column_of(run, reg) == XP_CFI_SP;

	set_place(run, reg, sp ? XP_CFI_ELSEWHERE : XP_CFI_UNSPECIFIED);
}

/*
 * The one expression that rows hold: where a function realigns the stack, gcc says of the frame
 * pointer that it is saved where it points, DW_OP_breg<fp> 0 (GCC 12, gcc/dwarf2cfi.cc, reg_save).
 */
static void set_expression(struct xp_cfi_run *run, uint64_t reg)
{
	uint64_t len = uleb(&run->insns);
	const uint8_t *expr = xp_cur_bytes(&run->insns, len);
	bool at_fp = expr && reg == run->arch->fp && len == 2 &&
		     expr[0] == DW_OP_breg0 + run->arch->fp && expr[1] == 0;

	set_place(run, reg, at_fp ? XP_CFI_AT_FP : XP_CFI_ELSEWHERE);
}

/*
 * Of a value kept in another register rows hold the return address only: glibc's vfork keeps it in
 * rdi across the system call (2.36, sysdeps/unix/sysv/linux/x86_64/vfork.S).
 */
static void set_register(struct xp_cfi_run *run, uint64_t reg, uint64_t in)
{
	enum xp_cfi_column col = column_of(run, reg);

	set_place(run, reg, XP_CFI_ELSEWHERE);
	if (col == XP_CFI_RA && in <= UINT8_MAX)
		run->state.place[col] = (struct xp_cfi_place){ (int32_t)in, XP_CFI_REGISTER };
}

static int restore(struct xp_cfi_run *run, uint64_t reg)
{
	enum xp_cfi_column col = column_of(run, reg);

	if (run->initial)	/* there is nothing yet to go back to */
		return -EINVAL;
	if (col != XP_CFI_UNTRACKED)
		run->state.place[col] = run->cie->initial.place[col];
	return 0;
}

static int advance(struct xp_cfi_run *run, uint64_t units)
{
	uint64_t delta;

	if (run->initial)
		return -EINVAL;
	if (__builtin_mul_overflow(units, run->cie->code_align, &delta) ||
	    delta > run->end - run->pc)
		delta = run->end - run->pc;
	run->next = run->pc + delta;
	return 0;
}

static int set_loc(struct xp_cfi_run *run)
{
	const struct xp_cfi_entries *es = run->entries;
	uint64_t at = es->vaddr + (uint64_t)(run->insns.p - es->data);
	uint64_t to = xp_cfi_pointer(&run->insns, run->cie->encoding, at);

	if (run->initial || run->insns.bad || to < run->pc)
		return -EINVAL;
	run->next = to < run->end ? to : run->end;
	return 0;
}

static void set_cfa(struct xp_cfi_run *run, uint64_t reg, int64_t off)
{
	run->state.base = XP_CFA_REGISTER;
	run->state.reg = reg;
	run->state.off = off;
}

/* Changing half of a CFA that is no register plus offset leaves none. */
static bool changes_register_cfa(struct xp_cfi_run *run)
{
	if (run->state.base != XP_CFA_REGISTER)
		run->state.base = XP_CFA_NONE;
	return run->state.base == XP_CFA_REGISTER;
}

static void set_cfa_expression(struct xp_cfi_run *run)
{
	uint64_t len = uleb(&run->insns);

	run->state.base = XP_CFA_EXPRESSION;
	run->state.expr = xp_cur_bytes(&run->insns, len);
	run->state.expr_len = run->state.expr ? len : 0;
}

/* 1: the instruction was one about the CFA, else 0. */
static int step_cfa(struct xp_cfi_run *run, uint8_t op)
{
	struct xp_cur *c = &run->insns;
	int64_t factor = run->cie->data_align, off;
	uint64_t reg;

	switch (op) {
	case DW_CFA_def_cfa:
		reg = uleb(c);
		set_cfa(run, reg, unsigned_offset(c, 1));
		return 1;
	case DW_CFA_def_cfa_sf:
		reg = uleb(c);
		set_cfa(run, reg, scaled(xp_cur_sleb(c), factor));
		return 1;
	case DW_CFA_def_cfa_register:
		reg = uleb(c);
		if (changes_register_cfa(run))
			run->state.reg = reg;
		return 1;
	case DW_CFA_def_cfa_offset:
	case DW_CFA_def_cfa_offset_sf:
		off = op == DW_CFA_def_cfa_offset ? unsigned_offset(c, 1) :
						    scaled(xp_cur_sleb(c), factor);
		if (changes_register_cfa(run))
			run->state.off = off;
		return 1;
	case DW_CFA_def_cfa_expression:
		set_cfa_expression(run);
		return 1;
	default:
		return 0;
	}
}

static int remember(struct xp_cfi_run *run)
{
	if (run->depth == XP_CFI_REMEMBER_MAX)
		return -EINVAL;
	run->stack[run->depth++] = run->state;
	return 0;
}

static int recall(struct xp_cfi_run *run)
{
	if (!run->depth)
		return -EINVAL;
	run->state = run->stack[--run->depth];
	return 0;
}

/* Instructions whose first operand is a register that they give a place. */
static int step_register(struct xp_cfi_run *run, uint8_t op)
{
	struct xp_cur *c = &run->insns;
	int64_t factor = run->cie->data_align;
	uint64_t reg = uleb(c);

	switch (op) {
	case DW_CFA_offset_extended:
		set_slot(run, reg, unsigned_offset(c, factor));
		return 0;
	case DW_CFA_offset_extended_sf:
		set_slot(run, reg, scaled(xp_cur_sleb(c), factor));
		return 0;
	case DW_CFA_GNU_negative_offset_extended:
		set_slot(run, reg, scaled(unsigned_offset(c, factor), -1));
		return 0;
	case DW_CFA_val_offset:
		set_value(run, reg, unsigned_offset(c, factor));
		return 0;
	case DW_CFA_val_offset_sf:
		set_value(run, reg, scaled(xp_cur_sleb(c), factor));
		return 0;
	case DW_CFA_restore_extended:
		return restore(run, reg);
	case DW_CFA_undefined:
		set_place(run, reg, XP_CFI_UNDEFINED);
		return 0;
	case DW_CFA_same_value:
		set_same(run, reg);
		return 0;
	case DW_CFA_register:
		set_register(run, reg, uleb(c));
		return 0;
	case DW_CFA_expression:
		set_expression(run, reg);
		return 0;
	case DW_CFA_val_expression:
		xp_cur_bytes(c, uleb(c));
		set_place(run, reg, XP_CFI_ELSEWHERE);
		return 0;
	default:
		return -EINVAL;
	}
}

/* One instruction without an operand in its first byte. */
static int step_extended(struct xp_cfi_run *run, uint8_t op)
{
	struct xp_cur *c = &run->insns;

	if (step_cfa(run, op))
		return 0;
	switch (op) {
	case DW_CFA_nop:
		return 0;
	case DW_CFA_set_loc:
		return set_loc(run);
	case DW_CFA_advance_loc1:
		return advance(run, xp_cur_u8(c));
	case DW_CFA_advance_loc2:
		return advance(run, xp_cur_u16(c));
	case DW_CFA_advance_loc4:
		return advance(run, xp_cur_u32(c));
	case DW_CFA_remember_state:
		return remember(run);
	case DW_CFA_restore_state:
		return recall(run);
	case DW_CFA_GNU_args_size:
		uleb(c);
		return 0;
	default:
		return step_register(run, op);
	}
}

static int step(struct xp_cfi_run *run)
{
	uint8_t op = *run->insns.p++;
	uint8_t operand = op & OPERAND_MASK;

	switch (op & PRIMARY_MASK) {
	case DW_CFA_advance_loc:
		return advance(run, operand);
	case DW_CFA_offset:
		set_slot(run, operand, unsigned_offset(&run->insns, run->cie->data_align));
		return 0;
	case DW_CFA_restore:
		return restore(run, operand);
	default:
		return step_extended(run, op);
	}
}

int xp_cfi_run_next(struct xp_cfi_run *run)
{
	run->pc = run->next;
	if (run->pc == run->end)	/* what is left, if anything, is about no address */
		return 0;
	while (xp_cur_left(&run->insns)) {
		int rc = step(run);

		if (rc)
			return rc;
		if (run->next != run->pc && !run->insns.bad)
			return 1;
	}
	if (run->insns.bad)
		return -EINVAL;
	run->next = run->end;
	return 1;
}

int xp_cfi_run_cie(const struct xp_cfi_entries *es, struct xp_cfi_cie *cie, struct xp_cur insns)
{
	/* Any range will do: instructions that advance are refused. */
	struct xp_cfi_run run = { .arch = es->arch, .cie = cie, .entries = es, .insns = insns,
				  .end = 1, .initial = true };
	int rc = xp_cfi_run_next(&run);

	if (rc < 0)
		return rc;
	cie->initial = run.state;
	return 0;
}

void xp_cfi_run_init(struct xp_cfi_run *run, const struct xp_cfi_entries *es,
		     const struct xp_cfi_fde *fde)
{
	run->arch = es->arch;
	run->cie = &es->cies.v[fde->cie];
	run->entries = es;
	run->insns = xp_cur_of(es->data + fde->at, fde->len);
	run->next = fde->start;
	run->end = fde->end;
	run->initial = false;
	run->state = run->cie->initial;
	run->depth = 0;
}
