/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The merged call tree: nodes with the same way from the root are one node, with the weight of the
 * samples that end there (self) and of all below (total).
 *
 * What makes two frames the same is the caller's choice: it gives a label for every frame and every
 * thread (a string id, a function's number, ...). Parents have smaller ids than their children.
 */
#ifndef XP_PROFILE_TREE_H
#define XP_PROFILE_TREE_H

#include "profile/view.h"

#define XP_TREE_ROOT 0u		/* stands above all; it has no label */

struct xp_tree_node {
	uint32_t parent, label;
	uint32_t first_child, next_sibling;	/* XP_NO_ID: none */
	uint64_t self, total;
};

struct xp_tree {
	XP_VEC(struct xp_tree_node) nodes;
	struct xp_index index;
};

/*
 * Merges the samples in view. frame_labels has one label per frame of the profile; thread_labels
 * one per thread, the node right below the root, or is NULL for none. Frames that the view hides
 * are left out. 0 or -ENOMEM; release in both cases.
 */
int xp_tree_build(struct xp_tree *t, const struct xp_view *view, const uint32_t *frame_labels,
		  const uint32_t *thread_labels);
void xp_tree_release(struct xp_tree *t);

#endif
