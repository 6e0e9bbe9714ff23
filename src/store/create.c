/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * An old regular file is moved away and the new one created with O_EXCL, so that neither a link nor
 * a file that somebody put there in between is ever written to.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/text.h"
#include "store/create.h"

/* A decimal id from the environment; false when it is none. */
static bool env_id(const char *name, unsigned *id)
{
	const char *text = getenv(name);
	unsigned long v;
	char *end;

	if (!text || *text < '0' || *text > '9')
		return false;
	errno = 0;
	v = strtoul(text, &end, 10);
	*id = (unsigned)v;
	return !errno && !*end && v < UINT_MAX;		/* (uid_t)-1 means "leave it" */
}

/* Under sudo the file belongs to whoever called it. Where files have no owners that is no error. */
static void give_to_sudo_user(int fd)
{
	unsigned uid, gid;

	if (geteuid() || !env_id("SUDO_UID", &uid) || !env_id("SUDO_GID", &gid))
		return;
	if (fchown(fd, uid, gid))
		return;
}

static int move_away(const char *path, struct xp_err *err)
{
	char old[PATH_MAX];

	if (snprintf(old, sizeof(old), "%s.old", path) >= (int)sizeof(old))
		return xp_err_sys(err, ENAMETOOLONG, "cannot keep %s as %s.old", path, path);
	if (rename(path, old)) {
		int ret = xp_err_sys(err, errno, "cannot rename %s to %s", path, old);

		xp_err_hint(err, "choose another output file with -o FILE");
		return ret;
	}
	return 0;
}

static int refuse_terminal(int fd, const char *path, struct xp_err *err)
{
	if (!isatty(fd))
		return 0;
	xp_err_set(err, EINVAL, "%s is a terminal: a sample file is not text", path);
	xp_err_hint(err, "write to a file with -o FILE, or into a pipe with -o -");
	return -EINVAL;
}

/* The descriptor or a negative errno. */
static int open_waiting(const char *path, int flags, const struct xp_writer_wait *wait)
{
	struct stat st;
	int fd, ret;

	for (;;) {
		fd = open(path, flags | (wait->fn ? O_NONBLOCK : 0));
		if (fd >= 0)
			return fd;
		/* A pipe without a reader says so, but a socket too, and that never has one. */
		if (errno != ENXIO || !wait->fn || stat(path, &st) || !S_ISFIFO(st.st_mode))
			return -errno;
		ret = wait->fn(wait->ctx, -1);
		if (ret)
			return ret;
	}
}

/* A pipe or a character device, maybe by a link of the system's such as /dev/stdout. */
static int open_special(const char *path, bool follow, const struct xp_writer_wait *wait,
			struct xp_err *err)
{
	int flags = O_WRONLY | O_CLOEXEC | O_NOCTTY | (follow ? 0 : O_NOFOLLOW);
	int fd = open_waiting(path, flags, wait), ret;
	struct stat st;

	if (fd == -EINTR) {
		ret = xp_err_set(err, EINTR, "nobody came to read %s", path);
	} else if (fd < 0 || fstat(fd, &st)) {
		ret = xp_err_sys(err, fd < 0 ? -fd : errno, "cannot open %s for writing", path);
	} else if (!S_ISFIFO(st.st_mode) && !S_ISCHR(st.st_mode) && !S_ISSOCK(st.st_mode)) {
		ret = xp_err_set(err, EINVAL, "will not write to %s: not a regular file, pipe or "
				 "character device", path);
		xp_err_hint(err, "choose another output file with -o FILE; -o - is standard output");
	} else {
		ret = refuse_terminal(fd, path, err);
	}
	if (ret) {
		if (fd >= 0)
			close(fd);
		return ret;
	}
	return fd;
}

static int create_new(const char *path, struct xp_err *err)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC | O_NOCTTY, 0600);

	if (fd < 0) {
		int ret = xp_err_sys(err, errno, "cannot create %s", path);

		xp_err_hint(err, "choose a place you can write to with -o FILE, such as -o /tmp/xprof.data");
		return ret;
	}
	give_to_sudo_user(fd);
	return fd;
}

int xp_store_create(const char *path, const struct xp_writer_wait *wait, struct xp_err *err)
{
	bool system = !strncmp(path, "/dev/", 5) || !strncmp(path, "/proc/", 6);
	char safe[256];
	struct stat st;
	int ret;

	if (lstat(path, &st))
		return create_new(path, err);
	if (S_ISDIR(st.st_mode)) {
		ret = xp_err_sys(err, EISDIR, "cannot write to %s", path);
		xp_text_safe_copy(safe, sizeof(safe), path, strlen(path));
		xp_err_hint(err, "name a file in it: -o %s/xprof.data", safe);
		return ret;
	}
	if (S_ISLNK(st.st_mode) && !system) {
		ret = xp_err_set(err, ELOOP, "%s is a symbolic link, which is not followed", path);
		xp_err_hint(err, "remove it, or name the file it points to with -o FILE");
		return ret;
	}
	if (!S_ISREG(st.st_mode))
		return open_special(path, S_ISLNK(st.st_mode), wait, err);
	ret = move_away(path, err);
	return ret ? ret : create_new(path, err);
}

int xp_store_create_stdout(struct xp_err *err)
{
	int ret = refuse_terminal(STDOUT_FILENO, "standard output", err);
	int fd;

	if (ret)
		return ret;
	fd = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
	return fd < 0 ? xp_err_sys(err, errno, "cannot write to standard output") : fd;
}
