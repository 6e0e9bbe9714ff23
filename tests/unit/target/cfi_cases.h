/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Call frame instructions and CIEs as bytes, with the rows that they must give. Opcodes are those
 * of DWARF 5, section 7.24, and of the GNU extensions.
 */
#ifndef XP_TESTS_TARGET_CFI_CASES_H
#define XP_TESTS_TARGET_CFI_CASES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/unwind.h"

#define TEXT 0x1000u
#define LEN 0x40u

/* Rules as initialisers; the variable part is save[]. */
#define RULE(KIND, REG, CFA, FP, RA, ...) \
	{ .kind = XP_RULE_##KIND, .reg = (REG), .cfa_off = (CFA), .fp_off = (FP), .ra = (RA), \
	  .save = { __VA_ARGS__ } }
#define DEREF(REG, CFA, ADD) \
	{ .kind = XP_RULE_DEREF_##REG, .cfa_off = (CFA), .deref_add = (ADD), \
	  .fp_off = XP_FP_SAME, .ra = 1 }
#define SP(CFA) RULE(SP, 0, CFA, XP_FP_SAME, 1, 0)
#define ONLY(KIND) { .kind = XP_RULE_##KIND }
#define CODE(...) .insns = { __VA_ARGS__ }, .n = sizeof((uint8_t[]){ __VA_ARGS__ })

struct expected_row {
	uint64_t off;			/* from the function's start */
	struct xp_rule rule;
};

struct insn_case {
	const char *name;
	uint8_t insns[48];
	size_t n;
	struct expected_row rows[6];	/* a row at offset 0 but the first ends them */
};

static const struct insn_case cases[] = {
	{ "nothing", .rows = { { 0, SP(8) } } },
	{ "nop, GNU_args_size", CODE(0x00, 0x2e, 0x80, 1, 0x41, 0x2e, 8),
	  .rows = { { 0, SP(8) } } },
	{ "advance_loc, def_cfa_offset, offset", CODE(0x41, 0x0e, 16, 0x86, 2),
	  .rows = { { 0, SP(8) }, { 1, RULE(SP, 0, 16, -16, 1, 0) } } },
	{ "advance_loc1, 2, 4", CODE(2, 3, 0x0e, 16, 3, 4, 0, 0x0e, 24, 4, 5, 0, 0, 0, 0x0e, 32),
	  .rows = { { 0, SP(8) }, { 3, SP(16) }, { 7, SP(24) }, { 12, SP(32) } } },
	{ "advance by 0", CODE(0x40, 0x0e, 16), .rows = { { 0, SP(16) } } },
	{ "advance without change", CODE(0x41, 0x41, 0x0e, 8, 0x41, 0x0e, 16),
	  .rows = { { 0, SP(8) }, { 3, SP(16) } } },
	{ "advance to and past the end",
	  CODE(0x7f, 0x0e, 16, 0x41, 0x0e, 24, 2, 255, 0x0e, 32, 0x3f),
	  .rows = { { 0, SP(8) }, { 63, SP(16) } } },
	{ "offset of all", CODE(0x83, 2, 0x86, 3, 0x8c, 4, 0x8d, 5, 0x8e, 6, 0x8f, 7),
	  .rows = { { 0, RULE(SP, 0, 8, -24, 1, 2, 4, 5, 6, 7) } } },
	{ "offset_extended", CODE(5, 6, 2, 5, 3, 3), .rows = { { 0, RULE(SP, 0, 8, -16, 1, 3) } } },
	{ "offset_extended_sf", CODE(0x11, 6, 2, 0x11, 12, 3),
	  .rows = { { 0, RULE(SP, 0, 8, -16, 1, 0, 3) } } },
	{ "GNU_negative_offset_extended", CODE(0x2f, 6, 2, 0x2f, 12, 3),
	  .rows = { { 0, RULE(SP, 0, 8, 16, 1, 0, XP_SAVE_LOST) } } },
	{ "restore", CODE(0x86, 2, 0x83, 3, 0x41, 0xc6, 0xc3),
	  .rows = { { 0, RULE(SP, 0, 8, -16, 1, 3) }, { 1, SP(8) } } },
	{ "restore_extended", CODE(0x86, 2, 0x8f, 3, 0x41, 6, 6, 6, 15),
	  .rows = { { 0, RULE(SP, 0, 8, -16, 1, 0, 0, 0, 0, 3) }, { 1, SP(8) } } },
	{ "restore of the return address", CODE(7, 16, 0x41, 0xd0),
	  .rows = { { 0, ONLY(END) }, { 1, SP(8) } } },
	{ "undefined", CODE(7, 6, 7, 14),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0, 0, 0, XP_SAVE_LOST) } } },
	{ "same_value", CODE(0x86, 2, 0x83, 3, 0x41, 8, 6, 8, 3),
	  .rows = { { 0, RULE(SP, 0, 8, -16, 1, 3) }, { 1, SP(8) } } },
	{ "register", CODE(9, 6, 0, 9, 13, 1),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0, 0, XP_SAVE_LOST) } } },
	{ "register of the return address", CODE(9, 16, 5),
	  .rows = { { 0, RULE(SP, 5, 8, XP_FP_SAME, 0, 0) } } },
	{ "register of the return address, CFA on a register", CODE(9, 16, 5, 0x0c, 10, 8),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "same_value of the return address", CODE(8, 16), .rows = { { 0, ONLY(BAD) } } },
	{ "remember_state, restore_state", CODE(0x86, 2, 0x0a, 0x41, 0x0e, 32, 0xc6, 0x41, 0x0b),
	  .rows = { { 0, RULE(SP, 0, 8, -16, 1, 0) }, { 1, SP(32) },
		    { 2, RULE(SP, 0, 8, -16, 1, 0) } } },
	{ "eight remembered states", CODE(10, 10, 10, 10, 10, 10, 10, 10, 0x0e, 16, 0x41, 11, 11),
	  .rows = { { 0, SP(16) }, { 1, SP(8) } } },
	{ "def_cfa", CODE(0x0c, 6, 16), .rows = { { 0, RULE(FP, 0, 16, XP_FP_SAME, 1, 0) } } },
	{ "def_cfa_register", CODE(0x0d, 6), .rows = { { 0, RULE(FP, 0, 8, XP_FP_SAME, 1, 0) } } },
	{ "def_cfa_sf, def_cfa_offset_sf", CODE(0x12, 7, 0x7e, 0x41, 0x13, 1),
	  .rows = { { 0, SP(16) }, { 1, SP(-8) } } },
	{ "CFA on another register", CODE(0x0c, 10, 0),
	  .rows = { { 0, RULE(REG, 10, 0, XP_FP_SAME, 1, 0) } } },
	{ "CFA on a register too many", CODE(0x0c, 0x80, 2, 0), .rows = { { 0, ONLY(BAD) } } },
	{ "largest CFA offset", CODE(0x0e, 0xff, 0xff, 0xff, 0xff, 7),
	  .rows = { { 0, SP(INT32_MAX) } } },
	{ "CFA offset too large", CODE(0x0e, 0x80, 0x80, 0x80, 0x80, 8),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "CFA offset of 64 bits", CODE(0x0e, 255, 255, 255, 255, 255, 255, 255, 255, 255, 1),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "CFA offset whose product overflows",
	  CODE(0x13, 255, 255, 255, 255, 255, 255, 255, 255, 63),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "expression", CODE(0x10, 6, 2, 0x76, 0x70, 0x10, 3, 2, 0x76, 0x78),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, XP_SAVE_LOST) } } },
	{ "frame pointer where it points",
	  CODE(0x0c, 10, 0, 0x41, 0x10, 6, 2, 0x76, 0, 0x41, 0x0f, 3, 0x76, 0x78, 0x06, 0x0a,
	       0x41, 0xc6, 0x41, 0x0b, 0x41, 0x86, 2),
	  .rows = { { 0, RULE(REG, 10, 0, XP_FP_SAME, 1, 0) },
		    { 1, RULE(REG, 10, 0, XP_FP_AT_FP, 1, 0) },
		    { 2, RULE(DEREF_FP, 0, -8, XP_FP_AT_FP, 1, 0) },
		    { 3, RULE(DEREF_FP, 0, -8, XP_FP_SAME, 1, 0) },
		    { 4, RULE(DEREF_FP, 0, -8, XP_FP_AT_FP, 1, 0) },
		    { 5, RULE(DEREF_FP, 0, -8, -16, 1, 0) } } },
	{ "almost that: more after it", CODE(0x10, 6, 3, 0x76, 0, 0x06),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0) } } },
	{ "almost that: another base", CODE(0x10, 6, 2, 0x77, 0),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0) } } },
	{ "almost that: nothing", CODE(0x10, 6, 0, 0x00),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0) } } },
	{ "almost that: the value itself", CODE(0x16, 6, 2, 0x76, 0),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0) } } },
	{ "almost that: another register", CODE(0x10, 3, 2, 0x76, 0, 0x10, 0x0c, 2, 0x7c, 0),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_SAME, 1, XP_SAVE_LOST, XP_SAVE_LOST) } } },
	{ "expression of the return address", CODE(0x10, 16, 2, 0x77, 8),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "val_expression", CODE(0x16, 6, 2, 0x77, 8, 0x16, 15, 1, 0x30),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, 0, 0, 0, 0, XP_SAVE_LOST) } } },
	{ "val_offset, val_offset_sf", CODE(0x14, 6, 0, 0x15, 3, 2),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, XP_SAVE_LOST) } } },
	{ "stack pointer is the CFA", CODE(0x14, 7, 0), .rows = { { 0, SP(8) } } },
	{ "stack pointer is not the CFA", CODE(0x14, 7, 1), .rows = { { 0, ONLY(BAD) } } },
	{ "stack pointer saved", CODE(0x87, 2), .rows = { { 0, ONLY(BAD) } } },
	{ "stack pointer unchanged", CODE(8, 7), .rows = { { 0, ONLY(BAD) } } },
	{ "registers that nobody asks for",
	  CODE(0x80, 2, 7, 1, 8, 2, 9, 4, 5, 0x10, 8, 1, 0x30, 0x14, 10, 0,
	       0x81, 0x80, 0x80, 0x80, 0x80, 0x80, 1, 7, 17,
	       0xcb),
	  .rows = { { 0, SP(8) } } },
	{ "CFA behind the frame pointer", CODE(0x0f, 3, 0x76, 0x78, 0x06),
	  .rows = { { 0, RULE(DEREF_FP, 0, -8, XP_FP_SAME, 1, 0) } } },
	{ "CFA behind the stack pointer", CODE(0x0f, 4, 0x77, 0xa0, 1, 0x06),
	  .rows = { { 0, RULE(DEREF_SP, 0, 160, XP_FP_SAME, 1, 0) } } },
	{ "CFA behind another register", CODE(0x0f, 3, 0x73, 8, 0x06),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "CFA behind and more", CODE(0x0f, 4, 0x77, 8, 0x06, 0x06), .rows = { { 0, ONLY(BAD) } } },
	{ "CFA a distance from what is behind the stack pointer",
	  CODE(0x0f, 5, 0x77, 0x28, 0x06, 0x23, 8, 0x41, 0x0f, 5, 0x77, 0x78, 0x06, 0x23, 0x38),
	  .rows = { { 0, DEREF(SP, 40, 8) }, { 1, DEREF(SP, -8, 56) } } },
	{ "CFA a distance from what is behind the frame pointer",
	  CODE(0x0f, 6, 0x76, 0xd8, 0, 0x06, 0x23, 0x40, 0x41, 0x0f, 5, 0x76, 0, 0x06, 0x23, 0),
	  .rows = { { 0, DEREF(FP, 88, 64) }, { 1, DEREF(FP, 0, 0) } } },
	{ "the largest distance, and a larger one",
	  CODE(0x0f, 7, 0x77, 8, 0x06, 0x23, 0xff, 0xff, 3, 0x41,
	       0x0f, 7, 0x77, 8, 0x06, 0x23, 0x80, 0x80, 4),
	  .rows = { { 0, DEREF(SP, 8, 65535) }, { 1, ONLY(BAD) } } },
	{ "a distance that is cut off", CODE(0x0f, 4, 0x77, 8, 0x06, 0x23),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "a distance and more", CODE(0x0f, 6, 0x77, 8, 0x06, 0x23, 8, 0x06),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "CFA expression cut off", CODE(0x0f, 2, 0x77, 8), .rows = { { 0, ONLY(BAD) } } },
	{ "CFA expression empty", CODE(0x0f, 0), .rows = { { 0, ONLY(BAD) } } },
	{ "procedure linkage table",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3b, 0x2a, 0x33, 0x24, 0x22),
	  .rows = { { 0, RULE(PLT, 0, 11, XP_FP_SAME, 1, 0) } } },
	{ "the same with IBT",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22),
	  .rows = { { 0, RULE(PLT, 0, 10, XP_FP_SAME, 1, 0) } } },
	{ "almost that", CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x32, 0x24, 0x22),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "almost that, too",
	  CODE(0x0f, 11, 0x77, 16, 0x80, 0, 0x3f, 0x1a, 0x3a, 0x2a, 0x33, 0x24, 0x22),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "that with no limit",
	  CODE(0x0f, 11, 0x77, 8, 0x80, 0, 0x3f, 0x1a, 0x2f, 0x2a, 0x33, 0x24, 0x22),
	  .rows = { { 0, ONLY(BAD) } } },
	{ "offset on an expression", CODE(0x0f, 3, 0x77, 8, 0x06, 0x41, 0x0e, 16, 0x41, 0x0c, 7, 8),
	  .rows = { { 0, RULE(DEREF_SP, 0, 8, XP_FP_SAME, 1, 0) }, { 1, ONLY(BAD) }, { 2,
	       SP(8) } } },
	{ "undefined return address", CODE(0x0e, 16, 7, 16), .rows = { { 0, ONLY(END) } } },
	{ "undefined return address, odd CFA", CODE(0x0f, 0, 7, 16), .rows = { { 0, ONLY(END) } } },
	{ "return address elsewhere", CODE(0x90, 3),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_SAME, 3, 0) } } },
	{ "farthest return address", CODE(0x90, 0xff, 1),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_SAME, 255, 0) } } },
	{ "return address too far", CODE(0x90, 0x80, 2), .rows = { { 0, ONLY(BAD) } } },
	{ "return address at the CFA", CODE(0x90, 0), .rows = { { 0, ONLY(BAD) } } },
	{ "return address above the CFA", CODE(0x11, 16, 0x7f), .rows = { { 0, ONLY(BAD) } } },
	{ "farthest slots",
	  CODE(0x83, 0xfe, 1, 0x8c, 0xff, 1, 0x8d, 0x80, 2, 0x8e, 0, 0x11, 15, 0x7f),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_SAME, 1, 254, XP_SAVE_LOST, XP_SAVE_LOST,
	       XP_SAVE_LOST,
	       XP_SAVE_LOST) } } },
	{ "slot of 64 bits", CODE(0x83, 0x80, 0x80, 0x80, 0x80, 4, 0x86, 0x80, 0x80, 0x80, 0x80, 4),
	  .rows = { { 0, RULE(SP, 0, 8, XP_FP_LOST, 1, XP_SAVE_LOST) } } },
	{ "farthest frame pointers",
	  CODE(0x86, 0x80, 0x20, 0x41, 0x86, 0x81, 0x20, 0x41, 0x11, 6, 0x81, 0x60,
	       0x41, 0x11, 6, 0x80, 0x60),
	  .rows = { { 0, RULE(SP, 0, 8, INT16_MIN, 1, 0) }, { 1, RULE(SP, 0, 8, XP_FP_LOST, 1, 0) },
		    { 2, RULE(SP, 0, 8, 0x7ff8, 1, 0) }, { 3, RULE(SP, 0, 8, XP_FP_LOST, 1,
	       0) } } },
};

struct bad_case {
	const char *name;
	uint8_t insns[16];
	size_t n;
};

static const struct bad_case bad_cases[] = {
	{ "unknown instruction", CODE(0x41, 0x0e, 16, 0x3f) },
	{ "MIPS_advance_loc8", CODE(0x1d, 0, 0, 0, 0, 0, 0, 0, 0) },
	{ "restore_state of nothing", CODE(0x0b) },
	{ "nine remembered states", CODE(10, 10, 10, 10, 10, 10, 10, 10, 10) },
	{ "operand missing", CODE(0x41, 0x0e) },
	{ "advance_loc1 cut off", CODE(0x02) },
	{ "advance_loc4 cut off", CODE(0x04, 1, 0, 0) },
	{ "register missing", CODE(0x05) },
	{ "offset missing", CODE(0x86) },
	{ "number without end", CODE(0x0e, 128, 128, 128, 128, 128, 128, 128, 128, 128, 128, 0) },
	{ "expression cut off", CODE(0x10, 6, 9, 0x76, 0) },
	{ "CFA expression cut off", CODE(0x0f, 4, 0x77, 8, 0x06) },
	{ "set_loc backwards", CODE(0x41, 0x01, 0, 0, 0xf0, 0xff) },
	{ "set_loc cut off", CODE(0x01, 1, 0) },
};

struct cie_case {
	const char *name;
	uint8_t rest[40];		/* after the id */
	size_t n;
	bool ok;
	struct xp_rule rule;
};

#define CIE(...) .rest = { __VA_ARGS__ }, .n = sizeof((uint8_t[]){ __VA_ARGS__ })
#define BODY 0x0c, 7, 8, 0x90, 1

static const struct cie_case cie_cases[] = {
	{ "zR", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY), true, SP(8) },
	{ "version 3", CIE(3, 'z', 'R', 0, 1, 0x78, 0x90, 0, 1, 0x1b, BODY), true, SP(8) },
	{ "version 4", CIE(4, 'z', 'R', 0, 8, 0, 1, 0x78, 16, 1, 0x1b, BODY), true, SP(8) },
	{ "version 4 of 32 bits",
	  CIE(4, 'z', 'R', 0, 4, 0, 1, 0x78, 16, 1, 0x1b, BODY), false, SP(8) },
	{ "version 4 with segments",
	  CIE(4, 'z', 'R', 0, 8, 4, 1, 0x78, 16, 1, 0x1b, BODY), false, SP(8) },
	{ "version 2", CIE(2, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY), false, SP(8) },
	{ "zPLR",
	  CIE(1, 'z', 'P', 'L', 'R', 0, 1, 0x78, 16, 7, 0x9b, 1, 2, 3, 4, 0x1b, 0x1b, BODY), true,
	  SP(8) },
	{ "zPR, personality omitted",
	  CIE(1, 'z', 'P', 'R', 0, 1, 0x78, 16, 2, 0xff, 0x1b, BODY), true, SP(8) },
	{ "zPR, personality of 8 bytes",
	  CIE(1, 'z', 'P', 'R', 0, 1, 0x78, 16, 10, 0, 1, 2, 3, 4, 5, 6, 7, 8,
	       0x1b, BODY), true, SP(8) },
	{ "zPR, personality aligned",
	  CIE(1, 'z', 'P', 'R', 0, 1, 0x78, 16, 10, 0x50, 1, 2, 3, 4, 5, 6, 7,
	       8, 0x1b, BODY), false, SP(8) },
	{ "zRB", CIE(1, 'z', 'R', 'B', 0, 1, 0x78, 16, 1, 0x1b, BODY), true, SP(8) },
	{ "z with bytes to skip",
	  CIE(1, 'z', 'R', 0, 1, 0x78, 16, 3, 0x1b, 0xaa, 0xbb, BODY), true, SP(8) },
	{ "z longer than the entry",
	  CIE(1, 'z', 'R', 0, 1, 0x78, 16, 100, 0x1b, BODY), false, SP(8) },
	{ "z too short", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 0, BODY), false, SP(8) },
	{ "letter not known", CIE(1, 'z', 'Q', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY), false, SP(8) },
	{ "eh", CIE(1, 'e', 'h', 0, 1, 2, 3, 4, 5, 6, 7, 8, 1, 0x78, 16, BODY), false, SP(8) },
	{ "letters without end", CIE(1, 'z', 'z', 'z'), false, SP(8) },
	{ "empty", .ok = false },
	{ "advances", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY, 0x41), false, SP(8) },
	{ "restores", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, BODY, 0xc6), false, SP(8) },
	{ "no CFA", CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x90, 1), true, ONLY(BAD) },
	{ "no return address",
	  CIE(1, 'z', 'R', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8), true, ONLY(BAD) },
	{ "return address not aligned",
	  CIE(1, 'z', 'R', 0, 1, 0x7f, 16, 1, 0x1b, 0x0c, 7, 8, 0x90, 12), true,
	  ONLY(BAD) },
	{ "another return column",
	  CIE(1, 'z', 'R', 0, 1, 0x78, 17, 1, 0x1b, 0x0c, 7, 8, 0x91, 1), true, SP(8) },
	{ "zRS, signal frame",
	  CIE(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0f, 4, 0x77, 0xa0, 1, 6,
	       0x10, 16, 3, 0x77, 0xa8, 1), true, ONLY(SIGNAL) },
	{ "zRS, return address by an expression",
	  CIE(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, 0x0c, 7, 8,
	       0x10, 16, 3, 0x77, 0xa8, 1), true, ONLY(SIGNAL) },
	{ "zRS, ordinary places",
	  CIE(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, BODY), true, SP(8) },
	{ "zRS, outermost",
	  CIE(1, 'z', 'R', 'S', 0, 1, 0x78, 16, 1, 0x1b, BODY, 7, 16), true, ONLY(END) },
};

#endif
