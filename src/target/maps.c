// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The mappings of a process (proc_pid_maps(5); the kernel's fs/proc/task_mmu.c, show_map_vma()).
 */
#include "target/maps.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

static void take(const struct xp_maps *m, const struct xp_mapping *mapping)
{
	if (m->get && mapping->user)
		m->get(m->ctx, mapping->user);
}

static void drop(const struct xp_maps *m, const struct xp_mapping *mapping)
{
	if (m->put && mapping->user)
		m->put(m->ctx, mapping->user);
	free(mapping->path);
}

void xp_maps_release(struct xp_maps *m)
{
	for (size_t i = 0; i < m->list.n; i++)
		drop(m, &m->list.v[i]);
	xp_vec_release(&m->list);
}

/* A line being read; `bad` once something was not as it must be. */
struct line {
	const char *p, *end;
	bool bad;
};

static uint64_t number(struct line *l, unsigned base)
{
	const char *first = l->p;
	uint64_t v = 0;

	for (; l->p < l->end; l->p++) {
		unsigned digit;

		if (*l->p >= '0' && *l->p <= '9')
			digit = (unsigned)(*l->p - '0');
		else if (base == 16 && *l->p >= 'a' && *l->p <= 'f')
			digit = (unsigned)(*l->p - 'a') + 10;
		else
			break;
		if (v > (UINT64_MAX - digit) / base)
			l->bad = true;
		v = v * base + digit;
	}
	if (l->p == first)
		l->bad = true;
	return v;
}

static void expect(struct line *l, char c)
{
	if (l->p < l->end && *l->p == c)
		l->p++;
	else
		l->bad = true;
}

/* "r-xp": true when the third is x. */
static bool permissions(struct line *l)
{
	bool exec;

	if (l->end - l->p < 4) {
		l->bad = true;
		return false;
	}
	exec = l->p[2] == 'x';
	for (int i = 0; i < 4; i++) {
		if (!memchr("rwxps-", l->p[i], 6))
			l->bad = true;
	}
	l->p += 4;
	return exec;
}

/* The rest of the line as a path. The kernel writes only a newline as \012 (seq_path with "\n"). */
static char *path(struct line *l, bool *deleted)
{
	static const char suffix[] = " (deleted)";
	const size_t n = sizeof(suffix) - 1;
	char *out, *to;

	while (l->p < l->end && *l->p == ' ')
		l->p++;
	*deleted = l->p < l->end && *l->p == '/' && (size_t)(l->end - l->p) > n &&
		   memcmp(l->end - n, suffix, n) == 0;
	if (*deleted)
		l->end -= n;
	to = out = malloc((size_t)(l->end - l->p) + 1);
	if (!out)
		return NULL;
	while (l->p < l->end) {
		if (l->end - l->p >= 4 && memcmp(l->p, "\\012", 4) == 0) {
			*to++ = '\n';
			l->p += 4;
		} else {
			*to++ = *l->p++;
		}
	}
	*to = 0;
	return out;
}

/* 0, -EINVAL or -ENOMEM; on success m owns a path. */
static int parse_line(struct line *l, struct xp_mapping *m)
{
	memset(m, 0, sizeof(*m));
	m->start = number(l, 16);
	expect(l, '-');
	m->end = number(l, 16);
	expect(l, ' ');
	m->exec = permissions(l);
	expect(l, ' ');
	m->offset = number(l, 16);
	expect(l, ' ');
	m->dev = number(l, 16) << 32;
	expect(l, ':');
	m->dev |= number(l, 16) & UINT32_MAX;
	expect(l, ' ');
	m->ino = number(l, 10);
	if (l->p < l->end)
		expect(l, ' ');
	if (l->bad || m->start >= m->end || memchr(l->p, 0, (size_t)(l->end - l->p)))
		return -EINVAL;
	m->path = path(l, &m->deleted);
	return m->path ? 0 : -ENOMEM;
}

static int append(struct xp_maps *m, struct line *l)
{
	uint64_t last = m->list.n ? m->list.v[m->list.n - 1].end : 0;
	struct xp_mapping new, *slot;
	int rc = parse_line(l, &new);

	if (rc)
		return rc;
	if (new.start < last) {
		free(new.path);
		return -EINVAL;
	}
	slot = xp_vec_push(&m->list);
	if (!slot) {
		free(new.path);
		return -ENOMEM;
	}
	*slot = new;
	return 0;
}

int xp_maps_parse(struct xp_maps *m, const char *text, size_t len, struct xp_err *err)
{
	const char *end = text + len;
	struct xp_maps fresh = { .list = XP_VEC_INIT };
	size_t number_of_line = 0;

	while (text < end) {
		const char *nl = memchr(text, '\n', (size_t)(end - text));
		struct line l = { text, nl ? nl : end, false };
		int rc;

		number_of_line++;
		rc = append(&fresh, &l);
		if (rc) {
			xp_maps_release(&fresh);
			if (rc == -ENOMEM)
				return xp_err_sys(err, ENOMEM, "cannot keep the mappings");
			return xp_err_set(err, EINVAL, "malformed mapping in line %zu",
					  number_of_line);
		}
		text = nl ? nl + 1 : end;
	}
	xp_maps_release(m);
	m->list.v = fresh.list.v;
	m->list.n = fresh.list.n;
	m->list.cap = fresh.list.cap;
	return 0;
}

int xp_maps_read(struct xp_maps *m, pid_t pid, struct xp_err *err)
{
	struct xp_buf text = XP_BUF_INIT;
	char name[32];
	int rc;

	snprintf(name, sizeof(name), "/proc/%d/maps", (int)pid);
	rc = xp_read_file(name, &text, XP_MAPS_TEXT_MAX);
	if (rc == -ENOENT || rc == -ESRCH) {
		rc = xp_err_set(err, ESRCH, "there is no process %d", (int)pid);
	} else if (rc) {
		xp_err_sys(err, -rc, "cannot read %s", name);
	} else {
		rc = xp_maps_parse(m, (const char *)text.data, text.len, err);
		if (rc)
			xp_err_prepend(err, "%s", name);
	}
	xp_buf_release(&text);
	return rc;
}

/* Index of the first mapping that ends above addr; n when there is none. */
static size_t first_above(const struct xp_maps *m, uint64_t addr)
{
	size_t low = 0, high = m->list.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (m->list.v[mid].end > addr)
			high = mid;
		else
			low = mid + 1;
	}
	return low;
}

struct xp_mapping *xp_maps_find(const struct xp_maps *m, uint64_t addr)
{
	size_t i = first_above(m, addr);

	return i < m->list.n && m->list.v[i].start <= addr ? &m->list.v[i] : NULL;
}

/* Only mappings of files have an offset that moves: the kernel prints 0 for the others. */
static void cut_front(struct xp_mapping *m, uint64_t start)
{
	if (m->dev || m->ino)
		m->offset += start - m->start;
	m->start = start;
}

int xp_maps_add(struct xp_maps *m, const struct xp_mapping *new)
{
	size_t first, last, keep;
	struct xp_mapping left, right, *v;
	char *copy, *second = NULL;
	bool has_left = false, has_right = false;

	if (new->start >= new->end)
		return -EINVAL;
	first = first_above(m, new->start);
	for (last = first; last < m->list.n && m->list.v[last].start < new->end;)
		last++;
	if (first < last) {
		left = m->list.v[first];
		right = m->list.v[last - 1];
		has_left = left.start < new->start;
		has_right = right.end > new->end;
	}
	copy = strdup(new->path ? new->path : "");
	if (has_left && has_right && first + 1 == last)
		second = strdup(left.path);
	if (!copy || (has_left && has_right && first + 1 == last && !second) ||
	    xp_vec_reserve(&m->list, m->list.n + 2)) {
		free(copy);
		free(second);
		return -ENOMEM;
	}

	/*
	 * From here on nothing can fail. Paths and references of the pieces that stay go with them. The
	 * new one's reference is taken first: it may be the last one's that goes.
	 */
	take(m, new);
	v = m->list.v;
	for (size_t i = first; i < last; i++) {
		if (!(has_left && i == first) && !(has_right && i + 1 == last))
			drop(m, &v[i]);
	}
	if (second) {
		right.path = second;
		take(m, &right);
	}
	keep = (size_t)has_left + 1 + (size_t)has_right;
	memmove(v + first + keep, v + last, (m->list.n - last) * sizeof(*v));
	m->list.n = m->list.n - (last - first) + keep;
	if (has_left) {
		left.end = new->start;
		v[first++] = left;
	}
	v[first] = *new;
	v[first].path = copy;
	if (has_right) {
		cut_front(&right, new->end);
		v[first + 1] = right;
	}
	return 0;
}

int xp_maps_copy(struct xp_maps *dst, const struct xp_maps *src)
{
	for (size_t i = 0; i < src->list.n; i++) {
		struct xp_mapping *to = xp_vec_push(&dst->list);

		if (to) {
			*to = src->list.v[i];
			to->path = strdup(src->list.v[i].path);
		}
		if (to && !to->path)
			dst->list.n--;
		if (!to || !to->path) {
			xp_maps_release(dst);
			return -ENOMEM;
		}
		take(dst, to);
	}
	return 0;
}
