/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compact unwind rows from .eh_frame and .debug_frame.
 *
 * Runs the call frame instructions of every FDE (DWARF 5 section 6.4; System V ABI for x86-64,
 * chapter on .eh_frame; LSB core, "Exception Frames") and keeps for each pc where the CFA is, where
 * the return address, the frame pointer, rbx and r12 to r15 were saved: what bpf/unwind.h holds.
 * Rows are ELF virtual addresses, sorted, neighbours differ. Gaps between functions get
 * XP_RULE_NONE; gaps up to 16 bytes (padding) belong to the function before. Of FDEs that overlap
 * the one that starts first is kept; FDEs at address 0 (discarded by the linker) are left out.
 *
 * .debug_frame fills the gaps of .eh_frame: programs built with -fno-asynchronous-unwind-tables -g
 * and hand-written assembler have their functions there alone. One of its FDEs is used where no FDE
 * of .eh_frame overlaps it and it lies between the ends of the executable segments.
 *
 * Machine code tells more in three cases: signal trampolines without 'S', glibc's __start_context,
 * and the system call of clone (cfi_rule.c).
 *
 * A rule that does not name a place (XP_RULE_NONE, SIGNAL, END, BAD) is zero but for its kind. A
 * saved register that rows cannot express is XP_FP_LOST or XP_SAVE_LOST, never "unchanged".
 */
#ifndef XP_TARGET_CFI_H
#define XP_TARGET_CFI_H

#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/vec.h"
#include "bpf/unwind.h"
#include "target/elf.h"

struct xp_cfi_row {
	uint64_t vaddr;
	uint32_t rule;			/* index into rules */
};

struct xp_cfi_func {			/* bounds of one FDE, or of a signal trampoline without */
	uint64_t start, end;		/* [start, end) */
};

struct xp_cfi {
	XP_VEC(struct xp_cfi_row) rows;		/* sorted; the last one is XP_RULE_NONE */
	XP_VEC(struct xp_rule) rules;		/* distinct */
	XP_VEC(struct xp_cfi_func) funcs;	/* sorted by start, not overlapping */
	size_t nfdes;				/* read */
	/* Left out: malformed, overlapping, too many; 1 for a .debug_frame that cannot be read. */
	size_t bad_fdes;
	size_t bad_rows;			/* rows with XP_RULE_BAD */
	/* ".eh_frame", ".debug_frame", ".eh_frame+.debug_frame": what gave rows; NULL: nothing. */
	const char *source;
};

/*
 * Builds the rows of an image. Malformed FDEs are left out and counted. An image without either
 * section gives an empty table, not an error, and so does one of a machine other than x86-64.
 * -EINVAL when .eh_frame itself cannot be read, -ENOMEM; then the table is empty as well. A
 * compressed .debug_frame is read up to 256 MiB, if libelf knows the format (zlib; zstd from
 * elfutils 0.189 on). The table keeps no pointers into the image. Work is bounded by the sections'
 * sizes: rows <= 4 million, instructions are linear in bytes.
 */
int xp_cfi_build(struct xp_cfi *cfi, const struct xp_elf *elf, struct xp_err *err);
/*
 * The same for the bytes of the sections, wherever the code is; either may be NULL. Of each, data,
 * size and addr are used.
 */
int xp_cfi_build_sections(struct xp_cfi *cfi, uint16_t machine, const struct xp_section *eh_frame,
			  const struct xp_section *debug_frame, struct xp_err *err);
void xp_cfi_release(struct xp_cfi *cfi);

/* The rule in force at an address, or NULL before the first row. */
const struct xp_rule *xp_cfi_rule_at(const struct xp_cfi *cfi, uint64_t vaddr);
/* The function around an address by FDE bounds, or NULL. */
const struct xp_cfi_func *xp_cfi_func_at(const struct xp_cfi *cfi, uint64_t vaddr);

#endif
