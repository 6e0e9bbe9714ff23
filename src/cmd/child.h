/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The command that record and top start: held before its exec until everything is ready, never
 * signalled, waited for.
 */
#ifndef XP_CMD_CHILD_H
#define XP_CMD_CHILD_H

#include <signal.h>
#include <stdbool.h>
#include <sys/types.h>

#include "base/err.h"

struct xp_child {
	pid_t pid;		/* 0: none was started */
	int go, failed;		/* pipes: we write one byte; the child writes errno when exec fails */
	bool ended;
	int status;		/* as waitpid(2) gives it, once ended */
};

#define XP_CHILD_INIT { 0, -1, -1, false, 0 }

/* What the command is to find of signals: as they were before we changed them for us. */
struct xp_child_signals {
	sigset_t mask;
	void (*pipe)(int), (*xfsz)(int);	/* SIG_DFL or SIG_IGN, for SIGPIPE and SIGXFSZ */
};

/*
 * Where execvp(3) would find the program; *path is new (free it). The error has status 127 (not
 * found) or 126 (not executable).
 */
int xp_child_find(const char *program, char **path, struct xp_err *err);
/* Forks a child that waits; when it execs, it will have these signals. */
int xp_child_start(struct xp_child *c, char *const argv[], const struct xp_child_signals *signals,
		   struct xp_err *err);
/* Lets it exec. An exec that fails gives an error with status 126 or 127. */
int xp_child_release(struct xp_child *c, char *const argv[], struct xp_err *err);
/* Whether it has ended. */
bool xp_child_reap(struct xp_child *c);
/* The command's exit status as a shell reports it: 128 + signal when it was killed. */
int xp_child_status(const struct xp_child *c);
/* Closes the pipes; a child that was not released ends by itself. */
void xp_child_close(struct xp_child *c);

#endif
