// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Where in a blob of machine code the unwind rule differs from its body's.
 *
 * Rules are followed from places where the code says what is on the stack: where a whole frame is
 * made or taken down; the return address on top at a return, and where a call leads to; and the
 * body's frame below a push. What is not reached from there keeps the body's rule.
 */

#include "target/cfi_blob_impl.h"

#define LOADS_MAX 16		/* instructions that load rsp */
#define DEEPER_MAX 64		/* pushes and allocations in the body */

/*
 * The pushes before an instruction that makes room for the rest of the frame, and what stands
 * before the first one at a function's beginning (endbr64). True when it is one and all registers
 * are pushed. What generated code jumps to after it has pushed the first ones gets its rows as well
 * but is no proof.
 */
static bool frame_made(struct xp_blob *b, size_t at)
{
	const struct xp_blob_insn *v = b->insns.v;
	struct xp_rule rule = b->rules[XP_BLOB_BODY];
	size_t i = at;

	if (v[at].kind != XP_BLOB_ADJUST ||
	    v[at].grow != rule.cfa_off - 8 * (int32_t)(b->saved + 1))
		return false;
	rule.cfa_off -= v[at].grow;
	while (i > 0 && v[i - 1].kind == XP_BLOB_PUSH && xp_blob_on_top(&rule, v[i - 1].reg)) {
		xp_blob_set_rule(b, i, &rule);
		xp_blob_step_back(&rule, &v[--i]);
	}
	if (at - i < 2 || (rule.cfa_off > 8 && i > 0 && !xp_blob_ends_flow(&v[i - 1]))) {
		for (; i <= at; i++)
			b->insns.v[i].rule = XP_BLOB_BODY;
		return false;
	}
	xp_blob_set_rule(b, i, &rule);
	while (i > 0 && v[i - 1].kind == XP_BLOB_PAD)
		xp_blob_set_rule(b, --i, &rule);
	return rule.cfa_off == 8;
}

/* The pops after an instruction that gives the room back, up to the return or jump. */
static void frame_taken_down(struct xp_blob *b, size_t at)
{
	const struct xp_blob_insn *v = b->insns.v;
	struct xp_rule rule = b->rules[XP_BLOB_BODY];
	size_t i = at + 1;

	if (v[at].kind != XP_BLOB_ADJUST ||
	    v[at].grow != 8 * (int32_t)(b->saved + 1) - rule.cfa_off)
		return;
	rule.cfa_off += v[at].grow;
	while (i < b->insns.n && v[i].kind == XP_BLOB_POP && xp_blob_on_top(&rule, v[i].reg)) {
		xp_blob_set_rule(b, i, &rule);
		xp_blob_step(&rule, &v[i++]);
	}
	if (i < b->insns.n && rule.cfa_off == 8 && v[i].kind != XP_BLOB_STRANGE &&
	    xp_blob_ends_flow(&v[i])) {
		xp_blob_set_rule(b, i, &rule);
		return;
	}
	while (--i > at)
		b->insns.v[i].rule = XP_BLOB_BODY;
}

/* Something outside the instructions from first to last calls or jumps to one of them. */
static bool entered(const struct xp_blob *b, size_t first, size_t last)
{
	for (size_t i = 0; i < b->insns.n; i++) {
		uint32_t to = b->insns.v[i].to;

		if ((i < first || i > last) && to >= first && to <= last)
			return true;
	}
	return false;
}

/* Code up to the loading of rsp, where what rsp was before is not known. False: it is too much. */
static bool lost_places(struct xp_blob *b)
{
	const struct xp_rule bad = { .kind = XP_RULE_BAD };
	unsigned loads = 0;

	for (size_t at = 0; at < b->insns.n; at++) {
		size_t first;
		bool untouched = true;

		if (b->insns.v[at].kind != XP_BLOB_LOAD_SP)
			continue;
		if (++loads > LOADS_MAX)
			return false;
		first = xp_blob_run_start(b, at, true);
		for (size_t i = first; i <= at; i++)
			untouched &= b->insns.v[i].rule == XP_BLOB_BODY;
		if (!untouched || at - first >= XP_BLOB_RUN_MAX || entered(b, first, at))
			continue;
		for (size_t i = first; i <= at; i++) {
			if (!xp_blob_set_rule(b, i, &bad))
				return false;
		}
	}
	return true;
}

/*
 * What follows a push or an allocation in the body, up to a computed jump or return, or until the
 * stack is as before. It must not branch: its targets would be at the body's depth as well.
 */
static void deeper_place(struct xp_blob *b, size_t at)
{
	const struct xp_blob_insn *v = b->insns.v;
	struct xp_rule rule = b->rules[XP_BLOB_BODY];
	size_t last = at;

	if (!xp_blob_step(&rule, &v[at]))
		return;
	while (!xp_blob_same_rule(&rule, &b->rules[XP_BLOB_BODY])) {
		last++;
		if (last == b->insns.n || last - at > XP_BLOB_RUN_MAX ||
		    v[last].rule != XP_BLOB_BODY || v[last].kind == XP_BLOB_BRANCH ||
		    v[last].kind == XP_BLOB_JUMP)
			return;
		if (v[last].kind == XP_BLOB_RET || v[last].kind == XP_BLOB_LEAP)
			break;
		if (!xp_blob_step(&rule, &v[last]))
			return;
	}
	rule = b->rules[XP_BLOB_BODY];
	for (size_t i = at; i < last; i++) {
		xp_blob_step(&rule, &v[i]);
		xp_blob_set_rule(b, i + 1, &rule);
	}
}

/* No jump leads from one depth to another. */
static bool consistent(const struct xp_blob *b)
{
	for (size_t i = 0; i < b->insns.n; i++) {
		const struct xp_blob_insn *insn = &b->insns.v[i];

		if ((insn->kind == XP_BLOB_JUMP || insn->kind == XP_BLOB_BRANCH) &&
		    insn->to != XP_BLOB_NOWHERE && b->insns.v[insn->to].rule != insn->rule)
			return false;
	}
	return true;
}

/* False: there are too many. */
static bool deeper_places(struct xp_blob *b)
{
	unsigned n = 0;

	for (size_t i = 0; i < b->insns.n; i++) {
		if (b->insns.v[i].rule != XP_BLOB_BODY || b->insns.v[i].grow <= 0)
			continue;
		if (++n > DEEPER_MAX)
			return false;
		deeper_place(b, i);
	}
	return true;
}

int xp_blob_find_places(struct xp_blob *b)
{
	unsigned entries = 0;
	int rc;

	for (size_t i = 0; i < b->insns.n; i++) {
		entries += frame_made(b, i);
		frame_taken_down(b, i);
	}
	if (!entries || !lost_places(b))
		return 0;
	rc = xp_blob_find_functions(b);
	if (rc <= 0)
		return rc;
	return deeper_places(b) && b->nrules < XP_BLOB_RULES && consistent(b);
}
