/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of the reader of call frame information share: entries as cfi_parse.c reads them, the register
 * states that cfi_run.c computes from their instructions, and cfi_rule.c's view of a state as one
 * rule. Not for other modules: they see target/cfi.h.
 */
#ifndef XP_TARGET_CFI_IMPL_H
#define XP_TARGET_CFI_IMPL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "bpf/unwind.h"
#include "target/cfi.h"

/* The registers whose saved places are followed; the saved ones in the order of xp_saved_reg. */
enum xp_cfi_column {
	XP_CFI_SP,
	XP_CFI_FP,
	XP_CFI_RA,
	XP_CFI_SAVED,
	XP_CFI_COLUMNS = XP_CFI_SAVED + XP_SAVED_N,
	XP_CFI_UNTRACKED = XP_CFI_COLUMNS
};

/* What differs between architectures, by the ELF file's machine. */
struct xp_cfi_arch {
	uint16_t machine;		/* EM_* */
	uint8_t sp, fp;			/* DWARF numbers */
	uint8_t saved[XP_SAVED_N];
	const uint8_t *plt;		/* the CFA expression of the procedure linkage table ... */
	size_t plt_len;
	size_t plt_limit;		/* ... and where in it the DW_OP_lit<n> of the limit is */
};

/* NULL for a machine whose registers are not known here. */
const struct xp_cfi_arch *xp_cfi_arch_of(uint16_t machine);

enum xp_cfi_how {
	XP_CFI_UNSPECIFIED,		/* the caller's value is still in the register */
	XP_CFI_SLOT,			/* saved at CFA + off */
	XP_CFI_AT_FP,			/* the frame pointer: saved where it points now */
	XP_CFI_REGISTER,		/* the return address: in the register with number off */
	XP_CFI_UNDEFINED,		/* cannot be recovered */
	XP_CFI_ELSEWHERE,		/* recoverable, but not in a way that rows hold */
};

struct xp_cfi_place {
	int32_t off;
	uint8_t how;			/* enum xp_cfi_how */
};

enum xp_cfi_base { XP_CFA_NONE, XP_CFA_REGISTER, XP_CFA_EXPRESSION };

/* All that the instructions up to some address said. */
struct xp_cfi_state {
	uint8_t base;			/* enum xp_cfi_base */
	uint64_t reg;			/* XP_CFA_REGISTER: CFA = reg + off */
	int64_t off;
	const uint8_t *expr;		/* XP_CFA_EXPRESSION, inside the section */
	size_t expr_len;
	struct xp_cfi_place place[XP_CFI_COLUMNS];
};

struct xp_cfi_cie {
	uint32_t at;			/* offset of its entry in the section */
	bool ok;			/* false: malformed, and so is every FDE that names it */
	bool sized;			/* 'z': FDEs have a length of augmentation data */
	bool signal;			/* 'S' */
	uint8_t encoding;		/* DW_EH_PE_* of the addresses in FDEs */
	uint64_t code_align;
	int64_t data_align;
	uint64_t ra;			/* DWARF number of the return address */
	struct xp_cfi_state initial;	/* after the initial instructions */
};

struct xp_cfi_fde {
	uint64_t start, end;		/* [start, end), ELF virtual addresses */
	uint32_t at, len;		/* its instructions in the section */
	uint32_t cie;			/* index into cies */
};

/* A section taken apart. */
struct xp_cfi_entries {
	const struct xp_cfi_arch *arch;
	const uint8_t *data;
	size_t size;			/* at most UINT32_MAX */
	uint64_t vaddr;			/* of data[0] */
	bool debug_frame;		/* in the form of .debug_frame, else of .eh_frame */
	bool stop_at_zero;		/* the first entry of length 0 ends the section */
	XP_VEC(struct xp_cfi_cie) cies;	/* sorted by at */
	XP_VEC(struct xp_cfi_fde) fdes;	/* sorted by start, equal ones in the section's order */
	size_t nfdes;			/* seen */
	size_t bad_fdes;		/* malformed, not in fdes */
};

/*
 * Reads all entries. FDEs that describe no code (length 0, or address 0: their function was
 * discarded by the linker) are counted in nfdes only. arch to stop_at_zero are set by the caller,
 * the rest is zero. 0 or -ENOMEM; release in both cases.
 */
int xp_cfi_entries_read(struct xp_cfi_entries *es);
void xp_cfi_entries_release(struct xp_cfi_entries *es);

/*
 * A pointer in one of the encodings of .eh_frame; at_vaddr is the address of the cursor's position.
 * The cursor gets bad where an encoding is not supported (relative to text, data or function;
 * aligned; indirect).
 */
uint64_t xp_cfi_pointer(struct xp_cur *c, uint8_t encoding, uint64_t at_vaddr);

#define XP_CFI_REMEMBER_MAX 8		/* nesting of DW_CFA_remember_state that is followed */

/* Runs instructions; after xp_cfi_run_next(), state holds for [pc, next). */
struct xp_cfi_run {
	const struct xp_cfi_arch *arch;
	const struct xp_cfi_cie *cie;
	const struct xp_cfi_entries *entries;
	struct xp_cur insns;
	uint64_t pc, next, end;
	bool initial;			/* these are a CIE's instructions */
	struct xp_cfi_state state;
	struct xp_cfi_state stack[XP_CFI_REMEMBER_MAX];
	unsigned depth;
};

/* Runs a CIE's instructions and keeps the state they lead to in cie->initial. 0 or -EINVAL. */
int xp_cfi_run_cie(const struct xp_cfi_entries *es, struct xp_cfi_cie *cie, struct xp_cur insns);
void xp_cfi_run_init(struct xp_cfi_run *run, const struct xp_cfi_entries *es,
		     const struct xp_cfi_fde *fde);
/* 1: on to the next range of addresses; 0: the end; -EINVAL: malformed. */
int xp_cfi_run_next(struct xp_cfi_run *run);

/* The rule that a state comes down to. */
struct xp_rule xp_cfi_rule(const struct xp_cfi_arch *arch, const struct xp_cfi_cie *cie,
			   const struct xp_cfi_state *state);

/*
 * Puts rows where machine code tells more than call frame information does, in x86-64 images:
 *	- signal trampolines without 'S' (musl's __restore_rt; Go's runtime.sigreturn), recognised
 *	  by all of their bytes, get XP_RULE_SIGNAL, and bounds if they had none;
 *	- functions that a return leads into and that begin by taking the stack pointer from a
 *	  register that calls preserve (glibc's __start_context, below the function of a
 *	  makecontext()) have no caller: XP_RULE_END;
 *	- the system call between a function and an outermost one that follows it at most 16 bytes
 *	  behind (glibc's clone and clone3) is where a new thread begins: XP_RULE_FORK.
 * The byte before the first two has the same rule: what returns to them is looked up there. 0 or
 * -ENOMEM.
 */
int xp_cfi_mend_stubs(struct xp_cfi *cfi, const struct xp_elf *elf);

#endif
