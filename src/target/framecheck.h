/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Whether a step by frame pointer can be believed, judged by the machine code.
 *
 * Code without unwind rows may or may not keep a frame pointer; where it does not, the register
 * still holds a caller's and a step by it would leave out a frame without a trace.
 */
#ifndef XP_TARGET_FRAMECHECK_H
#define XP_TARGET_FRAMECHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "target/dso.h"

/*
 * The function around vaddr has set up its frame pointer when it runs there: an instruction that
 * makes rbp a frame pointer lies between its start and vaddr, and the frame is not being taken down.
 * exact: vaddr is an instruction that runs (else one inside the call that returns there).
 */
bool xp_frame_is_set_up(struct xp_dso *dso, uint64_t vaddr, bool exact);
/* A call instruction ends right before vaddr, as it must before a return address. */
bool xp_follows_call(const struct xp_dso *dso, uint64_t vaddr);

#endif
