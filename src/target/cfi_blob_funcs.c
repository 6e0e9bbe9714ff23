// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The functions in a blob: where calls lead to, and what ends in a return.
 */
#include <errno.h>

#include "target/cfi_blob_impl.h"

#define ROOTS_MAX 64

/* Gives the last functions' instructions back to the body, all but the first n. */
static void forget(struct xp_blob *b, size_t n)
{
	while (b->trail.n > n)
		b->insns.v[b->trail.v[--b->trail.n]].rule = XP_BLOB_BODY;
}

/* A walk through one function. */
struct walk {
	struct xp_blob *b;
	struct xp_rule start;
	uint32_t todo[XP_BLOB_RUN_MAX];
	unsigned ntodo, seen;
	bool failed, no_memory;
};

/* The rule holds at an instruction: the first time it is put on the list. */
static void reach(struct walk *w, size_t i, const struct xp_rule *rule)
{
	struct xp_blob *b = w->b;
	unsigned id = xp_blob_rule_id(b, rule);
	uint32_t *trail;

	if (i >= b->insns.n || id == XP_BLOB_RULES) {
		w->failed = true;
		return;
	}
	if (b->insns.v[i].rule == id)
		return;
	if (b->insns.v[i].rule != XP_BLOB_BODY || ++w->seen > XP_BLOB_RUN_MAX) {
		w->failed = true;
		return;
	}
	trail = xp_vec_push(&b->trail);
	if (!trail) {
		w->failed = w->no_memory = true;
		return;
	}
	*trail = w->todo[w->ntodo++] = (uint32_t)i;
	b->insns.v[i].rule = (uint8_t)id;
}

/* A jump out of the blob is a call in place of the return. */
static void reach_target(struct walk *w, const struct xp_blob_insn *insn,
			 const struct xp_rule *rule)
{
	if (insn->to != XP_BLOB_NOWHERE)
		reach(w, insn->to, rule);
	else if (!xp_blob_same_rule(rule, &w->start))
		w->failed = true;
}

static void go_on(struct walk *w, size_t i)
{
	const struct xp_blob_insn *insn = &w->b->insns.v[i];
	struct xp_rule rule = w->b->rules[insn->rule];

	switch (insn->kind) {
	case XP_BLOB_RET:
		w->failed |= !xp_blob_same_rule(&rule, &w->start);
		return;
	case XP_BLOB_JUMP:
		reach_target(w, insn, &rule);
		return;
	case XP_BLOB_BRANCH:
		reach_target(w, insn, &rule);
		break;
	case XP_BLOB_LEAP:
		w->failed = true;
		return;
	}
	if (xp_blob_step(&rule, insn))
		reach(w, i + 1, &rule);
	else
		w->failed = true;
}

/*
 * Sets the rules of a function by all its paths, each of which has to end in a return, or where a
 * return address is popped and the function goes on as a part of the body. 1, 0: not a function,
 * nothing was set; or -ENOMEM.
 */
static int walk_function(struct xp_blob *b, size_t at, bool own)
{
	struct walk w = { .b = b, .start = own ? xp_blob_fresh_rule() : xp_blob_deeper_rule(b, 8) };
	size_t before = b->trail.n;

	reach(&w, at, &w.start);
	while (w.ntodo && !w.failed)
		go_on(&w, w.todo[--w.ntodo]);
	if (w.failed)
		forget(b, before);
	return w.no_memory ? -ENOMEM : !w.failed;
}

static struct xp_blob_root *root_at(const struct xp_blob *b, uint32_t at)
{
	for (size_t i = 0; i < b->roots.n; i++) {
		if (b->roots.v[i].at == at)
			return &b->roots.v[i];
	}
	return NULL;
}

/* 1, 0: there are too many, or -ENOMEM. */
static int add_root(struct xp_blob *b, size_t at, bool own)
{
	struct xp_blob_root *root = root_at(b, (uint32_t)at);

	if (!root) {
		if (b->roots.n == ROOTS_MAX)
			return 0;
		root = xp_vec_push(&b->roots);
		if (!root)
			return -ENOMEM;
	}
	*root = (struct xp_blob_root){ (uint32_t)at, own };
	return 1;
}

/* A function that is called from where the rule is not the body's has a frame of its own. */
static bool called_from_elsewhere(struct xp_blob *b)
{
	bool found = false;

	for (size_t i = 0; i < b->insns.n; i++) {
		const struct xp_blob_insn *insn = &b->insns.v[i];
		struct xp_blob_root *root;

		if (insn->kind != XP_BLOB_CALL || insn->rule == XP_BLOB_BODY ||
		    insn->to == XP_BLOB_NOWHERE)
			continue;
		root = root_at(b, insn->to);
		if (root && !root->own)
			found = root->own = true;
	}
	return found;
}

/*
 * Sets the rules of all functions. One whose code is also reached otherwise than by calls from
 * the body becomes one with a frame of its own, until no more do. 0 or -ENOMEM.
 */
static int walk_functions(struct xp_blob *b)
{
	bool again = true;

	while (again) {
		again = false;
		forget(b, 0);
		for (int own = 1; own >= 0; own--) {
			for (size_t i = 0; i < b->roots.n; i++) {
				struct xp_blob_root *root = &b->roots.v[i];
				int rc = root->own == own ? walk_function(b, root->at, own) : 1;

				if (rc < 0)
					return rc;
				if (rc == 0 && !own)
					again = root->own = true;
			}
		}
		again |= called_from_elsewhere(b);
	}
	return 0;
}

/* Targets of calls, and code that falls into one of them. 1, 0: too many, or -ENOMEM. */
static int called_roots(struct xp_blob *b)
{
	int rc = 1;

	for (size_t i = 0; i < b->insns.n && rc > 0; i++) {
		const struct xp_blob_insn *insn = &b->insns.v[i];

		if (insn->kind == XP_BLOB_CALL && insn->to != XP_BLOB_NOWHERE &&
		    b->insns.v[insn->to].rule == XP_BLOB_BODY && !root_at(b, insn->to))
			rc = add_root(b, insn->to, false);
	}
	for (size_t i = 0, n = b->roots.n; i < n && rc > 0; i++) {
		uint32_t at = b->roots.v[i].at;
		size_t first = xp_blob_run_start(b, at, false);

		if (first < at && at - first < XP_BLOB_RUN_MAX)
			rc = add_root(b, first, true);
	}
	return rc;
}

/*
 * The function that ends in a return: where it begins, or `at` when it does not begin with the
 * return address on top.
 */
static size_t returning_function(const struct xp_blob *b, size_t at)
{
	const struct xp_rule fresh = xp_blob_fresh_rule();
	struct xp_rule rule = fresh;
	size_t first = xp_blob_run_start(b, at, false);

	if (at - first >= XP_BLOB_RUN_MAX)
		return at;
	for (size_t i = at; i > first; i--) {
		if (!xp_blob_step_back(&rule, &b->insns.v[i - 1]))
			return at;
	}
	return xp_blob_same_rule(&rule, &fresh) ? first : at;
}

/* Functions that no call in the blob leads to. 1, 0: too many, or -ENOMEM. */
static int other_roots(struct xp_blob *b)
{
	int rc = 1;

	for (size_t at = 0; at < b->insns.n && rc > 0; at++) {
		size_t first;

		if (b->insns.v[at].kind != XP_BLOB_RET || b->insns.v[at].rule != XP_BLOB_BODY)
			continue;
		first = returning_function(b, at);
		if (first == at)
			continue;
		rc = add_root(b, first, true);
		if (rc > 0 && walk_function(b, first, true) < 0)
			rc = -ENOMEM;
	}
	return rc;
}

int xp_blob_find_functions(struct xp_blob *b)
{
	int rc = called_roots(b);

	if (rc > 0 && walk_functions(b))
		rc = -ENOMEM;
	if (rc > 0)
		rc = other_roots(b);
	if (rc > 0 && walk_functions(b))
		rc = -ENOMEM;
	return rc;
}
