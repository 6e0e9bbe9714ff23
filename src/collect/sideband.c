/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads perf ring buffers as Linux include/uapi/linux/perf_event.h describes them: the kernel moves
 * data_head, we move data_tail; a record may wrap around the end.
 */
#include "collect/sideband.h"

#include <errno.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "collect/perf.h"

/*
 * Pages per CPU, powers of two. Nobody is woken for a single event: they come from the whole machine,
 * and a wake-up costs those who map and fork more than the event does. The kernel side wakes us
 * when a target needs it. The smaller size is what an unprivileged user may lock.
 */
#define DATA_PAGES 128
#define DATA_PAGES_FEW 16
#define RECORD_MAX 65536	/* perf_event_header.size is 16 bits wide */

static size_t map_size(size_t pages)
{
	return (pages + 1) * (size_t)sysconf(_SC_PAGESIZE);
}

/* Maps the ring; the smaller size when the larger is not granted. */
static void *map_ring(struct xp_sideband_ring *ring)
{
	static const size_t sizes[] = { DATA_PAGES, DATA_PAGES_FEW };
	void *p = MAP_FAILED;

	for (int i = 0; i < 2 && p == MAP_FAILED; i++) {
		ring->size = map_size(sizes[i]);
		p = mmap(NULL, ring->size, PROT_READ | PROT_WRITE, MAP_SHARED, ring->fd, 0);
	}
	return p;
}

static int open_ring(struct xp_sideband_ring *ring, int cpu, struct xp_err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.comm = 1,
		.comm_exec = 1,
		.task = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = DATA_PAGES_FEW / 2 * 4096,
	};

	ring->fd = xp_perf_open(&attr, -1, cpu);
	if (ring->fd == -ENODEV) {	/* the CPU went offline meanwhile */
		ring->fd = -1;
		return 0;
	}
	if (ring->fd < 0) {
		int r = -ring->fd;

		ring->fd = -1;
		return xp_perf_error(err, r, "side-band events");
	}
	ring->map = map_ring(ring);
	if (ring->map == MAP_FAILED) {
		ring->map = NULL;
		xp_err_sys(err, errno, "cannot map the side-band event buffer");
		xp_err_hint(err, "raise kernel.perf_event_mlock_kb, or run as root");
		return -errno;
	}
	return 0;
}

int xp_sideband_open(struct xp_sideband *sb, struct xp_err *err)
{
	long ncpu = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	memset(sb, 0, sizeof(*sb));
	sb->rings = calloc(ncpu, sizeof(*sb->rings));
	if (!sb->rings)
		return xp_err_sys(err, ENOMEM, "side-band events");
	for (long cpu = 0; cpu < ncpu; cpu++) {
		sb->rings[cpu].fd = -1;
		sb->n = cpu + 1;
		r = open_ring(&sb->rings[cpu], cpu, err);
		if (r)
			break;
	}
	if (r)
		xp_sideband_close(sb);
	return r;
}

void xp_sideband_close(struct xp_sideband *sb)
{
	for (size_t i = 0; i < sb->n; i++) {
		if (sb->rings[i].map)
			munmap(sb->rings[i].map, sb->rings[i].size);
		if (sb->rings[i].fd >= 0)
			close(sb->rings[i].fd);
	}
	free(sb->rings);
	sb->rings = NULL;
	sb->n = 0;
	xp_buf_release(&sb->text);
	xp_vec_release(&sb->events);
}

/* Stores a string of the record for the event. The field is NUL-padded; a missing NUL is added. */
static int keep_text(struct xp_sideband *sb, struct xp_cur *c, uint32_t *offset)
{
	size_t left = xp_cur_left(c), n = strnlen((const char *)c->p, left);

	*offset = sb->text.len;
	xp_buf_put(&sb->text, c->p, n);
	xp_buf_u8(&sb->text, 0);
	return sb->text.failed ? -ENOMEM : 0;
}

/* PERF_RECORD_MMAP2: pid, tid, addr, len, pgoff, maj, min, ino, ino_generation, prot, flags, name. */
static int parse_mmap(struct xp_sideband *sb, struct xp_cur *c, struct xp_event *e)
{
	uint32_t major;

	e->type = XP_EVENT_MMAP;
	e->pid = xp_cur_u32(c);
	e->tid = xp_cur_u32(c);
	e->start = xp_cur_u64(c);
	e->len = xp_cur_u64(c);
	e->offset = xp_cur_u64(c);
	major = xp_cur_u32(c);
	e->dev = (uint64_t)major << 32 | xp_cur_u32(c);
	e->ino = xp_cur_u64(c);
	xp_cur_u64(c);			/* inode generation */
	xp_cur_u64(c);			/* prot, flags */
	return c->bad ? 0 : keep_text(sb, c, &e->text);
}

static int parse_body(struct xp_sideband *sb, const struct perf_event_header *h, struct xp_cur *c,
		      struct xp_event *e)
{
	switch (h->type) {
	case PERF_RECORD_MMAP2:
		return parse_mmap(sb, c, e);
	case PERF_RECORD_COMM:
		e->type = h->misc & PERF_RECORD_MISC_COMM_EXEC ? XP_EVENT_EXEC : XP_EVENT_COMM;
		e->pid = xp_cur_u32(c);
		e->tid = xp_cur_u32(c);
		return c->bad ? 0 : keep_text(sb, c, &e->text);
	case PERF_RECORD_FORK:		/* the two are alike; EXIT comes for each thread */
	case PERF_RECORD_EXIT:
		e->type = h->type == PERF_RECORD_FORK ? XP_EVENT_FORK : XP_EVENT_EXIT;
		e->pid = xp_cur_u32(c);
		e->ppid = xp_cur_u32(c);
		e->tid = xp_cur_u32(c);
		e->ptid = xp_cur_u32(c);
		return 0;
	case PERF_RECORD_LOST:
		xp_cur_u64(c);		/* event id */
		sb->lost += xp_cur_u64(c);
		/* fall through */
	default:
		c->bad = true;
		return 0;
	}
}

int xp_sideband_parse(struct xp_sideband *sb, const void *record, size_t size)
{
	struct xp_cur c = xp_cur_of(record, size), trailer;
	const struct perf_event_header *h = record;
	struct xp_event e = { 0 }, *slot;
	int r;

	/* sample_id_all with PERF_SAMPLE_TIME: the last eight bytes of each record are its time. */
	if (size < sizeof(*h) + 8 || h->size != size)
		return 0;
	trailer = xp_cur_of((const uint8_t *)record + size - 8, 8);
	e.time = xp_cur_u64(&trailer);
	c = xp_cur_of((const uint8_t *)record + sizeof(*h), size - sizeof(*h) - 8);
	r = parse_body(sb, h, &c, &e);
	if (r || c.bad)
		return r;
	slot = xp_vec_push(&sb->events);
	if (!slot)
		return -ENOMEM;
	*slot = e;
	slot->seq = sb->events.n;
	return 0;
}

static int drain_ring(struct xp_sideband *sb, struct xp_sideband_ring *ring)
{
	static _Alignas(8) uint8_t record[RECORD_MAX];
	struct perf_event_mmap_page *page = ring->map;
	const uint8_t *data = (const uint8_t *)ring->map + sysconf(_SC_PAGESIZE);
	uint64_t size = ring->size - sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	int r = 0;

	while (!r && tail < head) {
		const struct perf_event_header *h = (const void *)(data + (tail & (size - 1)));
		size_t n = h->size, at = tail & (size - 1), part = n;

		if (n < sizeof(*h) || n > head - tail)
			break;
		if (part > size - at)
			part = size - at;
		memcpy(record, data + at, part);
		memcpy(record + part, data, n - part);
		r = xp_sideband_parse(sb, record, n);
		tail += n;
	}
	__atomic_store_n(&page->data_tail, head, __ATOMIC_RELEASE);
	return r;
}

static int by_time(const void *a, const void *b)
{
	const struct xp_event *x = a, *y = b;

	if (x->time != y->time)
		return x->time < y->time ? -1 : 1;
	return x->seq < y->seq ? -1 : x->seq > y->seq;
}

int xp_sideband_drain(struct xp_sideband *sb)
{
	int r = 0;

	xp_vec_clear(&sb->events);
	xp_buf_clear(&sb->text);
	for (size_t i = 0; !r && i < sb->n; i++)
		if (sb->rings[i].map)
			r = drain_ring(sb, &sb->rings[i]);
	if (sb->events.n)
		qsort(sb->events.v, sb->events.n, sizeof(*sb->events.v), by_time);
	return r;
}
