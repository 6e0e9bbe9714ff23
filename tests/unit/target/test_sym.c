// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Functions: rules for sizes, aliases and labels on an assembled program; PLT stubs; main of a
 * stripped program; and how much of installed files' code has function bounds.
 */
#include "target/sym.h"

#include <elf.h>
#include <errno.h>
#include <time.h>

#include "build.h"

struct file {
	struct xp_elf *elf;
	struct xp_cfi cfi;
	struct xp_symtab *st;
};

static struct file load(const char *path, bool with_cfi)
{
	struct file f = { 0 };
	struct xp_err err = XP_ERR_INIT;

	if (xp_elf_open_path(&f.elf, path, &err) ||
	    (with_cfi && xp_cfi_build(&f.cfi, f.elf, &err)) ||
	    xp_symtab_new(&f.st, f.elf, with_cfi ? &f.cfi : NULL, &err))
		fail_msg("%s", err.what);
	return f;
}

static void unload(struct file *f)
{
	xp_symtab_free(f->st);
	xp_cfi_release(&f->cfi);
	xp_elf_free(f->elf);
}

/* Address of a symbol by nm; 0 when it has none. */
static uint64_t nm(const char *path, const char *name)
{
	char command[512], line[64];

	snprintf(command, sizeof(command), "nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name);
	build_output(command, line, sizeof(line));
	return strtoull(line, NULL, 16);
}

/* The function at an address: its name ("-" for none) and its bounds relative to `base`. */
static void is(const struct file *f, uint64_t base, uint64_t at, const char *name, uint64_t start,
	       uint64_t end)
{
	struct xp_sym s;

	if (!xp_symtab_find(f->st, base + at, &s))
		fail_msg("nothing at +%#llx", (unsigned long long)at);
	assert_string_equal(s.name ? s.name : "-", name);
	assert_int_equal(s.start - base, start);
	assert_int_equal(s.end - base, end);
}

static const char assembly[] =
	"__asm__(\".pushsection .code,\\\"ax\\\",@progbits\\n"
	".globl base\\n base:\\n"
	/* 0x00: three names for one function: global, weak, local */
	".globl __global_alias\\n .type __global_alias,@function\\n __global_alias:\\n"
	".globl global_alias\\n .type global_alias,@function\\n global_alias:\\n"
	".globl galias\\n .type galias,@function\\n galias:\\n"
	".weak w\\n .type w,@function\\n w:\\n"
	".type l,@function\\n l:\\n"
	".skip 0x20,0x90\\n .size galias,0x20\\n .size w,0x20\\n .size l,0x20\\n"
	".size global_alias,0x20\\n .size __global_alias,0x20\\n"
	/* 0x20: sized, with a sized one and a label inside */
	".globl outer\\n .type outer,@function\\n outer: .skip 0x10,0x90\\n"
	".type inner,@function\\n inner: .skip 0x10,0x90\\n .size inner,0x10\\n"
	"label: .skip 0x20,0x90\\n .size outer,0x40\\n"
	/* 0x60: a gap without anything, then labels without size */
	".skip 0x40,0x90\\n"
	"first: .skip 0x10,0x90\\n"
	"second: .skip 0x10,0x90\\n"
	/* 0xc0: an unwind entry of its own, without a symbol, right behind a label */
	".cfi_startproc\\n .skip 0x20,0x90\\n .cfi_endproc\\n"
	/* 0xe0: an entry whose symbol is shorter than it, then a label that ends with its entry */
	".type early,@function\\n early: .cfi_startproc\\n .skip 0x8,0x90\\n .size early,8\\n"
	".skip 0x18,0x90\\n .cfi_endproc\\n"
	"tail: .cfi_startproc\\n .skip 0x20,0x90\\n .cfi_endproc\\n"
	/* 0x120: padding, and a version */
	".skip 0x10,0x90\\n"
	".type implementation,@function\\n implementation: .skip 0x10,0x90\\n"
	".size implementation,0x10\\n"
	".symver implementation,versioned@@V1\\n"
	".type table,@object\\n table: .skip 0x10\\n .size table,0x10\\n"
	".popsection\");\n"
	"int main(void) { return 0; }\n";

static void symbols_keep_to_their_bounds(void **state)
{
	struct file f;
	uint64_t base;
	const char *path;

	(void)state;
	build_write("map", "V1 { global: versioned; };\n", 27);
	path = build_program("asm", assembly, "-Wl,--version-script=map -Wl,-E");
	base = nm(path, "base");
	assert_true(base != 0);
	f = load(path, true);
	is(&f, base, 0x00, "galias", 0, 0x20);
	is(&f, base, 0x1f, "galias", 0, 0x20);
	is(&f, base, 0x20, "outer", 0x20, 0x60);
	is(&f, base, 0x30, "inner", 0x30, 0x40);
	is(&f, base, 0x3f, "inner", 0x30, 0x40);
	is(&f, base, 0x40, "outer", 0x20, 0x60);	/* not "label": outer has a size */
	is(&f, base, 0x5f, "outer", 0x20, 0x60);
	is(&f, base, 0x60, "-", 0x60, 0xa0);		/* not outer, which ended */
	is(&f, base, 0xa0, "first", 0xa0, 0xb0);
	is(&f, base, 0xbf, "second", 0xb0, 0xc0);	/* not into the entry behind it */
	is(&f, base, 0xc0, "-", 0xc0, 0xe0);
	is(&f, base, 0xe7, "early", 0xe0, 0xe8);
	is(&f, base, 0xe8, "-", 0xe0, 0x100);		/* the size is respected */
	is(&f, base, 0x100, "tail", 0x100, 0x120);
	is(&f, base, 0x130, "versioned", 0x130, 0x140);
	assert_string_equal(xp_symtab_source(f.st), ".symtab+.dynsym");
	unload(&f);

	/* Without unwind entries the labels reach to the next symbol. */
	f = load(path, false);
	is(&f, base, 0xdf, "second", 0xb0, 0xe0);
	is(&f, base, 0x12f, "tail", 0x100, 0x130);
	unload(&f);
}

static void padding_belongs_to_the_function_before(void **state)
{
	struct file f;
	struct xp_sym s;
	uint64_t base;
	const char *path = build_program("asm2", assembly, "");

	(void)state;
	base = nm(path, "base");
	f = load(path, true);
	is(&f, base, 0x120, "tail", 0x100, 0x120);
	is(&f, base, 0x12f, "tail", 0x100, 0x120);
	assert_false(xp_symtab_find(f.st, 0, &s));
	assert_false(xp_symtab_find(f.st, UINT64_MAX, &s));
	unload(&f);
}

static const char calls[] =
	"#include <stdio.h>\n#include <stdlib.h>\n"
	"__attribute__((noinline)) int twice(int x) { return 2 * x + rand(); }\n"
	"int main(int argc, char **argv)\n"
	"{ puts(argv[0]); return abs(twice(getenv(argv[argc - 1]) != 0)); }\n";

/* Where main calls: the address in objdump's text of a symbol with that name. */
static uint64_t objdump_stub(const char *path, const char *name)
{
	char command[512], line[64];

	snprintf(command, sizeof(command), "objdump -d '%s' | "
		 "sed -n 's/^\\([0-9a-f]*\\) <%s>:$/\\1/p' | tail -1", path, name);
	build_output(command, line, sizeof(line));
	return strtoull(line, NULL, 16);
}

static void check_stubs(const char *name, const char *flags)
{
	const char *path = build_program(name, calls, flags);
	static const char *const stubs[] = { "puts@plt", "rand@plt", "getenv@plt" };

	for (int stripped = 0; stripped < 2; stripped++) {
		struct file f = load(path, true);

		for (size_t i = 0; i < sizeof(stubs) / sizeof(*stubs); i++) {
			uint64_t at = objdump_stub(path, stubs[i]);
			struct xp_sym s;

			if (!at)
				fail_msg("objdump knows no %s in %s", stubs[i], name);
			assert_true(xp_symtab_find(f.st, at + 6, &s));
			assert_non_null(s.name);
			assert_string_equal(s.name, stubs[i]);
			assert_int_equal(s.start, at);
			assert_int_equal(s.end, at + 16);
		}
		unload(&f);
		assert_true(build_run("for f in plt*; do "
				      "case $f in *.c) ;; *) strip $f;; esac; done"));
	}
}

static void stubs_have_the_names_of_what_they_call(void **state)
{
	(void)state;
	if (!build_have("objdump") || !build_have("cc"))
		SKIP("no objdump or no cc");
	check_stubs("plt_lazy", "-O1 -fcf-protection=none -Wl,-z,lazy");
	check_stubs("plt_now", "-O1 -no-pie -Wl,-z,now");
	check_stubs("plt_cet", "-O1 -fcf-protection=full -Wl,-z,ibtplt -Wl,-z,lazy");
}

static void main_is_found_through_start(void **state)
{
	static const char *const flags[] = { "-O2 -pie -fPIE", "-O2 -no-pie", "-O2 -static",
					     "-O2 -static-pie", "-O2 -fcf-protection=full" };

	(void)state;
	for (size_t i = 0; i < sizeof(flags) / sizeof(*flags); i++) {
		const char *path = build_program("whole", calls, flags[i]);
		uint64_t at = nm(path, "main"), start = nm(path, "_start");
		uint64_t twice = nm(path, "twice");
		struct xp_sym s;
		struct file f;

		assert_true(at && start && twice);
		f = load(path, true);
		assert_true(xp_symtab_find(f.st, at, &s));
		assert_string_equal(s.name, "main");
		unload(&f);

		assert_true(build_run("strip whole"));
		f = load(path, true);
		assert_true(xp_symtab_find(f.st, at + 4, &s));
		if (!s.name)
			fail_msg("no main in cc %s", flags[i]);
		assert_string_equal(s.name, "main");
		assert_int_equal(s.start, at);
		assert_true(xp_symtab_find(f.st, start, &s));
		assert_string_equal(s.name, "_start");
		assert_true(xp_symtab_find(f.st, twice, &s));
		assert_null(s.name);
		assert_int_equal(s.start, twice);
		unload(&f);

		f = load(path, false);		/* without unwind entries it is not certain */
		assert_true(!xp_symtab_find(f.st, at, &s) || !s.name);
		unload(&f);
	}
}

/* The share of code bytes, without padding, that have a function. */
static double coverage(const struct file *f, double *named)
{
	size_t all = 0, found = 0, names = 0;

	for (size_t i = 1; i < xp_elf_section_count(f->elf); i++) {
		struct xp_section s;
		const char *name;
		size_t gap = 0;

		if (!xp_elf_section_at(f->elf, i, &name, &s) || !s.data ||
		    !(s.flags & SHF_EXECINSTR))
			continue;
		for (uint64_t at = 0; at <= s.size; at++) {
			struct xp_sym sym;

			if (at < s.size && !xp_symtab_find(f->st, s.addr + at, &sym)) {
				gap++;
				continue;
			}
			all += gap > 16 ? gap : 0;
			gap = 0;
			if (at < s.size) {
				assert_true(sym.start <= s.addr + at && s.addr + at < sym.end + 16);
				all++;
				found++;
				names += sym.name != NULL;
			}
		}
	}
	*named = all ? 100.0 * (double)names / (double)all : 0;
	return all ? 100.0 * (double)found / (double)all : 0;
}

static void check_coverage(const char *path)
{
	double named, share;
	struct timespec a, b;
	struct file f;

	if (access(path, R_OK)) {
		print_message("# %s is not installed\n", path);
		return;
	}
	clock_gettime(CLOCK_MONOTONIC, &a);
	f = load(path, true);
	clock_gettime(CLOCK_MONOTONIC, &b);
	share = coverage(&f, &named);
	print_message("# %s: %.3f %% of code has a function, %.1f %% a name; read in %.1f ms\n",
		      path, share, named, (double)(b.tv_sec - a.tv_sec) * 1e3 +
		      (double)(b.tv_nsec - a.tv_nsec) / 1e6);
	assert_true(share >= 99.9);
	unload(&f);
}

static void all_code_has_function_bounds(void **state)
{
	(void)state;
	check_coverage("/usr/lib/x86_64-linux-gnu/libc.so.6");
	check_coverage("/usr/lib/x86_64-linux-gnu/ld-linux-x86-64.so.2");
	check_coverage("/usr/lib/x86_64-linux-gnu/libruby-3.1.so.3.1");
	check_coverage("/usr/bin/luajit");
	check_coverage("/proc/self/exe");
	if (!build_have("cc"))
		SKIP("no C compiler (cc) for the static program");
	check_coverage(build_program("static", calls, "-O2 -static"));
	assert_true(build_run("strip static"));
	check_coverage(build_path("static"));
}

static void gap_of_libc_keeps_its_own_function(void **state)
{
	static const char path[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";
	struct xp_sym s;
	struct file f;
	size_t bare = 0;

	(void)state;
	if (access(path, R_OK))
		SKIP("no %s", path);
	f = load(path, true);
	/* A nearest-symbol look-up gives an entry without a symbol the name of its neighbour. */
	for (size_t i = 0; i < f.cfi.funcs.n; i++) {
		assert_true(xp_symtab_find(f.st, f.cfi.funcs.v[i].start, &s));
		assert_true(s.start <= f.cfi.funcs.v[i].start && s.end > f.cfi.funcs.v[i].start);
		bare += !s.name;
	}
	print_message("# %zu of %zu unwind entries have no name\n", bare, f.cfi.funcs.n);
	assert_true(bare > 0);
	unload(&f);
}

/* A symbol table in which everything may be wrong: build one and damage every byte of it. */
static void survives_damaged_tables(void **state)
{
	const char *path = build_program("small", "int main(void) { return 0; }", "-O2");
	struct xp_elf *elf;
	struct xp_section s[5];
	uint8_t *copy;

	(void)state;
	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	assert_true(xp_elf_section(elf, ".symtab", &s[0]));
	assert_true(xp_elf_section(elf, ".strtab", &s[1]));
	assert_true(xp_elf_section(elf, ".rela.dyn", &s[2]));
	assert_true(xp_elf_section(elf, ".plt.got", &s[3]));
	assert_true(xp_elf_section(elf, ".dynsym", &s[4]));
	copy = malloc(elf->size);
	assert_non_null(copy);
	for (size_t i = 0; i < 5; i++) {
		for (size_t at = 0; at < s[i].size; at++) {
			struct xp_elf *bad;
			struct xp_symtab *st;
			struct xp_sym sym;

			memcpy(copy, elf->data, elf->size);
			copy[s[i].data - elf->data + at] = at & 1 ? 0xff : 0x80;
			assert_int_equal(xp_elf_open_mem(&bad, copy, elf->size, NULL), 0);
			assert_int_equal(xp_symtab_new(&st, bad, NULL, NULL), 0);
			if (xp_symtab_find(st, elf->entry, &sym) && sym.name)
				assert_true(strlen(sym.name) < 65536);
			xp_symtab_free(st);
			xp_elf_free(bad);
		}
	}
	free(copy);
	xp_elf_free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(symbols_keep_to_their_bounds),
		cmocka_unit_test(padding_belongs_to_the_function_before),
		cmocka_unit_test(stubs_have_the_names_of_what_they_call),
		cmocka_unit_test(main_is_found_through_start),
		cmocka_unit_test(all_code_has_function_bounds),
		cmocka_unit_test(gap_of_libc_keeps_its_own_function),
		cmocka_unit_test(survives_damaged_tables),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
