/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * bpf/ruby.bpf.c: how the execution context is found, every kind of frame, every end, the tags of
 * both kinds, the caches and the limits.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include "ruby_vm.h"

#define LIMIT_BEFORE (XP_KERNEL_FRAMES_MAX + 2 * XP_NATIVE_FRAMES_MAX)
#define LOCAL XP_RUBY_LOCAL
#define ROOT_FLAGS (XP_RUBY_DUMMY | LOCAL | XP_VM_SEGMENT_END)

/* A method's frame whose parts are all told apart by n. */
static uint64_t push_method(unsigned n)
{
	uint64_t me = new_method(0xde0000 + n, 0x0e0000 + n);

	return push_cfp(0xbc0000 + n, new_iseq(0xb00000 + n), method_env(XP_RUBY_METHOD, me, 0));
}

static void expect_method(unsigned i, unsigned n)
{
	expect_frame(i, XP_RUBY_METHOD | LOCAL, 0xb00000 + n, 0x0e0000 + n, 0xbc0000 + n);
}

static void by_thread_pointer(void **state)
{
	(void)state;
	push_method(1);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 2);
	expect_method(0, 1);
	expect_frame(1, ROOT_FLAGS, 0, 0, 0);
	assert_int_equal(part()->state, 0);
	/* As far on the other side. */
	set(TP - 24, 0);
	walk();
	assert_false(has_part());
	assert_int_equal(w.words, 0);
	params.ec_offset = 40;
	set(TP + 40, EC);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 2);
}

static void expect_nothing(void)
{
	walk();
	assert_false(has_part());
	assert_int_equal(w.words, 0);
	assert_int_equal(w.nacts, 0);
	assert_int_equal(w.on_stack, 0);
}

static void without_a_context(void **state)
{
	(void)state;
	set(TP - 24, 0);		/* a thread that Ruby does not know */
	expect_nothing();
	set(TP - 24, 0x1000);
	expect_nothing();
	set(TP - 24, EC);
	hole.start = TP - 24;
	hole.end = TP - 16;
	expect_nothing();
	hole.start = EC + 24;		/* a part of it is enough */
	hole.end = EC + 32;
	expect_nothing();
	memset(&hole, 0, sizeof(hole));
	params.ec_mode = XP_RUBY_EC_NONE;
	expect_nothing();
	assert_int_equal(reads, 0);
	params.ec_mode = XP_RUBY_EC_TP;
	attached = NULL;
	expect_nothing();
	attached = &params;
	params.jmpbuf = XP_RUBY_JMPBUF_GLIBC;
	hole.start = TP + 0x30;		/* glibc's guard */
	hole.end = TP + 0x38;
	expect_nothing();
	memset(&hole, 0, sizeof(hole));
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 1);
	/* No thread pointer. */
	memset(&w, 0, offsetof(struct xp_walk, payload));
	w.after = 1 << XP_RUNTIME_RUBY;
	xp_ruby_activations(&w, &scratch);
	assert_int_equal(w.after, 0);
}

static void by_the_dtv(void **state)
{
	(void)state;
	params.ec_mode = XP_RUBY_EC_DTV;
	params.tls_module = 3;
	params.ec_offset = 0x10;
	set(TP - 24, 0);
	set(TP + 8, DTV);
	set(DTV + 48, TLS);
	set(TLS + 0x10, EC);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 1);
	set(DTV + 48, UINT64_MAX);	/* this thread has not touched the module yet */
	set(0x10 + BASE, EC);
	expect_nothing();
	set(DTV + 48, 0);
	expect_nothing();
	set(DTV + 48, TLS);
	hole.start = DTV + 48;
	hole.end = DTV + 56;
	expect_nothing();
	hole.start = TP + 8;
	hole.end = TP + 16;
	expect_nothing();
	memset(&hole, 0, sizeof(hole));
	params.tls_module = UINT32_MAX;
	expect_nothing();
}

/* What is no VM stack is said, and its activations are there all the same. */
static void bad_bounds(void **state)
{
	static const struct { uint64_t stack, words, top; uint16_t size; } bad[] = {
		{ 0, (VM_END - VM_STACK) / 8, VM_END - 56, 56 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_STACK - 8, 56 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_END, 56 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_END + 56, 56 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_END - 64, 56 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_END - 56, 64 },
		{ VM_STACK, (VM_END - VM_STACK) / 8, VM_END - 56, 0 },
		{ VM_STACK, 1ull << 61, VM_STACK, 56 },
		{ VM_STACK, UINT64_MAX, VM_STACK, 56 },
	};

	(void)state;
	push_tag(TAGS + 0x100, VM_EXEC, TAGS + 0x80, 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		set(EC, bad[i].stack);
		set(EC + 8, bad[i].words);
		set(EC + 16, bad[i].top);
		params.cfp_size = bad[i].size;
		walk();
		expect_part(XP_VM_END_BAD, XP_VM_END_ROOT, 1, 0);
		assert_int_equal(act(0), TAGS + 0x80);
	}
}

static void kinds_and_flags(void **state)
{
	static const struct { uint64_t ep; unsigned raw; } flags[] = {
		{ 0, 0 }, { EP_FINISH, XP_VM_SEGMENT_END }, { EP_BMETHOD, XP_RUBY_BMETHOD },
		{ EP_LAMBDA, XP_RUBY_LAMBDA },
		{ EP_FINISH | EP_BMETHOD | EP_LAMBDA,
		  XP_VM_SEGMENT_END | XP_RUBY_BMETHOD | XP_RUBY_LAMBDA },
		{ 0x4 | 0x8 | 0x10 | 0x80 | 0x200 | 0x400 | 0x800 | 0x8000, 0 },
	};
	uint64_t me = new_method(0xdef, 0x077e4), iseq = new_iseq(0xb0d4);

	(void)state;
	for (unsigned kind = XP_RUBY_METHOD; kind <= XP_RUBY_DUMMY; kind++) {
		bool c = kind == XP_RUBY_CFUNC, dummy = kind == XP_RUBY_DUMMY;

		for (unsigned i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
			cfp = VM_END - params.cfp_size;
			push_cfp(0xbc, iseq, method_env(kind, me, flags[i].ep));
			walk();
			expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 2);
			expect_frame(0, kind | LOCAL | flags[i].raw,
				     c ? 0xdef : dummy ? 0 : 0xb0d4, dummy ? 0 : 0x077e4,
				     c || kind == XP_RUBY_IFUNC ? 0 : 0xbc);
		}
	}
}

/*
 * While an extension's Init function runs, a TOP frame with FINISH stands for it that no vm_exec has
 * pushed: it has no pc. A file's own TOP frame has one, or is JIT code's.
 */
static void frames_of_extensions(void **state)
{
	uint64_t me = new_method(0xdef, 0x077e4), iseq = new_iseq(0xb0d4);

	(void)state;
	push_cfp(0xbc, iseq, method_env(XP_RUBY_TOP, me, EP_FINISH));
	push_cfp(0, iseq, method_env(XP_RUBY_TOP, me, EP_FINISH));
	push_cfp(0, iseq, method_env(XP_RUBY_EVAL, me, EP_FINISH));
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 4);
	expect_frame(0, XP_RUBY_EVAL | LOCAL | XP_VM_SEGMENT_END, 0xb0d4, 0x077e4, 0);
	expect_frame(1, XP_RUBY_TOP | LOCAL, 0xb0d4, 0x077e4, 0);
	expect_frame(2, XP_RUBY_TOP | LOCAL | XP_VM_SEGMENT_END, 0xb0d4, 0x077e4, 0xbc);
}

/* A code's address takes 48 bits; what is above must not run into the flags. */
static void high_addresses(void **state)
{
	(void)state;
	push_cfp(UINT64_MAX, new_iseq(UINT64_MAX),
		 method_env(XP_RUBY_METHOD, new_method(0, UINT64_MAX), 0));
	walk();
	expect_frame(0, XP_RUBY_METHOD | LOCAL, 0xffffffffffffull, UINT64_MAX, UINT64_MAX);
}

static void frames_without_code(void **state)
{
	(void)state;
	push_cfp(1, 0, method_env(XP_RUBY_TOP, 0, 0));		/* no iseq */
	push_cfp(2, 0, method_env(XP_RUBY_CFUNC, 0, 0));	/* no method entry */
	push_cfp(3, NO_EP, method_env(XP_RUBY_METHOD, 0, 0));	/* iseq cannot be read */
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 4);
	expect_frame(0, XP_RUBY_METHOD | LOCAL | XP_RUBY_FAULT, 0, 0, 3);
	expect_frame(1, XP_RUBY_CFUNC | LOCAL, 0, 0, 0);
	expect_frame(2, XP_RUBY_TOP | LOCAL, 0, 0, 1);
}

/* A frame that is half pushed says so, and those below it are right. */
static void torn_frames(void **state)
{
	uint64_t ep = new_env(new_method(1, 2), 0, 0);

	(void)state;
	push_method(1);
	push_cfp(0xbc, new_iseq(7), ep);
	for (unsigned kind = 0; kind < 16; kind++) {
		uint64_t good = kind && kind <= XP_RUBY_DUMMY ? magic_of(kind) : 1;

		for (unsigned bit = 0; bit < 32; bit++) {
			bool in_magic = (0x7fff0001u >> bit & 1) != 0;

			set(ep, good ^ 1u << bit);
			walk();
			expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 3);
			if (in_magic || good == 1)
				expect_frame(0, XP_RUBY_TORN, 0, 0, 0xbc);
			else
				assert_int_equal(flags_of(0) & XP_RUBY_KIND_MASK, kind);
			expect_method(1, 1);
		}
	}
	push_cfp(0xbd, new_iseq(7), NO_EP);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 4);
	expect_frame(0, XP_RUBY_TORN | XP_RUBY_FAULT, 0, 0, 0xbd);
	expect_method(2, 1);
}

static void method_entries(void **state)
{
	const unsigned plain = XP_RUBY_METHOD | LOCAL, fault = plain | XP_RUBY_FAULT;
	uint64_t me = new_method(0xdef, 0x077e4), svar = new_imemo(IMEMO_SVAR, 5);
	uint64_t string = new_method(0xdef, 0x077e4), cref = new_imemo(1, 5);
	uint64_t nothing = new_imemo(IMEMO_SVAR, 5), odd = new_imemo(IMEMO_SVAR, 5);
	uint64_t torn = new_imemo(IMEMO_SVAR, 5), other = new_imemo(IMEMO_SVAR, 5);
	const struct { uint64_t word, owner; unsigned flags; } cases[] = {
		{ me, 0x077e4, plain }, { svar, 0x077e4, plain }, { string, 0, plain },
		{ cref, 0, plain }, { nothing, 0, plain }, { odd, 0, plain }, { torn, 0, fault },
		{ other, 0, plain }, { 0, 0, plain }, { me + 1, 0, plain }, { me + 4, 0, plain },
		{ NO_EP, 0, fault }, { BASE + sizeof(memory) - 32, 0, fault },
	};

	(void)state;
	set(svar + 8, me);
	set(string, 5);				/* not an imemo */
	set(odd + 8, me + 1);
	set(torn + 8, NO_EP);
	set(other + 8, string);
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		cfp = VM_END - params.cfp_size;
		push_cfp(0xbc, new_iseq(0xb0d4),
			 method_env(XP_RUBY_METHOD, cases[i].word, 0));
		walk();
		expect_frame(0, cases[i].flags, 0xb0d4, cases[i].owner, 0xbc);
	}
	/* Only a method's own environment has an svar. */
	cfp = VM_END - params.cfp_size;
	push_cfp(0xbc, new_iseq(0xb0d4),
		 new_env(svar, method_env(XP_RUBY_METHOD, 0, 0), magic_of(XP_RUBY_BLOCK)));
	walk();
	expect_frame(0, XP_RUBY_BLOCK, 0xb0d4, 0, 0xbc);
}

/* Blocks within blocks: the method is found in one of the environments looked at, or not. */
static void nested_environments(void **state)
{
	uint64_t me = new_method(0xdef, 0x077e4), ep = method_env(XP_RUBY_METHOD, me, 0);
	unsigned n;

	(void)state;
	for (n = 1; n <= 20; n++) {
		cfp = VM_END - params.cfp_size;
		push_cfp(0xbc, new_iseq(0xb0d4), ep);
		walk();
		if (n == 1)
			expect_frame(0, XP_RUBY_METHOD | LOCAL, 0xb0d4, 0x077e4, 0xbc);
		else if (n <= EP_LEVELS)
			expect_frame(0, XP_RUBY_BLOCK, 0xb0d4, 0x077e4, 0xbc);
		else
			expect_frame(0, XP_RUBY_BLOCK | XP_RUBY_EP_CUT, 0xb0d4, 0, 0xbc);
		/* The pointer outward has two bits of its own. */
		ep = new_env(0, ep | n % 4, magic_of(XP_RUBY_BLOCK));
	}
	/* A block of a bmethod has its own entry. */
	cfp = VM_END - params.cfp_size;
	push_cfp(0xbc, new_iseq(0xb0d4),
		 new_env(new_method(1, 2), ep, magic_of(XP_RUBY_BLOCK) | EP_BMETHOD));
	walk();
	expect_frame(0, XP_RUBY_BLOCK | XP_RUBY_BMETHOD, 0xb0d4, 2, 0xbc);
	/* Outward into nowhere, and in a circle. */
	ep = new_env(0, NO_EP, magic_of(XP_RUBY_BLOCK));
	push_cfp(0xbc, new_iseq(0xb0d4), ep);
	walk();
	expect_frame(0, XP_RUBY_BLOCK | XP_RUBY_FAULT, 0xb0d4, 0, 0xbc);
	set(ep - 8, ep);
	walk();
	expect_frame(0, XP_RUBY_BLOCK | XP_RUBY_EP_CUT, 0xb0d4, 0, 0xbc);
}

static void jit_frames(void **state)
{
	(void)state;
	for (params.cfp_size = 56; params.cfp_size <= 64; params.cfp_size += 8) {
		params.jit_return = params.cfp_size - 8;
		cfp = VM_END;
		push_cfp(0, 0, new_env(0, 0, magic_of(XP_RUBY_DUMMY) | EP_LOCAL | EP_FINISH));
		push_method(1);
		set(cfp + params.jit_return, 0x111);
		push_method(2);
		set(cfp + params.jit_return, 0);
		walk();
		expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 3);
		expect_method(0, 2);
		expect_frame(1, XP_RUBY_METHOD | LOCAL | XP_RUBY_JIT, 0xb00001, 0x0e0001, 0xbc0001);
		params.jit_return = 0;	/* a Ruby that has none */
		walk();
		expect_method(1, 1);
	}
}

/* Eight at a time, and never a word beyond the end of the stack. */
static void batches(void **state)
{
	(void)state;
	hole.start = VM_END;
	hole.end = VM_END + 8;
	for (unsigned n = 1; n <= 40; n++) {
		walk();
		expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, n);
		for (unsigned i = 0; i + 1 < n; i++)
			expect_method(i, n - 1 - i);
		/*
		 * The context's word, it, its machine stack; environment, method entry and iseq of
		 * each frame; the root has but the first.
		 */
		assert_int_equal(reads, 3 + (n + BATCH - 1) / BATCH + 3 * (n - 1) + 1);
		push_method(n);
	}
}

/* A page of the VM stack that cannot be read: the frames younger than it are kept. */
static void unreadable_frames(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 30; n++)
		push_method(n);
	hole.start = VM_END - 4 * params.cfp_size;
	hole.end = hole.start + 8;
	walk();
	expect_part(XP_VM_END_READ, XP_VM_END_ROOT, 0, 24);
	for (unsigned i = 0; i < 24; i++)
		expect_method(i, 30 - i);
	hole.start = cfp;
	walk();
	expect_part(XP_VM_END_READ, XP_VM_END_ROOT, 0, 0);
}

static void the_depth_is_limited(void **state)
{
	uint64_t iseq = new_iseq(0xb0d4), ep = method_env(XP_RUBY_METHOD, new_method(1, 2), 0);

	(void)state;
	for (unsigned n = 1; n < XP_VM_FRAMES_MAX; n++)
		push_cfp(n, iseq, ep);
	walk_after(LIMIT_BEFORE);
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, XP_VM_FRAMES_MAX);
	assert_int_equal(flags_of(XP_VM_FRAMES_MAX - 1), ROOT_FLAGS);
	push_cfp(XP_VM_FRAMES_MAX, iseq, ep);
	walk_after(LIMIT_BEFORE);
	expect_part(XP_VM_END_TOO_DEEP, XP_VM_END_ROOT, 0, XP_VM_FRAMES_MAX);
	for (unsigned i = 0; i < XP_VM_FRAMES_MAX; i++)
		expect_frame(i, XP_RUBY_METHOD | LOCAL, 0xb0d4, 2, XP_VM_FRAMES_MAX - i);
}

/* Everything at its largest at once is still within the payload. */
static void the_payload_holds_the_largest(void **state)
{
	uint64_t iseq = new_iseq(0xb0d4), ep = method_env(XP_RUBY_METHOD, new_method(1, 2), 0);

	(void)state;
	for (unsigned n = 0; n < XP_VM_FRAMES_MAX + 8; n++)
		push_cfp(n, iseq, ep);
	for (unsigned n = XP_ACTS_MAX + 8; n > 0; n--)
		push_tag(TAGS + 64 * n, VM_EXEC + 1, TAGS + 64 * n + 8, n);
	walk_after(LIMIT_BEFORE);
	expect_part(XP_VM_END_TOO_DEEP, XP_VM_END_TOO_DEEP, XP_ACTS_MAX, XP_VM_FRAMES_MAX);
	assert_true(w.words <= XP_SAMPLE_WORDS);
	for (unsigned i = 0; i < LIMIT_BEFORE; i++)
		assert_int_equal(w.payload[i], 0xababababababababull);
	assert_int_equal(act(0), TAGS + 64 + 8);
	assert_int_equal(act(XP_ACTS_MAX - 1), TAGS + 64 * XP_ACTS_MAX + 8);
}

/* Looked at every 64th frame. */
static void the_time_is_limited(void **state)
{
	(void)state;
	for (unsigned n = 1; n <= 300; n++)
		push_method(n);
	tick = vm_time_ns / 2;
	walk();			/* half of it, all of it, too much */
	expect_part(XP_VM_END_TIME, XP_VM_END_ROOT, 0, 3 * TIME_CHECK);
	for (unsigned i = 0; i < 3 * TIME_CHECK; i++)
		expect_method(i, 300 - i);
	tick = vm_time_ns / 4;
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 301);
	tick = vm_time_ns + 1;
	walk();
	expect_part(XP_VM_END_TIME, XP_VM_END_ROOT, 0, TIME_CHECK);
	/* A short stack has no end but its own. */
	cfp = VM_END - TIME_CHECK * params.cfp_size;
	set(EC + 16, cfp);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, TIME_CHECK);
}

static void caches_serve_one_sample(void **state)
{
	uint64_t me = new_method(1, 2), iseq = new_iseq(3), ep = method_env(XP_RUBY_METHOD, me, 0);
	unsigned long first;

	(void)state;
	for (unsigned n = 0; n < 20; n++)
		push_cfp(n, iseq, ep);
	walk();
	for (unsigned i = 0; i < 20; i++)
		expect_frame(i, XP_RUBY_METHOD | LOCAL, 3, 2, 19 - i);
	/* context's word, it, its machine stack; 3 batches; 21 environments; iseq and method once */
	first = reads;
	assert_int_equal(first, 3 + 3 + 21 + 2);
	/* What has changed since is seen by every later sample, also when their numbers wrap. */
	for (unsigned n = 0; n < 70000; n++) {
		if (n % 16384 == 0)
			set(iseq + 16, 100 + n);
		set(me + 16, n);
		set(me + 32, n + 1);
		walk();
		if (vm_frame(0)->owner != n + 1 || vm_frame(19)->owner != n + 1)
			fail_msg("sample %u: owner %u", n, (unsigned)vm_frame(0)->owner);
		assert_int_equal(reads, first);
	}
	expect_frame(5, XP_RUBY_METHOD | LOCAL, 100 + 65536, 70000, 14);
}

/* An entry that was left alone for all of the numbers a key can tell apart is not taken again. */
static void caches_do_not_outlive_their_numbers(void **state)
{
	uint64_t me = new_method(1, 2), iseq = new_iseq(3);
	uint64_t top;

	(void)state;
	top = push_cfp(0, iseq, method_env(XP_RUBY_METHOD, me, 0));
	walk();
	expect_frame(0, XP_RUBY_METHOD | LOCAL, 3, 2, 0);
	set(EC + 16, VM_END - params.cfp_size);
	for (unsigned n = 1; n < 65536; n++)
		walk();
	set(EC + 16, top);
	set(iseq + 16, 4);
	set(me + 32, 5);
	walk();
	expect_frame(0, XP_RUBY_METHOD | LOCAL, 4, 5, 0);
}

/* More than the caches hold, in one place of them too. */
static void caches_tell_pointers_apart(void **state)
{
	static uint64_t ep[200], iseq[200];

	(void)state;
	for (unsigned n = 0; n < 200; n++) {
		heap = HEAP + 4096 + 512 * n;
		ep[n] = method_env(XP_RUBY_METHOD, new_method(n, n + 1), 0);
		iseq[n] = new_iseq(n + 2);
	}
	for (unsigned k = 0; k < 1000; k++)
		push_cfp(k, iseq[k * 7 % 200], ep[k * 11 % 200]);
	walk();
	for (unsigned k = 0; k < 1000; k++)
		expect_frame(999 - k, XP_RUBY_METHOD | LOCAL, k * 7 % 200 + 2, k * 11 % 200 + 1, k);
}

static void tags(enum xp_ruby_jmpbuf kind)
{
	params.jmpbuf = kind;
	push_tag(TAGS + 0x4000, VM_EXEC, TAGS + 0x3f00, 11);
	push_tag(TAGS + 0x3000, VM_EXEC - 1, TAGS + 0x2f00, 12);	/* rb_protect() and the like */
	push_tag(TAGS + 0x2000, VM_EXEC + 0x10ff, TAGS + 0x1f00, 13);
	push_tag(TAGS + 0x1000, VM_EXEC + 0x1100, TAGS + 0x0f00, 14);
	push_tag(TAGS + 0x0800, VM_EXEC + 0x100, TAGS + 0x0700, 15);
	push_tag(TAGS + 0x0400, VM_EXEC + 0xff, TAGS + 0x0300, 16);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 3, 1);
	assert_int_equal(act(0), TAGS + 0x0300);
	assert_int_equal(act(1), TAGS + 0x1f00);
	assert_int_equal(act(2), TAGS + 0x3f00);
	/* What the native walk goes on with. */
	assert_int_equal(w.acts[0].sp, TAGS + 0x0300);
	assert_int_equal(w.acts[0].fp, 16);
	assert_int_equal(w.acts[2].fp, 11);
	assert_int_equal(w.act_pc, VM_EXEC);
	/* One that cannot be read ends the list there. */
	hole.start = TAGS + 0x2018;
	hole.end = hole.start + 8;
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_READ, 1, 1);
	assert_int_equal(act(0), TAGS + 0x0300);
	memset(&hole, 0, sizeof(hole));
	/* Without the second range. */
	params.vm_exec[2] = params.vm_exec[3] = 0;
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 2, 1);
}

static void tags_of_the_compiler(void **state)
{
	(void)state;
	tags(XP_RUBY_JMPBUF_BUILTIN);
}

static void tags_of_glibc(void **state)
{
	(void)state;
	tags(XP_RUBY_JMPBUF_GLIBC);
	/* Each of its three reads. */
	params.vm_exec[2] = VM_EXEC + 0x1000;
	params.vm_exec[3] = VM_EXEC + 0x1100;
	for (unsigned at = 24; at <= 216; at += at == 24 ? 40 : at == 64 ? 8 : 144) {
		hole.start = TAGS + 0x2000 + at;
		hole.end = hole.start + 8;
		walk();
		expect_part(XP_VM_END_ROOT, XP_VM_END_READ, 1, 1);
	}
}

static void activations_are_limited(void **state)
{
	(void)state;
	for (unsigned n = XP_ACTS_MAX; n > 0; n--)
		push_tag(TAGS + 64 * n, VM_EXEC, TAGS + 64 * n, n);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, XP_ACTS_MAX, 1);
	for (unsigned i = 0; i < XP_ACTS_MAX; i++)
		assert_int_equal(act(i), TAGS + 64 * (i + 1));
	push_tag(TAGS, VM_EXEC, TAGS, 0);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_TOO_DEEP, XP_ACTS_MAX, 1);
	assert_int_equal(act(0), TAGS);
}

/* A chain without end is cut, not taken for memory that cannot be read. */
static void circles_of_tags_end(void **state)
{
	(void)state;
	push_tag(TAGS, 1, TAGS, 0);
	set(TAGS + 56, TAGS);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_TOO_DEEP, 0, 1);
	set(TAGS + 24, VM_EXEC);
	walk();
	expect_part(XP_VM_END_ROOT, XP_VM_END_TOO_DEEP, XP_ACTS_MAX, 1);
}

static void expect_on_stack(uint64_t sp, bool on)
{
	memset(&w, 0, offsetof(struct xp_walk, payload));
	w.after = 1 << XP_RUNTIME_RUBY;
	w.tp = TP;
	w.sp = sp;
	xp_ruby_activations(&w, &scratch);
	assert_int_equal(w.on_stack, on);
	xp_ruby_frames(&w, &scratch);
	assert_int_equal(part()->flags, on ? XP_PART_ON_STACK : 0);
}

static void the_machine_stack(void **state)
{
	(void)state;
	expect_on_stack(STACK_START, true);
	expect_on_stack(STACK_START + 1, false);
	expect_on_stack(STACK_START - STACK_SIZE, true);
	expect_on_stack(STACK_START - STACK_SIZE - 1, false);
	expect_on_stack(0, false);
	params.stack_start = 200;	/* as this Ruby has it */
	expect_on_stack(STACK_START - 8, false);
	set(EC + 200, STACK_START);
	set(EC + 216, 16);
	expect_on_stack(STACK_START - 8, true);
	expect_on_stack(STACK_START - 17, false);
	set(EC + 200, 0);		/* a fiber that has not begun */
	expect_on_stack(STACK_START - 8, false);
	set(EC + 200, STACK_START);
	hole.start = EC + 216;
	hole.end = EC + 224;
	expect_on_stack(STACK_START - 8, false);
}

static void state_of_the_collector(void **state)
{
	uint64_t objspace = new_object(2);

	(void)state;
	params.gc_flags = objspace + 12;
	set(objspace + 8, 0x1234567800000000ull);
	walk();
	assert_int_equal(part()->state, 0x12345678);
	hole.start = objspace + 12;
	hole.end = objspace + 16;
	walk();
	assert_int_equal(part()->state, 0);
	expect_part(XP_VM_END_ROOT, XP_VM_END_ROOT, 0, 1);
}

static uint32_t seed = 1;

static uint32_t any(uint32_t n)
{
	seed = seed * 1664525 + 1013904223;
	return (uint32_t)((uint64_t)seed * n >> 32);
}

/* Mostly somewhere in memory, so that a walk gets far. */
static uint64_t any_word(void)
{
	switch (any(8)) {
	case 0:
		return (uint64_t)any(UINT32_MAX) << 32 | any(UINT32_MAX);
	case 1:
		return T_IMEMO | (uint64_t)any(8) << 12;
	case 2:
		return magic_of(1 + any(9)) | any(0x200);
	case 3:
		return VM_EXEC + any(0x180);
	default:
		return BASE + any(0x4000) * 8;
	}
}

static void any_params(void)
{
	params.cfp_size = any(4) ? 56 + 8 * any(2) : any(65536);
	params.jit_return = any(2) ? 0 : any(3) ? 48 : any(65536);
	params.stack_start = any(2) ? 144 : any(65536);
	params.jmpbuf = any(3);
	params.ec_mode = 1 + any(2);
	params.ec_offset = (int64_t)any(512) * 8 - 2048;
	params.tls_module = any(3) ? any(16) : UINT32_MAX;
	params.gc_flags = any_word();
	params.vm_exec[1] = any(2) ? VM_EXEC + 0x100 : UINT64_MAX;
}

/* The context's bounds hold in most walks, or they would all end there. */
static void any_context(void)
{
	uint64_t ec = BASE + 8 * any(0x4000 - 64), size = params.cfp_size, words = any(8192);
	uint64_t start = BASE + 8 * any(0x3000);

	params.ec_mode = XP_RUBY_EC_TP;
	params.ec_offset = -24;
	set(TP - 24, ec);
	set(ec, start);
	set(ec + 8, words);
	set(ec + 16, start + 8 * words - (size ? 8 * words / size * size : 0));
	set(ec + 24, BASE + 8 * any(0x4000));
}

static void hostile(void **state)
{
	unsigned long frames = 0, acts = 0, ends[XP_VM_ENDS] = { 0 };

	(void)state;
	for (unsigned n = 0; n < 0x5000; n++)
		memory[n] = any_word();
	for (unsigned n = 0; n < 100000; n++) {
		uint32_t before = any(16) ? any(LIMIT_BEFORE) : XP_SAMPLE_WORDS + any(XP_SAMPLE_WORDS);

		for (unsigned k = 0; k < 50; k++)
			memory[any(0x5000)] = any_word();
		any_params();
		if (any(8))
			any_context();
		tick = any(2000000);
		walk_after(before);
		if (!has_part())
			continue;
		assert_true(w.nacts <= XP_ACTS_MAX && scratch.nframes <= XP_VM_FRAMES_MAX);
		assert_int_equal(w.words, before + 2 + w.nacts + 3 * scratch.nframes);
		assert_int_not_equal(scratch.end, XP_VM_END_NONE);
		assert_int_not_equal(scratch.acts_end, XP_VM_END_NONE);
		frames += scratch.nframes;
		acts += w.nacts;
		ends[scratch.end]++;
	}
	/* It was no walk around the interesting places. */
	assert_true(frames > 1000000 && acts > 10000);
	assert_true(ends[XP_VM_END_ROOT] > 1000 && ends[XP_VM_END_BAD] > 1000 &&
		    ends[XP_VM_END_TIME] > 1000 && ends[XP_VM_END_READ] > 1000);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup(by_thread_pointer, ruby_setup),
		cmocka_unit_test_setup(without_a_context, ruby_setup),
		cmocka_unit_test_setup(by_the_dtv, ruby_setup),
		cmocka_unit_test_setup(bad_bounds, ruby_setup),
		cmocka_unit_test_setup(kinds_and_flags, ruby_setup),
		cmocka_unit_test_setup(frames_of_extensions, ruby_setup),
		cmocka_unit_test_setup(high_addresses, ruby_setup),
		cmocka_unit_test_setup(frames_without_code, ruby_setup),
		cmocka_unit_test_setup(torn_frames, ruby_setup),
		cmocka_unit_test_setup(method_entries, ruby_setup),
		cmocka_unit_test_setup(nested_environments, ruby_setup),
		cmocka_unit_test_setup(jit_frames, ruby_setup),
		cmocka_unit_test_setup(batches, ruby_setup),
		cmocka_unit_test_setup(unreadable_frames, ruby_setup),
		cmocka_unit_test_setup(the_depth_is_limited, ruby_setup),
		cmocka_unit_test_setup(the_payload_holds_the_largest, ruby_setup),
		cmocka_unit_test_setup(the_time_is_limited, ruby_setup),
		cmocka_unit_test_setup(caches_serve_one_sample, ruby_setup),
		cmocka_unit_test_setup(caches_do_not_outlive_their_numbers, ruby_setup),
		cmocka_unit_test_setup(caches_tell_pointers_apart, ruby_setup),
		cmocka_unit_test_setup(tags_of_the_compiler, ruby_setup),
		cmocka_unit_test_setup(tags_of_glibc, ruby_setup),
		cmocka_unit_test_setup(activations_are_limited, ruby_setup),
		cmocka_unit_test_setup(circles_of_tags_end, ruby_setup),
		cmocka_unit_test_setup(the_machine_stack, ruby_setup),
		cmocka_unit_test_setup(state_of_the_collector, ruby_setup),
		cmocka_unit_test_setup(hostile, ruby_setup),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
