/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Publishes unwind tables to the kernel side: writes the memory of the maps that bpf/unwind.h
 * describes. Rows before pages, pages before ranges, so that a walker never follows a number to
 * what is not there yet. Knows nothing of libbpf: the memory is handed in.
 */
#ifndef XP_COLLECT_TABLES_H
#define XP_COLLECT_TABLES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/span.h"
#include "base/vec.h"
#include "bpf/unwind.h"
#include "target/dso.h"
#include "target/maps.h"

struct xp_tables_memory {		/* the maps' memory; stays the caller's */
	uint32_t *rows;
	struct xp_page *pages;
	struct xp_rule *rules;
	struct xp_range *ranges;
	uint32_t nblocks, npages, nranges;
};

struct xp_table {			/* the published rows of one dso */
	uint32_t page, npages;		/* npages 0: has none */
	uint64_t base;			/* virtual address of its first page */
	uint64_t rows;
	bool tried;
	bool no_room;			/* tried again when rows of others have gone */
	uint32_t removals;		/* of xp_tables, when it was tried */
};

struct xp_tables {
	struct xp_tables_memory mem;
	struct xp_spans row_spans, page_spans, range_spans;
	struct xp_index rule_index;
	uint32_t nrules;
	XP_VEC(struct xp_table) tables;	/* by dso id */
	uint64_t nrows;
	uint32_t removals;		/* how often rows were given back */
	bool full;			/* something did not fit: worth a warning */
};

int xp_tables_init(struct xp_tables *t, const struct xp_tables_memory *mem);
void xp_tables_release(struct xp_tables *t);
/*
 * Builds and publishes the rows of a dso, once. The dso's own copy of the rows is dropped. A dso
 * without rows, or for which there is no room (then t->full), has npages 0. 0 or -ENOMEM.
 */
int xp_tables_add(struct xp_tables *t, struct xp_dso *dso);
/*
 * Gives back the rows of a dso; xp_tables_add() may publish them again. No range may refer to them,
 * nor may a walker still use one that did: ranges.h sees to that.
 */
void xp_tables_remove(struct xp_tables *t, const struct xp_dso *dso);
/* What was published of a dso; NULL before xp_tables_add(). */
const struct xp_table *xp_tables_of(const struct xp_tables *t, const struct xp_dso *dso);

/*
 * Writes the ranges of an address space (mappings annotated with dsos, see target/process.h) and
 * stores where they are. Neighbours without a file become one range. Of more ranges than a walker
 * can search, those with rows are taken first, then the largest (t->full is set). 0, -ENOSPC
 * (t->full is set) or -ENOMEM. An empty list gives an empty span.
 */
int xp_tables_put_ranges(struct xp_tables *t, const struct xp_maps *maps, struct xp_span *span);
int xp_tables_drop_ranges(struct xp_tables *t, struct xp_span span);

#endif
