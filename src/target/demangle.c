// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * C++ and Rust symbol names made readable (libiberty).
 *
 * libiberty knows the Itanium C++ ABI and both of Rust's manglings, limits its own recursion
 * (2,048 levels, demangle.h: DEMANGLE_RECURSION_LIMIT) and drops the hash of Rust's legacy names
 * unless asked for verbose output (rust-demangle.c). Other names are not even tried.
 */
#include "target/demangle.h"

#include <libiberty/demangle.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define INPUT_MAX (16u << 10)
#define OUTPUT_MAX (64u << 10)	/* substitutions let a short name grow without bound */

struct output {
	char *text;
	size_t n;
	bool failed;
};

/* Called by libiberty with each piece of the result. */
static void append(const char *piece, size_t n, void *opaque)
{
	struct output *out = opaque;

	if (out->failed || n > OUTPUT_MAX - out->n) {
		out->failed = true;
		return;
	}
	memcpy(out->text + out->n, piece, n);
	out->n += n;
}

/* _Z of C++ and Rust's legacy scheme, _R of Rust's v0. */
static bool is_mangled(const char *name)
{
	return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
}

char *xp_demangle(const char *name)
{
	const int flags = DMGL_PARAMS | DMGL_ANSI;
	struct output out = { NULL, 0, false };
	char *shorter;
	int ok;

	if (!name || !is_mangled(name) || strnlen(name, INPUT_MAX + 1) > INPUT_MAX)
		return NULL;
	out.text = malloc(OUTPUT_MAX + 1);
	if (!out.text)
		return NULL;
	/* Rust's legacy names are valid C++ names too: Rust is asked first. */
	ok = rust_demangle_callback(name, flags, append, &out);
	if (!ok) {
		out.n = 0;
		out.failed = false;
		ok = cplus_demangle_v3_callback(name, flags, append, &out);
	}
	if (!ok || out.failed || out.n == 0) {
		free(out.text);
		return NULL;
	}
	out.text[out.n] = 0;
	shorter = realloc(out.text, out.n + 1);
	return shorter ? shorter : out.text;
}
