/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Formats of a report: one table of names and functions. A new format is a file and a line here.
 */
#ifndef XP_OUTPUT_OUTPUT_H
#define XP_OUTPUT_OUTPUT_H

#include <stdio.h>

#include "base/err.h"
#include "profile/view.h"

struct xp_output {
	const struct xp_view *view;
	const char *filter;		/* what was filtered for, as text for the header; NULL: nothing */
	double percent_limit;		/* rows below it are left out */
	bool by_self;			/* rank by self, not by total */
	bool header;			/* lines that begin with '#' before the data */
	bool rows;			/* false: the header only */
	bool colour;
	bool full_paths;		/* of dsos and sources; else the last part */
	bool annotate_kinds;		/* _[k], _[i], _[j] behind folded names */
	size_t width;			/* cells of a line, longer ones are cut; 0: no limit */
};

struct xp_output_format {
	const char *name;		/* NULL ends the table */
	const char *help;		/* one line */
	/* Writes all of it. 0 or -ENOMEM; errors of the stream are left in it for its owner. */
	int (*write)(FILE *out, const struct xp_output *o);
};

enum { XP_OUTPUT_TABLE, XP_OUTPUT_FOLDED, XP_OUTPUT_FORMATS };

extern const struct xp_output_format xp_output_formats[XP_OUTPUT_FORMATS + 1];

int xp_output_table(FILE *out, const struct xp_output *o);
int xp_output_folded(FILE *out, const struct xp_output *o);

#endif
