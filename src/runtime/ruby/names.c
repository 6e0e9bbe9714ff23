// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The cache of named frames. A hit that was verified in this batch is one lookup in a hash and one
 * binary search for the row of the line; everything else reads the process.
 */
#include "runtime/ruby/names.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "runtime/ruby/iseq.h"
#include "runtime/ruby/lines.h"

#define ENTRIES_MAX 200000u
#define ROWS_MAX (16u << 20)	/* of line tables, all entries together: 192 MiB */
#define BELIEVED_BATCHES 20	/* an entry is used so long without its memory being readable */

#define NO_ENTRY UINT32_MAX

struct pair {			/* what an entry is of */
	uint64_t key, code, owner;
	bool cfunc;		/* code is a method's definition, else the body of an iseq */
};

struct entry {
	struct pair pair;
	uint64_t verified, tried;	/* batches */
	uint32_t name, file;		/* string ids */
	uint32_t bare;			/* frame without line, XP_NO_ID: not made yet */
	uint32_t *frames;		/* by row of lines; owned */
	struct xp_ruby_lines lines;
	bool used, temporary;
	union {				/* the check value */
		struct xp_ruby_iseq iseq;
		uint64_t words[3];	/* a C function's ID and its owner's */
	};
};

struct xp_ruby_names {
	struct xp_ruby_objects objects;
	struct xp_map by_key;
	XP_VEC(struct entry) entries;
	XP_VEC(uint32_t) unused;	/* indexes of free entries */
	size_t rows;
	struct xp_buf text;
	const struct xp_profile *profile;	/* what all ids belong to */
	uint32_t runtime;		/* string id */
};

int xp_ruby_names_new(struct xp_ruby_names **names, const struct xp_ruby_layout *layout,
		      const struct xp_ruby_symbols *symbols, const struct xp_mem *mem)
{
	struct xp_ruby_names *n = calloc(1, sizeof(*n));

	if (!n)
		return -ENOMEM;
	n->objects = (struct xp_ruby_objects){
		.mem = *mem,
		.layout = layout,
		.symbols = *symbols,
	};
	*names = n;
	return 0;
}

static void forget(struct xp_ruby_names *n, uint32_t i)
{
	struct entry *e = &n->entries.v[i];

	xp_map_remove(&n->by_key, e->pair.key);
	n->rows -= e->lines.n;
	xp_ruby_lines_release(&e->lines);
	free(e->frames);
	*e = (struct entry){ .used = false };
	/* Room was made when the entry was. */
	n->unused.v[n->unused.n++] = i;
}

static void forget_all(struct xp_ruby_names *n)
{
	for (uint32_t i = 0; i < n->entries.n; i++) {
		if (n->entries.v[i].used)
			forget(n, i);
	}
}

void xp_ruby_names_free(struct xp_ruby_names *n)
{
	if (!n)
		return;
	forget_all(n);
	xp_map_release(&n->by_key);
	xp_vec_release(&n->entries);
	xp_vec_release(&n->unused);
	xp_buf_release(&n->text);
	free(n);
}

bool xp_ruby_names_id(struct xp_ruby_names *n, uint64_t id, char *out, size_t size)
{
	bool ok;

	xp_buf_clear(&n->text);
	ok = !xp_ruby_id(&n->objects, id, &n->text) && !n->text.failed;
	xp_text_safe_copy(out, size, n->text.data, ok ? n->text.len : 0);
	return ok;
}

static int compare_batches(const void *a, const void *b)
{
	uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;

	return x < y ? -1 : x > y;
}

/* Drops a quarter of the entries: those verified longest ago. */
static int drop_oldest(struct xp_ruby_names *n)
{
	size_t used = 0, drop;
	uint64_t *batches = malloc(n->entries.n * sizeof(*batches)), limit;

	if (!batches)
		return -ENOMEM;
	for (size_t i = 0; i < n->entries.n; i++) {
		if (n->entries.v[i].used)
			batches[used++] = n->entries.v[i].verified;
	}
	qsort(batches, used, sizeof(*batches), compare_batches);
	drop = used / 4 + 1;
	limit = batches[drop - 1];
	free(batches);
	for (uint32_t i = 0; drop && i < n->entries.n; i++) {
		if (n->entries.v[i].used && n->entries.v[i].verified <= limit) {
			forget(n, i);
			drop--;
		}
	}
	return 0;
}

/* The index of a zeroed entry, or NO_ENTRY when out of memory. */
static uint32_t take_entry(struct xp_ruby_names *n)
{
	if (n->entries.n - n->unused.n >= ENTRIES_MAX && drop_oldest(n))
		return NO_ENTRY;
	if (n->unused.n)
		return n->unused.v[--n->unused.n];
	if (xp_vec_reserve(&n->unused, n->entries.n + 1) || !xp_vec_push(&n->entries))
		return NO_ENTRY;
	return n->entries.n - 1;
}

/* The key of a pair. That two pairs share one is told by the entry's own code and owner. */
static uint64_t key_of(uint64_t code, uint64_t owner, bool cfunc)
{
	return xp_hash_u64(code ^ (uint64_t)cfunc << 63) ^ xp_hash_u64(owner + 1) << 1;
}

/* A name is what was read, cut; never nothing. */
static int intern_text(struct xp_ruby_names *n, struct xp_profile *profile, const char *none,
		       uint32_t *id)
{
	size_t len = n->text.len < XP_RUBY_TEXT_MAX ? n->text.len : XP_RUBY_TEXT_MAX;

	if (n->text.failed)
		return -ENOMEM;
	return len ? xp_strings_add(&profile->strings, n->text.data, len, id) :
		     xp_strings_addz(&profile->strings, none, id);
}

static int name_iseq(struct xp_ruby_names *n, struct entry *e, struct xp_profile *profile)
{
	struct xp_ruby_objects *o = &n->objects;
	struct xp_ruby_iseq again;
	int r = xp_ruby_iseq_read(o, e->pair.code, &e->iseq);

	if (r)
		return r;
	xp_buf_clear(&n->text);
	r = xp_ruby_iseq_path(o, &e->iseq, &n->text);
	if (!r)
		r = intern_text(n, profile, "", &e->file);
	if (r)
		return r;
	xp_buf_clear(&n->text);
	r = xp_ruby_iseq_label(o, &e->iseq, e->pair.owner, &n->text, &e->temporary);
	if (!r)
		r = intern_text(n, profile, "[no name]", &e->name);
	if (r)
		return r;
	/* A table that cannot be read costs the lines, not the name. */
	if (xp_ruby_lines_read(&e->lines, &o->mem, &e->iseq.insns) == -ENOMEM)
		return -ENOMEM;
	/* All of it belongs together only if the iseq is still there. */
	r = xp_ruby_iseq_read(o, e->pair.code, &again);
	if (!r && !xp_ruby_iseq_same(&e->iseq, &again))
		r = -EAGAIN;
	return r;
}

/* words: the ID of the method, then what tells its owner from another class. */
static int read_cfunc(const struct xp_ruby_objects *o, uint64_t definition, uint64_t owner,
		      uint64_t words[3])
{
	int r = xp_mem_read(&o->mem, definition + o->layout->def_original_id, &words[0],
			    sizeof(words[0]));

	words[1] = words[2] = 0;
	return r || !owner ? r : xp_ruby_class_check(o, owner, &words[1]);
}

static int name_cfunc(struct xp_ruby_names *n, struct entry *e, struct xp_profile *profile)
{
	struct xp_ruby_objects *o = &n->objects;
	uint64_t again[3];
	int r = e->pair.code ? read_cfunc(o, e->pair.code, e->pair.owner, e->words) : -EINVAL;

	if (r)
		return r;
	xp_buf_clear(&n->text);
	xp_ruby_put_owner(o, e->pair.owner, &n->text, &e->temporary);
	r = xp_ruby_id(o, e->words[0], &n->text);
	if (!r)
		r = intern_text(n, profile, "[no name]", &e->name);
	if (!r)
		r = read_cfunc(o, e->pair.code, e->pair.owner, again);
	if (!r && memcmp(again, e->words, sizeof(again)))
		r = -EAGAIN;
	return r;
}

static int make_rows(struct xp_ruby_names *n, struct entry *e)
{
	e->bare = XP_NO_ID;
	if (!e->lines.n)
		return 0;
	e->frames = malloc(e->lines.n * sizeof(*e->frames));
	if (!e->frames)
		return -ENOMEM;
	memset(e->frames, 0xff, e->lines.n * sizeof(*e->frames));
	n->rows += e->lines.n;
	return 0;
}

/* Reads a pair anew; its entry's index in *index. */
static int add_entry(struct xp_ruby_names *n, const struct pair *pair, struct xp_profile *profile,
		     uint64_t batch, uint32_t *index)
{
	struct entry e = { .pair = *pair };
	int r = e.pair.cfunc ? name_cfunc(n, &e, profile) : name_iseq(n, &e, profile);

	while (!r && n->rows + e.lines.n > ROWS_MAX && n->rows)
		r = drop_oldest(n);
	*index = r ? NO_ENTRY : take_entry(n);
	if (!r && *index == NO_ENTRY)
		r = -ENOMEM;
	if (!r)
		r = make_rows(n, &e);
	if (r) {
		xp_ruby_lines_release(&e.lines);
		if (*index != NO_ENTRY)
			n->unused.v[n->unused.n++] = *index;
		return r;
	}
	e.used = true;
	e.verified = e.tried = batch;
	n->entries.v[*index] = e;
	r = xp_map_set(&n->by_key, e.pair.key, *index);
	if (r)
		forget(n, *index);
	return r;
}

/* Whether a class without a permanent name is still called what it was. */
static bool same_name(struct xp_ruby_names *n, const struct entry *e)
{
	struct xp_str known = xp_strings_get(&n->profile->strings, e->name);
	bool temporary;
	int r;

	xp_buf_clear(&n->text);
	if (e->pair.cfunc) {
		xp_ruby_put_owner(&n->objects, e->pair.owner, &n->text, &temporary);
		r = xp_ruby_id(&n->objects, e->words[0], &n->text);
	} else {
		r = xp_ruby_iseq_label(&n->objects, &e->iseq, e->pair.owner, &n->text, &temporary);
	}
	if (n->text.len > XP_RUBY_TEXT_MAX)
		n->text.len = XP_RUBY_TEXT_MAX;
	return !r && !n->text.failed && n->text.len == known.n &&
	       !memcmp(n->text.data, known.p, known.n);
}

/* Whether an entry still stands for its pair, in this batch. */
static bool verify(struct xp_ruby_names *n, struct entry *e, uint64_t batch)
{
	struct xp_ruby_iseq iseq;
	uint64_t words[3];
	bool same;
	int r;

	if (e->tried == batch)
		return e->verified == batch || batch - e->verified <= BELIEVED_BATCHES;
	e->tried = batch;
	if (e->pair.cfunc) {
		r = read_cfunc(&n->objects, e->pair.code, e->pair.owner, words);
		same = !r && !memcmp(words, e->words, sizeof(words));
	} else {
		r = xp_ruby_iseq_read(&n->objects, e->pair.code, &iseq);
		same = !r && xp_ruby_iseq_same(&iseq, &e->iseq);
	}
	if (r && r != -EINVAL)
		return batch - e->verified <= BELIEVED_BATCHES;
	if (!same || (e->temporary && !same_name(n, e)))
		return false;
	e->verified = batch;
	return true;
}

static bool same_pair(const struct pair *a, const struct pair *b)
{
	return a->code == b->code && a->owner == b->owner && a->cfunc == b->cfunc;
}

/* The entry of a pair, from the cache or read; *index. */
static int find_entry(struct xp_ruby_names *n, const struct pair *pair, uint64_t batch,
		      struct xp_profile *profile, uint32_t *index)
{
	uint64_t *known = xp_map_get(&n->by_key, pair->key);
	struct entry *e;

	if (known) {
		e = &n->entries.v[*known];
		if (same_pair(&e->pair, pair) &&
		    (e->verified == batch || verify(n, e, batch))) {
			*index = *known;
			return 0;
		}
		forget(n, *known);
	}
	return add_entry(n, pair, profile, batch, index);
}

/* The row of a frame's line, XP_RUBY_NO_ROW when its pc is not in the code. */
static uint32_t row_of(const struct entry *e, uint64_t pc)
{
	uint64_t position = (pc - e->iseq.encoded) / 8;

	if (e->pair.cfunc || pc < e->iseq.encoded || pc & 7 || position > e->iseq.insns.code_size)
		return XP_RUBY_NO_ROW;
	/* pc is behind the running instruction, but for a frame that was only just pushed. */
	return xp_ruby_lines_row(&e->lines, position ? position - 1 : 0);
}

static int entry_frame(struct xp_ruby_names *n, struct entry *e, uint64_t pc,
		       struct xp_profile *profile, uint32_t *frame)
{
	uint32_t row = row_of(e, pc), *known = row == XP_RUBY_NO_ROW ? &e->bare : &e->frames[row];
	int r = 0;

	if (*known == XP_NO_ID) {
		struct xp_frame f = {
			.runtime = n->runtime,
			.name = e->name,
			.file = e->file,
			.line = row == XP_RUBY_NO_ROW ? 0 : e->lines.lines[row],
			.dso = XP_NO_ID,
			.kind = e->pair.cfunc ? XP_FRAME_CFUNC : XP_FRAME_NORMAL,
		};

		r = xp_profile_add_frame(profile, &f, known);
	}
	*frame = *known;
	return r;
}

static int plain_frame(struct xp_ruby_names *n, const char *name, enum xp_frame_kind kind,
		       struct xp_profile *profile, uint32_t *frame)
{
	struct xp_frame f = { .runtime = n->runtime, .dso = XP_NO_ID, .kind = kind };
	int r = xp_strings_addz(&profile->strings, name, &f.name);

	return r ? r : xp_profile_add_frame(profile, &f, frame);
}

/* All ids belong to one profile; a new one begins with an empty cache. */
static int use_profile(struct xp_ruby_names *n, struct xp_profile *profile)
{
	int r;

	if (n->profile == profile)
		return 0;
	forget_all(n);
	n->profile = NULL;
	r = xp_strings_addz(&profile->strings, "ruby", &n->runtime);
	if (!r)
		n->profile = profile;
	return r;
}

int xp_ruby_names_frame(struct xp_ruby_names *n, const struct xp_raw_vm_frame *raw, bool leaf,
			uint64_t batch, struct xp_profile *profile, uint32_t *frame)
{
	unsigned flags = raw->code_flags >> 48, kind = flags & XP_RUBY_KIND_MASK;
	struct pair pair = {
		.code = raw->code_flags << 16 >> 16,
		.owner = raw->owner,
		.cfunc = kind == XP_RUBY_CFUNC,
	};
	uint32_t index;
	int r = use_profile(n, profile);

	*frame = XP_NO_ID;
	if (r || kind == XP_RUBY_DUMMY)
		return r;
	if (flags & XP_RUBY_TORN)
		return plain_frame(n, "[half-pushed frame]", XP_FRAME_MARK, profile, frame);
	if (kind == XP_RUBY_IFUNC)
		return plain_frame(n, "[C block]", XP_FRAME_INTERNAL, profile, frame);
	pair.key = key_of(pair.code, pair.owner, pair.cfunc);
	r = kind && kind < XP_RUBY_DUMMY ? find_entry(n, &pair, batch, profile, &index) : -EINVAL;
	if (!r)
		return entry_frame(n, &n->entries.v[index], raw->pc, profile, frame);
	if (r == -ENOMEM)
		return r;
	if (r == -ESRCH)
		return plain_frame(n, "[ruby: process ended before it was named]", XP_FRAME_MARK,
				   profile, frame);
	/* JIT code makes a frame the current one before it has set its iseq and method entry. */
	if (leaf && !(flags & XP_RUBY_EP_CUT))
		return plain_frame(n, "[half-pushed frame]", XP_FRAME_MARK, profile, frame);
	if (pair.cfunc && !pair.code)
		return plain_frame(n, "[unknown C function]", XP_FRAME_CFUNC, profile, frame);
	return plain_frame(n, "[unknown ruby frame]", XP_FRAME_MARK, profile, frame);
}
