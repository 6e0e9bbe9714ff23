/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether the steps of a native walk can be believed.
 */
#ifndef XP_COLLECT_JUDGE_H
#define XP_COLLECT_JUDGE_H

#include <stdbool.h>
#include <stdint.h>

#include "collect/batch.h"
#include "collect/raw.h"
#include "collect/targets.h"

/* The place of a pc by the mappings at its time (NULL: none are known). */
void xp_place_pc(const struct xp_maps *maps, uint64_t pc, bool exact, struct xp_place *place);
/*
 * Judges the native frames of a sample that was placed last; cuts them, says why in placed->end, and
 * puts back the caller of a leaf that provably was left out. 0 or -ENOMEM.
 */
int xp_judge_steps(struct xp_batch *b, const struct xp_raw *raw, const struct xp_target *target,
		   struct xp_placed *placed);

#endif
