// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * What three exported functions of Ruby's C API say by their machine code.
 *
 * rb_thread_current() is ec->thread_ptr->self (thread.c), rb_during_gc() tests one bit of the VM's
 * object space (gc.c), rb_id2str() looks an ID up in ruby_global_symbols (symbol.c). Extensions
 * call them, so every build exports them.
 */
#include <elf.h>
#include <errno.h>
#include <string.h>

#include "runtime/ruby/image_impl.h"

#define OFFSET_MAX 0x10000	/* no structure of Ruby's is larger */
#define FIRST_ID_MAX 4096	/* last ID that Ruby's own tables use; about 250 */

static int fail(const struct xp_ruby_reader *r, const char *what)
{
	return xp_err_set(r->err, ENOTSUP, "ruby %s: %s", r->image->version, what);
}

/* Traces a function; rc as xp_ruby_trace_run(), -ENOTSUP when the function is not there. */
static int trace(const struct xp_ruby_reader *r, const char *name, xp_ruby_visit visit, void *ctx,
		 bool follow_calls)
{
	struct xp_ruby_trace t = { .r = r, .visit = visit, .ctx = ctx,
				   .follow_calls = follow_calls };
	struct xp_ruby_code code;

	if (!xp_ruby_function(r, name, &code))
		return xp_err_set(r->err, ENOTSUP, "ruby %s: no exported function %s",
				  r->image->version, name);
	return xp_ruby_trace_run(&t, &code);
}

static bool sane_offset(int64_t off)
{
	return off >= 0 && off < OFFSET_MAX;
}

/* A thread's variable, loaded, and two more loads: ec, ec->thread_ptr, thread->self. */
static bool visit_thread_current(struct xp_ruby_trace *t, const struct xp_insn *insn,
				 const struct xp_ruby_value *v)
{
	struct xp_ruby_value *found = t->ctx;

	if (insn->op != XP_INSN_MOV || v[1].depth != XP_RUBY_V_DEPTH ||
	    (v[1].base != XP_RUBY_V_DYNAMIC && v[1].base != XP_RUBY_V_INITIAL &&
	     v[1].base != XP_RUBY_V_TP))
		return false;
	*found = v[1];
	return true;
}

/* Offset of a dynamic variable in its block: relocated, or a constant in the file. */
static bool dynamic_offset(const struct xp_ruby_reader *r, uint64_t slot, int64_t *offset)
{
	const struct xp_reloc *reloc = xp_reloc_at(&r->relocs, slot + 8);
	const uint8_t *p = xp_elf_at_vaddr(r->elf, slot + 8, 8);
	uint64_t value;

	if (reloc) {
		if (reloc->type != R_X86_64_DTPOFF64 || !xp_reloc_value(r->elf, reloc, &value))
			return false;
		*offset = (int64_t)(value + (uint64_t)reloc->addend);
		return true;
	}
	if (p)
		memcpy(offset, p, 8);
	return p != NULL;
}

static int set_ec_access(struct xp_ruby_reader *r, const struct xp_ruby_value *v)
{
	struct xp_ruby_image *image = r->image;
	struct xp_export sym;
	int64_t offset;

	image->ec_slot = v->n;
	image->ec_offset = v->off[0];
	if (v->base == XP_RUBY_V_TP) {
		image->ec_access = XP_RUBY_EC_LOCAL;
		return 0;
	}
	if (v->base == XP_RUBY_V_INITIAL) {
		image->ec_access = XP_RUBY_EC_INITIAL;
		return 0;
	}
	image->ec_access = XP_RUBY_EC_DYNAMIC;
	if (!dynamic_offset(r, v->n, &offset))
		return fail(r, "rb_thread_current: no offset of the execution context's TLS");
	/* With local-dynamic code the word in the file is 0, and the offset is in the code. */
	image->ec_offset = (int64_t)((uint64_t)offset + (uint64_t)v->off[0]);
	if (xp_elf_export(r->elf, "ruby_current_ec", &sym) && sym.type == STT_TLS &&
	    sym.value != (uint64_t)image->ec_offset)
		return fail(r, "rb_thread_current does not use ruby_current_ec");
	return 0;
}

int xp_ruby_read_thread_current(struct xp_ruby_reader *r)
{
	struct xp_ruby_value v = { 0 };
	int rc = trace(r, "rb_thread_current", visit_thread_current, &v, true);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return fail(r, "rb_thread_current: no load of the thread from a TLS variable");
	if (!sane_offset(v.off[1]) || !sane_offset(v.off[2]))
		return fail(r, "rb_thread_current: offsets outside any structure");
	r->image->ec_thread = (uint16_t)v.off[1];
	r->image->thread_self = (uint16_t)v.off[2];
	return set_ec_access(r, &v);
}

struct gc_test {
	struct xp_ruby_value flags;
	unsigned bit;
	bool objspace;		/* at least its pointer was loaded */
};

static bool single_bit(int64_t mask, unsigned *bit)
{
	if (mask <= 0 || mask & (mask - 1))
		return false;
	*bit = (unsigned)__builtin_ctzll((uint64_t)mask);
	return true;
}

/* The test of one bit of a word that was loaded through two pointers: vm, vm->objspace. */
static bool visit_during_gc(struct xp_ruby_trace *t, const struct xp_insn *insn,
			    const struct xp_ruby_value *v)
{
	const struct xp_operand *o = insn->operands;
	struct gc_test *found = t->ctx;
	unsigned bit;

	if (insn->noperands == 2 && v[1].base == XP_RUBY_V_ADDR && v[1].depth == 2)
		found->objspace = true;
	if (insn->noperands != 2 || v[0].base != XP_RUBY_V_ADDR ||
	    v[0].depth != XP_RUBY_V_DEPTH || o[1].kind != XP_OPERAND_IMM)
		return false;
	if (insn->op == XP_INSN_BT)
		bit = (unsigned)o[1].value & 31;
	else if ((insn->op != XP_INSN_AND && insn->op != XP_INSN_TEST) ||
		 !single_bit(o[1].value, &bit))
		return false;
	found->flags = v[0];
	found->bit = bit + v[0].shift;
	return true;
}

int xp_ruby_read_during_gc(struct xp_ruby_reader *r)
{
	struct gc_test found = { .objspace = false };
	struct xp_ruby_image *image = r->image;
	struct xp_export sym;
	int rc = trace(r, "rb_during_gc", visit_during_gc, &found, false);

	if (rc < 0)
		return rc;
	if (rc == 0)
		return fail(r, found.objspace ? "rb_during_gc: no test of a bit of the objspace" :
			       "rb_during_gc: no load of the objspace pointer");
	if (!sane_offset(found.flags.off[1]) || !sane_offset(found.flags.off[2]))
		return fail(r, "rb_during_gc: offsets outside any structure");
	image->vm_ptr = found.flags.n + (uint64_t)found.flags.off[0];
	image->vm_objspace = (uint32_t)found.flags.off[1];
	/* A byte of the word may be what is tested. */
	image->objspace_flags = (uint32_t)found.flags.off[2] & ~3u;
	found.bit += 8 * ((uint32_t)found.flags.off[2] & 3);
	if (found.bit > 31)
		return fail(r, "rb_during_gc: the bit lies outside the flags");
	image->gc_bit = (uint8_t)found.bit;
	if (xp_elf_export(r->elf, "ruby_current_vm_ptr", &sym) && sym.value != image->vm_ptr)
		return fail(r, "rb_during_gc does not use ruby_current_vm_ptr");
	return 0;
}

struct id_lookup {
	int64_t limit, shift;	/* 0: not seen */
	uint64_t table;		/* lowest address that looks like the table; 0: none */
	uint64_t jump;		/* target of the first jump out of the function, 0: none */
	struct xp_ruby_code code;
};

/*
 * ruby_global_symbols begins with the last ID given out: in the file, tNEXT_ID - 1, which is above
 * the last operator's (symbol.c, id.h).
 */
static bool may_be_table(const struct xp_ruby_reader *r, uint64_t at, int64_t limit)
{
	const uint8_t *p = at % 8 ? NULL : xp_elf_at_vaddr(r->elf, at, 24);
	uint32_t last_id;

	if (!p || xp_reloc_at(&r->relocs, at))
		return false;
	memcpy(&last_id, p, sizeof(last_id));
	return last_id >= limit && last_id < FIRST_ID_MAX;
}

static void note_table(struct id_lookup *found, const struct xp_ruby_reader *r, uint64_t at)
{
	if (may_be_table(r, at, found->limit ? found->limit : 1) &&
	    (!found->table || at < found->table))
		found->table = at;
}

static bool visit_id2str(struct xp_ruby_trace *t, const struct xp_insn *insn,
			 const struct xp_ruby_value *v)
{
	const struct xp_operand *o = insn->operands;
	struct id_lookup *found = t->ctx;

	if (insn->noperands == 2 && o[1].kind == XP_OPERAND_IMM && v[0].base == XP_RUBY_V_ARG &&
	    !v[0].depth && !v[0].shift && !v[0].add) {
		if (insn->op == XP_INSN_CMP && !found->limit)
			found->limit = o[1].value;
		else if (insn->op == XP_INSN_SHR && !found->shift)
			found->shift = o[1].value;
	}
	for (unsigned i = 0; i < insn->noperands; i++) {
		if (o[i].kind == XP_OPERAND_MEM && o[i].fixed)
			note_table(found, t->r, (uint64_t)o[i].value);
		if (v[i].base == XP_RUBY_V_ADDR && v[i].depth == 0)
			note_table(found, t->r, v[i].n);
	}
	if ((insn->op == XP_INSN_JUMP || insn->op == XP_INSN_CALL) &&
	    o[0].kind == XP_OPERAND_IMM && !found->jump &&
	    ((uint64_t)o[0].value < found->code.start || (uint64_t)o[0].value >= found->code.end))
		found->jump = (uint64_t)o[0].value;
	return false;
}

/* The lookup's own function, when rb_id2str() only prepares its argument. */
static int trace_lookup(struct xp_ruby_reader *r, struct id_lookup *found)
{
	struct xp_ruby_trace t = { .r = r, .visit = visit_id2str, .ctx = found };
	struct xp_ruby_code code;

	if (!xp_ruby_function_at(r, found->jump, &code) || code.start != found->jump)
		return 0;
	found->code = code;
	return xp_ruby_trace_run(&t, &code);
}

int xp_ruby_read_id2str(struct xp_ruby_reader *r)
{
	struct id_lookup found = { 0 };
	int rc;

	xp_ruby_function(r, "rb_id2str", &found.code);
	rc = trace(r, "rb_id2str", visit_id2str, &found, false);
	if (rc < 0)
		return rc;
	if (found.limit < 1 || found.limit >= FIRST_ID_MAX)
		return fail(r, "rb_id2str: no comparison with the last operator's ID");
	if (found.shift < 1 || found.shift > 16)
		return fail(r, "rb_id2str: no shift of the ID");
	if (!found.table && found.jump)
		rc = trace_lookup(r, &found);
	if (rc < 0)
		return rc;
	if (!found.table)
		return fail(r, "rb_id2str: no use of the table of symbols");
	r->image->symbols = found.table;
	r->image->last_op_id = (uint32_t)found.limit;
	r->image->id_shift = (uint8_t)found.shift;
	return 0;
}
