// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * From the state that call frame instructions lead to, to the rule that a row can hold; and what
 * that needs to know about each architecture.
 */
#include "target/cfi_impl.h"

#include <dwarf.h>
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "target/framecheck.h"

#define SLOT_SIZE 8u
#define RA_SLOT_MAX 255
#define SAVE_SLOT_MAX (XP_SAVE_LOST - 1)

/*
 * What binutils writes for .plt (2.40, bfd/elf64-x86-64.c): rsp + 8, and 8 more once the entry's
 * push is done. At which byte of the entry that is depends on the kind of table.
 */
static const uint8_t x86_64_plt[] = {
	DW_OP_breg7, 8, DW_OP_breg16, 0, DW_OP_lit15, DW_OP_and, DW_OP_lit11, DW_OP_ge,
	DW_OP_lit3, DW_OP_shl, DW_OP_plus,
};

/* Register numbers: System V ABI, AMD64 supplement, figure 3.36. */
static const struct xp_cfi_arch arches[] = {
	{
		.machine = EM_X86_64,
		.sp = 7,
		.fp = 6,
		.saved = { [XP_SAVED_RBX] = 3, [XP_SAVED_R12] = 12, [XP_SAVED_R13] = 13,
			   [XP_SAVED_R14] = 14, [XP_SAVED_R15] = 15 },
		.plt = x86_64_plt,
		.plt_len = sizeof(x86_64_plt),
		.plt_limit = 6,
	},
};

const struct xp_cfi_arch *xp_cfi_arch_of(uint16_t machine)
{
	for (size_t i = 0; i < sizeof(arches) / sizeof(*arches); i++) {
		if (arches[i].machine == machine)
			return &arches[i];
	}
	return NULL;
}

/* n for a place at CFA - 8 * n, or 0 when there is no such n up to max. */
static unsigned slot_of(struct xp_cfi_place place, unsigned max)
{
	uint32_t depth = -(uint32_t)place.off;		/* huge for places above the CFA */

	if (place.how != XP_CFI_SLOT || depth % SLOT_SIZE || depth / SLOT_SIZE > max)
		return 0;
	return depth / SLOT_SIZE;
}

/* The limit in a PLT's expression, or -1 when it is another expression. */
static int plt_limit(const struct xp_cfi_arch *arch, const struct xp_cfi_state *s)
{
	size_t at = arch->plt_limit;

	if (!arch->plt || s->expr_len != arch->plt_len || memcmp(s->expr, arch->plt, at) ||
	    memcmp(s->expr + at + 1, arch->plt + at + 1, arch->plt_len - at - 1))
		return -1;
	if (s->expr[at] < DW_OP_lit0 || s->expr[at] > DW_OP_lit31)
		return -1;
	return s->expr[at] - DW_OP_lit0;
}

/*
 * DW_OP_breg<reg> <off>, DW_OP_deref, DW_OP_plus_uconst <add>: OpenSSL's assembler keeps the stack
 * pointer that it found in its frame and says so like this (3.0, crypto/perlasm/x86_64-xlate.pl,
 * cfa_expression). The addition may be missing; false for any other expression.
 */
static bool deref_of(const struct xp_cfi_state *s, uint8_t reg, int64_t *off, uint16_t *add)
{
	struct xp_cur c = xp_cur_of(s->expr, s->expr_len);
	uint64_t n = 0;

	if (xp_cur_u8(&c) != DW_OP_breg0 + reg)
		return false;
	*off = xp_cur_sleb(&c);
	if (xp_cur_u8(&c) != DW_OP_deref)
		return false;
	if (xp_cur_left(&c)) {
		if (xp_cur_u8(&c) != DW_OP_plus_uconst)
			return false;
		n = xp_cur_uleb(&c);
	}
	*add = (uint16_t)n;
	return n <= UINT16_MAX && !c.bad && !xp_cur_left(&c);
}

static enum xp_rule_kind expression_cfa(const struct xp_cfi_arch *arch, const struct xp_cfi_state *s,
					int64_t *off, uint16_t *add)
{
	int limit = plt_limit(arch, s);

	if (limit >= 0) {
		*off = limit;
		return XP_RULE_PLT;
	}
	if (deref_of(s, arch->fp, off, add))
		return XP_RULE_DEREF_FP;
	if (deref_of(s, arch->sp, off, add))
		return XP_RULE_DEREF_SP;
	return XP_RULE_BAD;
}

/* Sets kind, reg and cfa_off; false when the CFA does not fit. */
static bool set_cfa(struct xp_rule *rule, const struct xp_cfi_arch *arch,
		    const struct xp_cfi_state *s)
{
	int64_t off = s->off;

	if (s->base == XP_CFA_NONE)
		return false;
	if (s->base == XP_CFA_EXPRESSION) {
		rule->kind = expression_cfa(arch, s, &off, &rule->deref_add);
	} else if (s->reg == arch->sp) {
		rule->kind = XP_RULE_SP;
	} else if (s->reg == arch->fp) {
		rule->kind = XP_RULE_FP;
	} else if (s->reg <= UINT8_MAX) {
		rule->kind = XP_RULE_REG;
		rule->reg = (uint8_t)s->reg;
	} else {
		return false;
	}
	rule->cfa_off = (int32_t)off;
	return rule->kind != XP_RULE_BAD && off == (int32_t)off;
}

static int16_t fp_place(struct xp_cfi_place place)
{
	if (place.how == XP_CFI_UNSPECIFIED)
		return XP_FP_SAME;
	if (place.how == XP_CFI_AT_FP)
		return XP_FP_AT_FP;
	if (place.how != XP_CFI_SLOT || place.off < INT16_MIN || place.off >= XP_FP_AT_FP)
		return XP_FP_LOST;
	return (int16_t)place.off;
}

static uint8_t save_place(struct xp_cfi_place place)
{
	unsigned slot;

	if (place.how == XP_CFI_UNSPECIFIED)
		return 0;
	slot = slot_of(place, SAVE_SLOT_MAX);
	return slot ? (uint8_t)slot : XP_SAVE_LOST;
}

struct xp_rule xp_cfi_rule(const struct xp_cfi_arch *arch, const struct xp_cfi_cie *cie,
			   const struct xp_cfi_state *s)
{
	unsigned ra = slot_of(s->place[XP_CFI_RA], RA_SLOT_MAX);
	bool in_register = s->place[XP_CFI_RA].how == XP_CFI_REGISTER;
	struct xp_rule rule = { .ra = (uint8_t)ra };

	if (s->place[XP_CFI_RA].how == XP_CFI_UNDEFINED)
		return (struct xp_rule){ .kind = XP_RULE_END };
	/*
	 * The kernel's signal frame is described by expressions. Code that only borrows the 'S' to
	 * say that its caller's pc is exact has ordinary places and is unwound by them.
	 */
	if (cie->signal && (s->base == XP_CFA_EXPRESSION || !ra))
		return (struct xp_rule){ .kind = XP_RULE_SIGNAL };
	if ((!ra && !in_register) || s->place[XP_CFI_SP].how != XP_CFI_UNSPECIFIED ||
	    !set_cfa(&rule, arch, s) || (in_register && rule.kind == XP_RULE_REG))
		return (struct xp_rule){ .kind = XP_RULE_BAD };
	if (in_register)
		rule.reg = (uint8_t)s->place[XP_CFI_RA].off;
	rule.fp_off = fp_place(s->place[XP_CFI_FP]);
	for (unsigned i = 0; i < XP_SAVED_N; i++)
		rule.save[i] = save_place(s->place[XP_CFI_SAVED + i]);
	return rule;
}

#define STUB_MAX 64		/* bytes of a function that may be a stub */
#define STUBS_MAX 32		/* mended in one image; real ones have up to three */
#define CODE_MAX 32		/* sections looked through; real files have up to seven */
#define PADDING_MAX 16		/* a gap this short between functions is alignment */
#define RAX 0

/* What is known while stubs are looked for. */
struct stubs {
	struct xp_cfi *cfi;
	const struct xp_elf *elf;
	unsigned left;		/* how many more may be mended */
};

static int rule_number(struct xp_cfi *cfi, const struct xp_rule *rule, uint32_t *id)
{
	struct xp_rule *added;

	for (*id = 0; *id < cfi->rules.n; ++*id)
		if (memcmp(&cfi->rules.v[*id], rule, sizeof(*rule)) == 0)
			return 0;
	added = xp_vec_push(&cfi->rules);
	if (!added)
		return -ENOMEM;
	*added = *rule;
	return 0;
}

/* Number of rows below an address, or with those at it. */
static size_t rows_until(const struct xp_cfi *cfi, uint64_t vaddr, bool at)
{
	size_t lo = 0, hi = cfi->rows.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;
		uint64_t v = cfi->rows.v[mid].vaddr;

		if (v < vaddr || (at && v == vaddr))
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* Number of functions that end at or below an address. */
static size_t first_func(const struct xp_cfi *cfi, uint64_t vaddr)
{
	size_t lo = 0, hi = cfi->funcs.n;

	while (lo < hi) {
		size_t mid = lo + (hi - lo) / 2;

		if (cfi->funcs.v[mid].end <= vaddr)
			lo = mid + 1;
		else
			hi = mid;
	}
	return lo;
}

/* One rule for [from, to), whatever was there. */
static int place_rule(struct stubs *s, uint64_t from, uint64_t to, struct xp_rule rule)
{
	struct xp_cfi *cfi = s->cfi;
	const struct xp_rule *found = xp_cfi_rule_at(cfi, to);
	struct xp_rule behind = found ? *found : (struct xp_rule){ .kind = XP_RULE_NONE };
	size_t first = rows_until(cfi, from, false), last = rows_until(cfi, to, true), n = 0;
	struct xp_cfi_row rows[2];
	uint32_t id, next;

	if (!s->left)
		return 0;
	if (rule_number(cfi, &rule, &id) || rule_number(cfi, &behind, &next) ||
	    xp_vec_reserve(&cfi->rows, cfi->rows.n + 2))
		return -ENOMEM;
	s->left--;
	if (!first || cfi->rows.v[first - 1].rule != id)
		rows[n++] = (struct xp_cfi_row){ from, id };
	if (next != id)
		rows[n++] = (struct xp_cfi_row){ to, next };
	memmove(&cfi->rows.v[first + n], &cfi->rows.v[last],
		(cfi->rows.n - last) * sizeof(*rows));
	memcpy(&cfi->rows.v[first], rows, n * sizeof(*rows));
	cfi->rows.n += first + n - last;
	return 0;
}

/* The same for a stub, which is returned to at its start. */
static int place_stub(struct stubs *s, struct xp_cfi_func f, enum xp_rule_kind kind)
{
	const uint8_t *before = f.start >= 7 ? xp_elf_at_vaddr(s->elf, f.start - 7, 7) : NULL;
	bool called = before && xp_ends_in_call(before);
	size_t next = first_func(s->cfi, f.end);
	uint64_t to = next < s->cfi->funcs.n ? s->cfi->funcs.v[next].start : f.end;

	if (to < f.end || to - f.end > PADDING_MAX)
		to = f.end;
	return place_rule(s, f.start - (f.start && !called), to, (struct xp_rule){ .kind = kind });
}

/* mov $15,%eax or mov $15,%rax, then syscall: rt_sigreturn. Its size, or 0 for other code. */
static size_t trampoline_size(const uint8_t *p, size_t n)
{
	static const uint8_t eax[] = { 0xb8, 0x0f, 0, 0, 0, 0x0f, 0x05 };
	static const uint8_t rax[] = { 0x48, 0xc7, 0xc0, 0x0f, 0, 0, 0, 0x0f, 0x05 };

	if (n >= sizeof(eax) && memcmp(p, eax, sizeof(eax)) == 0)
		return sizeof(eax);
	return n >= sizeof(rax) && memcmp(p, rax, sizeof(rax)) == 0 ? sizeof(rax) : 0;
}

/* mov of rbx or r12 to r15 to rsp: no caller passes anything in them, so none has called this. */
static bool takes_stack_pointer(const uint8_t *p)
{
	if (p[0] == 0x48)
		return p[1] == 0x89 && p[2] == 0xdc;
	return p[0] == 0x4c && p[1] == 0x89 && (p[2] & 0xc7) == 0xc4 && p[2] >= 0xe4;
}

static int mend_func(struct stubs *s, struct xp_cfi_func f)
{
	size_t n = f.end - f.start;
	const uint8_t *p = n >= 7 ? xp_elf_at_vaddr(s->elf, f.start, n) : NULL;
	const struct xp_rule *rule;

	if (!p || (p[0] != 0x48 && p[0] != 0x4c && p[0] != 0xb8))
		return 0;
	if (trampoline_size(p, n))
		return place_stub(s, f, XP_RULE_SIGNAL);
	if (!takes_stack_pointer(p))
		return 0;
	rule = xp_cfi_rule_at(s->cfi, f.start);
	if (!rule || rule->kind != XP_RULE_SP || rule->cfa_off != 8 || rule->ra != 1)
		return 0;
	return place_stub(s, f, XP_RULE_END);
}

/* A gap behind a function up to an outermost one: is it the system call that leads there? */
static int mend_fork(struct stubs *s, const struct xp_cfi_func *f)
{
	uint64_t from = f[-1].end, n = f->start - from;
	const uint8_t *p = n >= 2 && n <= PADDING_MAX ? xp_elf_at_vaddr(s->elf, from, n) : NULL;
	struct xp_rule rule;

	if (!p || p[0] != 0x0f || p[1] != 0x05)
		return 0;
	rule = *xp_cfi_rule_at(s->cfi, from);
	if (rule.kind != XP_RULE_SP || !rule.ra)
		return 0;
	rule.kind = XP_RULE_FORK;
	rule.reg = RAX;
	return place_rule(s, from, f->start, rule);
}

/* Functions that begin with an undefined return address: few, so found by their rows. */
static int mend_forks(struct stubs *s)
{
	struct xp_cfi *cfi = s->cfi;
	int rc = 0;

	for (size_t i = 1; !rc && i < cfi->rows.n; i++) {
		uint64_t at = cfi->rows.v[i].vaddr;
		const struct xp_cfi_func *f;

		if (cfi->rules.v[cfi->rows.v[i].rule].kind != XP_RULE_END)
			continue;
		f = xp_cfi_func_at(cfi, at);
		if (f && f->start == at && f > cfi->funcs.v)
			rc = mend_fork(s, f);
	}
	return rc;
}

/* Adds bounds of a function where there are none. */
static int add_func(struct xp_cfi *cfi, uint64_t start, uint64_t end)
{
	size_t at = 0;

	if (!xp_vec_push(&cfi->funcs))
		return -ENOMEM;
	while (at < cfi->funcs.n - 1 && cfi->funcs.v[at].start < start)
		at++;
	memmove(&cfi->funcs.v[at + 1], &cfi->funcs.v[at],
		(cfi->funcs.n - 1 - at) * sizeof(*cfi->funcs.v));
	cfi->funcs.v[at] = (struct xp_cfi_func){ start, end };
	return 0;
}

/* The first trampoline in code without functions, and what is known of it afterwards. */
static int mend_gap(struct stubs *s, uint64_t from, uint64_t to)
{
	static const uint8_t needle[] = { 0x0f, 0, 0, 0, 0x0f, 0x05 };
	const uint8_t *p = xp_elf_at_vaddr(s->elf, from, to - from), *at = p, *end = p + (to - from);

	while (p && s->left && (at = memmem(at, (size_t)(end - at), needle, sizeof(needle)))) {
		for (int back = 1; back <= 3; back += 2) {
			struct xp_cfi_func f = { .start = from + (uint64_t)(at - p) - back };
			size_t n = at - p < back ? 0 : trampoline_size(at - back, sizeof(needle) + back);

			f.end = f.start + n;
			if (n && (place_stub(s, f, XP_RULE_SIGNAL) ||
				  add_func(s->cfi, f.start, f.end)))
				return -ENOMEM;
		}
		at += sizeof(needle);
	}
	return 0;
}

/* All gaps in [at, end) that are more than alignment. */
static int mend_gaps(struct stubs *s, uint64_t at, uint64_t end)
{
	const struct xp_cfi *cfi = s->cfi;
	int rc = 0;

	for (size_t i = first_func(cfi, at); !rc && i <= cfi->funcs.n && at < end; i++) {
		struct xp_cfi_func f = { end, end };

		if (i < cfi->funcs.n)
			f = cfi->funcs.v[i];
		if (f.start > at && (f.start < end ? f.start : end) - at > PADDING_MAX)
			rc = mend_gap(s, at, f.start < end ? f.start : end);
		at = f.end;
	}
	return rc;
}

static bool has_signal(const struct xp_cfi *cfi)
{
	for (size_t i = 0; i < cfi->rules.n; i++)
		if (cfi->rules.v[i].kind == XP_RULE_SIGNAL)
			return true;
	return false;
}

/* In the code sections, or the executable segments of a file without sections. */
static int mend_code(struct stubs *s)
{
	size_t n = xp_elf_section_count(s->elf), seen = 0;
	int rc = 0;

	for (size_t i = 1; !rc && i < n && seen < CODE_MAX; i++) {
		struct xp_section sec;
		const char *name;

		if (!xp_elf_section_at(s->elf, i, &name, &sec) || !sec.data ||
		    !(sec.flags & SHF_EXECINSTR) || sec.addr + sec.size <= sec.addr)
			continue;
		seen++;
		rc = mend_gaps(s, sec.addr, sec.addr + sec.size);
	}
	for (size_t i = 0; !rc && !n && i < s->elf->nsegments && i < CODE_MAX; i++) {
		const struct xp_segment *seg = &s->elf->segments[i];

		if (seg->exec)
			rc = mend_gaps(s, seg->vaddr, seg->vaddr + seg->filesz);
	}
	return rc;
}

int xp_cfi_mend_stubs(struct xp_cfi *cfi, const struct xp_elf *elf)
{
	struct stubs s = { cfi, elf, STUBS_MAX };
	bool told = has_signal(cfi);
	int rc;

	if (elf->machine != EM_X86_64)
		return 0;
	rc = mend_forks(&s);
	for (size_t i = 0; !rc && i < cfi->funcs.n; i++)
		if (cfi->funcs.v[i].end - cfi->funcs.v[i].start <= STUB_MAX)
			rc = mend_func(&s, cfi->funcs.v[i]);
	if (!rc && !told)	/* else the C library's is described, and there is no other */
		rc = mend_code(&s);
	if (rc || s.left == STUBS_MAX)
		return rc;
	cfi->bad_rows = 0;
	for (size_t i = 0; i < cfi->rows.n; i++)
		cfi->bad_rows += cfi->rules.v[cfi->rows.v[i].rule].kind == XP_RULE_BAD;
	return 0;
}
