// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * capstone's view of x86-64 instructions turned into ours.
 */
#include "target/disasm.h"

#include <capstone/capstone.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct xp_disasm {
	csh handle;
	cs_insn *insn;
	const uint8_t *p;
	size_t left;
	uint64_t addr;
};

int xp_disasm_new(struct xp_disasm **out, const uint8_t *code, size_t n, uint64_t addr)
{
	struct xp_disasm *d = calloc(1, sizeof(*d));

	*out = NULL;
	if (!d)
		return -ENOMEM;
	if (cs_open(CS_ARCH_X86, CS_MODE_64, &d->handle) != CS_ERR_OK) {
		free(d);
		return -ENOMEM;
	}
	cs_option(d->handle, CS_OPT_DETAIL, CS_OPT_ON);
	d->insn = cs_malloc(d->handle);
	if (!d->insn) {
		xp_disasm_free(d);
		return -ENOMEM;
	}
	d->p = code;
	d->left = n;
	d->addr = addr;
	*out = d;
	return 0;
}

void xp_disasm_free(struct xp_disasm *d)
{
	if (!d)
		return;
	if (d->insn)
		cs_free(d->insn, 1);
	cs_close(&d->handle);
	free(d);
}

#define GENERAL(q, d, w, b) case X86_REG_##q: case X86_REG_##d: case X86_REG_##w: case X86_REG_##b

static uint8_t reg_of(unsigned reg)
{
	switch (reg) {
	GENERAL(RAX, EAX, AX, AL): case X86_REG_AH: return XP_RAX;
	GENERAL(RCX, ECX, CX, CL): case X86_REG_CH: return XP_RCX;
	GENERAL(RDX, EDX, DX, DL): case X86_REG_DH: return XP_RDX;
	GENERAL(RBX, EBX, BX, BL): case X86_REG_BH: return XP_RBX;
	GENERAL(RSP, ESP, SP, SPL): return XP_RSP;
	GENERAL(RBP, EBP, BP, BPL): return XP_RBP;
	GENERAL(RSI, ESI, SI, SIL): return XP_RSI;
	GENERAL(RDI, EDI, DI, DIL): return XP_RDI;
	GENERAL(R8, R8D, R8W, R8B): return 8;
	GENERAL(R9, R9D, R9W, R9B): return 9;
	GENERAL(R10, R10D, R10W, R10B): return 10;
	GENERAL(R11, R11D, R11W, R11B): return 11;
	GENERAL(R12, R12D, R12W, R12B): return 12;
	GENERAL(R13, R13D, R13W, R13B): return 13;
	GENERAL(R14, R14D, R14W, R14B): return 14;
	GENERAL(R15, R15D, R15W, R15B): return 15;
	case X86_REG_INVALID: return XP_REG_NONE;
	default: return XP_REG_OTHER;
	}
}

static uint8_t op_of(const cs_insn *insn)
{
	switch (insn->id) {
	case X86_INS_MOV: case X86_INS_MOVABS: case X86_INS_MOVZX: case X86_INS_MOVSX:
	case X86_INS_MOVSXD: return XP_INSN_MOV;
	case X86_INS_LEA: return XP_INSN_LEA;
	case X86_INS_ADD: return XP_INSN_ADD;
	case X86_INS_SUB: return XP_INSN_SUB;
	case X86_INS_AND: return XP_INSN_AND;
	case X86_INS_SHR: return XP_INSN_SHR;
	case X86_INS_CMP: return XP_INSN_CMP;
	case X86_INS_TEST: return XP_INSN_TEST;
	case X86_INS_BT: return XP_INSN_BT;
	case X86_INS_PUSH: return XP_INSN_PUSH;
	case X86_INS_POP: return XP_INSN_POP;
	case X86_INS_CALL: return XP_INSN_CALL;
	case X86_INS_JMP: return XP_INSN_JUMP;
	case X86_INS_RET: return XP_INSN_RET;
	}
	for (unsigned i = 0; i < insn->detail->groups_count; i++) {
		if (insn->detail->groups[i] == CS_GRP_JUMP)
			return XP_INSN_BRANCH;
	}
	return XP_INSN_OTHER;
}

static struct xp_operand operand_of(const cs_insn *insn, const cs_x86_op *op)
{
	struct xp_operand o = {
		.size = op->size, .reg = XP_REG_NONE, .base = XP_REG_NONE, .index = XP_REG_NONE,
	};

	switch (op->type) {
	case X86_OP_REG:
		o.kind = XP_OPERAND_REG;
		o.reg = reg_of(op->reg);
		break;
	case X86_OP_IMM:
		o.kind = XP_OPERAND_IMM;
		o.value = op->imm;
		break;
	case X86_OP_MEM:
		o.kind = XP_OPERAND_MEM;
		o.fs = op->mem.segment == X86_REG_FS;
		o.gs = op->mem.segment == X86_REG_GS;
		o.index = reg_of(op->mem.index);
		o.scale = (uint8_t)op->mem.scale;
		o.value = op->mem.disp;
		o.fixed = op->mem.base == X86_REG_RIP && o.index == XP_REG_NONE;
		if (o.fixed)
			o.value = (int64_t)(insn->address + insn->size + (uint64_t)op->mem.disp);
		else
			o.base = reg_of(op->mem.base);
		break;
	default:
		break;
	}
	return o;
}

static uint16_t writes_of(struct xp_disasm *d)
{
	cs_regs reads, writes;
	uint8_t nreads = 0, nwrites = 0;
	uint16_t mask = 0;

	if (cs_regs_access(d->handle, d->insn, reads, &nreads, writes, &nwrites) != CS_ERR_OK)
		return UINT16_MAX;
	for (unsigned i = 0; i < nwrites; i++) {
		uint8_t reg = reg_of(writes[i]);

		if (reg < XP_REGS)
			mask |= (uint16_t)(1u << reg);
	}
	return mask;
}

bool xp_disasm_next(struct xp_disasm *d, struct xp_insn *out)
{
	const cs_x86 *x;

	if (!cs_disasm_iter(d->handle, &d->p, &d->left, &d->addr, d->insn))
		return false;
	x = &d->insn->detail->x86;
	memset(out, 0, sizeof(*out));
	out->addr = d->insn->address;
	out->size = (uint8_t)d->insn->size;
	out->op = op_of(d->insn);
	out->writes = writes_of(d);
	for (unsigned i = 0; i < x->op_count && i < XP_INSN_OPERANDS; i++)
		out->operands[out->noperands++] = operand_of(d->insn, &x->operands[i]);
	return true;
}
