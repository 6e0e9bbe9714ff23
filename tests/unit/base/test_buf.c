// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/buf: what is written reads back; cut, overlong and absurd inputs fail once and stay failed.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "base/buf.h"

static void integers_are_little_endian(void **state)
{
	static const uint8_t want[] = { 0xab, 0x78, 0x56, 0x34, 0x12, 8, 7, 6, 5, 4, 3, 2, 1 };
	struct xp_buf b = XP_BUF_INIT;
	struct xp_cur c;

	(void)state;
	xp_buf_u8(&b, 0xab);
	xp_buf_u32(&b, 0x12345678);
	xp_buf_u64(&b, 0x0102030405060708);
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	c = xp_cur_of(b.data, b.len);
	assert_int_equal(xp_cur_u8(&c), 0xab);
	assert_int_equal(xp_cur_u16(&c), 0x5678);
	assert_int_equal(xp_cur_u16(&c), 0x1234);
	assert_int_equal(xp_cur_u32(&c), 0x05060708);
	assert_int_equal(xp_cur_left(&c), 4);
	c = xp_cur_of(want + 5, 8);
	assert_true(xp_cur_u64(&c) == 0x0102030405060708);
	assert_int_equal(xp_cur_left(&c), 0);
	assert_false(c.bad);
	xp_buf_release(&b);
	assert_null(b.data);
	xp_buf_release(&b);
}

static void leb_round_trips(void **state)
{
	static const uint64_t u[] = { 0, 1, 127, 128, 300, 16383, 16384, UINT32_MAX, INT64_MAX,
				      1ull << 63, UINT64_MAX };
	static const int64_t s[] = { 0, 1, -1, 63, 64, -64, -65, 8191, -8192, INT32_MIN,
				     INT64_MAX, INT64_MIN };
	struct xp_buf b = XP_BUF_INIT;
	struct xp_cur c;

	(void)state;
	for (size_t i = 0; i < sizeof(u) / sizeof(*u); i++)
		xp_buf_uleb(&b, u[i]);
	for (size_t i = 0; i < sizeof(s) / sizeof(*s); i++)
		xp_buf_sleb(&b, s[i]);
	c = xp_cur_of(b.data, b.len);
	for (size_t i = 0; i < sizeof(u) / sizeof(*u); i++)
		assert_true(xp_cur_uleb(&c) == u[i]);
	for (size_t i = 0; i < sizeof(s) / sizeof(*s); i++)
		assert_true(xp_cur_sleb(&c) == s[i]);
	assert_false(c.bad);
	assert_int_equal(xp_cur_left(&c), 0);
	xp_buf_release(&b);
}

/* The examples of the DWARF 5 standard, figures 22 and 23. */
static void leb_is_that_of_dwarf(void **state)
{
	static const uint8_t want[] = { 2, 0x7f, 0x80, 1, 0x81, 1, 0xb9, 0x64,
					2, 0x7e, 0xff, 0, 0x81, 0x7f, 0x80, 0x7f };
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	xp_buf_uleb(&b, 2);
	xp_buf_uleb(&b, 127);
	xp_buf_uleb(&b, 128);
	xp_buf_uleb(&b, 129);
	xp_buf_uleb(&b, 12857);
	xp_buf_sleb(&b, 2);
	xp_buf_sleb(&b, -2);
	xp_buf_sleb(&b, 127);
	xp_buf_sleb(&b, -127);
	xp_buf_sleb(&b, -128);
	assert_int_equal(b.len, sizeof(want));
	assert_memory_equal(b.data, want, sizeof(want));
	xp_buf_release(&b);
}

static void padded_leb_is_read_and_overlong_is_bad(void **state)
{
	static const uint8_t padded[] = { 0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0 };
	static const uint8_t minus[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f };
	static const uint8_t over[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x02 };
	static const uint8_t eleven[] = { 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
					  0 };
	struct xp_cur c = xp_cur_of(padded, sizeof(padded));

	(void)state;
	assert_true(xp_cur_uleb(&c) == 1);
	c = xp_cur_of(padded, sizeof(padded));
	assert_true(xp_cur_sleb(&c) == 1);
	c = xp_cur_of(minus, sizeof(minus));
	assert_true(xp_cur_sleb(&c) == -1);
	assert_false(c.bad);
	c = xp_cur_of(minus, sizeof(minus));
	assert_true(xp_cur_uleb(&c) == 0);
	assert_true(c.bad);
	c = xp_cur_of(over, sizeof(over));
	assert_true(xp_cur_uleb(&c) == 0);
	assert_true(c.bad);
	c = xp_cur_of(over, sizeof(over));
	assert_true(xp_cur_sleb(&c) == 0);
	assert_true(c.bad);
	c = xp_cur_of(eleven, sizeof(eleven));
	assert_true(xp_cur_uleb(&c) == 0);
	assert_true(c.bad);
	c = xp_cur_of(eleven, 3);
	assert_true(xp_cur_sleb(&c) == 0);
	assert_true(c.bad);
}

static void reading_past_the_end_stays_failed(void **state)
{
	static const uint8_t three[] = { 1, 2, 3 };
	struct xp_cur c = xp_cur_of(three, sizeof(three));

	(void)state;
	assert_int_equal(xp_cur_u32(&c), 0);
	assert_true(c.bad);
	assert_int_equal(xp_cur_left(&c), 0);
	assert_int_equal(xp_cur_u8(&c), 0);
	assert_null(xp_cur_bytes(&c, 0));
	assert_null(xp_cur_cstr(&c));
	assert_true(xp_cur_sub(&c, 0).bad);
	c = xp_cur_of(three, sizeof(three));
	assert_null(xp_cur_bytes(&c, SIZE_MAX));
	assert_true(c.bad);
	c = xp_cur_of(NULL, 0);
	assert_non_null(xp_cur_bytes(&c, 0));
	assert_int_equal(xp_cur_left(&c), 0);
	assert_int_equal(xp_cur_u8(&c), 0);
	assert_true(c.bad);
}

static void strings_round_trip(void **state)
{
	struct xp_buf b = XP_BUF_INIT;
	const uint8_t *s;
	struct xp_cur c;
	size_t n;

	(void)state;
	xp_buf_str(&b, "a\0b", 3);
	xp_buf_str(&b, NULL, 0);
	xp_buf_put(&b, "zero", 5);
	c = xp_cur_of(b.data, b.len);
	s = xp_cur_str(&c, &n);
	assert_int_equal(n, 3);
	assert_memory_equal(s, "a\0b", 3);
	assert_non_null(xp_cur_str(&c, &n));
	assert_int_equal(n, 0);
	assert_string_equal(xp_cur_cstr(&c), "zero");
	assert_int_equal(xp_cur_left(&c), 0);
	assert_false(c.bad);
	xp_buf_release(&b);
}

static void hostile_strings_are_bad(void **state)
{
	static const uint8_t huge[] = { 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1, 'x' };
	static const uint8_t longer[] = { 3, 'a', 'b' };
	struct xp_cur c = xp_cur_of(huge, sizeof(huge));
	size_t n = 9;

	(void)state;
	assert_null(xp_cur_str(&c, &n));
	assert_int_equal(n, 0);
	assert_true(c.bad);
	c = xp_cur_of(longer, sizeof(longer));
	assert_null(xp_cur_str(&c, &n));
	assert_true(c.bad);
	c = xp_cur_of("abc", 3);	/* no NUL inside */
	assert_null(xp_cur_cstr(&c));
	assert_true(c.bad);
}

static void a_part_is_bounded(void **state)
{
	struct xp_cur c = xp_cur_of("\1\2\3\4", 4), part;

	(void)state;
	part = xp_cur_sub(&c, 2);
	assert_int_equal(xp_cur_left(&c), 2);
	assert_int_equal(xp_cur_u16(&part), 0x0201);
	assert_int_equal(xp_cur_u8(&part), 0);
	assert_true(part.bad);
	assert_false(c.bad);
	part = xp_cur_sub(&c, 3);
	assert_true(part.bad);
	assert_true(c.bad);
}

static void printf_appends_without_the_nul(void **state)
{
	struct xp_buf b = XP_BUF_INIT;
	char big[300];

	(void)state;
	xp_buf_printf(&b, "%d-%s", 12, "x");
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "12-x", 4);
	memset(big, 'q', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	xp_buf_printf(&b, "%s", big);
	assert_int_equal(b.len, 4 + 299);
	assert_memory_equal(b.data + 4, big, 299);
	xp_buf_printf(&b, "%s", "");
	assert_int_equal(b.len, 303);
	xp_buf_release(&b);
}

static void failure_is_kept_until_cleared(void **state)
{
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	xp_buf_u8(&b, 1);
	xp_buf_put(&b, "", SIZE_MAX);	/* no such memory: nothing is copied */
	assert_true(b.failed);
	xp_buf_u8(&b, 2);
	xp_buf_printf(&b, "x");
	assert_int_equal(b.len, 1);
	xp_buf_clear(&b);
	assert_false(b.failed);
	assert_int_equal(b.len, 0);
	xp_buf_u8(&b, 3);
	assert_int_equal(b.data[0], 3);
	xp_buf_release(&b);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(leb_round_trips),
		cmocka_unit_test(leb_is_that_of_dwarf),
		cmocka_unit_test(padded_leb_is_read_and_overlong_is_bad),
		cmocka_unit_test(reading_past_the_end_stays_failed),
		cmocka_unit_test(strings_round_trip),
		cmocka_unit_test(hostile_strings_are_bad),
		cmocka_unit_test(a_part_is_bounded),
		cmocka_unit_test(printf_appends_without_the_nul),
		cmocka_unit_test(failure_is_kept_until_cleared),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
