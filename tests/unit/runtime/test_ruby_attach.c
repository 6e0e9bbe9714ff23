// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A Ruby confirmed on live processes of many kinds, on a process that starts, and on memory that
 * lies: every word that was looked at is changed in turn.
 */
#include "../target/build.h"

#include <errno.h>
#include <signal.h>
#include <sys/ptrace.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <time.h>

#include "bpf/ruby.h"
#include "runtime/ruby/attach.h"
#include "target/proc.h"

extern const struct xp_runtime xp_runtime_ruby;

static struct xp_dsos *dsos;

struct target {
	struct xp_process process;
	struct xp_mem mem;
	const struct xp_mapping *mapping;
	void *data, *state;
	struct xp_ruby value;
	struct xp_err err;
};

static int setup(void **state)
{
	dsos = xp_dsos_new();
	return !dsos || build_setup(state);
}

static int teardown(void **state)
{
	xp_dsos_free(dsos);
	return build_teardown(state);
}

static void nap(long ms)
{
	nanosleep(&(struct timespec){ 0, ms * 1000000 }, NULL);
}

static void spawn(struct target *t, const char *const *args)
{
	char *argv[8] = { NULL };
	int n = 0;

	memset(t, 0, sizeof(*t));
	for (; n < 7 && args[n]; n++)
		argv[n] = (char *)(uintptr_t)args[n];
	t->process.pid = fork();
	assert_true(t->process.pid >= 0);
	if (t->process.pid == 0) {
		alarm(60);
		execvp(argv[0], argv);
		_exit(127);
	}
	t->mem = xp_mem_of_pid(t->process.pid);
}

static void stop(struct target *t)
{
	xp_runtime_ruby.detach(t->state);
	xp_runtime_ruby.free_data(t->data);
	kill(t->process.pid, SIGKILL);
	waitpid(t->process.pid, NULL, 0);
	xp_maps_release(&t->process.maps);
}

/* Whether a Ruby is mapped by now. */
static bool find_ruby(struct target *t)
{
	struct xp_maps *maps = &t->process.maps;

	xp_maps_release(maps);
	if (xp_maps_read(maps, t->process.pid, NULL))
		return false;
	for (size_t i = 0; i < maps->list.n; i++) {
		struct xp_mapping *m = &maps->list.v[i];

		if (!m->exec || !m->ino)
			continue;
		m->user = xp_dsos_get(dsos, t->process.pid, m);
		if (!m->user || xp_runtime_ruby.probe(m->user, &t->data, &t->err) != 1)
			continue;
		t->mapping = m;
		return true;
	}
	return false;
}

static enum xp_attach attach_once(struct target *t)
{
	return xp_runtime_ruby.attach(t->data, &t->process, t->mapping, &t->mem, &t->value,
				      &t->state, &t->err);
}

/* Starts a program and attaches as soon as it can be: it may only be too early, never refused. */
static void attach(struct target *t, const char *const *args)
{
	enum xp_attach rc = XP_ATTACH_LATER;

	if (!build_have("ruby"))
		SKIP("no ruby");
	spawn(t, args);
	for (int i = 0; i < 5000 && !find_ruby(t); i++)
		nap(1);
	if (!t->mapping) {
		stop(t);
		SKIP("no Ruby that is known: %s", t->err.what);
	}
	for (int i = 0; i < 10000 && rc == XP_ATTACH_LATER; i++) {
		rc = attach_once(t);
		if (i > 2000)
			nap(1);
	}
	if (rc != XP_ATTACH_DONE)
		fail_msg("%s", t->err.what);
}

static uint64_t word_at(const struct target *t, uint64_t addr)
{
	uint64_t v = 0;

	assert_int_equal(xp_mem_read(&t->mem, addr, &v, sizeof(v)), 0);
	return v;
}

/* The thread pointer, as the kernel has it; the thread is left stopped. */
static uint64_t thread_pointer(pid_t tid)
{
	struct user_regs_struct regs;
	int status;

	assert_int_equal(ptrace(PTRACE_SEIZE, tid, NULL, NULL), 0);
	assert_int_equal(ptrace(PTRACE_INTERRUPT, tid, NULL, NULL), 0);
	assert_int_equal(waitpid(tid, &status, __WALL), tid);
	assert_int_equal(ptrace(PTRACE_GETREGS, tid, NULL, &regs), 0);
	return regs.fs_base;
}

static uint64_t ec_of(const struct target *t, uint64_t tp)
{
	uint64_t block = tp;

	if (t->value.ec_mode == XP_RUBY_EC_DTV) {
		block = word_at(t, word_at(t, tp + 8) + 16 * t->value.tls_module);
		if (!block || block == UINT64_MAX)
			return 0;
	}
	return word_at(t, block + (uint64_t)t->value.ec_offset);
}

/* Counts threads with an execution context, each of which must have its own VM stack. */
static unsigned count_contexts(const struct target *t)
{
	struct xp_proc_threads threads = { XP_VEC_INIT };
	uint64_t stacks[64];
	unsigned n = 0;

	assert_int_equal(xp_proc_threads_read(&threads, t->process.pid, NULL), 0);
	assert_true(threads.list.n <= 64);
	for (size_t i = 0; i < threads.list.n; i++) {
		pid_t tid = threads.list.v[i].tid;
		uint64_t ec = ec_of(t, thread_pointer(tid)), cfp = 0, end = 0;

		if (ec) {
			stacks[n] = word_at(t, ec + XP_RUBY_EC_VM_STACK);
			end = stacks[n] + 8 * word_at(t, ec + 8);
			cfp = word_at(t, ec + 16);
		}
		assert_int_equal(ptrace(PTRACE_DETACH, tid, NULL, NULL), 0);
		if (!ec)
			continue;
		assert_in_range(cfp, stacks[n], end - 1);
		assert_int_equal((end - cfp) % t->value.cfp_size, 0);
		for (unsigned k = 0; k < n; k++)
			assert_int_not_equal(stacks[k], stacks[n]);
		n++;
	}
	xp_proc_threads_release(&threads);
	return n;
}

static void check_ready(struct target *t, unsigned contexts, enum xp_ruby_ec_mode mode)
{
	struct xp_buf text = XP_BUF_INIT;
	uint32_t flags;

	assert_int_equal(t->value.ec_mode, mode);
	assert_int_equal(t->value.cfp_size, 64);
	assert_int_equal(t->value.jit_return, 56);
	assert_int_equal(t->value.stack_start, 144);
	assert_true(t->value.vm_exec[0] && t->value.vm_exec[0] < t->value.vm_exec[1]);
	assert_true(t->value.vm_exec[0] >= t->mapping->start &&
		    t->value.vm_exec[1] <= t->mapping->end);
	assert_int_equal(xp_mem_read(&t->mem, t->value.gc_flags, &flags, 4), 0);
	xp_runtime_ruby.describe(t->data, t->state, &text);
	xp_buf_u8(&text, 0);
	assert_non_null(strstr((char *)text.data, "ruby 3.1."));
	assert_non_null(strstr((char *)text.data, ": ready"));
	xp_buf_release(&text);
	/* All threads may not have been started yet. */
	for (int i = 0; i < 100 && contexts && count_contexts(t) != contexts; i++)
		nap(50);
	if (contexts)
		assert_int_equal(count_contexts(t), contexts);
}

static void run(const char *option, const char *script, unsigned contexts)
{
	const char *args[] = { "ruby", option, "-e", script, NULL };
	const char *plain[] = { "ruby", "-e", script, NULL };
	struct target t;

	attach(&t, option ? args : plain);
	/* Once more when all of the program runs. */
	nap(300);
	xp_runtime_ruby.detach(t.state);
	for (int i = 0; i < 20; i++) {
		if (i)
			xp_runtime_ruby.detach(t.state);
		if (attach_once(&t) != XP_ATTACH_DONE)
			fail_msg("%s: %s", script, t.err.what);
	}
	check_ready(&t, contexts, XP_RUBY_EC_TP);
	stop(&t);
}

#define FIB "def fib(n) n < 2 ? n : fib(n - 1) + fib(n - 2) end;"

static void confirms_live_processes(void **state)
{
	(void)state;
	run(NULL, "loop {}", 1);
	run(NULL, "sleep", 1);
	run(NULL, FIB "loop { fib(20) }", 1);
	run(NULL, "3.times { Thread.new { sleep } }; Thread.new { loop {} }; loop {}", 5);
	run(NULL, "f = Fiber.new { loop { Fiber.yield } }; loop { f.resume }", 0);
	run(NULL, "Enumerator.new { loop {} }.next", 0);
	run(NULL, "loop { GC.start }", 1);
	run(NULL, "def d(n) n > 0 ? [1].each { d(n - 1) } : loop {} end; d(2000)", 1);
}

static void confirms_processes_with_yjit(void **state)
{
	(void)state;
	if (system("ruby --yjit -e 1 2>/dev/null >&2") != 0)
		SKIP("this ruby has no YJIT");
	run("--yjit", "loop {}", 1);
	run("--yjit", FIB "loop { fib(20) }", 1);
	run("--yjit", FIB "Thread.new { loop { fib(9) } }; loop { fib(9) }", 2);
}

/* Seen from the first moment on: too early, then done. */
static void waits_for_a_starting_process(void **state)
{
	static const char *const args[] = { "ruby", "-e", "sleep", NULL };
	struct target t;

	(void)state;
	for (int i = 0; i < 8; i++) {
		attach(&t, args);
		check_ready(&t, 1, XP_RUBY_EC_TP);
		stop(&t);
	}
}

static const char dl_source[] =
	"#include <dlfcn.h>\n"
	"#include <pthread.h>\n"
	"#include <stdio.h>\n"
	"int main(int argc, char **argv)\n"
	"{\n"
	"	void *lib = dlopen(argv[1], RTLD_NOW | RTLD_GLOBAL);\n"
	"	void (*init)(int *, char ***) = lib ? dlsym(lib, \"ruby_sysinit\") : 0;\n"
	"	void (*init_stack)(void *) = lib ? dlsym(lib, \"ruby_init_stack\") : 0;\n"
	"	void (*setup)(void) = lib ? dlsym(lib, \"ruby_init\") : 0;\n"
	"	void *(*options)(int, char **) = lib ? dlsym(lib, \"ruby_options\") : 0;\n"
	"	int (*run)(void *) = lib ? dlsym(lib, \"ruby_run_node\") : 0;\n"
	"	if (!lib) return 1;\n"
	"	argv++; argc--;\n"
	"	init(&argc, &argv);\n"
	"	init_stack(&lib);\n"
	"	setup();\n"
	"	return run(options(argc, argv));\n"
	"}\n";

/* A library that was loaded later has no room below the thread pointer. */
static void confirms_a_ruby_that_was_dlopened(void **state)
{
	static const char *const probe[] = { "ruby", "-e", "sleep", NULL };
	char program[128], lib[512];
	const char *args[] = { program, lib, "-e", "Thread.new { loop {} }; loop {}", NULL };
	struct target t;

	(void)state;
	attach(&t, probe);
	snprintf(lib, sizeof(lib), "%s", t.mapping->path);
	stop(&t);
	if (!strstr(lib, ".so"))
		SKIP("no shared libruby");
	snprintf(program, sizeof(program), "%s", build_program("dl", dl_source, "-ldl -lpthread"));
	attach(&t, args);
	nap(300);
	assert_true(t.value.tls_module > 1);
	check_ready(&t, 2, XP_RUBY_EC_DTV);
	stop(&t);
}

/* Memory of a live process in which one range is something else. */
static struct { uint64_t addr; size_t n; } seen[512];
static size_t nseen, nreads;
static uint64_t lie_at, lie;
static bool lying, unreadable, recording;

static int read_lies(const struct xp_mem *mem, uint64_t addr, void *buf, size_t n)
{
	struct xp_mem real = xp_mem_of_pid(mem->pid);
	int rc = xp_mem_read(&real, addr, buf, n);

	nreads++;
	if (recording && nseen < 512) {
		seen[nseen].addr = addr;
		seen[nseen++].n = n;
	}
	if (rc || !lying || lie_at < addr || lie_at >= addr + n)
		return rc;
	if (unreadable)
		return -EFAULT;
	n -= lie_at - addr;
	memcpy((char *)buf + (lie_at - addr), &lie, n < 8 ? n : 8);
	return 0;
}

static enum xp_attach attach_lying(struct target *t, uint64_t at, uint64_t value)
{
	enum xp_attach rc;

	lying = true;
	lie_at = at;
	lie = value;
	nreads = 0;
	memset(&t->err, 0, sizeof(t->err));
	rc = attach_once(t);
	lying = false;
	assert_true(nreads < 16 * 512);
	if (rc == XP_ATTACH_DONE) {
		xp_runtime_ruby.detach(t->state);
		t->state = NULL;
	} else {
		assert_null(t->state);
		assert_string_not_equal(t->err.what, "");
	}
	return rc;
}

/* A stopped process, so that only the lies change. */
static void start_lying(struct target *t)
{
	static const char *const args[] = { "ruby", "-e", "def a() loop {} end; a", NULL };

	attach(t, args);
	nap(200);
	kill(t->process.pid, SIGSTOP);
	nap(20);
	xp_runtime_ruby.detach(t->state);
	t->state = NULL;
	t->mem.read = read_lies;
	nseen = 0;
	recording = true;
	assert_int_equal(attach_lying(t, 1, 0), XP_ATTACH_DONE);
	recording = false;
	assert_true(nseen > 20 && nseen < 512);
}

static void survives_lying_memory(void **state)
{
	static const uint64_t lies[] = { 0, 1, 8, UINT64_MAX, 1ull << 47, 0x7ffffffff000 };
	unsigned refused = 0, waiting = 0, done = 0;
	struct target t;

	(void)state;
	start_lying(&t);
	for (size_t i = 0; i < nseen; i++) {
		for (size_t at = 0; at < seen[i].n; at += 8) {
			for (unsigned k = 0; k < 9; k++) {
				uint64_t addr = seen[i].addr + at, value = addr;
				enum xp_attach rc;

				if (k < 6)
					value = lies[k];
				else if (k == 7)
					value = addr - 8;
				unreadable = k == 8;
				rc = attach_lying(&t, addr, value);
				refused += rc == XP_ATTACH_REFUSED;
				waiting += rc == XP_ATTACH_LATER;
				done += rc == XP_ATTACH_DONE;
			}
		}
	}
	unreadable = false;
	assert_true(refused > 100);
	assert_true(waiting > 5);
	assert_true(done > 5);		/* not every word matters: a leaf's pc */
	stop(&t);
}

/* What is not there is left for later; what is wrong is refused with its step. */
static void tells_early_from_wrong(void **state)
{
	const struct xp_ruby_image *image;
	uint64_t bias, vm, thread, ec, end, at;
	struct target t;

	(void)state;
	start_lying(&t);
	image = t.data;
	assert_true(xp_dso_bias(xp_mapping_dso(t.mapping), t.mapping, &bias));
	vm = word_at(&t, bias + image->vm_ptr);
	thread = word_at(&t, vm + image->layout->vm_main_thread);
	ec = word_at(&t, thread + image->layout->thread_ec);
	end = word_at(&t, ec) + 8 * word_at(&t, ec + 8);

#define EXPECT(addr, value, rc, text) do { \
	assert_int_equal(attach_lying(&t, addr, value), rc); \
	if (!strstr(t.err.what, text)) \
		fail_msg("\"%s\" instead of \"%s\"", t.err.what, text); \
} while (0)

	EXPECT(bias + image->vm_ptr, 0, XP_ATTACH_LATER, "no VM");
	EXPECT(bias + image->vm_ptr, 0x1001, XP_ATTACH_REFUSED, "the VM from rb_during_gc");
	EXPECT(vm + image->layout->vm_main_thread, 0, XP_ATTACH_LATER, "no main thread");
	EXPECT(vm + image->layout->vm_main_thread, 0x1008, XP_ATTACH_REFUSED, "main thread cannot");
	EXPECT(thread + image->layout->thread_ec, 0, XP_ATTACH_LATER, "no execution context");
	EXPECT(ec + image->ec_thread, vm, XP_ATTACH_REFUSED, "does not lead back");
	EXPECT(bias + image->ec_slot, 0, XP_ATTACH_LATER, "TLS");
	EXPECT(bias + image->ec_slot, 99999, XP_ATTACH_REFUSED, "no TLS module");
	EXPECT(ec, 0, XP_ATTACH_LATER, "no VM stack");
	EXPECT(ec + 8, 1ull << 40, XP_ATTACH_REFUSED, "bounds of the VM stack");
	EXPECT(ec + 16, end, XP_ATTACH_REFUSED, "outside the VM stack");
	EXPECT(ec + 16, end - 56, XP_ATTACH_REFUSED, "size of control frames");
	EXPECT(ec + 16, end - 64, XP_ATTACH_LATER, "no frame of Ruby code");
	at = word_at(&t, end - 64 + 32);
	EXPECT(at, 0x11110001, XP_ATTACH_REFUSED, "does not begin with a dummy");
	at = word_at(&t, end - 128 + 32);
	EXPECT(at, 0x12345, XP_ATTACH_REFUSED, "unknown kind");
	EXPECT(end - 128 + 16, vm, XP_ATTACH_REFUSED, "no iseq");
	EXPECT(end - 128, end, XP_ATTACH_REFUSED, "pc lies outside");
	EXPECT(bias + image->symbols + 16, 0, XP_ATTACH_REFUSED, "table of symbols");
	EXPECT(ec + 24, 0, XP_ATTACH_LATER, "no jump buffer");
	EXPECT(vm + image->vm_objspace, 0, XP_ATTACH_LATER, "no objspace");
	EXPECT(vm + image->vm_objspace, 8, XP_ATTACH_REFUSED, "flags of the objspace");
	stop(&t);
}

/* A chain of tags in a circle, and a process that is gone. */
static void ends_on_circles_and_dead_processes(void **state)
{
	const struct xp_ruby_image *image;
	uint64_t bias, vm, ec, tag;
	struct target t;

	(void)state;
	start_lying(&t);
	image = t.data;
	assert_true(xp_dso_bias(xp_mapping_dso(t.mapping), t.mapping, &bias));
	vm = word_at(&t, bias + image->vm_ptr);
	ec = word_at(&t, word_at(&t, vm + image->layout->vm_main_thread) +
		     image->layout->thread_ec);
	tag = word_at(&t, ec + 24);
	/* Not in vm_exec, so the next tag is asked for: itself. */
	assert_int_equal(attach_lying(&t, ec + 24, ec), XP_ATTACH_LATER);
	assert_true(attach_lying(&t, tag + 56, tag) != XP_ATTACH_REFUSED);
	kill(t.process.pid, SIGKILL);
	waitpid(t.process.pid, NULL, 0);
	assert_int_not_equal(attach_once(&t), XP_ATTACH_DONE);
	assert_null(t.state);
	xp_runtime_ruby.detach(NULL);
	xp_runtime_ruby.free_data(t.data);
	xp_maps_release(&t.process.maps);
}

/* Memory in which nothing is, and an image that leads anywhere. */
static void refuses_an_image_of_nonsense(void **state)
{
	static uint64_t words[512];
	struct xp_ruby_image image = {
		.version = "3.1.2", .layout = xp_ruby_layout_of(3, 1), .vm_ptr = 0x10000,
		.ec_access = XP_RUBY_EC_LOCAL, .core = { 0x1000, 0x2000 },
		.vm_exec = { 0x2000, 0x3000 }, .ec_thread = 48,
	};
	struct xp_ruby_symbols symbols = { 0x10100, 169, 4 };
	struct xp_mem mem = xp_mem_of_array(0x10000, words, sizeof(words));
	struct xp_ruby_names *names;
	struct xp_ruby value;
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	assert_int_equal(xp_ruby_names_new(&names, image.layout, &symbols, &mem), 0);
	assert_int_equal(xp_ruby_confirm(&image, 0, &mem, names, &value, &err), XP_ATTACH_LATER);
	/* Everything points to the same place. */
	for (size_t i = 0; i < 512; i++)
		words[i] = 0x10000;
	assert_int_equal(xp_ruby_confirm(&image, 0, &mem, names, &value, &err),
			 XP_ATTACH_REFUSED);
	for (unsigned round = 0; round < 2000; round++) {
		unsigned x = round;

		for (size_t i = 0; i < 512; i++) {
			x = x * 1103515245 + 12345;
			words[i] = x & 0x10000 ? 0x10000 + (x >> 17) % 512 * 8 : x >> 28;
		}
		assert_int_not_equal(xp_ruby_confirm(&image, 0, &mem, names, &value, &err),
				     XP_ATTACH_DONE);
	}
	xp_ruby_names_free(names);
}

static uint32_t frame_of(struct target *t, uint32_t word, struct xp_profile *profile)
{
	uint32_t id = 12345;

	assert_int_equal(xp_runtime_ruby.state_frame(t->state, word, profile, &id), 0);
	return id;
}

static const char *name_of(const struct xp_profile *p, uint32_t frame)
{
	assert_true(frame < p->frames.n);
	assert_int_equal(p->frames.v[frame].kind, XP_FRAME_GC);
	assert_string_equal(xp_strings_get(&p->strings, p->frames.v[frame].runtime).p, "ruby");
	return xp_strings_get(&p->strings, p->frames.v[frame].name).p;
}

static void names_phases_of_the_collector(void **state)
{
	static const char *const args[] = { "ruby", "-e", "sleep", NULL };
	struct xp_profile a, b;
	struct target t;

	(void)state;
	attach(&t, args);
	assert_int_equal(xp_profile_init(&a), 0);
	assert_int_equal(xp_profile_init(&b), 0);
	assert_int_equal(frame_of(&t, 0, &a), XP_NO_ID);
	assert_int_equal(frame_of(&t, 0xffffffdf, &a), XP_NO_ID);
	assert_string_equal(name_of(&a, frame_of(&t, 0x20, &a)), "(garbage collection)");
	assert_string_equal(name_of(&a, frame_of(&t, 0x21, &a)), "(garbage collection: marking)");
	assert_string_equal(name_of(&a, frame_of(&t, 0x26, &a)), "(garbage collection: sweeping)");
	assert_string_equal(name_of(&a, frame_of(&t, 0xffffffff, &a)),
			    "(garbage collection: compacting)");
	assert_int_equal(frame_of(&t, 0x21, &a), frame_of(&t, 0x61, &a));
	assert_int_equal(a.frames.n, 4);
	assert_string_equal(name_of(&b, frame_of(&t, 0x21, &b)), "(garbage collection: marking)");
	assert_int_equal(b.frames.n, 1);
	xp_profile_release(&a);
	xp_profile_release(&b);
	stop(&t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(confirms_live_processes),
		cmocka_unit_test(confirms_processes_with_yjit),
		cmocka_unit_test(waits_for_a_starting_process),
		cmocka_unit_test(confirms_a_ruby_that_was_dlopened),
		cmocka_unit_test(survives_lying_memory),
		cmocka_unit_test(tells_early_from_wrong),
		cmocka_unit_test(ends_on_circles_and_dead_processes),
		cmocka_unit_test(refuses_an_image_of_nonsense),
		cmocka_unit_test(names_phases_of_the_collector),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, setup, teardown);
}
