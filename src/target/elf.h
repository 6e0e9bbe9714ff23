/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ELF image, opened for reading: a file, or memory such as the vdso.
 *
 * The bytes are mapped privately and read with bounds checks; libelf is opened on the same bytes for
 * sections and symbols. A file that is truncated under the reader is an I/O error, not a crash:
 * regular files are read into memory, up to XP_ELF_SIZE_MAX, only where they are small; larger ones
 * are mapped and SIGBUS is avoided by checking the size before each section is used.
 */
#ifndef XP_TARGET_ELF_H
#define XP_TARGET_ELF_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"

#define XP_BUILD_ID_MAX 64

struct xp_segment {		/* a PT_LOAD */
	uint64_t offset, filesz, vaddr, memsz;
	bool exec;
};

struct xp_elf {
	const uint8_t *data;
	size_t size;
	bool mapped;		/* data is to be unmapped (else freed when owned) */
	bool owned;
	Elf *elf;
	uint16_t machine, type;	/* EM_*, ET_* */
	uint64_t entry;		/* e_entry, 0 when none */
	struct xp_segment *segments;
	size_t nsegments;
	uint8_t build_id[XP_BUILD_ID_MAX];
	size_t build_id_len;	/* 0: has none */
};

/*
 * Opens an image. The fd stays the caller's and may be closed at once. Only ELFCLASS64 little-endian
 * is accepted: -ENOEXEC with a reason otherwise. *elf is NULL on failure.
 */
int xp_elf_open_fd(struct xp_elf **elf, int fd, struct xp_err *err);
int xp_elf_open_path(struct xp_elf **elf, const char *path, struct xp_err *err);
/* The same over memory, which is copied. */
int xp_elf_open_mem(struct xp_elf **elf, const void *data, size_t size, struct xp_err *err);
void xp_elf_free(struct xp_elf *elf);

/* ELF virtual address of a file offset inside an executable PT_LOAD; false when there is none. */
bool xp_elf_vaddr_of_offset(const struct xp_elf *elf, uint64_t offset, uint64_t *vaddr);
/* Bytes at a virtual address that lie in the file; NULL when fewer than n are there. */
const uint8_t *xp_elf_at_vaddr(const struct xp_elf *elf, uint64_t vaddr, size_t n);

struct xp_section {
	const uint8_t *data;	/* inside the image, or NULL for SHT_NOBITS */
	size_t size;
	uint64_t addr;
};

/* A section by name, bounds checked, not decompressed; false when absent or damaged. */
bool xp_elf_section(const struct xp_elf *elf, const char *name, struct xp_section *out);
/* PT_GNU_EH_FRAME as a section-like view; false when absent or damaged. */
bool xp_elf_eh_frame_hdr(const struct xp_elf *elf, struct xp_section *out);

/* Lower-case hex of the build id into out (2 * XP_BUILD_ID_MAX + 1 bytes); "" when it has none. */
void xp_elf_build_id_hex(const struct xp_elf *elf, char *out);

#endif
