// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Finds functions whose one row may be wrong, and puts in its place the rows that the code proves.
 */
#include "target/cfi_blob.h"

#include <elf.h>
#include <errno.h>
#include <string.h>

#include "target/cfi_blob_impl.h"

#define SIZE_MIN 4096
#define SIZES_MAX (256u << 10)	/* of all functions of an image; LuaJIT's has 16 KiB */
#define BLOBS_MAX 4
#define FRAME_MAX 4096		/* bytes */
#define ROWS_MAX 512		/* of one function; LuaJIT's has about 40 */

/* Number of the last row at or below an address, rows.n when there is none. */
static size_t row_at(const struct xp_cfi *cfi, uint64_t vaddr)
{
	size_t lo = 0, hi = cfi->rows.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cfi->rows.v[mid].vaddr <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo ? lo - 1 : cfi->rows.n;
}

/*
 * How many registers a rule saves, in the slots right below the return address, with room for more
 * above rsp; 0 when it is another kind of rule.
 */
static unsigned saved_by(const struct xp_rule *rule)
{
	uint32_t slots = 0;
	unsigned saved = 0;

	if (rule->kind != XP_RULE_SP || rule->ra != 1 || rule->cfa_off % 8 ||
	    rule->cfa_off < 8 || rule->cfa_off > FRAME_MAX || rule->fp_off > -16 ||
	    rule->fp_off % 8)
		return 0;
	for (unsigned reg = 0; reg < XP_BLOB_REGS; reg++) {
		unsigned slot = xp_blob_slot(rule, reg);

		if (slot > XP_BLOB_REGS + 1)
			return 0;
		if (slot)
			slots |= 1u << slot;
		saved += slot != 0;
	}
	if (slots != ((1u << saved) - 1) << 2 || rule->cfa_off <= 8 * ((int32_t)saved + 1))
		return 0;
	return saved;
}

/* A function with one row, whose number is given, and a rule to look into. */
static bool suspicious(const struct xp_cfi *cfi, const struct xp_cfi_func *func, size_t *row)
{
	if (func->end - func->start < SIZE_MIN || func->end - func->start > SIZES_MAX)
		return false;
	*row = row_at(cfi, func->start);
	if (*row + 1 >= cfi->rows.n || cfi->rows.v[*row].vaddr != func->start ||
	    cfi->rows.v[*row + 1].vaddr < func->end)
		return false;
	return saved_by(&cfi->rules.v[cfi->rows.v[*row].rule]) >= 3;
}

/* The rule's number in the table, a new one for a new rule. 0 or -ENOMEM. */
static int number_of(struct xp_cfi *cfi, const struct xp_rule *rule, uint32_t *id)
{
	struct xp_rule *added;

	for (*id = 0; *id < cfi->rules.n; ++*id) {
		if (memcmp(&cfi->rules.v[*id], rule, sizeof(*rule)) == 0)
			return 0;
	}
	added = xp_vec_push(&cfi->rules);
	if (!added)
		return -ENOMEM;
	*added = *rule;
	return 0;
}

/* The blob's rows, one for each change of the rule. Their number, above ROWS_MAX when too many. */
static size_t list_rows(const struct xp_blob *b, const uint32_t *ids, uint64_t vaddr,
			struct xp_cfi_row *out)
{
	size_t n = 0;

	for (size_t i = 0; i < b->insns.n && n <= ROWS_MAX; i++) {
		const struct xp_blob_insn *insn = &b->insns.v[i];

		if (i && insn->rule == insn[-1].rule)
			continue;
		if (n < ROWS_MAX)
			out[n] = (struct xp_cfi_row){ vaddr + insn->at, ids[insn->rule] };
		n++;
	}
	return n;
}

/* Puts the blob's rows in the place of one. 0 or -ENOMEM: nothing changed but for unused rules. */
static int replace_row(struct xp_cfi *cfi, size_t at, const struct xp_blob *b)
{
	uint64_t vaddr = cfi->rows.v[at].vaddr;
	struct xp_cfi_row rows[ROWS_MAX], *first = rows;
	uint32_t ids[XP_BLOB_RULES];
	size_t n, after = at + 1;

	for (unsigned i = 0; i < b->nrules; i++) {
		if (number_of(cfi, &b->rules[i], &ids[i]))
			return -ENOMEM;
	}
	n = list_rows(b, ids, vaddr, rows);
	if (n > ROWS_MAX)
		return 0;
	if (xp_vec_reserve(&cfi->rows, cfi->rows.n + n))
		return -ENOMEM;
	for (size_t i = 0; i < n; i++)
		cfi->bad_rows += cfi->rules.v[rows[i].rule].kind == XP_RULE_BAD;
	if (cfi->rows.v[after].rule == rows[n - 1].rule)
		after++;
	if (at > 0 && cfi->rows.v[at - 1].rule == first->rule) {
		first++;
		n--;
	}
	memmove(&cfi->rows.v[at + n], &cfi->rows.v[after],
		(cfi->rows.n - after) * sizeof(*rows));
	memcpy(&cfi->rows.v[at], first, n * sizeof(*rows));
	cfi->rows.n += at + n - after;
	return 0;
}

/* One function, whose row is given. 0 or -ENOMEM. */
static int mend(struct xp_cfi *cfi, size_t row, const uint8_t *code, size_t size, uint64_t vaddr)
{
	struct xp_blob b = { .rules = { cfi->rules.v[cfi->rows.v[row].rule] }, .nrules = 1 };
	int rc;

	b.saved = saved_by(&b.rules[0]);
	rc = xp_blob_decode(&b, code, size, vaddr);
	if (rc > 0)
		rc = xp_blob_find_places(&b);
	if (rc > 0)
		rc = replace_row(cfi, row, &b);
	xp_vec_release(&b.insns);
	xp_vec_release(&b.roots);
	xp_vec_release(&b.trail);
	return rc;
}

int xp_cfi_mend_blobs(struct xp_cfi *cfi, const struct xp_elf *elf)
{
	size_t row, left = SIZES_MAX;
	unsigned blobs = 0;
	int rc = 0;

	if (elf->machine != EM_X86_64)
		return 0;
	for (size_t i = 0; i < cfi->funcs.n && blobs < BLOBS_MAX && !rc; i++) {
		const struct xp_cfi_func *func = &cfi->funcs.v[i];
		size_t size = func->end - func->start;
		const uint8_t *code;

		if (!suspicious(cfi, func, &row) || size > left)
			continue;
		code = xp_elf_at_vaddr(elf, func->start, size);
		if (!code || !xp_blob_makes_frame(&cfi->rules.v[cfi->rows.v[row].rule], code, size))
			continue;
		blobs++;
		left -= size;
		rc = mend(cfi, row, code, size, func->start);
	}
	return rc;
}
