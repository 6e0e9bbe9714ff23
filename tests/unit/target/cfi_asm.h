/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An assembler for .eh_frame and .debug_frame sections in tests, entry by entry.
 */
#ifndef XP_TESTS_TARGET_CFI_ASM_H
#define XP_TESTS_TARGET_CFI_ASM_H

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"

#define CFI_ASM_VADDR 0x100000u		/* of the section */

struct cfi_asm {
	struct xp_buf b;
	size_t entry, body;		/* where the open entry's length and its contents begin */
	size_t cie;			/* where the newest CIE begins */
	bool dwarf64;			/* use the long form of lengths */
	bool debug_frame;		/* ids and addresses are those of .debug_frame */
};

/* Bytes as two arguments: address and number. */
#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

static inline void cfi_asm_open(struct cfi_asm *a)
{
	a->entry = a->b.len;
	xp_buf_u32(&a->b, a->dwarf64 ? UINT32_MAX : 0);
	if (a->dwarf64)
		xp_buf_u64(&a->b, 0);
	a->body = a->b.len;
}

static inline void cfi_asm_close(struct cfi_asm *a)
{
	uint64_t len = a->b.len - a->body;
	unsigned size = a->dwarf64 ? 8 : 4;

	for (unsigned i = 0; i < size; i++)
		a->b.data[a->body - size + i] = (uint8_t)(len >> 8 * i);
}

static inline void cfi_asm_open_cie(struct cfi_asm *a)
{
	cfi_asm_open(a);
	a->cie = a->entry;
	xp_buf_u32(&a->b, a->debug_frame ? UINT32_MAX : 0);
	if (a->debug_frame && a->dwarf64)
		xp_buf_u32(&a->b, UINT32_MAX);
}

/* What follows a CIE's id is given whole. */
static inline void cfi_asm_raw_cie(struct cfi_asm *a, const uint8_t *rest, size_t n)
{
	cfi_asm_open_cie(a);
	xp_buf_put(&a->b, rest, n);
	cfi_asm_close(a);
}

/*
 * Version 1, alignments 1 and -8, return address 16, CFA = rsp + 8, return address at CFA - 8, and
 * an augmentation with the bytes that belong to it (their length is written here).
 */
static inline void cfi_asm_cie(struct cfi_asm *a, const char *letters, const uint8_t *data,
			       size_t n)
{
	cfi_asm_open_cie(a);
	xp_buf_u8(&a->b, 1);
	xp_buf_put(&a->b, letters, strlen(letters) + 1);
	xp_buf_put(&a->b, BYTES(1, 0x78, 16));
	if (letters[0] == 'z')
		xp_buf_str(&a->b, data, n);
	xp_buf_put(&a->b, BYTES(0x0c, 7, 8, 0x90, 1));
	cfi_asm_close(a);
}

/* Opens an FDE of the newest CIE; its start is to follow. */
static inline void cfi_asm_open_fde(struct cfi_asm *a)
{
	cfi_asm_open(a);
	xp_buf_u32(&a->b, (uint32_t)(a->debug_frame ? a->cie : a->b.len - a->cie));
	if (a->debug_frame && a->dwarf64)
		xp_buf_u32(&a->b, 0);
}

/*
 * An FDE with plain addresses in .debug_frame, else in the encoding 0x1b (pcrel, sdata4) with an
 * empty augmentation.
 */
static inline void cfi_asm_fde(struct cfi_asm *a, uint64_t start, uint32_t len,
			       const uint8_t *insns, size_t n)
{
	cfi_asm_open_fde(a);
	if (a->debug_frame) {
		xp_buf_u64(&a->b, start);
		xp_buf_u64(&a->b, len);
	} else {
		xp_buf_u32(&a->b, (uint32_t)(start - (CFI_ASM_VADDR + a->b.len)));
		xp_buf_u32(&a->b, len);
		xp_buf_u8(&a->b, 0);
	}
	xp_buf_put(&a->b, insns, n);
	cfi_asm_close(a);
}

#endif
