/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Steps of the tests of collect/targets, each checked.
 */
#ifndef XP_TEST_TARGETS_STEPS_H
#define XP_TEST_TARGETS_STEPS_H

#include <unistd.h>

#include "collect_fixture.h"

#define GHOST 5000000		/* above the kernel's limit of 2^22: nobody has it */
#define SECOND 1000000000ull
#define HIGH 0x7e0000000000ull		/* where nothing is mapped */

static inline int setup(void **state)
{
	*state = fixture_new(4096);
	return 0;
}

static inline int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static inline struct xp_target *attach_self(struct fixture *f, uint64_t now)
{
	struct xp_target *t;

	assert_int_equal(xp_targets_attach(&f->targets, getpid(), now, NULL), 0);
	t = xp_targets_find(&f->targets, getpid());
	assert_non_null(t);
	return t;
}

static inline void apply(struct fixture *f, struct xp_event e, const char *text)
{
	assert_int_equal(xp_targets_event(&f->targets, &e, text), 0);
}

static inline void settle(struct fixture *f, uint64_t now)
{
	assert_int_equal(xp_targets_settle(&f->targets, now), 0);
}

/* A target without mappings, published: as our own child that waits. */
static inline struct xp_target *add_ghost(struct fixture *f, pid_t pid)
{
	struct xp_target *t;

	assert_int_equal(xp_targets_add_child(&f->targets, pid, NULL), 0);
	t = xp_targets_find(&f->targets, pid);
	assert_non_null(t);
	t->before_exec = false;
	return t;
}

static inline void expect_name(struct fixture *f, pid_t pid, pid_t tid, const char *comm)
{
	const struct xp_thread *thread;
	uint32_t id;

	assert_int_equal(xp_targets_thread(&f->targets, pid, tid, &id), 0);
	thread = &f->profile.threads.v[id];
	assert_int_equal(thread->pid, pid);
	assert_int_equal(thread->tid, tid);
	assert_string_equal(xp_strings_get(&f->profile.strings, thread->comm).p, comm);
}

#endif
