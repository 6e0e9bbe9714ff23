/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A made-up Ruby 3.1 process in tests: memory that objects are built in, and reads that can fail.
 */
#ifndef XP_TEST_RUBY_HEAP_H
#define XP_TEST_RUBY_HEAP_H

#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/ruby/layout.h"
#include "runtime/ruby/object.h"
#include "target/mem.h"

#define HEAP_BASE 0x7f0000000000ull
#define HEAP_SIZE (8u << 20)
#define HEAP_LAST_OP 0xa9

enum { HEAP_TOP, HEAP_METHOD, HEAP_BLOCK, HEAP_CLASS, HEAP_RESCUE, HEAP_ENSURE, HEAP_EVAL,
       HEAP_MAIN, HEAP_PLAIN };

struct heap {
	uint8_t *data;
	size_t used;
	uint64_t table, ids;	/* ruby_global_symbols, and the units of its array */
	uint64_t serial;
	int reads, fail_at;	/* the read of this number fails with error; 0: none */
	int error;
	bool gone;		/* every read fails with error */
};

static inline int heap_read(const struct xp_mem *mem, uint64_t addr, void *to, size_t n)
{
	struct heap *h = (struct heap *)mem->data;

	if (++h->reads == h->fail_at || h->gone)
		return -h->error;
	if (addr < HEAP_BASE || n > HEAP_SIZE || addr - HEAP_BASE > HEAP_SIZE - n)
		return -EFAULT;
	memcpy(to, h->data + (addr - HEAP_BASE), n);
	return 0;
}

static inline struct xp_mem heap_mem(struct heap *h)
{
	return (struct xp_mem){ .read = heap_read, .data = (const uint8_t *)h };
}

static inline uint64_t heap_alloc(struct heap *h, size_t n)
{
	uint64_t at = HEAP_BASE + h->used;

	h->used += (n + 15) / 16 * 16;
	if (h->used > HEAP_SIZE)
		abort();
	return at;
}

static inline void heap_bytes(struct heap *h, uint64_t at, const void *p, size_t n)
{
	if (n)
		memcpy(h->data + (at - HEAP_BASE), p, n);
}

static inline void heap_u64(struct heap *h, uint64_t at, uint64_t v)
{
	heap_bytes(h, at, &v, 8);
}

static inline void heap_u32(struct heap *h, uint64_t at, uint32_t v)
{
	heap_bytes(h, at, &v, 4);
}

static inline uint64_t heap_object(struct heap *h, uint64_t flags, uint64_t klass)
{
	uint64_t at = heap_alloc(h, 40);

	heap_u64(h, at, flags);
	heap_u64(h, at + 8, klass);
	return at;
}

static inline uint64_t heap_string_n(struct heap *h, const void *p, size_t n)
{
	bool embedded = n < 24;
	uint64_t at = heap_object(h, 5 | (embedded ? n << 14 : 0x2000), 0);
	uint64_t bytes = embedded ? at + 16 : heap_alloc(h, n);

	if (!embedded) {
		heap_u64(h, at + 16, n);
		heap_u64(h, at + 24, bytes);
	}
	heap_bytes(h, bytes, p, n);
	return at;
}

static inline uint64_t heap_string(struct heap *h, const char *z)
{
	return heap_string_n(h, z, strlen(z));
}

static inline uint64_t heap_array(struct heap *h, const uint64_t *v, size_t n)
{
	bool embedded = n <= 3;
	uint64_t at = heap_object(h, 7 | (embedded ? 0x2000 | n << 15 : 0), 0);
	uint64_t to = embedded ? at + 16 : heap_alloc(h, 8 * n);

	if (!embedded) {
		heap_u64(h, at + 16, n);
		heap_u64(h, at + 32, to);
	}
	heap_bytes(h, to, v, 8 * n);
	return at;
}

/* An ID as the parser gives them: serial number and scope. */
static inline uint64_t heap_id(struct heap *h, const char *name)
{
	uint64_t n = h->serial++;

	if (n / 512 > 1)
		abort();
	heap_u64(h, h->ids + n / 512 * 8192 + n % 512 * 16, heap_string(h, name));
	return n << 4 | 1;
}

static inline void heap_op(struct heap *h, uint64_t id, const char *name)
{
	heap_u64(h, h->ids + id * 16, heap_string(h, name));
}

static inline void heap_init(struct heap *h)
{
	uint64_t units[4];

	*h = (struct heap){ .data = calloc(1, HEAP_SIZE), .serial = 500, .error = EFAULT };
	if (!h->data)
		abort();
	h->used = 0x1000;
	h->table = heap_alloc(h, 64);
	h->ids = heap_alloc(h, 2 * 8192);
	for (int i = 0; i < 4; i++) {
		units[i] = heap_object(h, 7, 0);
		heap_u64(h, units[i] + 16, 1024);
		heap_u64(h, units[i] + 32, h->ids + (i & 1) * 8192);
	}
	heap_u64(h, h->table + 16, heap_array(h, units, 4));
}

static inline void heap_release(struct heap *h)
{
	free(h->data);
}

static inline struct xp_ruby_symbols heap_symbols(const struct heap *h)
{
	return (struct xp_ruby_symbols){ h->table, HEAP_LAST_OP, 4 };
}

static inline struct xp_ruby_objects heap_objects(struct heap *h)
{
	return (struct xp_ruby_objects){ .mem = heap_mem(h), .layout = xp_ruby_layout_of(3, 1),
					 .symbols = heap_symbols(h) };
}

/* A class (type 2) or module (3) with n variables; one entry before them was deleted. */
static inline uint64_t heap_class_of(struct heap *h, unsigned type, uint64_t super,
				     const uint64_t (*vars)[2], size_t n)
{
	uint64_t at = heap_object(h, type, 0), ext = heap_alloc(h, 128), st = heap_alloc(h, 56);
	uint64_t entries = heap_alloc(h, 24 * (n + 1));

	heap_u64(h, at + 16, super);
	heap_u64(h, at + 24, ext);
	heap_u64(h, ext + 8, st);
	heap_u64(h, st + 40, n + 1);
	heap_u64(h, st + 48, entries);
	heap_u64(h, entries, UINT64_MAX);
	for (size_t i = 0; i < n; i++) {
		heap_u64(h, entries + 24 * (i + 1), 77 + i);
		heap_u64(h, entries + 24 * (i + 1) + 8, vars[i][0]);
		heap_u64(h, entries + 24 * (i + 1) + 16, vars[i][1]);
	}
	return at;
}

struct heap_iseq {
	unsigned type;
	uint64_t parent, local;		/* iseqs; local 0: itself */
	const char *label, *path;
	uint64_t pathobj, label_value;	/* instead of them; 0: none */
	unsigned size;			/* words of code; 0: 10 */
	unsigned line;			/* three rows from words 0, 4 and 7 on; 0: none */
};

static inline uint64_t heap_body(const struct heap *h, uint64_t iseq)
{
	uint64_t body;

	memcpy(&body, h->data + (iseq + 16 - HEAP_BASE), 8);
	return body;
}

static inline uint64_t heap_code(const struct heap *h, uint64_t iseq)
{
	uint64_t code;

	memcpy(&code, h->data + (heap_body(h, iseq) + 8 - HEAP_BASE), 8);
	return code;
}

/* The address of an iseq. */
static inline uint64_t heap_iseq(struct heap *h, const struct heap_iseq *q)
{
	static const uint32_t positions[3] = { 0, 4, 7 };
	uint64_t at = heap_object(h, 0x1a | 7 << 12, 0), body = heap_alloc(h, 312);
	unsigned size = q->size ? q->size : 10;
	uint64_t rows = heap_alloc(h, 36), where = heap_alloc(h, 12);

	heap_u64(h, at + 16, body);
	heap_u32(h, body, q->type);
	heap_u32(h, body + 4, size);
	heap_u64(h, body + 8, heap_alloc(h, 8 * size));
	heap_u64(h, body + 64, q->pathobj ? q->pathobj : heap_string(h, q->path));
	heap_u64(h, body + 80, q->label_value ? q->label_value : heap_string(h, q->label));
	heap_u64(h, body + 88, q->line << 1 | 1);
	heap_bytes(h, where, positions, sizeof(positions));
	for (unsigned i = 0; i < 3; i++)
		heap_u32(h, rows + 12 * i, q->line + i);
	heap_u64(h, body + 120, rows);
	heap_u64(h, body + 128, where);
	heap_u32(h, body + 136, q->line ? 3 : 0);
	heap_u64(h, body + 168, q->parent);
	heap_u64(h, body + 176, q->local ? q->local : at);
	return at;
}

#endif
