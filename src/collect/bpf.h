/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel side as loaded: programs, maps, timers, ring. The only file that knows libbpf.
 */
#ifndef XP_COLLECT_BPF_H
#define XP_COLLECT_BPF_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "bpf/abi.h"
#include "bpf/unwind.h"
#include "collect/tables.h"

struct xp_bpf;

struct xp_bpf_options {
	size_t ring_bytes;		/* power of two, at least a page */
	bool follow_children;
	uint64_t vm_time_ns;		/* with interrupts off, for the VM frames of one sample */
	bool tail_calls;		/* walk by tail calls even where bpf_loop() is there: for tests */
	void (*log)(const char *line);	/* libbpf's messages; NULL: dropped */
};

/* Loads and attaches all but the timers. *bpf is NULL on failure. */
int xp_bpf_new(struct xp_bpf **bpf, const struct xp_bpf_options *options, struct xp_err *err);
void xp_bpf_free(struct xp_bpf *bpf);

/* The memory of the tables, zeroed; valid until xp_bpf_free(). */
struct xp_tables_memory xp_bpf_tables(const struct xp_bpf *bpf);
/* Sets or removes a target. 0 or -errno; removing what is not there is 0. */
int xp_bpf_put_proc(struct xp_bpf *bpf, const struct xp_proc *proc);
int xp_bpf_remove_proc(struct xp_bpf *bpf, pid_t pid);

/* Stores a runtime's parameters; see struct xp_runtime_port. */
int xp_bpf_put_params(struct xp_bpf *bpf, enum xp_runtime_id id, uint32_t slot, const void *value,
		      size_t size);

/* Starts one timer per CPU that is online, at this rate in Hz. */
int xp_bpf_start(struct xp_bpf *bpf, unsigned frequency, struct xp_err *err);
void xp_bpf_stop(struct xp_bpf *bpf);

/* Becomes readable when there is something to consume. */
int xp_bpf_ring_fd(const struct xp_bpf *bpf);
/* Calls fn for every record there is; data is valid during the call. fn's negative return ends it. */
int xp_bpf_consume(struct xp_bpf *bpf);
typedef int (*xp_bpf_record_fn)(void *ctx, void *data, size_t size);
int xp_bpf_set_reader(struct xp_bpf *bpf, xp_bpf_record_fn fn, void *ctx);

/* Sum over all CPUs. */
uint64_t xp_bpf_counter(const struct xp_bpf *bpf, enum xp_counter counter);
bool xp_bpf_uses_loop(const struct xp_bpf *bpf);

#ifdef XP_TEST_STOP
/* Test builds only: the next sample of a target stops it. */
void xp_bpf_arm_stop(struct xp_bpf *bpf);
#endif

#endif
