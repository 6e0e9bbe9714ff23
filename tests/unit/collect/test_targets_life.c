/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/targets: who lives, and what its threads are called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "target/proc.h"
#include "targets_steps.h"

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

static struct xp_event thread_event(enum xp_event_type type, uint64_t time, pid_t pid, pid_t tid)
{
	struct xp_event e = type == XP_EVENT_FORK ? fork_of(time, pid, pid)
						  : event_of(type, time, pid);

	e.tid = tid;
	return e;
}

/* Threads that no sample has met leave nothing behind, however many there are. */
static void threads_come_and_go(void **state)
{
	struct fixture *f = *state;
	struct xp_thread_names *names = &f->targets.threads;
	char comm[32];

	add_ghost(f, GHOST);
	apply(f, event_of(XP_EVENT_COMM, 1, GHOST), "server");
	for (uint64_t i = 1; i <= 100000; i++) {
		uint64_t now = i * SECOND / 10000;

		apply(f, thread_event(XP_EVENT_FORK, now, GHOST, GHOST + 1 + i), "");
		snprintf(comm, sizeof(comm), "worker %u", (unsigned)i);
		apply(f, thread_event(XP_EVENT_COMM, now, GHOST, GHOST + 1 + i), comm);
		apply(f, thread_event(XP_EVENT_EXIT, now, GHOST, GHOST + 1 + i), "");
		if (i % 100 == 0)
			settle(f, now);
	}
	assert_int_equal(f->profile.threads.n, 0);
	assert_true(f->profile.strings.list.n < 10);
	assert_true(names->list.n < 3000);
	/* It is sampled to its very end, and a little after. */
	expect_name(f, GHOST, GHOST + 100001, "worker 100000");
	settle(f, 11 * SECOND);
	assert_int_equal(names->ends.n, 0);
	assert_int_equal(names->index.n, 2);		/* the first thread, and its process */
	expect_name(f, GHOST, GHOST, "server");
	assert_int_equal(f->profile.threads.n, 2);
	xp_targets_exited(&f->targets, GHOST);
	settle(f, 12 * SECOND);
	assert_int_equal(names->index.n, 0);
}

static void renaming_costs_nothing(void **state)
{
	struct fixture *f = *state;
	char comm[32];
	uint32_t id;

	add_ghost(f, GHOST);
	for (unsigned i = 0; i < 100000; i++) {
		snprintf(comm, sizeof(comm), "name %u", i);
		apply(f, event_of(XP_EVENT_COMM, i, GHOST), comm);
	}
	assert_int_equal(f->profile.threads.n, 0);
	expect_name(f, GHOST, GHOST, "name 99999");
	for (unsigned i = 0; i < 100; i++)
		assert_int_equal(xp_targets_thread(&f->targets, GHOST, GHOST, &id), 0);
	assert_int_equal(f->profile.threads.n, 1);
	assert_int_equal(f->targets.threads.index.n, 2);
}

/* A tid that is used again within the time an ended one is kept. */
static void a_tid_is_used_again(void **state)
{
	struct fixture *f = *state;

	add_ghost(f, GHOST);
	apply(f, thread_event(XP_EVENT_FORK, 1, GHOST, GHOST + 1), "");
	apply(f, thread_event(XP_EVENT_COMM, 1, GHOST, GHOST + 1), "old");
	apply(f, thread_event(XP_EVENT_EXIT, 2, GHOST, GHOST + 1), "");
	apply(f, thread_event(XP_EVENT_FORK, 3, GHOST, GHOST + 1), "");
	apply(f, thread_event(XP_EVENT_COMM, 3, GHOST, GHOST + 1), "new");
	apply(f, thread_event(XP_EVENT_EXIT, 4, GHOST, GHOST + 7), "");	/* not known */
	settle(f, SECOND);
	expect_name(f, GHOST, GHOST + 1, "new");
}

/* The ends were lost: who is not in /proc goes when there are far too many. */
static void lost_ends_of_threads(void **state)
{
	struct fixture *f = *state;
	struct xp_thread_names *names = &f->targets.threads;

	attach_self(f, 100);
	add_ghost(f, GHOST);
	for (unsigned i = 0; i < 20000; i++)
		apply(f, thread_event(XP_EVENT_FORK, 200, GHOST, GHOST + 1 + i), "");
	assert_true(names->index.n > 20000);
	settle(f, 300);
	assert_int_equal(names->index.n, 2);		/* our own thread */
	assert_null(xp_map_get(&names->index, (uint64_t)GHOST << 32));
	for (unsigned i = 0; i < 20000; i++)
		apply(f, thread_event(XP_EVENT_FORK, 400, GHOST, GHOST + 1 + i), "");
	assert_int_equal(names->list.n, 20001);
}

static uint64_t monotonic(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return (uint64_t)t.tv_sec * SECOND + (uint64_t)t.tv_nsec;
}

static void pids_are_used_again(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_child(false);
	struct xp_target *t;

	/* Its fork was long ago: another process has the pid by now. */
	add_ghost(f, GHOST);
	apply(f, fork_of(1, GHOST, pid), "");
	f->targets.sweep = 1;
	assert_int_equal(xp_targets_alive(&f->targets), 2);
	xp_targets_sweep(&f->targets);
	assert_true(xp_targets_find(&f->targets, pid)->exited);
	settle(f, 2);
	/* Its fork was just now. */
	add_ghost(f, GHOST);
	apply(f, fork_of(monotonic(), GHOST, pid), "");
	t = xp_targets_find(&f->targets, pid);
	xp_targets_sweep(&f->targets);
	assert_false(t->exited);
	assert_true(t->life.start_time > 0);
	/* The end of an earlier one is not its own. */
	xp_targets_ended(&f->targets, pid, t->life.created - 1);
	assert_false(t->exited);
	t->life.start_time--;
	xp_targets_sweep(&f->targets);
	assert_true(t->exited);
	/* A sample of it, though the one we knew has exited: the pid's new owner. */
	assert_int_equal(xp_targets_adopt(&f->targets, pid, t->life.created + 1), 0);
	assert_ptr_not_equal(xp_targets_find(&f->targets, pid), t);
	t = xp_targets_find(&f->targets, pid);
	assert_false(t->exited);
	settle(f, monotonic());
	assert_ptr_equal(xp_targets_find(&f->targets, pid), t);
	/* One that comes late, and is of the same process. */
	xp_targets_ended(&f->targets, pid, t->life.created);
	assert_true(t->exited);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, t->life.created + 2), 0);
	assert_ptr_equal(xp_targets_find(&f->targets, pid), t);
	xp_targets_ended(&f->targets, GHOST + 5, 1);	/* nobody */
	end_child(pid);
}

static void zombies_are_not_adopted(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_child(false);

	kill(pid, SIGKILL);
	wait_for_state(pid, 'Z');
	assert_int_equal(xp_targets_adopt(&f->targets, pid, 100), 0);
	assert_null(xp_targets_find(&f->targets, pid));
	assert_int_equal(f->targets.seen, 0);
	end_child(pid);
	/* Who was refused is not looked at again for a second. */
	f->targets.refused = getpid();
	assert_int_equal(xp_targets_adopt(&f->targets, getpid(), 100 + SECOND - 1), 0);
	assert_null(xp_targets_find(&f->targets, getpid()));
	assert_int_equal(xp_targets_adopt(&f->targets, getpid(), 100 + SECOND), 0);
	assert_non_null(xp_targets_find(&f->targets, getpid()));
}

/* Our own child runs its program, but the event of its exec never came. */
static void a_lost_exec(void **state)
{
	struct fixture *f = *state;
	pid_t pid = start_child(false);
	const uint64_t ms = SECOND / 1000;
	struct xp_target *t;

	assert_int_equal(xp_targets_add_child(&f->targets, pid, NULL), 0);
	t = xp_targets_find(&f->targets, pid);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, SECOND), 0);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, 2 * SECOND), 0);
	assert_int_equal(xp_targets_resync(&f->targets, 2 * SECOND), 0);
	assert_true(t->before_exec);
	xp_targets_released(&f->targets, pid);
	xp_targets_released(&f->targets, GHOST);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, 3 * SECOND), 0);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, 3 * SECOND + 99 * ms), 0);
	assert_true(t->before_exec);
	assert_int_equal(xp_targets_adopt(&f->targets, pid, 3 * SECOND + 100 * ms), 0);
	assert_false(t->before_exec);
	assert_true(t->process.maps.list.n > 0);
	assert_int_equal(t->min_generation, f->targets.sets.generation + 1);
	settle(f, 4 * SECOND);
	assert_non_null(published(f, pid, (uintptr_t)a_lost_exec));
	expect_name(f, pid, pid, "odd) (name");
	/* Or other losses are noticed first. */
	xp_targets_exited(&f->targets, pid);
	settle(f, 5 * SECOND);
	assert_int_equal(xp_targets_add_child(&f->targets, pid, NULL), 0);
	xp_targets_released(&f->targets, pid);
	assert_int_equal(xp_targets_resync(&f->targets, 6 * SECOND), 0);
	t = xp_targets_find(&f->targets, pid);
	assert_false(t->before_exec);
	assert_true(t->process.maps.list.n > 0);
	end_child(pid);
}

/* A copy of this program, and the event of its code being mapped. */
static struct xp_event map_copy(const char *path, uint64_t time)
{
	struct xp_maps maps = { 0 };
	const struct xp_mapping *m;
	struct xp_event e;
	struct xp_elf *self;
	struct stat st;
	int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0700);

	assert_true(fd >= 0);
	assert_int_equal(xp_elf_open_path(&self, "/proc/self/exe", NULL), 0);
	assert_int_equal(write(fd, self->data, self->size), self->size);
	xp_elf_free(self);
	assert_int_equal(fstat(fd, &st), 0);
	close(fd);
	assert_int_equal(xp_maps_read(&maps, getpid(), NULL), 0);
	m = xp_maps_find(&maps, (uintptr_t)map_copy);
	e = mmap_of(time, GHOST, HIGH, m->end - m->start, st.st_ino);
	e.offset = m->offset;
	e.dev = (uint64_t)major(st.st_dev) << 32 | minor(st.st_dev);
	xp_maps_release(&maps);
	return e;
}

/* dlopen() and dlclose() of ever new files: what is not mapped any more is given up. */
static void files_come_and_go(void **state)
{
	struct fixture *f = *state;
	uint64_t now = SECOND, rows = 0;
	uint32_t pages = 0;
	char path[64];

	add_ghost(f, GHOST);
	for (int i = 0; i < 30; i++, now += SECOND / 2) {
		struct xp_event e;

		snprintf(path, sizeof(path), "/tmp/xprof-life-%d-%d", (int)getpid(), i);
		e = map_copy(path, now);
		apply(f, e, path);
		unlink(path);
		settle(f, now);
		assert_true(published(f, GHOST, HIGH)->npages > 0);
		if (!i) {
			rows = f->tables.nrows;
			pages = f->tables.page_spans.used;
		}
		assert_true(f->tables.nrows <= 10 * rows);
	}
	assert_false(f->tables.full);
	for (int i = 0; i < 10; i++, now += SECOND / 2)
		settle(f, now);
	assert_int_equal(f->tables.nrows, rows);
	assert_int_equal(f->tables.row_spans.used, rows);
	assert_int_equal(f->tables.page_spans.used, pages);
	assert_int_equal(xp_targets_find(&f->targets, GHOST)->process.maps.list.n, 1);
}

static struct xp_dso *mapped_at(struct fixture *f, uint64_t addr)
{
	return xp_maps_find(&xp_targets_find(&f->targets, GHOST)->process.maps, addr)->user;
}

/* What was given up and is mapped again is the same dso, with rows. */
static void a_file_comes_back(void **state)
{
	struct fixture *f = *state;
	struct xp_event e;
	struct xp_dso *dso;
	char path[64];

	snprintf(path, sizeof(path), "/tmp/xprof-life-%d", (int)getpid());
	e = map_copy(path, SECOND);
	add_ghost(f, GHOST);
	apply(f, e, path);
	settle(f, SECOND);
	dso = mapped_at(f, HIGH);
	assert_int_equal(dso->refs, 2);		/* by the mapping and by what is published */
	xp_targets_exited(&f->targets, GHOST);
	settle(f, 2 * SECOND);
	assert_int_equal(dso->refs, 1);			/* a walker may still read it */
	for (int i = 0; i < 5; i++) {
		assert_non_null(dso->elf);
		assert_true(f->tables.nrows > 0);
		settle(f, 3 * SECOND + (uint64_t)i * SECOND / 2);
	}
	assert_int_equal(dso->refs, 0);
	assert_null(dso->elf);
	assert_int_equal(f->tables.nrows, 0);
	add_ghost(f, GHOST);
	e.time = 7 * SECOND;
	apply(f, e, path);
	settle(f, 7 * SECOND);
	assert_ptr_equal(mapped_at(f, HIGH), dso);
	assert_non_null(dso->elf);
	assert_true(published(f, GHOST, HIGH)->npages > 0);
	assert_true(f->tables.nrows > 0);
	unlink(path);
}

/* What a command is about to map is there when it does, however long it waits to exec. */
static void prepared_files_wait_for_the_exec(void **state)
{
	struct fixture *f = *state;
	struct xp_dso *dso;
	uint64_t now = SECOND;

	assert_int_equal(xp_targets_prepare(&f->targets, "/nowhere/program"), 0);
	assert_int_equal(f->targets.held.n, 0);
	assert_int_equal(xp_targets_prepare(&f->targets, "/proc/self/exe"), 0);
	assert_int_equal(f->targets.held.n, 1);
	dso = f->targets.held.v[0];
	assert_true(f->tables.nrows > 0);
	assert_int_equal(xp_targets_add_child(&f->targets, GHOST, NULL), 0);
	for (int i = 0; i < 20; i++, now += SECOND)
		settle(f, now);
	assert_non_null(dso->elf);
	apply(f, event_of(XP_EVENT_EXEC, now, GHOST), "program");
	for (int i = 0; i < 4; i++, now += SECOND / 2)
		settle(f, now);
	assert_non_null(dso->elf);			/* there is time to map it */
	for (int i = 0; i < 4; i++, now += SECOND / 2)
		settle(f, now);
	assert_null(dso->elf);
	assert_int_equal(f->tables.nrows, 0);
}

/* mmap() and munmap() at ever new addresses: only the first is told. */
static void unmapped_code_is_found_out(void **state)
{
	struct fixture *f = *state;
	struct xp_target *t = attach_self(f, SECOND);
	size_t n = t->process.maps.list.n;

	for (uint64_t i = 0; i < 17000; i++)
		apply(f, mmap_of(SECOND, getpid(), HIGH + 0x2000 * i, 0x1000, 0), "//anon");
	settle(f, 2 * SECOND - 1);
	assert_int_equal(t->process.maps.list.n, n + 17000);
	settle(f, 2 * SECOND);
	assert_true(t->process.maps.list.n < n + 10);
	assert_int_equal(t->min_generation, 0);
	assert_null(published(f, getpid(), HIGH));
	assert_non_null(published(f, getpid(), (uintptr_t)malloc));
}

/* Ranges are written anew at each change: a long list waits, so that there are always some left. */
static void long_lists_are_published_less_often(void **state)
{
	struct fixture *f = fixture_new(16384);
	uint64_t now = SECOND;
	size_t puts;

	(void)state;
	add_ghost(f, GHOST);
	for (uint64_t i = 0; i < 5000; i++)
		apply(f, mmap_of(1, GHOST, HIGH + 0x2000 * i, 0x1000, 0), "//anon");
	settle(f, now);
	assert_int_equal(last_put(f, GHOST).count, 5000);
	puts = f->puts.n;
	for (uint64_t i = 5000; i < 5050; i++, now += SECOND / 1000) {
		apply(f, mmap_of(1, GHOST, HIGH + 0x2000 * i, 0x1000, 0), "//anon");
		settle(f, now);
	}
	assert_int_equal(f->puts.n, puts);
	settle(f, now + SECOND / 20);
	assert_int_equal(f->puts.n, puts + 1);
	assert_int_equal(last_put(f, GHOST).count, 5050);
	/* An exec does not wait. */
	apply(f, event_of(XP_EVENT_EXEC, now, GHOST), "x");
	apply(f, mmap_of(now, GHOST, HIGH, 0x1000, 12), "/nowhere/program");
	settle(f, now + SECOND / 20 + 1);
	assert_int_equal(last_put(f, GHOST).count, 1);
	assert_false(f->tables.full);
	fixture_free(f);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_gone_are_found),
		TEST(a_process_without_its_first_thread_lives),
		TEST(names_are_inherited_and_changed),
		TEST(threads_come_and_go),
		TEST(renaming_costs_nothing),
		TEST(a_tid_is_used_again),
		TEST(lost_ends_of_threads),
		TEST(pids_are_used_again),
		TEST(zombies_are_not_adopted),
		TEST(a_lost_exec),
		TEST(files_come_and_go),
		TEST(a_file_comes_back),
		TEST(prepared_files_wait_for_the_exec),
		TEST(unmapped_code_is_found_out),
		TEST(long_lists_are_published_less_often),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
