/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Order is what makes mappings and samples fit: the ring is emptied first, the side-band events
 * second, so every event older than a sample we hold has been seen; then both are applied by time.
 */
#include "collect/session.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <time.h>
#include <unistd.h>

#include "collect/batch.h"
#include "collect/bpf.h"
#include "collect/raw.h"
#include "collect/sideband.h"
#include "collect/targets.h"
#include "runtime/native.h"

/*
 * A busy machine's events must not keep us busy: so many wake-ups in a window are answered at once,
 * further ones after a pause.
 */
#define WINDOW_NS 100000000ull
#define PROMPT_WAKES 64
#define PAUSE_NS 1000000
#define SWEEP_NS 1000000000ull
/* After an exec and when unknown code was met: the loader goes on mapping. */
#define ATTENTIVE_NS 30000000ull
#define ATTENTIVE_MS 1
#define NAMING_NS 100000000ull	/* how long a sample may wait for its names */
#define NAMING_SAMPLES 4096
#define NAMING_SLICE_NS 5000000ull
#define VM_TIME_SHARE 10		/* VM frames may take a tenth of the time between samples */
#define WAITING_MS 5			/* while a runtime starts */

struct xp_session {
	struct xp_session_options options;
	struct xp_profile *profile;
	struct xp_bpf *bpf;
	struct xp_sideband sideband;
	struct xp_dsos *dsos;
	struct xp_tables tables;
	struct xp_targets targets;
	struct xp_runtimes_state runtimes;
	struct xp_native native;
	struct xp_merger merger;
	struct xp_batch batch;
	int epoll;
	uint64_t events_lost, swept, window;
	uint64_t attentive;		/* until then new code is expected any moment */
	unsigned wakes;			/* since window */
	size_t named;			/* placed samples that have their names already */
	struct xp_session_stats stats;
#ifdef XP_TEST_STOP
	void (*on_raw)(void *ctx, const void *raw);
	void *on_raw_ctx;
#endif
};

static uint64_t now_ns(void)
{
	struct timespec t;

	clock_gettime(CLOCK_MONOTONIC, &t);
	return t.tv_sec * 1000000000ull + t.tv_nsec;
}

static int put_proc(void *ctx, const struct xp_proc *proc)
{
	return xp_bpf_put_proc(ctx, proc);
}

static int remove_proc(void *ctx, pid_t pid)
{
	return xp_bpf_remove_proc(ctx, pid);
}

static int put_params(void *ctx, enum xp_runtime_id id, uint32_t slot, const void *value,
		      size_t size)
{
	return xp_bpf_put_params(ctx, id, slot, value, size);
}

static int on_record(void *ctx, void *data, size_t size)
{
	struct xp_session *s = ctx;
	int r = xp_batch_add(&s->batch, data, size);

	if (r == -EINVAL) {
		s->stats.malformed++;
		return 0;
	}
	return r;
}

static int watch(struct xp_session *s, int fd, struct xp_err *err)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (fd < 0 || !epoll_ctl(s->epoll, EPOLL_CTL_ADD, fd, &event))
		return 0;
	return xp_err_sys(err, errno, "cannot wait for events");
}

static int watch_all(struct xp_session *s, struct xp_err *err)
{
	int r;

	s->epoll = epoll_create1(EPOLL_CLOEXEC);
	if (s->epoll < 0)
		return xp_err_sys(err, errno, "cannot wait for events");
	r = watch(s, xp_bpf_ring_fd(s->bpf), err);
	for (size_t i = 0; !r && i < s->sideband.n; i++)
		r = watch(s, s->sideband.rings[i].fd, err);
	return r;
}

static int init_targets(struct xp_session *s)
{
	struct xp_tables_memory memory = xp_bpf_tables(s->bpf);
	int r = xp_targets_init(&s->targets);

	if (!r)
		r = xp_tables_init(&s->tables, &memory);
	if (!r)
		r = xp_native_init(&s->native, s->profile);
	xp_merger_init(&s->merger, s->profile);
	s->dsos = xp_dsos_new();
	if (!s->dsos)
		return -ENOMEM;
	s->targets.dsos = s->dsos;
	s->targets.tables = &s->tables;
	s->targets.profile = s->profile;
	s->runtimes.port.put = put_params;
	s->runtimes.port.ctx = s->bpf;
	s->runtimes.note = s->options.warn;
	s->targets.runtimes = &s->runtimes;
	s->targets.follow_children = s->options.follow_children;
	s->targets.port.put = put_proc;
	s->targets.port.remove = remove_proc;
	s->targets.port.ctx = s->bpf;
	return r;
}

int xp_session_new(struct xp_session **out, const struct xp_session_options *options,
		   struct xp_profile *profile, struct xp_err *err)
{
	struct xp_bpf_options bpf_options = {
		.ring_bytes = options->ring_bytes,
		.follow_children = options->follow_children,
		.vm_time_ns = 1000000000ull / options->frequency / VM_TIME_SHARE,
		.tail_calls = options->tail_calls,
		.log = options->log,
	};
	struct xp_session *s = calloc(1, sizeof(*s));
	int r;

	*out = NULL;
	if (!s)
		return xp_err_sys(err, ENOMEM, "cannot start");
	s->epoll = -1;
	s->options = *options;
	s->profile = profile;
	r = xp_bpf_new(&s->bpf, &bpf_options, err);
	if (!r)
		r = xp_sideband_open(&s->sideband, err);
	if (!r) {
		r = xp_bpf_set_reader(s->bpf, on_record, s);
		if (!r)
			r = init_targets(s);
		if (r)
			xp_err_sys(err, -r, "cannot start");
	}
	if (!r)
		r = watch_all(s, err);
	if (r) {
		xp_session_free(s);
		return r;
	}
	*out = s;
	return 0;
}

void xp_session_free(struct xp_session *s)
{
	if (!s)
		return;
	if (s->epoll >= 0)
		close(s->epoll);
	xp_batch_release(&s->batch);
	xp_native_release(&s->native);
	xp_merger_release(&s->merger);
	xp_targets_release(&s->targets);
	xp_runtimes_release(&s->runtimes);
	xp_tables_release(&s->tables);
	xp_dsos_free(s->dsos);
	xp_sideband_close(&s->sideband);
	xp_bpf_free(s->bpf);
	free(s);
}

int xp_session_add_process(struct xp_session *s, pid_t pid, struct xp_err *err)
{
	return xp_targets_attach(&s->targets, pid, now_ns(), err);
}

static void prepare_dso(void *ctx, const char *path)
{
	struct xp_session *s = ctx;

	xp_targets_prepare(&s->targets, path);
}

int xp_session_add_child(struct xp_session *s, pid_t pid, const char *program, struct xp_err *err)
{
	prepare_dso(s, program);
	xp_dso_needed(program, prepare_dso, s);
	return xp_targets_add_child(&s->targets, pid, err);
}

void xp_session_released(struct xp_session *s, pid_t pid)
{
	xp_targets_released(&s->targets, pid);
}

static bool is_new_code(uint8_t end)
{
	return end == XP_END_NO_MAPPING || end == XP_END_NO_PROCESS;
}

static int place_raw(struct xp_session *s, const struct xp_raw_copy *copy)
{
	const uint8_t *data = s->batch.bytes.data + copy->offset;
	int r;

	if (copy->kind == XP_RAW_EXIT) {
		xp_targets_ended(&s->targets, ((const struct xp_raw_note *)data)->pid, copy->time);
		return 0;
	}
	if (copy->kind == XP_RAW_EXEC) {
		s->attentive = copy->time + ATTENTIVE_NS;
		return 0;
	}
#ifdef XP_TEST_STOP
	if (s->on_raw)
		s->on_raw(s->on_raw_ctx, data);
#endif
	r = xp_batch_place(&s->batch, copy, &s->targets);
	if (r == -EINVAL) {
		s->stats.malformed++;
		return 0;
	}
	if (!r && is_new_code(((const struct xp_raw_sample *)data)->end))
		s->attentive = copy->time + ATTENTIVE_NS;
	if (!r) {
		s->stats.native_frames += ((const struct xp_raw_sample *)data)->nnative;
		s->stats.raw_bytes += copy->size;
	}
	return r < 0 ? r : 0;
}

/* Applies events and places samples in the order of their time. */
static int replay(struct xp_session *s)
{
	const struct xp_sideband *sb = &s->sideband;
	size_t e = 0;
	int r = 0;

	for (size_t i = 0; !r && i <= s->batch.raws.n; i++) {
		bool last = i == s->batch.raws.n;

		while (!r && e < sb->events.n &&
		       (last || sb->events.v[e].time <= s->batch.raws.v[i].time)) {
			r = xp_targets_event(&s->targets, &sb->events.v[e],
					     xp_event_text(sb, &sb->events.v[e]));
			e++;
		}
		if (!r && !last)
			r = place_raw(s, &s->batch.raws.v[i]);
	}
	return r;
}

/*
 * Naming may have to read a file's symbols first. It waits a little, because the moments after an
 * exec are when new mappings must be published fast, and until the kernel's symbols are there.
 */
static bool naming_is_due(struct xp_session *s, uint64_t now)
{
	const struct xp_batch *b = &s->batch;

	if (s->named || b->placed.n >= NAMING_SAMPLES)
		return true;
	return b->placed.n && b->placed.v[0].time + NAMING_NS <= now && xp_native_ready(&s->native);
}

static int name_sample(struct xp_session *s, const struct xp_placed *placed)
{
	int r = xp_batch_name(&s->batch, placed, &s->native, &s->merger);

	for (size_t i = 0; !r && i < s->batch.merging.n; i++) {
		const struct xp_merge_part *part = &s->batch.merging.v[i];

		s->stats.vm[part->runtime][part->result]++;
	}
	s->stats.samples++;
	s->stats.ends[placed->end]++;
	s->stats.kernel_cut += !!(placed->flags & (XP_RAW_KERNEL_CUT | XP_RAW_KERNEL_LOST));
	if (!s->stats.first_sample)
		s->stats.first_sample = placed->time;
	return r;
}

/* Names what waits; but for the last time not longer than others may wait for us. */
static int name_samples(struct xp_session *s, bool last)
{
	uint64_t end = now_ns() + NAMING_SLICE_NS;
	int r = 0;

	while (!r && s->named < s->batch.placed.n) {
		if (s->options.give_up && s->options.give_up()) {
			s->stats.given_up += s->batch.placed.n - s->named;
			break;
		}
		r = name_sample(s, &s->batch.placed.v[s->named++]);
		if (!last && now_ns() > end && s->named < s->batch.placed.n)
			return r;
	}
	s->named = 0;
	xp_batch_clear_placed(&s->batch);
	return r;
}

static int take_batch(struct xp_session *s, bool last, struct xp_err *err)
{
	uint64_t now = now_ns();
	int r;

	xp_batch_clear_raw(&s->batch);
	r = xp_bpf_consume(s->bpf);
	if (!r)
		r = xp_sideband_drain(&s->sideband);
	xp_batch_sort(&s->batch);
	if (!r)
		r = replay(s);
	if (!r && s->sideband.lost != s->events_lost) {
		s->events_lost = s->sideband.lost;
		r = xp_targets_resync(&s->targets, now);
	}
	if (now - s->swept >= SWEEP_NS) {
		s->swept = now;
		xp_targets_sweep(&s->targets);
	}
	if (!r)
		r = xp_targets_settle(&s->targets, now);
	if (!r && (last || naming_is_due(s, now)))
		r = name_samples(s, last);
	return r ? xp_err_sys(err, -r, "cannot take samples") : 0;
}

int xp_session_start(struct xp_session *s, struct xp_err *err)
{
	int r;

	xp_native_prepare(&s->native);
	r = take_batch(s, false, err);	/* the rings must be empty when a command execs */
	return r ? r : xp_bpf_start(s->bpf, s->options.frequency, err);
}

static void rest(struct xp_session *s)
{
	struct timespec pause = { .tv_nsec = PAUSE_NS };
	uint64_t now = now_ns();

	if (now - s->window >= WINDOW_NS) {
		s->window = now;
		s->wakes = 0;
	}
	if (++s->wakes > PROMPT_WAKES)
		nanosleep(&pause, NULL);
}

int xp_session_wait(struct xp_session *s, int timeout_ms, const sigset_t *mask, struct xp_err *err)
{
	struct epoll_event events[16];

	if (xp_targets_waiting(&s->targets) && timeout_ms > WAITING_MS)
		timeout_ms = WAITING_MS;
	if (now_ns() < s->attentive && timeout_ms > ATTENTIVE_MS)
		timeout_ms = ATTENTIVE_MS;
	if (s->named)
		timeout_ms = 0;
	rest(s);
	if (epoll_pwait(s->epoll, events, 16, timeout_ms, mask) < 0 && errno != EINTR)
		return xp_err_sys(err, errno, "cannot wait for events");
	return take_batch(s, false, err);
}

int xp_session_stop(struct xp_session *s, struct xp_err *err)
{
	xp_bpf_stop(s->bpf);
	return take_batch(s, true, err);
}

unsigned xp_session_alive(const struct xp_session *s)
{
	return xp_targets_alive(&s->targets);
}

static void recognised(const struct xp_session *s, char *out, size_t size)
{
	size_t at = 0;

	out[0] = 0;
	for (unsigned i = 0; i < s->runtimes.ntitles && at < size; i++)
		at += snprintf(out + at, size - at, "%s%s", i ? ", " : "", s->runtimes.titles[i]);
}

void xp_session_stats(const struct xp_session *s, struct xp_session_stats *out)
{
	*out = s->stats;
	out->lost = xp_bpf_counter(s->bpf, XP_COUNT_LOST);
	out->untracked = xp_bpf_counter(s->bpf, XP_COUNT_UNTRACKED);
	out->events_lost = s->sideband.lost;
	out->rows = s->tables.nrows;
	out->dsos = s->tables.tables.n;
	out->processes = s->targets.seen;
	out->tables_full = s->tables.full;
	memcpy(out->attached, s->runtimes.attached, sizeof(out->attached));
	recognised(s, out->recognised, sizeof(out->recognised));
	out->kernel_hidden = xp_native_kernel_hidden(&s->native);
	out->uses_loop = xp_bpf_uses_loop(s->bpf);
}

#ifdef XP_TEST_STOP
struct xp_bpf *xp_session_bpf(struct xp_session *s)
{
	return s->bpf;
}

void xp_session_on_raw(struct xp_session *s, void (*fn)(void *ctx, const void *raw), void *ctx)
{
	s->on_raw = fn;
	s->on_raw_ctx = ctx;
}
#endif
