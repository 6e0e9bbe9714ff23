/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A profile: plain data, what one sample file holds. No I/O.
 *
 * Tables are append-only with dense ids counted up from 0, and an entry refers only to entries that
 * were there before it, so a writer that keeps one watermark per table can append what is new.
 * Every add function interns: equal content gives the same id.
 */
#ifndef XP_PROFILE_PROFILE_H
#define XP_PROFILE_PROFILE_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/intern.h"
#include "base/vec.h"

#define XP_NO_ID UINT32_MAX

enum xp_frame_kind {
	XP_FRAME_NORMAL,
	XP_FRAME_CFUNC,
	XP_FRAME_BUILTIN,
	XP_FRAME_JIT,
	XP_FRAME_INLINE,
	XP_FRAME_KERNEL,
	XP_FRAME_GC,
	XP_FRAME_INTERNAL,
	XP_FRAME_MARK,		/* not code: says what is missing, e.g. "[truncated: stack unreadable]" */
	XP_FRAME_KINDS
};
const char *xp_frame_kind_name(enum xp_frame_kind kind);

struct xp_dso_entry {		/* a file that code came from */
	uint32_t path;		/* string id */
	uint32_t build_id;	/* string id, lower-case hex; 0: none */
};

struct xp_frame {
	uint32_t runtime;	/* string id: "native", "kernel", "ruby", ... */
	uint32_t name;		/* string id: what a reader sees; 0 only when not even bounds are known */
	uint32_t file;		/* string id: source file; 0: unknown */
	uint32_t line;		/* 0: unknown */
	uint32_t dso;		/* dso id, XP_NO_ID: none */
	uint8_t kind;		/* enum xp_frame_kind */
	uint64_t addr;		/* ELF virtual address in the dso, or kernel address; 0: none */
};

struct xp_stack {		/* node of the trie: the frame and the node of its caller */
	uint32_t parent;	/* stack id, XP_NO_ID: this frame is a root */
	uint32_t frame;
};

struct xp_thread {
	uint32_t pid, tid;
	uint32_t comm;		/* string id */
};

enum xp_state { XP_STATE_RUNNING, XP_STATES };

struct xp_sample {
	uint64_t time;		/* ns, CLOCK_MONOTONIC */
	uint32_t thread;	/* thread id in this profile */
	uint32_t stack;		/* stack id of the leaf */
	uint32_t weight;	/* periods; 1 */
	uint8_t state;		/* enum xp_state */
};

struct xp_counter_entry { uint32_t key; uint64_t value; };	/* key: string id */
struct xp_meta_entry { uint32_t key, value; };			/* string ids */

struct xp_profile {
	struct xp_strings strings;
	XP_VEC(struct xp_dso_entry) dsos;
	XP_VEC(struct xp_frame) frames;
	XP_VEC(struct xp_stack) stacks;
	XP_VEC(struct xp_thread) threads;
	XP_VEC(struct xp_sample) samples;
	XP_VEC(struct xp_meta_entry) meta;		/* e.g. "hostname", "event", "frequency" */
	XP_VEC(struct xp_counter_entry) counters;	/* e.g. "samples", "lost", "end.complete" */
	struct xp_index dso_index, frame_index, stack_index, thread_index;
};

int xp_profile_init(struct xp_profile *p);		/* 0 or -ENOMEM */
void xp_profile_release(struct xp_profile *p);
/* Each: 0 or -ENOMEM, the id in *id. -EINVAL when it refers to what is not there. */
int xp_profile_add_dso(struct xp_profile *p, const struct xp_dso_entry *d, uint32_t *id);
int xp_profile_add_frame(struct xp_profile *p, const struct xp_frame *f, uint32_t *id);
int xp_profile_add_stack(struct xp_profile *p, uint32_t parent, uint32_t frame, uint32_t *id);
int xp_profile_add_thread(struct xp_profile *p, const struct xp_thread *t, uint32_t *id);
int xp_profile_add_sample(struct xp_profile *p, const struct xp_sample *s);	/* weight 0: -EINVAL */
/* Last value wins; keys and values are NUL-terminated text. */
int xp_profile_set_meta(struct xp_profile *p, const char *key, const char *value);
const char *xp_profile_meta(const struct xp_profile *p, const char *key);	/* NULL: not there */
int xp_profile_set_counter(struct xp_profile *p, const char *key, uint64_t value);
uint64_t xp_profile_counter(const struct xp_profile *p, const char *key);	/* 0: not there */

#endif
