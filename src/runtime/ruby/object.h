/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ruby objects in another process: strings, arrays, IDs and the names of classes.
 *
 * Every length read from the process is bounded, every chain has an end. Texts are appended to a
 * buffer as the bytes they are; on failure it is left as it was. Results: 0, -EINVAL (not such an
 * object), or what reading memory gave; running out of memory is kept by the buffer.
 */
#ifndef XP_RUNTIME_RUBY_OBJECT_H
#define XP_RUNTIME_RUBY_OBJECT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "runtime/ruby/layout.h"
#include "target/mem.h"

#define XP_RUBY_TEXT_MAX (64u << 10)	/* bytes of one string that are read; the rest is cut */

struct xp_ruby_symbols {	/* how an ID becomes a string */
	uint64_t table;		/* address of ruby_global_symbols in the process */
	uint32_t last_op_id;
	uint8_t shift;
};

/* The hidden instance variables of classes whose IDs are learnt. */
enum xp_ruby_class_ivar {
	XP_RUBY_CLASSPATH,
	XP_RUBY_TMP_CLASSPATH,
	XP_RUBY_ATTACHED,
	XP_RUBY_REFINED_CLASS,
	XP_RUBY_DEFINED_AT,
	XP_RUBY_CLASS_IVARS
};

struct xp_ruby_objects {
	struct xp_mem mem;
	const struct xp_ruby_layout *layout;
	struct xp_ruby_symbols symbols;
	uint64_t ivar_id[XP_RUBY_CLASS_IVARS];	/* 0: not seen yet; an ID is never used again */
};

struct xp_ruby_class_kind {
	bool singleton;		/* its methods are called on the named class or object itself */
	bool temporary;		/* it has no permanent name (yet): "#<Class:0x000055d0c0ffee00>" */
};

/* Whether a VALUE can be the address of an object: not nil, a small integer or the like. */
bool xp_ruby_is_object(uint64_t value);
int xp_ruby_string(const struct xp_ruby_objects *o, uint64_t string, struct xp_buf *out);
/* An element; -EINVAL when there are fewer. */
int xp_ruby_element(const struct xp_ruby_objects *o, uint64_t array, uint64_t i, uint64_t *value);
int xp_ruby_id(const struct xp_ruby_objects *o, uint64_t id, struct xp_buf *out);
/*
 * The name of a class as the owner of methods. A singleton class is named by what it is attached
 * to: a class or module by its name, another object as "#<Its::Class>".
 */
int xp_ruby_class(struct xp_ruby_objects *o, uint64_t class, struct xp_buf *out,
		  struct xp_ruby_class_kind *kind);
/* The words of a class that change when its address is used by another one. */
int xp_ruby_class_check(const struct xp_ruby_objects *o, uint64_t class, uint64_t check[2]);

#endif
