/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Hashing: an index from content to dense ids whose keys live elsewhere, and a map of integers.
 */
#ifndef XP_BASE_HASH_H
#define XP_BASE_HASH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

uint64_t xp_hash_bytes(const void *p, size_t n, uint64_t seed);
uint64_t xp_hash_u64(uint64_t v);

/* Open-addressed set of ids; the owner keeps the objects and compares them. */
struct xp_index {
	struct xp_index_slot { uint32_t hash, id1; } *slots;	/* id1: id + 1, 0 is free */
	size_t cap, n;
};

#define XP_INDEX_NONE UINT32_MAX
#define XP_INDEX_INIT { NULL, 0, 0 }

typedef bool (*xp_index_equal)(const void *ctx, const void *key, uint32_t id);

/* The id whose object equals key, or XP_INDEX_NONE. */
uint32_t xp_index_find(const struct xp_index *ix, uint64_t hash, xp_index_equal equal,
		       const void *ctx, const void *key);
/* Adds an id that is known to be absent. 0 or -ENOMEM. */
int xp_index_add(struct xp_index *ix, uint64_t hash, uint32_t id);
void xp_index_release(struct xp_index *ix);

/* Map from uint64_t to uint64_t; removal supported. Slots are told free, used and removed. */
struct xp_map {
	struct xp_map_slot { uint64_t key, value; uint8_t used; } *slots;
	size_t cap, n, filled;
};

#define XP_MAP_INIT { NULL, 0, 0, 0 }

/* Address of the value (valid until the next set), or NULL. */
uint64_t *xp_map_get(const struct xp_map *m, uint64_t key);
int xp_map_set(struct xp_map *m, uint64_t key, uint64_t value);		/* 0 or -ENOMEM */
bool xp_map_remove(struct xp_map *m, uint64_t key);
void xp_map_release(struct xp_map *m);

#endif
