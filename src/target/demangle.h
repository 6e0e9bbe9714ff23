/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * C++ and Rust symbol names made readable (libiberty).
 */
#ifndef XP_TARGET_DEMANGLE_H
#define XP_TARGET_DEMANGLE_H

/*
 * A new string (free it), or NULL when the name is not mangled. Input longer than 16 KiB is left.
 */
char *xp_demangle(const char *name);

#endif
