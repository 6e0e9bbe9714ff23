/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What one file that holds a Ruby VM tells by its exported functions' machine code.
 */
#ifndef XP_RUNTIME_RUBY_IMAGE_H
#define XP_RUNTIME_RUBY_IMAGE_H

#include <stdint.h>

#include "base/err.h"
#include "runtime/ruby/layout.h"
#include "target/dso.h"

enum xp_ruby_ec_access {
	XP_RUBY_EC_DYNAMIC,	/* TLS module in the GOT word at slot, offset in the module's block */
	XP_RUBY_EC_INITIAL,	/* initial-exec: offset from the thread pointer in that word */
	XP_RUBY_EC_LOCAL,	/* local-exec: offset from the thread pointer */
};

struct xp_ruby_image {
	char version[16];			/* "3.1.2" */
	const struct xp_ruby_layout *layout;
	enum xp_ruby_ec_access ec_access;
	uint64_t ec_slot;			/* vaddr */
	int64_t ec_offset;			/* added to what the slot gives */
	uint16_t ec_thread, thread_self;	/* offsets, from rb_thread_current() */
	uint64_t vm_ptr;			/* vaddr of the pointer to the VM, from rb_during_gc() */
	uint32_t vm_objspace, objspace_flags;
	uint8_t gc_bit;
	uint64_t symbols;			/* vaddr of ruby_global_symbols, from rb_id2str() */
	uint32_t last_op_id;
	uint8_t id_shift;
	uint64_t core[2];			/* vm_exec_core, [start, end), vaddrs */
	uint64_t vm_exec[4];			/* up to two ranges; unused 0, 0 */
	char how[256];				/* for describe(): which step found what */
};

/*
 * 1: a Ruby, *image is filled; 0: not a Ruby (no exported ruby_version). -ENOTSUP with the failing
 * step in err: a Ruby that cannot be used. -ENOMEM.
 */
int xp_ruby_image_read(struct xp_ruby_image *image, struct xp_dso *dso, struct xp_err *err);

#endif
