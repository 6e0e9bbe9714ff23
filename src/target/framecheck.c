/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * x86-64 encodings (Intel SDM volume 2): `mov %rsp,%rbp` is 48 89 e5 or 48 8b ec, Go's older
 * `lea N(%rsp),%rbp` 48 8d 6c 24 ib or 48 8d ac 24 id. Found bytes may in rare cases be part of
 * another instruction; not finding them is what cuts a stack, so the error is on the side of today's
 * frame pointer walkers and no worse.
 */
#include "target/framecheck.h"

#include <string.h>

#define PROLOGUE_MAX 128	/* bytes; Go's stack check and register spills come before */

static bool sets_frame(const uint8_t *p, uint64_t left)
{
	static const uint8_t forms[][4] = {
		{ 0x48, 0x89, 0xe5 }, { 0x48, 0x8b, 0xec }, { 0x48, 0x8d, 0x6c, 0x24 },
		{ 0x48, 0x8d, 0xac, 0x24 },
	};

	for (size_t i = 0; i < sizeof(forms) / sizeof(*forms); i++) {
		size_t n = i < 2 ? 3 : 4;

		if (left >= n && !memcmp(p, forms[i], n))
			return true;
	}
	return false;
}

/* At an instruction after `pop %rbp` or `leave`, or at the return itself. */
static bool takes_down(const struct xp_dso *dso, uint64_t vaddr)
{
	const uint8_t *p = xp_elf_at_vaddr(dso->elf, vaddr - 1, 2);

	return !p || p[0] == 0x5d || p[0] == 0xc9 || p[1] == 0xc3 || p[1] == 0xc2;
}

bool xp_frame_is_set_up(struct xp_dso *dso, uint64_t vaddr, bool exact)
{
	const uint8_t *p;
	struct xp_sym sym;
	uint64_t n;

	if (!dso->elf || !xp_dso_symbol(dso, vaddr, &sym) || vaddr <= sym.start)
		return false;
	n = vaddr - sym.start;
	if (n > PROLOGUE_MAX)
		n = PROLOGUE_MAX;
	p = xp_elf_at_vaddr(dso->elf, sym.start, n);
	if (!p || (exact && takes_down(dso, vaddr)))
		return false;
	for (uint64_t i = 0; i < n; i++)
		if (sets_frame(p + i, n - i))
			return true;
	return false;
}

bool xp_follows_call(const struct xp_dso *dso, uint64_t vaddr)
{
	const uint8_t *p;

	if (!dso->elf || vaddr < 8)
		return false;
	p = xp_elf_at_vaddr(dso->elf, vaddr - 7, 7);
	if (!p)
		return false;
	if (p[2] == 0xe8)			/* call rel32 */
		return true;
	/* ff /2: call through a register or memory, 2 to 7 bytes with its operand, REX aside. */
	for (int i = 0; i <= 5; i++)
		if (p[i] == 0xff && (p[i + 1] & 0x38) == 0x10)
			return true;
	return false;
}
