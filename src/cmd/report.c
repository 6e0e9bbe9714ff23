/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xprof report: reads a sample file and writes it in one of the formats.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/buf.h"
#include "cmd/cmd.h"
#include "cmd/pager.h"
#include "output/output.h"
#include "store/reader.h"

#define DEFAULT_FILE "xprof.data"

enum colour { COLOUR_AUTO, COLOUR_ALWAYS, COLOUR_NEVER };
static const char *const colours[] = { "auto", "always", "never", NULL };
static const char *format_names[XP_OUTPUT_FORMATS + 1];

static struct report_options {
	const char *input, *call_graph, *comm, *percent_limit;
	int format, colour;
	bool folded, children, internals, gc, annotate, header, header_only, pager;
	struct xp_opt_pids pids, tids;
} opts = { .children = true, .gc = true, .header = true, .pager = true, .format = -1 };

static const struct xp_opt table[] = {
	{ .type = XP_OPT_STRING, .letter = 'i', .name = "input", .dest = &opts.input, .arg = "FILE",
	  .help = "read FILE, - for standard input (default: " DEFAULT_FILE ")",
	  .complete = XP_COMPLETE_DATA_FILE },
	{ .type = XP_OPT_CHOICE, .letter = 'f', .name = "format", .dest = &opts.format,
	  .arg = "FORMAT", .help = "table (default) or folded, for flamegraph.pl",
	  .choices = format_names },
	{ .type = XP_OPT_FLAG, .name = "folded", .dest = &opts.folded,
	  .help = "the same as --format folded" },
	{ .type = XP_OPT_STRING, .letter = 'g', .name = "call-graph", .dest = &opts.call_graph,
	  .arg = "KIND", .help = "folded is --format folded; other kinds of perf are ignored" },
	{ .type = XP_OPT_FLAG, .name = "children", .dest = &opts.children,
	  .help = "rank by total share (default); --no-children ranks by self" },
	{ .type = XP_OPT_STRING, .name = "percent-limit", .dest = &opts.percent_limit,
	  .arg = "PERCENT", .help = "leave out rows with a smaller share" },
	{ .type = XP_OPT_STRING, .name = "comm", .dest = &opts.comm, .arg = "NAME",
	  .help = "only threads of this name" },
	{ .type = XP_OPT_PIDS, .letter = 'p', .name = "pid", .dest = &opts.pids, .arg = "LIST",
	  .help = "only these processes" },
	{ .type = XP_OPT_PIDS, .letter = 't', .name = "tid", .dest = &opts.tids, .arg = "LIST",
	  .help = "only these threads" },
	{ .type = XP_OPT_FLAG, .name = "internals", .dest = &opts.internals,
	  .help = "show the interpreters' own frames" },
	{ .type = XP_OPT_FLAG, .name = "gc", .dest = &opts.gc,
	  .help = "show garbage collectors (default); --no-gc gives their time to the callers" },
	{ .type = XP_OPT_FLAG, .name = "annotate-kinds", .dest = &opts.annotate,
	  .help = "folded: mark frames _[k] kernel, _[i] inlined, _[j] JIT" },
	{ .type = XP_OPT_FLAG, .name = "header", .dest = &opts.header,
	  .help = "table: begin with lines about the recording (default)" },
	{ .type = XP_OPT_FLAG, .name = "header-only", .dest = &opts.header_only,
	  .help = "write these lines only" },
	{ .type = XP_OPT_CHOICE, .name = "color", .dest = &opts.colour, .arg = "WHEN",
	  .help = "auto (default: on a terminal), always or never", .choices = colours },
	{ .type = XP_OPT_FLAG, .name = "pager", .dest = &opts.pager,
	  .help = "on a terminal, show the report through a pager (default)" },
	{ .type = XP_OPT_IGNORED, .name = "stdio", .help = "accepted: a report is always text" },
	{ .type = XP_OPT_FLAG, .letter = 'q', .name = "quiet", .dest = &xp_cmd_quiet,
	  .help = "no notes on standard error" },
	{ .type = XP_OPT_COUNT, .letter = 'v', .name = "verbose", .dest = &xp_cmd_verbose,
	  .help = "whole paths of files" },
	{ .type = XP_OPT_END },
};

static const struct xp_opt *options(void)
{
	for (size_t i = 0; i < XP_OUTPUT_FORMATS; i++)
		format_names[i] = xp_output_formats[i].name;
	return table;
}

/*
 * perf takes "-g" with and without a value in the next word. A bare one gets an empty value, so
 * that the option table need not know of optional ones. Free the result; NULL: out of memory.
 */
static char **normal_words(int argc, char **argv)
{
	static char bare[] = "--call-graph=";
	static const char *const kinds[] = {
		"folded", "graph", "flat", "fractal", "caller", "callee", "none", NULL
	};
	char **words = calloc((size_t)argc + 1, sizeof(*words));

	if (!words)
		return NULL;
	memcpy(words, argv, (size_t)argc * sizeof(*words));
	for (int i = 0; i < argc && strcmp(argv[i], "--"); i++) {
		bool value = false;

		if (strcmp(argv[i], "-g") && strcmp(argv[i], "--call-graph"))
			continue;
		for (int k = 0; i + 1 < argc && kinds[k] && !value; k++)
			value = strcspn(argv[i + 1], ",") == strlen(kinds[k]) &&
				!strncmp(argv[i + 1], kinds[k], strlen(kinds[k]));
		if (!value)
			words[i] = bare;
	}
	return words;
}

static int usage(const char *what, const char *value)
{
	struct xp_err err = XP_ERR_INIT;

	xp_err_set(&err, EINVAL, "%s '%s'", what, value);
	xp_err_hint(&err, "try 'xprof report --help'");
	xp_err_status(&err, XP_EXIT_USAGE);
	return xp_cmd_fail(&err);
}

/* Settles what depends on several options. XP_EXIT_OK or a status after a message. */
static int settle(int argc, char **argv, int operand, struct xp_output *o)
{
	if (operand + 1 < argc)
		return usage("unexpected word after the file (options come before it):",
			     argv[operand + 1]);
	if (operand < argc && opts.input)
		return usage("two files to read: -i and", argv[operand]);
	if (operand < argc)
		opts.input = argv[operand];
	if (!opts.input)
		opts.input = DEFAULT_FILE;
	if (opts.percent_limit) {
		char *end;

		o->percent_limit = strtod(opts.percent_limit, &end);
		if (end == opts.percent_limit || *end || !(o->percent_limit >= 0) ||
		    o->percent_limit > 100)
			return usage("--percent-limit takes a number from 0 to 100, not",
				     opts.percent_limit);
	}
	if (opts.folded || (opts.call_graph && !strncmp(opts.call_graph, "folded", 6)))
		opts.folded = true;
	if (opts.format < 0)
		opts.format = opts.folded ? XP_OUTPUT_FOLDED : XP_OUTPUT_TABLE;
	return XP_EXIT_OK;
}

static bool want_colour(void)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if (opts.colour != COLOUR_AUTO)
		return opts.colour == COLOUR_ALWAYS;
	return isatty(STDOUT_FILENO) && !(no && *no) && term && strcmp(term, "dumb");
}

static size_t terminal_width(void)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size;

	if (!isatty(STDOUT_FILENO))
		return 0;
	if (columns && atoi(columns) > 0)
		return (size_t)atoi(columns);
	return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) ? 0 : size.ws_col;
}

static void put_list(struct xp_buf *b, const char *name, const struct xp_opt_pids *list)
{
	for (size_t i = 0; i < list->n; i++)
		xp_buf_printf(b, "%s%d", i ? "," : name, list->v[i]);
}

/* What was asked for, for the header; "" when nothing was. */
static void describe_filter(struct xp_buf *b)
{
	if (opts.comm)
		xp_buf_printf(b, " comm %s", opts.comm);
	put_list(b, " pid ", &opts.pids);
	put_list(b, " tid ", &opts.tids);
	xp_buf_u8(b, 0);
}

/* Why there is nothing to show. */
static void explain_empty(const struct xp_profile *p, const char *filter)
{
	uint64_t lost = xp_profile_counter(p, "lost");

	if (p->samples.n && filter)
		xp_cmd_note("no sample matches the filter (%s); the file has %zu samples", filter,
			    p->samples.n);
	else if (lost)
		xp_cmd_note("no samples: all %" PRIu64 " were lost", lost);
	else
		xp_cmd_note("no samples in %s: was the target idle, or gone too soon?", opts.input);
}

static int write_report(struct xp_output *o)
{
	struct xp_err err = XP_ERR_INIT;
	bool paged;
	int ret;

	o->colour = want_colour();
	o->width = terminal_width();
	paged = opts.pager && xp_pager_start();
	ret = xp_output_formats[opts.format].write(stdout, o);
	if (ret) {
		xp_err_sys(&err, -ret, "cannot write the report");
		xp_cmd_fail(&err);
	}
	if (paged) {
		xp_pager_finish();
		return ret ? XP_EXIT_FAILURE : XP_EXIT_OK;
	}
	return xp_cmd_end(ret ? XP_EXIT_FAILURE : XP_EXIT_OK);
}

/* The profile is whole or a prefix; reports it. */
static int report(const struct xp_profile *p, bool complete, struct xp_output *o)
{
	struct xp_filter filter = { .comm = opts.comm, .pids = opts.pids.v, .npids = opts.pids.n,
				    .tids = opts.tids.v, .ntids = opts.tids.n };
	struct xp_buf text = XP_BUF_INIT;
	struct xp_view view = { 0 };
	int status = XP_EXIT_FAILURE;

	describe_filter(&text);
	if (text.failed || xp_view_init(&view, p, &filter, opts.internals)) {
		xp_cmd_warn("out of memory");
		goto out;
	}
	view.no_gc = !opts.gc;
	o->view = &view;
	o->filter = text.len > 1 ? (const char *)text.data + 1 : NULL;
	o->by_self = !opts.children;
	o->header = opts.header || opts.header_only;
	o->rows = !opts.header_only;
	o->full_paths = xp_cmd_verbose > 0;
	o->annotate_kinds = opts.annotate;
	status = write_report(o);
	if (complete && !opts.header_only && !xp_view_weight(&view))
		explain_empty(p, o->filter);
out:
	xp_view_release(&view);
	xp_buf_release(&text);
	return status;
}

static int run_file(struct xp_output *o)
{
	struct xp_profile p;
	struct xp_read_result result;
	struct xp_err err = XP_ERR_INIT;
	int status;

	if (xp_profile_init(&p)) {
		xp_err_sys(&err, ENOMEM, "cannot read %s", opts.input);
		return xp_cmd_fail(&err);
	}
	if (xp_reader_load(opts.input, &p, &result, &err)) {
		status = xp_cmd_fail(&err);
	} else {
		status = report(&p, result.complete, o);
		if (!result.complete) {
			xp_cmd_warn("%zu samples recovered, %s ends early (%s, at byte %" PRIu64 ")",
				    p.samples.n, opts.input, result.problem, result.offset);
			status = status == XP_EXIT_OK ? XP_EXIT_DAMAGED : status;
		}
	}
	xp_profile_release(&p);
	return status;
}

static int run(int argc, char **argv)
{
	struct xp_output o = { 0 };
	char **words = normal_words(argc, argv);
	int operand, status = XP_EXIT_FAILURE;

	if (!words) {
		xp_cmd_warn("out of memory");
		return status;
	}
	if (xp_cmd_begin(&xp_cmd_report, argc, words, &operand, NULL, &status)) {
		status = settle(argc, words, operand, &o);
		if (!status)
			status = run_file(&o);
	}
	free(opts.pids.v);
	free(opts.tids.v);
	free(words);
	return status;
}

static const char *const usages[] = { "report [OPTION]... [FILE]", NULL };
static const char *const examples[] = {
	"xprof report",
	"xprof report --no-children --percent-limit 1",
	"xprof report --folded | flamegraph.pl > x.svg",
	"xprof report -i old.data --comm puma",
	NULL
};

const struct xp_command xp_cmd_report = {
	.name = "report",
	.summary = "show a recording as a table or as folded stacks",
	.usage = usages,
	.examples = examples,
	.options = options,
	.run = run,
};
