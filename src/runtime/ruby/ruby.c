// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Ruby as a runtime: what was found in its file, confirmed on each process, and frames by name.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/ruby.h"
#include "runtime/ruby/attach.h"
#include "runtime/ruby/image.h"
#include "runtime/ruby/names.h"
#include "runtime/runtime.h"

#define PHASES 4		/* bits 0 and 1 of the objspace's flags: the mode (gc.c) */

extern const struct xp_runtime xp_runtime_ruby;

struct ruby {			/* a process's */
	struct xp_mem mem;
	struct xp_ruby_names *names;
	uint8_t gc_bit;
	struct xp_ruby value;
	const struct xp_profile *profile;	/* where the frames are; NULL: none yet */
	uint32_t gc_frames[PHASES];
};

static int probe(struct xp_dso *dso, void **data, struct xp_err *err)
{
	struct xp_ruby_image *image = malloc(sizeof(*image));
	int rc = image ? xp_ruby_image_read(image, dso, err) : -ENOMEM;

	*data = NULL;
	if (rc == 1)
		*data = image;
	else
		free(image);
	return rc;
}

static void free_data(void *data)
{
	free(data);
}

static void detach(void *state)
{
	struct ruby *ruby = state;

	if (!ruby)
		return;
	xp_ruby_names_free(ruby->names);
	free(ruby);
}

static struct ruby *new_ruby(const struct xp_ruby_image *image, uint64_t bias,
			     const struct xp_mem *mem)
{
	struct xp_ruby_symbols symbols = {
		.table = bias + image->symbols, .last_op_id = image->last_op_id,
		.shift = image->id_shift,
	};
	struct ruby *ruby = calloc(1, sizeof(*ruby));

	if (!ruby)
		return NULL;
	ruby->mem = *mem;
	ruby->gc_bit = image->gc_bit;
	if (xp_ruby_names_new(&ruby->names, image->layout, &symbols, &ruby->mem)) {
		free(ruby);
		return NULL;
	}
	return ruby;
}

static enum xp_attach attach(const void *data, const struct xp_process *process,
			     const struct xp_mapping *mapping, const struct xp_mem *mem,
			     void *value, void **state, struct xp_err *err)
{
	const struct xp_ruby_image *image = data;
	const struct xp_dso *dso = xp_mapping_dso(mapping);
	enum xp_attach rc;
	struct ruby *ruby;
	uint64_t bias;

	(void)process;
	*state = NULL;
	if (!dso || !xp_dso_bias(dso, mapping, &bias)) {
		xp_err_set(err, ENOTSUP, "ruby %s: its file is not mapped in one piece",
			   image->version);
		return XP_ATTACH_REFUSED;
	}
	ruby = new_ruby(image, bias, mem);
	if (!ruby) {
		xp_err_sys(err, ENOMEM, "ruby %s", image->version);
		return XP_ATTACH_LATER;
	}
	rc = xp_ruby_confirm(image, bias, mem, ruby->names, &ruby->value, err);
	if (rc == XP_ATTACH_DONE) {
		memcpy(value, &ruby->value, sizeof(ruby->value));
		*state = ruby;
	} else {
		detach(ruby);
	}
	return rc;
}

static void title(const void *data, char *out, size_t size)
{
	const struct xp_ruby_image *image = data;

	snprintf(out, size, "ruby %s", image->version);
}

static bool in_loop(const void *data, uint64_t vaddr)
{
	const struct xp_ruby_image *image = data;

	return vaddr >= image->core[0] && vaddr < image->core[1];
}

static int symbolize(void *state, const struct xp_raw_vm_frame *raw, bool leaf, uint64_t batch,
		     struct xp_profile *profile, uint32_t *frame)
{
	struct ruby *ruby = state;

	return xp_ruby_names_frame(ruby->names, raw, leaf, batch, profile, frame);
}

static int add_gc_frame(struct xp_profile *profile, unsigned phase, uint32_t *id)
{
	static const char *const names[PHASES] = {
		"(garbage collection)", "(garbage collection: marking)",
		"(garbage collection: sweeping)", "(garbage collection: compacting)",
	};
	struct xp_frame frame = { .kind = XP_FRAME_GC, .dso = XP_NO_ID };
	int rc = xp_strings_addz(&profile->strings, "ruby", &frame.runtime);

	if (!rc)
		rc = xp_strings_addz(&profile->strings, names[phase], &frame.name);
	return rc ? rc : xp_profile_add_frame(profile, &frame, id);
}

static int state_frame(void *state, uint32_t word, struct xp_profile *profile, uint32_t *frame)
{
	struct ruby *ruby = state;
	uint32_t *cached = &ruby->gc_frames[word % PHASES];
	int rc = 0;

	*frame = XP_NO_ID;
	if (!(word >> ruby->gc_bit & 1))
		return 0;
	if (ruby->profile != profile) {
		for (unsigned i = 0; i < PHASES; i++)
			ruby->gc_frames[i] = XP_NO_ID;
		ruby->profile = profile;
	}
	if (*cached == XP_NO_ID)
		rc = add_gc_frame(profile, word % PHASES, cached);
	*frame = *cached;
	return rc;
}

static void describe_access(const struct xp_ruby *value, struct xp_buf *out)
{
	long long offset = value->ec_offset;

	if (value->ec_mode == XP_RUBY_EC_DTV)
		xp_buf_printf(out, "execution context by the DTV, module %u", value->tls_module);
	else
		xp_buf_printf(out, "execution context at thread pointer %c %#llx",
			      offset < 0 ? '-' : '+', offset < 0 ? -offset : offset);
}

static void describe(const void *data, const void *state, struct xp_buf *out)
{
	const struct xp_ruby_image *image = data;
	const struct ruby *ruby = state;

	xp_buf_printf(out, "ruby %s: %s", image->version, image->how);
	if (!ruby)
		return;
	xp_buf_printf(out, "; confirmed on the live process: ");
	describe_access(&ruby->value, out);
	xp_buf_printf(out, ", jump buffers of %s: ready",
		      ruby->value.jmpbuf == XP_RUBY_JMPBUF_GLIBC ? "glibc" : "the compiler");
}

const struct xp_runtime xp_runtime_ruby = {
	.name = "ruby",
	.probe = probe,
	.free_data = free_data,
	.attach = attach,
	.value_size = sizeof(struct xp_ruby),
	.detach = detach,
	.symbolize = symbolize,
	.in_loop = in_loop,
	.title = title,
	.state_frame = state_frame,
	.describe = describe,
};
