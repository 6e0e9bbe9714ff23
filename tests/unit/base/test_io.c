// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/io: short transfers through a pipe, limits, files without a size, failures.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

#define BIG 300000			/* several pipe buffers */

static uint8_t big[BIG], back[BIG + 1];

static void fill(void)
{
	for (size_t i = 0; i < BIG; i++)
		big[i] = (uint8_t)(i * 31 + i / 251);
}

/* A child that writes big into a pipe; returns the reading end. */
static int pipe_from_child(pid_t *child)
{
	int fds[2];

	assert_int_equal(pipe(fds), 0);
	*child = fork();
	assert_true(*child >= 0);
	if (!*child) {
		close(fds[0]);
		_exit(xp_write_all(fds[1], big, BIG) ? 1 : 0);
	}
	close(fds[1]);
	return fds[0];
}

static void reap(pid_t child)
{
	int status;

	assert_int_equal(waitpid(child, &status, 0), child);
	assert_int_equal(status, 0);
}

static void short_transfers_are_completed(void **state)
{
	pid_t child;
	int fd;

	(void)state;
	fill();
	fd = pipe_from_child(&child);
	assert_int_equal(xp_read_full(fd, back, 1000), 1000);
	assert_int_equal(xp_read_full(fd, back + 1000, sizeof(back) - 1000), BIG - 1000);
	assert_memory_equal(back, big, BIG);
	assert_int_equal(xp_read_full(fd, back, 10), 0);
	close(fd);
	reap(child);
}

static void whole_files_are_appended(void **state)
{
	struct xp_buf b = XP_BUF_INIT;
	pid_t child;
	int fd;

	(void)state;
	fill();
	xp_buf_u8(&b, 'x');
	fd = pipe_from_child(&child);
	assert_int_equal(xp_read_fd(fd, &b, BIG), 0);
	assert_int_equal(b.len, BIG + 1);
	assert_int_equal(b.data[0], 'x');
	assert_memory_equal(b.data + 1, big, BIG);
	close(fd);
	reap(child);
	xp_buf_release(&b);
}

static void more_than_max_is_refused(void **state)
{
	struct xp_buf b = XP_BUF_INIT;
	pid_t child;
	int fd;

	(void)state;
	fill();
	xp_buf_put(&b, "keep", 4);
	fd = pipe_from_child(&child);
	assert_int_equal(xp_read_fd(fd, &b, BIG - 1), -EFBIG);
	assert_int_equal(b.len, 4);
	assert_memory_equal(b.data, "keep", 4);
	while (read(fd, back, sizeof(back)) > 0)
		;
	close(fd);
	reap(child);
	assert_int_equal(xp_read_file("/dev/zero", &b, 100000), -EFBIG);
	assert_int_equal(b.len, 4);
	xp_buf_release(&b);
}

static void proc_files_have_no_size(void **state)
{
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	assert_int_equal(xp_read_file("/proc/self/stat", &b, 4096), 0);
	assert_true(b.len > 20);
	assert_int_equal(b.data[b.len - 1], '\n');
	xp_buf_release(&b);
	assert_int_equal(xp_read_file("/dev/null", &b, 0), 0);
	assert_int_equal(b.len, 0);
	xp_buf_release(&b);
}

static void failures_give_errno(void **state)
{
	struct xp_buf b = XP_BUF_INIT;

	(void)state;
	assert_int_equal(xp_read_file("/no/such/file", &b, 10), -ENOENT);
	assert_int_equal(xp_read_file("/proc", &b, 10), -EISDIR);
	assert_int_equal(xp_read_full(-1, back, 1), -EBADF);
	assert_int_equal(xp_write_all(-1, back, 1), -EBADF);
	assert_int_equal(xp_write_all(-1, NULL, 0), 0);
	xp_buf_release(&b);
}

static void a_full_disk_and_a_closed_pipe_are_reported(void **state)
{
	int fds[2], full = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(xp_write_all(full, "x", 1), -ENOSPC);
	close(full);
	signal(SIGPIPE, SIG_IGN);
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(xp_write_all(fds[1], "x", 1), -EPIPE);
	close(fds[1]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(short_transfers_are_completed),
		cmocka_unit_test(whole_files_are_appended),
		cmocka_unit_test(more_than_max_is_refused),
		cmocka_unit_test(proc_files_have_no_size),
		cmocka_unit_test(failures_give_errno),
		cmocka_unit_test(a_full_disk_and_a_closed_pipe_are_reported),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
