/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a step from a frame to its caller can be believed, judged by the machine code.
 *
 * Code without unwind rows may or may not keep a frame pointer; where it does not, the register
 * still holds a caller's, or data, and a step by it would leave out frames without a trace. Code
 * that goes to another stack has rows that are right for the stack it came from.
 */
#ifndef XP_TARGET_FRAMECHECK_H
#define XP_TARGET_FRAMECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "target/dso.h"
#include "target/mem.h"

/*
 * The function around vaddr has set up its frame pointer when it runs there: an instruction that
 * makes rbp a frame pointer lies between its start and vaddr, and the frame is not being taken down.
 * exact: vaddr is an instruction that runs (else one inside the call that returns there).
 */
bool xp_frame_is_set_up(struct xp_dso *dso, uint64_t vaddr, bool exact);
/*
 * A frame with a frame pointer of 0 is the outermost one, when one of these holds:
 *	- its function has zeroed the register and saved it nowhere, the mark of the System V ABI for
 *	  x86-64 ("The Stack Frame"): _start, clone;
 *	- it is at most 128 bytes behind the file's entry point, in the same function: ld.so's
 *	  _start (the kernel begins with a register of 0);
 *	- the return address is a function's start, or the byte after it, and no call is before it: it
 *	  was put there by hand, as Go's runtime.goexit;
 *	- the function begins with the call that returns there, which no compiled code does, as the
 *	  stack is not aligned for it: Go's runtime.mstart.
 * vaddr is the return address, or with exact an instruction that runs.
 */
bool xp_frame_is_outermost(struct xp_dso *dso, uint64_t vaddr, bool exact);
/* The seven bytes at p end in a call instruction. */
bool xp_ends_in_call(const uint8_t *p);
/* A call instruction ends right before vaddr, as it must before a return address. */
bool xp_follows_call(const struct xp_dso *dso, uint64_t vaddr);

/* Verdicts that were reached before. The size is fixed: what does not fit is judged again. */
struct xp_frame_checks;

struct xp_frame_checks *xp_frame_checks_new(void);	/* NULL: out of memory */
void xp_frame_checks_free(struct xp_frame_checks *c);

enum xp_stack_kind {
	XP_STACK_SAME,
	XP_STACK_OTHER,
	XP_STACK_NEW,		/* a thread's that the code has made: mov $56,%eax; syscall (clone) */
};

/*
 * On which stack code runs when it is left by a distance from the stack pointer: another one than it
 * was called on when the function around vaddr, by the bounds of its unwind entry, has loaded the
 * stack pointer from memory or a register before, and not with what it had saved of it.
 */
enum xp_stack_kind xp_stack_kind_of(struct xp_frame_checks *c, const struct xp_dso *dso,
				    uint64_t vaddr);

/* Code that belongs to no file, in a live process. */
struct xp_jit {
	struct xp_mem mem;
	uint64_t start;		/* of the mapping */
	uint64_t batch;		/* verdicts of another number are not used: the code may have changed */
};

/*
 * Code around here keeps frame pointers: `push %rbp; mov %rsp,%rbp` lies at most 64 KiB before pc in
 * the same mapping. False when the memory cannot be read.
 */
bool xp_jit_keeps_frames(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc);

enum xp_jit_leaf {
	XP_JIT_UNKNOWN,		/* not to be left by frame pointer */
	XP_JIT_FRAMED,		/* a prologue is before it in what looks like the same function */
	XP_JIT_UNSURE,		/* a prologue is before it, maybe of another function */
	XP_JIT_BARE,		/* proven: its return address is at the stack pointer */
	XP_JIT_PUSHED,		/* proven: one word above that, below it the saved frame pointer */
};

/*
 * Where an instruction that runs stands: going on from it, a prologue or a return without any change
 * of the stack pointer prove that there is no frame.
 */
enum xp_jit_leaf xp_jit_leaf(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc);
bool xp_jit_follows_call(struct xp_frame_checks *c, const struct xp_jit *jit, uint64_t pc);

#endif
