// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * cmd/cmd and cmd/help: what is printed where, and which status follows.
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
#include <sys/wait.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/help.h"

static int number;

static const struct xp_opt sing_options[] = {
	{ .type = XP_OPT_COUNT, .letter = 'n', .name = "number", .dest = &number,
	  .help = "sing louder" },
	{ .type = XP_OPT_END },
};

static const struct xp_opt *options(void)
{
	return sing_options;
}

static int run(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	return 0;
}

static const struct xp_command sing = {
	.name = "sing",
	.summary = "sing a song",
	.usage = (const char *const[]){ "sing [-n]", "sing SONG", NULL },
	.examples = (const char *const[]){ "xprof sing -n", NULL },
	.options = options,
	.run = run,
};

const struct xp_command *const xp_commands[] = { &sing, &xp_cmd_help, NULL };

const struct xp_opt xp_program_options[] = {
	{ .type = XP_OPT_END },
};

static char out[4096], err[4096];

static void slurp(int fd, char *into)
{
	ssize_t n;

	lseek(fd, 0, SEEK_SET);
	n = read(fd, into, 4095);
	into[n > 0 ? n : 0] = '\0';
	close(fd);
}

static int scratch(void)
{
	FILE *f = tmpfile();
	int fd = f ? dup(fileno(f)) : -1;

	if (f)
		fclose(f);
	assert_true(fd >= 0);
	return fd;
}

/* Runs the step in a child whose stdout is to_fd (or a scratch file); returns its exit status. */
static int in_child(int (*step)(void), int to_fd)
{
	int out_fd = scratch(), err_fd = scratch(), status;
	pid_t pid;

	fflush(stdout);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		dup2(to_fd < 0 ? out_fd : to_fd, STDOUT_FILENO);
		dup2(err_fd, STDERR_FILENO);
		status = step();
		fflush(stdout);
		fflush(stderr);
		_exit(status);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	slurp(out_fd, out);
	slurp(err_fd, err);
	assert_true(WIFEXITED(status));
	return WEXITSTATUS(status);
}

static int begin(int argc, char **argv)
{
	int operand = -1, status = -1;
	bool dashes;

	if (!xp_cmd_begin(&sing, argc, argv, &operand, &dashes, &status))
		return status;
	printf("operand %d dashes %d number %d", operand, dashes, number);
	return 42;
}

static int step_go(void)
{
	return begin(4, (char *[]){ "sing", "-nn", "--", "la", NULL });
}

static int step_help(void)
{
	return begin(2, (char *[]){ "sing", "--help", NULL });
}

static int step_list(void)
{
	return begin(2, (char *[]){ "sing", "--list-opts", NULL });
}

static int step_bad(void)
{
	return begin(2, (char *[]){ "sing", "--nunber", NULL });
}

static void begin_goes_on(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_go, -1), 42);
	assert_string_equal(out, "operand 3 dashes 1 number 2");
	assert_string_equal(err, "");
}

static void begin_prints_help_on_stdout(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_help, -1), 0);
	assert_string_equal(out, "Usage: xprof sing [-n]\n"
				 "       xprof sing SONG\n"
				 "\n"
				 "Sing a song.\n"
				 "\n"
				 "Options:\n"
				 "  -n, --number  sing louder\n"
				 "  -h, --help    show this help\n"
				 "\n"
				 "Examples:\n"
				 "  xprof sing -n\n"
				 "\n"
				 "See also xprof-sing(1).\n");
	assert_string_equal(err, "");
}

static void begin_lists_options(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_list, -1), 0);
	assert_string_equal(out, "-n\tnone\tsing louder\n--number\tnone\tsing louder\n"
				 "-h\tnone\tshow this help\n--help\tnone\tshow this help\n");
}

static void begin_names_the_wrong_option(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_bad, -1), XP_EXIT_USAGE);
	assert_string_equal(out, "");
	assert_string_equal(err, "xprof: unknown option '--nunber' (did you mean --number?)\n"
				 "xprof: try 'xprof sing --help'\n");
}

static int step_fail(void)
{
	struct xp_err e = XP_ERR_INIT;

	xp_err_set(&e, EPERM, "cannot look at pid 1 (\xff\033[2J)");
	xp_err_hint(&e, "try sudo\nor setcap");
	return xp_cmd_fail(&e);
}

static int step_fail_bare(void)
{
	struct xp_err e = XP_ERR_INIT;

	snprintf(e.what, sizeof(e.what), "x");
	return xp_cmd_fail(&e);
}

static int step_messages(void)
{
	xp_cmd_note("one %d", 1);
	xp_cmd_warn("two\nlines %s", "\033");
	xp_cmd_quiet = true;
	xp_cmd_note("silent");
	xp_cmd_warn("loud");
	return 0;
}

static void failures_are_safe_text_on_stderr(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_fail, -1), XP_EXIT_NOPERM);
	assert_string_equal(out, "");
	assert_string_equal(err, "xprof: cannot look at pid 1 (\xef\xbf\xbd?[2J)\n"
				 "xprof: try sudo\nxprof: or setcap\n");
	assert_int_equal(in_child(step_fail_bare, -1), XP_EXIT_FAILURE);
	assert_string_equal(err, "xprof: x\n");
}

static void quiet_silences_notes_only(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_messages, -1), 0);
	assert_string_equal(err, "xprof: one 1\nxprof: two lines ?\nxprof: loud\n");
}

static int step_end(void)
{
	printf("result\n");
	return xp_cmd_end(XP_EXIT_OK);
}

static int step_end_twice_damaged(void)
{
	printf("result\n");
	xp_cmd_end(XP_EXIT_DAMAGED);
	return xp_cmd_end(XP_EXIT_DAMAGED);
}

/* More than a stdio buffer: the write fails long before the end. */
static int step_end_long(void)
{
	signal(SIGPIPE, SIG_IGN);
	for (int i = 0; i < 100000; i++)
		printf("result %d\n", i);
	return xp_cmd_end(XP_EXIT_OK);
}

static void a_result_that_is_lost_changes_the_status(void **state)
{
	int full = open("/dev/full", O_WRONLY);

	(void)state;
	assert_true(full >= 0);
	assert_int_equal(in_child(step_end, -1), 0);
	assert_string_equal(out, "result\n");
	assert_int_equal(in_child(step_end, full), XP_EXIT_FAILURE);
	assert_string_equal(err,
			    "xprof: cannot write to standard output: No space left on device\n");
	assert_int_equal(in_child(step_end_twice_damaged, full), XP_EXIT_DAMAGED);
	assert_string_equal(err,
			    "xprof: cannot write to standard output: No space left on device\n");
	close(full);
}

static void a_reader_that_went_away_is_no_news(void **state)
{
	int fds[2];

	(void)state;
	assert_int_equal(pipe(fds), 0);
	close(fds[0]);
	assert_int_equal(in_child(step_end_long, fds[1]), 141);
	assert_string_equal(err, "");
	close(fds[1]);
}

static int step_help_unknown(void)
{
	return xp_cmd_help.run(2, (char *[]){ "help", "sinf", NULL });
}

static int step_help_two(void)
{
	return xp_cmd_help.run(3, (char *[]){ "help", "sing", "help", NULL });
}

/* No man(1) to be found. */
static int step_help_sing(void)
{
	setenv("PATH", "/nonexistent", 1);
	return xp_cmd_help.run(2, (char *[]){ "help", "sing", NULL });
}

static int step_help_program(void)
{
	setenv("PATH", "/nonexistent", 1);
	return xp_cmd_help.run(1, (char *[]){ "help", NULL });
}

static void help_names_the_nearest_command(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_help_unknown, -1), XP_EXIT_USAGE);
	assert_string_equal(err, "xprof: unknown command 'sinf' (did you mean sing?)\n"
				 "xprof: try 'xprof --help'\n");
	assert_int_equal(in_child(step_help_two, -1), XP_EXIT_USAGE);
	assert_string_equal(err, "xprof: unexpected operand 'help'\n"
				 "xprof: try 'xprof help --help'\n");
}

static void help_without_man_prints_the_short_text(void **state)
{
	(void)state;
	assert_int_equal(in_child(step_help_sing, -1), 0);
	assert_memory_equal(out, "Usage: xprof sing [-n]\n", 23);
	assert_int_equal(in_child(step_help_program, -1), 0);
	assert_non_null(strstr(out, "Commands:\n  sing      sing a song\n  help      "));
	assert_string_equal(err, "");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(begin_goes_on),
		cmocka_unit_test(begin_prints_help_on_stdout),
		cmocka_unit_test(begin_lists_options),
		cmocka_unit_test(begin_names_the_wrong_option),
		cmocka_unit_test(failures_are_safe_text_on_stderr),
		cmocka_unit_test(quiet_silences_notes_only),
		cmocka_unit_test(a_result_that_is_lost_changes_the_status),
		cmocka_unit_test(a_reader_that_went_away_is_no_news),
		cmocka_unit_test(help_names_the_nearest_command),
		cmocka_unit_test(help_without_man_prints_the_short_text),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
