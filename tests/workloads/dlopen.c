/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Loads a library in the middle of its life and spends time in it.
 *
 * usage: dlopen load LIBRARY SECONDS     half of it before, half of it in the library
 *        dlopen delete LIBRARY SECONDS   the file is removed as soon as it is loaded
 *        dlopen memfd LIBRARY SECONDS    the file is copied to a memfd, which is loaded
 */
#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "truth.h"

static volatile long sum;

NOINLINE long before_load(unsigned long n)
{
	BURN(n);
	return 1;
}

/* Copies a file to a memfd and gives the path to load it by. */
static const char *in_memory(const char *path, char *name, size_t size)
{
	int from = open(path, O_RDONLY), to = memfd_create("plugin in memory", 0);
	char buffer[4096];
	ssize_t n;

	if (from < 0 || to < 0)
		return NULL;
	while ((n = read(from, buffer, sizeof(buffer))) > 0)
		if (write(to, buffer, (size_t)n) != n)
			return NULL;
	close(from);
	snprintf(name, size, "/proc/self/fd/%d", to);
	return name;
}

int main(int argc, char **argv)
{
	struct truth t[] = { { "before_load", 0 }, { "plugin_hot", 0 } };
	long (*entry)(unsigned long n) = NULL;
	const char *path;
	char name[64];
	double seconds;
	void *library;

	if (argc != 4) {
		fprintf(stderr, "usage: dlopen load|delete|memfd LIBRARY SECONDS\n");
		return 2;
	}
	seconds = atof(argv[3]);
	while (truth_now() < seconds / 2)
		TRUTH(&t[0], sum += before_load(truth_length()));
	path = strcmp(argv[1], "memfd") ? argv[2] : in_memory(argv[2], name, sizeof(name));
	library = path ? dlopen(path, RTLD_NOW) : NULL;
	if (library)
		*(void **)&entry = dlsym(library, "plugin_entry");
	if (!entry) {
		fprintf(stderr, "dlopen: cannot load %s\n", argv[2]);
		return 1;
	}
	if (!strcmp(argv[1], "delete"))
		unlink(argv[2]);
	while (truth_now() < seconds)
		TRUTH(&t[1], sum += entry(truth_length()));
	truth_print(t, 2);
	return 0;
}
