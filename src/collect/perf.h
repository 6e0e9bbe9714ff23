/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * perf_event_open(2) and what to say when it fails.
 */
#ifndef XP_COLLECT_PERF_H
#define XP_COLLECT_PERF_H

#include <sys/types.h>

#include "base/err.h"

struct perf_event_attr;

/* The event's descriptor (close-on-exec), or a negative errno. */
int xp_perf_open(struct perf_event_attr *attr, pid_t pid, int cpu);
/* Explains a failure: names our rights and the knobs. Returns -errnum. */
int xp_perf_error(struct xp_err *err, int errnum, const char *what);
/* The same for bpf(2). */
int xp_bpf_error(struct xp_err *err, int errnum, const char *what);

#endif
