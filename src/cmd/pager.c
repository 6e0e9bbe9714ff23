/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The pager is the child, so that the command's exit status stays its own.
 */
#include "cmd/pager.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static pid_t pager_pid;

static const char *choose(void)
{
	const char *pager = getenv("XPROF_PAGER");

	if (!pager)
		pager = getenv("PAGER");
	if (!pager)
		pager = "less -FRX";
	return *pager && strcmp(pager, "cat") ? pager : NULL;
}

static void run_pager(const char *pager, int in)
{
	setenv("LESS", "FRX", 0);	/* for PAGER=less: keep colours, leave short output alone */
	if (dup2(in, STDIN_FILENO) >= 0)
		execl("/bin/sh", "sh", "-c", pager, (char *)NULL);
	_exit(127);
}

bool xp_pager_start(void)
{
	const char *pager = choose();
	int ends[2];

	if (!pager || !isatty(STDOUT_FILENO) || pipe2(ends, O_CLOEXEC))
		return false;
	fflush(stdout);
	pager_pid = fork();
	if (!pager_pid)
		run_pager(pager, ends[0]);
	close(ends[0]);
	if (pager_pid < 0 || dup2(ends[1], STDOUT_FILENO) < 0) {
		pager_pid = 0;
		close(ends[1]);
		return false;
	}
	close(ends[1]);
	signal(SIGPIPE, SIG_IGN);	/* who leaves the pager early has seen enough */
	signal(SIGINT, SIG_IGN);	/* belongs to the pager now */
	return true;
}

void xp_pager_finish(void)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
	int status;

	fflush(stdout);
	if (null >= 0)
		dup2(null, STDOUT_FILENO);	/* closes the pipe, so that the pager sees the end */
	close(null);
	fflush(stdout);
	clearerr(stdout);
	while (waitpid(pager_pid, &status, 0) < 0 && errno == EINTR)
		continue;
}
