/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What record and top share: targets from the command line, signals, the loop's end.
 */
#ifndef XP_CMD_LIVE_H
#define XP_CMD_LIVE_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/opt.h"
#include "cmd/child.h"
#include "collect/session.h"
#include "profile/profile.h"

struct xp_live_options {
	struct xp_opt_pids pids;
	unsigned frequency;		/* Hz */
	unsigned ring_kib;
	uint64_t duration;		/* ns; 0: no limit */
	bool no_bpf_loop;		/* for tests */
	char **command;			/* NULL-terminated; NULL: none */
	char **argv;			/* the whole command line, for the file */
};

/* Why the loop ended. */
enum xp_live_end {
	XP_LIVE_GOES_ON,
	XP_LIVE_DURATION,
	XP_LIVE_TARGETS_GONE,
	XP_LIVE_COMMAND_ENDED,
	XP_LIVE_SIGNAL,
};

struct xp_live {
	const struct xp_live_options *options;
	struct xp_profile profile;
	struct xp_session *session;
	struct xp_child child;
	char *program;			/* the command's path */
	struct xp_child_signals signals;	/* before; the mask is in force while waiting */
	uint64_t started, ended;	/* CLOCK_MONOTONIC ns */
	uint64_t launched;		/* when the process began, for the time to the first sample */
};

/* Checks the targets, loads the kernel side, attaches; the command is started but held. */
int xp_live_open(struct xp_live *live, const struct xp_live_options *options, struct xp_err *err);
void xp_live_close(struct xp_live *live);
/* Starts the timers and lets the command go. */
int xp_live_start(struct xp_live *live, struct xp_err *err);
/* Waits up to a tenth of a second and takes samples; tells whether that was the end. */
int xp_live_step(struct xp_live *live, enum xp_live_end *end, struct xp_err *err);
/* Stops the timers and takes the last samples. */
int xp_live_stop(struct xp_live *live, struct xp_err *err);
/* The signal that came last, 0: none. */
int xp_live_signal(void);
/* Waits for the command; a signal that comes from now on ends that. True when it has ended. */
bool xp_live_wait_child(struct xp_live *live);
/*
 * For struct xp_writer_wait, with the struct xp_live as ctx. When the recording is to end, output has
 * two seconds to take more (-ETIMEDOUT then); a second signal ends the wait at once (-EINTR).
 */
int xp_live_wait_output(void *ctx, int fd);
/* Ends the collection for good: nothing is sampled any more, and its counts are gone. */
void xp_live_end(struct xp_live *live);
/* Puts counts and times into the profile's meta and counters. */
int xp_live_describe(struct xp_live *live);
/* "1,234 samples of 2 processes in 10.0 s: 0 lost, 99.8 % complete, 2 truncated (...)". */
void xp_live_summary(const struct xp_live *live, char *out, size_t size);
/*
 * What was recognised: "ruby 3.1.2: 2,990 samples, all joined with their native frames", or how many
 * were not and why; "" when there was no language runtime.
 */
void xp_live_runtimes(const struct xp_live *live, char *out, size_t size);
/* Our own CPU time as a share of the wall time, both since the process began, in percent. */
double xp_live_own_cpu(const struct xp_live *live);

#endif
