// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz entry of the sample file's reader. The input is taken twice: as a whole file, and as the
 * records of a data chunk, since hardly any mutation gets past a checksum. What was read is then
 * reported in every format.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zlib.h>

#include "base/buf.h"
#include "base/io.h"
#include "output/output.h"
#include "store/format.h"
#include "store/reader.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_profile(const struct xp_profile *p)
{
	for (size_t i = 0; i < p->samples.n; i++) {
		check(p->samples.v[i].stack < p->stacks.n && p->samples.v[i].thread < p->threads.n);
		check(p->samples.v[i].weight && p->samples.v[i].state < XP_STATES);
	}
	for (size_t i = 0; i < p->stacks.n; i++) {
		check(p->stacks.v[i].parent == XP_NO_ID || p->stacks.v[i].parent < i);
		check(p->stacks.v[i].frame < p->frames.n);
	}
}

static void report(const struct xp_profile *p, bool internals)
{
	struct xp_filter all = { 0 };
	struct xp_view view;
	struct xp_output o = { .view = &view, .header = true, .rows = true };
	FILE *out = fopen("/dev/null", "w");

	check(out && !xp_view_init(&view, p, &all, internals));
	for (size_t i = 0; i < XP_OUTPUT_FORMATS; i++)
		check(!xp_output_formats[i].write(out, &o));
	xp_view_release(&view);
	fclose(out);
}

static void load(const void *data, size_t size)
{
	int fd = memfd_create("fuzz", MFD_CLOEXEC);
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;

	check(fd >= 0 && !xp_write_all(fd, data, size) && !lseek(fd, 0, SEEK_SET));
	check(!xp_profile_init(&p));
	if (!xp_reader_load_fd(fd, "fuzz", &p, &r, &err)) {
		check(r.size <= size && r.offset <= r.size && r.complete == !*r.problem);
		check_profile(&p);
		report(&p, false);
		report(&p, true);
	}
	xp_profile_release(&p);
	close(fd);
}

static void put_chunk(struct xp_buf *b, enum xp_store_kind kind, uint32_t number, const void *payload,
		      size_t n)
{
	size_t at = b->len;
	uLong crc;

	xp_buf_u32(b, XP_STORE_MAGIC);
	xp_buf_u32(b, kind);
	xp_buf_u32(b, number);
	xp_buf_u32(b, (uint32_t)n);
	xp_buf_u32(b, (uint32_t)n);
	crc = crc32(crc32(0, b->data + at, XP_STORE_AT_CRC), payload, (uInt)n);
	xp_buf_u32(b, (uint32_t)crc);
	xp_buf_put(b, payload, n);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const char first[XP_STORE_IDENT_LEN + 4] = XP_STORE_IDENT "\1";
	struct xp_buf file = XP_BUF_INIT;

	load(data, size);
	put_chunk(&file, XP_STORE_HEADER, 0, first, sizeof(first));
	put_chunk(&file, XP_STORE_DATA, 1, data, size);
	load(file.data, file.len);
	xp_buf_release(&file);
	return 0;
}
