// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * How instructions change an unwind rule: a push adds 8 to the distance of the CFA and, for a
 * register that is not saved yet, a slot; a pop takes it back.
 */
#include <string.h>

#include "target/cfi_blob_impl.h"

unsigned xp_blob_slot(const struct xp_rule *rule, unsigned reg)
{
	if (reg < XP_SAVED_N)
		return rule->save[reg];
	return rule->fp_off == XP_FP_SAME ? 0 : (unsigned)-rule->fp_off / 8;
}

static void set_slot(struct xp_rule *rule, unsigned reg, unsigned slot)
{
	if (reg < XP_SAVED_N)
		rule->save[reg] = (uint8_t)slot;
	else
		rule->fp_off = slot ? (int16_t)(slot * -8) : XP_FP_SAME;
}

bool xp_blob_same_rule(const struct xp_rule *a, const struct xp_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

bool xp_blob_on_top(const struct xp_rule *rule, unsigned reg)
{
	return reg < XP_BLOB_REGS && (int32_t)xp_blob_slot(rule, reg) * 8 == rule->cfa_off;
}

static bool push(struct xp_rule *rule, unsigned reg)
{
	rule->cfa_off += 8;
	if (reg >= XP_BLOB_REGS || xp_blob_slot(rule, reg))
		return true;
	if (rule->cfa_off / 8 >= XP_SAVE_LOST)
		return false;
	set_slot(rule, reg, (unsigned)rule->cfa_off / 8);
	return true;
}

static bool pop(struct xp_rule *rule, unsigned reg)
{
	if (xp_blob_on_top(rule, reg))
		set_slot(rule, reg, 0);
	rule->cfa_off -= 8;
	return rule->cfa_off >= 8;
}

bool xp_blob_step(struct xp_rule *rule, const struct xp_blob_insn *insn)
{
	if (insn->kind == XP_BLOB_PUSH)
		return push(rule, insn->reg);
	if (insn->kind == XP_BLOB_POP)
		return pop(rule, insn->reg);
	rule->cfa_off += insn->grow;
	return rule->cfa_off >= 8 && insn->kind != XP_BLOB_STRANGE &&
	       insn->kind != XP_BLOB_LOAD_SP;
}

bool xp_blob_step_back(struct xp_rule *rule, const struct xp_blob_insn *insn)
{
	if (insn->kind == XP_BLOB_PUSH)
		return pop(rule, insn->reg);
	if (insn->kind == XP_BLOB_POP)
		return push(rule, insn->reg);
	rule->cfa_off -= insn->grow;
	return rule->cfa_off >= 8 && insn->kind != XP_BLOB_STRANGE &&
	       insn->kind != XP_BLOB_LOAD_SP;
}

unsigned xp_blob_rule_id(struct xp_blob *b, const struct xp_rule *rule)
{
	for (unsigned i = 0; i < b->nrules; i++) {
		if (xp_blob_same_rule(&b->rules[i], rule))
			return i;
	}
	if (b->nrules < XP_BLOB_RULES)
		b->rules[b->nrules++] = *rule;
	else
		return XP_BLOB_RULES;
	return b->nrules - 1;
}

bool xp_blob_set_rule(struct xp_blob *b, size_t i, const struct xp_rule *rule)
{
	unsigned id = xp_blob_rule_id(b, rule);

	if (id == XP_BLOB_RULES)
		return false;
	b->insns.v[i].rule = (uint8_t)id;
	return true;
}

struct xp_rule xp_blob_fresh_rule(void)
{
	return (struct xp_rule){ .kind = XP_RULE_SP, .cfa_off = 8, .ra = 1, .fp_off = XP_FP_SAME };
}

struct xp_rule xp_blob_deeper_rule(const struct xp_blob *b, int32_t by)
{
	struct xp_rule rule = b->rules[XP_BLOB_BODY];

	rule.cfa_off += by;
	return rule;
}

bool xp_blob_ends_flow(const struct xp_blob_insn *insn)
{
	return insn->kind == XP_BLOB_JUMP || insn->kind == XP_BLOB_LEAP ||
	       insn->kind == XP_BLOB_RET || insn->kind == XP_BLOB_STRANGE;
}

size_t xp_blob_run_start(const struct xp_blob *b, size_t at, bool calls)
{
	const struct xp_blob_insn *v = b->insns.v;
	size_t i = at;

	while (i > 0 && at - i < XP_BLOB_RUN_MAX) {
		const struct xp_blob_insn *before = &v[i - 1];
		bool skips = before->kind == XP_BLOB_JUMP && before->to >= i && before->to <= at;

		if ((xp_blob_ends_flow(before) && !skips) ||
		    (before->kind == XP_BLOB_CALL && before->to == XP_BLOB_NOWHERE && !calls))
			break;
		i--;
	}
	return i;
}
