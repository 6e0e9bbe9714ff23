/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folded stacks have no escapes, and their readers differ: flamegraph.pl takes two numbers at the
 * end of a line for a differential, decodes UTF-8 strictly and lets control characters through into
 * XML (FlameGraph 1.0, flamegraph.pl); inferno trims lines (src/flamegraph/merge.rs). Perl's \s and
 * \d match all of Unicode, so blanks and digits are told by Unicode here as well.
 */
#include "output/name.h"

#include <stdbool.h>
#include <string.h>

#include "base/text.h"

static const char cut_mark[] = "...";

/* White_Space of Unicode 15.0 (PropList.txt). */
static bool is_blank(uint32_t c)
{
	return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xa0 || c == 0x1680 ||
	       (c >= 0x2000 && c <= 0x200a) || c == 0x2028 || c == 0x2029 || c == 0x202f ||
	       c == 0x205f || c == 0x3000;
}

/* The zero of each run of ten decimal digits (general category Nd of Unicode 15.0), sorted. */
static const uint32_t zeros[] = {
	0x30, 0x660, 0x6f0, 0x7c0, 0x966, 0x9e6, 0xa66, 0xae6, 0xb66, 0xbe6, 0xc66, 0xce6, 0xd66,
	0xde6, 0xe50, 0xed0, 0xf20, 0x1040, 0x1090, 0x17e0, 0x1810, 0x1946, 0x19d0, 0x1a80, 0x1a90,
	0x1b50, 0x1bb0, 0x1c40, 0x1c50, 0xa620, 0xa8d0, 0xa900, 0xa9d0, 0xa9f0, 0xaa50, 0xabf0,
	0xff10, 0x104a0, 0x10d30, 0x11066, 0x110f0, 0x11136, 0x111d0, 0x112f0, 0x11450, 0x114d0,
	0x11650, 0x116c0, 0x11730, 0x118e0, 0x11950, 0x11c50, 0x11d50, 0x11da0, 0x11f50, 0x16a60,
	0x16ac0, 0x16b50, 0x1d7ce, 0x1d7d8, 0x1d7e2, 0x1d7ec, 0x1d7f6, 0x1e140, 0x1e2f0, 0x1e4f0,
	0x1e950, 0x1fbf0,
};

static bool is_digit(uint32_t c)
{
	for (size_t i = 0; i < sizeof(zeros) / sizeof(*zeros) && zeros[i] <= c; i++)
		if (c - zeros[i] < 10)
			return true;
	return false;
}

/* What stands for a character that is no blank. Non-characters are refused by strict decoders. */
static uint32_t printable(uint32_t c, unsigned flags)
{
	if (c < 0x20 || (c >= 0x7f && c < 0xa0))
		return '?';
	if ((c & 0xfffe) == 0xfffe || (c >= 0xfdd0 && c <= 0xfdef))
		return XP_REPLACEMENT;
	return c == ';' && flags ? ':' : c;
}

/* Would flamegraph.pl take the word for a count: digits, maybe a dot and more digits? */
static bool is_number(const uint8_t *p, size_t n)
{
	bool dot = false;

	for (size_t at = 0; at < n;) {
		uint32_t c;
		size_t first = at;

		at += xp_utf8_get(p + at, n - at, &c);
		if (c == '.' && !dot && first)
			dot = true;
		else if (!is_digit(c))
			return false;
	}
	return n != 0;
}

static void join_number(uint8_t *p, size_t n)
{
	size_t word = n;

	while (word && p[word - 1] != ' ')
		word--;
	if (word && is_number(p + word, n - word))
		p[word - 1] = '_';
}

/* Characters with blanks merged and trimmed; stops before the name gets too long. */
static void put_characters(struct xp_buf *out, const uint8_t *s, size_t n, unsigned flags)
{
	const size_t start = out->len;
	bool gap = false;

	for (size_t at = 0; at < n;) {
		uint32_t c;
		char text[4];
		size_t len;

		at += xp_utf8_get(s + at, n - at, &c);
		if (is_blank(c)) {
			gap = out->len > start;
			continue;
		}
		len = xp_utf8_put(printable(c, flags), text);
		if (out->len - start + gap + len > XP_NAME_MAX - strlen(cut_mark)) {
			xp_buf_put(out, cut_mark, strlen(cut_mark));
			return;
		}
		if (gap)
			xp_buf_u8(out, flags & XP_NAME_ROOT ? '_' : ' ');
		gap = false;
		xp_buf_put(out, text, len);
		if (out->failed)
			return;
	}
}

void xp_name_put(struct xp_buf *out, const void *name, size_t n, unsigned flags)
{
	const size_t start = out->len;

	put_characters(out, name, n, flags);
	if (out->len == start)
		xp_buf_put(out, "[unknown]", 9);
	if (flags && !out->failed)
		join_number(out->data + start, out->len - start);
}
