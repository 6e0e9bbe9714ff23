/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records a stack of a live program for tests/unit/bpf/test_snapshots.c.
 *
 * usage: snapshot FILE SYMBOL PROGRAM [ARGUMENT...]
 *
 * Starts the program and stops it at random moments until a frame of its stack has this symbol
 * ("-": any). The true stack is libdwfl's. FILE gets all that a replay needs, so that it does not
 * depend on the machine's files: registers, the memory that is read and a little around it,
 * executable mappings, the unwind rows around each pc, and the pcs. A stack that our walker does
 * not find as libdwfl does is not recorded: it is printed, and the status is 1.
 *
 * The format: one fact a line, numbers in hexadecimal, "#" begins a comment.
 *	regs R15 R14 ... SS		as struct xp_regs
 *	range START END BIAS NPAGES NAME	as struct xp_range
 *	page RANGE NUMBER		the rows that follow are on this page of that range
 *	row ROW				as XP_ROW
 *	rule KIND FP_OFF REG CFA_OFF SAVE... RA DEREF_ADD	in the order of their numbers
 *	mem ADDRESS WORD...
 *	pc PC NAME			leaf first
 *	end REASON
 */
#include <elfutils/libdwfl.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/uio.h>
#include <sys/user.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../unit/bpf/machine.h"
#include "../unit/collect/collect_fixture.h"
#include "collect/raw.h"

#define TRIES 3000
#define FRAMES_MAX 512
#define ROWS_AROUND 4		/* rows kept on each side of the one in force */
#define WORDS_AROUND 3
#define RULES_MAX 4096

static pid_t pid;
static struct xp_walk w;
static struct xp_regs regs;

static struct {
	uint64_t pc;
	char name[64];
} frames[FRAMES_MAX];
static size_t nframes;

static uint64_t words[65536];		/* addresses that were read */
static size_t nwords;

static uint32_t rules[RULES_MAX];	/* of the tables, by their numbers in the file */
static uint32_t nrules;

__attribute__((noreturn, format(printf, 1, 2))) static void die(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vfprintf(stderr, fmt, ap);
	va_end(ap);
	fputc('\n', stderr);
	if (pid)
		kill(pid, SIGKILL);
	exit(1);
}

static int read_target(void *to, uint32_t n, uint64_t addr)
{
	struct iovec local = { to, n }, remote = { (void *)(uintptr_t)addr, n };

	for (uint64_t at = addr & ~7ull; at < addr + n; at += 8)
		if (nwords < sizeof(words) / sizeof(*words))
			words[nwords++] = at;
	return process_vm_readv(pid, &local, 1, &remote, 1, 0) == n ? 0 : -EFAULT;
}

static int on_frame(Dwfl_Frame *frame, void *arg)
{
	Dwfl *dwfl = dwfl_thread_dwfl(dwfl_frame_thread(frame));
	Dwarf_Addr pc;
	bool exact;
	Dwfl_Module *module;
	const char *name;

	(void)arg;
	if (nframes == FRAMES_MAX || !dwfl_frame_pc(frame, &pc, &exact))
		return DWARF_CB_ABORT;
	module = dwfl_addrmodule(dwfl, pc - !exact);
	name = module ? dwfl_module_addrname(module, pc - !exact) : NULL;
	frames[nframes].pc = pc;
	snprintf(frames[nframes].name, sizeof(frames->name), "%s", name ? name : "?");
	nframes++;
	return DWARF_CB_OK;
}

static void take_true_stack(void)
{
	static const Dwfl_Callbacks callbacks = {
		.find_elf = dwfl_linux_proc_find_elf,
		.find_debuginfo = dwfl_standard_find_debuginfo,
	};
	Dwfl *dwfl = dwfl_begin(&callbacks);

	nframes = 0;
	if (!dwfl || dwfl_linux_proc_report(dwfl, pid) || dwfl_report_end(dwfl, NULL, NULL) ||
	    dwfl_linux_proc_attach(dwfl, pid, true))
		die("libdwfl: %s", dwfl_errmsg(-1));
	dwfl_getthread_frames(dwfl, pid, on_frame, NULL);
	dwfl_end(dwfl);
}

static bool has_symbol(const char *symbol)
{
	if (!strcmp(symbol, "-"))
		return nframes > 0;
	for (size_t i = 0; i < nframes; i++)
		if (!strcmp(frames[i].name, symbol))
			return true;
	return false;
}

/* Goes on, then stops again; signals on the way are delivered. */
static void stop_somewhere(bool first)
{
	int status;

	if (!first && ptrace(PTRACE_CONT, pid, NULL, NULL))
		die("cannot continue");
	usleep((unsigned)(500 + rand() % 3000));
	ptrace(PTRACE_INTERRUPT, pid, NULL, NULL);
	for (;;) {
		if (waitpid(pid, &status, __WALL) != pid || !WIFSTOPPED(status))
			die("the program has ended");
		if (status >> 16 == PTRACE_EVENT_STOP)
			return;
		ptrace(PTRACE_CONT, pid, NULL, (void *)(intptr_t)WSTOPSIG(status));
	}
}

static void start(char **argv)
{
	pid = fork();
	if (pid < 0)
		die("cannot fork");
	if (!pid) {
		int null = open("/dev/null", O_RDWR);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		dup2(null, 0);
		dup2(null, 1);
		dup2(null, 2);
		execvp(*argv, argv);
		_exit(127);
	}
	usleep(300000);
	if (ptrace(PTRACE_SEIZE, pid, NULL, NULL))
		die("cannot trace %s", *argv);
}

static void take_regs(void)
{
	struct user_regs_struct user;

	if (ptrace(PTRACE_GETREGS, pid, NULL, &user))
		die("no registers");
	memcpy(&regs, &user, sizeof(regs));	/* the same order, as far as it goes */
}

/* Publishes the tables of all the program's code, and leaves its mappings in *maps. */
static void publish(struct xp_tables *t, struct xp_dsos *dsos, struct xp_maps *maps)
{
	struct xp_maps all = { 0 };
	struct xp_span span;

	if (xp_maps_read(&all, pid, NULL))
		die("no mappings");
	for (size_t i = 0; i < all.list.n; i++) {
		struct xp_mapping *m = &all.list.v[i];

		if (!m->exec)
			continue;
		m->user = xp_dsos_get(dsos, pid, m);
		if ((m->user && xp_tables_add(t, m->user)) || xp_maps_add(maps, m))
			die("out of memory");
	}
	if (xp_tables_put_ranges(t, maps, &span) || span.first || t->full)
		die("tables are full");
	machine = (struct machine){ t->mem.rows, t->mem.pages, t->mem.rules, t->mem.ranges,
				    t->mem.nblocks, t->mem.npages, XP_RULES_MAX, span.count,
				    read_target, 0 };
	xp_maps_release(&all);
}

static void compare(void)
{
	bool same;

	walk_begin(&w, &regs);
	xp_native_walk(&w);
	same = w.frames == nframes;
	for (uint32_t i = 0; same && i < w.frames; i++)
		same = walk_frame(&w, i)->pc == frames[i].pc;
	if (same && xp_end_complete(w.sample.end))
		return;
	for (size_t i = 0; i < nframes || i < w.frames; i++)
		fprintf(stderr, "%3zu %16llx %16llx %s\n", i,
			i < w.frames ? (unsigned long long)walk_frame(&w, (uint32_t)i)->pc : 0,
			i < nframes ? (unsigned long long)frames[i].pc : 0,
			i < nframes ? frames[i].name : "");
	die("the walker and libdwfl do not agree (end: %s)", xp_end_name(w.sample.end));
}

static int by_value(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

static void write_memory(FILE *out)
{
	uint64_t next = 0;

	qsort(words, nwords, sizeof(*words), by_value);
	for (size_t i = 0; i < nwords; i++) {
		uint64_t at = words[i] - 8 * WORDS_AROUND;

		for (at = at < next ? next : at; at <= words[i] + 8 * WORDS_AROUND; at += 8) {
			struct iovec remote = { (void *)(uintptr_t)at, 8 };
			uint64_t word;
			struct iovec local = { &word, 8 };

			if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != 8)
				continue;
			if (at != next || at % 64 == 0)
				fprintf(out, "\nmem %llx", (unsigned long long)at);
			fprintf(out, " %llx", (unsigned long long)word);
			next = at + 8;
		}
	}
	fputc('\n', out);
}

/* The number of a rule in the file; new ones are appended. */
static uint32_t rule_number(uint32_t rule)
{
	for (uint32_t i = 0; i < nrules; i++)
		if (rules[i] == rule)
			return i;
	if (nrules == RULES_MAX)
		die("too many rules");
	rules[nrules] = rule;
	return nrules++;
}

static void write_rule(FILE *out, const struct xp_rule *r)
{
	fprintf(out, "rule %x %x %x %x", r->kind, (unsigned)(uint16_t)r->fp_off, r->reg,
		(unsigned)r->cfa_off);
	for (int i = 0; i < XP_SAVED_N; i++)
		fprintf(out, " %x", r->save[i]);
	fprintf(out, " %x %x\n", r->ra, r->deref_add);
}

/* Whether row i of a page is near one that a frame of the stack is looked up by. */
static bool is_wanted(const struct xp_range *range, uint32_t n, const struct xp_page *page,
		      uint32_t i)
{
	const uint32_t *row = machine.rows + page->first;

	for (uint32_t k = 0; k < w.frames; k++) {
		bool exact = !k || frame_flags(walk_frame(&w, k - 1)) & XP_FRAME_SIGNAL;
		uint64_t pc = walk_frame(&w, k)->pc - !exact, vaddr = pc - range->bias;
		uint32_t lo = i < ROWS_AROUND ? 0 : i - ROWS_AROUND, hi = i + ROWS_AROUND;

		if (pc < range->start || pc >= range->end || vaddr >> XP_PAGE_SHIFT != n)
			continue;
		if (row[lo] <= XP_ROW(vaddr, 0xffff) &&
		    (hi >= page->count || row[hi] > XP_ROW(vaddr, 0xffff)))
			return true;
	}
	return false;
}

static void write_page(FILE *out, uint32_t index, uint32_t n)
{
	const struct xp_range *range = &machine.ranges[index];
	const struct xp_page *page = &machine.pages[range->page + n];
	bool any = false;

	for (uint32_t i = 0; i < page->count; i++) {
		uint32_t row = machine.rows[page->first + i];

		if (!is_wanted(range, n, page, i))
			continue;
		if (!any)
			fprintf(out, "page %x %x\n", index, n);
		any = true;
		fprintf(out, "row %x\n", (row & 0xffff0000) | rule_number(row & 0xffff));
	}
}

static void write_tables(FILE *out, const struct xp_maps *maps)
{
	for (uint32_t i = 0; i < machine.nranges; i++) {
		const struct xp_range *r = &machine.ranges[i];
		const char *path = maps->list.v[i].path, *slash = strrchr(path, '/');

		fprintf(out, "range %llx %llx %llx %x %s\n", (unsigned long long)r->start,
			(unsigned long long)r->end, (unsigned long long)r->bias, r->npages,
			slash ? slash + 1 : *path ? path : "-");
	}
	for (uint32_t i = 0; i < machine.nranges; i++)
		for (uint32_t p = 0; p < machine.ranges[i].npages; p++)
			write_page(out, i, p);
	for (uint32_t i = 0; i < nrules; i++)
		write_rule(out, &machine.rules[rules[i]]);
}

static void write_file(const char *path, const struct xp_maps *maps, char **argv)
{
	FILE *out = fopen(path, "w");
	const char *slash = strrchr(*argv, '/');

	if (!out)
		die("cannot write %s", path);
	fprintf(out, "# %s", slash ? slash + 1 : *argv);
	while (*++argv)
		fprintf(out, " %.60s", strchr(*argv, '\n') ? "..." : *argv);
	fprintf(out, "\nregs");
	for (int i = 0; i < XP_REGS_N; i++)
		fprintf(out, " %llx", ((const unsigned long long *)&regs)[i]);
	fputc('\n', out);
	write_tables(out, maps);
	write_memory(out);
	for (size_t i = 0; i < nframes; i++)
		fprintf(out, "pc %llx %s\n", (unsigned long long)frames[i].pc, frames[i].name);
	fprintf(out, "end %s\n", xp_end_name(w.sample.end));
	if (fclose(out))
		die("cannot write %s", path);
}

int main(int argc, char **argv)
{
	struct xp_tables_memory memory = make_tables_memory(16, 16384, 1024);
	struct xp_dsos *dsos = xp_dsos_new();
	struct xp_tables tables;
	struct xp_maps maps = { 0 };

	if (argc < 4) {
		fprintf(stderr, "usage: snapshot FILE SYMBOL PROGRAM [ARGUMENT...]\n");
		return 2;
	}
	if (!dsos || xp_tables_init(&tables, &memory))
		die("out of memory");
	srand((unsigned)getpid());
	start(argv + 3);
	for (int i = 0; i < TRIES; i++) {
		stop_somewhere(i == 0);
		take_true_stack();
		if (has_symbol(argv[2]))
			break;
		if (i == TRIES - 1)
			die("%s was not seen", argv[2]);
	}
	take_regs();
	publish(&tables, dsos, &maps);
	compare();
	write_file(argv[1], &maps, argv + 3);
	fprintf(stderr, "%s: %zu frames, %zu words\n", argv[1], nframes, nwords);
	kill(pid, SIGKILL);
	xp_maps_release(&maps);
	xp_tables_release(&tables);
	xp_dsos_free(dsos);
	free_tables_memory(&memory);
	return 0;
}
