/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Works on the trie itself: weights are added to the stack nodes, summed towards the roots in one
 * pass (children come after their parents), and one walk through the trie knows for each function
 * whether it is already on the way from the root. Time is linear in samples and nodes, whatever the
 * depth of the stacks.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/hot.h"

struct node {
	uint64_t self, total;
	uint32_t visible;		/* innermost frame shown, XP_NO_ID: none */
	uint32_t first_child, next_sibling;
};

struct line_use {			/* per frame */
	uint64_t self;
	bool seen;			/* is on a stack that was sampled */
};

struct summer {
	struct xp_hot *hot;
	const struct xp_view *view;
	const struct xp_profile *p;
	struct node *nodes;
	struct line_use *uses;
	uint32_t *functions;		/* frame id -> row */
	uint32_t *active;		/* row -> times on the way from the root */
	struct xp_index index;
};

static bool row_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_hot *h = ctx;
	const struct xp_frame *f = key;
	const struct xp_hot_row *r = &h->rows.v[id];

	return f->name == r->name && f->dso == r->dso && f->runtime == r->runtime;
}

static int find_functions(struct summer *s)
{
	for (size_t i = 0; i < s->p->frames.n; i++) {
		const struct xp_frame *f = &s->p->frames.v[i];
		uint64_t parts[2] = { (uint64_t)f->name << 32 | f->dso, f->runtime };
		uint64_t hash = xp_hash_bytes(parts, sizeof(parts), 0);
		uint32_t id = xp_index_find(&s->index, hash, row_equal, s->hot, f);

		if (id == XP_INDEX_NONE) {
			struct xp_hot_row *r = xp_vec_push(&s->hot->rows);

			id = (uint32_t)s->hot->rows.n - 1;
			if (!r || xp_index_add(&s->index, hash, id))
				return -ENOMEM;
			*r = (struct xp_hot_row){ .runtime = f->runtime, .name = f->name,
						  .dso = f->dso, .kind = f->kind };
		}
		s->functions[i] = id;
	}
	return 0;
}

static void add_weights(struct summer *s)
{
	for (size_t i = 0; i < s->p->samples.n; i++) {
		const struct xp_sample *sample = &s->p->samples.v[i];

		if (!s->view->threads[sample->thread])
			continue;
		s->nodes[sample->stack].self += sample->weight;
		s->hot->weight += sample->weight;
	}
}

/* Forward: what is visible at each node. */
static void find_visible(struct summer *s)
{
	for (size_t i = 0; i < s->p->stacks.n; i++) {
		const struct xp_stack *st = &s->p->stacks.v[i];
		struct node *n = &s->nodes[i];

		n->first_child = XP_NO_ID;
		if (xp_view_shows(s->view, &s->p->frames.v[st->frame]))
			n->visible = st->frame;
		else
			n->visible = st->parent == XP_NO_ID ? XP_NO_ID : s->nodes[st->parent].visible;
	}
}

/* Backward: totals and child lists; self weights go to functions and frames. */
static uint32_t sum_up(struct summer *s)
{
	uint32_t roots = XP_NO_ID;

	for (size_t i = s->p->stacks.n; i-- > 0;) {
		uint32_t parent = s->p->stacks.v[i].parent;
		struct node *n = &s->nodes[i];
		uint32_t *list = parent == XP_NO_ID ? &roots : &s->nodes[parent].first_child;

		n->total += n->self;
		if (parent != XP_NO_ID)
			s->nodes[parent].total += n->total;
		n->next_sibling = *list;
		*list = (uint32_t)i;
		if (n->visible == XP_NO_ID) {
			s->hot->hidden += n->self;
			continue;
		}
		s->uses[n->visible].self += n->self;
		s->hot->rows.v[s->functions[n->visible]].self += n->self;
	}
	return roots;
}

static void enter(struct summer *s, uint32_t node)
{
	uint32_t frame = s->p->stacks.v[node].frame;
	uint32_t row = s->functions[frame];

	if (!xp_view_shows(s->view, &s->p->frames.v[frame]))
		return;
	if (s->nodes[node].total)
		s->uses[frame].seen = true;
	if (!s->active[row]++)
		s->hot->rows.v[row].total += s->nodes[node].total;
}

static void leave(struct summer *s, uint32_t node)
{
	uint32_t frame = s->p->stacks.v[node].frame;

	if (xp_view_shows(s->view, &s->p->frames.v[frame]))
		s->active[s->functions[frame]]--;
}

static void walk(struct summer *s, uint32_t node)
{
	while (node != XP_NO_ID) {
		enter(s, node);
		if (s->nodes[node].first_child != XP_NO_ID) {
			node = s->nodes[node].first_child;
			continue;
		}
		leave(s, node);
		while (s->nodes[node].next_sibling == XP_NO_ID) {
			node = s->p->stacks.v[node].parent;
			if (node == XP_NO_ID)
				return;
			leave(s, node);
		}
		node = s->nodes[node].next_sibling;
	}
}

/* Two frames of one function at one line may differ in address: weigh lines, not frames. */
struct line {
	uint32_t row, file, line;
	uint8_t kind;
	uint64_t self;
};

static int compare_lines(const void *pa, const void *pb)
{
	const struct line *a = pa, *b = pb;

	if (a->row != b->row)
		return a->row < b->row ? -1 : 1;
	if (a->file != b->file)
		return a->file < b->file ? -1 : 1;
	if (a->line != b->line)
		return a->line < b->line ? -1 : 1;
	return a->kind - b->kind;
}

static size_t merge_lines(struct line *l, size_t n)
{
	size_t kept = 0;

	qsort(l, n, sizeof(*l), compare_lines);
	for (size_t i = 0; i < n; i++)
		if (kept && !compare_lines(&l[kept - 1], &l[i]))
			l[kept - 1].self += l[i].self;
		else
			l[kept++] = l[i];
	return kept;
}

/* One function's lines: the heaviest; without self weight only a line that all agree on. */
static void choose_line(struct xp_hot_row *r, const struct line *l, size_t n)
{
	const struct line *best = l;
	bool agree = true;

	for (size_t i = 1; i < n; i++) {
		agree = agree && l[i].file == l->file && l[i].line == l->line;
		if (l[i].self > best->self)
			best = &l[i];
	}
	r->kind = best->kind;
	if (best->self || agree) {
		r->file = best->file;
		r->line = best->line;
	}
}

static int choose_lines(struct summer *s)
{
	struct line *lines = calloc(s->p->frames.n + 1, sizeof(*lines));
	size_t n = 0;

	if (!lines)
		return -ENOMEM;
	for (size_t i = 0; i < s->p->frames.n; i++) {
		const struct xp_frame *f = &s->p->frames.v[i];

		if (s->uses[i].seen)
			lines[n++] = (struct line){ s->functions[i], f->file, f->line, f->kind,
						    s->uses[i].self };
	}
	n = merge_lines(lines, n);
	for (size_t i = 0, end; i < n; i = end) {
		for (end = i; end < n && lines[end].row == lines[i].row;)
			end++;
		choose_line(&s->hot->rows.v[lines[i].row], &lines[i], end - i);
	}
	free(lines);
	return 0;
}

static void drop_unused(struct xp_hot *h)
{
	size_t kept = 0;

	for (size_t i = 0; i < h->rows.n; i++)
		if (h->rows.v[i].total)
			h->rows.v[kept++] = h->rows.v[i];
	h->rows.n = kept;
}

int xp_hot_build(struct xp_hot *h, const struct xp_view *view)
{
	const struct xp_profile *p = view->p;
	struct summer s = { .hot = h, .view = view, .p = p };
	int ret = -ENOMEM;

	memset(h, 0, sizeof(*h));
	s.nodes = calloc(p->stacks.n + 1, sizeof(*s.nodes));
	s.uses = calloc(p->frames.n + 1, sizeof(*s.uses));
	s.functions = calloc(p->frames.n + 1, sizeof(*s.functions));
	s.active = calloc(p->frames.n + 1, sizeof(*s.active));
	if (!s.nodes || !s.uses || !s.functions || !s.active)
		goto out;
	ret = find_functions(&s);
	if (ret)
		goto out;
	add_weights(&s);
	find_visible(&s);
	walk(&s, sum_up(&s));
	ret = choose_lines(&s);
	drop_unused(h);
	xp_hot_sort(h, p, false);
out:
	free(s.nodes);
	free(s.uses);
	free(s.functions);
	free(s.active);
	xp_index_release(&s.index);
	return ret;
}

void xp_hot_release(struct xp_hot *h)
{
	xp_vec_release(&h->rows);
}

struct order {
	const struct xp_profile *p;
	bool by_self;
};

static int compare_strings(const struct xp_profile *p, uint32_t a, uint32_t b)
{
	struct xp_str x = xp_strings_get(&p->strings, a), y = xp_strings_get(&p->strings, b);
	int c = memcmp(x.p, y.p, x.n < y.n ? x.n : y.n);

	return c ? c : (x.n > y.n) - (x.n < y.n);
}

static int compare_dsos(const struct xp_profile *p, uint32_t a, uint32_t b)
{
	const struct xp_dso_entry none = { 0 };
	const struct xp_dso_entry *x = a == XP_NO_ID ? &none : &p->dsos.v[a];
	const struct xp_dso_entry *y = b == XP_NO_ID ? &none : &p->dsos.v[b];
	int c = compare_strings(p, x->path, y->path);

	return c ? c : compare_strings(p, x->build_id, y->build_id);
}

static int compare_rows(const void *pa, const void *pb, void *ctx)
{
	const struct xp_hot_row *a = pa, *b = pb;
	const struct order *o = ctx;
	int c = (a->self < b->self) - (a->self > b->self);
	int total = (a->total < b->total) - (a->total > b->total);

	if (!o->by_self || !c)
		c = total ? total : c;
	if (!c)
		c = compare_strings(o->p, a->name, b->name);
	if (!c)
		c = compare_dsos(o->p, a->dso, b->dso);
	return c ? c : compare_strings(o->p, a->runtime, b->runtime);
}

void xp_hot_sort(struct xp_hot *h, const struct xp_profile *p, bool by_self)
{
	struct order o = { .p = p, .by_self = by_self };

	if (h->rows.n)
		qsort_r(h->rows.v, h->rows.n, sizeof(*h->rows.v), compare_rows, &o);
}
