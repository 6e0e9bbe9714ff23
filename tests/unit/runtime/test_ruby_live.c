/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/ruby/names on a live Ruby 3.1: ruby_frames.rb prints its own backtrace and spins; the
 * names, files and lines of the same frames, read from outside, must be those. The walk here is a
 * small one of its own, by the layouts of vm_core.h, over the stopped process.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "runtime/ruby/names.h"

#define LIBRUBY "libruby-3.1.so.3.1"
#define FRAMES_MAX 256
#define ADDRESS "\1"		/* in an expected name: any 16 hexadecimal digits */

/* The frames that ruby_frames.rb is in, leaf first. */
static const char *const names_expected[] = {
	"Object#leaf",
	"block in Object#toplevel_spin",
	"Array#sort",
	"Object#toplevel_spin",
	"block in <main>",
	"block in singleton class",
	"#<Object>.odd",
	"block in Deep.run",
	"Deep.run",
	"block in #<refinement:Integer@Deep::Refined>#refined",
	"Kernel#tap",
	"#<refinement:Integer@Deep::Refined>#refined",
	"#<Class:0x" ADDRESS ">#anon",
	"Deep::Nameless#holder_call",
	"#<Class:0x" ADDRESS ">#anon",
	"block (2 levels) in #<Object>.sing",
	"BasicObject#instance_exec",
	"block in #<Object>.sing",
	"Hash#each_pair",
	"#<Object>.sing",
	"Deep::Sub.klsm",
	"Deep::Sub#spin",
	"Deep::Pre#spin",
	"block (2 levels) in Deep::Bar#evald",
	"Integer#times",
	"block in Deep::Bar#evald",
	"Array#each",
	"Enumerable#sort_by",
	"Deep::Bar#evald",
	"Deep::Bar#method_missing",
	"Kernel#eval",
	"Deep::Bar#method_missing",
	"block in <class:Bar>",
	"ensure in block in Deep::Bar#ens",
	"block in Deep::Bar#ens",
	"Kernel#catch",
	"Deep::Bar#ens",
	"block in Deep::Bar#resc",
	"Array#each",
	"rescue in Deep::Bar#resc",
	"Deep::Bar#resc",
	"block in Deep::Bar#blk",
	"Deep::Bar#blk",
	"block (2 levels) in Deep::Bar#inst",
	"Deep::Bar.smeth",
	"block in Deep::Bar#inst",
	"Array#each",
	"Deep::Bar#inst",
	"block (2 levels) in <main>",
	"block (2 levels) in <main>",
	"Kernel#tap",
	"block in <main>",
	"Struct.new",
	"<main>",
};

#define EXPECTED (sizeof(names_expected) / sizeof(names_expected[0]))

struct said {			/* a frame of the script's own backtrace */
	char path[512], label[128];
	unsigned line;
};

static struct said said[FRAMES_MAX];
static size_t nsaid;
static pid_t pid;
static struct xp_mem mem;
static uint64_t base;		/* of libruby in the process */
static uint64_t data[2];	/* its writable mapping */

static uint64_t u64(uint64_t at)
{
	uint64_t v;

	assert_int_equal(xp_mem_read(&mem, at, &v, sizeof(v)), 0);
	return v;
}

/* Starts the script; reads its backtrace; stops it. False: no such Ruby. */
static bool start(const char *option)
{
	const char *top = getenv("top_srcdir");
	char script[4096], line[1024];
	int fds[2], status;
	FILE *f;

	snprintf(script, sizeof(script), "%s/tests/unit/runtime/ruby_frames.rb", top ? top : ".");
	assert_int_equal(pipe(fds), 0);
	pid = fork();
	if (!pid) {
		dup2(fds[1], 1);
		alarm(60);
		execlp("ruby3.1", "ruby3.1", "-Ku", option, script, NULL);
		_exit(127);
	}
	close(fds[1]);
	f = fdopen(fds[0], "r");
	for (nsaid = 0; fgets(line, sizeof(line), f) && strcmp(line, "READY\n");) {
		struct said *s = &said[nsaid++];

		assert_true(nsaid < FRAMES_MAX);
		assert_int_equal(sscanf(line, "%511[^\t]\t%u\t%127[^\n]", s->path, &s->line,
					s->label), 3);
	}
	/* Into the loop behind the print. */
	nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	fclose(f);
	kill(pid, SIGSTOP);
	assert_int_equal(waitpid(pid, &status, WUNTRACED), pid);
	if (!WIFSTOPPED(status))
		pid = 0;
	return nsaid && pid;
}

static void stop(void)
{
	if (!pid)
		return;
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

static void find_library(void)
{
	char path[64], line[1024], mode[8];
	uint64_t from, to;
	FILE *f;

	snprintf(path, sizeof(path), "/proc/%d/maps", (int)pid);
	f = fopen(path, "r");
	assert_non_null(f);
	for (base = data[0] = 0; fgets(line, sizeof(line), f);) {
		if (!strstr(line, LIBRUBY) || sscanf(line, "%lx-%lx %7s", &from, &to, mode) != 3)
			continue;
		if (!base)
			base = from;
		if (mode[1] == 'w') {
			data[0] = from;
			data[1] = to;
		}
	}
	fclose(f);
	mem = xp_mem_of_pid(pid);
}

/* The address in the process of what the library exports. */
static uint64_t exported(const char *symbol)
{
	void *library = dlopen(LIBRUBY, RTLD_LAZY), *here = library ? dlsym(library, symbol) : NULL;
	Dl_info info;

	assert_non_null(here);
	assert_true(dladdr(here, &info));
	return base + ((uintptr_t)here - (uintptr_t)info.dli_fbase);
}

static struct xp_ruby_names *names_with(uint64_t table)
{
	struct xp_ruby_symbols symbols = { table, 0xa9, 4 };
	struct xp_ruby_names *names;

	assert_int_equal(xp_ruby_names_new(&names, xp_ruby_layout_of(3, 1), &symbols, &mem), 0);
	return names;
}

static bool id_is(struct xp_ruby_names *names, uint64_t id, const char *expected)
{
	char text[32];

	return xp_ruby_names_id(names, id, text, sizeof(text)) && !strcmp(text, expected);
}

/* The symbol table is not exported: what in the library's data decodes operators is it. */
static struct xp_ruby_names *find_names(void)
{
	for (uint64_t at = data[0]; at + 64 < data[1]; at += 8) {
		uint64_t ids = u64(at + 16);
		struct xp_ruby_names *names;

		if (!xp_ruby_is_object(ids) || ids >> 47)
			continue;
		names = names_with(at);
		if (id_is(names, '+', "+") && id_is(names, '<', "<"))
			return names;
		xp_ruby_names_free(names);
	}
	return NULL;
}

static unsigned imemo_type(uint64_t value)
{
	uint64_t flags = u64(value);

	return (flags & 0x1f) == 0x1a ? flags >> 12 & 0xf : 0;
}

/* The method entry of a frame, or 0. */
static uint64_t method_entry(uint64_t ep)
{
	for (int i = 0; i < 50; i++) {
		uint64_t me = u64(ep - 16), flags = u64(ep);

		if (xp_ruby_is_object(me) && imemo_type(me) == 2 && flags & 2)
			me = u64(me + 8);
		if (xp_ruby_is_object(me) && imemo_type(me) == 6)
			return me;
		if (flags & 2)
			return 0;
		ep = u64(ep - 8) & ~3ull;
	}
	return 0;
}

static struct xp_raw_vm_frame raw_frame(uint64_t cfp)
{
	uint64_t iseq = u64(cfp + 16), ep = u64(cfp + 32), code = 0, me = method_entry(ep);
	unsigned kind = u64(ep) >> 16 & 0xf;

	if (kind == XP_RUBY_CFUNC)
		code = me ? u64(me + 16) : 0;
	else if (iseq)
		code = u64(iseq + 16);
	return (struct xp_raw_vm_frame){ (uint64_t)kind << 48 | code, me ? u64(me + 32) : 0,
					 u64(cfp) };
}

/* Expected with a mark for an address. */
static bool matches(const char *name, const char *expected)
{
	size_t before = strcspn(expected, ADDRESS);

	if (!expected[before])
		return !strcmp(name, expected);
	return !strncmp(name, expected, before) &&
	       strspn(name + before, "0123456789abcdef") == 16 &&
	       !strcmp(name + before + 16, expected + before + 1);
}

/* "block in foo" and "block in Foo#foo". */
static bool extends(const char *name, const char *label)
{
	const char *last = strstr(label, " in "), *next;
	size_t front, tail;

	while (last && (next = strstr(last + 1, " in ")))
		last = next;
	front = last ? last + 4 - label : 0;
	tail = strlen(label + front);
	return !strncmp(name, label, front) && strlen(name) >= front + tail &&
	       !strcmp(name + strlen(name) - tail, label + front);
}

static void check_frame(const struct xp_profile *p, const struct xp_frame *f, size_t i)
{
	const char *name = xp_strings_get(&p->strings, f->name).p;
	const char *file = xp_strings_get(&p->strings, f->file).p;

	assert_true(i < nsaid);
	if (!matches(name, names_expected[i]) || !extends(name, said[i].label))
		fail_msg("frame %zu is %s, not %s (%s)", i, name, names_expected[i], said[i].label);
	if (f->kind == XP_FRAME_CFUNC) {
		assert_string_equal(file, "");
		assert_int_equal(f->line, 0);
		return;
	}
	assert_int_equal(f->kind, XP_FRAME_NORMAL);
	assert_string_equal(file, said[i].path);
	/* The leaf has gone on since, into the loop at its end; JIT code does not store where. */
	if (i == 0)
		assert_true(!f->line || (f->line >= said[i].line && f->line <= said[i].line + 3));
	else
		assert_int_equal(f->line, said[i].line);
}

/* All frames from the leaf to the root, named twice: the second time from the cache. */
static void check_stack(struct xp_ruby_names *names, struct xp_profile *p, uint64_t batch)
{
	uint64_t ec = u64(u64(u64(exported("ruby_current_vm_ptr")) + 40) + 40);
	uint64_t end = u64(ec) + 8 * u64(ec + 8), cfp = u64(ec + 16);
	size_t n = 0;

	for (unsigned depth = 0; cfp < end; cfp += 64, depth++) {
		struct xp_raw_vm_frame raw = raw_frame(cfp);
		uint32_t id, again;

		assert_true(depth < FRAMES_MAX);
		assert_int_equal(xp_ruby_names_frame(names, &raw, !n, batch, p, &id), 0);
		assert_int_equal(xp_ruby_names_frame(names, &raw, !n, batch + 1, p, &again), 0);
		assert_int_equal(id, again);
		if (id == XP_NO_ID)
			assert_int_equal(cfp + 64, end);
		else if (p->frames.v[id].kind != XP_FRAME_INTERNAL)
			check_frame(p, &p->frames.v[id], n++);
	}
	assert_int_equal(n, EXPECTED);
	assert_int_equal(nsaid, EXPECTED);
}

static void check(const char *option)
{
	struct xp_ruby_names *names;
	struct xp_profile profile;
	uint32_t id;

	if (!start(option)) {
		stop();
		print_message("# SKIP ruby3.1 %s cannot be run\n", option);
		skip();
	}
	find_library();
	names = find_names();
	assert_non_null(names);
	assert_int_equal(xp_profile_init(&profile), 0);
	check_stack(names, &profile, 1);
	stop();
	/* Ended: what is known is still named, what is not has a mark. */
	assert_int_equal(xp_ruby_names_frame(names,
					     &(struct xp_raw_vm_frame){ 1ull << 48 | 4096, 0, 0 },
					     false, 3, &profile, &id), 0);
	assert_string_equal(xp_strings_get(&profile.strings, profile.frames.v[id].name).p,
			    "[ruby: process ended before it was named]");
	xp_ruby_names_free(names);
	xp_profile_release(&profile);
}

static void interpreter(void **state)
{
	(void)state;
	check("--disable-jit");
}

static void yjit(void **state)
{
	(void)state;
	check("--yjit-call-threshold=1");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(interpreter),
		cmocka_unit_test(yjit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
