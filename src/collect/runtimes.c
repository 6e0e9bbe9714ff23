/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * A runtime that has just been mapped is not ready: it is asked again, often at first, until it has
 * started. Slots of parameters are shared by forked children and are used again only a while after
 * the last process that had them, because a walker may still read them.
 */
#include "collect/runtimes.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define RETRY_NS 4000000ull		/* in the first second ... */
#define RETRY_SOON_NS 1000000000ull
#define RETRY_MAX_NS 100000000ull	/* ... and after it */
#define GIVE_UP_NS 60000000000ull
#define RETIRE_NS 1000000000ull
#define VALUE_MAX 256

static const struct xp_runtime *runtime_of(int id)
{
	return xp_runtimes[id] && xp_runtimes[id]->probe ? xp_runtimes[id] : NULL;
}

void xp_runtimes_release(struct xp_runtimes_state *rs)
{
	for (size_t i = 0; i < rs->probed.n; i++)
		for (int id = 0; id < XP_RUNTIMES_N; id++)
			if (rs->probed.v[i].data[id])
				runtime_of(id)->free_data(rs->probed.v[i].data[id]);
	xp_vec_release(&rs->probed);
	for (int id = 0; id < XP_RUNTIMES_N; id++)
		xp_vec_release(&rs->slots[id]);
}

static void note(const struct xp_runtimes_state *rs, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
static void note(const struct xp_runtimes_state *rs, const char *fmt, ...)
{
	char line[600];
	va_list args;

	if (!rs->note)
		return;
	va_start(args, fmt);
	vsnprintf(line, sizeof(line), fmt, args);
	va_end(args);
	rs->note(line);
}

int xp_runtimes_probe(struct xp_runtimes_state *rs, struct xp_dso *dso)
{
	struct xp_probed *p;

	while (rs->probed.n <= dso->id)
		if (!xp_vec_push(&rs->probed))
			return -ENOMEM;
	p = &rs->probed.v[dso->id];
	for (int id = 0; id < XP_RUNTIMES_N; id++) {
		struct xp_err err = XP_ERR_INIT;
		int r;

		if (!runtime_of(id) || p->tried[id])
			continue;
		p->tried[id] = true;
		r = runtime_of(id)->probe(dso, &p->data[id], &err);
		if (r == -ENOMEM)
			return r;
		p->usable[id] = r == 1;
		if (r < 0)
			note(rs, "%s: %s", dso->path, err.what);
	}
	return 0;
}

/* A slot nobody uses, holding one reference; 0: there is none. */
static uint16_t take_slot(struct xp_runtimes_state *rs, int id, uint64_t now)
{
	struct xp_slot *slot;
	size_t i;

	if (!rs->slots[id].n && !xp_vec_push(&rs->slots[id]))
		return 0;
	for (i = 1; i < rs->slots[id].n; i++) {
		slot = &rs->slots[id].v[i];
		if (!slot->refs && now > slot->retired && now - slot->retired >= RETIRE_NS)
			break;
	}
	if (i == rs->slots[id].n && (i >= XP_RUNTIME_PARAMS || !xp_vec_push(&rs->slots[id])))
		return 0;
	rs->slots[id].v[i].refs = 1;
	return i;
}

static void drop_slot(struct xp_runtimes_state *rs, int id, uint16_t i, uint64_t now)
{
	struct xp_slot *slot = i && i < rs->slots[id].n ? &rs->slots[id].v[i] : NULL;

	if (slot && slot->refs && !--slot->refs)
		slot->retired = now;
}

/* The first mapping whose file holds this runtime, and what the probe said of it. */
static const struct xp_mapping *find_runtime(struct xp_runtimes_state *rs, int id,
					     const struct xp_process *process, void **data, int *r)
{
	for (size_t i = 0; i < process->maps.list.n; i++) {
		const struct xp_mapping *m = &process->maps.list.v[i];
		struct xp_dso *dso = xp_mapping_dso(m);

		if (!dso)
			continue;
		*r = xp_runtimes_probe(rs, dso);
		if (*r)
			return NULL;
		if (rs->probed.v[dso->id].usable[id]) {
			*data = rs->probed.v[dso->id].data[id];
			return m;
		}
	}
	return NULL;
}

/* Publishes the parameters; true when there was room. */
static bool store(struct xp_runtimes_state *rs, int id, struct xp_attachment *a, const void *value,
		  uint64_t now, struct xp_err *err)
{
	uint16_t slot = take_slot(rs, id, now);
	int r = slot ? rs->port.put(rs->port.ctx, id, slot, value, runtime_of(id)->value_size)
		     : -ENOSPC;

	if (r) {
		xp_err_set(err, -r, slot ? "%s: its parameters cannot be given to the kernel"
					 : "%s: too many processes have it at once",
			   runtime_of(id)->name);
		drop_slot(rs, id, slot, now);
		return false;
	}
	drop_slot(rs, id, a->slot, now);
	a->slot = slot;
	return true;
}

/* Remembers what was recognised; further kinds than there is room for go unnamed. */
static void note_title(struct xp_runtimes_state *rs, int id, const void *data)
{
	char title[XP_TITLE_SIZE];

	runtime_of(id)->title(data, title, sizeof(title));
	for (unsigned i = 0; i < rs->ntitles; i++)
		if (!strcmp(rs->titles[i], title))
			return;
	if (rs->ntitles < XP_TITLES_MAX)
		memcpy(rs->titles[rs->ntitles++], title, sizeof(title));
}

static int try_attach(struct xp_runtimes_state *rs, int id, const struct xp_process *process,
		      struct xp_attachment *a, const struct xp_mapping *m, const void *data,
		      uint64_t now)
{
	struct xp_mem mem = xp_mem_of_pid(process->pid);
	struct xp_err err = XP_ERR_INIT;
	uint64_t value[VALUE_MAX / 8] = { 0 };
	enum xp_attach result = runtime_of(id)->attach(data, process, m, &mem, value, &a->state, &err);

	if (result == XP_ATTACH_DONE && store(rs, id, a, value, now, &err)) {
		a->status = XP_ATTACHED;
		rs->attached[id]++;
		note_title(rs, id, data);
		return 1;
	}
	if (result == XP_ATTACH_DONE) {
		if (a->state)
			runtime_of(id)->detach(a->state);
		a->state = NULL;
	}
	if ((result == XP_ATTACH_LATER && now - a->since < GIVE_UP_NS) ||
	    (kill(process->pid, 0) && errno == ESRCH)) {	/* it ended under our hands */
		a->status = XP_WAITING;
		a->next = now + (now - a->since < RETRY_SOON_NS ? RETRY_NS : RETRY_MAX_NS);
		return 0;
	}
	a->status = XP_REFUSED;
	if (a->state)
		runtime_of(id)->detach(a->state);
	a->state = NULL;
	note(rs, "process %d: %s", (int)process->pid,
	     err.what[0] ? err.what : "the runtime did not become ready");
	return 0;
}

/* Whether a mapping is of the file that the process executes. */
static bool is_program(pid_t pid, const struct xp_mapping *m)
{
	char path[64];
	struct stat st;

	snprintf(path, sizeof(path), "/proc/%d/exe", (int)pid);
	return !stat(path, &st) && st.st_ino == m->ino;
}

int xp_runtimes_update(struct xp_runtimes_state *rs, const struct xp_process *process,
		       struct xp_attached *attached, uint64_t now)
{
	int changed = 0;

	for (int id = 0; id < XP_RUNTIMES_N; id++) {
		struct xp_attachment *a = &attached->by_id[id];
		const struct xp_mapping *m;
		void *data = NULL;
		int r = 0;

		if (!runtime_of(id) || a->status == XP_ATTACHED || a->status == XP_REFUSED ||
		    (a->status == XP_WAITING && now < a->next))
			continue;
		m = find_runtime(rs, id, process, &data, &r);
		if (r)
			return r;
		if (!m)
			continue;
		if (!a->since)
			a->since = now;
		a->data = data;
		a->dso = xp_mapping_dso(m)->id;
		a->program = is_program(process->pid, m);
		changed |= try_attach(rs, id, process, a, m, data, now);
	}
	return changed;
}

uint8_t xp_runtimes_flags(const struct xp_attached *attached, const struct xp_place *place,
			  uint8_t *id)
{
	for (int i = 0; i < XP_RUNTIMES_N; i++) {
		const struct xp_attachment *a = &attached->by_id[i];

		if (a->status != XP_ATTACHED)
			continue;
		*id = i;
		/* Code without a file in a process with a runtime that compiles is taken for its JIT's. */
		if (place->kind == XP_PLACE_ANON)
			return XP_MERGE_LOOP;
		if (place->kind != XP_PLACE_DSO || place->dso->id != a->dso)
			continue;
		return (a->program ? 0 : XP_MERGE_OWN) |
		       (runtime_of(i)->in_loop(a->data, place->addr - !place->exact) ? XP_MERGE_LOOP
										     : 0);
	}
	*id = XP_RUNTIME_NATIVE;
	return 0;
}

bool xp_runtimes_waiting(const struct xp_attached *attached)
{
	for (int id = 0; id < XP_RUNTIMES_N; id++)
		if (attached->by_id[id].status == XP_WAITING)
			return true;
	return false;
}

void xp_runtimes_inherit(struct xp_runtimes_state *rs, struct xp_attached *child,
			 const struct xp_attached *parent)
{
	memset(child, 0, sizeof(*child));
	for (int id = 0; id < XP_RUNTIMES_N; id++) {
		uint16_t slot = parent->by_id[id].slot;

		if (!slot)
			continue;
		child->by_id[id].slot = slot;
		rs->slots[id].v[slot].refs++;
	}
}

void xp_runtimes_detach(struct xp_runtimes_state *rs, struct xp_attached *attached, uint64_t now)
{
	for (int id = 0; id < XP_RUNTIMES_N; id++) {
		struct xp_attachment *a = &attached->by_id[id];

		if (a->state)
			runtime_of(id)->detach(a->state);
		drop_slot(rs, id, a->slot, now);
	}
	memset(attached, 0, sizeof(*attached));
}
