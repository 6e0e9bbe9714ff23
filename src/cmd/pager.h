/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A pager between a command's standard output and the terminal.
 */
#ifndef XP_CMD_PAGER_H
#define XP_CMD_PAGER_H

#include <stdbool.h>

/*
 * Starts XPROF_PAGER, else PAGER, else "less -FRX"; standard output goes into it. Nothing happens,
 * and false is returned, when output is no terminal, the pager is empty or "cat", or it cannot run.
 */
bool xp_pager_start(void);
/*
 * Flushes, waits for the pager to end; what is written to standard output afterwards is lost, and
 * what the pager did not read is no error.
 */
void xp_pager_finish(void);

#endif
