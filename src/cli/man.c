/* The manual page, written from the table of commands. */
#include <string.h>

#include "cli/command.h"

#ifndef HOLT_VERSION
#define HOLT_VERSION "0"
#endif

/* roff: a backslash, a leading dot or quote, and the hyphens of options are escaped. */
static void roff(const char *text, FILE *to)
{
	for (const char *p = text; *p; p++) {
		if ((p == text || p[-1] == '\n') && (*p == '.' || *p == '\''))
			(void)fputs("\\&", to);
		if (*p == '\\' || *p == '-')
			(void)fputc('\\', to);
		(void)fputc(*p, to);
	}
}

static void man_option(const struct opt *o, FILE *to)
{
	(void)fputs(".TP\n.B ", to);
	if (o->letter)
		(void)fprintf(to, "\\-%c, ", o->letter);
	(void)fputs("\\-\\-", to);
	roff(o->name, to);
	if (o->arg)
		(void)fprintf(to, " \\fI%s\\fR", o->arg);
	(void)fputc('\n', to);
	roff(o->help, to);
	(void)fputc('\n', to);
}

/* Blank lines become paragraphs. */
static void man_text(const char *text, FILE *to)
{
	while (*text) {
		size_t n = strcspn(text, "\n");
		char line[512];

		(void)snprintf(line, sizeof(line), "%.*s", (int)n, text);
		if (n == 0)
			(void)fputs(".PP", to);
		roff(line, to);
		(void)fputc('\n', to);
		text += n + (text[n] == '\n');
	}
}

static void man_command(const struct command *c, FILE *to)
{
	struct opt o;

	(void)fprintf(to, ".SS holt %s [\\fIoption\\fR...] ", c->name);
	roff(c->operands, to);
	(void)fputc('\n', to);
	roff(c->summary, to);
	(void)fputs(".\n", to);
	if (c->details) {
		(void)fputs(".PP\n", to);
		man_text(c->details, to);
	}
	for (size_t i = 0; cli_option(c, i, &o); i++)
		man_option(&o, to);
	if (!c->examples)
		return;
	(void)fputs(".PP\n.EX\n", to);
	roff(c->examples, to);
	(void)fputs(".EE\n", to);
}

static const struct {
	const char *code, *meaning;
} codes[] = {
	{ "0", "the command ended well" },
	{ "124", "the command ran out of time" },
	{ "125", "Holt itself failed, or was asked for something it cannot do" },
	{ "126", "the command is there and cannot be executed" },
	{ "127", "the command was not found" },
	{ "128+N", "the command was killed by signal N; 137 is also what running out of memory "
		   "gives, and standard error says which it was" },
};

void help_man(FILE *to)
{
	(void)fputs(".TH HOLT 1 \"\" \"holt " HOLT_VERSION "\" \"User Commands\"\n"
		    ".SH NAME\nholt \\- run programs in boxes that are closed by default\n"
		    ".SH SYNOPSIS\n.B holt\n\\fIcommand\\fR [\\fIoption\\fR...]\n"
		    ".SH DESCRIPTION\n"
		    "Holt runs untrusted programs, such as those an agent writes, each in a box of "
		    "its own: no network, no capability, a read\\-only system, private writable "
		    "directories, and limits on memory, CPU, processes, disk and time.\n"
		    ".SH COMMANDS\n",
		    to);
	for (const struct command *c = commands; c->name; c++)
		man_command(c, to);
	(void)fputs(".SH EXIT STATUS\nOf exec and run\\-code:\n", to);
	for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++) {
		(void)fprintf(to, ".TP\n.B %s\n", codes[i].code);
		roff(codes[i].meaning, to);
		(void)fputc('\n', to);
	}
}
