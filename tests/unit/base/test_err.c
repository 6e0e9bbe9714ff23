// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/err: messages, their growth, statuses and the removal of control characters.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"

static void set_stores_message_and_status(void **state)
{
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	assert_int_equal(xp_err_set(&err, ENOENT, "no file %d", 7), -ENOENT);
	assert_string_equal(err.what, "no file 7");
	assert_int_equal(err.status, XP_EXIT_FAILURE);
	assert_int_equal(xp_err_set(&err, EPERM, "x"), -EPERM);
	assert_int_equal(err.status, XP_EXIT_NOPERM);
	assert_int_equal(xp_err_set(&err, EACCES, "x"), -EACCES);
	assert_int_equal(err.status, XP_EXIT_NOPERM);
	xp_err_status(&err, XP_EXIT_USAGE);
	assert_int_equal(err.status, XP_EXIT_USAGE);
}

static void sys_appends_the_reason(void **state)
{
	struct xp_err err = XP_ERR_INIT;
	char want[256];

	(void)state;
	assert_int_equal(xp_err_sys(&err, ENOENT, "open %s", "f"), -ENOENT);
	snprintf(want, sizeof(want), "open f: %s", strerror(ENOENT));
	assert_string_equal(err.what, want);
}

static void set_overwrites_and_clears_the_hint(void **state)
{
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	xp_err_set(&err, EPERM, "first");
	xp_err_hint(&err, "try %s\nor %s", "this", "that");
	assert_string_equal(err.hint, "try this\nor that");
	xp_err_set(&err, EIO, "second: %s", err.what);
	assert_string_equal(err.what, "second: first");
	assert_string_equal(err.hint, "");
	assert_int_equal(err.status, XP_EXIT_FAILURE);
}

static void prepend_adds_context_and_keeps_the_rest(void **state)
{
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	xp_err_set(&err, EPERM, "cannot");
	xp_err_hint(&err, "sudo");
	xp_err_prepend(&err, "pid %d", 12);
	assert_string_equal(err.what, "pid 12: cannot");
	assert_string_equal(err.hint, "sudo");
	assert_int_equal(err.status, XP_EXIT_NOPERM);
}

static void long_messages_are_cut(void **state)
{
	struct xp_err err = XP_ERR_INIT;
	char big[2000];

	(void)state;
	memset(big, 'a', sizeof(big) - 1);
	big[sizeof(big) - 1] = '\0';
	xp_err_sys(&err, EIO, "%s", big);
	assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
	for (int i = 0; i < 3; i++)
		xp_err_prepend(&err, "%s", big);
	assert_int_equal(strlen(err.what), sizeof(err.what) - 1);
	xp_err_hint(&err, "%s", big);
	assert_int_equal(strlen(err.hint), sizeof(err.hint) - 1);
}

static void control_characters_are_taken_out(void **state)
{
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	xp_err_set(&err, EIO, "a\nb\tc\033[2Jd\177e");
	assert_string_equal(err.what, "a b c?[2Jd?e");
	xp_err_hint(&err, "a\nb\033c");
	assert_string_equal(err.hint, "a\nb?c");
	xp_err_prepend(&err, "x\ny");
	assert_string_equal(err.what, "x y: a b c?[2Jd?e");
}

static void null_is_accepted(void **state)
{
	(void)state;
	assert_int_equal(xp_err_set(NULL, EIO, "x"), -EIO);
	assert_int_equal(xp_err_sys(NULL, EIO, "x"), -EIO);
	xp_err_prepend(NULL, "x");
	xp_err_hint(NULL, "x");
	xp_err_status(NULL, XP_EXIT_USAGE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(set_stores_message_and_status),
		cmocka_unit_test(sys_appends_the_reason),
		cmocka_unit_test(set_overwrites_and_clears_the_hint),
		cmocka_unit_test(prepend_adds_context_and_keeps_the_rest),
		cmocka_unit_test(long_messages_are_cut),
		cmocka_unit_test(control_characters_are_taken_out),
		cmocka_unit_test(null_is_accepted),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
