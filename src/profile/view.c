/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Filters are decided once per thread, so that a sample costs one look into an array.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "profile/view.h"

static bool listed(const int *list, size_t n, uint32_t id)
{
	for (size_t i = 0; i < n; i++)
		if (list[i] >= 0 && (uint32_t)list[i] == id)
			return true;
	return !n;
}

static bool passes(const struct xp_profile *p, const struct xp_thread *t, const struct xp_filter *f)
{
	struct xp_str comm = xp_strings_get(&p->strings, t->comm);

	if (f->comm && (comm.n != strlen(f->comm) || memcmp(comm.p, f->comm, comm.n)))
		return false;
	return listed(f->pids, f->npids, t->pid) && listed(f->tids, f->ntids, t->tid);
}

int xp_view_init(struct xp_view *v, const struct xp_profile *p, const struct xp_filter *filter,
		 bool internals)
{
	*v = (struct xp_view){ .p = p, .internals = internals };
	v->threads = calloc(p->threads.n + 1, sizeof(*v->threads));
	if (!v->threads)
		return -ENOMEM;
	for (size_t i = 0; i < p->threads.n; i++)
		v->threads[i] = passes(p, &p->threads.v[i], filter);
	return 0;
}

void xp_view_release(struct xp_view *v)
{
	free(v->threads);
	v->threads = NULL;
}

uint64_t xp_view_weight(const struct xp_view *v)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < v->p->samples.n; i++)
		if (v->threads[v->p->samples.v[i].thread])
			sum += v->p->samples.v[i].weight;
	return sum;
}
