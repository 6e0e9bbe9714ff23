/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A running collection: targets in, samples of a profile out. What record and top share.
 */
#ifndef XP_COLLECT_SESSION_H
#define XP_COLLECT_SESSION_H

#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/abi.h"
#include "profile/profile.h"
#include "runtime/merge.h"

struct xp_session;

struct xp_session_options {
	unsigned frequency;		/* Hz */
	size_t ring_bytes;		/* power of two */
	bool follow_children;
	bool tail_calls;		/* for tests: see collect/bpf.h */
	void (*log)(const char *line);
	void (*warn)(const char *line);	/* a language runtime cannot be used; may be NULL */
	bool (*give_up)(void);		/* the user will not wait for the rest of the names; may be NULL */
};

struct xp_session_stats {
	uint64_t samples;		/* put into the profile */
	uint64_t lost;			/* the ring had no room */
	uint64_t given_up;		/* taken, but dropped unnamed: see options.give_up */
	uint64_t malformed;		/* ring records that failed their check */
	uint64_t untracked;		/* children for which the process table had no room */
	uint64_t events_lost;		/* side-band events; mappings were read again */
	uint64_t ends[XP_END_REASONS];	/* samples by how their user stack ended */
	uint64_t kernel_cut;		/* kernel stacks deeper than their buffer, or not to be had */
	uint64_t native_frames, raw_bytes;	/* of all samples, as they came through the ring */
	uint64_t vm[XP_RUNTIMES_N][XP_MERGE_RESULTS];	/* samples with VM frames */
	unsigned attached[XP_RUNTIMES_N];		/* processes, ever */
	char recognised[200];		/* "ruby 3.1.2, ruby 3.3.8"; "": no language runtime */
	uint64_t first_sample;		/* CLOCK_MONOTONIC ns; 0: none yet */
	uint64_t rows;			/* unwind rows published */
	unsigned dsos, processes;	/* seen */
	bool tables_full, kernel_hidden, uses_loop;
};

/* Loads the kernel side. The profile is the caller's and must outlive the session. */
int xp_session_new(struct xp_session **s, const struct xp_session_options *options,
		   struct xp_profile *profile, struct xp_err *err);
void xp_session_free(struct xp_session *s);
/* Adds a running process, all threads. Its children from now on are targets too. */
int xp_session_add_process(struct xp_session *s, pid_t pid, struct xp_err *err);
/* Adds a child of ours that is about to exec program; tables of what it will map are made now. */
int xp_session_add_child(struct xp_session *s, pid_t pid, const char *program, struct xp_err *err);
/* That child has begun to run its program. */
void xp_session_released(struct xp_session *s, pid_t pid);
int xp_session_start(struct xp_session *s, struct xp_err *err);
/*
 * Waits until there is something or the time is over (or a signal came, with the mask in force while
 * waiting; NULL: as it is), then takes what there is. Samples reach the profile, named, within a
 * tenth of a second.
 */
int xp_session_wait(struct xp_session *s, int timeout_ms, const sigset_t *mask, struct xp_err *err);
/* Stops the timers and takes what is left. */
int xp_session_stop(struct xp_session *s, struct xp_err *err);
/* Targets that live. */
unsigned xp_session_alive(const struct xp_session *s);
void xp_session_stats(const struct xp_session *s, struct xp_session_stats *out);

#ifdef XP_TEST_STOP
/* Test builds only. Called for each raw sample with its frames' pcs, leaf first. */
struct xp_bpf *xp_session_bpf(struct xp_session *s);
void xp_session_on_raw(struct xp_session *s, void (*fn)(void *ctx, const void *raw), void *ctx);
#endif

#endif
