/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Text for people: UTF-8 from untrusted bytes, widths on a terminal, sizes and durations.
 *
 * Nothing here depends on the locale. A "safe" text is valid UTF-8 without control characters: it
 * can go to a terminal or into a line-based format without changing its structure.
 */
#ifndef XP_BASE_TEXT_H
#define XP_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

#define XP_REPLACEMENT 0xfffdu		/* stands for bytes that are not UTF-8 */

/*
 * Decodes the character at p (n > 0 bytes are there); its code point in *c. Returns the number of
 * bytes used. Bytes that are no UTF-8 (overlong, surrogates, above U+10FFFF and cut ones included)
 * give XP_REPLACEMENT, one for each maximal part as the Unicode standard recommends.
 */
size_t xp_utf8_get(const void *p, size_t n, uint32_t *c);
/* Encodes a code point (XP_REPLACEMENT when it is none) into out[4]; returns the bytes used. */
size_t xp_utf8_put(uint32_t c, char *out);

/*
 * Appends s as safe text: invalid bytes become U+FFFD; tab, newline and the like a blank; other
 * control characters (C0, DEL, C1) '?'.
 */
void xp_text_safe(struct xp_buf *out, const void *s, size_t n);
/*
 * The same into dst[size] (size > 0), NUL-terminated, cut at a character's boundary. Returns the
 * length without the NUL.
 */
size_t xp_text_safe_copy(char *dst, size_t size, const void *s, size_t n);

/* Terminal cells of a character (combining marks: 0, East Asian wide ones: 2) and of a text. */
unsigned xp_text_cells_of(uint32_t c);
size_t xp_text_cells(const char *s, size_t n);
/* Bytes of the longest start of s that fits into that many cells; never splits a character. */
size_t xp_text_fit(const char *s, size_t n, size_t cells);

/*
 * Numbers for messages, into dst; they return dst. Bytes: "512 B", "1.5 KiB", "3.0 GiB".
 * Durations (ns): "0 s", "850 ns", "12.3 us", "4.50 ms", "9.87 s", "2 min 5 s", "3 h 20 min".
 */
#define XP_TEXT_NUMBER 32
char *xp_text_size(char dst[XP_TEXT_NUMBER], uint64_t bytes);
char *xp_text_duration(char dst[XP_TEXT_NUMBER], uint64_t ns);

/*
 * How many single-character edits (insert, delete, replace, swap neighbours) turn a into b. Texts
 * above 63 bytes count as unlike: UINT_MAX.
 */
unsigned xp_text_distance(const char *a, const char *b);
/* Whether name is near enough to what was typed to be offered; *best is the distance to beat. */
bool xp_text_nearer(const char *typed, const char *name, unsigned *best);

#endif
