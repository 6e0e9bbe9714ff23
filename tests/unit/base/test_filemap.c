// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/filemap: files that are cut short, emptied or rewritten under the reader.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/filemap.h"

/* A file without a name, of so many pages, each byte the number of its page + 1. */
static int make_file(size_t pages, size_t more)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	FILE *f = tmpfile();
	int fd;

	assert_non_null(f);
	for (size_t i = 0; i < pages * page + more; i++)
		assert_int_equal(putc((int)(i / page + 1), f), (int)(i / page + 1));
	assert_int_equal(fflush(f), 0);
	fd = dup(fileno(f));
	fclose(f);
	assert_true(fd >= 0);
	return fd;
}

static unsigned char at(const struct xp_filemap *m, size_t offset)
{
	return *(volatile unsigned char *)(m->data + offset);
}

static void reads_the_file_and_a_zero(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct xp_filemap m;

	(void)state;
	for (size_t more = 0; more < 2; more++) {
		int fd = make_file(3, more);

		assert_int_equal(xp_filemap_open(&m, fd, 3 * page + more, false), 0);
		close(fd);
		assert_int_equal(at(&m, 0), 1);
		assert_int_equal(at(&m, 3 * page - 1), 3);
		assert_int_equal(at(&m, 3 * page + more), 0);
		assert_false(m.damaged);
		xp_filemap_close(&m);
		assert_null(m.data);
		xp_filemap_close(&m);
	}
}

static void survives_a_shorter_file(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct xp_filemap a, b;
	int fd = make_file(8, 0), other = make_file(8, 0);

	(void)state;
	assert_int_equal(xp_filemap_open(&a, fd, 8 * page, false), 0);
	assert_int_equal(xp_filemap_open(&b, other, 8 * page, false), 0);
	assert_int_equal(ftruncate(fd, (off_t)(3 * page + 7)), 0);
	assert_int_equal(at(&a, 2 * page), 3);
	assert_false(a.damaged);
	assert_int_equal(at(&a, 5 * page + 1), 0);
	assert_true(a.damaged);
	assert_int_equal(at(&a, 8 * page - 1), 0);
	assert_int_equal(at(&a, 4 * page), 0);
	assert_int_equal(at(&a, 3 * page + 6), 4);
	assert_int_equal(at(&a, 3 * page + 7), 0);
	/* Others are as they were. */
	assert_int_equal(at(&b, 7 * page), 8);
	assert_false(b.damaged);
	assert_int_equal(ftruncate(other, 0), 0);
	assert_int_equal(at(&b, 0), 0);
	assert_true(b.damaged);
	xp_filemap_close(&a);
	xp_filemap_close(&b);
	close(fd);
	close(other);
}

/* The file may grow again; what was there before the cut may be zeros or new, but it can be read. */
static void survives_a_file_written_anew(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	struct xp_filemap m;
	int fd = make_file(8, 0);

	(void)state;
	assert_int_equal(xp_filemap_open(&m, fd, 8 * page, true), 0);
	m.data[6 * page] = 99;
	assert_int_equal(ftruncate(fd, 0), 0);
	assert_int_equal(at(&m, page), 0);
	assert_true(m.damaged);
	m.data[page] = 5;
	assert_int_equal(at(&m, page), 5);
	assert_int_equal(ftruncate(fd, (off_t)(8 * page)), 0);
	for (size_t i = 0; i < 8; i++)
		(void)at(&m, i * page);
	xp_filemap_close(&m);
	close(fd);
}

static void many_are_found(void **state)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	static struct xp_filemap m[300];
	int fd = make_file(2, 0);

	(void)state;
	for (int i = 0; i < 300; i++)
		assert_int_equal(xp_filemap_open(&m[i], fd, 2 * page, false), 0);
	for (int i = 0; i < 300; i += 3)
		xp_filemap_close(&m[i]);
	assert_int_equal(ftruncate(fd, 0), 0);
	for (int i = 0; i < 300; i++) {
		if (i % 3) {
			assert_int_equal(at(&m[i], page), 0);
			assert_true(m[i].damaged);
		}
		xp_filemap_close(&m[i]);
	}
	close(fd);
}

static void what_cannot_be_mapped_is_an_error(void **state)
{
	struct xp_filemap m;
	int fd = make_file(1, 0);

	(void)state;
	assert_int_equal(xp_filemap_open(&m, fd, 0, false), -EINVAL);
	assert_int_equal(xp_filemap_open(&m, -1, 10, false), -EBADF);
	assert_null(m.data);
	assert_int_equal(xp_filemap_open(&m, fd, SIZE_MAX - 5, false), -EINVAL);
	xp_filemap_close(&m);
	close(fd);
}

static void touch_own_mapping(void)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	int fd = make_file(1, 0);
	volatile char *p = mmap(NULL, page, PROT_READ, MAP_PRIVATE, fd, 0);

	if (!ftruncate(fd, 0) && p != MAP_FAILED)
		(void)*p;
}

static void send_it(void)
{
	raise(SIGBUS);
}

/* The signal that ends a child which does this, with the handler in place. */
static int killed_by(void (*step)(void))
{
	int status = 0;
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		struct rlimit none = { 0, 0 };

		setrlimit(RLIMIT_CORE, &none);
		signal(SIGBUS, SIG_DFL);	/* a sanitizer's, if there is one */
		step();
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

static void with_handler(void (*step)(void))
{
	struct xp_filemap m;
	int fd = make_file(1, 0);

	if (!xp_filemap_open(&m, fd, 1, false))
		step();
}

static void touch_beside_ours(void)
{
	with_handler(touch_own_mapping);
}

static void send_beside_ours(void)
{
	with_handler(send_it);
}

static void other_bus_errors_still_kill(void **state)
{
	(void)state;
	assert_int_equal(killed_by(touch_beside_ours), SIGBUS);
	assert_int_equal(killed_by(send_beside_ours), SIGBUS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(other_bus_errors_still_kill),
		cmocka_unit_test(reads_the_file_and_a_zero),
		cmocka_unit_test(survives_a_shorter_file),
		cmocka_unit_test(survives_a_file_written_anew),
		cmocka_unit_test(many_are_found),
		cmocka_unit_test(what_cannot_be_mapped_is_an_error),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
