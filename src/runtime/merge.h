/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One call stack from the parts that the kernel side sends.
 */
#ifndef XP_RUNTIME_MERGE_H
#define XP_RUNTIME_MERGE_H

#include <stddef.h>
#include <stdint.h>

#include "profile/profile.h"

struct xp_parts {
	const uint32_t *native;		/* frame ids, leaf first */
	size_t nnative;
	const uint32_t *kernel;		/* frame ids, leaf first */
	size_t nkernel;
	uint32_t root_mark;		/* frame id of why the user stack is cut; XP_NO_ID: it is whole */
	uint32_t kernel_mark;		/* frame id of what is missing of the kernel part; XP_NO_ID */
};

/*
 * The stack, root to leaf: mark, native frames, mark, kernel frames. XP_NO_ID in *stack when there is
 * nothing at all. 0 or -ENOMEM.
 */
int xp_merge(struct xp_profile *p, const struct xp_parts *parts, uint32_t *stack);

#endif
