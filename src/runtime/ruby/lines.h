/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Lines of one iseq: its table of instructions, copied once from the process; lookups are local.
 */
#ifndef XP_RUNTIME_RUBY_LINES_H
#define XP_RUNTIME_RUBY_LINES_H

#include <stdint.h>

#include "target/mem.h"

#define XP_RUBY_LINES_MAX (1u << 20)	/* entries of one table; a larger one is taken as none */
#define XP_RUBY_CODE_MAX (1u << 22)	/* words of code of one iseq, as above */
#define XP_RUBY_NO_ROW UINT32_MAX

struct xp_ruby_insns {		/* where the table is (vm_core.h, iseq_insns_info) */
	uint64_t body;		/* entries; the line is the first int of each */
	uint64_t positions;	/* their positions, one int each; 0: in succ */
	uint64_t succ;		/* their bit vector (iseq.c, succ_index_table); 0: none */
	uint32_t size;		/* entries */
	uint32_t entry_size;	/* bytes of one */
	uint32_t code_size;	/* words of code of the iseq */
};

struct xp_ruby_lines {
	uint32_t n;
	uint32_t *positions;	/* ascending: the first word of code of each row; owned */
	uint32_t *lines;	/* in the same allocation */
};

#define XP_RUBY_LINES_INIT { 0, NULL, NULL }

/*
 * Copies the table. 0, also when the iseq has no lines or a table beyond the limits (n is 0 then);
 * -EINVAL for one that makes no sense, -ENOMEM, or what reading gave: n is 0.
 */
int xp_ruby_lines_read(struct xp_ruby_lines *lines, const struct xp_mem *mem,
		       const struct xp_ruby_insns *insns);
void xp_ruby_lines_release(struct xp_ruby_lines *lines);
/* The row (below n) of a word of code, or XP_RUBY_NO_ROW. */
uint32_t xp_ruby_lines_row(const struct xp_ruby_lines *lines, uint32_t position);

#endif
