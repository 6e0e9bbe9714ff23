// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * /proc: odd names, threads, zombies, kernel threads, descendants; and reading memory of a process.
 */
#include "target/proc.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "build.h"
#include "target/mem.h"

static void reads_itself(void **state)
{
	struct xp_proc_info info;
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	/* A name made to fool who splits at blanks or at the first parenthesis. */
	assert_int_equal(prctl(PR_SET_NAME, "a) R 1 (b\n c"), 0);
	assert_int_equal(xp_proc_read(&info, getpid(), &err), 0);
	assert_string_equal(info.comm, "a) R 1 (b\n c");
	assert_int_equal(info.pid, getpid());
	assert_int_equal(info.tgid, getpid());
	assert_int_equal(info.ppid, getppid());
	assert_int_equal(info.uid, geteuid());
	assert_int_equal(info.state, 'R');
	assert_false(info.kernel_thread);
	assert_true(info.start_time > 0);
	assert_int_equal(prctl(PR_SET_NAME, "0123456789abcdefg"), 0);
	assert_int_equal(xp_proc_read(&info, getpid(), &err), 0);
	assert_string_equal(info.comm, "0123456789abcde");
	assert_int_equal(xp_proc_check_target(&info, getpid(), &err), 0);
}

static void says_what_is_missing(void **state)
{
	struct xp_proc_info info;
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	assert_int_equal(xp_proc_check_target(&info, 0x7ffffff0, &err), -ESRCH);
	assert_string_equal(err.what, "there is no process 2147483632");
	assert_true(strlen(err.hint) > 0);
	assert_int_equal(xp_proc_read(&info, 0, &err), -ESRCH);
	assert_int_equal(xp_proc_read(&info, -1, &err), -ESRCH);
}

static pid_t thread_id;
static int to_thread[2], from_thread[2];

static void *thread(void *arg)
{
	char c;

	(void)arg;
	prctl(PR_SET_NAME, "worker 1");
	thread_id = (pid_t)syscall(SYS_gettid);
	if (write(from_thread[1], "", 1) != 1 || read(to_thread[0], &c, 1) < 0)
		return (void *)1;
	return NULL;
}

static void tells_threads_from_processes(void **state)
{
	struct xp_proc_info info;
	struct xp_proc_threads threads = { XP_VEC_INIT };
	struct xp_err err = XP_ERR_INIT;
	char want[128], c;
	bool seen = false;
	pthread_t t;

	(void)state;
	assert_int_equal(pipe(to_thread) | pipe(from_thread), 0);
	assert_int_equal(pthread_create(&t, NULL, thread, NULL), 0);
	assert_int_equal(read(from_thread[0], &c, 1), 1);
	assert_int_equal(xp_proc_check_target(&info, thread_id, &err), -EINVAL);
	assert_int_equal(info.tgid, getpid());
	snprintf(want, sizeof(want), "%d is a thread of process %d", thread_id, getpid());
	assert_string_equal(err.what, want);
	snprintf(want, sizeof(want), "use -p %d", getpid());
	assert_string_equal(err.hint, want);

	assert_int_equal(xp_proc_threads_read(&threads, getpid(), &err), 0);
	assert_int_equal(threads.list.n, 2);
	for (size_t i = 0; i < threads.list.n; i++) {
		if (threads.list.v[i].tid == thread_id) {
			assert_string_equal(threads.list.v[i].comm, "worker 1");
			seen = true;
		}
	}
	assert_true(seen);
	assert_int_equal(xp_proc_threads_read(&threads, 0x7ffffff0, &err), -ESRCH);
	xp_proc_threads_release(&threads);
	assert_int_equal(write(to_thread[1], "", 1), 1);
	pthread_join(t, NULL);
}

static void refuses_zombies_and_kernel_threads(void **state)
{
	struct xp_proc_info info;
	struct xp_err err = XP_ERR_INIT;
	siginfo_t si;
	pid_t child = fork();

	(void)state;
	if (child == 0)
		_exit(0);
	assert_int_equal(waitid(P_PID, (id_t)child, &si, WEXITED | WNOWAIT), 0);
	assert_int_equal(xp_proc_check_target(&info, child, &err), -ESRCH);
	assert_int_equal(info.state, 'Z');
	assert_non_null(strstr(err.what, "zombie"));
	assert_int_equal(waitpid(child, NULL, 0), child);

	if (xp_proc_read(&info, 2, NULL) || !info.kernel_thread)
		SKIP("process 2 is no kernel thread here (a pid namespace)");
	assert_int_equal(xp_proc_check_target(&info, 2, &err), -EINVAL);
	assert_non_null(strstr(err.what, "kernel thread"));
}

static void says_when_rights_are_missing(void **state)
{
	struct xp_proc_info info;
	struct xp_err err = XP_ERR_INIT;
	pid_t self = getpid(), child;
	int status;

	(void)state;
	if (geteuid() != 0)
		SKIP("only root can become someone else");
	child = fork();
	if (child == 0) {
		if (setresgid(65534, 65534, 65534) || setresuid(65534, 65534, 65534))
			_exit(1);
		if (xp_proc_check_target(&info, self, &err) != -EACCES)
			_exit(2);
		if (err.status != XP_EXIT_NOPERM || !strstr(err.what, "runs as uid 0") ||
		    !strstr(err.what, "uid 65534") || !strstr(err.hint, "cap_sys_ptrace"))
			_exit(3);
		_exit(0);
	}
	assert_int_equal(waitpid(child, &status, 0), child);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static bool holds(const struct xp_pids *pids, pid_t pid)
{
	for (size_t i = 0; i < pids->list.n; i++) {
		if (pids->list.v[i] == pid)
			return true;
	}
	return false;
}

static void finds_descendants(void **state)
{
	struct xp_pids pids = { XP_VEC_INIT };
	int up[2], hold[2];
	pid_t child, grandchild;
	char c;

	(void)state;
	assert_int_equal(pipe(up) | pipe(hold), 0);
	child = fork();
	if (child == 0) {
		close(hold[1]);
		grandchild = fork();
		if (grandchild && write(up[1], &grandchild, sizeof(grandchild)) < 0)
			_exit(1);
		_exit(read(hold[0], &c, 1) < 0);
	}
	close(hold[0]);
	assert_int_equal(read(up[0], &grandchild, sizeof(grandchild)), sizeof(grandchild));
	*xp_vec_push(&pids.list) = 12345;
	assert_int_equal(xp_proc_descendants(&pids, getpid()), 0);
	assert_int_equal(pids.list.n, 3);
	assert_int_equal(pids.list.v[0], 12345);
	assert_true(holds(&pids, child));
	assert_true(holds(&pids, grandchild));
	xp_vec_release(&pids.list);
	close(hold[1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
}

static void reads_memory(void **state)
{
	static const char text[] = "some bytes to read";
	struct xp_mem live = xp_mem_of_pid(getpid());
	struct xp_mem array = xp_mem_of_array(0x1000, text, sizeof(text));
	char buf[sizeof(text)];

	(void)state;
	assert_int_equal(xp_mem_read(&live, (uintptr_t)text, buf, sizeof(buf)), 0);
	assert_string_equal(buf, text);
	assert_int_equal(xp_mem_read(&live, 8, buf, 8), -EFAULT);
	assert_int_equal(xp_mem_read(&live, UINT64_MAX - 3, buf, 8), -EFAULT);
	live = xp_mem_of_pid(0x7ffffff0);
	assert_int_equal(xp_mem_read(&live, (uintptr_t)text, buf, 1), -ESRCH);

	assert_int_equal(xp_mem_read(&array, 0x1005, buf, 5), 0);
	assert_memory_equal(buf, "bytes", 5);
	assert_int_equal(xp_mem_read(&array, 0x1000, buf, sizeof(text)), 0);
	assert_int_equal(xp_mem_read(&array, 0x1001, buf, sizeof(text)), -EFAULT);
	assert_int_equal(xp_mem_read(&array, 0xfff, buf, 1), -EFAULT);
	assert_int_equal(xp_mem_read(&array, UINT64_MAX, buf, 2), -EFAULT);
	assert_int_equal(xp_mem_read(&array, 0x1000 + sizeof(text), buf, 1), -EFAULT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_itself),
		cmocka_unit_test(says_what_is_missing),
		cmocka_unit_test(tells_threads_from_processes),
		cmocka_unit_test(refuses_zombies_and_kernel_threads),
		cmocka_unit_test(says_when_rights_are_missing),
		cmocka_unit_test(finds_descendants),
		cmocka_unit_test(reads_memory),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
