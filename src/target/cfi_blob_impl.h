/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the reader of blobs share: the machine code, taken apart, and the rules that
 * are found for it. Not for other modules: they see target/cfi_blob.h.
 */
#ifndef XP_TARGET_CFI_BLOB_IMPL_H
#define XP_TARGET_CFI_BLOB_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/unwind.h"

enum xp_blob_kind {
	XP_BLOB_PLAIN,		/* leaves rsp alone, goes on to the next instruction */
	XP_BLOB_PAD,		/* so does this, and it may fill the space before a function */
	XP_BLOB_PUSH,		/* of reg */
	XP_BLOB_POP,
	XP_BLOB_ADJUST,		/* add or sub of a constant */
	XP_BLOB_LOAD_SP,	/* mov rsp, register */
	XP_BLOB_CALL,
	XP_BLOB_JUMP,		/* to a known address */
	XP_BLOB_BRANCH,		/* there or to the next instruction */
	XP_BLOB_LEAP,		/* to an address in a register or in memory */
	XP_BLOB_RET,
	XP_BLOB_STRANGE,	/* changes rsp in another way, or ends the flow, or is no code */
};

/* Registers by the place of their slot in a rule: enum xp_saved_reg, the frame pointer, others. */
#define XP_BLOB_FP XP_SAVED_N
#define XP_BLOB_REGS (XP_SAVED_N + 1)

#define XP_BLOB_NOWHERE UINT32_MAX	/* as a target: where no instruction of the blob starts */

struct xp_blob_insn {
	uint32_t at;			/* offset in the blob */
	int32_t grow;			/* PUSH, POP, ADJUST: bytes by which the stack grows */
	uint32_t to;			/* CALL, JUMP, BRANCH: index of the next one, or NOWHERE */
	uint8_t kind;			/* enum xp_blob_kind */
	uint8_t reg;			/* PUSH, POP: below XP_BLOB_REGS, or that for others */
	uint8_t rule;			/* index into rules */
};

#define XP_BLOB_RULES 64

struct xp_blob_root {			/* where a function begins */
	uint32_t at;			/* index of its instruction */
	bool own;			/* also called from elsewhere: a frame of its own */
};

struct xp_blob {
	XP_VEC(struct xp_blob_insn) insns;
	struct xp_rule rules[XP_BLOB_RULES];	/* the first one is the body's */
	unsigned nrules;
	unsigned saved;			/* registers saved by the body, in slots 2 to saved + 1 */
	XP_VEC(struct xp_blob_root) roots;
	XP_VEC(uint32_t) trail;		/* instructions that belong to functions */
};

#define XP_BLOB_BODY 0			/* as an instruction's rule */
#define XP_BLOB_RUN_MAX 256		/* instructions of one place */

/* In cfi_blob_x86.c: from bytes to instructions. */

/* The bytes that make a frame of this rule are somewhere in the code; a quick look beforehand. */
bool xp_blob_makes_frame(const struct xp_rule *body, const uint8_t *code, size_t size);
/* Fills insns. 1, 0: this is not (only) machine code, or -ENOMEM. */
int xp_blob_decode(struct xp_blob *b, const uint8_t *code, size_t size, uint64_t vaddr);

/* In cfi_blob_step.c: from an instruction to the next. */

/*
 * The slot of a register in a rule: n for CFA - 8 * n, or 0 when it is not saved. Rules that have
 * lost a register do not occur in blobs.
 */
unsigned xp_blob_slot(const struct xp_rule *rule, unsigned reg);
/* The register was saved in the slot on top of the stack. */
bool xp_blob_on_top(const struct xp_rule *rule, unsigned reg);
bool xp_blob_same_rule(const struct xp_rule *a, const struct xp_rule *b);
/* Turns a rule into that after an instruction, or before it. False when that is not known. */
bool xp_blob_step(struct xp_rule *rule, const struct xp_blob_insn *insn);
bool xp_blob_step_back(struct xp_rule *rule, const struct xp_blob_insn *insn);
/* A rule's number, XP_BLOB_RULES when there are too many. */
unsigned xp_blob_rule_id(struct xp_blob *b, const struct xp_rule *rule);
/* Gives an instruction a rule; false when there are too many. */
bool xp_blob_set_rule(struct xp_blob *b, size_t i, const struct xp_rule *rule);
/* The rule of a function's first instruction; and the body's below so many more bytes. */
struct xp_rule xp_blob_fresh_rule(void);
struct xp_rule xp_blob_deeper_rule(const struct xp_blob *b, int32_t by);
/* The next instruction is not reached from this one. */
bool xp_blob_ends_flow(const struct xp_blob_insn *insn);
/*
 * Where the instructions begin that lead to one by falling through, or by jumping over some of
 * them. Whether a call out of the blob returns is not known: `calls` says whether to go on above
 * one. XP_BLOB_RUN_MAX instructions or more above the given one, the beginning was not found.
 */
size_t xp_blob_run_start(const struct xp_blob *b, size_t at, bool calls);

/* In cfi_blob_funcs.c. 1, 0: there are too many, or -ENOMEM. */
int xp_blob_find_functions(struct xp_blob *b);

/* In cfi_blob_places.c: sets all rules. 1, 0: the code does not prove anything, or -ENOMEM. */
int xp_blob_find_places(struct xp_blob *b);

#endif
