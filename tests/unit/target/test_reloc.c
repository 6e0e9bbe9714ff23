// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Relocations and symbols of a little library, against what the dynamic linker makes of it.
 */
#include "build.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>

#include "target/reloc.h"

static const char source[] =
	"extern void *stdout;\n"		/* defined elsewhere */
	"int exported = 5;\n"
	"static int hidden = 6;\n"
	"int *to_hidden = &hidden;\n"
	"int *to_exported = &exported;\n"
	"void *to_elsewhere = &stdout;\n"
	"__thread int before, thread_variable = 3;\n"
	"int *get(void) { return &thread_variable; }\n"
	"int *keep(void) { return &hidden; }\n"
	"int function_a(void) { return 1; }\n"
	"int function_b(void) { return 2; }\n";

static struct xp_elf *build(const char *name, const char *flags)
{
	char all[256];
	struct xp_elf *elf;

	snprintf(all, sizeof(all), "-shared -fPIC -O1 %s", flags);
	assert_int_equal(xp_elf_open_path(&elf, build_program(name, source, all), NULL), 0);
	return elf;
}

static uint64_t value_of(const struct xp_elf *elf, const char *name)
{
	struct xp_export sym;

	assert_true(xp_elf_export(elf, name, &sym));
	return sym.value;
}

static void check_exports(const char *name, const char *flags)
{
	struct xp_elf *elf = build(name, flags);
	void *lib = dlopen(build_path(name), RTLD_LAZY);
	static const char *const names[] = { "exported", "to_hidden", "get", "function_a",
					     "function_b" };
	struct xp_export sym;
	struct link_map *map;

	assert_non_null(lib);
	assert_int_equal(dlinfo(lib, RTLD_DI_LINKMAP, &map), 0);
	for (unsigned i = 0; i < 5; i++)
		assert_int_equal(value_of(elf, names[i]),
				 (uintptr_t)dlsym(lib, names[i]) - map->l_addr);
	dlclose(lib);
	assert_true(xp_elf_export(elf, "exported", &sym));
	assert_int_equal(sym.type, STT_OBJECT);
	assert_int_equal(sym.size, 4);
	assert_int_equal(*xp_elf_at_vaddr(elf, sym.value, 4), 5);
	assert_true(xp_elf_export(elf, "thread_variable", &sym));
	assert_int_equal(sym.type, STT_TLS);
	assert_false(xp_elf_export(elf, "stdout", &sym));
	assert_false(xp_elf_export(elf, "hidden", &sym));
	assert_false(xp_elf_export(elf, "export", &sym));
	assert_false(xp_elf_export(elf, "", &sym));
	assert_true(xp_elf_symbol(elf, "hidden", &sym));
	assert_int_equal(*xp_elf_at_vaddr(elf, sym.value, 4), 6);
	xp_elf_free(elf);
}

static void finds_exported_symbols(void **state)
{
	(void)state;
	check_exports("gnu.so", "-Wl,--hash-style=gnu");
	check_exports("sysv.so", "-Wl,--hash-style=sysv");
}

static void finds_relocations(void **state)
{
	struct xp_elf *elf = build("reloc.so", "");
	const struct xp_reloc *r, *before = NULL;
	struct xp_relocs relocs;
	struct xp_export hidden;
	unsigned modules = 0, offsets = 0;
	uint64_t value;

	(void)state;
	assert_int_equal(xp_relocs_read(&relocs, elf), 0);
	r = xp_reloc_at(&relocs, value_of(elf, "to_hidden"));
	assert_non_null(r);
	assert_int_equal(r->type, R_X86_64_RELATIVE);
	assert_true(xp_elf_symbol(elf, "hidden", &hidden));
	assert_int_equal(r->addend, hidden.value);
	assert_false(xp_reloc_value(elf, r, &value));
	r = xp_reloc_at(&relocs, value_of(elf, "to_exported"));
	assert_non_null(r);
	assert_int_equal(r->type, R_X86_64_64);
	assert_true(xp_reloc_value(elf, r, &value));
	assert_int_equal(value, value_of(elf, "exported"));
	r = xp_reloc_at(&relocs, value_of(elf, "to_elsewhere"));
	assert_non_null(r);
	assert_false(xp_reloc_value(elf, r, &value));
	assert_null(xp_reloc_at(&relocs, value_of(elf, "exported")));
	assert_null(xp_reloc_at(&relocs, value_of(elf, "to_hidden") + 1));
	for (size_t i = 0; i < relocs.list.n; i++) {
		r = &relocs.list.v[i];
		assert_true(!before || before->at <= r->at);
		before = r;
		modules += r->type == R_X86_64_DTPMOD64;
		if (r->type == R_X86_64_DTPOFF64 && xp_reloc_value(elf, r, &value))
			offsets += value == value_of(elf, "thread_variable");
	}
	assert_int_equal(modules, 1);
	assert_int_equal(offsets, 1);
	xp_relocs_release(&relocs);
	xp_relocs_release(&relocs);
	assert_null(xp_reloc_at(&relocs, 0));
	xp_elf_free(elf);
}

static void look_at_everything(const uint8_t *data, size_t n)
{
	struct xp_export sym;
	struct xp_relocs r;
	struct xp_elf *elf;
	uint64_t value;

	if (xp_elf_open_mem(&elf, data, n, NULL))
		return;
	if (!xp_relocs_read(&r, elf)) {
		for (size_t i = 0; i < r.list.n; i++) {
			xp_reloc_at(&r, r.list.v[i].at);
			xp_reloc_value(elf, &r.list.v[i], &value);
		}
		xp_relocs_release(&r);
	}
	xp_elf_export(elf, "function_a", &sym);
	xp_elf_export(elf, "no_such_symbol", &sym);
	xp_elf_symbol(elf, "hidden", &sym);
	xp_elf_free(elf);
}

/* Every byte of the tables and of the section headers gets other values in turn. */
static void survives_damage(void **state)
{
	static const char *const names[] = { ".gnu.hash", ".rela.dyn", ".dynsym", NULL };
	static const uint8_t masks[] = { 0x01, 0x80, 0xff };
	struct xp_elf *elf = build("damage.so", "-Wl,--hash-style=gnu");
	uint8_t *copy = malloc(elf->size);
	Elf64_Ehdr eh;

	(void)state;
	assert_non_null(copy);
	memcpy(copy, elf->data, elf->size);
	memcpy(&eh, copy, sizeof(eh));
	for (unsigned i = 0; i < 4; i++) {
		size_t from = eh.e_shoff, n = (size_t)eh.e_shnum * eh.e_shentsize;
		struct xp_section s;

		if (names[i]) {
			assert_true(xp_elf_section(elf, names[i], &s));
			from = (size_t)(s.data - elf->data);
			n = s.size;
		}
		for (size_t at = 0; at < n; at++) {
			copy[from + at] ^= masks[at % 3];
			look_at_everything(copy, elf->size);
			copy[from + at] ^= masks[at % 3];
		}
	}
	for (size_t n = 0; n < elf->size; n += 97)
		look_at_everything(copy, n);
	free(copy);
	xp_elf_free(elf);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_exported_symbols),
		cmocka_unit_test(finds_relocations),
		cmocka_unit_test(survives_damage),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, build_teardown);
}
