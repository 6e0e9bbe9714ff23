/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Time in the kernel, each kind below a function of its own.
 *
 * usage: kernel [CPU-SECONDS]
 */
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "truth.h"

#define BUFFER (1ul << 20)

static volatile long sum;

NOINLINE long calls_getppid(void)
{
	for (int i = 0; i < 3000; i++)
		sum += syscall(SYS_getppid);
	return 1;
}

NOINLINE long reads_zero(int fd, char *buffer)
{
	for (int i = 0; i < 10; i++)
		sum += read(fd, buffer, BUFFER);
	return 1;
}

NOINLINE long faults_pages(void)
{
	volatile char *p = mmap(NULL, BUFFER, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	if (p == MAP_FAILED)
		return 0;
	for (size_t i = 0; i < BUFFER; i += 4096)
		p[i] = 1;
	munmap((void *)p, BUFFER);
	return 1;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	struct truth t[] = { { "calls_getppid", 0 }, { "reads_zero", 0 }, { "faults_pages", 0 } };
	int fd = open("/dev/zero", O_RDONLY);
	char *buffer = malloc(BUFFER);

	if (fd < 0 || !buffer)
		return 1;
	while (truth_now() < seconds) {
		TRUTH(&t[0], sum += calls_getppid());
		TRUTH(&t[1], sum += reads_zero(fd, buffer));
		TRUTH(&t[2], sum += faults_pages());
	}
	truth_print(t, 3);
	free(buffer);
	close(fd);
	return 0;
}
