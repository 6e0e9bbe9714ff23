// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The loader's cache (glibc 2.36, sysdeps/generic/dl-cache.h, struct cache_file_new): a head of 48
 * bytes, entries of 24, then strings. String offsets count from the head's start.
 *
 * Entries for special processors (hwcap not 0) are passed over: which one the loader takes
 * depends on the machine, and all of them are the same library.
 */
#include "target/ldcache.h"

#include <string.h>

#define MAGIC "glibc-ld.so.cache1.1"
#define HEAD 48u
#define ENTRY 24u
#define FLAGS_X86_64_LIBC6 0x0303	/* FLAG_X8664_LIB64 | FLAG_ELF_LIBC6 */

/* A string of the cache, or NULL when it does not end inside. */
static const char *string_at(const struct xp_buf *cache, uint32_t offset)
{
	if (offset >= cache->len || !memchr(cache->data + offset, 0, cache->len - offset))
		return NULL;
	return (const char *)cache->data + offset;
}

const char *xp_ldcache_find(const struct xp_buf *cache, const char *name)
{
	struct xp_cur head = xp_cur_of(cache->data, cache->len);
	size_t length = strlen(name) + 1;
	const uint8_t *magic = xp_cur_bytes(&head, sizeof(MAGIC) - 1);
	uint32_t n = xp_cur_u32(&head);

	xp_cur_bytes(&head, HEAD - (sizeof(MAGIC) - 1) - 4);
	if (head.bad || memcmp(magic, MAGIC, sizeof(MAGIC) - 1) != 0 ||
	    n > xp_cur_left(&head) / ENTRY)
		return NULL;
	for (uint32_t i = 0; i < n; i++) {
		uint32_t flags = xp_cur_u32(&head), key = xp_cur_u32(&head);
		uint32_t value = xp_cur_u32(&head);
		uint64_t hwcap;

		xp_cur_u32(&head);		/* osversion, no longer used */
		hwcap = xp_cur_u64(&head);
		if (flags != FLAGS_X86_64_LIBC6 || hwcap || key >= cache->len ||
		    cache->len - key < length || memcmp(cache->data + key, name, length) != 0)
			continue;
		return string_at(cache, value);
	}
	return NULL;
}
