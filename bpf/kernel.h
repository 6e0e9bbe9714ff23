/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The few kernel structures that are read, reduced to the fields used. libbpf relocates each access
 * against the running kernel's BTF, so no vmlinux.h is needed.
 *
 * Names, types and constants: Linux include/linux/sched.h, include/linux/sched/signal.h.
 */
#ifndef XP_BPF_KERNEL_H
#define XP_BPF_KERNEL_H

#ifdef __bpf__
#pragma clang attribute push(__attribute__((preserve_access_index)), apply_to = record)
#endif

typedef struct {
	int counter;
} atomic_t;

struct signal_struct {
	atomic_t live;			/* threads that have not begun to exit */
};

struct mm_struct;

struct thread_struct {
	unsigned long fsbase;		/* x86-64: the thread pointer */
};

struct task_struct {
	unsigned int flags;
	int pid, tgid;
	void *stack;
	struct mm_struct *mm;
	struct signal_struct *signal;
	struct thread_struct thread;
};

#ifdef __bpf__
#pragma clang attribute pop
#endif

#define XP_PF_IO_WORKER 0x00000010	/* PF_IO_WORKER: an io_uring worker, runs no user code */
#define XP_PF_KTHREAD 0x00200000	/* PF_KTHREAD */

#endif
