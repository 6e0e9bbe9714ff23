/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Which runtimes the targets run: probes their files, attaches to the processes, keeps the kernel
 * side's parameters. Knows runtimes only by their table of operations.
 */
#ifndef XP_COLLECT_RUNTIMES_H
#define XP_COLLECT_RUNTIMES_H

#include <stdbool.h>
#include <stdint.h>

#include "base/vec.h"
#include "runtime/merge.h"
#include "runtime/native.h"
#include "runtime/runtime.h"
#include "target/process.h"

/* One process's runtimes; zeroed is a process without. */
struct xp_attached {
	struct xp_attachment {
		uint8_t status;		/* enum xp_attachment_status */
		uint16_t slot;		/* of the parameters; 0: none */
		const void *data;	/* the probe's, of the file that holds it */
		uint32_t dso;		/* id of that file */
		bool program;		/* it is the program itself, not a library */
		void *state;		/* the runtime's own */
		uint64_t since, next;	/* ns: first tried, to be tried again */
	} by_id[XP_RUNTIMES_N];
};

enum xp_attachment_status { XP_NOT_PROBED, XP_WAITING, XP_ATTACHED, XP_REFUSED };

struct xp_probed {			/* what the runtimes said of one file */
	bool tried[XP_RUNTIMES_N], usable[XP_RUNTIMES_N];
	void *data[XP_RUNTIMES_N];
};

struct xp_slot {
	unsigned refs;
	uint64_t retired;		/* ns, when the last reference went; 0: never used */
};

#define XP_TITLES_MAX 8
#define XP_TITLE_SIZE 48

struct xp_runtimes_state {
	struct xp_runtime_port port;
	XP_VEC(struct xp_probed) probed;		/* by dso id */
	XP_VEC(struct xp_slot) slots[XP_RUNTIMES_N];	/* by slot; 0 is not used */
	unsigned attached[XP_RUNTIMES_N];		/* processes, ever */
	char titles[XP_TITLES_MAX][XP_TITLE_SIZE];	/* of what was attached, each once */
	unsigned ntitles;
	void (*note)(const char *line);			/* why a runtime cannot be used; may be NULL */
};

void xp_runtimes_release(struct xp_runtimes_state *rs);
/* Asks every runtime about a file, once: before a command maps it, or when it is mapped. */
int xp_runtimes_probe(struct xp_runtimes_state *rs, struct xp_dso *dso);
/*
 * Looks whether a process's runtimes can be attached now. 1: its slots have changed and must be
 * published; 0; -ENOMEM.
 */
int xp_runtimes_update(struct xp_runtimes_state *rs, const struct xp_process *process,
		       struct xp_attached *attached, uint64_t now);
/* What the merge wants to know of a native frame (enum xp_merge_flags); *id: whose code it is. */
uint8_t xp_runtimes_flags(const struct xp_attached *attached, const struct xp_place *place,
			  uint8_t *id);
/* True while some runtime of the process waits to be tried again. */
bool xp_runtimes_waiting(const struct xp_attached *attached);
/* A forked child has its parent's parameters until it is attached itself. */
void xp_runtimes_inherit(struct xp_runtimes_state *rs, struct xp_attached *child,
			 const struct xp_attached *parent);
/* Process gone, or a new program in it. */
void xp_runtimes_detach(struct xp_runtimes_state *rs, struct xp_attached *attached, uint64_t now);

#endif
