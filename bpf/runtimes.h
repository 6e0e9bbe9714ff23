/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtimes, one line each: what the kernel side and src/runtime/ both number.
 *
 * XP_RUNTIME(id, name): XP_RUNTIME_<id> in the enum, "name" in files and reports, and the table
 * xp_runtime_<name> of src/runtime/.
 */
#ifndef XP_BPF_RUNTIMES_H
#define XP_BPF_RUNTIMES_H

#define XP_RUNTIMES(XP_RUNTIME) \
	XP_RUNTIME(NATIVE, native) \
	XP_RUNTIME(RUBY, ruby)

#define XP_RUNTIME_ENUM(id, name) XP_RUNTIME_##id,
enum xp_runtime_id { XP_RUNTIMES(XP_RUNTIME_ENUM) XP_RUNTIMES_N };
#undef XP_RUNTIME_ENUM

#endif
