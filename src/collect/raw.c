/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The ring is written by our own BPF programs, but a record is still checked as if it came from
 * anywhere: counts decide how far we read.
 */
#include "collect/raw.h"

#include <string.h>

static const struct {
	const char *name, *text;
} ends[XP_END_REASONS] = {
	[XP_END_NONE] = { "none", "no user stack" },
	[XP_END_OUTERMOST] = { "outermost", "complete" },
	[XP_END_FP_ZERO] = { "fp-zero", "complete by frame pointers" },
	[XP_END_FIBER] = { "fiber", "complete: start of a coroutine" },
	[XP_END_TOO_DEEP] = { "too-deep", "too deep" },
	[XP_END_TAIL_CALLS] = { "tail-calls", "too deep for this kernel" },
	[XP_END_NO_PROCESS] = { "no-process", "process not known yet" },
	[XP_END_NO_MAPPING] = { "no-mapping", "address outside all code" },
	[XP_END_NO_ROWS] = { "no-rows", "no unwind information" },
	[XP_END_BAD_RULE] = { "bad-rule", "unsupported unwind rule" },
	[XP_END_READ] = { "read", "stack unreadable" },
	[XP_END_EXITING] = { "exiting", "exiting" },
	[XP_END_32BIT] = { "32bit", "32-bit code" },
	[XP_END_BACKWARDS] = { "backwards", "stack goes backwards" },
	[XP_END_STACK_SWITCH] = { "stack-switch", "stack switch" },
};

const char *xp_end_text(enum xp_end end)
{
	return end < XP_END_REASONS ? ends[end].text : "unknown reason";
}

const char *xp_end_name(enum xp_end end)
{
	return end < XP_END_REASONS ? ends[end].name : "unknown";
}

const char *xp_vm_end_mark(enum xp_vm_end end)
{
	static const char *const marks[XP_VM_ENDS] = {
		[XP_VM_END_TOO_DEEP] = "[truncated: VM stack too deep]",
		[XP_VM_END_TIME] = "[truncated: VM stack too long for this rate]",
		[XP_VM_END_READ] = "[truncated: VM stack unreadable]",
		[XP_VM_END_BAD] = "[truncated: VM stack out of bounds]",
	};

	return end < XP_VM_ENDS && marks[end] ? marks[end] : "[truncated: VM stack]";
}

uint32_t xp_raw_kind(const void *data, size_t size)
{
	uint32_t kind = 0;

	if (size >= sizeof(kind))
		memcpy(&kind, data, sizeof(kind));
	return kind;
}

bool xp_raw_next_part(const struct xp_raw *raw, const uint8_t **at, struct xp_raw_vm *part)
{
	const uint8_t *p = *at ? *at : raw->parts;
	size_t left = raw->end - p, need = sizeof(*part->head);

	part->head = (const struct xp_raw_part *)p;
	if (left < need || part->head->runtime >= XP_RUNTIMES_N ||
	    part->head->end >= XP_VM_ENDS || part->head->acts_end >= XP_VM_ENDS)
		return false;
	need += part->head->nacts * 8ul + part->head->nframes * sizeof(*part->frames);
	if (left < need)
		return false;
	part->acts = (const uint64_t *)(part->head + 1);
	part->frames = (const struct xp_raw_vm_frame *)(part->acts + part->head->nacts);
	*at = p + need;
	return true;
}

bool xp_raw_parse(const void *data, size_t size, struct xp_raw *raw)
{
	const struct xp_raw_sample *head = data;
	const uint8_t *at = NULL;
	struct xp_raw_vm part;
	size_t need;

	if (size < sizeof(*head) || head->kind != XP_RAW_SAMPLE || head->end >= XP_END_REASONS)
		return false;
	need = sizeof(*head) + head->nkernel * 8ul + head->nnative * sizeof(*raw->native);
	if (need > size)
		return false;
	raw->head = head;
	raw->kernel = (const uint64_t *)(head + 1);
	raw->native = (const struct xp_raw_frame *)(raw->kernel + head->nkernel);
	raw->parts = (const uint8_t *)(raw->native + head->nnative);
	raw->end = (const uint8_t *)data + size;
	for (unsigned i = 0; i < head->nparts; i++)
		if (!xp_raw_next_part(raw, &at, &part))
			return false;
	raw->end = at ? at : raw->parts;
	return true;
}
