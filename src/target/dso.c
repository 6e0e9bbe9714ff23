// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The dso behind a mapping.
 */
#include "target/dso.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <linux/magic.h>
#include <malloc.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/hash.h"
#include "target/mem.h"

#define VDSO_MAX (1u << 20)
#define PAGE_MASK 4095ull

struct xp_dsos {
	XP_VEC(struct xp_dso *) list;	/* by id */
	struct xp_index index;
};

/* What a look-up compares: a file's identity, or where one could not be opened (size NO_FILE). */
struct key {
	uint64_t dev, ino, size, mtime;
	const char *path;
};

#define NO_FILE UINT64_MAX
#define NO_INODE UINT64_MAX		/* the vdso */

static uint64_t hash_of(const struct key *k)
{
	return xp_hash_u64(k->dev ^ xp_hash_u64(k->ino));
}

static bool equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_dsos *dsos = ctx;
	const struct key *k = key;
	const struct xp_dso *d = dsos->list.v[id];

	return d->dev == k->dev && d->ino == k->ino && d->size == k->size &&
	       d->mtime == k->mtime && (k->size != NO_FILE || strcmp(d->path, k->path) == 0);
}

struct xp_dsos *xp_dsos_new(void)
{
	return calloc(1, sizeof(struct xp_dsos));
}

static void free_contents(struct xp_dso *d)
{
	xp_srcline_free(d->srcline);
	xp_symtab_free(d->symtab);
	xp_cfi_release(&d->cfi);
	xp_elf_free(d->elf);
}

static void free_dso(struct xp_dso *d)
{
	if (!d)
		return;
	free_contents(d);
	free(d->path);
	free(d);
}

void xp_dsos_free(struct xp_dsos *dsos)
{
	if (!dsos)
		return;
	for (size_t i = 0; i < dsos->list.n; i++)
		free_dso(dsos->list.v[i]);
	xp_vec_release(&dsos->list);
	xp_index_release(&dsos->index);
	free(dsos);
}

static struct xp_dso *find(struct xp_dsos *dsos, const struct key *k)
{
	uint32_t id = xp_index_find(&dsos->index, hash_of(k), equal, dsos, k);

	if (id == XP_INDEX_NONE)
		return NULL;
	dsos->list.v[id]->refs++;
	return dsos->list.v[id];
}

/* A new dso of that key with one reference; NULL when out of memory. */
static struct xp_dso *add(struct xp_dsos *dsos, const struct key *k)
{
	struct xp_dso *d = calloc(1, sizeof(*d)), **slot = NULL;

	if (d)
		d->path = strdup(k->path);
	if (d && d->path && !xp_vec_reserve(&dsos->list, dsos->list.n + 1) &&
	    !xp_index_add(&dsos->index, hash_of(k), (uint32_t)dsos->list.n))
		slot = xp_vec_push(&dsos->list);
	if (!slot) {
		free_dso(d);
		errno = ENOMEM;
		return NULL;
	}
	*slot = d;
	d->id = (uint32_t)(dsos->list.n - 1);
	d->refs = 1;
	d->dev = k->dev;
	d->ino = k->ino;
	d->size = k->size;
	d->mtime = k->mtime;
	return d;
}

static void set_problem(struct xp_dso *d, const char *text)
{
	snprintf(d->problem, sizeof(d->problem), "%.*s", (int)sizeof(d->problem) - 1, text);
}

/* Takes over an opened image, or says why there is none. */
static void set_elf(struct xp_dso *d, struct xp_elf *elf, const struct xp_err *err)
{
	d->problem[0] = 0;
	d->given_up = false;
	if (!elf) {
		set_problem(d, err->what);
	} else if (elf->machine != EM_X86_64) {
		snprintf(d->problem, sizeof(d->problem), "code of another machine (e_machine %u)",
			 elf->machine);
		xp_elf_free(elf);
	} else {
		d->elf = elf;
		xp_elf_build_id_hex(elf, d->build_id);
	}
}

/* The dso of an open file. */
static struct xp_dso *get_file(struct xp_dsos *dsos, int fd, const struct stat *st,
			       const char *path)
{
	struct key k = {
		.dev = st->st_dev, .ino = st->st_ino, .size = (uint64_t)st->st_size,
		.mtime = (uint64_t)st->st_mtim.tv_sec * 1000000000u +
			 (uint64_t)st->st_mtim.tv_nsec,
		.path = path,
	};
	struct xp_err err = XP_ERR_INIT;
	struct xp_dso *d = find(dsos, &k);
	struct xp_elf *elf;

	if (d && !d->given_up)
		return d;
	if (!d)
		d = add(dsos, &k);
	if (!d)
		return NULL;
	xp_elf_open_fd(&elf, fd, &err);
	set_elf(d, elf, &err);
	return d;
}

/* Opens only regular files: opening a device may do something. */
static int open_regular(const char *path, struct stat *st)
{
	int fd;

	if (stat(path, st))
		return -errno;
	if (!S_ISREG(st->st_mode))
		return -ENOEXEC;
	fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	if (fd < 0)
		return -errno;
	if (fstat(fd, st) || !S_ISREG(st->st_mode)) {
		close(fd);
		return -ENOEXEC;
	}
	return fd;
}

/*
 * Whether an open file is the one mapped. On btrfs the mapping has the device of the file system
 * and stat that of the subvolume; on overlayfs before Linux 6.8 the mapping has the device of the
 * layer below (fs/proc/task_mmu.c, file_user_inode()).
 */
static bool is_mapped(int fd, const struct stat *st, const struct xp_mapping *m)
{
	uint64_t dev = (uint64_t)major(st->st_dev) << 32 | minor(st->st_dev);
	struct statfs fs;

	if (st->st_ino != m->ino)
		return false;
	if (dev == m->dev)
		return true;
	return fstatfs(fd, &fs) == 0 &&
	       ((unsigned long)fs.f_type == BTRFS_SUPER_MAGIC ||
		(unsigned long)fs.f_type == OVERLAYFS_SUPER_MAGIC);
}

/*
 * A descriptor of the file behind a mapping, or a negative errno: -ESTALE when it is another one.
 */
static int open_mapped(pid_t pid, const struct xp_mapping *m, struct stat *st)
{
	char path[4096 + 64];
	int fd, why = -ENOENT;

	for (int way = 0; way < 3; way++) {
		int n = 0;

		if (way < 2 && m->path[0] != '/')
			continue;
		if (way == 0)
			n = snprintf(path, sizeof(path), "%s", m->path);
		else if (way == 1)
			n = snprintf(path, sizeof(path), "/proc/%d/root%s", (int)pid, m->path);
		else
			n = snprintf(path, sizeof(path), "/proc/%d/map_files/%" PRIx64 "-%" PRIx64,
				     (int)pid, m->start, m->end);
		if (n < 0 || (size_t)n >= sizeof(path))
			continue;
		fd = open_regular(path, st);
		if (fd >= 0 && is_mapped(fd, st, m))
			return fd;
		if (fd >= 0)
			close(fd);
		/* The first reason that is not "no such file" is the one to tell. */
		if (fd >= 0)
			why = -ESTALE;
		else if (why == -ENOENT && fd != -ESRCH)
			why = fd;
	}
	return why;
}

/* Remembers a file that could not be opened; each process that maps it tries again. */
static struct xp_dso *get_unopened(struct xp_dsos *dsos, const struct xp_mapping *m, int why)
{
	struct key k = { m->dev, m->ino, NO_FILE, 0, m->path };
	struct xp_dso *d = find(dsos, &k);

	if (d)
		return d;
	d = add(dsos, &k);
	if (!d)
		return NULL;
	if (why == ESTALE || m->deleted)
		snprintf(d->problem, sizeof(d->problem), "deleted or replaced while in use, and "
			 "map_files (CAP_CHECKPOINT_RESTORE) cannot be read: %s", strerror(why));
	else if (why == ENOEXEC)
		set_problem(d, "not a regular file");
	else
		snprintf(d->problem, sizeof(d->problem), "cannot open it: %s", strerror(why));
	return d;
}

/* The process's vdso, or our own when its memory cannot be read; NULL when there is none. */
static void *read_vdso(pid_t pid, const struct xp_mapping *m, size_t *size)
{
	struct xp_mem mem = xp_mem_of_pid(pid);
	uint64_t n = m->end - m->start;
	void *copy;

	if (n == 0 || n > VDSO_MAX)
		return NULL;
	copy = malloc(n);
	if (!copy)
		return NULL;
	*size = n;
	if (xp_mem_read(&mem, m->start, copy, n) == 0)
		return copy;
	/* The size is the same too: it is the same image. What is not mapped is not read. */
	mem = xp_mem_of_pid(getpid());
	if (getauxval(AT_SYSINFO_EHDR) &&
	    xp_mem_read(&mem, getauxval(AT_SYSINFO_EHDR), copy, n) == 0)
		return copy;
	free(copy);
	return NULL;
}

static struct xp_dso *get_vdso(struct xp_dsos *dsos, pid_t pid, const struct xp_mapping *m)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_elf *elf = NULL;
	struct key k = { 0, NO_INODE, 0, 0, m->path };
	size_t size = 0;
	void *data = read_vdso(pid, m, &size);
	struct xp_dso *d;

	if (data) {
		k.size = size;
		k.mtime = xp_hash_bytes(data, size, 0);
	}
	d = find(dsos, &k);
	if (!d || d->given_up) {
		if (!d)
			d = add(dsos, &k);
		if (d && data)
			xp_elf_open_mem(&elf, data, size, &err);
		else
			xp_err_set(&err, EIO, "its memory cannot be read");
		if (d)
			set_elf(d, elf, &err);
	}
	free(data);
	return d;
}

struct xp_dso *xp_dsos_get(struct xp_dsos *dsos, pid_t pid, const struct xp_mapping *m)
{
	struct xp_dso *d;
	struct stat st;
	int fd;

	if (strcmp(m->path, "[vdso]") == 0)
		return get_vdso(dsos, pid, m);
	if (m->ino == 0) {
		errno = 0;
		return NULL;
	}
	fd = open_mapped(pid, m, &st);
	if (fd < 0)
		return get_unopened(dsos, m, -fd);
	d = get_file(dsos, fd, &st, m->path);
	close(fd);
	return d;
}

struct xp_dso *xp_dsos_get_path(struct xp_dsos *dsos, const char *path, struct xp_err *err)
{
	struct xp_dso *d;
	struct stat st;
	int fd = open_regular(path, &st);

	if (fd < 0) {
		if (fd == -ENOEXEC)
			xp_err_set(err, ENOEXEC, "%s: not a regular file", path);
		else
			xp_err_sys(err, -fd, "cannot open %s", path);
		errno = -fd;
		return NULL;
	}
	d = get_file(dsos, fd, &st, path);
	if (!d)
		xp_err_sys(err, ENOMEM, "cannot keep %s", path);
	close(fd);
	return d;
}

void xp_dso_ref(struct xp_dso *d)
{
	d->refs++;
}

void xp_dso_put(struct xp_dsos *dsos, struct xp_dso *d)
{
	(void)dsos;
	if (d && d->refs)
		d->refs--;
}

static void give_up(struct xp_dso *d)
{
	free_contents(d);
	d->srcline = NULL;
	d->symtab = NULL;
	d->elf = NULL;
	d->srcline_tried = d->cfi_built = false;
	d->given_up = true;
}

void xp_dsos_sweep(struct xp_dsos *dsos, void (*fn)(void *ctx, struct xp_dso *d), void *ctx)
{
	uint64_t bytes = 0;
	bool any = false;
	unsigned enough;

	for (size_t i = 0; i < dsos->list.n; i++)
		if (!dsos->list.v[i]->refs && dsos->list.v[i]->elf)
			bytes += dsos->list.v[i]->elf->size;
	enough = bytes > XP_DSO_IDLE_BYTES ? 2 : XP_DSO_SWEEPS;
	for (size_t i = 0; i < dsos->list.n; i++) {
		struct xp_dso *d = dsos->list.v[i];

		if (d->refs)
			d->idle = 0;
		else if (d->elf && ++d->idle >= enough) {
			if (fn)
				fn(ctx, d);
			give_up(d);
			any = true;
		}
	}
#ifdef __GLIBC__
	/* Copies of files are large, and what is freed inside the heap would stay resident. */
	if (any)
		malloc_trim(0);
#else
	(void)any;
#endif
}

int xp_dso_need_rows(struct xp_dso *d)
{
	struct xp_err err = XP_ERR_INIT;
	int rc = 0;

	if (d->cfi_built)
		return 0;
	xp_cfi_release(&d->cfi);
	if (d->elf)
		rc = xp_cfi_build(&d->cfi, d->elf, &err);
	if (rc == -ENOMEM)
		return rc;
	if (rc) {
		xp_cfi_release(&d->cfi);
		set_problem(d, err.what);
	}
	d->cfi_built = true;
	return 0;
}

void xp_dso_drop_rows(struct xp_dso *d)
{
	xp_vec_release(&d->cfi.rows);
	xp_vec_release(&d->cfi.rules);
	d->cfi_built = false;
}

bool xp_dso_vaddr(const struct xp_dso *d, const struct xp_mapping *m, uint64_t pc, uint64_t *vaddr)
{
	if (!d->elf || pc < m->start || pc >= m->end)
		return false;
	return xp_elf_vaddr_of_offset(d->elf, pc - m->start + m->offset, vaddr);
}

/*
 * Mappings start on pages and segments need not: the page in front of a segment's first byte is
 * mapped with it, and belongs to the same bias.
 */
bool xp_dso_bias(const struct xp_dso *d, const struct xp_mapping *m, uint64_t *bias)
{
	uint64_t n = m->end - m->start;
	bool found = false;

	for (size_t i = 0; d->elf && i < d->elf->nsegments; i++) {
		const struct xp_segment *s = &d->elf->segments[i];
		uint64_t from = s->offset & ~PAGE_MASK, b;

		if (!s->exec || s->filesz == 0 || m->offset >= s->offset + s->filesz ||
		    (from > m->offset && from - m->offset >= n))
			continue;
		b = m->start - (m->offset - s->offset + s->vaddr);
		if (found && b != *bias)
			return false;
		*bias = b;
		found = true;
	}
	return found;
}

bool xp_dso_symbol(struct xp_dso *d, uint64_t vaddr, struct xp_sym *out)
{
	if (!d->elf)
		return false;
	if (!d->symtab) {
		/* Function bounds outlive the rows; they are made when nobody wanted rows yet. */
		if (!d->cfi_built && !d->cfi.funcs.n && !xp_dso_need_rows(d))
			xp_dso_drop_rows(d);
		if (xp_symtab_new(&d->symtab, d->elf, &d->cfi, NULL))
			return false;
	}
	return xp_symtab_find(d->symtab, vaddr, out);
}

bool xp_dso_line(struct xp_dso *d, uint64_t vaddr, const char **file, uint32_t *line)
{
	if (d->elf && !d->srcline_tried) {
		d->srcline = xp_srcline_new(d->elf);
		d->srcline_tried = true;
	}
	return d->srcline && xp_srcline_find(d->srcline, vaddr, file, line);
}
