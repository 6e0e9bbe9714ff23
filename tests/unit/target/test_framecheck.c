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
	".size main,.-main\n"
	".type zeroes,@function\n"
	"zeroes:\n"			/* as _start */
	"	endbr64\n"
	"	xor %ebp,%ebp\n"
	".globl zeroes_in\nzeroes_in:\n"
	"	call bare\n"
	".globl zeroes_after\nzeroes_after:\n"
	"	hlt\n"
	".size zeroes,.-zeroes\n"
	".type saves,@function\n"
	"saves:\n"			/* rbp is a counter here, and saved */
	"	push %rbp\n"
	"	xor %ebp,%ebp\n"
	"	call bare\n"
	".globl saves_after\nsaves_after:\n"
	"	pop %rbp\n"
	"	ret\n"
	".size saves,.-saves\n"
	".type zeroes_r13,@function\n"
	"zeroes_r13:\n"
	"	xor %r13d,%r13d\n"
	"	call bare\n"
	".globl zeroes_r13_after\nzeroes_r13_after:\n"
	"	ret\n"
	".size zeroes_r13,.-zeroes_r13\n"
	".type goexit,@function\n"
	".skip 16,0xcc\n"
	"goexit:\n"			/* returned to at its second byte */
	"	nop\n"
	".globl goexit_1\ngoexit_1:\n"
	"	call bare\n"
	".globl goexit_in\ngoexit_in:\n"
	"	nop\n"
	".size goexit,.-goexit\n"
	".type mstart,@function\n"
	"mstart:\n"
	"	call bare\n"
	".globl mstart_after\nmstart_after:\n"
	"	ret\n"
	".size mstart,.-mstart\n"
	".type data,@function\n"
	"data:\n"			/* points into its caller's frame */
	"	push %rbp\n"
	"	lea 0x38(%rsp),%rbp\n"
	".globl data_in\ndata_in:\n"
	"	call bare\n"
	".globl data_after\ndata_after:\n"
	"	pop %rbp\n"
	"	ret\n"
	".size data,.-data\n"
#define SWITCHES(NAME, ...) \
	".type " #NAME ",@function\n.globl " #NAME "\n" #NAME ":\n.cfi_startproc\n" \
	__VA_ARGS__ ".cfi_endproc\n.size " #NAME ",.-" #NAME "\n"
	SWITCHES(from_memory, "mov 0x38(%rdx),%rbx\nmov 0x38(%r14),%rsp\n"
		 ".globl from_memory_in\nfrom_memory_in: call bare\nret\n")
	SWITCHES(from_register, "mov 0x38(%rdx),%rbx\n.globl from_register_before\n"
		 "from_register_before: mov %rbx,%rsp\n"
		 ".globl from_register_in\nfrom_register_in: call bare\nret\n")
	SWITCHES(by_exchange, "xchg %rsp,%rdi\n.globl by_exchange_in\nby_exchange_in: nop\nret\n")
	SWITCHES(by_pop, "push %rdi\npop %rsp\n.globl by_pop_in\nby_pop_in: nop\nret\n")
	SWITCHES(restores, "mov %rsp,%rbx\nand $-64,%rsp\ncall bare\nmov %rbx,%rsp\n"
		 ".globl restores_in\nrestores_in: nop\nret\n")
	SWITCHES(forgets, "mov %rsp,%rbx\nmov %rdi,%rbx\nmov %rbx,%rsp\n"
		 ".globl forgets_in\nforgets_in: nop\nret\n")
	SWITCHES(leaves, "push %rbp\nmov %rsp,%rbp\ncall bare\nmov %rbp,%rsp\npop %rbp\n"
		 ".globl leaves_in\nleaves_in: nop\nret\n")
	SWITCHES(allocates, "push %rbp\nmov %rsp,%rbp\nmov %rsp,%rax\nsub %rdi,%rax\n"
		 "mov %rax,%rsp\n.globl allocates_in\nallocates_in: call bare\n"
		 "lea -16(%rbp),%rsp\npop %rbx\npop %rbp\n"
		 ".globl allocates_ret\nallocates_ret: ret\n")
	SWITCHES(takes_address, "lea -64(%rdi),%rsp\n.globl takes_address_in\n"
		 "takes_address_in: nop\nret\n")
	SWITCHES(leaves_other, "mov (%rdi),%rsp\nleave\n.globl leaves_other_in\n"
		 "leaves_other_in: nop\nret\n")
	SWITCHES(realigned, "lea 8(%rsp),%r10\nand $-64,%rsp\npush -8(%r10)\npush %rbp\n"
		 "mov %rsp,%rbp\npush %r10\ncall bare\nmov -8(%rbp),%r10\nleave\n"
		 "lea -8(%r10),%rsp\n.globl realigned_ret\nrealigned_ret: ret\n")
	SWITCHES(one_way, "test %rax,%rax\nje 1f\nmov (%rdi),%rsp\n"
		 ".globl one_way_in\none_way_in: call *%rsi\nmov 8(%rdi),%rsp\nret\n"
		 "1: .globl other_way_in\nother_way_in: call *%rsi\nret\n")
	SWITCHES(jumps, "mov (%rdi),%rsp\njmp 1f\n.globl jumps_over\njumps_over: nop\nret\n"
		 "1: nop\n.globl jumps_to\njumps_to: nop\nret\n")
	SWITCHES(constant, "mov $0x24648b48,%eax\nmovabs $0xdc8948dc8948,%rcx\n"
		 ".globl constant_in\nconstant_in: nop\nret\n")
	SWITCHES(thread, "mov $56,%eax\nsyscall\nmov %rsi,%rsp\n"
		 ".globl thread_in\nthread_in: call *%r12\nret\n");

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
#define SET_UP(name, exact) xp_frame_is_set_up(p.dso, build_address(p.path, name), exact)
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
#define FOLLOWS(name) xp_follows_call(p.dso, build_address(p.path, name))
	assert_true(FOLLOWS("keeps_after"));		/* call rel32 */
	assert_true(FOLLOWS("go_after"));		/* call *%rax */
	assert_true(FOLLOWS("main_after"));		/* call *8(%rsp) */
	assert_false(FOLLOWS("keeps_ret"));
	assert_false(FOLLOWS("bare_in"));
	assert_false(xp_follows_call(p.dso, 0));
	assert_false(xp_follows_call(p.dso, UINT64_MAX));
	xp_dsos_free(p.dsos);
}

static void outermost_frames_without_a_frame_pointer(void **state)
{
	struct program p = open_program();

	(void)state;
#define OUTERMOST(name, exact) xp_frame_is_outermost(p.dso, build_address(p.path, name), exact)
	assert_true(OUTERMOST("zeroes_after", false));
	assert_true(OUTERMOST("zeroes_in", true));
	assert_false(OUTERMOST("zeroes", true));	/* nothing has run yet */
	assert_false(OUTERMOST("saves_after", false));
	assert_false(OUTERMOST("zeroes_r13_after", false));
	assert_true(OUTERMOST("goexit_1", false));
	assert_true(OUTERMOST("goexit", false));
	assert_false(OUTERMOST("goexit_1", true));
	assert_false(OUTERMOST("goexit_in", false));	/* a call like any other */
	assert_true(OUTERMOST("mstart_after", false));
	assert_false(OUTERMOST("mstart_after", true));
	assert_false(OUTERMOST("keeps_after", false));
	assert_false(OUTERMOST("bare_in", true));
	assert_false(OUTERMOST("bare_in", false));
	assert_true(xp_frame_is_outermost(p.dso, p.dso->elf->entry + 10, true));
	assert_false(xp_frame_is_outermost(p.dso, p.dso->elf->entry, true));
	assert_false(xp_frame_is_outermost(p.dso, 0, false));
	assert_false(xp_frame_is_outermost(p.dso, UINT64_MAX, true));
	/* rbp that points somewhere above. */
	assert_false(xp_frame_is_set_up(p.dso, build_address(p.path, "data_in"), true));
	assert_false(xp_frame_is_set_up(p.dso, build_address(p.path, "data_after"), false));
	xp_dsos_free(p.dsos);
}

static void stacks_are_switched(void **state)
{
	static const struct {
		const char *name;
		enum xp_stack_kind want;
	} cases[] = {
		{ "from_memory", XP_STACK_SAME }, { "from_memory_in", XP_STACK_OTHER },
		{ "from_register_before", XP_STACK_SAME }, { "from_register_in", XP_STACK_OTHER },
		{ "by_exchange", XP_STACK_SAME }, { "by_exchange_in", XP_STACK_OTHER },
		{ "by_pop_in", XP_STACK_OTHER }, { "restores_in", XP_STACK_SAME },
		{ "forgets_in", XP_STACK_OTHER }, { "leaves_in", XP_STACK_SAME },
		{ "allocates_in", XP_STACK_OTHER }, { "allocates_ret", XP_STACK_SAME },
		{ "takes_address_in", XP_STACK_OTHER }, { "leaves_other_in", XP_STACK_SAME },
		{ "realigned_ret", XP_STACK_SAME }, { "one_way_in", XP_STACK_OTHER },
		{ "other_way_in", XP_STACK_SAME }, { "jumps_over", XP_STACK_SAME },
		{ "jumps_to", XP_STACK_OTHER },
		{ "constant_in", XP_STACK_SAME }, { "thread_in", XP_STACK_NEW },
		{ "bare_in", XP_STACK_SAME },
	};
	struct program p = open_program();
	struct xp_frame_checks *c = xp_frame_checks_new();

	(void)state;
	assert_non_null(c);
	assert_int_equal(xp_dso_need_rows(p.dso), 0);
	/* The second time from memory. */
	for (size_t i = 0; i < 2 * sizeof(cases) / sizeof(*cases); i++) {
		const char *name = cases[i / 2].name;

		if (xp_stack_kind_of(c, p.dso, build_address(p.path, name)) != cases[i / 2].want)
			fail_msg("%s", name);
	}
	assert_int_equal(xp_stack_kind_of(c, p.dso, 0), XP_STACK_SAME);
	assert_int_equal(xp_stack_kind_of(c, p.dso, UINT64_MAX), XP_STACK_SAME);
	xp_frame_checks_free(c);
	xp_dsos_free(p.dsos);
}

static void calls_end_where_they_end(void **state)
{
	static const uint8_t calls[][7] = {
		{ 0, 0, 0xe8, 1, 2, 3, 4 }, { 0, 0, 0, 0, 0, 0xff, 0xd0 },
		{ 0, 0, 0, 0, 0xff, 0x50, 8 }, { 0, 0, 0, 0xff, 0x54, 0x24, 8 },
		{ 0, 0xff, 0x15, 1, 2, 3, 4 }, { 0xff, 0x94, 0x24, 1, 2, 3, 4 },
		{ 0xff, 0x14, 0x25, 1, 2, 3, 4 }, { 0, 0, 0, 0, 0xff, 0x14, 0x24 },
		{ 0, 0, 0, 0, 0, 0xff, 0x10 }, { 0, 0xff, 0x90, 1, 2, 3, 4 },
	};
	static const uint8_t others[][7] = {
		{ 0, 0, 0, 0, 0, 0, 0 }, { 0, 0, 0, 0xe8, 1, 2, 3 }, { 0, 0, 0, 0, 0xff, 0xd0, 0 },
		{ 0, 0, 0, 0, 0, 0xff, 0x50 }, { 0, 0, 0xff, 0x15, 1, 2, 3 },
		{ 0, 0, 0, 0, 0, 0xff, 0xe0 }, { 0xff, 0x14, 0x24, 1, 2, 3, 4 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(calls) / sizeof(*calls); i++)
		if (!xp_ends_in_call(calls[i]))
			fail_msg("call %zu", i);
	for (size_t i = 0; i < sizeof(others) / sizeof(*others); i++)
		if (xp_ends_in_call(others[i]))
			fail_msg("other %zu", i);
}

/* Two pages of code without a file, filled with int3. */
#define JIT_BASE 0x7f0000000000ull
static uint8_t jit_code[2 * 4096];

static uint64_t jit_put(size_t at, const void *code, size_t n)
{
	memcpy(jit_code + at, code, n);
	return JIT_BASE + at;
}

static void leaves_of_code_without_a_file(void **state)
{
	/* test; jne; push; mov; sub; store; add; mov rbp,rsp; pop rbp; cmp; jg; ret; pop; push; ret */
	static const uint8_t framed[] = {
		0xf6, 0x43, 0x35, 1, 0x75, 0x20, 0x55, 0x48, 0x89, 0xe5, 0x48, 0x83, 0xec, 0x20,
		0x48, 0x89, 0x45, 0xf8, 0x83, 0xc0, 1, 0x48, 0x89, 0xec, 0x5d, 0x48, 0x83, 0xf9,
		2, 0x7f, 3, 0xc2, 0x10, 0, 0x41, 0x5a, 0x41, 0x52, 0xc3,
	};
	static const struct {
		size_t at;
		enum xp_jit_leaf want;
	} cases[] = {
		{ 0, XP_JIT_BARE }, { 4, XP_JIT_BARE }, { 6, XP_JIT_BARE }, { 7, XP_JIT_PUSHED },
		{ 10, XP_JIT_FRAMED }, { 14, XP_JIT_FRAMED }, { 18, XP_JIT_FRAMED },
		{ 21, XP_JIT_FRAMED }, { 25, XP_JIT_BARE }, { 29, XP_JIT_BARE },
		{ 31, XP_JIT_BARE }, { 34, XP_JIT_UNKNOWN }, { 36, XP_JIT_UNKNOWN },
		{ 38, XP_JIT_BARE },
	};
	/* push rbp; lea 0x38(rsp),rbp; dec; jne; pop rbp; ret */
	static const uint8_t data[] = { 0x55, 0x48, 0x8d, 0x6c, 0x24, 0x38, 0xff, 0xc9, 0x75, 0xfc,
					0x5d, 0xc3 };
	struct xp_frame_checks *c = xp_frame_checks_new();
	struct xp_jit jit = { xp_mem_of_array(JIT_BASE, jit_code, sizeof(jit_code)), JIT_BASE, 1 };
	uint64_t at;

	(void)state;
	assert_non_null(c);
	memset(jit_code, 0xcc, sizeof(jit_code));
	at = jit_put(0x40, data, sizeof(data));
	/* Nothing here keeps frame pointers. */
	assert_int_equal(xp_jit_leaf(c, &jit, at + 6), XP_JIT_UNKNOWN);
	assert_int_equal(xp_jit_leaf(c, &jit, at + 10), XP_JIT_UNKNOWN);
	assert_int_equal(xp_jit_leaf(c, &jit, at + 11), XP_JIT_BARE);
	assert_false(xp_jit_keeps_frames(c, &jit, at + 6));
	at = jit_put(0x100, framed, sizeof(framed));
	/* What was found in a batch holds in it, and no longer. */
	assert_false(xp_jit_keeps_frames(c, &jit, at + 20));
	jit.batch++;
	assert_true(xp_jit_keeps_frames(c, &jit, at + 20));
	assert_false(xp_jit_keeps_frames(c, &jit, at + 9));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		if (xp_jit_leaf(c, &jit, at + cases[i].at) != cases[i].want)
			fail_msg("at %zu: %d", cases[i].at,
				 xp_jit_leaf(c, &jit, at + cases[i].at));
	/* The same data function after it, padding between: not sure; on the next page as well. */
	at = jit_put(0x140, data, sizeof(data));
	assert_int_equal(xp_jit_leaf(c, &jit, at + 6), XP_JIT_UNSURE);
	at = jit_put(0x1100, data, sizeof(data));
	assert_int_equal(xp_jit_leaf(c, &jit, at + 6), XP_JIT_UNSURE);
	assert_true(xp_jit_keeps_frames(c, &jit, at));
	/* The mapping begins behind the prologue. */
	jit.start = JIT_BASE + 0x1000;
	jit.batch++;
	assert_false(xp_jit_keeps_frames(c, &jit, at));
	assert_int_equal(xp_jit_leaf(c, &jit, at + 6), XP_JIT_UNKNOWN);
	/* Memory that ends, and memory that is not there. */
	jit.start = JIT_BASE;
	at = jit_put(sizeof(jit_code) - sizeof(framed), framed, sizeof(framed));
	assert_int_equal(xp_jit_leaf(c, &jit, at + 14), XP_JIT_FRAMED);
	assert_int_equal(xp_jit_leaf(c, &jit, JIT_BASE + sizeof(jit_code)), XP_JIT_UNKNOWN);
	assert_false(xp_jit_keeps_frames(c, &jit, JIT_BASE + sizeof(jit_code) + 0x10000));
	assert_int_equal(xp_jit_leaf(c, &jit, JIT_BASE), XP_JIT_UNKNOWN);
	xp_frame_checks_free(c);
}

static void calls_in_code_without_a_file(void **state)
{
	static const uint8_t call[] = { 0xe8, 1, 2, 3, 4 };
	struct xp_frame_checks *c = xp_frame_checks_new();
	struct xp_jit jit = { xp_mem_of_array(JIT_BASE, jit_code, sizeof(jit_code)), JIT_BASE, 1 };
	uint64_t at;

	(void)state;
	memset(jit_code, 0xcc, sizeof(jit_code));
	at = jit_put(0x40, call, sizeof(call));
	for (int i = 0; i < 2; i++) {
		assert_true(xp_jit_follows_call(c, &jit, at + 5));
		assert_false(xp_jit_follows_call(c, &jit, at + 4));
	}
	assert_false(xp_jit_follows_call(c, &jit, JIT_BASE));
	assert_false(xp_jit_follows_call(c, &jit, 0));
	xp_frame_checks_free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(believes_only_a_frame_that_is_set_up),
		cmocka_unit_test(return_addresses_follow_calls),
		cmocka_unit_test(outermost_frames_without_a_frame_pointer),
		cmocka_unit_test(stacks_are_switched),
		cmocka_unit_test(calls_end_where_they_end),
		cmocka_unit_test(leaves_of_code_without_a_file),
		cmocka_unit_test(calls_in_code_without_a_file),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
