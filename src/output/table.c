/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * The table of functions: self and total share, and what and where the function is.
 *
 * The columns are as wide as their texts, but one very long name does not push the others away: it
 * alone sticks out. Lines are cut on a terminal only.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/text.h"
#include "output/header.h"
#include "output/name.h"
#include "output/output.h"
#include "profile/hot.h"

#define NAME_CELLS_MAX 60	/* of the padding behind names */
#define DSO_CELLS_MAX 40
#define RED "\33[31m"		/* as in perf: from 5 % red, from 0.5 % green */
#define GREEN "\33[32m"
#define PLAIN "\33[m"

enum column { COL_KIND, COL_NAME, COL_DSO, COL_SOURCE, COLS };

struct table {
	FILE *out;
	const struct xp_output *o;
	struct xp_hot hot;
	struct xp_buf cells[COLS];	/* of one row */
	size_t width[COLS];
	int samples_width;
	struct xp_buf line;
};

static const char *const titles[COLS] = { "kind", "symbol", "dso", "source" };
static const size_t cells_max[COLS] = { 20, NAME_CELLS_MAX, DSO_CELLS_MAX, 0 };

/* The last part of a path; "[vdso]" and the like as they are. */
static struct xp_str last_part(struct xp_str path)
{
	const char *slash = path.n ? memrchr(path.p, '/', path.n) : NULL;
	struct xp_str part = path;

	if (slash && slash + 1 < path.p + path.n) {
		part.p = slash + 1;
		part.n = (size_t)(path.p + path.n - part.p);
	}
	return part;
}

static struct xp_str path_of(const struct table *t, uint32_t id)
{
	struct xp_str path = xp_strings_get(&t->o->view->p->strings, id);

	return t->o->full_paths ? path : last_part(path);
}

static void put(struct xp_buf *b, struct xp_str s)
{
	xp_name_put(b, s.p, s.n, 0);
}

/* "ruby" for its normal frames, "ruby:cfunc" for others; "kernel", whose kind has its name. */
static void put_kind(struct table *t, const struct xp_hot_row *r)
{
	const char *kind = xp_frame_kind_name(r->kind);
	struct xp_str runtime = xp_strings_get(&t->o->view->p->strings, r->runtime);

	put(&t->cells[COL_KIND], runtime);
	if (r->kind != XP_FRAME_NORMAL && strcmp(runtime.p, kind))
		xp_buf_printf(&t->cells[COL_KIND], ":%s", kind);
}

static void fill_cells(struct table *t, const struct xp_hot_row *r)
{
	const struct xp_profile *p = t->o->view->p;

	for (int c = 0; c < COLS; c++)
		xp_buf_clear(&t->cells[c]);
	put_kind(t, r);
	put(&t->cells[COL_NAME], xp_strings_get(&p->strings, r->name));
	if (r->dso == XP_NO_ID)
		xp_buf_printf(&t->cells[COL_DSO], "-");
	else
		put(&t->cells[COL_DSO], path_of(t, p->dsos.v[r->dso].path));
	if (r->file)
		put(&t->cells[COL_SOURCE], path_of(t, r->file));
	if (r->file && r->line)
		xp_buf_printf(&t->cells[COL_SOURCE], ":%" PRIu32, r->line);
}

static size_t cells_of(const struct xp_buf *b)
{
	return xp_text_cells((const char *)b->data, b->len);
}

static double percent(uint64_t part, uint64_t all)
{
	return all ? 100.0 * (double)part / (double)all : 0;
}

static bool shown(const struct table *t, const struct xp_hot_row *r)
{
	return percent(t->o->by_self ? r->self : r->total, t->hot.weight) >= t->o->percent_limit;
}

static void measure(struct table *t)
{
	uint64_t most = 0;

	for (int c = 0; c < COLS; c++)
		t->width[c] = strlen(titles[c]);
	for (size_t i = 0; i < t->hot.rows.n; i++) {
		if (!shown(t, &t->hot.rows.v[i]))
			continue;
		fill_cells(t, &t->hot.rows.v[i]);
		most = t->hot.rows.v[i].self > most ? t->hot.rows.v[i].self : most;
		for (int c = 0; c < COLS; c++) {
			size_t n = cells_of(&t->cells[c]);

			if (n > t->width[c] && n <= cells_max[c])
				t->width[c] = n;
		}
	}
	t->samples_width = snprintf(NULL, 0, "%" PRIu64, most);
	if (t->samples_width < (int)strlen("samples"))
		t->samples_width = (int)strlen("samples");
}

/* A text column; padded unless it is the last one with something in it. */
static void put_column(struct table *t, const char *s, size_t n, enum column c, bool last)
{
	size_t cells = xp_text_cells(s, n);

	xp_buf_printf(&t->line, "  ");
	xp_buf_put(&t->line, s, n);
	for (; !last && cells < t->width[c]; cells++)
		xp_buf_u8(&t->line, ' ');
}

/* Writes the line behind what is already there, `used` cells of it. */
static void end_line(struct table *t, size_t used)
{
	const char *s = (const char *)t->line.data;
	size_t n = t->line.len;

	if (t->o->width)
		n = xp_text_fit(s, n, t->o->width > used ? t->o->width - used : 0);
	fwrite(s, 1, n, t->out);
	putc('\n', t->out);
	xp_buf_clear(&t->line);
}

static void put_titles(struct table *t)
{
	xp_buf_printf(&t->line, "#");
	end_line(t, 0);
	xp_buf_printf(&t->line, "#%7s %8s  %*s", "self", "total", t->samples_width, "samples");
	for (int c = 0; c < COLS; c++)
		put_column(t, titles[c], strlen(titles[c]), c, c == COLS - 1);
	end_line(t, 0);
}

/* Colours take no cells, so they must not be in a line that is cut. Returns the cells used. */
static size_t put_percent(struct table *t, double value)
{
	const char *colour = value >= 5 ? RED : value >= 0.5 ? GREEN : NULL;
	bool on = t->o->colour && colour;
	int n;

	if (on)
		fputs(colour, t->out);
	n = fprintf(t->out, "%7.2f%%", value);
	if (on)
		fputs(PLAIN, t->out);
	return n > 0 ? (size_t)n : 0;
}

static void put_row(struct table *t, const struct xp_hot_row *r)
{
	bool source;
	size_t used;

	fill_cells(t, r);
	source = t->cells[COL_SOURCE].len != 0;
	used = put_percent(t, percent(r->self, t->hot.weight));
	putc(' ', t->out);
	used += put_percent(t, percent(r->total, t->hot.weight)) + 1;
	xp_buf_printf(&t->line, "  %*" PRIu64, t->samples_width, r->self);
	for (int c = 0; c < COLS; c++)
		if (c != COL_SOURCE || source)
			put_column(t, (const char *)t->cells[c].data, t->cells[c].len, c,
				   c == COL_SOURCE || (c == COL_DSO && !source));
	end_line(t, used);
}

static int put_rows(struct table *t)
{
	measure(t);
	if (t->o->header)
		put_titles(t);
	for (size_t i = 0; i < t->hot.rows.n && !ferror(t->out); i++)
		if (shown(t, &t->hot.rows.v[i]))
			put_row(t, &t->hot.rows.v[i]);
	for (int c = 0; c < COLS; c++)
		if (t->cells[c].failed)
			return -ENOMEM;
	return t->line.failed ? -ENOMEM : 0;
}

int xp_output_table(FILE *out, const struct xp_output *o)
{
	struct table t = { .out = out, .o = o };
	int ret = xp_hot_build(&t.hot, o->view);

	if (!ret && o->by_self)
		xp_hot_sort(&t.hot, o->view->p, true);
	if (!ret && o->header)
		ret = xp_output_header(out, o, t.hot.weight, t.hot.hidden);
	if (!ret && o->rows && t.hot.weight)
		ret = put_rows(&t);
	xp_hot_release(&t.hot);
	for (int c = 0; c < COLS; c++)
		xp_buf_release(&t.cells[c]);
	xp_buf_release(&t.line);
	return ret;
}
