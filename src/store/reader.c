/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Reads chunk by chunk into two buffers of the largest size a chunk may have, so no length in the
 * file decides what is allocated. A chunk counts only when its checksum is right.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include "base/io.h"
#include "store/format.h"
#include "store/reader.h"
#include "store/records.h"

struct chunk {
	uint8_t kind, codec;
	uint32_t number, raw, stored, crc;
	const uint8_t *data;	/* raw bytes of it, decompressed */
};

struct source {
	int fd;
	struct xp_read_result *result;
	uint8_t header[XP_STORE_HEADER_SIZE];
	size_t header_len;	/* bytes of it that were there */
	uint8_t *stored, *raw;	/* XP_STORE_CHUNK_MAX each */
	uint32_t chunks;
	uint64_t raw_bytes;	/* of all chunks, decompressed */
	struct xp_records records;
};

enum { FILE_END = 1 };		/* of next_chunk(): no more bytes, at a chunk's boundary */

static int problem(struct source *s, const char *text)
{
	snprintf(s->result->problem, sizeof(s->result->problem), "%s", text);
	return -EBADMSG;
}

static ssize_t get(struct source *s, void *p, size_t n)
{
	ssize_t got = xp_read_full(s->fd, p, n);

	if (got > 0)
		s->result->size += (uint64_t)got;
	return got;
}

static void parse_header(const uint8_t *h, struct chunk *c)
{
	struct xp_cur cur = xp_cur_of(h + XP_STORE_AT_NUMBER, XP_STORE_HEADER_SIZE - XP_STORE_AT_NUMBER);

	c->kind = h[XP_STORE_AT_KIND];
	c->codec = h[XP_STORE_AT_CODEC];
	c->number = xp_cur_u32(&cur);
	c->raw = xp_cur_u32(&cur);
	c->stored = xp_cur_u32(&cur);
	c->crc = xp_cur_u32(&cur);
}

static bool has_magic(const uint8_t *h, size_t n)
{
	struct xp_cur c = xp_cur_of(h, n);

	return xp_cur_u32(&c) == XP_STORE_MAGIC && !c.bad;
}

static int unpack(struct source *s, struct chunk *c)
{
	size_t n;

	if (c->codec == XP_STORE_PLAIN) {
		c->data = s->stored;
		return c->raw == c->stored ? 0 : problem(s, "a chunk's lengths do not agree");
	}
	if (c->codec != XP_STORE_ZSTD)
		return problem(s, "a chunk of unknown compression");
	n = ZSTD_decompress(s->raw, c->raw, s->stored, c->stored);
	if (ZSTD_isError(n) || n != c->raw)
		return problem(s, "a chunk does not decompress");
	c->data = s->raw;
	return 0;
}

/* 0, FILE_END, a read error, or -EBADMSG with the problem said. */
static int next_chunk(struct source *s, struct chunk *c)
{
	ssize_t n = get(s, s->header, sizeof(s->header));
	uLong crc;

	if (n <= 0)
		return n ? (int)n : FILE_END;
	s->header_len = (size_t)n;
	if (!has_magic(s->header, s->header_len))
		return problem(s, n < 4 ? "the last chunk is cut short" : "no chunk begins here");
	if (s->header_len < sizeof(s->header))
		return problem(s, "the last chunk is cut short");
	parse_header(s->header, c);
	if (c->raw > XP_STORE_CHUNK_MAX || c->stored > XP_STORE_CHUNK_MAX)
		return problem(s, "a chunk is larger than allowed");
	n = get(s, s->stored, c->stored);
	if (n < 0)
		return (int)n;
	if ((size_t)n < c->stored)
		return problem(s, "the last chunk is cut short");
	crc = crc32(0, s->header, XP_STORE_AT_CRC);
	crc = crc32(crc, s->stored, c->stored);
	if ((uint32_t)crc != c->crc)
		return problem(s, "a chunk's checksum is wrong");
	if (c->number != s->chunks)
		return problem(s, "a chunk is missing or out of order");
	s->raw_bytes += c->raw;
	if (s->raw_bytes > xp_store_raw_max(s->result->size))
		return problem(s, "it expands to more than a file of its size may hold");
	s->chunks++;
	return unpack(s, c);
}

/* What a file that is not ours seems to be, for the message. */
static const char *guess(const uint8_t *p, size_t n)
{
	size_t text = 0;

	if (n >= 8 && (!memcmp(p, "PERFILE2", 8) || !memcmp(p, "2ELIFREP", 8)))
		return "a file of perf";
	if (n >= 4 && !memcmp(p, "\177ELF", 4))
		return "an ELF file";
	if (n >= 2 && !memcmp(p, "\037\213", 2))
		return "a gzip file";
	for (size_t i = 0; i < n; i++)
		text += (p[i] >= ' ' && p[i] <= '~') || (p[i] >= '\t' && p[i] <= '\r');
	return text == n ? "a text file" : NULL;
}

static int not_ours(const struct source *s, const char *name, struct xp_err *err)
{
	const char *seems = guess(s->header, s->header_len);

	xp_err_set(err, EINVAL, "%s is not a sample file of xprof%s%s", name,
		   seems ? ": it is " : "", seems ? seems : "");
	if (seems && !strcmp(seems, "a file of perf"))
		xp_err_hint(err, "read it with perf report");
	return -EINVAL;
}

static int first_chunk(struct source *s, const char *name, struct xp_err *err)
{
	struct chunk c;
	int ret = next_chunk(s, &c);
	struct xp_cur cur;
	uint32_t version;

	if (ret == FILE_END)
		return xp_err_set(err, ENODATA, "%s is empty", name);
	if (ret < 0 && ret != -EBADMSG) {
		ret = xp_err_sys(err, -ret, "cannot read %s", name);
		xp_err_status(err, XP_EXIT_FAILURE);
		return ret;
	}
	if (!has_magic(s->header, s->header_len))
		return not_ours(s, name, err);
	if (ret)
		return xp_err_set(err, EBADMSG, "%s is damaged at its very beginning: %s", name,
				  s->result->problem);
	cur = xp_cur_of(c.data, c.raw);
	if (c.kind != XP_STORE_HEADER || c.raw < XP_STORE_IDENT_LEN + 4 ||
	    memcmp(xp_cur_bytes(&cur, XP_STORE_IDENT_LEN), XP_STORE_IDENT, XP_STORE_IDENT_LEN))
		return not_ours(s, name, err);
	version = xp_cur_u32(&cur);
	if (version == XP_STORE_VERSION)
		return 0;
	xp_err_set(err, EPROTONOSUPPORT, "%s has format version %u; this xprof reads version %d", name,
		   version, XP_STORE_VERSION);
	xp_err_hint(err, "read it with the xprof that wrote it");
	return -EPROTONOSUPPORT;
}

static int at_end(struct source *s, const struct chunk *c)
{
	uint8_t more;
	ssize_t n;

	if (xp_records_check_end(&s->records, c->data, c->raw))
		return problem(s, s->records.problem);
	n = get(s, &more, 1);
	if (n < 0)
		return (int)n;
	s->result->complete = !n;
	if (n)
		s->result->offset = s->result->size - 1;
	return n ? problem(s, "something follows the end of the recording") : FILE_END;
}

/* One chunk into the profile. 0, FILE_END after the end chunk, or an error. */
static int use_chunk(struct source *s)
{
	struct chunk c;
	int ret = next_chunk(s, &c);

	if (ret == FILE_END)
		return problem(s, "the recording was not finished");
	if (ret)
		return ret;
	if (c.kind == XP_STORE_END)
		return at_end(s, &c);
	if (c.kind != XP_STORE_DATA)
		return problem(s, "a chunk of unknown kind");
	ret = xp_records_add(&s->records, c.data, c.raw);
	return ret == -EBADMSG ? problem(s, s->records.problem) : ret;
}

static int read_all(struct source *s, const char *name, struct xp_err *err)
{
	int ret = first_chunk(s, name, err);

	if (ret)
		return ret;
	while (!ret) {
		s->result->offset = s->result->size;
		ret = use_chunk(s);
	}
	if (ret == -ENOMEM)
		return xp_err_sys(err, ENOMEM, "cannot read %s", name);
	if (ret < 0 && ret != -EBADMSG)		/* what came before the I/O error is good */
		snprintf(s->result->problem, sizeof(s->result->problem), "cannot read on: %s",
			 strerror(-ret));
	return 0;
}

int xp_reader_load_fd(int fd, const char *name, struct xp_profile *p,
		      struct xp_read_result *result, struct xp_err *err)
{
	struct source s = { .fd = fd, .result = result };
	int ret;

	memset(result, 0, sizeof(*result));
	s.stored = malloc(XP_STORE_CHUNK_MAX);
	s.raw = malloc(XP_STORE_CHUNK_MAX);
	if (!s.stored || !s.raw || xp_records_init(&s.records, p))
		ret = xp_err_sys(err, ENOMEM, "cannot read %s", name);
	else
		ret = read_all(&s, name, err);
	xp_records_release(&s.records);
	free(s.stored);
	free(s.raw);
	return ret;
}

int xp_reader_load(const char *path, struct xp_profile *p, struct xp_read_result *result,
		   struct xp_err *err)
{
	int fd, ret;

	if (!strcmp(path, "-"))
		return xp_reader_load_fd(STDIN_FILENO, "standard input", p, result, err);
	memset(result, 0, sizeof(*result));
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	if (fd < 0) {
		ret = xp_err_sys(err, errno, "cannot open %s", path);
		xp_err_status(err, XP_EXIT_FAILURE);
		if (ret == -ENOENT)
			xp_err_hint(err, "record first (xprof record), or name the file with -i FILE");
		return ret;
	}
	ret = xp_reader_load_fd(fd, path, p, result, err);
	close(fd);
	return ret;
}
