// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Help: short texts from the tables, and the manual page for "xprof help".
 */
#include "cmd/help.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/text.h"

const struct xp_command *xp_help_find(const char *name)
{
	for (size_t i = 0; xp_commands[i]; i++) {
		if (!strcmp(xp_commands[i]->name, name))
			return xp_commands[i];
	}
	return NULL;
}

int xp_help_unknown(const char *name)
{
	struct xp_err err = XP_ERR_INIT;
	const char *nearest = NULL;
	unsigned best = UINT_MAX;

	for (size_t i = 0; xp_commands[i]; i++) {
		if (xp_text_nearer(name, xp_commands[i]->name, &best))
			nearest = xp_commands[i]->name;
	}
	if (nearest)
		xp_err_set(&err, EINVAL, "unknown command '%s' (did you mean %s?)", name, nearest);
	else
		xp_err_set(&err, EINVAL, "unknown command '%s'", name);
	xp_err_hint(&err, "try 'xprof --help'");
	xp_err_status(&err, XP_EXIT_USAGE);
	return xp_cmd_fail(&err);
}

void xp_help_program(FILE *out)
{
	fputs("Usage: xprof COMMAND [OPTION...] [OPERAND...]\n"
	      "\nSample running programs and show where their time goes.\n"
	      "\nCommands:\n", out);
	for (size_t i = 0; xp_commands[i]; i++)
		fprintf(out, "  %-8s  %s\n", xp_commands[i]->name, xp_commands[i]->summary);
	fputs("\nOptions:\n", out);
	xp_opt_help(xp_program_options, out);
	fputs("\nExamples:\n"
	      "  xprof record -d 10 -p 1234\n"
	      "  xprof report\n"
	      "\n'xprof COMMAND --help' lists the options of a command; see also xprof(1).\n", out);
}

void xp_help_command(const struct xp_command *cmd, FILE *out)
{
	for (size_t i = 0; cmd->usage[i]; i++)
		fprintf(out, "%s xprof %s\n", i ? "      " : "Usage:", cmd->usage[i]);
	fprintf(out, "\n%c%s.\n\nOptions:\n", toupper((unsigned char)cmd->summary[0]),
		cmd->summary + 1);
	xp_opt_help(cmd->options(), out);
	if (cmd->examples)
		fputs("\nExamples:\n", out);
	for (size_t i = 0; cmd->examples && cmd->examples[i]; i++)
		fprintf(out, "  %s\n", cmd->examples[i]);
	if (cmd == &xp_cmd_help)
		fputs("\nSee also xprof(1).\n", out);
	else
		fprintf(out, "\nSee also xprof-%s(1).\n", cmd->name);
}

/* Shows a manual page; false when there is no man(1) or no such page. */
static bool show_page(const char *page)
{
	extern char **environ;
	char *const argv[] = { "man", "1", (char *)page, NULL };
	posix_spawn_file_actions_t actions;
	int status = -1;
	pid_t pid;
	bool ok;

	if (posix_spawn_file_actions_init(&actions))
		return false;
	/* The complaint about a missing page is of no use: help is printed instead. */
	ok = !posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0) &&
	     !posix_spawnp(&pid, "man", &actions, NULL, argv, environ);
	posix_spawn_file_actions_destroy(&actions);
	if (!ok)
		return false;
	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return false;
	}
	return WIFEXITED(status) && !WEXITSTATUS(status);
}

static int run(int argc, char **argv)
{
	const struct xp_command *cmd = NULL;
	int operand, status;
	char page[64];

	if (!xp_cmd_begin(&xp_cmd_help, argc, argv, &operand, NULL, &status))
		return status;
	if (argc - operand > 1) {
		struct xp_err err = XP_ERR_INIT;

		xp_err_set(&err, EINVAL, "unexpected operand '%s'", argv[operand + 1]);
		xp_err_hint(&err, "try 'xprof help --help'");
		xp_err_status(&err, XP_EXIT_USAGE);
		return xp_cmd_fail(&err);
	}
	if (operand < argc) {
		cmd = xp_help_find(argv[operand]);
		if (!cmd)
			return xp_help_unknown(argv[operand]);
	}
	if (cmd == &xp_cmd_help)
		cmd = NULL;
	snprintf(page, sizeof(page), "xprof%s%s", cmd ? "-" : "", cmd ? cmd->name : "");
	if (show_page(page))
		return XP_EXIT_OK;
	if (cmd)
		xp_help_command(cmd, stdout);
	else
		xp_help_program(stdout);
	return xp_cmd_end(XP_EXIT_OK);
}

static const struct xp_opt *options(void)
{
	static const struct xp_opt none[] = {
		{ .type = XP_OPT_END },
	};

	return none;
}

const struct xp_command xp_cmd_help = {
	.name = "help",
	.summary = "open the manual page of xprof or of a command",
	.usage = (const char *const[]){ "help [COMMAND]", NULL },
	.options = options,
	.run = run,
};
