/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Option tables. One table per command; parsing, --help, the man page check and the shell
 * completions all read it.
 *
 * Parsing follows POSIX: options end at "--" or at the first operand. Long options take "=value" or
 * the next word, may be abbreviated when unambiguous; short flags may be bundled, a short option's
 * value may be attached. A flag with a long name "x" also takes "--no-x" when it is XP_OPT_FLAG.
 */
#ifndef XP_BASE_OPT_H
#define XP_BASE_OPT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/err.h"

enum xp_opt_type {
	XP_OPT_FLAG,		/* dest: bool * */
	XP_OPT_COUNT,		/* dest: int *, counts up (-v -v) */
	XP_OPT_STRING,		/* dest: const char ** */
	XP_OPT_UINT,		/* dest: unsigned *, within [min, max] */
	XP_OPT_DURATION,	/* dest: uint64_t * in ns: 10, 1.5, 10s, 2m, 1h, 500ms */
	XP_OPT_FREQUENCY,	/* dest: unsigned *: 99, 1k, "max" (the kernel's); in [min, max] */
	XP_OPT_PIDS,		/* dest: struct xp_opt_pids *: comma list of pids; repeatable */
	XP_OPT_CHOICE,		/* dest: int *: index into choices */
	XP_OPT_IGNORED,		/* for the fingers' sake, does nothing; has a value if arg is set */
	XP_OPT_END,
};

/* What a shell may offer for the value. */
enum xp_opt_complete { XP_COMPLETE_NONE, XP_COMPLETE_FILE, XP_COMPLETE_DATA_FILE, XP_COMPLETE_PID };

struct xp_opt_pids {
	int *v;
	size_t n, cap;
};

struct xp_opt {
	enum xp_opt_type type;
	char letter;			/* 0: long only */
	const char *name;		/* without dashes */
	const char *alias;		/* second long name, or NULL */
	void *dest;
	const char *arg;		/* name of the value in help, NULL for flags */
	const char *help;		/* one line */
	unsigned min, max;
	const char *const *choices;	/* NULL-terminated */
	enum xp_opt_complete complete;
	bool hidden;			/* not in help, man page and completions */
};

/*
 * Parses argv[1..]. Returns the index of the first operand (argc when none), or a negative errno
 * with err set (status XP_EXIT_USAGE). *dashes (may be NULL) tells whether "--" ended the options.
 * -h and --help are recognised among the options of every table, end the parsing and are reported
 * by *help. Values point into argv; the caller frees pids.v.
 */
int xp_opt_parse(const struct xp_opt *opts, int argc, char **argv, bool *help, bool *dashes,
		 struct xp_err *err);
/* The aligned option lines of --help. */
void xp_opt_help(const struct xp_opt *opts, FILE *out);
/*
 * One line per spelling of each visible option, for completion scripts and the check of the man
 * pages: "--name=\tKIND\thelp" ("=" when it takes a value) or "-n\tKIND\thelp". KIND is none, flag
 * (also spelled --no-name), value, file, data (a sample file), pid, or "=" and the choices with
 * commas between them.
 */
void xp_opt_list(const struct xp_opt *opts, FILE *out);

#endif
