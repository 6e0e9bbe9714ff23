// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/vec: growth keeps contents, new elements are zero, impossible sizes fail cleanly.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/vec.h"

struct point {
	int x, y;
	char pad[5];
};

static void push_keeps_what_was_there(void **state)
{
	XP_VEC(struct point) v = XP_VEC_INIT;

	(void)state;
	for (int i = 0; i < 10000; i++) {
		struct point *p = xp_vec_push(&v);

		assert_non_null(p);
		assert_int_equal(p->x, 0);
		assert_int_equal(p->pad[4], 0);
		p->x = i;
		p->y = -i;
		p->pad[4] = 1;
	}
	assert_int_equal(v.n, 10000);
	assert_true(v.cap >= v.n);
	for (int i = 0; i < 10000; i++) {
		assert_int_equal(v.v[i].x, i);
		assert_int_equal(v.v[i].y, -i);
	}
	xp_vec_release(&v);
	assert_null(v.v);
	assert_int_equal(v.n + v.cap, 0);
	xp_vec_release(&v);
}

static void reused_elements_are_zero_again(void **state)
{
	XP_VEC(unsigned) v = XP_VEC_INIT;
	unsigned *p;

	(void)state;
	p = xp_vec_push(&v);
	assert_non_null(p);
	*p = 77;
	xp_vec_clear(&v);
	assert_int_equal(v.n, 0);
	p = xp_vec_push(&v);
	assert_non_null(p);
	assert_int_equal(*p, 0);
	xp_vec_release(&v);
}

static void reserve_makes_room_once(void **state)
{
	XP_VEC(uint64_t) v = XP_VEC_INIT;
	uint64_t *before;

	(void)state;
	assert_int_equal(xp_vec_reserve(&v, 1000), 0);
	assert_true(v.cap >= 1000);
	assert_int_equal(v.n, 0);
	before = v.v;
	for (int i = 0; i < 1000; i++)
		assert_non_null(xp_vec_push(&v));
	assert_ptr_equal(before, v.v);
	assert_int_equal(xp_vec_reserve(&v, 10), 0);
	assert_ptr_equal(before, v.v);
	xp_vec_release(&v);
}

static void impossible_sizes_change_nothing(void **state)
{
	XP_VEC(uint64_t) v = XP_VEC_INIT;
	uint64_t *before;
	size_t cap;

	(void)state;
	assert_non_null(xp_vec_push(&v));
	v.v[0] = 5;
	before = v.v;
	cap = v.cap;
	assert_int_equal(xp_vec_reserve(&v, SIZE_MAX), -ENOMEM);
	assert_int_equal(xp_vec_reserve(&v, SIZE_MAX / sizeof(uint64_t) + 1), -ENOMEM);
	assert_ptr_equal(before, v.v);
	assert_int_equal(v.cap, cap);
	assert_int_equal(v.n, 1);
	assert_int_equal(v.v[0], 5);
	xp_vec_release(&v);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(push_keeps_what_was_there),
		cmocka_unit_test(reused_elements_are_zero_again),
		cmocka_unit_test(reserve_makes_room_once),
		cmocka_unit_test(impossible_sizes_change_nothing),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
