// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * base/opt: how options may be written, where they end, and what is said about wrong ones.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/opt.h"

static bool quiet, children, header, header_only, secret;
static int verbose, format;
static unsigned freq;
static const char *output;

static const char *const formats[] = { "table", "folded", NULL };

static const struct xp_opt opts[] = {
	{ .type = XP_OPT_FREQUENCY, .letter = 'F', .name = "freq", .alias = "rate", .dest = &freq,
	  .arg = "HZ", .help = "samples per second", .min = 1, .max = 10000 },
	{ .type = XP_OPT_STRING, .letter = 'o', .name = "output", .dest = &output, .arg = "FILE",
	  .help = "write to FILE", .complete = XP_COMPLETE_FILE },
	{ .type = XP_OPT_CHOICE, .letter = 'f', .name = "format", .dest = &format, .arg = "FORMAT",
	  .help = "table or folded", .choices = formats },
	{ .type = XP_OPT_IGNORED, .letter = 'g', .help = "ignored" },
	{ .type = XP_OPT_IGNORED, .name = "clock", .arg = "CLOCK", .help = "ignored too" },
	{ .type = XP_OPT_FLAG, .name = "children", .dest = &children, .help = "sort by total" },
	{ .type = XP_OPT_FLAG, .name = "header", .dest = &header, .help = "header" },
	{ .type = XP_OPT_FLAG, .name = "header-only", .dest = &header_only, .help = "nothing else" },
	{ .type = XP_OPT_FLAG, .letter = 'q', .name = "quiet", .dest = &quiet, .help = "be quiet" },
	{ .type = XP_OPT_COUNT, .letter = 'v', .name = "verbose", .dest = &verbose,
	  .help = "say more" },
	{ .type = XP_OPT_FLAG, .name = "secret", .dest = &secret, .help = "hidden", .hidden = true },
	{ .type = XP_OPT_END },
};

static bool help, dashes;
static struct xp_err err;

/* Parses the words; returns the index of the first operand counted from the first word. */
#define PARSE(...) parse((char *[]){ "cmd", __VA_ARGS__, NULL })

static int parse(char **argv)
{
	int argc = 0, ret;

	while (argv[argc])
		argc++;
	quiet = children = header = header_only = secret = false;
	verbose = format = 0;
	freq = 0;
	output = NULL;
	memset(&err, 0, sizeof(err));
	ret = xp_opt_parse(opts, argc, argv, &help, &dashes, &err);
	return ret < 0 ? ret : ret - 1;
}

static void assert_usage(int ret, const char *what)
{
	assert_int_equal(ret, -EINVAL);
	assert_int_equal(err.status, XP_EXIT_USAGE);
	assert_string_equal(err.what, what);
}

static void every_spelling_is_understood(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--freq=5", "--output", "a", "-q"), 4);
	assert_int_equal(freq, 5);
	assert_string_equal(output, "a");
	assert_true(quiet);
	assert_int_equal(PARSE("-F5", "-o", "-", "-f", "folded", "-qvv"), 6);
	assert_int_equal(freq, 5);
	assert_string_equal(output, "-");
	assert_int_equal(format, 1);
	assert_int_equal(verbose, 2);
	assert_int_equal(PARSE("-qF", "7", "--rate", "8"), 4);
	assert_true(quiet);
	assert_int_equal(freq, 8);
	assert_int_equal(PARSE("--output="), 1);
	assert_string_equal(output, "");
	assert_int_equal(PARSE("-g", "--clock", "cpu", "--clock=x", "op"), 4);
	assert_int_equal(PARSE("-oq"), 1);
	assert_string_equal(output, "q");
	assert_false(quiet);
	assert_false(help);
}

static void options_end_at_the_first_operand(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-q", "ls", "-v"), 1);
	assert_int_equal(verbose, 0);
	assert_false(dashes);
	assert_int_equal(PARSE("-q", "--", "-v"), 2);
	assert_true(dashes);
	assert_int_equal(verbose, 0);
	assert_int_equal(PARSE("-", "-v"), 0);
	assert_int_equal(PARSE("-o", "--", "-v"), 3);	/* a value, not the end */
	assert_string_equal(output, "--");
	assert_int_equal(verbose, 1);
	assert_int_equal(PARSE("--"), 1);
	assert_int_equal(xp_opt_parse(opts, 0, (char *[]){ NULL }, &help, NULL, &err), 0);
}

static void flags_can_be_negated(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--children", "--no-children"), 2);
	assert_false(children);
	assert_int_equal(PARSE("--no-children", "--chi"), 2);
	assert_true(children);
	assert_int_equal(PARSE("--children", "--no-chil"), 2);
	assert_false(children);
	assert_usage(PARSE("--no-children=1"), "option '--no-children' takes no value");
	assert_usage(PARSE("--no-freq"), "unknown option '--no-freq' (did you mean --freq?)");
	assert_usage(PARSE("--no-help"),
		     "unknown option '--no-help' (did you mean --help?)");
}

static void abbreviations_must_be_clear(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--out=x"), 1);
	assert_string_equal(output, "x");
	assert_int_equal(PARSE("--header"), 1);
	assert_true(header);
	assert_false(header_only);
	assert_int_equal(PARSE("--header-"), 1);
	assert_true(header_only);
	assert_usage(PARSE("--head"), "option '--head' is ambiguous: --header or --header-only");
	assert_usage(PARSE("--no-head"),
		     "option '--no-head' is ambiguous: --no-header or --no-header-only");
	assert_usage(PARSE("--=5"), "unknown option '--'");
	assert_usage(PARSE("--no-"), "unknown option '--no-'");
}

static void hidden_options_must_be_spelled_out(void **state)
{
	(void)state;
	assert_int_equal(PARSE("--secret"), 1);
	assert_true(secret);
	assert_usage(PARSE("--secre"), "unknown option '--secre'");
}

static void wrong_options_are_named(void **state)
{
	char big[300];

	(void)state;
	assert_usage(PARSE("--frequncy"), "unknown option '--frequncy' (did you mean --freq?)");
	assert_usage(PARSE("--qiuet"), "unknown option '--qiuet' (did you mean --quiet?)");
	assert_usage(PARSE("--rat3=4"), "unknown option '--rat3' (did you mean --rate?)");
	assert_usage(PARSE("--zzz"), "unknown option '--zzz'");
	assert_usage(PARSE("-qx"), "unknown option '-x'");
	assert_usage(PARSE("-F"), "option '-F' needs a value: HZ");
	assert_usage(PARSE("--fre"), "option '--freq' needs a value: HZ");
	assert_usage(PARSE("--quiet=1"), "option '--quiet' takes no value");
	assert_usage(PARSE("-F", "x"),
		     "invalid value 'x' for option '-F': must be a rate from 1 to 10000 Hz, or max");
	assert_usage(PARSE("--format=tabel"),
		     "invalid value 'tabel' for option '--format': must be table or folded");
	memset(big, 'x', sizeof(big) - 1);
	memcpy(big, "--", 2);
	big[sizeof(big) - 1] = '\0';
	assert_int_equal(PARSE(big), -EINVAL);
	assert_int_equal(err.status, XP_EXIT_USAGE);
	assert_int_equal(xp_opt_parse(opts, 2, (char *[]){ "cmd", "-x", NULL }, &help, NULL, NULL),
			 -EINVAL);
}

static void help_ends_the_parsing(void **state)
{
	(void)state;
	assert_int_equal(PARSE("-q", "--help", "--nonsense"), 2);
	assert_true(help);
	assert_int_equal(PARSE("-hx"), -EINVAL);
	assert_int_equal(PARSE("-h"), 1);
	assert_true(help);
	assert_int_equal(PARSE("ls", "--help"), 0);
	assert_false(help);
}

static char *captured(void (*print)(const struct xp_opt *, FILE *), const struct xp_opt *table)
{
	char *text = NULL;
	size_t size;
	FILE *f = open_memstream(&text, &size);

	assert_non_null(f);
	print(table, f);
	fclose(f);
	return text;
}

static void help_is_aligned(void **state)
{
	static const struct xp_opt table[] = {
		{ .type = XP_OPT_STRING, .letter = 'o', .name = "output", .arg = "FILE",
		  .help = "write to FILE" },
		{ .type = XP_OPT_IGNORED, .letter = 'g', .help = "ignored" },
		{ .type = XP_OPT_UINT, .name = "a-name-that-is-longer-than-all", .arg = "NUMBER",
		  .help = "long" },
		{ .type = XP_OPT_FLAG, .name = "secret", .help = "hidden", .hidden = true },
		{ .type = XP_OPT_END },
	};
	char *text = captured(xp_opt_help, table);

	(void)state;
	assert_string_equal(text, "  -o, --output FILE  write to FILE\n"
				  "  -g                 ignored\n"
				  "      --a-name-that-is-longer-than-all NUMBER\n"
				  "                     long\n"
				  "  -h, --help         show this help\n");
	free(text);
}

static void the_list_has_every_spelling(void **state)
{
	char *text = captured(xp_opt_list, opts);

	(void)state;
	assert_non_null(strstr(text, "-F\tvalue\tsamples per second\n"
				     "--freq=\tvalue\tsamples per second\n"
				     "--rate=\tvalue\tsamples per second\n"
				     "-o\tfile\twrite to FILE\n"
				     "--output=\tfile\twrite to FILE\n"
				     "-f\t=table,folded\ttable or folded\n"
				     "--format=\t=table,folded\ttable or folded\n"
				     "-g\tnone\tignored\n"
				     "--clock=\tvalue\tignored too\n"
				     "--children\tflag\tsort by total\n"));
	assert_non_null(strstr(text, "--verbose\tnone\tsay more\n"
				     "-h\tnone\tshow this help\n"
				     "--help\tnone\tshow this help\n"));
	assert_null(strstr(text, "secret"));
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_spelling_is_understood),
		cmocka_unit_test(options_end_at_the_first_operand),
		cmocka_unit_test(flags_can_be_negated),
		cmocka_unit_test(abbreviations_must_be_clear),
		cmocka_unit_test(hidden_options_must_be_spelled_out),
		cmocka_unit_test(wrong_options_are_named),
		cmocka_unit_test(help_ends_the_parsing),
		cmocka_unit_test(help_is_aligned),
		cmocka_unit_test(the_list_has_every_spelling),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
