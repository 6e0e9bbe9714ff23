/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What every kernel side file needs: helpers, the maps they share, and the state of one walk.
 *
 * The walkers are also compiled as ordinary C for the tests (tests/unit/bpf); then the few
 * functions at the end, through which all maps and all user memory are reached, are doubles.
 */
#ifndef XP_BPF_XBPF_H
#define XP_BPF_XBPF_H

#include <linux/types.h>
#ifdef __bpf__
#include <linux/bpf.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_tracing.h>
#else
#include <stddef.h>
#ifndef __always_inline
#define __always_inline inline __attribute__((always_inline))
#endif
#define __noinline __attribute__((noinline))
#endif

#include "abi.h"
#include "unwind.h"
#include "arch.h"

/*
 * Scratch of one sample on one CPU. A plain array entry per CPU, because per-CPU map values end at
 * 32 KiB. A timer tick cannot interrupt another on the same CPU, so nothing is shared.
 */
struct xp_walk {
	__u64 pc, sp, fp;
	__u64 saved_at[XP_SAVED_N];	/* where the register was saved last; 0: still in regs */
	__u64 gregs;			/* registers of the interrupted code: address; 0: regs */
	struct xp_regs regs;		/* of the leaf */
	__u64 woken;			/* when this CPU woke the reader for new code; kept between samples */
	__u32 frames;			/* native frames pushed */
	__u32 words;			/* payload words used */
	__u32 tail_calls;
	__u64 tp;			/* thread pointer; 0: not asked for */
	__u64 act_pc;			/* where an activation goes on; the same for all of a process */
	__u32 nacts, act;		/* activations above the stack pointer: all, and the next one */
	struct xp_activation { __u64 sp, fp; } acts[XP_ACTS_MAX];	/* leaf first */
	__u8 on_stack;			/* the stack pointer lies on the activations' stack */
	__u8 before, after;		/* bit per runtime: stages still to come */
	__u8 native_done;
	__u8 searching;			/* for an activation to go on at: see native.bpf.c */
	__u8 exact;			/* pc is an instruction that runs, not a return address */
	__u8 all_regs;			/* every register is known: leaf, or interrupted by a signal */
	__u8 fp_known;
	__u8 saved_lost;		/* bit per enum xp_saved_reg: neither changed nor found */
	struct xp_proc proc;
	struct xp_range range;		/* of the last lookup */
	struct xp_raw_sample sample;
	__u64 payload[XP_SAMPLE_WORDS];	/* follows sample directly: both go to the ring as one */
};

_Static_assert(__builtin_offsetof(struct xp_walk, payload) ==
	       __builtin_offsetof(struct xp_walk, sample) + sizeof(struct xp_raw_sample),
	       "the record is one piece");

struct xp_block {
	__u32 rows[XP_BLOCK_ROWS];
};

/* Appends a word to the payload; what does not fit overwrites, so the caller counts. */
static __always_inline void xp_push(struct xp_walk *w, __u64 word)
{
	__u32 at = w->words;

	w->payload[at & (XP_SAMPLE_WORDS - 1)] = word;
	w->words = at + 1;
}

#ifdef __bpf__

#define XP_MAP(name, map_type, key_type, value_type, entries, map_fl) \
	struct { \
		__uint(type, map_type); \
		__uint(map_flags, map_fl); \
		__uint(max_entries, entries); \
		__type(key, key_type); \
		__type(value, value_type); \
	} name SEC(".maps")

/* Sizes marked 1 are set at load time. Defined in sample.bpf.c, extern elsewhere. */
#ifdef XP_DEFINE_MAPS
#define XP_SHARED_MAP XP_MAP
#else
#define XP_SHARED_MAP extern XP_MAP
#endif

XP_SHARED_MAP(blocks, BPF_MAP_TYPE_ARRAY, __u32, struct xp_block, 1, BPF_F_MMAPABLE);
XP_SHARED_MAP(pages, BPF_MAP_TYPE_ARRAY, __u32, struct xp_page, 1, BPF_F_MMAPABLE);
XP_SHARED_MAP(rules, BPF_MAP_TYPE_ARRAY, __u32, struct xp_rule, XP_RULES_MAX, BPF_F_MMAPABLE);
XP_SHARED_MAP(ranges, BPF_MAP_TYPE_ARRAY, __u32, struct xp_range, 1, BPF_F_MMAPABLE);
XP_SHARED_MAP(procs, BPF_MAP_TYPE_HASH, __u32, struct xp_proc, 1, 0);
XP_SHARED_MAP(scratch, BPF_MAP_TYPE_ARRAY, __u32, struct xp_walk, 1, 0);
XP_SHARED_MAP(counters, BPF_MAP_TYPE_PERCPU_ARRAY, __u32, __u64, XP_COUNTERS, 0);
XP_SHARED_MAP(stages, BPF_MAP_TYPE_PROG_ARRAY, __u32, __u32, XP_STAGES, 0);

#ifndef XP_DEFINE_MAPS
extern
#endif
struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

extern const volatile unsigned long long vm_time_ns;	/* sample.bpf.c */

static __always_inline struct xp_walk *xp_walk(void)
{
	__u32 cpu = bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&scratch, &cpu);
}

static __always_inline void xp_count(__u32 counter)
{
	__u64 *n = bpf_map_lookup_elem(&counters, &counter);

	if (n)
		*n += 1;
}

/*
 * Goes on with the next stage of this sample. Returns only when there is no such program, which
 * does not happen for the last one; then the sample is lost and counted.
 */
static __always_inline void xp_next(void *ctx, struct xp_walk *w)
{
#pragma unroll
	for (int r = 1; r < XP_RUNTIMES_N; r++) {
		if (w->before & (1 << r)) {
			w->before &= ~(1 << r);
			bpf_tail_call(ctx, &stages, XP_STAGE_BEFORE + r);
		}
	}
	if (!w->native_done) {
		w->native_done = 1;
		bpf_tail_call(ctx, &stages, XP_STAGE_NATIVE);
	}
#pragma unroll
	for (int r = 1; r < XP_RUNTIMES_N; r++) {
		if (w->after & (1 << r)) {
			w->after &= ~(1 << r);
			bpf_tail_call(ctx, &stages, XP_STAGE_AFTER + r);
		}
	}
	bpf_tail_call(ctx, &stages, XP_STAGE_FINISH);
	xp_count(XP_COUNT_LOST);
}

static __always_inline const struct xp_block *xp_block(__u32 i)
{
	return bpf_map_lookup_elem(&blocks, &i);
}

static __always_inline const struct xp_page *xp_page(__u32 i)
{
	return bpf_map_lookup_elem(&pages, &i);
}

static __always_inline const struct xp_rule *xp_rule(__u32 i)
{
	return bpf_map_lookup_elem(&rules, &i);
}

static __always_inline const struct xp_range *xp_range(__u32 i)
{
	return bpf_map_lookup_elem(&ranges, &i);
}

static __always_inline __u64 xp_now(void)
{
	return bpf_ktime_get_ns();
}

/* Reads the target's memory; 0 or a negative errno. */
static __always_inline int xp_read_user(void *to, __u32 n, __u64 addr)
{
	return bpf_probe_read_user(to, n, (const void *)addr);
}

#else

const struct xp_block *xp_block(__u32 i);
const struct xp_page *xp_page(__u32 i);
const struct xp_rule *xp_rule(__u32 i);
const struct xp_range *xp_range(__u32 i);
int xp_read_user(void *to, __u32 n, __u64 addr);
__u64 xp_now(void);
extern unsigned long long vm_time_ns;

#endif

#endif
