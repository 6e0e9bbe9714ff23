/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * For tests of this folder: small programs made at run time, in a directory that goes at the end.
 */
#ifndef XP_TESTS_TARGET_BUILD_H
#define XP_TESTS_TARGET_BUILD_H

#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static char build_dir[64];

/* Skips the test that runs, with a reason. */
#define SKIP(...) do { \
	print_message("# SKIP " __VA_ARGS__); \
	print_message("\n"); \
	skip(); \
} while (0)

static inline int build_setup(void **state)
{
	(void)state;
	snprintf(build_dir, sizeof(build_dir), "/tmp/xprof-test.XXXXXX");
	return mkdtemp(build_dir) ? 0 : -1;
}

static inline int build_teardown(void **state)
{
	char command[128];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s'", build_dir);
	return build_dir[0] ? system(command) : 0;
}

static inline bool build_have(const char *tool)
{
	char command[128];

	snprintf(command, sizeof(command), "command -v %s >/dev/null 2>&1", tool);
	return system(command) == 0;
}

static inline const char *build_path(const char *name)
{
	static char paths[8][128];
	static unsigned next;
	char *path = paths[next++ % 8];

	snprintf(path, sizeof(paths[0]), "%s/%s", build_dir, name);
	return path;
}

static inline void build_write(const char *name, const void *data, size_t n)
{
	FILE *f = fopen(build_path(name), "w");

	assert_non_null(f);
	assert_int_equal(fwrite(data, 1, n, f), n);
	assert_int_equal(fclose(f), 0);
}

/* Runs a shell command inside the directory; its output is dropped. True when it succeeded. */
static inline bool build_run(const char *command)
{
	char line[2048];

	snprintf(line, sizeof(line), "cd '%s' && { %s; } >log 2>&1", build_dir, command);
	return system(line) == 0;
}

/* Writes NAME.c and compiles it to NAME; skips the test when there is no compiler. */
static inline const char *build_program(const char *name, const char *source, const char *flags)
{
	char command[1024], file[64];

	if (!build_have("cc"))
		SKIP("no C compiler (cc)");
	snprintf(file, sizeof(file), "%s.c", name);
	build_write(file, source, strlen(source));
	snprintf(command, sizeof(command), "cc %s -o %s %s", flags, name, file);
	if (!build_run(command))
		fail_msg("cannot compile: %s", command);
	return build_path(name);
}

/* First line of a command's output, without the newline. */
static inline void build_output(const char *command, char *out, size_t n)
{
	FILE *f = popen(command, "r");

	assert_non_null(f);
	out[0] = 0;
	if (fgets(out, (int)n, f))
		out[strcspn(out, "\n")] = 0;
	pclose(f);
}

/* Address of a symbol in a program; asserts that it is there. */
static inline uint64_t build_address(const char *path, const char *name)
{
	char command[256], line[64] = "";
	FILE *f;

	snprintf(command, sizeof(command), "nm '%s' | awk '$3 == \"%s\" { print $1 }'", path, name);
	f = popen(command, "r");
	assert_non_null(f);
	if (!fgets(line, sizeof(line), f))
		fail_msg("%s: no %s", path, name);
	pclose(f);
	return strtoull(line, NULL, 16);
}

#endif
