/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Values of options: from the text on the command line to the destination of a table entry.
 */
#ifndef XP_BASE_OPTVAL_H
#define XP_BASE_OPTVAL_H

#include <stdbool.h>
#include <stddef.h>

#include "base/opt.h"

#define XP_OPT_WHY 200

/* Whether the option wants a value: "--name=value" or the next word. */
bool xp_opt_wants_value(const struct xp_opt *o);
/*
 * Stores the value. 0, -ENOMEM, or -EINVAL with why saying what the value must be ("must be a
 * number from 1 to 10"); the destination is then unchanged.
 */
int xp_opt_value(const struct xp_opt *o, const char *text, char why[XP_OPT_WHY]);

#endif
