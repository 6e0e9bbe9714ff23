/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The lines before a report: what was recorded, where, how, and what is missing.
 */
#ifndef XP_OUTPUT_HEADER_H
#define XP_OUTPUT_HEADER_H

#include "output/output.h"

/* Each line begins with "# ". weight: of the samples in view; hidden: of those without frames. */
int xp_output_header(FILE *out, const struct xp_output *o, uint64_t weight, uint64_t hidden);

#endif
