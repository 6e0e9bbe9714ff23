/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A language runtime: one table of operations, one BPF file, one line in bpf/runtimes.h.
 *
 * Life: probe() once per file; attach() once per process that has mapped it, tried again while it
 * answers XP_ATTACH_LATER; symbolize() per distinct raw frame; detach(). Nothing else in the tree
 * knows which runtimes there are.
 */
#ifndef XP_RUNTIME_RUNTIME_H
#define XP_RUNTIME_RUNTIME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "base/buf.h"
#include "base/err.h"
#include "bpf/abi.h"
#include "bpf/runtimes.h"
#include "profile/profile.h"
#include "target/mem.h"
#include "target/process.h"

/* Where a runtime's parameters go: the kernel side's array of this runtime, one entry per slot. */
struct xp_runtime_port {
	int (*put)(void *ctx, enum xp_runtime_id id, uint32_t slot, const void *value, size_t size);
	void *ctx;
};

enum xp_attach { XP_ATTACH_DONE, XP_ATTACH_LATER, XP_ATTACH_REFUSED };

struct xp_runtime {
	const char *name;		/* "ruby" */
	/*
	 * Whether a file holds this runtime. 1: yes, *data describes it (free_data() later); 0: no.
	 * -ENOTSUP: yes, but it cannot be used; err says which step failed. -ENOMEM.
	 */
	int (*probe)(struct xp_dso *dso, void **data, struct xp_err *err);
	void (*free_data)(void *data);
	/*
	 * Confirms everything on the live process and fills the parameters (value_size bytes, for the
	 * port). LATER: the runtime is still starting. REFUSED: err says which step failed.
	 * *state is the process's own; detach() frees it.
	 */
	enum xp_attach (*attach)(const void *data, const struct xp_process *process,
				 const struct xp_mapping *mapping, const struct xp_mem *mem,
				 void *value, void **state, struct xp_err *err);
	size_t value_size;
	void (*detach)(void *state);
	/*
	 * The frame of a raw VM frame, named from the live process's memory. `batch` counts up: what
	 * was checked in this batch already need not be again. 0 or -ENOMEM; memory that cannot be read
	 * or makes no sense gives a frame named "[unknown ruby frame]" or the like. XP_NO_ID in *frame:
	 * this one is not to be shown (a dummy).
	 */
	int (*symbolize)(void *state, const struct xp_raw_vm_frame *raw, bool leaf, uint64_t batch,
			 struct xp_profile *profile, uint32_t *frame);
	/* Whether an address of the runtime's file executes VM frames: the interpreter's loop. */
	bool (*in_loop)(const void *data, uint64_t vaddr);
	/* The frame for the state word of a sample (garbage collector and its phase); XP_NO_ID: none. */
	int (*state_frame)(void *state, uint32_t word, struct xp_profile *profile, uint32_t *frame);
	/* "ruby 3.1.2": what was found in a file, for the summary. */
	void (*title)(const void *data, char *out, size_t size);
	/* For maps: one or more lines (without newline at the end) on what was found and how. */
	void (*describe)(const void *data, const void *state, struct xp_buf *out);
};

/* By id. Native code is one without probe(): it needs none of this. */
extern const struct xp_runtime *const xp_runtimes[XP_RUNTIMES_N];

#endif
