/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Two passes, because naming may have to read a file's symbols first: processes' new mappings are
 * published between the passes and do not wait for that.
 */
#include "collect/batch.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "collect/judge.h"
#include "collect/raw.h"
#include "runtime/merge.h"
#include "target/framecheck.h"

void xp_batch_release(struct xp_batch *b)
{
	xp_buf_release(&b->bytes);
	xp_vec_release(&b->raws);
	xp_vec_release(&b->placed);
	xp_vec_release(&b->places);
	xp_vec_release(&b->natives);
	xp_vec_release(&b->parts);
	xp_vec_release(&b->acts);
	xp_vec_release(&b->vm);
	xp_vec_release(&b->merging);
	xp_vec_release(&b->ids);
	xp_frame_checks_free(b->checks);
}

void xp_batch_clear_raw(struct xp_batch *b)
{
	xp_buf_clear(&b->bytes);
	xp_vec_clear(&b->raws);
	b->number++;
}

void xp_batch_clear_placed(struct xp_batch *b)
{
	xp_vec_clear(&b->placed);
	xp_vec_clear(&b->places);
	xp_vec_clear(&b->natives);
	xp_vec_clear(&b->parts);
	xp_vec_clear(&b->acts);
	xp_vec_clear(&b->vm);
}

int xp_batch_add(struct xp_batch *b, const void *data, size_t size)
{
	static const uint8_t zeros[8];
	const struct xp_raw_note *head = data;
	struct xp_raw_copy *copy;

	if (size < sizeof(*head) || size > UINT32_MAX)
		return -EINVAL;
	copy = xp_vec_push(&b->raws);
	if (!copy)
		return -ENOMEM;
	copy->kind = xp_raw_kind(data, size);
	copy->size = size;
	copy->offset = b->bytes.len;
	xp_buf_put(&b->bytes, data, size);
	xp_buf_put(&b->bytes, zeros, -size & 7);
	if (b->bytes.failed)
		return -ENOMEM;
	if (copy->kind == XP_RAW_EXIT || copy->kind == XP_RAW_EXEC)
		copy->time = head->time;
	else if (size >= sizeof(struct xp_raw_sample))
		copy->time = ((const struct xp_raw_sample *)data)->time;
	return 0;
}

static int by_time(const void *a, const void *b)
{
	const struct xp_raw_copy *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

void xp_batch_sort(struct xp_batch *b)
{
	if (b->raws.n)
		qsort(b->raws.v, b->raws.n, sizeof(*b->raws.v), by_time);
}

void xp_place_pc(const struct xp_maps *maps, uint64_t pc, bool exact, struct xp_place *place)
{
	const struct xp_mapping *m = maps ? xp_maps_find(maps, pc - !exact) : NULL;
	struct xp_dso *dso = m ? xp_mapping_dso(m) : NULL;

	place->addr = pc;
	place->exact = exact;
	if (!m) {
		place->kind = XP_PLACE_UNKNOWN;
	} else if (!dso) {
		place->kind = XP_PLACE_ANON;
	} else {
		place->kind = XP_PLACE_DSO;
		place->dso = dso;
		if (!xp_dso_vaddr(dso, m, pc - !exact, &place->addr))
			place->kind = XP_PLACE_UNKNOWN;
		else
			place->addr += !exact;
	}
}

/*
 * The outermost frame's return address may have been put there by hand: the first byte of a
 * function, with no call before it (glibc's __start_context below a makecontext()). That is where it
 * would go on, so it is no address inside the function before.
 */
static bool starts_function(const struct xp_maps *maps, uint64_t pc)
{
	const struct xp_mapping *m = maps ? xp_maps_find(maps, pc) : NULL;
	struct xp_dso *dso = m ? xp_mapping_dso(m) : NULL;
	const struct xp_cfi_func *f;
	uint64_t vaddr;

	if (!dso || !xp_dso_vaddr(dso, m, pc, &vaddr) || xp_follows_call(dso, vaddr))
		return false;
	f = xp_cfi_func_at(&dso->cfi, vaddr);
	return f && f->start == vaddr;
}

static int place_native(struct xp_batch *b, const struct xp_raw *raw, const struct xp_target *target,
			uint32_t n)
{
	const struct xp_maps *maps = target ? &target->process.maps : NULL;
	bool exact = true;

	for (uint32_t i = 0; i < n; i++) {
		uint64_t flags = raw->native[i].sp_flags >> 48;
		struct xp_place *place = xp_vec_push(&b->places);
		struct xp_merge_native *native = xp_vec_push(&b->natives);

		if (!place || !native)
			return -ENOMEM;
		/* A trampoline is returned to at its first instruction: nothing called it. */
		exact = exact || flags & XP_FRAME_SIGNAL ||
			(i + 1 == n && raw->head->end == XP_END_OUTERMOST &&
			 starts_function(maps, raw->native[i].pc));
		xp_place_pc(maps, raw->native[i].pc, exact, place);
		exact = flags & (XP_FRAME_SIGNAL | XP_FRAME_RESUMED);
		native->sp = raw->native[i].sp_flags & 0xffffffffffffull;
		if (target)
			native->flags = xp_runtimes_flags(&target->attached, place, &native->runtime);
	}
	return 0;
}

/* The VM frames of one part, named now: from the live process's memory. */
static int place_frames(struct xp_batch *b, const struct xp_raw_vm *vm, void *state,
			struct xp_profile *profile)
{
	const struct xp_runtime *runtime = xp_runtimes[vm->head->runtime];
	int r = 0;

	for (uint32_t i = 0; !r && i < vm->head->nframes; i++) {
		struct xp_merge_vm *frame = xp_vec_push(&b->vm);

		if (!frame)
			return -ENOMEM;
		frame->segment_end = (vm->frames[i].code_flags >> 48) & XP_VM_SEGMENT_END;
		r = runtime->symbolize(state, &vm->frames[i], i == 0, b->number, profile,
				       &frame->frame);
	}
	return r;
}

static int place_part(struct xp_batch *b, const struct xp_raw_vm *vm, void *state,
		      struct xp_profile *profile)
{
	struct xp_placed_part *p = xp_vec_push(&b->parts);
	uint32_t frame = XP_NO_ID;
	int r;

	if (!p)
		return -ENOMEM;
	p->part = (struct xp_merge_part){
		.nacts = vm->head->nacts,
		.nframes = vm->head->nframes,
		.runtime = vm->head->runtime,
		.end = vm->head->end,
		.acts_end = vm->head->acts_end,
		.on_stack = vm->head->flags & XP_PART_ON_STACK,
		.mark = XP_NO_ID,
	};
	p->first_act = b->acts.n;
	p->first_frame = b->vm.n;
	r = xp_runtimes[vm->head->runtime]->state_frame(state, vm->head->state, profile, &frame);
	p->part.state = frame;
	for (uint32_t i = 0; !r && i < vm->head->nacts; i++) {
		uint64_t *act = xp_vec_push(&b->acts);

		if (!act)
			return -ENOMEM;
		*act = vm->acts[i];
	}
	return r ? r : place_frames(b, vm, state, profile);
}

/* Parts of runtimes that are attached; before that only the kernel side's parameters exist. */
static int place_parts(struct xp_batch *b, const struct xp_raw *raw, const struct xp_target *target,
		       struct xp_profile *profile, struct xp_placed *placed)
{
	const uint8_t *at = NULL;
	struct xp_raw_vm vm;
	int r = 0;

	placed->first_part = b->parts.n;
	while (!r && target && xp_raw_next_part(raw, &at, &vm)) {
		const struct xp_attachment *a = &target->attached.by_id[vm.head->runtime];

		if (a->status == XP_ATTACHED)
			r = place_part(b, &vm, a->state, profile);
	}
	placed->nparts = b->parts.n - placed->first_part;
	return r;
}

static int place_kernel(struct xp_batch *b, const struct xp_raw *raw)
{
	for (uint32_t i = 0; i < raw->head->nkernel; i++) {
		struct xp_place *place = xp_vec_push(&b->places);

		if (!place)
			return -ENOMEM;
		place->kind = XP_PLACE_KERNEL;
		place->addr = raw->kernel[i];
		place->exact = i == 0;
	}
	return 0;
}

static bool leaf_is_known(const struct xp_target *target, const struct xp_raw *raw)
{
	return target && xp_maps_find(&target->process.maps, raw->native[0].pc);
}

/* Takes back what was walked with tables that were not, or not yet, the process's. */
static void doubt(struct xp_placed *placed, const struct xp_raw *raw, const struct xp_target *target)
{
	const struct xp_raw_sample *head = raw->head;

	if (placed->nnative &&
	    (!target || !xp_target_trusts(target, head->generation, raw->native, head->nnative))) {
		/* Walked with the tables of another address space: only a leaf in this one is sure. */
		placed->nnative = leaf_is_known(target, raw);
		placed->end = XP_END_NO_PROCESS;
		return;
	}
	if (placed->end != XP_END_NO_MAPPING)
		return;
	/* Inside execve() the registers are still those of the program that was. */
	if (head->flags & XP_RAW_IN_KERNEL && placed->nnative == 1 && !leaf_is_known(target, raw))
		placed->nnative = 0;
}

/* More of the process has been mapped since the ranges that were walked with: its loader is at work. */
static bool is_loading(const struct xp_target *target, uint32_t generation)
{
	return target &&
	       (target->dirty || (target->set && generation < target->set->generation));
}

int xp_batch_place(struct xp_batch *b, const struct xp_raw_copy *copy, struct xp_targets *targets)
{
	struct xp_placed placed = { 0 }, *slot;
	struct xp_target *target;
	const struct xp_raw_sample *head;
	struct xp_raw raw;
	int r;

	if (!xp_raw_parse(b->bytes.data + copy->offset, copy->size, &raw))
		return -EINVAL;
	head = raw.head;
	r = xp_targets_adopt(targets, head->pid, head->time);
	if (r)
		return r;
	target = xp_targets_find(targets, head->pid);
	if (target && target->before_exec)
		return 1;
	/* A forked child runs its parent's runtimes from its first instruction on. */
	if (target && head->nparts && !target->runtimes_known) {
		r = xp_targets_attach_runtimes(targets, target, head->time);
		if (r)
			return r;
	}
	placed.time = head->time;
	placed.flags = head->flags;
	placed.end = head->end;
	placed.nnative = head->nnative;
	placed.nkernel = head->nkernel;
	placed.first = b->places.n;
	placed.first_native = b->natives.n;
	doubt(&placed, &raw, target);
	r = xp_targets_thread(targets, head->pid, head->tid, &placed.thread);
	if (!r)
		r = place_native(b, &raw, target, placed.nnative);
	if (!r && placed.nnative)
		r = xp_judge_steps(b, &raw, target, &placed);
	if (placed.end == XP_END_NO_MAPPING && is_loading(target, head->generation))
		placed.end = XP_END_NO_PROCESS;
	if (!r)
		r = place_parts(b, &raw, target, targets->profile, &placed);
	if (!r)
		r = place_kernel(b, &raw);
	slot = r ? NULL : xp_vec_push(&b->placed);
	if (!slot)
		return -ENOMEM;
	*slot = placed;
	return 0;
}

static int marks(struct xp_native *native, const struct xp_placed *placed, struct xp_parts *parts)
{
	char text[80];
	int r = 0;

	if (placed->end == XP_END_EXITING) {
		r = xp_native_mark(native, "[exiting]", &parts->root_mark);
	} else if (!xp_end_complete(placed->end)) {
		snprintf(text, sizeof(text), "[truncated: %s]", xp_end_text(placed->end));
		r = xp_native_mark(native, text, &parts->root_mark);
	}
	if (!r && placed->flags & XP_RAW_KERNEL_CUT)
		r = xp_native_mark(native, "[truncated: kernel stack too deep]",
				   &parts->kernel_mark);
	if (!r && placed->flags & XP_RAW_KERNEL_LOST)
		r = xp_native_mark(native, "[truncated: no kernel stack]", &parts->kernel_mark);
	return r;
}

/* The parts with their lists' addresses: no vector grows any more. */
static int merging_parts(struct xp_batch *b, const struct xp_placed *placed, struct xp_native *native)
{
	int r = xp_vec_reserve(&b->merging, placed->nparts + 1);

	xp_vec_clear(&b->merging);
	for (size_t i = 0; !r && i < placed->nparts; i++) {
		struct xp_placed_part *p = &b->parts.v[placed->first_part + i];

		p->part.acts = b->acts.v + p->first_act;
		p->part.frames = b->vm.v + p->first_frame;
		if (p->part.end > XP_VM_END_ROOT)
			r = xp_native_mark(native, xp_vm_end_mark(p->part.end), &p->part.mark);
		b->merging.v[b->merging.n++] = p->part;
	}
	return r;
}

static int name_frames(struct xp_batch *b, const struct xp_placed *placed, struct xp_native *native)
{
	const struct xp_place *places = b->places.v + placed->first;
	int r = xp_vec_reserve(&b->ids, placed->nkernel + 1);

	for (uint32_t i = 0; !r && i < placed->nnative; i++)
		r = xp_native_frame(native, &places[i],
				    &b->natives.v[placed->first_native + i].frame);
	for (uint32_t i = 0; !r && i < placed->nkernel; i++)
		r = xp_native_frame(native, &places[placed->nnative + i], &b->ids.v[i]);
	return r;
}

int xp_batch_name(struct xp_batch *b, const struct xp_placed *placed, struct xp_native *native,
		  struct xp_merger *merger)
{
	struct xp_parts parts = {
		.nnative = placed->nnative,
		.nkernel = placed->nkernel,
		.nvm = placed->nparts,
		.root_mark = XP_NO_ID,
		.kernel_mark = XP_NO_ID,
	};
	struct xp_sample sample = {
		.time = placed->time,
		.thread = placed->thread,
		.weight = 1,
	};
	int r = name_frames(b, placed, native);

	if (!r)
		r = merging_parts(b, placed, native);
	parts.native = b->natives.v + placed->first_native;
	parts.kernel = b->ids.v;
	parts.vm = b->merging.v;
	if (!r)
		r = marks(native, placed, &parts);
	if (!r)
		r = xp_merge(merger, &parts, &sample.stack);
	if (!r && sample.stack == XP_NO_ID) {
		parts = (struct xp_parts){ .kernel_mark = XP_NO_ID };
		r = xp_native_mark(native, "[no stack]", &parts.root_mark);
		if (!r)
			r = xp_merge(merger, &parts, &sample.stack);
	}
	return r ? r : xp_profile_add_sample(native->profile, &sample);
}
