#include <stdbool.h>
#include <string.h>

#include "cli/command.h"

#define COLUMN 26 /* where the explanation of an option begins */

void help_overview(FILE *to)
{
	(void)fputs("holt: gives every agent its own computer\n\n"
		    "usage: holt COMMAND [OPTION...]\n\n",
		    to);
	for (const struct command *c = commands; c->name; c++)
		(void)fprintf(to, "  %-16s %s\n", c->name, c->summary);
	(void)fputs("\n'holt COMMAND --help' explains a command; start with 'holt doctor' and\n"
		    "'holt exec -- echo hello'.\n",
		    to);
}

void help_group(const char *word, FILE *to)
{
	size_t n = strlen(word);

	(void)fprintf(to, "usage: holt %s COMMAND [OPTION...]\n\n", word);
	for (const struct command *c = commands; c->name; c++)
		if (strncmp(c->name, word, n) == 0 && c->name[n] == ' ')
			(void)fprintf(to, "  %-16s %s\n", c->name, c->summary);
}

/* "  -e, --env K=V" */
static int print_names(const struct opt *o, FILE *to)
{
	int n = 0;

	if (o->letter)
		n += fprintf(to, "  -%c, --%s", o->letter, o->name);
	else
		n += fprintf(to, "      --%s", o->name);
	if (o->arg)
		n += fprintf(to, " %s", o->arg);
	return n;
}

static void print_option(const struct opt *o, FILE *to)
{
	int n = print_names(o, to);

	if (n >= COLUMN) {
		(void)fputc('\n', to);
		n = 0;
	}
	(void)fprintf(to, "%*s%s\n", COLUMN - n, "", o->help);
}

/* Each line of text behind an indent. */
static void print_indented(const char *text, const char *indent, FILE *to)
{
	while (*text) {
		size_t n = strcspn(text, "\n");

		(void)fprintf(to, "%s%.*s\n", n ? indent : "", (int)n, text);
		text += n + (text[n] == '\n');
	}
}

void help_command(const struct command *cmd, FILE *to)
{
	static const struct opt help = { .name = "help", .letter = 'h', .help = "this text" };
	struct opt o;

	(void)fprintf(to, "usage: holt %s [OPTION...]%s%s\n\n%s.\n\n", cmd->name,
		      cmd->operands[0] ? " " : "", cmd->operands, cmd->summary);
	if (cmd->details) {
		print_indented(cmd->details, "", to);
		(void)fputc('\n', to);
	}
	(void)fputs("options:\n", to);
	for (size_t i = 0; cli_option(cmd, i, &o); i++)
		print_option(&o, to);
	print_option(&help, to);
	if (cmd->examples) {
		(void)fputs("\nexamples:\n", to);
		print_indented(cmd->examples, "  ", to);
	}
}

static const char *const shells[] = { "bash", "zsh", "fish", NULL };

struct help_args {
	bool man;
	int shell;
};

const struct opt help_opts[] = {
	{ .name = "man",
	  .type = OPT_FLAG,
	  .help = "the manual page, for man -l -",
	  .offset = offsetof(struct help_args, man) },
	{ .name = "completion",
	  .type = OPT_CHOICE,
	  .arg = "SHELL",
	  .help = "completion script of bash, zsh or fish",
	  .offset = offsetof(struct help_args, shell),
	  .choices = shells },
	{ 0 },
};

int cmd_help(const struct command *cmd, int argc, char **argv)
{
	struct help_args args = { .shell = -1 };
	int n = cli_parse(cmd, argc, argv, &args);
	const struct command *about;
	int words = 0;

	if (n <= 0)
		return -n;
	if (args.man) {
		help_man(stdout);
		return CLI_OK;
	}
	if (args.shell >= 0) {
		help_completion(shells[args.shell], stdout);
		return CLI_OK;
	}
	if (n == argc) {
		help_overview(stdout);
		return CLI_OK;
	}
	about = cli_find(argc - n, argv + n, &words);
	if (!about && argc - n == 1)
		return cli_unknown(2, (char *[]){ argv[n], (char *)"--help" }); /* maybe a group */
	if (!about)
		return cli_unknown(argc - n, argv + n);
	help_command(about, stdout);
	return CLI_OK;
}
