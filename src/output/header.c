/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Facts come from the profile's meta entries and counters (xprof-data(5) lists them); what is not
 * there is left out, so that files of other writers read well.
 */
#include "output/header.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "output/name.h"

#define END_PREFIX "end."
#define TEXT_PREFIX "end-text."

/* A text of the file, safe to print, behind what is in b. */
static void put_text(struct xp_buf *b, const char *text)
{
	xp_name_put(b, text, strlen(text), 0);
}

static void put_fact(struct xp_buf *b, const struct xp_profile *p, const char *title,
		     const char *key, const char *unit)
{
	const char *value = xp_profile_meta(p, key);

	if (!value || !*value)
		return;
	xp_buf_printf(b, "# %s: ", title);
	put_text(b, value);
	xp_buf_printf(b, "%s\n", unit);
}

static void put_origin(struct xp_buf *b, const struct xp_profile *p)
{
	put_fact(b, p, "Written by", "version", "");
	put_fact(b, p, "Host", "hostname", "");
	put_fact(b, p, "Kernel", "kernel", "");
	put_fact(b, p, "Command line", "command", "");
	put_fact(b, p, "Event", "event", "");
	put_fact(b, p, "Frequency", "frequency", " Hz");
}

/* The recording's length as noted, else the time between its first and last sample. */
static void put_duration(struct xp_buf *b, const struct xp_profile *p)
{
	uint64_t ns = xp_profile_counter(p, "duration_ns");
	uint64_t first = UINT64_MAX, last = 0;
	char text[XP_TEXT_NUMBER];

	for (size_t i = 0; !ns && i < p->samples.n; i++) {
		uint64_t t = p->samples.v[i].time;

		first = t < first ? t : first;
		last = t > last ? t : last;
	}
	if (!ns && last > first)
		ns = last - first;
	if (ns)
		xp_buf_printf(b, "# Duration: %s\n", xp_text_duration(text, ns));
}

/* The reason when a counter says how many stacks it cut: in words, if the file has them. */
static const char *cut_reason(const struct xp_profile *p, const struct xp_counter_entry *e)
{
	const char *key = xp_strings_get(&p->strings, e->key).p, *name;

	if (strncmp(key, END_PREFIX, strlen(END_PREFIX)) || !strcmp(key, END_PREFIX "complete"))
		return NULL;
	if (!e->value)
		return NULL;
	name = key + strlen(END_PREFIX);
	for (size_t i = 0; i < p->meta.n; i++) {
		const char *text = xp_strings_get(&p->strings, p->meta.v[i].key).p;

		if (!strncmp(text, TEXT_PREFIX, strlen(TEXT_PREFIX)) &&
		    !strcmp(text + strlen(TEXT_PREFIX), name))
			return xp_strings_get(&p->strings, p->meta.v[i].value).p;
	}
	return name;
}

static void put_truncated(struct xp_buf *b, const struct xp_profile *p)
{
	uint64_t all = xp_profile_counter(p, "samples"), cut = 0;
	const char *before = " (";

	for (size_t i = 0; i < p->counters.n; i++)
		if (cut_reason(p, &p->counters.v[i]))
			cut += p->counters.v[i].value;
	xp_buf_printf(b, "# Truncated stacks: %" PRIu64, cut);
	if (cut && all)
		xp_buf_printf(b, ", %.2f %%", 100.0 * (double)cut / (double)all);
	for (size_t i = 0; i < p->counters.n; i++) {
		const char *reason = cut_reason(p, &p->counters.v[i]);

		if (!reason)
			continue;
		xp_buf_printf(b, "%s", before);
		put_text(b, reason);
		xp_buf_printf(b, " %" PRIu64, p->counters.v[i].value);
		before = ", ";
	}
	xp_buf_printf(b, "%s\n", cut ? ")" : "");
}

static uint64_t all_weight(const struct xp_profile *p)
{
	uint64_t sum = 0;

	for (size_t i = 0; i < p->samples.n; i++)
		sum += p->samples.v[i].weight;
	return sum;
}

int xp_output_header(FILE *out, const struct xp_output *o, uint64_t weight, uint64_t hidden)
{
	const struct xp_profile *p = o->view->p;
	struct xp_buf b = XP_BUF_INIT;
	int ret = 0;

	put_origin(&b, p);
	put_duration(&b, p);
	if (o->filter) {
		xp_buf_printf(&b, "# Filter: ");
		put_text(&b, o->filter);
		xp_buf_printf(&b, "\n");
	}
	xp_buf_printf(&b, "# Samples: %" PRIu64, weight);
	if (o->filter)
		xp_buf_printf(&b, " of %" PRIu64, all_weight(p));
	xp_buf_printf(&b, ", lost: %" PRIu64 "\n", xp_profile_counter(p, "lost"));
	put_truncated(&b, p);
	if (hidden)
		xp_buf_printf(&b, "# Not shown: %" PRIu64 " samples with internal frames only\n", hidden);
	if (b.failed)
		ret = -ENOMEM;
	else
		fwrite(b.data, 1, b.len, out);
	xp_buf_release(&b);
	return ret;
}
