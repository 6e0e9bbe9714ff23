/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Source lines from the DWARF inside an ELF image (libdw). Opened lazily; compilation units are
 * looked at only when an address falls into them.
 */
#ifndef XP_TARGET_SRCLINE_H
#define XP_TARGET_SRCLINE_H

#include <stdbool.h>
#include <stdint.h>

#include "target/elf.h"

struct xp_srcline;

/* NULL when the image has no line information (errno 0) or it could not be opened (errno set). The
 * elf may be freed afterwards. */
struct xp_srcline *xp_srcline_new(const struct xp_elf *elf);
void xp_srcline_free(struct xp_srcline *sl);
/* File (owned by sl) and line of the statement at an address; false when unknown. */
bool xp_srcline_find(struct xp_srcline *sl, uint64_t vaddr, const char **file, uint32_t *line);

#endif
