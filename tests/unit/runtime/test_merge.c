/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/merge: order of the parts, places of the marks.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <string.h>

#include "../profile/sample_profile.h"
#include "runtime/merge.h"

static struct xp_profile profile;
static uint32_t user[3], kernel[2], root_mark, kernel_mark;

static int setup(void **state)
{
	static const char *const users[] = { "leaf", "middle", "main" };
	static const char *const kernels[] = { "irq", "entry" };

	(void)state;
	if (xp_profile_init(&profile))
		return -1;
	for (int i = 0; i < 3; i++)
		user[i] = make_frame(&profile, "native", users[i], XP_FRAME_NORMAL, "/bin/x",
				     "", 0);
	for (int i = 0; i < 2; i++)
		kernel[i] = make_frame(&profile, "kernel", kernels[i], XP_FRAME_KERNEL, "[kernel]",
				       "", 0);
	root_mark = make_frame(&profile, "", "[cut]", XP_FRAME_MARK, NULL, "", 0);
	kernel_mark = make_frame(&profile, "", "[kernel cut]", XP_FRAME_MARK, NULL, "", 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xp_profile_release(&profile);
	return 0;
}

/* The stack's frame names, root first. */
static const char *text_of(uint32_t stack)
{
	static char text[512];
	uint32_t path[16], n = 0;

	for (; stack != XP_NO_ID && n < 16; stack = profile.stacks.v[stack].parent)
		path[n++] = profile.stacks.v[stack].frame;
	text[0] = 0;
	while (n--) {
		strcat(text, xp_strings_get(&profile.strings, profile.frames.v[path[n]].name).p);
		strcat(text, n ? ";" : "");
	}
	return text;
}

static const char *merged(size_t nnative, size_t nkernel, uint32_t root, uint32_t between)
{
	struct xp_parts parts = { user, nnative, kernel, nkernel, root, between };
	uint32_t stack = 12345;

	assert_int_equal(xp_merge(&profile, &parts, &stack), 0);
	return stack == XP_NO_ID ? "nothing" : text_of(stack);
}

static void parts_are_in_order(void **state)
{
	(void)state;
	assert_string_equal(merged(3, 2, XP_NO_ID, XP_NO_ID), "main;middle;leaf;entry;irq");
	assert_string_equal(merged(3, 0, XP_NO_ID, XP_NO_ID), "main;middle;leaf");
	assert_string_equal(merged(1, 0, XP_NO_ID, XP_NO_ID), "leaf");
	assert_string_equal(merged(0, 2, XP_NO_ID, XP_NO_ID), "entry;irq");
	assert_string_equal(merged(0, 0, XP_NO_ID, XP_NO_ID), "nothing");
}

static void marks_stand_where_frames_are_missing(void **state)
{
	(void)state;
	assert_string_equal(merged(2, 2, root_mark, kernel_mark),
			    "[cut];middle;leaf;[kernel cut];entry;irq");
	assert_string_equal(merged(2, 2, root_mark, XP_NO_ID), "[cut];middle;leaf;entry;irq");
	assert_string_equal(merged(2, 2, XP_NO_ID, kernel_mark),
			    "middle;leaf;[kernel cut];entry;irq");
	assert_string_equal(merged(2, 0, XP_NO_ID, kernel_mark), "middle;leaf;[kernel cut]");
	assert_string_equal(merged(0, 0, root_mark, XP_NO_ID), "[cut]");
	assert_string_equal(merged(0, 0, root_mark, kernel_mark), "[cut];[kernel cut]");
}

/* The same parts are the same stack, and a common root costs nothing. */
static void stacks_are_shared(void **state)
{
	struct xp_parts parts = { user, 3, kernel, 2, XP_NO_ID, XP_NO_ID };
	uint32_t a, b, shorter;
	size_t n;

	(void)state;
	assert_int_equal(xp_merge(&profile, &parts, &a), 0);
	n = profile.stacks.n;
	assert_int_equal(n, 5);
	assert_int_equal(xp_merge(&profile, &parts, &b), 0);
	assert_int_equal(a, b);
	parts.nkernel = 0;
	assert_int_equal(xp_merge(&profile, &parts, &shorter), 0);
	assert_int_not_equal(shorter, a);
	assert_int_equal(profile.stacks.n, n);
}

/* A frame that is not there is refused, not followed. */
static void wrong_frames(void **state)
{
	const uint32_t bad[] = { (uint32_t)profile.frames.n };
	struct xp_parts parts = { bad, 1, NULL, 0, XP_NO_ID, XP_NO_ID };
	uint32_t stack;

	(void)state;
	assert_true(xp_merge(&profile, &parts, &stack) < 0);
	assert_int_equal(profile.stacks.n, 0);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(parts_are_in_order),
		TEST(marks_stand_where_frames_are_missing),
		TEST(stacks_are_shared),
		TEST(wrong_frames),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
