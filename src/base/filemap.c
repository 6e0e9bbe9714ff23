// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * A mapping whose file has shrunk is mended in the signal handler: anonymous memory takes the
 * place of what is missing, and the instruction that failed is executed again.
 *
 * The handler looks through a list that is not locked. It only does so for faults, which come from
 * an instruction that reads a mapping, and none does while the list is being changed: xprof has one
 * thread.
 */
#include "base/filemap.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

static struct xp_filemap *maps;
static struct sigaction before;		/* what SIGBUS did */
static uintptr_t page_size;

static struct xp_filemap *find(uintptr_t addr)
{
	for (struct xp_filemap *m = maps; m; m = m->next)
		if (addr - (uintptr_t)m->data < m->mapped)
			return m;
	return NULL;
}

/*
 * Zeros from the faulting page to the end: what lies behind a page that is gone has gone with it,
 * and one fault then is all that a file costs. mmap(2) is a bare system call on Linux.
 */
static bool mend(struct xp_filemap *m, uintptr_t addr)
{
	uint8_t *page = m->data + ((addr - (uintptr_t)m->data) & ~(page_size - 1));
	int prot = PROT_READ | (m->writable ? PROT_WRITE : 0);

	m->damaged = 1;
	return mmap(page, (size_t)(m->data + m->mapped - page), prot,
		    MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) != MAP_FAILED;
}

static void on_bus_error(int sig, siginfo_t *info, void *context)
{
	int errnum = errno;
	struct xp_filemap *m = info->si_code > 0 ? find((uintptr_t)info->si_addr) : NULL;

	(void)context;
	if (!m || !mend(m, (uintptr_t)info->si_addr)) {
		/* Not ours. A fault comes again when we return; a signal that was sent does not. */
		sigaction(SIGBUS, &before, NULL);
		if (info->si_code <= 0)
			raise(sig);
	}
	errno = errnum;
}

static int install(void)
{
	struct sigaction action = { .sa_sigaction = on_bus_error, .sa_flags = SA_SIGINFO }, now;

	page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
	if (sigaction(SIGBUS, NULL, &now))
		return -errno;
	if (now.sa_flags & SA_SIGINFO && now.sa_sigaction == on_bus_error)
		return 0;
	before = now;
	sigemptyset(&action.sa_mask);
	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}

/* The file over the beginning of anonymous memory that is a page longer: zeros at the end. */
static int map(struct xp_filemap *m, int fd)
{
	int prot = PROT_READ | (m->writable ? PROT_WRITE : 0), errnum;
	uint8_t *p = mmap(NULL, m->mapped, prot, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return -errno;
	if (mmap(p, m->size, prot, MAP_PRIVATE | MAP_FIXED | MAP_NORESERVE, fd, 0) == MAP_FAILED) {
		errnum = errno;
		munmap(p, m->mapped);
		return -errnum;
	}
	m->data = p;
	return 0;
}

int xp_filemap_open(struct xp_filemap *m, int fd, size_t size, bool writable)
{
	int ret = install();

	memset(m, 0, sizeof(*m));
	if (ret)
		return ret;
	if (!size || size > SIZE_MAX / 2)
		return -EINVAL;
	m->size = size;
	m->mapped = ((size + page_size - 1) & ~(page_size - 1)) + page_size;
	m->writable = writable;
	ret = map(m, fd);
	if (ret)
		return ret;
	m->next = maps;
	m->link = &maps;
	if (maps)
		maps->link = &m->next;
	maps = m;
	return 0;
}

void xp_filemap_close(struct xp_filemap *m)
{
	if (!m->data)
		return;
	*m->link = m->next;
	if (m->next)
		m->next->link = m->link;
	munmap(m->data, m->mapped);
	m->data = NULL;
}
