// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Unwind rows of real files: compared with libdw, with section headers and without, and as input
 * that is cut off or damaged.
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
	assert_int_equal(xp_cfi_build_section(&cfi, EM_X86_64, &section, NULL), 0);
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
		"/usr/lib/x86_64-linux-gnu/libluajit*.so.2", "/usr/bin/luajit",
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

int main(int argc, char **argv)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(truncated),
		cmocka_unit_test(damaged),
		cmocka_unit_test(without_section_headers),
		cmocka_unit_test(installed_files),
		cmocka_unit_test(kernel_vdso),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	extra_files = argv + (argc > 0);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
