/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rights are the usual reason for a failure here, so the message names what we have and what is
 * asked for. Which capability is needed for what was measured: xprof(1), RIGHTS.
 */
#include "collect/perf.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/io.h"

int xp_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu)
{
	int fd = syscall(SYS_perf_event_open, attr, pid, cpu, -1, PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

/* The first line of a file of /proc, or "?". */
static const char *knob(const char *path, char *out, size_t size)
{
	struct xp_buf b = XP_BUF_INIT;

	out[0] = '?';
	out[1] = 0;
	if (!xp_read_file(path, &b, 4096) && b.len) {
		size_t n = b.len < size ? b.len : size - 1;

		memcpy(out, b.data, n);
		out[n] = 0;
		out[strcspn(out, "\n")] = 0;
	}
	xp_buf_release(&b);
	return out;
}

static void rights_hint(struct xp_err *err)
{
	char paranoid[16], unpriv[16];

	xp_err_status(err, XP_EXIT_NOPERM);
	xp_err_hint(err, "run as root (sudo), or: setcap cap_bpf,cap_perfmon,cap_sys_ptrace,"
		    "cap_checkpoint_restore+ep xprof; uid %u, kernel.perf_event_paranoid %s, "
		    "kernel.unprivileged_bpf_disabled %s", (unsigned)geteuid(),
		    knob("/proc/sys/kernel/perf_event_paranoid", paranoid, sizeof(paranoid)),
		    knob("/proc/sys/kernel/unprivileged_bpf_disabled", unpriv, sizeof(unpriv)));
}

static int explain(struct xp_err *err, int errnum, const char *call, const char *what)
{
	int r = xp_err_sys(err, errnum, "%s: %s failed", what, call);

	if (errnum == EPERM || errnum == EACCES)
		rights_hint(err);
	return r;
}

int xp_perf_error(struct xp_err *err, int errnum, const char *what)
{
	return explain(err, errnum, "perf_event_open", what);
}

int xp_bpf_error(struct xp_err *err, int errnum, const char *what)
{
	return explain(err, errnum, "bpf", what);
}
