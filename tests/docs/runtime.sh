#!/bin/sh
# SPDX-License-Identifier: GPL-2.0-or-later
#
# A new runtime is a BPF file, a C file, the header they share, and lines in two lists. Here one is
# added to a copy of the tree, which is built with the settings of this build; then the runtime's
# frames are in the stacks of the program that it is for, and those of others are as before.

. "$(dirname "$0")/../lib/tap.sh"
: "${top_srcdir:=$here/../..}"
: "${top_builddir:=$here/../../build}"
need_program autoreconf
need_program clang
[ -x "$top_builddir/config.status" ] || skip_all build "no config.status in $top_builddir"

# Unpacked, not copied, so that nothing comes along that was built in the tree.
mkdir "$tmp/before" "$tmp/tree" "$tmp/build" || exit 99
(cd "$top_srcdir" && find Makefile.am configure.ac README LICENSE bootstrap bpf src man completions \
	-type f ! -name '*.o' ! -name '.dirstamp' ! -path '*/.deps/*' | tar -cf - -T -) |
	tar -xf - -C "$tmp/before" || exit 99
chmod -R u+w "$tmp/before"
cp -R "$tmp/before/." "$tmp/tree"
cd "$tmp/tree" || exit 99

cat >bpf/toy.h <<'EOF'
/* SPDX-License-Identifier: GPL-2.0-or-later */
/* What the kernel side needs to know of one process with a toy runtime. */
#ifndef XP_BPF_TOY_H
#define XP_BPF_TOY_H

#include <linux/types.h>

struct xp_toy {
	__u64 code;		/* of the one frame there is */
};

#endif
EOF

cat >bpf/toy.bpf.c <<'EOF'
/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A toy runtime: no activations, and the same one frame in each sample. */
#include "xbpf.h"
#include "toy.h"

struct toy_scratch {
	__u64 samples;
};

XP_MAP(toy_params, BPF_MAP_TYPE_ARRAY, __u32, struct xp_toy, XP_RUNTIME_PARAMS, 0);
XP_MAP(toy_scratch, BPF_MAP_TYPE_ARRAY, __u32, struct toy_scratch, 1, 0);

static __always_inline int before(void *ctx)
{
	struct xp_walk *w = xp_walk();

	if (w)
		xp_next(ctx, w);
	return 0;
}

static __always_inline int after(void *ctx)
{
	struct xp_raw_part part = {
		.runtime = XP_RUNTIME_TOY, .end = XP_VM_END_ROOT, .acts_end = XP_VM_END_ROOT,
		.flags = XP_PART_ON_STACK, .nframes = 1,
	};
	struct xp_walk *w = xp_walk();
	__u32 cpu = w ? w->sample.cpu : 0, slot = w ? w->proc.slots[XP_RUNTIME_TOY] : 0;
	struct xp_toy *toy = bpf_map_lookup_elem(&toy_params, &slot);
	struct toy_scratch *s = bpf_map_lookup_elem(&toy_scratch, &cpu);

	if (!w)
		return 0;
	if (toy && s) {
		s->samples++;
		xp_push(w, ((__u64 *)&part)[0]);
		xp_push(w, ((__u64 *)&part)[1]);
		xp_push(w, toy->code | (__u64)XP_VM_SEGMENT_END << 48);
		xp_push(w, 0);
		xp_push(w, 0);
		w->sample.nparts++;
	}
	xp_next(ctx, w);
	return 0;
}

SEC("perf_event")
int xp_before_toy_loop(void *ctx)
{
	return before(ctx);
}

SEC("perf_event")
int xp_after_toy_loop(void *ctx)
{
	return after(ctx);
}

SEC("perf_event")
int xp_before_toy_tail(void *ctx)
{
	return before(ctx);
}

SEC("perf_event")
int xp_after_toy_tail(void *ctx)
{
	return after(ctx);
}

char LICENSE[] SEC("license") = "GPL";
EOF

cat >src/runtime/toy.c <<'EOF'
/* SPDX-License-Identifier: GPL-2.0-or-later */
/* A toy runtime: any program whose file is named toyhost has it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/toy.h"
#include "runtime/runtime.h"

#define CODE 0x1234

extern const struct xp_runtime xp_runtime_toy;

static int probe(struct xp_dso *dso, void **data, struct xp_err *err)
{
	const char *slash = strrchr(dso->path, '/');

	(void)err;
	*data = NULL;
	return slash && !strcmp(slash, "/toyhost");
}

static void free_data(void *data)
{
	free(data);
}

static enum xp_attach attach(const void *data, const struct xp_process *process,
			     const struct xp_mapping *mapping, const struct xp_mem *mem,
			     void *value, void **state, struct xp_err *err)
{
	struct xp_toy *toy = value;

	(void)data, (void)process, (void)mapping, (void)mem, (void)err;
	toy->code = CODE;
	*state = NULL;
	return XP_ATTACH_DONE;
}

static void detach(void *state)
{
	(void)state;
}

static int symbolize(void *state, const struct xp_raw_vm_frame *raw, bool leaf, uint64_t batch,
		     struct xp_profile *profile, uint32_t *frame)
{
	struct xp_frame f = { .dso = XP_NO_ID };
	bool right = (raw->code_flags & 0xffffffffffff) == CODE;
	int r = xp_strings_addz(&profile->strings, "toy", &f.runtime);

	(void)state, (void)leaf, (void)batch;
	if (!r)
		r = xp_strings_addz(&profile->strings, right ? "toy frame" : "wrong", &f.name);
	return r ? r : xp_profile_add_frame(profile, &f, frame);
}

static bool in_loop(const void *data, uint64_t vaddr)
{
	(void)data, (void)vaddr;
	return false;
}

static int state_frame(void *state, uint32_t word, struct xp_profile *profile, uint32_t *frame)
{
	(void)state, (void)word, (void)profile;
	*frame = XP_NO_ID;
	return 0;
}

static void title(const void *data, char *out, size_t size)
{
	(void)data;
	snprintf(out, size, "toy 1");
}

static void describe(const void *data, const void *state, struct xp_buf *out)
{
	(void)data, (void)state;
	xp_buf_printf(out, "toy: by its name");
}

const struct xp_runtime xp_runtime_toy = {
	.name = "toy", .probe = probe, .free_data = free_data, .attach = attach,
	.value_size = sizeof(struct xp_toy), .detach = detach, .symbolize = symbolize,
	.in_loop = in_loop, .state_frame = state_frame, .title = title, .describe = describe,
};
EOF

sed -i 's|^\(\tXP_RUNTIME([A-Z]*, [a-z]*)\)$|\1 \\\n\tXP_RUNTIME(TOY, toy)|' bpf/runtimes.h
sed -i -e 's|^BPF_H = |&bpf/toy.h |' -e 's|^BPF_C = |&bpf/toy.bpf.c |' \
	-e 's|^BPF_O = bpf/sample.bpf.o|& bpf/toy.bpf.o|' \
	-e 's|^BPF_STOP_O = bpf/sample.stop.bpf.o|& bpf/toy.stop.bpf.o|' \
	-e 's|^libxprof_a_SOURCES = |&src/runtime/toy.c |' Makefile.am

is "$(diff -rq "$tmp/before" . | sed "s|$tmp/before|.|g" | LC_ALL=C sort)" \
"Files ./Makefile.am and ./Makefile.am differ
Files ./bpf/runtimes.h and ./bpf/runtimes.h differ
Only in ./bpf: toy.bpf.c
Only in ./bpf: toy.h
Only in ./src/runtime: toy.c" "three new files and two lists"
is "$(diff "$tmp/before/bpf/runtimes.h" bpf/runtimes.h | grep -c '^[<>]')" 3 \
	"one more line, and one that it is joined to"

build()
{
	autoreconf -i && cd "$tmp/build" &&
		eval "$tmp/tree/configure -q $("$top_builddir/config.status" --config |
			sed "s/'\{0,1\}--srcdir=[^ ']*'\{0,1\}//")" &&
		make -j"$(getconf _NPROCESSORS_ONLN)" xprof
}

# In a shell of its own; autoreconf is a Perl script that listens to these.
(unset MAKEFLAGS MFLAGS MAKELEVEL; build) >"$tmp/log" 2>&1
ok $? "it builds" || diag "$(tail -20 "$tmp/log")"
grep -q 'warning' "$tmp/log"
is $? 1 "without a warning" || diag "$(grep -A5 warning "$tmp/log")"
[ -x "$tmp/build/xprof" ] || done_testing
xprof=$tmp/build/xprof

cat >"$tmp/host.c" <<'EOF'
#include <time.h>

__attribute__((noinline)) static int spin(clock_t end)
{
	volatile int n = 0;

	while (clock() < end)
		for (int i = 0; i < 100000; i++)
			n++;
	return n;
}

int main(void)
{
	return spin(clock() + 2 * CLOCKS_PER_SEC) == 0;
}
EOF
${CC:-cc} -O1 -g -fno-optimize-sibling-calls -o "$tmp/toyhost" "$tmp/host.c" || exit 99
cp "$tmp/toyhost" "$tmp/plainhost"

# share LABEL PATTERN: checks that nine of ten samples have this in their stacks.
share()
{
	local all with
	all=$(awk '{ n += $NF } END { print n + 0 }' "$tmp/folded")
	with=$(awk -v pattern="$2" '$0 ~ pattern { n += $NF } END { print n + 0 }' "$tmp/folded")
	cmp_num "$all" -ge 30 "$1: enough samples"
	cmp_num "$with * 10" ">=" "$all * 9" "$1: $2" || diag "$(head -5 "$tmp/folded")"
}

# sample OPTION COMMAND...
sample()
{
	run "$xprof" record -q $1 -o "$tmp/data" -- "$2" ${3:+"$3"} ${4:+"$4"}
	"$xprof" report -i "$tmp/data" --folded >"$tmp/folded" 2>/dev/null </dev/null
}

run "$xprof" record -q -d 1 -o "$tmp/data" -- true
if [ "$(id -u)" != 0 ] || [ ! -r /sys/kernel/btf/vmlinux ] || [ "$status" = 77 ]; then
	skip bpf "no rights to sample: $(head -1 "$tmp/err")" "its frames in a recording"
	done_testing
fi
is "$status" 0 "it is loaded" || diag "$err"
for option in '' --no-bpf-loop; do
	sample "$option" "$tmp/toyhost"
	share "toy$option" ';toy frame[; ]'
	share "native with toy$option" ';main;.*spin'
	sample "$option" "$tmp/plainhost"
	share "native$option" ';main;.*spin'
	is "$(grep -c 'toy frame' "$tmp/folded")" 0 "native$option: no toy"
	if command -v ruby >/dev/null; then
		sample "$option" ruby -e 'def leaf = (t = Process.clock_gettime(1) + 2
			nil while Process.clock_gettime(1) < t)
			[1].each { leaf }'
		share "ruby$option" ';main;.*<main>;Array#each;block in <main>;Object#leaf'
	else
		skip ruby "ruby is not installed" "ruby$option"
	fi
done

done_testing
