#include "tools/stub_write.h"

#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/str.h"
#include "tools/stub_text.h"
#include "tools/stubs.h"
#include "json/jw.h"

#define ABOUT_MAX 2000u  /* bytes that are told: of a tool, */
#define TEXT_MAX 500u    /* of a parameter, */
#define SCHEMA_MAX 1500u /* and of a schema */
#define KEY_MAX 256u

struct parameter {
	char name[STUB_NAME_MAX];
	char key[KEY_MAX]; /* as the server calls it */
	struct jv schema;
	bool is_required;
};

struct parameters {
	size_t n;
	struct parameter items[STUBS_PARAMETERS_MAX];
};

static const struct {
	const char *json, *python, *node;
} types[] = {
	{ "string", "str", "string" },   { "integer", "int", "number" },
	{ "number", "float", "number" }, { "boolean", "bool", "boolean" },
	{ "array", "list", "Array" },    { "object", "dict", "object" },
	{ "null", "None", "null" },
};

static void put_type_name(struct buf *b, enum stub_language lang, const char *json)
{
	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++)
		if (json && strcmp(types[i].json, json) == 0) {
			(void)buf_puts(b, lang == STUB_PYTHON ? types[i].python : types[i].node);
			return;
		}
	(void)buf_puts(b, lang == STUB_PYTHON ? "object" : "*");
}

/* Only words of our own: what a schema says else is "anything". */
static void put_type(struct buf *b, enum stub_language lang, struct jv schema)
{
	struct jv type = jv_get(schema, "type");
	size_t n = jv_kind(type) == JV_ARRAY ? jv_len(type) : 0;

	if (n == 0 || n > sizeof(types) / sizeof(types[0])) {
		put_type_name(b, lang, jv_text(type));
		return;
	}
	for (size_t i = 0; i < n; i++) {
		(void)buf_puts(b, i == 0 ? "" : lang == STUB_PYTHON ? " | " : "|");
		put_type_name(b, lang, jv_text(jv_at(type, i)));
	}
}

static bool is_required(struct jv schema, const char *key)
{
	JV_FOREACH (jv_get(schema, "required"), it) {
		const char *name = jv_text(it.value);

		if (name && strcmp(name, key) == 0)
			return true;
	}
	return false;
}

static bool is_taken(const struct parameters *p, const char *name)
{
	for (size_t i = 0; i < p->n; i++)
		if (strcmp(p->items[i].name, name) == 0)
			return true;
	return false;
}

static void add_parameter(struct parameters *p, struct jv input, struct str key, struct jv schema)
{
	struct parameter *x = &p->items[p->n];
	char plain[STUB_NAME_MAX];

	if (p->n == STUBS_PARAMETERS_MAX || key.len == 0 || key.len >= KEY_MAX ||
	    memchr(key.data, '\0', key.len))
		return;
	memcpy(x->key, key.data, key.len);
	x->key[key.len] = '\0';
	stub_name(x->key, plain);
	(void)str_copy(x->name, sizeof(x->name), plain);
	for (unsigned i = 2; is_taken(p, x->name); i++)
		stub_name_again(plain, i, x->name);
	x->schema = schema;
	x->is_required = is_required(input, x->key);
	p->n++;
}

static void read_parameters(struct jv input, struct parameters *ret)
{
	ret->n = 0;
	if (jv_kind(jv_get(input, "properties")) != JV_OBJECT)
		return;
	JV_FOREACH (jv_get(input, "properties"), it)
		add_parameter(ret, input, it.key, it.value);
}

/* ---- prose ---- */

static void put_json(struct buf *b, enum stub_language lang, const char *before, struct jv v,
		     const char *indent)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw w = jw_begin(&text);

	if (jv_kind(v) == JV_ABSENT)
		return;
	jw_value(&w, v);
	if (jw_end(&w) < 0)
		return;
	(void)buf_puts(b, before);
	stub_prose(b, lang, buf_str(&text), SCHEMA_MAX, indent);
}

/* What a type cannot say. */
static void put_details(struct buf *b, enum stub_language lang, struct jv schema,
			const char *indent)
{
	const char *about = jv_text(jv_get(schema, "description"));
	bool has_more = jv_kind(jv_get(schema, "properties")) != JV_ABSENT ||
			jv_kind(jv_get(schema, "items")) != JV_ABSENT ||
			jv_kind(jv_get(schema, "anyOf")) != JV_ABSENT ||
			jv_kind(jv_get(schema, "oneOf")) != JV_ABSENT;

	if (about)
		stub_prose(b, lang, about, TEXT_MAX, indent);
	put_json(b, lang, " One of ", jv_get(schema, "enum"), indent);
	put_json(b, lang, " Otherwise ", jv_get(schema, "default"), indent);
	if (has_more)
		put_json(b, lang, " Schema: ", schema, indent);
}

void stub_line(struct buf *b, const char *text)
{
	/* No line ends behind "//": a space stands for each. */
	_cleanup_(buf_done) struct buf line = { 0 };

	stub_prose(&line, STUB_NODE, text, TEXT_MAX, " ");
	for (size_t i = 0; i < line.len; i++)
		if (line.data[i] == '\n')
			line.data[i] = ' ';
	(void)buf_append(b, buf_str(&line), line.len);
}

/* ---- Python ---- */

static void put_python_head(struct buf *b, const struct parameters *p, const char *name)
{
	(void)buf_printf(b,
			 "from __future__ import annotations\n\n"
			 "from .._call import call as _call\n\n\ndef %s(",
			 name);
	for (int pass = 0; pass < 2; pass++) /* those with a default come last */
		for (size_t i = 0; i < p->n; i++) {
			if (p->items[i].is_required != (pass == 0))
				continue;
			(void)buf_printf(b, "%s: ", p->items[i].name);
			put_type(b, STUB_PYTHON, p->items[i].schema);
			(void)buf_puts(b, pass == 0 ? ", " : " = ..., ");
		}
	(void)buf_puts(b, "**more):\n");
}

static void put_python_doc(struct buf *b, const struct stub_tool *tool, const struct parameters *p)
{
	(void)buf_puts(b, "    \"\"\"");
	stub_prose(b, STUB_PYTHON, tool->about[0] ? tool->about : tool->name, ABOUT_MAX, "    ");
	(void)buf_puts(b, p->n > 0 ? "\n\n    Arguments:\n" : "\n");
	for (size_t i = 0; i < p->n; i++) {
		(void)buf_printf(b, "        %s (", p->items[i].name);
		put_type(b, STUB_PYTHON, p->items[i].schema);
		(void)buf_puts(b, p->items[i].is_required ? "): " : ", optional): ");
		put_details(b, STUB_PYTHON, p->items[i].schema, "            ");
		(void)buf_putc(b, '\n');
	}
	put_json(b, STUB_PYTHON, "\n    Returns: ", tool->output, "    ");
	(void)buf_puts(b, "\n    \"\"\"\n");
}

void stub_write_python(struct buf *b, const struct stub_tool *tool, const char *name)
{
	struct parameters p;

	read_parameters(tool->input, &p);
	put_python_head(b, &p, name);
	put_python_doc(b, tool, &p);
	(void)buf_puts(b, "    return _call(");
	stub_literal(b, STUB_PYTHON, tool->server);
	(void)buf_puts(b, ", ");
	stub_literal(b, STUB_PYTHON, tool->name);
	(void)buf_puts(b, ", {**more");
	for (size_t i = 0; i < p.n; i++) {
		(void)buf_puts(b, ", ");
		stub_literal(b, STUB_PYTHON, p.items[i].key);
		(void)buf_printf(b, ": %s", p.items[i].name);
	}
	(void)buf_puts(b, "})\n");
}

/* ---- Node ---- */

static bool is_plain(const struct parameter *x)
{
	return strcmp(x->name, x->key) == 0;
}

/* args.name, args["na me"]; [ ] around it: it may be left out. */
static void put_node_parameter(struct buf *b, const struct parameter *x)
{
	_cleanup_(buf_done) struct buf literal = { 0 };

	(void)buf_puts(b, " * @param {");
	put_type(b, STUB_NODE, x->schema);
	(void)buf_puts(b, x->is_required ? "} args" : "} [args");
	stub_literal(&literal, STUB_NODE, x->key);
	if (is_plain(x)) {
		(void)buf_printf(b, ".%s", x->name);
	} else {
		(void)buf_putc(b, '[');
		stub_prose(b, STUB_NODE, buf_str(&literal), KEY_MAX * 8, " * ");
		(void)buf_putc(b, ']');
	}
	(void)buf_puts(b, x->is_required ? " " : "] ");
	put_details(b, STUB_NODE, x->schema, " *   ");
	(void)buf_putc(b, '\n');
}

void stub_write_node(struct buf *b, const struct stub_tool *tool, const char *name)
{
	struct parameters p;

	read_parameters(tool->input, &p);
	(void)buf_puts(b, "import { call } from \"../_call.mjs\";\n\n/**\n * ");
	stub_prose(b, STUB_NODE, tool->about[0] ? tool->about : tool->name, ABOUT_MAX, " * ");
	(void)buf_puts(b, "\n * @param {object} args\n");
	for (size_t i = 0; i < p.n; i++)
		put_node_parameter(b, &p.items[i]);
	put_json(b, STUB_NODE, " * @returns {Promise<*>} ", tool->output, " * ");
	(void)buf_printf(b, "\n */\nexport async function %s(args = {}) {\n  return call(", name);
	stub_literal(b, STUB_NODE, tool->server);
	(void)buf_puts(b, ", ");
	stub_literal(b, STUB_NODE, tool->name);
	(void)buf_puts(b, ", args);\n}\n");
}
