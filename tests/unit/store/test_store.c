/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The sample file, written and read back; cut and damaged at every byte; and where it may be made.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <cmocka.h>

#include "base/io.h"
#include "store/format.h"
#include "store/reader.h"
#include "store/writer.h"
#include "tests/unit/profile/sample_profile.h"

static char dir[] = "/tmp/xprof-store.XXXXXX";
static char path[64];

static int setup(void **state)
{
	(void)state;
	strcpy(dir, "/tmp/xprof-store.XXXXXX");
	if (!mkdtemp(dir))
		return -1;
	snprintf(path, sizeof(path), "%s/x.data", dir);
	return 0;
}

static int teardown(void **state)
{
	char command[64];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf %s", dir);
	return system(command);
}

static void fill_tables(struct xp_profile *p, uint32_t *thread, uint32_t *stack)
{
	uint32_t m = make_frame(p, "native", "main", XP_FRAME_NORMAL, "/bin/x y", "m.c", 1);
	uint32_t r = make_frame(p, "ruby", "block in A#b;\n\xff", XP_FRAME_CFUNC, NULL, "a.rb", 70000);
	struct xp_frame k = { .runtime = make_string(p, "kernel"), .name = make_string(p, "idle"),
			      .kind = XP_FRAME_KERNEL, .dso = XP_NO_ID, .addr = 0xffffffff81000010 };
	uint32_t kid;

	assert_int_equal(xp_profile_add_frame(p, &k, &kid), 0);
	*thread = make_thread(p, 1, UINT32_MAX, "a;b 7");
	*stack = make_stack(p, 3, m, r, kid);
}

/* A file of several chunks; it has 10 samples of different times, weights and order. */
static void write_file(bool end)
{
	struct xp_profile p;
	struct xp_writer *w;
	struct xp_err err = XP_ERR_INIT;
	uint32_t thread, stack;

	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_writer_open(&w, path, NULL, &p, &err), 0);
	fill_tables(&p, &thread, &stack);
	for (uint32_t i = 0; i < 10; i++) {
		struct xp_sample s = { .time = 5000000000000 + (i ^ 1) * 1000000, .thread = thread,
				       .stack = stack - i % 3, .weight = i % 4 ? 1 : i + 1 };

		assert_int_equal(xp_profile_add_sample(&p, &s), 0);
		if (i % 3 == 2) {
			assert_int_equal(xp_profile_set_counter(&p, "samples", i + 1), 0);
			assert_int_equal(xp_profile_set_meta(&p, "event", i > 5 ? "wall" : "cpu"), 0);
			assert_int_equal(xp_writer_flush(w, &err), 0);
			assert_int_equal(p.samples.n, 0);
		}
	}
	assert_int_equal(xp_writer_append(w, &err), 0);
	assert_int_equal(p.samples.n, 0);
	if (end)
		assert_int_equal(xp_writer_close(w, &err), 0);
	else
		xp_writer_abort(w);
	xp_profile_release(&p);
}

static void check_samples(const struct xp_profile *p, size_t n)
{
	assert_int_equal(p->samples.n, n);
	for (size_t i = 0; i < n; i++) {
		const struct xp_sample *s = &p->samples.v[i];

		assert_true(s->time == 5000000000000 + (i ^ 1) * 1000000);
		assert_int_equal(s->thread, 0);
		assert_int_equal(s->stack, 2 - i % 3);
		assert_int_equal(s->weight, i % 4 ? 1 : i + 1);
	}
}

static void check_tables(const struct xp_profile *p)
{
	const struct xp_frame *f;

	assert_int_equal(p->frames.n, 3);
	assert_int_equal(p->stacks.n, 3);
	assert_int_equal(p->stacks.v[0].parent, XP_NO_ID);
	assert_int_equal(p->stacks.v[2].parent, 1);
	assert_int_equal(p->threads.v[0].tid, UINT32_MAX);
	assert_string_equal(xp_strings_get(&p->strings, p->threads.v[0].comm).p, "a;b 7");
	f = &p->frames.v[0];
	assert_string_equal(xp_strings_get(&p->strings, p->dsos.v[f->dso].path).p, "/bin/x y");
	f = &p->frames.v[p->stacks.v[1].frame];
	assert_string_equal(xp_strings_get(&p->strings, f->name).p, "block in A#b;\n\xff");
	assert_int_equal(f->line, 70000);
	assert_int_equal(f->dso, XP_NO_ID);
	assert_int_equal(f->kind, XP_FRAME_CFUNC);
	assert_true(p->frames.v[2].addr == 0xffffffff81000010);
}

static void written_is_read(void **state)
{
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;
	struct stat st;

	(void)state;
	write_file(true);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_reader_load(path, &p, &r, &err), 0);
	assert_true(r.complete);
	assert_string_equal(r.problem, "");
	assert_int_equal(r.size, st.st_size);
	check_samples(&p, 10);
	check_tables(&p);
	assert_int_equal(xp_profile_counter(&p, "samples"), 9);
	assert_string_equal(xp_profile_meta(&p, "event"), "wall");
	xp_profile_release(&p);
}

/* Reads bytes as a file; what comes out must be a prefix of the truth. Returns complete. */
static bool read_bytes(const void *data, size_t n, size_t *samples)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;
	int ret;

	assert_true(fd >= 0);
	assert_int_equal(xp_write_all(fd, data, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(xp_profile_init(&p), 0);
	ret = xp_reader_load_fd(fd, "test", &p, &r, &err);
	close(fd);
	check_samples(&p, p.samples.n);
	assert_true(p.samples.n <= 10);
	if (ret) {
		assert_true(ret < 0);
		assert_int_equal(p.samples.n, 0);
		assert_string_not_equal(err.what, "");
		assert_int_equal(err.status, XP_EXIT_FAILURE);
		assert_false(r.complete);
	} else if (!r.complete) {
		assert_string_not_equal(r.problem, "");
		assert_true(r.offset <= n && r.offset >= XP_STORE_HEADER_SIZE);
	}
	*samples = p.samples.n;
	xp_profile_release(&p);
	return r.complete;
}

static void load(struct xp_buf *b)
{
	assert_int_equal(xp_read_file(path, b, 1 << 20), 0);
}

static void cut_anywhere_keeps_what_is_before(void **state)
{
	struct xp_buf file = XP_BUF_INIT;
	size_t samples, last = 0;

	(void)state;
	write_file(true);
	load(&file);
	for (size_t n = 0; n < file.len; n++) {
		assert_false(read_bytes(file.data, n, &samples));
		assert_true(samples >= last);
		last = samples;
	}
	assert_int_equal(last, 10);		/* only the end chunk was missing */
	assert_true(read_bytes(file.data, file.len, &samples));
	xp_buf_u8(&file, 0);
	assert_false(read_bytes(file.data, file.len, &samples));
	assert_int_equal(samples, 10);
	xp_buf_release(&file);
}

static void no_flipped_byte_goes_unnoticed(void **state)
{
	struct xp_buf file = XP_BUF_INIT;
	size_t samples;

	(void)state;
	write_file(true);
	load(&file);
	for (size_t i = 0; i < file.len; i++)
		for (int bit = 0; bit < 8; bit++) {
			file.data[i] ^= 1 << bit;
			assert_false(read_bytes(file.data, file.len, &samples));
			file.data[i] ^= 1 << bit;
		}
	xp_buf_release(&file);
}

/* Every chunk left out, and every chunk twice. */
static void chunks_are_counted(void **state)
{
	struct xp_buf file = XP_BUF_INIT, other = XP_BUF_INIT;
	size_t samples;

	(void)state;
	write_file(true);
	load(&file);
	for (size_t at = 0, size; at < file.len; at += size) {
		struct xp_cur c = xp_cur_of(file.data + at + XP_STORE_AT_STORED, 4);

		size = XP_STORE_HEADER_SIZE + xp_cur_u32(&c);
		xp_buf_clear(&other);
		xp_buf_put(&other, file.data, at);
		xp_buf_put(&other, file.data + at + size, file.len - at - size);
		assert_false(read_bytes(other.data, other.len, &samples));
		xp_buf_clear(&other);
		xp_buf_put(&other, file.data, at + size);
		xp_buf_put(&other, file.data + at, file.len - at);
		assert_false(read_bytes(other.data, other.len, &samples));
	}
	xp_buf_release(&file);
	xp_buf_release(&other);
}

static void a_killed_writer_leaves_a_prefix(void **state)
{
	struct xp_buf file = XP_BUF_INIT;
	size_t samples;

	(void)state;
	write_file(false);
	load(&file);
	assert_false(read_bytes(file.data, file.len, &samples));
	assert_int_equal(samples, 9);		/* what was appended, but not flushed, is lost */
	xp_buf_release(&file);
}

static void put_chunk(struct xp_buf *b, uint8_t kind, uint8_t codec, uint32_t number, uint32_t raw,
		      const void *payload, size_t n)
{
	size_t at = b->len;
	uLong crc;

	xp_buf_u32(b, XP_STORE_MAGIC);
	xp_buf_u8(b, kind);
	xp_buf_u8(b, codec);
	xp_buf_u8(b, 0);
	xp_buf_u8(b, 0);
	xp_buf_u32(b, number);
	xp_buf_u32(b, raw);
	xp_buf_u32(b, (uint32_t)n);
	crc = crc32(crc32(0, b->data + at, XP_STORE_AT_CRC), payload, (uInt)n);
	xp_buf_u32(b, (uint32_t)crc);
	xp_buf_put(b, payload, n);
}

static void put_header(struct xp_buf *b, uint8_t version)
{
	char payload[XP_STORE_IDENT_LEN + 4] = XP_STORE_IDENT;

	payload[XP_STORE_IDENT_LEN] = (char)version;
	put_chunk(b, XP_STORE_HEADER, XP_STORE_PLAIN, 0, sizeof(payload), payload, sizeof(payload));
}

struct hostile {
	const char *name, *bytes;
	size_t n;
	const char *problem;
};
#define RECORDS(name, s, problem) { name, s, sizeof(s) - 1, problem }
#define STRING "\1\1x"
#define FRAME "\3\0\0\1\0\0\0\0"
#define STACK "\4\0\0"
#define THREAD "\5\1\1\1"

static const struct hostile hostile[] = {
	RECORDS("tag 0", "\0", "unknown kind"),
	RECORDS("tag 8", "\10", "unknown kind"),
	RECORDS("sample flag", "\x88\0\0\0", "unknown kind"),
	RECORDS("string past the end", "\1\5abc", "string"),
	RECORDS("string of 2^63", "\1\x80\x80\x80\x80\x80\x80\x80\x80\x80\1", "string"),
	RECORDS("endless varint", "\1\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff\xff", "string"),
	RECORDS("file of no string", "\2\1\0", "file record"),
	RECORDS("frame of no string", "\3\0\0\1\0\0\0\0", "frame"),
	RECORDS("frame of no file", STRING "\3\0\0\1\0\0\1\0", "frame"),
	RECORDS("frame of no kind", STRING "\3\x20\0\1\0\0\0\0", "frame"),
	RECORDS("frame line too large", STRING "\3\0\0\1\0\xff\xff\xff\xff\x7f\0\0", "frame"),
	RECORDS("frame cut", STRING "\3\0\0", "frame"),
	RECORDS("stack of no frame", "\4\0\0", "stack"),
	RECORDS("stack above itself", STRING FRAME "\4\1\0", "stack"),
	RECORDS("stack far above", STRING FRAME STACK "\4\2\0", "stack"),
	RECORDS("thread id too large", STRING "\5\xff\xff\xff\xff\x7f\1\1", "thread"),
	RECORDS("thread of no string", "\5\1\1\1", "thread"),
	RECORDS("meta of no string", "\6\1\1", "meta"),
	RECORDS("counter cut", "\7\0", "meta or counter"),
	RECORDS("sample of no thread", STRING FRAME STACK "\x80\0\0\0", "sample"),
	RECORDS("sample of no stack", STRING THREAD "\x80\0\0\0", "sample"),
	RECORDS("sample of no weight", STRING FRAME STACK THREAD "\x81\0\0\0\0", "sample"),
	RECORDS("sample of no state", STRING FRAME STACK THREAD "\x82\0\0\0\xff", "sample"),
	RECORDS("sample before time", STRING FRAME STACK THREAD "\x84\1\0\0", "sample"),
	RECORDS("good ones first", STRING FRAME STACK THREAD "\x80\1\0\0\x80\1\0\0\0", "unknown kind"),
};

static void check_problem(const char *name, const struct xp_buf *file, const char *problem)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;

	assert_int_equal(xp_write_all(fd, file->data, file->len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_reader_load_fd(fd, "test", &p, &r, &err), 0);
	if (r.complete || !strstr(r.problem, problem))
		fail_msg("%s: \"%s\" does not say \"%s\"", name, r.problem, problem);
	assert_int_equal(p.samples.n, 0);
	xp_profile_release(&p);
	close(fd);
}

static void hostile_records_are_refused(void **state)
{
	struct xp_buf file = XP_BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(hostile) / sizeof(*hostile); i++) {
		const struct hostile *h = &hostile[i];

		xp_buf_clear(&file);
		put_header(&file, XP_STORE_VERSION);
		put_chunk(&file, XP_STORE_DATA, XP_STORE_PLAIN, 1, (uint32_t)h->n, h->bytes, h->n);
		check_problem(h->name, &file, h->problem);
	}
	xp_buf_release(&file);
}

static void hostile_chunks_are_refused(void **state)
{
	static const struct {
		uint8_t kind, codec;
		uint32_t number, raw;
		const char *payload, *problem;
	} chunks[] = {
		{ 'X', 0, 1, 0, "", "unknown kind" },
		{ 'H', 0, 1, 0, "", "unknown kind" },
		{ 'D', 2, 1, 3, "abc", "unknown compression" },
		{ 'D', 0, 1, 4, "abc", "do not agree" },
		{ 'D', 0, 2, 0, "", "missing or out of order" },
		{ 'D', 1, 1, 3, "abc", "decompress" },
		{ 'D', 1, 1, XP_STORE_CHUNK_MAX + 1, "abc", "larger than allowed" },
		{ 'D', 1, 1, UINT32_MAX, "abc", "larger than allowed" },
		{ 'E', 0, 1, 0, "", "totals" },
		{ 'E', 0, 1, 6, "\2\1\1\1\1\1", "totals" },
	};
	struct xp_buf file = XP_BUF_INIT;

	(void)state;
	for (size_t i = 0; i < sizeof(chunks) / sizeof(*chunks); i++) {
		xp_buf_clear(&file);
		put_header(&file, XP_STORE_VERSION);
		put_chunk(&file, chunks[i].kind, chunks[i].codec, chunks[i].number, chunks[i].raw,
			  chunks[i].payload, strlen(chunks[i].payload));
		check_problem(chunks[i].problem, &file, chunks[i].problem);
	}
	xp_buf_release(&file);
}

/* A chain of frames deeper than allowed, in chunks that are each fine. */
static void depth_is_bounded(void **state)
{
	struct xp_buf file = XP_BUF_INIT, records = XP_BUF_INIT;

	(void)state;
	put_header(&file, XP_STORE_VERSION);
	xp_buf_put(&records, STRING FRAME STACK, sizeof(STRING FRAME STACK) - 1);
	for (uint32_t i = 0; i < XP_STORE_DEPTH_MAX - 1; i++)
		xp_buf_put(&records, "\4\1\0", 3);
	put_chunk(&file, XP_STORE_DATA, XP_STORE_PLAIN, 1, (uint32_t)records.len, records.data,
		  records.len);
	check_problem("depth allowed", &file, "not finished");
	put_chunk(&file, XP_STORE_DATA, XP_STORE_PLAIN, 2, 3, "\4\1\0", 3);
	check_problem("depth", &file, "too deep");
	xp_buf_release(&file);
	xp_buf_release(&records);
}

/* Equal records are no error: another writer may not intern. Their ids count on all the same. */
static void duplicates_keep_their_ids(void **state)
{
	const char records[] = STRING STRING "\1\1y" "\3\0\0\1\0\0\0\0" "\3\0\0\2\0\0\0\0" "\3\0\0\3\0\0\0\0"
			       "\4\0\0" "\4\0\1" "\4\0\2" "\4\1\0" THREAD "\5\1\1\2" "\5\2\2\3"
			       "\x80\1\2\3" "\x80\1\0\0" "\x80\1\1\1";
	struct xp_buf file = XP_BUF_INIT;
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;
	const struct xp_sample *s;

	(void)state;
	put_header(&file, XP_STORE_VERSION);
	put_chunk(&file, XP_STORE_DATA, XP_STORE_PLAIN, 1, sizeof(records) - 1, records,
		  sizeof(records) - 1);
	put_chunk(&file, XP_STORE_END, XP_STORE_PLAIN, 2, 6, "\4\0\3\4\3\3", 6);
	assert_int_equal(xp_write_all(fd, file.data, file.len), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_reader_load_fd(fd, "test", &p, &r, &err), 0);
	assert_string_equal(r.problem, "");
	assert_true(r.complete);
	assert_int_equal(p.frames.n, 2);
	s = p.samples.v;
	assert_int_equal(p.threads.v[s[0].thread].pid, 2);
	assert_int_equal(s[1].thread, s[2].thread);
	assert_int_equal(s[1].stack, s[2].stack);
	assert_int_equal(p.frames.v[p.stacks.v[s[0].stack].frame].name,
			 p.frames.v[p.stacks.v[s[1].stack].frame].name);
	assert_string_equal(xp_strings_get(&p.strings,
			    p.frames.v[p.stacks.v[p.stacks.v[s[0].stack].parent].frame].name).p, "y");
	xp_profile_release(&p);
	xp_buf_release(&file);
	close(fd);
}

static void check_refused(const char *bytes, size_t n, const char *what)
{
	int fd = memfd_create("test", MFD_CLOEXEC);
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;

	assert_int_equal(xp_write_all(fd, bytes, n), 0);
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_true(xp_reader_load_fd(fd, "FILE", &p, &r, &err) < 0);
	if (!strstr(err.what, what))
		fail_msg("\"%s\" does not say \"%s\"", err.what, what);
	assert_int_equal(err.status, XP_EXIT_FAILURE);
	xp_profile_release(&p);
	close(fd);
}

static void other_files_are_told_apart(void **state)
{
	struct xp_buf newer = XP_BUF_INIT;
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;

	(void)state;
	check_refused("", 0, "FILE is empty");
	check_refused("main;foo 12\n", 12, "it is a text file");
	check_refused("PERFILE2\150\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 28, "it is a file of perf");
	check_refused("\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 25, "it is an ELF file");
	check_refused("\x80\x81\x82\x83\x84\x85\x86\x87\x88\x89", 10, "not a sample file of xprof");
	check_refused("\x89XpC\1\2", 6, "damaged at its very beginning");
	put_header(&newer, XP_STORE_VERSION + 1);
	check_refused((const char *)newer.data, newer.len, "has format version 2");
	xp_buf_release(&newer);

	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_reader_load(dir, &p, &r, &err), -EISDIR);
	assert_non_null(strstr(err.what, "Is a directory"));
	assert_int_equal(xp_reader_load(path, &p, &r, &err), -ENOENT);
	assert_non_null(strstr(err.what, "No such file"));
	assert_string_not_equal(err.hint, "");
	xp_profile_release(&p);
}

static void a_known_sample_takes_eight_bytes(void **state)
{
	struct xp_profile p;
	struct xp_writer *w;
	struct xp_err err = XP_ERR_INIT;
	struct xp_writer_stats st;
	uint32_t f, id = XP_NO_ID;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	f = make_frame(&p, "native", "f", XP_FRAME_NORMAL, NULL, NULL, 0);
	for (int i = 0; i < 100000; i++)
		assert_int_equal(xp_profile_add_stack(&p, id, f, &id), 0);
	for (uint32_t i = 0; i < 1000; i++)
		make_thread(&p, 4000000 + i, 4000000 + i, "worker");
	assert_int_equal(xp_writer_open(&w, path, NULL, &p, &err), 0);
	make_samples(&p, 0, 0, 1);
	assert_int_equal(xp_writer_flush(w, &err), 0);
	for (uint32_t i = 0; i < 1000; i++) {
		xp_writer_stats(w, &st);
		make_samples(&p, i, 99999 - i, 1);
		assert_int_equal(xp_writer_append(w, &err), 0);
		f = (uint32_t)st.sample_bytes;
		xp_writer_stats(w, &st);
		assert_in_range(st.sample_bytes - f, 4, 8);
	}
	assert_int_equal(st.samples, 1001);
	assert_int_equal(xp_writer_close(w, &err), 0);
	xp_profile_release(&p);
}

/* More than a chunk holds, with strings longer than a record may have. */
static void large_tables_are_split(void **state)
{
	static char text[XP_STORE_STRING_MAX + 500];
	struct xp_profile p, q;
	struct xp_writer *w;
	struct xp_err err = XP_ERR_INIT;
	struct xp_read_result r;
	uint32_t id, seed = 1;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_profile_init(&q), 0);
	for (int i = 0; i < 60; i++) {
		for (size_t at = 0; at < sizeof(text); at++)
			text[at] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
		assert_int_equal(xp_strings_add(&p.strings, text, sizeof(text), &id), 0);
	}
	assert_int_equal(xp_writer_open(&w, path, NULL, &p, &err), 0);
	assert_int_equal(xp_writer_close(w, &err), 0);
	assert_int_equal(xp_reader_load(path, &q, &r, &err), 0);
	assert_true(r.complete);
	assert_int_equal(q.strings.list.n, 61);
	assert_int_equal(xp_strings_get(&q.strings, 60).n, XP_STORE_STRING_MAX);
	assert_memory_equal(xp_strings_get(&q.strings, 60).p, text, XP_STORE_STRING_MAX);
	xp_profile_release(&p);
	xp_profile_release(&q);
}

static int try_open(const char *where, struct xp_err *err)
{
	struct xp_profile p;
	struct xp_writer *w;
	int ret;

	assert_int_equal(xp_profile_init(&p), 0);
	*err = (struct xp_err)XP_ERR_INIT;
	ret = xp_writer_open(&w, where, NULL, &p, err);
	if (!ret)
		ret = xp_writer_close(w, err);
	xp_profile_release(&p);
	return ret;
}

static void an_old_file_is_kept_once(void **state)
{
	struct xp_err err;
	char old[80];
	struct stat a, b, c;

	(void)state;
	snprintf(old, sizeof(old), "%s.old", path);
	assert_int_equal(try_open(path, &err), 0);
	assert_int_equal(stat(path, &a), 0);
	assert_int_equal(try_open(path, &err), 0);
	assert_int_equal(stat(old, &b), 0);
	assert_int_equal(a.st_ino, b.st_ino);
	assert_int_equal(stat(path, &b), 0);
	assert_int_equal(try_open(path, &err), 0);
	assert_int_equal(stat(old, &c), 0);
	assert_int_equal(b.st_ino, c.st_ino);
	assert_int_equal(unlink(old), 0);
	assert_int_equal(mkdir(old, 0700), 0);
	assert_true(try_open(path, &err) < 0);
	assert_non_null(strstr(err.what, "cannot rename"));
}

static void links_and_odd_places_are_refused(void **state)
{
	struct xp_err err;
	char link[80], target[80];
	struct stat st;

	(void)state;
	snprintf(link, sizeof(link), "%s/link", dir);
	snprintf(target, sizeof(target), "%s/target", dir);
	assert_int_equal(symlink(target, link), 0);
	assert_int_equal(try_open(link, &err), -ELOOP);
	assert_int_equal(stat(target, &st), -1);
	assert_non_null(strstr(err.what, "symbolic link"));
	assert_string_not_equal(err.hint, "");
	assert_int_equal(try_open(dir, &err), -EISDIR);
	assert_string_not_equal(err.hint, "");
	snprintf(target, sizeof(target), "%s/no/x.data", dir);
	assert_int_equal(try_open(target, &err), -ENOENT);
	assert_non_null(strstr(err.what, "cannot create"));
	assert_non_null(strstr(err.hint, "-o FILE"));
}

static void unwritable_directory_says_so(void **state)
{
	struct xp_err err;
	int status;
	pid_t pid;

	(void)state;
	if (geteuid()) {
		print_message("# SKIP not root: the test gives rights away\n");
		skip();
	}
	pid = fork();
	if (!pid) {
		if (setuid(65534))
			_exit(3);
		if (try_open(path, &err) != -EACCES)
			_exit(4);
		_exit(!(strstr(err.what, "Permission denied") && *err.hint));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_int_equal(status, 0);
}

static void sudo_gives_the_file_back(void **state)
{
	struct xp_err err;
	struct stat st;

	(void)state;
	if (geteuid()) {
		print_message("# SKIP not root: the test gives a file away\n");
		skip();
	}
	setenv("SUDO_UID", "12345", 1);
	setenv("SUDO_GID", "4294967295", 1);
	assert_int_equal(try_open(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 0);
	setenv("SUDO_GID", "54321", 1);
	assert_int_equal(try_open(path, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_uid, 12345);
	assert_int_equal(st.st_gid, 54321);
	assert_int_equal(st.st_mode & 07777, 0600);
	unsetenv("SUDO_UID");
	unsetenv("SUDO_GID");
}

static void a_full_disk_is_reported(void **state)
{
	struct xp_err err;

	(void)state;
	assert_int_equal(try_open("/dev/full", &err), -ENOSPC);
	assert_non_null(strstr(err.what, "/dev/full"));
	assert_non_null(strstr(err.what, "No space left"));
	assert_string_not_equal(err.hint, "");
	assert_int_equal(try_open("/dev/null", &err), 0);
}

/* The disk fills up in the middle: later calls fail too, and what was whole is readable. */
static void space_that_runs_out(void **state)
{
	struct xp_profile p;
	struct xp_writer *w;
	struct xp_err err = XP_ERR_INIT;
	int pair[2], ret = 0;
	char drain[65536];
	struct xp_buf got = XP_BUF_INIT;
	char fifo[80];
	uint32_t thread, stack;
	size_t samples;

	(void)state;
	signal(SIGPIPE, SIG_IGN);
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	pair[0] = open(fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	assert_true(pair[0] >= 0);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_writer_open(&w, fifo, NULL, &p, &err), 0);
	fill_tables(&p, &thread, &stack);
	assert_int_equal(xp_writer_flush(w, &err), 0);
	xp_buf_put(&got, drain, (size_t)read(pair[0], drain, sizeof(drain)));
	close(pair[0]);
	make_samples(&p, thread, stack, 3);
	ret = xp_writer_flush(w, &err);
	assert_int_equal(ret, -EPIPE);
	assert_non_null(strstr(err.what, fifo));
	make_samples(&p, thread, stack, 3);
	assert_int_equal(xp_writer_flush(w, &err), -EPIPE);
	assert_int_equal(xp_writer_close(w, &err), -EPIPE);
	assert_false(read_bytes(got.data, got.len, &samples));
	assert_int_equal(samples, 0);
	xp_buf_release(&got);
	xp_profile_release(&p);
}

/* A reader that takes so many pieces when we wait for it, then nothing more. */
struct slow_reader {
	const char *fifo;
	int fd, opens, takes;		/* opens: waits before it is there */
	struct xp_buf got;
};

static int wait_for(void *ctx, int fd)
{
	struct slow_reader *r = ctx;
	struct pollfd p = { .fd = fd, .events = POLLOUT };
	char piece[65536];
	ssize_t n;

	if (fd < 0 && r->opens-- > 0)
		return 0;
	if (r->fd < 0 && r->opens > -2)
		r->fd = open(r->fifo, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	if (fd < 0)
		return r->fd < 0 ? -EINTR : 0;
	if (poll(&p, 1, 0) == 1)
		return 0;
	if (!r->takes--)
		return -ETIMEDOUT;
	n = read(r->fd, piece, sizeof(piece));
	assert_true(n > 0);
	xp_buf_put(&r->got, piece, (size_t)n);
	return 0;
}

/* Strings that do not compress: more than a pipe holds. */
static void add_noise(struct xp_profile *p)
{
	uint32_t seed = 1, id;
	char text[60000];

	for (int i = 0; i < 10; i++) {
		for (size_t at = 0; at < sizeof(text); at++)
			text[at] = (char)((seed = seed * 1664525 + 1013904223) >> 24);
		assert_int_equal(xp_strings_add(&p->strings, text, sizeof(text), &id), 0);
	}
}

static int write_slowly(struct slow_reader *r, struct xp_err *err)
{
	const struct xp_writer_wait wait = { wait_for, r };
	struct xp_profile p;
	struct xp_writer *w;
	char drain[65536];
	ssize_t n;
	int ret;

	assert_int_equal(xp_profile_init(&p), 0);
	ret = xp_writer_open(&w, r->fifo, &wait, &p, err);
	if (!ret) {
		add_noise(&p);
		ret = xp_writer_close(w, err);
	}
	while (r->fd >= 0 && (n = read(r->fd, drain, sizeof(drain))) > 0)
		xp_buf_put(&r->got, drain, (size_t)n);
	if (r->fd >= 0)
		close(r->fd);
	xp_profile_release(&p);
	return ret;
}

static void pipes_are_waited_for(void **state)
{
	struct xp_err err = XP_ERR_INIT;
	size_t samples;
	char fifo[80];

	(void)state;
	snprintf(fifo, sizeof(fifo), "%s/fifo", dir);
	assert_int_equal(mkfifo(fifo, 0600), 0);
	struct slow_reader all = { .fifo = fifo, .fd = -1, .opens = 3, .takes = 1000 };
	assert_int_equal(write_slowly(&all, &err), 0);
	assert_int_equal(all.opens, -1);
	assert_true(all.got.len > 600000);
	assert_true(read_bytes(all.got.data, all.got.len, &samples));
	xp_buf_release(&all.got);

	struct slow_reader some = { .fifo = fifo, .fd = -1, .takes = 4 };
	assert_int_equal(write_slowly(&some, &err), -ETIMEDOUT);
	assert_non_null(strstr(err.what, "its reader takes no more"));
	assert_non_null(strstr(err.what, fifo));
	assert_false(read_bytes(some.got.data, some.got.len, &samples));
	xp_buf_release(&some.got);

	struct slow_reader none = { .fifo = "/dev/null/x", .fd = -1 };
	assert_int_equal(write_slowly(&none, &err), -ENOTDIR);
	none = (struct slow_reader){ .fifo = fifo, .fd = -1, .opens = -5 };
	assert_int_equal(write_slowly(&none, &err), -EINTR);
	assert_non_null(strstr(err.what, "nobody came to read"));
}

/* Equal chunks of a million zeros compress to nothing; what they hold may not. */
static void a_small_file_stays_small_in_memory(void **state)
{
	const size_t n = 260000;
	struct xp_buf file = XP_BUF_INIT, records = XP_BUF_INIT;
	struct xp_profile p;
	struct xp_read_result r;
	struct xp_err err = XP_ERR_INIT;
	uint8_t *packed = malloc(XP_STORE_CHUNK_MAX), payload[XP_STORE_IDENT_LEN + 4] =
		XP_STORE_IDENT "\1";
	size_t stored;
	int fd = memfd_create("bomb", 0);

	(void)state;
	assert_true(fd >= 0 && packed);
	put_chunk(&file, XP_STORE_HEADER, XP_STORE_PLAIN, 0, sizeof(payload), payload, sizeof(payload));
	xp_buf_put(&records, "\3\0\0\0\0\0\0\0\4\0\0\5\1\1\0", 15);
	put_chunk(&file, XP_STORE_DATA, XP_STORE_PLAIN, 1, (uint32_t)records.len, records.data,
		  records.len);
	xp_buf_clear(&records);
	for (size_t i = 0; i < n; i++)
		xp_buf_put(&records, "\x80\0\0\0", 4);
	stored = ZSTD_compress(packed, XP_STORE_CHUNK_MAX, records.data, records.len, 3);
	assert_false(ZSTD_isError(stored));
	for (uint32_t i = 2; i < 200; i++)
		put_chunk(&file, XP_STORE_DATA, XP_STORE_ZSTD, i, (uint32_t)records.len, packed, stored);
	assert_true(file.len < 60000);
	assert_int_equal(xp_write_all(fd, file.data, file.len), 0);
	lseek(fd, 0, SEEK_SET);
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_reader_load_fd(fd, "bomb", &p, &r, &err), 0);
	assert_false(r.complete);
	assert_non_null(strstr(r.problem, "expands to more"));
	assert_in_range(p.samples.n, n, xp_store_raw_max(file.len) / 4);
	close(fd);
	free(packed);
	xp_profile_release(&p);
	xp_buf_release(&records);
	xp_buf_release(&file);
}

/* What the writer makes is never refused for that, however well it could be compressed. */
static void the_writer_keeps_to_the_same_limit(void **state)
{
	struct xp_profile p, q;
	struct xp_writer *w;
	struct xp_read_result r;
	struct xp_writer_stats st;
	struct xp_err err = XP_ERR_INIT;
	uint32_t thread, stack;

	(void)state;
	assert_int_equal(xp_profile_init(&p), 0);
	assert_int_equal(xp_profile_init(&q), 0);
	assert_int_equal(xp_writer_open(&w, path, NULL, &p, &err), 0);
	fill_tables(&p, &thread, &stack);
	for (int i = 0; i < 50; i++) {
		for (int k = 0; k < 100000; k++) {
			struct xp_sample s = { .thread = thread, .stack = stack, .weight = 1 };

			assert_int_equal(xp_profile_add_sample(&p, &s), 0);
		}
		assert_int_equal(xp_writer_append(w, &err), 0);
	}
	assert_int_equal(xp_writer_flush(w, &err), 0);
	xp_writer_stats(w, &st);
	assert_true(st.raw_bytes > 20000000);
	assert_in_range(st.bytes, 10000, 1000000);
	assert_int_equal(xp_writer_close(w, &err), 0);
	assert_int_equal(xp_reader_load(path, &q, &r, &err), 0);
	assert_true(r.complete);
	assert_int_equal(q.samples.n, 5000000);
	xp_profile_release(&p);
	xp_profile_release(&q);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(written_is_read),
		TEST(cut_anywhere_keeps_what_is_before),
		TEST(no_flipped_byte_goes_unnoticed),
		TEST(chunks_are_counted),
		TEST(a_killed_writer_leaves_a_prefix),
		TEST(hostile_records_are_refused),
		TEST(hostile_chunks_are_refused),
		TEST(depth_is_bounded),
		TEST(duplicates_keep_their_ids),
		TEST(other_files_are_told_apart),
		TEST(a_known_sample_takes_eight_bytes),
		TEST(large_tables_are_split),
		TEST(an_old_file_is_kept_once),
		TEST(links_and_odd_places_are_refused),
		TEST(unwritable_directory_says_so),
		TEST(sudo_gives_the_file_back),
		TEST(a_full_disk_is_reported),
		TEST(space_that_runs_out),
		TEST(pipes_are_waited_for),
		TEST(a_small_file_stays_small_in_memory),
		TEST(the_writer_keeps_to_the_same_limit),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
