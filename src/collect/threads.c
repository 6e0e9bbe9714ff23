/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * One small record per thread alive. Events can be lost, ends among them: when the records have
 * become four times as many as there were threads, /proc tells which are left.
 */
#include "collect/threads.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"

#define ENDED_NS 200000000ull
#define LIMIT_MIN 4096

static uint64_t key_of(pid_t pid, pid_t tid)
{
	return (uint64_t)pid << 32 | (uint32_t)tid;
}

void xp_thread_names_init(struct xp_thread_names *names)
{
	memset(names, 0, sizeof(*names));
	names->free = XP_NO_ID;
	names->limit = LIMIT_MIN;
}

void xp_thread_names_release(struct xp_thread_names *names)
{
	xp_map_release(&names->index);
	xp_vec_release(&names->list);
	xp_vec_release(&names->ends);
}

static struct xp_thread_name *find(const struct xp_thread_names *names, pid_t pid, pid_t tid)
{
	uint64_t *at = xp_map_get(&names->index, key_of(pid, tid));

	return at ? &names->list.v[*at] : NULL;
}

/* A free record; NULL when out of memory. */
static struct xp_thread_name *take_record(struct xp_thread_names *names)
{
	struct xp_thread_name *name;

	if (names->free == XP_NO_ID)
		return names->list.n < XP_NO_ID ? xp_vec_push(&names->list) : NULL;
	name = &names->list.v[names->free];
	names->free = name->next;
	return name;
}

static void give_record(struct xp_thread_names *names, struct xp_thread_name *name)
{
	memset(name, 0, sizeof(*name));
	name->next = names->free;
	names->free = name - names->list.v;
}

static struct xp_thread_name *add(struct xp_thread_names *names, pid_t pid, pid_t tid)
{
	struct xp_thread_name *name = take_record(names);
	uint64_t *first = xp_map_get(&names->index, key_of(pid, 0));
	uint32_t next = first ? *first : XP_NO_ID, at;

	if (!name)
		return NULL;
	at = name - names->list.v;
	if (xp_map_set(&names->index, key_of(pid, tid), at)) {
		give_record(names, name);
		return NULL;
	}
	if (xp_map_set(&names->index, key_of(pid, 0), at)) {
		xp_map_remove(&names->index, key_of(pid, tid));
		give_record(names, name);
		return NULL;
	}
	*name = (struct xp_thread_name){ .pid = pid, .tid = tid, .prev = XP_NO_ID, .next = next };
	if (next != XP_NO_ID)
		names->list.v[next].prev = at;
	return name;
}

static void remove_name(struct xp_thread_names *names, struct xp_thread_name *name)
{
	xp_map_remove(&names->index, key_of(name->pid, name->tid));
	if (name->next != XP_NO_ID)
		names->list.v[name->next].prev = name->prev;
	if (name->prev != XP_NO_ID)
		names->list.v[name->prev].next = name->next;
	else if (name->next != XP_NO_ID)
		*xp_map_get(&names->index, key_of(name->pid, 0)) = name->next;
	else
		xp_map_remove(&names->index, key_of(name->pid, 0));
	give_record(names, name);
}

int xp_thread_names_set(struct xp_thread_names *names, pid_t pid, pid_t tid, const char *comm)
{
	struct xp_thread_name *name = pid > 0 && tid > 0 ? find(names, pid, tid) : NULL;

	if (pid <= 0 || tid <= 0)
		return 0;
	if (!name)
		name = add(names, pid, tid);
	if (!name)
		return -ENOMEM;
	snprintf(name->comm, sizeof(name->comm), "%s", comm);
	name->id = XP_NO_ID;
	name->ended = false;
	return 0;
}

bool xp_thread_names_get(const struct xp_thread_names *names, pid_t pid, pid_t tid,
			 const char *otherwise, char comm[16])
{
	const struct xp_thread_name *name = find(names, pid, tid);
	struct xp_buf b = XP_BUF_INIT;
	char path[64];

	if (name) {
		memcpy(comm, name->comm, sizeof(name->comm));
		return true;
	}
	snprintf(path, sizeof(path), "/proc/%d/task/%d/comm", (int)pid, (int)tid);
	if (!xp_read_file(path, &b, 64) && b.len)	/* it ends with a newline */
		snprintf(comm, 16, "%.*s", (int)b.len - 1, (const char *)b.data);
	else
		snprintf(comm, 16, "%s", otherwise);
	xp_buf_release(&b);
	return false;
}

int xp_thread_names_add(struct xp_thread_names *names, struct xp_profile *profile, pid_t pid,
			pid_t tid, const char *comm, uint32_t *id)
{
	struct xp_thread_name *name = find(names, pid, tid);
	struct xp_thread thread = { .pid = pid, .tid = tid };
	int r = xp_strings_addz(&profile->strings, comm, &thread.comm);

	if (!r)
		r = xp_profile_add_thread(profile, &thread, id);
	if (!r && name)
		name->id = *id;
	return r;
}

uint32_t xp_thread_names_id(const struct xp_thread_names *names, pid_t pid, pid_t tid)
{
	const struct xp_thread_name *name = find(names, pid, tid);

	return name ? name->id : XP_NO_ID;
}

void xp_thread_names_ended(struct xp_thread_names *names, pid_t pid, pid_t tid, uint64_t time)
{
	struct xp_thread_name *name = tid > 0 ? find(names, pid, tid) : NULL;
	struct xp_thread_end *end;

	if (!name)
		return;
	end = xp_vec_push(&names->ends);
	if (!end) {
		remove_name(names, name);
		return;
	}
	*end = (struct xp_thread_end){ pid, tid, time };
	name->ended = true;
}

void xp_thread_names_forget(struct xp_thread_names *names, pid_t pid)
{
	struct xp_thread_name *name;

	while ((name = find(names, pid, 0)))
		remove_name(names, name);
}

static void forget_ended(struct xp_thread_names *names, uint64_t now)
{
	size_t n = 0;

	while (n < names->ends.n && now >= names->ends.v[n].time + ENDED_NS) {
		const struct xp_thread_end *end = &names->ends.v[n++];
		struct xp_thread_name *name = find(names, end->pid, end->tid);

		if (name && name->ended)	/* else the id is another thread's by now */
			remove_name(names, name);
	}
	if (n) {
		names->ends.n -= n;
		memmove(names->ends.v, names->ends.v + n, names->ends.n * sizeof(*names->ends.v));
	}
}

static void forget_missing(struct xp_thread_names *names)
{
	size_t left = 0;

	for (size_t i = 0; i < names->list.n; i++) {
		struct xp_thread_name *name = &names->list.v[i];
		char path[64];

		if (!name->pid)
			continue;
		snprintf(path, sizeof(path), "/proc/%d/task/%d", (int)name->pid, (int)name->tid);
		if (access(path, F_OK) && errno == ENOENT)
			remove_name(names, name);
		else
			left++;
	}
	names->limit = 4 * left > LIMIT_MIN ? 4 * left : LIMIT_MIN;
}

void xp_thread_names_settle(struct xp_thread_names *names, uint64_t now)
{
	forget_ended(names, now);
	/* The index has every thread, and every process once more. */
	if (names->index.n > names->limit)
		forget_missing(names);
}
