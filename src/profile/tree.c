/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Samples are taken root by root, so that the place of a stack node in the tree is one array entry:
 * each pair of root and stack node is placed once however many samples and stacks share it.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/tree.h"

struct builder {
	struct xp_tree *tree;
	const struct xp_view *view;
	const uint32_t *labels;
	struct place {			/* per stack node */
		uint32_t root, node;	/* tree nodes; the second is valid for the first */
	} *places;
	struct thread_root {
		uint32_t root, thread, end;	/* end: of its samples in order */
	} *threads;
	uint32_t *order;		/* samples in view, by root */
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
	int ret = 0;

	xp_vec_clear(&b->todo);
	*node = root;
	for (uint32_t s = stack; s != XP_NO_ID; s = p->stacks.v[s].parent) {
		uint32_t *todo;

		if (b->places[s].root == root) {
			*node = b->places[s].node;
			break;
		}
		todo = xp_vec_push(&b->todo);
		if (!todo)
			return -ENOMEM;
		*todo = s;
	}
	while (b->todo.n && !ret) {
		uint32_t s = b->todo.v[--b->todo.n], frame = p->stacks.v[s].frame;

		if (xp_view_shows(b->view, &p->frames.v[frame]))
			ret = child(b->tree, *node, b->labels[frame], node);
		b->places[s] = (struct place){ .root = root, .node = *node };
	}
	return ret;
}

static int compare_roots(const void *pa, const void *pb)
{
	const struct thread_root *a = pa, *b = pb;

	return (a->root > b->root) - (a->root < b->root);
}

/* Finds the root of each thread in view and orders the samples by it (a counting sort). */
static int order_samples(struct builder *b, const uint32_t *thread_labels)
{
	const struct xp_profile *p = b->view->p;
	uint32_t *next = calloc(p->threads.n + 1, sizeof(*next));
	uint32_t at = 0;
	int ret = next ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < p->threads.n; i++) {
		b->threads[i] = (struct thread_root){ .root = XP_TREE_ROOT, .thread = (uint32_t)i };
		if (thread_labels && b->view->threads[i])
			ret = child(b->tree, XP_TREE_ROOT, thread_labels[i], &b->threads[i].root);
	}
	if (!ret) {
		qsort(b->threads, p->threads.n, sizeof(*b->threads), compare_roots);
		for (size_t i = 0; i < p->samples.n; i++)
			next[p->samples.v[i].thread]++;
		for (size_t i = 0; i < p->threads.n; i++) {
			uint32_t count = next[b->threads[i].thread];

			next[b->threads[i].thread] = at;
			b->threads[i].end = at += count;
		}
		for (size_t i = 0; i < p->samples.n; i++)
			b->order[next[p->samples.v[i].thread]++] = (uint32_t)i;
	}
	free(next);
	return ret;
}

static int add_samples(struct builder *b)
{
	const struct xp_profile *p = b->view->p;
	uint32_t at = 0;

	for (size_t i = 0; i < p->threads.n; at = b->threads[i++].end) {
		if (!b->view->threads[b->threads[i].thread])
			continue;
		for (; at < b->threads[i].end; at++) {
			const struct xp_sample *s = &p->samples.v[b->order[at]];
			uint32_t node;
			int ret = place(b, b->threads[i].root, s->stack, &node);

			if (ret)
				return ret;
			b->tree->nodes.v[node].self += s->weight;
		}
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

/* The root, and a place for everything the builder needs. 0 or -ENOMEM. */
static int prepare(struct builder *b)
{
	const struct xp_profile *p = b->view->p;
	struct xp_tree_node *root = xp_vec_push(&b->tree->nodes);

	b->places = malloc((p->stacks.n + 1) * sizeof(*b->places));
	b->threads = calloc(p->threads.n + 1, sizeof(*b->threads));
	b->order = calloc(p->samples.n + 1, sizeof(*b->order));
	if (!root || !b->places || !b->threads || !b->order)
		return -ENOMEM;
	root->parent = root->label = root->first_child = root->next_sibling = XP_NO_ID;
	memset(b->places, 0xff, (p->stacks.n + 1) * sizeof(*b->places));	/* root: XP_NO_ID */
	return 0;
}

int xp_tree_build(struct xp_tree *t, const struct xp_view *view, const uint32_t *frame_labels,
		  const uint32_t *thread_labels)
{
	struct builder b = { .tree = t, .view = view, .labels = frame_labels };
	int ret;

	memset(t, 0, sizeof(*t));
	ret = prepare(&b);
	if (!ret)
		ret = order_samples(&b, thread_labels);
	if (!ret)
		ret = add_samples(&b);
	if (!ret)
		sum_up(t);
	free(b.places);
	free(b.threads);
	free(b.order);
	xp_vec_release(&b.todo);
	return ret;
}

void xp_tree_release(struct xp_tree *t)
{
	xp_vec_release(&t->nodes);
	xp_index_release(&t->index);
}
