// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * x86-64 machine code as what it does to rsp and where it goes on.
 *
 * The code is taken apart from its first byte to its last one: what LuaJIT's assembler writes is
 * code without gaps (src/host/buildvm.c), and code that is not is left alone.
 */
#include <capstone/capstone.h>
#include <errno.h>
#include <string.h>

#include "target/cfi_blob_impl.h"

#define NOT_CODE_MAX 16		/* bytes that are no instruction */
#define GROW_MAX (1 << 20)

static unsigned reg_in_slot(const struct xp_rule *rule, unsigned slot)
{
	unsigned reg = 0;

	while (reg < XP_BLOB_REGS && xp_blob_slot(rule, reg) != slot)
		reg++;
	return reg;
}

bool xp_blob_makes_frame(const struct xp_rule *body, const uint8_t *code, size_t size)
{
	static const uint8_t pushes[XP_BLOB_REGS][2] = {
		[XP_SAVED_RBX] = { 0x53 }, [XP_BLOB_FP] = { 0x55 },
		[XP_SAVED_R12] = { 0x41, 0x54 }, [XP_SAVED_R13] = { 0x41, 0x55 },
		[XP_SAVED_R14] = { 0x41, 0x56 }, [XP_SAVED_R15] = { 0x41, 0x57 },
	};
	uint8_t bytes[2 * XP_BLOB_REGS + 3];
	int32_t room = body->cfa_off - 8;
	unsigned n = 0, reg;

	for (unsigned slot = 2; slot < XP_BLOB_REGS + 2; slot++, room -= 8) {
		reg = reg_in_slot(body, slot);
		if (reg == XP_BLOB_REGS)
			break;
		bytes[n++] = pushes[reg][0];
		if (pushes[reg][1])
			bytes[n++] = pushes[reg][1];
	}
	bytes[n++] = 0x48;		/* sub rsp, imm8 or imm32 */
	bytes[n++] = room < 128 ? 0x83 : 0x81;
	bytes[n++] = 0xec;
	return memmem(code, size, bytes, n) != NULL;
}

static uint8_t reg_of(x86_reg reg)
{
	switch (reg) {
	case X86_REG_RBX:
		return XP_SAVED_RBX;
	case X86_REG_RBP:
		return XP_BLOB_FP;
	case X86_REG_R12:
		return XP_SAVED_R12;
	case X86_REG_R13:
		return XP_SAVED_R13;
	case X86_REG_R14:
		return XP_SAVED_R14;
	case X86_REG_R15:
		return XP_SAVED_R15;
	default:
		return XP_BLOB_REGS;
	}
}

static bool is_sp(const cs_x86_op *op)
{
	return op->type == X86_OP_REG && (op->reg == X86_REG_RSP || op->reg == X86_REG_ESP ||
					  op->reg == X86_REG_SP || op->reg == X86_REG_SPL);
}

static void read_push_pop(struct xp_blob_insn *out, const cs_x86_op *op, bool push)
{
	if (op->size != 8 || (!push && is_sp(op)))
		return;
	out->kind = push ? XP_BLOB_PUSH : XP_BLOB_POP;
	out->grow = push ? 8 : -8;
	out->reg = op->type == X86_OP_REG ? reg_of(op->reg) : XP_BLOB_REGS;
}

static void read_adjust(struct xp_blob_insn *out, const cs_x86 *x, bool sub)
{
	int64_t by = x->operands[1].imm;

	if (x->operands[0].reg != X86_REG_RSP || x->operands[1].type != X86_OP_IMM ||
	    by <= -GROW_MAX || by >= GROW_MAX)
		return;
	out->kind = XP_BLOB_ADJUST;
	out->grow = (int32_t)(sub ? by : -by);
}

/* An instruction that may write rsp; out->kind stays what it is where that is not understood. */
static void read_sp(struct xp_blob_insn *out, const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	switch (insn->id) {
	case X86_INS_PUSH:
	case X86_INS_POP:
		read_push_pop(out, &x->operands[0], insn->id == X86_INS_PUSH);
		break;
	case X86_INS_ADD:
	case X86_INS_SUB:
		read_adjust(out, x, insn->id == X86_INS_SUB);
		break;
	case X86_INS_MOV:
		if (x->operands[0].reg == X86_REG_RSP && x->operands[1].type == X86_OP_REG)
			out->kind = XP_BLOB_LOAD_SP;
		break;
	}
}

static bool writes_sp(const cs_insn *insn)
{
	const cs_x86 *x = &insn->detail->x86;

	for (unsigned i = 0; i < x->op_count; i++) {
		if (is_sp(&x->operands[i]) && (x->operands[i].access & CS_AC_WRITE))
			return true;
	}
	for (unsigned i = 0; i < insn->detail->regs_write_count; i++) {
		if (insn->detail->regs_write[i] == X86_REG_RSP ||
		    insn->detail->regs_write[i] == X86_REG_ESP)
			return true;
	}
	return false;
}

static bool in_group(const cs_insn *insn, unsigned group)
{
	for (unsigned i = 0; i < insn->detail->groups_count; i++) {
		if (insn->detail->groups[i] == group)
			return true;
	}
	return false;
}

/* Calls, jumps and what else ends the flow; false for other instructions. */
static bool read_flow(struct xp_blob_insn *out, const cs_insn *insn)
{
	bool known = insn->detail->x86.operands[0].type == X86_OP_IMM;

	switch (insn->id) {
	case X86_INS_CALL:
		out->kind = XP_BLOB_CALL;
		return true;
	case X86_INS_JMP:
		out->kind = known ? XP_BLOB_JUMP : XP_BLOB_LEAP;
		return true;
	case X86_INS_RET:
		out->kind = insn->detail->x86.op_count ? XP_BLOB_STRANGE : XP_BLOB_RET;
		return true;
	case X86_INS_LOOP:
	case X86_INS_LOOPE:
	case X86_INS_LOOPNE:
		out->kind = XP_BLOB_BRANCH;
		return true;
	case X86_INS_UD2:
	case X86_INS_HLT:
		return true;
	}
	if (in_group(insn, X86_GRP_JUMP))
		out->kind = known ? XP_BLOB_BRANCH : XP_BLOB_STRANGE;
	return in_group(insn, X86_GRP_JUMP) || in_group(insn, X86_GRP_CALL) ||
	       in_group(insn, X86_GRP_RET) || in_group(insn, X86_GRP_INT) ||
	       in_group(insn, X86_GRP_IRET);
}

/* target: address of a call or jump, else not set */
static void read_insn(struct xp_blob_insn *out, const cs_insn *insn, uint64_t *target)
{
	const cs_x86_op *op = &insn->detail->x86.operands[0];

	out->kind = XP_BLOB_STRANGE;
	if (read_flow(out, insn)) {
		if (insn->detail->x86.op_count && op->type == X86_OP_IMM)
			*target = (uint64_t)op->imm;
	} else if (insn->id == X86_INS_NOP || insn->id == X86_INS_ENDBR64) {
		out->kind = XP_BLOB_PAD;
	} else if (writes_sp(insn) || insn->id == X86_INS_LEAVE || insn->id == X86_INS_ENTER) {
		read_sp(out, insn);
	} else {
		out->kind = XP_BLOB_PLAIN;
	}
}

/* Index of the instruction at an offset. */
static uint32_t insn_at(const struct xp_blob *b, uint64_t at)
{
	size_t lo = 0, hi = b->insns.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (b->insns.v[mid].at == at)
			return (uint32_t)mid;
		if (b->insns.v[mid].at < at)
			lo = mid + 1;
		else
			hi = mid;
	}
	return XP_BLOB_NOWHERE;
}

/* Offsets of targets, as they were read, to the instructions there. */
static void resolve(struct xp_blob *b)
{
	for (size_t i = 0; i < b->insns.n; i++) {
		struct xp_blob_insn *insn = &b->insns.v[i];

		if (insn->to != XP_BLOB_NOWHERE)
			insn->to = insn_at(b, insn->to);
	}
}

static int decode(struct xp_blob *b, csh handle, cs_insn *insn, const uint8_t *code, size_t size,
		  uint64_t vaddr)
{
	uint64_t start = vaddr, target;
	unsigned not_code = 0;
	size_t left = size;

	while (left) {
		struct xp_blob_insn *out = xp_vec_push(&b->insns);

		if (!out)
			return -ENOMEM;
		out->at = (uint32_t)(size - left);
		out->to = XP_BLOB_NOWHERE;
		target = UINT64_MAX;
		if (cs_disasm_iter(handle, &code, &left, &vaddr, insn)) {
			read_insn(out, insn, &target);
			if (target - start < size)
				out->to = (uint32_t)(target - start);
		} else if (++not_code > NOT_CODE_MAX) {
			return 0;
		} else {
			out->kind = XP_BLOB_STRANGE;
			code++;
			vaddr++;
			left--;
		}
	}
	resolve(b);
	return 1;
}

int xp_blob_decode(struct xp_blob *b, const uint8_t *code, size_t size, uint64_t vaddr)
{
	cs_insn *insn;
	csh handle;
	int rc = -ENOMEM;

	if (cs_open(CS_ARCH_X86, CS_MODE_64, &handle) != CS_ERR_OK)
		return 0;
	insn = cs_option(handle, CS_OPT_DETAIL, CS_OPT_ON) == CS_ERR_OK ? cs_malloc(handle) : NULL;
	if (insn) {
		rc = decode(b, handle, insn, code, size, vaddr);
		cs_free(insn, 1);
	}
	cs_close(&handle);
	return rc;
}
