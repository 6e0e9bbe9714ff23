/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Offsets inside Ruby's structures that no exported function's code gives away, by version.
 *
 * Bytes on x86-64 Linux (LP64), measured for each version: from debug information of that release's
 * sources, and proved by live reading of stripped builds. Used only after the live process has
 * confirmed what can be confirmed (attach.c).
 */
#ifndef XP_RUNTIME_RUBY_LAYOUT_H
#define XP_RUNTIME_RUBY_LAYOUT_H

#include <stdbool.h>
#include <stdint.h>

struct xp_ruby_layout {
	uint8_t major, minor;
	/* vm_core.h: rb_execution_context_t, rb_control_frame_t, rb_thread_t, rb_vm_t */
	uint16_t ec_stack_start;	/* machine.stack_start; stack_maxsize lies 16 further */
	uint16_t cfp_size, cfp_jit_return;	/* jit_return 0: none */
	uint16_t thread_ec, thread_id, thread_name;
	uint16_t vm_main_thread;
	/* vm_core.h: rb_iseq_constant_body, reached from iseq + 16 */
	uint16_t body_size, body_encoded, body_pathobj, body_base_label, body_label, body_first_lineno;
	bool first_lineno_is_value;	/* a Fixnum, else a plain int */
	uint16_t body_insns_body, body_insns_positions, body_insns_size, body_insns_succ;
	uint16_t body_parent, body_local;
	uint16_t insn_entry_size;
	/* method.h: me.def, me.owner; def.body, def.original_id */
	uint16_t me_def, me_owner, def_body, def_original_id;
	/* internal/class.h */
	uint16_t class_ext_ptr;		/* offset of the pointer to the extension; 0: class_ext is inline */
	uint16_t class_ext;
	uint16_t ext_iv_tbl;		/* names are instance variables in an st_table; 0: not so */
	uint16_t ext_classpath, ext_attached;	/* members of the extension; 0: not so */
	uint32_t fl_singleton;		/* flag of a singleton class */
	/* st.h */
	uint16_t st_entries, st_start, st_bound;
	/* rstring.h, rarray.h */
	bool string_len_in_flags;	/* embedded strings: length in bits 14 to 18, bytes at + 16 */
	uint16_t array_embed_mask;	/* of the embedded length at bit 15 of the flags */
	/* symbol.c: rb_symbols_t.ids */
	uint16_t symbols_ids;
};

/* By major and minor of the version, or NULL. */
const struct xp_ruby_layout *xp_ruby_layout_of(unsigned major, unsigned minor);

#endif
