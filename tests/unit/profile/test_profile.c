/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Tables, views, the merged tree and the per-function table.
 */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "profile/hot.h"
#include "profile/tree.h"
#include "tests/unit/profile/sample_profile.h"

static int setup(void **state)
{
	static struct xp_profile p;

	*state = &p;
	return xp_profile_init(&p);
}

static int teardown(void **state)
{
	xp_profile_release(*state);
	return 0;
}

static void equal_content_gets_one_id(void **state)
{
	struct xp_profile *p = *state;
	uint32_t a = make_frame(p, "native", "f", XP_FRAME_NORMAL, "/bin/x", "f.c", 3);
	uint32_t b = make_frame(p, "native", "f", XP_FRAME_NORMAL, "/bin/x", "f.c", 4);
	uint32_t s;

	assert_int_equal(a, 0);
	assert_int_equal(b, 1);
	assert_int_equal(make_frame(p, "native", "f", XP_FRAME_NORMAL, "/bin/x", "f.c", 3), a);
	assert_int_equal(make_frame(p, "native", "f", XP_FRAME_INLINE, "/bin/x", "f.c", 3), 2);
	assert_int_equal(make_frame(p, "native", "f", XP_FRAME_NORMAL, NULL, "f.c", 3), 3);
	assert_int_equal(p->dsos.n, 1);
	s = make_stack(p, 2, a, b);
	assert_int_equal(s, 1);
	assert_int_equal(make_stack(p, 2, a, b), s);
	assert_int_equal(make_stack(p, 1, b), 2);
	assert_int_equal(p->stacks.v[1].parent, 0);
	assert_int_equal(p->stacks.v[2].parent, XP_NO_ID);
	assert_int_equal(make_thread(p, 1, 2, "x"), 0);
	assert_int_equal(make_thread(p, 1, 2, "y"), 1);
	assert_int_equal(make_thread(p, 2, 1, "x"), 2);
	assert_int_equal(make_thread(p, 1, 2, "x"), 0);
}

static void references_must_exist(void **state)
{
	struct xp_profile *p = *state;
	struct xp_dso_entry d = { .path = 99 };
	struct xp_frame f = { .dso = XP_NO_ID };
	struct xp_thread t = { .comm = 7 };
	struct xp_sample s = { .weight = 1 };
	uint32_t id = 42;

	assert_int_equal(xp_profile_add_dso(p, &d, &id), -EINVAL);
	d = (struct xp_dso_entry){ .build_id = 1 };
	assert_int_equal(xp_profile_add_dso(p, &d, &id), -EINVAL);
	assert_int_equal(xp_profile_add_thread(p, &t, &id), -EINVAL);
	assert_int_equal(xp_profile_add_stack(p, XP_NO_ID, 0, &id), -EINVAL);
	f.dso = 0;
	assert_int_equal(xp_profile_add_frame(p, &f, &id), -EINVAL);
	f = (struct xp_frame){ .dso = XP_NO_ID, .kind = XP_FRAME_KINDS };
	assert_int_equal(xp_profile_add_frame(p, &f, &id), -EINVAL);
	f = (struct xp_frame){ .dso = XP_NO_ID, .file = 1 };
	assert_int_equal(xp_profile_add_frame(p, &f, &id), -EINVAL);
	assert_int_equal(xp_profile_add_sample(p, &s), -EINVAL);
	assert_int_equal(id, 42);

	make_stack(p, 1, make_frame(p, "native", "f", XP_FRAME_NORMAL, NULL, NULL, 0));
	assert_int_equal(xp_profile_add_stack(p, 1, 0, &id), -EINVAL);
	make_thread(p, 1, 1, "x");
	assert_int_equal(xp_profile_add_sample(p, &s), 0);
	s.stack = 1;
	assert_int_equal(xp_profile_add_sample(p, &s), -EINVAL);
	s = (struct xp_sample){ .weight = 0 };
	assert_int_equal(xp_profile_add_sample(p, &s), -EINVAL);
	s = (struct xp_sample){ .weight = 1, .state = XP_STATES };
	assert_int_equal(xp_profile_add_sample(p, &s), -EINVAL);
	assert_int_equal(p->samples.n, 1);
}

static void many_entries_stay_distinct(void **state)
{
	struct xp_profile *p = *state;
	uint32_t f = make_frame(p, "native", "f", XP_FRAME_NORMAL, NULL, NULL, 0);
	uint32_t id = XP_NO_ID;

	for (uint32_t i = 0; i < 100000; i++) {
		assert_int_equal(xp_profile_add_stack(p, id, f, &id), 0);
		assert_int_equal(id, i);
	}
	assert_int_equal(xp_profile_add_stack(p, 41, f, &id), 0);
	assert_int_equal(id, 42);
}

static void last_fact_wins(void **state)
{
	struct xp_profile *p = *state;

	assert_null(xp_profile_meta(p, "event"));
	assert_int_equal(xp_profile_counter(p, "lost"), 0);
	assert_int_equal(xp_profile_set_meta(p, "event", "cpu"), 0);
	assert_int_equal(xp_profile_set_meta(p, "host", "h"), 0);
	assert_int_equal(xp_profile_set_meta(p, "event", "wall"), 0);
	assert_string_equal(xp_profile_meta(p, "event"), "wall");
	assert_null(xp_profile_meta(p, "even"));
	assert_int_equal(p->meta.n, 2);
	assert_int_equal(xp_profile_set_counter(p, "lost", 3), 0);
	assert_int_equal(xp_profile_set_counter(p, "lost", UINT64_MAX), 0);
	assert_true(xp_profile_counter(p, "lost") == UINT64_MAX);
	assert_int_equal(p->counters.n, 1);
}

static void kinds_have_names(void **state)
{
	(void)state;
	for (int k = 0; k < XP_FRAME_KINDS; k++)
		assert_non_null(xp_frame_kind_name(k));
	assert_string_equal(xp_frame_kind_name(XP_FRAME_JIT), "jit");
	assert_string_equal(xp_frame_kind_name(XP_FRAME_KINDS), "unknown");
	assert_string_equal(xp_frame_kind_name((enum xp_frame_kind)-1), "unknown");
}

/* main > f > main > g (hidden i between), and main > f; two threads. */
static void fill(struct xp_profile *p)
{
	uint32_t m = make_frame(p, "native", "main", XP_FRAME_NORMAL, "/x", "m.c", 1);
	uint32_t m2 = make_frame(p, "native", "main", XP_FRAME_NORMAL, "/x", "m.c", 2);
	uint32_t f = make_frame(p, "native", "f", XP_FRAME_NORMAL, "/x", "f.c", 5);
	uint32_t f2 = make_frame(p, "native", "f", XP_FRAME_INLINE, "/x", "f.c", 6);
	uint32_t i = make_frame(p, "native", "i", XP_FRAME_INTERNAL, "/x", NULL, 0);
	uint32_t g = make_frame(p, "native", "g", XP_FRAME_NORMAL, "/y", "g.c", 9);
	uint32_t a = make_thread(p, 10, 10, "a"), b = make_thread(p, 10, 11, "b");

	make_samples(p, a, make_stack(p, 5, m, f, m2, i, g), 3);
	make_samples(p, a, make_stack(p, 4, m, f, m2, i), 1);
	make_samples(p, b, make_stack(p, 2, m, f2), 4);
	make_samples(p, b, make_stack(p, 1, i), 2);
}

static const struct xp_hot_row *row_of(const struct xp_hot *h, const struct xp_profile *p,
				       const char *name)
{
	for (size_t i = 0; i < h->rows.n; i++)
		if (!strcmp(xp_strings_get(&p->strings, h->rows.v[i].name).p, name))
			return &h->rows.v[i];
	return NULL;
}

static void check_row(const struct xp_hot *h, const struct xp_profile *p, const char *name,
		      uint64_t self, uint64_t total, uint32_t line)
{
	const struct xp_hot_row *r = row_of(h, p, name);

	assert_non_null(r);
	assert_int_equal(r->self, self);
	assert_int_equal(r->total, total);
	assert_int_equal(r->line, line);
}

static void functions_count_once_per_stack(void **state)
{
	struct xp_profile *p = *state;
	struct xp_filter all = { 0 };
	struct xp_view v;
	struct xp_hot h;

	fill(p);
	assert_int_equal(xp_view_init(&v, p, &all, false), 0);
	assert_int_equal(xp_view_weight(&v), 10);
	assert_int_equal(xp_hot_build(&h, &v), 0);
	assert_int_equal(h.weight, 10);
	assert_int_equal(h.hidden, 2);
	assert_int_equal(h.rows.n, 3);
	check_row(&h, p, "main", 1, 8, 2);	/* the hidden leaf's sample is its caller's */
	check_row(&h, p, "f", 4, 8, 6);
	check_row(&h, p, "g", 3, 3, 9);
	assert_int_equal(row_of(&h, p, "f")->kind, XP_FRAME_INLINE);
	assert_ptr_equal(row_of(&h, p, "f"), &h.rows.v[0]);	/* equal totals: more self */
	xp_hot_sort(&h, p, true);
	assert_ptr_equal(row_of(&h, p, "g"), &h.rows.v[1]);
	xp_hot_release(&h);
	xp_view_release(&v);

	assert_int_equal(xp_view_init(&v, p, &all, true), 0);
	assert_int_equal(xp_hot_build(&h, &v), 0);
	assert_int_equal(h.hidden, 0);
	check_row(&h, p, "i", 3, 6, 0);
	check_row(&h, p, "main", 0, 8, 0);	/* no self weight, and its lines differ */
	xp_hot_release(&h);
	xp_view_release(&v);
}

static void views_filter_threads(void **state)
{
	struct xp_profile *p = *state;
	int ten = 10, eleven = 11, minus = -1;
	struct xp_filter filters[] = {
		{ .comm = "b" }, { .pids = &ten, .npids = 1 }, { .tids = &eleven, .ntids = 1 },
		{ .comm = "a", .tids = &eleven, .ntids = 1 }, { .pids = &minus, .npids = 1 },
	};
	const uint64_t want[] = { 6, 10, 6, 0, 0 };

	fill(p);
	for (size_t i = 0; i < 5; i++) {
		struct xp_view v;
		struct xp_hot h;

		assert_int_equal(xp_view_init(&v, p, &filters[i], false), 0);
		assert_int_equal(xp_view_weight(&v), want[i]);
		assert_int_equal(xp_hot_build(&h, &v), 0);
		assert_int_equal(h.weight, want[i]);
		assert_int_equal(h.rows.n != 0, want[i] != 0);
		xp_hot_release(&h);
		xp_view_release(&v);
	}
}

static uint32_t find_child(const struct xp_tree *t, uint32_t node, uint32_t label)
{
	uint32_t c = t->nodes.v[node].first_child;

	while (c != XP_NO_ID && t->nodes.v[c].label != label)
		c = t->nodes.v[c].next_sibling;
	return c;
}

static void tree_merges_by_label(void **state)
{
	struct xp_profile *p = *state;
	struct xp_filter all = { 0 };
	uint32_t labels[6], threads[2] = { 7, 7 };
	struct xp_view v;
	struct xp_tree t;
	uint32_t n;

	fill(p);
	for (size_t i = 0; i < 6; i++)
		labels[i] = p->frames.v[i].name;
	assert_int_equal(xp_view_init(&v, p, &all, false), 0);
	assert_int_equal(xp_tree_build(&t, &v, labels, threads), 0);
	assert_int_equal(t.nodes.n, 6);		/* root, thread, main, f, main, g */
	assert_int_equal(t.nodes.v[XP_TREE_ROOT].total, 10);
	n = find_child(&t, XP_TREE_ROOT, 7);
	assert_int_equal(t.nodes.v[n].self, 2);	/* nothing of these stacks is shown */
	n = find_child(&t, n, labels[0]);
	assert_int_equal(t.nodes.v[n].total, 8);
	n = find_child(&t, n, labels[2]);
	assert_int_equal(t.nodes.v[n].self, 4);
	n = find_child(&t, n, labels[0]);
	assert_int_equal(t.nodes.v[n].self, 1);
	assert_int_equal(t.nodes.v[n].total, 4);
	n = find_child(&t, n, labels[5]);
	assert_int_equal(t.nodes.v[n].self, 3);
	xp_tree_release(&t);
	assert_int_equal(xp_tree_build(&t, &v, labels, NULL), 0);
	assert_int_equal(t.nodes.n, 5);
	assert_int_equal(t.nodes.v[XP_TREE_ROOT].self, 2);
	xp_tree_release(&t);
	xp_view_release(&v);
}

static void empty_profile(void **state)
{
	struct xp_filter all = { 0 };
	struct xp_view v;
	struct xp_hot h;
	struct xp_tree t;

	assert_int_equal(xp_view_init(&v, *state, &all, false), 0);
	assert_int_equal(xp_hot_build(&h, &v), 0);
	assert_int_equal(h.rows.n, 0);
	assert_int_equal(xp_tree_build(&t, &v, NULL, NULL), 0);
	assert_int_equal(t.nodes.n, 1);
	xp_hot_release(&h);
	xp_tree_release(&t);
	xp_view_release(&v);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(equal_content_gets_one_id),
		TEST(references_must_exist),
		TEST(many_entries_stay_distinct),
		TEST(last_fact_wins),
		TEST(kinds_have_names),
		TEST(functions_count_once_per_stack),
		TEST(views_filter_threads),
		TEST(tree_merges_by_label),
		TEST(empty_profile),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
