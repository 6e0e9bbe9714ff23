// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Kernel symbols (kernel/kallsyms.c, s_show(): "ADDRESS TYPE NAME[\t[MODULE]]").
 *
 * The text is kept and names point into it. The modules' symbols come after the kernel's, each
 * module's together; a symbol ends where the next one of the same module begins, and the last one
 * of a module at the end of its page, so that nothing reaches into a far module.
 */
#include "target/ksyms.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/vec.h"

#define TEXT_MAX (256u << 20)
#define PAGE 4096u

struct entry {
	uint64_t start, end;
	uint32_t name, module;	/* offsets into the text; module 0: the kernel itself */
};

struct xp_ksyms {
	struct xp_buf text;
	XP_VEC(struct entry) list;	/* sorted by start, distinct */
	bool restricted;
};

static int hex_digit(uint8_t c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

static bool is_text(char type)
{
	return type == 't' || type == 'T' || type == 'w' || type == 'W';
}

/* One line, [p, end), *end being the newline's place; fills e when it names code. */
static bool parse_line(uint8_t *text, uint8_t *p, uint8_t *end, struct entry *e)
{
	uint8_t *name, *tab;
	uint64_t addr = 0;
	int digits = 0;

	for (; p < end && digits <= 16 && hex_digit(*p) >= 0; digits++)
		addr = addr << 4 | (uint64_t)hex_digit(*p++);
	if (digits == 0 || digits > 16 || end - p < 4 || p[0] != ' ' || p[2] != ' ')
		return false;
	if (!is_text((char)p[1]))
		return false;
	name = p + 3;
	*end = 0;
	tab = memchr(name, '\t', (size_t)(end - name));
	e->start = addr;
	e->end = 0;
	e->name = (uint32_t)(name - text);
	e->module = 0;
	if (tab) {
		*tab = 0;
		if (tab + 1 < end)
			e->module = (uint32_t)(tab + 1 - text);
	}
	return name[0] != 0;
}

/* Collects the entries; *zero counts the addresses that read as 0. */
static int parse(struct xp_ksyms *ks, size_t *zero)
{
	/* The last byte is a newline. */
	uint8_t *p = ks->text.data, *last = p + ks->text.len - 1;

	while (p <= last) {
		uint8_t *nl = memchr(p, '\n', (size_t)(last - p) + 1);
		struct entry e, *slot;

		if (!nl)
			break;
		if (parse_line(ks->text.data, p, nl, &e)) {
			if (e.start == 0) {
				(*zero)++;
			} else {
				slot = xp_vec_push(&ks->list);
				if (!slot)
					return -ENOMEM;
				*slot = e;
			}
		}
		p = nl + 1;
	}
	return 0;
}

/* By address; of several names the one that the kernel lists first. */
static int by_start(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return (x->name > y->name) - (x->name < y->name);
}

static bool same_module(const struct xp_ksyms *ks, const struct entry *a, const struct entry *b)
{
	const char *text = (const char *)ks->text.data;

	if (!a->module || !b->module)
		return a->module == b->module;
	return strcmp(text + a->module, text + b->module) == 0;
}

/*
 * The linker script's marks behind code (include/asm-generic/vmlinux.lds.h): nothing begins
 * there.
 */
static bool is_end_mark(const struct xp_ksyms *ks, const struct entry *e)
{
	const char *name = (const char *)ks->text.data + e->name;

	return !e->module && (strcmp(name, "_etext") == 0 || strcmp(name, "_einittext") == 0);
}

static void sort_and_bound(struct xp_ksyms *ks)
{
	struct entry *v = ks->list.v;
	size_t kept = 0;

	if (!ks->list.n)
		return;
	qsort(v, ks->list.n, sizeof(*v), by_start);
	for (size_t i = 0; i < ks->list.n; i++) {
		if (!kept || v[kept - 1].start != v[i].start)
			v[kept++] = v[i];
	}
	ks->list.n = kept;
	for (size_t i = 0; i < kept; i++) {
		uint64_t page = (v[i].start | (PAGE - 1)) + 1;

		if (page == 0)
			page = UINT64_MAX;
		if (is_end_mark(ks, &v[i]))
			v[i].end = v[i].start;
		else if (i + 1 < kept &&
			 (same_module(ks, &v[i], &v[i + 1]) || v[i + 1].start < page))
			v[i].end = v[i + 1].start;
		else
			v[i].end = page;
	}
}

static int load(struct xp_ksyms *ks, const char *path)
{
	size_t zero = 0;
	int rc = xp_read_file(path, &ks->text, TEXT_MAX);

	if (rc)
		return rc;
	xp_buf_u8(&ks->text, '\n');
	if (ks->text.failed)
		return -ENOMEM;
	rc = parse(ks, &zero);
	if (rc)
		return rc;
	/* A few symbols are at 0 also when all is shown (per-CPU ones are not text). */
	ks->restricted = zero && !ks->list.n;
	sort_and_bound(ks);
	return 0;
}

int xp_ksyms_new(struct xp_ksyms **out, const char *path, struct xp_err *err)
{
	struct xp_ksyms *ks = calloc(1, sizeof(*ks));
	int rc;

	*out = NULL;
	if (!path)
		path = "/proc/kallsyms";
	rc = ks ? load(ks, path) : -ENOMEM;
	if (rc) {
		xp_ksyms_free(ks);
		return xp_err_sys(err, -rc, "cannot read %s", path);
	}
	*out = ks;
	return 0;
}

void xp_ksyms_free(struct xp_ksyms *ks)
{
	if (!ks)
		return;
	xp_buf_release(&ks->text);
	xp_vec_release(&ks->list);
	free(ks);
}

bool xp_ksyms_find(const struct xp_ksyms *ks, uint64_t addr, struct xp_ksym *out)
{
	size_t low = 0, high = ks->list.n;
	const struct entry *e;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (ks->list.v[mid].start <= addr)
			low = mid + 1;
		else
			high = mid;
	}
	if (low == 0 || ks->list.v[low - 1].end <= addr)
		return false;
	e = &ks->list.v[low - 1];
	out->start = e->start;
	out->end = e->end;
	out->name = (const char *)ks->text.data + e->name;
	out->module = e->module ? (const char *)ks->text.data + e->module : "[kernel]";
	return true;
}

bool xp_ksyms_restricted(const struct xp_ksyms *ks)
{
	return ks->restricted;
}
