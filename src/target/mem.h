/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Memory of a target, read only: a live process, or an array for tests.
 */
#ifndef XP_TARGET_MEM_H
#define XP_TARGET_MEM_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct xp_mem {
	/* All n bytes or a negative errno. */
	int (*read)(const struct xp_mem *mem, uint64_t addr, void *buf, size_t n);
	pid_t pid;			/* of a live process */
	const uint8_t *data;		/* of an array that stands at base */
	uint64_t base;
	size_t size;
};

struct xp_mem xp_mem_of_pid(pid_t pid);		/* process_vm_readv(2) */
struct xp_mem xp_mem_of_array(uint64_t base, const void *data, size_t size);
static inline int xp_mem_read(const struct xp_mem *mem, uint64_t addr, void *buf, size_t n)
{
	return mem->read(mem, addr, buf, n);
}

#endif
