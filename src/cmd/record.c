/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xprof record: samples into a file.
 *
 * The file is written as the recording goes, names included, so whatever ends it leaves a profile.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "cmd/live.h"
#include "store/writer.h"

/* What a kill may cost: little at the beginning, then a second of samples. */
#define FLUSH_FIRST_NS 100000000ull
#define FLUSH_NS 1000000000ull
#define FREQUENCY_MAX 10000

static struct xp_live_options live_options = {
	.frequency = 99,
	.ring_kib = 4096,
};
static const char *output = "xprof.data";

static const struct xp_opt options[] = {
	{ XP_OPT_PIDS, 'p', "pid", .dest = &live_options.pids, .arg = "PID[,PID...]",
	  .help = "record these processes and the children they make", .complete = XP_COMPLETE_PID },
	{ XP_OPT_FREQUENCY, 'F', "freq", "rate", &live_options.frequency, .arg = "HZ",
	  .help = "samples per second and CPU: 1 to 10000, or max (default 99)", .min = 1,
	  .max = FREQUENCY_MAX },
	{ XP_OPT_DURATION, 'd', "duration", .dest = &live_options.duration, .arg = "TIME",
	  .help = "stop after this time: 10, 500ms, 2m" },
	{ XP_OPT_STRING, 'o', "output", .dest = &output, .arg = "FILE",
	  .help = "write to FILE, - for standard output (default xprof.data)",
	  .complete = XP_COMPLETE_FILE },
	{ XP_OPT_IGNORED, 'g', .help = "accepted and ignored: call stacks are always recorded" },
	{ XP_OPT_UINT, 0, "ring-size", .dest = &live_options.ring_kib, .arg = "KIB",
	  .help = "size of the buffer for samples, a power of two (default 4096)", .min = 64,
	  .max = 1048576 },
	{ XP_OPT_FLAG, 0, "no-bpf-loop", .dest = &live_options.no_bpf_loop,
	  .help = "walk stacks as on kernels before 5.17", .hidden = true },
	{ XP_OPT_FLAG, 'q', "quiet", .dest = &xp_cmd_quiet, .help = "print errors only" },
	{ XP_OPT_COUNT, 'v', "verbose", .dest = &xp_cmd_verbose,
	  .help = "say more; twice: what libbpf says" },
	{ .type = XP_OPT_END },
};

static const struct xp_opt *option_table(void)
{
	return options;
}

static int check_options(struct xp_err *err)
{
	int r = 0;

	if (live_options.ring_kib & (live_options.ring_kib - 1)) {
		r = xp_err_set(err, EINVAL, "--ring-size %u is no power of two",
			       live_options.ring_kib);
		xp_err_status(err, XP_EXIT_USAGE);
	}
	return r;
}

static void say_start(const struct xp_live *live)
{
	const char *what = live->child.pid && !live_options.pids.n ? live_options.command[0] : NULL;
	char duration[XP_TEXT_NUMBER];

	if (what)
		xp_cmd_note("recording %s at %u Hz (cpu-clock)", what, live_options.frequency);
	else
		xp_cmd_note("recording %zu process%s at %u Hz (cpu-clock), %s%s", live_options.pids.n,
			    live_options.pids.n == 1 ? "" : "es", live_options.frequency,
			    live_options.duration ? "for " : "Ctrl-C to stop",
			    live_options.duration
				    ? xp_text_duration(duration, live_options.duration)
				    : "");
}

static void say_details(const struct xp_live *live)
{
	struct xp_session_stats s;

	xp_session_stats(live->session, &s);
	xp_cmd_note("walker %s, %llu unwind rows of %u files", s.uses_loop ? "bpf_loop" : "tail calls",
		    (unsigned long long)s.rows, s.dsos);
	if (s.first_sample)
		xp_cmd_note("first sample %.1f ms after start",
			    (double)(s.first_sample - live->launched) / 1e6);
	if (s.samples)
		xp_cmd_note("ring: %.1f bytes per native frame in records of %.0f bytes",
			    s.native_frames ? (double)s.raw_bytes / s.native_frames : 0,
			    (double)s.raw_bytes / s.samples);
}

static void warn_about(const struct xp_session_stats *s)
{
	uint64_t missing = s->lost + s->malformed + s->given_up + s->untracked + s->events_lost;

	if (!s->samples)
		xp_cmd_warn("no samples%s",
			    missing ? "" : ": the target used no CPU while it was recorded");
	if (s->lost + s->malformed)
		xp_cmd_warn("%llu samples were lost: raise --ring-size or lower the rate",
			    (unsigned long long)(s->lost + s->malformed));
	if (s->given_up)
		xp_cmd_warn("%llu samples were dropped by the second Ctrl-C",
			    (unsigned long long)s->given_up);
	if (s->untracked)
		xp_cmd_warn("%llu child processes were not followed: too many at once",
			    (unsigned long long)s->untracked);
	if (s->events_lost)
		xp_cmd_warn("%llu kernel events were lost; mappings were read again",
			    (unsigned long long)s->events_lost);
	if (s->tables_full)
		xp_cmd_warn("unwind tables are full: some stacks are cut or follow frame pointers");
	if (s->kernel_hidden)
		xp_cmd_warn("kernel functions have no names: kernel.kptr_restrict hides them");
}

/* Appends what is new; flushes when it is due, at intervals that grow to a second. */
static int write_samples(struct xp_live *live, struct xp_writer *w, uint64_t *due,
			 struct xp_err *err)
{
	uint64_t past = live->ended - live->started;
	int r = xp_writer_append(w, err);

	if (r || past < *due)
		return r;
	*due = past < FLUSH_NS ? 2 * past : past + FLUSH_NS;
	r = xp_live_describe(live);
	return r ? xp_err_sys(err, -r, "cannot describe the recording") : xp_writer_flush(w, err);
}

static int record_loop(struct xp_live *live, struct xp_writer *w, struct xp_err *err)
{
	enum xp_live_end end = XP_LIVE_GOES_ON;
	uint64_t due = FLUSH_FIRST_NS;
	int r = 0;

	while (!r && end == XP_LIVE_GOES_ON) {
		r = xp_live_step(live, &end, err);
		if (!r)
			r = write_samples(live, w, &due, err);
	}
	/* The command was a target: it is at its very end, its status a moment away. */
	if (end == XP_LIVE_TARGETS_GONE && !live_options.pids.n)
		xp_live_wait_child(live);
	if (!r)
		r = xp_live_stop(live, err);
	if (!r)
		r = xp_writer_append(w, err);
	if (!r && xp_live_describe(live))
		r = xp_err_sys(err, ENOMEM, "cannot describe the recording");
	return r;
}

static void say_end(const struct xp_live *live, const struct xp_writer_stats *file)
{
	struct xp_session_stats stats;
	char summary[1024], size[XP_TEXT_NUMBER];

	xp_session_stats(live->session, &stats);
	xp_live_summary(live, summary, sizeof(summary));
	xp_cmd_note("%s", summary);
	xp_live_runtimes(live, summary, sizeof(summary));
	if (summary[0])
		xp_cmd_note("%s", summary);
	xp_cmd_note("wrote %s (%s); own CPU %.1f %%", strcmp(output, "-") ? output : "to stdout",
		    xp_text_size(size, file->bytes), xp_live_own_cpu(live));
	if (xp_cmd_verbose) {
		say_details(live);
		xp_cmd_note("file: %.1f bytes per sample before compression, %.1f in all",
			    file->samples ? (double)file->sample_bytes / file->samples : 0,
			    file->samples ? (double)file->bytes / file->samples : 0);
	}
	warn_about(&stats);
}

/*
 * The exit status: of SIGTERM and SIGHUP our own trouble, then the signal; else the command's, then
 * our own trouble. A command that goes on is waited for, and nothing is sampled meanwhile.
 */
static int exit_status(struct xp_live *live, int own)
{
	int sig = xp_live_signal();

	if (sig == SIGTERM || sig == SIGHUP)
		return own ? own : 128 + sig;
	if (!live->child.pid)
		return own;
	if (!xp_child_reap(&live->child)) {
		xp_cmd_note("the command goes on");
		xp_live_end(live);
		if (!xp_live_wait_child(live))
			return own ? own : 128 + xp_live_signal();
	}
	return xp_child_status(&live->child) ? xp_child_status(&live->child) : own;
}

static int wait_output(void *live, int fd)
{
	static bool said;

	if (fd < 0 && !said)
		xp_cmd_note("waiting for somebody to read %s", output);
	said |= fd < 0;
	return xp_live_wait_output(live, fd);
}

static int record(struct xp_live *live)
{
	struct xp_err err = XP_ERR_INIT;
	const struct xp_writer_wait wait = { wait_output, live };
	struct xp_writer *w = NULL;
	struct xp_writer_stats file = { 0 };
	int r, status = 0;

	r = xp_live_open(live, &live_options, &err);
	if (!r)
		r = xp_writer_open(&w, output, &wait, &live->profile, &err);
	if (!r) {
		say_start(live);
		r = xp_live_start(live, &err);
	}
	if (r) {
		xp_writer_abort(w);
		status = xp_cmd_fail(&err);
		return xp_live_signal() ? 128 + xp_live_signal() : status;
	}
	r = record_loop(live, w, &err);
	if (!r) {
		xp_writer_flush(w, NULL);
		xp_writer_stats(w, &file);
		r = xp_writer_close(w, &err);
	} else {
		xp_writer_abort(w);
	}
	if (r)
		status = xp_cmd_fail(&err);
	else
		say_end(live, &file);
	return exit_status(live, status);
}

static int run(int argc, char **argv)
{
	struct xp_live live = { 0 };
	struct xp_err err = XP_ERR_INIT;
	int operand, status;
	bool dashes;

	if (!xp_cmd_begin(&xp_cmd_record, argc, argv, &operand, &dashes, &status))
		return status;
	live_options.argv = argv;
	live_options.command = operand < argc ? argv + operand : NULL;
	if (check_options(&err))
		return xp_cmd_fail(&err);
	status = record(&live);
	xp_live_close(&live);
	free(live_options.pids.v);
	return xp_cmd_end(status);
}

static const char *const usage[] = {
	"record [OPTIONS] -p PID[,PID...]",
	"record [OPTIONS] -- COMMAND [ARG...]",
	NULL,
};

static const char *const examples[] = {
	"xprof record -p 1234 -d 10",
	"xprof record -F 999 -o build.data -- make -j4",
	NULL,
};

const struct xp_command xp_cmd_record = {
	.name = "record",
	.summary = "record a profile of processes or a command into a file",
	.usage = usage,
	.examples = examples,
	.options = option_table,
	.run = run,
};
