// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * ELF images: an installed library against readelf, a small image damaged in every way.
 */
#include "target/elf.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>

#include "build.h"

static const char libc_path[] = "/usr/lib/x86_64-linux-gnu/libc.so.6";

/* A whole little image: two segments, a note, an eh_frame_hdr, three sections. */
struct image {
	Elf64_Ehdr eh;
	Elf64_Phdr ph[4];
	struct { Elf64_Nhdr nh; char name[4]; uint8_t id[20]; } note;
	uint8_t code[64];
	char names[32];
	Elf64_Shdr sh[4];
};

#define AT(member) offsetof(struct image, member)

static struct image make(void)
{
	struct image im = {
		.eh = { .e_ident = { 0x7f, 'E', 'L', 'F', ELFCLASS64, ELFDATA2LSB, EV_CURRENT },
			.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
			.e_entry = 0x1010, .e_phoff = AT(ph), .e_phnum = 4,
			.e_phentsize = sizeof(Elf64_Phdr), .e_shoff = AT(sh), .e_shnum = 4,
			.e_shentsize = sizeof(Elf64_Shdr), .e_shstrndx = 3,
			.e_ehsize = sizeof(Elf64_Ehdr) },
		.ph = {
			{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = AT(code),
			  .p_memsz = AT(code) },
			{ .p_type = PT_LOAD, .p_flags = PF_R | PF_X, .p_offset = AT(code),
			  .p_vaddr = 0x1000, .p_filesz = 64, .p_memsz = 96 },
			{ .p_type = PT_NOTE, .p_offset = AT(note), .p_filesz = 36, .p_align = 4 },
			{ .p_type = PT_GNU_EH_FRAME, .p_offset = AT(code), .p_vaddr = 0x1000,
			  .p_filesz = 8 },
		},
		.note = { { 4, 20, NT_GNU_BUILD_ID }, "GNU", { 0xab, 1, 2, 3, [19] = 0xff } },
		.names = "\0.text\0.bss\0.names",
		.sh = {
			{ 0 },
			{ .sh_name = 1, .sh_type = SHT_PROGBITS, .sh_offset = AT(code),
			  .sh_size = 64, .sh_addr = 0x1000, .sh_flags = SHF_ALLOC | SHF_EXECINSTR },
			{ .sh_name = 7, .sh_type = SHT_NOBITS, .sh_offset = 1 << 30,
			  .sh_size = 1 << 20, .sh_addr = 0x9000 },
			{ .sh_name = 12, .sh_type = SHT_STRTAB, .sh_offset = AT(names),
			  .sh_size = 32 },
		},
	};

	for (int i = 0; i < 64; i++)
		im.code[i] = (uint8_t)i;
	return im;
}

static struct xp_elf *open_image(const struct image *im)
{
	struct xp_elf *elf;
	struct xp_err err = XP_ERR_INIT;

	if (xp_elf_open_mem(&elf, im, sizeof(*im), &err))
		fail_msg("%s", err.what);
	return elf;
}

static void reads_an_image(void **state)
{
	struct image im = make();
	struct xp_elf *elf = open_image(&im);
	struct xp_section s;
	char hex[2 * XP_BUILD_ID_MAX + 1];
	uint64_t vaddr;

	(void)state;
	assert_int_equal(elf->machine, EM_X86_64);
	assert_int_equal(elf->type, ET_DYN);
	assert_int_equal(elf->entry, 0x1010);
	assert_int_equal(elf->nsegments, 2);
	assert_false(elf->segments[0].exec);
	assert_true(elf->segments[1].exec);
	assert_int_equal(elf->segments[1].memsz, 96);
	assert_non_null(elf->elf);
	xp_elf_build_id_hex(elf, hex);
	assert_string_equal(hex, "ab010203000000000000000000000000000000ff");

	assert_true(xp_elf_vaddr_of_offset(elf, AT(code) + 5, &vaddr));
	assert_int_equal(vaddr, 0x1005);
	assert_false(xp_elf_vaddr_of_offset(elf, AT(code) + 64, &vaddr));
	assert_false(xp_elf_vaddr_of_offset(elf, 0, &vaddr));		/* not executable */
	assert_false(xp_elf_vaddr_of_offset(elf, UINT64_MAX, &vaddr));

	assert_int_equal(xp_elf_at_vaddr(elf, 0x103f, 1)[0], 63);
	assert_null(xp_elf_at_vaddr(elf, 0x103f, 2));
	assert_null(xp_elf_at_vaddr(elf, 0x1040, 1));			/* in memory only */
	assert_null(xp_elf_at_vaddr(elf, 0xfff, 1));
	assert_null(xp_elf_at_vaddr(elf, 0x1000, SIZE_MAX));
	assert_null(xp_elf_at_vaddr(elf, UINT64_MAX, 1));

	assert_true(xp_elf_section(elf, ".text", &s));
	assert_int_equal(s.size, 64);
	assert_int_equal(s.addr, 0x1000);
	assert_memory_equal(s.data, im.code, 64);
	assert_true(xp_elf_section(elf, ".bss", &s));
	assert_null(s.data);
	assert_false(xp_elf_section(elf, ".data", &s));
	assert_false(xp_elf_section(elf, "", &s));
	assert_true(xp_elf_eh_frame_hdr(elf, &s));
	assert_int_equal(s.addr, 0x1000);
	assert_int_equal(s.size, 8);
	xp_elf_free(elf);
	xp_elf_free(NULL);
}

static void refuse(const void *data, size_t n, const char *why)
{
	struct xp_elf *elf = (struct xp_elf *)1;
	struct xp_err err = XP_ERR_INIT;

	assert_int_equal(xp_elf_open_mem(&elf, data, n, &err), -ENOEXEC);
	assert_null(elf);
	if (!strstr(err.what, why))
		fail_msg("'%s' is not in '%s'", why, err.what);
}

static void refuses_what_it_cannot_read(void **state)
{
	struct image im = make();

	(void)state;
	refuse(NULL, 0, "not an ELF file");
	refuse(&im, sizeof(Elf64_Ehdr) - 1, "not an ELF file");
	im.eh.e_ident[EI_CLASS] = ELFCLASS32;
	refuse(&im, sizeof(im), "not a 64-bit");
	im = make();
	im.eh.e_ident[EI_DATA] = ELFDATA2MSB;
	refuse(&im, sizeof(im), "little-endian");
	im = make();
	im.eh.e_phnum = PN_XNUM;
	refuse(&im, sizeof(im), "65535 program headers");
	im = make();
	im.eh.e_phnum = 1000;
	refuse(&im, sizeof(im), "past its end");
	im = make();
	im.eh.e_phoff = UINT64_MAX - 8;
	refuse(&im, sizeof(im), "past its end");
	im = make();
	im.eh.e_phentsize = 8;
	refuse(&im, sizeof(im), "past its end");
}

static void survives_damaged_sections(void **state)
{
	struct image im = make();
	struct xp_section s;
	struct xp_elf *elf;

	(void)state;
	im.sh[1].sh_size = sizeof(im);			/* reaches past the end */
	elf = open_image(&im);
	assert_false(xp_elf_section(elf, ".text", &s));
	assert_null(s.data);
	assert_true(xp_elf_section(elf, ".bss", &s));
	xp_elf_free(elf);

	im = make();
	im.sh[1].sh_offset = UINT64_MAX - 10;
	elf = open_image(&im);
	assert_false(xp_elf_section(elf, ".text", &s));
	xp_elf_free(elf);

	im = make();
	im.sh[1].sh_name = 31;				/* an empty name at the last byte */
	im.sh[2].sh_name = UINT32_MAX;
	memset(im.names + 12, 'x', 20);			/* names that do not end */
	elf = open_image(&im);
	assert_false(xp_elf_section(elf, ".text", &s));
	assert_false(xp_elf_section(elf, ".bss", &s));
	xp_elf_free(elf);

	im = make();
	im.eh.e_shstrndx = 4;
	elf = open_image(&im);
	assert_false(xp_elf_section(elf, ".text", &s));
	xp_elf_free(elf);

	im = make();
	im.eh.e_shnum = 200;
	elf = open_image(&im);
	assert_int_equal(xp_elf_section_count(elf), 0);
	assert_false(xp_elf_section(elf, ".text", &s));
	assert_true(xp_elf_eh_frame_hdr(elf, &s));
	xp_elf_free(elf);
}

static void survives_damaged_segments(void **state)
{
	struct image im = make();
	struct xp_section s;
	struct xp_elf *elf;
	uint64_t vaddr;

	(void)state;
	im.ph[0].p_offset = UINT64_MAX - 100;		/* nothing of it is there */
	im.ph[1].p_filesz = im.ph[1].p_memsz = 1 << 20;	/* cut to what is there */
	im.ph[2].p_filesz = UINT64_MAX;
	im.ph[3].p_offset = sizeof(im) - 4;
	elf = open_image(&im);
	assert_int_equal(elf->nsegments, 2);
	assert_int_equal(elf->segments[0].filesz, 0);
	assert_int_equal(elf->segments[1].filesz, sizeof(im) - AT(code));
	assert_null(xp_elf_at_vaddr(elf, 0, 1));
	assert_null(xp_elf_at_vaddr(elf, 0x1000, 1 << 19));
	assert_false(xp_elf_vaddr_of_offset(elf, sizeof(im), &vaddr));
	assert_int_equal(elf->build_id_len, 0);
	assert_false(xp_elf_eh_frame_hdr(elf, &s));
	xp_elf_free(elf);

	im = make();
	im.ph[0].p_vaddr = UINT64_MAX - 4;		/* wraps around */
	im.ph[1].p_filesz = 97;				/* more than in memory */
	elf = open_image(&im);
	assert_int_equal(elf->nsegments, 0);
	xp_elf_free(elf);
}

static void survives_damaged_notes(void **state)
{
	static const struct { uint32_t namesz, descsz, type; } bad[] = {
		{ 4, 21, 3 }, { 4, 0, 3 }, { UINT32_MAX, 20, 3 }, { 4, UINT32_MAX, 3 },
		{ UINT32_MAX, UINT32_MAX, 3 }, { 3, 20, 3 }, { 4, 20, 1 }, { 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct image im = make();
		struct xp_elf *elf;

		im.note.nh = (Elf64_Nhdr){ bad[i].namesz, bad[i].descsz, bad[i].type };
		elf = open_image(&im);
		assert_int_equal(elf->build_id_len, 0);
		xp_elf_free(elf);
	}
}

/*
 * Every byte of the headers, several values each: whatever it says, nothing may be touched
 * outside.
 */
static void survives_any_byte(void **state)
{
	static const uint8_t values[] = { 0, 1, 0x7f, 0x80, 0xff };

	(void)state;
	for (size_t at = 0; at < sizeof(struct image); at++) {
		for (size_t v = 0; v < sizeof(values); v++) {
			struct image im = make();
			struct xp_section s;
			struct xp_elf *elf;
			uint64_t vaddr;

			((uint8_t *)&im)[at] = values[v];
			if (xp_elf_open_mem(&elf, &im, sizeof(im), NULL))
				continue;
			if (xp_elf_section(elf, ".names", &s) && s.size)
				assert_true(s.data[0] + s.data[s.size - 1] >= 0);
			if (xp_elf_eh_frame_hdr(elf, &s) && s.size)
				assert_true(s.data[0] + s.data[s.size - 1] >= 0);
			xp_elf_vaddr_of_offset(elf, AT(code), &vaddr);
			xp_elf_free(elf);
		}
	}
}

static void agrees_with_readelf(void **state)
{
	char want[256], hex[2 * XP_BUILD_ID_MAX + 1];
	struct xp_err err = XP_ERR_INIT;
	struct xp_section s;
	struct xp_elf *elf;

	(void)state;
	if (access(libc_path, R_OK) || !build_have("readelf"))
		SKIP("no %s or no readelf", libc_path);
	assert_int_equal(xp_elf_open_path(&elf, libc_path, &err), 0);
	assert_null(elf->map.data);
	build_output("readelf -n /usr/lib/x86_64-linux-gnu/libc.so.6 | sed -n 's/.*Build ID: //p'",
		     want, sizeof(want));
	xp_elf_build_id_hex(elf, hex);
	assert_string_equal(hex, want);
	assert_true(xp_elf_section(elf, ".text", &s));
	snprintf(hex, sizeof(hex), "%016lx %06zx", (unsigned long)s.addr, s.size);
	build_output("readelf -SW /usr/lib/x86_64-linux-gnu/libc.so.6 |"
		     " sed 's/^ *[[][ 0-9]*[]] *//' | awk '$1 == \".text\" { print $3, $5 }'",
		     want, sizeof(want));
	assert_string_equal(hex, want);
	xp_elf_free(elf);
}

static void opens_quickly(void **state)
{
	struct timespec a, b;
	double best = 1e9, ms;

	(void)state;
	if (access(libc_path, R_OK))
		SKIP("no %s", libc_path);
	for (int i = 0; i < 20; i++) {
		struct xp_elf *elf;

		clock_gettime(CLOCK_MONOTONIC, &a);
		assert_int_equal(xp_elf_open_path(&elf, libc_path, NULL), 0);
		clock_gettime(CLOCK_MONOTONIC, &b);
		xp_elf_free(elf);
		ms = (double)(b.tv_sec - a.tv_sec) * 1e3 + (double)(b.tv_nsec - a.tv_nsec) / 1e6;
		best = ms < best ? ms : best;
	}
	print_message("# libc.so.6 opened in %.2f ms\n", best);
	assert_true(best < 20);		/* an order of magnitude, not a measurement */
}

static void maps_large_files(void **state)
{
	struct image im = make();
	struct xp_err err = XP_ERR_INIT;
	struct xp_elf *elf;
	struct xp_section s;
	off_t at;
	int fd;

	(void)state;
	build_write("large", &im, sizeof(im));
	assert_int_equal(truncate(build_path("large"), XP_ELF_COPY_MAX + 1), 0);
	fd = open(build_path("large"), O_RDONLY);
	at = lseek(fd, 7, SEEK_SET);
	assert_int_equal(xp_elf_open_fd(&elf, fd, &err), 0);
	assert_int_equal(lseek(fd, 0, SEEK_CUR), at);
	close(fd);
	assert_non_null(elf->map.data);
	assert_true(xp_elf_section(elf, ".text", &s));
	assert_int_equal(s.data[63], 63);
	xp_elf_free(elf);
}

/* A large file is cut, and filled with something else, while it is open. */
static void survives_a_file_that_changes(void **state)
{
	struct image im = make();
	struct xp_err err = XP_ERR_INIT;
	struct xp_section s;
	struct xp_elf *elf;
	uint64_t vaddr;

	(void)state;
	for (int keep = 0; keep < 2; keep++) {
		build_write("large", &im, sizeof(im));
		assert_int_equal(truncate(build_path("large"), XP_ELF_COPY_MAX + 4096), 0);
		assert_int_equal(xp_elf_open_path(&elf, build_path("large"), &err), 0);
		assert_false(xp_elf_damaged(elf));
		assert_int_equal(truncate(build_path("large"), keep ? sizeof(im) : 0), 0);
		assert_int_equal(xp_elf_section(elf, ".text", &s), keep);
		assert_int_equal(elf->data[elf->size - 1], 0);
		assert_true(xp_elf_damaged(elf));
		assert_int_equal(xp_elf_eh_frame_hdr(elf, &s), keep);
		xp_elf_free(elf);
	}
	build_write("large", &im, sizeof(im));
	assert_int_equal(truncate(build_path("large"), XP_ELF_COPY_MAX + 4096), 0);
	assert_int_equal(xp_elf_open_path(&elf, build_path("large"), &err), 0);
	memset(&im, 0xff, sizeof(im));
	build_write("large", &im, sizeof(im));
	assert_int_equal(truncate(build_path("large"), XP_ELF_COPY_MAX + 4096), 0);
	assert_false(xp_elf_section(elf, ".text", &s));
	assert_false(xp_elf_eh_frame_hdr(elf, &s));
	xp_elf_vaddr_of_offset(elf, AT(code), &vaddr);
	assert_int_equal(xp_elf_section_count(elf), 4);
	xp_elf_free(elf);
}

static void says_what_is_wrong_with_a_file(void **state)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_elf *elf;
	char want[256];

	(void)state;
	assert_int_equal(xp_elf_open_path(&elf, "/nonexistent/x", &err), -ENOENT);
	assert_string_equal(err.what, "cannot open /nonexistent/x: No such file or directory");
	assert_int_equal(xp_elf_open_path(&elf, "/tmp", &err), -ENOEXEC);
	assert_string_equal(err.what, "/tmp: not a regular file");
	assert_int_equal(xp_elf_open_path(&elf, "/dev/zero", &err), -ENOEXEC);
	assert_int_equal(mkfifo(build_path("fifo"), 0600), 0);
	assert_int_equal(xp_elf_open_path(&elf, build_path("fifo"), &err), -ENOEXEC);
	build_write("text", "#!/bin/sh\n", 10);
	assert_int_equal(xp_elf_open_path(&elf, build_path("text"), &err), -ENOEXEC);
	snprintf(want, sizeof(want), "%s: not an ELF file", build_path("text"));
	assert_string_equal(err.what, want);
	build_write("empty", "", 0);
	assert_int_equal(xp_elf_open_path(&elf, build_path("empty"), &err), -ENOEXEC);
	assert_null(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_an_image),
		cmocka_unit_test(refuses_what_it_cannot_read),
		cmocka_unit_test(survives_damaged_sections),
		cmocka_unit_test(survives_damaged_segments),
		cmocka_unit_test(survives_damaged_notes),
		cmocka_unit_test(survives_any_byte),
		cmocka_unit_test(agrees_with_readelf),
		cmocka_unit_test(opens_quickly),
		cmocka_unit_test(maps_large_files),
		cmocka_unit_test(survives_a_file_that_changes),
		cmocka_unit_test(says_what_is_wrong_with_a_file),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
