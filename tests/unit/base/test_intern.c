// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/intern: one id per content, in order; strings stay where they are.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "base/intern.h"

static uint32_t add(struct xp_strings *s, const void *p, size_t n)
{
	uint32_t id = UINT32_MAX;

	assert_int_equal(xp_strings_add(s, p, n, &id), 0);
	return id;
}

static void ids_are_dense_and_start_with_the_empty_string(void **state)
{
	struct xp_strings s;
	uint32_t id = 9;

	(void)state;
	assert_int_equal(xp_strings_init(&s), 0);
	assert_int_equal(add(&s, NULL, 0), 0);
	assert_int_equal(add(&s, "a", 1), 1);
	assert_int_equal(add(&s, "b", 1), 2);
	assert_int_equal(add(&s, "a", 1), 1);
	assert_int_equal(xp_strings_addz(&s, "b", &id), 0);
	assert_int_equal(id, 2);
	assert_int_equal(xp_strings_addz(&s, NULL, &id), 0);
	assert_int_equal(id, 0);
	assert_string_equal(xp_strings_get(&s, 0).p, "");
	assert_string_equal(xp_strings_get(&s, 2).p, "b");
	assert_string_equal(xp_strings_get(&s, 3).p, "");
	assert_int_equal(xp_strings_get(&s, UINT32_MAX).n, 0);
	xp_strings_release(&s);
	xp_strings_release(&s);
}

static void nul_bytes_count(void **state)
{
	struct xp_strings s;

	(void)state;
	assert_int_equal(xp_strings_init(&s), 0);
	assert_int_equal(add(&s, "a\0b", 3), 1);
	assert_int_equal(add(&s, "a\0c", 3), 2);
	assert_int_equal(add(&s, "a", 1), 3);
	assert_int_equal(add(&s, "\0", 1), 4);
	assert_int_equal(xp_strings_get(&s, 2).n, 3);
	assert_memory_equal(xp_strings_get(&s, 2).p, "a\0c", 4);
	xp_strings_release(&s);
}

static void strings_do_not_move(void **state)
{
	static const char *where[40000];
	struct xp_strings s;
	char name[32];

	(void)state;
	assert_int_equal(xp_strings_init(&s), 0);
	for (uint32_t i = 1; i < 40000; i++) {
		int n = snprintf(name, sizeof(name), "function_%u", i);

		assert_int_equal(add(&s, name, (size_t)n), i);
		where[i] = xp_strings_get(&s, i).p;
	}
	for (uint32_t i = 1; i < 40000; i++) {
		snprintf(name, sizeof(name), "function_%u", i);
		assert_ptr_equal(xp_strings_get(&s, i).p, where[i]);
		assert_string_equal(where[i], name);
	}
	xp_strings_release(&s);
}

/* Long strings between short ones: neither may overwrite the other. */
static void long_strings_have_room(void **state)
{
	static char big[200000];
	struct xp_strings s;

	(void)state;
	assert_int_equal(xp_strings_init(&s), 0);
	for (uint32_t i = 0; i < 20; i++) {
		char small[8];

		memset(big, 'A' + (int)i, sizeof(big));
		assert_int_equal(add(&s, big, i % 2 ? sizeof(big) : 8192 - 1 + i % 4), 2 * i + 1);
		assert_int_equal(add(&s, small, (size_t)snprintf(small, 8, "s%u", i)), 2 * i + 2);
	}
	for (uint32_t i = 0; i < 20; i++) {
		struct xp_str have = xp_strings_get(&s, 2 * i + 1);
		char small[8];

		for (size_t k = 0; k < have.n; k++)
			assert_int_equal(have.p[k], 'A' + (int)i);
		assert_int_equal(have.p[have.n], 0);
		snprintf(small, sizeof(small), "s%u", i);
		assert_string_equal(xp_strings_get(&s, 2 * i + 2).p, small);
	}
	xp_strings_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ids_are_dense_and_start_with_the_empty_string),
		cmocka_unit_test(nul_bytes_count),
		cmocka_unit_test(strings_do_not_move),
		cmocka_unit_test(long_strings_have_room),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
