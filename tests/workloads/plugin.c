/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A library that dlopen.c loads while it runs. NAME is the function's name, set by the build: the two
 * builds differ in name and size, so that a name taken from the wrong file shows.
 */
#include "truth.h"

#ifndef NAME
#define NAME plugin_hot
#endif

long NAME(unsigned long n);
long plugin_entry(unsigned long n);

NOINLINE long NAME(unsigned long n)
{
	BURN(n);
	return 1;
}

#ifdef OTHER
NOINLINE long plugin_filler(unsigned long n)
{
	BURN(n + 1);
	BURN(n + 2);
	return 3;
}
#endif

long plugin_entry(unsigned long n)
{
	return NAME(n) + 1;
}
