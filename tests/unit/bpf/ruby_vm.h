/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The walker of bpf/ruby.bpf.c as ordinary C, over the memory of a Ruby that a test makes word by
 * word: a thread, its execution context, its VM stack, its tags.
 */
#ifndef XP_TEST_RUBY_VM_H
#define XP_TEST_RUBY_VM_H

#include <errno.h>
#include <stdint.h>
#include <string.h>

#include "bpf/ruby.bpf.c"

#define BASE 0x7f0000000000ull
#define WORDS (1u << 18)
#define TP (BASE + 0x1000)
#define DTV (BASE + 0x2000)
#define TLS (BASE + 0x3000)
#define EC (BASE + 0x4000)
#define TAGS (BASE + 0x10000)		/* the machine stack, up to STACK_START */
#define STACK_START (BASE + 0x80000)
#define STACK_SIZE 0x78000
#define HEAP (BASE + 0x80000)
#define VM_STACK (BASE + 0x100000)
#define VM_END (VM_STACK + 0x90000)
#define VM_EXEC 0x5000ull		/* two ranges of 0x100 bytes, 0x1000 apart */
#define GUARD 0x123456789abcdef1ull
#define NO_EP 0x10			/* no memory is there */

static uint64_t memory[WORDS];
static struct { uint64_t start, end; } hole;	/* cannot be read, though it is there */
static unsigned long reads;
static uint64_t now, tick;		/* the clock, and what a look at it takes */
static uint64_t heap;			/* the next address of a new object */
static uint64_t cfp;			/* the youngest control frame */
static uint64_t last_tag;		/* the one pushed last; 0: none */
static struct xp_ruby params;
static const struct xp_ruby *attached;	/* NULL: none */
static struct xp_walk w;
static struct ruby_scratch scratch;	/* as on a CPU: kept between samples */
unsigned long long vm_time_ns;

const struct xp_ruby *params_of(const struct xp_walk *walk)
{
	(void)walk;
	return attached;
}

__u64 xp_now(void)
{
	now += tick;
	return now;
}

/* As bpf_probe_read_user() does it: all or nothing, and then zeroes. */
int xp_read_user(void *to, __u32 n, __u64 addr)
{
	reads++;
	if (addr < BASE || addr - BASE > sizeof(memory) - n ||
	    (addr < hole.end && addr + n > hole.start)) {
		memset(to, 0, n);
		return -EFAULT;
	}
	memcpy(to, (const char *)memory + (addr - BASE), n);
	return 0;
}

static inline uint64_t *word_at(uint64_t addr)
{
	assert_true(addr >= BASE && addr - BASE <= sizeof(memory) - 8 && addr % 8 == 0);
	return &memory[(addr - BASE) / 8];
}

static inline void set(uint64_t addr, uint64_t value)
{
	*word_at(addr) = value;
}

static inline uint64_t new_object(unsigned words)
{
	uint64_t addr = heap;

	heap += 8 * words;
	assert_true(heap <= VM_STACK);
	return addr;
}

static inline uint64_t new_imemo(unsigned type, unsigned words)
{
	uint64_t addr = new_object(words);

	set(addr, T_IMEMO | (uint64_t)type << 12);
	return addr;
}

static inline uint64_t new_method(uint64_t def, uint64_t owner)
{
	uint64_t me = new_imemo(IMEMO_MENT, 6);

	set(me + 16, def);
	set(me + 32, owner);
	return me;
}

static inline uint64_t new_iseq(uint64_t body)
{
	uint64_t iseq = new_imemo(7, 4);

	set(iseq + 16, body);
	return iseq;
}

static inline uint64_t magic_of(unsigned kind)
{
	return kind < XP_RUBY_RESCUE ? kind * 0x11110000ull + 1
				     : kind == XP_RUBY_RESCUE ? 0x78880001 : 0x79990001;
}

/* An environment; its ep. outer: another's ep, with EP_LOCAL in flags it is no pointer. */
static inline uint64_t new_env(uint64_t me, uint64_t outer, uint64_t flags)
{
	uint64_t env = new_object(4);

	set(env, me);
	set(env + 8, outer);
	set(env + 16, flags);
	return env + 16;
}

/* The environment of a method's own frame. */
static inline uint64_t method_env(unsigned kind, uint64_t me, uint64_t flags)
{
	return new_env(me, 0, magic_of(kind) | EP_LOCAL | flags);
}

/* A control frame younger than all others; its address. */
static inline uint64_t push_cfp(uint64_t pc, uint64_t iseq, uint64_t ep)
{
	cfp -= params.cfp_size;
	assert_true(cfp >= VM_STACK);
	set(cfp, pc);
	set(cfp + 8, 0x5111);
	set(cfp + 16, iseq);
	set(cfp + 24, 0x5e1f);
	set(cfp + 32, ep);
	set(cfp + 40, 0xb10c);
	set(EC + 16, cfp);
	return cfp;
}

static inline uint64_t mangle(uint64_t value)
{
	value ^= GUARD;
	return value << 17 | value >> 47;
}

/* A tag on the machine stack, younger than all others: pushes must go down. */
static inline void push_tag(uint64_t tag, uint64_t pc, uint64_t sp, uint64_t fp)
{
	if (params.jmpbuf == XP_RUBY_JMPBUF_BUILTIN) {
		set(tag + 16, fp);
		set(tag + 24, pc);
		set(tag + 32, sp);
		set(tag + 56, last_tag);
	} else {
		set(tag + 24, mangle(fp));
		set(tag + 64, mangle(sp));
		set(tag + 72, mangle(pc));
		set(tag + 216, last_tag);
	}
	last_tag = tag;
	set(EC + 24, tag);
}

static inline int ruby_setup(void **state)
{
	(void)state;
	memset(memory, 0, sizeof(memory));
	memset(&scratch, 0, sizeof(scratch));
	memset(&hole, 0, sizeof(hole));
	now = 1000;
	tick = 0;
	vm_time_ns = 1000000;
	heap = HEAP;
	cfp = VM_END;
	last_tag = 0;
	params = (struct xp_ruby){
		.vm_exec = { VM_EXEC, VM_EXEC + 0x100, VM_EXEC + 0x1000, VM_EXEC + 0x1100 },
		.ec_mode = XP_RUBY_EC_TP, .ec_offset = -24, .cfp_size = 56, .stack_start = 144,
		.jmpbuf = XP_RUBY_JMPBUF_BUILTIN,
	};
	attached = &params;
	set(TP - 24, EC);
	set(TP + 0x30, GUARD);
	set(EC, VM_STACK);
	set(EC + 8, (VM_END - VM_STACK) / 8);
	set(EC + 16, VM_END);
	set(EC + 144, STACK_START);
	set(EC + 152, STACK_START - 0x100);
	set(EC + 160, STACK_SIZE);
	/* The root of every VM stack. */
	push_cfp(0, 0, new_env(0, 0, magic_of(XP_RUBY_DUMMY) | EP_LOCAL | EP_FINISH));
	return 0;
}

static inline bool has_part(void)
{
	return w.sample.nparts == 1;
}

/* One sample: both programs, with `before` words of payload used before the part. */
static inline void walk_after(uint32_t before)
{
	uint32_t n = before < XP_SAMPLE_WORDS ? before : XP_SAMPLE_WORDS;

	memset(&w, 0, offsetof(struct xp_walk, payload));
	memset(w.payload, 0xab, 8 * (size_t)n);
	w.words = before;
	w.after = 1 << XP_RUNTIME_RUBY;
	w.sample.time = now;
	w.sp = TAGS;
	w.tp = TP;
	reads = 0;
	xp_ruby_activations(&w, &scratch);
	if (w.after)
		xp_ruby_frames(&w, &scratch);
}

static inline void walk(void)
{
	walk_after(0);
}

static inline const struct xp_raw_part *part(void)
{
	assert_true(has_part());
	return (const struct xp_raw_part *)&w.payload[scratch.head];
}

static inline uint64_t act(unsigned i)
{
	assert_true(i < part()->nacts);
	return w.payload[scratch.head + 2 + i];
}

static inline const struct xp_raw_vm_frame *vm_frame(unsigned i)
{
	assert_true(i < part()->nframes);
	return (const struct xp_raw_vm_frame *)&w.payload[scratch.head + 2 + part()->nacts] + i;
}

static inline unsigned flags_of(unsigned i)
{
	return (unsigned)(vm_frame(i)->code_flags >> 48);
}

static inline void expect_frame(unsigned i, unsigned flags, uint64_t code, uint64_t owner,
				uint64_t pc)
{
	assert_int_equal(flags_of(i), flags);
	assert_int_equal(vm_frame(i)->code_flags & 0xffffffffffffull, code);
	assert_int_equal(vm_frame(i)->owner, owner);
	assert_int_equal(vm_frame(i)->pc, pc);
}

/* The part's ends and numbers; the payload is used up to its end and no further. */
static inline void expect_part(enum xp_vm_end end, enum xp_vm_end acts_end, unsigned nacts,
			       unsigned nframes)
{
	assert_int_equal(part()->runtime, XP_RUNTIME_RUBY);
	assert_int_equal(part()->end, end);
	assert_int_equal(part()->acts_end, acts_end);
	assert_int_equal(part()->nacts, nacts);
	assert_int_equal(part()->nframes, nframes);
	assert_int_equal(part()->pad, 0);
	assert_int_equal(w.words, scratch.head + 2 + nacts + 3 * nframes);
}

#endif
