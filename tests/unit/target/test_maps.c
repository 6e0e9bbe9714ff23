// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Mappings: the text of /proc/PID/maps, cutting as mmap(2) does, and our own process.
 */
#include "target/maps.h"

#include <errno.h>
#include <sys/mman.h>

#include "build.h"

static const char sample[] =
	"00400000-00452000 r-xp 00001000 08:02 173521      /usr/bin/dbus daemon\n"
	"00e03000-00e24000 rw-p 00000000 00:00 0           [heap]\n"
	"7f0000000000-7f0000001000 r--s 00000000 103:05 18446744073709551615 "
	"/tmp/a\\012b (deleted)\n"
	"7f0000001000-7f0000002000 rw-p 00000000 00:00 0 \n"
	"7f0000002000-7f0000003000 rwxp 00000000 00:00 0                  "
	"        [anon:Ruby: a (deleted)]\n"
	"7fff00000000-7fff00001000 r-xp 00000000 00:00 0                          [vdso]\n"
	"ffffffffff600000-ffffffffff601000 --xp 00000000 00:00 0                  [vsyscall]";

static void parses_every_field(void **state)
{
	struct xp_maps m = { 0 };
	struct xp_err err = XP_ERR_INIT;
	const struct xp_mapping *v;

	(void)state;
	assert_int_equal(xp_maps_parse(&m, sample, sizeof(sample) - 1, &err), 0);
	assert_int_equal(m.list.n, 7);
	v = m.list.v;
	assert_int_equal(v[0].start, 0x400000);
	assert_int_equal(v[0].end, 0x452000);
	assert_int_equal(v[0].offset, 0x1000);
	assert_int_equal(v[0].dev, 8ull << 32 | 2);
	assert_int_equal(v[0].ino, 173521);
	assert_true(v[0].exec);
	assert_false(v[0].deleted);
	assert_string_equal(v[0].path, "/usr/bin/dbus daemon");
	assert_string_equal(v[1].path, "[heap]");
	assert_false(v[1].exec);
	assert_string_equal(v[2].path, "/tmp/a\nb");
	assert_true(v[2].deleted);
	assert_true(v[2].ino == UINT64_MAX);
	assert_int_equal(v[2].dev, 0x103ull << 32 | 5);
	assert_string_equal(v[3].path, "");
	assert_string_equal(v[4].path, "[anon:Ruby: a (deleted)]");
	assert_false(v[4].deleted);
	assert_string_equal(v[6].path, "[vsyscall]");
	assert_int_equal(v[6].end, 0xffffffffff601000);
	xp_maps_release(&m);
}

static void refuses_malformed_lines(void **state)
{
	static const char *const bad[] = {
		"x", "\n", "0-1000", "1000-1000 r-xp 0 0:0 0", "2000-1000 r-xp 0 0:0 0",
		"0-1000 r-xp", "0-1000 r-xp 0", "0-1000 r-xp 0 0:0", "0-1000 rqxp 0 0:0 0",
		"0-10000000000000000 r-xp 0 0:0 0", "0-1000 r-xp 0 0:0 18446744073709551616",
		"0-1000 r-xp 0 0:0 1x", "-1000 r-xp 0 0:0 1",
		"1000-2000 r-xp 0 0:0 0 \n0-1000 r-xp 0 0:0 0 ",
		"1000-3000 r-xp 0 0:0 0 \n2000-4000 r-xp 0 0:0 0 ",
	};
	struct xp_maps m = { 0 };
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	assert_int_equal(xp_maps_parse(&m, sample, sizeof(sample) - 1, &err), 0);
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		if (xp_maps_parse(&m, bad[i], strlen(bad[i]), &err) != -EINVAL)
			fail_msg("accepted: %s", bad[i]);
		assert_int_equal(m.list.n, 7);	/* as it was */
	}
	assert_string_equal(err.what, "malformed mapping in line 2");
	assert_int_equal(xp_maps_parse(&m, "1000-2000 r-xp 0 0:0 0 a\0b", 26, &err), -EINVAL);
	assert_int_equal(xp_maps_parse(&m, "", 0, &err), 0);
	assert_int_equal(m.list.n, 0);
	xp_maps_release(&m);
}

static void finds_by_half_open_bounds(void **state)
{
	struct xp_maps m = { 0 };

	(void)state;
	assert_null(xp_maps_find(&m, 0));
	assert_int_equal(xp_maps_parse(&m, sample, sizeof(sample) - 1, NULL), 0);
	assert_null(xp_maps_find(&m, 0x3fffff));
	assert_ptr_equal(xp_maps_find(&m, 0x400000), &m.list.v[0]);
	assert_ptr_equal(xp_maps_find(&m, 0x451fff), &m.list.v[0]);
	assert_null(xp_maps_find(&m, 0x452000));
	assert_ptr_equal(xp_maps_find(&m, 0x7f0000001000), &m.list.v[3]);
	assert_ptr_equal(xp_maps_find(&m, 0xffffffffff600fff), &m.list.v[6]);
	assert_null(xp_maps_find(&m, UINT64_MAX));
	xp_maps_release(&m);
}

static void add(struct xp_maps *m, uint64_t start, uint64_t end, const char *path, void *user)
{
	struct xp_mapping new = { .start = start, .end = end, .offset = 0x10000, .dev = 1,
				  .ino = 2, .path = (char *)path, .user = user };

	assert_int_equal(xp_maps_add(m, &new), 0);
}

static void is(const struct xp_maps *m, size_t i, uint64_t start, uint64_t end, uint64_t offset,
	       const char *path)
{
	assert_true(i < m->list.n);
	assert_int_equal(m->list.v[i].start, start);
	assert_int_equal(m->list.v[i].end, end);
	assert_int_equal(m->list.v[i].offset, offset);
	assert_string_equal(m->list.v[i].path, path);
}

static void adding_cuts_what_is_covered(void **state)
{
	struct xp_maps m = { 0 };
	int a, b;

	(void)state;
	add(&m, 0x1000, 0x9000, "a", &a);
	add(&m, 0x3000, 0x4000, "b", &b);		/* into the middle: three pieces */
	assert_int_equal(m.list.n, 3);
	is(&m, 0, 0x1000, 0x3000, 0x10000, "a");
	is(&m, 1, 0x3000, 0x4000, 0x10000, "b");
	is(&m, 2, 0x4000, 0x9000, 0x13000, "a");
	assert_ptr_equal(m.list.v[0].user, &a);
	assert_ptr_equal(m.list.v[1].user, &b);
	assert_ptr_equal(m.list.v[2].user, &a);
	add(&m, 0x2000, 0x5000, "c", NULL);		/* over several: b goes */
	assert_int_equal(m.list.n, 3);
	is(&m, 0, 0x1000, 0x2000, 0x10000, "a");
	is(&m, 1, 0x2000, 0x5000, 0x10000, "c");
	is(&m, 2, 0x5000, 0x9000, 0x14000, "a");
	add(&m, 0x2000, 0x5000, "d", NULL);		/* exactly one */
	is(&m, 1, 0x2000, 0x5000, 0x10000, "d");
	assert_int_equal(m.list.n, 3);
	add(&m, 0x9000, 0xa000, "e", NULL);		/* adjacent: nothing is cut */
	add(&m, 0, 0x1000, "f", NULL);
	assert_int_equal(m.list.n, 5);
	is(&m, 0, 0, 0x1000, 0x10000, "f");
	is(&m, 4, 0x9000, 0xa000, 0x10000, "e");
	add(&m, 0x800, 0x1800, "g", NULL);		/* the end of one, the start of the next */
	is(&m, 0, 0, 0x800, 0x10000, "f");
	is(&m, 1, 0x800, 0x1800, 0x10000, "g");
	is(&m, 2, 0x1800, 0x2000, 0x10800, "a");
	add(&m, 0, UINT64_MAX, "all", NULL);
	assert_int_equal(m.list.n, 1);
	is(&m, 0, 0, UINT64_MAX, 0x10000, "all");
	xp_maps_release(&m);
}

static void adding_checks_bounds(void **state)
{
	struct xp_maps m = { 0 };
	struct xp_mapping empty = { .start = 0x1000, .end = 0x1000 };
	struct xp_mapping anon = { .start = 0x1000, .end = 0x4000 };

	(void)state;
	assert_int_equal(xp_maps_add(&m, &empty), -EINVAL);
	assert_int_equal(xp_maps_add(&m, &anon), 0);		/* no path, no file */
	add(&m, 0x2000, 0x3000, "x", NULL);
	is(&m, 2, 0x3000, 0x4000, 0, "");			/* no file: no offset */
	xp_maps_release(&m);
}

/* Against a model of one byte per page. */
static void adding_agrees_with_a_model(void **state)
{
	struct xp_maps m = { 0 };
	unsigned char model[64] = { 0 };
	unsigned seed = 1;

	(void)state;
	for (int round = 0; round < 3000; round++) {
		unsigned a = (seed = seed * 1103515245 + 12345) >> 16 & 63;
		unsigned b = (seed = seed * 1103515245 + 12345) >> 16 & 63;
		char name[2] = { (char)('A' + round % 26), 0 };

		if (a >= b)
			continue;
		add(&m, a, b, name, NULL);
		memset(model + a, name[0], b - a);
		for (unsigned i = 0; i < 64; i++) {
			const struct xp_mapping *hit = xp_maps_find(&m, i);

			assert_int_equal(hit ? hit->path[0] : 0, model[i]);
		}
		for (size_t i = 1; i < m.list.n; i++)
			assert_true(m.list.v[i - 1].end <= m.list.v[i].start);
	}
	xp_maps_release(&m);
}

static void copies_are_independent(void **state)
{
	struct xp_maps m = { 0 }, copy = { 0 };

	(void)state;
	assert_int_equal(xp_maps_parse(&m, sample, sizeof(sample) - 1, NULL), 0);
	assert_int_equal(xp_maps_copy(&copy, &m), 0);
	xp_maps_release(&m);
	assert_int_equal(copy.list.n, 7);
	assert_string_equal(copy.list.v[0].path, "/usr/bin/dbus daemon");
	xp_maps_release(&copy);
	xp_maps_release(&copy);
}

static void reads_our_own(void **state)
{
	struct xp_maps m = { 0 };
	struct xp_err err = XP_ERR_INIT;
	struct xp_mapping *code;
	char exe[256];
	ssize_t n = readlink("/proc/self/exe", exe, sizeof(exe) - 1);
	void *page = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)state;
	assert_true(n > 0);
	exe[n] = 0;
	assert_int_equal(xp_maps_read(&m, getpid(), &err), 0);
	code = xp_maps_find(&m, (uintptr_t)reads_our_own);
	assert_non_null(code);
	assert_true(code->exec);
	assert_string_equal(code->path, exe);
	assert_true(code->ino != 0);
	assert_non_null(xp_maps_find(&m, (uintptr_t)page));
	assert_int_equal(xp_maps_read(&m, 0x7ffffff0, &err), -ESRCH);
	assert_string_equal(err.what, "there is no process 2147483632");
	assert_true(m.list.n > 5);
	xp_maps_release(&m);
	munmap(page, 4096);
}

/* References by annotation, as a cache's owner would count them. */
static int references[4];

static void get_user(void *ctx, void *user)
{
	assert_ptr_equal(ctx, references);
	++*(int *)user;
}

static void put_user(void *ctx, void *user)
{
	assert_ptr_equal(ctx, references);
	--*(int *)user;
	assert_true(*(int *)user >= 0);
}

static void add_user(struct xp_maps *m, uint64_t start, uint64_t end, int *user)
{
	struct xp_mapping new = { .start = start, .end = end, .ino = 1, .path = "/f", .user = user };

	assert_int_equal(xp_maps_add(m, &new), 0);
}

static void mappings_own_references(void **state)
{
	struct xp_maps m = { .get = get_user, .put = put_user, .ctx = references }, copy = m;
	struct xp_mapping wrong = { .start = 2, .end = 1, .user = &references[0] };
	int *a = &references[0], *b = &references[1];

	(void)state;
	add_user(&m, 0x1000, 0x9000, a);
	assert_int_equal(*a, 1);
	add_user(&m, 0x3000, 0x4000, b);	/* cut in two */
	assert_int_equal(*a, 2);
	assert_int_equal(*b, 1);
	add_user(&m, 0x2000, 0x3000, b);	/* cuts an end */
	assert_int_equal(*a, 2);
	assert_int_equal(*b, 2);
	add_user(&m, 0x6000, 0x7000, NULL);	/* in two again, by one without */
	assert_int_equal(*a, 3);
	assert_int_equal(xp_maps_add(&m, &wrong), -EINVAL);
	assert_int_equal(*a, 3);
	assert_int_equal(xp_maps_copy(&copy, &m), 0);
	assert_int_equal(*a, 6);
	assert_int_equal(*b, 4);
	add_user(&m, 0x0, 0x10000, a);		/* over everything, itself among it */
	assert_int_equal(m.list.n, 1);
	assert_int_equal(*a, 4);
	assert_int_equal(*b, 2);
	assert_int_equal(xp_maps_parse(&m, sample, sizeof(sample) - 1, NULL), 0);
	assert_int_equal(*a, 3);
	assert_ptr_equal(m.put, put_user);
	xp_maps_release(&copy);
	assert_int_equal(*a, 0);
	assert_int_equal(*b, 0);
	add_user(&copy, 0, 1, b);		/* the hooks are still there */
	assert_int_equal(*b, 1);
	xp_maps_release(&copy);
	xp_maps_release(&m);
	assert_int_equal(*b, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(mappings_own_references),
		cmocka_unit_test(parses_every_field),
		cmocka_unit_test(refuses_malformed_lines),
		cmocka_unit_test(finds_by_half_open_bounds),
		cmocka_unit_test(adding_cuts_what_is_covered),
		cmocka_unit_test(adding_checks_bounds),
		cmocka_unit_test(adding_agrees_with_a_model),
		cmocka_unit_test(copies_are_independent),
		cmocka_unit_test(reads_our_own),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
