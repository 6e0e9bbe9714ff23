// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ruby objects in another process. What differs between versions is in struct xp_ruby_layout; what
 * is a constant here is the same from Ruby 2.6 to 4.0 (include/ruby/internal/: fl_type.h,
 * core/rbasic.h, core/rstring.h, core/rarray.h, value_type.h; symbol.c for IDs; st.c for tables).
 */
#include "runtime/ruby/object.h"

#include <errno.h>
#include <string.h>

enum { T_CLASS = 2, T_MODULE = 3, T_STRING = 5, T_ARRAY = 7, T_ICLASS = 0x1c, T_MASK = 0x1f };

#define FL_USER1 (1ull << 13)		/* strings: not embedded; arrays: embedded */
#define SLOT 40				/* the smallest object; every object has so many bytes */
#define ID_ENTRY_UNIT 512		/* IDs in one of the arrays of the symbol table */
#define ID_ENTRY_SIZE 2			/* the string and the Symbol of each */
#define ST_ENTRY_WORDS 3		/* hash, key, record */
#define ST_DELETED UINT64_MAX		/* hash of an entry that was removed */
#define ST_ENTRIES_MAX 1024		/* of a class's variables that are looked at */
#define IVAR_NAME_MAX 32		/* bytes of a variable's name that are looked at */
#define CLASS_CHAIN_MAX 16		/* classes visited to find one name */

struct object {
	uint64_t flags, klass, w[3];	/* w: from byte 16 on */
};

_Static_assert(sizeof(struct object) == SLOT, "read in one piece");

static const char *const ivar_names[XP_RUBY_CLASS_IVARS] = {
	[XP_RUBY_CLASSPATH] = "__classpath__",
	[XP_RUBY_TMP_CLASSPATH] = "__tmp_classpath__",
	[XP_RUBY_ATTACHED] = "__attached__",
	[XP_RUBY_REFINED_CLASS] = "__refined_class__",
	[XP_RUBY_DEFINED_AT] = "__defined_at__",
};

static int read_mem(const struct xp_ruby_objects *o, uint64_t addr, void *to, size_t n)
{
	return xp_mem_read(&o->mem, addr, to, n);
}

bool xp_ruby_is_object(uint64_t value)
{
	return value >= 0x1000 && !(value & 7);
}

static int read_object(const struct xp_ruby_objects *o, uint64_t value, struct object *to)
{
	return xp_ruby_is_object(value) ? read_mem(o, value, to, sizeof(*to)) : -EINVAL;
}

static unsigned type_of(const struct object *object)
{
	return object->flags & T_MASK;
}

static int append(const struct xp_ruby_objects *o, uint64_t addr, uint64_t n, struct xp_buf *out)
{
	size_t before = out->len;
	uint8_t piece[1024];

	while (n) {
		size_t m = n < sizeof(piece) ? n : sizeof(piece);
		int r = read_mem(o, addr, piece, m);

		if (r) {
			out->len = before;
			return r;
		}
		xp_buf_put(out, piece, m);
		addr += m;
		n -= m;
	}
	return 0;
}

/* At most max bytes of a string. */
static int put_string(const struct xp_ruby_objects *o, uint64_t string, uint64_t max,
		      struct xp_buf *out)
{
	struct object s;
	int r = read_object(o, string, &s);

	if (r)
		return r;
	if (type_of(&s) != T_STRING)
		return -EINVAL;
	if (s.w[0] < max)
		max = s.w[0];
	if (s.flags & FL_USER1)
		return append(o, s.w[1], max, out);
	if (!o->layout->string_len_in_flags)
		return append(o, string + 24, max, out);
	/* Five bits: up to 31, of which a slot holds 24. */
	r = (s.flags >> 14) & 0x1f;
	if ((size_t)r > sizeof(s.w))
		return -EINVAL;
	xp_buf_put(out, s.w, r);
	return 0;
}

int xp_ruby_string(const struct xp_ruby_objects *o, uint64_t string, struct xp_buf *out)
{
	return put_string(o, string, XP_RUBY_TEXT_MAX, out);
}

int xp_ruby_element(const struct xp_ruby_objects *o, uint64_t array, uint64_t i, uint64_t *value)
{
	struct object a;
	uint64_t n, at;
	int r = read_object(o, array, &a);

	if (r)
		return r;
	if (type_of(&a) != T_ARRAY)
		return -EINVAL;
	if (a.flags & FL_USER1) {
		n = (a.flags >> 15) & o->layout->array_embed_mask;
		at = array + 16;
	} else {
		n = a.w[0];
		at = a.w[2];
	}
	if (i >= n || i >= UINT64_MAX / 8)
		return -EINVAL;
	return read_mem(o, at + 8 * i, value, sizeof(*value));
}

/* At most max bytes of the string of an ID. */
static int put_id(const struct xp_ruby_objects *o, uint64_t id, uint64_t max, struct xp_buf *out)
{
	uint64_t n = id > o->symbols.last_op_id ? id >> o->symbols.shift : id;
	uint64_t ids, unit, string;
	int r = read_mem(o, o->symbols.table + o->layout->symbols_ids, &ids, sizeof(ids));

	if (!r)
		r = xp_ruby_element(o, ids, n / ID_ENTRY_UNIT, &unit);
	if (!r)
		r = xp_ruby_element(o, unit, n % ID_ENTRY_UNIT * ID_ENTRY_SIZE, &string);
	return r ? r : put_string(o, string, max, out);
}

int xp_ruby_id(const struct xp_ruby_objects *o, uint64_t id, struct xp_buf *out)
{
	return put_id(o, id, XP_RUBY_TEXT_MAX, out);
}

/* Learns which of the hidden variables an ID names, if any. */
static void learn_ivar(struct xp_ruby_objects *o, uint64_t id)
{
	struct xp_buf name = XP_BUF_INIT;

	if (!put_id(o, id, IVAR_NAME_MAX, &name) && name.len && !name.failed) {
		for (int i = 0; i < XP_RUBY_CLASS_IVARS; i++) {
			if (name.len == strlen(ivar_names[i]) &&
			    !memcmp(name.data, ivar_names[i], name.len))
				o->ivar_id[i] = id;
		}
	}
	xp_buf_release(&name);
}

static bool ivar_is(struct xp_ruby_objects *o, uint64_t id, enum xp_ruby_class_ivar want)
{
	if (!o->ivar_id[want])
		learn_ivar(o, id);
	return o->ivar_id[want] == id;
}

/* A variable from an st_table of IDs. -EINVAL: it has none of that name. */
static int find_ivar(struct xp_ruby_objects *o, uint64_t table, enum xp_ruby_class_ivar want,
		     uint64_t *value)
{
	const struct xp_ruby_layout *l = o->layout;
	uint64_t entries, start, bound, piece[32][ST_ENTRY_WORDS];
	int r = read_mem(o, table + l->st_entries, &entries, sizeof(entries));

	if (!r)
		r = read_mem(o, table + l->st_start, &start, sizeof(start));
	if (!r)
		r = read_mem(o, table + l->st_bound, &bound, sizeof(bound));
	if (r)
		return r;
	if (bound > ST_ENTRIES_MAX)
		bound = ST_ENTRIES_MAX;
	for (uint64_t i = start; i < bound; i += 32) {
		size_t n = bound - i < 32 ? bound - i : 32;

		r = read_mem(o, entries + i * sizeof(piece[0]), piece, n * sizeof(piece[0]));
		if (r)
			return r;
		for (size_t k = 0; k < n; k++) {
			if (piece[k][0] != ST_DELETED && piece[k][1] &&
			    ivar_is(o, piece[k][1], want)) {
				*value = piece[k][2];
				return 0;
			}
		}
	}
	return -EINVAL;
}

/* Where the extension of a class is: its address in *ext. */
static int find_ext(const struct xp_ruby_objects *o, uint64_t class, uint64_t *ext)
{
	const struct xp_ruby_layout *l = o->layout;

	*ext = class + l->class_ext;
	return l->class_ext_ptr ? read_mem(o, class + l->class_ext_ptr, ext, sizeof(*ext)) : 0;
}

/* One of the hidden values of a class, by the way in which this version keeps it. */
static int class_value(struct xp_ruby_objects *o, uint64_t class, enum xp_ruby_class_ivar want,
		       uint64_t *value)
{
	const struct xp_ruby_layout *l = o->layout;
	uint16_t member = want == XP_RUBY_CLASSPATH ? l->ext_classpath :
			  want == XP_RUBY_ATTACHED ? l->ext_attached : 0;
	uint64_t ext, table;
	int r = find_ext(o, class, &ext);

	if (r)
		return r;
	if (member)
		return read_mem(o, ext + member, value, sizeof(*value));
	if (!l->ext_iv_tbl)
		return -EINVAL;
	r = read_mem(o, ext + l->ext_iv_tbl, &table, sizeof(table));
	if (r)
		return r;
	return xp_ruby_is_object(table) ? find_ivar(o, table, want, value) : -EINVAL;
}

static bool is_singleton(const struct xp_ruby_objects *o, const struct object *class)
{
	return type_of(class) == T_CLASS && (class->flags & o->layout->fl_singleton);
}

/* The permanent or temporary path of a class, if it has one. */
static int put_path(struct xp_ruby_objects *o, uint64_t class, struct xp_buf *out)
{
	uint64_t string;
	int r = class_value(o, class, XP_RUBY_CLASSPATH, &string);

	if (r == -EINVAL)
		r = class_value(o, class, XP_RUBY_TMP_CLASSPATH, &string);
	return r ? r : xp_ruby_string(o, string, out);
}

/* "#<refinement:String@Ours>", as Ruby's inspect has it (eval.c, mod_refine()). */
static int put_refinement(struct xp_ruby_objects *o, uint64_t module, struct xp_buf *out)
{
	size_t before = out->len;
	uint64_t refined, place;
	int r = class_value(o, module, XP_RUBY_REFINED_CLASS, &refined);

	if (!r)
		r = class_value(o, module, XP_RUBY_DEFINED_AT, &place);
	if (r)
		return r;
	xp_buf_put(out, "#<refinement:", 13);
	r = put_path(o, refined, out);
	xp_buf_put(out, "@", 1);
	if (!r)
		r = put_path(o, place, out);
	xp_buf_put(out, ">", 1);
	if (r)
		out->len = before;
	return r;
}

/* The name of a class or module that is no singleton; one without a name by its address. */
static int put_class(struct xp_ruby_objects *o, uint64_t class, unsigned type, struct xp_buf *out,
		     bool *temporary)
{
	size_t before = out->len;
	int r = put_path(o, class, out);

	if (r == -EINVAL && type == T_MODULE)
		r = put_refinement(o, class, out);
	if (!r && out->len > before)
		*temporary = out->len >= before + 2 && !memcmp(out->data + before, "#<", 2);
	if (r == -EINVAL || (!r && out->len == before)) {
		xp_buf_printf(out, "#<%s:0x%016llx>", type == T_MODULE ? "Module" : "Class",
			      (unsigned long long)class);
		*temporary = true;
		r = 0;
	}
	return r;
}

/*
 * "#<Foo>" for an object with a singleton class: the first real class above that one. The member
 * super is there up to 3.4.
 */
static int put_object_of(struct xp_ruby_objects *o, const struct object *singleton,
			 struct xp_buf *out)
{
	struct object class = *singleton;
	uint64_t at = 0;
	bool temporary;
	int r = o->layout->major < 4 ? 0 : -EINVAL;

	for (int i = 0; !r && (is_singleton(o, &class) || type_of(&class) == T_ICLASS); i++) {
		at = class.w[0];
		r = i < CLASS_CHAIN_MAX ? read_object(o, at, &class) : -EINVAL;
	}
	if (!r && type_of(&class) != T_CLASS)
		r = -EINVAL;
	if (r)
		return r;
	xp_buf_put(out, "#<", 2);
	r = put_class(o, at, T_CLASS, out, &temporary);
	xp_buf_put(out, ">", 1);
	return r;
}

/*
 * From a singleton class to what it is attached to, in *at and *object; the singleton class of a
 * singleton class opens a "#<Class:". 1: that is no class, its text is complete.
 */
static int attached(struct xp_ruby_objects *o, uint64_t *at, struct object *object,
		    struct xp_buf *out, unsigned *open)
{
	struct object singleton = *object;
	int r = class_value(o, *at, XP_RUBY_ATTACHED, at);

	if (!r)
		r = read_object(o, *at, object);
	if (r)
		return r;
	if (is_singleton(o, object)) {
		xp_buf_put(out, "#<Class:", 8);
		++*open;
	}
	if (type_of(object) == T_CLASS || type_of(object) == T_MODULE)
		return 0;
	r = put_object_of(o, &singleton, out);
	return r ? r : 1;
}

int xp_ruby_class(struct xp_ruby_objects *o, uint64_t class, struct xp_buf *out,
		  struct xp_ruby_class_kind *kind)
{
	size_t before = out->len;
	unsigned open = 0, steps = 0;
	struct object object;
	int r = read_object(o, class, &object);

	*kind = (struct xp_ruby_class_kind){ false, false };
	while (!r && (type_of(&object) == T_ICLASS || is_singleton(o, &object))) {
		if (++steps > CLASS_CHAIN_MAX) {
			r = -EINVAL;
		} else if (type_of(&object) == T_ICLASS) {
			class = object.klass;
			r = read_object(o, class, &object);
		} else {
			kind->singleton = true;
			r = attached(o, &class, &object, out, &open);
		}
	}
	if (!r && type_of(&object) != T_CLASS && type_of(&object) != T_MODULE)
		r = -EINVAL;
	if (!r)
		r = put_class(o, class, type_of(&object), out, &kind->temporary);
	if (r < 0) {
		out->len = before;
		return r;
	}
	while (open--)
		xp_buf_put(out, ">", 1);
	return 0;
}

int xp_ruby_class_check(const struct xp_ruby_objects *o, uint64_t class, uint64_t check[2])
{
	struct object object;
	int r = read_object(o, class, &object);

	if (r)
		return r;
	check[0] = object.klass << 5 | type_of(&object);
	check[1] = o->layout->class_ext_ptr == 24 ? object.w[1] : 0;
	return 0;
}
