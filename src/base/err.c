// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Errors as values: a message is filled where the fact is known and gets context on its way up.
 *
 * Messages quote paths and names that others chose, so control characters are taken out here, once;
 * every text is made in a buffer of its own first, since an argument may be the old message.
 */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies text into dst without control characters; newlines stay when multiline. */
static void store(char *dst, size_t size, const char *text, int multiline)
{
	size_t n = 0;

	for (; *text && n + 1 < size; text++) {
		unsigned char c = (unsigned char)*text;

		if ((c < 0x20 && !(multiline && c == '\n')) || c == 0x7f)
			c = c == '\n' || c == '\t' ? ' ' : '?';
		dst[n++] = (char)c;
	}
	dst[n] = '\0';
}

static void set(struct xp_err *err, int errnum, const char *text)
{
	err->status = errnum == EPERM || errnum == EACCES ? XP_EXIT_NOPERM : XP_EXIT_FAILURE;
	store(err->what, sizeof(err->what), text, 0);
	err->hint[0] = '\0';
}

int xp_err_set(struct xp_err *err, int errnum, const char *fmt, ...)
{
	char text[sizeof(err->what)];
	va_list ap;

	if (!err)
		return -errnum;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	set(err, errnum, text);
	return -errnum;
}

int xp_err_sys(struct xp_err *err, int errnum, const char *fmt, ...)
{
	char text[sizeof(err->what)], whole[sizeof(err->what) + 128];
	va_list ap;

	if (!err)
		return -errnum;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "%s: %s", text, strerror(errnum));
	set(err, errnum, whole);
	return -errnum;
}

void xp_err_prepend(struct xp_err *err, const char *fmt, ...)
{
	char text[sizeof(err->what)], whole[2 * sizeof(err->what) + 2];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	snprintf(whole, sizeof(whole), "%s: %s", text, err->what);
	store(err->what, sizeof(err->what), whole, 0);
}

void xp_err_hint(struct xp_err *err, const char *fmt, ...)
{
	char text[sizeof(err->hint)];
	va_list ap;

	if (!err)
		return;
	va_start(ap, fmt);
	vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	store(err->hint, sizeof(err->hint), text, 1);
}

void xp_err_status(struct xp_err *err, enum xp_exit status)
{
	if (err)
		err->status = status;
}
