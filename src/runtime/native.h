/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Frames of native code and of the kernel: a place becomes a named frame of the profile, once.
 */
#ifndef XP_RUNTIME_NATIVE_H
#define XP_RUNTIME_NATIVE_H

#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/hash.h"
#include "base/vec.h"
#include "profile/profile.h"
#include "target/dso.h"
#include "target/ksyms.h"

enum xp_place_kind {
	XP_PLACE_DSO,		/* addr: ELF virtual address */
	XP_PLACE_KERNEL,	/* addr: kernel address */
	XP_PLACE_ANON,		/* addr: pc in executable memory without a file: a JIT engine's */
	XP_PLACE_UNKNOWN,	/* addr: pc outside every mapping */
};

struct xp_place {
	struct xp_dso *dso;
	uint64_t addr;
	uint8_t kind;		/* enum xp_place_kind */
	bool exact;		/* addr is an instruction that ran, not a return address */
};

struct xp_native {
	struct xp_profile *profile;
	struct xp_ksyms *ksyms;		/* loaded by a thread of its own, see xp_native_prepare() */
	pthread_t ksyms_loader;
	bool ksyms_loading, ksyms_used;
	uint32_t runtime_native, runtime_kernel;	/* string ids */
	struct xp_map kernel_cache;
	XP_VEC(struct xp_native_dso { struct xp_map cache; uint32_t entry; bool known; }) dsos;
};

int xp_native_init(struct xp_native *n, struct xp_profile *profile);	/* 0 or -ENOMEM */
void xp_native_release(struct xp_native *n);
/*
 * Begins to read the kernel's symbols (some 200,000 lines) in the background, so that the first
 * kernel frame need not wait for it.
 */
void xp_native_prepare(struct xp_native *n);
/* Whether they have been read, so that naming would not wait. */
bool xp_native_ready(struct xp_native *n);
/* The frame of a place. 0 or -ENOMEM. */
int xp_native_frame(struct xp_native *n, const struct xp_place *place, uint32_t *frame);
/* A frame of kind XP_FRAME_MARK with this text. */
int xp_native_mark(struct xp_native *n, const char *text, uint32_t *frame);
/* Kernel symbols were asked for and are hidden (kernel.kptr_restrict) or unreadable. */
bool xp_native_kernel_hidden(const struct xp_native *n);

#endif
