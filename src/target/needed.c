// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What a command is about to map: the closure of DT_NEEDED, as ld.so(8) would find it.
 *
 * The order is ld.so's: DT_RPATH of the object and of those that led to it (only where there is
 * no DT_RUNPATH), LD_LIBRARY_PATH, the object's DT_RUNPATH, the cache, the default directories.
 * This is a forecast, made so that tables are ready early: what is missed is found when it is
 * mapped.
 */
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/io.h"
#include "base/vec.h"
#include "target/dso.h"
#include "target/ldcache.h"

#define OBJECTS_MAX 512
#define DYNAMIC_MAX 4096		/* entries looked at; real files have about 30 */
#define CACHE_MAX (16u << 20)

struct object {
	char *path;
	char *rpath;		/* NULL when it has none, or has a DT_RUNPATH */
	size_t parent;		/* who needed it; itself for the program */
};

struct search {
	XP_VEC(struct object) objects;
	struct xp_buf cache;
	void (*fn)(void *ctx, const char *path);
	void *ctx;
};

/* The value of a dynamic entry as a string; NULL when there is none, or it does not end. */
static const char *dynamic_string(const struct xp_elf *elf, int64_t tag, size_t nth)
{
	struct xp_section dyn, strings;
	const char *name;

	if (!xp_elf_section(elf, ".dynamic", &dyn) || !dyn.data ||
	    !xp_elf_section_at(elf, dyn.link, &name, &strings) || !strings.data)
		return NULL;
	for (size_t i = 0; i < dyn.size / sizeof(Elf64_Dyn) && i < DYNAMIC_MAX; i++) {
		Elf64_Dyn d;

		memcpy(&d, dyn.data + i * sizeof(d), sizeof(d));
		if (d.d_tag == DT_NULL)
			return NULL;
		if (d.d_tag != tag || nth--)
			continue;
		if (d.d_un.d_val >= strings.size)
			return NULL;
		name = (const char *)strings.data + d.d_un.d_val;
		return memchr(name, 0, strings.size - d.d_un.d_val) ? name : NULL;
	}
	return NULL;
}

/* Whether a file is there and is something that this machine's loader would take. */
static bool is_loadable(const char *path)
{
	Elf64_Ehdr eh;
	int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	bool ok;

	if (fd < 0)
		return false;
	ok = xp_read_full(fd, &eh, sizeof(eh)) == sizeof(eh) &&
	     memcmp(eh.e_ident, ELFMAG, SELFMAG) == 0 && eh.e_ident[EI_CLASS] == ELFCLASS64 &&
	     eh.e_machine == EM_X86_64;
	close(fd);
	return ok;
}

/*
 * Replaces $ORIGIN and ${ORIGIN} by the directory of `object`. False: too long, or another token.
 */
static bool expand(char *out, size_t size, const char *text, size_t n, const char *object)
{
	const char *slash = strrchr(object, '/');
	size_t dir = slash ? (size_t)(slash - object) : 0, at = 0;

	for (size_t i = 0; i < n;) {
		size_t token = 0;

		if (n - i >= 9 && memcmp(text + i, "${ORIGIN}", 9) == 0)
			token = 9;
		else if (n - i >= 7 && memcmp(text + i, "$ORIGIN", 7) == 0)
			token = 7;
		else if (text[i] == '$')
			return false;
		if (at + (token ? dir : 1) >= size)
			return false;
		if (token)
			memcpy(out + at, object, dir);
		else
			out[at] = text[i];
		at += token ? dir : 1;
		i += token ? token : 1;
	}
	out[at] = 0;
	return true;
}

/* Looks for a library in a colon-separated list of directories. */
static bool find_in(char *out, const char *list, const char *object, const char *name)
{
	while (list && *list) {
		size_t n = strcspn(list, ":;");
		char dir[PATH_MAX];

		if (n && expand(dir, sizeof(dir), list, n, object) &&
		    (size_t)snprintf(out, PATH_MAX, "%s/%s", dir, name) < PATH_MAX &&
		    is_loadable(out))
			return true;
		list += n + (list[n] != 0);
	}
	return false;
}

/* Finds a library that object number i needs; its path goes to out (PATH_MAX bytes). */
static bool find_library(char *out, const struct search *s, size_t i, const char *runpath,
			 const char *name)
{
	static const char defaults[] = "/lib/x86_64-linux-gnu:/usr/lib/x86_64-linux-gnu:"
				       "/lib64:/usr/lib64:/lib:/usr/lib";
	const char *object = s->objects.v[i].path, *cached;

	if (strchr(name, '/'))
		return expand(out, PATH_MAX, name, strlen(name), object) && is_loadable(out);
	for (size_t up = i; !runpath; up = s->objects.v[up].parent) {
		if (find_in(out, s->objects.v[up].rpath, s->objects.v[up].path, name))
			return true;
		if (s->objects.v[up].parent == up)
			break;
	}
	if (find_in(out, getenv("LD_LIBRARY_PATH"), object, name) ||
	    find_in(out, runpath, object, name))
		return true;
	cached = xp_ldcache_find(&s->cache, name);
	if (cached && strlen(cached) < PATH_MAX && is_loadable(cached)) {
		strcpy(out, cached);
		return true;
	}
	return find_in(out, defaults, object, name);
}

/* Adds an object that is not there yet. 0 or -ENOMEM. */
static int add_object(struct search *s, const char *path, size_t parent)
{
	struct object *o;

	for (size_t i = 0; i < s->objects.n; i++) {
		if (strcmp(s->objects.v[i].path, path) == 0)
			return 0;
	}
	o = s->objects.n < OBJECTS_MAX ? xp_vec_push(&s->objects) : NULL;
	if (!o)
		return s->objects.n < OBJECTS_MAX ? -ENOMEM : 0;
	o->parent = parent;
	o->path = strdup(path);
	if (!o->path) {
		s->objects.n--;
		return -ENOMEM;
	}
	if (s->objects.n > 1)
		s->fn(s->ctx, path);
	return 0;
}

/* Reads object number i and adds what it needs. */
static int add_needs(struct search *s, size_t i)
{
	const char *runpath, *rpath, *name;
	char found[PATH_MAX];
	struct xp_elf *elf;
	int rc = xp_elf_open_path(&elf, s->objects.v[i].path, NULL);

	if (rc)
		return i == 0 ? rc : 0;
	runpath = dynamic_string(elf, DT_RUNPATH, 0);
	rpath = dynamic_string(elf, DT_RPATH, 0);
	if (rpath && !runpath) {
		s->objects.v[i].rpath = strdup(rpath);
		if (!s->objects.v[i].rpath)
			rc = -ENOMEM;
	}
	for (size_t n = 0; !rc && n < OBJECTS_MAX; n++) {
		name = dynamic_string(elf, DT_NEEDED, n);
		if (!name)
			break;
		if (find_library(found, s, i, runpath, name))
			rc = add_object(s, found, i);
	}
	xp_elf_free(elf);
	return rc;
}

/* The path in a program's PT_INTERP, by its section; "" when it is static. */
static void read_interpreter(const char *program, char *out, size_t size)
{
	struct xp_section s;
	struct xp_elf *elf;

	out[0] = 0;
	if (xp_elf_open_path(&elf, program, NULL))
		return;
	if (xp_elf_section(elf, ".interp", &s) && s.data && s.size <= size &&
	    memchr(s.data, 0, s.size))
		strcpy(out, (const char *)s.data);
	xp_elf_free(elf);
}

/* Looks a program up in PATH; its path goes to out (PATH_MAX bytes). */
static bool find_program(char *out, const char *name)
{
	const char *list = getenv("PATH");

	while (list && *list) {
		size_t n = strcspn(list, ":");

		if ((size_t)snprintf(out, PATH_MAX, "%.*s/%s", (int)n, n ? list : ".", name) <
		    PATH_MAX && access(out, X_OK) == 0)
			return true;
		list += n + (list[n] != 0);
	}
	return false;
}

/* Cuts the next word off a line; NULL when there is none. */
static char *word(char **line)
{
	char *start = *line + strspn(*line, " \t");
	size_t n = strcspn(start, " \t");

	if (n == 0)
		return NULL;
	*line = start + n + (start[n] != 0);
	start[n] = 0;
	return start;
}

/*
 * The interpreter of a script (execve(2): "#!", at most 255 bytes of line); /usr/bin/env is looked
 * through. False when the file is no script.
 */
static bool script_interpreter(const char *program, char *out)
{
	char line[256], *at = line + 2, *first, *name;
	int fd = open(program, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	ssize_t n;

	if (fd < 0)
		return false;
	n = xp_read_full(fd, line, sizeof(line) - 1);
	close(fd);
	if (n < 3 || line[0] != '#' || line[1] != '!')
		return false;
	line[n] = 0;
	line[strcspn(line, "\n")] = 0;
	first = word(&at);
	if (!first)
		return false;
	name = strrchr(first, '/');
	if (strcmp(name ? name + 1 : first, "env") == 0) {
		do
			name = word(&at);
		while (name && (name[0] == '-' || strchr(name, '=')));
		if (name && !strchr(name, '/'))
			return find_program(out, name);
		first = name ? name : first;
	}
	return (size_t)snprintf(out, PATH_MAX, "%s", first) < PATH_MAX;
}

static void release(struct search *s)
{
	for (size_t i = 0; i < s->objects.n; i++) {
		free(s->objects.v[i].path);
		free(s->objects.v[i].rpath);
	}
	xp_vec_release(&s->objects);
	xp_buf_release(&s->cache);
}

int xp_dso_needed(const char *program, void (*fn)(void *ctx, const char *path), void *ctx)
{
	struct search s = { .objects = XP_VEC_INIT, .cache = XP_BUF_INIT, .fn = fn, .ctx = ctx };
	char found[PATH_MAX], interpreter[PATH_MAX];
	int rc;

	if (!strchr(program, '/')) {
		if (!find_program(found, program))
			return -ENOENT;
		program = found;
	}
	if (script_interpreter(program, interpreter)) {
		strcpy(found, interpreter);
		program = found;
		fn(ctx, program);
	}
	/* Without a cache the directories are left. */
	if (xp_read_file("/etc/ld.so.cache", &s.cache, CACHE_MAX))
		xp_buf_clear(&s.cache);
	rc = add_object(&s, program, 0);
	if (!rc)
		rc = add_needs(&s, 0);
	read_interpreter(program, interpreter, sizeof(interpreter));
	if (!rc && interpreter[0])
		rc = add_object(&s, interpreter, 0);
	for (size_t i = 1; !rc && i < s.objects.n; i++)
		rc = add_needs(&s, i);
	release(&s);
	return rc;
}
