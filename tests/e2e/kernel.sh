#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# Kernel frames: named, on top of the user frames that made the call; without the right to see kernel
# addresses one warning, and frames that still say they are kernel.

. "$(dirname "$0")/../lib/xprof.sh"
need_bpf
need_workloads

# above FUNCTION PATTERN: percent of the samples in FUNCTION whose frames above it match
above()
{
	awk -v f="$1" -v pattern="$2" '{
		count = $0; sub(/^.* /, "", count)
		at = index($0, ";" f ";")
		if (!at && !index($0, ";" f " ")) next
		all += count
		if (at && substr($0, at + length(f) + 1) ~ pattern) n += count
	} END { print all ? int(100 * n / all) : 0 }' "$stacks"
}

record "$tmp/data" -F 999 -- "$WORKLOADS/kernel" 1.5
is "$status" 0 "status" || diag "$err"
folded "$tmp/data"
complete_enough "time in the kernel"
cmp_num "$(above calls_getppid 'entry_SYSCALL_64|do_syscall_64|getppid')" -ge 30 \
	"system calls: kernel frames above the function"
cmp_num "$(above reads_zero 'read_zero|read_iter_zero|clear_user|rep_stos')" -ge 60 \
	"read: the kernel's function is named"
cmp_num "$(above faults_pages 'exc_page_fault|handle_mm_fault|do_user_addr_fault')" -ge 20 \
	"page faults: the kernel's functions are named"
is "$(unknown)" 0 "no unknown function"
diag "$(sort -t ' ' -k 2 "$stacks" | awk '{ print $NF, $0 }' | sort -rn | head -5)"

restricted=$(cat /proc/sys/kernel/kptr_restrict)
at_exit()
{
	echo "$restricted" >/proc/sys/kernel/kptr_restrict
}
if echo 2 >/proc/sys/kernel/kptr_restrict 2>/dev/null; then
	run "$XPROF" record -F 999 -o "$tmp/data" -- "$WORKLOADS/kernel" 0.7
	is "$status" 0 "kptr_restrict: status"
	is "$(grep -c kptr_restrict "$tmp/err")" 1 "kptr_restrict: one warning" || diag "$err"
	folded "$tmp/data"
	complete_enough "kptr_restrict"
	cmp_num "$(above reads_zero '\\[kernel')" -ge 60 "kptr_restrict: frames say that they are kernel" ||
		diag "$(grep reads_zero "$stacks" | head -3)"
	at_exit
else
	skip sysctl "kernel.kptr_restrict cannot be written here" "kptr_restrict"
fi
done_testing
