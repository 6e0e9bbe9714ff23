// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * xprof: the table of commands.
 *
 * A map of the tree, in the order in which a recording passes through it. Headers are named where
 * they have no .c of their name. A test keeps this list complete.
 *
 * The command line:
 *	base/opt.c		option tables: parsing, help, lists for completions
 *	base/optval.c		... their values
 *	cmd/cmd.c		how every command begins and ends, messages
 *	cmd/help.c		help texts, manual pages
 *	cmd/pager.c		a pager between a report and the terminal
 * One file per command:
 *	cmd/record.c		samples into a file
 *	cmd/report.c		a file into a report
 *	cmd/maps.c		what could be walked in a process, without recording it
 *	cmd/live.c		what goes on while record samples: targets, signals, the end
 *	cmd/child.c		the command to be recorded, held until all is ready
 *
 * Looking at a process from outside, without touching it:
 *	target/proc.c		/proc/PID: identity, user, threads
 *	target/maps.c		its mappings
 *	target/mem.c		its memory
 *	target/process.h	both together
 *	target/dso.c		the file behind a mapping, opened in its namespace
 *	target/framecheck.c	whether a step by frame pointer can be believed
 *	target/elf.c		ELF images, every offset checked
 *	target/disasm.c		instructions decoded
 *	target/reloc.c		relocations and exported symbols
 *	target/needed.c		which files a command is about to map
 *	target/ldcache.c	... where the loader would find them
 * Its unwind information, made into rows that the kernel side can search:
 *	bpf/unwind.h		the rows
 *	target/cfi.c		the table of an image
 *	target/cfi_parse.c	... .eh_frame taken apart
 *	target/cfi_run.c	... its instructions
 *	target/cfi_rule.c	... what a row can hold of their result
 *	target/cfi_blob.c	rows for code whose unwind information lies: LuaJIT's assembler
 *	target/cfi_blob_funcs.c	... its functions
 *	target/cfi_blob_places.c ... where its frame has another size
 *	target/cfi_blob_impl.h	... what these share
 *	target/cfi_blob_step.c	... what an instruction does to the frame
 *	target/cfi_blob_x86.c	... the instructions
 *	target/cfi_impl.h	... what these share
 *	base/span.c		who owns which part of the kernel side's memory
 *
 * Taking samples in the kernel:
 *	bpf/sample.bpf.c	a timer fires: registers, kernel stack, the record
 *	bpf/native.bpf.c	... the user stack
 *	bpf/ruby.bpf.c		... Ruby's activations and control frames
 *	bpf/process.bpf.c	fork, exec, exit
 *	bpf/xbpf.h		what these share
 *	bpf/arch.h		what depends on the machine
 *	bpf/kernel.h		the kernel's structures, as far as they are read
 *	bpf/abi.h		what is sent to user space
 *	bpf/runtimes.h		the runtimes, one line each
 *	bpf/ruby.h		a Ruby process, and what is sent of a Ruby frame
 * Handling it from user space:
 *	collect/session.c	a recording: everything below, in the right order
 *	collect/bpf.c		load, attach, ring: the only user of libbpf
 *	collect/perf.c		perf_event_open(2), and what to say when it fails
 *	collect/sideband.c	mappings, names and new processes as the kernel reports them
 *	collect/targets.c	the processes that are sampled
 *	collect/targets_events.c ... events applied to them
 *	collect/targets_maps.c	... their mappings
 *	collect/targets_impl.h	... what these share
 *	collect/threads.c	... names of their threads
 *	collect/ranges.c	... ranges published of them
 *	collect/life.c		... who has ended, or is another by now
 *	collect/runtimes.c	the language runtimes in them
 *	collect/tables.c	unwind rows in the memory that the kernel side reads
 *	collect/raw.c		a record, checked
 *	collect/batch.c		records into samples, in the order of their times
 *	collect/judge.c		... whether a walk's steps can be believed
 *
 * From addresses to names:
 *	runtime/runtime.h	what a runtime is asked to do
 *	runtime/registry.c	the runtimes there are
 *	runtime/native.c	native and kernel frames
 *	runtime/merge.c		one stack from the parts of a record
 *	runtime/ruby/ruby.c	Ruby: its table of operations
 *	runtime/ruby/image.c	... what its file tells: addresses and offsets from machine code
 *	runtime/ruby/image_code.c ... its exported functions
 *	runtime/ruby/image_loop.c ... the interpreter's loop
 *	runtime/ruby/image_impl.h ... what these share
 *	runtime/ruby/image_trace.c ... values through instructions
 *	runtime/ruby/layout.c	... offsets that no code gives away, by version
 *	runtime/ruby/attach.c	... confirmed on the live process
 *	runtime/ruby/names.c	... frames by name, cached
 *	runtime/ruby/object.c	... strings, arrays, IDs, classes
 *	runtime/ruby/iseq.c	... bodies of methods and blocks
 *	runtime/ruby/lines.c	... their lines
 *	target/sym.c		the functions of an image
 *	target/sym_read.c	... by its symbols
 *	target/sym_x86.c	... PLT stubs, and main of a stripped program
 *	target/sym_impl.h	... what these share
 *	target/demangle.c	C++ and Rust names
 *	target/srcline.c	source lines
 *	target/ksyms.c		the kernel's functions
 *
 * A profile in memory:
 *	profile/profile.c	its tables: frames, stacks, threads, samples
 *	profile/view.c		which part of it is looked at
 *	profile/tree.c		samples merged from the root
 *	profile/hot.c		self and total per function
 * In a file:
 *	store/format.h		the format
 *	store/create.c		creating the file safely
 *	store/writer.c		appending what is new
 *	store/reader.c		reading it back, up to any damage
 *	store/records.c		... the records in it
 * As a report:
 *	output/output.c		the formats
 *	output/table.c		functions with their shares
 *	output/folded.c		one line per stack
 *	output/header.c		facts about the recording
 *	output/name.c		names made fit for a line
 *
 * Tools of all:
 *	base/err.c		errors as values
 *	base/vec.c		arrays that grow
 *	base/buf.c		bytes to write, a cursor over bytes to read
 *	base/hash.c		hash tables
 *	base/intern.c		strings with ids
 *	base/io.c		whole reads and writes
 *	base/filemap.c		files mapped into memory, which may be cut short
 *	base/text.c		UTF-8, widths, sizes, times, nearest names
 */
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "cmd/cmd.h"
#include "cmd/help.h"

const struct xp_command *const xp_commands[] = {
	&xp_cmd_record,
	&xp_cmd_report,
	&xp_cmd_maps,
	&xp_cmd_help,
	NULL,
};

static bool show_version, list_commands, list_options;

const struct xp_opt xp_program_options[] = {
	{
		.type = XP_OPT_FLAG,
		.letter = 'V',
		.name = "version",
		.dest = &show_version,
		.help = "print the version",
	},
	/* For the shell completions. */
	{ .type = XP_OPT_FLAG, .name = "list-cmds", .dest = &list_commands, .hidden = true },
	{ .type = XP_OPT_FLAG, .name = "list-opts", .dest = &list_options, .hidden = true },
	{ .type = XP_OPT_END },
};

/*
 * A closed standard descriptor would be given to the next file opened, and messages would land in
 * that file. Its place is taken by one on which the expected transfer fails.
 */
static void occupy_standard_files(void)
{
	for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
		if (fcntl(fd, F_GETFD) < 0 &&
		    open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) < 0)
			exit(XP_EXIT_FAILURE);
	}
}

static int usage_error(struct xp_err *err)
{
	xp_err_hint(err, "try 'xprof --help'");
	xp_err_status(err, XP_EXIT_USAGE);
	return xp_cmd_fail(err);
}

static int dispatch(int argc, char **argv)
{
	struct xp_err err = XP_ERR_INIT;
	const struct xp_command *cmd;
	bool help;
	int first = xp_opt_parse(xp_program_options, argc, argv, &help, NULL, &err);

	if (first < 0)
		return usage_error(&err);
	if (help) {
		xp_help_program(stdout);
		return XP_EXIT_OK;
	}
	if (show_version) {
		puts("xprof " PACKAGE_VERSION);
		return XP_EXIT_OK;
	}
	if (list_options) {
		xp_opt_list(xp_program_options, stdout);
		return XP_EXIT_OK;
	}
	if (list_commands) {
		for (size_t i = 0; xp_commands[i]; i++)
			printf("%s\t%s\n", xp_commands[i]->name, xp_commands[i]->summary);
		return XP_EXIT_OK;
	}
	if (first == argc) {
		xp_err_set(&err, EINVAL, "no command given");
		return usage_error(&err);
	}
	cmd = xp_help_find(argv[first]);
	if (!cmd)
		return xp_help_unknown(argv[first]);
	return cmd->run(argc - first, argv + first);
}

int main(int argc, char **argv)
{
	occupy_standard_files();
	return xp_cmd_end(dispatch(argc, argv));
}
