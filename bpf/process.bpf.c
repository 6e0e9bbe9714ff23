/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which processes are sampled, kept up to date where it happens: a child of a target is one from
 * its first instruction. Exec needs no program here: sched_process_exec comes after the new image's
 * mappings were announced, too late to be first; user space drops what was walked with old tables
 * (src/collect/targets.c, generations).
 */
#include "xbpf.h"
#include "kernel.h"

const volatile unsigned int follow_children = 1;	/* set before loading */

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
	struct xp_raw_exit record = { .kind = XP_RAW_EXIT };
	__u32 tgid = task->tgid;

	if (task->signal->live.counter || !bpf_map_lookup_elem(&procs, &tgid))
		return 0;
	bpf_map_delete_elem(&procs, &tgid);
	record.pid = tgid;
	record.time = bpf_ktime_get_ns();
	bpf_ringbuf_output(&ring, &record, sizeof(record), BPF_RB_FORCE_WAKEUP);
	return 0;
}

char LICENSE[] SEC("license") = "GPL";
