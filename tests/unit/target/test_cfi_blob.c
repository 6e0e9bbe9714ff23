// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Rows of code whose unwind information lies: LuaJIT's as it is installed, and small blobs made
 * here.
 *
 * Arguments are further files with LuaJIT in them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include <elf.h>
#include <fcntl.h>
#include <unistd.h>

#include "base/buf.h"
#include "cfi_check.h"
#include "cfi_oracle.h"
#include "target/cfi_blob.h"

#define START 0x10000u
#define SIZE 4096u
#define BYTES(...) ((const uint8_t[]){ __VA_ARGS__ }), sizeof((const uint8_t[]){ __VA_ARGS__ })

#define FRESH { .kind = XP_RULE_SP, .cfa_off = 8, .ra = 1, .fp_off = XP_FP_SAME }
#define FRAME(depth) { .kind = XP_RULE_SP, .cfa_off = (depth), .ra = 1, .fp_off = -16, \
		       .save = { [XP_SAVED_RBX] = 3, [XP_SAVED_R15] = 4, [XP_SAVED_R14] = 5 } }
#define BAD { .kind = XP_RULE_BAD }

static const struct xp_rule fresh = FRESH, body = FRAME(80), none;
static const struct xp_rule in_slots[] = {
	FRESH,
	{ .kind = XP_RULE_SP, .cfa_off = 16, .ra = 1, .fp_off = -16 },
	{ .kind = XP_RULE_SP, .cfa_off = 24, .ra = 1, .fp_off = -16,
	  .save = { [XP_SAVED_RBX] = 3 } },
	{ .kind = XP_RULE_SP, .cfa_off = 32, .ra = 1, .fp_off = -16,
	  .save = { [XP_SAVED_RBX] = 3, [XP_SAVED_R15] = 4 } },
	FRAME(40),
};

/* push rbp, rbx, r15, r14; sub rsp, 40 */
#define MAKE_FRAME 0x55, 0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28
#define TAKE_DOWN 0x48, 0x83, 0xc4, 0x28, 0x41, 0x5e, 0x41, 0x5f, 0x5b, 0x5d
#define LEAP 0x41, 0xff, 0x24, 0xee		/* jmp [r14+rbp*8] */
#define RET 0xc3

/* A blob in a file, filled up with what follows it: functions before and behind it have FRESH. */
struct made {
	struct xp_buf code;
	struct xp_segment segment;
	struct xp_elf elf;
	struct xp_cfi cfi;
};

static void put(struct made *m, const uint8_t *bytes, size_t n)
{
	xp_buf_put(&m->code, bytes, n);
}

/* A call (0xe8) or jump (0xe9) to an offset. */
static void put_near(struct made *m, uint8_t opcode, size_t to)
{
	xp_buf_u8(&m->code, opcode);
	xp_buf_u32(&m->code, (uint32_t)(to - (m->code.len + 4)));
}

static void fill(struct made *m, size_t size)
{
	while (m->code.len < size)
		put(m, BYTES(LEAP));
	m->code.len = size;
}

static void add_row(struct xp_cfi *cfi, uint64_t vaddr, const struct xp_rule *rule)
{
	struct xp_cfi_row *row = xp_vec_push(&cfi->rows);
	size_t id = 0;

	while (id < cfi->rules.n && memcmp(&cfi->rules.v[id], rule, sizeof(*rule)))
		id++;
	if (id == cfi->rules.n)
		*xp_vec_push(&cfi->rules) = *rule;
	*row = (struct xp_cfi_row){ vaddr, (uint32_t)id };
}

static void add_func(struct xp_cfi *cfi, uint64_t start, uint64_t end)
{
	*xp_vec_push(&cfi->funcs) = (struct xp_cfi_func){ start, end };
	cfi->nfdes++;
}

static void finish(struct made *m, const struct xp_rule *rule)
{
	size_t size = m->code.len;

	assert_false(m->code.failed);
	m->segment = (struct xp_segment){ .filesz = size, .vaddr = START, .memsz = size,
					  .exec = true };
	m->elf = (struct xp_elf){ .data = m->code.data, .size = size, .machine = EM_X86_64,
				  .segments = &m->segment, .nsegments = 1 };
	add_row(&m->cfi, START - 64, &fresh);
	add_row(&m->cfi, START, rule);
	add_row(&m->cfi, START + size, &fresh);
	add_row(&m->cfi, START + size + 64, &none);
	add_func(&m->cfi, START - 64, START);
	add_func(&m->cfi, START, START + size);
	add_func(&m->cfi, START + size, START + size + 64);
}

static void release(struct made *m)
{
	xp_cfi_release(&m->cfi);
	xp_buf_release(&m->code);
}

/* Four rows are what finish() makes. */
static void mend(struct made *m, size_t rows)
{
	assert_int_equal(xp_cfi_mend_blobs(&m->cfi, &m->elf), 0);
	assert_sound(&m->cfi);
	if (m->cfi.rows.n != rows)
		fail_msg("%zu rows, not %zu", m->cfi.rows.n, rows);
}

static void assert_at(const struct made *m, size_t first, size_t last, struct xp_rule want)
{
	char name[32];

	for (size_t at = first; at <= last; at++) {
		snprintf(name, sizeof(name), "offset %zu", at);
		assert_rule(name, xp_cfi_rule_at(&m->cfi, START + at), &want);
	}
}

/* The rows of the five instructions before the frame is there. */
static void assert_made_at(const struct made *m, size_t at)
{
	static const size_t ends[] = { 0, 1, 3, 5, 9 };
	size_t first = at;

	for (size_t i = 0; i < 5; i++) {
		assert_at(m, first, at + ends[i], in_slots[i]);
		first = at + ends[i] + 1;
	}
	assert_at(m, first, first, body);
}

static void entries_and_exits(void **state)
{
	static const size_t ends[] = { 3, 5, 7, 8, 9 };
	struct made m = { 0 };
	size_t exit[2], entry[3], first;

	(void)state;
	put(&m, BYTES(LEAP));
	exit[0] = m.code.len;
	put(&m, BYTES(TAKE_DOWN, RET));
	exit[1] = m.code.len;
	put(&m, BYTES(TAKE_DOWN));
	put_near(&m, 0xe9, 2 * SIZE);		/* a call in place of the return */
	entry[0] = m.code.len;
	put(&m, BYTES(MAKE_FRAME, LEAP));
	entry[1] = m.code.len;
	put(&m, BYTES(0xf3, 0x0f, 0x1e, 0xfa, MAKE_FRAME, LEAP));
	put(&m, BYTES(0xcc));
	entry[2] = m.code.len;			/* rbp was pushed before */
	put(&m, BYTES(0x53, 0x41, 0x57, 0x41, 0x56, 0x48, 0x83, 0xec, 0x28, LEAP));
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 31);
	for (size_t i = 0; i < 2; i++) {
		assert_at(&m, exit[i], exit[i] + 3, body);
		first = exit[i] + 4;
		for (size_t k = 1; k < 5; k++) {
			assert_at(&m, first, exit[i] + ends[k], in_slots[5 - k]);
			first = exit[i] + ends[k] + 1;
		}
		assert_at(&m, first, first + (i ? 4 : 0), fresh);
	}
	assert_made_at(&m, entry[0]);
	assert_at(&m, entry[1], entry[1] + 3, fresh);
	assert_made_at(&m, entry[1] + 4);
	assert_at(&m, entry[2] - 1, entry[2] - 1, body);
	assert_at(&m, entry[2], entry[2], in_slots[1]);
	assert_at(&m, entry[2] + 1, entry[2] + 2, in_slots[2]);
	assert_at(&m, entry[2] + 5, entry[2] + 8, in_slots[4]);
	assert_at(&m, entry[2] + 9, SIZE - 1, body);
	release(&m);
}

/* A blob that begins with an entry and ends in a function: their neighbours have the same rule. */
static void neighbours(void **state)
{
	struct made m = { 0 };

	(void)state;
	put(&m, BYTES(MAKE_FRAME));
	fill(&m, SIZE - 2);
	put(&m, BYTES(0x90, RET));
	finish(&m, &body);
	mend(&m, 8);
	assert_int_equal(m.cfi.rows.v[0].vaddr, START - 64);
	assert_int_equal(m.cfi.rows.v[1].vaddr, START + 1);
	assert_at(&m, 0, 0, fresh);
	assert_at(&m, SIZE - 2, SIZE, fresh);
	release(&m);
}

static void functions(void **state)
{
	const struct xp_rule called = FRAME(88), deeper = FRAME(96), saves = {
		.kind = XP_RULE_SP, .cfa_off = 16, .ra = 1, .fp_off = XP_FP_SAME,
		.save = { [XP_SAVED_RBX] = 2 },
	};
	struct made m = { 0 };
	size_t calls, sub, popping, other;

	(void)state;
	put(&m, BYTES(MAKE_FRAME, LEAP));
	sub = m.code.len;			/* xor eax, eax; je +2; push r15; pop r15; ret */
	put(&m, BYTES(0x31, 0xc0, 0x74, 0x04, 0x41, 0x57, 0x41, 0x5f, RET));
	popping = m.code.len;			/* pop rbp; nop; push rbp; ret */
	put(&m, BYTES(0x5d, 0x90, 0x55, RET));
	other = m.code.len;			/* not called: push rbx; cpuid; pop rbx; ret */
	put(&m, BYTES(0x53, 0x0f, 0xa2, 0x5b, RET));
	calls = m.code.len;
	put_near(&m, 0xe8, sub);
	put_near(&m, 0xe8, popping);
	put_near(&m, 0xe8, 0);			/* the entry */
	put_near(&m, 0xe8, 3 * SIZE);
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 17);
	assert_made_at(&m, 0);
	assert_at(&m, sub, sub + 5, called);
	assert_at(&m, sub + 6, sub + 7, deeper);
	assert_at(&m, sub + 8, sub + 8, called);
	assert_at(&m, popping, popping, called);
	assert_at(&m, popping + 1, popping + 2, body);
	assert_at(&m, popping + 3, popping + 3, called);
	assert_at(&m, other, other, fresh);
	assert_at(&m, other + 1, other + 3, saves);
	assert_at(&m, other + 4, other + 4, fresh);
	assert_at(&m, calls, SIZE - 1, body);
	release(&m);
}

/* Like the integer power of older LuaJIT: a function called from the body and from another one. */
static void called_from_both(void **state)
{
	struct made m = { 0 };
	size_t head, power;

	(void)state;
	put(&m, BYTES(MAKE_FRAME, LEAP));
	head = m.code.len;			/* cmp eax, 1; jle to the second function */
	put(&m, BYTES(0x83, 0xf8, 0x01, 0x7e, 0x03));
	power = m.code.len;			/* shr eax, 1; ret */
	put(&m, BYTES(0xd1, 0xe8, RET));
	put(&m, BYTES(0x74, 0xfd, 0xf7, 0xd8));	/* je to that ret; neg eax; call power; ret */
	put_near(&m, 0xe8, power);
	put(&m, BYTES(RET));
	put_near(&m, 0xe8, power);		/* from the body */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 10);
	assert_at(&m, head, head + 5 + 3 + 4 + 5, fresh);
	assert_at(&m, head + 5 + 3 + 4 + 5 + 1, SIZE - 1, body);
	release(&m);
}

static void traces(void **state)
{
	const struct xp_rule bad = BAD, deeper = FRAME(96);
	struct made m = { 0 };
	size_t enter, leave, loaded;

	(void)state;
	put(&m, BYTES(MAKE_FRAME));
	enter = m.code.len;		/* sub rsp, 16; mov [rsp+8], r13; jmp rax */
	put(&m, BYTES(0x48, 0x83, 0xec, 0x10, 0x4c, 0x89, 0x6c, 0x24, 0x08, 0xff, 0xe0));
	leave = m.code.len;		/* push r13; sub rsp, 128; call ... */
	put(&m, BYTES(0x41, 0x55, 0x48, 0x81, 0xec, 0x80, 0, 0, 0));
	put_near(&m, 0xe8, 2 * SIZE);
	put(&m, BYTES(0xeb, 0x05));	/* over this: lea rcx, [rsp+16] */
	put(&m, BYTES(0x48, 0x8d, 0x4c, 0x24, 0x10));
	put(&m, BYTES(0x48, 0x89, 0xcc));	/* mov rsp, rcx */
	loaded = m.code.len;
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 11);
	assert_at(&m, enter, enter + 3, body);
	assert_at(&m, enter + 4, enter + 10, deeper);
	assert_at(&m, leave, loaded - 1, bad);
	assert_at(&m, loaded, SIZE - 1, body);
	assert_int_equal(m.cfi.bad_rows, 1);
	release(&m);
}

static void balanced_push(void **state)
{
	const struct xp_rule deeper = {
		.kind = XP_RULE_SP, .cfa_off = 88, .ra = 1, .fp_off = -16,
		.save = { [XP_SAVED_RBX] = 3, [XP_SAVED_R12] = 11, [XP_SAVED_R15] = 4,
			  [XP_SAVED_R14] = 5 },
	};
	struct made m = { 0 };

	(void)state;
	put(&m, BYTES(MAKE_FRAME));
	put(&m, BYTES(0x41, 0x54, 0x0f, 0xa2, 0x41, 0x5c));	/* push r12; cpuid; pop r12 */
	put(&m, BYTES(0x41, 0x54, 0x75, 0x00, 0x41, 0x5c));	/* with a branch: left alone */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 10);
	assert_at(&m, 10, 11, body);
	assert_at(&m, 12, 15, deeper);
	assert_at(&m, 16, SIZE - 1, body);
	release(&m);
}

/* Code that says something else than the row. */
static void contradictions(void **state)
{
	struct xp_rule other = body;
	struct made m = { 0 };

	(void)state;
	put(&m, BYTES(LEAP, TAKE_DOWN, RET));		/* no entry */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 4);
	release(&m);

	m = (struct made){ 0 };
	put(&m, BYTES(LEAP, MAKE_FRAME, LEAP));		/* of another size */
	fill(&m, SIZE);
	other.cfa_off = 96;
	finish(&m, &other);
	mend(&m, 4);
	release(&m);

	m = (struct made){ 0 };
	put(&m, BYTES(LEAP, 0x48, 0xb8, MAKE_FRAME, LEAP)); /* in an instruction's constant */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 4);
	release(&m);

	m = (struct made){ 0 };
	put(&m, BYTES(LEAP, MAKE_FRAME, LEAP));
	put_near(&m, 0xe9, 5);				/* from the body among the pushes */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 4);
	release(&m);

	m = (struct made){ 0 };
	put(&m, BYTES(LEAP, MAKE_FRAME, LEAP));
	for (int i = 0; i < 17; i++)
		put(&m, BYTES(0x06));			/* no instruction in 64-bit mode */
	fill(&m, SIZE);
	finish(&m, &body);
	mend(&m, 4);
	release(&m);
}

/* Subroutines that are none: what they do is not followed, the rest is as it should be. */
static void no_functions(void **state)
{
	static const uint8_t codes[][8] = {
		{ LEAP, RET },				/* goes somewhere else */
		{ 0x50, RET },				/* push rax: leaves by another address */
		{ 0x48, 0x83, 0xe4, 0xf0, RET },	/* and rsp, -16 */
		{ 0x48, 0x89, 0xc4, RET },		/* mov rsp, rax */
		{ 0x75, 0x01, 0x58, RET },		/* jne over a pop: two depths */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(codes) / sizeof(*codes); i++) {
		struct made m = { 0 };
		size_t at;

		put(&m, BYTES(MAKE_FRAME, LEAP));
		at = m.code.len;
		put(&m, codes[i], sizeof(codes[i]));
		put(&m, BYTES(LEAP));
		put_near(&m, 0xe8, at);
		fill(&m, SIZE);
		finish(&m, &body);
		assert_int_equal(xp_cfi_mend_blobs(&m.cfi, &m.elf), 0);
		assert_sound(&m.cfi);
		assert_made_at(&m, 0);
		assert_at(&m, at, at, body);
		release(&m);
	}
}

static void not_looked_at(void **state)
{
	static const struct xp_rule others[] = {
		{ .kind = XP_RULE_FP, .cfa_off = 80, .ra = 1, .fp_off = -16,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 2, .fp_off = -16,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = XP_FP_SAME,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = XP_FP_LOST,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = XP_FP_AT_FP,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = -16,
		  .save = { 3, 0, 0, 6, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = -16,
		  .save = { 3, 3, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = -16,
		  .save = { 3, XP_SAVE_LOST, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = 80, .ra = 1, .fp_off = -16, .save = { 3 } },
		{ .kind = XP_RULE_SP, .cfa_off = 40, .ra = 1, .fp_off = -16,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = INT32_MIN, .ra = 1, .fp_off = INT16_MIN,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_SP, .cfa_off = INT32_MAX, .ra = 1, .fp_off = -16,
		  .save = { 3, 0, 0, 5, 4 } },
		{ .kind = XP_RULE_END }, { .kind = XP_RULE_BAD }, { .kind = XP_RULE_SIGNAL },
	};
	struct made m;

	(void)state;
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++) {
		m = (struct made){ 0 };
		put(&m, BYTES(LEAP, MAKE_FRAME, LEAP));
		fill(&m, SIZE);
		finish(&m, &others[i]);
		mend(&m, 4);
		release(&m);
	}
	for (int way = 0; way < 5; way++) {
		m = (struct made){ 0 };
		put(&m, BYTES(LEAP, MAKE_FRAME, LEAP));
		fill(&m, way == 0 ? SIZE - 1 : way == 1 ? (256 << 10) + 1 : SIZE);
		finish(&m, &body);
		if (way == 2)
			m.elf.machine = EM_AARCH64;
		if (way == 3)
			m.segment.filesz--;		/* its end is not in the file */
		if (way == 4) {				/* it has two rows */
			m.cfi.rows.n -= 2;
			add_row(&m.cfi, START + SIZE - 1, &fresh);
			add_row(&m.cfi, START + SIZE + 64, &none);
		}
		mend(&m, 4);
		release(&m);
	}
}

/* Whatever the bytes are, the table is sound, and outside the blob it is as before. */
static void hostile_code(void **state)
{
	static const uint8_t parts[][12] = {
		{ MAKE_FRAME }, { TAKE_DOWN, RET }, { LEAP, RET }, { 0x48, 0x83, 0xec, 0x10 },
		{ 0x48, 0x89, 0xcc }, { 0xe8, 0xfb, 0xff, 0xff, 0xff, RET },
		{ 0x5d, 0x90, 0x55, RET }, { 0x41, 0x57, 0x90, 0x41, 0x5f, RET },
		{ 0x90, 0xe8, 1, 0, 0, 0, 0x90, 0x50, 0x58, RET },
		{ 0x75, 0x06, 0xeb, 0x02, 0x90, 0x90, 0x53, 0x5b, RET },
	};
	static const size_t sizes[] = { 10, 11, 5, 4, 3, 6, 4, 6, 10, 9 };
	unsigned mended = 0;

	(void)state;
	srand(20261130);
	for (int round = 0; round < 400; round++) {
		struct made m = { 0 };

		put(&m, BYTES(MAKE_FRAME, LEAP));
		while (m.code.len < SIZE) {
			unsigned part = (unsigned)rand() % (sizeof(parts) / sizeof(*parts));
			uint8_t bytes[sizeof(parts[0])];
			size_t n = sizes[part];

			memcpy(bytes, parts[part], sizeof(bytes));
			if (rand() % 500 < round)
				bytes[rand() % (int)n] = (uint8_t)rand();
			if (rand() % 1000 < round)
				n = 1 + (size_t)rand() % n;
			put(&m, bytes, n);
			for (int i = rand() % 50; i > 0; i--)
				put(&m, BYTES(0x90, LEAP));
		}
		finish(&m, &body);
		assert_int_equal(xp_cfi_mend_blobs(&m.cfi, &m.elf), 0);
		assert_sound(&m.cfi);
		assert_rule("before", xp_cfi_rule_at(&m.cfi, START - 1), &fresh);
		assert_rule("behind", xp_cfi_rule_at(&m.cfi, START + m.code.len), &fresh);
		mended += m.cfi.rows.n > 4;
		release(&m);
	}
	print_message("# %u of 400 blobs got rows\n", mended);
	assert_true(mended > 20);
}

static void hostile_repetitions(void **state)
{
	static const uint8_t parts[][12] = {
		{ 0xe8, 0, 0, 0, 0, RET },		/* calls without end, to different places */
		{ 0x48, 0x89, 0xcc }, { 0x55 }, { 0x5d }, { RET }, { 0x75, 0x00 }, { 0x90, RET },
		{ 0x48, 0x83, 0xec, 0x08 }, { MAKE_FRAME }, { 0x06 },
		{ 0xe9, 0xfb, 0xff, 0xff, 0xff },
	};
	static const size_t sizes[] = { 6, 3, 1, 1, 1, 2, 2, 4, 10, 1, 5 };

	(void)state;
	for (size_t i = 0; i < sizeof(parts) / sizeof(*parts); i++) {
		struct made m = { 0 };

		put(&m, BYTES(MAKE_FRAME, LEAP));
		while (m.code.len + sizes[i] <= 256 << 10)
			put(&m, parts[i], sizes[i]);
		finish(&m, &body);
		assert_int_equal(xp_cfi_mend_blobs(&m.cfi, &m.elf), 0);
		assert_sound(&m.cfi);
		assert_true(m.cfi.rows.n < 600);
		release(&m);
	}
}

/* The rows of .eh_frame alone. */
static void build_plain(struct xp_cfi *cfi, const struct xp_elf *elf)
{
	struct xp_section section;

	assert_true(xp_elf_section(elf, ".eh_frame", &section));
	assert_int_equal(xp_cfi_build_sections(cfi, elf->machine, &section, NULL, NULL), 0);
}

/* They are what libdw says, which reads them as they are. */
static void assert_libdw_agrees(const char *path, const struct xp_cfi *plain)
{
	struct cfi_oracle result = { 0 };
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	Elf *elf;

	assert_true(fd >= 0);
	elf_version(EV_CURRENT);
	elf = elf_begin(fd, ELF_C_READ, NULL);
	assert_non_null(elf);
	assert_int_equal(cfi_oracle_compare(elf, plain, 1000, 20261130, &result), 0);
	if (result.different || result.overlap)
		fail_msg("%s: %s", path, result.first);
	assert_true(result.same > plain->rows.n);
	elf_end(elf);
	close(fd);
}

/* The only function that has got more rows. */
static struct xp_cfi_func changed_function(const struct xp_cfi *plain, const struct xp_cfi *cfi)
{
	struct xp_cfi_func found = { 0 };
	size_t k = 0;

	for (size_t i = 0; i < cfi->rows.n; i++) {
		uint64_t vaddr = cfi->rows.v[i].vaddr;
		const struct xp_cfi_func *func = xp_cfi_func_at(cfi, vaddr);

		if (k < plain->rows.n && plain->rows.v[k].vaddr == vaddr) {
			if (!found.end || vaddr < found.start || vaddr >= found.end)
				assert_rule("old", xp_cfi_rule_at(cfi, vaddr),
					    xp_cfi_rule_at(plain, vaddr));
			k++;
			continue;
		}
		assert_non_null(func);
		assert_true(!found.end || found.start == func->start);
		found = *func;
	}
	assert_int_equal(k, plain->rows.n);
	return found;
}

/* Rows of a blob that are followed by ones of the given rules. */
static unsigned sequences(const struct xp_cfi *cfi, struct xp_cfi_func blob, const int *depths,
			  size_t n)
{
	unsigned found = 0;

	for (size_t i = 0; i + n <= cfi->rows.n; i++) {
		size_t k = 0;

		if (cfi->rows.v[i].vaddr < blob.start || cfi->rows.v[i].vaddr >= blob.end)
			continue;
		while (k < n && cfi->rules.v[cfi->rows.v[i + k].rule].kind == XP_RULE_SP &&
		       cfi->rules.v[cfi->rows.v[i + k].rule].cfa_off == depths[k])
			k++;
		found += k == n;
	}
	return found;
}

/*
 * How many subroutines calls in the blob lead to, by the bytes alone: what looks like a call, to
 * where the rows change or behind a return.
 */
static unsigned called(const struct xp_cfi *cfi, struct xp_cfi_func blob, const uint8_t *code)
{
	const struct xp_rule *body_rule = xp_cfi_rule_at(cfi, blob.start);
	uint64_t size = blob.end - blob.start, seen[32];
	unsigned subs = 0;

	for (uint64_t at = 0; at + 5 <= size; at++) {
		const struct xp_rule *rule;
		unsigned i = 0;
		uint64_t to;
		int32_t rel;

		memcpy(&rel, code + at + 1, 4);
		to = at + 5 + (uint64_t)(int64_t)rel;
		if (code[at] != 0xe8 || to < 1 || to >= size)
			continue;
		rule = xp_cfi_rule_at(cfi, blob.start + to);
		if (rule == body_rule || rule->cfa_off != body_rule->cfa_off + 8 ||
		    (rule == xp_cfi_rule_at(cfi, blob.start + to - 1) && code[to - 1] != RET))
			continue;
		assert_rule("subroutine", rule, &(struct xp_rule)FRAME(88));
		while (i < subs && seen[i] != to)
			i++;
		assert_true(i < 32);
		if (i == subs)
			seen[subs++] = to;
	}
	return subs;
}

struct lost {
	unsigned places;
	uint64_t longest;		/* bytes */
};

static struct lost lost_places(const struct xp_cfi *cfi)
{
	struct lost lost = { 0 };

	for (size_t i = 0; i + 1 < cfi->rows.n; i++) {
		uint64_t size = cfi->rows.v[i + 1].vaddr - cfi->rows.v[i].vaddr;

		if (cfi->rules.v[cfi->rows.v[i].rule].kind != XP_RULE_BAD)
			continue;
		lost.places++;
		if (size > lost.longest)
			lost.longest = size;
	}
	return lost;
}

static void check_luajit(const char *path)
{
	static const int entry[] = { 8, 16, 24, 32, 40, 80 }, leaving[] = { 40, 32, 24, 16, 8 };
	static const int callback[] = { 16, 24, 32, 40, 80 }, trace[] = { 96 };
	struct xp_cfi plain, cfi;
	struct xp_cfi_func blob;
	struct lost lost;
	struct xp_elf *elf;
	const uint8_t *code;
	unsigned subs;
	size_t rows;

	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	build_plain(&plain, elf);
	assert_libdw_agrees(path, &plain);
	build_plain(&cfi, elf);
	assert_int_equal(xp_cfi_mend_blobs(&cfi, elf), 0);
	assert_sound(&cfi);
	rows = cfi.rows.n;
	assert_int_equal(xp_cfi_mend_blobs(&cfi, elf), 0);	/* nothing is left to do */
	assert_int_equal(cfi.rows.n, rows);
	blob = changed_function(&plain, &cfi);
	assert_true(blob.end - blob.start > 12000);
	code = xp_elf_at_vaddr(elf, blob.start, blob.end - blob.start);
	assert_non_null(code);
	subs = called(&cfi, blob, code);
	lost = lost_places(&cfi);
	print_message("# %s: blob 0x%lx to 0x%lx, %zu more rows, %u subroutines\n", path,
		      (unsigned long)blob.start, (unsigned long)blob.end,
		      cfi.rows.n - plain.rows.n, subs);
	assert_true(subs >= 4 && subs <= 6);
	assert_int_equal(sequences(&cfi, blob, entry, 6), 4);
	assert_int_equal(sequences(&cfi, blob, callback, 5), 4 + 1);
	assert_int_equal(sequences(&cfi, blob, leaving, 5), 2);
	assert_int_equal(sequences(&cfi, blob, trace, 1), 1);
	/* The handler of trace exits, and two places that longjmp-like returns come through. */
	assert_int_equal(lost.places - lost_places(&plain).places, 3);
	assert_true(lost.longest > 200 && lost.longest < 400);
	xp_cfi_release(&plain);
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
}

static char **extra_files;

static void luajit(void **state)
{
	static const char *const paths[] = {
		"/usr/lib/x86_64-linux-gnu/libluajit-5.1.so.2", "/usr/lib64/libluajit-5.1.so.2",
		"/usr/bin/luajit",
	};
	unsigned checked = 0;

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		if (access(paths[i], R_OK))
			continue;
		check_luajit(paths[i]);
		checked++;
	}
	for (char **extra = extra_files; *extra; extra++, checked++)
		check_luajit(*extra);
	if (!checked) {
		print_message("# SKIP LuaJIT is not installed\n");
		skip();
	}
}

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(entries_and_exits),
		cmocka_unit_test(neighbours),
		cmocka_unit_test(functions),
		cmocka_unit_test(called_from_both),
		cmocka_unit_test(traces),
		cmocka_unit_test(balanced_push),
		cmocka_unit_test(contradictions),
		cmocka_unit_test(no_functions),
		cmocka_unit_test(not_looked_at),
		cmocka_unit_test(hostile_code),
		cmocka_unit_test(hostile_repetitions),
		cmocka_unit_test(luajit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	extra_files = argv + (argc > 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
