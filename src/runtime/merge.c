/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A mark stands where frames are missing: at the root of a cut user stack, and between user and
 * kernel frames where the kernel's are incomplete at their outer end.
 */
#include "runtime/merge.h"

static int push(struct xp_profile *p, uint32_t frame, uint32_t *stack)
{
	return frame == XP_NO_ID ? 0 : xp_profile_add_stack(p, *stack, frame, stack);
}

int xp_merge(struct xp_profile *p, const struct xp_parts *parts, uint32_t *stack)
{
	int r;

	*stack = XP_NO_ID;
	r = push(p, parts->root_mark, stack);
	for (size_t i = parts->nnative; !r && i > 0; i--)
		r = push(p, parts->native[i - 1], stack);
	if (!r)
		r = push(p, parts->kernel_mark, stack);
	for (size_t i = parts->nkernel; !r && i > 0; i--)
		r = push(p, parts->kernel[i - 1], stack);
	return r;
}
