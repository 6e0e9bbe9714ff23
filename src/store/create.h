/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Creating the output file safely: whoever runs a profiler is often root in a directory that others
 * can write to.
 */
#ifndef XP_STORE_CREATE_H
#define XP_STORE_CREATE_H

#include "base/err.h"
#include "store/writer.h"

/*
 * A descriptor to write to, or a negative errno with err set. An existing regular file becomes
 * PATH.old and the new one has mode 0600; symbolic links are followed below /dev and /proc only;
 * pipes and character devices are opened as they are. A terminal is refused. A named pipe that
 * nobody reads is tried again after each wait; wait may have no fn, then open(2) waits.
 */
int xp_store_create(const char *path, const struct xp_writer_wait *wait, struct xp_err *err);
/* The same checks for standard output; the descriptor is a duplicate. */
int xp_store_create_stdout(struct xp_err *err);

#endif
