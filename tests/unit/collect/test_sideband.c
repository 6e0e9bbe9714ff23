/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/sideband: hand-made perf records (Linux include/uapi/linux/perf_event.h), whole, cut and
 * odd. Each has its time in the last eight bytes.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <linux/perf_event.h>
#include <string.h>

#include "collect/sideband.h"

#define TIME 0x1122334455667788ull

static struct xp_sideband sb;

static int setup(void **state)
{
	(void)state;
	memset(&sb, 0, sizeof(sb));
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	xp_sideband_close(&sb);
	return 0;
}

/* A record with this body and the time after it; the header's size is right. */
static struct xp_buf record_of(uint32_t type, uint16_t misc, const struct xp_buf *body)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_buf_u32(&b, type);
	xp_buf_u32(&b, misc | (uint32_t)(body->len + 16) << 16);
	xp_buf_put(&b, body->data, body->len);
	xp_buf_u64(&b, TIME);
	assert_false(b.failed);
	return b;
}

/* Parses a copy of exactly that size. */
static void parse(const void *record, size_t size)
{
	void *copy = malloc(size ? size : 1);

	assert_non_null(copy);
	memcpy(copy, record, size);
	assert_int_equal(xp_sideband_parse(&sb, copy, size), 0);
	free(copy);
}

static void put_text(struct xp_buf *b, const char *text)
{
	size_t n = strlen(text) + 1;

	xp_buf_put(b, text, n);
	xp_buf_put(b, "\0\0\0\0\0\0\0", -n & 7);
}

static struct xp_buf mmap_body(const char *path)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_buf_u32(&b, 10);
	xp_buf_u32(&b, 11);
	xp_buf_u64(&b, 0x7f0000001000);
	xp_buf_u64(&b, 0x5000);
	xp_buf_u64(&b, 0x2000);
	xp_buf_u32(&b, 8);			/* major */
	xp_buf_u32(&b, 1);			/* minor */
	xp_buf_u64(&b, 0x123456789a);
	xp_buf_u64(&b, 99);			/* generation of the inode */
	xp_buf_u32(&b, 5);			/* PROT_READ | PROT_EXEC */
	xp_buf_u32(&b, 2);			/* MAP_PRIVATE */
	if (path)
		put_text(&b, path);
	return b;
}

static struct xp_buf comm_body(const char *name)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_buf_u32(&b, 10);
	xp_buf_u32(&b, 11);
	put_text(&b, name);
	return b;
}

static struct xp_buf fork_body(void)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_buf_u32(&b, 20);
	xp_buf_u32(&b, 10);
	xp_buf_u32(&b, 21);
	xp_buf_u32(&b, 11);
	xp_buf_u64(&b, 5);			/* its own time field */
	return b;
}

/* Parses a record and gives up both buffers. */
static void parse_body_of(uint32_t type, uint16_t misc, struct xp_buf body)
{
	struct xp_buf r = record_of(type, misc, &body);

	parse(r.data, r.len);
	xp_buf_release(&r);
	xp_buf_release(&body);
}

static void a_mapping(void **state)
{
	const struct xp_event *e;

	(void)state;
	parse_body_of(PERF_RECORD_MMAP2, 0, mmap_body("/usr/lib/libc.so.6"));
	assert_int_equal(sb.events.n, 1);
	e = &sb.events.v[0];
	assert_int_equal(e->type, XP_EVENT_MMAP);
	assert_int_equal(e->time, TIME);
	assert_int_equal(e->pid, 10);
	assert_int_equal(e->tid, 11);
	assert_int_equal(e->start, 0x7f0000001000);
	assert_int_equal(e->len, 0x5000);
	assert_int_equal(e->offset, 0x2000);
	assert_int_equal(e->dev, 8ull << 32 | 1);
	assert_int_equal(e->ino, 0x123456789a);
	assert_string_equal(xp_event_text(&sb, e), "/usr/lib/libc.so.6");
}

static void names(void **state)
{
	(void)state;
	parse_body_of(PERF_RECORD_COMM, 0, comm_body("worker"));
	parse_body_of(PERF_RECORD_COMM, PERF_RECORD_MISC_COMM_EXEC, comm_body("bash"));
	assert_int_equal(sb.events.n, 2);
	assert_int_equal(sb.events.v[0].type, XP_EVENT_COMM);
	assert_int_equal(sb.events.v[0].pid, 10);
	assert_int_equal(sb.events.v[0].tid, 11);
	assert_string_equal(xp_event_text(&sb, &sb.events.v[0]), "worker");
	assert_int_equal(sb.events.v[1].type, XP_EVENT_EXEC);
	assert_string_equal(xp_event_text(&sb, &sb.events.v[1]), "bash");
	assert_true(sb.events.v[0].seq < sb.events.v[1].seq);
}

static void a_fork(void **state)
{
	const struct xp_event *e;

	(void)state;
	parse_body_of(PERF_RECORD_FORK, 0, fork_body());
	assert_int_equal(sb.events.n, 1);
	e = &sb.events.v[0];
	assert_int_equal(e->type, XP_EVENT_FORK);
	assert_int_equal(e->time, TIME);
	assert_int_equal(e->pid, 20);
	assert_int_equal(e->ppid, 10);
	assert_int_equal(e->tid, 21);
	assert_int_equal(e->ptid, 11);
}

/* Linux include/uapi/linux/perf_event.h: PERF_RECORD_EXIT has the fields of PERF_RECORD_FORK. */
static void an_exit(void **state)
{
	(void)state;
	parse_body_of(PERF_RECORD_EXIT, 0, fork_body());
	assert_int_equal(sb.events.n, 1);
	assert_int_equal(sb.events.v[0].type, XP_EVENT_EXIT);
	assert_int_equal(sb.events.v[0].time, TIME);
	assert_int_equal(sb.events.v[0].pid, 20);
	assert_int_equal(sb.events.v[0].tid, 21);
}

static void losses_add_up(void **state)
{
	(void)state;
	for (uint64_t lost = 1; lost <= 3; lost++) {
		struct xp_buf b = XP_BUF_INIT;

		xp_buf_u64(&b, 1);
		xp_buf_u64(&b, lost);
		parse_body_of(PERF_RECORD_LOST, 0, b);
	}
	assert_int_equal(sb.events.n, 0);
	assert_int_equal(sb.lost, 6);
}

static void other_records_are_passed_over(void **state)
{
	(void)state;
	for (uint32_t type = 0; type < 64; type++) {
		if (type == PERF_RECORD_MMAP2 || type == PERF_RECORD_COMM ||
		    type == PERF_RECORD_FORK || type == PERF_RECORD_EXIT ||
		    type == PERF_RECORD_LOST)
			continue;
		parse_body_of(type, 0, mmap_body("/x"));
	}
	parse_body_of(UINT32_MAX, 0xffff, mmap_body("/x"));
	assert_int_equal(sb.events.n, 0);
	assert_int_equal(sb.lost, 0);
}

/* Cut at every byte: with the header's old size it is no record; with the new one it is shorter. */
static void cut_records(uint32_t type, struct xp_buf body, size_t least)
{
	struct xp_buf r = record_of(type, 0, &body);

	for (size_t n = 0; n < r.len; n++)
		parse(r.data, n);
	assert_int_equal(sb.events.n, 0);
	for (size_t n = 0; n <= body.len; n++) {
		struct xp_buf part = { body.data, n, n, false }, cut = record_of(type, 0, &part);
		size_t before = sb.events.n;

		parse(cut.data, cut.len);
		assert_int_equal(sb.events.n - before, n >= least);
		xp_buf_release(&cut);
	}
	xp_vec_clear(&sb.events);
	xp_buf_release(&r);
	xp_buf_release(&body);
}

static void malformed_sizes(void **state)
{
	struct xp_buf body = mmap_body("/usr/bin/x"), r = record_of(PERF_RECORD_MMAP2, 0, &body);
	struct perf_event_header h;

	(void)state;
	cut_records(PERF_RECORD_MMAP2, mmap_body("/usr/bin/x"), 64);
	cut_records(PERF_RECORD_COMM, comm_body("name"), 8);
	cut_records(PERF_RECORD_FORK, fork_body(), 16);
	cut_records(PERF_RECORD_EXIT, fork_body(), 16);
	memcpy(&h, r.data, sizeof(h));
	for (unsigned size = 0; size < 0x10000; size += 7) {
		if (size == r.len)
			continue;
		h.size = (uint16_t)size;
		memcpy(r.data, &h, sizeof(h));
		parse(r.data, r.len);
	}
	assert_int_equal(sb.events.n, 0);
	xp_buf_release(&r);
	xp_buf_release(&body);
}

/* A text that fills its field to the end is still a string. */
static void text_without_an_end(void **state)
{
	struct xp_buf body = mmap_body(NULL);

	(void)state;
	xp_buf_put(&body, "/abcdefghijklmn!", 16);
	parse_body_of(PERF_RECORD_MMAP2, 0, body);
	body = comm_body("");
	body.len = 8;
	xp_buf_put(&body, "12345678", 8);
	parse_body_of(PERF_RECORD_COMM, 0, body);
	assert_int_equal(sb.events.n, 2);
	assert_string_equal(xp_event_text(&sb, &sb.events.v[0]), "/abcdefghijklmn!");
	assert_string_equal(xp_event_text(&sb, &sb.events.v[1]), "12345678");
	/* And one that is not there at all is the empty one. */
	parse_body_of(PERF_RECORD_MMAP2, 0, mmap_body(NULL));
	assert_string_equal(xp_event_text(&sb, &sb.events.v[2]), "");
}

static void nothing_is_open(void **state)
{
	(void)state;
	parse_body_of(PERF_RECORD_COMM, 0, comm_body("before"));
	assert_int_equal(xp_sideband_drain(&sb), 0);	/* replaces what was there */
	assert_int_equal(sb.events.n, 0);
	xp_sideband_close(&sb);
	xp_sideband_close(&sb);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_mapping),
		TEST(names),
		TEST(a_fork),
		TEST(an_exit),
		TEST(losses_add_up),
		TEST(other_records_are_passed_over),
		TEST(malformed_sizes),
		TEST(text_without_an_end),
		TEST(nothing_is_open),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
