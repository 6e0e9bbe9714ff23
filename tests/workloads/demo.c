/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The program that "./bootstrap demo" records: a small server's life without the network. Each request
 * reads its input from the kernel, checks it and sorts what it found; checksum() is the hot one.
 *
 * usage: demo [CPU-SECONDS]
 */
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "truth.h"

#define INPUT (1 << 16)		/* bytes read for a request */
#define ROUNDS 6		/* checksums of them */
#define FOUND 4096		/* numbers sorted for a request */

static unsigned char input[INPUT];
static unsigned found[FOUND];
static volatile unsigned long answer;

NOINLINE unsigned long checksum(const unsigned char *data, size_t size, unsigned long sum)
{
	for (size_t i = 0; i < size; i++)
		sum = (sum ^ data[i]) * 1099511628211ul;
	return sum;
}

NOINLINE int compare(const void *a, const void *b)
{
	unsigned x = *(const unsigned *)a, y = *(const unsigned *)b;

	return (x > y) - (x < y);
}

NOINLINE int read_input(int fd)
{
	ssize_t n = read(fd, input, sizeof(input));

	return n == sizeof(input) ? 0 : -1;
}

NOINLINE unsigned long check_input(void)
{
	unsigned long sum = 1469598103934665603ul;

	for (int i = 0; i < ROUNDS; i++)
		sum = checksum(input, sizeof(input), sum);
	return sum;
}

NOINLINE unsigned long sort_found(unsigned long seed)
{
	for (int i = 0; i < FOUND; i++) {
		seed = seed * 6364136223846793005ul + 1442695040888963407ul;
		found[i] = seed >> 32;
	}
	qsort(found, FOUND, sizeof(*found), compare);
	return found[FOUND / 2];
}

NOINLINE int handle_request(int fd)
{
	if (read_input(fd))
		return -1;
	answer ^= check_input();
	answer += sort_found(answer);
	return 0;
}

NOINLINE int serve(int fd, double seconds)
{
	int failed = 0;

	while (!failed && truth_now() < seconds)
		failed = handle_request(fd);
	return failed;
}

int main(int argc, char **argv)
{
	double seconds = argc > 1 ? atof(argv[1]) : 2;
	int fd = open("/dev/urandom", O_RDONLY | O_CLOEXEC);

	if (fd < 0 || serve(fd, seconds))
		return 1;
	close(fd);
	return 0;
}
