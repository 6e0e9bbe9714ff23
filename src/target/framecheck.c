/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86-64 encodings (Intel SDM volume 2): `mov %rsp,%rbp` is 48 89 e5 or 48 8b ec, Go's older way
 * `mov %rbp,N(%rsp)` and `lea N(%rsp),%rbp` 48 89 6c 24 ib 48 8d 6c 24 ib or, with 32 bits,
 * 48 89 ac 24 id 48 8d ac 24 id. Found bytes may in rare cases be part of another instruction; not
 * finding them is what cuts a stack, so the error is on the side of today's frame pointer walkers
 * and no worse.
 */
#include "target/framecheck.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "target/disasm.h"

#define PROLOGUE_MAX 128	/* bytes; Go's stack check and register spills come before */
#define FUNC_MAX 65536		/* bytes of a function that are looked through */
#define PAGE 4096u
#define JIT_PAGES 16		/* pages looked through for a prologue */
#define BEHIND 2048		/* bytes before a JIT's leaf that are looked through */
#define AHEAD 128		/* ... and after it */
#define AHEAD_INSNS 16
#define VERDICTS 4096		/* power of two */

/* `lea N(%rsp),%rbp` of n bytes at p + n, which follows the saving of rbp at N(%rsp). */
static bool saves_and_points(const uint8_t *p, uint64_t left, uint8_t modrm, size_t n)
{
	return left >= 2 * n && p[0] == 0x48 && p[1] == 0x89 && p[2] == modrm && p[3] == 0x24 &&
	       p[n] == 0x48 && p[n + 1] == 0x8d && !memcmp(p + 2, p + n + 2, n - 2);
}

static bool sets_frame(const uint8_t *p, uint64_t left)
{
	static const uint8_t forms[][3] = { { 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec } };

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++)
		if (left >= sizeof(forms[i]) && !memcmp(p, forms[i], sizeof(forms[i])))
			return true;
	return saves_and_points(p, left, 0x6c, 5) || saves_and_points(p, left, 0xac, 8);
}

/* p[1] is an instruction after `pop %rbp` or `leave`, or the return itself. */
static bool takes_down(const uint8_t *p)
{
	return p[0] == 0x5d || p[0] == 0xc9 || p[1] == 0xc3 || p[1] == 0xc2;
}

/* The code from the start of the function around at up to vaddr; NULL when there is none. */
static const uint8_t *code_before(struct xp_dso *dso, uint64_t at, uint64_t vaddr, uint64_t *n)
{
	struct xp_sym sym;

	if (!dso->elf || !xp_dso_symbol(dso, at, &sym) || vaddr <= sym.start)
		return NULL;
	*n = vaddr - sym.start < PROLOGUE_MAX ? vaddr - sym.start : PROLOGUE_MAX;
	return xp_elf_at_vaddr(dso->elf, sym.start, *n);
}

bool xp_frame_is_set_up(struct xp_dso *dso, uint64_t vaddr, bool exact)
{
	uint64_t n = 0;
	const uint8_t *p = code_before(dso, vaddr, vaddr, &n), *end;

	if (!p)
		return false;
	end = xp_elf_at_vaddr(dso->elf, vaddr - 1, 2);
	if (exact && (!end || takes_down(end)))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (sets_frame(p + i, n - i))
			return true;
	return false;
}

/* xor %ebp,%ebp, with or without REX.W, in both encodings; and no byte that may be a push of it. */
static bool gives_up_frame_pointer(const uint8_t *p, uint64_t n)
{
	bool zeroed = false;

	for (uint64_t i = 0; i + 1 < n && !zeroed; i++) {
		if (p[i] == 0x55)
			return false;
		zeroed = (p[i] == 0x31 || p[i] == 0x33) && p[i + 1] == 0xed &&
			 (i == 0 || p[i - 1] == 0x48 || (p[i - 1] & 0xf0) != 0x40);
	}
	return zeroed;
}

bool xp_frame_is_outermost(struct xp_dso *dso, uint64_t vaddr, bool exact)
{
	uint64_t n = 0;
	const uint8_t *p;
	struct xp_sym sym;

	if (!exact && dso->elf && !xp_follows_call(dso, vaddr))
		return xp_dso_symbol(dso, vaddr, &sym) && vaddr - sym.start <= 1;
	p = code_before(dso, vaddr - !exact, vaddr, &n);
	if (!p)
		return false;
	if (dso->elf->entry && vaddr > dso->elf->entry && vaddr - dso->elf->entry <= n)
		return true;
	if (!exact && n == 5 && p[0] == 0xe8)
		return true;
	return gives_up_frame_pointer(p, n);
}

/* Bytes of an instruction with one opcode byte, the ModRM byte at p and no constant. */
static unsigned operand_size(const uint8_t *p)
{
	unsigned mod = p[0] >> 6, rm = p[0] & 7, size = 2;

	if (mod == 3)
		return size;
	if (rm == 4) {			/* a SIB byte, maybe with a displacement for a base */
		size++;
		if (mod == 0)
			return (p[1] & 7) == 5 ? size + 4 : size;
	}
	if (mod == 0)
		return rm == 5 ? size + 4 : size;
	return size + (mod == 1 ? 1 : 4);
}

bool xp_ends_in_call(const uint8_t *p)
{
	if (p[2] == 0xe8)			/* call rel32 */
		return true;
	/* ff /2: call through a register or memory, 2 to 7 bytes with its operand, REX aside. */
	for (unsigned i = 0; i <= 5; i++)
		if (p[i] == 0xff && (p[i + 1] & 0x38) == 0x10 && i + operand_size(p + i + 1) == 7)
			return true;
	return false;
}

bool xp_follows_call(const struct xp_dso *dso, uint64_t vaddr)
{
	const uint8_t *p;

	if (!dso->elf || vaddr < 8)
		return false;
	p = xp_elf_at_vaddr(dso->elf, vaddr - 7, 7);
	return p && xp_ends_in_call(p);
}

enum verdict_kind { STACK_SWITCH = 1, STACK_FUNC, JIT_PAGE, JIT_CALL, JIT_LEAF };

struct verdict {
	const void *owner;	/* a dso */
	uint64_t addr, batch;
	int32_t pid;		/* JIT code's */
	uint16_t kind;		/* enum verdict_kind; 0: nothing here yet */
	uint16_t value;
};

struct xp_frame_checks {
	struct verdict table[VERDICTS];
};

struct xp_frame_checks *xp_frame_checks_new(void)
{
	return calloc(1, sizeof(struct xp_frame_checks));
}

void xp_frame_checks_free(struct xp_frame_checks *c)
{
	free(c);
}

/* Where the verdict is, or has to be put: then false, and it is the caller's to set the value. */
static bool find_verdict(struct xp_frame_checks *c, const struct verdict *key, struct verdict **at)
{
	uint64_t hash = xp_hash_bytes(&key->addr, sizeof(key->addr),
				      (uintptr_t)key->owner + (uint64_t)key->pid + key->kind);
	struct verdict *v = &c->table[hash & (VERDICTS - 1)];

	*at = v;
	if (v->kind == key->kind && v->addr == key->addr && v->owner == key->owner &&
	    v->pid == key->pid && v->batch == key->batch)
		return true;
	*v = *key;
	return false;
}

/* Bytes of a load of rsp: mov (8b, 89), lea (8d), xchg (87, 94), pop (5c). Cheap and rough. */
static bool may_load_sp(const uint8_t *p, uint64_t n)
{
	for (uint64_t i = 0; i < n; i++) {
		uint8_t op = p[i], modrm = i + 1 < n ? p[i + 1] : 0;

		if (((op == 0x8b || op == 0x8d) && (modrm & 0x38) == 0x20) || op == 0x5c || op == 0x94 ||
		    ((op == 0x89 || op == 0x87) && modrm >= 0xc0 &&
		     ((modrm & 7) == 4 || (modrm & 0x38) == 0x20)))
			return true;
	}
	return false;
}

#define TARGETS 8

/* Whether rsp is another stack's, and which registers hold an older value of it. */
struct sp_state {
	bool other;
	uint16_t saved;
	uint64_t targets[TARGETS];	/* of jumps forward from where it was another's */
	unsigned ntargets;
};

/* What jumps lead here, and what a jump takes along: behind one that is always taken all is new. */
static void follow_jumps(struct sp_state *s, const struct xp_insn *i)
{
	for (unsigned t = 0; t < s->ntargets; t++)
		s->other |= s->targets[t] == i->addr;
	if (i->op != XP_INSN_JUMP && i->op != XP_INSN_BRANCH && i->op != XP_INSN_RET)
		return;
	if (s->other && i->operands[0].kind == XP_OPERAND_IMM && s->ntargets < TARGETS)
		s->targets[s->ntargets++] = (uint64_t)i->operands[0].value;
	if (i->op != XP_INSN_BRANCH)
		s->other = false;
}

/* What an instruction does to that. What rbp leads back to is the function's own frame. */
static void follow_sp(struct sp_state *s, const struct xp_insn *i)
{
	const struct xp_operand *to = &i->operands[0], *from = &i->operands[1];
	bool two = i->noperands == 2 && to->kind == XP_OPERAND_REG;
	uint8_t reg = from->kind == XP_OPERAND_MEM ? from->base : from->reg;

	if (!(i->writes >> XP_RSP & 1)) {
		s->saved &= (uint16_t)~i->writes;
		if (two && to->reg < XP_REGS &&
		    ((i->op == XP_INSN_MOV && from->kind == XP_OPERAND_REG && reg == XP_RSP) ||
		     (i->op == XP_INSN_MOV && from->kind == XP_OPERAND_MEM && reg == XP_RBP) ||
		     (i->op == XP_INSN_LEA && reg == XP_RSP)))
			s->saved |= (uint16_t)(1u << to->reg);
	} else if (i->op == XP_INSN_POP) {
		s->other |= to->kind == XP_OPERAND_REG && to->reg == XP_RSP;
	} else if (i->op == XP_INSN_OTHER && i->writes >> XP_RBP & 1) {
		s->other = false;		/* leave */
	} else if (i->op == XP_INSN_OTHER && two && from->kind == XP_OPERAND_REG) {
		s->other = true;		/* xchg */
	} else if (two && to->reg == XP_RSP && (i->op == XP_INSN_MOV || i->op == XP_INSN_LEA)) {
		if (reg == XP_RSP || reg == XP_RBP)
			s->other &= reg == XP_RSP;
		else
			s->other = (i->op == XP_INSN_MOV && from->kind != XP_OPERAND_REG) ||
				   reg >= XP_REGS || !(s->saved >> reg & 1);
	}
}

/* Follows the first n bytes of a function; *ever: it was on another stack somewhere in them. */
static bool on_other_stack(const uint8_t *p, uint64_t n, uint64_t start, bool *ever)
{
	struct sp_state sp = { .other = false };
	struct xp_disasm *d;
	struct xp_insn insn;

	*ever = false;
	if (xp_disasm_new(&d, p, n, start))
		return false;
	while (xp_disasm_next(d, &insn)) {
		follow_jumps(&sp, &insn);
		follow_sp(&sp, &insn);
		*ever |= sp.other;
	}
	follow_jumps(&sp, &(struct xp_insn){ .addr = start + n });
	xp_disasm_free(d);
	return sp.other;
}

/* Whether any of a function's code may run on another stack: asked once, and "no" for nearly all. */
static bool may_switch(struct xp_frame_checks *c, const struct xp_dso *dso,
		       const struct xp_cfi_func *f)
{
	struct verdict key = { .owner = dso, .addr = f->start, .kind = STACK_FUNC }, *v;
	uint64_t n = f->end - f->start;
	const uint8_t *p;
	bool ever = false;

	if (!find_verdict(c, &key, &v)) {
		p = n <= FUNC_MAX ? xp_elf_at_vaddr(dso->elf, f->start, n) : NULL;
		if (p && may_load_sp(p, n))
			on_other_stack(p, n, f->start, &ever);
		v->value = ever;
	}
	return v->value;
}

static enum xp_stack_kind judge_switch(const struct xp_dso *dso, const struct xp_cfi_func *f,
				       uint64_t vaddr)
{
	static const uint8_t clone[] = { 0xb8, 56, 0, 0, 0, 0x0f, 0x05 };
	uint64_t n = vaddr - f->start;
	const uint8_t *p = n ? xp_elf_at_vaddr(dso->elf, f->start, n) : NULL;
	bool ever;

	if (!p || !on_other_stack(p, n, f->start, &ever))
		return XP_STACK_SAME;
	return memmem(p, n, clone, sizeof(clone)) ? XP_STACK_NEW : XP_STACK_OTHER;
}

enum xp_stack_kind xp_stack_kind_of(struct xp_frame_checks *c, const struct xp_dso *dso,
				    uint64_t vaddr)
{
	struct verdict key = { .owner = dso, .addr = vaddr, .kind = STACK_SWITCH }, *v;
	const struct xp_cfi_func *f = xp_cfi_func_at(&dso->cfi, vaddr);

	if (!dso->elf || !f || !may_switch(c, dso, f))
		return XP_STACK_SAME;
	if (!find_verdict(c, &key, &v))
		v->value = (uint16_t)judge_switch(dso, f, vaddr);
	return v->value;
}

static bool is_prologue(const uint8_t *p)
{
	return p[0] == 0x55 && p[1] == 0x48 &&
	       ((p[2] == 0x89 && p[3] == 0xe5) || (p[2] == 0x8b && p[3] == 0xec));
}

/* Offset behind the first prologue in a page of code, or PAGE when it has none. */
static uint16_t judge_page(const struct xp_jit *jit, uint64_t page)
{
	uint8_t code[PAGE];

	if (xp_mem_read(&jit->mem, page, code, sizeof(code)))
		return PAGE;
	for (unsigned i = 0; i + 4 <= sizeof(code); i++)
		if (is_prologue(code + i))
			return (uint16_t)(i + 4);
	return PAGE;
}

static uint16_t first_prologue(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t page)
{
	struct verdict key = { .addr = page, .batch = jit->batch, .pid = jit->mem.pid,
			       .kind = JIT_PAGE }, *v;

	if (!find_verdict(c, &key, &v))
		v->value = judge_page(jit, page);
	return v->value;
}

bool xp_jit_keeps_frames(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc)
{
	uint64_t page = pc & ~(uint64_t)(PAGE - 1);
	bool found = first_prologue(c, jit, page) <= (pc & (PAGE - 1));

	for (int i = 1; !found && i < JIT_PAGES && page > jit->start; i++) {
		page -= PAGE;
		found = first_prologue(c, jit, page) < PAGE;
	}
	return found;
}

/* The instruction ends a frame, or needs one. */
static bool uses_frame(const struct xp_insn *insn)
{
	const struct xp_operand *o = insn->operands;

	if ((insn->op == XP_INSN_OTHER || insn->op == XP_INSN_POP) && insn->writes >> XP_RBP & 1)
		return true;
	for (unsigned i = 0; i < insn->noperands; i++)
		if (o[i].kind == XP_OPERAND_MEM && o[i].base == XP_RBP)
			return true;
	return insn->op == XP_INSN_MOV && insn->noperands == 2 && o[0].kind == XP_OPERAND_REG &&
	       o[0].reg == XP_RSP && o[1].kind == XP_OPERAND_REG && o[1].reg == XP_RBP;
}

/*
 * Follows the code from pc, past branches and calls. UNSURE when it leads nowhere that tells
 * anything, UNKNOWN when it returns from a stack that is neither a frame's nor the bare one.
 */
static enum xp_jit_leaf follow(const uint8_t *code, size_t n, uint64_t pc)
{
	enum xp_jit_leaf found = XP_JIT_UNSURE;
	bool moved = false, end = false;
	struct xp_disasm *d;
	struct xp_insn insn;

	if (xp_disasm_new(&d, code, n, pc))
		return XP_JIT_UNKNOWN;
	for (int i = 0; i < AHEAD_INSNS && !end && xp_disasm_next(d, &insn); i++) {
		size_t at = insn.addr - pc;

		if (!moved && n - at >= 4 && is_prologue(code + at))
			found = XP_JIT_BARE;
		else if (insn.op == XP_INSN_RET)
			found = moved ? XP_JIT_UNKNOWN : XP_JIT_BARE;
		end = found != XP_JIT_UNSURE || insn.op == XP_INSN_JUMP || uses_frame(&insn);
		if (insn.op != XP_INSN_CALL && insn.writes >> XP_RSP & 1)
			moved = true;
	}
	xp_disasm_free(d);
	return found;
}

/* Where one function ends and another begins: padding after a return, or filling. */
static bool is_boundary(const uint8_t *p)
{
	static const uint8_t zeros[8];
	const uint8_t *next = p[0] == 0xc3 ? p + 1 : p[0] == 0xc2 && p[2] == 0 ? p + 3 : NULL;

	if (!memcmp(p, zeros, sizeof(zeros)) || (p[0] == 0xcc && p[1] == 0xcc))
		return true;
	return next && (next[0] == 0xcc || next[0] == 0x90 || next[0] == 0xf4 ||
			(next[0] == 0 && next[1] == 0) || (next[0] == 0x66 && next[1] == 0x90) ||
			(next[0] == 0x0f && next[1] == 0x1f));
}

/* The last prologue of n bytes of code is in the function that goes on behind them. */
static bool ends_in_frame(const uint8_t *code, size_t n)
{
	for (size_t i = n; i-- > 0;) {
		if (n - i >= 4 && is_prologue(code + i))
			return true;
		if (n - i >= 8 && is_boundary(code + i))
			return false;
	}
	return false;
}

static enum xp_jit_leaf judge_leaf(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc)
{
	uint8_t code[BEHIND + AHEAD];
	uint64_t before = pc - jit->start < BEHIND ? pc - jit->start : BEHIND;
	enum xp_jit_leaf found;
	size_t ahead = AHEAD;

	/* The last page of a mapping may end before. */
	while (ahead && xp_mem_read(&jit->mem, pc - before, code, before + ahead))
		ahead /= 2;
	if (ahead < 8)
		return XP_JIT_UNKNOWN;
	if (before && is_prologue(code + before - 1))
		return XP_JIT_PUSHED;
	found = follow(code + before, ahead, pc);
	if (found != XP_JIT_UNSURE)
		return found;
	if (ends_in_frame(code, before))
		return XP_JIT_FRAMED;
	return xp_jit_keeps_frames(c, jit, pc) ? XP_JIT_UNSURE : XP_JIT_UNKNOWN;
}

enum xp_jit_leaf xp_jit_leaf(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc)
{
	struct verdict key = { .addr = pc, .batch = jit->batch, .pid = jit->mem.pid,
			       .kind = JIT_LEAF }, *v;
	enum xp_jit_leaf found;

	if (find_verdict(c, &key, &v))
		return v->value;
	found = judge_leaf(c, jit, pc);
	find_verdict(c, &key, &v);	/* others may have been put there meanwhile */
	v->value = (uint16_t)found;
	return found;
}

bool xp_jit_follows_call(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc)
{
	struct verdict key = { .addr = pc, .batch = jit->batch, .pid = jit->mem.pid,
			       .kind = JIT_CALL }, *v;
	uint8_t p[7];

	if (!find_verdict(c, &key, &v))
		v->value = !xp_mem_read(&jit->mem, pc - 7, p, sizeof(p)) && xp_ends_in_call(p);
	return v->value;
}
