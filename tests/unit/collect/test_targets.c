/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/targets: mappings through time, generations, shared ranges and who gives them back.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <sys/mman.h>
#include <unistd.h>

#include "targets_steps.h"

static void attaching_publishes_the_mappings(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	const struct xp_range *r = published(f, getpid(), (uintptr_t)attach_self);
	const struct xp_mapping *m = xp_maps_find(&t->process.maps, (uintptr_t)attach_self);
	struct xp_proc proc = last_put(f, getpid());

	assert_int_equal(f->puts.n, 1);
	assert_int_equal(proc.generation, 1);
	assert_int_equal(proc.count, t->process.maps.list.n);
	for (uint32_t i = 1; i < proc.count; i++)
		assert_true(f->memory.ranges[proc.first + i - 1].end <=
			    f->memory.ranges[proc.first + i].start);
	assert_non_null(m);
	assert_non_null(r);
	assert_int_equal(r->start, m->start);
	assert_int_equal(r->end, m->end);
	assert_true(r->npages > 0);
	assert_non_null(published(f, getpid(), (uintptr_t)malloc));
	assert_null(published(f, getpid(), (uintptr_t)f));
	for (size_t i = 0; i < t->process.maps.list.n; i++)
		assert_true(t->process.maps.list.v[i].exec);
	assert_int_equal(t->since, 100);
	assert_int_equal(t->min_generation, 0);
	assert_int_equal(f->targets.seen, 1);
	assert_int_equal(xp_targets_alive(&f->targets), 1);
	/* Again: it is one already. */
	assert_int_equal(xp_targets_attach(&f->targets, getpid(), 200, NULL), 0);
	assert_int_equal(f->puts.n, 1);
	settle(f, 200);
	assert_int_equal(f->puts.n, 1);
}

static void attaching_to_nobody_fails(void **state)
{
	struct fixture *f = *state;
	struct xp_err err = XP_ERR_INIT;

	assert_int_equal(xp_targets_attach(&f->targets, GHOST, 1, &err), -ESRCH);
	assert_non_null(strstr(err.what, "5000000"));
	assert_int_equal(xp_targets_alive(&f->targets), 0);
	assert_int_equal(f->puts.n, 0);
	settle(f, 2);
	assert_null(xp_targets_find(&f->targets, GHOST));
}

/* More code, where there was none: what was walked before is still right. */
static void an_added_mapping_keeps_older_generations(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	size_t n = t->process.maps.list.n;

	apply(f, mmap_of(200, getpid(), HIGH, 0x3000, 12), "/nowhere/lib.so");
	assert_int_equal(f->puts.n, 1);
	settle(f, 300);
	assert_int_equal(f->puts.n, 2);
	assert_int_equal(last_put(f, getpid()).count, n + 1);
	assert_int_equal(last_put(f, getpid()).generation, 2);
	assert_int_equal(t->min_generation, 0);
	assert_non_null(published(f, getpid(), HIGH + 0x2fff));
	assert_null(published(f, getpid(), HIGH + 0x3000));
	assert_int_equal(published(f, getpid(), HIGH)->npages, 0);
	/* The same once more changes nothing. */
	apply(f, mmap_of(400, getpid(), HIGH, 0x3000, 12), "/nowhere/lib.so");
	settle(f, 500);
	assert_int_equal(f->puts.n, 2);
	/* Memory of a JIT engine beside it, and over itself, is no replaced code. */
	apply(f, mmap_of(600, getpid(), HIGH + 0x3000, 0x1000, 0), "//anon");
	apply(f, mmap_of(600, getpid(), HIGH + 0x3000, 0x2000, 0), "//anon");
	settle(f, 700);
	assert_int_equal(t->min_generation, 0);
	assert_int_equal(last_put(f, getpid()).count, n + 2);
	assert_string_equal(xp_maps_find(&t->process.maps, HIGH + 0x3000)->path, "");
	assert_null(xp_maps_find(&t->process.maps, HIGH + 0x3000)->user);
}

static bool trusts(const struct xp_target *t, uint32_t generation, uint64_t pc)
{
	struct xp_raw_frame frames[3] = { { 0x1000, 0 }, { pc, 0 }, { 0x2000, 0 } };

	return xp_target_trusts(t, generation, frames, 3);
}

static void replaced_code_makes_samples_there_invalid(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);

	apply(f, mmap_of(200, getpid(), HIGH, 0x3000, 12), "/nowhere/lib.so");
	settle(f, 300);
	assert_true(trusts(t, 1, HIGH));
	apply(f, mmap_of(400, getpid(), HIGH + 0x2000, 0x3000, 13), "/nowhere/other.so");
	assert_int_equal(t->min_generation, 0);
	settle(f, 500);
	assert_int_equal(last_put(f, getpid()).generation, 3);
	assert_int_equal(xp_maps_find(&t->process.maps, HIGH + 0x1fff)->ino, 12);
	assert_int_equal(xp_maps_find(&t->process.maps, HIGH + 0x2000)->ino, 13);
	for (uint32_t old = 0; old < 3; old++) {
		assert_true(trusts(t, old, HIGH + 0x1fff));
		assert_false(trusts(t, old, HIGH + 0x2000));
		assert_false(trusts(t, old, HIGH + 0x5000));	/* behind its last call */
		assert_true(trusts(t, old, HIGH + 0x5001));
		assert_true(xp_target_trusts(t, old, NULL, 0));
	}
	assert_true(trusts(t, 3, HIGH + 0x2000));
	/* A JIT engine's memory where a file was, and a file where that was. */
	apply(f, mmap_of(600, getpid(), HIGH, 0x1000, 0), "//anon");
	assert_false(trusts(t, 3, HIGH + 0xfff));
	assert_true(trusts(t, 4, HIGH + 0xfff));
	assert_true(trusts(t, 3, HIGH + 0x2000));
	settle(f, 700);
	apply(f, mmap_of(800, getpid(), HIGH, 0x1000, 14), "/nowhere/lib.so");
	assert_false(trusts(t, 4, HIGH));
	assert_true(trusts(t, 5, HIGH));
	assert_int_equal(t->replaced.n, 2);
	/* A child inherits what is not to be believed, an exec makes it pointless. */
	apply(f, fork_of(900, getpid(), GHOST), "");
	assert_false(trusts(xp_targets_find(&f->targets, GHOST), 4, HIGH));
	apply(f, event_of(XP_EVENT_EXEC, 1000, getpid()), "x");
	assert_int_equal(t->replaced.n, 0);
	assert_false(trusts(t, 4, 0x1000));
}

/* More places than are remembered: the oldest one's generation is what all samples must have. */
static void many_places_of_replaced_code(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);

	for (uint64_t i = 0; i < XP_REPLACED_MAX + 2; i++)
		apply(f, mmap_of(200, getpid(), HIGH + 0x10000 * i, 0x1000, 12), "/nowhere/a.so");
	for (uint64_t i = 0; i < XP_REPLACED_MAX + 2; i++) {
		settle(f, 300 + i);
		apply(f, mmap_of(400 + i, getpid(), HIGH + 0x10000 * i, 0x1000, 13),
		      "/nowhere/b.so");
	}
	assert_int_equal(t->replaced.n, XP_REPLACED_MAX);
	assert_int_equal(t->min_generation, 4);	/* of the second */
	assert_false(trusts(t, 3, 0x1000));
	assert_true(trusts(t, 4, 0x1000));
	assert_false(trusts(t, 4, HIGH + 0x20000));
	/* The same place again and again takes one place; one over all takes all. */
	for (int i = 0; i < 50; i++) {
		apply(f, mmap_of(500, getpid(), HIGH + 0x20000, 0x1000, 100 + i), "/nowhere/c.so");
		settle(f, 500);
	}
	assert_int_equal(t->min_generation, 4);
	assert_int_equal(t->replaced.n, XP_REPLACED_MAX);
	apply(f, mmap_of(600, getpid(), HIGH, 0x1000000, 12), "/nowhere/d.so");
	assert_int_equal(t->replaced.n, 1);
	assert_false(trusts(t, t->set->generation, HIGH + 0x800000));
	assert_true(trusts(t, t->set->generation + 1, HIGH + 0x800000));
}

static void odd_mappings_are_passed_over(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	size_t n = t->process.maps.list.n;

	apply(f, mmap_of(99, getpid(), HIGH, 0x1000, 12), "/known/before");
	apply(f, mmap_of(200, getpid(), HIGH, 0, 12), "/empty");
	apply(f, mmap_of(200, getpid(), UINT64_MAX - 0xfff, 0x2000, 12), "/wraps");
	apply(f, mmap_of(200, getpid(), HIGH, UINT64_MAX, 12), "/wraps/too");
	apply(f, mmap_of(200, GHOST, HIGH, 0x1000, 12), "/not/ours");
	apply(f, event_of(XP_EVENT_EXEC, 200, GHOST), "other");
	apply(f, fork_of(200, GHOST, GHOST + 1), "");
	assert_int_equal(t->process.maps.list.n, n);
	settle(f, 300);
	assert_int_equal(f->puts.n, 1);
	assert_int_equal(f->targets.list.n, 1);
	apply(f, mmap_of(200, getpid(), HIGH, 0x1000, 12), "/gone/lib.so (deleted)");
	assert_true(xp_maps_find(&t->process.maps, HIGH)->deleted);
	assert_string_equal(xp_maps_find(&t->process.maps, HIGH)->path, "/gone/lib.so");
	apply(f, mmap_of(200, getpid(), HIGH + 0x1000, 0x1000, 12), "");
	assert_string_equal(xp_maps_find(&t->process.maps, HIGH + 0x1000)->path, "");
}

static void exec_makes_older_generations_invalid(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);

	apply(f, event_of(XP_EVENT_EXEC, 200, getpid()), "new-image");
	assert_int_equal(t->process.maps.list.n, 0);
	assert_int_equal(t->min_generation, 2);
	apply(f, mmap_of(201, getpid(), HIGH, 0x1000, 12), "/nowhere/program");
	settle(f, 300);
	assert_int_equal(last_put(f, getpid()).generation, 2);
	assert_int_equal(last_put(f, getpid()).count, 1);
	assert_string_equal(t->process.comm, "new-image");
	expect_name(f, getpid(), getpid(), "new-image");
}

/* The mappings were read after the exec: the event, told late, must not empty them. */
static void an_exec_before_the_mappings_were_read_is_known(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	size_t n = t->process.maps.list.n;

	apply(f, event_of(XP_EVENT_EXEC, 50, getpid()), "by-exec");
	apply(f, mmap_of(51, getpid(), HIGH, 0x1000, 12), "/nowhere/program");
	settle(f, 200);
	assert_int_equal(t->process.maps.list.n, n);
	assert_int_equal(t->min_generation, 0);
	assert_int_equal(last_put(f, getpid()).count, n);
	expect_name(f, getpid(), getpid(), "by-exec");
}

/* Both were attached, then the fork is told. */
static void a_fork_before_the_child_was_attached_is_known(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	size_t n = t->process.maps.list.n;

	add_ghost(f, GHOST);
	apply(f, fork_of(50, GHOST, getpid()), "");
	assert_ptr_equal(xp_targets_find(&f->targets, getpid()), t);
	assert_int_equal(t->process.maps.list.n, n);
	assert_false(t->exited);
	assert_int_equal(f->targets.list.n, 2);
}

static void children_share_ranges(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100), *child;
	uint32_t used = f->tables.range_spans.used, n = last_put(f, getpid()).count;
	struct xp_proc proc;

	apply(f, fork_of(200, getpid(), GHOST), "");
	child = xp_targets_find(&f->targets, GHOST);
	assert_non_null(child);
	assert_ptr_equal(child->set, t->set);
	assert_int_equal(t->set->refs, 2);
	proc = last_put(f, GHOST);
	assert_int_equal(proc.first, last_put(f, getpid()).first);
	assert_int_equal(proc.count, n);
	assert_int_equal(proc.generation, 1);
	assert_int_equal(child->process.maps.list.n, n);
	assert_ptr_not_equal(child->process.maps.list.v[0].path, t->process.maps.list.v[0].path);
	settle(f, 300);
	assert_int_equal(f->tables.range_spans.used, used);
	/* The child maps something: from now on it has ranges of its own. */
	apply(f, mmap_of(400, GHOST, HIGH, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 500);
	assert_ptr_not_equal(child->set, t->set);
	assert_int_equal(t->set->refs, 1);
	assert_int_equal(f->tables.range_spans.used, used + n + 1);
	assert_int_equal(last_put(f, GHOST).generation, 2);
	assert_int_equal(last_put(f, getpid()).generation, 1);
	assert_null(published(f, getpid(), HIGH));
	/* A grandchild of the child, whose parent goes first. */
	apply(f, fork_of(600, GHOST, GHOST + 1), "");
	xp_targets_exited(&f->targets, GHOST);
	settle(f, 700);
	settle(f, 700 + 2 * SECOND);
	assert_int_equal(f->tables.range_spans.used, used + n + 1);
	assert_non_null(published(f, GHOST + 1, HIGH));
	xp_targets_exited(&f->targets, GHOST + 1);
	settle(f, 700 + 3 * SECOND);
	settle(f, 700 + 5 * SECOND);
	assert_int_equal(f->tables.range_spans.used, used);
	assert_int_equal(f->targets.seen, 3);
	assert_int_equal(xp_targets_alive(&f->targets), 1);
}

/* What the parent has mapped but not published is the child's as well. */
static void children_of_a_changed_parent(void **state)
{
	struct fixture *f = *state;
	size_t puts;

	attach_self(f, 100);
	apply(f, mmap_of(200, getpid(), HIGH, 0x1000, 12), "/nowhere/lib.so");
	puts = f->puts.n;
	apply(f, fork_of(300, getpid(), GHOST), "");
	assert_int_equal(f->puts.n, puts);
	settle(f, 400);
	assert_non_null(published(f, GHOST, HIGH));
	assert_non_null(published(f, getpid(), HIGH));
	assert_ptr_not_equal(xp_targets_find(&f->targets, GHOST)->set,
			     xp_targets_find(&f->targets, getpid())->set);
	/* An exec that the parent did is one for the child's older samples too. */
	apply(f, event_of(XP_EVENT_EXEC, 500, getpid()), "x");
	apply(f, fork_of(600, getpid(), GHOST + 1), "");
	assert_int_equal(xp_targets_find(&f->targets, GHOST + 1)->min_generation,
			 xp_targets_find(&f->targets, getpid())->min_generation);
}

static void children_are_followed_only_when_asked(void **state)
{
	struct fixture *f = *state;

	f->targets.follow_children = false;
	attach_self(f, 100);
	apply(f, fork_of(200, getpid(), GHOST), "");
	assert_null(xp_targets_find(&f->targets, GHOST));
	assert_int_equal(f->puts.n, 1);
}

/* Walkers may still read ranges that were replaced: they are given back a second later. */
static void replaced_ranges_are_given_back_later(void **state)
{
	struct fixture *f = *state;
	uint32_t used, n;

	attach_self(f, 100);
	used = f->tables.range_spans.used;
	n = last_put(f, getpid()).count;
	apply(f, mmap_of(200, getpid(), HIGH, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 1000);
	assert_int_equal(f->targets.sets.retired.n, 1);
	assert_int_equal(f->tables.range_spans.used, used + n + 1);
	settle(f, 1000 + SECOND - 1);
	assert_int_equal(f->targets.sets.retired.n, 1);
	settle(f, 1000 + SECOND);
	assert_int_equal(f->targets.sets.retired.n, 0);
	assert_int_equal(f->tables.range_spans.used, used + 1);
}

static void the_exited_are_forgotten(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t;

	add_ghost(f, GHOST);
	xp_targets_exited(&f->targets, GHOST);
	assert_int_equal(xp_targets_alive(&f->targets), 0);
	/* Until then its last samples are still placed. */
	assert_non_null(xp_targets_find(&f->targets, GHOST));
	apply(f, mmap_of(200, GHOST, HIGH, 0x1000, 12), "/late");
	assert_int_equal(xp_targets_find(&f->targets, GHOST)->process.maps.list.n, 0);
	settle(f, 300);
	assert_null(xp_targets_find(&f->targets, GHOST));
	assert_true(was_removed(f, GHOST));
	xp_targets_exited(&f->targets, GHOST);		/* nobody any more */
	/* A pid that is used again before we have forgotten the first. */
	add_ghost(f, GHOST + 1);
	add_ghost(f, GHOST + 2);
	xp_targets_exited(&f->targets, GHOST + 2);
	apply(f, fork_of(400, GHOST + 1, GHOST + 2), "");
	t = xp_targets_find(&f->targets, GHOST + 2);
	assert_false(t->exited);
	settle(f, 500);
	assert_false(was_removed(f, GHOST + 2));
	assert_ptr_equal(xp_targets_find(&f->targets, GHOST + 2), t);
	assert_int_equal(xp_targets_alive(&f->targets), 2);
	assert_int_equal(f->targets.list.n, 2);
}

static void lost_events_are_made_good(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);
	void *code;

	add_ghost(f, GHOST);		/* gone meanwhile: no error */
	code = mmap(NULL, 8192, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_ptr_not_equal(code, MAP_FAILED);
	assert_null(published(f, getpid(), (uintptr_t)code));
	assert_int_equal(xp_targets_resync(&f->targets, 500), 0);
	assert_int_equal(t->since, 500);
	assert_int_equal(t->min_generation, 3);
	settle(f, 600);
	assert_non_null(published(f, getpid(), (uintptr_t)code));
	assert_true(last_put(f, getpid()).generation >= t->min_generation);
	munmap(code, 8192);
	assert_int_equal(xp_targets_resync(&f->targets, 700), 0);
	settle(f, 800);
	assert_null(published(f, getpid(), (uintptr_t)code));
}

static void our_own_child_before_its_exec(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t;

	assert_int_equal(xp_targets_add_child(&f->targets, GHOST, NULL), 0);
	t = xp_targets_find(&f->targets, GHOST);
	assert_true(t->before_exec);
	assert_int_equal(last_put(f, GHOST).count, 0);
	assert_int_equal(last_put(f, GHOST).generation, 1);
	apply(f, fork_of(1, GHOST, GHOST + 1), "");
	assert_true(xp_targets_find(&f->targets, GHOST + 1)->before_exec);
	apply(f, event_of(XP_EVENT_EXEC, 2, GHOST), "program");
	assert_false(t->before_exec);
	assert_true(xp_targets_find(&f->targets, GHOST + 1)->before_exec);
}

static void a_full_process_table_is_no_failure(void **state)
{
	struct fixture *f = *state;

	f->put_result = -E2BIG;
	attach_self(f, 100);
	apply(f, fork_of(200, getpid(), GHOST), "");
	apply(f, mmap_of(200, GHOST, HIGH, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 300);
	f->put_result = -EPERM;
	apply(f, mmap_of(400, GHOST, HIGH, 0x2000, 12), "/nowhere/lib.so");
	assert_int_equal(xp_targets_settle(&f->targets, 500), -EPERM);
}

static void no_room_for_ranges(void **state)
{
	struct fixture *f = fixture_new(2);	/* fewer than any process has */

	(void)state;
	attach_self(f, 100);
	assert_true(f->tables.full);
	assert_int_equal(last_put(f, getpid()).count, 0);
	apply(f, event_of(XP_EVENT_EXEC, 200, getpid()), "small");
	apply(f, mmap_of(201, getpid(), HIGH, 0x1000, 12), "/nowhere/program");
	settle(f, 300);
	assert_int_equal(last_put(f, getpid()).count, 1);
	assert_non_null(published(f, getpid(), HIGH));
	fixture_free(f);
}

/* Changes follow each other faster than replaced ranges come back. */
static void no_room_for_a_while(void **state)
{
	struct fixture *f = fixture_new(10);

	(void)state;
	add_ghost(f, GHOST);
	for (uint64_t i = 0; i < 6; i++)
		apply(f, mmap_of(1, GHOST, HIGH + 0x2000 * i, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 10);
	assert_int_equal(last_put(f, GHOST).count, 6);
	apply(f, event_of(XP_EVENT_EXEC, 20, GHOST), "x");
	for (uint64_t i = 0; i < 3; i++)
		apply(f, mmap_of(20, GHOST, HIGH + 0x2000 * i, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 20);
	assert_int_equal(last_put(f, GHOST).count, 3);
	/* Four do not fit: the three stay, for they are right. */
	apply(f, mmap_of(30, GHOST, HIGH + 0xa000, 0x1000, 12), "/nowhere/lib.so");
	settle(f, 30);
	settle(f, 40);
	assert_int_equal(last_put(f, GHOST).count, 3);
	assert_non_null(published(f, GHOST, HIGH));
	assert_true(f->tables.full);
	settle(f, 20 + 2 * SECOND);
	settle(f, 21 + 2 * SECOND);
	assert_int_equal(last_put(f, GHOST).count, 4);
	assert_non_null(published(f, GHOST, HIGH + 0xa000));
	/* Ranges of another image are of no use: better none until there is room. */
	apply(f, event_of(XP_EVENT_EXEC, 3 * SECOND, GHOST), "x");
	for (uint64_t i = 0; i < 8; i++)
		apply(f, mmap_of(3 * SECOND, GHOST, HIGH + 0x2000 * i, 0x1000, 13), "/nowhere/x");
	settle(f, 3 * SECOND);
	assert_int_equal(last_put(f, GHOST).count, 0);
	settle(f, 5 * SECOND);
	settle(f, 5 * SECOND + 1);
	assert_int_equal(last_put(f, GHOST).count, 8);
	fixture_free(f);
}

/* Thousands of processes come and go: nothing is kept of them. */
static void many_processes(void **state)
{
	struct fixture *f = *state;
	uint32_t used;

	attach_self(f, 0);
	used = f->tables.range_spans.used;
	for (int i = 0; i < 3000; i++) {
		uint64_t now = (uint64_t)i * SECOND / 50;

		apply(f, fork_of(now, i % 3 ? getpid() : GHOST + i - 1, GHOST + i), "");
		if (i % 2)
			apply(f, mmap_of(now, GHOST + i, HIGH, 0x1000, 12), "/nowhere/lib.so");
		if (i % 5 == 0)
			apply(f, event_of(XP_EVENT_EXEC, now, GHOST + i), "x");
		if (i)
			xp_targets_exited(&f->targets, GHOST + i - 1);
		settle(f, now);
	}
	xp_targets_exited(&f->targets, GHOST + 2999);
	settle(f, 100 * SECOND);
	settle(f, 102 * SECOND);
	assert_int_equal(f->tables.range_spans.used, used);
	assert_int_equal(f->targets.list.n, 1);
	assert_int_equal(f->targets.sets.retired.n, 0);
	assert_int_equal(f->targets.by_pid.n, 1);
	assert_false(f->tables.full);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(attaching_publishes_the_mappings),
		TEST(attaching_to_nobody_fails),
		TEST(an_added_mapping_keeps_older_generations),
		TEST(replaced_code_makes_samples_there_invalid),
		TEST(many_places_of_replaced_code),
		TEST(odd_mappings_are_passed_over),
		TEST(exec_makes_older_generations_invalid),
		TEST(an_exec_before_the_mappings_were_read_is_known),
		TEST(a_fork_before_the_child_was_attached_is_known),
		TEST(children_share_ranges),
		TEST(children_of_a_changed_parent),
		TEST(children_are_followed_only_when_asked),
		TEST(replaced_ranges_are_given_back_later),
		TEST(the_exited_are_forgotten),
		TEST(lost_events_are_made_good),
		TEST(our_own_child_before_its_exec),
		TEST(a_full_process_table_is_no_failure),
		TEST(no_room_for_ranges),
		TEST(no_room_for_a_while),
		TEST(many_processes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
