// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz entry of the names of Ruby frames: the input is what a walk read from a live process, by
 * address, and the frames it had. Whatever the memory says, naming ends, and each frame is one of
 * the profile or none.
 *
 * Input, little-endian: u64 address of the symbol table, u8 number of frames, three u64 for each
 * (struct xp_raw_vm_frame), then reads until the end: u64 address, u16 length, the bytes.
 */
#include <errno.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "runtime/ruby/names.h"

#define READS_MAX 1000000	/* far above what 16 frames may take */

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

struct piece {
	uint64_t addr;
	const uint8_t *bytes;
	size_t n;
};

struct memory {
	struct piece pieces[1024];
	size_t n, reads;
};

static int read_pieces(const struct xp_mem *mem, uint64_t addr, void *to, size_t n)
{
	struct memory *m = (struct memory *)mem->data;

	if (++m->reads > READS_MAX)
		abort();
	for (size_t i = 0; i < m->n; i++) {
		const struct piece *p = &m->pieces[i];

		if (addr >= p->addr && addr - p->addr <= p->n && n <= p->n - (addr - p->addr)) {
			memcpy(to, p->bytes + (addr - p->addr), n);
			return 0;
		}
	}
	return -EFAULT;
}

static void name_all(struct xp_ruby_names *names, const struct xp_raw_vm_frame *raw, size_t n)
{
	struct xp_profile profile;

	if (xp_profile_init(&profile))
		return;
	for (uint64_t batch = 1; batch <= 2; batch++) {
		for (size_t i = 0; i < n; i++) {
			uint32_t frame = 0;

			if (xp_ruby_names_frame(names, &raw[i], i == 0, batch, &profile, &frame))
				abort();
			if (frame != XP_NO_ID && frame >= profile.frames.n)
				abort();
		}
	}
	xp_profile_release(&profile);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct memory memory;
	struct xp_cur c = xp_cur_of(data, size);
	struct xp_ruby_symbols symbols = { xp_cur_u64(&c), 0xa9, 4 };
	struct xp_mem mem = { .read = read_pieces, .data = (const uint8_t *)&memory };
	struct xp_raw_vm_frame raw[16];
	size_t n = xp_cur_u8(&c) % 16;
	struct xp_ruby_names *names;

	for (size_t i = 0; i < n; i++)
		raw[i] = (struct xp_raw_vm_frame){ xp_cur_u64(&c), xp_cur_u64(&c), xp_cur_u64(&c) };
	memory.n = memory.reads = 0;
	while (xp_cur_left(&c) && memory.n < 1024) {
		struct piece p = { .addr = xp_cur_u64(&c), .n = xp_cur_u16(&c) };

		p.bytes = xp_cur_bytes(&c, p.n);
		if (p.bytes)
			memory.pieces[memory.n++] = p;
	}
	if (!xp_ruby_names_new(&names, xp_ruby_layout_of(3, 1), &symbols, &mem)) {
		name_all(names, raw, n);
		xp_ruby_names_free(names);
	}
	return 0;
}
