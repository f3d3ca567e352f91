/* The completion scripts, written from the table of commands. A command of two words is completed
 * word by word. */
#include <stdbool.h>
#include <string.h>

#include "cli/command.h"

static size_t first_length(const struct command *c)
{
	return strcspn(c->name, " ");
}

static bool is_group(const struct command *c)
{
	return c->name[first_length(c)] == ' ';
}

/* Of the same group; a command of one word ("pool") is of none, whatever groups there are. */
static bool have_same_first(const struct command *a, const struct command *b)
{
	size_t n = first_length(a);

	return is_group(a) == is_group(b) && n == first_length(b) &&
	       strncmp(a->name, b->name, n) == 0;
}

/* The rows of a group stand anywhere in the table; its first one speaks for it. */
static bool is_first_of_group(const struct command *c)
{
	for (const struct command *before = commands; before < c; before++)
		if (have_same_first(before, c))
			return false;
	return true;
}

static const char *second_word(const struct command *c)
{
	return c->name + first_length(c) + 1;
}

static void put_first(const struct command *c, FILE *to)
{
	(void)fprintf(to, "%.*s", (int)first_length(c), c->name);
}

/* "create ls rm": of the group that c is of. */
static void put_seconds(const struct command *c, FILE *to)
{
	const char *blank = "";

	for (const struct command *other = commands; other->name; other++)
		if (have_same_first(other, c)) {
			(void)fprintf(to, "%s%s", blank, second_word(other));
			blank = " ";
		}
}

/* --- bash and zsh -------------------------------------------------------------------------- */

static void bash_options(const struct command *c, FILE *to)
{
	struct opt o;

	(void)fprintf(to, "\t'%s') words='", c->name);
	for (size_t i = 0; cli_option(c, i, &o); i++)
		(void)fprintf(to, "--%s ", o.name);
	(void)fputs("--help' ;;\n", to);
}

static void completion_bash(FILE *to)
{
	(void)fputs("_holt() {\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} name=${COMP_WORDS[1]} group= words=\n"
		    "\tcase $name in\n",
		    to);
	for (const struct command *c = commands; c->name; c++) {
		if (!is_group(c) || !is_first_of_group(c))
			continue;
		(void)fputc('\t', to);
		put_first(c, to);
		(void)fputs(") group='", to);
		put_seconds(c, to);
		(void)fputs("' name=\"$name ${COMP_WORDS[2]}\" ;;\n", to);
	}
	(void)fputs("\tesac\n"
		    "\tif [ \"$COMP_CWORD\" -eq 1 ]; then\n"
		    "\t\tgroup='",
		    to);
	for (const struct command *c = commands; c->name; c++)
		if (is_first_of_group(c)) {
			put_first(c, to);
			(void)fputc(' ', to);
		}
	(void)fputs("'\n"
		    "\telif [ \"$COMP_CWORD\" -gt 2 ]; then\n"
		    "\t\tgroup=\n"
		    "\tfi\n"
		    "\tif [ -n \"$group\" ]; then\n"
		    "\t\tCOMPREPLY=($(compgen -W \"$group\" -- \"$cur\"))\n"
		    "\t\treturn\n"
		    "\tfi\n"
		    "\tcase $name in\n",
		    to);
	for (const struct command *c = commands; c->name; c++)
		bash_options(c, to);
	(void)fputs("\tesac\n"
		    "\tcase $cur in\n"
		    "\t-* | '') COMPREPLY=($(compgen -W \"$words\" -- \"$cur\")) ;;\n"
		    "\t*) COMPREPLY=($(compgen -f -- \"$cur\")) ;;\n"
		    "\tesac\n}\ncomplete -o default -F _holt holt\n",
		    to);
}

/* zsh runs bash's script as it is. Found in fpath, the file is the function _holt: it takes its own
 * place, and the first call is passed on. */
static void completion_zsh(FILE *to)
{
	(void)fputs("#compdef holt\nautoload -U +X bashcompinit && bashcompinit\n", to);
	completion_bash(to);
	(void)fputs("[ \"${funcstack[1]}\" != _holt ] || _bash_complete -o default -F _holt\n", to);
}

/* --- fish ---------------------------------------------------------------------------------- */

/* Text as one word of fish: single quotes and backslashes escaped. */
static void fish_quote(const char *text, FILE *to)
{
	(void)fputc('\'', to);
	for (; *text; text++) {
		if (*text == '\'' || *text == '\\')
			(void)fputc('\\', to);
		(void)fputc(*text, to);
	}
	(void)fputc('\'', to);
}

/* "complete -c holt -n '<when the command is c>'" */
static void fish_when(const struct command *c, FILE *to)
{
	(void)fputs("complete -c holt -n '__fish_seen_subcommand_from ", to);
	put_first(c, to);
	if (is_group(c))
		(void)fprintf(to, "; and __fish_seen_subcommand_from %s", second_word(c));
	(void)fputs("' ", to);
}

/* The second word of a group, until one is there. */
static void fish_second(const struct command *c, FILE *to)
{
	(void)fputs("complete -c holt -f -n '__fish_seen_subcommand_from ", to);
	put_first(c, to);
	(void)fputs("; and not __fish_seen_subcommand_from ", to);
	put_seconds(c, to);
	(void)fprintf(to, "' -a %s -d ", second_word(c));
	fish_quote(c->summary, to);
	(void)fputc('\n', to);
}

static void fish_first(const struct command *c, FILE *to)
{
	(void)fputs("complete -c holt -f -n __fish_use_subcommand -a ", to);
	put_first(c, to);
	if (!is_group(c)) {
		(void)fputs(" -d ", to);
		fish_quote(c->summary, to);
	}
	(void)fputc('\n', to);
}

static void completion_fish(FILE *to)
{
	struct opt o;

	for (const struct command *c = commands; c->name; c++) {
		if (is_first_of_group(c))
			fish_first(c, to);
		if (is_group(c))
			fish_second(c, to);
		for (size_t i = 0; cli_option(c, i, &o); i++) {
			fish_when(c, to);
			if (o.letter)
				(void)fprintf(to, "-s %c ", o.letter);
			(void)fprintf(to, "-l %s%s -d ", o.name, o.arg ? " -r" : "");
			fish_quote(o.help, to);
			(void)fputc('\n', to);
		}
	}
}

void help_completion(const char *shell, FILE *to)
{
	if (strcmp(shell, "fish") == 0)
		completion_fish(to);
	else if (strcmp(shell, "zsh") == 0)
		completion_zsh(to);
	else
		completion_bash(to);
}
