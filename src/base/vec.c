// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Growable typed array: the two functions behind the macros.
 *
 * They get the address of a "T *" as a "void **". Those are different types to the compiler's alias
 * analysis, so the pointer is read and written by memcpy(), which may look at any object.
 */
#include "base/vec.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define FIRST_CAP 8

int xp_vec_reserve_(void **v, size_t *cap, size_t need, size_t size)
{
	size_t want = *cap ? *cap : FIRST_CAP;
	void *old, *grown;

	if (need <= *cap)
		return 0;
	/* No object is that large, and doubling stays in range. */
	if (need > PTRDIFF_MAX / 2 / size)
		return -ENOMEM;
	while (want < need)
		want *= 2;
	memcpy(&old, v, sizeof(old));
	grown = realloc(old, want * size);
	if (!grown)
		return -ENOMEM;
	memcpy(v, &grown, sizeof(grown));
	*cap = want;
	return 0;
}

void *xp_vec_push_(void **v, size_t *n, size_t *cap, size_t size)
{
	unsigned char *base, *element;

	if (*n == SIZE_MAX || xp_vec_reserve_(v, cap, *n + 1, size))
		return NULL;
	memcpy(&base, v, sizeof(base));
	element = base + *n * size;
	memset(element, 0, size);
	(*n)++;
	return element;
}
