/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The life of published address spaces, and how far samples walked with an older one can be
 * believed.
 */
#ifndef XP_COLLECT_RANGES_H
#define XP_COLLECT_RANGES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/span.h"
#include "base/vec.h"
#include "bpf/abi.h"
#include "collect/tables.h"
#include "target/dso.h"
#include "target/maps.h"

struct xp_range_set {		/* a published address space, shared by forked children */
	struct xp_span span;
	uint32_t generation;
	unsigned refs;
	uint64_t retired;	/* ns, when the last reference went; 0: in use */
	XP_VEC(struct xp_dso *) dsos;	/* its files, a reference each: their rows stay */
};

struct xp_range_sets {		/* zeroed is none */
	XP_VEC(struct xp_range_set *) retired;
	uint32_t generation;	/* of the one published last */
};

void xp_range_sets_release(struct xp_range_sets *sets, struct xp_dsos *dsos);
/*
 * Publishes the ranges of an address space as a new set with one reference. Without room for them:
 * -ENOSPC, and no set. Or -ENOMEM.
 */
int xp_range_set_new(struct xp_range_sets *sets, struct xp_tables *tables, struct xp_dsos *dsos,
		     const struct xp_maps *maps, struct xp_range_set **out);
/* One with nothing in it: at least the process is known. 0 or -ENOMEM. */
int xp_range_set_new_empty(struct xp_range_sets *sets, struct xp_range_set **out);
/* Gives back a reference; set may be NULL. */
void xp_range_set_put(struct xp_range_sets *sets, struct xp_range_set *set, struct xp_dsos *dsos);
/* Gives back ranges that no walker can use any more, and then the references to their files. */
void xp_range_sets_settle(struct xp_range_sets *sets, struct xp_tables *tables,
			  struct xp_dsos *dsos, uint64_t now);

/* Where code was replaced: samples of an older generation with a pc there are not believed. */
#define XP_REPLACED_MAX 8
struct xp_replaced {
	unsigned n;
	struct xp_replaced_range { uint64_t start, end; uint32_t generation; } v[XP_REPLACED_MAX];
};

/*
 * Notes that [start, end) has other code from this generation on. When there are too many, the
 * oldest becomes the generation before which nothing is believed: *min_generation is raised.
 */
void xp_replaced_add(struct xp_replaced *r, uint64_t start, uint64_t end, uint32_t generation,
		     uint32_t *min_generation);
/* True when a sample of this generation has no pc in code that was replaced since. */
bool xp_replaced_none(const struct xp_replaced *r, uint32_t generation,
		      const struct xp_raw_frame *frames, uint32_t n);

#endif
