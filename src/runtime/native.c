/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Names: a symbol, demangled; a function without one by its file and start, so that all its pcs are
 * one row of a report; "[unknown]" only where not even the bounds are known.
 */
#include "runtime/native.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "runtime/runtime.h"
#include "target/demangle.h"

/* Its frames come with every sample, so there is nothing to attach. */
extern const struct xp_runtime xp_runtime_native;
const struct xp_runtime xp_runtime_native = { .name = "native" };

int xp_native_init(struct xp_native *n, struct xp_profile *profile)
{
	int r;

	memset(n, 0, sizeof(*n));
	n->profile = profile;
	r = xp_strings_addz(&profile->strings, "native", &n->runtime_native);
	if (!r)
		r = xp_strings_addz(&profile->strings, "kernel", &n->runtime_kernel);
	return r;
}

static void *load_ksyms(void *arg)
{
	struct xp_native *n = arg;

	xp_ksyms_new(&n->ksyms, NULL, NULL);
	return NULL;
}

void xp_native_prepare(struct xp_native *n)
{
	n->ksyms_loading = !pthread_create(&n->ksyms_loader, NULL, load_ksyms, n);
	if (!n->ksyms_loading)
		load_ksyms(n);
}

/* n->ksyms is the loader's until it has ended. */
static void finish_loading(struct xp_native *n)
{
	if (n->ksyms_loading)
		pthread_join(n->ksyms_loader, NULL);
	n->ksyms_loading = false;
}

bool xp_native_ready(struct xp_native *n)
{
	if (n->ksyms_loading && !pthread_tryjoin_np(n->ksyms_loader, NULL))
		n->ksyms_loading = false;
	return !n->ksyms_loading;
}

void xp_native_release(struct xp_native *n)
{
	for (size_t i = 0; i < n->dsos.n; i++)
		xp_map_release(&n->dsos.v[i].cache);
	xp_vec_release(&n->dsos);
	xp_map_release(&n->kernel_cache);
	finish_loading(n);
	xp_ksyms_free(n->ksyms);
	n->ksyms = NULL;
}

bool xp_native_kernel_hidden(const struct xp_native *n)
{
	return n->ksyms_used && (!n->ksyms || xp_ksyms_restricted(n->ksyms));
}

/* The profile's entry for a file, and the cache of its frames. */
static struct xp_native_dso *dso_cache(struct xp_native *n, const struct xp_dso *dso)
{
	struct xp_strings *strings = &n->profile->strings;
	struct xp_dso_entry entry;
	struct xp_native_dso *d;

	while (n->dsos.n <= dso->id)
		if (!xp_vec_push(&n->dsos))
			return NULL;
	d = &n->dsos.v[dso->id];
	if (d->known)
		return d;
	if (xp_strings_addz(strings, dso->path, &entry.path) ||
	    xp_strings_addz(strings, dso->build_id, &entry.build_id) ||
	    xp_profile_add_dso(n->profile, &entry, &d->entry))
		return NULL;
	d->known = true;
	return d;
}

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash && slash[1] ? slash + 1 : path;
}

/* "[libruby-3.1.so.3.1+0x24ebd0]"; the vdso's path has brackets of its own. */
static int name_by_start(struct xp_native *n, const struct xp_dso *dso, uint64_t start,
			 uint32_t *name)
{
	const char *base = base_name(dso->path);
	int len = strlen(base), bracket = len > 2 && base[0] == '[' && base[len - 1] == ']';
	char text[300];

	snprintf(text, sizeof(text), "[%.*s+0x%llx]", len > 255 ? 255 : len - 2 * bracket,
		 base + bracket, (unsigned long long)start);
	return xp_strings_addz(&n->profile->strings, text, name);
}

static int name_dso_frame(struct xp_native *n, const struct xp_place *place, struct xp_frame *f)
{
	struct xp_strings *strings = &n->profile->strings;
	uint64_t lookup = place->addr - !place->exact;
	const char *file;
	struct xp_sym sym;
	char *readable;
	int r;

	if (!xp_dso_symbol(place->dso, lookup, &sym))
		return xp_strings_addz(strings, "[unknown]", &f->name);
	if (!sym.name)
		return name_by_start(n, place->dso, sym.start, &f->name);
	readable = xp_demangle(sym.name);
	r = xp_strings_addz(strings, readable ? readable : sym.name, &f->name);
	free(readable);
	if (!r && xp_dso_line(place->dso, lookup, &file, &f->line))
		r = xp_strings_addz(strings, file, &f->file);
	return r;
}

static int dso_frame(struct xp_native *n, const struct xp_place *place, uint32_t *frame)
{
	struct xp_native_dso *d = dso_cache(n, place->dso);
	struct xp_frame f = {
		.runtime = n->runtime_native,
		.kind = XP_FRAME_NORMAL,
		.addr = place->addr,
	};
	uint64_t key = place->addr << 1 | place->exact, *known;
	int r;

	if (!d)
		return -ENOMEM;
	known = xp_map_get(&d->cache, key);
	if (known) {
		*frame = *known;
		return 0;
	}
	f.dso = d->entry;
	r = name_dso_frame(n, place, &f);
	if (!r)
		r = xp_profile_add_frame(n->profile, &f, frame);
	if (!r)
		r = xp_map_set(&d->cache, key, *frame);
	return r;
}

/* The profile's entry for "[kernel]" or a module. */
static int kernel_dso(struct xp_native *n, const char *module, uint32_t *id)
{
	struct xp_dso_entry entry = { 0 };
	int r = xp_strings_addz(&n->profile->strings, module, &entry.path);

	return r ? r : xp_profile_add_dso(n->profile, &entry, id);
}

static int kernel_frame(struct xp_native *n, uint64_t addr, bool exact, uint32_t *frame)
{
	uint64_t *known = xp_map_get(&n->kernel_cache, addr << 1 | exact);
	struct xp_ksym sym = { .name = "[kernel+unknown]", .module = "[kernel]" };
	struct xp_frame f = {
		.runtime = n->runtime_kernel,
		.kind = XP_FRAME_KERNEL,
		.addr = addr,
	};
	int r;

	if (known) {
		*frame = *known;
		return 0;
	}
	finish_loading(n);
	n->ksyms_used = true;
	if (n->ksyms)
		xp_ksyms_find(n->ksyms, addr - !exact, &sym);
	r = kernel_dso(n, sym.module, &f.dso);
	if (!r)
		r = xp_strings_addz(&n->profile->strings, sym.name, &f.name);
	if (!r)
		r = xp_profile_add_frame(n->profile, &f, frame);
	if (!r)
		r = xp_map_set(&n->kernel_cache, addr << 1 | exact, *frame);
	return r;
}

/* Code of an engine that we know nothing about, or an address that is no code: kept apart by pc. */
static int bare_frame(struct xp_native *n, const struct xp_place *place, uint32_t *frame)
{
	bool jit = place->kind == XP_PLACE_ANON;
	struct xp_frame f = {
		.runtime = n->runtime_native,
		.kind = jit ? XP_FRAME_JIT : XP_FRAME_NORMAL,
		.dso = XP_NO_ID,
		.addr = place->addr,
	};
	int r = xp_strings_addz(&n->profile->strings, jit ? "[jit]" : "[unknown]", &f.name);

	return r ? r : xp_profile_add_frame(n->profile, &f, frame);
}

int xp_native_frame(struct xp_native *n, const struct xp_place *place, uint32_t *frame)
{
	switch (place->kind) {
	case XP_PLACE_DSO:
		return dso_frame(n, place, frame);
	case XP_PLACE_KERNEL:
		return kernel_frame(n, place->addr, place->exact, frame);
	default:
		return bare_frame(n, place, frame);
	}
}

int xp_native_mark(struct xp_native *n, const char *text, uint32_t *frame)
{
	struct xp_frame f = { .kind = XP_FRAME_MARK, .dso = XP_NO_ID };
	int r = xp_strings_addz(&n->profile->strings, text, &f.name);

	return r ? r : xp_profile_add_frame(n->profile, &f, frame);
}
