// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What /proc says about a process (proc_pid_stat(5), proc_pid_status(5)).
 */
#include "target/proc.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"

#define PF_KTHREAD 0x00200000u		/* include/linux/sched.h, unchanged since 2.6.18 */
#define SMALL_FILE_MAX (64u << 10)

/* A whole small file of /proc/PID as a string in *text. */
static int slurp(struct xp_buf *text, pid_t pid, const char *name)
{
	char path[64];
	int rc;

	snprintf(path, sizeof(path), "/proc/%d/%s", (int)pid, name);
	rc = xp_read_file(path, text, SMALL_FILE_MAX);
	xp_buf_u8(text, 0);
	if (!rc && text->failed)
		rc = -ENOMEM;
	return rc;
}

static void copy_comm(char *to, const char *from, size_t n)
{
	if (n > 15)
		n = 15;
	memcpy(to, from, n);
	to[n] = 0;
}

/* "12 (a) b) c) S 1 ...": the name ends at the last parenthesis, since nothing after it has one. */
static int parse_stat(struct xp_proc_info *info, const char *text)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	unsigned flags;
	int ppid;

	if (!open || !close || close < open)
		return -EINVAL;
	copy_comm(info->comm, open + 1, (size_t)(close - open - 1));
	if (sscanf(close + 1,
		   " %c %d %*d %*d %*d %*d %u %*u %*u %*u %*u %*u %*u %*d %*d %*d %*d %*d %*d"
		   " %" SCNu64, &info->state, &ppid, &flags, &info->start_time) != 4)
		return -EINVAL;
	info->ppid = ppid;
	info->kernel_thread = flags & PF_KTHREAD;
	return 0;
}

/* The name on the first line has its newlines escaped, so a line's start is what it seems. */
static int parse_status(struct xp_proc_info *info, const char *text)
{
	const char *tgid = strstr(text, "\nTgid:"), *uid = strstr(text, "\nUid:");
	int id;
	unsigned effective;

	if (!tgid || !uid || sscanf(tgid + 6, "%d", &id) != 1 ||
	    sscanf(uid + 5, "%*u %u", &effective) != 1)
		return -EINVAL;
	info->tgid = id;
	info->uid = effective;
	return 0;
}

static int read_stat(struct xp_proc_info *info, pid_t pid)
{
	struct xp_buf text = XP_BUF_INIT;
	int rc = slurp(&text, pid, "stat");

	if (!rc)
		rc = parse_stat(info, (const char *)text.data);
	xp_buf_release(&text);
	return rc;
}

static int read_status(struct xp_proc_info *info, pid_t pid)
{
	struct xp_buf text = XP_BUF_INIT;
	int rc = slurp(&text, pid, "status");

	if (!rc)
		rc = parse_status(info, (const char *)text.data);
	xp_buf_release(&text);
	return rc;
}

int xp_proc_read(struct xp_proc_info *info, pid_t pid, struct xp_err *err)
{
	int rc = -ESRCH;

	memset(info, 0, sizeof(*info));
	info->pid = pid;
	if (pid > 0)
		rc = read_stat(info, pid);
	if (!rc)
		rc = read_status(info, pid);
	if (rc == -ENOENT || rc == -ESRCH)
		return xp_err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (rc)
		return xp_err_sys(err, -rc, "cannot read /proc/%d/stat and status", (int)pid);
	return 0;
}

static int check_maps(const struct xp_proc_info *info, struct xp_err *err)
{
	char path[32];
	int fd, errnum;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)info->pid);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd >= 0) {
		close(fd);
		return 0;
	}
	errnum = errno;
	if (errnum == ENOENT || errnum == ESRCH)
		return xp_err_set(err, ESRCH, "process %d has just ended", (int)info->pid);
	if (errnum != EACCES && errnum != EPERM)
		return xp_err_sys(err, errnum, "cannot open %s", path);
	if (info->uid == geteuid())
		xp_err_sys(err, errnum, "cannot open %s: process %d (%s) has changed its rights or "
			   "forbids being looked at", path, (int)info->pid, info->comm);
	else
		xp_err_sys(err, errnum, "cannot open %s: process %d (%s) runs as uid %u, xprof as "
			   "uid %u", path, (int)info->pid, info->comm, (unsigned)info->uid,
			   (unsigned)geteuid());
	xp_err_hint(err, "run it with sudo, or: "
		    "setcap cap_bpf,cap_perfmon,cap_sys_ptrace,cap_checkpoint_restore+ep xprof");
	return -errnum;
}

int xp_proc_check_target(struct xp_proc_info *info, pid_t pid, struct xp_err *err)
{
	int rc = xp_proc_read(info, pid, err);

	if (rc == -ESRCH)
		xp_err_hint(err, "give its number on this machine (not that inside a container): see "
			    "`ps -e`");
	if (rc)
		return rc;
	if (info->kernel_thread) {
		rc = xp_err_set(err, EINVAL, "process %d (%s) is a kernel thread: it has no user "
				"stack", (int)pid, info->comm);
		return rc;
	}
	if (info->tgid != pid) {
		rc = xp_err_set(err, EINVAL, "%d is a thread of process %d", (int)pid,
				(int)info->tgid);
		xp_err_hint(err, "use -p %d", (int)info->tgid);
		return rc;
	}
	if (info->state == 'Z' || info->state == 'X')
		return xp_err_set(err, ESRCH, "process %d (%s) has ended: it is a zombie until its "
				  "parent %d waits for it", (int)pid, info->comm, (int)info->ppid);
	return check_maps(info, err);
}

/* The name of a directory entry as a pid; 0 when it is none. */
static pid_t entry_pid(const struct dirent *entry)
{
	char *end;
	long v = strtol(entry->d_name, &end, 10);

	return *end == 0 && v > 0 && v <= INT32_MAX ? (pid_t)v : 0;
}

static int add_thread(struct xp_proc_threads *t, pid_t pid, pid_t tid)
{
	struct xp_proc_thread *slot = xp_vec_push(&t->list);
	struct xp_buf text = XP_BUF_INIT;
	char name[48];

	if (!slot)
		return -ENOMEM;
	slot->tid = tid;
	snprintf(name, sizeof(name), "task/%d/comm", (int)tid);
	/* A thread that has ended since keeps an empty name. */
	if (!slurp(&text, pid, name) && text.len >= 2)
		copy_comm(slot->comm, (const char *)text.data, text.len - 2);
	xp_buf_release(&text);
	return 0;
}

int xp_proc_threads_read(struct xp_proc_threads *t, pid_t pid, struct xp_err *err)
{
	char path[32];
	struct dirent *entry;
	DIR *dir;
	int rc = 0;

	xp_vec_clear(&t->list);
	snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	dir = opendir(path);
	if (!dir && errno == ENOENT)
		return xp_err_set(err, ESRCH, "there is no process %d", (int)pid);
	if (!dir)
		return xp_err_sys(err, errno, "cannot open %s", path);
	while (!rc && (entry = readdir(dir))) {
		pid_t tid = entry_pid(entry);

		if (tid)
			rc = add_thread(t, pid, tid);
	}
	closedir(dir);
	return rc ? xp_err_sys(err, -rc, "cannot list the threads of process %d", (int)pid) : 0;
}

void xp_proc_threads_release(struct xp_proc_threads *t)
{
	xp_vec_release(&t->list);
}

struct kin {
	pid_t parent, pid;
};

struct kins { XP_VEC(struct kin) list; };

static int by_parent(const void *a, const void *b)
{
	const struct kin *x = a, *y = b;

	return (x->parent > y->parent) - (x->parent < y->parent);
}

/* Every process with its parent, sorted by the parent. */
static int read_kins(struct kins *kins)
{
	DIR *dir = opendir("/proc");
	struct dirent *entry;
	int rc = 0;

	if (!dir)
		return -errno;
	while (!rc && (entry = readdir(dir))) {
		struct xp_proc_info info;
		pid_t pid = entry_pid(entry);
		struct kin *kin;

		/* One that has ended since is left out. */
		if (!pid || read_stat(&info, pid))
			continue;
		kin = xp_vec_push(&kins->list);
		if (kin)
			*kin = (struct kin){ info.ppid, pid };
		else
			rc = -ENOMEM;
	}
	closedir(dir);
	if (kins->list.n)
		qsort(kins->list.v, kins->list.n, sizeof(struct kin), by_parent);
	return rc;
}

static size_t first_child(const struct kins *kins, pid_t parent)
{
	size_t low = 0, high = kins->list.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (kins->list.v[mid].parent < parent)
			low = mid + 1;
		else
			high = mid;
	}
	return low;
}

static int add_children(struct xp_pids *out, struct kins *kins, pid_t parent)
{
	for (size_t i = first_child(kins, parent);
	     i < kins->list.n && kins->list.v[i].parent == parent; i++) {
		pid_t *slot;

		/* The list is no snapshot: each process is taken once, so that this ends. */
		if (!kins->list.v[i].pid)
			continue;
		slot = xp_vec_push(&out->list);
		if (!slot)
			return -ENOMEM;
		*slot = kins->list.v[i].pid;
		kins->list.v[i].pid = 0;
	}
	return 0;
}

int xp_proc_descendants(struct xp_pids *out, pid_t pid)
{
	struct kins kins = { XP_VEC_INIT };
	size_t next = out->list.n;
	int rc = read_kins(&kins);

	if (!rc)
		rc = add_children(out, &kins, pid);
	for (; !rc && next < out->list.n; next++)
		rc = add_children(out, &kins, out->list.v[next]);
	xp_vec_release(&kins.list);
	return rc;
}
