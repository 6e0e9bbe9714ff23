// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Offsets inside Ruby's structures, one row for each version that was read on live processes.
 */
#include "runtime/ruby/layout.h"

#include <stddef.h>

static const struct xp_ruby_layout layouts[] = {
	{
		.major = 3, .minor = 1,
		.ec_stack_start = 144,
		.cfp_size = 64, .cfp_jit_return = 56,
		.thread_ec = 40, .thread_id = 80, .thread_name = 352,
		.vm_main_thread = 40,
		.body_size = 4, .body_encoded = 8, .body_pathobj = 64, .body_base_label = 72,
		.body_label = 80, .body_first_lineno = 88,
		.first_lineno_is_value = true,
		.body_insns_body = 120, .body_insns_positions = 128, .body_insns_size = 136,
		.body_insns_succ = 144,
		.body_parent = 168, .body_local = 176,
		.insn_entry_size = 12,
		.me_def = 16, .me_owner = 32, .def_body = 8, .def_original_id = 32,
		.class_ext_ptr = 24, .ext_iv_tbl = 8,
		.fl_singleton = 1u << 12,
		.st_entries = 48, .st_start = 32, .st_bound = 40,
		.string_len_in_flags = true,
		.array_embed_mask = 3,
		.symbols_ids = 16,
	},
};

const struct xp_ruby_layout *xp_ruby_layout_of(unsigned major, unsigned minor)
{
	for (size_t i = 0; i < sizeof(layouts) / sizeof(layouts[0]); i++) {
		if (layouts[i].major == major && layouts[i].minor == minor)
			return &layouts[i];
	}
	return NULL;
}
