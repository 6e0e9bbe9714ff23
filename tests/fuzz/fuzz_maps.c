// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Fuzz entry of the mappings parser: the input is the text of a maps file. What it yields must be
 * sorted and without overlap, also after each of its mappings was cut and laid over the others.
 */
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "target/maps.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void check(bool holds)
{
	if (!holds)
		abort();
}

static void check_list(const struct xp_maps *m)
{
	for (size_t i = 0; i < m->list.n; i++) {
		struct xp_mapping *v = &m->list.v[i];

		check(v->start < v->end && v->path);
		check(i == 0 || v[-1].end <= v->start);
		check(xp_maps_find(m, v->start) == v && xp_maps_find(m, v->end - 1) == v);
	}
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct xp_maps m = { 0 }, copy = { 0 };

	if (xp_maps_parse(&m, (const char *)data, size, NULL) == 0) {
		check_list(&m);
		check(xp_maps_copy(&copy, &m) == 0);
		for (size_t i = 0; i < m.list.n && i < 64; i++) {
			struct xp_mapping wide = m.list.v[i];

			wide.start -= wide.start / 3;
			wide.end += (UINT64_MAX - wide.end) / 1024 / 1024;
			check(xp_maps_add(&copy, &wide) == 0);
			check_list(&copy);
			check(!strcmp(xp_maps_find(&copy, wide.start)->path, wide.path));
		}
	}
	xp_maps_release(&m);
	xp_maps_release(&copy);
	return 0;
}
