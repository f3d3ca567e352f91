#include "cases.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"

void cases_done(struct cases *c)
{
	for (size_t i = 0; i < c->len; i++)
		buf_done(&c->items[i].in);
	free(c->items);
	free(c->text);
	*c = (struct cases){ 0 };
}

static struct test_case *add_case(struct cases *c, const char *name)
{
	if (c->len == c->cap) {
		size_t cap = c->cap ? 2 * c->cap : 64;
		struct test_case *items = realloc(c->items, cap * sizeof(*items));

		if (!items)
			return NULL;
		c->items = items;
		c->cap = cap;
	}
	c->items[c->len] = (struct test_case){ .name = name, .cwd = "", .code = "" };
	return &c->items[c->len++];
}

static void unescape(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if (*s != '\\' || !s[1]) {
			(void)buf_putc(b, *s);
			continue;
		}
		s++;
		(void)buf_putc(b, (char)(*s == 'n'   ? '\n'
					 : *s == '0' ? '\0'
					 : *s == 'r' ? '\r'
						     : *s));
	}
}

/* The text behind the word, or NULL when it is another word. */
static const char *after(const char *line, const char *word)
{
	size_t n = strlen(word);

	if (strncmp(line, word, n) != 0 || (line[n] && line[n] != ' '))
		return NULL;
	return line[n] ? line + n + 1 : line + n;
}

static int set_flag(struct test_case *c, const char *line)
{
	struct {
		const char *word;
		bool *flag;
	} flags[] = { { "node", &c->node },
		      { "distinct", &c->distinct },
		      { "cold", &c->served_cold },
		      { "loose", &c->loose } };

	for (size_t i = 0; i < sizeof(flags) / sizeof(flags[0]); i++)
		if (strcmp(line, flags[i].word) == 0) {
			*flags[i].flag = true;
			return 0;
		}
	return -EINVAL;
}

static int set_option(struct test_case *c, const char *line)
{
	const char *text;

	if ((text = after(line, "arg")) && c->argc < CASE_LIST_MAX)
		c->args[c->argc++] = text;
	else if ((text = after(line, "env")) && c->envc < CASE_LIST_MAX)
		c->env[c->envc++] = text;
	else if ((text = after(line, "cwd")))
		c->cwd = text;
	else if ((text = after(line, "stdin"))) {
		c->has_stdin = true;
		unescape(&c->in, text);
	} else {
		return set_flag(c, line);
	}
	return 0;
}

/* Cuts one line off; what is left stays in *rest, NULL at the end. */
static char *next_line(char **rest)
{
	char *line = *rest, *end = strchr(line, '\n');

	if (end)
		*end++ = '\0';
	*rest = end && *end ? end : NULL;
	return line;
}

/* Code runs up to the next line that means something, and loses its last newline. */
static const char *take_code(char **rest)
{
	char *code = *rest, *p = code;

	if (!p)
		return "";
	while (*p && strncmp(p, "=== ", 4) != 0 && strncmp(p, "--- ", 4) != 0) {
		char *end = strchr(p, '\n');

		p = end ? end + 1 : p + strlen(p);
	}
	*rest = *p ? p : NULL;
	if (p > code && p[-1] == '\n')
		p[-1] = '\0';
	return code;
}

static int parse_case(struct test_case *c, char **rest, struct err *err)
{
	while (*rest && strncmp(*rest, "--- ", 4) == 0) {
		char *line = next_line(rest) + 4;

		if (strcmp(line, "first") == 0)
			c->first = take_code(rest);
		else if (strcmp(line, "then") != 0 && set_option(c, line) < 0)
			return err_set(err, EINVAL, "case '%s': '%s'", c->name, line);
	}
	c->code = take_code(rest);
	return 0;
}

int cases_load(struct cases *c, const char *path, struct err *err)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	_close_ int fd = open(path, O_RDONLY | O_CLOEXEC);
	int r = fd < 0 ? -errno : fd_slurp(fd, &text);
	char *rest;

	if (r < 0)
		return err_sys(err, r, "%s", path);
	rest = c->text = buf_take(&text);
	while (rest && r == 0) {
		char *line = next_line(&rest);
		struct test_case *item;

		if (strncmp(line, "=== ", 4) != 0)
			continue; /* remarks in front of the first case */
		item = add_case(c, line + 4);
		r = item ? parse_case(item, &rest, err) : err_sys(err, ENOMEM, "cases");
	}
	return r;
}
