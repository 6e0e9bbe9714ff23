/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Building profiles in tests: one call per frame, stack and sample.
 */
#ifndef XP_TEST_SAMPLE_PROFILE_H
#define XP_TEST_SAMPLE_PROFILE_H

#include <stdlib.h>
#include <stdarg.h>

#include "profile/profile.h"

static inline uint32_t make_string(struct xp_profile *p, const char *z)
{
	uint32_t id = 0;

	if (xp_strings_addz(&p->strings, z, &id))
		abort();
	return id;
}

static inline uint32_t make_frame(struct xp_profile *p, const char *runtime, const char *name,
				  enum xp_frame_kind kind, const char *dso, const char *file,
				  uint32_t line)
{
	struct xp_frame f = { .runtime = make_string(p, runtime), .name = make_string(p, name),
			      .file = make_string(p, file), .line = line, .dso = XP_NO_ID,
			      .kind = (uint8_t)kind };
	struct xp_dso_entry d = { .path = make_string(p, dso) };
	uint32_t id = 0;

	if (dso && xp_profile_add_dso(p, &d, &f.dso))
		abort();
	if (xp_profile_add_frame(p, &f, &id))
		abort();
	return id;
}

static inline uint32_t make_thread(struct xp_profile *p, uint32_t pid, uint32_t tid, const char *comm)
{
	struct xp_thread t = { .pid = pid, .tid = tid, .comm = make_string(p, comm) };
	uint32_t id = 0;

	if (xp_profile_add_thread(p, &t, &id))
		abort();
	return id;
}

/* A stack from the root to the leaf; n frame ids follow. */
static inline uint32_t make_stack(struct xp_profile *p, int n, ...)
{
	uint32_t id = XP_NO_ID;
	va_list ap;

	va_start(ap, n);
	while (n-- > 0)
		if (xp_profile_add_stack(p, id, va_arg(ap, uint32_t), &id))
			abort();
	va_end(ap);
	return id;
}

static inline void make_samples(struct xp_profile *p, uint32_t thread, uint32_t stack, int n)
{
	static uint64_t time = 1000000;

	while (n-- > 0) {
		struct xp_sample s = { .time = time += 10101000, .thread = thread, .stack = stack,
				       .weight = 1 };

		if (xp_profile_add_sample(p, &s))
			abort();
	}
}

#endif
