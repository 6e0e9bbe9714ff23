// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Dsos: our own mappings, replaced and deleted files, the vdso, and what a command is about to map.
 */
#include "target/dso.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <sys/auxv.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "build.h"
#include "target/ldcache.h"

static struct xp_maps own;

static const struct xp_mapping *mapping_of(const void *p)
{
	const struct xp_mapping *m;

	assert_int_equal(xp_maps_read(&own, getpid(), NULL), 0);
	m = xp_maps_find(&own, (uintptr_t)p);
	assert_non_null(m);
	return m;
}

__attribute__((noinline)) static int a_function(int x)
{
	__asm__ volatile("" : "+r"(x));
	return x + 1;
}

static void names_our_own_code(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	const struct xp_mapping *m = mapping_of((void *)a_function);
	struct xp_dso *d = xp_dsos_get(dsos, getpid(), m), *again;
	uint64_t vaddr, bias;
	struct xp_sym sym;
	const char *file;
	uint32_t line;

	(void)state;
	assert_non_null(d);
	assert_string_equal(d->problem, "");
	assert_non_null(d->elf);
	assert_string_equal(d->path, m->path);
	assert_int_equal(d->id, 0);
	assert_true(xp_dso_vaddr(d, m, (uintptr_t)a_function, &vaddr));
	assert_true(xp_dso_bias(d, m, &bias));
	assert_int_equal((uintptr_t)a_function - bias, vaddr);
	assert_true(xp_dso_symbol(d, vaddr, &sym));
	assert_string_equal(sym.name, "a_function");
	assert_int_equal(sym.start, vaddr);
	if (xp_dso_line(d, vaddr, &file, &line)) {
		assert_non_null(strstr(file, "test_dso.c"));
		assert_true(line > 20 && line < 60);
	}
	assert_false(xp_dso_vaddr(d, m, m->end, &vaddr));
	assert_false(xp_dso_vaddr(d, m, m->start - 1, &vaddr));

	again = xp_dsos_get(dsos, getpid(), m);
	assert_ptr_equal(again, d);
	assert_int_equal(d->refs, 2);
	xp_dso_put(dsos, d);
	xp_dso_put(dsos, d);
	assert_int_equal(d->refs, 0);
	assert_non_null(d->symtab);			/* until sweeps have found it so */
	d = xp_dsos_get_path(dsos, "/proc/self/exe", NULL);
	assert_ptr_equal(again, d);			/* the same file by another name */
	assert_int_equal(a_function(1), 2);
	xp_dsos_free(dsos);
	xp_dsos_free(NULL);
}

static void count(void *ctx, struct xp_dso *d)
{
	assert_non_null(d->elf);
	++*(unsigned *)ctx;
}

/* Number of open descriptors. */
static unsigned descriptors(void)
{
	unsigned n = 0;

	for (int fd = 0; fd < 1024; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void unused_files_are_given_up(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	const struct xp_mapping *m = mapping_of((void *)a_function);
	struct xp_dso *d = xp_dsos_get(dsos, getpid(), m);
	char build_id[sizeof(d->build_id)];
	unsigned told = 0;
	uint64_t vaddr;
	struct xp_sym sym;

	(void)state;
	strcpy(build_id, d->build_id);
	assert_true(xp_dso_vaddr(d, m, (uintptr_t)a_function, &vaddr));
	for (int i = 0; i < 3 * XP_DSO_SWEEPS; i++)
		xp_dsos_sweep(dsos, count, &told);
	assert_int_equal(told, 0);
	xp_dso_ref(d);
	xp_dso_put(dsos, d);
	xp_dso_put(dsos, d);
	for (int i = 1; i < XP_DSO_SWEEPS; i++)
		xp_dsos_sweep(dsos, count, &told);
	/* A reference meanwhile: counted anew. */
	assert_ptr_equal(xp_dsos_get(dsos, getpid(), m), d);
	xp_dsos_sweep(dsos, count, &told);
	xp_dso_put(dsos, d);
	for (int i = 1; i < XP_DSO_SWEEPS; i++)
		xp_dsos_sweep(dsos, count, &told);
	assert_int_equal(told, 0);
	assert_true(xp_dso_symbol(d, vaddr, &sym));
	xp_dsos_sweep(dsos, count, &told);
	assert_int_equal(told, 1);
	assert_null(d->elf);
	assert_null(d->symtab);
	assert_int_equal(d->cfi.funcs.n, 0);
	assert_false(xp_dso_symbol(d, vaddr, &sym));
	assert_string_equal(d->path, m->path);
	for (int i = 0; i < 3 * XP_DSO_SWEEPS; i++)
		xp_dsos_sweep(dsos, count, &told);
	assert_int_equal(told, 1);
	/* Mapped again: the same id and pointer, and all of it is back. */
	assert_ptr_equal(xp_dsos_get_path(dsos, m->path, NULL), d);
	assert_int_equal(d->refs, 1);
	assert_int_equal(d->id, 0);
	assert_string_equal(d->build_id, build_id);
	assert_string_equal(d->problem, "");
	assert_int_equal(xp_dso_need_rows(d), 0);
	assert_true(d->cfi.rows.n > 50);
	assert_true(xp_dso_symbol(d, vaddr, &sym));
	assert_string_equal(sym.name, "a_function");
	xp_dsos_free(dsos);
}

/* A large file is mapped, with a descriptor: that goes too. The vdso comes back from memory. */
static void what_is_given_up_holds_nothing(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	const struct xp_mapping *vdso;
	char large[] = "/tmp/xprof-large-XXXXXX";
	int fd = mkstemp(large);
	unsigned before, told = 0;
	struct xp_dso *d, *v;
	struct xp_elf *self;

	(void)state;
	assert_int_equal(xp_elf_open_path(&self, "/proc/self/exe", NULL), 0);
	assert_int_equal(write(fd, self->data, self->size), self->size);
	xp_elf_free(self);
	assert_int_equal(ftruncate(fd, XP_ELF_COPY_MAX + 4096), 0);
	close(fd);
	before = descriptors();
	d = xp_dsos_get_path(dsos, large, NULL);
	assert_non_null(d->elf);
	assert_true(d->elf->map.data);
	vdso = getauxval(AT_SYSINFO_EHDR) ? mapping_of((void *)getauxval(AT_SYSINFO_EHDR)) : NULL;
	v = vdso ? xp_dsos_get(dsos, getpid(), vdso) : NULL;
	xp_dso_put(dsos, d);
	xp_dso_put(dsos, v);
	for (int i = 0; i < XP_DSO_SWEEPS; i++)
		xp_dsos_sweep(dsos, count, &told);
	assert_int_equal(told, v ? 2 : 1);
	assert_int_equal(descriptors(), before);
	if (v) {
		assert_null(v->elf);
		assert_ptr_equal(xp_dsos_get(dsos, getpid(), vdso), v);
		assert_non_null(v->elf);
	}
	/* It is gone when it is wanted again. */
	assert_int_equal(unlink(large), 0);
	assert_null(xp_dsos_get_path(dsos, large, NULL));
	xp_dsos_sweep(dsos, NULL, NULL);
	xp_dsos_free(dsos);
}

static void rows_come_and_go(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	struct xp_dso *d = xp_dsos_get(dsos, getpid(), mapping_of((void *)a_function));
	size_t rows, funcs;

	(void)state;
	assert_int_equal(xp_dso_need_rows(d), 0);
	assert_true(d->cfi_built);
	rows = d->cfi.rows.n;
	funcs = d->cfi.funcs.n;
	assert_true(rows > 50 && funcs > 10);
	xp_dso_drop_rows(d);
	assert_int_equal(d->cfi.rows.n, 0);
	assert_int_equal(d->cfi.funcs.n, funcs);
	assert_int_equal(xp_dso_need_rows(d), 0);
	assert_int_equal(d->cfi.rows.n, rows);
	xp_dsos_free(dsos);
}

static void reads_the_vdso(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	const void *at = (const void *)getauxval(AT_SYSINFO_EHDR);
	const struct xp_mapping *m;
	struct xp_dso *d;
	struct xp_sym sym;
	size_t named = 0;

	(void)state;
	if (!at) {
		xp_dsos_free(dsos);
		SKIP("this kernel gives no vdso");
	}
	m = mapping_of(at);
	assert_string_equal(m->path, "[vdso]");
	d = xp_dsos_get(dsos, getpid(), m);
	assert_non_null(d);
	assert_string_equal(d->problem, "");
	assert_int_equal(strlen(d->build_id), 40);
	for (uint64_t v = 0; v < m->end - m->start; v++)
		named += xp_dso_symbol(d, v, &sym) && sym.name && strstr(sym.name, "clock_gettime");
	assert_true(named > 0);
	assert_int_equal(xp_dso_need_rows(d), 0);
	assert_true(d->cfi.rows.n > 1);
	assert_ptr_equal(xp_dsos_get(dsos, 0x7ffffff0, m), d);	/* unreadable: our own */
	xp_dsos_free(dsos);
}

static void *map_file(const char *path, size_t *size)
{
	int fd = open(path, O_RDONLY);
	struct stat st;
	void *p;

	assert_true(fd >= 0);
	assert_int_equal(fstat(fd, &st), 0);
	*size = (size_t)st.st_size;
	p = mmap(NULL, *size, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	close(fd);
	return p;
}

static void deleted_and_replaced_files(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	struct xp_dso *d, *again;
	size_t size;
	void *p;

	(void)state;
	assert_true(build_run("cp /bin/sh victim"));
	p = map_file(build_path("victim"), &size);
	d = xp_dsos_get(dsos, getpid(), mapping_of(p));
	assert_non_null(d->elf);

	/* Another file by the same name must not be taken for the mapped one. */
	assert_true(build_run("cp /bin/true other && mv other victim"));
	again = xp_dsos_get(dsos, getpid(), mapping_of(p));
	if (access("/proc/self/map_files", X_OK) || geteuid()) {
		assert_true(again->elf == NULL || again == d);
	} else {
		assert_true(mapping_of(p)->deleted);
		assert_ptr_equal(again, d);		/* by map_files */
	}
	assert_true(build_run("rm victim"));
	again = xp_dsos_get(dsos, getpid(), mapping_of(p));
	if (again != d) {
		assert_null(again->elf);
		assert_non_null(strstr(again->problem, "deleted"));
	}
	munmap(p, size);
	xp_dsos_free(dsos);
}

static void says_what_is_wrong(void **state)
{
	struct xp_dsos *dsos = xp_dsos_new();
	struct xp_err err = XP_ERR_INIT;
	struct xp_mapping m = { .start = 0x1000, .end = 0x2000, .ino = 1, .dev = 1,
				.path = "/nonexistent/lib.so" };
	struct xp_dso *d;
	size_t size;
	uint64_t v;
	void *p;

	(void)state;
	d = xp_dsos_get(dsos, getpid(), &m);
	assert_non_null(d);
	assert_null(d->elf);
	assert_string_equal(d->problem, "cannot open it: No such file or directory");
	assert_int_equal(xp_dso_need_rows(d), 0);
	assert_int_equal(d->cfi.rows.n, 0);
	assert_false(xp_dso_symbol(d, 0, &(struct xp_sym){ 0 }));
	assert_false(xp_dso_vaddr(d, &m, 0x1000, &v));
	assert_false(xp_dso_bias(d, &m, &v));
	assert_ptr_equal(xp_dsos_get(dsos, getpid(), &m), d);
	m.path = "/nonexistent/other.so";
	assert_true(xp_dsos_get(dsos, getpid(), &m) != d);
	m.path = "/dev/zero";
	assert_string_equal(xp_dsos_get(dsos, getpid(), &m)->problem, "not a regular file");
	m.path = "/bin/true";				/* not that inode */
	assert_null(xp_dsos_get(dsos, getpid(), &m)->elf);
	m.path = "";
	m.ino = m.dev = 0;
	assert_null(xp_dsos_get(dsos, getpid(), &m));

	build_write("data", "just bytes", 10);
	p = map_file(build_path("data"), &size);
	d = xp_dsos_get(dsos, getpid(), mapping_of(p));
	assert_string_equal(d->problem, "not an ELF file");
	munmap(p, size);

	build_write("arm", "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\3\0\xb7\0\1\0\0", 24);
	assert_int_equal(truncate(build_path("arm"), 64), 0);
	d = xp_dsos_get_path(dsos, build_path("arm"), &err);
	assert_non_null(d);
	assert_string_equal(d->problem, "code of another machine (e_machine 183)");

	assert_null(xp_dsos_get_path(dsos, "/nonexistent/x", &err));
	assert_string_equal(err.what, "cannot open /nonexistent/x: No such file or directory");
	assert_null(xp_dsos_get_path(dsos, "/tmp", &err));
	assert_string_equal(err.what, "/tmp: not a regular file");
	xp_dsos_free(dsos);
}

struct paths {
	size_t n;
	char v[64][256];
};

static void collect(void *ctx, const char *path)
{
	struct paths *p = ctx;

	assert_true(p->n < 64);
	snprintf(p->v[p->n++], sizeof(p->v[0]), "%s", path);
}

static bool holds(const struct paths *p, const char *path)
{
	char want[4096], have[4096];

	if (!realpath(path, want))
		return false;
	for (size_t i = 0; i < p->n; i++)
		if (realpath(p->v[i], have) && strcmp(want, have) == 0)
			return true;
	return false;
}

/* Every file in ldd's answer must have been found, and no other. */
static void compare_with_ldd(const char *program)
{
	struct paths p = { 0 };
	char command[256], line[512];
	size_t n = 0;
	FILE *f;

	assert_int_equal(xp_dso_needed(program, collect, &p), 0);
	snprintf(command, sizeof(command), "ldd '%s' | grep -o '/[^ ]*'", program);
	f = popen(command, "r");
	assert_non_null(f);
	while (fgets(line, sizeof(line), f)) {
		line[strcspn(line, "\n")] = 0;
		if (!holds(&p, line))
			fail_msg("%s of %s was not found", line, program);
		n++;
	}
	pclose(f);
	assert_true(n > 0);
	/* The loader may be there by two names: that of PT_INTERP and that of the cache. */
	assert_true(p.n == n || p.n == n + 1);
}

static const char *own_path(void)
{
	static char path[256];
	ssize_t n = readlink("/proc/self/exe", path, sizeof(path) - 1);

	assert_true(n > 0);
	path[n] = 0;
	return path;
}

static void finds_what_ld_so_finds(void **state)
{
	(void)state;
	if (!build_have("ldd"))
		SKIP("no ldd");
	compare_with_ldd(own_path());
	compare_with_ldd("/bin/sh");
	if (access("/usr/bin/ruby3.1", X_OK) == 0)
		compare_with_ldd("/usr/bin/ruby3.1");
	if (access("/usr/bin/luajit", X_OK) == 0)
		compare_with_ldd("/usr/bin/luajit");
}

static void follows_rpath_and_runpath(void **state)
{
	static const char *const flags[] = { "-Wl,--enable-new-dtags", "-Wl,--disable-new-dtags" };

	(void)state;
	if (!build_have("cc"))
		SKIP("no C compiler (cc)");
	build_write("b.c", "int b(void) { return 1; }\n", 26);
	build_write("a.c", "int b(void); int a(void) { return b(); }\n", 41);
	assert_true(build_run("mkdir -p d/sub && cc -shared -fPIC b.c -o d/sub/libb.so && "
			      "cc -shared -fPIC a.c -o d/liba.so -Ld/sub -lb "
			      "-Wl,-rpath,'${ORIGIN}/sub'"));
	build_write("user.c", "int a(void); int main(void) { return a(); }\n", 44);
	for (size_t i = 0; i < 2; i++) {
		struct paths p = { 0 };
		char command[512];

		snprintf(command, sizeof(command), "cc user.c -o user -Ld -la "
			 "-Wl,-rpath-link,d/sub -Wl,-rpath,/nonexistent:'$ORIGIN/d' %s", flags[i]);
		assert_true(build_run(command));
		assert_int_equal(xp_dso_needed(build_path("user"), collect, &p), 0);
		assert_true(holds(&p, build_path("d/liba.so")));
		assert_true(holds(&p, build_path("d/sub/libb.so")));
	}
}

static void looks_through_scripts(void **state)
{
	struct paths p = { 0 };
	char line[256], where[128];

	(void)state;
	build_write("s1", "#! /bin/sh -e\necho\n", 19);
	assert_int_equal(xp_dso_needed(build_path("s1"), collect, &p), 0);
	assert_string_equal(p.v[0], "/bin/sh");
	assert_true(p.n > 2);

	memset(&p, 0, sizeof(p));
	build_write("s2", "#!/usr/bin/env -S A=1 sh -e\n", 28);
	assert_int_equal(xp_dso_needed(build_path("s2"), collect, &p), 0);
	build_output("command -v sh", where, sizeof(where));
	assert_string_equal(p.v[0], where);

	memset(&p, 0, sizeof(p));
	build_write("s3", "#!\n", 3);
	assert_true(xp_dso_needed(build_path("s3"), collect, &p) < 0);
	memset(line, 'x', sizeof(line));
	memcpy(line, "#!/", 3);
	build_write("s4", line, sizeof(line));
	assert_true(xp_dso_needed(build_path("s4"), collect, &p) < 0);
	assert_int_equal(xp_dso_needed("/nonexistent/x", collect, &p), -ENOENT);
	assert_int_equal(xp_dso_needed("no-such-program-here", collect, &p), -ENOENT);
	memset(&p, 0, sizeof(p));
	assert_int_equal(xp_dso_needed("sh", collect, &p), 0);	/* by PATH */
	assert_true(p.n > 1);
}

/* A cache with two libraries, in the loader's format. */
static void make_cache(struct xp_buf *b, uint32_t n)
{
	static const char strings[] = "liba.so\0/x/liba.so\0libb.so\0/x/libb.so";

	xp_buf_clear(b);
	xp_buf_put(b, "glibc-ld.so.cache1.1", 20);
	xp_buf_u32(b, n);
	for (int i = 0; i < 6; i++)
		xp_buf_u32(b, 0);
	for (int i = 0; i < 3; i++) {			/* the first one for a special processor */
		uint32_t at = 48 + 3 * 24 + (i == 2 ? 19 : 0);

		xp_buf_u32(b, 0x0303);
		xp_buf_u32(b, at);
		xp_buf_u32(b, i == 0 ? 0 : at + 8);
		xp_buf_u32(b, 0);
		xp_buf_u64(b, i == 0 ? 1ull << 62 : 0);
	}
	xp_buf_put(b, strings, sizeof(strings));
}

static void cache_is_read_with_care(void **state)
{
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	make_cache(&b, 3);
	assert_string_equal(xp_ldcache_find(&b, "liba.so"), "/x/liba.so");
	assert_string_equal(xp_ldcache_find(&b, "libb.so"), "/x/libb.so");
	assert_null(xp_ldcache_find(&b, "libc.so"));
	assert_null(xp_ldcache_find(&b, "liba"));
	b.len--;					/* the last string does not end */
	assert_null(xp_ldcache_find(&b, "libb.so"));
	make_cache(&b, UINT32_MAX);
	assert_null(xp_ldcache_find(&b, "liba.so"));
	for (size_t at = 0; at < b.len; at++) {
		make_cache(&b, 3);
		b.data[at] = 0xff;
		xp_ldcache_find(&b, "liba.so");
		xp_ldcache_find(&b, "libb.so");
	}
	for (size_t n = 0; n < 120; n++) {
		make_cache(&b, 3);
		b.len = n;
		assert_null(xp_ldcache_find(&b, "liba.so"));
	}
	xp_buf_release(&b);
}

static int teardown(void **state)
{
	xp_maps_release(&own);
	return build_teardown(state);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_our_own_code),
		cmocka_unit_test(unused_files_are_given_up),
		cmocka_unit_test(what_is_given_up_holds_nothing),
		cmocka_unit_test(rows_come_and_go),
		cmocka_unit_test(reads_the_vdso),
		cmocka_unit_test(deleted_and_replaced_files),
		cmocka_unit_test(says_what_is_wrong),
		cmocka_unit_test(finds_what_ld_so_finds),
		cmocka_unit_test(follows_rpath_and_runpath),
		cmocka_unit_test(looks_through_scripts),
		cmocka_unit_test(cache_is_read_with_care),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, build_setup, teardown);
}
