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
};

const char *xp_end_text(enum xp_end end)
{
	return end < XP_END_REASONS ? ends[end].text : "unknown reason";
}

const char *xp_end_name(enum xp_end end)
{
	return end < XP_END_REASONS ? ends[end].name : "unknown";
}

uint32_t xp_raw_kind(const void *data, size_t size)
{
	uint32_t kind = 0;

	if (size >= sizeof(kind))
		memcpy(&kind, data, sizeof(kind));
	return kind;
}

bool xp_raw_parse(const void *data, size_t size, struct xp_raw *raw)
{
	const struct xp_raw_sample *head = data;
	size_t need;

	if (size < sizeof(*head) || head->kind != XP_RAW_SAMPLE || head->end >= XP_END_REASONS)
		return false;
	need = sizeof(*head) + head->nkernel * 8ul + head->nnative * sizeof(*raw->native);
	if (need > size)
		return false;
	raw->head = head;
	raw->kernel = (const uint64_t *)(head + 1);
	raw->native = (const struct xp_raw_frame *)(raw->kernel + head->nkernel);
	return true;
}
