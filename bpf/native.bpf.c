/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Native frames: one step per frame by the compact rows of unwind.h, by the frame pointer where a
 * mapping has none. Every end has a reason; a pc that leads nowhere is not pushed.
 *
 * The same step runs in two programs: one bpf_loop() from Linux 5.17 on, and a chain of tail calls
 * before. User space loads one of them and puts it into the program array.
 */
#include "xbpf.h"

#define ROW_STEPS 14		/* XP_PAGE_ROWS_MAX rows */
#define RANGE_STEPS 15		/* 32,767 mappings */
#define RESUME_STEPS 16		/* activations looked at in one step */
/* For frames, the end, the activations looked at, and code in no mapping that one leads out of. */
#define STEPS_MAX (XP_NATIVE_FRAMES_MAX + 1 + XP_ACTS_MAX / RESUME_STEPS + XP_ACTS_MAX)
#define FP_FRAME_MAX (1 << 20)	/* bytes; a larger frame is taken for a register that is no frame pointer */

enum xp_resume { XP_RESUME_NONE, XP_RESUME_DONE, XP_RESUME_SEARCH };
enum { XP_SEARCH_MAPPED = 1, XP_SEARCH_UNMAPPED };	/* w->searching */

/* Makes w->range the mapping around pc; false when there is none. */
static __always_inline int find_range(struct xp_walk *w, __u64 pc)
{
	__u32 first = w->proc.first, lo = first, hi = first + w->proc.count;
	const struct xp_range *r;

	if (pc >= w->range.start && pc < w->range.end)
		return 1;
	for (int i = 0; i < RANGE_STEPS; i++) {
		__u32 mid = lo + ((hi - lo) >> 1);

		if (lo >= hi)
			break;
		r = xp_range(mid);
		if (!r)
			return 0;
		if (r->start <= pc)
			lo = mid + 1;
		else
			hi = mid;
	}
	if (lo == first)
		return 0;
	r = xp_range(lo - 1);
	if (!r || pc < r->start || pc >= r->end)
		return 0;
	w->range = *r;
	return 1;
}

/* The rule in force at a pc inside w->range, or NULL when nothing is known about it. */
static __always_inline const struct xp_rule *find_rule(const struct xp_walk *w, __u64 pc)
{
	__u64 vaddr = pc - w->range.bias;
	__u64 n = vaddr >> XP_PAGE_SHIFT;
	const struct xp_page *page;
	const struct xp_block *block;
	__u32 key, lo, hi, first;

	if (n >= w->range.npages)
		return 0;
	page = xp_page(w->range.page + (__u32)n);
	if (!page)
		return 0;
	first = lo = page->first;
	hi = first + page->count;
	block = xp_block(first >> XP_BLOCK_SHIFT);
	if (!block)
		return 0;
	key = XP_ROW(vaddr, 0xffff);
#pragma unroll
	for (int i = 0; i < ROW_STEPS; i++) {
		if (lo < hi) {
			__u32 mid = (lo + hi) >> 1;

			if (block->rows[mid & (XP_BLOCK_ROWS - 1)] <= key)
				lo = mid + 1;
			else
				hi = mid;
		}
	}
	if (lo == first)
		return 0;
	return xp_rule(block->rows[(lo - 1) & (XP_BLOCK_ROWS - 1)] & 0xffff);
}

/* A register by DWARF number, where it is known. */
static __always_inline int read_reg(const struct xp_walk *w, __u32 reg, __u64 *value)
{
	for (int i = 0; i < XP_SAVED_N; i++) {
		if (xp_saved_dwarf(i) != reg)
			continue;
		if (w->saved_lost & (1 << i))
			return -1;
		if (w->saved_at[i])
			return xp_read_user(value, 8, w->saved_at[i]);
		/* Nobody has saved it yet, so it still is what the leaf has. */
		*value = ((const __u64 *)&w->regs)[xp_place(XP_PLACES_IN_REGS, reg)];
		return 0;
	}
	if (reg >= XP_DWARF_REGS || reg == XP_DWARF_SP || !w->all_regs)
		return -1;
	if (w->gregs)
		return xp_read_user(value, 8, w->gregs + 8 * xp_place(XP_PLACES_IN_GREGS, reg));
	*value = ((const __u64 *)&w->regs)[xp_place(XP_PLACES_IN_REGS, reg)];
	return 0;
}

static __always_inline int stop(struct xp_walk *w, enum xp_end reason)
{
	w->sample.end = reason;
	return 1;
}

/* Appends a frame; the caller has checked that there is room. */
static __always_inline void push_frame(struct xp_walk *w, __u64 pc)
{
	__u32 at = w->words;

	w->payload[at & (XP_SAMPLE_WORDS - 1)] = pc;
	w->payload[(at + 1) & (XP_SAMPLE_WORDS - 1)] = w->sp & 0xffffffffffffULL;
	w->words = at + 2;
	w->frames++;
}

/* Marks the frame pushed last. */
static __always_inline void flag_frame(struct xp_walk *w, __u64 flag)
{
	w->payload[(w->words - 1) & (XP_SAMPLE_WORDS - 1)] |= flag << 48;
}

/*
 * Out of code that cannot be stepped out of, JIT code above all: at the innermost activation of a
 * runtime above the stack pointer. The list ascends, so the cursor only moves on; a long one is
 * looked through over several steps.
 */
static __always_inline enum xp_resume resume(struct xp_walk *w)
{
	const struct xp_activation *a;
	__u32 i = w->act;

	if (!w->on_stack)	/* never onto another stack: in a fiber switch they may differ */
		return XP_RESUME_NONE;
	for (int n = 0; n < RESUME_STEPS; n++) {
		if (i >= w->nacts)
			return XP_RESUME_NONE;
		a = &w->acts[i & (XP_ACTS_MAX - 1)];
		if (a->sp > w->sp)
			break;
		w->act = ++i;
	}
	a = &w->acts[i & (XP_ACTS_MAX - 1)];
	if (i >= w->nacts || a->sp <= w->sp)
		return XP_RESUME_SEARCH;
	flag_frame(w, XP_FRAME_RESUMED);
	w->sp = a->sp;
	w->fp = a->fp;
	w->pc = w->act_pc;
	w->fp_known = w->exact = 1;
	w->all_regs = 0;
	w->saved_lost = (1 << XP_SAVED_N) - 1;
	return XP_RESUME_DONE;
}

/* Out of code without rows: the frame pointer, when it looks like one. */
static __always_inline int step_fp(struct xp_walk *w)
{
	__u64 fp = w->fp, pair[2];

	if (!w->fp_known)
		return stop(w, XP_END_NO_ROWS);
	if (!fp) {
		flag_frame(w, XP_FRAME_BY_FP);
		w->sample.flags |= XP_RAW_USED_FP;
		return stop(w, XP_END_FP_ZERO);
	}
	if (fp < w->sp || fp - w->sp > FP_FRAME_MAX || (fp & 7))
		return stop(w, XP_END_NO_ROWS);
	if (xp_read_user(pair, sizeof(pair), fp))
		return stop(w, XP_END_READ);
	flag_frame(w, XP_FRAME_BY_FP);
	w->sample.flags |= XP_RAW_USED_FP;
	if (!pair[1])
		return stop(w, XP_END_FP_ZERO);
	w->sp = fp + 16;
	w->fp = pair[0];
	w->pc = pair[1];
	w->exact = w->all_regs = 0;
	/* Code that keeps a frame pointer still uses these registers as it likes. */
	w->saved_lost = (1 << XP_SAVED_N) - 1;
	return 0;
}

/* Over a signal trampoline: the kernel has saved every register of the interrupted code. */
static __always_inline int step_signal(struct xp_walk *w)
{
	__u64 gregs = w->sp + XP_GREGS_OFFSET;
	__u64 span[XP_GREGS_SPAN];

	if (xp_read_user(span, sizeof(span), w->sp + XP_GREGS_SPAN_AT))
		return stop(w, XP_END_READ);
	flag_frame(w, XP_FRAME_SIGNAL);
	for (int i = 0; i < XP_SAVED_N; i++)
		w->saved_at[i] = gregs + 8 * xp_place(XP_PLACES_IN_GREGS, xp_saved_dwarf(i));
	w->saved_lost = 0;
	w->gregs = gregs;
	w->fp = span[0];
	w->sp = span[5];
	w->pc = span[6];
	w->fp_known = w->exact = w->all_regs = 1;
	return 0;
}

/*
 * The leaf is a thread that has just begun: the kernel gives it a result of 0 (Linux,
 * arch/x86/kernel/process.c, copy_thread()) and its parent another.
 */
static __always_inline int is_new_thread(const struct xp_walk *w, const struct xp_rule *rule)
{
	return w->exact && w->all_regs && !w->gregs && rule->reg < XP_DWARF_REGS &&
	       !((const __u64 *)&w->regs)[xp_place(XP_PLACES_IN_REGS, rule->reg)];
}

/* The canonical frame address by a rule; false with the end's reason set. */
static __always_inline int find_cfa(struct xp_walk *w, const struct xp_rule *rule, __u64 *cfa)
{
	__u8 kind = rule->kind;
	__u64 at;

	if (kind == XP_RULE_SP || kind == XP_RULE_FORK) {
		flag_frame(w, XP_FRAME_BY_SP);
		*cfa = w->sp + rule->cfa_off;
		return 1;
	}
	if ((kind == XP_RULE_FP || kind == XP_RULE_DEREF_FP) && !w->fp_known)
		return !stop(w, XP_END_BAD_RULE);
	switch (kind) {
	case XP_RULE_FP:
		*cfa = w->fp + rule->cfa_off;
		return 1;
	case XP_RULE_PLT:
		*cfa = w->sp + 8 + ((w->pc & 15) >= (__u32)rule->cfa_off ? 8 : 0);
		return 1;
	case XP_RULE_DEREF_FP:
	case XP_RULE_DEREF_SP:
		at = (kind == XP_RULE_DEREF_FP ? w->fp : w->sp) + rule->cfa_off;
		if (xp_read_user(cfa, 8, at))
			return !stop(w, XP_END_READ);
		*cfa += rule->deref_add;
		return 1;
	case XP_RULE_REG:
		if (read_reg(w, rule->reg, &at))
			return !stop(w, XP_END_BAD_RULE);
		*cfa = at + rule->cfa_off;
		return 1;
	default:
		return !stop(w, XP_END_BAD_RULE);
	}
}

/* Where the caller's rbx and r12 to r15 are; read only when somebody asks. */
static __always_inline void note_saved(struct xp_walk *w, const struct xp_rule *rule, __u64 cfa)
{
	for (int i = 0; i < XP_SAVED_N; i++) {
		__u8 slot = rule->save[i];

		if (!slot)
			continue;
		if (slot == XP_SAVE_LOST) {
			w->saved_lost |= 1 << i;
			continue;
		}
		w->saved_at[i] = cfa - 8 * (__u64)slot;
		w->saved_lost &= ~(1 << i);
	}
}

/* The caller's frame pointer by a rule; false with the end's reason set. */
static __always_inline int step_fp_reg(struct xp_walk *w, __s16 fp_off, __u64 cfa)
{
	__u64 at = cfa + fp_off;

	if (fp_off == XP_FP_SAME)
		return 1;
	if (fp_off == XP_FP_AT_FP)
		at = w->fp;
	if (fp_off == XP_FP_LOST || (fp_off == XP_FP_AT_FP && !w->fp_known)) {
		w->fp_known = 0;
		return 1;
	}
	if (xp_read_user(&w->fp, 8, at))
		return !stop(w, XP_END_READ);
	w->fp_known = 1;
	return 1;
}

/* The return address by a rule; false with the end's reason set. */
static __always_inline int find_ra(struct xp_walk *w, const struct xp_rule *rule, __u64 cfa, __u64 *ra)
{
	if (rule->ra)
		return !xp_read_user(ra, 8, cfa - 8 * (__u64)rule->ra) || !stop(w, XP_END_READ);
	return !read_reg(w, rule->reg, ra) || !stop(w, XP_END_BAD_RULE);
}

/* To the caller by a rule of one of the ordinary kinds. */
static __always_inline int step_rule(struct xp_walk *w, const struct xp_rule *rule)
{
	__s16 fp_off = rule->fp_off;
	__u64 cfa, pair[2];

	if (!find_cfa(w, rule, &cfa))
		return 1;
	/* Equal where the return address is in a register: nothing was on the stack. */
	if (cfa < w->sp || (cfa == w->sp && rule->ra))
		return stop(w, XP_END_BACKWARDS);
	if (rule->ra == 1 && fp_off == -16) {
		/* The two lie side by side after `push %rbp`: one read instead of two. */
		if (xp_read_user(pair, sizeof(pair), cfa - 16))
			return stop(w, XP_END_READ);
		w->fp = pair[0];
		w->fp_known = 1;
	} else {
		if (!find_ra(w, rule, cfa, &pair[1]))
			return 1;
		if (!step_fp_reg(w, fp_off, cfa))
			return 1;
	}
	note_saved(w, rule, cfa);
	w->pc = pair[1];
	w->sp = cfa;
	w->exact = w->all_regs = 0;
	if (!w->pc)
		return stop(w, XP_END_FIBER);
	return 0;
}

/* From a frame that no row describes; mapped: its pc lies in executable memory. */
static __always_inline int step_blind(struct xp_walk *w, int mapped)
{
	enum xp_resume found = resume(w);

	w->searching = 0;
	if (found == XP_RESUME_DONE)
		return 0;
	if (found == XP_RESUME_SEARCH) {
		w->searching = mapped ? XP_SEARCH_MAPPED : XP_SEARCH_UNMAPPED;
		return 0;
	}
	if (mapped)
		return step_fp(w);
	return stop(w, w->proc.count ? XP_END_NO_MAPPING : XP_END_NO_PROCESS);
}

/* One frame: pushes w->pc and goes to its caller. Returns 1 when the stack has ended. */
static __always_inline int step(struct xp_walk *w)
{
	__u64 lookup = w->pc - !w->exact;
	const struct xp_rule *rule;

	if (w->searching)
		return step_blind(w, w->searching == XP_SEARCH_MAPPED);
	if (w->frames >= XP_NATIVE_FRAMES_MAX)
		return stop(w, XP_END_TOO_DEEP);
	if (!find_range(w, lookup)) {
		if (!w->frames)
			push_frame(w, w->pc);
		return step_blind(w, 0);
	}
	push_frame(w, w->pc);
	rule = find_rule(w, lookup);
	if (!rule || rule->kind == XP_RULE_NONE)
		return step_blind(w, 1);
	if (rule->kind == XP_RULE_END || (rule->kind == XP_RULE_FORK && is_new_thread(w, rule)))
		return stop(w, XP_END_OUTERMOST);
	if (rule->kind == XP_RULE_SIGNAL)
		return step_signal(w);
	return step_rule(w, rule);
}

/*
 * After the walk: what lies on the stack at a leaf that was left by frame pointer. A return address
 * there is the caller's when the leaf has not set up a frame of its own; user space can tell.
 */
static __always_inline void push_leaf_words(struct xp_walk *w)
{
	struct xp_raw_part part = { .runtime = XP_RUNTIME_NATIVE, .nacts = XP_LEAF_WORDS };
	__u64 words[XP_LEAF_WORDS], leaf;

	if (!(w->sample.flags & XP_RAW_USED_FP))
		return;
	leaf = w->payload[(w->sample.nkernel + 1) & (XP_SAMPLE_WORDS - 1)];
	if (!((leaf >> 48) & XP_FRAME_BY_FP) || xp_read_user(words, sizeof(words), w->regs.sp))
		return;
	xp_push(w, ((__u64 *)&part)[0]);
	xp_push(w, ((__u64 *)&part)[1]);
	for (int i = 0; i < XP_LEAF_WORDS; i++)
		xp_push(w, words[i]);
	w->sample.nparts++;
}

#ifdef __bpf__

static long loop_step(__u32 i, struct xp_walk **w)
{
	return step(*w);
}

SEC("perf_event")
int xp_native_loop(void *ctx)
{
	struct xp_walk *w = xp_walk();

	if (!w)
		return 0;
	w->sample.end = XP_END_TOO_DEEP;	/* when all steps are used up */
	bpf_loop(STEPS_MAX, loop_step, &w, 0);
	push_leaf_words(w);
	xp_next(ctx, w);
	return 0;
}

SEC("perf_event")
int xp_native_tail(void *ctx)
{
	struct xp_walk *w = xp_walk();

	if (!w)
		return 0;
	for (int i = 0; i < XP_TAIL_FRAMES; i++) {
		if (step(w))
			goto finish;
	}
	if (++w->tail_calls < (w->after ? XP_TAIL_CALLS_SHARED : XP_TAIL_CALLS))
		bpf_tail_call(ctx, &stages, XP_STAGE_NATIVE);
	stop(w, XP_END_TAIL_CALLS);
finish:
	push_leaf_words(w);
	xp_next(ctx, w);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";

#else

/* For the tests: the whole walk. */
void xp_native_walk(struct xp_walk *w);
void xp_native_walk(struct xp_walk *w)
{
	w->sample.end = XP_END_TOO_DEEP;
	for (int i = 0; i < STEPS_MAX && !step(w); i++)
		;
}

#endif
