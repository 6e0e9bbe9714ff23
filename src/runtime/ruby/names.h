/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names of Ruby frames, read from the live process and cached.
 *
 * An entry of the cache is what a (code, owner) pair was seen to be, with a check value (of an
 * iseq: its encoded code, size, path, label and first line) that is read again, at most once a
 * batch, before it is believed again: memory is reused.
 */
#ifndef XP_RUNTIME_RUBY_NAMES_H
#define XP_RUNTIME_RUBY_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "bpf/ruby.h"
#include "profile/profile.h"
#include "runtime/ruby/layout.h"
#include "runtime/ruby/object.h"	/* struct xp_ruby_symbols */
#include "target/mem.h"

struct xp_ruby_names;

/* The layout must outlive the names; symbols and mem are copied. 0 or -ENOMEM. */
int xp_ruby_names_new(struct xp_ruby_names **names, const struct xp_ruby_layout *layout,
		      const struct xp_ruby_symbols *symbols, const struct xp_mem *mem);
void xp_ruby_names_free(struct xp_ruby_names *names);
/*
 * As struct xp_runtime's symbolize(). An iseq gives kind normal with its file and the line of pc
 * (0 when pc is not in its code: JIT code does not always store it); a C function kind cfunc
 * without file; a block that is a C function kind internal. A leaf is named as any frame: whether
 * its pc can be believed is told by the pc itself. What cannot be named gives a mark: "[half-pushed
 * frame]", also for a leaf that is not code; "[ruby: process ended before it was named]"; "[unknown
 * ruby frame]".
 */
int xp_ruby_names_frame(struct xp_ruby_names *names, const struct xp_raw_vm_frame *raw, bool leaf,
			uint64_t batch, struct xp_profile *profile, uint32_t *frame);
/* The text of an ID into out (size > 0, safe to print); false: cannot be read. For attach. */
bool xp_ruby_names_id(struct xp_ruby_names *names, uint64_t id, char *out, size_t size);

#endif
