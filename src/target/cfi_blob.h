/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind rows of code whose unwind information lies.
 *
 * LuaJIT's interpreter is one blob of machine code with one FDE, whose one row (CFA = rsp + 80;
 * rbp, rbx, r15 and r14 in the slots below the return address) holds in its body alone (LuaJIT 2.1,
 * src/vm_x64.dasc, emit_asm_debug()). It does not hold where the frame is made and taken down, in
 * the subroutines that the body calls, and where compiled traces begin and end. What does hold
 * there, the machine code tells.
 */
#ifndef XP_TARGET_CFI_BLOB_H
#define XP_TARGET_CFI_BLOB_H

#include "target/cfi.h"
#include "target/elf.h"

/*
 * Looks for functions of at least 4 KiB with one row for all of it: CFA = rsp + N, the frame
 * pointer and two or more of the other registers saved right below the return address. Such a row
 * is replaced where the code proves another one:
 *	- the registers are pushed and the frame is made, or it is taken down: what is true so far;
 *	- subroutines that the body calls: CFA = rsp + N + 8, so that they are part of its frame;
 *	- functions that end in a return and are called from elsewhere: CFA = rsp + 8;
 *	- below a push or an allocation that ends in a computed jump (into a trace): deeper;
 *	- code that leads to the loading of rsp from a register (out of a trace): XP_RULE_BAD, as
 *	  what rsp is before is not known.
 * Nothing is changed when no place is found that makes a frame of this size, or when the code
 * jumps between places whose depths differ. Looks at most at four functions and 256 KiB of code of
 * an image; without such a function no code is taken apart. cfi is the table of the whole image;
 * what has been mended is not changed again. 0, or -ENOMEM: then the table is as before.
 */
int xp_cfi_mend_blobs(struct xp_cfi *cfi, const struct xp_elf *elf);

#endif
