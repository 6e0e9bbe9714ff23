// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Confirming a Ruby on a live process, one step after the other.
 *
 * The process runs meanwhile, so a wrong value may be one that was read in the midst of a change (a
 * switch of fibers, a frame or a tag that is pushed). It is looked at several times, each time from
 * the beginning, and only what is wrong every time is refused. What is not there is left for later.
 */
#include "runtime/ruby/attach.h"

#include <errno.h>
#include <string.h>

#define TRIES 16
#define FRAMES_CHECKED 4	/* next to the root: the others may change while they are read */
#define FRAMES_SEARCHED 32	/* for one of Ruby code: an Enumerator's fiber begins in C */
#define TAGS_MAX 64
#define MODULES_MAX 4096
#define STATIC_TLS_MAX 0x10000	/* bytes below the thread pointer */
#define STACK_WORDS_MAX (1u << 27)	/* RUBY_THREAD_VM_STACK_SIZE is 1 MiB by default */

/* struct dtv_t is two words on glibc: the block, and what to free (sysdeps/generic/dl-dtv.h). */
#define TP_DTV 8		/* tcbhead_t.dtv (sysdeps/x86_64/nptl/tls.h) */
#define TP_POINTER_GUARD 0x30	/* tcbhead_t.pointer_guard */
#define DTV_STRIDE 16
#define DTV_UNALLOCATED UINT64_MAX

/* gc.h, internal/imemo.h, vm_core.h: the same from 2.6 to 4.1. */
#define EC_STACK_SIZE 8
#define EC_CFP 16
#define CFP_PC 0
#define CFP_ISEQ 16
#define CFP_EP 32
#define CFP_SIZE_MAX 128
#define ISEQ_BODY 16
#define TYPE_MASK 0x1f
#define TYPE_IMEMO 0x1a
#define MAGIC_MASK 0x7fff0001

struct check {
	const struct xp_ruby_image *image;
	const struct xp_ruby_layout *layout;
	uint64_t bias;
	const struct xp_mem *mem;
	struct xp_ruby_names *names;
	struct xp_ruby *value;
	struct xp_err *err;
	uint64_t vm, thread, ec, tp;	/* of the main thread */
	uint64_t cfp, stack_end;
	unsigned confirmed;		/* frames of Ruby code */
};

static enum xp_attach later(struct check *c, const char *what)
{
	xp_err_set(c->err, EAGAIN, "ruby %s: starting: %s", c->image->version, what);
	return XP_ATTACH_LATER;
}

static enum xp_attach wrong(struct check *c, const char *what)
{
	xp_err_set(c->err, ENOTSUP, "ruby %s: not confirmed on the process: %s",
		   c->image->version, what);
	return XP_ATTACH_REFUSED;
}

static bool word(const struct check *c, uint64_t addr, uint64_t *v)
{
	return xp_mem_read(c->mem, addr, v, sizeof(*v)) == 0;
}

static bool word32(const struct check *c, uint64_t addr, uint32_t *v)
{
	return xp_mem_read(c->mem, addr, v, sizeof(*v)) == 0;
}

static bool is_pointer(uint64_t v)
{
	return v >= 4096 && v % 8 == 0 && v < 1ull << 47;
}

static enum xp_attach check_vm(struct check *c)
{
	/* The library's data may not even be mapped yet. */
	if (!word(c, c->bias + c->image->vm_ptr, &c->vm) || !c->vm)
		return later(c, "no VM");
	if (!is_pointer(c->vm) || !word(c, c->vm + c->layout->vm_main_thread, &c->thread))
		return wrong(c, "the VM from rb_during_gc cannot be read");
	return c->thread ? XP_ATTACH_DONE : later(c, "no main thread");
}

static enum xp_attach check_thread(struct check *c)
{
	uint64_t back;

	if (!is_pointer(c->thread) || !word(c, c->thread + c->layout->thread_ec, &c->ec) ||
	    !word(c, c->thread + c->layout->thread_id, &c->tp))
		return wrong(c, "the VM's main thread cannot be read");
	if (!c->ec || !c->tp)
		return later(c, "the main thread has no execution context");
	if (!is_pointer(c->ec) || !word(c, c->ec + c->image->ec_thread, &back))
		return wrong(c, "the main thread's execution context cannot be read");
	if (back != c->thread)
		return wrong(c, "the execution context does not lead back to its thread");
	return XP_ATTACH_DONE;
}

/*
 * Address of the thread's variable by its DTV. The variable is at a constant distance from the
 * thread pointer, in every thread, if the module's block is part of the static TLS that is
 * allocated together with the thread. Proof of it on the one thread looked at: the block begins a
 * short way below the thread pointer, and the DTV has nothing to free for it (glibc frees only
 * blocks that it allocated for a dlopened module; elf/dl-tls.c, _dl_allocate_tls_init(),
 * allocate_and_init()). In doubt, as with glibc before 2.25, whose second word is another one,
 * each sample asks the DTV.
 */
static enum xp_attach check_dynamic(struct check *c, uint64_t *at)
{
	uint64_t module, dtv, entry[2], offset = (uint64_t)c->image->ec_offset;

	if (!word(c, c->bias + c->image->ec_slot, &module) || !module)
		return later(c, "TLS is not set up");
	if (module >= MODULES_MAX)
		return wrong(c, "no TLS module in the word from rb_thread_current");
	if (!word(c, c->tp + TP_DTV, &dtv) || !is_pointer(dtv) ||
	    xp_mem_read(c->mem, dtv + DTV_STRIDE * module, entry, sizeof(entry)))
		return wrong(c, "no DTV at the main thread's pointer");
	if (!entry[0] || entry[0] == DTV_UNALLOCATED)
		return later(c, "the main thread has no TLS block");
	c->value->tls_module = (uint32_t)module;
	c->value->ec_mode = XP_RUBY_EC_DTV;
	c->value->ec_offset = (int64_t)offset;
	if (!entry[1] && entry[0] < c->tp && c->tp - entry[0] <= STATIC_TLS_MAX &&
	    offset < c->tp - entry[0]) {
		c->value->ec_mode = XP_RUBY_EC_TP;
		c->value->ec_offset = (int64_t)(entry[0] + offset - c->tp);
	}
	*at = entry[0] + offset;
	return XP_ATTACH_DONE;
}

/* How a thread finds its execution context leads to the one the main thread has. */
static enum xp_attach check_ec_access(struct check *c)
{
	uint64_t offset = (uint64_t)c->image->ec_offset, from_tp, at, ec;
	enum xp_attach rc;

	if (!is_pointer(c->tp))
		return wrong(c, "the main thread's thread_id is no thread pointer");
	if (c->image->ec_access == XP_RUBY_EC_DYNAMIC) {
		rc = check_dynamic(c, &at);
		if (rc != XP_ATTACH_DONE)
			return rc;
	} else {
		if (c->image->ec_access == XP_RUBY_EC_INITIAL) {
			if (!word(c, c->bias + c->image->ec_slot, &from_tp) || !from_tp)
				return later(c, "TLS is not set up");
			offset += from_tp;
		}
		c->value->ec_mode = XP_RUBY_EC_TP;
		c->value->ec_offset = (int64_t)offset;
		at = c->tp + offset;
	}
	if (!word(c, at, &ec))
		return wrong(c, "the execution context's TLS variable cannot be read");
	if (!ec)
		return later(c, "the main thread's execution context is not current");
	return ec == c->ec ? XP_ATTACH_DONE :
	       wrong(c, "the TLS variable from rb_thread_current is not the main thread's context");
}

static enum xp_attach check_stack(struct check *c)
{
	uint64_t start, words;

	if (!word(c, c->ec + XP_RUBY_EC_VM_STACK, &start) ||
	    !word(c, c->ec + EC_STACK_SIZE, &words) || !word(c, c->ec + EC_CFP, &c->cfp))
		return wrong(c, "the execution context cannot be read");
	if (!start || !words || !c->cfp)
		return later(c, "no VM stack");
	if (!is_pointer(start) || words > STACK_WORDS_MAX)
		return wrong(c, "bounds of the VM stack");
	c->stack_end = start + 8 * words;
	if (c->cfp < start || c->cfp >= c->stack_end)
		return wrong(c, "the control frame lies outside the VM stack");
	if ((c->stack_end - c->cfp) % c->layout->cfp_size)
		return wrong(c, "size of control frames");
	return XP_ATTACH_DONE;
}

/* Kind of a frame by its magic number; 0 when it has none. */
static unsigned kind_of(uint64_t flags)
{
	uint32_t magic = (uint32_t)(flags & MAGIC_MASK);

	for (unsigned kind = XP_RUBY_METHOD; kind <= XP_RUBY_EVAL; kind++) {
		if (magic == kind * 0x11110000u + 1)
			return kind;
	}
	return magic == 0x78880001 ? XP_RUBY_RESCUE : magic == 0x79990001 ? XP_RUBY_DUMMY : 0;
}

static bool has_iseq(unsigned kind)
{
	return kind != XP_RUBY_CFUNC && kind != XP_RUBY_IFUNC && kind != XP_RUBY_DUMMY;
}

/* NULL, or what is wrong with a frame of Ruby code. Its pc may be anything in a leaf. */
static const char *check_iseq(const struct check *c, uint64_t iseq, uint64_t pc, bool leaf)
{
	uint64_t flags, body, encoded, first, core = c->bias + c->image->core[0];
	uint32_t size;

	if (!is_pointer(iseq) || !word(c, iseq, &flags) || (flags & TYPE_MASK) != TYPE_IMEMO)
		return "a frame's code is no iseq";
	if (!word(c, iseq + ISEQ_BODY, &body) || !is_pointer(body) ||
	    !word32(c, body + c->layout->body_size, &size) ||
	    !word(c, body + c->layout->body_encoded, &encoded) || !is_pointer(encoded))
		return "an iseq's body cannot be read";
	if (!word(c, encoded, &first) || first < core ||
	    first - core >= c->image->core[1] - c->image->core[0])
		return "an iseq's first instruction is not in the interpreter loop";
	if (pc && !leaf && (pc < encoded || pc - encoded > 8 * (uint64_t)size))
		return "a frame's pc lies outside its iseq";
	return NULL;
}

static const char *check_frame(struct check *c, uint64_t at, bool root)
{
	uint64_t frame[CFP_SIZE_MAX / 8], flags;
	bool leaf = at == c->cfp;
	const char *bad;
	unsigned kind;

	if (xp_mem_read(c->mem, at, frame, c->layout->cfp_size) ||
	    !is_pointer(frame[CFP_EP / 8]) || !word(c, frame[CFP_EP / 8], &flags))
		return "a control frame cannot be read";
	kind = kind_of(flags);
	if (root)
		return kind == XP_RUBY_DUMMY ? NULL : "the VM stack does not begin with a dummy";
	if (!kind)
		return "a control frame of unknown kind";
	if (!has_iseq(kind))
		return NULL;
	bad = check_iseq(c, frame[CFP_ISEQ / 8], frame[CFP_PC / 8], leaf);
	if (!bad)
		c->confirmed++;
	return bad;
}

/* The oldest frames, which stay; the youngest may be half pushed and then does not count. */
static enum xp_attach check_frames(struct check *c)
{
	uint64_t at = c->stack_end - c->layout->cfp_size;
	const char *bad = NULL;

	c->confirmed = 0;
	for (unsigned i = 0; !bad && at >= c->cfp; i++) {
		if (i >= FRAMES_CHECKED && (c->confirmed || i >= FRAMES_SEARCHED))
			break;
		bad = check_frame(c, at, i == 0);
		if (bad && i && (at == c->cfp || i >= FRAMES_CHECKED))
			bad = NULL;
		at -= c->layout->cfp_size;
	}
	if (bad)
		return wrong(c, bad);
	return c->confirmed ? XP_ATTACH_DONE : later(c, "no frame of Ruby code");
}

/* Operators have their character as ID (id.h). */
static enum xp_attach check_names(struct check *c)
{
	char plus[8], less[8];

	if (!xp_ruby_names_id(c->names, '+', plus, sizeof(plus)) ||
	    !xp_ruby_names_id(c->names, '<', less, sizeof(less)))
		return wrong(c, "the table of symbols from rb_id2str cannot be read");
	if (strcmp(plus, "+") != 0 || strcmp(less, "<") != 0)
		return wrong(c, "the table of symbols from rb_id2str has other names");
	return XP_ATTACH_DONE;
}

static bool in_vm_exec(const struct check *c, uint64_t pc)
{
	const uint64_t *r = c->image->vm_exec;

	pc -= c->bias;
	return (pc >= r[0] && pc < r[1]) || (pc >= r[2] && pc < r[3]);
}

/*
 * Whether the tags hold jump buffers of this kind: one was set in vm_exec(). glibc keeps the pc
 * rotated and xored with the thread's guard (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h).
 */
static bool has_jmpbuf(const struct check *c, enum xp_ruby_jmpbuf kind)
{
	uint64_t tag, next, pc, guard = 0;
	bool glibc = kind == XP_RUBY_JMPBUF_GLIBC;

	if (!word(c, c->ec + XP_RUBY_EC_TAG, &tag) ||
	    (glibc && !word(c, c->tp + TP_POINTER_GUARD, &guard)))
		return false;
	for (unsigned i = 0; i < TAGS_MAX && is_pointer(tag); i++) {
		if (!word(c, tag + (glibc ? 72 : 24), &pc) ||
		    !word(c, tag + (glibc ? 216 : 56), &next))
			return false;
		if (glibc)
			pc = (pc >> 17 | pc << 47) ^ guard;
		if (in_vm_exec(c, pc))
			return true;
		/* Older tags lie in older native frames. */
		if (next <= tag)
			return false;
		tag = next;
	}
	return false;
}

static enum xp_attach check_tags(struct check *c)
{
	if (has_jmpbuf(c, XP_RUBY_JMPBUF_BUILTIN))
		c->value->jmpbuf = XP_RUBY_JMPBUF_BUILTIN;
	else if (has_jmpbuf(c, XP_RUBY_JMPBUF_GLIBC))
		c->value->jmpbuf = XP_RUBY_JMPBUF_GLIBC;
	else
		return later(c, "no jump buffer of vm_exec");
	return XP_ATTACH_DONE;
}

static enum xp_attach check_gc(struct check *c)
{
	uint64_t objspace;
	uint32_t flags;

	if (!word(c, c->vm + c->image->vm_objspace, &objspace))
		return wrong(c, "the objspace pointer from rb_during_gc cannot be read");
	if (!objspace)
		return later(c, "no objspace");
	c->value->gc_flags = objspace + c->image->objspace_flags;
	if (!is_pointer(objspace) || !word32(c, c->value->gc_flags, &flags))
		return wrong(c, "the flags of the objspace cannot be read");
	return XP_ATTACH_DONE;
}

static enum xp_attach check_all(struct check *c)
{
	static enum xp_attach (*const steps[])(struct check *) = {
		check_vm, check_thread, check_ec_access, check_stack, check_frames, check_names,
		check_tags, check_gc,
	};
	enum xp_attach rc = XP_ATTACH_DONE;

	memset(c->value, 0, sizeof(*c->value));
	for (size_t i = 0; rc == XP_ATTACH_DONE && i < sizeof(steps) / sizeof(steps[0]); i++)
		rc = steps[i](c);
	return rc;
}

enum xp_attach xp_ruby_confirm(const struct xp_ruby_image *image, uint64_t bias,
			       const struct xp_mem *mem, struct xp_ruby_names *names,
			       struct xp_ruby *value, struct xp_err *err)
{
	struct check c = { .image = image, .layout = image->layout, .bias = bias, .mem = mem,
			   .names = names, .value = value, .err = err };
	enum xp_attach rc = XP_ATTACH_LATER;
	bool early = false;

	for (unsigned i = 0; i < TRIES && rc != XP_ATTACH_DONE && (i == 0 || c.vm); i++) {
		rc = check_all(&c);
		early |= rc == XP_ATTACH_LATER;
	}
	if (rc != XP_ATTACH_DONE)
		return early ? XP_ATTACH_LATER : rc;
	for (unsigned i = 0; i < 4; i++)
		value->vm_exec[i] = image->vm_exec[i] ? image->vm_exec[i] + bias : 0;
	value->cfp_size = image->layout->cfp_size;
	value->jit_return = image->layout->cfp_jit_return;
	value->stack_start = image->layout->ec_stack_start;
	return XP_ATTACH_DONE;
}
