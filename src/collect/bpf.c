/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * What the running kernel can do is asked once, before loading: bpf_loop() (Linux 5.17) chooses the
 * walker, bpf_task_pt_regs() (5.15) how user registers are found under a kernel-mode sample.
 */
#include "collect/bpf.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "collect/perf.h"
#ifdef XP_TEST_STOP
#include "xprof-stop.skel.h"
#else
#include "xprof.skel.h"
#endif

#define TABLE_BLOCKS 64		/* 4.2 million rows, 16 MiB: five times a whole desktop's libraries */
#define TABLE_PAGES 65536	/* 4 GiB of text, 512 KiB */
#define TABLE_RANGES 131072	/* 5 MiB; an address space is written anew when it changes */
#define PROCESSES_MAX 16384

struct xp_bpf {
	struct xprof_bpf *skel;
	struct bpf_link **timers;
	size_t ntimers;
	struct ring_buffer *ring;
	struct xp_tables_memory tables;
	bool loop;
};

static void (*log_line)(const char *line);

static int print_libbpf(enum libbpf_print_level level, const char *fmt, va_list args)
{
	char line[1024];

	if (level == LIBBPF_DEBUG || !log_line)
		return 0;
	vsnprintf(line, sizeof(line), fmt, args);
	line[strcspn(line, "\n")] = 0;
	log_line(line);
	return 0;
}

static size_t map_bytes(const struct bpf_map *map)
{
	size_t page = sysconf(_SC_PAGESIZE);
	size_t size = (size_t)bpf_map__value_size(map) * bpf_map__max_entries(map);

	return (size + page - 1) & ~(page - 1);
}

static void *map_memory(const struct bpf_map *map, struct xp_err *err)
{
	void *p = mmap(NULL, map_bytes(map), PROT_READ | PROT_WRITE, MAP_SHARED, bpf_map__fd(map), 0);

	if (p != MAP_FAILED)
		return p;
	xp_err_sys(err, errno, "cannot map the memory of BPF map %s", bpf_map__name(map));
	return NULL;
}

static int map_tables(struct xp_bpf *bpf, struct xp_err *err)
{
	struct xp_tables_memory *t = &bpf->tables;

	t->nblocks = TABLE_BLOCKS;
	t->npages = TABLE_PAGES;
	t->nranges = TABLE_RANGES;
	t->rows = map_memory(bpf->skel->maps.blocks, err);
	t->pages = map_memory(bpf->skel->maps.pages, err);
	t->rules = map_memory(bpf->skel->maps.rules, err);
	t->ranges = map_memory(bpf->skel->maps.ranges, err);
	return t->rows && t->pages && t->rules && t->ranges ? 0 : -ENOMEM;
}

static void unmap_tables(struct xp_bpf *bpf)
{
	struct xp_tables_memory *t = &bpf->tables;

	if (t->rows)
		munmap(t->rows, map_bytes(bpf->skel->maps.blocks));
	if (t->pages)
		munmap(t->pages, map_bytes(bpf->skel->maps.pages));
	if (t->rules)
		munmap(t->rules, map_bytes(bpf->skel->maps.rules));
	if (t->ranges)
		munmap(t->ranges, map_bytes(bpf->skel->maps.ranges));
}

static bool kernel_has(enum bpf_func_id helper)
{
	return libbpf_probe_bpf_helper(BPF_PROG_TYPE_PERF_EVENT, helper, NULL) == 1;
}

static const char *const runtime_names[] = {
#define XP_RUNTIME_NAME(id, name) [XP_RUNTIME_##id] = #name,
	XP_RUNTIMES(XP_RUNTIME_NAME)
};

/* A runtime's maps and programs are found by name: <name>_params, <name>_scratch, xp_before_<name>_*. */
static struct bpf_map *runtime_map(const struct xp_bpf *bpf, int id, const char *what)
{
	char name[64];

	snprintf(name, sizeof(name), "%s_%s", runtime_names[id], what);
	return bpf_object__find_map_by_name(bpf->skel->obj, name);
}

static struct bpf_program *runtime_program(const struct xp_bpf *bpf, int id, const char *when,
					   bool loop)
{
	char name[64];

	snprintf(name, sizeof(name), "xp_%s_%s_%s", when, runtime_names[id], loop ? "loop" : "tail");
	return bpf_object__find_program_by_name(bpf->skel->obj, name);
}

static void configure_runtime(struct xp_bpf *bpf, int id)
{
	struct bpf_map *scratch = runtime_map(bpf, id, "scratch");

	if (scratch)
		bpf_map__set_max_entries(scratch, libbpf_num_possible_cpus());
	for (int loop = 0; loop < 2; loop++) {
		struct bpf_program *before = runtime_program(bpf, id, "before", loop);
		struct bpf_program *after = runtime_program(bpf, id, "after", loop);

		if (before)
			bpf_program__set_autoload(before, loop == bpf->loop);
		if (after)
			bpf_program__set_autoload(after, loop == bpf->loop);
	}
}

/* Sizes, switches and the choice of the walker: what must be set before the kernel sees it. */
static void configure(struct xp_bpf *bpf, const struct xp_bpf_options *options)
{
	struct xprof_bpf *skel = bpf->skel;

	bpf->loop = !options->tail_calls && kernel_has(BPF_FUNC_loop);
	bpf_program__set_autoload(skel->progs.xp_native_loop, bpf->loop);
	bpf_program__set_autoload(skel->progs.xp_native_tail, !bpf->loop);
	skel->rodata->have_task_regs = kernel_has(BPF_FUNC_task_pt_regs);
	skel->rodata->wake_bytes = options->ring_bytes / 4;
	skel->rodata->follow_children = options->follow_children;
	skel->rodata->vm_time_ns = options->vm_time_ns;
	bpf_map__set_max_entries(skel->maps.blocks, TABLE_BLOCKS);
	bpf_map__set_max_entries(skel->maps.pages, TABLE_PAGES);
	bpf_map__set_max_entries(skel->maps.ranges, TABLE_RANGES);
	bpf_map__set_max_entries(skel->maps.procs, PROCESSES_MAX);
	bpf_map__set_max_entries(skel->maps.scratch, libbpf_num_possible_cpus());
	for (int id = XP_RUNTIME_NATIVE + 1; id < XP_RUNTIMES_N; id++)
		configure_runtime(bpf, id);
	bpf_map__set_max_entries(skel->maps.ring, options->ring_bytes);
}

static int set_stage(struct xp_bpf *bpf, __u32 stage, const struct bpf_program *prog)
{
	__u32 key = stage, fd = bpf_program__fd(prog);

	return bpf_map_update_elem(bpf_map__fd(bpf->skel->maps.stages), &key, &fd, BPF_ANY);
}

static int load(struct xp_bpf *bpf, struct xp_err *err)
{
	struct xprof_bpf *skel = bpf->skel;
	int r = xprof_bpf__load(skel);

	if (r && access("/sys/kernel/btf/vmlinux", R_OK) && r != -EPERM) {
		xp_err_set(err, -r, "this kernel has no type information (/sys/kernel/btf/vmlinux)");
		xp_err_hint(err, "use a kernel built with CONFIG_DEBUG_INFO_BTF=y: Debian's since 11, "
			    "Ubuntu's since 20.10, Fedora's since 31");
		return r;
	}
	if (r)
		return xp_bpf_error(err, -r, "cannot load the BPF programs");
	r = set_stage(bpf, XP_STAGE_NATIVE,
		      bpf->loop ? skel->progs.xp_native_loop : skel->progs.xp_native_tail);
	if (!r)
		r = set_stage(bpf, XP_STAGE_FINISH, skel->progs.xp_finish);
	for (int id = XP_RUNTIME_NATIVE + 1; !r && id < XP_RUNTIMES_N; id++) {
		const struct bpf_program *before = runtime_program(bpf, id, "before", bpf->loop);
		const struct bpf_program *after = runtime_program(bpf, id, "after", bpf->loop);

		if (before)
			r = set_stage(bpf, XP_STAGE_BEFORE + id, before);
		if (!r && after)
			r = set_stage(bpf, XP_STAGE_AFTER + id, after);
	}
	return r ? xp_bpf_error(err, errno, "cannot fill the BPF program array") : 0;
}

static int attach_process_programs(struct xp_bpf *bpf, struct xp_err *err)
{
	struct xprof_bpf *skel = bpf->skel;

	skel->links.xp_fork = bpf_program__attach(skel->progs.xp_fork);
	if (skel->links.xp_fork)
		skel->links.xp_exit = bpf_program__attach(skel->progs.xp_exit);
	if (skel->links.xp_exit)
		skel->links.xp_exec = bpf_program__attach(skel->progs.xp_exec);
	if (!skel->links.xp_fork || !skel->links.xp_exit || !skel->links.xp_exec)
		return xp_bpf_error(err, errno, "cannot attach to the scheduler's trace points");
	return 0;
}

int xp_bpf_new(struct xp_bpf **out, const struct xp_bpf_options *options, struct xp_err *err)
{
	struct xp_bpf *bpf = calloc(1, sizeof(*bpf));
	int r;

	*out = NULL;
	if (!bpf)
		return xp_err_sys(err, ENOMEM, "cannot load the BPF programs");
	log_line = options->log;
	libbpf_set_print(print_libbpf);
	bpf->skel = xprof_bpf__open();
	if (!bpf->skel) {
		r = xp_bpf_error(err, errno, "cannot open the BPF object");
		goto out;
	}
	configure(bpf, options);
	r = load(bpf, err);
	if (!r)
		r = map_tables(bpf, err);
	if (!r)
		r = attach_process_programs(bpf, err);
out:
	if (r) {
		xp_bpf_free(bpf);
		return r;
	}
	*out = bpf;
	return 0;
}

void xp_bpf_free(struct xp_bpf *bpf)
{
	if (!bpf)
		return;
	xp_bpf_stop(bpf);
	ring_buffer__free(bpf->ring);
	if (bpf->skel)
		unmap_tables(bpf);
	xprof_bpf__destroy(bpf->skel);
	free(bpf);
}

struct xp_tables_memory xp_bpf_tables(const struct xp_bpf *bpf)
{
	return bpf->tables;
}

int xp_bpf_put_proc(struct xp_bpf *bpf, const struct xp_proc *proc)
{
	__u32 key = proc->tgid;

	return bpf_map_update_elem(bpf_map__fd(bpf->skel->maps.procs), &key, proc, BPF_ANY) ? -errno
											    : 0;
}

int xp_bpf_remove_proc(struct xp_bpf *bpf, pid_t pid)
{
	__u32 key = pid;

	if (bpf_map_delete_elem(bpf_map__fd(bpf->skel->maps.procs), &key) && errno != ENOENT)
		return -errno;
	return 0;
}

int xp_bpf_put_params(struct xp_bpf *bpf, enum xp_runtime_id id, uint32_t slot, const void *value,
		      size_t size)
{
	const struct bpf_map *map = runtime_map(bpf, id, "params");

	if (!map || bpf_map__value_size(map) != size)
		return -EINVAL;
	return bpf_map_update_elem(bpf_map__fd(map), &slot, value, BPF_ANY) ? -errno : 0;
}

static int start_timer(struct xp_bpf *bpf, int cpu, unsigned frequency, struct xp_err *err)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_freq = frequency,
		.freq = 1,
		.exclude_idle = 1,
	};
	int fd = xp_perf_open(&attr, -1, cpu);
	struct bpf_link *link;

	if (fd == -ENODEV)		/* this CPU is offline */
		return 0;
	if (fd < 0)
		return xp_perf_error(err, -fd, "cannot start the sampling timer");
	link = bpf_program__attach_perf_event(bpf->skel->progs.xp_sample, fd);
	if (!link) {
		int r = errno;

		close(fd);
		return xp_perf_error(err, r, "cannot attach to the sampling timer");
	}
	bpf->timers[bpf->ntimers++] = link;	/* owns the fd */
	return 0;
}

int xp_bpf_start(struct xp_bpf *bpf, unsigned frequency, struct xp_err *err)
{
	long ncpu = sysconf(_SC_NPROCESSORS_CONF);
	int r = 0;

	bpf->timers = calloc(ncpu, sizeof(struct bpf_link *));
	if (!bpf->timers)
		return xp_err_sys(err, ENOMEM, "cannot start the sampling timer");
	for (long cpu = 0; !r && cpu < ncpu; cpu++)
		r = start_timer(bpf, cpu, frequency, err);
	if (r)
		xp_bpf_stop(bpf);
	return r;
}

void xp_bpf_stop(struct xp_bpf *bpf)
{
	for (size_t i = 0; i < bpf->ntimers; i++)
		bpf_link__destroy(bpf->timers[i]);
	free(bpf->timers);
	bpf->timers = NULL;
	bpf->ntimers = 0;
}

int xp_bpf_set_reader(struct xp_bpf *bpf, xp_bpf_record_fn fn, void *ctx)
{
	bpf->ring = ring_buffer__new(bpf_map__fd(bpf->skel->maps.ring), fn, ctx, NULL);
	return bpf->ring ? 0 : -errno;
}

int xp_bpf_ring_fd(const struct xp_bpf *bpf)
{
	return ring_buffer__epoll_fd(bpf->ring);
}

int xp_bpf_consume(struct xp_bpf *bpf)
{
	int r = ring_buffer__consume(bpf->ring);

	return r < 0 ? r : 0;
}

uint64_t xp_bpf_counter(const struct xp_bpf *bpf, enum xp_counter counter)
{
	int ncpu = libbpf_num_possible_cpus();
	uint64_t *values = calloc(ncpu, sizeof(*values)), sum = 0;
	__u32 key = counter;

	if (values && !bpf_map_lookup_elem(bpf_map__fd(bpf->skel->maps.counters), &key, values))
		for (int i = 0; i < ncpu; i++)
			sum += values[i];
	free(values);
	return sum;
}

bool xp_bpf_uses_loop(const struct xp_bpf *bpf)
{
	return bpf->loop;
}

#ifdef XP_TEST_STOP
void xp_bpf_arm_stop(struct xp_bpf *bpf)
{
	bpf->skel->bss->stop_armed = 1;
}
#endif
