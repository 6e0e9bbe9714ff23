// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Bytes: a growable buffer to write into, and a cursor that reads hostile input.
 *
 * The cursor's functions all go through take(), the only place that compares against the end.
 */
#include "base/buf.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LEB_MAX 10		/* bytes of the longest LEB128 form of 64 bits */

/* What an empty or failed cursor points at, so that its address is never NULL. */
static const uint8_t nothing[1];

void xp_buf_release(struct xp_buf *b)
{
	free(b->data);
	*b = (struct xp_buf)XP_BUF_INIT;
}

void xp_buf_clear(struct xp_buf *b)
{
	b->len = 0;
	b->failed = false;
}

/* Room for n more bytes after the end; NULL when failed. */
static uint8_t *room(struct xp_buf *b, size_t n)
{
	size_t cap = b->cap ? b->cap : 64;
	uint8_t *grown;

	if (b->failed)
		return NULL;
	if (b->data && n <= b->cap - b->len)
		return b->data + b->len;
	while (cap - b->len < n) {
		if (cap > SIZE_MAX / 2) {
			b->failed = true;
			return NULL;
		}
		cap *= 2;
	}
	grown = realloc(b->data, cap);
	if (!grown) {
		b->failed = true;
		return NULL;
	}
	b->data = grown;
	b->cap = cap;
	return b->data + b->len;
}

void xp_buf_put(struct xp_buf *b, const void *p, size_t n)
{
	uint8_t *to = n ? room(b, n) : NULL;

	if (!to)
		return;
	memcpy(to, p, n);
	b->len += n;
}

void xp_buf_u8(struct xp_buf *b, uint8_t v)
{
	xp_buf_put(b, &v, 1);
}

static void put_le(struct xp_buf *b, uint64_t v, unsigned bytes)
{
	uint8_t raw[8];

	for (unsigned i = 0; i < bytes; i++)
		raw[i] = (uint8_t)(v >> 8 * i);
	xp_buf_put(b, raw, bytes);
}

void xp_buf_u32(struct xp_buf *b, uint32_t v)
{
	put_le(b, v, 4);
}

void xp_buf_u64(struct xp_buf *b, uint64_t v)
{
	put_le(b, v, 8);
}

void xp_buf_uleb(struct xp_buf *b, uint64_t v)
{
	uint8_t raw[LEB_MAX];
	size_t n = 0;

	do {
		raw[n] = v & 0x7f;
		v >>= 7;
		if (v)
			raw[n] |= 0x80;
		n++;
	} while (v);
	xp_buf_put(b, raw, n);
}

void xp_buf_sleb(struct xp_buf *b, int64_t v)
{
	uint8_t raw[LEB_MAX];
	size_t n = 0;
	bool more;

	do {
		uint8_t byte = v & 0x7f;

		v >>= 7;	/* arithmetic: the sign comes in from the left */
		more = !((v == 0 && !(byte & 0x40)) || (v == -1 && (byte & 0x40)));
		raw[n++] = more ? byte | 0x80 : byte;
	} while (more);
	xp_buf_put(b, raw, n);
}

void xp_buf_str(struct xp_buf *b, const void *s, size_t n)
{
	xp_buf_uleb(b, n);
	xp_buf_put(b, s, n);
}

void xp_buf_printf(struct xp_buf *b, const char *fmt, ...)
{
	va_list ap;
	uint8_t *to;
	int n;

	va_start(ap, fmt);
	n = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	if (n < 0) {
		b->failed = true;
		return;
	}
	to = room(b, (size_t)n + 1);	/* vsnprintf() ends with a NUL, which is not kept */
	if (!to)
		return;
	va_start(ap, fmt);
	vsnprintf((char *)to, (size_t)n + 1, fmt, ap);
	va_end(ap);
	b->len += (size_t)n;
}

struct xp_cur xp_cur_of(const void *p, size_t n)
{
	const uint8_t *from = p ? p : nothing;

	return (struct xp_cur){ from, from + (p ? n : 0), false };
}

size_t xp_cur_left(const struct xp_cur *c)
{
	return c->bad ? 0 : (size_t)(c->end - c->p);
}

/* The next n bytes, skipped; NULL, and the cursor bad, when there are fewer. */
static const uint8_t *take(struct xp_cur *c, size_t n)
{
	const uint8_t *at = c->p;

	if (c->bad || n > (size_t)(c->end - c->p)) {
		c->bad = true;
		return NULL;
	}
	c->p += n;
	return at;
}

static uint64_t take_le(struct xp_cur *c, unsigned bytes)
{
	const uint8_t *raw = take(c, bytes);
	uint64_t v = 0;

	for (unsigned i = 0; raw && i < bytes; i++)
		v |= (uint64_t)raw[i] << 8 * i;
	return v;
}

uint8_t xp_cur_u8(struct xp_cur *c)
{
	return (uint8_t)take_le(c, 1);
}

uint16_t xp_cur_u16(struct xp_cur *c)
{
	return (uint16_t)take_le(c, 2);
}

uint32_t xp_cur_u32(struct xp_cur *c)
{
	return (uint32_t)take_le(c, 4);
}

uint64_t xp_cur_u64(struct xp_cur *c)
{
	return take_le(c, 8);
}

/*
 * The bits of a LEB128 number; *last is its last byte and *bits how many bits were given. Padding
 * is legal up to 10 bytes. Bits of the tenth byte that fall outside 64 are the callers' to judge.
 */
static uint64_t take_leb(struct xp_cur *c, uint8_t *last, unsigned *bits)
{
	uint64_t v = 0;

	*last = 0;
	for (*bits = 0; *bits < 7 * LEB_MAX; *bits += 7) {
		*last = xp_cur_u8(c);
		if (c->bad)
			return 0;
		v |= (uint64_t)(*last & 0x7f) << *bits;
		if (!(*last & 0x80)) {
			*bits += 7;
			return v;
		}
	}
	c->bad = true;
	return 0;
}

uint64_t xp_cur_uleb(struct xp_cur *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = take_leb(c, &last, &bits);

	if (bits > 64 && last > 1)
		c->bad = true;
	return c->bad ? 0 : v;
}

int64_t xp_cur_sleb(struct xp_cur *c)
{
	unsigned bits;
	uint8_t last;
	uint64_t v = take_leb(c, &last, &bits);

	if (bits > 64 && last != 0 && last != 0x7f)
		c->bad = true;
	if (bits < 64 && (last & 0x40))
		v |= UINT64_MAX << bits;
	return c->bad ? 0 : (int64_t)v;
}

const uint8_t *xp_cur_bytes(struct xp_cur *c, size_t n)
{
	return take(c, n);
}

const uint8_t *xp_cur_str(struct xp_cur *c, size_t *n)
{
	uint64_t len = xp_cur_uleb(c);
	const uint8_t *at;

	*n = 0;
	if (len > xp_cur_left(c)) {
		c->bad = true;
		return NULL;
	}
	at = take(c, (size_t)len);
	if (at)
		*n = (size_t)len;
	return at;
}

const char *xp_cur_cstr(struct xp_cur *c)
{
	size_t left = xp_cur_left(c);
	const uint8_t *nul = left ? memchr(c->p, 0, left) : NULL;

	if (!nul) {
		c->bad = true;
		return NULL;
	}
	return (const char *)take(c, (size_t)(nul - c->p) + 1);
}

struct xp_cur xp_cur_sub(struct xp_cur *c, size_t n)
{
	const uint8_t *at = take(c, n);

	if (!at)
		return (struct xp_cur){ nothing, nothing, true };
	return (struct xp_cur){ at, at + n, false };
}
