/* The tables of tools, one behind the other, and how clients see them. */
#include "tools/toolbox.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/err.h"
#include "config/config.h"
#include "tools/impl.h"
#include "json/jw.h"
#include "json/schema.h"

static const struct tool_table *const own[] = {
	&tools_exec_table,    &tools_code_table,    &tools_package_table, &tools_read_table,
	&tools_file_table,    &tools_edit_table,    &tools_process_table, &tools_output_table,
	&tools_address_table, &tools_sandbox_table, &tools_skill_table,   &tools_search_table,
};

int tools_create(const struct tools_deps *deps, struct tools **ret, struct err *err)
{
	_cleanup_(tools_free_p) struct tools *all = calloc(1, sizeof(*all));
	int r;

	if (!all)
		return err_sys(err, ENOMEM, "tools");
	all->deps = *deps;
	r = jv_parse("{}", 2, 2, &all->nothing, err);
	if (r < 0)
		return r;
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		all->tables[all->n_tables++] = own[i];
	for (size_t i = 0; deps->more && deps->more[i]; i++) {
		if (all->n_tables == TOOLS_TABLES_MAX)
			return err_set(err, E2BIG, "more than %u tables of tools",
				       TOOLS_TABLES_MAX);
		all->tables[all->n_tables++] = deps->more[i];
	}
	*ret = TAKE(all);
	return 0;
}

struct tools *tools_free(struct tools *all)
{
	if (!all)
		return NULL;
	all->nothing = jv_free(all->nothing);
	free(all);
	return NULL;
}

const struct tools_deps *tools_deps(const struct tools *all)
{
	return &all->deps;
}

/* ---- looking ---- */

static bool is_for(const struct tools *all, const struct tool *tool, bool is_bound)
{
	if (is_bound && tool->flags & TOOL_FREE_ONLY)
		return false;
	return !(tool->flags & TOOL_HIDDEN) || tool->is_there(all);
}

void tools_each(struct tools *all, bool is_bound, tools_each_fn fn, void *user)
{
	for (size_t i = 0; i < all->n_tables; i++)
		for (size_t j = 0; j < all->tables[i]->count; j++)
			if (is_for(all, &all->tables[i]->rows[j], is_bound))
				fn(user, &all->tables[i]->rows[j]);
}

struct search {
	const char *name;
	const struct tool *found;
};

static void compare(void *user, const struct tool *tool)
{
	struct search *s = user;

	if (!s->found && strcmp(tool->name, s->name) == 0)
		s->found = tool;
}

const struct tool *tools_find(struct tools *all, bool is_bound, const char *name)
{
	struct search s = { .name = name };

	tools_each(all, is_bound, compare, &s);
	return s.found;
}

/* ---- describing ---- */

struct jv_field *tools_field(struct jv_field *fields, const char *name)
{
	while (strcmp(fields->name, name) != 0)
		fields++;
	return fields;
}

void tools_bound_timeout(const struct tools *all, struct jv_field *in, uint64_t *timeout_ms)
{
	tools_field(in, "timeout_ms")->max = (int64_t)all->deps.config->exec_timeout_max_ms;
	*timeout_ms = all->deps.config->exec_timeout_ms;
}

size_t tools_fields(const struct tools *all, const struct tool *tool, bool is_bound, size_t box_at,
		    struct jv_field ret[TOOL_FIELDS_MAX + 1], void *args)
{
	static const struct jv_field box = {
		.name = "sandbox_id",
		.type = JV_TYPE_STRING,
		.min = 1,
		.max = 63,
		.help = "id or name of the sandbox. Default: your own, which is made when it is "
			"first needed",
	};
	size_t n = tool->n_in < TOOL_FIELDS_MAX ? tool->n_in : TOOL_FIELDS_MAX;

	if (n > 0)
		memcpy(ret, tool->in, n * sizeof(*ret));
	if (tool->defaults)
		memcpy(args, tool->defaults, tool->size);
	if (tool->set_bounds)
		tool->set_bounds(all, ret, args);
	if (tool->flags & TOOL_IN_BOX && !is_bound) {
		ret[n] = box;
		ret[n++].offset = box_at;
	}
	for (size_t i = 0; i < n; i++)
		if (!(ret[i].flags & JV_REQUIRED))
			ret[i].flags |= JV_NULLABLE;
	return n;
}

static void write_input(const struct tools *all, struct jw *w, const struct tool *tool,
			bool is_bound)
{
	struct jv_field fields[TOOL_FIELDS_MAX + 1];
	size_t n, at = TOOL_BOX_AT(tool);
	_free_ void *args = NULL;

	jw_key(w, "inputSchema");
	if (tool->in_json)
		return jw_raw(w, tool->in_json, strlen(tool->in_json));
	args = calloc(1, at + sizeof(char *));
	if (!args) {
		w->failed = -ENOMEM;
		return;
	}
	n = tools_fields(all, tool, is_bound, at, fields, args);
	schema_write_input(w, fields, n, args);
}

static void write_output(struct jw *w, const struct tool *tool)
{
	if (tool->out_json)
		return jw_raw_field(w, "outputSchema", tool->out_json, strlen(tool->out_json));
	if (!tool->out)
		return;
	jw_key(w, "outputSchema");
	schema_write_answer(w, tool->out, tool->n_out);
}

static void write_hints(struct jw *w, const struct tool *tool)
{
	jw_key(w, "annotations");
	jw_object_begin(w);
	jw_str_field(w, "title", tool->title);
	jw_bool_field(w, "readOnlyHint", tool->hints & TOOL_READ_ONLY);
	jw_bool_field(w, "destructiveHint", tool->hints & TOOL_DESTRUCTIVE);
	jw_bool_field(w, "idempotentHint", tool->hints & TOOL_IDEMPOTENT);
	jw_bool_field(w, "openWorldHint", tool->hints & TOOL_OPEN_WORLD);
	jw_object_end(w);
}

void tools_write(struct tools *all, struct jw *w, const struct tool *tool, bool is_bound)
{
	_cleanup_(buf_done) struct buf about = { 0 };

	if (tool->describe)
		tool->describe(all, &about);
	jw_str_field(w, "name", tool->name);
	jw_str_field(w, "title", tool->title);
	jw_str_field(w, "description", tool->describe ? buf_str(&about) : tool->about);
	write_input(all, w, tool, is_bound);
	write_output(w, tool);
	write_hints(w, tool);
}
