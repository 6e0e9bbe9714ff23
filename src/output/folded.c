/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Folded stacks: "comm;frame;...;frame COUNT", root first, merged, sorted as by LC_ALL=C sort.
 *
 * The merged tree is written depth first, so that memory is that of the tree and one line. Whole
 * lines come out sorted because the items under a node are: a node's own line as "name count", what
 * is below it as "name;". No name holds ';' or ends in a number, so no item begins another.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "output/name.h"
#include "output/output.h"
#include "profile/tree.h"

struct item {
	uint32_t node;
	bool line;		/* the node's own line, else what is below it */
	char tail[24];		/* what follows the name: " count" or ";" */
};

struct level {			/* of the walk: items[next..end) are to be done */
	size_t next, end;
	size_t path;		/* length of the line before this level's names */
};

struct folder {
	FILE *out;
	struct xp_strings names;
	struct xp_tree tree;
	XP_VEC(struct item) items;
	XP_VEC(struct level) levels;
	struct xp_buf line;
};

static const char *suffix_of(enum xp_frame_kind kind)
{
	switch (kind) {
	case XP_FRAME_KERNEL:
		return "_[k]";
	case XP_FRAME_INLINE:
		return "_[i]";
	case XP_FRAME_JIT:
		return "_[j]";
	default:
		return "";
	}
}

static int label(struct folder *f, struct xp_str name, unsigned flags, const char *suffix,
		 uint32_t *id)
{
	xp_buf_clear(&f->line);
	xp_name_put(&f->line, name.p, name.n, flags);
	xp_buf_put(&f->line, suffix, strlen(suffix));
	if (f->line.failed)
		return -ENOMEM;
	return xp_strings_add(&f->names, f->line.data, f->line.len, id);
}

/* Labels are names as they will be printed, so that frames which look the same are merged. */
static int build(struct folder *f, const struct xp_output *o)
{
	const struct xp_profile *p = o->view->p;
	uint32_t *frames = calloc(p->frames.n + 1, sizeof(*frames));
	uint32_t *threads = calloc(p->threads.n + 1, sizeof(*threads));
	int ret = frames && threads ? 0 : -ENOMEM;

	for (size_t i = 0; !ret && i < p->frames.n; i++) {
		const struct xp_frame *fr = &p->frames.v[i];

		ret = label(f, xp_strings_get(&p->strings, fr->name), XP_NAME_FRAME,
			    o->annotate_kinds ? suffix_of(fr->kind) : "", &frames[i]);
	}
	for (size_t i = 0; !ret && i < p->threads.n; i++)
		ret = label(f, xp_strings_get(&p->strings, p->threads.v[i].comm), XP_NAME_ROOT, "",
			    &threads[i]);
	if (!ret)
		ret = xp_tree_build(&f->tree, o->view, frames, threads);
	free(frames);
	free(threads);
	return ret;
}

static struct xp_str name_of(const struct folder *f, uint32_t node)
{
	return xp_strings_get(&f->names, f->tree.nodes.v[node].label);
}

/* The byte of "name" + tail at i; -1 behind the end. */
static int byte_at(struct xp_str name, const char *tail, size_t i)
{
	if (i < name.n)
		return (unsigned char)name.p[i];
	return i - name.n < strlen(tail) ? (unsigned char)tail[i - name.n] : -1;
}

static int compare_items(const void *pa, const void *pb, void *ctx)
{
	const struct item *a = pa, *b = pb;
	struct xp_str x = name_of(ctx, a->node), y = name_of(ctx, b->node);
	size_t i = x.n < y.n ? x.n : y.n;
	int c = memcmp(x.p, y.p, i);

	for (; !c; i++) {
		int left = byte_at(x, a->tail, i), right = byte_at(y, b->tail, i);

		if (left < 0 && right < 0)
			break;
		c = left - right;
	}
	return c;
}

static int push_item(struct folder *f, uint32_t node, bool line)
{
	struct item *item = xp_vec_push(&f->items);

	if (!item)
		return -ENOMEM;
	item->node = node;
	item->line = line;
	if (line)
		snprintf(item->tail, sizeof(item->tail), " %" PRIu64, f->tree.nodes.v[node].self);
	else
		strcpy(item->tail, ";");
	return 0;
}

/* Opens the level below a node. */
static int descend(struct folder *f, uint32_t node)
{
	struct level *level = xp_vec_push(&f->levels);
	size_t first = f->items.n;

	if (!level)
		return -ENOMEM;
	for (uint32_t c = f->tree.nodes.v[node].first_child; c != XP_NO_ID;
	     c = f->tree.nodes.v[c].next_sibling) {
		if (f->tree.nodes.v[c].self && push_item(f, c, true))
			return -ENOMEM;
		if (f->tree.nodes.v[c].first_child != XP_NO_ID && push_item(f, c, false))
			return -ENOMEM;
	}
	*level = (struct level){ .next = first, .end = f->items.n, .path = f->line.len };
	if (f->items.n > first)
		qsort_r(&f->items.v[first], f->items.n - first, sizeof(*f->items.v), compare_items, f);
	return 0;
}

static int walk(struct folder *f)
{
	int ret;

	xp_buf_clear(&f->line);
	ret = descend(f, XP_TREE_ROOT);
	while (!ret && f->levels.n) {
		struct level *level = &f->levels.v[f->levels.n - 1];
		struct item *item;
		struct xp_str name;

		f->line.len = level->path;
		if (level->next == level->end) {
			f->levels.n--;
			f->items.n = f->levels.n ? f->levels.v[f->levels.n - 1].end : 0;
			continue;
		}
		item = &f->items.v[level->next++];
		name = name_of(f, item->node);
		xp_buf_put(&f->line, name.p, name.n);
		xp_buf_put(&f->line, item->tail, strlen(item->tail));
		if (f->line.failed)
			return -ENOMEM;
		if (!item->line) {
			ret = descend(f, item->node);
			continue;
		}
		fwrite(f->line.data, 1, f->line.len, f->out);
		if (putc('\n', f->out) == EOF)
			break;		/* nobody reads on */
	}
	return ret;
}

int xp_output_folded(FILE *out, const struct xp_output *o)
{
	struct folder f = { .out = out };
	int ret = xp_strings_init(&f.names);

	if (!ret && o->rows)
		ret = build(&f, o);
	if (!ret && o->rows)
		ret = walk(&f);
	xp_tree_release(&f.tree);
	xp_strings_release(&f.names);
	xp_vec_release(&f.items);
	xp_vec_release(&f.levels);
	xp_buf_release(&f.line);
	return ret;
}
