/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walker of bpf/native.bpf.c as ordinary C, over tables and memory that a test makes.
 *
 * Tables are allocated to their exact size, so a read past their end is seen by the address
 * sanitizer; an index outside gives NULL, as a BPF array gives it.
 */
#ifndef XP_TEST_MACHINE_H
#define XP_TEST_MACHINE_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

/* clang's unrolling is for the kernel's sake alone. */
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wunknown-pragmas"
#include "bpf/native.bpf.c"
#pragma GCC diagnostic pop

struct machine {
	const uint32_t *rows;
	const struct xp_page *pages;
	const struct xp_rule *rules;
	const struct xp_range *ranges;
	uint32_t nblocks, npages, nrules, nranges;
	/* All n bytes or a negative errno. */
	int (*read)(void *to, uint32_t n, uint64_t addr);
	unsigned long reads;
};

static struct machine machine;

const struct xp_block *xp_block(__u32 i)
{
	if (i >= machine.nblocks)
		return NULL;
	return (const struct xp_block *)(machine.rows + ((size_t)i << XP_BLOCK_SHIFT));
}

const struct xp_page *xp_page(__u32 i)
{
	return i < machine.npages ? &machine.pages[i] : NULL;
}

const struct xp_rule *xp_rule(__u32 i)
{
	return i < machine.nrules ? &machine.rules[i] : NULL;
}

const struct xp_range *xp_range(__u32 i)
{
	return i < machine.nranges ? &machine.ranges[i] : NULL;
}

int xp_read_user(void *to, __u32 n, __u64 addr)
{
	machine.reads++;
	return machine.read(to, n, addr);
}

/* A walk at its beginning, as xp_sample() leaves it: every register known, nothing pushed. */
static inline void walk_begin(struct xp_walk *w, const struct xp_regs *regs)
{
	memset(w, 0, sizeof(*w));
	w->sample.kind = XP_RAW_SAMPLE;
	w->sample.end = XP_END_REASONS;		/* each walk must give a reason */
	w->exact = w->all_regs = w->fp_known = 1;
	w->regs = *regs;
	w->pc = regs->ip;
	w->sp = regs->sp;
	w->fp = regs->bp;
	w->proc.count = machine.nranges;
}

static inline const struct xp_raw_frame *walk_frame(const struct xp_walk *w, uint32_t i)
{
	return (const struct xp_raw_frame *)&w->payload[w->words - 2 * w->frames] + i;
}

static inline uint64_t frame_sp(const struct xp_raw_frame *f)
{
	return f->sp_flags & 0xffffffffffffull;
}

static inline unsigned frame_flags(const struct xp_raw_frame *f)
{
	return (unsigned)(f->sp_flags >> 48);
}

#endif
