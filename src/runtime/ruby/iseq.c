// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Labels are composed as Ruby composes them: vm_backtrace.c of 3.4, calculate_iseq_label(), and
 * compile.c of 3.1 for the words in front ("block in", "rescue in", "ensure in").
 */
#include "runtime/ruby/iseq.h"

#include <errno.h>
#include <string.h>

/* vm_core.h, enum iseq_type; 2.6 to 4.0. */
enum { TOP, METHOD, BLOCK, CLASS, RESCUE, ENSURE, EVAL, MAIN, PLAIN, TYPES };

#define ISEQ_BODY 16		/* of the pointer to the body in an iseq (vm_core.h, rb_iseq_t) */
#define BODY_MAX 256		/* bytes of a body that are read, at most */
#define PARENTS_MAX 64		/* iseqs visited to compose one label */

static uint64_t word(const uint8_t *body, uint16_t offset)
{
	uint64_t v;

	memcpy(&v, body + offset, sizeof(v));
	return v;
}

static uint32_t half(const uint8_t *body, uint16_t offset)
{
	uint32_t v;

	memcpy(&v, body + offset, sizeof(v));
	return v;
}

/* Bytes from the start of a body to the end of the last member that is used. */
static size_t used_bytes(const struct xp_ruby_layout *l)
{
	const uint16_t offsets[] = {
		l->body_size, l->body_encoded, l->body_pathobj, l->body_label, l->body_first_lineno,
		l->body_insns_body, l->body_insns_positions, l->body_insns_size,
		l->body_insns_succ, l->body_parent, l->body_local,
	};
	size_t end = 8;

	for (size_t i = 0; i < sizeof(offsets) / sizeof(offsets[0]); i++) {
		if (offsets[i] + 8u > end)
			end = offsets[i] + 8u;
	}
	return end;
}

int xp_ruby_iseq_read(const struct xp_ruby_objects *o, uint64_t body, struct xp_ruby_iseq *iseq)
{
	const struct xp_ruby_layout *l = o->layout;
	size_t n = used_bytes(l);
	uint8_t b[BODY_MAX];
	int r = n <= sizeof(b) && body ? xp_mem_read(&o->mem, body, b, n) : -EINVAL;

	if (r)
		return r;
	*iseq = (struct xp_ruby_iseq){
		.encoded = word(b, l->body_encoded),
		.pathobj = word(b, l->body_pathobj),
		.label = word(b, l->body_label),
		.first_lineno = l->first_lineno_is_value ? word(b, l->body_first_lineno) :
							   half(b, l->body_first_lineno),
		.parent = word(b, l->body_parent),
		.local = word(b, l->body_local),
		.type = half(b, 0),
		.insns = {
			.body = word(b, l->body_insns_body),
			.positions = word(b, l->body_insns_positions),
			.succ = word(b, l->body_insns_succ),
			.size = half(b, l->body_insns_size),
			.entry_size = l->insn_entry_size,
			.code_size = half(b, l->body_size),
		},
	};
	if (iseq->type >= TYPES || !iseq->encoded || iseq->encoded & 7 || !iseq->insns.code_size ||
	    !xp_ruby_is_object(iseq->pathobj) || !xp_ruby_is_object(iseq->label))
		return -EINVAL;
	return 0;
}

bool xp_ruby_iseq_same(const struct xp_ruby_iseq *a, const struct xp_ruby_iseq *b)
{
	return a->encoded == b->encoded && a->insns.code_size == b->insns.code_size &&
	       a->pathobj == b->pathobj && a->label == b->label &&
	       a->first_lineno == b->first_lineno && a->type == b->type;
}

int xp_ruby_iseq_path(const struct xp_ruby_objects *o, const struct xp_ruby_iseq *iseq,
		      struct xp_buf *out)
{
	uint64_t path;
	int r = xp_ruby_string(o, iseq->pathobj, out);

	if (r != -EINVAL)
		return r;
	r = xp_ruby_element(o, iseq->pathobj, 0, &path);
	return r ? r : xp_ruby_string(o, path, out);
}

/* Of an iseq, not of a body. */
static int read_iseq(const struct xp_ruby_objects *o, uint64_t at, struct xp_ruby_iseq *iseq)
{
	uint64_t body;
	int r = xp_ruby_is_object(at) ? xp_mem_read(&o->mem, at + ISEQ_BODY, &body, sizeof(body)) :
					-EINVAL;

	return r ? r : xp_ruby_iseq_read(o, body, iseq);
}

void xp_ruby_put_owner(struct xp_ruby_objects *o, uint64_t owner, struct xp_buf *out,
		       bool *temporary)
{
	struct xp_ruby_class_kind kind;

	*temporary = false;
	if (xp_ruby_class(o, owner, out, &kind))
		return;
	*temporary = kind.temporary;
	xp_buf_put(out, kind.singleton ? "." : "#", 1);
}

/* From a block to the iseq whose local variables it sees; how many blocks there were on the way. */
static int leave_blocks(const struct xp_ruby_objects *o, struct xp_ruby_iseq *iseq,
			unsigned *steps, unsigned *blocks)
{
	uint64_t local = iseq->local, at;
	int r = 0;

	*blocks = 0;
	do {
		*blocks += iseq->type == BLOCK;
		at = iseq->parent;
		r = ++*steps < PARENTS_MAX ? read_iseq(o, at, iseq) : -ELOOP;
	} while (!r && at != local);
	return r;
}

/* One step of a label: what stands in front, and on to what it is in. 1: no more steps. */
static int label_step(const struct xp_ruby_objects *o, struct xp_ruby_iseq *iseq, unsigned *steps,
		      struct xp_buf *out)
{
	unsigned blocks;
	int r;

	if (iseq->type == TOP || iseq->type == CLASS || iseq->type == MAIN ||
	    iseq->type == METHOD || !iseq->parent)
		return 1;
	if (iseq->type == BLOCK || iseq->type == PLAIN) {
		r = leave_blocks(o, iseq, steps, &blocks);
		if (blocks > 1)
			xp_buf_printf(out, "block (%u levels) in ", blocks);
		else
			xp_buf_put(out, "block in ", 9);
		return r;
	}
	if (iseq->type == RESCUE)
		xp_buf_put(out, "rescue in ", 10);
	else if (iseq->type == ENSURE)
		xp_buf_put(out, "ensure in ", 10);
	return ++*steps < PARENTS_MAX ? read_iseq(o, iseq->parent, iseq) : -ELOOP;
}

int xp_ruby_iseq_label(struct xp_ruby_objects *o, const struct xp_ruby_iseq *iseq, uint64_t owner,
		       struct xp_buf *out, bool *temporary)
{
	struct xp_ruby_iseq at = *iseq;
	size_t before = out->len;
	unsigned steps = 0;
	int r;

	*temporary = false;
	do {
		r = label_step(o, &at, &steps, out);
	} while (!r);
	if (r > 0) {
		if (at.type == METHOD)
			xp_ruby_put_owner(o, owner, out, temporary);
		r = xp_ruby_string(o, at.label, out);
	}
	if (r) {
		/* Without its parents: Ruby's own label, which has no class. */
		out->len = before;
		*temporary = false;
		r = xp_ruby_string(o, iseq->label, out);
	}
	return r;
}
