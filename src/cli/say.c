/* What is said to people, on standard error. */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "cli/command.h"
#include "cli/escape.h"

__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *fmt,
						      va_list ap)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)escape_text(&b, text, strlen(text)); /* it may come from a hostile place */
	(void)fprintf(stderr, "%s%s\n", prefix, buf_str(&b));
}

void cli_say(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("holt: ", fmt, ap);
	va_end(ap);
}

void cli_hint(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	say("hint: ", fmt, ap);
	va_end(ap);
}

int cli_fail(const struct err *err)
{
	cli_say("%s", err->text[0] ? err->text : strerror(err->code));
	return CLI_ERROR;
}
