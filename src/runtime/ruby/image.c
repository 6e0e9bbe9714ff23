// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Reading a Ruby's file: its version, then one step after the other, named when it fails.
 */
#include "runtime/ruby/image.h"

#include <elf.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "runtime/ruby/image_impl.h"

/* The exported string ruby_version. False: this file has none. */
static bool find_version(const struct xp_elf *elf, const uint8_t **text, size_t *n)
{
	struct xp_export sym;

	if (!xp_elf_export(elf, "ruby_version", &sym) || sym.type != STT_OBJECT)
		return false;
	for (*n = sizeof(((struct xp_ruby_image *)NULL)->version); *n > 0; --*n) {
		/* A program's copy of the variable (R_X86_64_COPY) has no bytes in its file. */
		*text = xp_elf_at_vaddr(elf, sym.value, *n);
		if (*text)
			return true;
	}
	return false;
}

/* Digits and dots, terminated. */
static int read_version(struct xp_ruby_image *image, const uint8_t *text, size_t n,
			struct xp_err *err)
{
	char copy[sizeof(image->version) + 1] = "";
	unsigned major, minor;
	size_t len;

	/* Copied first, since the file may be written to meanwhile. */
	memcpy(copy, text, n);
	len = strspn(copy, "0123456789.");
	if (len == n || copy[len] || sscanf(copy, "%3u.%3u", &major, &minor) != 2)
		return xp_err_set(err, ENOTSUP, "ruby: ruby_version is not a version");
	memcpy(image->version, copy, sizeof(image->version));
	image->layout = xp_ruby_layout_of(major, minor);
	if (!image->layout)
		return xp_err_set(err, ENOTSUP, "ruby %s: this version's structures are not known",
				  image->version);
	return 0;
}

static void tell_how(struct xp_ruby_image *image, unsigned labels)
{
	static const char *const access[] = {
		[XP_RUBY_EC_DYNAMIC] = "TLS", [XP_RUBY_EC_INITIAL] = "initial-exec TLS",
		[XP_RUBY_EC_LOCAL] = "local-exec TLS",
	};
	long long offset = image->ec_offset;

	snprintf(image->how, sizeof(image->how),
		 "execution context by %s (offset %s%#llx, from rb_thread_current), "
		 "VM from rb_during_gc, symbols from rb_id2str, "
		 "interpreter loop %#llx-%#llx by its label table (%u labels)",
		 access[image->ec_access], offset < 0 ? "-" : "", offset < 0 ? -offset : offset,
		 (unsigned long long)image->core[0], (unsigned long long)image->core[1], labels);
}

static int read_steps(struct xp_ruby_image *image, const struct xp_elf *elf,
		      const struct xp_cfi *cfi, struct xp_err *err)
{
	struct xp_ruby_reader r = { .image = image, .elf = elf, .cfi = cfi, .err = err };
	int rc = xp_relocs_read(&r.relocs, elf);

	if (!rc)
		rc = xp_ruby_read_thread_current(&r);
	if (!rc)
		rc = xp_ruby_read_during_gc(&r);
	if (!rc)
		rc = xp_ruby_read_id2str(&r);
	if (!rc)
		rc = xp_ruby_read_loop(&r);
	if (!rc)
		tell_how(image, r.labels);
	xp_relocs_release(&r.relocs);
	return rc;
}

int xp_ruby_image_read(struct xp_ruby_image *image, struct xp_dso *dso, struct xp_err *err)
{
	const uint8_t *text;
	bool borrowed;
	size_t n;
	int rc;

	memset(image, 0, sizeof(*image));
	if (!dso->elf || !find_version(dso->elf, &text, &n))
		return 0;
	rc = read_version(image, text, n, err);
	if (rc)
		return rc;
	if (dso->elf->machine != EM_X86_64)
		return xp_err_set(err, ENOTSUP, "ruby %s: not x86-64 machine code", image->version);
	/* Bounds of functions stay when rows are dropped; rows made for them alone go again. */
	borrowed = !dso->cfi_built && !dso->cfi.funcs.n;
	if (borrowed) {
		rc = xp_dso_need_rows(dso);
		if (rc)
			return rc;
	}
	rc = read_steps(image, dso->elf, &dso->cfi, err);
	if (borrowed)
		xp_dso_drop_rows(dso);
	return rc ? rc : 1;
}
