// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Hashing: an index from content to dense ids whose keys live elsewhere, and a map of integers.
 *
 * Both tables are open-addressed with linear probing and a power of two of slots, at most three
 * quarters of them filled, so that every probe ends at a free slot.
 */
#include "base/hash.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_SLOTS 64

enum { FREE, USED, REMOVED };		/* struct xp_map_slot.used; only FREE ends a probe */

/* Odd constants with well spread bits: the fractions of the golden ratio and of sqrt(3). */
#define K1 0x9e3779b97f4a7c15ull
#define K2 0xbb67ae8584caa73bull

/* The 128-bit product folded: every input bit reaches both ends of the result. */
static uint64_t mix(uint64_t a, uint64_t b)
{
	unsigned __int128 product = (unsigned __int128)a * b;

	return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t xp_hash_bytes(const void *p, size_t n, uint64_t seed)
{
	const unsigned char *at = p;
	uint64_t h = seed ^ mix((uint64_t)n ^ K2, K1);

	while (n >= 8) {
		uint64_t word;

		memcpy(&word, at, 8);
		h = mix(h ^ word ^ K1, K2);
		at += 8;
		n -= 8;
	}
	if (n) {
		uint64_t word = 0;

		memcpy(&word, at, n);
		h = mix(h ^ word ^ K1, K2);
	}
	return mix(h ^ K2, K1);
}

uint64_t xp_hash_u64(uint64_t v)
{
	v = (v ^ (v >> 32)) * K1;
	v = (v ^ (v >> 29)) * K2;
	return v ^ (v >> 32);
}

/* Slots after growth, or 0 when the table need not grow to take one more. */
static size_t grown_cap(size_t cap, size_t filled)
{
	if (!cap)
		return FIRST_SLOTS;
	return filled + 1 > cap / 4 * 3 ? cap * 2 : 0;
}

uint32_t xp_index_find(const struct xp_index *ix, uint64_t hash, xp_index_equal equal,
		       const void *ctx, const void *key)
{
	uint32_t h = (uint32_t)(hash ^ (hash >> 32));

	if (!ix->cap)
		return XP_INDEX_NONE;
	for (size_t i = h & (ix->cap - 1); ix->slots[i].id1; i = (i + 1) & (ix->cap - 1)) {
		if (ix->slots[i].hash == h && equal(ctx, key, ix->slots[i].id1 - 1))
			return ix->slots[i].id1 - 1;
	}
	return XP_INDEX_NONE;
}

static void index_place(struct xp_index_slot *slots, size_t cap, struct xp_index_slot slot)
{
	size_t i = slot.hash & (cap - 1);

	while (slots[i].id1)
		i = (i + 1) & (cap - 1);
	slots[i] = slot;
}

int xp_index_add(struct xp_index *ix, uint64_t hash, uint32_t id)
{
	size_t cap = grown_cap(ix->cap, ix->n);

	if (id == XP_INDEX_NONE)
		return -ENOMEM;
	if (cap) {
		struct xp_index_slot *slots = calloc(cap, sizeof(*slots));

		if (!slots)
			return -ENOMEM;
		for (size_t i = 0; i < ix->cap; i++) {
			if (ix->slots[i].id1)
				index_place(slots, cap, ix->slots[i]);
		}
		free(ix->slots);
		ix->slots = slots;
		ix->cap = cap;
	}
	index_place(ix->slots, ix->cap,
		    (struct xp_index_slot){ (uint32_t)(hash ^ (hash >> 32)), id + 1 });
	ix->n++;
	return 0;
}

void xp_index_release(struct xp_index *ix)
{
	free(ix->slots);
	*ix = (struct xp_index)XP_INDEX_INIT;
}

static struct xp_map_slot *map_find(const struct xp_map *m, uint64_t key)
{
	size_t mask = m->cap - 1;

	if (!m->cap)
		return NULL;
	for (size_t i = xp_hash_u64(key) & mask; m->slots[i].used != FREE; i = (i + 1) & mask) {
		if (m->slots[i].used == USED && m->slots[i].key == key)
			return &m->slots[i];
	}
	return NULL;
}

uint64_t *xp_map_get(const struct xp_map *m, uint64_t key)
{
	struct xp_map_slot *slot = map_find(m, key);

	return slot ? &slot->value : NULL;
}

static void map_place(struct xp_map_slot *slots, size_t cap, uint64_t key, uint64_t value)
{
	size_t i = xp_hash_u64(key) & (cap - 1);

	while (slots[i].used != FREE)
		i = (i + 1) & (cap - 1);
	slots[i] = (struct xp_map_slot){ key, value, USED };
}

/* New slots of that number; removed ones are left behind. */
static int map_rebuild(struct xp_map *m, size_t cap)
{
	struct xp_map_slot *slots = calloc(cap, sizeof(*slots));

	if (!slots)
		return -ENOMEM;
	for (size_t i = 0; i < m->cap; i++) {
		if (m->slots[i].used == USED)
			map_place(slots, cap, m->slots[i].key, m->slots[i].value);
	}
	free(m->slots);
	m->slots = slots;
	m->cap = cap;
	m->filled = m->n;
	return 0;
}

int xp_map_set(struct xp_map *m, uint64_t key, uint64_t value)
{
	struct xp_map_slot *slot = map_find(m, key);
	size_t cap;

	if (slot) {
		slot->value = value;
		return 0;
	}
	cap = grown_cap(m->cap, m->filled);
	/* Mostly removed slots: the same size does, without them. */
	if (cap && map_rebuild(m, m->n < m->cap / 2 ? m->cap : cap))
		return -ENOMEM;
	map_place(m->slots, m->cap, key, value);
	m->n++;
	m->filled++;
	return 0;
}

bool xp_map_remove(struct xp_map *m, uint64_t key)
{
	struct xp_map_slot *slot = map_find(m, key);

	if (!slot)
		return false;
	slot->used = REMOVED;
	m->n--;
	return true;
}

void xp_map_release(struct xp_map *m)
{
	free(m->slots);
	*m = (struct xp_map)XP_MAP_INIT;
}
