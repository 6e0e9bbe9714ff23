/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ELF image, opened for reading: a file, or memory such as the vdso.
 *
 * A regular file of up to XP_ELF_COPY_MAX bytes is read whole into memory (libc.so.6: 0.2 ms): it
 * may be cut short or written to while it is read without any harm. A larger one is mapped
 * privately, because a copy of a browser or a compiler costs too much memory. If such a file is cut
 * short in place (not replaced, which is what linkers and package managers do), what is missing
 * reads as zeros and the image counts as damaged. Every access is checked against the size at
 * opening. libelf is opened over the same bytes, for libdw.
 */
#ifndef XP_TARGET_ELF_H
#define XP_TARGET_ELF_H

#include <libelf.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/err.h"
#include "base/filemap.h"

#define XP_BUILD_ID_MAX 64
#define XP_ELF_COPY_MAX (16u << 20)
#define XP_ELF_PHNUM_MAX 1024		/* real files have about 12 */

struct xp_segment {		/* a PT_LOAD; offset + filesz lies inside the image */
	uint64_t offset, filesz, vaddr, memsz;
	bool exec;
};

struct xp_elf {
	const uint8_t *data;
	size_t size;
	int fd;			/* of a mapped file, to map it again; -1: none */
	struct xp_filemap map;	/* of a large file; else data is to be freed */
	Elf *elf;
	Elf64_Ehdr header;	/* as checked: a mapped file may be written to */
	uint16_t machine, type;	/* EM_*, ET_* */
	uint64_t entry;		/* e_entry, 0 when none */
	struct xp_segment *segments;
	size_t nsegments;
	uint8_t build_id[XP_BUILD_ID_MAX];
	size_t build_id_len;	/* 0: has none */
};

/*
 * Opens an image. The fd stays the caller's (its offset is not moved) and may be closed at once.
 * Only regular files with ELFCLASS64, little-endian, at most XP_ELF_PHNUM_MAX program headers are
 * accepted: -ENOEXEC with a reason otherwise. *elf is NULL on failure.
 */
int xp_elf_open_fd(struct xp_elf **elf, int fd, struct xp_err *err);
int xp_elf_open_path(struct xp_elf **elf, const char *path, struct xp_err *err);
/* The same over memory, which is copied. */
int xp_elf_open_mem(struct xp_elf **elf, const void *data, size_t size, struct xp_err *err);
void xp_elf_free(struct xp_elf *elf);
/* Whether the file was cut short while it was being read: what was made of it may be wrong. */
static inline bool xp_elf_damaged(const struct xp_elf *elf)
{
	return elf->map.damaged;
}

/* ELF virtual address of a file offset inside an executable PT_LOAD; false when there is none. */
bool xp_elf_vaddr_of_offset(const struct xp_elf *elf, uint64_t offset, uint64_t *vaddr);
/* Bytes at a virtual address that lie in the file; NULL when fewer than n are there. */
const uint8_t *xp_elf_at_vaddr(const struct xp_elf *elf, uint64_t vaddr, size_t n);

struct xp_section {
	const uint8_t *data;	/* inside the image, or NULL for SHT_NOBITS */
	size_t size;
	uint64_t addr;
	uint32_t type;		/* SHT_*; 0 for a view that is no section */
	uint32_t link;		/* sh_link: index of the section that this one's entries refer to */
	uint64_t flags;		/* SHF_* */
	uint64_t entsize;
};

/* Number of section headers, 0 when there is no usable table; and one of them by index. */
size_t xp_elf_section_count(const struct xp_elf *elf);
bool xp_elf_section_at(const struct xp_elf *elf, size_t index, const char **name,
		       struct xp_section *out);
/* A section by name, bounds checked, not decompressed; false when absent or damaged. */
bool xp_elf_section(const struct xp_elf *elf, const char *name, struct xp_section *out);
/* PT_GNU_EH_FRAME as a section-like view; false when absent or damaged. */
bool xp_elf_eh_frame_hdr(const struct xp_elf *elf, struct xp_section *out);

/* Lower-case hex of the build id into out (2 * XP_BUILD_ID_MAX + 1 bytes); "" when it has none. */
void xp_elf_build_id_hex(const struct xp_elf *elf, char *out);

#endif
