/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The dso behind a mapping, opened once and shared by all processes that map it.
 *
 * The file read is the file mapped: a path is opened as printed, then through /proc/PID/root, and
 * accepted only when device and inode are the mapping's; else through /proc/PID/map_files
 * (deleted files; wants CAP_CHECKPOINT_RESTORE). Device numbers in maps differ from stat's on
 * btrfs and overlayfs: there the inode alone decides. Keyed by (dev, ino, size, mtime); the vdso
 * by its content. A dso lives as long as the cache, so ids and pointers stay good. What it holds of
 * the file (image, descriptor, symbols, lines) is given up when nobody has referred to it for a
 * while, and read again when it is asked for again.
 */
#ifndef XP_TARGET_DSO_H
#define XP_TARGET_DSO_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "target/cfi.h"
#include "target/elf.h"
#include "target/maps.h"
#include "target/srcline.h"
#include "target/sym.h"

struct xp_dso {
	char *path;			/* as the target names it; "[vdso]" */
	char build_id[2 * XP_BUILD_ID_MAX + 1];	/* hex; "" when none */
	struct xp_elf *elf;		/* NULL when it cannot be read: see problem */
	char problem[160];		/* why elf is NULL, else "" */
	struct xp_cfi cfi;		/* rows, until xp_dso_drop_rows() */
	bool cfi_built;
	uint32_t id;			/* dense, by age, for the owner's tables */
	uint32_t refs;
	void *user;			/* the owner's annotation; never freed here */
	/* private */
	struct xp_symtab *symtab;
	struct xp_srcline *srcline;
	bool srcline_tried;
	bool given_up;			/* elf, cfi and names were freed by xp_dsos_sweep() */
	uint8_t idle;			/* sweeps that found it without a reference */
	uint64_t dev, ino, size, mtime;
};

struct xp_dsos;				/* the cache */

struct xp_dsos *xp_dsos_new(void);	/* NULL with errno */
void xp_dsos_free(struct xp_dsos *dsos);
/*
 * The dso of a mapping with a file, or of [vdso] (read from the process's memory; every process of
 * this machine has the same: the own one is used when pid's memory cannot be read). NULL only when
 * out of memory or the mapping has no file; a dso that cannot be opened has a problem text instead.
 * Takes a reference.
 */
struct xp_dso *xp_dsos_get(struct xp_dsos *dsos, pid_t pid, const struct xp_mapping *mapping);
/* The same for a file by path, before anyone maps it. */
struct xp_dso *xp_dsos_get_path(struct xp_dsos *dsos, const char *path, struct xp_err *err);
void xp_dso_ref(struct xp_dso *dso);		/* one more reference */
void xp_dso_put(struct xp_dsos *dsos, struct xp_dso *dso);
/*
 * Gives up what is held of files that XP_DSO_SWEEPS calls in a row have found without a reference,
 * or two calls when such files have more than XP_DSO_IDLE_BYTES together; fn (may be NULL) is told
 * of each first. Their keys, paths and build ids stay.
 */
#define XP_DSO_SWEEPS 5
#define XP_DSO_IDLE_BYTES (64u << 20)
void xp_dsos_sweep(struct xp_dsos *dsos, void (*fn)(void *ctx, struct xp_dso *dso), void *ctx);

/* Builds cfi when it is not there; an unreadable section leaves it empty and sets problem. */
int xp_dso_need_rows(struct xp_dso *dso);
void xp_dso_drop_rows(struct xp_dso *dso);	/* rows and rules; function bounds stay */
/* ELF virtual address of a pc in a mapping of this dso; false when outside every segment. */
bool xp_dso_vaddr(const struct xp_dso *dso, const struct xp_mapping *m, uint64_t pc,
		  uint64_t *vaddr);
/*
 * pc - bias = ELF virtual address, for all of an executable mapping; false when it has no such
 * bias.
 */
bool xp_dso_bias(const struct xp_dso *dso, const struct xp_mapping *m, uint64_t *bias);
/* Symbols and lines, loaded on first use. */
bool xp_dso_symbol(struct xp_dso *dso, uint64_t vaddr, struct xp_sym *out);
bool xp_dso_line(struct xp_dso *dso, uint64_t vaddr, const char **file, uint32_t *line);
/*
 * What a command is about to map: the libraries that an ELF program needs, directly or not, and its
 * interpreter, as paths of this machine found the way ld.so would (needed.c). For a script its "#!"
 * interpreter comes first, then what that needs. The program itself is not told. A name without a
 * slash is looked up in PATH. Each path is passed to fn once; missing ones are skipped. 0, or a
 * negative errno when the program cannot be read.
 */
int xp_dso_needed(const char *program, void (*fn)(void *ctx, const char *path), void *ctx);

#endif
