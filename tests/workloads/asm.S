/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Functions whose unwind information is written by hand, or missing.
 *
 *   asm_cfi(fn, n)      pushes, moves the stack pointer, calls fn(n); described by CFI
 *   asm_rbp_data(fn, n) uses rbp for data while it calls fn(n); described by CFI
 *   asm_nocfi(fn, n)    no CFI, keeps a frame pointer, calls fn(n)
 *   asm_unsized(n)      burns n iterations; a label without type and size
 *
 * The gap without CFI is wider than 16 bytes on both sides, so it is no padding.
 */
	.text
	.globl	asm_cfi
	.type	asm_cfi, @function
asm_cfi:
	.cfi_startproc
	push	%rbx
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbx, 0
	push	%r12
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %r12, 0
	sub	$0x128, %rsp
	.cfi_adjust_cfa_offset 0x128
	mov	%rdi, %rax
	mov	%rsi, %rdi
	call	*%rax
	add	$0x128, %rsp
	.cfi_adjust_cfa_offset -0x128
	pop	%r12
	.cfi_adjust_cfa_offset -8
	.cfi_restore %r12
	pop	%rbx
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbx
	ret
	.cfi_endproc
	.size	asm_cfi, . - asm_cfi

	.balign	64
	.globl	asm_rbp_data
	.type	asm_rbp_data, @function
asm_rbp_data:
	.cfi_startproc
	push	%rbp
	.cfi_adjust_cfa_offset 8
	.cfi_rel_offset %rbp, 0
	mov	$0x4242424242424242, %rbp
	mov	%rdi, %rax
	mov	%rsi, %rdi
	call	*%rax
	pop	%rbp
	.cfi_adjust_cfa_offset -8
	.cfi_restore %rbp
	ret
	.cfi_endproc
	.size	asm_rbp_data, . - asm_rbp_data

	.balign	64
	.skip	64, 0xcc
	.globl	asm_nocfi
	.type	asm_nocfi, @function
asm_nocfi:
	push	%rbp
	mov	%rsp, %rbp
	sub	$0x20, %rsp
	mov	%rdi, %rax
	mov	%rsi, %rdi
	call	*%rax
	leave
	ret
	.size	asm_nocfi, . - asm_nocfi
	.skip	64, 0xcc

	.balign	64
	.globl	asm_unsized
asm_unsized:
	.cfi_startproc
	mov	$1, %eax
1:	imul	$0x343fd, %rax, %rax
	dec	%rdi
	jnz	1b
	ret
	.cfi_endproc

	.section .note.GNU-stack, "", @progbits
