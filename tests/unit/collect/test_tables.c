/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * collect/tables: what is published, looked up by the walker's own code, is what the file says;
 * full tables; ranges.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <elf.h>
#include <stdio.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "../bpf/machine.h"
#include "collect_fixture.h"

static struct xp_walk w;

struct world {
	struct xp_tables_memory memory;
	struct xp_tables tables;
	struct xp_dsos *dsos;
};

static void begin(struct world *world, uint32_t nblocks, uint32_t npages, uint32_t nranges)
{
	world->memory = make_tables_memory(nblocks, npages, nranges);
	assert_int_equal(xp_tables_init(&world->tables, &world->memory), 0);
	world->dsos = xp_dsos_new();
	assert_non_null(world->dsos);
	machine = (struct machine){
		.rows = world->memory.rows, .nblocks = nblocks,
		.pages = world->memory.pages, .npages = npages,
		.rules = world->memory.rules, .nrules = XP_RULES_MAX,
		.ranges = world->memory.ranges, .nranges = nranges,
	};
}

static void end(struct world *world)
{
	xp_tables_release(&world->tables);
	xp_dsos_free(world->dsos);
	free_tables_memory(&world->memory);
}

static struct xp_dso *dso_of(struct world *world, const char *path)
{
	struct xp_dso *dso = xp_dsos_get_path(world->dsos, path, NULL);

	assert_non_null(dso);
	return dso;
}

/* A file that this process has mapped and whose path ends so. */
static void find_file(const char *suffix, char *path, size_t size)
{
	struct xp_maps maps = { 0 };

	*path = 0;
	assert_int_equal(xp_maps_read(&maps, getpid(), NULL), 0);
	for (size_t i = 0; i < maps.list.n && !*path; i++) {
		const char *p = maps.list.v[i].path, *at = strstr(p, suffix);

		if (at && !strcmp(at, suffix))
			snprintf(path, size, "%s", p);
	}
	xp_maps_release(&maps);
	assert_true(*path);
}

/* The rule that the walker finds for a virtual address of a table. */
static const struct xp_rule *walker_rule(const struct xp_table *table, uint64_t vaddr)
{
	memset(&w, 0, sizeof(w));
	w.range.bias = table->base;
	w.range.page = table->page;
	w.range.npages = table->npages;
	return find_rule(&w, vaddr);
}

static void same_at(const struct xp_table *table, const struct xp_cfi *cfi, uint64_t vaddr)
{
	const struct xp_rule *want = xp_cfi_rule_at(cfi, vaddr), *got = walker_rule(table, vaddr);
	bool none = !want || want->kind == XP_RULE_NONE;

	if (none && (!got || got->kind == XP_RULE_NONE))
		return;
	if (!got || !want || memcmp(got, want, sizeof(*got)))
		fail_msg("another rule at 0x%llx", (unsigned long long)vaddr);
}

/* Every address where something changes, and its neighbours. */
static void check_file(const char *path)
{
	struct world world;
	struct xp_dso *dso;
	struct xp_cfi cfi;
	const struct xp_table *table;

	begin(&world, 16, 4096, 16);
	dso = dso_of(&world, path);
	assert_null(xp_tables_of(&world.tables, dso));
	assert_int_equal(xp_cfi_build(&cfi, dso->elf, NULL), 0);
	assert_true(cfi.rows.n > 0);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(dso->cfi.rows.n, 0);
	table = xp_tables_of(&world.tables, dso);
	assert_non_null(table);
	assert_true(table->npages > 0);
	assert_int_equal(table->rows, cfi.rows.n);
	assert_false(world.tables.full);
	for (size_t i = 0; i < cfi.rows.n; i++) {
		same_at(table, &cfi, cfi.rows.v[i].vaddr - 1);
		same_at(table, &cfi, cfi.rows.v[i].vaddr);
		same_at(table, &cfi, cfi.rows.v[i].vaddr + 1);
	}
	for (uint64_t i = 0; i <= (uint64_t)table->npages << 16; i += 0x800) {
		same_at(table, &cfi, table->base + i - 1);
		same_at(table, &cfi, table->base + i);
	}
	same_at(table, &cfi, 0);
	same_at(table, &cfi, UINT64_MAX);
	xp_cfi_release(&cfi);
	end(&world);
}

static void rows_are_those_of_the_file(void **state)
{
	char path[4096];

	(void)state;
	find_file("libc.so.6", path, sizeof(path));
	check_file(path);
	find_file("libcmocka.so.0.7.0", path, sizeof(path));
	check_file(path);
	check_file("/proc/self/exe");
}

static void published_once(void **state)
{
	struct world world;
	struct xp_dso *dso;
	uint64_t rows;
	uint32_t rules;

	(void)state;
	begin(&world, 16, 4096, 16);
	dso = dso_of(&world, "/proc/self/exe");
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	rows = world.tables.nrows;
	rules = world.tables.nrules;
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(world.tables.nrows, rows);
	assert_int_equal(world.tables.nrules, rules);
	assert_int_equal(world.tables.row_spans.used, rows);
	end(&world);
}

/* A dso by hand: rows without any file. */
static struct xp_dso *made_dso(uint32_t id, const uint64_t *vaddrs, size_t n, int32_t first_off)
{
	struct xp_dso *dso = calloc(1, sizeof(*dso));

	assert_non_null(dso);
	dso->id = id;
	dso->cfi_built = true;
	for (size_t i = 0; i < n; i++) {
		struct xp_cfi_row *row = xp_vec_push(&dso->cfi.rows);
		struct xp_rule *rule = xp_vec_push(&dso->cfi.rules);

		assert_true(row && rule);
		*row = (struct xp_cfi_row){ vaddrs[i], (uint32_t)i };
		*rule = (struct xp_rule){ .kind = XP_RULE_SP, .ra = 1,
					  .cfa_off = first_off + 8 * (int32_t)i };
	}
	return dso;
}

static void free_made(struct xp_dso *dso)
{
	xp_cfi_release(&dso->cfi);
	free(dso);
}

static long cfa_at(const struct world *world, const struct xp_dso *dso, uint64_t vaddr)
{
	const struct xp_rule *rule = walker_rule(xp_tables_of(&world->tables, dso), vaddr);

	return rule && rule->kind != XP_RULE_NONE ? rule->cfa_off : -1;
}

static void pages_and_shared_rules(void **state)
{
	static const uint64_t vaddrs[] = { 0x1fff0, 0x20000, 0x20010, 0x4ffff, 0x50008 };
	struct world world;
	struct xp_dso *a = made_dso(0, vaddrs, 5, 8), *b = made_dso(3, vaddrs, 5, 8);
	const struct xp_table *table;

	(void)state;
	begin(&world, 1, 16, 16);
	assert_int_equal(xp_tables_add(&world.tables, a), 0);
	table = xp_tables_of(&world.tables, a);
	assert_int_equal(table->base, 0x10000);
	assert_int_equal(table->npages, 5);
	assert_int_equal(world.tables.nrules, 6);	/* and "nothing known" */
	assert_int_equal(cfa_at(&world, a, 0x10000), -1);
	assert_int_equal(cfa_at(&world, a, 0x1ffef), -1);
	assert_int_equal(cfa_at(&world, a, 0x1fff0), 8);
	assert_int_equal(cfa_at(&world, a, 0x1ffff), 8);
	assert_int_equal(cfa_at(&world, a, 0x20000), 16);
	assert_int_equal(cfa_at(&world, a, 0x2000f), 16);
	assert_int_equal(cfa_at(&world, a, 0x20010), 24);
	assert_int_equal(cfa_at(&world, a, 0x35000), 24);	/* no row of its own */
	assert_int_equal(cfa_at(&world, a, 0x4fffe), 24);
	assert_int_equal(cfa_at(&world, a, 0x4ffff), 32);
	assert_int_equal(cfa_at(&world, a, 0x50007), 32);
	assert_int_equal(cfa_at(&world, a, 0x50008), 40);
	assert_int_equal(cfa_at(&world, a, 0x60000), -1);
	/* Another file with the same rules has rows and pages of its own, and shares them. */
	assert_int_equal(xp_tables_add(&world.tables, b), 0);
	assert_int_equal(world.tables.nrules, 6);
	assert_int_equal(world.tables.page_spans.used, 10);
	assert_int_equal(cfa_at(&world, b, 0x50008), 40);
	assert_true(xp_tables_of(&world.tables, b)->page != table->page ||
		    xp_tables_of(&world.tables, a)->page != xp_tables_of(&world.tables, b)->page);
	end(&world);
	free_made(a);
	free_made(b);
}

static void no_half_published_file(const struct world *world, const struct xp_dso *dso)
{
	const struct xp_table *table = xp_tables_of(&world->tables, dso);

	assert_true(world->tables.full);
	assert_non_null(table);
	assert_int_equal(table->npages, 0);
	assert_int_equal(table->rows, 0);
	assert_int_equal(world->tables.nrows, 0);
	assert_int_equal(world->tables.row_spans.used, 0);
	assert_int_equal(world->tables.page_spans.used, 0);
	for (uint32_t i = 0; i < world->memory.npages; i++)
		assert_int_equal(world->memory.pages[i].count, 0);
}

/* Page after page is published until the block is full: 70,000 rows are more than its 65,536. */
static void no_room_for_rows(void **state)
{
	static uint64_t vaddrs[70000];
	const size_t n = sizeof(vaddrs) / sizeof(*vaddrs);
	struct world world;
	struct xp_dso *dso;

	(void)state;
	for (size_t i = 0; i < n; i++)
		vaddrs[i] = 0x1000 + 8 * i;
	dso = made_dso(0, vaddrs, n, 8);
	for (size_t i = 0; i < n; i++)		/* few rules, so that rows are what is short */
		dso->cfi.rows.v[i].rule = i % 100;
	dso->cfi.rules.n = 100;
	begin(&world, 1, 64, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	no_half_published_file(&world, dso);
	end(&world);
	free_made(dso);
}

static void no_room_for_pages_or_rules(void **state)
{
	static const uint64_t wide[] = { 0x1000, 0x100000 }, far[] = { 0x1000, 0x100000000000 };
	static uint64_t many[XP_RULES_MAX + 1];
	struct world world;
	struct xp_dso *dso = made_dso(0, wide, 2, 8);

	(void)state;
	begin(&world, 1, 16, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	no_half_published_file(&world, dso);	/* 17 pages */
	end(&world);
	free_made(dso);

	dso = made_dso(0, far, 2, 8);
	begin(&world, 1, 16, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	no_half_published_file(&world, dso);	/* 16 TiB of text */
	end(&world);
	free_made(dso);

	for (size_t i = 0; i <= XP_RULES_MAX; i++)
		many[i] = 0x1000 + 16 * i;
	dso = made_dso(0, many, XP_RULES_MAX + 1, 8);
	begin(&world, 2, 64, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	no_half_published_file(&world, dso);
	end(&world);
	free_made(dso);
}

/* More rows in 64 KiB than the walker can tell apart: that page counts as without information. */
static void a_page_with_too_many_rows(void **state)
{
	static uint64_t vaddrs[XP_PAGE_ROWS_MAX + 3];
	const size_t n = sizeof(vaddrs) / sizeof(*vaddrs);
	struct world world;
	struct xp_dso *dso;

	(void)state;
	vaddrs[0] = 0x100;
	for (size_t i = 1; i < n - 1; i++)
		vaddrs[i] = 0x10000 + 4 * (i - 1);
	vaddrs[n - 1] = 0x20000;
	dso = made_dso(0, vaddrs, n, 8);
	begin(&world, 1, 16, 16);
	/* One row fewer is the most that fits: the page's first row needs none before it. */
	dso->cfi.rows.v[n - 2].vaddr = 0x20000 - 1;
	memmove(&dso->cfi.rows.v[n - 2], &dso->cfi.rows.v[n - 1], sizeof(*dso->cfi.rows.v));
	dso->cfi.rows.n = n - 1;
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(cfa_at(&world, dso, 0x10000), 16);
	assert_int_equal(cfa_at(&world, dso, 0x10000 + 4 * (XP_PAGE_ROWS_MAX - 1)),
			 8 + 8 * XP_PAGE_ROWS_MAX);
	assert_int_equal(cfa_at(&world, dso, 0x20000), 8 + 8 * (long)(n - 1));
	end(&world);
	free_made(dso);

	dso = made_dso(0, vaddrs, n, 8);
	begin(&world, 1, 16, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(cfa_at(&world, dso, 0x100), 8);
	assert_int_equal(cfa_at(&world, dso, 0x10000), -1);
	assert_int_equal(cfa_at(&world, dso, 0x1ffff), -1);
	assert_int_equal(cfa_at(&world, dso, 0x20000), 8 + 8 * (long)(n - 1));
	end(&world);
	free_made(dso);
}

static void files_without_rows(void **state)
{
	struct world world;
	struct xp_dso *dso = made_dso(7, NULL, 0, 0);

	(void)state;
	begin(&world, 1, 16, 16);
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_non_null(xp_tables_of(&world.tables, dso));
	assert_int_equal(xp_tables_of(&world.tables, dso)->npages, 0);
	assert_false(world.tables.full);
	end(&world);
	free_made(dso);
}

/* This process's mappings as ranges: each pc finds the rule of its file. */
static void ranges_lead_to_the_rows(void **state)
{
	struct world world;
	struct xp_maps all = { 0 }, maps = { 0 };
	struct xp_span span;
	size_t found = 0;

	(void)state;
	begin(&world, 16, 4096, 64);
	assert_int_equal(xp_maps_read(&all, getpid(), NULL), 0);
	for (size_t i = 0; i < all.list.n; i++) {
		struct xp_mapping *m = &all.list.v[i];

		if (!m->exec)
			continue;
		m->user = xp_dsos_get(world.dsos, getpid(), m);
		if (m->user)
			assert_int_equal(xp_tables_add(&world.tables, m->user), 0);
		assert_int_equal(xp_maps_add(&maps, m), 0);
	}
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &span), 0);
	assert_int_equal(span.count, maps.list.n);
	for (size_t i = 0; i < maps.list.n; i++) {
		const struct xp_mapping *m = &maps.list.v[i];
		struct xp_dso *dso = xp_mapping_dso(m);
		struct xp_cfi cfi = { 0 };

		if (!dso || !dso->elf)
			continue;
		assert_int_equal(xp_cfi_build(&cfi, dso->elf, NULL), 0);
		for (uint64_t pc = m->start; pc < m->end; pc += 61) {
			const struct xp_rule *want, *got;
			uint64_t vaddr;

			if (!xp_dso_vaddr(dso, m, pc, &vaddr))
				continue;
			memset(&w, 0, sizeof(w));
			w.proc.first = span.first;
			w.proc.count = span.count;
			assert_true(find_range(&w, pc));
			want = xp_cfi_rule_at(&cfi, vaddr);
			got = find_rule(&w, pc);
			if (want && want->kind != XP_RULE_NONE) {
				assert_non_null(got);
				assert_memory_equal(got, want, sizeof(*got));
				found++;
			}
		}
		xp_cfi_release(&cfi);
	}
	assert_true(found > 1000);
	assert_int_equal(xp_tables_drop_ranges(&world.tables, span), 0);
	assert_int_equal(world.tables.range_spans.used, 0);
	xp_maps_release(&all);
	xp_maps_release(&maps);
	end(&world);
}

static int build_program(const char *flags, char *path, size_t size)
{
	char command[512];

	snprintf(path, size, "/tmp/xprof-tables-%d", (int)getpid());
	snprintf(command, sizeof(command), "echo 'int main(void) { return 0; }' | "
		 "${CC:-cc} -x c %s -o %s - 2>/dev/null", flags, path);
	return system(command);
}

/* A program that is not position-independent: its first segment is not at 0. */
static void programs_at_a_fixed_address(void **state)
{
	struct world world;
	struct xp_maps maps = { 0 };
	struct xp_mapping m = { .exec = true, .path = (char[]){ "" } };
	struct xp_span span;
	struct xp_dso *dso;
	struct xp_cfi cfi;
	char path[64];
	const struct xp_segment *s = NULL;

	(void)state;
	if (build_program("-no-pie", path, sizeof(path))) {
		print_message("# SKIP no C compiler\n");
		skip();
	}
	begin(&world, 16, 4096, 64);
	dso = dso_of(&world, path);
	unlink(path);
	assert_int_equal(dso->elf->type, ET_EXEC);
	assert_int_equal(xp_cfi_build(&cfi, dso->elf, NULL), 0);
	for (size_t i = 0; i < dso->elf->nsegments; i++)
		if (dso->elf->segments[i].exec)
			s = &dso->elf->segments[i];
	assert_non_null(s);
	m.start = s->vaddr & ~0xfffull;
	m.end = (s->vaddr + s->memsz + 0xfff) & ~0xfffull;
	m.offset = s->offset & ~0xfffull;
	m.user = dso;
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(xp_maps_add(&maps, &m), 0);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &span), 0);
	memset(&w, 0, sizeof(w));
	w.proc.first = span.first;
	w.proc.count = span.count;
	assert_true(find_range(&w, dso->elf->entry));
	for (size_t i = 0; i < cfi.funcs.n; i++) {
		uint64_t pc = cfi.funcs.v[i].start;	/* the address is the virtual one */
		const struct xp_rule *want = xp_cfi_rule_at(&cfi, pc);

		if (find_range(&w, pc))
			assert_memory_equal(find_rule(&w, pc), want, sizeof(*want));
	}
	xp_cfi_release(&cfi);
	xp_maps_release(&maps);
	end(&world);
}

/* Rows that are not needed any more make room for others, and may come back. */
static void rows_are_given_back(void **state)
{
	struct world world;
	struct xp_dso *dso, *other;
	struct xp_cfi cfi;
	uint64_t rows;

	(void)state;
	begin(&world, 16, 4096, 16);
	dso = dso_of(&world, "/proc/self/exe");
	other = dso_of(&world, "/bin/sh");
	xp_tables_remove(&world.tables, dso);		/* never added */
	assert_int_equal(xp_tables_add(&world.tables, other), 0);
	rows = world.tables.nrows;
	for (int i = 0; i < 3; i++) {
		assert_int_equal(xp_tables_add(&world.tables, dso), 0);
		assert_true(world.tables.nrows > rows);
		assert_int_equal(world.tables.row_spans.used, world.tables.nrows);
		xp_tables_remove(&world.tables, dso);
		assert_null(xp_tables_of(&world.tables, dso));
		assert_int_equal(world.tables.nrows, rows);
		assert_int_equal(world.tables.row_spans.used, rows);
		assert_int_equal(world.tables.page_spans.used,
				 xp_tables_of(&world.tables, other)->npages);
	}
	assert_int_equal(xp_tables_add(&world.tables, dso), 0);
	assert_int_equal(xp_cfi_build(&cfi, dso->elf, NULL), 0);
	for (size_t i = 0; i < cfi.rows.n; i++)
		same_at(xp_tables_of(&world.tables, dso), &cfi, cfi.rows.v[i].vaddr);
	xp_cfi_release(&cfi);
	end(&world);
}

/* A file without room is tried again once rows of another have gone, not before. */
static void room_comes_back(void **state)
{
	static const uint64_t vaddrs[] = { 0x10000, 0x20000, 0x30000 };
	struct world world;
	struct xp_dso *a = made_dso(0, vaddrs, 3, 8), *b = made_dso(1, vaddrs, 3, 8);

	(void)state;
	begin(&world, 1, 4, 16);
	assert_int_equal(xp_tables_add(&world.tables, a), 0);
	assert_int_equal(xp_tables_add(&world.tables, b), 0);
	assert_true(world.tables.full);
	assert_int_equal(xp_tables_of(&world.tables, b)->npages, 0);
	free_made(b);
	b = made_dso(1, vaddrs, 3, 8);
	assert_int_equal(xp_tables_add(&world.tables, b), 0);
	assert_int_equal(b->cfi.rows.n, 3);		/* not even looked at */
	xp_tables_remove(&world.tables, a);
	assert_int_equal(xp_tables_add(&world.tables, b), 0);
	assert_int_equal(xp_tables_of(&world.tables, b)->npages, 3);
	assert_int_equal(cfa_at(&world, b, 0x30000), 24);
	free_made(a);
	free_made(b);
	end(&world);
}

static void add_code(struct xp_maps *maps, uint64_t start, uint64_t size, uint64_t ino)
{
	struct xp_mapping m = {
		.start = start, .end = start + size, .ino = ino, .exec = true,
		.path = (char[]){ "" },
	};

	assert_int_equal(xp_maps_add(maps, &m), 0);
}

static void neighbours_without_a_file_are_one_range(void **state)
{
	struct world world;
	struct xp_maps maps = { 0 };
	struct xp_span span;
	const struct xp_range *r = NULL;

	(void)state;
	begin(&world, 1, 16, 30);
	add_code(&maps, 0x1000, 0x1000, 0);
	add_code(&maps, 0x2000, 0x3000, 0);
	add_code(&maps, 0x5000, 0x1000, 7);
	add_code(&maps, 0x6000, 0x1000, 8);
	add_code(&maps, 0x7000, 0x1000, 0);
	add_code(&maps, 0x9000, 0x1000, 0);
	add_code(&maps, 0xa000, 0x1000, 0);
	add_code(&maps, 0xb000, 0x1000, 0);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &span), 0);
	assert_int_equal(span.count, 5);
	r = &world.memory.ranges[span.first];
	assert_true(r[0].start == 0x1000 && r[0].end == 0x5000);
	assert_true(r[1].start == 0x5000 && r[1].end == 0x6000);
	assert_true(r[2].start == 0x6000 && r[2].end == 0x7000);
	assert_true(r[3].start == 0x7000 && r[3].end == 0x8000);
	assert_true(r[4].start == 0x9000 && r[4].end == 0xc000);
	xp_maps_release(&maps);
	end(&world);
}

/* More code than a walker can search: what has rows, then what is large. */
static void too_many_ranges(void **state)
{
	struct world world;
	struct xp_maps maps = { 0 };
	const struct xp_mapping *own;
	struct xp_mapping m;
	struct xp_span span;
	struct xp_maps all = { 0 };
	uint64_t small = 0;

	(void)state;
	begin(&world, 16, 4096, 40000);
	assert_int_equal(xp_maps_read(&all, getpid(), NULL), 0);
	own = xp_maps_find(&all, (uintptr_t)too_many_ranges);
	assert_non_null(own);
	m = *own;
	m.end = m.start + 0x1000;
	m.user = dso_of(&world, "/proc/self/exe");
	assert_int_equal(xp_tables_add(&world.tables, m.user), 0);
	for (uint64_t i = 0; i < 40000; i++)
		add_code(&maps, 0x10000 * (i + 1), i % 8 ? 0x3000 : 0x2000, 0);
	assert_int_equal(xp_maps_add(&maps, &m), 0);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &span), 0);
	assert_int_equal(span.count, 32767);
	assert_true(world.tables.full);
	for (uint32_t i = 0; i < span.count; i++) {
		const struct xp_range *r = &world.memory.ranges[span.first + i];

		assert_true(!i || r[-1].end <= r->start);
		small += r->end - r->start == 0x2000;
		if (r->start == m.start)
			assert_true(r->npages > 0);
	}
	assert_int_equal(small, 0);			/* 35,000 larger ones there are */
	assert_int_equal(world.memory.ranges[span.first + span.count - 1].start, m.start);
	xp_maps_release(&maps);
	xp_maps_release(&all);
	end(&world);
}

static void ranges_are_taken_and_given_back(void **state)
{
	struct world world;
	struct xp_maps maps = { 0 }, none = { 0 };
	struct xp_mapping m = { .exec = true, .path = (char[]){ "" } };
	struct xp_span spans[4];

	(void)state;
	begin(&world, 1, 16, 30);
	for (uint64_t i = 0; i < 10; i++) {
		m.start = 0x1000 * (2 * i + 1);
		m.end = m.start + 0x1000;
		assert_int_equal(xp_maps_add(&maps, &m), 0);
	}
	for (int i = 0; i < 3; i++) {
		assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &spans[i]), 0);
		assert_int_equal(spans[i].count, 10);
	}
	assert_false(world.tables.full);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &spans[3]), -ENOSPC);
	assert_int_equal(spans[3].count, 0);
	assert_true(world.tables.full);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &none, &spans[3]), 0);
	assert_int_equal(spans[3].count, 0);
	assert_int_equal(xp_tables_drop_ranges(&world.tables, spans[3]), 0);
	assert_int_equal(xp_tables_drop_ranges(&world.tables, spans[1]), 0);
	assert_int_equal(xp_tables_drop_ranges(&world.tables, spans[1]), -EINVAL);
	assert_int_equal(xp_tables_put_ranges(&world.tables, &maps, &spans[3]), 0);
	assert_int_equal(spans[3].first, spans[1].first);
	for (int i = 0; i < 10; i++) {
		const struct xp_range *r = &world.memory.ranges[spans[3].first + (uint32_t)i];

		assert_int_equal(r->start, 0x1000 * (2 * i + 1));
		assert_int_equal(r->end, r->start + 0x1000);
		assert_int_equal(r->npages, 0);
	}
	xp_maps_release(&maps);
	end(&world);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(rows_are_those_of_the_file),
		cmocka_unit_test(published_once),
		cmocka_unit_test(pages_and_shared_rules),
		cmocka_unit_test(no_room_for_rows),
		cmocka_unit_test(no_room_for_pages_or_rules),
		cmocka_unit_test(a_page_with_too_many_rows),
		cmocka_unit_test(files_without_rows),
		cmocka_unit_test(ranges_lead_to_the_rows),
		cmocka_unit_test(programs_at_a_fixed_address),
		cmocka_unit_test(ranges_are_taken_and_given_back),
		cmocka_unit_test(rows_are_given_back),
		cmocka_unit_test(room_comes_back),
		cmocka_unit_test(neighbours_without_a_file_are_one_range),
		cmocka_unit_test(too_many_ranges),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
