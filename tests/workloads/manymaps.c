/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process with very many executable mappings, as JITs and plug-in hosts have.
 *
 * usage: manymaps N SECONDS
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truth.h"

static volatile long sum;

NOINLINE long manymaps_leaf(unsigned long n)
{
	BURN(n);
	return 1;
}

NOINLINE long manymaps_step(int depth)
{
	sum += depth ? manymaps_step(depth - 1) : manymaps_leaf(truth_length());
	return sum + depth;
}

/* Every other page of a reservation, all of the same page of our file, so the kernel merges none. */
static int map_pages(int n)
{
	int fd = open("/proc/self/exe", O_RDONLY);
	char *room = mmap(NULL, (size_t)n * 8192, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (fd < 0 || room == MAP_FAILED)
		return -1;
	for (int i = 0; i < n; i++)
		if (mmap(room + (size_t)i * 8192, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_FIXED, fd, 0) ==
		    MAP_FAILED)
			return -1;
	return 0;
}

int main(int argc, char **argv)
{
	if (argc != 3 || map_pages(atoi(argv[1]))) {
		fprintf(stderr, "usage: manymaps N SECONDS\n");
		return 2;
	}
	while (truth_now() < atof(argv[2]))
		sum += manymaps_step(20);
	printf("truth maps %s\n", argv[1]);
	return 0;
}
