// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel symbols: bounds, modules, hidden addresses, odd lines, and this machine's.
 */
#include "target/ksyms.h"

#include <errno.h>
#include <time.h>

#include "build.h"

static struct xp_ksyms *load(const char *text)
{
	struct xp_ksyms *ks;
	struct xp_err err = XP_ERR_INIT;

	build_write("kallsyms", text, strlen(text));
	assert_int_equal(xp_ksyms_new(&ks, build_path("kallsyms"), &err), 0);
	return ks;
}

static void is(const struct xp_ksyms *ks, uint64_t addr, const char *name, const char *module,
	       uint64_t start, uint64_t end)
{
	struct xp_ksym s;

	if (!xp_ksyms_find(ks, addr, &s))
		fail_msg("nothing at %#llx", (unsigned long long)addr);
	assert_string_equal(s.name, name);
	assert_string_equal(s.module, module);
	assert_int_equal(s.start, start);
	assert_int_equal(s.end, end);
}

static void bounds_and_modules(void **state)
{
	struct xp_ksyms *ks = load(
		"0000000000000000 A fixed_percpu_data\n"
		"ffffffff81000000 T _stext\n"
		"ffffffff81000100 t do_one\n"
		"ffffffff81000100 t also_do_one\n"
		"ffffffff81000180 D data_is_no_code\n"
		"ffffffff81000200 W weak_one\n"
		"ffffffff81000300 T _etext\n"
		"ffffffff82000000 T _sinittext\n"
		"ffffffffc0000000 t mod_a\t[nf_tables]\n"
		"ffffffffc0000040 w mod_b\t[nf_tables]\n"
		"ffffffffc0000080 t near\t[other]\n"
		"ffffffffc0800010 t far\t[third]\n"
		"fffffffffffffff0 t last\n");
	struct xp_ksym s;

	(void)state;
	assert_false(xp_ksyms_restricted(ks));
	is(ks, 0xffffffff81000000, "_stext", "[kernel]", 0xffffffff81000000, 0xffffffff81000100);
	is(ks, 0xffffffff810000ff, "_stext", "[kernel]", 0xffffffff81000000, 0xffffffff81000100);
	is(ks, 0xffffffff81000190, "do_one", "[kernel]", 0xffffffff81000100, 0xffffffff81000200);
	is(ks, 0xffffffff810002ff, "weak_one", "[kernel]", 0xffffffff81000200, 0xffffffff81000300);
	assert_false(xp_ksyms_find(ks, 0xffffffff81000300, &s));	/* behind the code */
	assert_false(xp_ksyms_find(ks, 0xffffffff81ffffff, &s));
	is(ks, 0xffffffff82000000, "_sinittext", "[kernel]", 0xffffffff82000000,
	   0xffffffff82001000);						/* no bridge to modules */
	is(ks, 0xffffffffc000003f, "mod_a", "[nf_tables]", 0xffffffffc0000000, 0xffffffffc0000040);
	is(ks, 0xffffffffc0000040, "mod_b", "[nf_tables]", 0xffffffffc0000040, 0xffffffffc0000080);
	is(ks, 0xffffffffc0000fff, "near", "[other]", 0xffffffffc0000080, 0xffffffffc0001000);
	assert_false(xp_ksyms_find(ks, 0xffffffffc0001000, &s));
	is(ks, 0xfffffffffffffffe, "last", "[kernel]", 0xfffffffffffffff0, UINT64_MAX);
	assert_false(xp_ksyms_find(ks, 0, &s));
	assert_false(xp_ksyms_find(ks, 0xffffffff80ffffff, &s));
	xp_ksyms_free(ks);
	xp_ksyms_free(NULL);
}

static void hidden_addresses(void **state)
{
	struct xp_ksyms *ks = load("0000000000000000 T _stext\n0000000000000000 t do_one\n");
	struct xp_ksym s;

	(void)state;
	assert_true(xp_ksyms_restricted(ks));
	assert_false(xp_ksyms_find(ks, 0, &s));
	assert_false(xp_ksyms_find(ks, 0xffffffff81000000, &s));
	xp_ksyms_free(ks);
}

static void odd_lines(void **state)
{
	struct xp_ksyms *ks = load(
		"\n \nffffffff81000000\nffffffff81000000 \nffffffff81000000 T\n"
		"ffffffff81000000 T \n"
		"xyz T a\nfffffffff81000000 T too_long\n ffffffff81000000 T blank\n"
		"ffffffff81000000  T two\nffffffff81001000 t\ttab\nffffffff81002000 t name\t\n"
		"ffffffff81003000 T no_newline");
	struct xp_ksym s;

	(void)state;
	assert_false(xp_ksyms_find(ks, 0xffffffff81000000, &s));
	assert_false(xp_ksyms_find(ks, 0xffffffff81001000, &s));
	is(ks, 0xffffffff81002000, "name", "[kernel]", 0xffffffff81002000, 0xffffffff81003000);
	is(ks, 0xffffffff81003000, "no_newline", "[kernel]", 0xffffffff81003000,
	   0xffffffff81004000);
	xp_ksyms_free(ks);
	ks = load("");
	assert_false(xp_ksyms_restricted(ks));
	assert_false(xp_ksyms_find(ks, 1, &s));
	xp_ksyms_free(ks);
}

static void missing_file(void **state)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_ksyms *ks;

	(void)state;
	assert_int_equal(xp_ksyms_new(&ks, "/nonexistent/kallsyms", &err), -ENOENT);
	assert_null(ks);
	assert_string_equal(err.what,
			    "cannot read /nonexistent/kallsyms: No such file or directory");
}

static void of_this_machine(void **state)
{
	struct timespec a, b;
	struct xp_ksyms *ks;
	struct xp_ksym s;
	struct xp_err err = XP_ERR_INIT;
	char line[256], *end;
	uint64_t addr;

	(void)state;
	clock_gettime(CLOCK_MONOTONIC, &a);
	if (xp_ksyms_new(&ks, NULL, &err))
		SKIP("%s", err.what);
	clock_gettime(CLOCK_MONOTONIC, &b);
	print_message("# /proc/kallsyms read in %.1f ms\n", (double)(b.tv_sec - a.tv_sec) * 1e3 +
		      (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	if (xp_ksyms_restricted(ks)) {
		xp_ksyms_free(ks);
		SKIP("kernel.kptr_restrict hides the addresses");
	}
	build_output("grep -m1 ' [tT] vfs_read$' /proc/kallsyms", line, sizeof(line));
	addr = strtoull(line, &end, 16);
	if (addr) {
		assert_true(xp_ksyms_find(ks, addr + 3, &s));
		assert_int_equal(s.start, addr);
		assert_string_equal(s.name, "vfs_read");
		assert_string_equal(s.module, "[kernel]");
		assert_true(s.end > addr + 3 && s.end < addr + 65536);
	}
	xp_ksyms_free(ks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(bounds_and_modules),
		cmocka_unit_test(hidden_addresses),
		cmocka_unit_test(odd_lines),
		cmocka_unit_test(missing_file),
		cmocka_unit_test(of_this_machine),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
