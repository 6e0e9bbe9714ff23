/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Segments and activations are paired first, by counting; the pairs are then looked up among the
 * native frames in a pass of its own, so that a part that turns out not to fit is kept whole
 * instead of half placed. The last pass writes the stack, leaf first. Each is linear.
 *
 * A VM pushes a frame and its activation, and pops them, in two steps. A sample in between sees one
 * segment or one activation more than there should be, always at the leaf. So the lists are paired
 * from the root, where both end. With a root missing the difference in number says nothing, and
 * they are paired from the leaf.
 */
#include "runtime/merge.h"

#include <errno.h>
#include <stdio.h>

struct xp_merge_cursor {
	size_t frame, last;	/* next frame to write; behind the last one to be shown */
	size_t act, end;	/* next activation to meet; behind the last with a segment */
	size_t rest;		/* native frames inside the VM frames that have no activation */
	bool lead;		/* the first segment has no activation */
	bool tail;		/* so do the last ones */
};

void xp_merger_init(struct xp_merger *m, struct xp_profile *profile)
{
	*m = (struct xp_merger){ .profile = profile };
}

void xp_merger_release(struct xp_merger *m)
{
	xp_vec_release(&m->out);
	xp_vec_release(&m->cursors);
	xp_vec_release(&m->internal);
}

const char *xp_merge_result_text(enum xp_merge_result result)
{
	static const char *const texts[XP_MERGE_RESULTS] = {
		[XP_MERGE_NATIVE_CUT] = "native stack cut",
		[XP_MERGE_VM_CUT] = "VM stack cut",
		[XP_MERGE_FIBER_SWITCH] = "fiber switch",
		[XP_MERGE_COUNTS] = "VM frames and activations differ in number",
		[XP_MERGE_NO_ADDRESS] = "no activation known",
		[XP_MERGE_UNMATCHED] = "activation not in native stack",
	};

	return (unsigned)result < XP_MERGE_RESULTS && texts[result] ? texts[result] : "";
}

const char *xp_merge_result_name(enum xp_merge_result result)
{
	static const char *const names[XP_MERGE_RESULTS] = {
		[XP_MERGE_NOTHING] = "nothing",
		[XP_MERGE_PLACED] = "placed",
		[XP_MERGE_NATIVE_CUT] = "native-cut",
		[XP_MERGE_VM_CUT] = "vm-cut",
		[XP_MERGE_FIBER_SWITCH] = "fiber-switch",
		[XP_MERGE_COUNTS] = "counts",
		[XP_MERGE_NO_ADDRESS] = "no-address",
		[XP_MERGE_UNMATCHED] = "unmatched",
	};

	return (unsigned)result < XP_MERGE_RESULTS ? names[result] : "unknown";
}

static bool fits(const struct xp_merge_part *part)
{
	return part->result == XP_MERGE_PLACED || part->result == XP_MERGE_NATIVE_CUT ||
	       part->result == XP_MERGE_VM_CUT;
}

/* Which activation has which segment. The result is PLACED or VM_CUT when the numbers allow it. */
static enum xp_merge_result pair_up(const struct xp_merge_part *part, struct xp_merge_cursor *c)
{
	bool whole = part->end == XP_VM_END_ROOT, acts_whole = part->acts_end == XP_VM_END_ROOT;
	size_t segments = 0, pairs, acts, end_of_closed = 0;

	*c = (struct xp_merge_cursor){ 0 };
	for (size_t i = 0; i < part->nframes; i++) {
		if (part->frames[i].frame == XP_NO_ID)
			continue;
		c->last = i + 1;
		if (part->frames[i].segment_end) {
			segments++;
			end_of_closed = i + 1;
		}
	}
	if (!c->last)
		return XP_MERGE_NOTHING;
	if (!part->on_stack)
		return XP_MERGE_FIBER_SWITCH;
	/* More of one kind is a sure difference only when the other kind's list is whole. */
	if ((acts_whole && segments > part->nacts + 1) || (whole && part->nacts > segments + 1))
		return XP_MERGE_COUNTS;
	c->lead = acts_whole && segments > part->nacts;
	c->act = whole && part->nacts > segments;
	/* The open segment of a cut walk has an activation, too; that of a whole walk has none. */
	segments += !whole && end_of_closed < c->last;
	segments -= c->lead;
	acts = part->nacts - c->act;
	pairs = segments < acts ? segments : acts;
	c->end = c->act + pairs;
	if (!pairs && !(whole && acts_whole))
		return XP_MERGE_NO_ADDRESS;
	c->tail = pairs < segments || (whole && end_of_closed < c->last);
	return pairs < segments ? XP_MERGE_VM_CUT : XP_MERGE_PLACED;
}

/* Looks the pairs up among the native frames, in order, and finds where the rest is to stand. */
static enum xp_merge_result look_up(const struct xp_parts *parts, const struct xp_merge_part *part,
				    struct xp_merge_cursor *c)
{
	bool cut = parts->root_mark != XP_NO_ID;
	size_t act = c->act, outer = 0;

	for (size_t i = 0; i < parts->nnative; i++) {
		const struct xp_merge_native *f = &parts->native[i];
		bool met = act < c->end && f->sp == part->acts[act];

		act += met;
		if (met || (f->flags && f->runtime == part->runtime))
			outer = i + 1;
	}
	c->rest = outer && !cut ? outer : parts->nnative;
	if (act == c->end)
		return cut && c->tail ? XP_MERGE_NATIVE_CUT : part->result;
	/*
	 * Cut above the activation, or was it passed by? The address does not say which frame an
	 * activation belongs to, but it does say that the frame must have been among these.
	 */
	if (cut && (!parts->nnative || part->acts[act] > parts->native[parts->nnative - 1].sp))
		return XP_MERGE_NATIVE_CUT;
	return XP_MERGE_UNMATCHED;
}

static uint64_t bit(uint8_t runtime)
{
	return runtime < 64 ? UINT64_C(1) << runtime : 0;
}

static void plan(struct xp_merger *m, const struct xp_parts *parts)
{
	m->joined = 0;
	m->below = false;
	for (size_t i = 0; i < parts->nvm; i++) {
		struct xp_merge_part *part = &parts->vm[i];

		part->result = pair_up(part, &m->cursors.v[i]);
		if (fits(part))
			part->result = look_up(parts, part, &m->cursors.v[i]);
		if (fits(part))
			m->joined |= bit(part->runtime);
	}
}

/* Room was made for everything before. */
static void put(struct xp_merger *m, uint32_t frame)
{
	if (frame != XP_NO_ID)
		m->out.v[m->out.n++] = frame;
}

/* Frames up to and with the end of a segment, or all that are left. */
static void put_vm(struct xp_merger *m, const struct xp_merge_part *part, struct xp_merge_cursor *c,
		   bool all)
{
	bool done = false;

	if (c->frame == 0 && c->last)
		put(m, part->state);
	while (c->frame < c->last && !done) {
		const struct xp_merge_vm *f = &part->frames[c->frame++];

		put(m, f->frame);
		done = !all && f->segment_end && f->frame != XP_NO_ID;
		m->below = true;
		if (c->frame == c->last)
			put(m, part->mark);
	}
}

static int unmerged_mark(struct xp_merger *m, enum xp_merge_result result, uint32_t *frame)
{
	struct xp_frame f = { .kind = XP_FRAME_MARK, .dso = XP_NO_ID };
	char text[80];
	int r = 0;

	if (!m->marks[result]) {
		snprintf(text, sizeof(text), "[unmerged: %s]", xp_merge_result_text(result));
		r = xp_strings_addz(&m->profile->strings, text, &f.name);
		if (!r)
			r = xp_profile_add_frame(m->profile, &f, frame);
		if (!r)
			m->marks[result] = *frame + 1;
	}
	*frame = m->marks[result] - 1;
	return r;
}

/* What stands between all native frames and the kernel's. */
static int put_above(struct xp_merger *m, const struct xp_parts *parts)
{
	uint32_t mark;
	int r = 0;

	for (size_t i = parts->nvm; !r && i > 0; i--) {
		struct xp_merge_part *part = &parts->vm[i - 1];

		if (part->result == XP_MERGE_NOTHING) {
			put(m, part->state);
			put(m, part->mark);
		} else if (!fits(part)) {
			put_vm(m, part, &m->cursors.v[i - 1], true);
			r = unmerged_mark(m, part->result, &mark);
			if (!r)
				put(m, mark);
		}
	}
	m->below = false;
	for (size_t i = 0; i < parts->nvm; i++)
		if (fits(&parts->vm[i]) && m->cursors.v[i].lead)
			put_vm(m, &parts->vm[i], &m->cursors.v[i], false);
	return r;
}

static int internal(struct xp_merger *m, uint32_t frame, uint32_t *copy)
{
	struct xp_frame f;
	int r;

	if (frame >= m->profile->frames.n)
		return -EINVAL;
	while (m->internal.n <= frame)
		if (!xp_vec_push(&m->internal))
			return -ENOMEM;
	if (!m->internal.v[frame]) {
		f = m->profile->frames.v[frame];
		f.kind = XP_FRAME_INTERNAL;
		r = xp_profile_add_frame(m->profile, &f, copy);
		if (r)
			return r;
		m->internal.v[frame] = *copy + 1;
	}
	*copy = m->internal.v[frame] - 1;
	return 0;
}

/* The segments whose activation this native frame is, then the frame. */
static int put_native(struct xp_merger *m, const struct xp_parts *parts,
		      const struct xp_merge_native *native)
{
	bool joined = m->joined & bit(native->runtime), hidden = false;
	uint32_t frame = native->frame;
	int r = 0;

	for (size_t i = 0; i < parts->nvm; i++) {
		struct xp_merge_cursor *c = &m->cursors.v[i];
		struct xp_merge_part *part = &parts->vm[i];

		if (fits(part) && c->act < c->end && part->acts[c->act] == native->sp) {
			put_vm(m, part, c, false);
			c->act++;
			hidden = true;
		}
	}
	if (joined && (native->flags & XP_MERGE_LOOP || (native->flags & XP_MERGE_OWN && m->below)))
		hidden = true;
	if (hidden)
		r = internal(m, native->frame, &frame);
	if (!r)
		put(m, frame);
	return r;
}

/* Frames without activation whose place is outside the first i native frames. */
static void put_rest(struct xp_merger *m, const struct xp_parts *parts, size_t i)
{
	for (size_t k = 0; k < parts->nvm; k++)
		if (fits(&parts->vm[k]) && m->cursors.v[k].rest == i)
			put_vm(m, &parts->vm[k], &m->cursors.v[k], true);
}

static int put_user(struct xp_merger *m, const struct xp_parts *parts)
{
	int r = put_above(m, parts);

	for (size_t i = 0; !r && i < parts->nnative; i++) {
		put_rest(m, parts, i);
		r = put_native(m, parts, &parts->native[i]);
	}
	put(m, parts->root_mark);
	put_rest(m, parts, parts->nnative);
	return r;
}

static int make_room(struct xp_merger *m, const struct xp_parts *parts)
{
	size_t n = parts->nnative + parts->nkernel + 2;
	int r;

	for (size_t i = 0; i < parts->nvm; i++)
		n += parts->vm[i].nframes + 3;		/* state, mark, "[unmerged: ...]" */
	r = xp_vec_reserve(&m->out, n);
	return r ? r : xp_vec_reserve(&m->cursors, parts->nvm);
}

int xp_merge(struct xp_merger *m, const struct xp_parts *parts, uint32_t *stack)
{
	int r = make_room(m, parts);

	*stack = XP_NO_ID;
	if (r)
		return r;
	xp_vec_clear(&m->out);
	for (size_t i = 0; i < parts->nkernel; i++)
		put(m, parts->kernel[i]);
	put(m, parts->kernel_mark);
	plan(m, parts);
	r = put_user(m, parts);
	for (size_t i = m->out.n; !r && i > 0; i--)
		r = xp_profile_add_stack(m->profile, *stack, m->out.v[i - 1], stack);
	return r;
}
