/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What a file says about a Ruby, held against a live process that runs it.
 *
 * Only reads, and never stops the process: what changes while it is looked at is looked at again.
 */
#ifndef XP_RUNTIME_RUBY_ATTACH_H
#define XP_RUNTIME_RUBY_ATTACH_H

#include "base/err.h"
#include "bpf/ruby.h"
#include "runtime/ruby/image.h"
#include "runtime/ruby/names.h"
#include "runtime/runtime.h"
#include "target/mem.h"

/*
 * Confirms the image on the main thread of a process where it is loaded at bias (address in the
 * process minus vaddr). DONE: *value is filled; tls_module also where it is not needed, 0 without
 * one. LATER: the VM is still being set up, or has run no Ruby code yet. REFUSED: something is there
 * and is not what it should be. With LATER and REFUSED err says what was missing or wrong.
 */
enum xp_attach xp_ruby_confirm(const struct xp_ruby_image *image, uint64_t bias,
			       const struct xp_mem *mem, struct xp_ruby_names *names,
			       struct xp_ruby *value, struct xp_err *err);

#endif
