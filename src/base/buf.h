/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Bytes: a growable buffer to write into, and a cursor that reads hostile input.
 *
 * Both keep errors until asked: after a failure further calls do nothing (the cursor returns 0),
 * so a parser checks once, at the end of what belongs together. Integers are little-endian;
 * varints are LEB128 as in DWARF.
 */
#ifndef XP_BASE_BUF_H
#define XP_BASE_BUF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct xp_buf {
	uint8_t *data;
	size_t len, cap;
	bool failed;		/* out of memory at some point */
};

#define XP_BUF_INIT { NULL, 0, 0, false }

void xp_buf_release(struct xp_buf *b);
void xp_buf_clear(struct xp_buf *b);		/* len 0, memory kept, failed reset */
void xp_buf_put(struct xp_buf *b, const void *p, size_t n);
void xp_buf_u8(struct xp_buf *b, uint8_t v);
void xp_buf_u32(struct xp_buf *b, uint32_t v);
void xp_buf_u64(struct xp_buf *b, uint64_t v);
void xp_buf_uleb(struct xp_buf *b, uint64_t v);
void xp_buf_sleb(struct xp_buf *b, int64_t v);
void xp_buf_str(struct xp_buf *b, const void *s, size_t n);	/* uleb length, then the bytes */
void xp_buf_printf(struct xp_buf *b, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

struct xp_cur {
	const uint8_t *p, *end;
	bool bad;		/* something was read past the end, or was malformed */
};

struct xp_cur xp_cur_of(const void *p, size_t n);
size_t xp_cur_left(const struct xp_cur *c);		/* 0 when bad */
uint8_t xp_cur_u8(struct xp_cur *c);
uint16_t xp_cur_u16(struct xp_cur *c);
uint32_t xp_cur_u32(struct xp_cur *c);
uint64_t xp_cur_u64(struct xp_cur *c);
uint64_t xp_cur_uleb(struct xp_cur *c);			/* bad when longer than 10 bytes */
int64_t xp_cur_sleb(struct xp_cur *c);
const uint8_t *xp_cur_bytes(struct xp_cur *c, size_t n);	/* into the input; NULL when bad */
const uint8_t *xp_cur_str(struct xp_cur *c, size_t *n);	/* inverse of xp_buf_str; not terminated */
const char *xp_cur_cstr(struct xp_cur *c);		/* its NUL is in the input; NULL when bad */
/* A cursor over the next n bytes, which this one skips; bad when there are fewer. */
struct xp_cur xp_cur_sub(struct xp_cur *c, size_t n);

#endif
