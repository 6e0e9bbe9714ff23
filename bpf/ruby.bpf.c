/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Ruby: before the native walk the activations of vm_exec, from the chain of ec->tag; after it the
 * control frames. Two plain lists; user space joins them to the native frames by stack address.
 *
 * A control frame costs four reads of user memory (frames eight at a time, environment, iseq or
 * method entry); two small caches, valid within one sample, serve recursion and loops.
 */
#include "xbpf.h"
#include "ruby.h"

#define CACHE 32
#define BATCH 8			/* control frames in one read */
#define CFP_WORDS 8		/* of a control frame at most */
#define EP_LEVELS 16
#define TAGS_MAX (4 * XP_ACTS_MAX)	/* looked at, those of vm_exec and others */
#define TIME_CHECK 64		/* frames between looks at the clock */

/* Without bpf_loop(): tags, frames per program, programs; and environments followed per frame. */
#define TAIL_TAGS 128
#define TAIL_FRAMES 64
#define TAIL_PROGRAMS 16
#define TAIL_EP_LEVELS 4

/* Objects: include/ruby/internal/value_type.h, internal/imemo.h. */
#define T_MASK 0x1f
#define T_IMEMO 0x1a
#define IMEMO_TYPE(flags) (((flags) >> 12) & 0xf)
#define IMEMO_SVAR 2
#define IMEMO_MENT 6

/* Environment flags in ep[0]: vm_core.h. */
#define EP_LOCAL 0x2
#define EP_FINISH 0x20
#define EP_BMETHOD 0x40
#define EP_LAMBDA 0x100

struct cached {
	__u64 key, serial;		/* a pointer, and the sample in which it was followed */
	__u64 a, b;
};

struct ruby_scratch {
	struct xp_ruby params;
	__u64 tag, guard;
	__u64 cfp, top;			/* next control frame, end of the VM stack */
	__u64 serial;			/* of the sample */
	__u32 batch_at, batch_n;
	__u32 head;			/* word of the part's header in the payload */
	__u32 nframes;
	__u32 tail_calls;
	__u8 end, acts_end;		/* enum xp_vm_end */
	struct cached iseqs[CACHE], methods[CACHE];
	__u64 frames[BATCH * CFP_WORDS];
};

#ifdef __bpf__

XP_MAP(ruby_params, BPF_MAP_TYPE_ARRAY, __u32, struct xp_ruby, XP_RUNTIME_PARAMS, 0);
XP_MAP(ruby_scratch, BPF_MAP_TYPE_ARRAY, __u32, struct ruby_scratch, 1, 0);

static __always_inline struct ruby_scratch *scratch_of(const struct xp_walk *w)
{
	__u32 cpu = w->sample.cpu;

	return bpf_map_lookup_elem(&ruby_scratch, &cpu);
}

static __always_inline const struct xp_ruby *params_of(const struct xp_walk *w)
{
	__u32 slot = w->proc.slots[XP_RUNTIME_RUBY];

	return bpf_map_lookup_elem(&ruby_params, &slot);
}

#else

const struct xp_ruby *params_of(const struct xp_walk *w);

#endif

static __always_inline int in_vm_exec(const struct xp_ruby *r, __u64 pc)
{
	return (pc >= r->vm_exec[0] && pc < r->vm_exec[1]) ||
	       (pc >= r->vm_exec[2] && pc < r->vm_exec[3]);
}

/* glibc's PTR_DEMANGLE (sysdeps/unix/sysv/linux/x86_64/pointer_guard.h). */
static __always_inline __u64 demangle(__u64 value, __u64 guard)
{
	return ((value >> 17) | (value << 47)) ^ guard;
}

/* The execution context of this thread, 0: none. */
static __always_inline __u64 find_ec(const struct xp_ruby *r, __u64 tp)
{
	__u64 at = tp, ec = 0;

	if (!tp)
		return 0;
	if (r->ec_mode == XP_RUBY_EC_DTV) {
		if (xp_read_user(&at, 8, tp + 8) ||
		    xp_read_user(&at, 8, at + 16 * (__u64)r->tls_module) || !at || at == ~0ULL)
			return 0;
	}
	xp_read_user(&ec, 8, at + r->ec_offset);
	return ec;
}

/* Takes the VM's and the machine stack's bounds from the context. */
static __always_inline int read_ec(struct xp_walk *w, struct ruby_scratch *s, __u64 ec)
{
	__u64 v[4], stack[3];
	__u64 size = s->params.cfp_size;

	if (xp_read_user(v, sizeof(v), ec)) {
		s->end = XP_VM_END_READ;
		return 0;
	}
	s->tag = v[3];
	s->cfp = v[2];
	s->top = v[0] + 8 * v[1];
	if (!v[0] || s->cfp < v[0] || s->cfp >= s->top || !size || (s->top - s->cfp) % size)
		s->end = XP_VM_END_BAD;
	/* machine.stack_start, stack_end, stack_maxsize */
	if (!xp_read_user(stack, sizeof(stack), ec + s->params.stack_start) && stack[0])
		w->on_stack = w->sp <= stack[0] && w->sp >= stack[0] - stack[2];
	return 1;
}

/* One tag of the chain. Returns 1 at its end. */
static __always_inline int step_tag(struct xp_walk *w, struct ruby_scratch *s)
{
	__u64 tag = s->tag, j[6], sp, fp, pc, prev;
	__u32 n = w->nacts;

	if (!tag) {
		s->acts_end = XP_VM_END_ROOT;
		return 1;
	}
	if (n >= XP_ACTS_MAX)
		return 1;
	s->acts_end = XP_VM_END_READ;
	if (s->params.jmpbuf == XP_RUBY_JMPBUF_BUILTIN) {
		if (xp_read_user(j, 48, tag + 16))
			return 1;
		fp = j[0];
		pc = j[1];
		sp = j[2];
		prev = j[5];
	} else {
		/* rbp at + 24; rsp and rip at + 64 and + 72 */
		if (xp_read_user(&fp, 8, tag + 24) || xp_read_user(j, 16, tag + 64) ||
		    xp_read_user(&prev, 8, tag + 216))
			return 1;
		fp = demangle(fp, s->guard);
		sp = demangle(j[0], s->guard);
		pc = demangle(j[1], s->guard);
	}
	if (in_vm_exec(&s->params, pc)) {
		w->act_pc = pc;
		w->acts[n & (XP_ACTS_MAX - 1)].sp = sp;
		w->acts[n & (XP_ACTS_MAX - 1)].fp = fp;
		w->nacts = n + 1;
	}
	s->tag = prev;
	s->acts_end = XP_VM_END_TOO_DEEP;	/* if this was the last one looked at */
	return 0;
}

/* A method entry's definition and owner, when me is one (or an svar that holds one). */
static __always_inline int read_method(struct ruby_scratch *s, __u64 me, int local, __u64 *def,
				       __u64 *owner, __u64 *flags)
{
	struct cached *c = &s->methods[((me >> 4) ^ (me >> 9)) & (CACHE - 1)];
	__u64 m[5];

	if (c->key == me && c->serial == s->serial) {
		*def = c->a;
		*owner = c->b;
		return 1;
	}
	if (xp_read_user(m, sizeof(m), me)) {
		*flags |= XP_RUBY_FAULT;
		return 0;
	}
	if ((m[0] & T_MASK) != T_IMEMO)
		return 0;
	if (IMEMO_TYPE(m[0]) == IMEMO_SVAR && local) {
		if (!m[1] || (m[1] & 7))
			return 0;
		if (xp_read_user(m, sizeof(m), m[1])) {
			*flags |= XP_RUBY_FAULT;
			return 0;
		}
		if ((m[0] & T_MASK) != T_IMEMO)
			return 0;
	}
	if (IMEMO_TYPE(m[0]) != IMEMO_MENT)
		return 0;
	c->key = me;
	c->serial = s->serial;
	c->a = *def = m[2];
	c->b = *owner = m[4];
	return 1;
}

/* Follows the environments outward from ep to the method entry. e: ep[-2], ep[-1], ep[0]. */
static __always_inline void find_method(struct ruby_scratch *s, const __u64 *first, int levels,
					__u64 *def, __u64 *owner, __u64 *flags)
{
	__u64 e[3] = { first[0], first[1], first[2] };

	for (int level = 0; level < levels; level++) {
		int local = e[2] & EP_LOCAL;

		if (e[0] && !(e[0] & 7) && read_method(s, e[0], local, def, owner, flags))
			return;
		if (local)
			return;
		if (xp_read_user(e, sizeof(e), (e[1] & ~3ULL) - 16)) {
			*flags |= XP_RUBY_FAULT;
			return;
		}
	}
	*flags |= XP_RUBY_EP_CUT;
}

/* The body of an iseq, or the function of an imemo_ifunc: both at + 16. */
static __always_inline __u64 read_code(struct ruby_scratch *s, __u64 iseq, __u64 *flags)
{
	struct cached *c = &s->iseqs[((iseq >> 4) ^ (iseq >> 9)) & (CACHE - 1)];
	__u64 body = 0;

	if (c->key == iseq && c->serial == s->serial)
		return c->a;
	if (xp_read_user(&body, 8, iseq + 16)) {
		*flags |= XP_RUBY_FAULT;
		return 0;
	}
	c->key = iseq;
	c->serial = s->serial;
	c->a = body;
	return body;
}

/* The kind of a frame by its magic number, 0: it has none, so it is only half pushed. */
static __always_inline __u32 kind_of(__u64 ep0)
{
	__u32 kind = (ep0 >> 16) & 0xf;
	__u64 magic = kind == XP_RUBY_RESCUE ? 0x78880001
		    : kind == XP_RUBY_DUMMY  ? 0x79990001
					     : (__u64)kind * 0x11110000 + 1;

	return (ep0 & 0x7fff0001) == magic && kind <= XP_RUBY_DUMMY ? kind : 0;
}

/* Makes sure that the next control frame is among s->frames; its first word's index, or -1. */
static __always_inline int next_words(struct ruby_scratch *s)
{
	__u64 left = s->top - s->cfp, size = s->params.cfp_size, bytes;
	__u32 at = s->batch_at, n = BATCH;

	if (at >= s->batch_n) {
		if (n * size > left)
			n = left / size;
		bytes = n * size;
		/* Keeps the compiler from dropping the mask that the verifier wants to see. */
		asm volatile("" : "+r"(bytes));
		bytes &= sizeof(s->frames) * 2 - 1;
		if (!n || bytes > sizeof(s->frames) || xp_read_user(s->frames, bytes, s->cfp))
			return -1;
		s->batch_n = n;
		at = 0;
	}
	s->batch_at = at + 1;
	return at * (size >> 3);
}

/*
 * Whether a frame is the outermost of an activation of vm_exec. The one that stands for an extension
 * while its Init function runs has FINISH too, but no vm_exec: it never had a pc (Ruby 3.1, vm.c,
 * rb_vm_call_cfunc()).
 */
static __always_inline int ends_segment(__u64 ep0, __u32 kind, __u64 pc, __u64 jit)
{
	return ep0 & EP_FINISH && !(kind == XP_RUBY_TOP && !pc && !jit);
}

/* One control frame; levels: of environments to follow. Returns 1 at the end of the stack. */
static __always_inline int step_frame(struct xp_walk *w, struct ruby_scratch *s, int levels)
{
	__u64 e[3], flags = 0, code = 0, def = 0, owner = 0, pc, iseq, ep, jit = 0;
	__u32 kind, n = s->nframes;
	int at;

	if (s->cfp >= s->top) {
		s->end = XP_VM_END_ROOT;
		return 1;
	}
	if (n >= XP_VM_FRAMES_MAX) {
		s->end = XP_VM_END_TOO_DEEP;
		return 1;
	}
	if (!(n % TIME_CHECK) && n && xp_now() - w->sample.time > vm_time_ns) {
		s->end = XP_VM_END_TIME;
		return 1;
	}
	at = next_words(s);
	if (at < 0) {
		s->end = XP_VM_END_READ;
		return 1;
	}
	pc = s->frames[at & (BATCH * CFP_WORDS - 1)];
	iseq = s->frames[(at + 2) & (BATCH * CFP_WORDS - 1)];
	ep = s->frames[(at + 4) & (BATCH * CFP_WORDS - 1)];
	if (s->params.jit_return)
		jit = s->frames[(at + (s->params.jit_return >> 3)) & (BATCH * CFP_WORDS - 1)];
	s->cfp += s->params.cfp_size;
	kind = 0;
	if (xp_read_user(e, sizeof(e), ep - 16))
		flags |= XP_RUBY_FAULT;
	else
		kind = kind_of(e[2]);
	if (!kind) {
		flags |= XP_RUBY_TORN;
	} else {
		flags |= kind;
		flags |= ends_segment(e[2], kind, pc, jit) ? XP_VM_SEGMENT_END : 0;
		flags |= e[2] & EP_BMETHOD ? XP_RUBY_BMETHOD : 0;
		flags |= e[2] & EP_LAMBDA ? XP_RUBY_LAMBDA : 0;
		flags |= e[2] & EP_LOCAL ? XP_RUBY_LOCAL : 0;
		flags |= jit ? XP_RUBY_JIT : 0;
		if (kind != XP_RUBY_DUMMY)
			find_method(s, e, levels, &def, &owner, &flags);
		if (kind == XP_RUBY_CFUNC)
			code = def;
		else if (kind != XP_RUBY_DUMMY && iseq)
			code = read_code(s, iseq, &flags);
		if (kind == XP_RUBY_CFUNC || kind == XP_RUBY_IFUNC)
			pc = 0;
	}
	xp_push(w, (code & 0xffffffffffffULL) | (flags << 48));
	xp_push(w, owner);
	xp_push(w, pc);
	s->nframes = n + 1;
	return 0;
}

/* Finds the context and what is in it; false: this thread runs no Ruby, or it cannot be read. */
static __always_inline int begin(struct xp_walk *w, struct ruby_scratch *s)
{
	const struct xp_ruby *params = params_of(w);
	__u64 ec;

	s->end = s->acts_end = XP_VM_END_NONE;
	s->nframes = s->batch_at = s->batch_n = s->tail_calls = 0;
	s->serial++;
	if (!params || params->ec_mode == XP_RUBY_EC_NONE)
		return 0;
	s->params = *params;
	ec = find_ec(params, w->tp);
	if (!ec)
		return 0;
	if (s->params.jmpbuf == XP_RUBY_JMPBUF_GLIBC && xp_read_user(&s->guard, 8, w->tp + 0x30))
		return 0;
	return read_ec(w, s, ec);
}

/* The part's header and the activations; the frames follow, and the header gets their number. */
static __always_inline void push_head(struct xp_walk *w, struct ruby_scratch *s)
{
	s->head = w->words;
	xp_push(w, 0);
	xp_push(w, 0);
}

static __always_inline void fill_head(struct xp_walk *w, struct ruby_scratch *s)
{
	struct xp_raw_part part = {
		.runtime = XP_RUNTIME_RUBY,
		.end = s->end,
		.acts_end = s->acts_end,
		.flags = w->on_stack ? XP_PART_ON_STACK : 0,
		.nacts = w->nacts,
		.nframes = s->nframes,
	};
	__u32 at = s->head;

	if (s->params.gc_flags)
		xp_read_user(&part.state, sizeof(part.state), s->params.gc_flags);
	w->payload[at & (XP_SAMPLE_WORDS - 1)] = ((__u64 *)&part)[0];
	w->payload[(at + 1) & (XP_SAMPLE_WORDS - 1)] = ((__u64 *)&part)[1];
	w->sample.nparts++;
}

#ifdef __bpf__

static long loop_tag(__u32 i, struct xp_walk **w)
{
	struct ruby_scratch *s = scratch_of(*w);

	return !s || step_tag(*w, s);
}

static long loop_act(__u32 i, struct xp_walk **w)
{
	if (i >= (*w)->nacts)
		return 1;
	xp_push(*w, (*w)->acts[i & (XP_ACTS_MAX - 1)].sp);
	return 0;
}

static long loop_frame(__u32 i, struct xp_walk **w)
{
	struct ruby_scratch *s = scratch_of(*w);

	return !s || step_frame(*w, s, EP_LEVELS);
}

SEC("perf_event")
int xp_before_ruby_loop(void *ctx)
{
	struct xp_walk *w = xp_walk();
	struct ruby_scratch *s = w ? scratch_of(w) : 0;

	if (!s)
		return 0;
	if (begin(w, s))
		bpf_loop(TAGS_MAX, loop_tag, &w, 0);
	else
		w->after &= ~(1 << XP_RUNTIME_RUBY);
	xp_next(ctx, w);
	return 0;
}

SEC("perf_event")
int xp_after_ruby_loop(void *ctx)
{
	struct xp_walk *w = xp_walk();
	struct ruby_scratch *s = w ? scratch_of(w) : 0;

	if (!s)
		return 0;
	push_head(w, s);
	bpf_loop(XP_ACTS_MAX, loop_act, &w, 0);
	if (s->end == XP_VM_END_NONE)
		bpf_loop(XP_VM_FRAMES_MAX + 1, loop_frame, &w, 0);
	fill_head(w, s);
	xp_next(ctx, w);
	return 0;
}

SEC("perf_event")
int xp_before_ruby_tail(void *ctx)
{
	struct xp_walk *w = xp_walk();
	struct ruby_scratch *s = w ? scratch_of(w) : 0;

	if (!s)
		return 0;
	if (begin(w, s)) {
		for (int i = 0; i < TAIL_TAGS; i++)
			if (step_tag(w, s))
				break;
	} else {
		w->after &= ~(1 << XP_RUNTIME_RUBY);
	}
	xp_next(ctx, w);
	return 0;
}

SEC("perf_event")
int xp_after_ruby_tail(void *ctx)
{
	struct xp_walk *w = xp_walk();
	struct ruby_scratch *s = w ? scratch_of(w) : 0;

	if (!s)
		return 0;
	if (!s->tail_calls) {
		push_head(w, s);
		for (int i = 0; i < TAIL_TAGS; i++)
			if (loop_act(i, &w))
				break;
	}
	for (int i = 0; i < TAIL_FRAMES && s->end == XP_VM_END_NONE; i++)
		if (step_frame(w, s, TAIL_EP_LEVELS))
			break;
	if (s->end == XP_VM_END_NONE && ++s->tail_calls < TAIL_PROGRAMS)
		bpf_tail_call(ctx, &stages, XP_STAGE_AFTER + XP_RUNTIME_RUBY);
	if (s->end == XP_VM_END_NONE)
		s->end = XP_VM_END_TOO_DEEP;
	fill_head(w, s);
	xp_next(ctx, w);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";

#else

/* For the tests: what the two programs do. */
void xp_ruby_activations(struct xp_walk *w, struct ruby_scratch *s);
void xp_ruby_frames(struct xp_walk *w, struct ruby_scratch *s);

void xp_ruby_activations(struct xp_walk *w, struct ruby_scratch *s)
{
	if (!begin(w, s)) {
		w->after = 0;
		return;
	}
	for (int i = 0; i < TAGS_MAX && !step_tag(w, s); i++)
		;
}

void xp_ruby_frames(struct xp_walk *w, struct ruby_scratch *s)
{
	push_head(w, s);
	for (__u32 i = 0; i < w->nacts; i++)
		xp_push(w, w->acts[i].sp);
	while (s->end == XP_VM_END_NONE && !step_frame(w, s, EP_LEVELS))
		;
	fill_head(w, s);
}

#endif
