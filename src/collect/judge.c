/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The kernel side steps where rows or the frame pointer lead; whether the code proves such a step is
 * seen here, by its machine code. A stack ends at the first frame whose caller would be a guess.
 */
#include "collect/judge.h"

#include <errno.h>
#include <string.h>

#include "target/framecheck.h"

/* A sample whose steps are judged. */
struct judged {
	struct xp_frame_checks *checks;
	const struct xp_maps *maps;
	const struct xp_raw *raw;
	const struct xp_place *places;
	uint32_t n;
	uint32_t end;		/* enum xp_end */
	bool attached;		/* to a runtime in the process */
	struct xp_jit jit;	/* start is set for each frame */
	uint64_t skipped;	/* the leaf's return address, which the walk left out; 0: it did not */
	uint64_t skipped_sp;	/* stack pointer in that frame */
};

/* What runs there, as framecheck.h wants it: an instruction, or one inside the call. */
static uint64_t running(const struct xp_place *p)
{
	return p->addr - !p->exact;
}

/* Is this what a call leaves on the stack? */
static bool is_return_address(struct judged *j, uint64_t pc)
{
	const struct xp_mapping *m = j->maps ? xp_maps_find(j->maps, pc - 1) : NULL;
	struct xp_dso *dso = m ? xp_mapping_dso(m) : NULL;
	uint64_t vaddr;

	if (!m)
		return false;
	if (!dso)
		return xp_jit_follows_call(j->checks, &j->jit, pc);
	return xp_dso_vaddr(dso, m, pc - 1, &vaddr) && xp_follows_call(dso, vaddr + 1);
}

/* The words at the leaf; above the saved frame pointer is the return address that was found. */
static uint32_t leaf_words(const struct judged *j, const uint64_t **words)
{
	uint64_t frame = j->raw->native[1].sp_flags & 0xffffffffffffull;
	uint64_t at = j->raw->native[0].sp_flags & 0xffffffffffffull;
	const uint8_t *next = NULL;
	struct xp_raw_vm part;
	uint32_t n = 0;

	while (xp_raw_next_part(j->raw, &next, &part)) {
		if (part.head->runtime != XP_RUNTIME_NATIVE)
			continue;
		*words = part.acts;
		for (n = 0; n < part.head->nacts && at + 8 * n + 16 < frame; n++)
			;
		return n;
	}
	return 0;
}

/*
 * A leaf in code without a file. One without a frame of its own has its return address nearer than
 * its caller's frame pointer says: then that is told in j->skipped, when the code proves it. What a
 * framed leaf has left on its stack may look the same: if only the stack says so the leaf is cut,
 * for a whole stack is not worth a wrong caller.
 */
static bool jit_leaf_is_sound(struct judged *j)
{
	enum xp_jit_leaf leaf = xp_jit_leaf(j->checks, &j->jit, j->raw->native[0].pc);
	const uint64_t *words = NULL;
	uint32_t n = leaf_words(j, &words), at = leaf == XP_JIT_PUSHED;
	const struct xp_mapping *m;

	if (leaf == XP_JIT_FRAMED)
		return true;
	if (leaf == XP_JIT_UNSURE) {
		for (uint32_t i = 0; i < n; i++)
			if (is_return_address(j, words[i]))
				return false;
		return true;
	}
	if (leaf == XP_JIT_UNKNOWN || at >= n || !is_return_address(j, words[at]))
		return false;
	m = xp_maps_find(j->maps, words[at] - 1);
	if (xp_mapping_dso(m) || m->start != j->jit.start)
		return false;
	j->skipped = words[at];
	j->skipped_sp = (j->raw->native[0].sp_flags & 0xffffffffffffull) + 8 * at + 8;
	return xp_jit_keeps_frames(j->checks, &j->jit, j->skipped - 1);
}

/* A step by frame pointer out of code that belongs to no file. */
static bool jit_step_is_sound(struct judged *j, uint32_t i)
{
	uint64_t pc = j->raw->native[i].pc;
	bool exact = j->places[i].exact;
	const struct xp_mapping *m = xp_maps_find(j->maps, pc - !exact);

	if (!m)
		return false;
	j->jit.start = m->start;
	if (i == 0)
		return jit_leaf_is_sound(j);
	return !exact && xp_jit_keeps_frames(j->checks, &j->jit, pc - 1);
}

/*
 * A step by frame pointer. One that found the end of the chain instead of a caller is right where
 * the frame is set up and has a return address of 0, and where the frame is the outermost one.
 */
static bool fp_step_is_sound(struct judged *j, uint32_t i)
{
	const struct xp_place *p = &j->places[i], *caller = i + 1 < j->n ? p + 1 : NULL;

	if (p->kind == XP_PLACE_ANON) {
		if (!caller || !jit_step_is_sound(j, i))
			return false;
	} else if (p->kind != XP_PLACE_DSO) {
		return false;
	} else if (!xp_frame_is_set_up(p->dso, running(p), p->exact)) {
		return !caller && xp_frame_is_outermost(p->dso, p->addr, p->exact);
	}
	/* HotSpot's interpreter returns to places that it has pushed itself: no call is before them. */
	if (!caller || caller->kind == XP_PLACE_ANON)
		return true;
	return caller->kind == XP_PLACE_DSO &&
	       (xp_follows_call(caller->dso, caller->addr) ||
		(j->end == XP_END_FP_ZERO && i + 2 == j->n &&
		 xp_frame_is_outermost(caller->dso, caller->addr, false)));
}

/* The step out of the last frame by its frame pointer led to the end, or to no code. */
static bool ended_by_fp(uint32_t end)
{
	return end == XP_END_FP_ZERO || end == XP_END_NO_MAPPING;
}

/*
 * A step out of code without rows by a runtime's activation leaves out what lies between. That is
 * only JIT code's own where such code is what was left, and where the runtime's part is shown.
 */
static bool resumption_is_sound(const struct judged *j, uint32_t i)
{
	return j->places[i].kind == XP_PLACE_ANON && j->attached;
}

/*
 * Keeps the frames up to the first whose step cannot be believed, and says why in j->end. A walk
 * that was cut at its last frame keeps its reason, unless the code there says more.
 */
static void keep_believable(struct judged *j)
{
	for (uint32_t i = 0; i < j->n; i++) {
		const struct xp_place *p = &j->places[i];
		uint64_t flags = j->raw->native[i].sp_flags >> 48;
		enum xp_stack_kind stack = XP_STACK_SAME;

		if (flags & XP_FRAME_BY_SP && p->kind == XP_PLACE_DSO)
			stack = xp_stack_kind_of(j->checks, p->dso, running(p));
		if (stack != XP_STACK_SAME) {
			j->end = stack == XP_STACK_NEW ? XP_END_OUTERMOST : XP_END_STACK_SWITCH;
			j->n = i + 1;
		} else if (flags & XP_FRAME_RESUMED && !resumption_is_sound(j, i)) {
			j->end = j->attached ? XP_END_NO_ROWS : XP_END_NO_PROCESS;
			j->n = i + 1;
		} else if (flags & XP_FRAME_BY_FP && (i + 1 < j->n || ended_by_fp(j->end)) &&
			   !fp_step_is_sound(j, i)) {
			j->end = XP_END_NO_ROWS;
			j->n = i + 1;
			if (i == 0)
				j->skipped = 0;
		}
	}
}

/* Puts the leaf's caller, which the walk left out, where it belongs. 0 or -ENOMEM. */
static int add_skipped(struct xp_batch *b, const struct judged *j, const struct xp_target *target,
		       struct xp_placed *placed)
{
	struct xp_merge_native *native = xp_vec_push(&b->natives);
	struct xp_place *place = xp_vec_push(&b->places);
	size_t n = placed->nnative++ - 1;

	if (!place || !native)
		return -ENOMEM;
	place = b->places.v + placed->first + 1;
	native = b->natives.v + placed->first_native + 1;
	memmove(place + 1, place, n * sizeof(*place));
	memmove(native + 1, native, n * sizeof(*native));
	memset(place, 0, sizeof(*place));
	memset(native, 0, sizeof(*native));
	xp_place_pc(j->maps, j->skipped, false, place);
	native->sp = j->skipped_sp;
	native->flags = xp_runtimes_flags(&target->attached, place, &native->runtime);
	return 0;
}

/* Cuts a placed sample behind a frame whose caller is a guess. 0 or -ENOMEM. */
int xp_judge_steps(struct xp_batch *b, const struct xp_raw *raw, const struct xp_target *target,
		   struct xp_placed *placed)
{
	struct judged j = {
		.maps = target ? &target->process.maps : NULL,
		.raw = raw,
		.places = b->places.v + placed->first,
		.n = placed->nnative,
		.end = placed->end,
		.jit = { .mem = xp_mem_of_pid((pid_t)raw->head->pid), .batch = b->number },
	};

	if (!j.maps)
		return 0;
	if (!b->checks)
		b->checks = xp_frame_checks_new();
	if (!b->checks)
		return -ENOMEM;
	j.checks = b->checks;
	for (int id = 0; id < XP_RUNTIMES_N; id++)
		j.attached |= target->attached.by_id[id].status == XP_ATTACHED;
	keep_believable(&j);
	placed->nnative = j.n;
	placed->end = j.end;
	b->places.n = placed->first + j.n;
	b->natives.n = placed->first_native + j.n;
	return j.skipped ? add_skipped(b, &j, target, placed) : 0;
}
