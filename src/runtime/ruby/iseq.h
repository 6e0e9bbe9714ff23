/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The body of an instruction sequence in another process: where its file, lines and label are.
 */
#ifndef XP_RUNTIME_RUBY_ISEQ_H
#define XP_RUNTIME_RUBY_ISEQ_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "runtime/ruby/lines.h"
#include "runtime/ruby/object.h"

struct xp_ruby_iseq {		/* all addresses and VALUEs are the process's */
	uint64_t encoded;	/* its code, of insns.code_size words */
	uint64_t pathobj, label, first_lineno;
	uint64_t parent, local;	/* iseqs; parent 0: none */
	uint32_t type;
	struct xp_ruby_insns insns;
};

/* One read. 0, -EINVAL (no body of an iseq can look so), or what reading memory gave. */
int xp_ruby_iseq_read(const struct xp_ruby_objects *o, uint64_t body, struct xp_ruby_iseq *iseq);
/* Whether both are one iseq, seen at two times. */
bool xp_ruby_iseq_same(const struct xp_ruby_iseq *a, const struct xp_ruby_iseq *b);
/* Appends the path as the program was loaded by, as the text functions of object.h. */
int xp_ruby_iseq_path(const struct xp_ruby_objects *o, const struct xp_ruby_iseq *iseq,
		      struct xp_buf *out);
/*
 * Appends the label: as Ruby 3.1 has it ("rescue in block in foo"), with the method qualified by
 * the class that owns it (0: unknown) as Ruby 3.4 does. *temporary: by a class without permanent
 * name.
 */
int xp_ruby_iseq_label(struct xp_ruby_objects *o, const struct xp_ruby_iseq *iseq, uint64_t owner,
		       struct xp_buf *out, bool *temporary);
/* Appends "Foo#" or "Foo."; nothing when the owner cannot be named. */
void xp_ruby_put_owner(struct xp_ruby_objects *o, uint64_t owner, struct xp_buf *out,
		       bool *temporary);

#endif
