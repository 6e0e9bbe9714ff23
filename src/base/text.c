// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Text for people: UTF-8 from untrusted bytes, widths on a terminal, sizes and durations.
 *
 * The C library could decode and measure, but only in the locale of the user: a recording made
 * under LC_ALL=C must not look different from one made under UTF-8.
 */
#include "base/text.h"

#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define DISTANCE_MAX 63

/*
 * Well-formed sequences: Unicode 15.0, table 3-7. The range of the second byte depends on the
 * first; all later bytes are 80..bf.
 */
static size_t sequence(uint8_t first, uint8_t *low, uint8_t *high)
{
	*low = 0x80;
	*high = 0xbf;
	if (first >= 0xc2 && first <= 0xdf)
		return 2;
	if (first >= 0xe0 && first <= 0xef) {
		if (first == 0xe0)
			*low = 0xa0;	/* else overlong */
		if (first == 0xed)
			*high = 0x9f;	/* else a surrogate */
		return 3;
	}
	if (first >= 0xf0 && first <= 0xf4) {
		if (first == 0xf0)
			*low = 0x90;
		if (first == 0xf4)
			*high = 0x8f;	/* else above U+10FFFF */
		return 4;
	}
	return 0;
}

size_t xp_utf8_get(const void *p, size_t n, uint32_t *c)
{
	const uint8_t *s = p;
	uint8_t low, high;
	size_t len, i;
	uint32_t v;

	*c = s[0];
	if (s[0] < 0x80)
		return 1;
	*c = XP_REPLACEMENT;
	len = sequence(s[0], &low, &high);
	if (!len)
		return 1;
	v = s[0] & (0x7fu >> len);
	for (i = 1; i < len; i++) {
		if (i >= n || s[i] < low || s[i] > high)
			return i;
		v = v << 6 | (s[i] & 0x3f);
		low = 0x80;
		high = 0xbf;
	}
	*c = v;
	return len;
}

size_t xp_utf8_put(uint32_t c, char *out)
{
	if (c > 0x10ffff || (c >= 0xd800 && c <= 0xdfff))
		c = XP_REPLACEMENT;
	if (c < 0x80) {
		out[0] = (char)c;
		return 1;
	}
	if (c < 0x800) {
		out[0] = (char)(0xc0 | c >> 6);
		out[1] = (char)(0x80 | (c & 0x3f));
		return 2;
	}
	if (c < 0x10000) {
		out[0] = (char)(0xe0 | c >> 12);
		out[1] = (char)(0x80 | (c >> 6 & 0x3f));
		out[2] = (char)(0x80 | (c & 0x3f));
		return 3;
	}
	out[0] = (char)(0xf0 | c >> 18);
	out[1] = (char)(0x80 | (c >> 12 & 0x3f));
	out[2] = (char)(0x80 | (c >> 6 & 0x3f));
	out[3] = (char)(0x80 | (c & 0x3f));
	return 4;
}

static uint32_t safe(uint32_t c)
{
	if (c >= '\t' && c <= '\r')
		return ' ';
	/* U+0080..9f are control sequences to a terminal, U+2028 and U+2029 end lines. */
	if (c < 0x20 || (c >= 0x7f && c <= 0x9f) || c == 0x2028 || c == 0x2029)
		return '?';
	return c;
}

void xp_text_safe(struct xp_buf *out, const void *s, size_t n)
{
	const uint8_t *at = s, *end = n ? at + n : at;
	char bytes[4];
	uint32_t c;

	while (at < end) {
		at += xp_utf8_get(at, (size_t)(end - at), &c);
		xp_buf_put(out, bytes, xp_utf8_put(safe(c), bytes));
	}
}

size_t xp_text_safe_copy(char *dst, size_t size, const void *s, size_t n)
{
	const uint8_t *at = s, *end = n ? at + n : at;
	size_t len = 0;
	char bytes[4];
	uint32_t c;

	while (at < end) {
		size_t one;

		at += xp_utf8_get(at, (size_t)(end - at), &c);
		one = xp_utf8_put(safe(c), bytes);
		if (one >= size - len)
			break;
		memcpy(dst + len, bytes, one);
		len += one;
	}
	dst[len] = '\0';
	return len;
}

/* Main blocks of combining marks and of wide characters; sorted, ends included. */
static const struct range {
	uint32_t first, last;
	unsigned cells;
} ranges[] = {
	{ 0x300, 0x36f, 0 },		/* combining diacritical marks */
	{ 0x483, 0x489, 0 },
	{ 0x591, 0x5bd, 0 },
	{ 0x610, 0x61a, 0 },
	{ 0x64b, 0x65f, 0 },
	{ 0x1100, 0x115f, 2 },		/* Hangul */
	{ 0x1ab0, 0x1aff, 0 },
	{ 0x1dc0, 0x1dff, 0 },
	{ 0x200b, 0x200f, 0 },		/* zero width space, joiners, marks */
	{ 0x202a, 0x202e, 0 },
	{ 0x2060, 0x2064, 0 },
	{ 0x20d0, 0x20ff, 0 },
	{ 0x231a, 0x231b, 2 },
	{ 0x23e9, 0x23ec, 2 },
	{ 0x2e80, 0x303e, 2 },		/* CJK */
	{ 0x3041, 0xa4cf, 2 },
	{ 0xa960, 0xa97f, 2 },
	{ 0xac00, 0xd7a3, 2 },
	{ 0xf900, 0xfaff, 2 },
	{ 0xfe00, 0xfe0f, 0 },		/* variation selectors */
	{ 0xfe20, 0xfe2f, 0 },
	{ 0xfe30, 0xfe6f, 2 },
	{ 0xfeff, 0xfeff, 0 },
	{ 0xff00, 0xff60, 2 },		/* fullwidth forms */
	{ 0xffe0, 0xffe6, 2 },
	{ 0x1f300, 0x1f64f, 2 },	/* pictographs */
	{ 0x1f680, 0x1f6ff, 2 },
	{ 0x1f900, 0x1f9ff, 2 },
	{ 0x20000, 0x3fffd, 2 },
	{ 0xe0100, 0xe01ef, 0 },
};

unsigned xp_text_cells_of(uint32_t c)
{
	size_t low = 0, high = sizeof(ranges) / sizeof(*ranges);

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (c > ranges[mid].last)
			low = mid + 1;
		else if (c < ranges[mid].first)
			high = mid;
		else
			return ranges[mid].cells;
	}
	return 1;
}

size_t xp_text_cells(const char *s, size_t n)
{
	size_t cells = 0;
	uint32_t c;

	for (size_t i = 0; i < n; cells += xp_text_cells_of(c))
		i += xp_utf8_get(s + i, n - i, &c);
	return cells;
}

size_t xp_text_fit(const char *s, size_t n, size_t cells)
{
	size_t i = 0;

	while (i < n) {
		uint32_t c;
		size_t one = xp_utf8_get(s + i, n - i, &c);
		unsigned width = xp_text_cells_of(c);

		if (width > cells)
			break;
		cells -= width;
		i += one;
	}
	return i;
}

char *xp_text_size(char dst[XP_TEXT_NUMBER], uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB" };
	double v = (double)bytes / 1024;
	size_t unit = 0;

	if (bytes < 1024) {
		snprintf(dst, XP_TEXT_NUMBER, "%" PRIu64 " B", bytes);
		return dst;
	}
	/* 1023.95 would be printed as 1024.0 */
	for (; v >= 1023.95 && unit < sizeof(units) / sizeof(*units) - 1; unit++)
		v /= 1024;
	snprintf(dst, XP_TEXT_NUMBER, "%.1f %s", v, units[unit]);
	return dst;
}

char *xp_text_duration(char dst[XP_TEXT_NUMBER], uint64_t ns)
{
	uint64_t s = ns / 1000000000 + (ns % 1000000000 >= 500000000);
	double v = (double)ns;

	if (!ns)
		snprintf(dst, XP_TEXT_NUMBER, "0 s");
	else if (ns < 1000)
		snprintf(dst, XP_TEXT_NUMBER, "%" PRIu64 " ns", ns);
	else if (ns < 999950)
		snprintf(dst, XP_TEXT_NUMBER, "%.1f us", v / 1e3);
	else if (ns < 999995000)
		snprintf(dst, XP_TEXT_NUMBER, "%.2f ms", v / 1e6);
	else if (ns < 59995000000)
		snprintf(dst, XP_TEXT_NUMBER, "%.2f s", v / 1e9);
	else if (s < 3600)
		snprintf(dst, XP_TEXT_NUMBER, "%" PRIu64 " min %" PRIu64 " s", s / 60, s % 60);
	else
		snprintf(dst, XP_TEXT_NUMBER, "%" PRIu64 " h %" PRIu64 " min", s / 3600,
			 s % 3600 / 60);
	return dst;
}

static unsigned least(unsigned a, unsigned b)
{
	return a < b ? a : b;
}

unsigned xp_text_distance(const char *a, const char *b)
{
	unsigned rows[3][DISTANCE_MAX + 1];
	size_t na = strlen(a), nb = strlen(b);
	unsigned *two = rows[0], *one = rows[1], *now = rows[2];

	if (na > DISTANCE_MAX || nb > DISTANCE_MAX)
		return UINT_MAX;
	for (size_t j = 0; j <= nb; j++)
		one[j] = (unsigned)j;
	for (size_t i = 1; i <= na; i++) {
		unsigned *oldest = two;

		now[0] = (unsigned)i;
		for (size_t j = 1; j <= nb; j++) {
			now[j] = least(least(one[j], now[j - 1]) + 1,
				       one[j - 1] + (a[i - 1] != b[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = least(now[j], two[j - 2] + 1);
		}
		two = one;
		one = now;
		now = oldest;
	}
	return one[nb];
}

bool xp_text_nearer(const char *typed, const char *name, unsigned *best)
{
	size_t len = strlen(typed), name_len = strlen(name);
	unsigned d = xp_text_distance(typed, name);
	bool near = d <= len / 3 + 1 && d < name_len;

	/* A word that was begun ("rec"), or said at greater length ("frequency" for freq). */
	if (len >= 2 && name_len >= 3 &&
	    !strncmp(typed, name, len < name_len ? len : name_len)) {
		near = true;
		d = least(d, 2);
	}
	if (!near || d >= *best)
		return false;
	*best = d;
	return true;
}
