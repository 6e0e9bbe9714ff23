/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/targets: mappings through time, generations, shared ranges and who gives them back, names.
 *
 * GHOST and the pids after it are above the kernel's limit of 2^22: nobody has them.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "collect_fixture.h"
#include "target/proc.h"

#define GHOST 5000000
#define SECOND 1000000000ull
#define HIGH 0x7e0000000000ull		/* where nothing is mapped */

static int setup(void **state)
{
	*state = fixture_new(4096);
	return 0;
}

static int teardown(void **state)
{
	fixture_free(*state);
	return 0;
}

static struct xp_target *attach_self(struct fixture *f, uint64_t now)
{
	struct xp_target *t;

	assert_int_equal(xp_targets_attach(&f->targets, getpid(), now, NULL), 0);
	t = xp_targets_find(&f->targets, getpid());
	assert_non_null(t);
	return t;
}

static void apply(struct fixture *f, struct xp_event e, const char *text)
{
	assert_int_equal(xp_targets_event(&f->targets, &e, text), 0);
}

static void settle(struct fixture *f, uint64_t now)
{
	assert_int_equal(xp_targets_settle(&f->targets, now), 0);
}

/* A target without mappings, published: as our own child that waits. */
static struct xp_target *add_ghost(struct fixture *f, pid_t pid)
{
	struct xp_target *t;

	assert_int_equal(xp_targets_add_child(&f->targets, pid, NULL), 0);
	t = xp_targets_find(&f->targets, pid);
	assert_non_null(t);
	t->before_exec = false;
	return t;
}

static void expect_name(struct fixture *f, pid_t pid, pid_t tid, const char *comm)
{
	const struct xp_thread *thread;
	uint32_t id;

	assert_int_equal(xp_targets_thread(&f->targets, pid, tid, &id), 0);
	thread = &f->profile.threads.v[id];
	assert_int_equal(thread->pid, pid);
	assert_int_equal(thread->tid, tid);
	assert_string_equal(xp_strings_get(&f->profile.strings, thread->comm).p, comm);
}

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

static void replaced_code_makes_older_generations_invalid(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, 100);

	apply(f, mmap_of(200, getpid(), HIGH, 0x3000, 12), "/nowhere/lib.so");
	settle(f, 300);
	assert_int_equal(t->min_generation, 0);
	apply(f, mmap_of(400, getpid(), HIGH + 0x2000, 0x3000, 13), "/nowhere/other.so");
	assert_int_equal(t->min_generation, 3);
	settle(f, 500);
	assert_int_equal(last_put(f, getpid()).generation, 3);
	assert_int_equal(xp_maps_find(&t->process.maps, HIGH + 0x1fff)->ino, 12);
	assert_int_equal(xp_maps_find(&t->process.maps, HIGH + 0x2000)->ino, 13);
	/* A JIT engine's memory where a file was, and a file where that was. */
	apply(f, mmap_of(600, getpid(), HIGH, 0x1000, 0), "//anon");
	assert_int_equal(t->min_generation, 4);
	settle(f, 700);
	apply(f, mmap_of(800, getpid(), HIGH, 0x1000, 14), "/nowhere/lib.so");
	assert_int_equal(t->min_generation, 5);
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
	assert_int_equal(f->targets.retired.n, 1);
	assert_int_equal(f->tables.range_spans.used, used + n + 1);
	settle(f, 1000 + SECOND - 1);
	assert_int_equal(f->targets.retired.n, 1);
	settle(f, 1000 + SECOND);
	assert_int_equal(f->targets.retired.n, 0);
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

static void *sleep_long(void *arg)
{
	pause();
	return arg;
}

/* A child that is ready to be looked at when this returns. */
static pid_t start_child(bool thread)
{
	int fds[2];
	char c = 0;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		pthread_t t;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		prctl(PR_SET_NAME, "odd) (name", 0, 0, 0);
		if (thread && pthread_create(&t, NULL, sleep_long, NULL))
			_exit(1);
		if (write(fds[1], &c, 1) != 1)
			_exit(1);
		if (thread)
			pthread_exit(NULL);
		pause();
		_exit(0);
	}
	close(fds[1]);
	assert_int_equal(read(fds[0], &c, 1), 1);
	close(fds[0]);
	return pid;
}

static void end_child(pid_t pid)
{
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void wait_for_state(pid_t pid, char state)
{
	struct xp_proc_info info;

	for (int i = 0; i < 1000; i++) {
		if (!xp_proc_read(&info, pid, NULL) && info.state == state)
			return;
		usleep(5000);
	}
	fail_msg("process %d did not reach state %c", (int)pid, state);
}

static void the_gone_are_found(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_child(false);

	assert_int_equal(xp_targets_attach(&f->targets, pid, 100, NULL), 0);
	expect_name(f, pid, pid, "odd) (name");
	xp_targets_sweep(&f->targets);
	assert_int_equal(xp_targets_alive(&f->targets), 1);
	kill(pid, SIGKILL);
	wait_for_state(pid, 'Z');
	xp_targets_sweep(&f->targets);
	assert_int_equal(xp_targets_alive(&f->targets), 0);
	settle(f, 200);
	assert_true(was_removed(f, pid));
	end_child(pid);
	add_ghost(f, GHOST);
	xp_targets_sweep(&f->targets);
	assert_int_equal(xp_targets_alive(&f->targets), 0);
}

/* main() has ended by pthread_exit(): a zombie by its state, but its threads run. */
static void a_process_without_its_first_thread_lives(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_child(true);

	wait_for_state(pid, 'Z');
	add_ghost(f, pid);
	xp_targets_sweep(&f->targets);
	assert_int_equal(xp_targets_alive(&f->targets), 1);
	kill(pid, SIGKILL);
	for (int i = 0; i < 1000 && xp_targets_alive(&f->targets); i++) {
		usleep(5000);
		xp_targets_sweep(&f->targets);
	}
	assert_int_equal(xp_targets_alive(&f->targets), 0);
	end_child(pid);
}

static void names_are_inherited_and_changed(void **state)
{
	struct fixture *f = *state;
	struct xp_event e;

	add_ghost(f, GHOST);
	expect_name(f, GHOST, GHOST, "");
	apply(f, event_of(XP_EVENT_COMM, 1, GHOST), "server");
	expect_name(f, GHOST, GHOST, "server");
	e = fork_of(2, GHOST, GHOST);		/* a thread */
	e.tid = GHOST + 1;
	apply(f, e, "");
	expect_name(f, GHOST, GHOST + 1, "server");
	e = event_of(XP_EVENT_COMM, 3, GHOST);
	e.tid = GHOST + 1;
	apply(f, e, "worker");
	expect_name(f, GHOST, GHOST + 1, "worker");
	expect_name(f, GHOST, GHOST, "server");
	assert_string_equal(xp_targets_find(&f->targets, GHOST)->process.comm, "server");
	e = fork_of(4, GHOST, GHOST + 2);	/* a process, made by the worker */
	e.ptid = GHOST + 1;
	apply(f, e, "");
	expect_name(f, GHOST + 2, GHOST + 2, "worker");
	/* A thread we never heard of has the process's name. */
	expect_name(f, GHOST, GHOST + 9, "server");
	expect_name(f, GHOST + 7, GHOST + 7, "?");
	/* Longer than the kernel's 15 bytes: cut where it is kept, harmless. */
	apply(f, event_of(XP_EVENT_COMM, 5, GHOST), "a name that is much too long");
	assert_string_equal(xp_targets_find(&f->targets, GHOST)->process.comm, "a name that is ");
	/* Old samples keep the old name: it is another thread of the profile. */
	assert_true(f->profile.threads.n >= 6);
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
	assert_int_equal(f->targets.retired.n, 0);
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
		TEST(replaced_code_makes_older_generations_invalid),
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
		TEST(the_gone_are_found),
		TEST(a_process_without_its_first_thread_lives),
		TEST(names_are_inherited_and_changed),
		TEST(our_own_child_before_its_exec),
		TEST(a_full_process_table_is_no_failure),
		TEST(no_room_for_ranges),
		TEST(no_room_for_a_while),
		TEST(many_processes),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
