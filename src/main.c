// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xprof: the table of commands.
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/help.h"

const struct xp_command *const xp_commands[] = {
	&xp_cmd_record,
	&xp_cmd_report,
	&xp_cmd_maps,
	&xp_cmd_help,
	NULL,
};

static bool show_version, list_commands, list_options;

const struct xp_opt xp_program_options[] = {
	{
		.type = XP_OPT_FLAG,
		.letter = 'V',
		.name = "version",
		.dest = &show_version,
		.help = "print the version",
	},
	/* For the shell completions. */
	{ .type = XP_OPT_FLAG, .name = "list-cmds", .dest = &list_commands, .hidden = true },
	{ .type = XP_OPT_FLAG, .name = "list-opts", .dest = &list_options, .hidden = true },
	{ .type = XP_OPT_END },
};

/*
 * A closed standard descriptor would be given to the next file opened, and messages would land in
 * that file. Its place is taken by one on which the expected transfer fails.
 */
static void occupy_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			exit(XP_EXIT_FAILURE);
	}
}

static int usage_error(struct xp_err *err)
{
	xp_err_hint(err, "try 'xprof --help'");
	xp_err_status(err, XP_EXIT_USAGE);
	return xp_cmd_fail(err);
}

static int dispatch(int argc, char **argv)
{
	struct xp_err err = XP_ERR_INIT;
	const struct xp_command *cmd;
	bool help;
	int first = xp_opt_parse(xp_program_options, argc, argv, &help, NULL, &err);

	if (first < 0)
		return usage_error(&err);
	if (help) {
		xp_help_program(stdout);
		return XP_EXIT_OK;
	}
	if (show_version) {
		puts("xprof " PACKAGE_VERSION);
		return XP_EXIT_OK;
	}
	if (list_options) {
		xp_opt_list(xp_program_options, stdout);
		return XP_EXIT_OK;
	}
	if (list_commands) {
		for (size_t i = 0; xp_commands[i]; i++)
			printf("%s\t%s\n", xp_commands[i]->name, xp_commands[i]->summary);
		return XP_EXIT_OK;
	}
	if (first == argc) {
		xp_err_set(&err, EINVAL, "no command given");
		return usage_error(&err);
	}
	cmd = xp_help_find(argv[first]);
	if (!cmd)
		return xp_help_unknown(argv[first]);
	return cmd->run(argc - first, argv + first);
}

int main(int argc, char **argv)
{
	occupy_standard_files();
	return xp_cmd_end(dispatch(argc, argv));
}
