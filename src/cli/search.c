/* holt find and holt grep. */
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/escape.h"
#include "json/jw.h"

struct search_args {
	struct client_args client;
	const char *name, *exclude;
	uint32_t depth, limit, context;
	int type; /* -1: any */
	bool regex, ignore_case, names_only;
};

static const char *const types[] = { "file", "directory", "symlink", "other", NULL };

#define AT(field) offsetof(struct search_args, field)
#define WHERE_OPTS                                                                               \
	{ .name = "name",                                                                        \
	  .letter = 'n',                                                                         \
	  .type = OPT_TEXT,                                                                      \
	  .arg = "GLOB",                                                                         \
	  .help = "only such names; with a / in it, such paths",                                 \
	  .offset = AT(name) },                                                                  \
		{ .name = "exclude",                                                             \
		  .type = OPT_TEXT,                                                              \
		  .arg = "GLOB",                                                                 \
		  .help = "leave these out, with all below them",                                \
		  .offset = AT(exclude) },                                                       \
		{ .name = "depth",                                                               \
		  .type = OPT_COUNT,                                                             \
		  .arg = "N",                                                                    \
		  .help = "levels of directories (all)",                                         \
		  .offset = AT(depth),                                                           \
		  .min = 1,                                                                      \
		  .max = 1000 },                                                                 \
	{                                                                                        \
		.name = "limit", .type = OPT_COUNT, .arg = "N",                                  \
		.help = "end behind so many (1000)", .offset = AT(limit), .min = 1, .max = 10000 \
	}

const struct opt find_opts[] = {
	WHERE_OPTS,
	{ .name = "type",
	  .letter = 't',
	  .type = OPT_CHOICE,
	  .arg = "TYPE",
	  .help = "only such entries",
	  .offset = AT(type),
	  .choices = types },
	CLIENT_OPTS(struct search_args, client),
	{ 0 },
};

const struct opt grep_opts[] = {
	{ .name = "regex",
	  .letter = 'E',
	  .type = OPT_FLAG,
	  .help = "the pattern is an extended regular expression",
	  .offset = AT(regex) },
	{ .name = "ignore-case",
	  .letter = 'i',
	  .type = OPT_FLAG,
	  .help = "letters match in either case",
	  .offset = AT(ignore_case) },
	{ .name = "files-only",
	  .letter = 'l',
	  .type = OPT_FLAG,
	  .help = "only the names of files that match",
	  .offset = AT(names_only) },
	{ .name = "context",
	  .letter = 'C',
	  .type = OPT_COUNT,
	  .arg = "N",
	  .help = "lines around each that matches",
	  .offset = AT(context),
	  .max = 20 },
	WHERE_OPTS,
	CLIENT_OPTS(struct search_args, client),
	{ 0 },
};

static void write_where(const struct search_args *a, const char *path, struct jw *w)
{
	jw_object_begin(w);
	if (path)
		jw_str_field(w, "path", path);
	if (a->name)
		jw_str_field(w, "name", a->name);
	if (a->exclude)
		jw_str_field(w, "exclude", a->exclude);
	if (a->depth)
		jw_uint_field(w, "depth", a->depth);
	if (a->limit)
		jw_uint_field(w, "limit", a->limit);
}

/* Escaped: names and lines are the box's. */
static int print_line(struct jv item, bool has_place)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	const char *path = jv_text(jv_get(item, "path")), *text = jv_text(jv_get(item, "text"));
	bool is_match = true;
	uint64_t line;

	if (!path)
		return -EPROTO;
	(void)escape_text(&b, path, strlen(path));
	(void)jv_bool(jv_get(item, "isMatch"), &is_match);
	if (has_place && text && jv_u64(jv_get(item, "line"), &line) == 0) {
		(void)buf_printf(&b, "%c%" PRIu64 "%c", is_match ? ':' : '-', line,
				 is_match ? ':' : '-');
		(void)escape_text(&b, text, strlen(text));
	}
	return b.failed ? -ENOMEM : printf("%s\n", buf_str(&b)) < 0 ? -EIO : 0;
}

/* How many there were, or -errno. */
static int print_items(struct client *c, const char *where, const struct buf *body, bool has_place,
		       struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	bool truncated = false;
	struct jv items;
	size_t n;
	int r = client_json(c, "POST", where, body, &d, err);

	if (r < 0)
		return r;
	items = jv_get(jv_root(d.doc), "items");
	n = jv_len(items);
	if (c->json) {
		r = client_print(&d.text);
		return r < 0 ? r : (int)n;
	}
	for (size_t i = 0; i < n; i++) {
		r = print_line(jv_at(items, i), has_place);
		if (r < 0)
			return err_sys(err, r, "print");
	}
	(void)jv_bool(jv_get(jv_root(d.doc), "truncated"), &truncated);
	if (truncated)
		cli_hint("there are more: see --limit");
	return (int)n;
}

static int find(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf where = { 0 }, body = { 0 };
	const struct search_args *a = args;
	struct jw w = jw_begin(&body);
	int r = client_path(&where, "sandboxes/%/find", operands[0]);

	write_where(a, n > 1 ? operands[1] : NULL, &w);
	if (a->type >= 0)
		jw_str_field(&w, "type", types[a->type]);
	jw_object_end(&w);
	if (r == 0)
		r = jw_end(&w);
	if (r < 0)
		return err_sys(err, r, "request");
	r = print_items(c, where.data, &body, false, err);
	return r < 0 ? r : 0;
}

static int grep(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(buf_done) struct buf where = { 0 }, body = { 0 };
	const struct search_args *a = args;
	struct jw w = jw_begin(&body);
	int r = client_path(&where, "sandboxes/%/grep", operands[0]);

	write_where(a, n > 2 ? operands[2] : NULL, &w);
	jw_str_field(&w, "pattern", operands[1]);
	jw_bool_field(&w, "regex", a->regex);
	jw_bool_field(&w, "ignoreCase", a->ignore_case);
	jw_bool_field(&w, "filesOnly", a->names_only);
	jw_uint_field(&w, "context", a->context);
	jw_object_end(&w);
	if (r == 0)
		r = jw_end(&w);
	if (r < 0)
		return err_sys(err, r, "request");
	r = print_items(c, where.data, &body, true, err);
	return r < 0 ? r : r == 0; /* as grep says it: 1 without a match */
}

int cmd_find(const struct command *cmd, int argc, char **argv)
{
	struct search_args args = { .type = -1 };
	struct client_task task = { &args, &args.client, 1, 2, find };

	return client_run(cmd, argc, argv, &task);
}

int cmd_grep(const struct command *cmd, int argc, char **argv)
{
	struct search_args args = { .type = -1 };
	struct client_task task = { &args, &args.client, 2, 3, grep };

	return client_run(cmd, argc, argv, &task);
}
