/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One call stack from the parts that the kernel side sends: kernel frames, native frames, and for
 * each runtime of the process its VM frames and the stack addresses of its activations.
 *
 * An activation is one native call of a VM's interpreter. It runs a segment of VM frames, the last
 * of which (root side) is marked. The native frame whose stack pointer *equals* the activation's
 * address is that call: the segment stands right above it. Names play no part in this.
 *
 * The stack, root to leaf:
 *
 *	native frames and segments, as their addresses say
 *	per runtime that cannot be joined: mark "[unmerged: WHY]", its VM frames
 *	kernel mark, kernel frames
 *
 * Where the native part is cut, what a reader sees is VM frames, root mark, then the rest: the VM
 * frames that belong to missing native frames are right and in order, so they stay the root, and
 * the mark stands exactly where native frames are missing. On its leaf side everything is in its
 * place; on its root side only VM frames are shown. Without such VM frames the mark is the root.
 *
 * Frames without an activation (an Enumerator's fiber, a function called from C before any
 * interpreter) or whose activation is beyond a cut of the VM's lists stand at the root, but above
 * the frames that called the runtime (_start, main): right outside the runtime's outermost native
 * frame.
 *
 * Native frames that VM frames stand for are kept with kind XP_FRAME_INTERNAL: a copy of the frame,
 * equal in all else: the activation's own frame; the runtime's loop and JIT code; and the runtime's
 * other functions outside the innermost VM frame. Where time is spent, inside it, they stay as they
 * are, and so does all native code of a runtime that has no VM frames here or cannot be joined.
 */
#ifndef XP_RUNTIME_MERGE_H
#define XP_RUNTIME_MERGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/vec.h"
#include "bpf/abi.h"
#include "profile/profile.h"

enum xp_merge_flags {
	XP_MERGE_OWN = 1,	/* in the runtime's own file; never set when that is the program */
	XP_MERGE_LOOP = 2,	/* executes VM frames: the interpreter's loop, or JIT code */
};

struct xp_merge_native {
	uint64_t sp;		/* the stack pointer in that frame, at its call */
	uint32_t frame;		/* frame id */
	uint8_t runtime;	/* enum xp_runtime_id: whose code the flags speak of */
	uint8_t flags;		/* enum xp_merge_flags */
};

struct xp_merge_vm {
	uint32_t frame;		/* frame id; XP_NO_ID: not a call, neither shown nor counted */
	bool segment_end;	/* the outermost of its activation */
};

enum xp_merge_result {
	XP_MERGE_NOTHING,	/* no VM frames */
	XP_MERGE_PLACED,	/* every segment by address */
	XP_MERGE_NATIVE_CUT,	/* some VM frames are on the root side of the root mark */
	XP_MERGE_VM_CUT,	/* the VM's lists are cut: its outermost frames have no address */
	XP_MERGE_FIBER_SWITCH,	/* this and the following: unmerged */
	XP_MERGE_COUNTS,	/* numbers of segments and activations do not go together */
	XP_MERGE_NO_ADDRESS,	/* the VM's lists are cut and there is no activation to join by */
	XP_MERGE_UNMATCHED,	/* an activation is not among the native frames */
	XP_MERGE_RESULTS
};
/* "fiber switch" and the like; "" for the first two. */
const char *xp_merge_result_text(enum xp_merge_result result);
/* One word for counters and files: "placed", "fiber-switch". */
const char *xp_merge_result_name(enum xp_merge_result result);

/* What one runtime's walker found; all lists leaf first. */
struct xp_merge_part {
	const uint64_t *acts;	/* stack addresses of activations */
	const struct xp_merge_vm *frames;
	size_t nacts, nframes;
	uint8_t runtime;	/* enum xp_runtime_id */
	uint8_t end, acts_end;	/* enum xp_vm_end, of the frames and of the activations */
	bool on_stack;		/* the sample's stack pointer is on the VM context's own stack */
	uint32_t state;		/* frame id, above the innermost VM frame (GC); XP_NO_ID: none */
	uint32_t mark;		/* frame id of why frames are cut at the root side; XP_NO_ID */
	enum xp_merge_result result;	/* set by xp_merge() */
};

struct xp_parts {
	const struct xp_merge_native *native;	/* leaf first */
	size_t nnative;
	const uint32_t *kernel;		/* frame ids, leaf first */
	size_t nkernel;
	uint32_t root_mark;		/* frame id of why native frames are cut; XP_NO_ID: whole */
	uint32_t kernel_mark;		/* frame id of what the kernel part lacks; XP_NO_ID */
	struct xp_merge_part *vm;	/* one per runtime */
	size_t nvm;
};

struct xp_merger {
	struct xp_profile *profile;	/* not owned */
	XP_VEC(uint32_t) out;		/* frame ids of one stack, leaf first */
	XP_VEC(struct xp_merge_cursor) cursors;
	XP_VEC(uint32_t) internal;	/* by frame id: 1 + id of its internal copy; 0: none */
	uint32_t marks[XP_MERGE_RESULTS];	/* 1 + frame id of "[unmerged: ...]", 0: none yet */
	uint64_t joined;		/* runtimes (bits) whose frames are placed in this stack */
	bool below;			/* a placed VM frame is on the leaf side already */
};

void xp_merger_init(struct xp_merger *m, struct xp_profile *profile);
void xp_merger_release(struct xp_merger *m);
/*
 * The stack of one sample; XP_NO_ID in *stack when there is nothing at all. Sets the result of each
 * VM part. 0 or -ENOMEM; -EINVAL: a frame id that is not in the profile.
 */
int xp_merge(struct xp_merger *m, const struct xp_parts *parts, uint32_t *stack);

#endif
