// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/hash: the index and the map against plain arrays, also when all hashes collide.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/hash.h"

#define N 5000

static bool same(const void *ctx, const void *key, uint32_t id)
{
	const uint64_t *objects = ctx;

	return objects[id] == *(const uint64_t *)key;
}

static void fill_and_find(uint64_t (*hash)(uint64_t), unsigned n)
{
	struct xp_index ix = XP_INDEX_INIT;
	static uint64_t objects[N];
	uint64_t missing = 1;

	for (uint32_t i = 0; i < n; i++) {
		objects[i] = (uint64_t)i * 0x10000 + 7;
		assert_int_equal(xp_index_find(&ix, hash(objects[i]), same, objects, &objects[i]),
				 XP_INDEX_NONE);
		assert_int_equal(xp_index_add(&ix, hash(objects[i]), i), 0);
	}
	assert_int_equal(ix.n, n);
	for (uint32_t i = 0; i < n; i++)
		assert_int_equal(xp_index_find(&ix, hash(objects[i]), same, objects, &objects[i]),
				 i);
	assert_int_equal(xp_index_find(&ix, hash(missing), same, objects, &missing),
			 XP_INDEX_NONE);
	xp_index_release(&ix);
	xp_index_release(&ix);
}

static uint64_t constant(uint64_t v)
{
	(void)v;
	return 42;
}

static void index_finds_what_was_added(void **state)
{
	(void)state;
	fill_and_find(xp_hash_u64, N);
}

static void index_survives_collisions(void **state)
{
	(void)state;
	fill_and_find(constant, 300);
}

static void index_refuses_the_id_that_means_none(void **state)
{
	struct xp_index ix = XP_INDEX_INIT;

	(void)state;
	assert_int_equal(xp_index_add(&ix, 1, XP_INDEX_NONE), -ENOMEM);
	assert_int_equal(ix.n, 0);
	xp_index_release(&ix);
}

static void map_sets_gets_and_removes(void **state)
{
	struct xp_map m = XP_MAP_INIT;

	(void)state;
	assert_null(xp_map_get(&m, 0));
	assert_false(xp_map_remove(&m, 0));
	for (uint64_t k = 0; k < N; k++)
		assert_int_equal(xp_map_set(&m, k << 12, k), 0);
	assert_int_equal(m.n, N);
	assert_int_equal(xp_map_set(&m, 5 << 12, 555), 0);
	assert_int_equal(m.n, N);
	assert_int_equal(*xp_map_get(&m, 5 << 12), 555);
	for (uint64_t k = 0; k < N; k += 2)
		assert_true(xp_map_remove(&m, k << 12));
	assert_int_equal(m.n, N / 2);
	for (uint64_t k = 0; k < N; k++) {
		uint64_t *v = xp_map_get(&m, k << 12);

		if (k % 2)
			assert_true(v && *v == (k == 5 ? 555 : k));
		else
			assert_null(v);
	}
	assert_int_equal(xp_map_set(&m, UINT64_MAX, 1), 0);
	assert_int_equal(*xp_map_get(&m, UINT64_MAX), 1);
	xp_map_release(&m);
	assert_null(xp_map_get(&m, 1 << 12));
	xp_map_release(&m);
}

/* Entries that come and go must not make the table grow, nor fill it with removed slots. */
static void map_reuses_removed_slots(void **state)
{
	struct xp_map m = XP_MAP_INIT;

	(void)state;
	for (uint64_t k = 0; k < 20 * N; k++) {
		assert_int_equal(xp_map_set(&m, k, k), 0);
		if (k >= 10)
			assert_true(xp_map_remove(&m, k - 10));
	}
	assert_int_equal(m.n, 10);
	assert_true(m.cap <= 64);
	for (uint64_t k = 20 * N - 10; k < 20 * N; k++)
		assert_true(*xp_map_get(&m, k) == k);
	xp_map_release(&m);
}

static void hashes_depend_on_every_byte_and_the_seed(void **state)
{
	uint8_t bytes[40] = { 0 };
	uint64_t base = xp_hash_bytes(bytes, sizeof(bytes), 0);

	(void)state;
	assert_true(base == xp_hash_bytes(bytes, sizeof(bytes), 0));
	assert_true(base != xp_hash_bytes(bytes, sizeof(bytes), 1));
	for (size_t n = 0; n < sizeof(bytes); n++)
		assert_true(xp_hash_bytes(bytes, n, 0) != xp_hash_bytes(bytes, n + 1, 0));
	for (size_t i = 0; i < sizeof(bytes); i++) {
		bytes[i] = 1;
		assert_true(base != xp_hash_bytes(bytes, sizeof(bytes), 0));
		bytes[i] = 0;
	}
	assert_true(xp_hash_bytes(NULL, 0, 0) == xp_hash_bytes("", 0, 0));
}

/* Low bits choose the slot: neighbours (addresses, ids) must spread. */
static void low_bits_spread(void **state)
{
	unsigned used[256] = { 0 }, most = 0;

	(void)state;
	for (uint64_t k = 0; k < 2560; k++) {
		unsigned slot = xp_hash_u64(k << 12) & 255;

		if (++used[slot] > most)
			most = used[slot];
	}
	assert_true(most < 30);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(index_finds_what_was_added),
		cmocka_unit_test(index_survives_collisions),
		cmocka_unit_test(index_refuses_the_id_that_means_none),
		cmocka_unit_test(map_sets_gets_and_removes),
		cmocka_unit_test(map_reuses_removed_slots),
		cmocka_unit_test(hashes_depend_on_every_byte_and_the_seed),
		cmocka_unit_test(low_bits_spread),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
