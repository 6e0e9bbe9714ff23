// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What all subcommands share: the beginning, the end and the messages.
 *
 * Messages go to stderr, one line each, and quote names that other processes chose: they are made
 * safe here, at the only place that prints them.
 */
#include "cmd/cmd.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/help.h"

#define MESSAGE_MAX 2048
#define EXIT_SIGPIPE 141		/* what a shell reports for a reader that went away */

bool xp_cmd_quiet;
int xp_cmd_verbose;

static void print_line(const char *line, size_t n)
{
	char safe[MESSAGE_MAX];

	xp_text_safe_copy(safe, sizeof(safe), line, n);
	fprintf(stderr, "xprof: %s\n", safe);
}

/* Every line of a text with the prefix. */
static void print_lines(const char *text)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		print_line(text, n);
		text += n + (text[n] == '\n');
	}
}

int xp_cmd_fail(const struct xp_err *err)
{
	print_lines(err->what);
	print_lines(err->hint);
	return err->status ? err->status : XP_EXIT_FAILURE;
}

void xp_cmd_warn(const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line(text, strlen(text));
}

void xp_cmd_note(const char *fmt, ...)
{
	char text[MESSAGE_MAX];
	va_list ap;

	if (xp_cmd_quiet)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	print_line(text, strlen(text));
}

bool xp_cmd_begin(const struct xp_command *cmd, int argc, char **argv, int *operand, bool *dashes,
		  int *status)
{
	struct xp_err err = XP_ERR_INIT;
	bool help;
	int first;

	if (argc == 2 && !strcmp(argv[1], "--list-opts")) {
		xp_opt_list(cmd->options(), stdout);
		*status = xp_cmd_end(XP_EXIT_OK);
		return false;
	}
	first = xp_opt_parse(cmd->options(), argc, argv, &help, dashes, &err);
	if (first < 0) {
		if (err.status == XP_EXIT_USAGE)
			xp_err_hint(&err, "try 'xprof %s --help'", cmd->name);
		*status = xp_cmd_fail(&err);
		return false;
	}
	if (help) {
		xp_help_command(cmd, stdout);
		*status = xp_cmd_end(XP_EXIT_OK);
		return false;
	}
	*operand = first;
	return true;
}

/* Whether the reader of stdout has gone: a write that failed earlier has left no errno. */
static bool reader_gone(void)
{
	struct pollfd fd = { .fd = STDOUT_FILENO };

	return poll(&fd, 1, 0) == 1 && (fd.revents & POLLERR);
}

int xp_cmd_end(int status)
{
	static bool reported;
	int errnum = 0;

	if (fflush(stdout))
		errnum = errno;
	else if (!ferror(stdout))
		return status;
	if (errnum == EPIPE || reader_gone())
		return status == XP_EXIT_OK ? EXIT_SIGPIPE : status;
	if (!reported)
		xp_cmd_warn("cannot write to standard output%s%s", errnum ? ": " : "",
			    errnum ? strerror(errnum) : "");
	reported = true;
	return status == XP_EXIT_OK ? XP_EXIT_FAILURE : status;
}
