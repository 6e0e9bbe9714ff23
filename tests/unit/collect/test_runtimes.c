/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/runtimes: whom it asks and when, slots of parameters, and what is said of refusals.
 *
 * The table of runtimes is this program's own, so that registry.c is not taken from the library: one
 * runtime whose operations each test chooses, in the place of Ruby.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "bpf/ruby.h"
#include "collect/runtimes.h"

#define ID XP_RUNTIME_RUBY
#define MS 1000000ull
#define SECOND 1000000000ull
#define SLOTS (XP_RUNTIME_PARAMS - 1)	/* slot 0 is not used */

extern const struct xp_runtime xp_runtime_native, xp_runtime_ruby;

static struct xp_runtime runtime;
const struct xp_runtime *const xp_runtimes[XP_RUNTIMES_N] = {
	[XP_RUNTIME_NATIVE] = &xp_runtime_native,
	[ID] = &runtime,
};

/* What the runtime of these tests answers, and what it was asked. */
static struct {
	const char *file;		/* it is in the file whose path has this in it */
	int probe_result;		/* for that file */
	enum xp_attach attach_result;
	const char *error, *title;
	uint64_t loop[2];
	unsigned probes, attaches, live_data, live_states;
} fake;

static struct {
	int result;
	unsigned puts;
	uint32_t slot;
	uint64_t value[2];
	size_t size;
} port;

static char last_note[600];
static unsigned notes;
static struct xp_runtimes_state rs;
static struct xp_dsos *dsos;
static struct xp_process self;

static int fake_probe(struct xp_dso *dso, void **data, struct xp_err *err)
{
	fake.probes++;
	if (!fake.file || !strstr(dso->path, fake.file))
		return 0;
	if (fake.probe_result == 1) {
		*data = malloc(1);
		fake.live_data++;
	} else if (fake.probe_result) {
		xp_err_set(err, -fake.probe_result, "%s", fake.error);
	}
	return fake.probe_result;
}

static void fake_free_data(void *data)
{
	free(data);
	fake.live_data--;
}

static enum xp_attach fake_attach(const void *data, const struct xp_process *process,
				  const struct xp_mapping *mapping, const struct xp_mem *mem,
				  void *value, void **state, struct xp_err *err)
{
	(void)mem;
	assert_non_null(data);
	assert_true(process->pid > 0);
	assert_non_null(strstr(mapping->path, fake.file));
	fake.attaches++;
	*state = NULL;
	if (fake.attach_result == XP_ATTACH_DONE) {
		*state = malloc(1);
		fake.live_states++;
		((uint64_t *)value)[0] = (uint64_t)process->pid;
		((uint64_t *)value)[1] = fake.attaches;
	} else if (fake.error) {
		xp_err_set(err, ENOTSUP, "%s", fake.error);
	}
	return fake.attach_result;
}

static void fake_detach(void *state)
{
	assert_non_null(state);
	free(state);
	fake.live_states--;
}

static bool fake_in_loop(const void *data, uint64_t vaddr)
{
	assert_non_null(data);
	return vaddr >= fake.loop[0] && vaddr < fake.loop[1];
}

static void fake_title(const void *data, char *out, size_t size)
{
	assert_non_null(data);
	snprintf(out, size, "%s", fake.title);
}

static int put(void *ctx, enum xp_runtime_id id, uint32_t slot, const void *value, size_t size)
{
	assert_ptr_equal(ctx, &port);
	assert_int_equal(id, ID);
	assert_true(slot > 0 && slot < XP_RUNTIME_PARAMS);
	port.puts++;
	port.slot = slot;
	port.size = size;
	memcpy(port.value, value, sizeof(port.value));
	return port.result;
}

static void take_note(const char *line)
{
	notes++;
	snprintf(last_note, sizeof(last_note), "%s", line);
}

/* A process's executable mappings with their files, as targets.c keeps them. */
static void read_process(struct xp_process *process, pid_t pid)
{
	struct xp_maps all = { 0 };

	memset(process, 0, sizeof(*process));
	process->pid = pid;
	assert_int_equal(xp_maps_read(&all, pid, NULL), 0);
	for (size_t i = 0; i < all.list.n; i++) {
		struct xp_mapping *m = &all.list.v[i];

		if (!m->exec)
			continue;
		m->user = xp_dsos_get(dsos, pid, m);
		assert_int_equal(xp_maps_add(&process->maps, m), 0);
	}
	xp_maps_release(&all);
}

static int setup(void **state)
{
	(void)state;
	memset(&fake, 0, sizeof(fake));
	memset(&port, 0, sizeof(port));
	memset(&rs, 0, sizeof(rs));
	*last_note = 0;
	notes = 0;
	fake.file = "libc.so";
	fake.probe_result = 1;
	fake.title = "fake 1";
	runtime = (struct xp_runtime){
		.name = "fake", .probe = fake_probe, .free_data = fake_free_data,
		.attach = fake_attach, .value_size = 16, .detach = fake_detach,
		.in_loop = fake_in_loop, .title = fake_title,
	};
	rs.port.put = put;
	rs.port.ctx = &port;
	rs.note = take_note;
	dsos = xp_dsos_new();
	assert_non_null(dsos);
	read_process(&self, getpid());
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xp_runtimes_release(&rs);
	assert_int_equal(fake.live_data, 0);
	assert_int_equal(fake.live_states, 0);
	xp_maps_release(&self.maps);
	xp_dsos_free(dsos);
	return 0;
}

static const struct xp_attachment *on(const struct xp_attached *attached)
{
	return &attached->by_id[ID];
}

static int update(struct xp_attached *attached, uint64_t now)
{
	return xp_runtimes_update(&rs, &self, attached, now);
}

static void no_runtime(void **state)
{
	struct xp_attached attached = { 0 };
	unsigned probes;

	(void)state;
	fake.file = NULL;
	assert_int_equal(update(&attached, 1), 0);
	probes = fake.probes;
	assert_true(probes >= 2);		/* this program, the C library, ... */
	assert_int_equal(on(&attached)->status, XP_NOT_PROBED);
	/* Each file is looked at once. */
	assert_int_equal(update(&attached, 2), 0);
	assert_int_equal(fake.probes, probes);
	assert_false(xp_runtimes_waiting(&attached));
	assert_int_equal(port.puts, 0);
	assert_int_equal(notes, 0);
	xp_runtimes_detach(&rs, &attached, 3);
}

static void attached_at_once(void **state)
{
	struct xp_attached attached = { 0 };

	(void)state;
	assert_int_equal(update(&attached, 5), 1);
	assert_int_equal(on(&attached)->status, XP_ATTACHED);
	assert_int_equal(on(&attached)->slot, 1);
	assert_false(on(&attached)->program);
	assert_int_equal(port.slot, 1);
	assert_int_equal(port.size, 16);
	assert_int_equal(port.value[0], (uint64_t)getpid());
	assert_int_equal(rs.attached[ID], 1);
	assert_int_equal(rs.attached[XP_RUNTIME_NATIVE], 0);
	/* Once is enough. */
	assert_int_equal(update(&attached, SECOND), 0);
	assert_int_equal(fake.attaches, 1);
	assert_int_equal(notes, 0);
	xp_runtimes_detach(&rs, &attached, 6);
	assert_int_equal(fake.live_states, 0);
	assert_int_equal(on(&attached)->status, XP_NOT_PROBED);
	assert_int_equal(on(&attached)->slot, 0);
	xp_runtimes_detach(&rs, &attached, 6);
}

static void in_the_program_itself(void **state)
{
	struct xp_attached attached = { 0 };

	(void)state;
	fake.file = "test_runtimes";
	assert_int_equal(update(&attached, 5), 1);
	assert_true(on(&attached)->program);
	xp_runtimes_detach(&rs, &attached, 6);
}

static void unusable_files(void **state)
{
	struct xp_attached attached = { 0 };

	(void)state;
	fake.probe_result = -ENOTSUP;
	fake.error = "step such and such failed";
	assert_int_equal(update(&attached, 5), 0);
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "libc.so"));
	assert_non_null(strstr(last_note, ": step such and such failed"));
	assert_int_equal(update(&attached, 6), 0);
	assert_int_equal(notes, 1);
	assert_int_equal(fake.attaches, 0);
	xp_runtimes_detach(&rs, &attached, 6);
	/* Nobody listens. */
	xp_runtimes_release(&rs);
	rs = (struct xp_runtimes_state){ .port = { put, &port } };
	assert_int_equal(update(&attached, 7), 0);
	assert_int_equal(notes, 1);
}

static void out_of_memory(void **state)
{
	struct xp_attached attached = { 0 };

	(void)state;
	fake.probe_result = -ENOMEM;
	fake.error = "";
	assert_int_equal(update(&attached, 5), -ENOMEM);
	assert_int_equal(notes, 0);
}

/* A runtime that still starts is asked often at first, then less so, in the end no more. */
static void not_ready_yet(void **state)
{
	struct xp_attached attached = { 0 };
	uint64_t now = 7 * SECOND, start = now;

	(void)state;
	fake.attach_result = XP_ATTACH_LATER;
	for (unsigned n = 1; n <= 10; n++) {
		assert_int_equal(update(&attached, now), 0);
		assert_int_equal(fake.attaches, n);
		assert_true(xp_runtimes_waiting(&attached));
		assert_int_equal(update(&attached, now + 3 * MS), 0);
		assert_int_equal(fake.attaches, n);
		now += 4 * MS;
	}
	now = start + SECOND;
	assert_int_equal(update(&attached, now), 0);
	assert_int_equal(fake.attaches, 11);
	assert_int_equal(update(&attached, now + 99 * MS), 0);
	assert_int_equal(fake.attaches, 11);
	fake.attach_result = XP_ATTACH_DONE;
	assert_int_equal(update(&attached, now + 100 * MS), 1);
	assert_false(xp_runtimes_waiting(&attached));
	assert_int_equal(notes, 0);
	xp_runtimes_detach(&rs, &attached, now);
	/* One that never gets ready. */
	fake.attach_result = XP_ATTACH_LATER;
	assert_int_equal(update(&attached, now), 0);
	assert_int_equal(update(&attached, now + 60 * SECOND - 1), 0);
	assert_true(xp_runtimes_waiting(&attached));
	assert_int_equal(update(&attached, now + 61 * SECOND), 0);
	assert_false(xp_runtimes_waiting(&attached));
	assert_int_equal(notes, 1);
	assert_non_null(strstr(last_note, "the runtime did not become ready"));
	fake.attaches = 0;
	assert_int_equal(update(&attached, now + 99 * SECOND), 0);
	assert_int_equal(fake.attaches, 0);
	xp_runtimes_detach(&rs, &attached, now);
}

static void refused(void **state)
{
	struct xp_attached attached = { 0 };
	char want[64];

	(void)state;
	fake.attach_result = XP_ATTACH_REFUSED;
	fake.error = "not confirmed";
	assert_int_equal(update(&attached, 5), 0);
	snprintf(want, sizeof(want), "process %d: not confirmed", (int)getpid());
	assert_string_equal(last_note, want);
	assert_int_equal(update(&attached, 6 + SECOND), 0);
	assert_int_equal(fake.attaches, 1);
	assert_int_equal(notes, 1);
	/* A new program in the process is another matter. */
	xp_runtimes_detach(&rs, &attached, 7);
	fake.attach_result = XP_ATTACH_DONE;
	assert_int_equal(update(&attached, 8), 1);
	xp_runtimes_detach(&rs, &attached, 9);
}

static void the_kernel_takes_no_parameters(void **state)
{
	struct xp_attached attached = { 0 };

	(void)state;
	port.result = -E2BIG;
	assert_int_equal(update(&attached, 5), 0);
	assert_int_equal(on(&attached)->status, XP_REFUSED);
	assert_int_equal(on(&attached)->slot, 0);
	assert_non_null(strstr(last_note, "fake: its parameters cannot be given to the kernel"));
	assert_int_equal(fake.live_states, 0);
	assert_int_equal(rs.attached[ID], 0);
	xp_runtimes_detach(&rs, &attached, 6);
	/* Its slot is free again. */
	port.result = 0;
	assert_int_equal(update(&attached, 5 + SECOND), 1);
	assert_int_equal(on(&attached)->slot, 1);
	xp_runtimes_detach(&rs, &attached, 9);
}

/* A walker may read a slot for a while after the last process that had it has gone. */
static void slots_retire(void **state)
{
	struct xp_attached a = { 0 }, b = { 0 }, c = { 0 };

	(void)state;
	assert_int_equal(update(&a, 5), 1);
	xp_runtimes_detach(&rs, &a, 10);
	assert_int_equal(update(&b, 10 + SECOND - 1), 1);
	assert_int_equal(on(&b)->slot, 2);
	assert_int_equal(update(&c, 10 + SECOND), 1);
	assert_int_equal(on(&c)->slot, 1);
	xp_runtimes_detach(&rs, &b, 11);
	xp_runtimes_detach(&rs, &c, 11);
}

static void children_share_a_slot(void **state)
{
	struct xp_attached parent = { 0 }, child, grandchild, other = { 0 }, plain = { 0 };

	(void)state;
	memset(&child, 0xff, sizeof(child));
	assert_int_equal(update(&parent, 5), 1);
	xp_runtimes_inherit(&rs, &child, &parent);
	assert_int_equal(on(&child)->slot, 1);
	assert_int_equal(on(&child)->status, XP_NOT_PROBED);
	assert_null(on(&child)->state);
	xp_runtimes_inherit(&rs, &grandchild, &child);
	assert_int_equal(on(&grandchild)->slot, 1);
	xp_runtimes_inherit(&rs, &plain, &other);
	assert_int_equal(on(&plain)->slot, 0);
	/* The parent goes; the child is attached on its own; the grandchild still has the first. */
	xp_runtimes_detach(&rs, &parent, 10);
	assert_int_equal(update(&child, 10 + 2 * SECOND), 1);
	assert_int_equal(on(&child)->slot, 2);
	assert_int_equal(rs.attached[ID], 2);
	assert_int_equal(update(&other, 10 + 4 * SECOND), 1);
	assert_int_equal(on(&other)->slot, 3);
	/* Only now does nobody. */
	xp_runtimes_detach(&rs, &grandchild, 10 + 4 * SECOND);
	assert_int_equal(update(&parent, 10 + 5 * SECOND), 1);
	assert_int_equal(on(&parent)->slot, 1);
	xp_runtimes_detach(&rs, &parent, 0);
	xp_runtimes_detach(&rs, &child, 0);
	xp_runtimes_detach(&rs, &other, 0);
}

/* A child that cannot be attached itself keeps its parent's. */
static void a_refused_child(void **state)
{
	struct xp_attached parent = { 0 }, child;

	(void)state;
	assert_int_equal(update(&parent, 5), 1);
	xp_runtimes_inherit(&rs, &child, &parent);
	fake.attach_result = XP_ATTACH_REFUSED;
	assert_int_equal(update(&child, 6), 0);
	assert_int_equal(on(&child)->status, XP_REFUSED);
	assert_int_equal(on(&child)->slot, 1);
	xp_runtimes_detach(&rs, &parent, 7);
	fake.attach_result = XP_ATTACH_DONE;
	assert_int_equal(update(&parent, 7 + 2 * SECOND), 1);
	assert_int_equal(on(&parent)->slot, 2);
	xp_runtimes_detach(&rs, &child, 8);
	xp_runtimes_detach(&rs, &parent, 8);
}

static void all_slots_are_used(void **state)
{
	static struct xp_attached all[SLOTS], more;
	uint64_t end = 5 * SECOND;

	(void)state;
	memset(all, 0, sizeof(all));
	memset(&more, 0, sizeof(more));
	for (unsigned i = 0; i < SLOTS; i++) {
		assert_int_equal(update(&all[i], 5), 1);
		assert_int_equal(on(&all[i])->slot, i + 1);
	}
	assert_int_equal(update(&more, 5), 0);
	assert_int_equal(on(&more)->status, XP_REFUSED);
	assert_int_equal(on(&more)->slot, 0);
	assert_int_equal(port.puts, SLOTS);
	assert_non_null(strstr(last_note, "fake: too many processes have it at once"));
	assert_int_equal(fake.live_states, SLOTS);
	xp_runtimes_detach(&rs, &more, end);
	xp_runtimes_detach(&rs, &all[700], end);
	assert_int_equal(update(&more, end + SECOND - 1), 0);
	xp_runtimes_detach(&rs, &more, end);
	assert_int_equal(update(&more, end + SECOND), 1);
	assert_int_equal(on(&more)->slot, 701);
	xp_runtimes_detach(&rs, &more, end);
	for (unsigned i = 0; i < SLOTS; i++)
		xp_runtimes_detach(&rs, &all[i], end);
}

static unsigned flags_of(const struct xp_attached *attached, struct xp_dso *dso, uint64_t addr,
			 enum xp_place_kind kind, bool exact)
{
	struct xp_place place = { .dso = dso, .addr = addr, .kind = kind, .exact = exact };
	uint8_t id = 99;
	unsigned flags = xp_runtimes_flags(attached, &place, &id);

	return flags | (unsigned)id << 8;
}

static struct xp_dso *dso_of(const char *name)
{
	for (size_t i = 0; i < self.maps.list.n; i++)
		if (strstr(self.maps.list.v[i].path, name))
			return xp_mapping_dso(&self.maps.list.v[i]);
	fail_msg("no mapping of %s", name);
	return NULL;
}

static void whose_code(void **state)
{
	const unsigned own = XP_MERGE_OWN | ID << 8, loop = XP_MERGE_LOOP | ID << 8;
	struct xp_attached attached = { 0 };
	struct xp_dso *libc = dso_of("libc.so"), *program = dso_of("test_runtimes");

	(void)state;
	fake.loop[0] = 0x1000;
	fake.loop[1] = 0x2000;
	assert_int_equal(flags_of(&attached, libc, 0x1800, XP_PLACE_DSO, true), 0);
	assert_int_equal(flags_of(&attached, NULL, 1, XP_PLACE_ANON, true), 0);
	assert_int_equal(update(&attached, 5), 1);
	assert_int_equal(flags_of(&attached, libc, 0x800, XP_PLACE_DSO, true), own);
	assert_int_equal(flags_of(&attached, libc, 0x1000, XP_PLACE_DSO, true), own | loop);
	/* A return address belongs to the call before it. */
	assert_int_equal(flags_of(&attached, libc, 0x1000, XP_PLACE_DSO, false), own);
	assert_int_equal(flags_of(&attached, libc, 0x2000, XP_PLACE_DSO, false), own | loop);
	assert_int_equal(flags_of(&attached, libc, 0x2000, XP_PLACE_DSO, true), own);
	/* The program's own code, JIT code, the kernel. */
	assert_int_equal(flags_of(&attached, program, 0x1800, XP_PLACE_DSO, true) & 0xff, 0);
	assert_int_equal(flags_of(&attached, NULL, 0x1800, XP_PLACE_ANON, true), loop);
	assert_int_equal(flags_of(&attached, NULL, 0x1800, XP_PLACE_KERNEL, true) & 0xff, 0);
	xp_runtimes_detach(&rs, &attached, 6);
	fake.file = "test_runtimes";		/* linked into the program: all of it is not its own */
	xp_runtimes_release(&rs);
	memset(&rs.probed, 0, sizeof(rs.probed));
	memset(&rs.slots, 0, sizeof(rs.slots));
	assert_int_equal(update(&attached, 7), 1);
	assert_int_equal(flags_of(&attached, program, 0x800, XP_PLACE_DSO, true), ID << 8);
	assert_int_equal(flags_of(&attached, program, 0x1800, XP_PLACE_DSO, true), loop);
	xp_runtimes_detach(&rs, &attached, 8);
}

/* Asked before a process maps it, it need not be asked again. */
static void probed_before(void **state)
{
	struct xp_attached attached = { 0 };
	struct xp_dso *libc = dso_of("libc.so");

	(void)state;
	assert_int_equal(xp_runtimes_probe(&rs, libc), 0);
	assert_int_equal(xp_runtimes_probe(&rs, libc), 0);
	assert_int_equal(fake.probes, 1);
	assert_int_equal(update(&attached, 5), 1);
	assert_int_equal(fake.live_data, 1);
	xp_runtimes_detach(&rs, &attached, 8);
}

/* What a recording's summary names: each kind once, as far as there is room. */
static void titles(void **state)
{
	static struct xp_attached all[2 * XP_TITLES_MAX];
	char title[40];

	(void)state;
	memset(all, 0, sizeof(all));
	fake.title = title;
	for (unsigned i = 0; i < 2 * XP_TITLES_MAX; i++) {
		snprintf(title, sizeof(title), "fake %u", i / 2 % 3);
		assert_int_equal(update(&all[i], 5), 1);
	}
	assert_int_equal(rs.ntitles, XP_TITLES_MAX < 3 ? XP_TITLES_MAX : 3);
	assert_string_equal(rs.titles[0], "fake 0");
	assert_string_equal(rs.titles[1], "fake 1");
	for (unsigned i = 0; i < 2 * XP_TITLES_MAX; i++) {
		snprintf(title, sizeof(title), "another %u", i);
		xp_runtimes_detach(&rs, &all[i], 10);
		assert_int_equal(update(&all[i], 5 * SECOND), 1);
	}
	assert_int_equal(rs.ntitles, XP_TITLES_MAX);
	for (unsigned i = 0; i < 2 * XP_TITLES_MAX; i++)
		xp_runtimes_detach(&rs, &all[i], 6 * SECOND);
}

static pid_t start_ruby(void)
{
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (!pid) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		execlp("ruby", "ruby", "-e", "loop { sleep 0.01 }", NULL);
		_exit(127);
	}
	return pid;
}

/* Tried as often as a recording does it; NULL when it could be attached, else why not. */
static const char *attach_ruby(pid_t pid, struct xp_attached *attached)
{
	const struct timespec pause = { .tv_nsec = 5000000 };
	int status;

	for (uint64_t now = 1; now < 10 * SECOND; now += 5 * MS) {
		struct xp_process process;
		int r;

		nanosleep(&pause, NULL);
		if (waitpid(pid, &status, WNOHANG) == pid)
			return "no ruby is installed";
		read_process(&process, pid);
		r = xp_runtimes_update(&rs, &process, attached, now);
		xp_maps_release(&process.maps);
		assert_true(r >= 0);
		if (on(attached)->status == XP_ATTACHED)
			return NULL;
		if (notes)
			return last_note;
	}
	return "it did not get ready";
}

static void a_live_ruby(void **state)
{
	struct xp_attached attached = { 0 };
	const char *problem;
	pid_t pid;

	(void)state;
	runtime = xp_runtime_ruby;
	/* There is none in this process. */
	assert_int_equal(update(&attached, 5), 0);
	assert_int_equal(on(&attached)->status, XP_NOT_PROBED);
	assert_int_equal(notes, 0);
	pid = start_ruby();
	problem = attach_ruby(pid, &attached);
	if (!problem) {
		assert_int_equal(on(&attached)->slot, 1);
		assert_int_equal(port.size, sizeof(struct xp_ruby));
		assert_non_null(on(&attached)->state);
		assert_true(port.value[0] && port.value[0] < port.value[1]);	/* vm_exec */
		kill(pid, SIGKILL);
		waitpid(pid, NULL, 0);
	}
	xp_runtimes_detach(&rs, &attached, 8);
	if (problem) {
		printf("# %s\n", problem);
		skip();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(no_runtime, setup, teardown),
		cmocka_unit_test_setup_teardown(attached_at_once, setup, teardown),
		cmocka_unit_test_setup_teardown(in_the_program_itself, setup, teardown),
		cmocka_unit_test_setup_teardown(unusable_files, setup, teardown),
		cmocka_unit_test_setup_teardown(out_of_memory, setup, teardown),
		cmocka_unit_test_setup_teardown(not_ready_yet, setup, teardown),
		cmocka_unit_test_setup_teardown(refused, setup, teardown),
		cmocka_unit_test_setup_teardown(the_kernel_takes_no_parameters, setup, teardown),
		cmocka_unit_test_setup_teardown(slots_retire, setup, teardown),
		cmocka_unit_test_setup_teardown(children_share_a_slot, setup, teardown),
		cmocka_unit_test_setup_teardown(a_refused_child, setup, teardown),
		cmocka_unit_test_setup_teardown(all_slots_are_used, setup, teardown),
		cmocka_unit_test_setup_teardown(whose_code, setup, teardown),
		cmocka_unit_test_setup_teardown(probed_before, setup, teardown),
		cmocka_unit_test_setup_teardown(titles, setup, teardown),
		cmocka_unit_test_setup_teardown(a_live_ruby, setup, teardown),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
