// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/text: UTF-8 by the standard's own examples, safe copies, widths, numbers, near names.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <string.h>

#include "base/text.h"

static void assert_safe(const void *in, size_t n, const char *want)
{
	struct xp_buf b = XP_BUF_INIT;
	char copy[256];

	xp_text_safe(&b, in, n);
	assert_int_equal(b.len, strlen(want));
	if (b.len)
		assert_memory_equal(b.data, want, b.len);
	assert_int_equal(xp_text_safe_copy(copy, sizeof(copy), in, n), strlen(want));
	assert_string_equal(copy, want);
	xp_buf_release(&b);
}

#define R "\xef\xbf\xbd"
#define SAFE(in, want) assert_safe(in, sizeof(in) - 1, want)

static void every_code_point_round_trips(void **state)
{
	char bytes[4];
	uint32_t back;

	(void)state;
	for (uint32_t c = 0; c < 0x110000; c++) {
		size_t n = xp_utf8_put(c, bytes);

		if (c >= 0xd800 && c <= 0xdfff)
			continue;
		if (xp_utf8_get(bytes, n, &back) != n || back != c)
			fail_msg("U+%04X", c);
		/* A cut character is one replacement. */
		if (n > 1 && (xp_utf8_get(bytes, n - 1, &back) != n - 1 || back != XP_REPLACEMENT))
			fail_msg("U+%04X cut", c);
	}
	assert_int_equal(xp_utf8_put(0xd800, bytes), 3);
	assert_memory_equal(bytes, R, 3);
	assert_int_equal(xp_utf8_put(0x110000, bytes), 3);
	assert_memory_equal(bytes, R, 3);
}

/* The Unicode Standard 15.0, section 3.9, tables 3-8 to 3-11. */
static void invalid_bytes_are_replaced(void **state)
{
	(void)state;
	SAFE("\xc0\xaf\xe0\x80\xbf\xf0\x81\x82\x41", R R R R R R R R "A");
	SAFE("\xed\xa0\x80\xed\xbf\xbf\xed\xaf\x41", R R R R R R R R "A");
	SAFE("\xf4\x91\x92\x93\xff\x41\x80\xbf\x42", R R R R R "A" R R "B");
	SAFE("\xe1\x80\xe2\xf0\x91\x92\xf1\xbf\x41", R R R R "A");
	SAFE("", "");
	SAFE("\xff", R);
	SAFE("a\xf0\x9f\x98\x80z", "a\xf0\x9f\x98\x80z");
	assert_safe(NULL, 0, "");
}

static void control_characters_are_replaced(void **state)
{
	(void)state;
	SAFE("a\tb\nc\rd\ve", "a b c d e");
	SAFE("\033[2J\0x\177", "?[2J?x?");
	SAFE("\xc2\x9b" "1m\xc2\x80\xc2\xa0", "?1m?\xc2\xa0");
	SAFE("\xe2\x80\xa8|\xe2\x80\xa9", "?|?");
}

static void copies_are_cut_between_characters(void **state)
{
	char small[5];

	(void)state;
	assert_int_equal(xp_text_safe_copy(small, sizeof(small), "abc\xc3\xa9", 5), 3);
	assert_string_equal(small, "abc");
	assert_int_equal(xp_text_safe_copy(small, sizeof(small), "ab\xc3\xa9z", 5), 4);
	assert_string_equal(small, "ab\xc3\xa9");
	assert_int_equal(xp_text_safe_copy(small, 1, "abc", 3), 0);
	assert_string_equal(small, "");
}

static void widths_count_cells(void **state)
{
	(void)state;
	assert_int_equal(xp_text_cells("abc", 3), 3);
	assert_int_equal(xp_text_cells("e\xcc\x81", 3), 1);			/* e, combining acute */
	assert_int_equal(xp_text_cells("\xe6\xbc\xa2\xe5\xad\x97", 6), 4);	/* two ideographs */
	assert_int_equal(xp_text_cells("\xf0\x9f\x98\x80", 4), 2);
	assert_int_equal(xp_text_cells("\xc3\xa9\xe2\x82\xac", 5), 2);
	assert_int_equal(xp_text_cells("", 0), 0);
	assert_int_equal(xp_text_cells_of(0x2ff), 1);
	assert_int_equal(xp_text_cells_of(0x300), 0);
	assert_int_equal(xp_text_cells_of(0x36f), 0);
	assert_int_equal(xp_text_cells_of(0x370), 1);
	assert_int_equal(xp_text_cells_of(0xe01ef), 0);
	assert_int_equal(xp_text_cells_of(0x10ffff), 1);
}

static void texts_are_fitted_by_cells(void **state)
{
	const char *kanji = "a\xe6\xbc\xa2\xe5\xad\x97";

	(void)state;
	assert_int_equal(xp_text_fit(kanji, 7, 0), 0);
	assert_int_equal(xp_text_fit(kanji, 7, 1), 1);
	assert_int_equal(xp_text_fit(kanji, 7, 2), 1);
	assert_int_equal(xp_text_fit(kanji, 7, 3), 4);
	assert_int_equal(xp_text_fit(kanji, 7, 100), 7);
	assert_int_equal(xp_text_fit("e\xcc\x81x", 4, 1), 3);	/* marks stay with their letter */
}

static void sizes_are_readable(void **state)
{
	char s[XP_TEXT_NUMBER];

	(void)state;
	assert_string_equal(xp_text_size(s, 0), "0 B");
	assert_string_equal(xp_text_size(s, 1023), "1023 B");
	assert_string_equal(xp_text_size(s, 1024), "1.0 KiB");
	assert_string_equal(xp_text_size(s, 1536), "1.5 KiB");
	assert_string_equal(xp_text_size(s, (1 << 20) - 1), "1.0 MiB");
	assert_string_equal(xp_text_size(s, 3ull << 30), "3.0 GiB");
	assert_string_equal(xp_text_size(s, UINT64_MAX), "16.0 EiB");
}

static void durations_are_readable(void **state)
{
	char s[XP_TEXT_NUMBER];

	(void)state;
	assert_string_equal(xp_text_duration(s, 0), "0 s");
	assert_string_equal(xp_text_duration(s, 850), "850 ns");
	assert_string_equal(xp_text_duration(s, 12300), "12.3 us");
	assert_string_equal(xp_text_duration(s, 4500000), "4.50 ms");
	assert_string_equal(xp_text_duration(s, 999999999), "1.00 s");
	assert_string_equal(xp_text_duration(s, 9870000000), "9.87 s");
	assert_string_equal(xp_text_duration(s, 59999000000), "1 min 0 s");
	assert_string_equal(xp_text_duration(s, 125000000000), "2 min 5 s");
	assert_string_equal(xp_text_duration(s, 12000000000000), "3 h 20 min");
	assert_string_equal(xp_text_duration(s, UINT64_MAX), "5124095 h 34 min");
}

static void distances_count_edits(void **state)
{
	char big[80];

	(void)state;
	assert_int_equal(xp_text_distance("", ""), 0);
	assert_int_equal(xp_text_distance("", "abc"), 3);
	assert_int_equal(xp_text_distance("abc", ""), 3);
	assert_int_equal(xp_text_distance("report", "repotr"), 1);
	assert_int_equal(xp_text_distance("kitten", "sitting"), 3);
	assert_int_equal(xp_text_distance("freq", "frequency"), 5);
	memset(big, 'x', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(xp_text_distance(big, "x"), UINT_MAX);
	big[63] = '\0';
	assert_int_equal(xp_text_distance(big, ""), 63);
}

static void only_near_names_are_offered(void **state)
{
	unsigned best = UINT_MAX;

	(void)state;
	assert_false(xp_text_nearer("xyz", "record", &best));
	assert_true(xp_text_nearer("recrod", "record", &best));
	assert_int_equal(best, 1);
	assert_false(xp_text_nearer("recrod", "recrods", &best));	/* not nearer */
	best = UINT_MAX;
	assert_true(xp_text_nearer("rec", "record", &best));
	best = UINT_MAX;
	assert_true(xp_text_nearer("frequency", "freq", &best));
	best = UINT_MAX;
	assert_false(xp_text_nearer("", "a", &best));
	assert_false(xp_text_nearer("f", "freq", &best));
	assert_false(xp_text_nearer("a", "b", &best));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_code_point_round_trips),
		cmocka_unit_test(invalid_bytes_are_replaced),
		cmocka_unit_test(control_characters_are_replaced),
		cmocka_unit_test(copies_are_cut_between_characters),
		cmocka_unit_test(widths_count_cells),
		cmocka_unit_test(texts_are_fitted_by_cells),
		cmocka_unit_test(sizes_are_readable),
		cmocka_unit_test(durations_are_readable),
		cmocka_unit_test(distances_count_edits),
		cmocka_unit_test(only_near_names_are_offered),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
