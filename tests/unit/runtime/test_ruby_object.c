/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/ruby/object: strings, arrays, IDs and names of classes in a made-up process; every read
 * failing in turn, lengths that lie, chains without end.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>

#include "ruby_heap.h"

static struct heap h;
static struct xp_ruby_objects o;
static struct xp_buf text;
static uint64_t id_path, id_tmp, id_attached, id_refined, id_defined;

static int setup(void **state)
{
	(void)state;
	heap_init(&h);
	heap_op(&h, '+', "+");
	heap_id(&h, "@something");
	id_path = heap_id(&h, "__classpath__");
	id_tmp = heap_id(&h, "__tmp_classpath__");
	id_attached = heap_id(&h, "__attached__");
	id_refined = heap_id(&h, "__refined_class__");
	id_defined = heap_id(&h, "__defined_at__");
	o = heap_objects(&h);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	heap_release(&h);
	xp_buf_release(&text);
	return 0;
}

static const char *said(int r)
{
	static char out[128];

	if (r)
		return r == -EINVAL ? "EINVAL" : r == -EFAULT ? "EFAULT" : "other";
	assert_true(text.len < sizeof(out));
	memcpy(out, text.data ? text.data : (uint8_t *)"", text.len);
	out[text.len] = 0;
	return out;
}

static const char *string_of(uint64_t value)
{
	xp_buf_clear(&text);
	return said(xp_ruby_string(&o, value, &text));
}

static const char *id_of(uint64_t id)
{
	xp_buf_clear(&text);
	return said(xp_ruby_id(&o, id, &text));
}

static struct xp_ruby_class_kind kind;

static const char *class_of(uint64_t class)
{
	xp_buf_clear(&text);
	return said(xp_ruby_class(&o, class, &text, &kind));
}

static uint64_t named(unsigned type, const char *name)
{
	uint64_t vars[1][2] = { { id_path, heap_string(&h, name) } };

	return heap_class_of(&h, type, 0, vars, 1);
}

static uint64_t singleton(uint64_t of, uint64_t super)
{
	uint64_t vars[2][2] = { { heap_id(&h, "@x"), 3 }, { id_attached, of } };

	return heap_class_of(&h, 2 | 1 << 12, super, vars, 2);
}

static void strings(void **state)
{
	char big[100000];

	(void)state;
	assert_string_equal(string_of(heap_string(&h, "")), "");
	assert_string_equal(string_of(heap_string(&h, "short")), "short");
	assert_string_equal(string_of(heap_string(&h, "exactly 23 bytes, yes..")),
			    "exactly 23 bytes, yes..");
	assert_string_equal(string_of(heap_string(&h, "of more than 23 bytes: on the heap")),
			    "of more than 23 bytes: on the heap");
	memset(big, 'x', sizeof(big));
	xp_buf_clear(&text);
	assert_int_equal(xp_ruby_string(&o, heap_string_n(&h, big, sizeof(big)), &text), 0);
	assert_int_equal(text.len, XP_RUBY_TEXT_MAX);
	assert_string_equal(string_of(heap_array(&h, NULL, 0)), "EINVAL");
	assert_string_equal(string_of(8), "EINVAL");
	assert_string_equal(string_of(4097), "EINVAL");
	assert_string_equal(string_of(0x123456780), "EFAULT");
}

static void strings_that_lie(void **state)
{
	uint64_t s = heap_string(&h, "of more than 23 bytes: on the heap");

	(void)state;
	heap_u64(&h, s + 16, UINT64_MAX);
	heap_u64(&h, s + 24, HEAP_BASE + HEAP_SIZE - 5000);
	assert_string_equal(string_of(s), "EFAULT");
	assert_int_equal(text.len, 0);
	heap_u64(&h, s + 24, UINT64_MAX - 3);
	assert_string_equal(string_of(s), "EFAULT");
	/* 31 bytes in a slot that has 24. */
	s = heap_object(&h, 5 | 31 << 14, 0);
	assert_string_equal(string_of(s), "EINVAL");
}

static void later_strings(void **state)
{
	struct xp_ruby_layout later = *xp_ruby_layout_of(3, 1);
	uint64_t s = heap_alloc(&h, 80);

	(void)state;
	later.string_len_in_flags = false;
	o.layout = &later;
	heap_u64(&h, s, 5);
	heap_u64(&h, s + 16, 30);
	heap_bytes(&h, s + 24, "embedded in a bigger slot, 3.2 and so on", 40);
	assert_string_equal(string_of(s), "embedded in a bigger slot, 3.2");
}

static void arrays(void **state)
{
	uint64_t v[5] = { 11, 22, 33, 44, 55 }, got = 0, a;

	(void)state;
	a = heap_array(&h, v, 2);
	assert_int_equal(xp_ruby_element(&o, a, 1, &got), 0);
	assert_int_equal(got, 22);
	assert_int_equal(xp_ruby_element(&o, a, 2, &got), -EINVAL);
	a = heap_array(&h, v, 5);
	assert_int_equal(xp_ruby_element(&o, a, 4, &got), 0);
	assert_int_equal(got, 55);
	assert_int_equal(xp_ruby_element(&o, a, 5, &got), -EINVAL);
	heap_u64(&h, a + 16, UINT64_MAX);
	assert_int_equal(xp_ruby_element(&o, a, UINT64_MAX / 8, &got), -EINVAL);
	assert_int_equal(xp_ruby_element(&o, a, UINT64_MAX / 16, &got), -EFAULT);
	assert_int_equal(xp_ruby_element(&o, heap_string(&h, "x"), 0, &got), -EINVAL);
}

static void ids(void **state)
{
	uint64_t last = 0;

	(void)state;
	assert_string_equal(id_of('+'), "+");
	assert_string_equal(id_of(id_path), "__classpath__");
	/* Over the border of an array of 512. */
	while (h.serial < 520)
		last = heap_id(&h, h.serial % 2 ? "odd" : "even");
	assert_int_equal(last >> 4, 519);
	assert_string_equal(id_of(last), "odd");
	assert_string_equal(id_of(UINT64_MAX), "EINVAL");
	assert_string_equal(id_of(100 << 4), "EINVAL");
}

static void classes(void **state)
{
	uint64_t foo = named(2, "Foo::Bar"), mod = named(3, "Mod"), iclass;

	(void)state;
	assert_string_equal(class_of(foo), "Foo::Bar");
	assert_false(kind.singleton || kind.temporary);
	iclass = heap_object(&h, 0x1c, mod);
	assert_string_equal(class_of(iclass), "Mod");
	assert_string_equal(class_of(singleton(foo, 0)), "Foo::Bar");
	assert_true(kind.singleton && !kind.temporary);
	assert_string_equal(class_of(singleton(mod, 0)), "Mod");
	assert_true(kind.singleton);
	assert_string_equal(class_of(singleton(singleton(foo, 0), 0)), "#<Class:Foo::Bar>");
	assert_string_equal(class_of(singleton(singleton(singleton(foo, 0), 0), 0)),
			    "#<Class:#<Class:Foo::Bar>>");
	assert_string_equal(class_of(heap_string(&h, "no class")), "EINVAL");
	assert_string_equal(class_of(0), "EINVAL");
}

static void singletons_of_objects(void **state)
{
	uint64_t foo = named(2, "Foo"), object = heap_object(&h, 1, 0), mixed;

	(void)state;
	assert_string_equal(class_of(singleton(object, foo)), "#<Foo>");
	assert_true(kind.singleton);
	/* obj.extend(Mod): the module stands between. */
	mixed = heap_object(&h, 0x1c, named(3, "Mod"));
	heap_u64(&h, mixed + 16, foo);
	assert_string_equal(class_of(singleton(object, mixed)), "#<Foo>");
	assert_string_equal(class_of(singleton(object, 0)), "EINVAL");
	assert_string_equal(class_of(singleton(4, foo)), "EINVAL");
}

static void classes_without_name(void **state)
{
	uint64_t none = heap_class_of(&h, 2, 0, NULL, 0), module = heap_class_of(&h, 3, 0, NULL, 0);
	uint64_t vars[2][2] = { { id_tmp, heap_string(&h, "#<Class:0x0001>::In") } };
	char expected[64];

	(void)state;
	snprintf(expected, sizeof(expected), "#<Class:0x%016llx>", (unsigned long long)none);
	assert_string_equal(class_of(none), expected);
	assert_true(kind.temporary && !kind.singleton);
	assert_string_equal(class_of(singleton(none, 0)), expected);
	assert_true(kind.temporary && kind.singleton);
	snprintf(expected, sizeof(expected), "#<Module:0x%016llx>", (unsigned long long)module);
	assert_string_equal(class_of(module), expected);
	assert_string_equal(class_of(heap_class_of(&h, 2, 0, vars, 1)), "#<Class:0x0001>::In");
	assert_true(kind.temporary);
	vars[0][0] = id_refined;
	vars[0][1] = named(2, "String");
	vars[1][0] = id_defined;
	vars[1][1] = named(3, "Ours");
	assert_string_equal(class_of(heap_class_of(&h, 3, 0, vars, 2)),
			    "#<refinement:String@Ours>");
	/* A path that is no string. */
	vars[0][0] = id_path;
	snprintf(expected, sizeof(expected), "#<Class:0x");
	assert_memory_equal(class_of(heap_class_of(&h, 2, 0, vars, 1)), expected, 10);
}

static void names_in_members(void **state)
{
	struct xp_ruby_layout later = *xp_ruby_layout_of(3, 1);
	uint64_t foo = heap_alloc(&h, 200), single = heap_alloc(&h, 200);

	(void)state;
	later.class_ext_ptr = 0;
	later.class_ext = 32;
	later.ext_iv_tbl = 0;
	later.ext_classpath = 120;
	later.ext_attached = 96;
	o.layout = &later;
	heap_u64(&h, foo, 2);
	heap_u64(&h, foo + 152, heap_string(&h, "Foo"));
	heap_u64(&h, single, 2 | 1 << 12);
	heap_u64(&h, single + 128, foo);
	assert_string_equal(class_of(foo), "Foo");
	assert_string_equal(class_of(single), "Foo");
	assert_true(kind.singleton);
	heap_u64(&h, foo + 152, 4);
	assert_memory_equal(class_of(foo), "#<Class:0x", 10);
}

static void endless_chains(void **state)
{
	uint64_t a = singleton(0, 0), b = singleton(a, 0), iclass = heap_object(&h, 0x1c, 0), ext;
	uint64_t foo = named(2, "Foo"), st;

	(void)state;
	heap_u64(&h, iclass + 8, iclass);
	heap_u64(&h, iclass + 16, iclass);
	assert_string_equal(class_of(iclass), "EINVAL");
	assert_string_equal(class_of(singleton(heap_object(&h, 1, 0), iclass)), "EINVAL");
	/* a is attached to b, b to a. */
	memcpy(&ext, h.data + (a + 24 - HEAP_BASE), 8);
	memcpy(&st, h.data + (ext + 8 - HEAP_BASE), 8);
	memcpy(&ext, h.data + (st + 48 - HEAP_BASE), 8);
	heap_u64(&h, ext + 64, b);
	assert_string_equal(class_of(a), "EINVAL");
	assert_int_equal(text.len, 0);
	/* A table that says it has very many variables. */
	memcpy(&ext, h.data + (foo + 24 - HEAP_BASE), 8);
	memcpy(&st, h.data + (ext + 8 - HEAP_BASE), 8);
	heap_u64(&h, st + 40, UINT64_MAX);
	h.reads = 0;
	class_of(foo);
	assert_true(h.reads < 20000);
}

static void every_read_fails_in_turn(void **state)
{
	uint64_t class = singleton(heap_object(&h, 1, 0), named(2, "Foo"));
	int fails = 0;

	(void)state;
	for (int at = 1; at < 1000; at++) {
		const char *said_now;

		o = heap_objects(&h);
		h.reads = 0;
		h.fail_at = at;
		said_now = class_of(class);
		if (h.reads < at)
			break;
		if (!strcmp(said_now, "EFAULT"))
			fails++;
		else
			assert_true(!strncmp(said_now, "#<", 2) || !strcmp(said_now, "EINVAL"));
		assert_true(!strncmp(said_now, "#<", 2) || text.len == 0);
	}
	h.fail_at = 0;
	assert_true(fails > 10);
	assert_string_equal(class_of(class), "#<Foo>");
}

static void check_words(void **state)
{
	uint64_t foo = named(2, "Foo"), before[2], after[2];

	(void)state;
	assert_int_equal(xp_ruby_class_check(&o, foo, before), 0);
	assert_int_equal(xp_ruby_class_check(&o, foo, after), 0);
	assert_memory_equal(before, after, sizeof(before));
	heap_u64(&h, foo + 24, 4711);
	assert_int_equal(xp_ruby_class_check(&o, foo, after), 0);
	assert_memory_not_equal(before, after, sizeof(before));
	assert_int_equal(xp_ruby_class_check(&o, 8, after), -EINVAL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(strings),
		TEST(strings_that_lie),
		TEST(later_strings),
		TEST(arrays),
		TEST(ids),
		TEST(classes),
		TEST(singletons_of_objects),
		TEST(classes_without_name),
		TEST(names_in_members),
		TEST(endless_chains),
		TEST(every_read_fails_in_turn),
		TEST(check_words),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
