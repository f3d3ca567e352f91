#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/command.h"

#define NAMES_MAX 32

/* Text on its way to a terminal may come from a hostile place: control characters are shown. */
static void print_escaped(const char *text)
{
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c < 0x20 || c == 0x7f)
			(void)fprintf(stderr, "\\x%02x", c);
		else
			(void)fputc(c, stderr);
	}
	(void)fputc('\n', stderr);
}

__attribute__((format(printf, 2, 0))) static void say(const char *prefix, const char *fmt,
						      va_list ap)
{
	char text[1024];

	(void)vsnprintf(text, sizeof(text), fmt, ap);
	(void)fputs(prefix, stderr);
	print_escaped(text);
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

int cli_parse(const struct command *cmd, int argc, char **argv, void *args)
{
	struct opt_rows all = { 0 };
	struct err err = { 0 };
	int n;

	options_add(&all, cmd->opts);
	options_add(&all, cmd->box_opts);
	n = options_parse(&all, argc, argv, args, &err);
	if (n > 0)
		return n;
	if (n == OPT_HELP_WANTED) {
		help_command(cmd, stdout);
		return 0;
	}
	(void)cli_fail(&err);
	cli_hint("holt %s --help", cmd->name);
	return -CLI_USAGE;
}

const struct opt *cli_option(const struct command *cmd, size_t i)
{
	struct opt_rows all = { 0 };

	options_add(&all, cmd->opts);
	options_add(&all, cmd->box_opts);
	return i < all.len ? all.rows[i] : NULL;
}

const struct command *cli_find(const char *name)
{
	for (const struct command *c = commands; c->name; c++)
		if (strcmp(c->name, name) == 0)
			return c;
	return NULL;
}

int cli_unknown(const char *name)
{
	const char *names[NAMES_MAX + 1] = { 0 }, *near;
	size_t n = 0;

	for (const struct command *c = commands; c->name && n < NAMES_MAX; c++)
		names[n++] = c->name;
	near = options_nearest(name, names);
	cli_say("unknown command '%.60s'", name);
	if (near)
		cli_hint("did you mean 'holt %s'?", near);
	else
		cli_hint("'holt help' lists the commands");
	return CLI_USAGE;
}

int cli_main(int argc, char **argv)
{
	const struct command *cmd;

	if (argc < 2) {
		help_overview(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		argv[1] = (char *)"help";
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		argv[1] = (char *)"version";
	cmd = cli_find(argv[1]);
	if (!cmd)
		return cli_unknown(argv[1]);
	return cmd->run(cmd, argc - 1, argv + 1);
}
