/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/targets: who lives, and what its threads are called.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <pthread.h>
#include <signal.h>
#include <stdbool.h>
#include <sys/prctl.h>
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

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(the_gone_are_found),
		TEST(a_process_without_its_first_thread_lives),
		TEST(names_are_inherited_and_changed),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
