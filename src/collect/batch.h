/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples between the ring and the profile: copied raw, placed (which file, which address) while the
 * mappings are those of their time, named afterwards.
 */
#ifndef XP_COLLECT_BATCH_H
#define XP_COLLECT_BATCH_H

#include <stdint.h>

#include "base/buf.h"
#include "base/vec.h"
#include "bpf/abi.h"
#include "collect/targets.h"
#include "runtime/merge.h"
#include "runtime/native.h"

struct xp_raw_copy {
	uint64_t time;
	uint32_t kind;		/* enum xp_raw_kind */
	uint32_t size;
	size_t offset;		/* into xp_batch.bytes; a multiple of 8 */
};

struct xp_placed {		/* a sample whose frames have places but no names yet */
	uint64_t time;
	uint32_t thread;	/* id in the profile */
	uint32_t end;		/* enum xp_end */
	uint8_t flags;		/* enum xp_raw_flags */
	uint32_t nnative, nkernel;
	size_t first;		/* into xp_batch.places: native, then kernel, leaf first */
	size_t first_native;	/* into xp_batch.natives */
	size_t first_part, nparts;	/* into xp_batch.parts */
};

struct xp_placed_part {		/* one runtime's VM frames, named already: they live in its memory */
	struct xp_merge_part part;	/* acts and frames are set when the stack is merged */
	size_t first_act, first_frame;	/* into xp_batch.acts and xp_batch.vm */
};

struct xp_batch {
	struct xp_buf bytes;
	XP_VEC(struct xp_raw_copy) raws;
	XP_VEC(struct xp_placed) placed;
	XP_VEC(struct xp_place) places;
	XP_VEC(struct xp_merge_native) natives;	/* one for each native place */
	XP_VEC(struct xp_placed_part) parts;
	XP_VEC(uint64_t) acts;
	XP_VEC(struct xp_merge_vm) vm;
	XP_VEC(struct xp_merge_part) merging;	/* parts of the sample that is merged */
	XP_VEC(uint32_t) ids;		/* room for kernel frame ids */
	uint64_t number;		/* of the batch: what was checked in it need not be again */
	struct xp_frame_checks *checks;	/* made when it is first needed */
};

void xp_batch_release(struct xp_batch *b);
void xp_batch_clear_raw(struct xp_batch *b);		/* what was taken from the ring */
void xp_batch_clear_placed(struct xp_batch *b);		/* what waits for names */
/* Takes a copy of a ring record. 0 or -ENOMEM; -EINVAL: too short to be one, not taken. */
int xp_batch_add(struct xp_batch *b, const void *data, size_t size);
void xp_batch_sort(struct xp_batch *b);		/* by time */
/*
 * Places one raw sample by the mappings of its process now, and names its VM frames. 0 or -ENOMEM; 1: it is not to be kept
 * (our own child before its exec); -EINVAL: malformed.
 */
int xp_batch_place(struct xp_batch *b, const struct xp_raw_copy *copy, struct xp_targets *targets);
/*
 * Names a placed sample and adds it to the profile; its parts in b->merging have the merge's results
 * until the next call. 0 or -ENOMEM.
 */
int xp_batch_name(struct xp_batch *b, const struct xp_placed *placed, struct xp_native *native,
		  struct xp_merger *merger);

#endif
