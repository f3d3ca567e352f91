#include "mcpc/mirror.h"

#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/encode.h"
#include "json/jw.h"

#define KEY "x-mcp-header"
#define PREFIX "Mcp-Param-"
#define SENTINEL "=?base64?"
#define SENTINEL_END "?="

struct row {
	char name[MCPC_MIRROR_NAME_MAX + 1];
	struct str path[JV_DEPTH_MAX]; /* owned copies: the properties on the way */
	size_t depth;
};

struct mcpc_mirror {
	size_t n;
	struct row rows[]; /* MCPC_MIRROR_MAX of them while it is read */
};

struct walk {
	struct mcpc_mirror *m;
	struct str path[JV_DEPTH_MAX]; /* borrowed from the document */
	size_t depth;
};

/* A token of RFC 9110. */
static bool is_name(const char *s)
{
	size_t n = s ? strlen(s) : 0;

	if (n == 0 || n > MCPC_MIRROR_NAME_MAX)
		return false;
	for (; *s; s++)
		if (!isalnum((unsigned char)*s) && !strchr("!#$%&'*+-.^_`|~", *s))
			return false;
	return true;
}

static bool is_primitive(struct jv schema)
{
	const char *type = jv_text(jv_get(schema, "type"));

	return type && (strcmp(type, "string") == 0 || strcmp(type, "integer") == 0 ||
			strcmp(type, "boolean") == 0);
}

static int add_row(struct walk *w, struct jv schema)
{
	const char *name = jv_text(jv_get(schema, KEY));
	struct row *row;

	if (!is_name(name) || !is_primitive(schema) || w->m->n == MCPC_MIRROR_MAX)
		return -EINVAL;
	for (size_t i = 0; i < w->m->n; i++)
		if (strcasecmp(w->m->rows[i].name, name) == 0)
			return -EINVAL; /* a header means one argument */
	row = &w->m->rows[w->m->n++];
	memcpy(row->name, name, strlen(name) + 1);
	for (; row->depth < w->depth; row->depth++) {
		struct str part = w->path[row->depth];

		row->path[row->depth] = (struct str){ str_dup(part), part.len };
		if (!row->path[row->depth].data)
			return -ENOMEM;
	}
	return 0;
}

/* What is an example of a value is no schema, whatever it looks like. */
static bool is_data(struct str key)
{
	return str_is(key, "default") || str_is(key, "const") || str_is(key, "enum") ||
	       str_is(key, "examples");
}

/* No argument can be told to be this one: of an array's elements, of an alternative ... */
static int refuse_any(struct jv v)
{
	int r = 0;

	if (jv_kind(v) == JV_OBJECT && jv_kind(jv_get(v, KEY)) == JV_STRING)
		return -EINVAL;
	if (jv_kind(v) == JV_OBJECT || jv_kind(v) == JV_ARRAY)
		JV_FOREACH (v, it)
			if (r == 0 && !(it.key.data && is_data(it.key)))
				r = refuse_any(it.value);
	return r;
}

static int walk_schema(struct walk *w, struct jv schema)
{
	struct jv properties = jv_get(schema, "properties");
	int r = 0;

	if (jv_kind(schema) != JV_OBJECT)
		return 0;
	if (w->depth > 0 && jv_kind(jv_get(schema, KEY)) != JV_ABSENT)
		r = add_row(w, schema);
	else if (jv_kind(jv_get(schema, KEY)) != JV_ABSENT)
		r = -EINVAL; /* all arguments together are no value */
	JV_FOREACH (properties, it) {
		if (r < 0 || w->depth == JV_DEPTH_MAX)
			break;
		w->path[w->depth++] = it.key;
		r = walk_schema(w, it.value);
		w->depth--;
	}
	JV_FOREACH (schema, it)
		if (r == 0 && !is_data(it.key) && !str_is(it.key, "properties"))
			r = refuse_any(it.value);
	return r;
}

int mcpc_mirror_read(struct jv tool, struct mcpc_mirror **ret)
{
	_cleanup_(mcpc_mirror_free_p) struct mcpc_mirror *m =
		calloc(1, sizeof(*m) + MCPC_MIRROR_MAX * sizeof(struct row));
	struct walk w = { .m = m };
	int r;

	if (!m)
		return -ENOMEM;
	r = walk_schema(&w, jv_get(tool, "inputSchema"));
	if (r < 0)
		return r;
	*ret = NULL;
	if (m->n == 0)
		return 0;
	*ret = realloc(m, sizeof(*m) + m->n * sizeof(struct row));
	if (!*ret)
		return -ENOMEM;
	m = NULL;
	return 0;
}

struct mcpc_mirror *mcpc_mirror_free(struct mcpc_mirror *m)
{
	if (!m)
		return NULL;
	for (size_t i = 0; i < m->n; i++)
		for (size_t p = 0; p < m->rows[i].depth; p++)
			free((char *)m->rows[i].path[p].data);
	free(m);
	return NULL;
}

static bool is_plain(struct str v)
{
	if (v.len == 0)
		return true;
	if (v.data[0] == ' ' || v.data[v.len - 1] == ' ')
		return false;
	for (size_t i = 0; i < v.len; i++)
		if (v.data[i] < ' ' || v.data[i] > '~')
			return false;
	return !(str_starts(v, SENTINEL) && str_ends(v, SENTINEL_END));
}

int mcpc_mirror_value(struct buf *b, struct str value)
{
	_free_ char *text = NULL;

	if (value.len > MCPC_MIRROR_VALUE_MAX)
		return -E2BIG;
	if (is_plain(value))
		return buf_append(b, value.data, value.len);
	text = malloc(BASE64_SIZE(value.len));
	if (!text)
		return -ENOMEM;
	(void)encode_base64(value.data, value.len, text);
	(void)buf_puts(b, SENTINEL);
	(void)buf_puts(b, text);
	return buf_puts(b, SENTINEL_END);
}

static struct jv find(const struct row *row, struct jv arguments)
{
	struct jv v = arguments;

	for (size_t i = 0; i < row->depth; i++)
		v = jv_get(v, row->path[i].data);
	return v;
}

/* Appends ": value", or ";". 1: there is no value that a header could have. */
static int put_value(struct buf *b, struct jv v)
{
	struct jw w;
	struct str s;

	switch (jv_kind(v)) {
	case JV_STRING:
		(void)jv_str(v, &s);
		if (s.len == 0)
			return buf_putc(b, ';');
		(void)buf_puts(b, ": ");
		return mcpc_mirror_value(b, s);
	case JV_NUMBER:
	case JV_BOOL:
		(void)buf_puts(b, ": ");
		w = jw_begin(b);
		jw_value(&w, v);
		return jw_end(&w);
	default:
		return 1;
	}
}

int mcpc_mirror_write(const struct mcpc_mirror *m, struct jv arguments, struct arena *a,
		      const char *const **ret)
{
	const char **all = arena_array(a, m->n + 1, sizeof(*all));
	size_t n = 0;

	if (!all)
		return -ENOMEM;
	for (size_t i = 0; i < m->n; i++) {
		_cleanup_(buf_done) struct buf b = { 0 };
		int r;

		(void)buf_puts(&b, PREFIX);
		(void)buf_puts(&b, m->rows[i].name);
		r = put_value(&b, find(&m->rows[i], arguments));
		if (r == 1)
			continue;
		if (r == 0)
			all[n] = arena_strndup(a, b.data, b.len);
		if (r < 0 || !all[n++])
			return r < 0 ? r : -ENOMEM;
	}
	*ret = all;
	return 0;
}
