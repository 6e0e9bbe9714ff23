// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a Ruby's file tells: the installed 3.1 against its own symbols, look-alikes compiled in
 * different ways, and files that only pretend or are damaged.
 */
#include "../target/build.h"

#include <elf.h>
#include <errno.h>

#include "ruby_fake.h"
#include "runtime/ruby/image_impl.h"

static struct xp_dsos *dsos;

static int setup(void **state)
{
	dsos = xp_dsos_new();
	return !dsos || build_setup(state);
}

static int teardown(void **state)
{
	xp_dsos_free(dsos);
	return build_teardown(state);
}

/* Path of the installed libruby 3.1; skips without. */
static const char *libruby(void)
{
	static char path[512];

	build_output("ruby -rrbconfig -e 'exit if RUBY_VERSION !~ /^3.1/; c = RbConfig::CONFIG;"
		     " puts %w(libdir archlibdir)"
		     ".map { |d| File.join(c[d].to_s, c[%q(LIBRUBY_SO)]) }"
		     ".find { |f| File.file?(f) }' 2>/dev/null", path, sizeof(path));
	if (!path[0])
		SKIP("no shared libruby 3.1");
	return path;
}

static struct xp_dso *open_dso(const char *path)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_dso *dso = xp_dsos_get_path(dsos, path, &err);

	if (!dso || !dso->elf)
		fail_msg("%s: %s", path, dso ? dso->problem : err.what);
	return dso;
}

static uint64_t export_of(struct xp_dso *dso, const char *name)
{
	struct xp_export sym;

	assert_true(xp_elf_export(dso->elf, name, &sym) || xp_elf_symbol(dso->elf, name, &sym));
	return sym.value;
}

static void reads_the_installed_ruby(void **state)
{
	struct xp_dso *dso = open_dso(libruby());
	struct xp_err err = XP_ERR_INIT;
	struct xp_ruby_image image;
	struct xp_export sym;
	const uint8_t *p;
	uint32_t last_id;

	(void)state;
	if (xp_ruby_image_read(&image, dso, &err) != 1)
		fail_msg("%s", err.what);
	assert_memory_equal(image.version, "3.1.", 4);
	assert_int_equal(image.layout->minor, 1);
	assert_int_equal(image.ec_thread, 0x30);
	assert_int_equal(image.thread_self, 0x10);
	if (xp_elf_export(dso->elf, "ruby_current_ec", &sym))
		assert_int_equal(image.ec_offset, sym.value);
	if (xp_elf_export(dso->elf, "ruby_current_vm_ptr", &sym))
		assert_int_equal(image.vm_ptr, sym.value);
	if (xp_elf_export(dso->elf, "rb_vm_exec", &sym)) {
		assert_int_equal(image.vm_exec[0], sym.value);
		assert_true(image.vm_exec[1] >= sym.value + sym.size);
	}
	assert_int_equal(image.objspace_flags, 0x10);
	assert_int_equal(image.gc_bit, 5);
	assert_int_equal(image.last_op_id, 0xa9);
	assert_int_equal(image.id_shift, 4);
	p = xp_elf_at_vaddr(dso->elf, image.symbols, 4);
	assert_non_null(p);
	memcpy(&last_id, p, 4);
	assert_true(last_id > image.last_op_id);
	assert_true(image.core[1] - image.core[0] > 8192);
	assert_non_null(strstr(image.how, "from rb_thread_current"));
	assert_non_null(strstr(image.how, "202 labels"));
}

/* Compiles the look-alike; skips without a compiler. */
static struct xp_dso *fake(const char *name, const char *flags)
{
	char all[512];

	snprintf(all, sizeof(all), "-O2 %s", flags);
	return open_dso(build_program(name, ruby_fake, all));
}

static void check_fake(const char *name, const char *flags, enum xp_ruby_ec_access access)
{
	struct xp_dso *dso = fake(name, flags);
	struct xp_err err = XP_ERR_INIT;
	struct xp_ruby_image image;
	uint64_t core = export_of(dso, "vm_exec_core"), exec = export_of(dso, "rb_vm_exec");

	if (xp_ruby_image_read(&image, dso, &err) != 1)
		fail_msg("%s (%s): %s", name, flags, err.what);
	assert_string_equal(image.version, "3.1.9");
	assert_int_equal(image.ec_access, access);
	assert_int_equal(image.ec_thread, 0x30);
	assert_int_equal(image.thread_self, 0x10);
	assert_int_equal(image.vm_ptr, export_of(dso, "ruby_current_vm_ptr"));
	assert_int_equal(image.vm_objspace, 0x450);
	assert_int_equal(image.objspace_flags, 0x10);
	assert_int_equal(image.gc_bit, 5);
	assert_int_equal(image.symbols, export_of(dso, "symbols"));
	assert_int_equal(image.last_op_id, 169);
	assert_int_equal(image.id_shift, 4);
	assert_int_equal(image.core[0], core);
	assert_int_equal(image.vm_exec[0], exec);
	assert_int_equal(image.vm_exec[2], 0);
	assert_null(strstr(image.how, "(null)"));
	if (access == XP_RUBY_EC_DYNAMIC)
		assert_int_equal(image.ec_offset, strstr(flags, "BIG") ?
				 export_of(dso, "var") + 8 : export_of(dso, "ruby_current_ec"));
	if (access == XP_RUBY_EC_LOCAL)
		assert_true(image.ec_offset < 0 && image.ec_offset >= -32);
	if (access == XP_RUBY_EC_INITIAL)
		assert_true(image.ec_slot != 0 && image.ec_offset == 0);
}

static void reads_other_ways_of_compiling(void **state)
{
	(void)state;
	check_fake("gd.so", "-shared -fPIC", XP_RUBY_EC_DYNAMIC);
	check_fake("gd1.so", "-shared -fPIC -O1", XP_RUBY_EC_DYNAMIC);
	check_fake("follow.so", "-shared -fPIC -DFOLLOW", XP_RUBY_EC_DYNAMIC);
	check_fake("own.so", "-shared -fPIC -DOWN", XP_RUBY_EC_DYNAMIC);
	check_fake("big.so", "-shared -fPIC -DBIG", XP_RUBY_EC_DYNAMIC);
	check_fake("hidden.so", "-shared -fPIC -DHIDDEN", XP_RUBY_EC_DYNAMIC);
	check_fake("bsym.so", "-shared -fPIC -Wl,-Bsymbolic", XP_RUBY_EC_DYNAMIC);
	check_fake("ie.so", "-shared -fPIC -ftls-model=initial-exec", XP_RUBY_EC_INITIAL);
	check_fake("le", "-fPIE -pie -rdynamic -DMAIN", XP_RUBY_EC_LOCAL);
	/* The linker turns calls into loads of a program's own variables. */
	check_fake("relaxed", "-fPIC -pie -rdynamic -DMAIN", XP_RUBY_EC_INITIAL);
	check_fake("relaxed-le", "-fPIC -pie -rdynamic -DMAIN -DOWN", XP_RUBY_EC_LOCAL);
	check_fake("cet.so", "-shared -fPIC -fcf-protection", XP_RUBY_EC_DYNAMIC);
	check_fake("fp.so", "-shared -fPIC -fno-omit-frame-pointer", XP_RUBY_EC_DYNAMIC);
}

static void check_refused(const char *name, const char *flags, const char *why)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_ruby_image image;

	assert_int_equal(xp_ruby_image_read(&image, fake(name, flags), &err), -ENOTSUP);
	if (!strstr(err.what, why))
		fail_msg("%s: \"%s\" instead of \"%s\"", name, err.what, why);
}

static void refuses_with_the_failing_step(void **state)
{
	(void)state;
	check_refused("old.so", "-shared -fPIC '-DVERSION=\"2.6.3\"'", "ruby 2.6.3: this version");
	check_refused("odd.so", "-shared -fPIC '-DVERSION=\"3.1.2-beta\"'", "not a version");
	check_refused("empty.so", "-shared -fPIC '-DVERSION=\"\"'", "not a version");
	check_refused("dots.so", "-shared -fPIC '-DVERSION=\"....\"'", "not a version");
	check_refused("long.so", "-shared -fPIC '-DVERSION=\"3.1.11111111111111111\"'",
		      "not a version");
	check_refused("none.so", "-shared -fPIC -DNO_THREAD_CURRENT",
		      "ruby 3.1.9: no exported function rb_thread_current");
	check_refused("global.so", "-shared -fPIC -D__thread=", "no load of the thread from a TLS");
	check_refused("objspace.so", "-shared -fPIC -DNO_OBJSPACE",
		      "ruby 3.1.9: rb_during_gc: no load of the objspace pointer");
	check_refused("limit.so", "-shared -fPIC -DNO_LIMIT", "rb_id2str: no comparison");
	check_refused("few.so", "-shared -fPIC -DFEW", "no table of its labels");
	check_refused("uncalled.so", "-shared -fPIC -DNO_VM_EXEC", "nothing calls it");
	check_refused("three.so", "-shared -fPIC -DTHREE", "more than two functions");
}

static void knows_what_is_no_ruby(void **state)
{
	struct xp_ruby_image image;
	struct xp_dso *dso;

	(void)state;
	dso = open_dso(build_program("plain", "int main(void) { return 0; }", ""));
	assert_int_equal(xp_ruby_image_read(&image, dso, NULL), 0);
	/* A function of that name, and a variable without bytes in the file. */
	dso = open_dso(build_program("func.so", "int ruby_version(void) { return 3; }",
				     "-shared -fPIC"));
	assert_int_equal(xp_ruby_image_read(&image, dso, NULL), 0);
	dso = open_dso(build_program("bss.so", "char before[1 << 20], ruby_version[6];",
				     "-shared -fPIC"));
	assert_int_equal(xp_ruby_image_read(&image, dso, NULL), 0);
	assert_int_equal(xp_ruby_image_read(&image, &(struct xp_dso){ .path = NULL }, NULL), 0);
}

/* Reads an image that is in memory, with the rows of an undamaged one. */
static int read_bytes(const uint8_t *data, size_t n, const struct xp_cfi *cfi, struct xp_err *err)
{
	struct xp_dso dso = { .cfi = *cfi, .cfi_built = true };
	struct xp_ruby_image image;
	int rc = 0;

	if (xp_elf_open_mem(&dso.elf, data, n, NULL) == 0)
		rc = xp_ruby_image_read(&image, &dso, err);
	xp_elf_free(dso.elf);
	return rc;
}

static unsigned next_random(unsigned *x)
{
	*x = *x * 1103515245 + 12345;
	return *x >> 16;
}

/* The functions' code, the relocations and the symbols of a good file, overwritten. */
static void survives_damage(void **state)
{
	static const char *const functions[] = { "rb_thread_current", "rb_during_gc", "rb_id2str" };
	static const char *const sections[] = { ".rela.dyn", ".dynsym", ".gnu.hash", ".data" };
	struct xp_dso *dso = fake("damage.so", "-shared -fPIC -Wl,--hash-style=gnu");
	size_t n = dso->elf->size;
	uint8_t *copy = malloc(n);
	unsigned x = 1, refused = 0;

	(void)state;
	assert_non_null(copy);
	assert_int_equal(xp_dso_need_rows(dso), 0);
	memcpy(copy, dso->elf->data, n);
	assert_int_equal(read_bytes(copy, n, &dso->cfi, NULL), 1);
	for (unsigned round = 0; round < 1200; round++) {
		struct xp_err err = XP_ERR_INIT;
		struct xp_section s;
		size_t from, len = 40;
		int rc;

		if (round % 2) {
			assert_true(xp_elf_section(dso->elf, sections[round / 2 % 4], &s));
			from = (size_t)(s.data - dso->elf->data) + next_random(&x) % s.size;
			len = 8;
		} else {
			from = (size_t)(xp_elf_at_vaddr(dso->elf, export_of(dso,
				functions[round / 2 % 3]), 1) - dso->elf->data);
			from += next_random(&x) % 8;
		}
		for (size_t i = from; i < from + len && i < n; i++)
			copy[i] = (uint8_t)next_random(&x);
		rc = read_bytes(copy, n, &dso->cfi, &err);
		assert_true(rc == 1 || rc == 0 || (rc == -ENOTSUP && err.what[0]));
		refused += rc < 0;
		memcpy(copy, dso->elf->data, n);
	}
	assert_true(refused > 500);
	for (size_t cut = 0; cut < n; cut += 509)
		read_bytes(copy, cut, &dso->cfi, NULL);
	free(copy);
}

/* A version at the very end of the file's bytes, without a NUL. */
static void refuses_a_version_without_end(void **state)
{
	struct xp_dso *dso = fake("end.so", "-shared -fPIC");
	uint64_t at = export_of(dso, "ruby_version");
	size_t n = dso->elf->size;
	uint8_t *copy = malloc(n);
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	assert_non_null(copy);
	assert_int_equal(xp_dso_need_rows(dso), 0);
	memcpy(copy, dso->elf->data, n);
	memset(copy + (xp_elf_at_vaddr(dso->elf, at, 6) - dso->elf->data), '1', 16);
	assert_int_equal(read_bytes(copy, n, &dso->cfi, &err), -ENOTSUP);
	assert_non_null(strstr(err.what, "not a version"));
	free(copy);
}

/* The error names the step when one function of the installed Ruby is another one. */
static void names_the_step_of_a_changed_ruby(void **state)
{
	static const struct { const char *function, *why; } cases[] = {
		{ "rb_thread_current", "rb_thread_current: no load" },
		{ "rb_during_gc", "rb_during_gc: no load of the objspace pointer" },
		{ "rb_id2str", "rb_id2str: no comparison" },
	};
	struct xp_dso *dso = open_dso(libruby());
	size_t n = dso->elf->size;
	uint8_t *copy = malloc(n);

	(void)state;
	assert_non_null(copy);
	assert_int_equal(xp_dso_need_rows(dso), 0);
	for (unsigned i = 0; i < 3; i++) {
		struct xp_err err = XP_ERR_INIT;
		const uint8_t *p = xp_elf_at_vaddr(dso->elf, export_of(dso, cases[i].function), 16);

		memcpy(copy, dso->elf->data, n);
		memset(copy + (p - dso->elf->data), 0x90, 24);
		assert_int_equal(read_bytes(copy, n, &dso->cfi, &err), -ENOTSUP);
		if (!strstr(err.what, cases[i].why))
			fail_msg("%s: %s", cases[i].function, err.what);
	}
	free(copy);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_the_installed_ruby),
		cmocka_unit_test(reads_other_ways_of_compiling),
		cmocka_unit_test(refuses_with_the_failing_step),
		cmocka_unit_test(knows_what_is_no_ruby),
		cmocka_unit_test(survives_damage),
		cmocka_unit_test(refuses_a_version_without_end),
		cmocka_unit_test(names_the_step_of_a_changed_ruby),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
