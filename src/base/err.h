/* SPDX-License-Identifier: GPL-2.0-or-later */
/*
 * Errors as values.
 *
 * A function whose failure a user may see takes a struct xp_err * last, fills it where the fact is
 * known and returns a negative errno; callers prepend context. Only cmd/ prints, only main() exits.
 * Every function here accepts a NULL err and then does nothing but return its code.
 */
#ifndef XP_BASE_ERR_H
#define XP_BASE_ERR_H

/* Exit statuses of the program; documented in xprof(1). */
enum xp_exit {
	XP_EXIT_OK = 0,
	XP_EXIT_FAILURE = 1,
	XP_EXIT_USAGE = 2,
	XP_EXIT_DAMAGED = 3,	/* a sample file ended early or was damaged; the rest was used */
	XP_EXIT_NOPERM = 77,	/* rights are missing */
	XP_EXIT_CANNOT_EXEC = 126,
	XP_EXIT_NO_COMMAND = 127,
};

struct xp_err {
	int status;		/* enum xp_exit; 0 until the error is set */
	char what[512];		/* what failed and why, one line, no newline */
	char hint[512];		/* what to do next, one or two lines; may be empty */
};

#define XP_ERR_INIT { 0 }

/*
 * Sets the message (overwrites), clears the hint, sets status to XP_EXIT_FAILURE (XP_EXIT_NOPERM
 * for EPERM and EACCES). Returns -errnum; errnum must be positive. Its text is not appended.
 */
int xp_err_set(struct xp_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* The same with ": " and strerror(errnum) appended. */
int xp_err_sys(struct xp_err *err, int errnum, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
/* Puts "context: " before the message. */
void xp_err_prepend(struct xp_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets the line that says what to do next. */
void xp_err_hint(struct xp_err *err, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* Sets the exit status that this error leads to. */
void xp_err_status(struct xp_err *err, enum xp_exit status);

#endif
