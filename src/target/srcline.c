// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Source lines (libdw of elfutils 0.188).
 *
 * Which unit an address belongs to is looked up in an own table made of the units' ranges, since
 * .debug_aranges may be missing: clang writes none. Split units (.dwo files) keep their line
 * table in the main file, so nothing else is opened.
 */
#include "target/srcline.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/filemap.h"
#include "base/vec.h"

#define RANGES_MAX (4u << 20)

struct range {
	uint64_t start, end;
	Dwarf_Off die;			/* of the unit */
};

struct xp_srcline {
	uint8_t *image;			/* libdw's own copy: it changes headers as it inflates sections */
	size_t size;
	struct xp_filemap map;		/* of a large file; else the image is to be freed */
	Elf *elf;
	Dwarf *dwarf;
	XP_VEC(struct range) ranges;	/* sorted by start */
	bool scanned;
};

static bool has_lines(const struct xp_elf *elf)
{
	static const char *const names[][2] = {
		{ ".debug_info", ".debug_line" }, { ".zdebug_info", ".zdebug_line" },
	};
	struct xp_section s;

	for (size_t i = 0; i < 2; i++) {
		if (xp_elf_section(elf, names[i][0], &s) && s.data &&
		    xp_elf_section(elf, names[i][1], &s) && s.data)
			return true;
	}
	return false;
}

/* Bytes that may be written to: a private mapping of a large file, else a copy. */
static bool copy_image(struct xp_srcline *sl, const struct xp_elf *elf)
{
	sl->size = elf->size;
	if (elf->fd >= 0) {
		if (!xp_filemap_open(&sl->map, elf->fd, sl->size, true))
			sl->image = sl->map.data;
	} else {
		sl->image = malloc(sl->size);
		if (sl->image)
			memcpy(sl->image, elf->data, sl->size);
	}
	return sl->image;
}

struct xp_srcline *xp_srcline_new(const struct xp_elf *elf)
{
	struct xp_srcline *sl;

	errno = 0;
	if (!has_lines(elf))
		return NULL;
	sl = calloc(1, sizeof(*sl));
	if (!sl)
		return NULL;
	if (!copy_image(sl, elf)) {
		xp_srcline_free(sl);
		errno = ENOMEM;
		return NULL;
	}
	sl->elf = elf_memory((char *)sl->image, sl->size);
	sl->dwarf = sl->elf ? dwarf_begin_elf(sl->elf, DWARF_C_READ, NULL) : NULL;
	if (!sl->dwarf) {
		xp_srcline_free(sl);
		errno = EINVAL;
		return NULL;
	}
	return sl;
}

void xp_srcline_free(struct xp_srcline *sl)
{
	if (!sl)
		return;
	dwarf_end(sl->dwarf);
	elf_end(sl->elf);
	if (sl->map.data)
		xp_filemap_close(&sl->map);
	else
		free(sl->image);
	xp_vec_release(&sl->ranges);
	free(sl);
}

/* The ranges of one unit; false when the table is full. */
static bool add_unit(struct xp_srcline *sl, Dwarf_Die *die)
{
	Dwarf_Addr base, start, end;
	ptrdiff_t at = 0;

	while ((at = dwarf_ranges(die, at, &base, &start, &end)) > 0) {
		struct range *r;

		if (start >= end)
			continue;
		if (sl->ranges.n >= RANGES_MAX)
			return false;
		r = xp_vec_push(&sl->ranges);
		if (!r)
			return false;
		*r = (struct range){ start, end, dwarf_dieoffset(die) };
	}
	return true;
}

static int by_start(const void *a, const void *b)
{
	const struct range *x = a, *y = b;

	return (x->start > y->start) - (x->start < y->start);
}

/* Reads the head of every unit. A damaged one ends the scan; what was read before counts. */
static void scan(struct xp_srcline *sl)
{
	Dwarf_Off unit = 0, next;
	size_t header;

	sl->scanned = true;
	while (dwarf_nextcu(sl->dwarf, unit, &next, &header, NULL, NULL, NULL) == 0 &&
	       next > unit) {
		Dwarf_Die die;

		if (dwarf_offdie(sl->dwarf, unit + header, &die) && !add_unit(sl, &die))
			break;
		unit = next;
	}
	if (sl->ranges.n)
		qsort(sl->ranges.v, sl->ranges.n, sizeof(*sl->ranges.v), by_start);
}

static const struct range *range_at(const struct xp_srcline *sl, uint64_t vaddr)
{
	size_t low = 0, high = sl->ranges.n;

	while (low < high) {
		size_t mid = low + (high - low) / 2;

		if (sl->ranges.v[mid].start <= vaddr)
			low = mid + 1;
		else
			high = mid;
	}
	return low && sl->ranges.v[low - 1].end > vaddr ? &sl->ranges.v[low - 1] : NULL;
}

bool xp_srcline_find(struct xp_srcline *sl, uint64_t vaddr, const char **file, uint32_t *line)
{
	const struct range *r;
	Dwarf_Line *at;
	Dwarf_Die die;
	int number;

	if (!sl->scanned)
		scan(sl);
	r = range_at(sl, vaddr);
	if (!r || !dwarf_offdie(sl->dwarf, r->die, &die))
		return false;
	at = dwarf_getsrc_die(&die, vaddr);
	if (!at || dwarf_lineno(at, &number) || number <= 0)
		return false;
	*file = dwarf_linesrc(at, NULL, NULL);
	*line = (uint32_t)number;
	return *file && !sl->map.damaged;
}
