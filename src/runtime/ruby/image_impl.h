/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the reader of Ruby files share: following values through the machine code of a
 * small function (image_trace.c), what the exported functions say (image_code.c), and where the
 * interpreter loop is (image_loop.c). Not for other modules.
 */
#ifndef XP_RUNTIME_RUBY_IMAGE_IMPL_H
#define XP_RUNTIME_RUBY_IMAGE_IMPL_H

#include "runtime/ruby/image.h"
#include "target/disasm.h"
#include "target/reloc.h"

struct xp_ruby_reader {
	struct xp_ruby_image *image;
	const struct xp_elf *elf;
	const struct xp_cfi *cfi;	/* bounds of functions */
	struct xp_relocs relocs;
	unsigned labels;		/* of the interpreter loop */
	struct xp_err *err;
};

/* Where a value comes from. */
enum xp_ruby_base {
	XP_RUBY_V_UNKNOWN,
	XP_RUBY_V_ARG,		/* the function's first argument */
	XP_RUBY_V_ADDR,		/* the address n of the image */
	XP_RUBY_V_TP,		/* the thread pointer */
	XP_RUBY_V_TP_OFFSET,	/* an offset from it, in the GOT word at n */
	XP_RUBY_V_DYNAMIC,	/* address of a thread's variable, whose GOT pair is at n */
	XP_RUBY_V_INITIAL,	/* address of a thread's variable: thread pointer + GOT word at n */
};

#define XP_RUBY_V_DEPTH 3

/* base, then depth times: add off[i] and load from there; then add `add` and shift right. */
struct xp_ruby_value {
	uint8_t base;		/* enum xp_ruby_base */
	uint8_t depth, shift;
	uint64_t n;
	int64_t off[XP_RUBY_V_DEPTH];
	int64_t add;
};

struct xp_ruby_trace;
/*
 * Called for each instruction, before its effects: operands are evaluated (as values read, a memory
 * operand as what is loaded from it). True: what was looked for is found, stop.
 */
typedef bool (*xp_ruby_visit)(struct xp_ruby_trace *t, const struct xp_insn *insn,
			      const struct xp_ruby_value *operands);

struct xp_ruby_trace {
	const struct xp_ruby_reader *r;
	xp_ruby_visit visit;
	void *ctx;
	bool follow_calls;	/* one level, of known targets */
	struct xp_ruby_value regs[XP_REGS];
	struct { int64_t at; struct xp_ruby_value value; } spilled;	/* one slot of the stack */
	bool has_spilled;
};

struct xp_ruby_code { uint64_t start, end; };

/* 1: visit() said stop; 0: the end was reached; -ENOMEM. Only rdi is known at first. */
int xp_ruby_trace_run(struct xp_ruby_trace *t, const struct xp_ruby_code *code);
/* The bounds of an exported function; false when there is none or its bytes are not in the file. */
bool xp_ruby_function(const struct xp_ruby_reader *r, const char *name, struct xp_ruby_code *out);
/* The bounds of the function that begins at or reaches over an address, by unwind information. */
bool xp_ruby_function_at(const struct xp_ruby_reader *r, uint64_t vaddr, struct xp_ruby_code *out);

/* Each: 0, or a negative errno with the failing step in r->err. */
int xp_ruby_read_thread_current(struct xp_ruby_reader *r);
int xp_ruby_read_during_gc(struct xp_ruby_reader *r);
int xp_ruby_read_id2str(struct xp_ruby_reader *r);
int xp_ruby_read_loop(struct xp_ruby_reader *r);

#endif
