/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Every field is checked against the tables as they stand: a record can refer only to what came
 * before it. A chunk's samples, meta and counters become valid together, at its end.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "store/format.h"
#include "store/records.h"

int xp_records_init(struct xp_records *r, struct xp_profile *p)
{
	uint32_t *empty;

	memset(r, 0, sizeof(*r));
	r->p = p;
	empty = xp_vec_push(&r->strings);	/* id 0 is the empty string without a record */
	return empty ? 0 : -ENOMEM;
}

void xp_records_release(struct xp_records *r)
{
	xp_vec_release(&r->strings);
	xp_vec_release(&r->dsos);
	xp_vec_release(&r->frames);
	xp_vec_release(&r->stacks);
	xp_vec_release(&r->threads);
	xp_vec_release(&r->depths);
	xp_vec_release(&r->facts);
}

static int bad(struct xp_records *r, const char *problem)
{
	r->problem = problem;
	return -EBADMSG;
}

static uint32_t get_u32(struct xp_cur *c)
{
	uint64_t v = xp_cur_uleb(c);

	if (v > UINT32_MAX)
		c->bad = true;
	return (uint32_t)v;
}

/* A reference into a table of the file, as an id of the profile. */
#define GET_REF(c, map) get_ref((c), (map)->v, (map)->n)
static uint32_t get_ref(struct xp_cur *c, const uint32_t *map, size_t n)
{
	uint64_t v = xp_cur_uleb(c);

	if (v >= n || c->bad) {
		c->bad = true;
		return 0;
	}
	return map[v];
}

/* Notes a number for the record just read. */
#define NOTE(map, id) ({					\
	uint32_t *new_ = xp_vec_push(map);			\
								\
	if (new_)						\
		*new_ = (id);					\
	new_ ? 0 : -ENOMEM;					\
})

static int add_string(struct xp_records *r, struct xp_cur *c)
{
	uint32_t id;
	size_t n;
	const uint8_t *s = xp_cur_str(c, &n);
	int ret;

	if (!s || n > XP_STORE_STRING_MAX)
		return bad(r, "a string is malformed");
	ret = xp_strings_add(&r->p->strings, s, n, &id);
	return ret ? ret : NOTE(&r->strings, id);
}

static int add_dso(struct xp_records *r, struct xp_cur *c)
{
	struct xp_dso_entry d;
	uint32_t id;
	int ret;

	d.path = GET_REF(c, &r->strings);
	d.build_id = GET_REF(c, &r->strings);
	if (c->bad)
		return bad(r, "a file record is malformed");
	ret = xp_profile_add_dso(r->p, &d, &id);
	return ret ? ret : NOTE(&r->dsos, id);
}

static int add_frame(struct xp_records *r, struct xp_cur *c)
{
	struct xp_frame f = { .dso = XP_NO_ID };
	uint64_t dso;
	uint32_t id;
	int ret;

	f.kind = xp_cur_u8(c);
	f.runtime = GET_REF(c, &r->strings);
	f.name = GET_REF(c, &r->strings);
	f.file = GET_REF(c, &r->strings);
	f.line = get_u32(c);
	dso = xp_cur_uleb(c);
	f.addr = xp_cur_uleb(c);
	if (c->bad || f.kind >= XP_FRAME_KINDS || dso > r->dsos.n)
		return bad(r, "a frame is malformed");
	if (dso)
		f.dso = r->dsos.v[dso - 1];
	ret = xp_profile_add_frame(r->p, &f, &id);
	return ret ? ret : NOTE(&r->frames, id);
}

static int add_stack(struct xp_records *r, struct xp_cur *c)
{
	uint64_t back = xp_cur_uleb(c);
	uint32_t frame = GET_REF(c, &r->frames);
	uint32_t parent = XP_NO_ID, depth = 1, id;
	int ret;

	if (c->bad || back > r->stacks.n)
		return bad(r, "a stack is malformed");
	if (back) {
		parent = r->stacks.v[r->stacks.n - back];
		depth += r->depths.v[r->stacks.n - back];
	}
	if (depth > XP_STORE_DEPTH_MAX)
		return bad(r, "a stack is too deep");
	ret = xp_profile_add_stack(r->p, parent, frame, &id);
	if (!ret)
		ret = NOTE(&r->stacks, id);
	return ret ? ret : NOTE(&r->depths, depth);
}

static int add_thread(struct xp_records *r, struct xp_cur *c)
{
	struct xp_thread t;
	uint32_t id;
	int ret;

	t.pid = get_u32(c);
	t.tid = get_u32(c);
	t.comm = GET_REF(c, &r->strings);
	if (c->bad)
		return bad(r, "a thread is malformed");
	ret = xp_profile_add_thread(r->p, &t, &id);
	return ret ? ret : NOTE(&r->threads, id);
}

static int add_sample(struct xp_records *r, struct xp_cur *c, uint8_t tag)
{
	struct xp_sample s = { .weight = 1, .state = XP_STATE_RUNNING };
	uint64_t delta = xp_cur_uleb(c);

	r->time += tag & XP_STORE_SAMPLE_EARLIER ? -delta : delta;
	s.time = r->time * 1000;
	s.thread = GET_REF(c, &r->threads);
	s.stack = GET_REF(c, &r->stacks);
	if (tag & XP_STORE_SAMPLE_WEIGHT)
		s.weight = get_u32(c);
	if (tag & XP_STORE_SAMPLE_STATE)
		s.state = xp_cur_u8(c);
	if (c->bad || r->time > UINT64_MAX / 1000 || !s.weight || s.state >= XP_STATES)
		return bad(r, "a sample is malformed");
	r->samples++;
	return xp_profile_add_sample(r->p, &s);
}

static int add_fact(struct xp_records *r, struct xp_cur *c, uint8_t tag)
{
	struct xp_fact f = { .counter = tag == XP_STORE_COUNTER };
	struct xp_fact *new;

	f.key = GET_REF(c, &r->strings);
	f.value = f.counter ? xp_cur_uleb(c) : GET_REF(c, &r->strings);
	if (c->bad)
		return bad(r, "a meta or counter record is malformed");
	if (r->facts.n >= XP_STORE_FACTS_MAX)
		return bad(r, "too many meta and counter records");
	new = xp_vec_push(&r->facts);
	if (!new)
		return -ENOMEM;
	*new = f;
	return 0;
}

/* Keys and values are text: they end at a NUL. */
static int set_fact(struct xp_records *r, const struct xp_fact *f)
{
	const struct xp_strings *strings = &r->p->strings;
	const char *key = xp_strings_get(strings, f->key).p;

	if (r->p->meta.n + r->p->counters.n >= XP_STORE_FACTS_MAX)
		return bad(r, "too many meta and counter records");
	if (f->counter)
		return xp_profile_set_counter(r->p, key, f->value);
	return xp_profile_set_meta(r->p, key, xp_strings_get(strings, (uint32_t)f->value).p);
}

static int add_record(struct xp_records *r, struct xp_cur *c, uint8_t tag)
{
	const uint8_t flags = XP_STORE_SAMPLE_WEIGHT | XP_STORE_SAMPLE_STATE | XP_STORE_SAMPLE_EARLIER;

	switch (tag) {
	case XP_STORE_STRING:
		return add_string(r, c);
	case XP_STORE_DSO:
		return add_dso(r, c);
	case XP_STORE_FRAME:
		return add_frame(r, c);
	case XP_STORE_STACK:
		return add_stack(r, c);
	case XP_STORE_THREAD:
		return add_thread(r, c);
	case XP_STORE_META:
	case XP_STORE_COUNTER:
		return add_fact(r, c, tag);
	default:
		if (tag & XP_STORE_SAMPLE && !(tag & ~(XP_STORE_SAMPLE | flags)))
			return add_sample(r, c, tag);
		return bad(r, "a record of unknown kind");
	}
}

int xp_records_add(struct xp_records *r, const void *data, size_t n)
{
	struct xp_cur c = xp_cur_of(data, n);
	size_t before = r->p->samples.n;
	int ret = 0;

	xp_vec_clear(&r->facts);
	while (!ret && xp_cur_left(&c)) {
		uint8_t tag = xp_cur_u8(&c);

		ret = add_record(r, &c, tag);
	}
	for (size_t i = 0; !ret && i < r->facts.n; i++)
		ret = set_fact(r, &r->facts.v[i]);
	if (ret)
		r->p->samples.n = before;
	return ret;
}

int xp_records_check_end(struct xp_records *r, const void *data, size_t n)
{
	struct xp_cur c = xp_cur_of(data, n);
	uint64_t strings = xp_cur_uleb(&c), dsos = xp_cur_uleb(&c), frames = xp_cur_uleb(&c);
	uint64_t stacks = xp_cur_uleb(&c), threads = xp_cur_uleb(&c), samples = xp_cur_uleb(&c);

	if (c.bad || xp_cur_left(&c) || strings != r->strings.n || dsos != r->dsos.n ||
	    frames != r->frames.n || stacks != r->stacks.n || threads != r->threads.n ||
	    samples != r->samples)
		return bad(r, "the totals of the end chunk do not agree");
	return 0;
}
