/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Rows of a dso are cut at 64 KiB pages; each page begins with the rule in force at its start, so
 * the walker's search never leaves the page. Rules are shared by all dsos of the machine: about a
 * thousand distinct ones are seen in practice (65,536 fit).
 */
#include "collect/tables.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "target/process.h"

#define PAGE_BYTES (1ull << XP_PAGE_SHIFT)
#define DSO_PAGES_MAX 65536	/* 4 GiB of text */
#define RANGES_MAX 32767	/* what the walker's search can tell apart */

int xp_tables_init(struct xp_tables *t, const struct xp_tables_memory *mem)
{
	int r;

	memset(t, 0, sizeof(*t));
	t->mem = *mem;
	r = xp_spans_init(&t->row_spans, mem->nblocks << XP_BLOCK_SHIFT, XP_BLOCK_ROWS);
	if (!r)
		r = xp_spans_init(&t->page_spans, mem->npages, 0);
	if (!r)
		r = xp_spans_init(&t->range_spans, mem->nranges, 0);
	if (r)
		xp_tables_release(t);
	return r;
}

void xp_tables_release(struct xp_tables *t)
{
	xp_spans_release(&t->row_spans);
	xp_spans_release(&t->page_spans);
	xp_spans_release(&t->range_spans);
	xp_index_release(&t->rule_index);
	xp_vec_release(&t->tables);
}

static bool rule_equal(const void *ctx, const void *key, uint32_t id)
{
	const struct xp_tables *t = ctx;

	return !memcmp(&t->mem.rules[id], key, sizeof(struct xp_rule));
}

/* The number of a rule among all dsos' rules. */
static int intern_rule(struct xp_tables *t, const struct xp_rule *rule, uint32_t *id)
{
	uint64_t hash = xp_hash_bytes(rule, sizeof(*rule), 0);
	int r;

	*id = xp_index_find(&t->rule_index, hash, rule_equal, t, rule);
	if (*id != XP_INDEX_NONE)
		return 0;
	if (t->nrules == XP_RULES_MAX)
		return -ENOSPC;
	r = xp_index_add(&t->rule_index, hash, t->nrules);
	if (r)
		return r;
	t->mem.rules[t->nrules] = *rule;
	*id = t->nrules++;
	return 0;
}

/* Translation of a dso's rule numbers to global ones. NULL with *r set. */
static uint32_t *intern_rules(struct xp_tables *t, const struct xp_cfi *cfi, int *r)
{
	uint32_t *ids = calloc(cfi->rules.n + 1, sizeof(*ids));

	*r = ids ? 0 : -ENOMEM;
	for (size_t i = 0; !*r && i < cfi->rules.n; i++)
		*r = intern_rule(t, &cfi->rules.v[i], &ids[i]);
	if (*r) {
		free(ids);
		return NULL;
	}
	return ids;
}

/* Publishes rows [from, to) of one page; before is the rule in force at its start. */
static int put_page(struct xp_tables *t, const struct xp_cfi *cfi, const uint32_t *ids, size_t from,
		    size_t to, uint32_t before, struct xp_page *page)
{
	bool lead = from == to || (cfi->rows.v[from].vaddr & (PAGE_BYTES - 1));
	size_t n = to - from + lead;
	uint32_t first, *rows;
	int r;

	if (n > XP_PAGE_ROWS_MAX) {
		/* No compiler makes that many; the page counts as without information. */
		memset(page, 0, sizeof(*page));
		return 0;
	}
	r = xp_spans_take(&t->row_spans, n, &first);
	if (r)
		return r;
	rows = t->mem.rows + first;
	if (lead)
		*rows++ = XP_ROW(0, before);
	for (size_t i = from; i < to; i++)
		*rows++ = XP_ROW(cfi->rows.v[i].vaddr, ids[cfi->rows.v[i].rule]);
	page->first = first;
	page->count = n;
	t->nrows += n;
	return 0;
}

static void drop_pages(struct xp_tables *t, uint32_t first, uint32_t count)
{
	for (uint32_t i = first; i < first + count; i++) {
		if (t->mem.pages[i].count)
			xp_spans_give(&t->row_spans, t->mem.pages[i].first, t->mem.pages[i].count);
		t->nrows -= t->mem.pages[i].count;
		memset(&t->mem.pages[i], 0, sizeof(t->mem.pages[i]));
	}
}

static int put_pages(struct xp_tables *t, const struct xp_cfi *cfi, const uint32_t *ids,
		     struct xp_table *table)
{
	uint32_t before = 0;
	size_t from = 0;
	int r = 0;

	/* Rule 0 stands for "nothing known" before a dso's first row: see xp_tables_add(). */
	for (uint32_t p = 0; p < table->npages; p++) {
		uint64_t end = table->base + (p + 1) * PAGE_BYTES;
		size_t to = from;

		while (to < cfi->rows.n && cfi->rows.v[to].vaddr < end)
			to++;
		r = put_page(t, cfi, ids, from, to, before, &t->mem.pages[table->page + p]);
		if (r) {
			drop_pages(t, table->page, p);
			break;
		}
		if (to > from)
			before = ids[cfi->rows.v[to - 1].rule];
		from = to;
	}
	return r;
}

static int publish(struct xp_tables *t, const struct xp_cfi *cfi, struct xp_table *table)
{
	uint64_t first = cfi->rows.v[0].vaddr >> XP_PAGE_SHIFT;
	uint64_t last = cfi->rows.v[cfi->rows.n - 1].vaddr >> XP_PAGE_SHIFT;
	uint32_t *ids;
	int r;

	if (last - first >= DSO_PAGES_MAX)
		return -ENOSPC;
	ids = intern_rules(t, cfi, &r);
	if (!ids)
		return r;
	r = xp_spans_take(&t->page_spans, last - first + 1, &table->page);
	if (r)
		goto out;
	table->npages = last - first + 1;
	table->base = first << XP_PAGE_SHIFT;
	r = put_pages(t, cfi, ids, table);
	if (r) {
		xp_spans_give(&t->page_spans, table->page, table->npages);
		table->npages = 0;
		goto out;
	}
	table->rows = cfi->rows.n;
out:
	free(ids);
	return r;
}

int xp_tables_add(struct xp_tables *t, struct xp_dso *dso)
{
	static const struct xp_rule none = { .fp_off = XP_FP_SAME, .kind = XP_RULE_NONE };
	struct xp_table *table;
	uint32_t id;
	int r;

	while (t->tables.n <= dso->id)
		if (!xp_vec_push(&t->tables))
			return -ENOMEM;
	table = &t->tables.v[dso->id];
	if (table->tried && !(table->no_room && table->removals != t->removals))
		return 0;
	if (!t->nrules) {
		r = intern_rule(t, &none, &id);
		if (r)
			return r;
	}
	r = xp_dso_need_rows(dso);
	if (!r && dso->cfi.rows.n)
		r = publish(t, &dso->cfi, table);
	if (r == -ENOMEM)
		return r;
	table->tried = true;
	table->no_room = r == -ENOSPC;
	table->removals = t->removals;
	t->full |= table->no_room;
	xp_dso_drop_rows(dso);
	return 0;
}

void xp_tables_remove(struct xp_tables *t, const struct xp_dso *dso)
{
	struct xp_table *table = dso->id < t->tables.n ? &t->tables.v[dso->id] : NULL;

	if (!table)
		return;
	if (table->npages) {
		drop_pages(t, table->page, table->npages);
		xp_spans_give(&t->page_spans, table->page, table->npages);
		t->removals++;
	}
	memset(table, 0, sizeof(*table));
}

const struct xp_table *xp_tables_of(const struct xp_tables *t, const struct xp_dso *dso)
{
	return dso->id < t->tables.n && t->tables.v[dso->id].tried ? &t->tables.v[dso->id] : NULL;
}

static void fill_range(const struct xp_tables *t, const struct xp_mapping *m,
		       struct xp_range *range)
{
	const struct xp_dso *dso = xp_mapping_dso(m);
	const struct xp_table *table = dso ? xp_tables_of(t, dso) : NULL;
	uint64_t bias;

	memset(range, 0, sizeof(*range));
	range->start = m->start;
	range->end = m->end;
	if (!table || !table->npages || !xp_dso_bias(dso, m, &bias))
		return;
	range->bias = bias + table->base;
	range->page = table->page;
	range->npages = table->npages;
}

static bool is_anonymous(const struct xp_mapping *m)
{
	return !m->user && !m->ino;
}

/* All ranges of an address space, and their number; to[] has room for one per mapping. */
static size_t fill_ranges(const struct xp_tables *t, const struct xp_maps *maps,
			  struct xp_range *to)
{
	size_t n = 0;

	for (size_t i = 0; i < maps->list.n; i++) {
		const struct xp_mapping *m = &maps->list.v[i], *before = i ? m - 1 : NULL;

		if (before && before->end == m->start && is_anonymous(before) && is_anonymous(m))
			to[n - 1].end = m->end;
		else
			fill_range(t, m, &to[n++]);
	}
	return n;
}

static int by_use(const void *a, const void *b)
{
	const struct xp_range *x = a, *y = b;
	uint64_t xsize = x->end - x->start, ysize = y->end - y->start;

	if (!x->npages != !y->npages)
		return x->npages ? -1 : 1;
	return xsize > ysize ? -1 : xsize < ysize;
}

static int by_start(const void *a, const void *b)
{
	const struct xp_range *x = a, *y = b;

	return x->start < y->start ? -1 : x->start > y->start;
}

int xp_tables_put_ranges(struct xp_tables *t, const struct xp_maps *maps, struct xp_span *span)
{
	struct xp_range *ranges;
	size_t n;
	int r;

	span->first = span->count = 0;
	if (!maps->list.n)
		return 0;
	ranges = calloc(maps->list.n, sizeof(*ranges));
	if (!ranges)
		return -ENOMEM;
	n = fill_ranges(t, maps, ranges);
	if (n > RANGES_MAX) {
		qsort(ranges, n, sizeof(*ranges), by_use);
		n = RANGES_MAX;
		qsort(ranges, n, sizeof(*ranges), by_start);
		t->full = true;
	}
	r = xp_spans_take(&t->range_spans, n, &span->first);
	if (!r) {
		span->count = n;
		memcpy(t->mem.ranges + span->first, ranges, n * sizeof(*ranges));
		__atomic_thread_fence(__ATOMIC_RELEASE);
	}
	t->full |= r == -ENOSPC;
	free(ranges);
	return r;
}

int xp_tables_drop_ranges(struct xp_tables *t, struct xp_span span)
{
	return span.count ? xp_spans_give(&t->range_spans, span.first, span.count) : 0;
}
