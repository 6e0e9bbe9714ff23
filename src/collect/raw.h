/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One ring record, checked: the only reader of bpf/abi.h's raw samples.
 */
#ifndef XP_COLLECT_RAW_H
#define XP_COLLECT_RAW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"

struct xp_raw {			/* views into the record */
	const struct xp_raw_sample *head;
	const uint64_t *kernel;		/* head->nkernel, leaf first */
	const struct xp_raw_frame *native;	/* head->nnative, leaf first */
	const uint8_t *parts, *end;		/* head->nparts parts, walked by xp_raw_next_part() */
};

struct xp_raw_vm {		/* one part */
	const struct xp_raw_part *head;
	const uint64_t *acts;			/* head->nacts, leaf first */
	const struct xp_raw_vm_frame *frames;	/* head->nframes, leaf first */
};

/* True when the record is a whole raw sample and every count fits. Needs 8-byte alignment. */
bool xp_raw_parse(const void *data, size_t size, struct xp_raw *raw);
/*
 * The next part; *at is NULL at first and moves on. False at the end. Every part of a record
 * that xp_raw_parse() has accepted is whole.
 */
bool xp_raw_next_part(const struct xp_raw *raw, const uint8_t **at, struct xp_raw_vm *part);
/* The kind of a record, 0 when it is too short for one. */
uint32_t xp_raw_kind(const void *data, size_t size);
/* What a reader sees of an end: "complete", or the reason of a cut. Never NULL. */
const char *xp_end_text(enum xp_end end);
/* The mark for VM frames that end early: "[truncated: too many ruby frames]" and the like. */
const char *xp_vm_end_mark(enum xp_vm_end end);
/* One word for counters and files, e.g. "outermost", "no-rows". */
const char *xp_end_name(enum xp_end end);
static inline bool xp_end_complete(enum xp_end end)
{
	return end <= XP_END_LAST_COMPLETE;
}

#endif
