// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Builds the table of unwind rows of an image: finds .eh_frame, runs its FDEs in the order of their
 * addresses, numbers the distinct rules.
 */
#include "target/cfi.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "target/cfi_impl.h"

#define ROWS_MAX 4000000	/* with the XP_RULE_NONE at the end */
#define PADDING_MAX 16		/* a gap this short between functions is alignment */

struct builder {
	struct xp_cfi *cfi;
	const struct xp_cfi_entries *entries;
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
static int run_fde(struct builder *b, const struct xp_cfi_fde *fde)
{
	struct xp_cfi_run *run = &b->run;
	int rc;

	xp_cfi_run_init(run, b->entries, fde);
	while ((rc = xp_cfi_run_next(run)) > 0) {
		struct xp_rule rule = xp_cfi_rule(run->arch, run->cie, &run->state);

		rc = add_row(b, run->pc, &rule);
		if (rc)
			return rc;
	}
	return rc;
}

/* Appends one function, or nothing of it and counts it as bad. 0 or -ENOMEM. */
static int add_fde(struct builder *b, const struct xp_cfi_fde *fde)
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
		rc = run_fde(b, fde);
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
	return 0;
}

static int add_all(struct builder *b)
{
	struct xp_cfi *cfi = b->cfi;

	for (size_t i = 0; i < b->entries->fdes.n; i++) {
		int rc = add_fde(b, &b->entries->fdes.v[i]);

		if (rc)
			return rc;
	}
	for (size_t i = 0; i < cfi->rows.n; i++)
		cfi->bad_rows += cfi->rules.v[cfi->rows.v[i].rule].kind == XP_RULE_BAD;
	if (!cfi->funcs.n)
		return 0;
	return add_none(b, cfi->funcs.v[cfi->funcs.n - 1].end);
}

static int build(struct xp_cfi *cfi, uint16_t machine, const struct xp_section *section,
		 bool stop_at_zero, struct xp_err *err)
{
	struct xp_cfi_entries entries = { .arch = xp_cfi_arch_of(machine), .data = section->data,
					  .size = section->size, .vaddr = section->addr };
	struct builder b = { .cfi = cfi, .entries = &entries };
	int rc;

	if (!entries.arch)
		return 0;
	if (section->size > UINT32_MAX)
		return xp_err_set(err, EINVAL, ".eh_frame is larger than 4 GiB");
	rc = xp_cfi_entries_read(&entries, stop_at_zero);
	cfi->nfdes = entries.nfdes;
	cfi->bad_fdes = entries.bad_fdes;
	if (!rc)
		rc = add_all(&b);
	xp_cfi_entries_release(&entries);
	xp_index_release(&b.index);
	if (rc) {
		xp_cfi_release(cfi);
		return xp_err_set(err, -rc, "out of memory for unwind rows");
	}
	cfi->source = ".eh_frame";
	return 0;
}

int xp_cfi_build_section(struct xp_cfi *cfi, uint16_t machine, const struct xp_section *section,
			 struct xp_err *err)
{
	*cfi = (struct xp_cfi){ 0 };
	return build(cfi, machine, section, false, err);
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

int xp_cfi_build(struct xp_cfi *cfi, const struct xp_elf *elf, struct xp_err *err)
{
	struct xp_section section, hdr;

	*cfi = (struct xp_cfi){ 0 };
	if (xp_elf_section(elf, ".eh_frame", &section)) {
		if (!section.data)	/* a file of debugging information: the text is elsewhere */
			return 0;
		return build(cfi, elf->machine, &section, false, err);
	}
	if (!xp_elf_eh_frame_hdr(elf, &hdr) || !hdr.data)
		return 0;
	if (!find_by_header(elf, &hdr, &section))
		return xp_err_set(err, EINVAL, ".eh_frame_hdr does not lead to .eh_frame");
	return build(cfi, elf->machine, &section, true, err);
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
