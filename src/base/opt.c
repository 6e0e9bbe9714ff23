// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Option tables: finding the option that was meant, and the texts made from a table.
 *
 * getopt_long() could parse, but would need a second table, prints its own messages and reorders
 * operands unless told not to; a profiler must leave the profiled command's options alone.
 */
#include "base/opt.h"

#include <errno.h>
#include <limits.h>
#include <string.h>

#include "base/optval.h"
#include "base/text.h"

#define HELP_COLUMN_MAX 30

/* -h and --help belong to every table; ours is recognised by its address. */
static const struct xp_opt help_option = {
	.type = XP_OPT_FLAG,
	.letter = 'h',
	.name = "help",
	.help = "show this help",
};

/* One spelling of an option as typed on the command line. */
struct spelling {
	const struct xp_opt *o;
	const char *name;
	bool negated;		/* --no-name */
};

/* Steps through the table's options and then the help option; NULL at the end. */
static const struct xp_opt *next_option(const struct xp_opt *opts, size_t *i)
{
	size_t at = (*i)++;

	for (size_t k = 0; k < at; k++) {
		if (opts[k].type == XP_OPT_END)
			return NULL;
	}
	return opts[at].type == XP_OPT_END ? &help_option : &opts[at];
}

static int usage_error(struct xp_err *err, int code)
{
	xp_err_status(err, XP_EXIT_USAGE);
	return code;
}

/* What a typed long name can be compared with: at most three spellings per option. */
static size_t spellings_of(const struct xp_opt *o, struct spelling out[3])
{
	size_t n = 0;

	if (o->name)
		out[n++] = (struct spelling){ o, o->name, false };
	if (o->alias)
		out[n++] = (struct spelling){ o, o->alias, false };
	if (o->type == XP_OPT_FLAG && o->name && o != &help_option)
		out[n++] = (struct spelling){ o, o->name, true };
	return n;
}

static bool starts(const char *name, const char *typed, size_t len)
{
	return !strncmp(name, typed, len);
}

/* How well the typed text fits: 2 exactly, 1 as an abbreviation, 0 not. */
static int fits(const struct spelling *s, const char *typed, size_t len)
{
	if (s->negated) {
		if (len <= 3 || !starts("no-", typed, 3))
			return 0;
		typed += 3;
		len -= 3;
	}
	if (!starts(s->name, typed, len))
		return 0;
	return s->name[len] ? 1 : 2;
}

static int unknown_long(const struct xp_opt *opts, const char *word, size_t len, struct xp_err *err)
{
	char typed[64] = "";
	const struct xp_opt *o;
	const char *nearest = NULL;
	unsigned best = UINT_MAX;

	if (len < sizeof(typed))
		memcpy(typed, word, len);
	for (size_t i = 0; (o = next_option(opts, &i));) {
		if (o->hidden)
			continue;
		if (o->name && xp_text_nearer(typed, o->name, &best))
			nearest = o->name;
		if (o->alias && xp_text_nearer(typed, o->alias, &best))
			nearest = o->alias;
	}
	if (nearest)
		xp_err_set(err, EINVAL, "unknown option '--%.*s' (did you mean --%s?)", (int)len,
			   word, nearest);
	else
		xp_err_set(err, EINVAL, "unknown option '--%.*s'", (int)len, word);
	return usage_error(err, -EINVAL);
}

/* Finds the option of a long name of len bytes: an exact one, else the only one that begins so. */
static int find_long(const struct xp_opt *opts, const char *word, size_t len,
		     struct spelling *found, struct xp_err *err)
{
	struct spelling forms[3], other = { 0 };
	const struct xp_opt *o;

	found->o = NULL;
	for (size_t i = 0; (o = next_option(opts, &i));) {
		size_t n = spellings_of(o, forms);

		for (size_t k = 0; k < n; k++) {
			int fit = fits(&forms[k], word, len);

			if (fit == 2) {
				*found = forms[k];
				return 0;
			}
			if (!fit || o->hidden)
				continue;
			/* Two names of one option are no contradiction. */
			if (found->o && (found->o != o || found->negated != forms[k].negated))
				other = forms[k];
			else
				*found = forms[k];
		}
	}
	if (!found->o || !len)
		return unknown_long(opts, word, len, err);
	if (other.o) {
		xp_err_set(err, EINVAL, "option '--%.*s' is ambiguous: --%s%s or --%s%s", (int)len,
			   word, found->negated ? "no-" : "", found->name,
			   other.negated ? "no-" : "", other.name);
		return usage_error(err, -EINVAL);
	}
	return 0;
}

static const struct xp_opt *find_letter(const struct xp_opt *opts, char letter)
{
	const struct xp_opt *o;

	for (size_t i = 0; (o = next_option(opts, &i));) {
		if (o->letter == letter)
			return o;
	}
	return NULL;
}

static void apply_flag(const struct xp_opt *o, bool negated)
{
	if (o->type == XP_OPT_FLAG)
		*(bool *)o->dest = !negated;
	else if (o->type == XP_OPT_COUNT)
		++*(int *)o->dest;
}

/* Stores a value; `as` is how the option was spelled. */
static int apply_value(const struct xp_opt *o, const char *as, const char *value,
		       struct xp_err *err)
{
	char why[XP_OPT_WHY];
	int ret;

	if (!value) {
		xp_err_set(err, EINVAL, "option '%s' needs a value: %s", as,
			   o->arg ? o->arg : "VALUE");
		return usage_error(err, -EINVAL);
	}
	ret = xp_opt_value(o, value, why);
	if (ret == -EINVAL) {
		xp_err_set(err, EINVAL, "invalid value '%s' for option '%s': %s", value, as, why);
		return usage_error(err, ret);
	}
	return ret ? xp_err_sys(err, -ret, "option '%s'", as) : 0;
}

/* Parses argv[*i], which starts with "--"; moves *i to the word after what was used. */
static int parse_long(const struct xp_opt *opts, char **argv, int *i, bool *help,
		      struct xp_err *err)
{
	const char *word = argv[*i] + 2;
	size_t len = strcspn(word, "=");
	const char *value = word[len] ? word + len + 1 : NULL;
	struct spelling found;
	char as[80];
	int ret = find_long(opts, word, len, &found, err);

	if (ret)
		return ret;
	++*i;
	snprintf(as, sizeof(as), "--%s%s", found.negated ? "no-" : "", found.name);
	if (found.negated || !xp_opt_wants_value(found.o)) {
		if (value) {
			xp_err_set(err, EINVAL, "option '%s' takes no value", as);
			return usage_error(err, -EINVAL);
		}
		if (found.o == &help_option)
			*help = true;
		else
			apply_flag(found.o, found.negated);
		return 0;
	}
	if (!value && argv[*i])
		value = argv[(*i)++];
	return apply_value(found.o, as, value, err);
}

/* Parses argv[*i], a bundle of letters; moves *i to the word after what was used. */
static int parse_short(const struct xp_opt *opts, char **argv, int *i, bool *help,
		       struct xp_err *err)
{
	for (const char *p = argv[(*i)++] + 1; *p; p++) {
		const struct xp_opt *o = find_letter(opts, *p);
		char as[3] = { '-', *p, '\0' };

		if (!o) {
			xp_err_set(err, EINVAL, "unknown option '%s'", as);
			return usage_error(err, -EINVAL);
		}
		if (o == &help_option) {
			*help = true;
		} else if (!xp_opt_wants_value(o)) {
			apply_flag(o, false);
		} else {
			const char *value = p[1] ? p + 1 : argv[*i];

			if (!p[1] && value)
				++*i;
			return apply_value(o, as, value, err);
		}
	}
	return 0;
}

int xp_opt_parse(const struct xp_opt *opts, int argc, char **argv, bool *help, bool *dashes,
		 struct xp_err *err)
{
	int i = 1;

	*help = false;
	if (dashes)
		*dashes = false;
	while (i < argc && argv[i][0] == '-' && argv[i][1] && !*help) {
		int ret;

		if (!strcmp(argv[i], "--")) {
			if (dashes)
				*dashes = true;
			return i + 1;
		}
		if (argv[i][1] == '-')
			ret = parse_long(opts, argv, &i, help, err);
		else
			ret = parse_short(opts, argv, &i, help, err);
		if (ret)
			return ret;
	}
	return i < argc ? i : argc;
}

/* "  -F, --freq HZ"; returns its length. */
static int left_side(const struct xp_opt *o, char *out, size_t size)
{
	char letter[8] = "    ";

	if (o->letter)
		snprintf(letter, sizeof(letter), "-%c%s", o->letter, o->name ? ", " : "");
	return snprintf(out, size, "  %s%s%s%s%s", letter, o->name ? "--" : "",
			o->name ? o->name : "", o->arg ? " " : "", o->arg ? o->arg : "");
}

void xp_opt_help(const struct xp_opt *opts, FILE *out)
{
	const struct xp_opt *o;
	int column = 0;
	char left[128];

	for (size_t i = 0; (o = next_option(opts, &i));) {
		int n = o->hidden ? 0 : left_side(o, left, sizeof(left));

		if (n > column && n <= HELP_COLUMN_MAX)
			column = n;
	}
	for (size_t i = 0; (o = next_option(opts, &i));) {
		if (o->hidden)
			continue;
		if (left_side(o, left, sizeof(left)) <= column)
			fprintf(out, "%-*s  %s\n", column, left, o->help);
		else
			fprintf(out, "%s\n%-*s  %s\n", left, column, "", o->help);
	}
}

/* The second field of a line for completion scripts. */
static void print_kind(const struct xp_opt *o, FILE *out)
{
	static const char *const kinds[] = {
		[XP_COMPLETE_NONE] = "value",
		[XP_COMPLETE_FILE] = "file",
		[XP_COMPLETE_DATA_FILE] = "data",
		[XP_COMPLETE_PID] = "pid",
	};

	if (!xp_opt_wants_value(o)) {
		fputs(o->type == XP_OPT_FLAG && o != &help_option ? "flag" : "none", out);
	} else if (o->choices) {
		for (size_t i = 0; o->choices[i]; i++)
			fprintf(out, "%c%s", i ? ',' : '=', o->choices[i]);
	} else {
		fputs(kinds[o->complete], out);
	}
}

static void print_spelling(const struct xp_opt *o, const char *name, FILE *out)
{
	fprintf(out, "--%s%s\t", name, xp_opt_wants_value(o) ? "=" : "");
	print_kind(o, out);
	fprintf(out, "\t%s\n", o->help);
}

void xp_opt_list(const struct xp_opt *opts, FILE *out)
{
	const struct xp_opt *o;

	for (size_t i = 0; (o = next_option(opts, &i));) {
		if (o->hidden)
			continue;
		if (o->letter) {
			fprintf(out, "-%c\t", o->letter);
			print_kind(o, out);
			fprintf(out, "\t%s\n", o->help);
		}
		if (o->name)
			print_spelling(o, o->name, out);
		if (o->alias)
			print_spelling(o, o->alias, out);
	}
}
