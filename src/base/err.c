#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* A failure without a code is still a failure: 0 would read as success to the caller. */
static int positive(int code)
{
	if (code == 0)
		return EIO;
	return code < 0 ? -code : code;
}

static void store(struct err *err, int code, const char *text)
{
	size_t n = strnlen(text, sizeof(err->text) - 1);

	err->code = code;
	memcpy(err->text, text, n);
	err->text[n] = '\0';
}

int err_set(struct err *err, int code, const char *fmt, ...)
{
	char text[sizeof(err->text)]; /* apart: an argument may be err->text itself */
	va_list ap;

	code = positive(code);
	if (!err)
		return -code;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	store(err, code, text);
	return -code;
}

int err_sys(struct err *err, int code, const char *fmt, ...)
{
	char text[sizeof(err->text)];
	size_t n;
	va_list ap;

	code = positive(code);
	if (!err)
		return -code;
	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	n = strlen(text);
	(void)snprintf(text + n, sizeof(text) - n, ": %s", strerror(code));
	store(err, code, text);
	return -code;
}

int err_code(const struct err *err)
{
	return err ? err->code : 0;
}

int err_result(const struct err *err, int fallback)
{
	int code = err_code(err);

	return -positive(code ? code : fallback);
}

int err_copy(struct err *err, const struct err *from)
{
	if (err && err != from)
		*err = *from;
	return -positive(from->code);
}

void err_clear(struct err *err)
{
	if (err)
		*err = (struct err){ 0 };
}
