/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The formats there are, the default one first.
 */
#include "output/output.h"

const struct xp_output_format xp_output_formats[XP_OUTPUT_FORMATS + 1] = {
	[XP_OUTPUT_TABLE] = { "table", "functions with self and total share", xp_output_table },
	[XP_OUTPUT_FOLDED] = { "folded", "one line per stack, for flamegraph.pl", xp_output_folded },
};
