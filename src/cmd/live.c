/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Signals are blocked except while we wait, so that none is lost between a look at the flags and
 * the wait, and none interrupts a write. Whatever may take long, output to a pipe too, is such a
 * wait.
 */
#include "cmd/live.h"

#include <errno.h>
#include <poll.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "base/text.h"
#include "cmd/cmd.h"
#include "collect/raw.h"
#include "config.h"
#include "runtime/runtime.h"
#include "target/proc.h"

#define STEP_MS 100
#define RUNTIME_WARNINGS 3
#define GRACE_NS 2000000000ull		/* for a reader that takes nothing when the recording ends */

static volatile sig_atomic_t got_signal;	/* the last one */
static volatile sig_atomic_t signals_seen;

static void on_signal(int sig)
{
	if (sig == SIGCHLD)
		return;
	got_signal = sig;
	signals_seen++;
}

int xp_live_signal(void)
{
	return got_signal;
}

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static void handle_signals(struct xp_child_signals *was)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP, SIGCHLD };
	struct sigaction action = { .sa_handler = on_signal };
	sigset_t block;

	sigemptyset(&block);
	sigemptyset(&action.sa_mask);
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++) {
		struct sigaction old;

		/* nohup(1) and background jobs of a shell start us with some of them ignored. */
		if (!sigaction(signals[i], NULL, &old) && old.sa_handler == SIG_IGN &&
		    signals[i] != SIGCHLD)
			continue;
		sigaddset(&block, signals[i]);
		sigaction(signals[i], &action, NULL);
	}
	sigprocmask(SIG_BLOCK, &block, &was->mask);
	/* Output that cannot be written is an error like others, not the end of us. */
	was->pipe = signal(SIGPIPE, SIG_IGN);
	was->xfsz = signal(SIGXFSZ, SIG_IGN);
}

/* A runtime that cannot be used, for the first few processes that have it. */
static void warn_runtime(const char *line)
{
	static unsigned said;

	if (said++ < RUNTIME_WARNINGS)
		xp_cmd_warn("%s; its frames are shown as native code", line);
}

static void log_verbose(const char *line)
{
	if (xp_cmd_verbose > 1)
		xp_cmd_note("%s", line);
}

/* A second Ctrl-C while the first one's work is being finished. It is blocked, hence pending. */
static bool give_up(void)
{
	sigset_t pending;

	return signals_seen > 1 ||
	       (signals_seen && !sigpending(&pending) && sigismember(&pending, SIGINT));
}

/*
 * The kernel side sees pids of the first PID namespace; in another one no number would fit and
 * nothing would ever be sampled. PROC_PID_INIT_INO: Linux include/linux/proc_ns.h.
 */
static int check_namespace(struct xp_err *err)
{
	char link[64] = "";
	int r;

	if (readlink("/proc/self/ns/pid", link, sizeof(link) - 1) < 0 ||
	    !strcmp(link, "pid:[4026531836]"))
		return 0;
	r = xp_err_set(err, ENOTSUP, "xprof runs inside a PID namespace (a container), where the "
		       "kernel's process numbers are not known");
	xp_err_hint(err, "run it on the host, or start the container with --pid=host");
	return r;
}

static int check_targets(struct xp_live *live, struct xp_err *err)
{
	const struct xp_live_options *o = live->options;
	struct xp_proc_info info;
	int r = 0;

	if (!o->pids.n && !o->command) {
		r = xp_err_set(err, EINVAL, "nothing to profile");
		xp_err_status(err, XP_EXIT_USAGE);
		xp_err_hint(err, "name a process or a command: -p PID, or -- COMMAND ARG...");
	}
	for (size_t i = 0; !r && i < o->pids.n; i++)
		r = xp_proc_check_target(&info, o->pids.v[i], err);
	if (!r && o->command)
		r = xp_child_find(o->command[0], &live->program, err);
	return r;
}

static int attach_targets(struct xp_live *live, struct xp_err *err)
{
	const struct xp_live_options *o = live->options;
	int r = 0;

	for (size_t i = 0; !r && i < o->pids.n; i++)
		r = xp_session_add_process(live->session, o->pids.v[i], err);
	/* With -p the command only says how long: `-p PID -- sleep 10`. */
	if (!r && live->child.pid && !o->pids.n)
		r = xp_session_add_child(live->session, live->child.pid, live->program, err);
	return r;
}

int xp_live_open(struct xp_live *live, const struct xp_live_options *options, struct xp_err *err)
{
	struct xp_session_options session = {
		.frequency = options->frequency,
		.ring_bytes = options->ring_kib * 1024ul,
		.follow_children = true,
		.tail_calls = options->no_bpf_loop,
		.log = log_verbose,
		.warn = warn_runtime,
		.give_up = give_up,
	};
	struct xp_child no_child = XP_CHILD_INIT;
	int r;

	memset(live, 0, sizeof(*live));
	live->launched = now_ns();
	live->options = options;
	live->child = no_child;
	r = check_targets(live, err);
	if (!r)
		r = check_namespace(err);
	if (r)
		return r;
	r = xp_profile_init(&live->profile);
	if (r)
		return xp_err_sys(err, -r, "cannot start");
	r = xp_session_new(&live->session, &session, &live->profile, err);
	if (r)
		return r;
	handle_signals(&live->signals);
	if (options->command)
		r = xp_child_start(&live->child, options->command, &live->signals, err);
	return r ? r : attach_targets(live, err);
}

void xp_live_close(struct xp_live *live)
{
	xp_child_close(&live->child);
	xp_live_end(live);
	xp_profile_release(&live->profile);
	free(live->program);
	live->program = NULL;
}

void xp_live_end(struct xp_live *live)
{
	xp_session_free(live->session);
	live->session = NULL;
}

int xp_live_start(struct xp_live *live, struct xp_err *err)
{
	int r = xp_session_start(live->session, err);

	live->started = live->ended = now_ns();
	if (!r && live->child.pid)
		r = xp_child_release(&live->child, live->options->command, err);
	if (!r && live->child.pid)
		xp_session_released(live->session, live->child.pid);
	return r;
}

static enum xp_live_end whether_ended(struct xp_live *live, uint64_t now)
{
	uint64_t duration = live->options->duration;

	if (got_signal)
		return XP_LIVE_SIGNAL;
	if (xp_child_reap(&live->child))
		return XP_LIVE_COMMAND_ENDED;
	if (duration && live->started && now - live->started >= duration)
		return XP_LIVE_DURATION;
	if (!xp_session_alive(live->session))
		return XP_LIVE_TARGETS_GONE;
	return XP_LIVE_GOES_ON;
}

/* Milliseconds until the next thing to do; the duration's end is met within one. */
static int step_ms(const struct xp_live *live)
{
	uint64_t duration = live->options->duration, past = now_ns() - live->started, left;

	if (!duration)
		return STEP_MS;
	left = past < duration ? (duration - past + 999999) / 1000000 : 0;
	return left < STEP_MS ? (int)left : STEP_MS;
}

int xp_live_step(struct xp_live *live, enum xp_live_end *end, struct xp_err *err)
{
	int r = xp_session_wait(live->session, step_ms(live), &live->signals.mask, err);

	live->ended = now_ns();
	*end = whether_ended(live, live->ended);
	return r;
}

int xp_live_stop(struct xp_live *live, struct xp_err *err)
{
	live->ended = now_ns();
	return xp_session_stop(live->session, err);
}

bool xp_live_wait_child(struct xp_live *live)
{
	sig_atomic_t before = signals_seen;

	while (!xp_child_reap(&live->child) && signals_seen == before)
		sigsuspend(&live->signals.mask);
	return live->child.ended;
}

int xp_live_wait_output(void *ctx, int fd)
{
	const struct timespec step = { .tv_nsec = STEP_MS * 1000000l };
	struct pollfd output = { .fd = fd, .events = POLLOUT };
	struct xp_live *live = ctx;
	uint64_t ending = 0, now;
	int n;

	for (;;) {
		n = ppoll(&output, 1, &step, &live->signals.mask);
		if (n > 0)
			return 0;
		if (n < 0 && errno != EINTR)
			return -errno;
		if (signals_seen > 1 || (fd < 0 && signals_seen))
			return -EINTR;
		if (fd < 0)
			return 0;
		now = now_ns();
		if (!ending && whether_ended(live, now) != XP_LIVE_GOES_ON)
			ending = now;
		if (ending && now - ending >= GRACE_NS)
			return -ETIMEDOUT;
	}
}

static uint64_t complete_ends(const struct xp_session_stats *stats)
{
	uint64_t n = 0;

	for (int i = 0; i <= XP_END_LAST_COMPLETE; i++)
		n += stats->ends[i];
	return n;
}

static int describe_ends(struct xp_profile *p, const struct xp_session_stats *stats)
{
	int r = xp_profile_set_counter(p, "end.complete", complete_ends(stats));
	char key[64];

	for (int i = XP_END_LAST_COMPLETE + 1; !r && i < XP_END_REASONS; i++) {
		if (!stats->ends[i])
			continue;
		snprintf(key, sizeof(key), "end.%s", xp_end_name(i));
		r = xp_profile_set_counter(p, key, stats->ends[i]);
		snprintf(key, sizeof(key), "end-text.%s", xp_end_name(i));
		if (!r)
			r = xp_profile_set_meta(p, key, xp_end_text(i));
	}
	return r;
}

/* merge.RUNTIME.RESULT: samples with this runtime's frames, by how they were merged. */
static int describe_runtimes(struct xp_profile *p, const struct xp_session_stats *stats)
{
	char key[96];
	int r = stats->recognised[0] ? xp_profile_set_meta(p, "runtimes", stats->recognised) : 0;

	for (int id = 0; id < XP_RUNTIMES_N; id++)
		for (int i = XP_MERGE_PLACED; !r && i < XP_MERGE_RESULTS; i++) {
			if (!stats->vm[id][i])
				continue;
			snprintf(key, sizeof(key), "merge.%s.%s", xp_runtimes[id]->name,
				 xp_merge_result_name(i));
			r = xp_profile_set_counter(p, key, stats->vm[id][i]);
		}
	return r;
}

static int describe_counts(struct xp_live *live)
{
	struct xp_profile *p = &live->profile;
	struct xp_session_stats stats;
	int r;

	xp_session_stats(live->session, &stats);
	r = describe_ends(p, &stats);
	if (!r)
		r = xp_profile_set_counter(p, "samples", stats.samples);
	if (!r)
		r = xp_profile_set_counter(p, "lost", stats.lost + stats.malformed + stats.given_up);
	if (!r)
		r = xp_profile_set_counter(p, "kernel-cut", stats.kernel_cut);
	if (!r)
		r = xp_profile_set_counter(p, "processes", stats.processes);
	if (!r)
		r = describe_runtimes(p, &stats);
	if (!r)
		r = xp_profile_set_counter(p, "duration_ns", live->ended - live->started);
	return r;
}

/* The command line as one line, for the report's header. */
static void command_text(const struct xp_live_options *o, struct xp_buf *out)
{
	xp_buf_printf(out, "xprof");
	for (char **arg = o->argv; arg && *arg; arg++)
		xp_buf_printf(out, " %s", *arg);
	xp_buf_u8(out, 0);
}

static int describe_meta(struct xp_live *live)
{
	struct xp_profile *p = &live->profile;
	struct xp_buf target = XP_BUF_INIT;
	struct utsname uts = { 0 };
	char frequency[16], start[64], started[32];
	time_t now = time(NULL);
	int r;

	uname(&uts);
	command_text(live->options, &target);
	snprintf(frequency, sizeof(frequency), "%u", live->options->frequency);
	strftime(start, sizeof(start), "%Y-%m-%dT%H:%M:%SZ", gmtime(&now));
	snprintf(started, sizeof(started), "%llu", (unsigned long long)live->started);
	r = target.failed ? -ENOMEM : xp_profile_set_meta(p, "command", (char *)target.data);
	if (!r)
		r = xp_profile_set_meta(p, "event", "cpu-clock");
	if (!r)
		r = xp_profile_set_meta(p, "frequency", frequency);
	if (!r)
		r = xp_profile_set_meta(p, "date", start);
	if (!r)
		r = xp_profile_set_meta(p, "start", started);
	if (!r)
		r = xp_profile_set_meta(p, "hostname", uts.nodename);
	if (!r)
		r = xp_profile_set_meta(p, "kernel", uts.release);
	if (!r)
		r = xp_profile_set_meta(p, "arch", uts.machine);
	if (!r)
		r = xp_profile_set_meta(p, "version", PACKAGE_VERSION);
	xp_buf_release(&target);
	return r;
}

int xp_live_describe(struct xp_live *live)
{
	int r = xp_profile_meta(&live->profile, "event") ? 0 : describe_meta(live);

	return r ? r : describe_counts(live);
}

static size_t add(char *out, size_t size, size_t at, const char *fmt, ...)
{
	va_list args;
	int n;

	if (at >= size)
		return at;
	va_start(args, fmt);
	n = vsnprintf(out + at, size - at, fmt, args);
	va_end(args);
	return n < 0 ? at : at + n;
}

void xp_live_summary(const struct xp_live *live, char *out, size_t size)
{
	struct xp_session_stats s;
	char duration[XP_TEXT_NUMBER];
	uint64_t complete, cut;
	size_t at = 0, listed = 0;

	xp_session_stats(live->session, &s);
	complete = complete_ends(&s);
	cut = s.samples - complete;
	at = add(out, size, at, "%llu samples of %u process%s in %s: %llu lost",
		 (unsigned long long)s.samples, s.processes, s.processes == 1 ? "" : "es",
		 xp_text_duration(duration, live->ended - live->started),
		 (unsigned long long)(s.lost + s.malformed + s.given_up));
	if (s.samples)
		at = add(out, size, at, ", %.1f %% complete", 100.0 * complete / s.samples);
	if (cut)
		at = add(out, size, at, ", %llu truncated (", (unsigned long long)cut);
	for (int i = XP_END_LAST_COMPLETE + 1; i < XP_END_REASONS; i++)
		if (s.ends[i])
			at = add(out, size, at, "%s%s %llu", listed++ ? ", " : "", xp_end_text(i),
				 (unsigned long long)s.ends[i]);
	if (cut)
		add(out, size, at, ")");
}

void xp_live_runtimes(const struct xp_live *live, char *out, size_t size)
{
	struct xp_session_stats s;
	uint64_t by_result[XP_MERGE_RESULTS] = { 0 }, all = 0, apart = 0;
	size_t at, listed = 0;

	xp_session_stats(live->session, &s);
	for (int id = 0; id < XP_RUNTIMES_N; id++)
		for (int i = XP_MERGE_PLACED; i < XP_MERGE_RESULTS; i++) {
			by_result[i] += s.vm[id][i];
			all += s.vm[id][i];
		}
	for (int i = XP_MERGE_FIBER_SWITCH; i < XP_MERGE_RESULTS; i++)
		apart += by_result[i];
	out[0] = 0;
	if (!s.recognised[0])
		return;
	at = add(out, size, 0, "%s: %llu samples, ", s.recognised, (unsigned long long)all);
	if (by_result[XP_MERGE_VM_CUT])
		at = add(out, size, at, "%llu with a VM stack cut, ",
			 (unsigned long long)by_result[XP_MERGE_VM_CUT]);
	if (!apart) {
		add(out, size, at, "all joined with their native frames");
		return;
	}
	at = add(out, size, at, "%llu not joined with their native frames (",
		 (unsigned long long)apart);
	for (int i = XP_MERGE_FIBER_SWITCH; i < XP_MERGE_RESULTS; i++)
		if (by_result[i])
			at = add(out, size, at, "%s%s %llu", listed++ ? ", " : "",
				 xp_merge_result_text(i), (unsigned long long)by_result[i]);
	add(out, size, at, ")");
}

double xp_live_own_cpu(const struct xp_live *live)
{
	struct rusage u;
	double wall = (live->ended - live->launched) / 1e9, cpu;

	getrusage(RUSAGE_SELF, &u);
	cpu = u.ru_utime.tv_sec + u.ru_stime.tv_sec + (u.ru_utime.tv_usec + u.ru_stime.tv_usec) / 1e6;
	return wall > 0 ? 100 * cpu / wall : 0;
}
