/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * runtime/merge: order of the parts, places of the marks, and VM frames among native frames. Cases
 * are text, leaf first as in a sample; results root first, internal frames in parentheses.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "../profile/sample_profile.h"
#include "runtime/merge.h"

#define FRAMES 512
#define RUBY 1			/* any two numbers of runtimes */
#define LUA 2

static struct xp_profile profile;
static struct xp_merger merger;

static int setup(void **state)
{
	(void)state;
	xp_merger_init(&merger, &profile);
	return xp_profile_init(&profile) ? -1 : 0;
}

static int teardown(void **state)
{
	(void)state;
	xp_merger_release(&merger);
	xp_profile_release(&profile);
	return 0;
}

static uint32_t frame_of(const char *name)
{
	if (!name)
		return XP_NO_ID;
	return make_frame(&profile, "", name, *name == '[' ? XP_FRAME_MARK : XP_FRAME_NORMAL, NULL,
			  "", 0);
}

/* The stack's frame names, root first. */
static const char *text_of(uint32_t stack)
{
	static char text[16384];
	static uint32_t path[2 * FRAMES];
	size_t n = 0, len = 0;

	for (; stack != XP_NO_ID; stack = profile.stacks.v[stack].parent) {
		assert_true(n < 2 * FRAMES);
		path[n++] = profile.stacks.v[stack].frame;
	}
	text[0] = 0;
	while (n--) {
		const struct xp_frame *f = &profile.frames.v[path[n]];
		const char *name = xp_strings_get(&profile.strings, f->name).p;

		len += (size_t)snprintf(text + len, sizeof(text) - len,
					f->kind == XP_FRAME_INTERNAL ? "(%s)%s" : "%s%s", name,
					n ? " " : "");
		assert_true(len < sizeof(text));
	}
	return text;
}

/*
 * native: "name@sp" with O (own) or L (loop) behind, small o and l when they are Lua's. vm: names,
 * with | behind the last of a segment; - is a dummy, -| one with the mark of an end.
 */
struct vm_case {
	const char *acts, *vm;
	bool off_stack;
	enum xp_vm_end end, acts_end;		/* 0: XP_VM_END_ROOT */
	const char *state, *mark;
	enum xp_merge_result result;		/* expected */
};

struct stack_case {
	const char *native, *kernel, *root_mark, *kernel_mark;
	struct vm_case vm[2];			/* Ruby's and Lua's */
	size_t nvm;
};

struct lists {
	struct xp_merge_native native[FRAMES];
	uint32_t kernel[FRAMES];
	uint64_t acts[2][FRAMES];
	struct xp_merge_vm vm[2][FRAMES];
	struct xp_merge_part parts[2];
};

static size_t words(const char *text, char (*word)[32])
{
	size_t n = 0;

	for (int used; text && sscanf(text, " %31s%n", word[n], &used) == 1; text += used)
		assert_true(++n < FRAMES);
	return n;
}

static size_t parse_native(const char *text, struct xp_merge_native *native)
{
	static char word[FRAMES][32];
	size_t n = words(text, word);

	for (size_t i = 0; i < n; i++) {
		char *at = strchr(word[i], '@'), *end;

		*at = 0;
		native[i] = (struct xp_merge_native){
			.frame = frame_of(word[i]),
			.sp = strtoull(at + 1, &end, 10),
			.runtime = *end == 'o' || *end == 'l' ? LUA : *end ? RUBY : 0,
		};
		if (*end)
			native[i].flags = *end == 'O' || *end == 'o' ? XP_MERGE_OWN :
								       XP_MERGE_LOOP;
	}
	return n;
}

static size_t parse_vm(const char *text, struct xp_merge_vm *vm)
{
	static char word[FRAMES][32];
	size_t n = words(text, word);

	for (size_t i = 0; i < n; i++) {
		char *bar = strchr(word[i], '|');

		vm[i].segment_end = bar;
		if (bar)
			*bar = 0;
		vm[i].frame = frame_of(*word[i] == '-' ? NULL : word[i]);
	}
	return n;
}

static void parse_part(const struct vm_case *c, uint64_t *acts, struct xp_merge_vm *vm,
		       struct xp_merge_part *part)
{
	static char word[FRAMES][32];

	*part = (struct xp_merge_part){
		.acts = acts, .frames = vm,
		.nacts = words(c->acts, word), .nframes = parse_vm(c->vm, vm),
		.end = c->end ? c->end : XP_VM_END_ROOT,
		.acts_end = c->acts_end ? c->acts_end : XP_VM_END_ROOT,
		.on_stack = !c->off_stack,
		.state = frame_of(c->state), .mark = frame_of(c->mark),
		.result = 99,
	};
	for (size_t i = 0; i < part->nacts; i++)
		acts[i] = strtoull(word[i], NULL, 10);
}

static const char *merged(const struct stack_case *c)
{
	static struct lists l;
	static char word[FRAMES][32];
	struct xp_parts parts = {
		.native = l.native, .nnative = parse_native(c->native, l.native),
		.kernel = l.kernel, .nkernel = words(c->kernel, word),
		.root_mark = frame_of(c->root_mark), .kernel_mark = frame_of(c->kernel_mark),
		.vm = l.parts, .nvm = c->nvm,
	};
	uint32_t stack = 12345;

	for (size_t i = 0; i < parts.nkernel; i++)
		l.kernel[i] = frame_of(word[i]);
	for (size_t i = 0; i < c->nvm; i++) {
		parse_part(&c->vm[i], l.acts[i], l.vm[i], &l.parts[i]);
		l.parts[i].runtime = i ? LUA : RUBY;
	}
	assert_int_equal(xp_merge(&merger, &parts, &stack), 0);
	for (size_t i = 0; i < c->nvm; i++)
		assert_int_equal(l.parts[i].result, c->vm[i].result);
	return stack == XP_NO_ID ? "nothing" : text_of(stack);
}

#define check(expected, ...) \
	assert_string_equal(merged(&(struct stack_case){ __VA_ARGS__ }), expected)
#define ONE(...) .nvm = 1, .vm = { { __VA_ARGS__ } }
#define CUT XP_VM_END_TOO_DEEP

/* A leaf in libc, a block called back from a C function, the program around. */
#define NATIVE "memcpy@5 vm_exec_core@10L vm_exec@20O rb_yield@25O ext@27 each@30O " \
	       "vm_exec_core@40L vm_exec@50O ruby_run@60O main@70 _start@80"

static void parts_are_in_order(void **state)
{
	(void)state;
	check("main middle leaf entry irq", .native = "leaf@1 middle@2 main@3",
	      .kernel = "irq entry");
	check("main middle leaf", .native = "leaf@1 middle@2 main@3");
	check("leaf", .native = "leaf@1");
	check("entry irq", .kernel = "irq entry");
	check("nothing");
}

static void marks_stand_where_frames_are_missing(void **state)
{
	(void)state;
	check("[cut] middle leaf [kernel] entry irq", .native = "leaf@1 middle@2",
	      .kernel = "irq entry", .root_mark = "[cut]", .kernel_mark = "[kernel]");
	check("[cut] leaf entry", .native = "leaf@1", .kernel = "entry", .root_mark = "[cut]");
	check("leaf [kernel] entry", .native = "leaf@1", .kernel = "entry",
	      .kernel_mark = "[kernel]");
	check("leaf [kernel]", .native = "leaf@1", .kernel_mark = "[kernel]");
	check("[cut]", .root_mark = "[cut]");
	check("[cut] [kernel]", .root_mark = "[cut]", .kernel_mark = "[kernel]");
}

/* The same parts are the same stack, and a common root costs nothing. */
static void stacks_are_shared(void **state)
{
	size_t n, frames;

	(void)state;
	for (int i = 0; i < 2; i++) {
		check("_start main (ruby_run) (vm_exec) top (vm_exec_core) (each) ext (rb_yield) "
		      "(vm_exec) block (vm_exec_core) memcpy",
		      .native = NATIVE, ONE("20 50", "block| top|", .result = XP_MERGE_PLACED));
		if (i) {
			assert_int_equal(profile.stacks.n, n);
			assert_int_equal(profile.frames.n, frames);
		}
		n = profile.stacks.n;
		frames = profile.frames.n;
	}
}

/* A frame that is not there is refused, not followed. */
static void wrong_frames(void **state)
{
	uint32_t leaf = frame_of("leaf"), bad = (uint32_t)profile.frames.n + 7, stack;
	struct xp_merge_native native = { .frame = bad, .sp = 9, .runtime = 200, .flags = 3 };
	struct xp_merge_vm vm = { leaf, true };
	uint64_t act = 9;
	struct xp_merge_part part = {
		.acts = &act, .nacts = 1, .frames = &vm, .nframes = 1, .end = XP_VM_END_ROOT,
		.acts_end = XP_VM_END_ROOT, .on_stack = true, .state = XP_NO_ID, .mark = XP_NO_ID,
		.runtime = 255,
	};
	struct xp_parts parts = { .native = &native, .nnative = 1, .root_mark = XP_NO_ID,
				  .kernel_mark = XP_NO_ID, .vm = &part };

	(void)state;
	assert_true(xp_merge(&merger, &parts, &stack) < 0);
	parts.nvm = 1;
	assert_true(xp_merge(&merger, &parts, &stack) < 0);
	native.frame = leaf;
	vm.frame = bad;
	assert_true(xp_merge(&merger, &parts, &stack) < 0);
	vm.frame = leaf;
	assert_int_equal(xp_merge(&merger, &parts, &stack), 0);
	assert_string_equal(text_of(stack), "(leaf) leaf");
}

/* The internal copy differs in its kind and in nothing else. */
static void internal_copies(void **state)
{
	struct xp_frame f = { .dso = XP_NO_ID, .addr = 0x1234, .line = 7 }, copy;
	struct xp_merge_vm vm = { frame_of("a"), true };
	struct xp_merge_native native = { .sp = 3 };
	uint64_t act = 3;
	struct xp_merge_part part = {
		.acts = &act, .nacts = 1, .frames = &vm, .nframes = 1, .end = XP_VM_END_ROOT,
		.acts_end = XP_VM_END_ROOT, .on_stack = true, .state = XP_NO_ID, .mark = XP_NO_ID,
	};
	struct xp_parts parts = { .native = &native, .nnative = 1, .root_mark = XP_NO_ID,
				  .kernel_mark = XP_NO_ID, .vm = &part, .nvm = 1 };
	uint32_t stack;

	(void)state;
	f.runtime = make_string(&profile, "native");
	f.name = make_string(&profile, "vm_exec");
	f.file = make_string(&profile, "vm.c");
	assert_int_equal(xp_profile_add_frame(&profile, &f, &native.frame), 0);
	assert_int_equal(xp_merge(&merger, &parts, &stack), 0);
	copy = profile.frames.v[profile.stacks.v[profile.stacks.v[stack].parent].frame];
	f.kind = XP_FRAME_INTERNAL;
	assert_true(copy.runtime == f.runtime && copy.name == f.name && copy.file == f.file &&
		    copy.line == f.line && copy.dso == f.dso && copy.addr == f.addr &&
		    copy.kind == f.kind);
}

static void segments_stand_at_their_activations(void **state)
{
	(void)state;
	check("_start main (ruby_run) (vm_exec) top Kernel#each (vm_exec_core) (each) ext "
	      "(rb_yield) (vm_exec) block inner (vm_exec_core) memcpy [kernel] entry irq",
	      .native = NATIVE, .kernel = "irq entry", .kernel_mark = "[kernel]",
	      ONE("20 50", "inner block| Kernel#each top| -|", .result = XP_MERGE_PLACED));
	/* The runtime's own functions are internal only outside the innermost VM frame. */
	check("main (run) (vm_exec) top (vm_exec_core) each hash",
	      .native = "hash@1O each@2O vm_exec_core@3L vm_exec@4O run@5O main@6",
	      ONE("4", "top|", .result = XP_MERGE_PLACED));
	/* In a static build only the loop and the activation are. */
	check("main run (vm_exec) top (vm_exec_core) each (vm_exec) a (vm_exec_core)",
	      .native = "vm_exec_core@3L vm_exec@4 each@5 vm_exec_core@6L vm_exec@7 run@8 main@9",
	      ONE("4 7", "a| top|", .result = XP_MERGE_PLACED));
}

static void code_that_stands_for_the_leaf(void **state)
{
	(void)state;
	/* JIT code, called by vm_exec itself; with a helper of the JIT's and without. */
	check("main (vm_exec) a b (jit)", .native = "jit@1L vm_exec@2O main@3",
	      ONE("2", "b a|", .result = XP_MERGE_PLACED));
	check("main (vm_exec) a b (jit) (jit2) aref",
	      .native = "aref@0O jit2@1L jit@1L vm_exec@2O main@3",
	      ONE("2", "b a|", .result = XP_MERGE_PLACED));
	check("main (vm_exec) a", .native = "vm_exec@2O main@3",
	      ONE("2", "a|", .result = XP_MERGE_PLACED));
	/* Equality, not order: 2 is not 3. */
	check("main vm_exec [unmerged: activation not in native stack] a",
	      .native = "vm_exec@2O main@4", ONE("3", "a|", .result = XP_MERGE_UNMATCHED));
}

/* Frame and activation are not pushed in one instant. */
static void windows_at_the_leaf(void **state)
{
	(void)state;
	check("main (run) (vm_exec) top (vm_exec_core) (yield) new",
	      .native = "yield@1O vm_exec_core@3L vm_exec@4O run@5O main@6",
	      ONE("4", "new| top|", .result = XP_MERGE_PLACED));
	check("main (run) (vm_exec) top (vm_exec_core) yield vm_exec",
	      .native = "vm_exec@1O yield@2O vm_exec_core@3L vm_exec@4O run@5O main@6",
	      ONE("1 4", "top|", .result = XP_MERGE_PLACED));
	check("main (yield) new", .native = "yield@1O main@6",
	      ONE("", "new|", .result = XP_MERGE_PLACED));
	/* More than one is no window. */
	check("main run [unmerged: VM frames and activations differ in number] c b a",
	      .native = "run@1O main@6", ONE("1", "a| b| c|", .result = XP_MERGE_COUNTS));
	check("main run [unmerged: VM frames and activations differ in number] a entry",
	      .native = "run@1O main@6", .kernel = "entry",
	      ONE("1 6 7", "a|", .result = XP_MERGE_COUNTS));
}

/* An Enumerator's fiber begins with a function called from C. */
static void frames_without_activation_at_the_root(void **state)
{
	(void)state;
	check("each (fiber_entry) (call) (vm_exec) b (vm_exec_core)",
	      .native = "vm_exec_core@1L vm_exec@2O call@3O fiber_entry@4O",
	      ONE("2", "b| each -|", .result = XP_MERGE_PLACED));
	check("each fiber_entry call hash", .native = "hash@1 call@3O fiber_entry@4O",
	      ONE("", "each -|", .result = XP_MERGE_PLACED));
	/* What called the runtime stays outside. */
	check("main require (funcall) (vm_exec) b (vm_exec_core)",
	      .native = "vm_exec_core@1L vm_exec@2O funcall@3O main@4",
	      ONE("2", "b| require -", .result = XP_MERGE_PLACED));
	check("main funcall require (vm_exec) b", .native = "vm_exec@2 funcall@3 main@4",
	      ONE("2", "b| require", .result = XP_MERGE_PLACED));
	check("require main read", .native = "read@1 main@4",
	      ONE("", "require", .result = XP_MERGE_PLACED));
	/* One activation too many is still the leaf's. */
	check("main require funcall vm_exec", .native = "vm_exec@2O funcall@3O main@4",
	      ONE("2", "require", .result = XP_MERGE_PLACED));
}

static void fiber_switch(void **state)
{
	(void)state;
	check("main run vm_exec switch [unmerged: fiber switch] top blk entry",
	      .native = "switch@1O vm_exec@50O run@60O main@70", .kernel = "entry",
	      ONE("50", "blk| top", .off_stack = true, .result = XP_MERGE_FIBER_SWITCH));
	/* The marks of each part stay with it. */
	check("[cut] switch [unmerged: fiber switch] [vm cut] top blk [gc] [kernel] entry",
	      .native = "switch@1O", .kernel = "entry", .root_mark = "[cut]",
	      .kernel_mark = "[kernel]",
	      ONE("50", "blk| top", .off_stack = true, .state = "[gc]", .mark = "[vm cut]",
		  .end = CUT, .result = XP_MERGE_FIBER_SWITCH));
	check("main jit", .native = "jit@1L main@2",
	      ONE("50", "-|", .off_stack = true, .result = XP_MERGE_NOTHING));
}

/* VM frames whose native frames are missing are right and in order: only natives are missing. */
static void native_stack_cut(void **state)
{
	(void)state;
	check("top [cut] rb_yield (vm_exec) block (vm_exec_core) memcpy",
	      .native = "memcpy@5 vm_exec_core@10L vm_exec@20O rb_yield@25", .root_mark = "[cut]",
	      ONE("20 50", "block| top|", .result = XP_MERGE_NATIVE_CUT));
	check("top block [cut] c b a", .native = "a@5 b@10O c@15O", .root_mark = "[cut]",
	      ONE("20 50", "block| top|", .result = XP_MERGE_NATIVE_CUT));
	check("top block [cut]", .root_mark = "[cut]",
	      ONE("20 50", "block| top|", .result = XP_MERGE_NATIVE_CUT));
	check("top block [cut] (yield) new", .native = "yield@5O", .root_mark = "[cut]",
	      ONE("20 50", "new| block| top|", .result = XP_MERGE_NATIVE_CUT));
	/* All activations are there, what the root frames called is not. */
	check("each [cut] (call) (vm_exec) b", .native = "vm_exec@2O call@3O", .root_mark = "[cut]",
	      ONE("2", "b| each", .result = XP_MERGE_NATIVE_CUT));
	check("[cut] (call) (vm_exec) b", .native = "vm_exec@2O call@3O", .root_mark = "[cut]",
	      ONE("2", "b|", .result = XP_MERGE_PLACED));
	/* Passed by: the frame of 20 should have been among these. */
	check("[cut] c b [unmerged: activation not in native stack] top block",
	      .native = "b@10 c@25", .root_mark = "[cut]",
	      ONE("20 50", "block| top|", .result = XP_MERGE_UNMATCHED));
}

static void vm_stack_cut(void **state)
{
	(void)state;
	/* Inside a segment; its activation is known. */
	check("_start main (ruby_run) (vm_exec) [vm cut] m (vm_exec_core) (each) ext (rb_yield) "
	      "(vm_exec) block (vm_exec_core) memcpy", .native = NATIVE,
	      ONE("20 50", "block| m", .end = CUT, .mark = "[vm cut]", .result = XP_MERGE_PLACED));
	check("_start main (ruby_run) (vm_exec) (vm_exec_core) (each) ext (rb_yield) (vm_exec) "
	      "[vm cut] block m (vm_exec_core) memcpy", .native = NATIVE,
	      ONE("20 50", "m block", .end = CUT, .mark = "[vm cut]", .result = XP_MERGE_PLACED));
	/* At the end of a segment: nothing is known of the next one. */
	check("_start main (ruby_run) (vm_exec) (vm_exec_core) (each) ext (rb_yield) (vm_exec) "
	      "[vm cut] block (vm_exec_core) memcpy", .native = NATIVE,
	      ONE("20 50 90", "block|", .end = CUT, .mark = "[vm cut]", .result = XP_MERGE_PLACED));
	/* Activations cut: the rest has no address. */
	check("_start main [vm cut] root top (ruby_run) (vm_exec) (vm_exec_core) (each) ext "
	      "(rb_yield) (vm_exec) block (vm_exec_core) memcpy", .native = NATIVE,
	      ONE("20", "block| top| root", .acts_end = CUT, .mark = "[vm cut]",
		  .result = XP_MERGE_VM_CUT));
	check("_start main [vm cut] top (ruby_run) (vm_exec) (vm_exec_core) (each) ext "
	      "(rb_yield) (vm_exec) block (vm_exec_core) memcpy", .native = NATIVE,
	      ONE("20", "block| top", .end = CUT, .acts_end = CUT, .mark = "[vm cut]",
		  .result = XP_MERGE_VM_CUT));
	/* Whole activations prove one segment too many, whole frames one too few. */
	check("main [vm cut] top (run) (vm_exec) b (yield) new",
	      .native = "yield@1O vm_exec@2O run@3O main@4",
	      ONE("2", "new| b| top", .end = CUT, .mark = "[vm cut]", .result = XP_MERGE_VM_CUT));
	check("main (run) (vm_exec) b vm_exec", .native = "vm_exec@1O vm_exec@2O run@3O main@4",
	      ONE("1 2", "b|", .acts_end = CUT, .result = XP_MERGE_PLACED));
	check("main [unmerged: no activation known] [vm cut] b a", .native = "main@4",
	      ONE("", "a b", .end = CUT, .acts_end = XP_VM_END_READ, .mark = "[vm cut]",
		  .result = XP_MERGE_NO_ADDRESS));
	check("main [unmerged: VM frames and activations differ in number] c b a",
	      .native = "main@4", ONE("4", "a| b| c|", .end = CUT, .result = XP_MERGE_COUNTS));
	/* The first one that is met must be the first one of the list. */
	check("main vm_exec [unmerged: activation not in native stack] b",
	      .native = "vm_exec@2O main@4",
	      ONE("1 2", "b", .end = CUT, .result = XP_MERGE_UNMATCHED));
	/* Both cut. */
	check("[vm cut] top b [cut] hash", .native = "hash@1", .root_mark = "[cut]",
	      ONE("2 3", "b| top", .end = CUT, .mark = "[vm cut]", .result = XP_MERGE_NATIVE_CUT));
}

static void state_of_the_vm(void **state)
{
	(void)state;
	check("main (vm_exec) top new [gc] (vm_exec_core) gc_start gc_marks",
	      .native = "gc_marks@1O gc_start@2O vm_exec_core@3L vm_exec@4O main@5",
	      ONE("4", "new top|", .state = "[gc]", .result = XP_MERGE_PLACED));
	check("main (yield) new [gc]", .native = "yield@4O main@5",
	      ONE("", "new|", .state = "[gc]", .result = XP_MERGE_PLACED));
	check("top [gc] [cut] gc_marks", .native = "gc_marks@1O", .root_mark = "[cut]",
	      ONE("4", "top|", .state = "[gc]", .result = XP_MERGE_NATIVE_CUT));
	/* No frame to stand above. */
	check("main gc_marks [cut vm] [gc] entry",
	      .native = "gc_marks@1O main@2", .kernel = "entry",
	      ONE("", "-", .state = "[gc]", .mark = "[cut vm]", .end = XP_VM_END_READ,
		  .result = XP_MERGE_NOTHING));
}

static void empty_parts(void **state)
{
	(void)state;
	check("main run loop", .native = "loop@1L run@2O main@3",
	      ONE(NULL, NULL, .end = XP_VM_END_NONE, .result = XP_MERGE_NOTHING));
	check("main run loop", .native = "loop@1L run@2O main@3",
	      ONE("1 2 3", "- -|", .result = XP_MERGE_NOTHING));
	check("nothing", ONE("", "", .result = XP_MERGE_NOTHING));
	check("[unmerged: activation not in native stack] a",
	      ONE("1", "a|", .result = XP_MERGE_UNMATCHED));
	/* Another runtime's code is not hidden behind Ruby's frames. */
	check("main pool (run) (vm_exec) a luajit trace", .nvm = 2,
	      .native = "trace@1l luajit@1o vm_exec@2O run@3O pool@4o main@5",
	      .vm = { { "2", "a|", .result = XP_MERGE_PLACED }, { .vm = "" } });
}

static void several_runtimes(void **state)
{
	(void)state;
	/* Lua in Ruby in Lua. */
	check("main (lua_call) (lj_call) outer (lj_vm) ffi (run) (vm_exec) rb (core) ext "
	      "(lua_call) (lj_call) f [gc] (lj_vm) gc",
	      .nvm = 2,
	      .native = "gc@1o lj_vm@2l lj_call@3o lua_call@4o ext@5 core@6L vm_exec@7O run@8O "
			"ffi@9 lj_vm@10l lj_call@11o lua_call@12o main@13",
	      .vm = { { "7", "rb|", .result = XP_MERGE_PLACED },
		      { "3 11", "f| outer|", .state = "[gc]", .result = XP_MERGE_PLACED } });
	/* Frames without activation: each outside its own runtime. */
	check("main cl (lua) ffi cr (run) (vm_exec) rb", .nvm = 2,
	      .native = "vm_exec@1O run@2O ffi@3 lua@4o main@5",
	      .vm = { { "1", "rb| cr", .result = XP_MERGE_PLACED },
		      { "", "cl", .result = XP_MERGE_PLACED } });
	/* One that does not fit leaves the other alone, and keeps its own code in view. */
	check("main lua (run) (vm_exec) rb luajit [unmerged: fiber switch] f", .nvm = 2,
	      .native = "luajit@1l vm_exec@2O run@3O lua@4o main@5",
	      .vm = { { "2", "rb|", .result = XP_MERGE_PLACED },
		      { "1", "f|", .off_stack = true, .result = XP_MERGE_FIBER_SWITCH } });
	check("main [unmerged: fiber switch] r [unmerged: fiber switch] f", .nvm = 2,
	      .native = "main@5",
	      .vm = { { "2", "r|", .off_stack = true, .result = XP_MERGE_FIBER_SWITCH },
		      { "1", "f|", .off_stack = true, .result = XP_MERGE_FIBER_SWITCH } });
	check("r f [cut] leaf", .nvm = 2, .native = "leaf@1", .root_mark = "[cut]",
	      .vm = { { "2", "f|", .result = XP_MERGE_NATIVE_CUT },
		      { "3", "r|", .result = XP_MERGE_NATIVE_CUT } });
}

static void same_address_twice(void **state)
{
	(void)state;
	check("main (x) b (x) a", .native = "x@5O x@5O main@6",
	      ONE("5 5", "a| b|", .result = XP_MERGE_PLACED));
	check("main (x) (x) a", .native = "x@5O x@5O main@6",
	      ONE("5", "a|", .result = XP_MERGE_PLACED));
	check("main x [unmerged: activation not in native stack] b a", .native = "x@5O main@6",
	      ONE("5 5", "a| b|", .result = XP_MERGE_UNMATCHED));
	/* Two runtimes, one native frame: it is kept once. */
	check("main (x) b a", .nvm = 2, .native = "x@5O main@6",
	      .vm = { { "5", "a|", .result = XP_MERGE_PLACED },
		      { "5", "b|", .result = XP_MERGE_PLACED } });
}

static void result_texts(void **state)
{
	(void)state;
	assert_string_equal(xp_merge_result_text(XP_MERGE_FIBER_SWITCH), "fiber switch");
	assert_string_equal(xp_merge_result_text(XP_MERGE_PLACED), "");
	assert_string_equal(xp_merge_result_text(XP_MERGE_RESULTS), "");
	assert_string_equal(xp_merge_result_text((enum xp_merge_result)-1), "");
	for (int i = XP_MERGE_NATIVE_CUT; i < XP_MERGE_RESULTS; i++)
		assert_true(*xp_merge_result_text((enum xp_merge_result)i));
}


struct text { char v[16384]; size_t n; };

static void add(struct text *t, const char *format, ...)
{
	va_list ap;
	int n;

	va_start(ap, format);
	n = vsnprintf(t->v + t->n, sizeof(t->v) - t->n, format, ap);
	va_end(ap);
	t->n += (size_t)n;
	assert_true(t->n < sizeof(t->v));
}

/* Words in the other order. */
static const char *reversed(struct text *t)
{
	static struct text r;

	r.n = 0;
	for (char *blank; (blank = strrchr(t->v, ' ')); *blank = 0)
		add(&r, "%s ", blank + 1);
	if (r.n)
		r.v[r.n - 1] = 0;
	return r.v;
}

/*
 * A stack as it was built up, and the lists that a sample of it gives: both written at once by one
 * walk over made-up calls, which knows nothing of the merge.
 */
static void check_true_stack(size_t depth, int window)
{
	static struct text native, acts, vm, truth;
	uint64_t sp = 1000;

	native.n = acts.n = vm.n = truth.n = 0;
	if (window > 0) {
		add(&vm, "new|");
		add(&truth, " new");
	} else if (window < 0) {
		add(&acts, "900");
		add(&native, "v@900O");
		add(&truth, " v");
	}
	for (size_t i = 0; i < depth; i++) {
		bool below = i || window > 0;

		for (int k = rand() % 3; k > 0; k--) {
			bool own = rand() % 2;

			sp += 1 + rand() % 50;
			add(&native, " n%d@%d%s", (int)sp, (int)sp, own ? "O" : "");
			add(&truth, own && below ? " (n%d)" : " n%d", (int)sp);
		}
		if (rand() % 4) {
			sp += 1 + rand() % 50;
			add(&native, " l@%dL", (int)sp);
			add(&truth, " (l)");
		}
		for (int k = rand() % 4; k >= 0; k--) {
			add(&vm, " r%d.%d%s", (int)i, k, k ? "" : "|");
			add(&truth, " r%d.%d", (int)i, k);
		}
		sp += 1 + rand() % 50;
		add(&acts, " %d", (int)sp);
		add(&native, " x@%d%s", (int)sp, rand() % 2 ? "O" : "");
		add(&truth, " (x)");
	}
	add(&native, " main@%d", (int)sp + 8);
	add(&vm, " -|");
	add(&truth, " main");
	assert_string_equal(merged(&(struct stack_case){ .native = native.v, .nvm = 1,
			    .vm = { { acts.v, vm.v, .result = XP_MERGE_PLACED } } }),
			    reversed(&truth));
}

static void true_stacks(void **state)
{
	(void)state;
	srand(1);
	for (int window = -1; window <= 1; window++) {
		check_true_stack(50, window);
		for (size_t i = 0; i < 200; i++)
			check_true_stack(1 + i % 12, window);
	}
}

static const char kinds[] = "nvw";		/* names of native frames and of the two VMs' */

/* Takes one frame off each list it can be of; every list must come in order and run empty. */
static void check_nothing_lost(uint32_t stack, const struct xp_parts *parts, uint32_t (*ids)[32])
{
	size_t next[3] = { 0 }, want[3] = { parts->nnative, 0, 0 };

	for (size_t k = 0; k < 2; k++)
		want[k + 1] = parts->vm[k].nframes;
	for (; stack != XP_NO_ID; stack = profile.stacks.v[stack].parent) {
		const struct xp_frame *f = &profile.frames.v[profile.stacks.v[stack].frame];
		const char *name = xp_strings_get(&profile.strings, f->name).p;
		size_t k = (size_t)(strchr(kinds, *name) - kinds);

		if (f->kind == XP_FRAME_MARK)
			continue;
		assert_true(k < 3 && (k == 0 || f->kind == XP_FRAME_NORMAL));
		while (k && next[k] < want[k] && ids[k][next[k]] == XP_NO_ID)
			next[k]++;
		assert_true(next[k] < want[k]);
		assert_int_equal(atoi(name + 1), next[k]);
		next[k]++;
	}
	for (size_t k = 0; k < 3; k++) {
		while (k && next[k] < want[k] && ids[k][next[k]] == XP_NO_ID)
			next[k]++;
		assert_int_equal(next[k], want[k]);
	}
}

/* Whatever the lists say, all frames are there once and in order. */
static void hostile_lists(void **state)
{
	static struct lists l;
	uint32_t ids[3][32], named[3][32], stack, seen = 0;
	char name[16];

	(void)state;
	srand(2);
	for (int k = 0; k < 3; k++)
		for (int i = 0; i < 32; i++) {
			snprintf(name, sizeof(name), "%c%d", kinds[k], i);
			named[k][i] = frame_of(name);
		}
	for (int round = 0; round < 20000; round++) {
		uint32_t range = 1 + (uint32_t)rand() % 12;
		struct xp_parts parts = {
			.native = l.native, .nnative = (size_t)rand() % 12,
			.root_mark = frame_of(rand() % 2 ? "[cut]" : NULL),
			.kernel_mark = XP_NO_ID, .vm = l.parts, .nvm = 2,
		};

		for (size_t i = 0; i < parts.nnative; i++)
			l.native[i] = (struct xp_merge_native){
				.sp = rand() % 3 ? i : (uint32_t)rand() % range,
				.frame = named[0][i],
				.runtime = (uint8_t)(rand() % 4), .flags = (uint8_t)(rand() % 4) };
		for (int k = 0; k < 2; k++) {
			struct xp_merge_part *p = &l.parts[k];

			*p = (struct xp_merge_part){
				.acts = l.acts[k], .nacts = (size_t)rand() % 6, .frames = l.vm[k],
				.nframes = (size_t)rand() % 10, .runtime = (uint8_t)(1 + k),
				.end = (uint8_t)(rand() % XP_VM_ENDS), .on_stack = rand() % 8,
				.acts_end = (uint8_t)(rand() % XP_VM_ENDS),
				.state = frame_of(rand() % 2 ? "[gc]" : NULL),
				.mark = frame_of(rand() % 2 ? "[vm cut]" : NULL) };
			if (rand() % 2)
				p->end = p->acts_end = XP_VM_END_ROOT;
			for (size_t i = 0; i < p->nacts; i++)
				l.acts[k][i] = rand() % 2 ? i * 2 : (uint32_t)rand() % range;
			for (size_t i = 0; i < p->nframes; i++) {
				ids[k + 1][i] = rand() % 8 ? named[k + 1][i] : XP_NO_ID;
				l.vm[k][i] = (struct xp_merge_vm){ ids[k + 1][i], rand() % 2 };
			}
		}
		assert_int_equal(xp_merge(&merger, &parts, &stack), 0);
		check_nothing_lost(stack, &parts, ids);
		seen |= 1u << l.parts[0].result;
	}
	assert_int_equal(seen, (1u << XP_MERGE_RESULTS) - 1);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(parts_are_in_order),
		TEST(marks_stand_where_frames_are_missing),
		TEST(stacks_are_shared),
		TEST(wrong_frames),
		TEST(internal_copies),
		TEST(segments_stand_at_their_activations),
		TEST(code_that_stands_for_the_leaf),
		TEST(windows_at_the_leaf),
		TEST(frames_without_activation_at_the_root),
		TEST(fiber_switch),
		TEST(native_stack_cut),
		TEST(vm_stack_cut),
		TEST(state_of_the_vm),
		TEST(empty_parts),
		TEST(several_runtimes),
		TEST(same_address_twice),
		TEST(result_texts),
		TEST(true_stacks),
		TEST(hostile_lists),
	};

	cmocka_set_message_output(CM_OUTPUT_TAP);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
