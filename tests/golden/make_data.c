/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Writes the sample files of the golden tests: make_data DIRECTORY. The files are checked in; this
 * program is how to make them again when the format changes, or to add one.
 */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "store/writer.h"
#include "tests/unit/profile/sample_profile.h"

static void die(const char *what)
{
	fprintf(stderr, "make_data: %s\n", what);
	exit(1);
}

static void set_facts(struct xp_profile *p)
{
	int bad = xp_profile_set_meta(p, "version", "xprof 0.1") |
		  xp_profile_set_meta(p, "hostname", "host") |
		  xp_profile_set_meta(p, "kernel", "6.1.0") |
		  xp_profile_set_meta(p, "command", "xprof record -F 99 -- ./app") |
		  xp_profile_set_meta(p, "event", "cpu-clock") |
		  xp_profile_set_meta(p, "frequency", "99");

	if (bad)
		die("out of memory");
}

static void set_counters(struct xp_profile *p, uint64_t samples, uint64_t lost, uint64_t cut)
{
	int bad = xp_profile_set_meta(p, "end-text.read", "stack unreadable") |
		  xp_profile_set_counter(p, "samples", samples) |
		  xp_profile_set_counter(p, "lost", lost) |
		  xp_profile_set_counter(p, "end.complete", samples - cut) |
		  xp_profile_set_counter(p, "end.read", cut) |
		  xp_profile_set_counter(p, "end.too-deep", 0);

	if (bad)
		die("out of memory");
}

/* Runtimes, kinds, recursion, inlines, kernel frames, internal frames and two threads. */
static void fill_mixed(struct xp_profile *p)
{
	uint32_t start = make_frame(p, "native", "_start", XP_FRAME_NORMAL, "/usr/bin/ruby", NULL, 0);
	uint32_t top = make_frame(p, "ruby", "<main>", XP_FRAME_NORMAL, NULL, "/srv/app/main.rb", 3);
	uint32_t vm = make_frame(p, "native", "vm_exec", XP_FRAME_INTERNAL, "/usr/lib/libruby.so.3.1",
				 NULL, 0);
	uint32_t each = make_frame(p, "ruby", "Array#each", XP_FRAME_CFUNC, NULL, NULL, 0);
	uint32_t block = make_frame(p, "ruby", "block in Foo#fib", XP_FRAME_NORMAL, NULL,
				    "/srv/app/fib.rb", 12);
	uint32_t block2 = make_frame(p, "ruby", "block in Foo#fib", XP_FRAME_NORMAL, NULL,
				     "/srv/app/fib.rb", 14);
	uint32_t jit = make_frame(p, "ruby", "[YJIT]", XP_FRAME_JIT, NULL, NULL, 0);
	uint32_t lua = make_frame(p, "lua", "step", XP_FRAME_NORMAL, NULL, "@game.lua", 40);
	uint32_t hash = make_frame(p, "native", "hash_bytes", XP_FRAME_INLINE, "/usr/lib/libx.so",
				   "hash.h", 7);
	uint32_t look = make_frame(p, "native", "lookup", XP_FRAME_NORMAL, "/usr/lib/libx.so", "x.c", 80);
	uint32_t bare = make_frame(p, "native", "[libx.so+0x1040]", XP_FRAME_NORMAL, "/usr/lib/libx.so",
				   NULL, 0);
	uint32_t read = make_frame(p, "kernel", "ksys_read", XP_FRAME_KERNEL, NULL, NULL, 0);
	uint32_t copy = make_frame(p, "kernel", "copy_to_user", XP_FRAME_KERNEL, NULL, NULL, 0);
	uint32_t cut = make_frame(p, "native", "[truncated: stack unreadable]", XP_FRAME_MARK, NULL,
				  NULL, 0);
	uint32_t a = make_thread(p, 100, 100, "ruby"), b = make_thread(p, 100, 101, "worker 1");

	make_samples(p, a, make_stack(p, 7, start, vm, top, each, vm, block, jit), 30);
	make_samples(p, a, make_stack(p, 8, start, vm, top, each, vm, block, each, block), 20);
	make_samples(p, a, make_stack(p, 9, start, vm, top, each, vm, block, each, block2, look), 10);
	make_samples(p, a, make_stack(p, 6, start, vm, top, look, read, copy), 5);
	make_samples(p, b, make_stack(p, 4, start, lua, look, hash), 25);
	make_samples(p, b, make_stack(p, 2, start, lua), 6);
	make_samples(p, b, make_stack(p, 2, cut, bare), 3);
	make_samples(p, b, make_stack(p, 1, vm), 1);
	set_facts(p);
	set_counters(p, 100, 2, 3);
}

/* What programs may call their functions, threads and files. */
static void fill_names(struct xp_profile *p)
{
	static const char *const names[] = {
		"plain", "semi;colon", "foo 12", "foo 12.5", "a 1 2", "tab\there", "two  blanks",
		" trimmed ", "   ", "", "line\nbreak", "bell\a", "\x1b[31mred\x1b[m", "bad \xff\xfe utf8",
		"cut \xe2\x82", "overlong \xc0\xaf", "surrogate \xed\xa0\x80", "\xe6\x97\xa5\xe6\x9c\xac",
		"nbsp\xc2\xa0" "12", "arabic \xd9\xa3", "\xef\xbf\xbe", "c1 \xc2\x9b" "31m", "del\x7f",
		"<&\">'", "block (2 levels) in <main>", "(garbage collection)", "a->b", "#comment",
		"name_[k]", "7", "foo", "foo-bar", "foo bar", "foo!", "[ET 0]",
	};
	static const char *const comms[] = { "[ET 0]", "a;b", "x 7", "\x1b[31m", "path (x) y" };
	uint32_t threads[5], root;

	root = make_frame(p, "native", "main", XP_FRAME_NORMAL, "/opt/a b/(x) y", "dir with blank/f 1.c", 3);
	for (size_t i = 0; i < 5; i++)
		threads[i] = make_thread(p, 7, 7 + (uint32_t)i, comms[i]);
	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		uint32_t f = make_frame(p, "native", names[i], XP_FRAME_NORMAL, "/opt/a b/(x) y", NULL, 0);

		make_samples(p, threads[i % 5], make_stack(p, 2, root, f), 3);
		make_samples(p, threads[0], make_stack(p, 3, root, f, root), 1 + (int)i);
	}
	set_counters(p, p->samples.n, 0, 0);
}

static void fill_nothing(struct xp_profile *p)
{
	set_facts(p);
	set_counters(p, 0, 0, 0);
}

/* And with a reason that has no text. */
static void fill_lost(struct xp_profile *p)
{
	set_counters(p, 7, 7, 0);
	if (xp_profile_set_counter(p, "end.new-reason", 2))
		die("out of memory");
}

/* Each round is a chunk of its own. */
static void write_file(const char *name, int rounds, void (*fill)(struct xp_profile *p))
{
	struct xp_profile p;
	struct xp_writer *w;
	struct xp_err err = XP_ERR_INIT;

	unlink(name);
	if (xp_profile_init(&p) || xp_writer_open(&w, name, NULL, &p, &err))
		die(err.what);
	while (rounds-- > 0) {
		fill(&p);
		if (xp_writer_flush(w, &err))
			die(err.what);
	}
	if (xp_writer_close(w, &err))
		die(err.what);
	xp_profile_release(&p);
}

int main(int argc, char **argv)
{
	if (argc != 2 || chdir(argv[1]))
		die("wants a directory");
	write_file("mixed.data", 1, fill_mixed);
	write_file("twice.data", 2, fill_mixed);
	write_file("names.data", 1, fill_names);
	write_file("empty.data", 1, fill_nothing);
	write_file("lost.data", 1, fill_lost);
	return 0;
}
