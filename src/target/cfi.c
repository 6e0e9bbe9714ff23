// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builds the table of unwind rows of an image: finds .eh_frame and .debug_frame, runs their FDEs in
 * the order of their addresses, numbers the distinct rules.
 */
#include "target/cfi.h"

#include <elf.h>
#include <errno.h>
#include <libelf.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "target/cfi_blob.h"
#include "target/cfi_impl.h"

#define ROWS_MAX 4000000	/* with the XP_RULE_NONE at the end */
#define PADDING_MAX 16		/* a gap this short between functions is alignment */
#define INFLATED_MAX (256u << 20)	/* bytes of a compressed section, before and after */

enum source { EH_FRAME = 1, DEBUG_FRAME = 2 };

struct builder {
	struct xp_cfi *cfi;
	struct xp_cfi_entries eh, debug;
	struct xp_cfi_func code;		/* where functions of debug may be */
	unsigned sources;			/* enum source: what gave rows */
	struct xp_index index;			/* of cfi->rules */
	struct xp_cfi_run run;
};

static bool same_rule(const struct xp_rule *a, const struct xp_rule *b)
{
	return memcmp(a, b, sizeof(*a)) == 0;
}

static bool rule_equal(const void *rules, const void *key, uint32_t id)
{
	return same_rule((const struct xp_rule *)rules + id, key);
}

/* The rule's number, a new one for a new rule. 0 or -ENOMEM. */
static int intern(struct builder *b, const struct xp_rule *rule, uint32_t *id)
{
	struct xp_cfi *cfi = b->cfi;
	uint64_t hash = xp_hash_bytes(rule, sizeof(*rule), 0);
	struct xp_rule *added;

	*id = xp_index_find(&b->index, hash, rule_equal, cfi->rules.v, rule);
	if (*id == XP_INDEX_NONE) {
		*id = (uint32_t)cfi->rules.n;
		added = xp_vec_push(&cfi->rules);
		if (!added || xp_index_add(&b->index, hash, *id))
			return -ENOMEM;
		*added = *rule;
	}
	return 0;
}

/* Appends a row unless it says what the one before says. 0, -ENOMEM, -ENOSPC: too many. */
static int add_row(struct builder *b, uint64_t vaddr, const struct xp_rule *rule)
{
	struct xp_cfi *cfi = b->cfi;
	struct xp_cfi_row *row;
	uint32_t id;

	if (cfi->rows.n) {
		row = &cfi->rows.v[cfi->rows.n - 1];
		if (same_rule(&cfi->rules.v[row->rule], rule))
			return 0;
	}
	if (cfi->rows.n >= ROWS_MAX - 1 && rule->kind != XP_RULE_NONE)
		return -ENOSPC;
	if (intern(b, rule, &id))
		return -ENOMEM;
	row = xp_vec_push(&cfi->rows);
	if (!row)
		return -ENOMEM;
	*row = (struct xp_cfi_row){ vaddr, id };
	return 0;
}

static int add_none(struct builder *b, uint64_t vaddr)
{
	return add_row(b, vaddr, &(struct xp_rule){ .kind = XP_RULE_NONE });
}

/* Appends an FDE's rows. 0, -ENOMEM, -ENOSPC, -EINVAL: malformed. */
static int run_fde(struct builder *b, const struct xp_cfi_entries *es, const struct xp_cfi_fde *fde)
{
	struct xp_cfi_run *run = &b->run;
	int rc;

	xp_cfi_run_init(run, es, fde);
	while ((rc = xp_cfi_run_next(run)) > 0) {
		struct xp_rule rule = xp_cfi_rule(run->arch, run->cie, &run->state);

		rc = add_row(b, run->pc, &rule);
		if (rc)
			return rc;
	}
	return rc;
}

/* Appends one function, or nothing of it and counts it as bad. 0 or -ENOMEM. */
static int add_fde(struct builder *b, const struct xp_cfi_entries *es, const struct xp_cfi_fde *fde)
{
	struct xp_cfi *cfi = b->cfi;
	const struct xp_cfi_func *last = cfi->funcs.n ? &cfi->funcs.v[cfi->funcs.n - 1] : NULL;
	size_t nrows = cfi->rows.n;
	struct xp_cfi_func *func;
	int rc = 0;

	if (last && fde->start < last->end) {
		cfi->bad_fdes++;
		return 0;
	}
	if (last && fde->start - last->end > PADDING_MAX)
		rc = add_none(b, last->end);
	if (!rc)
		rc = run_fde(b, es, fde);
	if (rc == -EINVAL || rc == -ENOSPC) {
		cfi->rows.n = nrows;
		cfi->bad_fdes++;
		return 0;
	}
	if (rc)
		return rc;
	func = xp_vec_push(&cfi->funcs);
	if (!func)
		return -ENOMEM;
	*func = (struct xp_cfi_func){ fde->start, fde->end };
	b->sources |= es->debug_frame ? DEBUG_FRAME : EH_FRAME;
	return 0;
}

/*
 * Appends a function of .debug_frame where .eh_frame has none; next is what .eh_frame has next. A
 * function that is there already is not missed: linkers also keep one entry for each of the
 * definitions that they merged into one. What is outside the code was discarded.
 */
static int add_debug_fde(struct builder *b, const struct xp_cfi_fde *fde,
			 const struct xp_cfi_fde *next)
{
	struct xp_cfi *cfi = b->cfi;
	const struct xp_cfi_func *last = cfi->funcs.n ? &cfi->funcs.v[cfi->funcs.n - 1] : NULL;

	if (fde->start < b->code.start || fde->end > b->code.end)
		return 0;
	if (last && fde->start >= last->start && fde->end <= last->end)
		return 0;
	if (next && next->start < fde->end) {
		cfi->bad_fdes++;
		return 0;
	}
	return add_fde(b, &b->debug, fde);
}

/* Both sections' FDEs by address; of equal ones that of .eh_frame first. */
static int add_fdes(struct builder *b)
{
	size_t neh = b->eh.fdes.n, ndebug = b->debug.fdes.n, eh = 0, debug = 0;
	int rc = 0;

	while (!rc && (eh < neh || debug < ndebug)) {
		if (debug == ndebug || (eh < neh && b->eh.fdes.v[eh].start <=
						    b->debug.fdes.v[debug].start))
			rc = add_fde(b, &b->eh, &b->eh.fdes.v[eh++]);
		else
			rc = add_debug_fde(b, &b->debug.fdes.v[debug++],
					   eh < neh ? &b->eh.fdes.v[eh] : NULL);
	}
	return rc;
}

static int add_all(struct builder *b)
{
	struct xp_cfi *cfi = b->cfi;
	int rc = add_fdes(b);

	if (rc)
		return rc;
	for (size_t i = 0; i < cfi->rows.n; i++)
		cfi->bad_rows += cfi->rules.v[cfi->rows.v[i].rule].kind == XP_RULE_BAD;
	if (!cfi->funcs.n)
		return 0;
	return add_none(b, cfi->funcs.v[cfi->funcs.n - 1].end);
}

static int read_entries(struct builder *b, struct xp_cfi_entries *es,
			const struct xp_section *section)
{
	int rc;

	es->data = section->data;
	es->size = section->size;
	es->vaddr = section->addr;
	rc = xp_cfi_entries_read(es);
	b->cfi->nfdes += es->nfdes;
	b->cfi->bad_fdes += es->bad_fdes;
	return rc;
}

/* What an image has; a section that is not there has no data. */
struct input {
	struct xp_section eh, debug;
	bool stop_at_zero;		/* where eh ends is not known */
	struct xp_cfi_func code;	/* where functions of debug may be */
};

static int build(struct xp_cfi *cfi, uint16_t machine, const struct input *in, struct xp_err *err)
{
	static const char *const sources[] = {
		[EH_FRAME] = ".eh_frame", [DEBUG_FRAME] = ".debug_frame",
		[EH_FRAME | DEBUG_FRAME] = ".eh_frame+.debug_frame",
	};
	const struct xp_cfi_arch *arch = xp_cfi_arch_of(machine);
	struct builder b = { .cfi = cfi, .code = in->code,
			     .eh = { .arch = arch, .stop_at_zero = in->stop_at_zero },
			     .debug = { .arch = arch, .debug_frame = true } };
	int rc;

	if (!arch)
		return 0;
	if (in->eh.size > UINT32_MAX || in->debug.size > UINT32_MAX)
		return xp_err_set(err, EINVAL, "%s is larger than 4 GiB",
				  in->eh.size > UINT32_MAX ? ".eh_frame" : ".debug_frame");
	rc = read_entries(&b, &b.eh, &in->eh);
	if (!rc)
		rc = read_entries(&b, &b.debug, &in->debug);
	if (!rc)
		rc = add_all(&b);
	xp_cfi_entries_release(&b.eh);
	xp_cfi_entries_release(&b.debug);
	xp_index_release(&b.index);
	if (rc) {
		xp_cfi_release(cfi);
		return xp_err_set(err, -rc, "out of memory for unwind rows");
	}
	cfi->source = sources[b.sources];
	return 0;
}

int xp_cfi_build_sections(struct xp_cfi *cfi, uint16_t machine, const struct xp_section *eh_frame,
			  const struct xp_section *debug_frame, struct xp_err *err)
{
	struct input in = { .code = { 0, UINT64_MAX } };

	*cfi = (struct xp_cfi){ 0 };
	if (eh_frame)
		in.eh = *eh_frame;
	if (debug_frame)
		in.debug = *debug_frame;
	return build(cfi, machine, &in, err);
}

/*
 * .eh_frame of an image without section headers, through the pointer in .eh_frame_hdr (LSB core,
 * "The .eh_frame_hdr section"). Its size is not told: it is what is left of the segment, and the
 * entry of length 0 ends it.
 */
static bool find_by_header(const struct xp_elf *elf, const struct xp_section *hdr,
			   struct xp_section *out)
{
	struct xp_cur c = xp_cur_of(hdr->data, hdr->size);
	uint8_t version = xp_cur_u8(&c);
	uint8_t encoding = xp_cur_u8(&c);

	xp_cur_u16(&c);			/* encodings of the search table, which is not used */
	out->addr = xp_cfi_pointer(&c, encoding, hdr->addr + 4);
	if (c.bad || version != 1)
		return false;
	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct xp_segment *seg = &elf->segments[i];

		if (out->addr < seg->vaddr || out->addr - seg->vaddr >= seg->filesz)
			continue;
		out->size = seg->filesz - (out->addr - seg->vaddr);
		out->data = xp_elf_at_vaddr(elf, out->addr, out->size);
		return out->data != NULL;
	}
	return false;
}

/* False when there is an .eh_frame that cannot be found. */
static bool find_eh_frame(const struct xp_elf *elf, struct input *in)
{
	struct xp_section hdr;

	if (xp_elf_section(elf, ".eh_frame", &in->eh)) {
		if (!in->eh.data)	/* a file of debugging information: it is elsewhere */
			in->eh.size = 0;
		return true;
	}
	if (!xp_elf_eh_frame_hdr(elf, &hdr) || !hdr.data)
		return true;
	in->stop_at_zero = true;
	return find_by_header(elf, &hdr, &in->eh);
}

static struct xp_cfi_func code_of(const struct xp_elf *elf)
{
	struct xp_cfi_func code = { UINT64_MAX, 0 };

	for (size_t i = 0; i < elf->nsegments; i++) {
		const struct xp_segment *seg = &elf->segments[i];

		if (!seg->exec)
			continue;
		if (seg->vaddr < code.start)
			code.start = seg->vaddr;
		if (seg->vaddr + seg->memsz > code.end)
			code.end = seg->vaddr + seg->memsz;
	}
	return code;
}

/* A whole ELF image around one section. */
struct one_section {
	Elf64_Ehdr header;
	Elf64_Shdr sections[2];
	uint8_t data[];
};

struct inflated {
	struct one_section *image;
	Elf *elf;			/* over image; owns the decompressed bytes */
};

static void release(struct inflated *inflated)
{
	elf_end(inflated->elf);
	free(inflated->image);
}

/* An image in memory with nothing but this section. */
static struct one_section *image_of(const struct xp_section *s)
{
	struct one_section *image = calloc(1, sizeof(*image) + s->size);

	if (!image)
		return NULL;
	image->header = (Elf64_Ehdr){
		.e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64, ELFDATA2LSB,
			     EV_CURRENT },
		.e_type = ET_DYN, .e_machine = EM_X86_64, .e_version = EV_CURRENT,
		.e_shoff = offsetof(struct one_section, sections), .e_ehsize = sizeof(Elf64_Ehdr),
		.e_shentsize = sizeof(Elf64_Shdr), .e_shnum = 2,
	};
	image->sections[1] = (Elf64_Shdr){
		.sh_type = SHT_PROGBITS, .sh_flags = SHF_COMPRESSED, .sh_addralign = 8,
		.sh_offset = offsetof(struct one_section, data), .sh_size = s->size,
	};
	memcpy(image->data, s->data, s->size);
	return image;
}

/*
 * Decompresses a section, in an image of its own: elf_compress() writes to the section header
 * where it is in memory (elfutils 0.188, libelf/elf_compress.c), which must not happen to the image
 * that others read and that may be mapped read-only. False when it cannot be read; that may be for
 * a format that libelf does not know.
 */
static bool inflate(struct inflated *to, struct xp_section *s)
{
	Elf64_Chdr ch;
	Elf_Data *data;
	Elf_Scn *scn;

	if (s->size < sizeof(ch) || s->size > INFLATED_MAX)
		return false;
	memcpy(&ch, s->data, sizeof(ch));
	if (ch.ch_size > INFLATED_MAX)
		return false;
	to->image = image_of(s);
	if (!to->image)
		return false;
	to->elf = elf_memory((char *)to->image, sizeof(*to->image) + s->size);
	scn = elf_getscn(to->elf, 1);
	if (!scn || elf_compress(scn, 0, 0) < 0)
		return false;
	data = elf_rawdata(scn, NULL);
	if (!data || !data->d_buf)
		return false;
	s->data = data->d_buf;
	s->size = data->d_size;
	return true;
}

/*
 * .debug_frame of an image. One that cannot be read is left out like a malformed FDE. Without code
 * (a relocatable file, whose addresses are not final) there is nothing to look for.
 */
static void find_debug_frame(const struct xp_elf *elf, struct input *in,
			     struct inflated *inflated, struct xp_cfi *cfi)
{
	struct xp_section *s = &in->debug;
	bool ok = true;

	in->code = code_of(elf);
	if (!in->code.end || !xp_elf_section(elf, ".debug_frame", s))
		return;
	if (s->data && (s->flags & SHF_COMPRESSED))
		ok = inflate(inflated, s);
	else if (s->data)
		ok = s->size <= UINT32_MAX;
	if (!ok)
		cfi->nfdes = cfi->bad_fdes = 1;
	if (!ok || !s->data)
		*s = (struct xp_section){ 0 };
}

int xp_cfi_build(struct xp_cfi *cfi, const struct xp_elf *elf, struct xp_err *err)
{
	struct inflated inflated = { 0 };
	struct input in = { 0 };
	int rc;

	*cfi = (struct xp_cfi){ 0 };
	if (!find_eh_frame(elf, &in))
		return xp_err_set(err, EINVAL, ".eh_frame_hdr does not lead to .eh_frame");
	find_debug_frame(elf, &in, &inflated, cfi);
	rc = build(cfi, elf->machine, &in, err);
	release(&inflated);
	if (!rc && (xp_cfi_mend_blobs(cfi, elf) || xp_cfi_mend_stubs(cfi, elf))) {
		xp_cfi_release(cfi);
		rc = xp_err_set(err, ENOMEM, "out of memory for unwind rows");
	}
	return rc;
}

void xp_cfi_release(struct xp_cfi *cfi)
{
	xp_vec_release(&cfi->rows);
	xp_vec_release(&cfi->rules);
	xp_vec_release(&cfi->funcs);
	*cfi = (struct xp_cfi){ 0 };
}

const struct xp_rule *xp_cfi_rule_at(const struct xp_cfi *cfi, uint64_t vaddr)
{
	size_t lo = 0, hi = cfi->rows.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cfi->rows.v[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? &cfi->rules.v[cfi->rows.v[lo - 1].rule] : NULL;
}

const struct xp_cfi_func *xp_cfi_func_at(const struct xp_cfi *cfi, uint64_t vaddr)
{
	size_t lo = 0, hi = cfi->funcs.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cfi->funcs.v[mid].start <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (!lo || vaddr >= cfi->funcs.v[lo - 1].end)
		return NULL;
	return &cfi->funcs.v[lo - 1];
}
