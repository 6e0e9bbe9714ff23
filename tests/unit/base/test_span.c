// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/span: first fit, boundaries, joining, and a random run against a plain bitmap.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <string.h>

#include "base/span.h"

static uint32_t take(struct xp_spans *s, uint32_t count)
{
	uint32_t first = UINT32_MAX;

	assert_int_equal(xp_spans_take(s, count, &first), 0);
	return first;
}

static void ranges_are_taken_from_the_front(void **state)
{
	struct xp_spans s;
	uint32_t first = 7;

	(void)state;
	assert_int_equal(xp_spans_init(&s, 10, 0), 0);
	assert_int_equal(take(&s, 4), 0);
	assert_int_equal(take(&s, 6), 4);
	assert_int_equal(s.used, 10);
	assert_int_equal(xp_spans_take(&s, 1, &first), -ENOSPC);
	assert_int_equal(first, 7);
	assert_int_equal(xp_spans_give(&s, 0, 4), 0);
	assert_int_equal(xp_spans_take(&s, 5, &first), -ENOSPC);
	assert_int_equal(take(&s, 1), 0);
	assert_int_equal(take(&s, 3), 1);
	xp_spans_release(&s);
	xp_spans_release(&s);
}

static void neighbours_join(void **state)
{
	struct xp_spans s;

	(void)state;
	assert_int_equal(xp_spans_init(&s, 30, 0), 0);
	for (int i = 0; i < 3; i++)
		take(&s, 10);
	assert_int_equal(xp_spans_give(&s, 0, 10), 0);
	assert_int_equal(xp_spans_give(&s, 20, 10), 0);
	assert_int_equal(s.free.n, 2);
	assert_int_equal(xp_spans_give(&s, 10, 10), 0);
	assert_int_equal(s.free.n, 1);
	assert_int_equal(take(&s, 30), 0);
	assert_int_equal(xp_spans_give(&s, 10, 10), 0);
	assert_int_equal(xp_spans_give(&s, 20, 10), 0);	/* joins what is before */
	assert_int_equal(xp_spans_give(&s, 0, 10), 0);	/* joins what is after */
	assert_int_equal(s.free.n, 1);
	assert_int_equal(s.used, 0);
	xp_spans_release(&s);
}

static void no_range_crosses_a_boundary(void **state)
{
	struct xp_spans s;
	uint32_t first;

	(void)state;
	assert_int_equal(xp_spans_init(&s, 25, 10), 0);
	assert_int_equal(take(&s, 6), 0);
	assert_int_equal(take(&s, 6), 10);	/* 6..9 is too small */
	assert_int_equal(take(&s, 4), 6);
	assert_int_equal(take(&s, 10 - 5), 20);
	assert_int_equal(xp_spans_take(&s, 11, &first), -ENOSPC);
	assert_int_equal(xp_spans_take(&s, 5, &first), -ENOSPC);
	assert_int_equal(take(&s, 4), 16);
	assert_int_equal(s.used, 25);
	xp_spans_release(&s);
}

static void nonsense_is_refused(void **state)
{
	struct xp_spans s;
	uint32_t first;

	(void)state;
	assert_int_equal(xp_spans_init(&s, 0, 0), 0);
	assert_int_equal(xp_spans_take(&s, 1, &first), -ENOSPC);
	xp_spans_release(&s);
	assert_int_equal(xp_spans_init(&s, UINT32_MAX, 0), 0);
	assert_int_equal(xp_spans_take(&s, 0, &first), -ENOSPC);
	assert_int_equal(take(&s, UINT32_MAX - 1), 0);
	assert_int_equal(xp_spans_give(&s, UINT32_MAX - 1, 1), -EINVAL);	/* free already */
	assert_int_equal(xp_spans_give(&s, UINT32_MAX - 2, 2), -EINVAL);
	assert_int_equal(xp_spans_give(&s, 5, UINT32_MAX), -EINVAL);
	assert_int_equal(xp_spans_give(&s, 5, 0), -EINVAL);
	assert_int_equal(s.used, UINT32_MAX - 1);
	xp_spans_release(&s);
}

#define SIZE 500
#define HELD 60

static void agrees_with_a_bitmap(void **state)
{
	struct xp_span held[HELD] = { 0 };
	uint8_t used[SIZE] = { 0 };
	struct xp_spans s;
	uint32_t seed = 12345;

	(void)state;
	assert_int_equal(xp_spans_init(&s, SIZE, 64), 0);
	for (int round = 0; round < 20000; round++) {
		struct xp_span *h;
		uint32_t total = 0;

		seed = seed * 1103515245 + 12345;
		h = &held[(seed >> 16) % HELD];
		if (h->count) {
			assert_int_equal(xp_spans_give(&s, h->first, h->count), 0);
			memset(used + h->first, 0, h->count);
			h->count = 0;
		} else if (!xp_spans_take(&s, 1 + (seed >> 8) % 40, &h->first)) {
			h->count = 1 + (seed >> 8) % 40;
			assert_true(h->first + h->count <= SIZE);
			assert_int_equal(h->first / 64, (h->first + h->count - 1) / 64);
			for (uint32_t i = 0; i < h->count; i++)
				assert_int_equal(used[h->first + i]++, 0);
		}
		for (uint32_t i = 0; i < SIZE; i++)
			total += used[i];
		assert_int_equal(total, s.used);
	}
	xp_spans_release(&s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_taken_from_the_front),
		cmocka_unit_test(neighbours_join),
		cmocka_unit_test(no_range_crosses_a_boundary),
		cmocka_unit_test(nonsense_is_refused),
		cmocka_unit_test(agrees_with_a_bitmap),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
