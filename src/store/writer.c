/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Records go into one pending buffer in the order of their tables: strings first, samples last, so
 * that wherever the buffer is cut into chunks a record refers only to what stands before it.
 */
#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io.h"
#include "store/create.h"
#include "store/format.h"
#include "store/writer.h"

#define CHUNK_FULL (256u << 10)	/* large enough to compress well, small enough to lose */
#define ZSTD_LEVEL 3

struct writer_totals {		/* records written, by table: watermarks and the end chunk */
	size_t strings, dsos, frames, stacks, threads;
	uint64_t samples;
};

struct xp_writer {
	int fd;
	bool regular;		/* a file on a disk: never waited for */
	struct xp_writer_wait wait;
	char *path;		/* for messages */
	struct xp_profile *p;
	struct xp_buf pending;	/* records of the next data chunk */
	struct xp_buf facts;	/* meta and counter records as last written */
	struct writer_totals done;
	uint64_t time;		/* us, of the last sample */
	uint32_t chunks;
	ZSTD_CCtx *zstd;
	uint8_t *packed;	/* XP_STORE_HEADER_SIZE + XP_STORE_CHUNK_MAX */
	int failed;		/* first error: nothing is written after it */
	struct xp_writer_stats stats;
};

static void put_u32(uint8_t *p, uint32_t v)
{
	for (int i = 0; i < 4; i++)
		p[i] = (uint8_t)(v >> 8 * i);
}

static void build_header(struct xp_writer *w, enum xp_store_kind kind, enum xp_store_codec codec,
			 size_t raw, size_t stored)
{
	uint8_t *h = w->packed;
	uLong crc;

	memset(h, 0, XP_STORE_HEADER_SIZE);
	put_u32(h + XP_STORE_AT_MAGIC, XP_STORE_MAGIC);
	h[XP_STORE_AT_KIND] = (uint8_t)kind;
	h[XP_STORE_AT_CODEC] = (uint8_t)codec;
	put_u32(h + XP_STORE_AT_NUMBER, w->chunks);
	put_u32(h + XP_STORE_AT_RAW, (uint32_t)raw);
	put_u32(h + XP_STORE_AT_STORED, (uint32_t)stored);
	crc = crc32(0, h, XP_STORE_AT_CRC);
	crc = crc32(crc, h + XP_STORE_HEADER_SIZE, (uInt)stored);
	put_u32(h + XP_STORE_AT_CRC, (uint32_t)crc);
}

static int fail(struct xp_writer *w, int ret, struct xp_err *err)
{
	w->failed = ret;
	if (ret == -EINTR || ret == -ETIMEDOUT) {
		xp_err_set(err, -ret, "gave up writing to %s: its reader takes no more", w->path);
		xp_err_hint(err, "the recording ends early there; what was written before is readable");
		return ret;
	}
	xp_err_sys(err, -ret, "cannot write to %s", w->path);
	if (ret == -ENOSPC || ret == -EDQUOT || ret == -EFBIG)
		xp_err_hint(err, "what was written before is readable; %s or choose another place "
			    "with -o FILE", ret == -EFBIG ? "raise the limit (ulimit -f)" : "free space");
	return ret;
}

/*
 * A pipe takes PIPE_BUF bytes at once when it takes any (pipe(7)), so a write of no more than that
 * does not block after a wait, whether the descriptor is blocking or not.
 */
static int put_bytes(struct xp_writer *w, const uint8_t *p, size_t n)
{
	if (w->regular || !w->wait.fn)
		return xp_write_all(w->fd, p, n);
	while (n) {
		int ret = w->wait.fn(w->wait.ctx, w->fd);
		ssize_t done = ret ? 0 : write(w->fd, p, n < PIPE_BUF ? n : PIPE_BUF);

		if (ret)
			return ret;
		if (done < 0 && errno != EAGAIN && errno != EINTR)
			return -errno;
		if (!done)
			return -EIO;
		if (done > 0) {
			p += done;
			n -= (size_t)done;
		}
	}
	return 0;
}

static int write_chunk(struct xp_writer *w, enum xp_store_kind kind, const struct xp_buf *raw,
		       struct xp_err *err)
{
	uint8_t *payload = w->packed + XP_STORE_HEADER_SIZE;
	size_t stored = raw->len;
	enum xp_store_codec codec = XP_STORE_PLAIN;
	int ret;

	if (w->failed)
		return fail(w, w->failed, err);
	if (raw->failed)
		return fail(w, -ENOMEM, err);
	if (kind == XP_STORE_DATA && raw->len > 1) {
		size_t n = ZSTD_compressCCtx(w->zstd, payload, raw->len - 1, raw->data, raw->len,
					     ZSTD_LEVEL);

		/* An error: it does not get smaller. And a reader may refuse what gets too small. */
		if (!ZSTD_isError(n) && w->stats.raw_bytes + raw->len <=
		    xp_store_raw_max(w->stats.bytes + XP_STORE_HEADER_SIZE + n)) {
			codec = XP_STORE_ZSTD;
			stored = n;
		}
	}
	if (codec == XP_STORE_PLAIN && raw->len)
		memcpy(payload, raw->data, raw->len);
	build_header(w, kind, codec, raw->len, stored);
	ret = put_bytes(w, w->packed, XP_STORE_HEADER_SIZE + stored);
	if (ret)
		return fail(w, ret, err);
	w->chunks++;
	w->stats.bytes += XP_STORE_HEADER_SIZE + stored;
	w->stats.raw_bytes += raw->len;
	return 0;
}

static int write_pending(struct xp_writer *w, struct xp_err *err)
{
	int ret = w->pending.len || w->pending.failed ?
		  write_chunk(w, XP_STORE_DATA, &w->pending, err) : 0;

	xp_buf_clear(&w->pending);
	return ret;
}

static void put_string(struct xp_writer *w, size_t i)
{
	struct xp_str s = xp_strings_get(&w->p->strings, (uint32_t)i);

	xp_buf_u8(&w->pending, XP_STORE_STRING);
	xp_buf_str(&w->pending, s.p, s.n < XP_STORE_STRING_MAX ? s.n : XP_STORE_STRING_MAX);
}

static void put_dso(struct xp_writer *w, size_t i)
{
	const struct xp_dso_entry *d = &w->p->dsos.v[i];

	xp_buf_u8(&w->pending, XP_STORE_DSO);
	xp_buf_uleb(&w->pending, d->path);
	xp_buf_uleb(&w->pending, d->build_id);
}

static void put_frame(struct xp_writer *w, size_t i)
{
	const struct xp_frame *f = &w->p->frames.v[i];

	xp_buf_u8(&w->pending, XP_STORE_FRAME);
	xp_buf_u8(&w->pending, f->kind);
	xp_buf_uleb(&w->pending, f->runtime);
	xp_buf_uleb(&w->pending, f->name);
	xp_buf_uleb(&w->pending, f->file);
	xp_buf_uleb(&w->pending, f->line);
	xp_buf_uleb(&w->pending, f->dso == XP_NO_ID ? 0 : (uint64_t)f->dso + 1);
	xp_buf_uleb(&w->pending, f->addr);
}

static void put_stack(struct xp_writer *w, size_t i)
{
	const struct xp_stack *s = &w->p->stacks.v[i];

	xp_buf_u8(&w->pending, XP_STORE_STACK);
	xp_buf_uleb(&w->pending, s->parent == XP_NO_ID ? 0 : i - s->parent);
	xp_buf_uleb(&w->pending, s->frame);
}

static void put_thread(struct xp_writer *w, size_t i)
{
	const struct xp_thread *t = &w->p->threads.v[i];

	xp_buf_u8(&w->pending, XP_STORE_THREAD);
	xp_buf_uleb(&w->pending, t->pid);
	xp_buf_uleb(&w->pending, t->tid);
	xp_buf_uleb(&w->pending, t->comm);
}

static void put_sample(struct xp_writer *w, size_t i)
{
	const struct xp_sample *s = &w->p->samples.v[i];
	uint64_t time = s->time / 1000;
	bool earlier = time < w->time;
	size_t before = w->pending.len;

	xp_buf_u8(&w->pending, XP_STORE_SAMPLE | (s->weight != 1 ? XP_STORE_SAMPLE_WEIGHT : 0) |
		  (s->state != XP_STATE_RUNNING ? XP_STORE_SAMPLE_STATE : 0) |
		  (earlier ? XP_STORE_SAMPLE_EARLIER : 0));
	xp_buf_uleb(&w->pending, earlier ? w->time - time : time - w->time);
	xp_buf_uleb(&w->pending, s->thread);
	xp_buf_uleb(&w->pending, s->stack);
	if (s->weight != 1)
		xp_buf_uleb(&w->pending, s->weight);
	if (s->state != XP_STATE_RUNNING)
		xp_buf_u8(&w->pending, s->state);
	w->time = time;
	w->stats.samples++;
	w->stats.sample_bytes += w->pending.len - before;
}

static int put_range(struct xp_writer *w, void (*put)(struct xp_writer *w, size_t i), size_t *from,
		     size_t to, struct xp_err *err)
{
	while (*from < to) {
		put(w, (*from)++);
		if (w->pending.len >= CHUNK_FULL) {
			int ret = write_pending(w, err);

			if (ret)
				return ret;
		}
	}
	return 0;
}

int xp_writer_append(struct xp_writer *w, struct xp_err *err)
{
	struct writer_totals *d = &w->done;
	struct xp_profile *p = w->p;
	size_t sample = 0;
	int ret;

	ret = put_range(w, put_string, &d->strings, p->strings.list.n, err);
	if (!ret)
		ret = put_range(w, put_dso, &d->dsos, p->dsos.n, err);
	if (!ret)
		ret = put_range(w, put_frame, &d->frames, p->frames.n, err);
	if (!ret)
		ret = put_range(w, put_stack, &d->stacks, p->stacks.n, err);
	if (!ret)
		ret = put_range(w, put_thread, &d->threads, p->threads.n, err);
	if (!ret)
		ret = put_range(w, put_sample, &sample, p->samples.n, err);
	d->samples += sample;
	xp_vec_clear(&p->samples);
	return ret;
}

/* Meta and counters are small and the last value wins: all of them, when one has changed. */
static void put_facts(struct xp_writer *w)
{
	struct xp_buf now = XP_BUF_INIT;

	for (size_t i = 0; i < w->p->meta.n; i++) {
		xp_buf_u8(&now, XP_STORE_META);
		xp_buf_uleb(&now, w->p->meta.v[i].key);
		xp_buf_uleb(&now, w->p->meta.v[i].value);
	}
	for (size_t i = 0; i < w->p->counters.n; i++) {
		xp_buf_u8(&now, XP_STORE_COUNTER);
		xp_buf_uleb(&now, w->p->counters.v[i].key);
		xp_buf_uleb(&now, w->p->counters.v[i].value);
	}
	if (now.failed || now.len != w->facts.len ||
	    (now.len && memcmp(now.data, w->facts.data, now.len))) {
		xp_buf_put(&w->pending, now.data, now.len);
		w->pending.failed |= now.failed;
	}
	xp_buf_release(&w->facts);
	w->facts = now;
}

int xp_writer_flush(struct xp_writer *w, struct xp_err *err)
{
	int ret = xp_writer_append(w, err);

	if (ret)
		return ret;
	put_facts(w);
	return write_pending(w, err);
}

static int write_first(struct xp_writer *w, struct xp_err *err)
{
	int ret;

	xp_buf_put(&w->pending, XP_STORE_IDENT, XP_STORE_IDENT_LEN);
	xp_buf_u32(&w->pending, XP_STORE_VERSION);
	ret = write_chunk(w, XP_STORE_HEADER, &w->pending, err);
	xp_buf_clear(&w->pending);
	return ret;
}

static int write_end(struct xp_writer *w, struct xp_err *err)
{
	const struct writer_totals *d = &w->done;

	xp_buf_uleb(&w->pending, d->strings);
	xp_buf_uleb(&w->pending, d->dsos);
	xp_buf_uleb(&w->pending, d->frames);
	xp_buf_uleb(&w->pending, d->stacks);
	xp_buf_uleb(&w->pending, d->threads);
	xp_buf_uleb(&w->pending, d->samples);
	return write_chunk(w, XP_STORE_END, &w->pending, err);
}

static void free_writer(struct xp_writer *w)
{
	xp_buf_release(&w->pending);
	xp_buf_release(&w->facts);
	ZSTD_freeCCtx(w->zstd);
	free(w->packed);
	free(w->path);
	free(w);
}

int xp_writer_open(struct xp_writer **w, const char *path, const struct xp_writer_wait *wait,
		   struct xp_profile *p, struct xp_err *err)
{
	struct xp_writer *new = calloc(1, sizeof(*new));
	bool to_stdout = !strcmp(path, "-");
	struct stat st;
	int ret;

	*w = NULL;
	if (!new)
		return xp_err_sys(err, ENOMEM, "cannot write %s", path);
	new->fd = -1;
	new->p = p;
	if (wait)
		new->wait = *wait;
	new->done.strings = 1;		/* id 0, the empty string, is there without a record */
	new->path = strdup(to_stdout ? "standard output" : path);
	new->packed = malloc(XP_STORE_HEADER_SIZE + XP_STORE_CHUNK_MAX);
	new->zstd = ZSTD_createCCtx();
	if (!new->path || !new->packed || !new->zstd)
		ret = xp_err_sys(err, ENOMEM, "cannot write %s", path);
	else
		ret = to_stdout ? xp_store_create_stdout(err) :
				  xp_store_create(path, &new->wait, err);
	if (ret >= 0) {
		new->fd = ret;
		new->regular = !fstat(ret, &st) && S_ISREG(st.st_mode);
		ret = write_first(new, err);
	}
	if (ret) {
		xp_writer_abort(new);
		return ret;
	}
	*w = new;
	return 0;
}

int xp_writer_close(struct xp_writer *w, struct xp_err *err)
{
	int ret = xp_writer_flush(w, err);

	if (!ret)
		ret = write_end(w, err);
	if (close(w->fd) && !ret)
		ret = xp_err_sys(err, errno, "cannot finish writing %s", w->path);
	free_writer(w);
	return ret;
}

void xp_writer_abort(struct xp_writer *w)
{
	if (!w)
		return;
	if (w->fd >= 0)
		close(w->fd);
	free_writer(w);
}

void xp_writer_stats(const struct xp_writer *w, struct xp_writer_stats *out)
{
	*out = w->stats;
}
