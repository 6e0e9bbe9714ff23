/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The tables of a profile and their interning. A frame or stack node that was seen before costs one
 * look into an open-addressed index; the index holds ids only, so the tables stay plain arrays.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/profile.h"

static const char *const kind_names[XP_FRAME_KINDS] = {
	[XP_FRAME_NORMAL] = "normal",
	[XP_FRAME_CFUNC] = "cfunc",
	[XP_FRAME_BUILTIN] = "builtin",
	[XP_FRAME_JIT] = "jit",
	[XP_FRAME_INLINE] = "inline",
	[XP_FRAME_KERNEL] = "kernel",
	[XP_FRAME_GC] = "gc",
	[XP_FRAME_INTERNAL] = "internal",
	[XP_FRAME_MARK] = "mark",
};

const char *xp_frame_kind_name(enum xp_frame_kind kind)
{
	return (unsigned)kind < XP_FRAME_KINDS ? kind_names[kind] : "unknown";
}

int xp_profile_init(struct xp_profile *p)
{
	memset(p, 0, sizeof(*p));
	return xp_strings_init(&p->strings);
}

void xp_profile_release(struct xp_profile *p)
{
	xp_strings_release(&p->strings);
	xp_vec_release(&p->dsos);
	xp_vec_release(&p->frames);
	xp_vec_release(&p->stacks);
	xp_vec_release(&p->threads);
	xp_vec_release(&p->samples);
	xp_vec_release(&p->meta);
	xp_vec_release(&p->counters);
	xp_index_release(&p->dso_index);
	xp_index_release(&p->frame_index);
	xp_index_release(&p->stack_index);
	xp_index_release(&p->thread_index);
}

static bool has_string(const struct xp_profile *p, uint32_t id)
{
	return id < p->strings.list.n;
}

static uint64_t pair(uint32_t high, uint32_t low)
{
	return (uint64_t)high << 32 | low;
}

static bool dso_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_profile *p = ctx;
	const struct xp_dso_entry *a = key, *b = &p->dsos.v[id];

	return a->path == b->path && a->build_id == b->build_id;
}

static bool frame_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_profile *p = ctx;
	const struct xp_frame *a = key, *b = &p->frames.v[id];

	return a->addr == b->addr && a->name == b->name && a->file == b->file &&
	       a->line == b->line && a->dso == b->dso && a->runtime == b->runtime &&
	       a->kind == b->kind;
}

static bool stack_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_profile *p = ctx;
	const struct xp_stack *a = key, *b = &p->stacks.v[id];

	return a->parent == b->parent && a->frame == b->frame;
}

static bool thread_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_profile *p = ctx;
	const struct xp_thread *a = key, *b = &p->threads.v[id];

	return a->pid == b->pid && a->tid == b->tid && a->comm == b->comm;
}

struct table {
	void **v;
	size_t *n, *cap, size;		/* size: of an entry */
	struct xp_index *index;
	xp_index_equal equal;
};

#define TABLE(p, name, ix, eq) \
	(&(struct table){ (void **)&(p)->name.v, &(p)->name.n, &(p)->name.cap, \
			  sizeof(*(p)->name.v), &(p)->ix, eq })

/*
 * The id of an entry in one table, added when it is new. The entry is pushed before the index knows
 * it and popped again when the index has no room, so that a failure changes nothing.
 */
static int intern(const struct xp_profile *p, const struct table *t, const void *entry,
		  uint64_t hash, uint32_t *id)
{
	uint32_t found = xp_index_find(t->index, hash, t->equal, p, entry);
	void *new = NULL;

	if (found != XP_INDEX_NONE) {
		*id = found;
		return 0;
	}
	if (*t->n < XP_NO_ID - 1)
		new = xp_vec_push_(t->v, t->n, t->cap, t->size);
	if (!new)
		return -ENOMEM;
	memcpy(new, entry, t->size);
	*id = (uint32_t)(*t->n - 1);
	if (xp_index_add(t->index, hash, *id)) {
		--*t->n;
		return -ENOMEM;
	}
	return 0;
}

int xp_profile_add_dso(struct xp_profile *p, const struct xp_dso_entry *d, uint32_t *id)
{
	if (!has_string(p, d->path) || !has_string(p, d->build_id))
		return -EINVAL;
	return intern(p, TABLE(p, dsos, dso_index, dso_equal), d,
		      xp_hash_u64(pair(d->path, d->build_id)), id);
}

static uint64_t frame_hash(const struct xp_frame *f)
{
	uint64_t parts[4] = {
		f->addr,
		pair(f->name, f->line),
		pair(f->file, f->dso),
		pair(f->runtime, f->kind),
	};

	return xp_hash_bytes(parts, sizeof(parts), 0);
}

int xp_profile_add_frame(struct xp_profile *p, const struct xp_frame *f, uint32_t *id)
{
	if (!has_string(p, f->runtime) || !has_string(p, f->name) || !has_string(p, f->file) ||
	    f->kind >= XP_FRAME_KINDS || (f->dso != XP_NO_ID && f->dso >= p->dsos.n))
		return -EINVAL;
	return intern(p, TABLE(p, frames, frame_index, frame_equal), f, frame_hash(f), id);
}

int xp_profile_add_stack(struct xp_profile *p, uint32_t parent, uint32_t frame, uint32_t *id)
{
	struct xp_stack s = { .parent = parent, .frame = frame };

	if (frame >= p->frames.n || (parent != XP_NO_ID && parent >= p->stacks.n))
		return -EINVAL;
	return intern(p, TABLE(p, stacks, stack_index, stack_equal), &s,
		      xp_hash_u64(pair(parent, frame)), id);
}

int xp_profile_add_thread(struct xp_profile *p, const struct xp_thread *t, uint32_t *id)
{
	uint64_t hash = xp_hash_u64(pair(t->pid, t->tid) ^ xp_hash_u64(t->comm));

	if (!has_string(p, t->comm))
		return -EINVAL;
	return intern(p, TABLE(p, threads, thread_index, thread_equal), t, hash, id);
}

int xp_profile_add_sample(struct xp_profile *p, const struct xp_sample *s)
{
	struct xp_sample *new;

	if (s->thread >= p->threads.n || s->stack >= p->stacks.n || !s->weight ||
	    s->state >= XP_STATES)
		return -EINVAL;
	new = xp_vec_push(&p->samples);
	if (!new)
		return -ENOMEM;
	*new = *s;
	return 0;
}

static bool is_string(const struct xp_profile *p, uint32_t id, const char *z)
{
	struct xp_str s = xp_strings_get(&p->strings, id);

	return s.n == strlen(z) && !memcmp(s.p, z, s.n);
}

int xp_profile_set_meta(struct xp_profile *p, const char *key, const char *value)
{
	struct xp_meta_entry *e = NULL;
	uint32_t key_id, value_id;
	int ret;

	ret = xp_strings_addz(&p->strings, key, &key_id);
	if (!ret)
		ret = xp_strings_addz(&p->strings, value, &value_id);
	if (ret)
		return ret;
	for (size_t i = 0; i < p->meta.n && !e; i++)
		if (p->meta.v[i].key == key_id)
			e = &p->meta.v[i];
	if (!e)
		e = xp_vec_push(&p->meta);
	if (!e)
		return -ENOMEM;
	*e = (struct xp_meta_entry){ .key = key_id, .value = value_id };
	return 0;
}

const char *xp_profile_meta(const struct xp_profile *p, const char *key)
{
	for (size_t i = 0; i < p->meta.n; i++)
		if (is_string(p, p->meta.v[i].key, key))
			return xp_strings_get(&p->strings, p->meta.v[i].value).p;
	return NULL;
}

int xp_profile_set_counter(struct xp_profile *p, const char *key, uint64_t value)
{
	struct xp_counter_entry *e = NULL;
	uint32_t key_id;
	int ret = xp_strings_addz(&p->strings, key, &key_id);

	if (ret)
		return ret;
	for (size_t i = 0; i < p->counters.n && !e; i++)
		if (p->counters.v[i].key == key_id)
			e = &p->counters.v[i];
	if (!e)
		e = xp_vec_push(&p->counters);
	if (!e)
		return -ENOMEM;
	*e = (struct xp_counter_entry){ .key = key_id, .value = value };
	return 0;
}

uint64_t xp_profile_counter(const struct xp_profile *p, const char *key)
{
	for (size_t i = 0; i < p->counters.n; i++)
		if (is_string(p, p->counters.v[i].key, key))
			return p->counters.v[i].value;
	return 0;
}
