// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Values of options.
 *
 * Numbers are read digit by digit: strtoul() takes blanks, signs and octal, and what a person typed
 * by accident must not become a rate or a process id.
 */
#include "base/optval.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"

#define NS_PER_S 1000000000ull
#define LONGEST_S (100ull * 365 * 86400)	/* what a duration may be: 100 years */

bool xp_opt_wants_value(const struct xp_opt *o)
{
	switch (o->type) {
	case XP_OPT_FLAG:
	case XP_OPT_COUNT:
		return false;
	case XP_OPT_IGNORED:
		return o->arg != NULL;
	default:
		return true;
	}
}

/* Reads digits and moves *at behind them; false when there are none or the number is above max. */
static bool digits(const char **at, uint64_t max, uint64_t *value)
{
	const char *p = *at;
	uint64_t v = 0;

	for (; *p >= '0' && *p <= '9'; p++) {
		unsigned digit = (unsigned)(*p - '0');

		if (v > max / 10 || v * 10 > max - digit)
			return false;
		v = v * 10 + digit;
	}
	if (p == *at)
		return false;
	*at = p;
	*value = v;
	return true;
}

static int value_uint(const struct xp_opt *o, const char *text, char *why)
{
	const char *p = text;
	uint64_t v;

	if (!digits(&p, o->max, &v) || *p || v < o->min) {
		snprintf(why, XP_OPT_WHY, "must be a number from %u to %u", o->min, o->max);
		return -EINVAL;
	}
	*(unsigned *)o->dest = (unsigned)v;
	return 0;
}

/* Digits after a decimal point, as billionths; what is finer is cut off. */
static bool billionths(const char **at, uint64_t *value)
{
	uint64_t unit = NS_PER_S / 10;
	const char *p = *at;

	*value = 0;
	for (; *p >= '0' && *p <= '9'; p++) {
		*value += (uint64_t)(*p - '0') * unit;
		unit /= 10;
	}
	if (p == *at)
		return false;
	*at = p;
	return true;
}

/* "1.5m" in ns; 0 when it is no duration, is none at all, or is too long. */
static uint64_t duration(const char *text)
{
	static const struct {
		const char *name;
		uint64_t ns;
	} units[] = {
		{ "", NS_PER_S }, { "s", NS_PER_S }, { "ms", 1000000 }, { "us", 1000 },
		{ "ns", 1 }, { "m", 60 * NS_PER_S }, { "min", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S },
	};
	uint64_t whole, part = 0;

	if (!digits(&text, UINT32_MAX, &whole))
		return 0;
	if (*text == '.') {
		text++;
		if (!billionths(&text, &part))
			return 0;
	}
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++) {
		unsigned __int128 ns;

		if (strcmp(text, units[i].name))
			continue;
		ns = (unsigned __int128)whole * units[i].ns;
		ns += (unsigned __int128)part * units[i].ns / NS_PER_S;
		return ns <= LONGEST_S * NS_PER_S ? (uint64_t)ns : 0;
	}
	return 0;
}

static int value_duration(const struct xp_opt *o, const char *text, char *why)
{
	uint64_t ns = duration(text);

	if (!ns) {
		snprintf(why, XP_OPT_WHY,
			 "must be a time above 0 such as 10, 1.5, 10s, 2m, 1h or 500ms");
		return -EINVAL;
	}
	*(uint64_t *)o->dest = ns;
	return 0;
}

/* The highest rate that this kernel takes, within the option's bounds. */
static unsigned highest_rate(const struct xp_opt *o)
{
	struct xp_buf text = XP_BUF_INIT;
	uint64_t rate = o->max;
	const char *p;

	if (!xp_read_file("/proc/sys/kernel/perf_event_max_sample_rate", &text, 64)) {
		xp_buf_u8(&text, '\0');
		p = (const char *)text.data;
		if (!p || !digits(&p, UINT32_MAX, &rate))
			rate = o->max;
	}
	xp_buf_release(&text);
	if (rate < o->min)
		return o->min;
	return rate > o->max ? o->max : (unsigned)rate;
}

static int value_frequency(const struct xp_opt *o, const char *text, char *why)
{
	const char *p = text;
	uint64_t v;

	if (!strcmp(text, "max")) {
		*(unsigned *)o->dest = highest_rate(o);
		return 0;
	}
	if (digits(&p, o->max, &v)) {
		if (*p == 'k' || *p == 'K') {
			v *= 1000;
			p++;
		}
		if (!*p && v >= o->min && v <= o->max) {
			*(unsigned *)o->dest = (unsigned)v;
			return 0;
		}
	}
	snprintf(why, XP_OPT_WHY, "must be a rate from %u to %u Hz, or max", o->min, o->max);
	return -EINVAL;
}

static bool has_pid(const struct xp_opt_pids *pids, int pid)
{
	for (size_t i = 0; i < pids->n; i++) {
		if (pids->v[i] == pid)
			return true;
	}
	return false;
}

static int add_pid(struct xp_opt_pids *pids, int pid)
{
	if (has_pid(pids, pid))
		return 0;
	if (pids->n == pids->cap) {
		size_t cap = pids->cap ? pids->cap * 2 : 8;
		int *v = reallocarray(pids->v, cap, sizeof(*v));

		if (!v)
			return -ENOMEM;
		pids->v = v;
		pids->cap = cap;
	}
	pids->v[pids->n++] = pid;
	return 0;
}

static int value_pids(const struct xp_opt *o, const char *text, char *why)
{
	struct xp_opt_pids *pids = o->dest;
	size_t before = pids->n;

	for (;;) {
		uint64_t pid;

		if (!digits(&text, INT_MAX, &pid) || !pid || (*text && *text != ',')) {
			snprintf(why, XP_OPT_WHY, "must be process ids with commas between them");
			pids->n = before;
			return -EINVAL;
		}
		if (add_pid(pids, (int)pid))
			return -ENOMEM;
		if (!*text)
			return 0;
		text++;
	}
}

static int value_choice(const struct xp_opt *o, const char *text, char *why)
{
	size_t len;

	for (int i = 0; o->choices[i]; i++) {
		if (!strcmp(text, o->choices[i])) {
			*(int *)o->dest = i;
			return 0;
		}
	}
	len = (size_t)snprintf(why, XP_OPT_WHY, "must be %s", o->choices[0]);
	for (int i = 1; o->choices[i] && len < XP_OPT_WHY; i++)
		len += (size_t)snprintf(why + len, XP_OPT_WHY - len, "%s%s",
					o->choices[i + 1] ? ", " : " or ", o->choices[i]);
	return -EINVAL;
}

int xp_opt_value(const struct xp_opt *o, const char *text, char why[XP_OPT_WHY])
{
	switch (o->type) {
	case XP_OPT_STRING:
		*(const char **)o->dest = text;
		return 0;
	case XP_OPT_UINT:
		return value_uint(o, text, why);
	case XP_OPT_DURATION:
		return value_duration(o, text, why);
	case XP_OPT_FREQUENCY:
		return value_frequency(o, text, why);
	case XP_OPT_PIDS:
		return value_pids(o, text, why);
	case XP_OPT_CHOICE:
		return value_choice(o, text, why);
	default:
		return 0;
	}
}
