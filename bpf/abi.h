/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side tells user space: one raw sample per timer tick, and counters.
 *
 * Written once, in sample.bpf.c and native.bpf.c; read once, in src/collect/raw.c, which trusts no
 * count in it.
 */
#ifndef XP_BPF_ABI_H
#define XP_BPF_ABI_H

#include <linux/types.h>

#include "runtimes.h"

/*
 * How a user stack ended. Complete ends first; every reason after XP_END_LAST_COMPLETE cuts the
 * stack at its root side and is shown as a frame "[truncated: ...]" and counted.
 */
enum xp_end {
	XP_END_NONE,		/* no user stack: kernel thread */
	XP_END_OUTERMOST,	/* unwind information says so: _start, clone */
	XP_END_FP_ZERO,		/* end of a frame pointer chain */
	XP_END_FIBER,		/* return address 0 reached by unwind rows: start of a coroutine's stack */
	XP_END_EXITING,		/* no user stack any more: the task has given up its address space */
	XP_END_LAST_COMPLETE = XP_END_EXITING,
	XP_END_TOO_DEEP,	/* more frames than the buffer holds */
	XP_END_TAIL_CALLS,	/* more frames than the kernel's tail calls reach */
	XP_END_NO_PROCESS,	/* no tables for this process yet */
	XP_END_NO_MAPPING,	/* pc outside every executable mapping */
	XP_END_NO_ROWS,		/* no unwind information here and the frame pointer leads nowhere */
	XP_END_BAD_RULE,	/* unwind information that rows cannot hold, or a register not known here */
	XP_END_READ,		/* the stack could not be read */
	XP_END_32BIT,		/* 32-bit code */
	XP_END_BACKWARDS,	/* the caller's frame would lie below this one: damaged stack */
	XP_END_STACK_SWITCH,	/* the code went to another stack: set by user space, which reads it */
	XP_END_REASONS
};

enum xp_raw_flags {
	XP_RAW_IN_KERNEL = 1,		/* the timer hit kernel mode */
	XP_RAW_KERNEL_CUT = 2,		/* the kernel stack was deeper than its buffer */
	XP_RAW_KERNEL_LOST = 4,		/* the kernel stack could not be taken */
	XP_RAW_USED_FP = 8,		/* at least one step by frame pointer */
};

#define XP_KERNEL_FRAMES_MAX 127	/* kernel.perf_event_max_stack as kernels ship it */
#define XP_NATIVE_FRAMES_MAX 1536
#define XP_WAKE_NEW_NS 3000000
#define XP_WAKE_VM_NS 10000000
#define XP_TAIL_FRAMES 16		/* native frames walked by one program of the tail-call variant */
#define XP_TAIL_CALLS 16		/* of the kernel's 33, what native frames may use ... */
#define XP_TAIL_CALLS_SHARED 8		/* ... and what is left to them when VM frames follow */
#define XP_LEAF_WORDS 8
#define XP_VM_FRAMES_MAX 8192
#define XP_ACTS_MAX 1024
#define XP_SAMPLE_WORDS 32768		/* power of two: the payload in 64-bit words, all parts together */

/* What a ring record is: its first word. */
enum xp_raw_kind {
	XP_RAW_SAMPLE = 1,
	XP_RAW_EXIT,			/* struct xp_raw_note: the last thread of a target has gone */
	XP_RAW_EXEC,			/* struct xp_raw_note: a target runs a new program */
};

struct xp_raw_note {
	__u32 kind;
	__u32 pid;
	__u64 time;
};

/* A native frame in the payload. */
struct xp_raw_frame {
	__u64 pc;
	__u64 sp_flags;			/* stack pointer in this frame, enum xp_raw_frame_flags above bit 48 */
};

enum xp_raw_frame_flags {
	XP_FRAME_BY_FP = 1,		/* the step out of this frame used the frame pointer, or the
					 * stack ended here because of it (XP_END_FP_ZERO) */
	XP_FRAME_SIGNAL = 2,		/* a signal trampoline: the next frame's pc is exact */
	XP_FRAME_RESUMED = 4,		/* the next frame was found by a runtime's activation; its pc is exact */
	XP_FRAME_BY_SP = 8,		/* ... by a distance from the stack pointer */
};

struct xp_raw_sample {
	__u32 kind;			/* XP_RAW_SAMPLE */
	__u32 cpu;
	__u64 time;			/* CLOCK_MONOTONIC, ns */
	__u32 pid, tid;
	__u32 generation;		/* of the process's ranges that were used */
	__u16 nkernel;			/* 64-bit words, leaf first */
	__u16 nnative;			/* struct xp_raw_frame each, leaf first */
	__u8 end;			/* enum xp_end */
	__u8 flags;			/* enum xp_raw_flags */
	__u8 nparts;
	__u8 pad[5];
	/* __u64 kernel[nkernel]; struct xp_raw_frame native[nnative]; nparts times struct xp_raw_part */
};

/* How a walk of VM frames or of activations ended. */
enum xp_vm_end {
	XP_VM_END_NONE,			/* no VM runs on this thread */
	XP_VM_END_ROOT,			/* all of it */
	XP_VM_END_TOO_DEEP,		/* cut by the buffer */
	XP_VM_END_TIME,			/* cut by the time a sample may take */
	XP_VM_END_READ,			/* memory could not be read */
	XP_VM_END_BAD,			/* the VM's own bounds do not hold */
	XP_VM_ENDS
};

enum xp_raw_part_flags {
	XP_PART_ON_STACK = 1,		/* the stack pointer lies on the context's own machine stack */
};

/*
 * What one runtime's walker found. Followed by __u64 acts[nacts], the stack addresses of the VM's
 * native activations, and struct xp_raw_vm_frame frames[nframes], both leaf first.
 */
struct xp_raw_part {
	/*
	 * enum xp_runtime_id. Of native code there is a part when the leaf's step used the frame
	 * pointer: acts are the XP_LEAF_WORDS words at its stack pointer, nframes is 0.
	 */
	__u8 runtime;
	__u8 end, acts_end;		/* enum xp_vm_end */
	__u8 flags;			/* enum xp_raw_part_flags */
	__u16 nacts, nframes;
	__u32 state;			/* of the VM, as the runtime says: see its header */
	__u32 pad;
};

_Static_assert(sizeof(struct xp_raw_part) == 16, "shared by two compilers");

struct xp_raw_vm_frame {
	__u64 code_flags;		/* code in the low 48 bits; the runtime's flags, and: */
	__u64 owner;
	__u64 pc;
};
#define XP_VM_SEGMENT_END 0x8000	/* the last frame of an activation, in the high 16 bits */

_Static_assert(sizeof(struct xp_raw_sample) == 40, "shared by two compilers");

/* The stages of a sample, as indexes of the program array `stages`; a stage tail-calls the next. */
enum xp_stage {
	XP_STAGE_NATIVE,
	XP_STAGE_FINISH,
	XP_STAGE_BEFORE,		/* + runtime: before the native walk, finds its activations */
	XP_STAGE_AFTER = XP_STAGE_BEFORE + XP_RUNTIMES_N,	/* + runtime: walks its frames */
	XP_STAGES = XP_STAGE_AFTER + XP_RUNTIMES_N
};

/* Counted per CPU in BPF, summed in user space. */
enum xp_counter {
	XP_COUNT_SAMPLES,		/* ticks that hit a target */
	XP_COUNT_LOST,			/* samples for which the ring had no room */
	XP_COUNT_UNTRACKED,		/* children for which the process table had no room */
	XP_COUNTERS
};

#endif
