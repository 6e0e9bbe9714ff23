// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Interned byte strings. Their bytes sit in blocks that never move; a long string has a block of
 * its own, kept before the block that is being filled, which is always the last of the list.
 */
#include "base/intern.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define BLOCK_SIZE (64u << 10)
#define LONG_STRING (BLOCK_SIZE / 8)

struct key {
	const void *p;
	size_t n;
};

static bool same(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_strings *s = ctx;
	const struct key *k = key;
	const struct xp_str *have = &s->list.v[id];

	return have->n == k->n && (!k->n || !memcmp(have->p, k->p, k->n));
}

/* A block of its own for a long string; the block being filled stays the last. */
static char *long_block(struct xp_strings *s, size_t size)
{
	char **slot, *block = malloc(size);

	slot = block ? xp_vec_push(&s->blocks) : NULL;
	if (!slot) {
		free(block);
		return NULL;
	}
	*slot = block;
	if (s->blocks.n > 1) {
		*slot = slot[-1];
		slot[-1] = block;
	}
	return block;
}

/* Room that lives as long as the table; NULL when out of memory. */
static char *bytes(struct xp_strings *s, size_t size)
{
	char **slot, *block;

	if (size > LONG_STRING)
		return long_block(s, size);
	if (s->block_size - s->block_used < size) {
		block = malloc(BLOCK_SIZE);
		slot = block ? xp_vec_push(&s->blocks) : NULL;
		if (!slot) {
			free(block);
			return NULL;
		}
		*slot = block;
		s->block_size = BLOCK_SIZE;
		s->block_used = 0;
	}
	block = s->blocks.v[s->blocks.n - 1] + s->block_used;
	s->block_used += size;
	return block;
}

int xp_strings_init(struct xp_strings *s)
{
	uint32_t id;
	int ret;

	memset(s, 0, sizeof(*s));
	ret = xp_strings_add(s, "", 0, &id);
	if (ret)
		xp_strings_release(s);
	return ret;
}

void xp_strings_release(struct xp_strings *s)
{
	for (size_t i = 0; i < s->blocks.n; i++)
		free(s->blocks.v[i]);
	xp_vec_release(&s->blocks);
	xp_vec_release(&s->list);
	xp_index_release(&s->index);
	s->block_used = s->block_size = 0;
}

int xp_strings_add(struct xp_strings *s, const void *p, size_t n, uint32_t *id)
{
	struct key key = { p, n };
	uint64_t hash = xp_hash_bytes(p, n, 0);
	uint32_t found = xp_index_find(&s->index, hash, same, s, &key);
	char *copy;

	if (found != XP_INDEX_NONE) {
		*id = found;
		return 0;
	}
	if (n == SIZE_MAX || s->list.n >= XP_INDEX_NONE || xp_vec_reserve(&s->list, s->list.n + 1))
		return -ENOMEM;
	copy = bytes(s, n + 1);
	if (!copy || xp_index_add(&s->index, hash, (uint32_t)s->list.n))
		return -ENOMEM;
	if (n)
		memcpy(copy, p, n);
	copy[n] = '\0';
	*id = (uint32_t)s->list.n;
	s->list.v[s->list.n++] = (struct xp_str){ copy, n };
	return 0;
}

int xp_strings_addz(struct xp_strings *s, const char *z, uint32_t *id)
{
	return xp_strings_add(s, z ? z : "", z ? strlen(z) : 0, id);
}

struct xp_str xp_strings_get(const struct xp_strings *s, uint32_t id)
{
	return id < s->list.n ? s->list.v[id] : (struct xp_str){ "", 0 };
}
