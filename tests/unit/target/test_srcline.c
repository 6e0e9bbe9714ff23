// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source lines: programs of gcc and clang against addr2line; files without lines; damage.
 */
#include "target/srcline.h"

#include <errno.h>

#include "build.h"

static const char source[] =
	"volatile int sink;\n"
	"static inline int square(int x)\n"
	"{\n"
	"	return x * x;\n"
	"}\n"
	"__attribute__((noinline)) int work(int n)\n"
	"{\n"
	"	int sum = 0;\n"
	"\n"
	"	for (int i = 0; i < n; i++)\n"
	"		sum += square(i) ^ sink;\n"
	"	return sum;\n"
	"}\n"
	"__attribute__((section(\".elsewhere\"), noinline)) void far(void)\n"
	"{\n"
	"	sink = 16;\n"
	"}\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	(void)argv;\n"
	"	far();\n"
	"	return work(argc);\n"
	"}\n";

/* Every address of two functions, compared with addr2line. */
static void compare(const char *path)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_srcline *sl;
	struct xp_elf *elf;
	char command[512], line[512];
	size_t compared = 0;
	FILE *f;

	assert_int_equal(xp_elf_open_path(&elf, path, &err), 0);
	sl = xp_srcline_new(elf);
	assert_non_null(sl);
	snprintf(command, sizeof(command),
		 "objdump -d --no-show-raw-insn '%s' |"
		 " awk '/>:$/ { in_it = $2 ~ /^<(work|far|main)>/ }"
		 " in_it && /^ / { sub(\":\", \"\", $1); print $1 }' | addr2line -a -e '%s'"
		 " | paste - -", path, path);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		uint64_t addr = strtoull(line, NULL, 16);
		char *colon = strrchr(line, ':'), *name = strchr(line, '\t');
		const char *file;
		uint32_t number;

		assert_non_null(colon);
		assert_non_null(name);
		*colon = 0;
		if (!atoi(colon + 1))
			continue;
		assert_true(xp_srcline_find(sl, addr, &file, &number));
		assert_int_equal(number, atoi(colon + 1));
		assert_string_equal(file, name + 1);
		compared++;
	}
	pclose(f);
	assert_true(compared > 10);
	xp_srcline_free(sl);
	xp_elf_free(elf);
}

static void agrees_with_addr2line(void **state)
{
	(void)state;
	if (!build_have("addr2line") || !build_have("objdump") || !build_have("cc"))
		SKIP("no addr2line, objdump or cc");
	compare(build_program("lines", source, "-O2 -g"));
	compare(build_program("lines4", source, "-O0 -gdwarf-4"));
	compare(build_program("linesz", source, "-O2 -g -gz=zlib"));
	if (build_run("clang -O1 -g lines.c -o lines_clang"))
		compare(build_path("lines_clang"));
	else
		print_message("# no clang\n");
}

/* libdw inflates compressed sections in place: the image that everyone else reads must not change. */
static void inflates_its_own_copy(void **state)
{
	static const char *const sizes[] = { "", "-DBIG" };	/* copied, and mapped: XP_ELF_COPY_MAX */
	static const char with_data[] =
		"#ifdef BIG\nchar data[20 << 20] = { 1 };\n#endif\n"
		"int main(void)\n{\n	return 0;\n}\n";
	char flags[64];

	(void)state;
	for (int i = 0; i < 2; i++) {
		struct xp_section before, after;
		struct xp_srcline *sl;
		struct xp_elf *elf;

		snprintf(flags, sizeof(flags), "-g -gz=zlib %s", sizes[i]);
		assert_int_equal(xp_elf_open_path(&elf, build_program("zlib", with_data, flags),
						  NULL), 0);
		assert_int_equal(elf->map.data != NULL, i);
		assert_true(xp_elf_section(elf, ".debug_info", &before));
		sl = xp_srcline_new(elf);
		assert_non_null(sl);
		assert_true(xp_elf_section(elf, ".debug_info", &after));
		assert_int_equal(before.size, after.size);
		assert_int_equal(before.flags, after.flags);
		xp_srcline_free(sl);
		xp_elf_free(elf);
	}
}

/* A large file is cut, before libdw looks at it and while it does. */
static void survives_a_file_that_is_cut(void **state)
{
	static const char large[] =
		"int main(void)\n{\n	return 0;\n}\n"
		"char data[20 << 20] = { 1 };\n";
	const char *path, *file;
	struct xp_section debug, text;
	uint32_t line;

	(void)state;
	for (int when = 0; when < 3; when++) {
		struct xp_srcline *sl = NULL;
		struct xp_elf *elf;

		path = build_program("cut", large, "-g -gdwarf-5");
		assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
		assert_true(xp_elf_section(elf, ".debug_info", &debug));
		assert_true(xp_elf_section(elf, ".text", &text));
		if (when)
			sl = xp_srcline_new(elf);
		assert_true(!when || sl);
		if (when > 1)
			assert_false(xp_srcline_find(sl, 0, &file, &line));
		/* In the middle of the page, so that libdw sees a part of it. */
		assert_int_equal(truncate(path, debug.data - elf->data + 16), 0);
		if (!when)
			sl = xp_srcline_new(elf);
		for (uint64_t pc = 0; sl && pc < text.size; pc++)
			assert_false(xp_srcline_find(sl, text.addr + pc, &file, &line));
		xp_srcline_free(sl);
		xp_elf_free(elf);
	}
}

static void knows_what_it_does_not_know(void **state)
{
	struct xp_srcline *sl;
	struct xp_elf *elf;
	const char *file;
	uint32_t line;
	const char *path = build_program("bounds", source, "-O2 -g");

	(void)state;
	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	sl = xp_srcline_new(elf);
	assert_non_null(sl);
	assert_false(xp_srcline_find(sl, 0, &file, &line));
	assert_false(xp_srcline_find(sl, UINT64_MAX, &file, &line));
	assert_false(xp_srcline_find(sl, elf->entry, &file, &line));	/* crt1 has no lines */
	xp_srcline_free(sl);
	xp_srcline_free(NULL);
	xp_elf_free(elf);

	assert_true(build_run("strip -g bounds"));
	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	errno = EIO;
	assert_null(xp_srcline_new(elf));
	assert_int_equal(errno, 0);
	xp_elf_free(elf);
}

static void survives_damage(void **state)
{
	static const char *const sections[] = { ".debug_info", ".debug_line", ".debug_abbrev",
						".debug_rnglists", ".debug_line_str" };
	const char *path = build_program("damage", source, "-O2 -g -gdwarf-5");
	struct xp_section text;
	struct xp_elf *elf;
	uint8_t *copy;

	(void)state;
	assert_int_equal(xp_elf_open_path(&elf, path, NULL), 0);
	assert_true(xp_elf_section(elf, ".text", &text));
	copy = malloc(elf->size);
	assert_non_null(copy);
	for (size_t i = 0; i < sizeof(sections) / sizeof(*sections); i++) {
		struct xp_section s;

		if (!xp_elf_section(elf, sections[i], &s))
			continue;
		for (size_t at = 0; at < s.size; at++) {
			struct xp_srcline *sl;
			struct xp_elf *bad;
			const char *file;
			uint32_t line;

			memcpy(copy, elf->data, elf->size);
			copy[s.data - elf->data + at] ^= at & 1 ? 0xff : 0x81;
			assert_int_equal(xp_elf_open_mem(&bad, copy, elf->size, NULL), 0);
			sl = xp_srcline_new(bad);
			for (uint64_t pc = 0; sl && pc < text.size; pc += 7)
				if (xp_srcline_find(sl, text.addr + pc, &file, &line))
					assert_true(line > 0 && strlen(file) < 4096);
			xp_srcline_free(sl);
			xp_elf_free(bad);
		}
	}
	free(copy);
	xp_elf_free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(agrees_with_addr2line),
		cmocka_unit_test(inflates_its_own_copy),
		cmocka_unit_test(survives_a_file_that_is_cut),
		cmocka_unit_test(knows_what_it_does_not_know),
		cmocka_unit_test(survives_damage),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
