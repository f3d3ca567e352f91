#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "cli/command.h"

#define NAMES_MAX 64

static void add_rows(struct opt_rows *all, const struct command *cmd)
{
	all->mixed = cmd->mixed;
	options_add(all, cmd->opts);
	options_add(all, cmd->box_opts);
	if (cmd->takes_settings)
		options_add_settings(all);
}

int cli_parse(const struct command *cmd, int argc, char **argv, void *args)
{
	struct opt_rows all = { 0 };
	struct err err = { 0 };
	int n;

	add_rows(&all, cmd);
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

bool cli_takes(const struct command *cmd, int argc, char **argv, int n, int min, int max)
{
	bool empty = false;

	for (int i = n; i < argc; i++)
		empty |= argv[i][0] == '\0';
	if (argc - n >= min && argc - n <= max && !empty)
		return true;
	if (empty)
		cli_say("an operand is empty");
	else if (argc - n < min)
		cli_say("wants %s", cmd->operands);
	else
		cli_say("'%.60s' is one operand too many", argv[n + max]);
	cli_hint("holt %s --help", cmd->name);
	return false;
}

bool cli_option(const struct command *cmd, size_t i, struct opt *ret)
{
	struct opt_rows all = { 0 };

	add_rows(&all, cmd);
	if (i < all.len)
		*ret = all.rows[i];
	return i < all.len;
}

/* How many of the words the name takes; 0 when it is not them. */
static int match(const char *name, int argc, char **argv)
{
	size_t n = strcspn(name, " ");

	if (argc < 1 || strncmp(argv[0], name, n) != 0 || argv[0][n] != '\0')
		return 0;
	if (name[n] == '\0')
		return 1;
	return argc > 1 && strcmp(argv[1], name + n + 1) == 0 ? 2 : 0;
}

const struct command *cli_find(int argc, char **argv, int *ret_words)
{
	for (const struct command *c = commands; c->name; c++) {
		int n = match(c->name, argc, argv);

		if (n > 0) {
			*ret_words = n;
			return c;
		}
	}
	return NULL;
}

static bool is_group(const char *word)
{
	size_t n = strlen(word);

	for (const struct command *c = commands; c->name; c++)
		if (strncmp(c->name, word, n) == 0 && c->name[n] == ' ')
			return true;
	return false;
}

static bool asks_for_help(int argc, char **argv)
{
	return argc > 1 && (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0);
}

int cli_unknown(int argc, char **argv)
{
	const char *names[NAMES_MAX + 1] = { 0 }, *near;
	bool wants_help = asks_for_help(argc, argv);
	char name[64];
	size_t n = 0;

	if (is_group(argv[0]) && (argc == 1 || wants_help)) {
		help_group(argv[0], wants_help ? stdout : stderr);
		return wants_help ? CLI_OK : CLI_USAGE;
	}
	(void)snprintf(name, sizeof(name), "%s%s%s", argv[0], argc > 1 ? " " : "",
		       argc > 1 ? argv[1] : "");
	if (!is_group(argv[0]))
		name[strcspn(name, " ")] = '\0';
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
	int words = 0;

	if (argc < 2) {
		help_overview(stderr);
		return CLI_USAGE;
	}
	if (strcmp(argv[1], "--help") == 0 || strcmp(argv[1], "-h") == 0)
		argv[1] = (char *)"help";
	if (strcmp(argv[1], "--version") == 0 || strcmp(argv[1], "-V") == 0)
		argv[1] = (char *)"version";
	cmd = cli_find(argc - 1, argv + 1, &words);
	if (!cmd)
		return cli_unknown(argc - 1, argv + 1);
	return cmd->run(cmd, argc - words, argv + words);
}
