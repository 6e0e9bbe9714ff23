/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86-64 machine code, one instruction after the other, as plain data.
 *
 * Only what readers of known functions ask for is told: moves, simple arithmetic, where the flow
 * goes, which registers are written. Everything else is XP_INSN_OTHER.
 */
#ifndef XP_TARGET_DISASM_H
#define XP_TARGET_DISASM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Registers by their number in the encoding: rax 0, rcx 1, rdx 2, rbx 3, rsp 4, ..., r15 15. */
enum xp_reg {
	XP_RAX, XP_RCX, XP_RDX, XP_RBX, XP_RSP, XP_RBP, XP_RSI, XP_RDI,
	XP_REGS = 16,
	XP_REG_OTHER = XP_REGS,		/* vector registers, flags, segments */
	XP_REG_NONE,
};

enum xp_operand_kind { XP_OPERAND_NONE, XP_OPERAND_REG, XP_OPERAND_IMM, XP_OPERAND_MEM };

struct xp_operand {
	uint8_t kind;
	uint8_t size;		/* bytes */
	uint8_t reg;		/* REG; parts of a register (al, eax) count as the register */
	uint8_t base, index;	/* MEM; XP_REG_NONE: none */
	uint8_t scale;
	bool fs;		/* MEM: relative to fs, the thread pointer */
	bool gs;
	bool fixed;		/* MEM: value is the whole address (rip-relative) */
	int64_t value;		/* IMM: the constant or the target; MEM: displacement or address */
};

enum xp_insn_op {
	XP_INSN_OTHER, XP_INSN_MOV,	/* also with sign or zero extension */
	XP_INSN_LEA, XP_INSN_ADD, XP_INSN_SUB, XP_INSN_AND, XP_INSN_SHR, XP_INSN_CMP,
	XP_INSN_TEST, XP_INSN_BT, XP_INSN_PUSH, XP_INSN_POP, XP_INSN_CALL, XP_INSN_JUMP,
	XP_INSN_BRANCH,			/* a conditional jump */
	XP_INSN_RET,
};

#define XP_INSN_OPERANDS 2

struct xp_insn {
	uint64_t addr;
	uint8_t size;
	uint8_t op;			/* enum xp_insn_op */
	uint8_t noperands;		/* destination first; never more than XP_INSN_OPERANDS */
	uint16_t writes;		/* bit n: register n is written, explicitly or not */
	struct xp_operand operands[XP_INSN_OPERANDS];
};

struct xp_disasm;

/* Over n bytes that stand at addr; they stay the caller's and must outlive it. 0 or -ENOMEM. */
int xp_disasm_new(struct xp_disasm **d, const uint8_t *code, size_t n, uint64_t addr);
void xp_disasm_free(struct xp_disasm *d);
/* The next instruction; false at the end and where the bytes are no instruction. */
bool xp_disasm_next(struct xp_disasm *d, struct xp_insn *out);

#endif
