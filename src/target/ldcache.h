/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The loader's cache of library names, /etc/ld.so.cache.
 */
#ifndef XP_TARGET_LDCACHE_H
#define XP_TARGET_LDCACHE_H

#include "base/buf.h"

/*
 * The path of a library by its name, from the bytes of a cache; NULL when it has none. The result
 * points into the bytes. Only entries for 64-bit x86 programs with glibc count.
 */
const char *xp_ldcache_find(const struct xp_buf *cache, const char *name);

#endif
