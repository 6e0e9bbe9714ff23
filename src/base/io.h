/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whole reads and writes.
 */
#ifndef XP_BASE_IO_H
#define XP_BASE_IO_H

#include <stddef.h>
#include <sys/types.h>

#include "base/buf.h"

/* Writes all of it. 0 or -errno. Retries EINTR and short writes. */
int xp_write_all(int fd, const void *p, size_t n);
/* Reads until n bytes or the end of file. The number of bytes read, or -errno. */
ssize_t xp_read_full(int fd, void *p, size_t n);
/*
 * Appends a whole file (of /proc too, where sizes are 0) to the buffer. 0, -errno, or -EFBIG when
 * it holds more than max bytes.
 */
int xp_read_fd(int fd, struct xp_buf *out, size_t max);
int xp_read_file(const char *path, struct xp_buf *out, size_t max);

#endif
