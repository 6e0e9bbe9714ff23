/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Runs a fuzz entry over its recorded inputs, without a fuzzer: a finding that was kept as a file
 * stays found. The corpus is tests/fuzz/corpus/NAME for a program fuzz_NAME, or the directories that
 * are given. One TAP line for each directory: that nothing crashed, and how many inputs there were.
 */
#include <dirent.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/io.h"

#define INPUT_MAX (64u << 20)

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static bool run_file(const char *path)
{
	struct xp_buf b = XP_BUF_INIT;
	uint8_t *copy;

	if (xp_read_file(path, &b, INPUT_MAX)) {
		xp_buf_release(&b);
		return false;
	}
	/* Of exactly its size, so that a read past the end is seen. */
	copy = malloc(b.len ? b.len : 1);
	if (copy) {
		memcpy(copy, b.data ? b.data : (const uint8_t *)"", b.len);
		LLVMFuzzerTestOneInput(copy, b.len);
	}
	free(copy);
	xp_buf_release(&b);
	return copy;
}

static int run_directory(const char *path)
{
	DIR *dir = opendir(path);
	struct dirent *entry;
	char file[8192];
	int n = 0;

	while (dir && (entry = readdir(dir))) {
		snprintf(file, sizeof(file), "%s/%s", path, entry->d_name);
		if (entry->d_name[0] != '.')
			n += run_file(file);
	}
	if (dir)
		closedir(dir);
	return n;
}

int main(int argc, char **argv)
{
	const char *top = getenv("top_srcdir"), *name = strstr(basename(argv[0]), "fuzz_");
	char path[4096];
	int failed = 0;

	snprintf(path, sizeof(path), "%s/tests/fuzz/corpus/%s", top ? top : ".",
		 name ? name + 5 : "");
	printf("1..%d\n", argc > 1 ? argc - 1 : 1);
	for (int i = 1; i < (argc > 1 ? argc : 2); i++) {
		int n = run_directory(argc > 1 ? argv[i] : path);

		printf("%sok %d - %d inputs of %s\n", n ? "" : "not ", i, n,
		       argc > 1 ? argv[i] : path);
		failed |= !n;
	}
	return failed;
}
