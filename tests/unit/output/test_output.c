/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names made safe, exhaustively; folded stacks; the table's widths. Whole reports: tests/golden.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/text.h"
#include "output/name.h"
#include "output/output.h"
#include "tests/unit/profile/sample_profile.h"

#define FFFD "\xef\xbf\xbd"

static void check_name(const void *in, size_t n, unsigned flags, const char *want)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_buf_put(&b, "before ", 7);
	xp_name_put(&b, in, n, flags);
	xp_buf_u8(&b, 0);
	assert_false(b.failed);
	if (strcmp((char *)b.data + 7, want))
		fail_msg("\"%.*s\" (flags %u) became \"%s\", not \"%s\"", (int)n, (const char *)in,
			 flags, (char *)b.data + 7, want);
	xp_buf_release(&b);
}

static void check(const char *in, unsigned flags, const char *want)
{
	check_name(in, strlen(in), flags, want);
}

/* Every byte between two letters, in every kind of name. */
static void every_byte(void **state)
{
	(void)state;
	for (int c = 0; c < 256; c++) {
		char in[3] = { 'a', (char)c, 'b' };
		char text[4] = { 'a', (char)c, 'b', 0 };
		char frame[4] = { 'a', (char)c, 'b', 0 }, root[4];

		if (c >= 0x80) {
			for (unsigned flags = 0; flags <= 2; flags++)
				check_name(in, 3, flags, "a" FFFD "b");
			continue;
		}
		if (c == ' ' || (c >= '\t' && c <= '\r'))
			text[1] = frame[1] = ' ';
		else if (c < ' ' || c == 0x7f)
			text[1] = frame[1] = '?';
		else if (c == ';')
			frame[1] = ':';
		memcpy(root, frame, 4);
		if (root[1] == ' ')
			root[1] = '_';
		check_name(in, 3, 0, text);
		check_name(in, 3, XP_NAME_FRAME, frame);
		check_name(in, 3, XP_NAME_ROOT, root);
	}
}

/* Every character there is comes out valid, and the line's structure is unhurt. */
static void every_character(void **state)
{
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	for (uint32_t c = 0x80; c < 0x110000; c++) {
		char in[6] = "x";
		size_t n = 1 + xp_utf8_put(c, in + 1), at = 0;
		bool nonchar = (c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef);

		in[n++] = 'y';
		xp_buf_clear(&b);
		xp_name_put(&b, in, n, XP_NAME_FRAME);
		while (at < b.len) {
			uint32_t out;

			at += xp_utf8_get(b.data + at, b.len - at, &out);
			assert_true(out >= ' ' && out != ';' && (out < 0x7f || out >= 0xa0));
		}
		if (nonchar)
			assert_memory_equal(b.data, "x" FFFD "y", 5);
		else if (b.len > 3)
			assert_memory_equal(b.data, in, n);
	}
	xp_buf_release(&b);
}

static void invalid_utf8(void **state)
{
	static const char *const forms[][2] = {
		{ "\x80", FFFD }, { "\xbf\xbf", FFFD FFFD }, { "\xc0\xaf", FFFD FFFD },
		{ "\xc1\xbf", FFFD FFFD }, { "\xc2", FFFD }, { "\xc2z", FFFD "z" },
		{ "\xe0\x80\xaf", FFFD FFFD FFFD }, { "\xe2\x82", FFFD }, { "\xe2\x82z", FFFD "z" },
		{ "\xed\xa0\x80", FFFD FFFD FFFD }, { "\xed\xbf\xbf", FFFD FFFD FFFD },
		{ "\xf0\x80\x80\x80", FFFD FFFD FFFD FFFD }, { "\xf0\x9f\x98", FFFD },
		{ "\xf4\x90\x80\x80", FFFD FFFD FFFD FFFD }, { "\xf5", FFFD }, { "\xff\xfe", FFFD FFFD },
		{ "\xef\xbf\xbe", FFFD }, { "\xef\xbf\xbf", FFFD }, { "\xef\xb7\x90", FFFD },
		{ "\xc2\x9b" "31m", "?31m" }, { "\xf0\x9f\x98\x80", "\xf0\x9f\x98\x80" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		for (unsigned flags = 0; flags <= 2; flags++)
			check(forms[i][0], flags, forms[i][1]);
}

static void blanks(void **state)
{
	(void)state;
	for (unsigned flags = 0; flags <= 2; flags++) {
		check("", flags, "[unknown]");
		check("  \t\n ", flags, "[unknown]");
		check("\xc2\xa0\xe2\x80\xa8\xe3\x80\x80", flags, "[unknown]");
		check(" a ", flags, "a");
		check("\n\na\r\n", flags, "a");
	}
	check("a  \t b", 0, "a b");
	check("a \xe2\x80\x89 b", XP_NAME_FRAME, "a b");
	check("a  b c", XP_NAME_ROOT, "a_b_c");
	check_name("a\0b", 3, XP_NAME_FRAME, "a?b");
	check("a;b;", XP_NAME_FRAME, "a:b:");
	check(";", XP_NAME_FRAME, ":");
	check("a;b;", 0, "a;b;");
}

static void no_frame_ends_in_a_number(void **state)
{
	(void)state;
	check("foo 12", 0, "foo 12");
	check("foo 12", XP_NAME_FRAME, "foo_12");
	check("foo 12 ", XP_NAME_FRAME, "foo_12");
	check("foo\t12", XP_NAME_FRAME, "foo_12");
	check("a 1 2", XP_NAME_FRAME, "a 1_2");
	check("foo 12.", XP_NAME_FRAME, "foo_12.");
	check("foo 12.5", XP_NAME_FRAME, "foo_12.5");
	check("foo 1.2.3", XP_NAME_FRAME, "foo 1.2.3");
	check("foo .5", XP_NAME_FRAME, "foo .5");
	check("foo -5", XP_NAME_FRAME, "foo -5");
	check("foo 12x", XP_NAME_FRAME, "foo 12x");
	check("foo12", XP_NAME_FRAME, "foo12");
	check("12", XP_NAME_FRAME, "12");
	check("foo\xc2\xa0" "12", XP_NAME_FRAME, "foo_12");
	check("foo \xd9\xa3", XP_NAME_FRAME, "foo_\xd9\xa3");
	check("foo 1\xef\xbc\x90", XP_NAME_FRAME, "foo_1\xef\xbc\x90");
	check("foo \xe6\x97\xa5", XP_NAME_FRAME, "foo \xe6\x97\xa5");
	check("block (2 levels) in <main>", XP_NAME_FRAME, "block (2 levels) in <main>");
	check("x 7", XP_NAME_ROOT, "x_7");
}

static void long_names_are_cut(void **state)
{
	static char in[5001], want[XP_NAME_MAX + 1];
	size_t n = XP_NAME_MAX - 3;

	(void)state;
	memset(in, 'x', 5000);
	memset(want, 'x', n);
	strcpy(want + n, "...");
	check(in, XP_NAME_FRAME, want);
	check(in, 0, want);
	in[n] = 0;
	want[n] = 0;
	check(in, 0, want);

	/* A character is never split: two bytes each, and an odd number of bytes is there. */
	for (size_t i = 0; i < 5000; i += 2)
		memcpy(in + i, "\xc3\xa9", 2);
	memcpy(want, in, n - 1);
	strcpy(want + n - 1, "...");
	check(in, XP_NAME_FRAME, want);
	for (size_t i = 0; i < 5000; i++)
		in[i] = i % 2 ? '1' : ' ';
	memcpy(want, in + 1, n);
	strcpy(want + n, "...");
	check(in, XP_NAME_FRAME, want);
}

struct printed {
	char *text;
	size_t n;
};

static struct printed print(struct xp_profile *p, struct xp_output *o,
			    int (*write)(FILE *out, const struct xp_output *o))
{
	struct xp_filter all = { 0 };
	struct xp_view v;
	struct printed got = { NULL, 0 };
	FILE *out = open_memstream(&got.text, &got.n);

	assert_non_null(out);
	assert_int_equal(xp_view_init(&v, p, &all, false), 0);
	o->view = &v;
	assert_int_equal(write(out, o), 0);
	fclose(out);
	xp_view_release(&v);
	return got;
}

static void folded_is_sorted_and_merged(void **state)
{
	struct xp_output o = { .rows = true };
	struct xp_profile p;
	struct printed got;
	uint32_t a, b, c, d, t, t2;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	a = make_frame(&p, "native", "foo", XP_FRAME_NORMAL, NULL, NULL, 0);
	b = make_frame(&p, "native", "foo-bar", XP_FRAME_NORMAL, NULL, NULL, 0);
	c = make_frame(&p, "native", "foo ", XP_FRAME_KERNEL, NULL, NULL, 0);
	d = make_frame(&p, "ruby", "foo!", XP_FRAME_NORMAL, NULL, NULL, 0);
	t = make_thread(&p, 1, 1, "a b");
	t2 = make_thread(&p, 2, 2, "a_b");
	make_samples(&p, t, make_stack(&p, 1, a), 9);
	make_samples(&p, t2, make_stack(&p, 1, a), 1);
	make_samples(&p, t, make_stack(&p, 1, c), 100);
	make_samples(&p, t, make_stack(&p, 2, a, b), 2);
	make_samples(&p, t, make_stack(&p, 2, b, a), 3);
	make_samples(&p, t, make_stack(&p, 1, d), 4);
	p.samples.v[0].weight = 11;
	got = print(&p, &o, xp_output_folded);
	assert_string_equal(got.text, "a_b;foo 120\na_b;foo! 4\na_b;foo-bar;foo 3\na_b;foo;foo-bar 2\n");
	free(got.text);
	o.annotate_kinds = true;
	got = print(&p, &o, xp_output_folded);
	assert_string_equal(got.text, "a_b;foo 20\na_b;foo! 4\na_b;foo-bar;foo 3\na_b;foo;foo-bar 2\n"
				      "a_b;foo_[k] 100\n");
	free(got.text);
	o.rows = false;
	got = print(&p, &o, xp_output_folded);
	assert_int_equal(got.n, 0);
	free(got.text);
	xp_profile_release(&p);
}

/* Deep stacks cost neither recursion nor quadratic time. */
static void deep_stacks(void **state)
{
	struct xp_output o = { .rows = true };
	struct xp_profile p;
	struct printed got;
	uint32_t f, id = XP_NO_ID;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	f = make_frame(&p, "native", "f", XP_FRAME_NORMAL, NULL, NULL, 0);
	for (int i = 0; i < 200000; i++)
		assert_int_equal(xp_profile_add_stack(&p, id, f, &id), 0);
	make_samples(&p, make_thread(&p, 1, 1, "t"), id, 1);
	got = print(&p, &o, xp_output_folded);
	assert_int_equal(got.n, strlen("t") + 200000 * strlen(";f") + strlen(" 1\n"));
	free(got.text);
	got = print(&p, &o, xp_output_table);
	assert_non_null(strstr(got.text, " 100.00%  100.00%        1  native  f"));
	free(got.text);
	xp_profile_release(&p);
}

static size_t widest(const char *text)
{
	size_t most = 0;

	while (*text) {
		size_t n = strcspn(text, "\n");
		size_t cells = xp_text_cells(text, n);

		most = cells > most ? cells : most;
		text += n + (text[n] == '\n');
	}
	return most;
}

static void lines_are_cut_for_a_terminal_only(void **state)
{
	struct xp_output o = { .rows = true, .header = true };
	struct xp_profile p;
	struct printed got;
	char name[401];

	(void)state;
	for (int i = 0; i < 400; i += 2)
		memcpy(name + i, "\xc3\xa9", 2);
	name[400] = 0;
	assert_int_equal(xp_profile_init(&p), 0);
	make_samples(&p, make_thread(&p, 1, 1, "t"),
		     make_stack(&p, 1, make_frame(&p, "native", name, XP_FRAME_NORMAL, "/a/b", "c.c", 9)), 1);
	got = print(&p, &o, xp_output_table);
	assert_non_null(strstr(got.text, name));
	assert_non_null(strstr(got.text, "  b  "));
	assert_non_null(strstr(got.text, "c.c:9\n"));
	free(got.text);
	for (o.width = 1; o.width < 240; o.width += 7) {
		got = print(&p, &o, xp_output_table);
		assert_true(widest(got.text + strcspn(got.text, "#")) <= (o.width > 40 ? o.width : 40));
		free(got.text);
	}
	o.width = 60;
	o.header = false;
	got = print(&p, &o, xp_output_table);
	assert_int_equal(widest(got.text), 60);
	free(got.text);
	xp_profile_release(&p);
}

static void percent_limit_and_colour(void **state)
{
	struct xp_output o = { .rows = true, .percent_limit = 10, .colour = true };
	struct xp_profile p;
	struct printed got;
	uint32_t t, a, b;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	t = make_thread(&p, 1, 1, "t");
	a = make_frame(&p, "native", "a", XP_FRAME_NORMAL, NULL, NULL, 0);
	b = make_frame(&p, "native", "b", XP_FRAME_NORMAL, NULL, NULL, 0);
	make_samples(&p, t, make_stack(&p, 1, a), 95);
	make_samples(&p, t, make_stack(&p, 2, a, b), 5);
	got = print(&p, &o, xp_output_table);
	assert_string_equal(got.text,
			    "\33[31m  95.00%\33[m \33[31m 100.00%\33[m       95  native  a       -\n");
	free(got.text);
	o.percent_limit = 5;
	o.colour = false;
	o.by_self = true;
	got = print(&p, &o, xp_output_table);
	assert_string_equal(got.text, "  95.00%  100.00%       95  native  a       -\n"
				      "   5.00%    5.00%        5  native  b       -\n");
	free(got.text);
	xp_profile_release(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_byte),
		cmocka_unit_test(every_character),
		cmocka_unit_test(invalid_utf8),
		cmocka_unit_test(blanks),
		cmocka_unit_test(no_frame_ends_in_a_number),
		cmocka_unit_test(long_names_are_cut),
		cmocka_unit_test(folded_is_sorted_and_merged),
		cmocka_unit_test(deep_stacks),
		cmocka_unit_test(lines_are_cut_for_a_terminal_only),
		cmocka_unit_test(percent_limit_and_colour),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
