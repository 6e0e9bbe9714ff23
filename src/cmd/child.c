/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The child is forked first, so that its pid can be made a target, and waits on a pipe. When we
 * die before we let it go, it reads the end of the pipe and exits without running anything.
 */
#include "cmd/child.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"

static int exec_error(int errnum, const char *program, struct xp_err *err)
{
	int r = xp_err_sys(err, errnum, "cannot run %s", program);

	xp_err_status(err, errnum == ENOENT ? XP_EXIT_NO_COMMAND : XP_EXIT_CANNOT_EXEC);
	if (errnum == ENOENT)
		xp_err_hint(err, "the command comes after the options: xprof record -- COMMAND ARG...");
	return r;
}

static bool executable(const char *path)
{
	struct stat st;

	if (stat(path, &st))
		return false;
	if (S_ISDIR(st.st_mode)) {
		errno = EACCES;
		return false;
	}
	return !access(path, X_OK);
}

/* Looks the program up in PATH; an entry that is there but not executable is remembered. */
static int search(const char *program, char **path, int *errnum)
{
	const char *dirs = getenv("PATH"), *next;

	if (!dirs || !*dirs)
		dirs = "/usr/local/bin:/usr/bin:/bin";
	for (; dirs; dirs = next ? next + 1 : NULL) {
		int n;

		next = strchr(dirs, ':');
		n = next ? (int)(next - dirs) : (int)strlen(dirs);
		if (asprintf(path, "%.*s%s%s", n, dirs, n ? "/" : "./", program) < 0)
			return -ENOMEM;
		if (executable(*path))
			return 0;
		if (errno == EACCES)
			*errnum = EACCES;
		free(*path);
		*path = NULL;
	}
	return -*errnum;
}

int xp_child_find(const char *program, char **path, struct xp_err *err)
{
	int errnum = ENOENT, r;

	*path = NULL;
	if (!strchr(program, '/')) {
		r = search(program, path, &errnum);
		return r ? exec_error(-r, program, err) : 0;
	}
	if (!executable(program))
		return exec_error(errno, program, err);
	*path = strdup(program);
	return *path ? 0 : xp_err_sys(err, ENOMEM, "cannot run %s", program);
}

static void __attribute__((noreturn)) run_child(int go, int failed, char *const argv[],
						 const struct xp_child_signals *signals)
{
	char byte;
	int errnum;

	if (xp_read_full(go, &byte, 1) != 1)
		_exit(XP_EXIT_FAILURE);
	signal(SIGPIPE, signals->pipe);		/* what we ignore, exec would hand on */
	signal(SIGXFSZ, signals->xfsz);
	sigprocmask(SIG_SETMASK, &signals->mask, NULL);
	execvp(argv[0], argv);
	errnum = errno;
	xp_write_all(failed, &errnum, sizeof(errnum));
	_exit(errnum == ENOENT ? XP_EXIT_NO_COMMAND : XP_EXIT_CANNOT_EXEC);
}

int xp_child_start(struct xp_child *c, char *const argv[], const struct xp_child_signals *signals,
		   struct xp_err *err)
{
	int go[2] = { -1, -1 }, failed[2] = { -1, -1 };

	if (pipe2(go, O_CLOEXEC) || pipe2(failed, O_CLOEXEC))
		goto out;
	c->pid = fork();
	if (c->pid < 0)
		goto out;
	if (!c->pid) {
		close(go[1]);
		close(failed[0]);
		run_child(go[0], failed[1], argv, signals);
	}
	close(go[0]);
	close(failed[1]);
	c->go = go[1];
	c->failed = failed[0];
	return 0;
out:
	c->pid = 0;
	xp_err_sys(err, errno, "cannot start %s", argv[0]);
	for (int i = 0; i < 2; i++) {
		if (go[i] >= 0)
			close(go[i]);
		if (failed[i] >= 0)
			close(failed[i]);
	}
	return -EAGAIN;
}

int xp_child_release(struct xp_child *c, char *const argv[], struct xp_err *err)
{
	int errnum;

	xp_write_all(c->go, "", 1);
	close(c->go);
	c->go = -1;
	/* The other end is closed by a successful exec. */
	if (xp_read_full(c->failed, &errnum, sizeof(errnum)) != sizeof(errnum))
		return 0;
	c->ended = waitpid(c->pid, &c->status, 0) == c->pid;
	return exec_error(errnum, argv[0], err);
}

bool xp_child_reap(struct xp_child *c)
{
	if (c->pid && !c->ended)
		c->ended = waitpid(c->pid, &c->status, WNOHANG) == c->pid;
	return c->ended;
}

int xp_child_status(const struct xp_child *c)
{
	if (WIFSIGNALED(c->status))
		return 128 + WTERMSIG(c->status);
	return WEXITSTATUS(c->status);
}

void xp_child_close(struct xp_child *c)
{
	if (c->go >= 0)
		close(c->go);
	if (c->failed >= 0)
		close(c->failed);
	c->go = c->failed = -1;
}
