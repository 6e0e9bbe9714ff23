/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Interned byte strings: each distinct string has one dense id, counted up from 0; id 0 is the
 * empty string. Bytes may include NUL; each stored string is also NUL-terminated. Strings live
 * until release and do not move.
 */
#ifndef XP_BASE_INTERN_H
#define XP_BASE_INTERN_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/vec.h"

struct xp_str {
	const char *p;
	size_t n;
};

struct xp_strings {
	XP_VEC(struct xp_str) list;
	struct xp_index index;
	XP_VEC(char *) blocks;
	size_t block_used, block_size;
};

int xp_strings_init(struct xp_strings *s);		/* 0 or -ENOMEM */
void xp_strings_release(struct xp_strings *s);
/* Stores the id of the string in *id. 0 or -ENOMEM. */
int xp_strings_add(struct xp_strings *s, const void *p, size_t n, uint32_t *id);
int xp_strings_addz(struct xp_strings *s, const char *z, uint32_t *id);	/* z NULL: "" */
/* The string of an id; the empty one when there is no such id. */
struct xp_str xp_strings_get(const struct xp_strings *s, uint32_t id);

#endif
