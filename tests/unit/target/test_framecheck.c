/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps by frame pointer: which are believed, on a program of hand-written functions.
 */
#include "target/framecheck.h"

#include "build.h"

static const char assembly[] =
	".text\n"
	".globl keeps, go_like, bare, short_jump, main\n"
	".type keeps,@function\n"
	"keeps:\n"			/* push; mov; call; pop; ret */
	"	push %rbp\n"
	"	mov %rsp,%rbp\n"
	".globl keeps_in\nkeeps_in:\n"
	"	call bare\n"
	".globl keeps_after\nkeeps_after:\n"
	"	pop %rbp\n"
	".globl keeps_ret\nkeeps_ret:\n"
	"	ret\n"
	".size keeps,.-keeps\n"
	".type go_like,@function\n"
	"go_like:\n"
	"	sub $24,%rsp\n"
	"	mov %rbp,16(%rsp)\n"
	"	lea 16(%rsp),%rbp\n"
	".globl go_in\ngo_in:\n"
	"	call *%rax\n"
	".globl go_after\ngo_after:\n"
	"	add $24,%rsp\n"
	"	ret\n"
	".size go_like,.-go_like\n"
	".type bare,@function\n"
	"bare:\n"
	"	xor %eax,%eax\n"
	".globl bare_in\nbare_in:\n"
	"	nop\n"
	"	ret\n"
	".size bare,.-bare\n"
	".type main,@function\n"
	"main:\n"
	"	mov $60,%eax\n"
	"	xor %edi,%edi\n"
	"	call *8(%rsp)\n"
	".globl main_after\nmain_after:\n"
	"	nop\n"
	".size main,.-main\n";

static uint64_t address(const char *path, const char *name)
{
	char command[256], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name);
	f = popen(command, "r");
	assert_non_null(f);
	assert_non_null(fgets(line, sizeof(line), f));
	pclose(f);
	return strtoull(line, NULL, 16);
}

struct program {
	struct xp_dsos *dsos;
	struct xp_dso *dso;
	const char *path;
};

static struct program open_program(void)
{
	struct program p;
	char command[512];

	if (!build_have("cc") || !build_have("nm"))
		SKIP("no compiler or nm");
	build_write("frames.S", assembly, sizeof(assembly) - 1);
	p.path = build_path("frames");
	snprintf(command, sizeof(command), "cc -o '%s' '%s' -no-pie -Wl,-z,noexecstack", p.path,
		 build_path("frames.S"));
	assert_int_equal(system(command), 0);
	p.dsos = xp_dsos_new();
	assert_non_null(p.dsos);
	p.dso = xp_dsos_get_path(p.dsos, p.path, NULL);
	assert_non_null(p.dso);
	return p;
}

static void believes_only_a_frame_that_is_set_up(void **state)
{
	struct program p = open_program();

	(void)state;
#define SET_UP(name, exact) xp_frame_is_set_up(p.dso, address(p.path, name), exact)
	assert_false(SET_UP("keeps", true));		/* before the push */
	assert_true(SET_UP("keeps_in", true));
	assert_true(SET_UP("keeps_after", true));	/* at the pop: still there */
	assert_true(SET_UP("keeps_after", false));
	assert_false(SET_UP("keeps_ret", true));	/* already popped */
	assert_false(SET_UP("go_like", true));
	assert_true(SET_UP("go_in", true));
	assert_true(SET_UP("go_after", false));
	assert_false(SET_UP("bare", true));
	assert_false(SET_UP("bare_in", true));
	assert_false(SET_UP("bare_in", false));
	assert_false(SET_UP("main_after", false));
	assert_false(xp_frame_is_set_up(p.dso, 0, true));
	assert_false(xp_frame_is_set_up(p.dso, UINT64_MAX, false));
	xp_dsos_free(p.dsos);
}

static void return_addresses_follow_calls(void **state)
{
	struct program p = open_program();

	(void)state;
#define FOLLOWS(name) xp_follows_call(p.dso, address(p.path, name))
	assert_true(FOLLOWS("keeps_after"));		/* call rel32 */
	assert_true(FOLLOWS("go_after"));		/* call *%rax */
	assert_true(FOLLOWS("main_after"));		/* call *8(%rsp) */
	assert_false(FOLLOWS("keeps_ret"));
	assert_false(FOLLOWS("bare_in"));
	assert_false(xp_follows_call(p.dso, 0));
	assert_false(xp_follows_call(p.dso, UINT64_MAX));
	xp_dsos_free(p.dsos);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(believes_only_a_frame_that_is_set_up),
		cmocka_unit_test(return_addresses_follow_calls),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
