// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Whole reads and writes: signals and short transfers are dealt with here and nowhere else.
 */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <stdint.h>
#include <unistd.h>

#define CHUNK (16u << 10)

int xp_write_all(int fd, const void *p, size_t n)
{
	const uint8_t *at = p;

	while (n) {
		ssize_t done = write(fd, at, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return -errno;
		if (!done)
			return -EIO;	/* no progress and no reason: do not spin */
		at += done;
		n -= (size_t)done;
	}
	return 0;
}

ssize_t xp_read_full(int fd, void *p, size_t n)
{
	uint8_t *at = p;
	size_t have = 0;

	while (have < n) {
		ssize_t got = read(fd, at + have, n - have);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return -errno;
		if (!got)
			break;
		have += (size_t)got;
	}
	return (ssize_t)have;
}

int xp_read_fd(int fd, struct xp_buf *out, size_t max)
{
	size_t before = out->len;
	uint8_t chunk[CHUNK];
	int ret = 0;

	for (;;) {
		ssize_t got = xp_read_full(fd, chunk, sizeof(chunk));

		if (got < 0)
			ret = (int)got;
		else if ((size_t)got > max - (out->len - before))
			ret = -EFBIG;
		else
			xp_buf_put(out, chunk, (size_t)got);
		if (!ret && out->failed)
			ret = -ENOMEM;
		if (ret || (size_t)got < sizeof(chunk))
			break;
	}
	if (ret)
		out->len = before;
	return ret;
}

int xp_read_file(const char *path, struct xp_buf *out, size_t max)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
	int ret;

	if (fd < 0)
		return -errno;
	ret = xp_read_fd(fd, out, max);
	close(fd);
	return ret;
}
