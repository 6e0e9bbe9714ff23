// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Demangling: C++, both Rust schemes, what is not mangled, and names made to hurt.
 */
#include "target/demangle.h"

#include "build.h"

static void is(const char *name, const char *want)
{
	char *got = xp_demangle(name);

	if (want && !got)
		fail_msg("%s was left", name);
	if (want)
		assert_string_equal(got, want);
	else
		assert_null(got);
	free(got);
}

static void cplusplus(void **state)
{
	(void)state;
	is("_ZN2ns3FooIiE3barEiPKc", "ns::Foo<int>::bar(int, char const*)");
	is("_ZSt4sortIPiEvT_S1_", "void std::sort<int*>(int*, int*)");
	is("_ZNSt6vectorIiSaIiEE9push_backEOi",
	   "std::vector<int, std::allocator<int> >::push_back(int&&)");
	is("_ZZ4mainENKUlvE_clEv", "main::{lambda()#1}::operator()() const");
	is("_ZN3fooC2Ev", "foo::foo()");
	is("_ZN3foo3barEv.cold", "foo::bar() [clone .cold]");
	is("_ZN3foo3barEv.constprop.0", "foo::bar() [clone .constprop.0]");
	is("_ZTV3foo", "vtable for foo");
}

static void rust(void **state)
{
	(void)state;
	is("_ZN4core3fmt9Formatter9write_str17h0123456789abcdefE",
	   "core::fmt::Formatter::write_str");
	is("_ZN72_$LT$alloc..vec..Vec$LT$T$GT$$u20$as$u20$core..iter..Extend$LT$T$GT$$GT$6extend"
	   "17h0123456789abcdefE",
	   "<alloc::vec::Vec<T> as core::iter::Extend<T>>::extend");
	is("_RNvCs15kBYyAo9fc_7mycrate7example", "mycrate::example");
	is("_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>");
}

static void others_are_left(void **state)
{
	(void)state;
	is("main", NULL);
	is("", NULL);
	is(NULL, NULL);
	is("_Z", NULL);
	is("_R", NULL);
	is("_Zork", NULL);
	is("_ZN", NULL);
	is("rb_vm_exec", NULL);
	is("_RUBY_method", NULL);
	is("memcpy@plt", NULL);
}

/* Deep nesting, long names, substitutions that double: an answer or none, but no harm. */
static void hostile_names(void **state)
{
	enum { N = 16 << 10 };
	static char name[N + 16];
	char *got;

	(void)state;
	memset(name, 'P', N - 1);		/* pointers to pointers to ... */
	memcpy(name, "_Z1f", 4);
	free(xp_demangle(name));
	memset(name + 4, 'X', N - 5);		/* nested expressions */
	free(xp_demangle(name));
	memset(name, 'N', N - 1);
	memcpy(name, "_ZN", 3);
	free(xp_demangle(name));
	memset(name, 'I', N - 1);
	memcpy(name, "_RI", 3);
	free(xp_demangle(name));
	memset(name, 'R', N - 1);
	memcpy(name, "_RYR", 4);
	free(xp_demangle(name));
	memset(name, 'a', N + 10);		/* too long: left */
	memcpy(name, "_Z9999", 6);
	assert_null(xp_demangle(name));

	/* Each pair holds the one before twice. */
	strcpy(name, "_Z1fSt4pairIiiE");
	for (int i = 0; i < 40; i++) {
		char number[8] = "";

		if (i >= 10)
			snprintf(number, sizeof(number), "%c", 'A' + i - 10);
		else
			snprintf(number, sizeof(number), "%d", i);
		sprintf(name + strlen(name), "St4pairIS%s_S%s_E", number, number);
	}
	got = xp_demangle(name);
	assert_true(!got || strlen(got) <= 64 << 10);
	free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cplusplus),
		cmocka_unit_test(rust),
		cmocka_unit_test(others_are_left),
		cmocka_unit_test(hostile_names),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
