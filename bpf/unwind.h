/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Unwind tables, shared by the builder (src/target/cfi.c), their publisher (src/collect/tables.c)
 * and the walker (native.bpf.c).
 *
 * A dso's text is cut into pages of 64 KiB of ELF virtual addresses. A page has a sorted run of rows
 * in one block; a row is valid from its pc to the next row's. Each page starts with a row for offset
 * 0, so a lookup never leaves its page. A row names one of the global rules.
 */
#ifndef XP_BPF_UNWIND_H
#define XP_BPF_UNWIND_H

#include <linux/types.h>

enum xp_rule_kind {
	XP_RULE_NONE,		/* no unwind information here */
	XP_RULE_SP,		/* CFA = stack pointer + cfa_off */
	XP_RULE_FP,		/* CFA = frame pointer + cfa_off */
	XP_RULE_PLT,		/* x86-64 PLT: CFA = rsp + 8, + 8 more when (rip & 15) >= cfa_off */
	XP_RULE_SIGNAL,		/* signal trampoline: registers are in the ucontext at the stack pointer */
	XP_RULE_END,		/* outermost frame: the return address is undefined */
	XP_RULE_DEREF_FP,	/* CFA = *(frame pointer + cfa_off) + deref_add */
	XP_RULE_DEREF_SP,	/* CFA = *(stack pointer + cfa_off) + deref_add */
	XP_RULE_REG,		/* CFA = register reg + cfa_off; usable where that register is known */
	XP_RULE_BAD,		/* an expression or a register rule that rows cannot hold */
	XP_RULE_FORK,		/* behind the system call that makes a thread: as XP_RULE_END in the
				 * new one, whose register reg is 0 there, else as XP_RULE_SP */
	XP_RULE_KINDS
};

/* The callee-saved registers besides the frame pointer whose save slots a rule carries. */
enum xp_saved_reg { XP_SAVED_RBX, XP_SAVED_R12, XP_SAVED_R13, XP_SAVED_R14, XP_SAVED_R15, XP_SAVED_N };

#define XP_FP_SAME 0x7fff	/* the caller's frame pointer is the current one */
#define XP_FP_LOST 0x7ffe	/* undefined here, or not expressible */
#define XP_FP_AT_FP 0x7ffd	/* saved where it points: CFA-realigned functions, DW_OP_breg6 0 */
#define XP_SAVE_LOST 255	/* in save[]: undefined here, or not expressible */

struct xp_rule {
	__s16 fp_off;			/* caller's frame pointer is saved at CFA + fp_off; or XP_FP_* */
	__u8 kind;			/* enum xp_rule_kind */
	__u8 reg;			/* XP_RULE_REG and FORK, or ra 0: DWARF number */
	__s32 cfa_off;
	__u8 save[XP_SAVED_N];		/* saved at CFA - 8 * n; 0: unchanged; or XP_SAVE_LOST */
	__u8 ra;			/* return address at CFA - 8 * ra; 0: in reg */
	__u16 deref_add;		/* XP_RULE_DEREF_*: bytes; else 0 */
};

_Static_assert(sizeof(struct xp_rule) == 16, "rules are hashed and shared as 16 bytes");

#define XP_PAGE_SHIFT 16
#define XP_PAGE_ROWS_MAX 16383		/* what the walker's 14 search steps can tell apart */
#define XP_BLOCK_SHIFT 16
#define XP_BLOCK_ROWS (1u << XP_BLOCK_SHIFT)	/* rows in one map value (256 KiB) */
#define XP_RULES_MAX 65536

/* A row: the pc's low 16 bits above the rule's number, so that rows sort as plain integers. */
#define XP_ROW(pc, rule) ((((__u32)(pc) & 0xffff) << 16) | (__u32)(rule))

struct xp_page {
	__u32 first;			/* row index; block = first >> XP_BLOCK_SHIFT */
	__u32 count;			/* 0: no rows on this page */
};

/* One executable mapping of a process; a process has a sorted run of them in the pool. */
struct xp_range {
	__u64 start, end;		/* [start, end) */
	__u64 bias;			/* pc - bias = ELF virtual address */
	__u32 page, npages;		/* npages 0: no tables, frame pointers only */
};

#define XP_RUNTIME_SLOTS 4		/* runtimes at most, native code counted */
#define XP_RUNTIME_PARAMS 1024		/* slots of one runtime */

struct xp_proc {
	__u32 tgid;			/* again, so that a reader can tell a recycled entry */
	__u32 first, count;		/* its ranges in the pool */
	__u32 generation;
	__u16 slots[XP_RUNTIME_SLOTS];	/* by enum xp_runtime_id: its parameters' slot, 0: not attached */
};

#endif
