/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/native: places become frames with names.
 *
 * Looked at are this program itself, a little program that is stripped, the vdso and a made list of
 * kernel symbols.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "runtime/native.h"
#include "target/process.h"

static struct xp_profile profile;
static struct xp_native native;
static struct xp_dsos *dsos;

/* Something to be found, with a C++ name: outer::Inner<int>::turn(long). */
__attribute__((noinline, used)) int plain_function(int x);
__attribute__((noinline, used)) int mangled_function(int x)
	__asm__("_ZN5outer5InnerIiE4turnEl");

int plain_function(int x)
{
	return x * 3 + 1;
}

int mangled_function(int x)
{
	return x * 5 + 2;
}

static int setup(void **state)
{
	(void)state;
	dsos = xp_dsos_new();
	return !dsos || xp_profile_init(&profile) || xp_native_init(&native, &profile);
}

static int teardown(void **state)
{
	(void)state;
	xp_native_release(&native);
	xp_native_release(&native);		/* legal twice */
	xp_profile_release(&profile);
	xp_dsos_free(dsos);
	return 0;
}

/* The place of an address of this process. */
static struct xp_place place_of(const void *addr, bool exact)
{
	struct xp_place place = { .kind = XP_PLACE_DSO, .exact = exact };
	struct xp_maps maps = { 0 };
	const struct xp_mapping *m;

	assert_int_equal(xp_maps_read(&maps, getpid(), NULL), 0);
	m = xp_maps_find(&maps, (uintptr_t)addr);
	assert_non_null(m);
	place.dso = xp_dsos_get(dsos, getpid(), m);
	assert_non_null(place.dso);
	assert_true(xp_dso_vaddr(place.dso, m, (uintptr_t)addr, &place.addr));
	xp_maps_release(&maps);
	return place;
}

static const struct xp_frame *frame_of(const struct xp_place *place)
{
	uint32_t id = XP_NO_ID;

	assert_int_equal(xp_native_frame(&native, place, &id), 0);
	assert_true(id < profile.frames.n);
	return &profile.frames.v[id];
}

static const char *string(uint32_t id)
{
	return xp_strings_get(&profile.strings, id).p;
}

static const char *name_of(const struct xp_place *place)
{
	return string(frame_of(place)->name);
}

static void functions_have_their_symbols(void **state)
{
	struct xp_place place = place_of((const char *)plain_function + 1, true);
	const struct xp_frame *f = frame_of(&place);

	(void)state;
	assert_string_equal(string(f->name), "plain_function");
	assert_string_equal(string(f->runtime), "native");
	assert_int_equal(f->kind, XP_FRAME_NORMAL);
	assert_int_equal(f->addr, place.addr);
	assert_true(f->dso < profile.dsos.n);
	assert_string_equal(string(profile.dsos.v[f->dso].path), place.dso->path);
	assert_string_equal(string(profile.dsos.v[f->dso].build_id), place.dso->build_id);
}

/* A return address belongs to the function of the byte before. */
static void return_addresses_belong_to_the_caller(void **state)
{
	struct xp_place place = place_of(plain_function, true);
	struct xp_sym sym;

	(void)state;
	assert_true(xp_dso_symbol(place.dso, place.addr, &sym));
	assert_string_equal(name_of(&place), "plain_function");
	place.addr = sym.end;
	place.exact = false;
	assert_string_equal(name_of(&place), "plain_function");
	place.addr = sym.start;
	place.exact = false;
	assert_string_not_equal(name_of(&place), "plain_function");
}

static void mangled_names_are_readable(void **state)
{
	struct xp_place place = place_of(mangled_function, true);

	(void)state;
	assert_non_null(strstr(name_of(&place), "outer::Inner<int>::turn"));
}

static void frames_are_made_once(void **state)
{
	struct xp_place place = place_of(plain_function, true);
	uint32_t a, b;
	size_t n;

	(void)state;
	assert_int_equal(xp_native_frame(&native, &place, &a), 0);
	n = profile.frames.n;
	assert_int_equal(xp_native_frame(&native, &place, &b), 0);
	assert_int_equal(a, b);
	assert_int_equal(profile.frames.n, n);
	assert_int_equal(profile.dsos.n, 1);
}

static bool build_stripped(char *path, size_t size)
{
	char command[512];

	snprintf(path, size, "/tmp/xprof-native-%d", (int)getpid());
	snprintf(command, sizeof(command),
		 "echo 'static int __attribute__((noinline)) f(int x) { return x + 1; }"
		 "int main(int c, char **v) { (void)v; return f(c); }' | "
		 "${CC:-cc} -O0 -s -x c -o %s - 2>/dev/null", path);
	return !system(command);
}

/* Without a symbol: the file and where the function starts, the same for all its addresses. */
static void functions_without_a_symbol(void **state)
{
	struct xp_place place = { .kind = XP_PLACE_DSO, .exact = true };
	char path[64], want[128];
	bool found = false;

	(void)state;
	if (!build_stripped(path, sizeof(path))) {
		print_message("# SKIP no C compiler\n");
		skip();
	}
	place.dso = xp_dsos_get_path(dsos, path, NULL);
	unlink(path);
	assert_non_null(place.dso);
	assert_int_equal(xp_dso_need_rows(place.dso), 0);
	for (size_t i = 0; i < place.dso->cfi.funcs.n; i++) {
		const struct xp_cfi_func *func = &place.dso->cfi.funcs.v[i];
		struct xp_sym sym;

		if (!xp_dso_symbol(place.dso, func->start, &sym) || sym.name)
			continue;
		found = true;
		snprintf(want, sizeof(want), "[%s+0x%llx]", strrchr(path, '/') + 1,
			 (unsigned long long)sym.start);
		for (place.addr = func->start; place.addr < func->end; place.addr++)
			assert_string_equal(name_of(&place), want);
	}
	assert_true(found);
	/* Outside all code. */
	place.addr = 0x7fffffff0000;
	assert_string_equal(name_of(&place), "[unknown]");
	assert_true(frame_of(&place)->dso != XP_NO_ID);
}

/* A dso by hand: nothing but a path, so nothing is known of its functions. */
static void files_that_cannot_be_opened(void **state)
{
	static const char *const paths[] = { "/a/b.so", "b.so", "", "/", "//", "[", "[]", "[x",
					     "a/" };
	struct xp_dso dso = { .problem = "gone" };
	struct xp_place place = { .dso = &dso, .kind = XP_PLACE_DSO, .addr = 0x1234 };

	(void)state;
	for (uint32_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		char path[16];

		snprintf(path, sizeof(path), "%s", paths[i]);
		dso.path = path;
		dso.id = i;
		assert_string_equal(name_of(&place), "[unknown]");
		assert_string_equal(string(profile.dsos.v[frame_of(&place)->dso].path), paths[i]);
	}
}

static void the_vdso(void **state)
{
	struct xp_maps maps = { 0 };
	struct xp_place place = { .kind = XP_PLACE_DSO, .exact = true };
	const struct xp_mapping *m = NULL;
	struct xp_sym sym;
	bool named = false, unnamed = false;

	(void)state;
	assert_int_equal(xp_maps_read(&maps, getpid(), NULL), 0);
	for (size_t i = 0; i < maps.list.n; i++)
		if (!strcmp(maps.list.v[i].path, "[vdso]"))
			m = &maps.list.v[i];
	if (!m) {
		xp_maps_release(&maps);
		print_message("# SKIP this process has no vdso\n");
		skip();
	}
	place.dso = xp_dsos_get(dsos, getpid(), m);
	assert_non_null(place.dso);
	for (place.addr = 0; place.addr < m->end - m->start; place.addr += 4) {
		const char *name = name_of(&place);

		if (!xp_dso_symbol(place.dso, place.addr, &sym))
			continue;
		if (sym.name) {
			assert_string_equal(name, sym.name);
			named = true;
		} else {
			assert_memory_equal(name, "[vdso+0x", 8);
			assert_int_equal(name[strlen(name) - 1], ']');
			unnamed = true;
		}
	}
	xp_maps_release(&maps);
	assert_true(named || unnamed);
}

static void code_without_a_file(void **state)
{
	struct xp_place place = { .kind = XP_PLACE_ANON, .addr = 0x7f0000001000 };
	const struct xp_frame *f = frame_of(&place);
	uint32_t a, b;

	(void)state;
	assert_string_equal(string(f->name), "[jit]");
	assert_int_equal(f->kind, XP_FRAME_JIT);
	assert_int_equal(f->dso, XP_NO_ID);
	assert_int_equal(f->addr, place.addr);
	assert_int_equal(xp_native_frame(&native, &place, &a), 0);
	place.addr++;
	assert_int_equal(xp_native_frame(&native, &place, &b), 0);
	assert_int_not_equal(a, b);
	place.kind = XP_PLACE_UNKNOWN;
	f = frame_of(&place);
	assert_string_equal(string(f->name), "[unknown]");
	assert_int_equal(f->kind, XP_FRAME_NORMAL);
	assert_int_equal(f->dso, XP_NO_ID);
	place.kind = 200;			/* of no kind: unknown as well */
	assert_string_equal(name_of(&place), "[unknown]");
}

/* Kernel symbols from a file of our own. */
static void use_ksyms(const char *text)
{
	char path[64];
	FILE *out;

	snprintf(path, sizeof(path), "/tmp/xprof-ksyms-%d", (int)getpid());
	out = fopen(path, "w");
	assert_non_null(out);
	fputs(text, out);
	assert_int_equal(fclose(out), 0);
	xp_ksyms_new(&native.ksyms, path, NULL);
	unlink(path);
}

static void kernel_frames(void **state)
{
	struct xp_place place = { .kind = XP_PLACE_KERNEL, .exact = true };
	const struct xp_frame *f;

	(void)state;
	use_ksyms("ffffffff81000000 T _stext\n"
		  "ffffffff81001000 T do_work\n"
		  "ffffffff81002000 t do_more\n"
		  "ffffffff81003000 T _etext\n"
		  "ffffffffc0001000 t nft_do_chain\t[nf_tables]\n"
		  "ffffffffc0002000 t nft_end\t[nf_tables]\n");
	assert_false(xp_native_kernel_hidden(&native));
	place.addr = 0xffffffff81001010;
	f = frame_of(&place);
	assert_string_equal(string(f->name), "do_work");
	assert_string_equal(string(f->runtime), "kernel");
	assert_int_equal(f->kind, XP_FRAME_KERNEL);
	assert_string_equal(string(profile.dsos.v[f->dso].path), "[kernel]");
	assert_int_equal(f->addr, place.addr);
	place.addr = 0xffffffff81002000;
	assert_string_equal(name_of(&place), "do_more");
	place.exact = false;			/* returns to behind do_work's last call */
	assert_string_equal(name_of(&place), "do_work");
	place.addr = 0xffffffffc0001004;
	f = frame_of(&place);
	assert_string_equal(string(f->name), "nft_do_chain");
	assert_string_equal(string(profile.dsos.v[f->dso].path), "[nf_tables]");
	place.addr = 0x1000;
	assert_string_equal(name_of(&place), "[kernel+unknown]");
	assert_false(xp_native_kernel_hidden(&native));
}

/* kernel.kptr_restrict: all addresses read as zero. */
static void hidden_kernel_symbols(void **state)
{
	struct xp_place place = { .kind = XP_PLACE_KERNEL, .addr = 0xffffffff81001010,
				  .exact = true };

	(void)state;
	use_ksyms("0000000000000000 T _stext\n0000000000000000 T do_work\n");
	assert_string_equal(name_of(&place), "[kernel+unknown]");
	assert_string_equal(string(profile.dsos.v[frame_of(&place)->dso].path), "[kernel]");
	assert_true(xp_native_kernel_hidden(&native));
}

static void kernel_symbols_in_the_background(void **state)
{
	struct xp_place place = { .kind = XP_PLACE_KERNEL, .addr = 1, .exact = true };

	(void)state;
	xp_native_prepare(&native);
	assert_string_equal(name_of(&place), "[kernel+unknown]");
	assert_false(native.ksyms_loading);
}

/* Released while they are still being read. */
static void release_during_loading(void **state)
{
	(void)state;
	xp_native_prepare(&native);
}

static void mark_frames(void **state)
{
	uint32_t a, b, c;

	(void)state;
	assert_int_equal(xp_native_mark(&native, "[truncated: too deep]", &a), 0);
	assert_int_equal(xp_native_mark(&native, "[truncated: too deep]", &b), 0);
	assert_int_equal(xp_native_mark(&native, "[no stack]", &c), 0);
	assert_int_equal(a, b);
	assert_int_not_equal(a, c);
	assert_int_equal(profile.frames.v[a].kind, XP_FRAME_MARK);
	assert_int_equal(profile.frames.v[a].dso, XP_NO_ID);
	assert_string_equal(string(profile.frames.v[a].name), "[truncated: too deep]");
	assert_string_equal(string(profile.frames.v[a].runtime), "");
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(functions_have_their_symbols),
		TEST(return_addresses_belong_to_the_caller),
		TEST(mangled_names_are_readable),
		TEST(frames_are_made_once),
		TEST(functions_without_a_symbol),
		TEST(files_that_cannot_be_opened),
		TEST(the_vdso),
		TEST(code_without_a_file),
		TEST(kernel_frames),
		TEST(hidden_kernel_symbols),
		TEST(kernel_symbols_in_the_background),
		TEST(release_during_loading),
		TEST(mark_frames),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
