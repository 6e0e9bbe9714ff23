// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Machine code as data: the forms that readers of functions depend on, and bytes that are no code.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "target/disasm.h"

#define ADDR 0x210790

static struct xp_insn insns[64];
static size_t ninsns;

static void decode(const void *code, size_t n)
{
	struct xp_disasm *d;

	assert_int_equal(xp_disasm_new(&d, code, n, ADDR), 0);
	for (ninsns = 0; ninsns < 64 && xp_disasm_next(d, &insns[ninsns]); ninsns++)
		assert_true(insns[ninsns].noperands <= XP_INSN_OPERANDS);
	xp_disasm_free(d);
}

#define DECODE(...) do { \
	const uint8_t bytes_[] = { __VA_ARGS__ }; \
	decode(bytes_, sizeof(bytes_)); \
} while (0)

static void assert_reg(const struct xp_operand *o, unsigned reg)
{
	assert_int_equal(o->kind, XP_OPERAND_REG);
	assert_int_equal(o->reg, reg);
}

static void reads_a_call_for_a_threads_variable(void **state)
{
	(void)state;
	DECODE(0x48, 0x83, 0xec, 0x08,				/* sub $8, %rsp */
	       0x66, 0x48, 0x8d, 0x3d, 0xac, 0xe2, 0x19, 0x00,	/* lea 0x19e2ac(%rip), %rdi */
	       0x66, 0x66, 0x48, 0xe8, 0x4c, 0x50, 0xe2, 0xff,	/* data16 data16 rex.W call */
	       0x48, 0x8b, 0x00,				/* mov (%rax), %rax */
	       0x48, 0x8b, 0x40, 0x30,				/* mov 0x30(%rax), %rax */
	       0xc3);
	assert_int_equal(ninsns, 6);
	assert_int_equal(insns[0].op, XP_INSN_SUB);
	assert_true(insns[0].writes & (1 << XP_RSP));
	assert_int_equal(insns[1].op, XP_INSN_LEA);
	assert_reg(&insns[1].operands[0], XP_RDI);
	assert_true(insns[1].operands[1].fixed);
	assert_int_equal(insns[1].operands[1].value, 0x3aea48);
	assert_int_equal(insns[2].op, XP_INSN_CALL);
	assert_int_equal(insns[2].operands[0].kind, XP_OPERAND_IMM);
	assert_int_equal(insns[2].operands[0].value, ADDR + 20 - 0x1dafb4);
	assert_int_equal(insns[3].op, XP_INSN_MOV);
	assert_int_equal(insns[3].operands[1].base, XP_RAX);
	assert_int_equal(insns[3].operands[1].index, XP_REG_NONE);
	assert_int_equal(insns[4].operands[1].value, 0x30);
	assert_false(insns[4].operands[1].fixed || insns[4].operands[1].fs);
	assert_int_equal(insns[5].op, XP_INSN_RET);
}

static void reads_the_thread_pointer(void **state)
{
	(void)state;
	DECODE(0x64, 0x48, 0x8b, 0x04, 0x25, 0, 0, 0, 0,	/* mov %fs:0, %rax */
	       0x48, 0x8d, 0x40, 0xb0,				/* lea -0x50(%rax), %rax */
	       0x64, 0x4c, 0x8b, 0x20,				/* mov %fs:(%rax), %r12 */
	       0x48, 0x8b, 0x44, 0xcb, 0x08);			/* mov 8(%rbx, %rcx, 8), %rax */
	assert_int_equal(ninsns, 4);
	assert_true(insns[0].operands[1].fs);
	assert_int_equal(insns[0].operands[1].base, XP_REG_NONE);
	assert_int_equal(insns[1].operands[1].value, -0x50);
	assert_reg(&insns[2].operands[0], 12);
	assert_true(insns[2].operands[1].fs);
	assert_int_equal(insns[2].operands[1].base, XP_RAX);
	assert_int_equal(insns[2].writes, 1 << 12);
	assert_int_equal(insns[3].operands[1].base, XP_RBX);
	assert_int_equal(insns[3].operands[1].index, XP_RCX);
	assert_int_equal(insns[3].operands[1].scale, 8);
}

static void reads_tests_of_bits(void **state)
{
	(void)state;
	DECODE(0x0f, 0xb6, 0x40, 0x10,				/* movzbl 0x10(%rax), %eax */
	       0xc0, 0xe8, 0x05,				/* shr $5, %al */
	       0x83, 0xe0, 0x01,				/* and $1, %eax */
	       0xf6, 0x40, 0x10, 0x20,				/* testb $0x20, 0x10(%rax) */
	       0x48, 0x81, 0xff, 0xa9, 0, 0, 0,			/* cmp $0xa9, %rdi */
	       0xd1, 0xe8,					/* shr %eax */
	       0x0f, 0x47, 0xf8);				/* cmova %eax, %edi */
	assert_int_equal(ninsns, 7);
	assert_int_equal(insns[0].op, XP_INSN_MOV);
	assert_int_equal(insns[0].operands[1].size, 1);
	assert_int_equal(insns[1].op, XP_INSN_SHR);
	assert_reg(&insns[1].operands[0], XP_RAX);
	assert_int_equal(insns[1].operands[1].value, 5);
	assert_int_equal(insns[2].op, XP_INSN_AND);
	assert_int_equal(insns[3].op, XP_INSN_TEST);
	assert_int_equal(insns[3].operands[0].kind, XP_OPERAND_MEM);
	assert_int_equal(insns[3].operands[1].value, 0x20);
	assert_int_equal(insns[3].writes, 0);
	assert_int_equal(insns[4].op, XP_INSN_CMP);
	assert_int_equal(insns[4].operands[1].value, 0xa9);
	assert_int_equal(insns[5].op, XP_INSN_SHR);
	assert_int_equal(insns[6].op, XP_INSN_OTHER);
	assert_int_equal(insns[6].writes, 1 << XP_RDI);
}

static void tells_where_the_flow_goes(void **state)
{
	(void)state;
	DECODE(0x74, 0x02,			/* je */
	       0xeb, 0xfc,			/* jmp */
	       0xff, 0xe0,			/* jmp *%rax */
	       0x41, 0x55,			/* push %r13 */
	       0x5d,				/* pop %rbp */
	       0x48, 0xf7, 0xe9);		/* imul %rcx: writes rax and rdx */
	assert_int_equal(ninsns, 6);
	assert_int_equal(insns[0].op, XP_INSN_BRANCH);
	assert_int_equal(insns[0].operands[0].value, ADDR + 4);
	assert_int_equal(insns[1].op, XP_INSN_JUMP);
	assert_int_equal(insns[1].operands[0].value, ADDR);
	assert_int_equal(insns[2].op, XP_INSN_JUMP);
	assert_reg(&insns[2].operands[0], XP_RAX);
	assert_int_equal(insns[3].op, XP_INSN_PUSH);
	assert_int_equal(insns[3].writes, 1 << XP_RSP);
	assert_int_equal(insns[4].op, XP_INSN_POP);
	assert_int_equal(insns[4].writes, 1 << XP_RSP | 1 << XP_RBP);
	assert_int_equal(insns[5].writes, 1 << XP_RAX | 1 << XP_RDX);
}

static void stops_where_there_is_no_code(void **state)
{
	uint8_t bytes[256];

	(void)state;
	DECODE(0x90, 0x06, 0x90);		/* push %es, of 32-bit code */
	assert_int_equal(ninsns, 1);
	DECODE(0x90, 0x48, 0x8b);		/* cut short */
	assert_int_equal(ninsns, 1);
	decode(bytes, 0);
	assert_int_equal(ninsns, 0);
	for (unsigned round = 0; round < 500; round++) {
		unsigned x = round * 2654435761u + 1;

		for (size_t i = 0; i < sizeof(bytes); i++) {
			x = x * 1103515245 + 12345;
			bytes[i] = (uint8_t)(x >> 16);
		}
		decode(bytes, sizeof(bytes));
	}
	xp_disasm_free(NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_a_call_for_a_threads_variable),
		cmocka_unit_test(reads_the_thread_pointer),
		cmocka_unit_test(reads_tests_of_bits),
		cmocka_unit_test(tells_where_the_flow_goes),
		cmocka_unit_test(stops_where_there_is_no_code),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
