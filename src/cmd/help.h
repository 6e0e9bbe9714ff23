/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Help texts, made from the tables of the commands.
 */
#ifndef XP_CMD_HELP_H
#define XP_CMD_HELP_H

#include <stdio.h>

#include "cmd/cmd.h"

/* xprof help [COMMAND] */
extern const struct xp_command xp_cmd_help;

/* The command of that name, or NULL. */
const struct xp_command *xp_help_find(const char *name);
/* Prints that there is no such command, with the nearest one; returns the exit status. */
int xp_help_unknown(const char *name);
/* The options before the command; main's. */
extern const struct xp_opt xp_program_options[];
/* What "xprof --help" prints. */
void xp_help_program(FILE *out);
/* What "xprof COMMAND --help" prints. */
void xp_help_command(const struct xp_command *cmd, FILE *out);

#endif
