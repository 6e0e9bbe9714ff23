/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Merging costs one map look-up per sample. The first sample of a stack also places those nodes of
 * its trie that have no place yet, so each (root, stack node) is placed once however many stacks
 * share it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/tree.h"

struct builder {
	struct xp_tree *tree;
	const struct xp_view *view;
	const uint32_t *labels;
	struct xp_map places;		/* tree node of the root << 32 | stack id -> tree node */
	XP_VEC(uint32_t) todo;
};

static bool node_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_tree *t = ctx;
	const struct xp_tree_node *a = key, *b = &t->nodes.v[id];

	return a->parent == b->parent && a->label == b->label && id != XP_TREE_ROOT;
}

static int child(struct xp_tree *t, uint32_t parent, uint32_t label, uint32_t *id)
{
	struct xp_tree_node key = { .parent = parent, .label = label, .first_child = XP_NO_ID }, *new;
	uint64_t hash = xp_hash_u64((uint64_t)parent << 32 | label);

	*id = xp_index_find(&t->index, hash, node_equal, t, &key);
	if (*id != XP_INDEX_NONE)
		return 0;
	if (t->nodes.n >= XP_NO_ID - 1)
		return -ENOMEM;
	*id = (uint32_t)t->nodes.n;
	new = xp_vec_push(&t->nodes);
	if (!new)
		return -ENOMEM;
	key.next_sibling = t->nodes.v[parent].first_child;
	t->nodes.v[parent].first_child = *id;
	*new = key;
	return xp_index_add(&t->index, hash, *id);
}

static int place(struct builder *b, uint32_t root, uint32_t stack, uint32_t *node)
{
	const struct xp_profile *p = b->view->p;
	uint64_t *known = NULL;
	int ret = 0;

	xp_vec_clear(&b->todo);
	for (uint32_t s = stack; s != XP_NO_ID; s = p->stacks.v[s].parent) {
		uint32_t *todo;

		known = xp_map_get(&b->places, (uint64_t)root << 32 | s);
		if (known)
			break;
		todo = xp_vec_push(&b->todo);
		if (!todo)
			return -ENOMEM;
		*todo = s;
	}
	*node = known ? (uint32_t)*known : root;
	while (b->todo.n && !ret) {
		uint32_t s = b->todo.v[--b->todo.n], frame = p->stacks.v[s].frame;

		if (xp_view_shows(b->view, &p->frames.v[frame]))
			ret = child(b->tree, *node, b->labels[frame], node);
		if (!ret)
			ret = xp_map_set(&b->places, (uint64_t)root << 32 | s, *node);
	}
	return ret;
}

static int add_samples(struct builder *b, const uint32_t *thread_labels)
{
	const struct xp_profile *p = b->view->p;

	for (size_t i = 0; i < p->samples.n; i++) {
		const struct xp_sample *s = &p->samples.v[i];
		uint32_t node = XP_TREE_ROOT;
		int ret = 0;

		if (!b->view->threads[s->thread])
			continue;
		if (thread_labels)
			ret = child(b->tree, XP_TREE_ROOT, thread_labels[s->thread], &node);
		if (!ret)
			ret = place(b, node, s->stack, &node);
		if (ret)
			return ret;
		b->tree->nodes.v[node].self += s->weight;
	}
	return 0;
}

static void sum_up(struct xp_tree *t)
{
	for (size_t i = t->nodes.n; i-- > 0;) {
		struct xp_tree_node *n = &t->nodes.v[i];

		n->total += n->self;
		if (i != XP_TREE_ROOT)
			t->nodes.v[n->parent].total += n->total;
	}
}

int xp_tree_build(struct xp_tree *t, const struct xp_view *view, const uint32_t *frame_labels,
		  const uint32_t *thread_labels)
{
	struct builder b = { .tree = t, .view = view, .labels = frame_labels };
	struct xp_tree_node *root;
	int ret = -ENOMEM;

	memset(t, 0, sizeof(*t));
	root = xp_vec_push(&t->nodes);
	if (root) {
		root->parent = root->label = root->first_child = root->next_sibling = XP_NO_ID;
		ret = add_samples(&b, thread_labels);
	}
	if (!ret)
		sum_up(t);
	xp_map_release(&b.places);
	xp_vec_release(&b.todo);
	return ret;
}

void xp_tree_release(struct xp_tree *t)
{
	xp_vec_release(&t->nodes);
	xp_index_release(&t->index);
}
