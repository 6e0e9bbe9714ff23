/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The mappings of a process: /proc/PID/maps read and kept in step with the kernel's mmap events.
 *
 * A sorted list without overlap; a new mapping cuts or replaces what was there, as mmap(2) with
 * MAP_FIXED does. Paths are unescaped (\012), " (deleted)" is stripped and remembered (a file whose
 * own name ends so cannot be told apart: whoever opens it compares the inode).
 */
#ifndef XP_TARGET_MAPS_H
#define XP_TARGET_MAPS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "base/vec.h"

struct xp_mapping {
	uint64_t start, end;		/* [start, end) */
	uint64_t offset;		/* in the file, bytes */
	uint64_t dev;			/* major << 32 | minor; 0 with ino 0: no file */
	uint64_t ino;
	bool exec, deleted;
	char *path;			/* owned; "" for anonymous memory; "[vdso]" as given */
	void *user;			/* the owner's annotation: see struct xp_maps */
};

#define XP_MAPS_TEXT_MAX (64u << 20)	/* bytes of a maps file that are read; more gives -EFBIG */

/*
 * Each mapping of a list with hooks owns a reference to what its user pointer (not NULL) stands for:
 * get is called when a mapping with one is added, copied or cut in two, put when it goes. Without
 * hooks the pointers are merely moved along.
 */
struct xp_maps {
	XP_VEC(struct xp_mapping) list;
	void (*get)(void *ctx, void *user);
	void (*put)(void *ctx, void *user);
	void *ctx;
};

/* Empties the list; the hooks stay. */
void xp_maps_release(struct xp_maps *m);
/*
 * Replaces the list by the text of a maps file, without annotations. A line that is malformed or not above the one before gives -EINVAL with its number, and the
 * list is as it was.
 */
int xp_maps_parse(struct xp_maps *m, const char *text, size_t len, struct xp_err *err);
/* The same with /proc/PID/maps; -ESRCH when there is no such process. Empty for a zombie. */
int xp_maps_read(struct xp_maps *m, pid_t pid, struct xp_err *err);
/*
 * Adds one mapping (path copied, reference of its own taken), cutting what it covers; the pieces that
 * stay keep their user pointer. 0, -EINVAL when start >= end, -ENOMEM.
 */
int xp_maps_add(struct xp_maps *m, const struct xp_mapping *new);
/* The mapping around an address, or NULL. */
struct xp_mapping *xp_maps_find(const struct xp_maps *m, uint64_t addr);
/* Copies all of src (paths too, not the hooks) into the empty dst: fork. 0 or -ENOMEM. */
int xp_maps_copy(struct xp_maps *dst, const struct xp_maps *src);

#endif
