// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Takes .debug_frame or .eh_frame apart into CIEs and FDEs.
 *
 * The format is that of DWARF 5, section 6.4.1. In .eh_frame it has the differences that the LSB
 * core specification lists under "Exception Frames": entries point backwards to their CIE,
 * addresses have an encoding that the CIE's augmentation names. Every CIE is read and run once, in
 * the section's order, so the work stays linear whatever the FDEs point at; an FDE whose pointer
 * does not lead to the start of a CIE is malformed.
 */
#include "target/cfi_impl.h"

#include <dwarf.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT_MASK 0x0f
#define RELATION_MASK 0x70
#define MIN_ENTRY 4

static uint64_t pointer_value(struct xp_cur *c, uint8_t format)
{
	switch (format) {
	case DW_EH_PE_absptr:
	case DW_EH_PE_udata8:
	case DW_EH_PE_sdata8:
		return xp_cur_u64(c);
	case DW_EH_PE_udata4:
		return xp_cur_u32(c);
	case DW_EH_PE_sdata4:
		return (uint64_t)(int32_t)xp_cur_u32(c);
	case DW_EH_PE_udata2:
		return xp_cur_u16(c);
	case DW_EH_PE_sdata2:
		return (uint64_t)(int16_t)xp_cur_u16(c);
	case DW_EH_PE_uleb128:
		return xp_cur_uleb(c);
	case DW_EH_PE_sleb128:
		return (uint64_t)xp_cur_sleb(c);
	default:
		c->bad = true;
		return 0;
	}
}

uint64_t xp_cfi_pointer(struct xp_cur *c, uint8_t encoding, uint64_t at_vaddr)
{
	uint8_t relation = encoding & RELATION_MASK;
	uint64_t value;

	if ((encoding & DW_EH_PE_indirect) ||
	    (relation != DW_EH_PE_absptr && relation != DW_EH_PE_pcrel)) {
		c->bad = true;
		return 0;
	}
	value = pointer_value(c, encoding & FORMAT_MASK);
	/* 0 is the null pointer in every encoding (GCC 12, libgcc/unwind-pe.h). */
	return relation == DW_EH_PE_pcrel && value ? value + at_vaddr : value;
}

static uint64_t vaddr_of(const struct xp_cfi_entries *es, const uint8_t *p)
{
	return es->vaddr + (uint64_t)(p - es->data);
}

/* Passes the personality routine's address; only its size matters. */
static void skip_personality(struct xp_cur *c)
{
	uint8_t encoding = xp_cur_u8(c);

	if (encoding == DW_EH_PE_omit)
		return;
	if ((encoding & RELATION_MASK) == DW_EH_PE_aligned)
		c->bad = true;		/* padded to a place that depends on the run time address */
	pointer_value(c, encoding & FORMAT_MASK);
}

/* Without a 'z' there are no data, and only letters that have none: gas writes an 'S' so. */
static void read_augmentation(struct xp_cfi_cie *cie, const char *letters, struct xp_cur *c)
{
	struct xp_cur data = xp_cur_of(NULL, 0);

	if (*letters == 'z') {
		cie->sized = true;
		data = xp_cur_sub(c, xp_cur_uleb(c));
		letters++;
	}
	for (; *letters; letters++) {
		switch (*letters) {
		case 'R':
			cie->encoding = xp_cur_u8(&data);
			break;
		case 'P':
			skip_personality(&data);
			break;
		case 'L':
			xp_cur_u8(&data);
			break;
		case 'S':
			cie->signal = true;
			break;
		case 'B':		/* arm64: return addresses are signed with key B */
			break;
		default:		/* what follows cannot be told apart any more */
			data.bad = true;
		}
	}
	c->bad |= data.bad;
}

/* The rest of a CIE after its id. 0 or -EINVAL. */
static int read_cie(const struct xp_cfi_entries *es, struct xp_cfi_cie *cie, struct xp_cur c)
{
	uint8_t version = xp_cur_u8(&c);
	const char *letters = xp_cur_cstr(&c);

	if (!letters || (version != 1 && version != 3 && version != 4))
		return -EINVAL;
	if (version == 4) {
		uint8_t address_size = xp_cur_u8(&c);
		uint8_t segment_size = xp_cur_u8(&c);

		if (address_size != 8 || segment_size != 0)
			return -EINVAL;
	}
	cie->encoding = DW_EH_PE_absptr;
	cie->code_align = xp_cur_uleb(&c);
	cie->data_align = xp_cur_sleb(&c);
	cie->ra = version == 1 ? xp_cur_u8(&c) : xp_cur_uleb(&c);
	read_augmentation(cie, letters, &c);
	/* .debug_frame is at no address, so nothing can be relative to one. */
	if (c.bad || (es->debug_frame && (cie->encoding & RELATION_MASK) != DW_EH_PE_absptr))
		return -EINVAL;
	return xp_cfi_run_cie(es, cie, c);
}

static int add_cie(struct xp_cfi_entries *es, uint32_t at, struct xp_cur c)
{
	struct xp_cfi_cie *cie = xp_vec_push(&es->cies);

	if (!cie)
		return -ENOMEM;
	cie->at = at;
	cie->ok = read_cie(es, cie, c) == 0;
	return 0;
}

/* Keeps an FDE for read_fdes(), which knows all CIEs: its body in at and len, its CIE's offset. */
static int note_fde(struct xp_cfi_entries *es, uint32_t cie_at, struct xp_cur c)
{
	struct xp_cfi_fde *fde = xp_vec_push(&es->fdes);

	if (!fde)
		return -ENOMEM;
	fde->at = (uint32_t)(c.p - es->data);
	fde->len = (uint32_t)xp_cur_left(&c);
	fde->cie = cie_at;
	es->nfdes++;
	return 0;
}

/* An entry that is neither a CIE nor leads to one. */
static int bad_entry(struct xp_cfi_entries *es)
{
	es->nfdes++;
	es->bad_fdes++;
	return 0;
}

static int read_eh_entry(struct xp_cfi_entries *es, uint32_t at, struct xp_cur c, bool dwarf64)
{
	uint64_t id_at = (uint64_t)(c.p - es->data);
	struct xp_cur wide = c;
	uint64_t id = xp_cur_u32(&c);

	if (dwarf64) {
		/*
		 * In the 64-bit form the id has four bytes by the LSB and LLVM, eight by gas and
		 * elfutils. What follows four bytes (a CIE's version; the start of an FDE, which is
		 * not null) is never zero, and the upper half of eight bytes always is.
		 */
		uint64_t id8 = xp_cur_u64(&wide);

		if (!wide.bad && id8 >> 32 == 0)
			c = wide;
	}
	if (!c.bad && id == 0)
		return add_cie(es, at, c);
	if (c.bad || id > id_at)
		return bad_entry(es);
	return note_fde(es, (uint32_t)(id_at - id), c);
}

/* The id of a CIE is all ones; of an FDE it is its CIE's place in the section. */
static int read_debug_entry(struct xp_cfi_entries *es, uint32_t at, struct xp_cur c, bool dwarf64)
{
	uint64_t id = dwarf64 ? xp_cur_u64(&c) : xp_cur_u32(&c);

	if (!c.bad && id == (dwarf64 ? UINT64_MAX : UINT32_MAX))
		return add_cie(es, at, c);
	if (c.bad || id >= es->size)
		return bad_entry(es);
	return note_fde(es, (uint32_t)id, c);
}

static int scan(struct xp_cfi_entries *es)
{
	struct xp_cur c = xp_cur_of(es->data, es->size);

	while (xp_cur_left(&c) >= MIN_ENTRY) {
		uint32_t at = (uint32_t)(c.p - es->data);
		uint64_t len = xp_cur_u32(&c);
		bool dwarf64 = len == UINT32_MAX;
		struct xp_cur body;
		int rc;

		if (dwarf64)
			len = xp_cur_u64(&c);
		if (len == 0 && es->stop_at_zero)
			break;
		if (len == 0 && !c.bad)
			continue;
		body = xp_cur_sub(&c, len);
		if (c.bad)		/* the entry is cut off: nothing after it can be found */
			return bad_entry(es);
		rc = es->debug_frame ? read_debug_entry(es, at, body, dwarf64) :
				       read_eh_entry(es, at, body, dwarf64);
		if (rc)
			return rc;
	}
	return 0;
}

static int compare_cie(const void *key, const void *element)
{
	uint32_t at = *(const uint32_t *)key;
	const struct xp_cfi_cie *cie = element;

	return at < cie->at ? -1 : at > cie->at;
}

/* The CIE at an offset: most often the one that the FDE before had. NULL when there is none. */
static const struct xp_cfi_cie *find_cie(const struct xp_cfi_entries *es, uint32_t at,
					 const struct xp_cfi_cie *last)
{
	if (last && last->at == at)
		return last;
	if (!es->cies.n)
		return NULL;
	return bsearch(&at, es->cies.v, es->cies.n, sizeof(*es->cies.v), compare_cie);
}

/* Reads what stands before the instructions. 1: describes code, 0: does not, -EINVAL. */
static int read_fde(const struct xp_cfi_entries *es, struct xp_cfi_fde *fde,
		    const struct xp_cfi_cie *cie)
{
	struct xp_cur c = xp_cur_of(es->data + fde->at, fde->len);
	uint64_t len;

	fde->start = xp_cfi_pointer(&c, cie->encoding, vaddr_of(es, c.p));
	len = pointer_value(&c, cie->encoding & FORMAT_MASK);
	if (cie->sized)
		xp_cur_sub(&c, xp_cur_uleb(&c));
	if (c.bad || __builtin_add_overflow(fde->start, len, &fde->end))
		return -EINVAL;
	fde->cie = (uint32_t)(cie - es->cies.v);
	fde->at = (uint32_t)(c.p - es->data);
	fde->len = (uint32_t)xp_cur_left(&c);
	return fde->start != 0 && len != 0;
}

static void read_fdes(struct xp_cfi_entries *es)
{
	const struct xp_cfi_cie *cie = NULL;
	size_t kept = 0;

	for (size_t i = 0; i < es->fdes.n; i++) {
		struct xp_cfi_fde fde = es->fdes.v[i];
		int rc;

		cie = find_cie(es, fde.cie, cie);
		rc = cie && cie->ok ? read_fde(es, &fde, cie) : -EINVAL;
		if (rc < 0)
			es->bad_fdes++;
		else if (rc > 0)
			es->fdes.v[kept++] = fde;
	}
	es->fdes.n = kept;
}

static int compare_fdes(const void *a, const void *b)
{
	const struct xp_cfi_fde *x = a, *y = b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x->at < y->at ? -1 : x->at > y->at;
}

int xp_cfi_entries_read(struct xp_cfi_entries *es)
{
	bool sorted = true;
	int rc = scan(es);

	if (rc)
		return rc;
	read_fdes(es);
	for (size_t i = 1; i < es->fdes.n && sorted; i++)
		sorted = compare_fdes(&es->fdes.v[i - 1], &es->fdes.v[i]) < 0;
	if (!sorted)
		qsort(es->fdes.v, es->fdes.n, sizeof(*es->fdes.v), compare_fdes);
	return 0;
}

void xp_cfi_entries_release(struct xp_cfi_entries *es)
{
	xp_vec_release(&es->cies);
	xp_vec_release(&es->fdes);
}
