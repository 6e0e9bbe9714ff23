// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/optval: every kind of value, its limits, and what a person may type by accident.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/optval.h"

static char why[XP_OPT_WHY];

static void numbers_have_limits(void **state)
{
	static const char *const bad[] = { "", "0", "101", "-1", "+5", " 5", "5 ", "0x5", "5k",
					   "4294967297", "99999999999999999999999", "five" };
	unsigned v = 7;
	struct xp_opt o = { .type = XP_OPT_UINT, .dest = &v, .min = 1, .max = 100 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_not_equal(xp_opt_value(&o, bad[i], why), 0);
		assert_string_equal(why, "must be a number from 1 to 100");
		assert_int_equal(v, 7);
	}
	assert_int_equal(xp_opt_value(&o, "1", why), 0);
	assert_int_equal(v, 1);
	assert_int_equal(xp_opt_value(&o, "100", why), 0);
	assert_int_equal(v, 100);
	assert_int_equal(xp_opt_value(&o, "010", why), 0);	/* not octal */
	assert_int_equal(v, 10);
	o.max = UINT_MAX;
	assert_int_equal(xp_opt_value(&o, "4294967295", why), 0);
	assert_int_equal(v, UINT_MAX);
	assert_int_not_equal(xp_opt_value(&o, "4294967296", why), 0);
}

static void durations_have_units(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10", 10000000000 }, { "1.5", 1500000000 }, { "10s", 10000000000 },
		{ "2m", 120000000000 }, { "1h", 3600000000000 }, { "500ms", 500000000 },
		{ "0.5m", 30000000000 }, { "7us", 7000 }, { "1ns", 1 }, { "2min", 120000000000 },
		{ "0.0000000019", 1 }, { "876000h", 3153600000000000000 },
	};
	static const char *const bad[] = { "", "0", "0s", "0.0", "s", ".5", "1.", "1.s", "-1", "1 s",
					   "1d", "1S", "1sx", "1e3", "99999999999", "877000h",
					   "0.0000000001", "1,5" };
	uint64_t v = 3;
	struct xp_opt o = { .type = XP_OPT_DURATION, .dest = &v };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (!xp_opt_value(&o, bad[i], why))
			fail_msg("'%s' was accepted", bad[i]);
		assert_int_equal(v, 3);
	}
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_int_equal(xp_opt_value(&o, good[i].text, why), 0);
		assert_true(v == good[i].ns);
	}
}

static void rates_know_k_and_max(void **state)
{
	static const char *const bad[] = { "", "0", "10001", "11k", "k", "1kk", "1.5k", "maximum",
					   "-1", "99 " };
	unsigned v = 7, kernel = 0;
	struct xp_opt o = { .type = XP_OPT_FREQUENCY, .dest = &v, .min = 1, .max = 10000 };
	FILE *f = fopen("/proc/sys/kernel/perf_event_max_sample_rate", "r");

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		assert_int_not_equal(xp_opt_value(&o, bad[i], why), 0);
		assert_string_equal(why, "must be a rate from 1 to 10000 Hz, or max");
		assert_int_equal(v, 7);
	}
	assert_int_equal(xp_opt_value(&o, "99", why), 0);
	assert_int_equal(v, 99);
	assert_int_equal(xp_opt_value(&o, "2k", why), 0);
	assert_int_equal(v, 2000);
	assert_int_equal(xp_opt_value(&o, "10K", why), 0);
	assert_int_equal(v, 10000);
	assert_int_equal(xp_opt_value(&o, "max", why), 0);
	if (f) {
		assert_int_equal(fscanf(f, "%u", &kernel), 1);
		fclose(f);
		assert_int_equal(v, kernel < 10000 ? kernel : 10000);
	} else {
		assert_int_equal(v, 10000);
	}
	o.min = o.max = 5;
	assert_int_equal(xp_opt_value(&o, "max", why), 0);
	assert_int_equal(v, 5);
}

static void pids_are_decimal_and_listed_once(void **state)
{
	static const char *const bad[] = { "", ",", "1,", ",1", "1,,2", "0", "-1", "1 2", "0x10",
					   "2147483648", "7,a", "self", "8;9" };
	struct xp_opt_pids v = { 0 };
	struct xp_opt o = { .type = XP_OPT_PIDS, .dest = &v };
	char many[4000] = "1";

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (!xp_opt_value(&o, bad[i], why))
			fail_msg("'%s' was accepted", bad[i]);
		assert_int_equal(v.n, 0);
	}
	assert_int_equal(xp_opt_value(&o, "12,34,12", why), 0);
	assert_int_equal(xp_opt_value(&o, "2147483647,34", why), 0);
	assert_int_equal(v.n, 3);
	assert_int_equal(v.v[0], 12);
	assert_int_equal(v.v[1], 34);
	assert_int_equal(v.v[2], INT_MAX);
	assert_int_not_equal(xp_opt_value(&o, "56,", why), 0);
	assert_int_equal(v.n, 3);
	for (int i = 2; i < 500; i++)
		sprintf(many + strlen(many), ",%d", i);
	v.n = 0;
	assert_int_equal(xp_opt_value(&o, many, why), 0);
	assert_int_equal(v.n, 499);
	assert_int_equal(v.v[498], 499);
	free(v.v);
}

static void choices_are_listed(void **state)
{
	static const char *const three[] = { "table", "folded", "tree", NULL };
	static const char *const one[] = { "only", NULL };
	int v = 9;
	struct xp_opt o = { .type = XP_OPT_CHOICE, .dest = &v, .choices = three };

	(void)state;
	assert_int_equal(xp_opt_value(&o, "tree", why), 0);
	assert_int_equal(v, 2);
	assert_int_not_equal(xp_opt_value(&o, "tabl", why), 0);
	assert_string_equal(why, "must be table, folded or tree");
	assert_int_equal(v, 2);
	o.choices = one;
	assert_int_not_equal(xp_opt_value(&o, "", why), 0);
	assert_string_equal(why, "must be only");
}

static void texts_are_taken_as_they_are(void **state)
{
	const char *v = NULL, *text = "any thing";
	struct xp_opt o = { .type = XP_OPT_STRING, .dest = &v };

	(void)state;
	assert_int_equal(xp_opt_value(&o, text, why), 0);
	assert_ptr_equal(v, text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(numbers_have_limits),
		cmocka_unit_test(durations_have_units),
		cmocka_unit_test(rates_know_k_and_max),
		cmocka_unit_test(pids_are_decimal_and_listed_once),
		cmocka_unit_test(choices_are_listed),
		cmocka_unit_test(texts_are_taken_as_they_are),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
