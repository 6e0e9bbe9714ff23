// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unwind rows of real files: compared with libdw, with section headers and without, from either
 * section, compressed or not, and as input that is cut off or damaged.
 *
 * Arguments are further ELF files to compare with libdw.
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
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "build.h"
#include "cfi_check.h"
#include "cfi_oracle.h"
#include "target/cfi.h"

/* This program, and its section. */
static struct xp_elf *open_self(struct xp_section *section)
{
	struct xp_elf *elf;

	assert_int_equal(xp_elf_open_path(&elf, "/proc/self/exe", NULL), 0);
	assert_true(xp_elf_section(elf, ".eh_frame", section));
	assert_true(section->size > 3000);
	return elf;
}

static void build_copy(const uint8_t *data, size_t n, uint64_t vaddr)
{
	struct xp_section section = { .data = malloc(n + !n), .size = n, .addr = vaddr };
	struct xp_cfi cfi;

	assert_non_null(section.data);
	memcpy((void *)section.data, data, n);
	assert_int_equal(xp_cfi_build_sections(&cfi, EM_X86_64, &section, NULL, NULL), 0);
	assert_sound(&cfi);
	xp_cfi_release(&cfi);
	free((void *)section.data);
}

static void truncated(void **state)
{
	struct xp_section section;
	struct xp_elf *elf = open_self(&section);

	(void)state;
	for (size_t n = 0; n < 3000; n++)
		build_copy(section.data, n, section.addr);
	xp_elf_free(elf);
}

static void damaged(void **state)
{
	static const uint8_t flips[] = { 0x01, 0x80, 0x7f, 0xff };
	struct xp_section section;
	struct xp_elf *elf = open_self(&section);
	uint8_t copy[1500];

	(void)state;
	memcpy(copy, section.data, sizeof(copy));
	for (size_t i = 0; i < sizeof(copy); i++) {
		for (size_t k = 0; k < sizeof(flips); k++) {
			copy[i] ^= flips[k];
			build_copy(copy, sizeof(copy), section.addr);
			copy[i] ^= flips[k];
		}
	}
	xp_elf_free(elf);
}

static void assert_same_table(const struct xp_cfi *a, const struct xp_cfi *b)
{
	assert_int_equal(a->rows.n, b->rows.n);
	assert_int_equal(a->funcs.n, b->funcs.n);
	for (size_t i = 0; i < a->rows.n; i++) {
		assert_int_equal(a->rows.v[i].vaddr, b->rows.v[i].vaddr);
		assert_rule("row", &a->rules.v[a->rows.v[i].rule], &b->rules.v[b->rows.v[i].rule]);
	}
}

/* The same table through PT_GNU_EH_FRAME when the section headers are gone. */
static void without_section_headers(void **state)
{
	struct xp_elf *elf, *bare;
	struct xp_cfi by_section, by_segment;
	struct xp_err err = XP_ERR_INIT;
	struct xp_section hdr;
	Elf64_Ehdr *eh;
	uint8_t *copy;

	(void)state;
	assert_int_equal(xp_elf_open_path(&elf, "/proc/self/exe", NULL), 0);
	assert_true(xp_elf_eh_frame_hdr(elf, &hdr));
	copy = malloc(elf->size);
	assert_non_null(copy);
	memcpy(copy, elf->data, elf->size);
	eh = (Elf64_Ehdr *)copy;
	eh->e_shoff = 0;
	eh->e_shnum = eh->e_shstrndx = 0;
	assert_int_equal(xp_elf_open_mem(&bare, copy, elf->size, NULL), 0);
	assert_int_equal(xp_cfi_build(&by_section, elf, NULL), 0);
	assert_int_equal(xp_cfi_build(&by_segment, bare, NULL), 0);
	assert_true(by_section.rows.n > 100);
	assert_same_table(&by_section, &by_segment);
	xp_cfi_release(&by_segment);
	xp_elf_free(bare);

	copy[hdr.data - elf->data] = 9;		/* no such version */
	assert_int_equal(xp_elf_open_mem(&bare, copy, elf->size, NULL), 0);
	assert_int_equal(xp_cfi_build(&by_segment, bare, &err), -EINVAL);
	assert_non_null(strstr(err.what, ".eh_frame"));
	assert_int_equal(by_segment.rows.n, 0);
	xp_elf_free(bare);
	xp_cfi_release(&by_section);
	xp_elf_free(elf);
	free(copy);
}

#define RANDOM_ADDRESSES 2000

static void assert_agrees(const char *name, const struct xp_elf *image, Elf *elf)
{
	struct cfi_oracle result = { 0 };
	struct xp_cfi cfi;

	assert_non_null(elf);
	assert_int_equal(xp_cfi_build(&cfi, image, NULL), 0);
	assert_sound(&cfi);
	assert_int_equal(cfi.bad_fdes, 0);
	assert_int_equal(cfi_oracle_compare(elf, &cfi, RANDOM_ADDRESSES, 20261130, &result), 0);
	print_message("# %s: %zu rows, %zu rules; %zu addresses agree, %zu padding, %zu overlap, "
		      "%zu differ\n", name, cfi.rows.n, cfi.rules.n, result.same, result.padding,
		      result.overlap, result.different);
	if (result.different || result.overlap)
		fail_msg("%s: %s", name, result.first);
	assert_true(result.stubs < 100);
	assert_true(result.same > cfi.rows.n);
	xp_cfi_release(&cfi);
}

static void compare_file(const char *path)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct xp_elf *image;
	Elf *elf;

	assert_true(fd >= 0);
	elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
	assert_int_equal(xp_elf_open_fd(&image, fd, NULL), 0);
	assert_agrees(path, image, elf);
	xp_elf_free(image);
	elf_end(elf);
	close(fd);
}

static char **extra_files;

static void installed_files(void **state)
{
	static const char *const patterns[] = {
		"/proc/self/exe", "/lib*/ld-linux-x86-64.so.2", "/lib/x86_64-linux-gnu/libc.so.6",
		"/usr/lib64/libc.so.6", "/usr/lib/x86_64-linux-gnu/libstdc++.so.6",
		"/usr/lib64/libstdc++.so.6",
		"/usr/lib/x86_64-linux-gnu/libruby-*.so.?.?", "/usr/lib64/libruby.so.?.?",
	};
	size_t compared = 0;

	(void)state;
	elf_version(EV_CURRENT);
	for (size_t i = 0; i < sizeof(patterns) / sizeof(*patterns); i++) {
		glob_t found;

		if (glob(patterns[i], 0, NULL, &found) == 0) {
			for (size_t k = 0; k < found.gl_pathc; k++)
				compare_file(found.gl_pathv[k]);
			compared += found.gl_pathc;
		}
		globfree(&found);
	}
	for (char **extra = extra_files; *extra; extra++)
		compare_file(*extra);
	assert_true(compared >= 2);
}

static void kernel_vdso(void **state)
{
	char *base = (char *)(uintptr_t)getauxval(AT_SYSINFO_EHDR);
	const Elf64_Ehdr *eh = (const Elf64_Ehdr *)base;
	struct xp_elf *image;
	size_t size;
	Elf *elf;

	(void)state;
	if (!base) {
		print_message("# SKIP this kernel maps no vdso\n");
		skip();
	}
	elf_version(EV_CURRENT);
	size = eh->e_shoff + (size_t)eh->e_shnum * eh->e_shentsize;
	assert_int_equal(xp_elf_open_mem(&image, base, size, NULL), 0);
	elf = elf_memory(base, size);
	assert_agrees("vdso", image, elf);
	xp_elf_free(image);
	elf_end(elf);
}

/* Enough functions that their description shrinks when compressed, and one that is not called. */
#define PROGRAM \
	"typedef int (*fn)(int, int);\n" \
	"volatile int sink;\n" \
	"#define F(n) __attribute__((noinline)) int f##n(fn g, int a) { char b[n * 24 + 9];" \
	" b[a % (n + 1)] = a; return g(a, n) * a + b[n] + g(n, a); }\n" \
	"F(1) F(2) F(3) F(4) F(5) F(6) F(7) F(8) F(9) F(10) F(11) F(12)\n" \
	"int unused(int a) { return f12(0, a) + sink; }\n" \
	"static int add(int a, int b) { return a + b + sink; }\n" \
	"int main(void) { return f1(add, 1) + f2(add, 2) + f3(add, 3) + f4(add, 4) + f5(add, 5) +" \
	" f6(add, 6) + f7(add, 7) + f8(add, 8) + f9(add, 9) + f10(add, 10) + f11(add, 11) +" \
	" f12(add, 12); }\n"
#define NO_EH "-O2 -g -fno-asynchronous-unwind-tables -fno-unwind-tables "

static struct xp_cfi cfi_of(const char *path, struct xp_elf **elf)
{
	struct xp_cfi cfi;

	assert_int_equal(xp_elf_open_path(elf, path, NULL), 0);
	assert_int_equal(xp_cfi_build(&cfi, *elf, NULL), 0);
	assert_sound(&cfi);
	return cfi;
}

/* A file's rows come from that source and are about at least so many functions. */
static void assert_source(const char *path, const char *source, size_t least)
{
	struct xp_elf *elf;
	struct xp_cfi cfi = cfi_of(path, &elf);

	if (!source)
		assert_null(cfi.source);
	else if (!cfi.source || strcmp(cfi.source, source))
		fail_msg("%s: rows from %s", path, cfi.source ? cfi.source : "nothing");
	assert_true(cfi.funcs.n >= least);
	assert_int_equal(cfi.bad_fdes, 0);
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
}

static void debug_frame(void **state)
{
	static const char *const flags[] = {
		"", "-gdwarf-2", "-gdwarf-4 -O0", "-gdwarf-5 -O1", "-gdwarf64", "-static",
		"-no-pie",
		"-ffunction-sections -Wl,--gc-sections", "-Wa,--gdwarf-cie-version=4",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		char all[256];
		const char *path;

		snprintf(all, sizeof(all), NO_EH "%s", flags[i]);
		path = build_program("debug_frame", PROGRAM, all);
		assert_source(path, ".eh_frame+.debug_frame", 13);
		compare_file(path);
	}
}

/* gcc's frame pointers that are saved where they point. */
static void realigned_stacks(void **state)
{
	struct xp_elf *elf;
	struct xp_cfi cfi;
	const char *path;
	size_t found = 0;

	(void)state;
	if (!build_run("cc -mforce-drap -E -x c /dev/null"))
		SKIP("the C compiler has no -mforce-drap");
	path = build_program("realigned",
		"void use(void *);\n"
		"int f(int a) { char at[64] __attribute__((aligned(64)));"
		" use(at); return at[a]; }\n"
		"void use(void *p) { *(volatile char *)p = 1; }\n"
		"int main(void) { return f(1); }\n", "-O1 -fno-inline -mforce-drap");
	compare_file(path);
	cfi = cfi_of(path, &elf);
	for (size_t i = 0; i < cfi.rules.n; i++)
		found += cfi.rules.v[i].fp_off == XP_FP_AT_FP;
	assert_true(found > 0);
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
}

/* Functions whose code tells what their unwind information does not. */
#define STUB(NAME) ".skip 32, 0xcc\n.globl " #NAME "\n.type " #NAME ", @function\n" #NAME ":\n"
#define START ".cfi_startproc\n"
#define END ".cfi_endproc\n"
static const char stubs_assembly[] =
	".text\n"
	STUB(bare) "mov $15, %rax\nsyscall\n"
	STUB(bare_short) "mov $15, %eax\nsyscall\n"
	STUB(near_miss) "mov $14, %eax\nsyscall\n"
	STUB(described) START "mov $15, %rax\nsyscall\nint3\n" END
	STUB(start_context) START "mov %rbx, %rsp\nmov (%rsp), %rdi\ncall main\nhlt\n" END
	STUB(start_r15) START "mov %r15, %rsp\nmov (%rsp), %rdi\ncall main\nhlt\n" END
	STUB(argument) START "mov %rdi, %rsp\nmov (%rsp), %rdi\ncall main\nhlt\n" END
	".skip 32, 0xcc\n" START "call main\n" END
	".globl called\ncalled:\n" START "mov %rbx, %rsp\nmov (%rsp), %rdi\nhlt\n" END
	STUB(cloner) START "mov $56, %eax\n" END
	".globl behind\nbehind:\nsyscall\ntest %rax, %rax\njz 1f\nret\n"
	"1:\n.globl child\nchild:\n" START ".cfi_undefined rip\nxor %ebp, %ebp\nhlt\n" END
	STUB(not_cloner) START "nop\n" END
	"nop\nnop\n.globl other\nother:\n" START ".cfi_undefined rip\nhlt\n" END
	STUB(main) START "ret\n" END
	".section .note.GNU-stack, \"\", @progbits\n";

static enum xp_rule_kind kind_at(const struct xp_cfi *cfi, uint64_t vaddr)
{
	const struct xp_rule *rule = xp_cfi_rule_at(cfi, vaddr);

	assert_non_null(rule);
	return rule->kind;
}

/* [at - 1, at + n) has this kind of rule, and no byte around it. */
static void assert_stub(const struct xp_cfi *cfi, uint64_t at, uint64_t n, enum xp_rule_kind kind)
{
	assert_true(kind_at(cfi, at - 2) != kind);
	for (uint64_t i = at - 1; i < at + n; i++)
		assert_int_equal(kind_at(cfi, i), kind);
	assert_true(kind_at(cfi, at + n) != kind);
}

static void stubs(void **state)
{
	const char *path = build_path("stubs");
	const struct xp_rule *rule;
	struct xp_elf *elf;
	struct xp_cfi cfi;

	(void)state;
	if (!build_have("cc") || !build_have("nm"))
		SKIP("no compiler or nm");
	build_write("stubs.S", stubs_assembly, sizeof(stubs_assembly) - 1);
	assert_true(build_run("cc -o stubs stubs.S -no-pie"));
	cfi = cfi_of(path, &elf);
#define AT(name) build_address(path, name)
	assert_stub(&cfi, AT("bare"), 9, XP_RULE_SIGNAL);
	assert_stub(&cfi, AT("bare_short"), 7, XP_RULE_SIGNAL);
	assert_int_equal(kind_at(&cfi, AT("near_miss")), XP_RULE_NONE);
	assert_stub(&cfi, AT("described"), 10, XP_RULE_SIGNAL);
	assert_int_equal(xp_cfi_func_at(&cfi, AT("bare"))->end, AT("bare") + 9);
	assert_null(xp_cfi_func_at(&cfi, AT("near_miss")));
	assert_stub(&cfi, AT("start_context"), 13, XP_RULE_END);
	assert_stub(&cfi, AT("start_r15"), 13, XP_RULE_END);
	assert_int_equal(kind_at(&cfi, AT("argument")), XP_RULE_SP);
	/* What returns here may have been called from the function before. */
	assert_int_equal(kind_at(&cfi, AT("called") - 1), XP_RULE_SP);
	assert_int_equal(kind_at(&cfi, AT("called")), XP_RULE_END);
	assert_int_equal(kind_at(&cfi, AT("cloner")), XP_RULE_SP);
	for (uint64_t at = AT("behind"); at < AT("child"); at++) {
		rule = xp_cfi_rule_at(&cfi, at);
		assert_int_equal(rule->kind, XP_RULE_FORK);
		assert_int_equal(rule->cfa_off, 8);
		assert_int_equal(rule->ra, 1);
		assert_int_equal(rule->reg, 0);
	}
	assert_int_equal(kind_at(&cfi, AT("child")), XP_RULE_END);
	assert_int_equal(kind_at(&cfi, AT("other") - 1), XP_RULE_SP);
#undef AT
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
}

/* An image full of them: a few are mended, and it takes no long. */
static void too_many_stubs(void **state)
{
	static const char many[] = ".text\n.globl main\nmain: ret\n.rept 20000\n"
				   ".skip 24, 0xcc\nmov $15, %eax\nsyscall\n.endr\n";
	const char *path = build_path("many");
	struct xp_elf *elf;
	struct xp_cfi cfi;
	size_t signals = 0;

	(void)state;
	if (!build_have("cc"))
		SKIP("no compiler");
	build_write("many.S", many, sizeof(many) - 1);
	assert_true(build_run("cc -o many many.S"));
	cfi = cfi_of(path, &elf);
	for (size_t i = 0; i < cfi.rows.n; i++)
		signals += cfi.rules.v[cfi.rows.v[i].rule].kind == XP_RULE_SIGNAL;
	assert_true(signals > 0 && signals <= 32);
	xp_cfi_release(&cfi);
	xp_elf_free(elf);
}

/* Files that have one section only, or addresses that are not final. */
static void one_section(void **state)
{
	(void)state;
	assert_source(build_program("object", PROGRAM, NO_EH "-c"), NULL, 0);
	if (!build_have("objcopy"))
		SKIP("no objcopy");
	build_program("whole", PROGRAM, NO_EH);
	assert_true(build_run("objcopy --only-keep-debug whole debug"));
	assert_source(build_path("debug"), ".debug_frame", 13);
	assert_true(build_run("objcopy -R .debug_frame whole eh"));
	assert_source(build_path("eh"), ".eh_frame", 1);
}

/* Of a program with a compressed .debug_frame; skips when the compiler makes none. */
static struct xp_elf *open_compressed(struct xp_section *section)
{
	const char *path = build_program("compressed", PROGRAM, NO_EH "-gz=zlib");
	struct xp_elf *elf;

	compare_file(path);
	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	if (!xp_elf_section(elf, ".debug_frame", section) || !(section->flags & SHF_COMPRESSED)) {
		xp_elf_free(elf);
		SKIP("this compiler does not compress .debug_frame");
	}
	return elf;
}

/* The image itself stays as it is: others read it, too. */
static void compressed(void **state)
{
	struct xp_section section;
	struct xp_elf *elf = open_compressed(&section);
	uint8_t *copy = malloc(elf->size);
	struct xp_cfi cfi;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, elf->data, elf->size);
	for (unsigned i = 0; i < 2; i++) {
		assert_int_equal(xp_cfi_build(&cfi, elf, NULL), 0);
		assert_string_equal(cfi.source, ".eh_frame+.debug_frame");
		assert_true(cfi.funcs.n >= 13);
		assert_int_equal(cfi.bad_fdes, 0);
		xp_cfi_release(&cfi);
		assert_memory_equal(copy, elf->data, elf->size);
	}
	free(copy);
	xp_elf_free(elf);
}

/* Builds with the header of the compressed section replaced; then only .eh_frame is there. */
static void assert_refused(const struct xp_elf *elf, const struct xp_section *section,
			   Elf64_Chdr ch)
{
	uint8_t *copy = malloc(elf->size);
	struct xp_elf *damaged_elf;
	struct xp_cfi cfi;

	assert_non_null(copy);
	memcpy(copy, elf->data, elf->size);
	memcpy(copy + (section->data - elf->data), &ch, sizeof(ch));
	assert_int_equal(xp_elf_open_mem(&damaged_elf, copy, elf->size, NULL), 0);
	assert_int_equal(xp_cfi_build(&cfi, damaged_elf, NULL), 0);
	assert_sound(&cfi);
	assert_string_equal(cfi.source, ".eh_frame");
	assert_int_equal(cfi.bad_fdes, 1);
	xp_cfi_release(&cfi);
	xp_elf_free(damaged_elf);
	free(copy);
}

static void compressed_badly(void **state)
{
	struct xp_section section;
	struct xp_elf *elf = open_compressed(&section);
	Elf64_Chdr ch, bad;

	(void)state;
	memcpy(&ch, section.data, sizeof(ch));
	bad = ch;
	bad.ch_size = 257u << 20;		/* above the limit */
	assert_refused(elf, &section, bad);
	bad.ch_size = UINT64_MAX;
	assert_refused(elf, &section, bad);
	bad.ch_size = 255u << 20;		/* more than such bytes can become */
	assert_refused(elf, &section, bad);
	bad.ch_size = ch.ch_size - 1;
	assert_refused(elf, &section, bad);
	bad.ch_size = ch.ch_size + 1;
	assert_refused(elf, &section, bad);
	bad = ch;
	bad.ch_type = 77;			/* no such format */
	assert_refused(elf, &section, bad);
	bad.ch_type = ELFCOMPRESS_ZLIB + 1;	/* zstd, which it is not */
	assert_refused(elf, &section, bad);
	bad = ch;
	bad.ch_addralign = 3;
	assert_refused(elf, &section, bad);
	xp_elf_free(elf);
}

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated),
		cmocka_unit_test(damaged),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(installed_files),
		cmocka_unit_test(kernel_vdso),
		cmocka_unit_test(debug_frame),
		cmocka_unit_test(realigned_stacks),
		cmocka_unit_test(stubs),
		cmocka_unit_test(too_many_stubs),
		cmocka_unit_test(one_section),
		cmocka_unit_test(compressed),
		cmocka_unit_test(compressed_badly),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	extra_files = argv + (argc > 0);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
