/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Growable typed array.
 *
 *	XP_VEC(struct point) points = XP_VEC_INIT;
 *	struct point *p = xp_vec_push(&points);		zeroed element, NULL when out of memory
 *	for (size_t i = 0; i < points.n; i++) use(&points.v[i]);
 *	xp_vec_release(&points);
 *
 * Pointers to elements are valid until the next push. The owner of the vector owns v.
 */
#ifndef XP_BASE_VEC_H
#define XP_BASE_VEC_H

#include <stddef.h>
#include <stdlib.h>

#define XP_VEC(type) struct { type *v; size_t n, cap; }
#define XP_VEC_INIT { NULL, 0, 0 }

/* Makes room for `need` elements of `size` bytes. 0 or -ENOMEM; on failure nothing has changed. */
int xp_vec_reserve_(void **v, size_t *cap, size_t need, size_t size);
/* Address of a new zeroed element, or NULL when out of memory. */
void *xp_vec_push_(void **v, size_t *n, size_t *cap, size_t size);

#define xp_vec_reserve(vec, need) \
	xp_vec_reserve_((void **)&(vec)->v, &(vec)->cap, (need), sizeof(*(vec)->v))
#define xp_vec_push(vec) \
	((__typeof__((vec)->v))xp_vec_push_((void **)&(vec)->v, &(vec)->n, &(vec)->cap, \
					     sizeof(*(vec)->v)))
#define xp_vec_clear(vec) ((void)((vec)->n = 0))
#define xp_vec_release(vec) \
	do { free((vec)->v); (vec)->v = NULL; (vec)->n = (vec)->cap = 0; } while (0)

#endif
