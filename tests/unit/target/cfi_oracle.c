// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Compares a table of unwind rows with what elfutils' libdw says about the same file.
 *
 * libdw's answer for an address (a DWARF expression for the CFA and one for each register) is
 * translated into the rule that bpf/unwind.h prescribes for it, by code of its own, and must then
 * be equal byte for byte. Only x86-64.
 */
#include "cfi_oracle.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* .eh_frame and .debug_frame, which is asked where the first has nothing; either may be NULL. */
struct sections {
	Dwarf_CFI *eh, *debug;
};

enum { RBX = 3, RBP = 6, RSP = 7, R12 = 12, RIP = 16 };

/* Where libdw says that a register's value in the caller is. */
struct location {
	enum { SAME, UNDEFINED, AT_CFA, IS_CFA, AT_FP, IN_REGISTER, OTHER } how;
	int64_t off;
};

static struct location location_of(Dwarf_Frame *frame, int reg)
{
	struct location loc = { OTHER, 0 };
	Dwarf_Op mem[3], *ops;
	size_t n;

	if (dwarf_frame_register(frame, reg, mem, &ops, &n) != 0)
		return loc;
	if (n == 0) {
		loc.how = ops ? UNDEFINED : SAME;
		return loc;
	}
	if (n == 1 && ops[0].atom == DW_OP_regx) {
		loc.how = IN_REGISTER;
		loc.off = (int64_t)ops[0].number;
		return loc;
	}
	if (ops[0].atom != DW_OP_call_frame_cfa)
		return loc;
	if (n > 1 && ops[1].atom == DW_OP_plus_uconst) {
		loc.off = (int64_t)ops[1].number;
		ops++;
		n--;
	}
	if (n == 1)
		loc.how = AT_CFA;
	else if (n == 2 && ops[1].atom == DW_OP_breg6 && ops[1].number == 0)
		loc.how = AT_FP;	/* the CFA below it on the stack is not used */
	else if (n == 2 && ops[1].atom == DW_OP_stack_value)
		loc.how = IS_CFA;
	return loc;
}

/*
 * elfutils 0.188 names register 0, which is rax, where it lists rbx as callee-saved
 * (backends/x86_64_cfi.c), so an rbx of which the CFI says nothing comes out as undefined.
 */
static struct location saved_location(Dwarf_Frame *frame, int reg)
{
	struct location loc = location_of(frame, reg);

	if (reg == RBX && loc.how == UNDEFINED)
		loc.how = SAME;
	return loc;
}

/* 8 * n below the CFA, with n in [1, max]: n. Else 0. */
static unsigned below(struct location loc, unsigned max)
{
	for (unsigned n = 1; loc.how == AT_CFA && n <= max; n++) {
		if (loc.off == -8 * (int64_t)n)
			return n;
	}
	return 0;
}

static void cfa_of_ops(struct xp_rule *rule, const Dwarf_Op *ops, size_t n)
{
	static const uint8_t plt[] = { DW_OP_breg7, DW_OP_breg16, DW_OP_lit15, DW_OP_and, 0,
				       DW_OP_ge, DW_OP_lit3, DW_OP_shl, DW_OP_plus };
	size_t same = 0;

	rule->kind = XP_RULE_BAD;
	rule->cfa_off = 0;
	if (n == 1 && ops[0].atom == DW_OP_bregx) {
		rule->kind = ops[0].number == RSP ? XP_RULE_SP :
			     ops[0].number == RBP ? XP_RULE_FP : XP_RULE_REG;
		rule->reg = rule->kind == XP_RULE_REG ? (uint8_t)ops[0].number : 0;
		rule->cfa_off = (int32_t)ops[0].number2;
	} else if ((n == 2 || (n == 3 && ops[2].atom == DW_OP_plus_uconst &&
			       ops[2].number <= 0xffff)) && ops[1].atom == DW_OP_deref &&
		   (ops[0].atom == DW_OP_breg6 || ops[0].atom == DW_OP_breg7)) {
		rule->kind = ops[0].atom == DW_OP_breg6 ? XP_RULE_DEREF_FP : XP_RULE_DEREF_SP;
		rule->cfa_off = (int32_t)ops[0].number;
		rule->deref_add = n == 3 ? (uint16_t)ops[2].number : 0;
	} else if (n == sizeof(plt)) {
		for (size_t i = 0; i < n; i++)
			same += i == 4 ? ops[i].atom >= DW_OP_lit0 && ops[i].atom <= DW_OP_lit31 :
					 ops[i].atom == plt[i];
		if (same == n && ops[0].number == 8 && ops[1].number == 0) {
			rule->kind = XP_RULE_PLT;
			rule->cfa_off = ops[4].atom - DW_OP_lit0;
		}
	}
}

static struct xp_rule rule_of(Dwarf_Frame *frame)
{
	struct location ra = location_of(frame, RIP), sp = location_of(frame, RSP);
	struct location fp = location_of(frame, RBP);
	struct xp_rule rule = { 0 }, bad = { .kind = XP_RULE_BAD };
	bool signal = false;
	Dwarf_Op *ops;
	size_t n;

	if (ra.how == UNDEFINED)
		return (struct xp_rule){ .kind = XP_RULE_END };
	if (dwarf_frame_cfa(frame, &ops, &n) != 0)
		return bad;
	cfa_of_ops(&rule, ops, n);
	rule.ra = (uint8_t)below(ra, 255);
	dwarf_frame_info(frame, NULL, NULL, &signal);
	if (signal && (ops[0].atom != DW_OP_bregx || !rule.ra))
		return (struct xp_rule){ .kind = XP_RULE_SIGNAL };
	if (rule.kind == XP_RULE_BAD || sp.how != IS_CFA || sp.off != 0)
		return bad;
	if (!rule.ra && (ra.how != IN_REGISTER || rule.kind == XP_RULE_REG))
		return bad;
	if (!rule.ra)
		rule.reg = (uint8_t)ra.off;
	rule.fp_off = fp.how == SAME ? XP_FP_SAME :
		      fp.how == AT_FP ? XP_FP_AT_FP :
		      fp.how == AT_CFA && fp.off >= -0x8000 && fp.off < XP_FP_AT_FP ?
		      (int16_t)fp.off : XP_FP_LOST;
	for (int i = 0; i < XP_SAVED_N; i++) {
		struct location loc = saved_location(frame, i ? R12 + i - 1 : RBX);
		unsigned slot = below(loc, 254);

		rule.save[i] = loc.how == SAME ? 0 : slot ? (uint8_t)slot : XP_SAVE_LOST;
	}
	return rule;
}

/* Text for a rule, in one of a few static buffers. */
static const char *show(const struct xp_rule *r)
{
	static char text[2][128];
	static unsigned which;
	char *to = text[which++ % 2];

	snprintf(to, sizeof(text[0]), "kind %u reg %u cfa %d fp %d save %u %u %u %u %u ra %u",
		 r->kind, r->reg, r->cfa_off, r->fp_off, r->save[0], r->save[1], r->save[2],
		 r->save[3], r->save[4], r->ra);
	return to;
}

static const struct xp_cfi_func *func_before(const struct xp_cfi *cfi, uint64_t vaddr)
{
	const struct xp_cfi_func *found = NULL;
	size_t lo = 0, hi = cfi->funcs.n;

	while (lo < hi) {
		size_t mid = (lo + hi) / 2;

		if (cfi->funcs.v[mid].start <= vaddr) {
			found = &cfi->funcs.v[mid];
			lo = mid + 1;
		} else {
			hi = mid;
		}
	}
	return found;
}

static Dwarf_Frame *frame_at(const struct sections *dw, uint64_t vaddr)
{
	Dwarf_Frame *frame = NULL;

	if (dw->eh && dwarf_cfi_addrframe(dw->eh, vaddr, &frame) == 0)
		return frame;
	if (dw->debug && dwarf_cfi_addrframe(dw->debug, vaddr, &frame) == 0)
		return frame;
	return NULL;
}

/* Compares one address; the address where libdw's answer ends, or 0 when it has none. */
static uint64_t compare_at(const struct sections *dw, const struct xp_cfi *cfi, uint64_t vaddr,
			   struct cfi_oracle *res)
{
	const struct xp_rule *found = xp_cfi_rule_at(cfi, vaddr);
	const struct xp_cfi_func *func = func_before(cfi, vaddr);
	struct xp_rule ours = found ? *found : (struct xp_rule){ 0 };
	struct xp_rule theirs = { .kind = XP_RULE_NONE };
	Dwarf_Frame *frame = frame_at(dw, vaddr);
	Dwarf_Addr start = 0, end = 0;

	if (frame) {
		theirs = rule_of(frame);
		dwarf_frame_info(frame, &start, &end, NULL);
	}
	if (memcmp(&ours, &theirs, sizeof(ours)) == 0) {
		res->same++;
	} else if (!frame && func && vaddr >= func->end && vaddr - func->end < 16 &&
		   found == xp_cfi_rule_at(cfi, func->end - 1)) {
		res->padding++;
	} else if (ours.kind == XP_RULE_FORK ? !frame && func && vaddr - func->end < 16 :
		   (ours.kind == XP_RULE_END || ours.kind == XP_RULE_SIGNAL) &&
		   (!frame || (theirs.kind == XP_RULE_SP && theirs.cfa_off == 8))) {
		res->stubs++;
	} else if (frame && func && vaddr < func->end && (start < func->start || end > func->end)) {
		res->overlap++;
	} else if (res->different++ == 0) {
		snprintf(res->first, sizeof(res->first), "at 0x%lx: %s, libdw: %s%s",
			 (unsigned long)vaddr, show(&ours), show(&theirs),
			 frame ? "" : " (no frame)");
	}
	free(frame);
	return end;
}

static void compare_rows(const struct sections *dw, const struct xp_cfi *cfi,
			 struct cfi_oracle *res)
{
	size_t row = 0;

	for (size_t i = 0; i < cfi->funcs.n; i++) {
		uint64_t at = cfi->funcs.v[i].start;

		while (at < cfi->funcs.v[i].end) {
			uint64_t end = compare_at(dw, cfi, at, res);

			while (row < cfi->rows.n && cfi->rows.v[row].vaddr <= at)
				row++;
			if (row < cfi->rows.n && (end <= at || cfi->rows.v[row].vaddr < end))
				end = cfi->rows.v[row].vaddr;
			if (end <= at)
				break;
			at = end;
		}
	}
	for (size_t i = 0; i < cfi->rows.n; i++)
		compare_at(dw, cfi, cfi->rows.v[i].vaddr, res);
}

/* xorshift64 (Marsaglia 2003). */
static uint64_t next_random(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

int cfi_oracle_compare(Elf *elf, const struct xp_cfi *cfi, size_t nrandom, uint64_t seed,
		       struct cfi_oracle *res)
{
	Dwarf *debug = dwarf_begin_elf(elf, DWARF_C_READ, NULL);
	struct sections dw = { dwarf_getcfi_elf(elf), debug ? dwarf_getcfi(debug) : NULL };
	bool readable = (dw.eh || dw.debug) && cfi->funcs.n;
	uint64_t from, span;

	if (!readable)
		goto out;
	compare_rows(&dw, cfi, res);
	from = cfi->funcs.v[0].start - 16;
	span = cfi->funcs.v[cfi->funcs.n - 1].end + 32 - from;
	for (size_t i = 0; i < nrandom; i++)
		compare_at(&dw, cfi, from + next_random(&seed) % span, res);
out:
	dwarf_cfi_end(dw.eh);
	dwarf_end(debug);		/* and what dwarf_getcfi() gave */
	return readable ? 0 : -1;
}
