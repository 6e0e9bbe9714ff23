/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The runtimes by their number, made from bpf/runtimes.h.
 */
#include "runtime/runtime.h"

#define XP_RUNTIME_EXTERN(id, name) extern const struct xp_runtime xp_runtime_##name;
XP_RUNTIMES(XP_RUNTIME_EXTERN)

#define XP_RUNTIME_ENTRY(id, name) [XP_RUNTIME_##id] = &xp_runtime_##name,
const struct xp_runtime *const xp_runtimes[XP_RUNTIMES_N] = { XP_RUNTIMES(XP_RUNTIME_ENTRY) };
