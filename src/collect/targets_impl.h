/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the parts of targets.h share: targets.c has the list, targets_maps.c one target's mappings,
 * targets_events.c the kernel's events.
 */
#ifndef XP_COLLECT_TARGETS_IMPL_H
#define XP_COLLECT_TARGETS_IMPL_H

#include "collect/targets.h"

/* A new target without mappings, there since `created` (ns, 0: not known); NULL: out of memory. */
struct xp_target *xp_target_add(struct xp_targets *t, pid_t pid, uint64_t created);
/* Makes the target's mappings own references to their files. */
void xp_target_own_maps(struct xp_targets *t, struct xp_target *target);
/* Replaces the mappings by what /proc says now; only executable ones are kept. */
int xp_target_read_maps(struct xp_targets *t, struct xp_target *target, uint64_t now,
			struct xp_err *err);
/* Reads a list again that has grown too long. 0 or -ENOMEM. */
int xp_target_shorten(struct xp_targets *t, struct xp_target *target, uint64_t now);
/* Tells the kernel side where the target's ranges and its runtimes' parameters are. */
int xp_target_put_entry(struct xp_targets *t, const struct xp_target *target);
/* Publishes the mappings. */
int xp_target_publish(struct xp_targets *t, struct xp_target *target, uint64_t now);
/* Changed mappings are so many that they are better published a little later. */
bool xp_target_may_wait(const struct xp_target *target, uint64_t now);
/* Applies an event of a new mapping. 0 or -ENOMEM. */
int xp_target_mmap(struct xp_targets *t, struct xp_target *target, const struct xp_event *e,
		   const char *text);
/* Our own child has gone through its exec: its files are held by its mappings from now on. */
void xp_targets_drop_held(struct xp_targets *t);

#endif
