/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A subcommand: what main's table and the help, completion and documentation checks know of it.
 */
#ifndef XP_CMD_CMD_H
#define XP_CMD_CMD_H

#include "base/err.h"
#include "base/opt.h"

struct xp_command {
	const char *name;
	const char *summary;			/* one line, no full stop */
	const char *const *usage;		/* lines without "xprof ", NULL-terminated */
	const char *const *examples;		/* command lines, NULL-terminated; may be NULL */
	const struct xp_opt *(*options)(void);	/* the table, ended by XP_OPT_END */
	/* argv[0] is the subcommand's name. Returns the exit status; messages are printed. */
	int (*run)(int argc, char **argv);
};

extern const struct xp_command xp_cmd_record;
extern const struct xp_command xp_cmd_report;
extern const struct xp_command xp_cmd_maps;

/* All commands, NULL-terminated, in the order of the help text. */
extern const struct xp_command *const xp_commands[];

/*
 * What every run() starts with: parses argv by the command's table, prints --help (stdout) when
 * asked. Returns true to go on with *operand set to the index of the first operand and *dashes as
 * xp_opt_parse() says; false when run() must return *status.
 */
bool xp_cmd_begin(const struct xp_command *cmd, int argc, char **argv, int *operand, bool *dashes,
		  int *status);
/* Prints "xprof: what" and, when there, the hint's lines to stderr; returns the exit status. */
int xp_cmd_fail(const struct xp_err *err);
/* One line on stderr with the prefix "xprof: ", whatever is in it; note() is silent under --quiet. */
void xp_cmd_warn(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
void xp_cmd_note(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
extern bool xp_cmd_quiet;
extern int xp_cmd_verbose;
/*
 * Flushes stdout; a failure is printed and changes status from OK to FAILURE. EPIPE is quiet: 141.
 * May be called again: main() does.
 */
int xp_cmd_end(int status);

#endif
