/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Compares a table of unwind rows with what elfutils' libdw says about the same file.
 */
#ifndef XP_TESTS_TARGET_CFI_ORACLE_H
#define XP_TESTS_TARGET_CFI_ORACLE_H

#include <libelf.h>
#include <stddef.h>
#include <stdint.h>

#include "target/cfi.h"

/* Addresses compared, by outcome. */
struct cfi_oracle {
	size_t same;		/* every field of the rule is equal */
	size_t padding;		/* libdw has nothing: a gap of up to 16 bytes after a function */
	size_t overlap;		/* several FDEs cover the address and libdw took another one */
	size_t stubs;		/* machine code told more: see xp_cfi_mend_stubs() */
	size_t different;
	char first[512];	/* describes the first difference */
};

/*
 * Compares at every address where either side's rule changes, inside every function, and at nrandom
 * addresses in and around them. Adds to *result. 0, or -1 when libdw cannot read the image.
 */
int cfi_oracle_compare(Elf *elf, const struct xp_cfi *cfi, size_t nrandom, uint64_t seed,
		       struct cfi_oracle *result);

#endif
