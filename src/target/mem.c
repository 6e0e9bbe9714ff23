// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Memory of a target, read only.
 */
#include "target/mem.h"

#include <errno.h>
#include <string.h>
#include <sys/uio.h>

static int read_pid(const struct xp_mem *mem, uint64_t addr, void *buf, size_t n)
{
	uint8_t *to = buf;

	while (n) {
		struct iovec local = { to, n };
		struct iovec remote = { (void *)(uintptr_t)addr, n };
		ssize_t got = process_vm_readv(mem->pid, &local, 1, &remote, 1, 0);

		if (got < 0)
			return -errno;
		if (got == 0)
			return -EFAULT;
		/* One call moves at most 2 GiB, and stops in front of a page that is not there. */
		to += got;
		addr += (uint64_t)got;
		n -= (size_t)got;
	}
	return 0;
}

static int read_array(const struct xp_mem *mem, uint64_t addr, void *buf, size_t n)
{
	uint64_t into = addr - mem->base;

	if (n == 0)
		return 0;
	if (addr < mem->base || into > mem->size || n > mem->size - into)
		return -EFAULT;
	memcpy(buf, mem->data + into, n);
	return 0;
}

struct xp_mem xp_mem_of_pid(pid_t pid)
{
	return (struct xp_mem){ .read = read_pid, .pid = pid };
}

struct xp_mem xp_mem_of_array(uint64_t base, const void *data, size_t size)
{
	return (struct xp_mem){ .read = read_array, .data = data, .base = base, .size = size };
}
