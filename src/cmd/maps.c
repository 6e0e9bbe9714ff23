/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * xprof maps: what a process has mapped and what xprof makes of it, before anything is recorded. The
 * last lines say of each language runtime how it was found and whether it is ready, or which step
 * failed.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/text.h"
#include "cmd/cmd.h"
#include "runtime/runtime.h"
#include "target/dso.h"
#include "target/maps.h"
#include "target/proc.h"

static struct xp_opt_pids pids;

static const struct xp_opt options[] = {
	{ XP_OPT_PIDS, 'p', "pid", .dest = &pids, .arg = "PID[,PID...]",
	  .help = "show the mappings of these processes", .complete = XP_COMPLETE_PID },
	{ XP_OPT_COUNT, 'v', "verbose", .dest = &xp_cmd_verbose,
	  .help = "also say what was left out of each table" },
	{ .type = XP_OPT_END },
};

static const struct xp_opt *option_table(void)
{
	return options;
}

static void print_path(const struct xp_mapping *m)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_text_safe(&b, m->path, strlen(m->path));
	xp_buf_u8(&b, 0);
	if (!b.failed)
		printf("  %s%s\n", *m->path ? (const char *)b.data : "[anonymous]",
		       m->deleted ? " (deleted)" : "");
	xp_buf_release(&b);
}

static void print_dso(struct xp_dso *dso)
{
	struct xp_sym sym;

	if (dso->problem[0]) {
		printf("  %8s %-22s %-40s", "-", "-", dso->problem);
		return;
	}
	xp_dso_symbol(dso, 0, &sym);	/* loads the symbols, so that their source is known */
	printf("  %8zu %-22s %-40s", dso->cfi.rows.n, dso->cfi.source ? dso->cfi.source : "none",
	       dso->build_id[0] ? dso->build_id : "no build id");
}

static void print_details(const struct xp_dso *dso)
{
	if (!dso->elf)
		return;
	printf("%36s%zu functions by unwind entries, %zu entries left out, %zu rows unsupported; "
	       "%zu symbols (%s)\n", "", dso->cfi.funcs.n, dso->cfi.bad_fdes, dso->cfi.bad_rows,
	       dso->symtab ? xp_symtab_count(dso->symtab) : 0,
	       dso->symtab ? xp_symtab_source(dso->symtab) : "none");
}

static int print_mapping(struct xp_dsos *dsos, pid_t pid, struct xp_mapping *m)
{
	bool file = m->ino || !strcmp(m->path, "[vdso]");
	struct xp_dso *dso;
	int r = 0;

	printf("%012llx-%012llx", (unsigned long long)m->start, (unsigned long long)m->end);
	if (!file) {
		printf("  %8s %-22s %-40s", "-", "-", "no file: frame pointers only");
		print_path(m);
		return 0;
	}
	dso = xp_dsos_get(dsos, pid, m);
	if (!dso)
		return -ENOMEM;
	m->user = dso;
	r = xp_dso_need_rows(dso);
	if (r)
		return r;
	print_dso(dso);
	print_path(m);
	if (xp_cmd_verbose)
		print_details(dso);
	return 0;
}

static void print_line(const char *text, size_t n)
{
	struct xp_buf b = XP_BUF_INIT;

	xp_text_safe(&b, text, n);
	xp_buf_u8(&b, 0);
	if (!b.failed)
		printf("%s\n", (const char *)b.data);
	xp_buf_release(&b);
}

/* What one runtime says of a file and of the process that has mapped it; true when it is its. */
static bool print_runtime(const struct xp_runtime *runtime, const struct xp_process *process,
			  const struct xp_mapping *m)
{
	struct xp_mem mem = xp_mem_of_pid(process->pid);
	struct xp_err err = XP_ERR_INIT;
	uint64_t value[32] = { 0 };
	struct xp_buf text = XP_BUF_INIT;
	void *data = NULL, *state = NULL;
	int found = runtime->probe(xp_mapping_dso(m), &data, &err);

	if (found == 1) {
		runtime->attach(data, process, m, &mem, value, &state, &err);
		runtime->describe(data, state, &text);
		if (!state)
			xp_buf_printf(&text, "; not ready: %s", err.what);
		runtime->detach(state);
		runtime->free_data(data);
	} else if (found < 0) {
		xp_buf_printf(&text, "%s: %s", runtime->name, err.what);
	}
	if (text.len && !text.failed)
		print_line((const char *)text.data, text.len);
	xp_buf_release(&text);
	return found != 0;
}

static void print_runtimes(const struct xp_process *process)
{
	bool any = false;

	for (int id = 0; id < XP_RUNTIMES_N; id++) {
		const struct xp_runtime *runtime = xp_runtimes[id];
		uint32_t last = UINT32_MAX;

		for (size_t i = 0; runtime->probe && i < process->maps.list.n; i++) {
			const struct xp_mapping *m = &process->maps.list.v[i];

			if (!m->exec || !m->user || xp_mapping_dso(m)->id == last)
				continue;
			last = xp_mapping_dso(m)->id;
			any |= print_runtime(runtime, process, m);
		}
	}
	if (!any)
		printf("no language runtime was recognised\n");
}

static int print_process(struct xp_dsos *dsos, pid_t pid, struct xp_err *err)
{
	struct xp_process process = { .pid = pid };
	struct xp_maps *maps = &process.maps;
	struct xp_proc_info info;
	char comm[64];
	int r = xp_proc_check_target(&info, pid, err);

	if (!r)
		r = xp_maps_read(maps, pid, err);
	if (r)
		return r;
	xp_text_safe_copy(comm, sizeof(comm), info.comm, strnlen(info.comm, sizeof(info.comm)));
	printf("process %d (%s)\n%-27s %8s %-22s %-40s  %s\n", (int)pid, comm, "executable range",
	       "rows", "from", "build id", "file");
	for (size_t i = 0; !r && i < maps->list.n; i++)
		if (maps->list.v[i].exec && maps->list.v[i].start < 1ull << 47)
			r = print_mapping(dsos, pid, &maps->list.v[i]);
	if (!r)
		print_runtimes(&process);
	xp_maps_release(maps);
	return r ? xp_err_sys(err, -r, "process %d", (int)pid) : 0;
}

static int run(int argc, char **argv)
{
	struct xp_err err = XP_ERR_INIT;
	struct xp_dsos *dsos = NULL;
	int operand, status, r = 0;

	if (!xp_cmd_begin(&xp_cmd_maps, argc, argv, &operand, NULL, &status))
		return status;
	if (!pids.n || operand < argc) {
		xp_err_set(&err, EINVAL, pids.n ? "maps takes no operands" : "no process named");
		xp_err_status(&err, XP_EXIT_USAGE);
		xp_err_hint(&err, "xprof maps -p PID");
		return xp_cmd_fail(&err);
	}
	dsos = xp_dsos_new();
	if (!dsos)
		r = xp_err_sys(&err, errno, "cannot look at processes");
	for (size_t i = 0; !r && i < pids.n; i++)
		r = print_process(dsos, pids.v[i], &err);
	xp_dsos_free(dsos);
	free(pids.v);
	return xp_cmd_end(r ? xp_cmd_fail(&err) : XP_EXIT_OK);
}

static const char *const usage[] = { "maps [OPTIONS] -p PID[,PID...]", NULL };
static const char *const examples[] = { "xprof maps -p 1234", NULL };

const struct xp_command xp_cmd_maps = {
	.name = "maps",
	.summary = "show what a process has mapped and which unwind tables it gets",
	.usage = usage,
	.examples = examples,
	.options = option_table,
	.run = run,
};
