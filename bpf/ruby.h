/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the kernel side needs to know of one Ruby process, and what it tells about a Ruby frame.
 * Filled by src/runtime/ruby/, read by ruby.bpf.c.
 */
#ifndef XP_BPF_RUBY_H
#define XP_BPF_RUBY_H

#include <linux/types.h>

enum xp_ruby_ec_mode {
	XP_RUBY_EC_NONE,	/* nothing is known: the entry is unused */
	XP_RUBY_EC_TP,		/* ec = *(thread pointer + ec_offset) */
	XP_RUBY_EC_DTV,		/* ec = *(block of tls_module + ec_offset), the block from glibc's DTV */
};

enum xp_ruby_jmpbuf {
	XP_RUBY_JMPBUF_BUILTIN,	/* __builtin_setjmp: rbp, rip, rsp plain at tag + 16, prev at tag + 56 */
	XP_RUBY_JMPBUF_GLIBC,	/* _setjmp: mangled rbp, rsp, rip at tag + 24, 64, 72, prev at tag + 216 */
};

/* All addresses are the process's. */
struct xp_ruby {
	__u64 vm_exec[4];	/* up to two ranges [start, end) of vm_exec; unused: 0, 0 */
	__u64 gc_flags;		/* address of the objspace's flags word (32 bits); 0: unknown */
	__s64 ec_offset;
	__u32 ec_mode;		/* enum xp_ruby_ec_mode */
	__u32 tls_module;	/* XP_RUBY_EC_DTV */
	__u16 cfp_size;		/* bytes of a control frame */
	__u16 jit_return;	/* offset in a control frame, 0: none */
	__u16 stack_start;	/* offset of machine.stack_start in the execution context */
	__u16 jmpbuf;		/* enum xp_ruby_jmpbuf */
};

/* Offsets that are the same from Ruby 2.6 to 4.1 (layouts of the tags, vm_core.h). */
#define XP_RUBY_EC_VM_STACK 0
#define XP_RUBY_EC_TAG 24

/* Kinds of frames: bits 16 to 19 of ep[0] (vm_core.h, VM_FRAME_MAGIC_*). */
enum xp_ruby_kind {
	XP_RUBY_METHOD = 1, XP_RUBY_BLOCK, XP_RUBY_CLASS, XP_RUBY_TOP, XP_RUBY_CFUNC, XP_RUBY_IFUNC,
	XP_RUBY_EVAL, XP_RUBY_RESCUE, XP_RUBY_DUMMY
};

/*
 * Flags of a raw VM frame (struct xp_raw_vm_frame, its first word's high 16 bits). The word's low 48
 * bits: body of the iseq; of a C function its method definition; of an IFUNC its C function.
 */
enum xp_ruby_frame_flags {
	XP_RUBY_KIND_MASK = 0xf,	/* enum xp_ruby_kind; 0 with TORN */
	XP_RUBY_BMETHOD = 0x20,
	XP_RUBY_LAMBDA = 0x40,
	XP_RUBY_TORN = 0x80,		/* half pushed: its kind is not one */
	XP_RUBY_LOCAL = 0x100,
	XP_RUBY_EP_CUT = 0x200,		/* more nested environments than are followed: no method entry */
	XP_RUBY_JIT = 0x400,		/* jit_return is set */
	XP_RUBY_FAULT = 0x800,		/* something could not be read */
	/* 0x8000 is XP_VM_SEGMENT_END: the frame has FINISH */
};

#endif
