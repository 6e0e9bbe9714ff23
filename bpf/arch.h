/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What depends on the machine: the user registers, how to fetch them, where a signal frame keeps
 * them, and their DWARF numbers. Nothing else on the kernel side asks for the architecture.
 */
#ifndef XP_BPF_ARCH_H
#define XP_BPF_ARCH_H

#if defined(__x86_64__) || defined(__TARGET_ARCH_x86)

/*
 * struct pt_regs of x86-64 in order (Linux arch/x86/include/uapi/asm/ptrace.h): stable ABI, and a
 * private copy because vmlinux's `cs` is 16 bits wide, which a perf_event context may not be read by.
 */
struct xp_regs {
	__u64 r15, r14, r13, r12, bp, bx, r11, r10, r9, r8, ax, cx, dx, si, di, orig_ax;
	__u64 ip, cs, flags, sp, ss;
};

#define XP_REGS_N 21
#define XP_DWARF_SP 7
#define XP_DWARF_REGS 16

/*
 * A register's place by its DWARF number (System V ABI for x86-64, figure 3.36), four bits each so
 * that the linked object needs no table: in struct xp_regs, the stack pointer excepted, and in the
 * gregs of a ucontext (Linux arch/x86/include/uapi/asm/sigcontext.h).
 */
#define XP_PLACES_IN_REGS 0x01236789f4ed5bcaULL
#define XP_PLACES_IN_GREGS 0x76543210fa89becdULL

static __always_inline __u32 xp_place(__u64 places, __u32 dwarf)
{
	return (places >> (4 * (dwarf & 15))) & 15;
}

/* A signal trampoline's stack pointer is the ucontext; its gregs begin at +40. */
#define XP_GREGS_OFFSET 40
#define XP_GREGS_SPAN 7			/* rbp rbx rdx rax rcx rsp rip lie together from gregs[10] */
#define XP_GREGS_SPAN_AT (XP_GREGS_OFFSET + 10 * 8)

/* The DWARF number of an enum xp_saved_reg: rbx is 3, r12 to r15 are themselves. */
static __always_inline __u32 xp_saved_dwarf(int i)
{
	return i == XP_SAVED_RBX ? 3 : 11 + i;
}

static __always_inline int xp_regs_user(const struct xp_regs *r)
{
	return (r->cs & 3) == 3;
}

/* __USER_CS is 0x33; 32-bit code runs with __USER32_CS, 0x23 (arch/x86/include/asm/segment.h). */
static __always_inline int xp_regs_32bit(const struct xp_regs *r)
{
	return r->cs == 0x23;
}

/* Kernels before 5.15 have no bpf_task_pt_regs(): the registers lie at the end of the kernel stack. */
#define XP_THREAD_SIZE 16384

#else
#error "xprof's kernel side supports x86-64"
#endif

#endif
