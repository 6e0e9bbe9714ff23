/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/ruby/names: frames of every kind in a made-up process, what the cache keeps and forgets,
 * failing reads. A live Ruby is in test_ruby_live.c.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <time.h>

#include "ruby_heap.h"
#include "runtime/ruby/names.h"

static struct heap h;
static struct xp_profile profile;
static struct xp_ruby_names *names;
static uint64_t id_path, foo, meta_foo, main_iseq, foo_bar;
static uint64_t batch = 1;

static uint64_t iseq(unsigned type, uint64_t parent, uint64_t local, const char *label)
{
	struct heap_iseq q = { .type = type, .parent = parent, .local = local, .label = label,
			       .path = "/app/foo.rb", .line = 10 };

	return heap_iseq(&h, &q);
}

static uint64_t class_named(const char *name)
{
	uint64_t vars[1][2] = { { id_path, heap_string(&h, name) } };

	return heap_class_of(&h, 2, 0, vars, 1);
}

static int setup(void **state)
{
	struct xp_ruby_symbols symbols;
	uint64_t vars[1][2];
	struct xp_mem mem;

	(void)state;
	heap_init(&h);
	id_path = heap_id(&h, "__classpath__");
	foo = class_named("Foo");
	vars[0][0] = heap_id(&h, "__attached__");
	vars[0][1] = foo;
	meta_foo = heap_class_of(&h, 2 | 1 << 12, 0, vars, 1);
	main_iseq = iseq(HEAP_MAIN, 0, 0, "<main>");
	foo_bar = iseq(HEAP_METHOD, 0, 0, "bar");
	mem = heap_mem(&h);
	symbols = heap_symbols(&h);
	batch = 1;
	if (xp_profile_init(&profile))
		return -1;
	return xp_ruby_names_new(&names, xp_ruby_layout_of(3, 1), &symbols, &mem);
}

static int teardown(void **state)
{
	(void)state;
	xp_ruby_names_free(names);
	names = NULL;
	xp_profile_release(&profile);
	heap_release(&h);
	return 0;
}

static uint32_t frame_id(unsigned flags, uint64_t code, uint64_t owner, uint64_t pc)
{
	struct xp_raw_vm_frame raw = { (uint64_t)flags << 48 | code, owner, pc };
	uint32_t id = 0;

	assert_int_equal(xp_ruby_names_frame(names, &raw, false, batch, &profile, &id), 0);
	return id;
}

static const char *str(uint32_t id)
{
	return xp_strings_get(&profile.strings, id).p;
}

/* "kind name file:line" of a frame. */
static const char *text_of(uint32_t id)
{
	static char text[512];
	struct xp_frame f;

	if (id == XP_NO_ID)
		return "nothing";
	assert_true(id < profile.frames.n);
	f = profile.frames.v[id];
	assert_string_equal(str(f.runtime), "ruby");
	assert_true(f.dso == XP_NO_ID && f.addr == 0);
	snprintf(text, sizeof(text), "%s %s %s:%u", xp_frame_kind_name(f.kind), str(f.name),
		 str(f.file), f.line);
	return text;
}

/* Of an iseq, at the end of its word `word`. */
static const char *at_word(unsigned kind, uint64_t which, uint64_t owner, unsigned word)
{
	return text_of(frame_id(kind, heap_body(&h, which), owner,
				heap_code(&h, which) + 8 * word));
}

/* Of an iseq, its name alone. */
static const char *name_of(unsigned kind, uint64_t which, uint64_t owner)
{
	uint32_t id = frame_id(kind, heap_body(&h, which), owner, 0);

	assert_true(id < profile.frames.n);
	return str(profile.frames.v[id].name);
}

static uint64_t definition(const char *name)
{
	uint64_t def = heap_alloc(&h, 48);

	heap_u64(&h, def + 32, heap_id(&h, name));
	return def;
}

static void methods_and_lines(void **state)
{
	(void)state;
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 0),
			    "normal Foo#bar /app/foo.rb:10");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 4),
			    "normal Foo#bar /app/foo.rb:10");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 5),
			    "normal Foo#bar /app/foo.rb:11");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "normal Foo#bar /app/foo.rb:12");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 10),
			    "normal Foo#bar /app/foo.rb:12");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 11),
			    "normal Foo#bar /app/foo.rb:0");
	assert_string_equal(text_of(frame_id(XP_RUBY_METHOD, heap_body(&h, foo_bar), foo, 0)),
			    "normal Foo#bar /app/foo.rb:0");
	assert_string_equal(text_of(frame_id(XP_RUBY_METHOD, heap_body(&h, foo_bar), foo,
					     heap_code(&h, foo_bar) + 4)),
			    "normal Foo#bar /app/foo.rb:0");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, meta_foo, 1),
			    "normal Foo.bar /app/foo.rb:10");
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, 0, 1),
			    "normal bar /app/foo.rb:10");
	/* An owner that is none: the bare name. */
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, 0x7777777770, 1),
			    "normal bar /app/foo.rb:10");
}

static void labels(void **state)
{
	uint64_t block = iseq(HEAP_BLOCK, foo_bar, foo_bar, "block in bar");
	uint64_t inner = iseq(HEAP_BLOCK, block, foo_bar, "block (2 levels) in bar");
	uint64_t rescue = iseq(HEAP_RESCUE, foo_bar, foo_bar, "rescue in bar");
	uint64_t in_rescue = iseq(HEAP_BLOCK, rescue, foo_bar, "block in bar");
	uint64_t ensure = iseq(HEAP_ENSURE, block, foo_bar, "ensure in block in bar");
	uint64_t eval = iseq(HEAP_EVAL, block, foo_bar, "block in bar");
	uint64_t class = iseq(HEAP_CLASS, main_iseq, 0, "<class:Foo>");
	uint64_t in_class = iseq(HEAP_BLOCK, class, class, "block in <class:Foo>");

	(void)state;
	assert_string_equal(name_of(XP_RUBY_BLOCK, block, foo), "block in Foo#bar");
	assert_string_equal(name_of(XP_RUBY_BLOCK, inner, foo), "block (2 levels) in Foo#bar");
	assert_string_equal(name_of(XP_RUBY_RESCUE, rescue, foo), "rescue in Foo#bar");
	assert_string_equal(name_of(XP_RUBY_BLOCK, in_rescue, foo), "block in Foo#bar");
	assert_string_equal(name_of(XP_RUBY_RESCUE, ensure, meta_foo),
			    "ensure in block in Foo.bar");
	assert_string_equal(name_of(XP_RUBY_EVAL, eval, foo), "block in Foo#bar");
	assert_string_equal(name_of(XP_RUBY_BLOCK, block, 0), "block in bar");
	assert_string_equal(name_of(XP_RUBY_CLASS, class, 0), "<class:Foo>");
	assert_string_equal(name_of(XP_RUBY_BLOCK | XP_RUBY_BMETHOD | XP_RUBY_LAMBDA, in_class,
				    foo), "block in <class:Foo>");
	assert_string_equal(name_of(XP_RUBY_EVAL, main_iseq, 0), "<main>");
	assert_string_equal(name_of(XP_RUBY_TOP, iseq(HEAP_TOP, 0, 0, "<top (required)>"), 0),
			    "<top (required)>");
	assert_string_equal(name_of(XP_RUBY_EVAL, iseq(HEAP_EVAL, main_iseq, main_iseq, "<main>"),
				    0), "<main>");
}

static void broken_parents_leave_rubys_label(void **state)
{
	uint64_t block = iseq(HEAP_BLOCK, 4711, foo_bar, "block in bar"), loop, deep = foo_bar;
	uint64_t rescue = iseq(HEAP_RESCUE, HEAP_BASE + HEAP_SIZE - 8, foo_bar, "rescue in bar");

	(void)state;
	assert_string_equal(name_of(XP_RUBY_BLOCK, block, foo), "block in bar");
	assert_string_equal(name_of(XP_RUBY_RESCUE, rescue, foo), "rescue in bar");
	assert_string_equal(name_of(XP_RUBY_BLOCK, iseq(HEAP_BLOCK, 0, 0, "block in x"), foo),
			    "block in x");
	loop = iseq(HEAP_EVAL, foo_bar, foo_bar, "loop");
	heap_u64(&h, heap_body(&h, loop) + 168, loop);
	assert_string_equal(name_of(XP_RUBY_EVAL, loop, foo), "loop");
	for (int i = 0; i < 70; i++)
		deep = iseq(HEAP_BLOCK, deep, foo_bar, "block (70 levels) in bar");
	assert_string_equal(name_of(XP_RUBY_BLOCK, deep, foo), "block (70 levels) in bar");
}

static void paths(void **state)
{
	uint64_t both[2] = { heap_string(&h, "lib/a.rb"), heap_string(&h, "/app/lib/a.rb") };
	struct heap_iseq q = { .type = HEAP_METHOD, .pathobj = heap_array(&h, both, 2),
			       .label = "m", .line = 7 };

	(void)state;
	assert_string_equal(at_word(XP_RUBY_METHOD, heap_iseq(&h, &q), foo, 1),
			    "normal Foo#m lib/a.rb:7");
	q = (struct heap_iseq){ .type = HEAP_METHOD, .label = "tap", .path = "<internal:kernel>" };
	assert_string_equal(at_word(XP_RUBY_METHOD, heap_iseq(&h, &q), foo, 1),
			    "normal Foo#tap <internal:kernel>:0");
}

static void odd_names(void **state)
{
	char big[5001];
	uint32_t id;
	struct heap_iseq q = { .type = HEAP_METHOD, .path = "x;y z.rb" };
	struct xp_str s;

	(void)state;
	q.label_value = heap_string_n(&h, "\xff\xfe;a b\n\0z", 9);
	id = frame_id(XP_RUBY_METHOD, heap_body(&h, heap_iseq(&h, &q)), foo, 0);
	s = xp_strings_get(&profile.strings, profile.frames.v[id].name);
	assert_int_equal(s.n, 13);
	assert_memory_equal(s.p, "Foo#\xff\xfe;a b\n\0z", 13);
	memset(big, 'm', 5000);
	big[5000] = 0;
	q.label_value = heap_string(&h, big);
	id = frame_id(XP_RUBY_METHOD, heap_body(&h, heap_iseq(&h, &q)), foo, 0);
	assert_int_equal(xp_strings_get(&profile.strings, profile.frames.v[id].name).n, 5004);
	q.label_value = heap_string(&h, "");
	assert_string_equal(name_of(XP_RUBY_METHOD, heap_iseq(&h, &q), 0), "[no name]");
}

static void c_functions(void **state)
{
	uint64_t each = definition("each"), sqrt_def = definition("sqrt");

	(void)state;
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, foo, 0)), "cfunc Foo#each :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, sqrt_def, meta_foo, 4711)),
			    "cfunc Foo.sqrt :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, 0, 0)), "cfunc each :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC | XP_RUBY_EP_CUT, 0, 0, 0)),
			    "cfunc [unknown C function] :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_IFUNC, 0x7f1234, 0, 0)),
			    "internal [C block] :0");
}

static void marks_and_dummies(void **state)
{
	(void)state;
	assert_string_equal(text_of(frame_id(XP_RUBY_DUMMY, 0, 0, 0)), "nothing");
	assert_string_equal(text_of(frame_id(XP_RUBY_TORN, 0, 0, 0)),
			    "mark [half-pushed frame] :0");
	assert_string_equal(text_of(frame_id(0, heap_body(&h, foo_bar), 0, 0)),
			    "mark [unknown ruby frame] :0");
	assert_string_equal(text_of(frame_id(13, heap_body(&h, foo_bar), 0, 0)),
			    "mark [unknown ruby frame] :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_METHOD | XP_RUBY_FAULT, 0, 0, 0)),
			    "mark [unknown ruby frame] :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_METHOD, heap_string(&h, "x"), 0, 0)),
			    "mark [unknown ruby frame] :0");
	assert_string_equal(text_of(frame_id(XP_RUBY_METHOD, 0x1000, 0, 0)),
			    "mark [unknown ruby frame] :0");
}

/* JIT code pushes a frame first and sets its iseq a few instructions later. */
static void leaf_without_code(void **state)
{
	struct xp_raw_vm_frame raw = { .code_flags = (uint64_t)XP_RUBY_METHOD << 48 };
	uint64_t cfunc = (uint64_t)XP_RUBY_CFUNC << 48;
	uint32_t id;

	(void)state;
	assert_int_equal(xp_ruby_names_frame(names, &raw, true, batch, &profile, &id), 0);
	assert_string_equal(text_of(id), "mark [half-pushed frame] :0");
	raw.code_flags |= heap_string(&h, "x");
	assert_int_equal(xp_ruby_names_frame(names, &raw, true, batch, &profile, &id), 0);
	assert_string_equal(text_of(id), "mark [half-pushed frame] :0");
	raw.code_flags = cfunc;
	assert_int_equal(xp_ruby_names_frame(names, &raw, true, batch, &profile, &id), 0);
	assert_string_equal(text_of(id), "mark [half-pushed frame] :0");
	raw.code_flags |= (uint64_t)XP_RUBY_EP_CUT << 48;
	assert_int_equal(xp_ruby_names_frame(names, &raw, true, batch, &profile, &id), 0);
	assert_string_equal(text_of(id), "cfunc [unknown C function] :0");
}

static void nameless_class_gets_a_name(void **state)
{
	uint64_t vars[1][2] = { { heap_id(&h, "@later"), 0 } };
	uint64_t class = heap_class_of(&h, 2, 0, vars, 1), ext, st, entries;
	uint64_t each = definition("each");
	char expected[64];

	(void)state;
	snprintf(expected, sizeof(expected), "#<Class:0x%016llx>#bar", (unsigned long long)class);
	assert_string_equal(name_of(XP_RUBY_METHOD, foo_bar, class), expected);
	frame_id(XP_RUBY_CFUNC, each, class, 0);
	batch++;
	assert_string_equal(name_of(XP_RUBY_METHOD, foo_bar, class), expected);
	memcpy(&ext, h.data + (class + 24 - HEAP_BASE), 8);
	memcpy(&st, h.data + (ext + 8 - HEAP_BASE), 8);
	memcpy(&entries, h.data + (st + 48 - HEAP_BASE), 8);
	heap_u64(&h, entries + 32, id_path);
	heap_u64(&h, entries + 40, heap_string(&h, "Named"));
	assert_string_equal(name_of(XP_RUBY_METHOD, foo_bar, class), expected);
	batch++;
	assert_string_equal(name_of(XP_RUBY_METHOD, foo_bar, class), "Named#bar");
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, class, 0)),
			    "cfunc Named#each :0");
}

static void hits_read_nothing(void **state)
{
	uint64_t body = heap_body(&h, foo_bar), each = definition("each");
	uint64_t pc = heap_code(&h, foo_bar) + 8 * 5;
	uint32_t id = frame_id(XP_RUBY_METHOD, body, foo, pc);
	uint32_t c = frame_id(XP_RUBY_CFUNC, each, foo, 0);
	int before = h.reads;

	(void)state;
	assert_int_equal(frame_id(XP_RUBY_METHOD, body, foo, pc), id);
	assert_int_equal(frame_id(XP_RUBY_CFUNC, each, foo, 0), c);
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "normal Foo#bar /app/foo.rb:12");
	assert_int_equal(h.reads, before);
	batch++;
	assert_int_equal(frame_id(XP_RUBY_METHOD, body, foo, pc), id);
	assert_int_equal(h.reads, before + 1);
	assert_int_equal(frame_id(XP_RUBY_CFUNC, each, foo, 0), c);
	assert_int_equal(h.reads, before + 3);
	assert_int_equal(frame_id(XP_RUBY_METHOD, body, foo, pc), id);
	assert_int_equal(h.reads, before + 3);
}

static void reused_memory_is_read_anew(void **state)
{
	static const unsigned fields[] = { 8, 64, 80, 88 };
	uint64_t body = heap_body(&h, foo_bar), each = definition("each");
	uint64_t values[4];

	(void)state;
	values[0] = heap_alloc(&h, 80);
	values[1] = heap_string(&h, "/other.rb");
	values[2] = heap_string(&h, "other");
	values[3] = 99;
	assert_string_equal(name_of(XP_RUBY_METHOD, foo_bar, foo), "Foo#bar");
	for (int i = 0; i < 4; i++) {
		int before = h.reads;

		heap_u64(&h, body + fields[i], values[i]);
		batch++;
		name_of(XP_RUBY_METHOD, foo_bar, foo);
		assert_true(h.reads > before + 3);
	}
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 5),
			    "normal Foo#other /other.rb:11");
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, foo, 0)), "cfunc Foo#each :0");
	heap_u64(&h, each + 32, heap_id(&h, "map"));
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, foo, 0)), "cfunc Foo#each :0");
	batch++;
	assert_string_equal(text_of(frame_id(XP_RUBY_CFUNC, each, foo, 0)), "cfunc Foo#map :0");
}

static void ended_process(void **state)
{
	uint64_t block = iseq(HEAP_BLOCK, foo_bar, foo_bar, "block in bar");
	int reads;

	(void)state;
	at_word(XP_RUBY_METHOD, foo_bar, foo, 5);
	h.gone = true;
	h.error = ESRCH;
	batch += 20;
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "normal Foo#bar /app/foo.rb:12");
	reads = h.reads;
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "normal Foo#bar /app/foo.rb:12");
	assert_int_equal(h.reads, reads);
	assert_string_equal(at_word(XP_RUBY_BLOCK, block, foo, 5),
			    "mark [ruby: process ended before it was named] :0");
	batch++;
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "mark [ruby: process ended before it was named] :0");
	h.gone = false;
	assert_string_equal(at_word(XP_RUBY_METHOD, foo_bar, foo, 8),
			    "normal Foo#bar /app/foo.rb:12");
}

static void every_read_fails_in_turn(void **state)
{
	uint64_t block, each;
	int at;

	(void)state;
	for (at = 1; at < 500 && h.reads >= h.fail_at; at++) {
		const char *text;

		/* A new process each time: nothing is in the cache. */
		teardown(NULL);
		setup(NULL);
		block = iseq(HEAP_BLOCK, foo_bar, foo_bar, "block in bar");
		each = definition("e");
		h.fail_at = at;
		text = at_word(XP_RUBY_BLOCK, block, foo, 5);
		assert_true(strstr(text, "block in ") || strstr(text, "[unknown ruby frame]"));
		text = text_of(frame_id(XP_RUBY_CFUNC, each, foo, 0));
		assert_true(strstr(text, "e :0") || strstr(text, "[unknown ruby frame]"));
	}
	assert_in_range(at, 30, 499);
}

/* Below the heap every 64 bytes are the same: one definition of a method after another. */
static int read_wrapped(const struct xp_mem *mem, uint64_t addr, void *to, size_t n)
{
	struct heap *heap = (struct heap *)mem->data;

	if (addr >= HEAP_BASE)
		return heap_read(mem, addr, to, n);
	heap->reads++;
	memcpy(to, heap->data + 0x100 + addr % 64, n);
	return 0;
}

static void many_entries(void **state)
{
	struct xp_ruby_symbols symbols = heap_symbols(&h);
	struct xp_mem mem = heap_mem(&h);
	struct xp_ruby_names *many;
	struct xp_raw_vm_frame raw = { .owner = 0 };
	uint64_t id = heap_id(&h, "m");
	uint32_t frame;
	int before;

	(void)state;
	mem.read = read_wrapped;
	memcpy(h.data + 0x100 + 32, &id, 8);
	assert_int_equal(xp_ruby_names_new(&many, xp_ruby_layout_of(3, 1), &symbols, &mem), 0);
	for (uint64_t i = 1; i <= 250000; i++) {
		raw.code_flags = (uint64_t)XP_RUBY_CFUNC << 48 | i * 64;
		assert_int_equal(xp_ruby_names_frame(many, &raw, false, i / 1000, &profile,
						     &frame), 0);
		assert_string_equal(text_of(frame), "cfunc m :0");
	}
	/* The recent ones are there, the first are not. */
	before = h.reads;
	assert_int_equal(xp_ruby_names_frame(many, &raw, false, 250, &profile, &frame), 0);
	assert_int_equal(h.reads, before);
	raw.code_flags = (uint64_t)XP_RUBY_CFUNC << 48 | 64;
	assert_int_equal(xp_ruby_names_frame(many, &raw, false, 250, &profile, &frame), 0);
	assert_true(h.reads > before + 1);
	xp_ruby_names_free(many);
}

/* Iseqs whose tables are as long as is allowed: those of the oldest make room. */
static void long_tables(void **state)
{
	uint32_t n = 1u << 20;
	uint64_t positions = heap_alloc(&h, n * 4ul), bodies[20];
	struct xp_ruby_symbols symbols = heap_symbols(&h);
	struct xp_mem mem = heap_mem(&h);
	struct xp_ruby_names *many;

	(void)state;
	mem.read = read_wrapped;
	for (uint32_t i = 0; i < n; i++)
		heap_u32(&h, positions + i * 4ul, i);
	heap_u32(&h, HEAP_BASE + 0x100, 33);
	assert_int_equal(xp_ruby_names_new(&many, xp_ruby_layout_of(3, 1), &symbols, &mem), 0);
	for (int i = 0; i <= 20; i++) {
		struct xp_raw_vm_frame raw;
		uint32_t frame;

		if (i < 20)
			bodies[i] = heap_body(&h, iseq(HEAP_METHOD, 0, 0, "m"));
		heap_u64(&h, bodies[i % 20] + 120, 64);
		heap_u64(&h, bodies[i % 20] + 128, positions);
		heap_u32(&h, bodies[i % 20] + 136, n);
		raw = (struct xp_raw_vm_frame){ 1ull << 48 | bodies[i % 20], 0, 0 };
		memcpy(&raw.pc, h.data + (bodies[i % 20] + 8 - HEAP_BASE), 8);
		h.reads = 0;
		assert_int_equal(xp_ruby_names_frame(many, &raw, false, i, &profile, &frame), 0);
		assert_string_equal(text_of(frame), "normal m /app/foo.rb:33");
		assert_true(h.reads > 100);
	}
	xp_ruby_names_free(many);
}

static void ids_as_text(void **state)
{
	char out[8];

	(void)state;
	heap_op(&h, '+', "+");
	assert_true(xp_ruby_names_id(names, '+', out, sizeof(out)));
	assert_string_equal(out, "+");
	assert_true(xp_ruby_names_id(names, heap_id(&h, "a\nlong one"), out, sizeof(out)));
	assert_string_equal(out, "a long ");
	assert_false(xp_ruby_names_id(names, '-', out, sizeof(out)));
	assert_string_equal(out, "");
	xp_ruby_names_free(NULL);
}

static void a_hit_is_cheap(void **state)
{
	struct xp_raw_vm_frame raw[64];
	struct timespec a, b;
	double ns;
	uint32_t id;

	(void)state;
	for (int i = 0; i < 64; i++) {
		uint64_t q = iseq(HEAP_METHOD, 0, 0, "m");

		raw[i] = (struct xp_raw_vm_frame){ 1ull << 48 | heap_body(&h, q), foo,
						   heap_code(&h, q) + 8 * (i % 10) };
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	for (int i = 0; i < 640000; i++)
		assert_int_equal(xp_ruby_names_frame(names, &raw[i % 64], false, 1, &profile,
						     &id), 0);
	clock_gettime(CLOCK_MONOTONIC, &b);
	ns = ((b.tv_sec - a.tv_sec) * 1e9 + (b.tv_nsec - a.tv_nsec)) / 640000;
	print_message("# %.0f ns for a hit\n", ns);
	/* No system call, no long search: machines and checkers differ by far less than that. */
	assert_true(ns < 5000);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(methods_and_lines),
		TEST(labels),
		TEST(broken_parents_leave_rubys_label),
		TEST(paths),
		TEST(odd_names),
		TEST(c_functions),
		TEST(marks_and_dummies),
		TEST(leaf_without_code),
		TEST(nameless_class_gets_a_name),
		TEST(hits_read_nothing),
		TEST(reused_memory_is_read_anew),
		TEST(ended_process),
		TEST(every_read_fails_in_turn),
		TEST(many_entries),
		TEST(long_tables),
		TEST(ids_as_text),
		TEST(a_hit_is_cheap),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
