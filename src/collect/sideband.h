/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel's side-band events: who maps, names and forks, told by one dummy perf event per CPU as
 * it happens, so /proc need not be polled.
 */
#ifndef XP_COLLECT_SIDEBAND_H
#define XP_COLLECT_SIDEBAND_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/vec.h"

enum xp_event_type { XP_EVENT_MMAP, XP_EVENT_COMM, XP_EVENT_EXEC, XP_EVENT_FORK, XP_EVENT_EXIT };

struct xp_event {
	enum xp_event_type type;
	uint64_t time;			/* CLOCK_MONOTONIC, ns */
	uint32_t seq;			/* keeps the order of equal times */
	pid_t pid, tid;
	pid_t ppid, ptid;		/* FORK and EXIT: the parent's; FORK, pid == ppid: a thread */
	uint64_t start, len, offset;	/* MMAP, executable memory only */
	uint64_t dev, ino;		/* as struct xp_mapping has them */
	uint32_t text;			/* MMAP: path, COMM and EXEC: name; offset into xp_sideband.text */
};

struct xp_sideband {
	struct xp_sideband_ring { int fd; void *map; size_t size; } *rings;	/* one per CPU that is online */
	size_t n;
	struct xp_buf text;		/* NUL-terminated strings of the events drained last */
	XP_VEC(struct xp_event) events;	/* drained last, sorted by time */
	uint64_t lost;			/* events the kernel had no room for, since open */
};

int xp_sideband_open(struct xp_sideband *sb, struct xp_err *err);
void xp_sideband_close(struct xp_sideband *sb);
/* Moves everything there is into sb->events (replacing what was there). 0 or -ENOMEM. */
int xp_sideband_drain(struct xp_sideband *sb);
static inline const char *xp_event_text(const struct xp_sideband *sb, const struct xp_event *e)
{
	return (const char *)sb->text.data + e->text;
}
/* Appends the event in one perf record to sb->events; records of other types or malformed ones are
 * passed over. For the drain and for tests. */
int xp_sideband_parse(struct xp_sideband *sb, const void *record, size_t size);

#endif
