/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which processes are sampled, kept up to date where it happens: a child of a target is one from
 * its first instruction.
 *
 * sched_process_exec comes after the new image's mappings were announced, too late to be first, so
 * the old tables are not withdrawn here: user space drops what was walked with them
 * (src/collect/targets.c, generations). But it is told at once.
 */
#include "xbpf.h"
#include "kernel.h"

const volatile unsigned int follow_children = 1;	/* set before loading */

static __always_inline void tell(__u32 kind, __u32 pid)
{
	struct xp_raw_note note = { .kind = kind, .pid = pid, .time = bpf_ktime_get_ns() };

	bpf_ringbuf_output(&ring, &note, sizeof(note), BPF_RB_FORCE_WAKEUP);
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(xp_fork, struct task_struct *parent, struct task_struct *child)
{
	__u32 from = parent->tgid, to = child->tgid;
	struct xp_proc *proc, copy;

	if (!follow_children || from == to)
		return 0;
	proc = bpf_map_lookup_elem(&procs, &from);
	if (!proc)
		return 0;
	copy = *proc;
	copy.tgid = to;
	if (bpf_map_update_elem(&procs, &to, &copy, BPF_ANY))
		xp_count(XP_COUNT_UNTRACKED);
	return 0;
}

/* The last thread has gone: told through the ring of the samples, so that order is kept. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(xp_exit, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (task->signal->live.counter || !bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	bpf_map_delete_elem(&procs, &tgid);
	tell(XP_RAW_EXIT, tgid);
	return 0;
}

SEC("tp_btf/sched_process_exec")
int BPF_PROG(xp_exec, struct task_struct *task)
{
	__u32 tgid = task->tgid;

	if (bpf_map_lookup_elem(&procs, &tgid))
		tell(XP_RAW_EXEC, tgid);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
