/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A sample's beginning and end: the timer's program takes the registers and the kernel stack, the
 * last stage sends the record to user space.
 */
#define XP_DEFINE_MAPS
#include "xbpf.h"
#include "kernel.h"

/* Set before loading. */
const volatile unsigned int have_task_regs = 1;	/* bpf_task_pt_regs() is there: Linux 5.15 */
const volatile unsigned long long vm_time_ns = 1000000;	/* what the VM frames of a sample may take */
const volatile unsigned int wake_bytes = 0;	/* wake the reader when the ring holds this much */

#ifdef XP_TEST_STOP
/* Test builds only: the next sample stops the task exactly at the sampled instruction. */
volatile unsigned int stop_armed = 0;
#endif

/* The user registers at the tick, from the context or from the task; false: none (kernel thread). */
static __always_inline int fetch_regs(const volatile __u64 *ctx, struct xp_walk *w)
{
	struct task_struct *task;
	unsigned int flags;
	void *regs;

	/* Loads from the context must be single, of full width and at fixed offsets. */
#pragma unroll
	for (int i = 0; i < XP_REGS_N; i++)
		((__u64 *)&w->regs)[i] = ctx[i];
	if (xp_regs_user(&w->regs))
		return 1;
	w->sample.flags |= XP_RAW_IN_KERNEL;
	task = (struct task_struct *)bpf_get_current_task();
	flags = BPF_CORE_READ(task, flags);
	if (flags & (XP_PF_KTHREAD | XP_PF_IO_WORKER))
		return 0;
	if (!BPF_CORE_READ(task, mm)) {
		w->sample.end = XP_END_EXITING;
		return 0;
	}
	if (have_task_regs)
		regs = (void *)bpf_task_pt_regs((void *)bpf_get_current_task_btf());
	else
		regs = BPF_CORE_READ(task, stack) + XP_THREAD_SIZE - sizeof(w->regs);
	if (bpf_probe_read_kernel(&w->regs, sizeof(w->regs), regs)) {
		w->sample.end = XP_END_READ;
		return 0;
	}
	return 1;
}

static __always_inline __u64 thread_pointer(void)
{
	struct task_struct *task = (struct task_struct *)bpf_get_current_task();

	return BPF_CORE_READ(task, thread.fsbase);
}

static __always_inline void fetch_kernel_stack(void *ctx, struct xp_walk *w)
{
	long n = bpf_get_stack(ctx, w->payload, XP_KERNEL_FRAMES_MAX * 8, 0);

	if (n <= 0) {
		w->sample.flags |= XP_RAW_KERNEL_LOST;
		return;
	}
	n = (n >> 3) & 127;
	w->sample.nkernel = n;
	w->words = n;
	if (n == XP_KERNEL_FRAMES_MAX)
		w->sample.flags |= XP_RAW_KERNEL_CUT;
}

/* Bit per runtime that is attached to the process. */
static __always_inline __u8 runtimes_of(const struct xp_proc *proc)
{
	__u8 bits = 0;

	for (int r = 1; r < XP_RUNTIMES_N; r++)
		if (proc->slots[r])
			bits |= 1 << r;
	return bits;
}

static __always_inline void begin(struct xp_walk *w, __u64 id)
{
	w->sample.kind = XP_RAW_SAMPLE;
	w->sample.cpu = bpf_get_smp_processor_id();
	w->sample.time = bpf_ktime_get_ns();
	w->sample.pid = id >> 32;
	w->sample.tid = (__u32)id;
	w->sample.generation = w->proc.generation;
	w->sample.nkernel = w->sample.nnative = 0;
	w->sample.end = XP_END_NONE;
	w->sample.flags = 0;
	w->sample.nparts = 0;
	w->frames = w->words = w->tail_calls = 0;
	w->nacts = w->act = 0;
	w->tp = 0;
	w->on_stack = w->native_done = w->searching = 0;
	w->before = w->after = runtimes_of(&w->proc);
	w->range.start = w->range.end = 0;
	w->gregs = 0;
	w->saved_lost = 0;
	w->exact = w->all_regs = w->fp_known = 1;
	for (int i = 0; i < XP_SAVED_N; i++)
		w->saved_at[i] = 0;
}

SEC("perf_event")
int xp_sample(void *ctx)
{
	__u64 id = bpf_get_current_pid_tgid();
	__u32 tgid = id >> 32;
	struct xp_proc *proc = bpf_map_lookup_elem(&procs, &tgid);
	struct xp_walk *w;

	if (!proc)
		return 0;
#ifdef XP_TEST_STOP
	if (!stop_armed)
		return 0;
#endif
	w = xp_walk();
	if (!w)
		return 0;
	xp_count(XP_COUNT_SAMPLES);
	w->proc = *proc;
	if (w->proc.tgid != tgid)	/* the entry was given to another process while we copied */
		w->proc.count = 0;
	begin(w, id);
	if (fetch_regs(ctx, w)) {
		w->pc = w->regs.ip;
		w->sp = w->regs.sp;
		w->fp = w->regs.bp;
		if (w->sample.flags & XP_RAW_IN_KERNEL)
			fetch_kernel_stack(ctx, w);
		if (!xp_regs_32bit(&w->regs)) {
			if (w->before)
				w->tp = thread_pointer();
			xp_next(ctx, w);
			return 0;
		}
		w->sample.end = XP_END_32BIT;
	} else {
		fetch_kernel_stack(ctx, w);
	}
	w->before = w->after = 0;
	w->native_done = 1;
	xp_next(ctx, w);
	return 0;
}

/*
 * Waking the reader costs more than walking a stack: only when there is enough to read; when new
 * code is met for which it should make tables; when there are VM frames, whose names must be read
 * while they are what they were. The latter two not too often.
 */
static __always_inline __u64 wake_flags(struct xp_walk *w)
{
	__u8 end = w->sample.end;

	__u64 since = w->sample.time - w->woken;

	if (((end == XP_END_NO_MAPPING || end == XP_END_NO_PROCESS) && since > XP_WAKE_NEW_NS) ||
	    (w->sample.nparts && since > XP_WAKE_VM_NS)) {
		w->woken = w->sample.time;
		return BPF_RB_FORCE_WAKEUP;
	}
	return bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA) >= wake_bytes ? BPF_RB_FORCE_WAKEUP
									 : BPF_RB_NO_WAKEUP;
}

SEC("perf_event")
int xp_finish(void *ctx)
{
	struct xp_walk *w = xp_walk();
	__u64 size;

	if (!w)
		return 0;
	w->sample.nnative = w->frames;
	size = w->words;
	if (size > XP_SAMPLE_WORDS)
		size = XP_SAMPLE_WORDS;
	size = sizeof(w->sample) + size * 8;
#ifdef XP_TEST_STOP
	stop_armed = 0;
	bpf_send_signal(19);
#endif
	if (bpf_ringbuf_output(&ring, &w->sample, size, wake_flags(w)))
		xp_count(XP_COUNT_LOST);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
