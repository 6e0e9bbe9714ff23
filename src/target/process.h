/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A process as seen from outside: its identity and its executable mappings, kept in step with the
 * kernel's events by collect/.
 */
#ifndef XP_TARGET_PROCESS_H
#define XP_TARGET_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "target/dso.h"
#include "target/maps.h"

struct xp_process {
	pid_t pid;
	char comm[16];
	struct xp_maps maps;	/* executable ones; user is a struct xp_dso *, NULL: no file */
};

/* The dso of a mapping: its annotation. */
static inline struct xp_dso *xp_mapping_dso(const struct xp_mapping *m)
{
	return m->user;
}

#endif
