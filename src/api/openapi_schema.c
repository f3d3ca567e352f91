#include "api/openapi_schema.h"

#include <stdint.h>

#include "api/queries.h"
#include "api/schemas.h"
#include "base/str.h"
#include "json/jw.h"
#include "json/schema.h"

void openapi_ref(struct jw *w, const char *schema)
{
	char ref[128];

	jw_object_begin(w);
	if (str_format(ref, sizeof(ref), "#/components/schemas/%s", schema) == 0)
		jw_str_field(w, "$ref", ref);
	jw_object_end(w);
}

static void one_of(struct jw *w, const char *const *choices)
{
	jw_key(w, "enum");
	jw_array_begin(w);
	for (size_t i = 0; choices[i]; i++)
		jw_string(w, choices[i]);
	jw_array_end(w);
}

static void help(struct jw *w, const char *text)
{
	if (text)
		jw_str_field(w, "description", text);
}

/* ---- queries ---- */

void openapi_query(struct jw *w, const struct route_query *q)
{
	static const char *const names[] = {
		[QUERY_TEXT] = "string", [QUERY_BOOL] = "boolean",  [QUERY_U64] = "integer",
		[QUERY_MS] = "string",   [QUERY_CHOICE] = "string",
	};

	jw_object_begin(w);
	jw_str_field(w, "type", names[q->type]);
	if (q->type == QUERY_CHOICE)
		one_of(w, q->choices);
	if (q->type == QUERY_MS)
		jw_str_field(w, "pattern", SCHEMA_DURATION);
	if (q->type == QUERY_U64) {
		jw_uint_field(w, "minimum", q->min);
		jw_uint_field(w, "maximum", q->max);
	}
	if (q->type == QUERY_TEXT && q->min > 0)
		jw_uint_field(w, "minLength", q->min);
	if (q->type == QUERY_TEXT && q->max > 0)
		jw_uint_field(w, "maxLength", q->max);
	jw_object_end(w);
}

/* ---- answers ---- */

static const struct {
	enum schema_type type;
	const char *name;
} answer_types[] = {
	{ SCHEMA_STRING, "string" }, { SCHEMA_TIME, "string" },  { SCHEMA_INT, "integer" },
	{ SCHEMA_NUMBER, "number" }, { SCHEMA_BOOL, "boolean" }, { SCHEMA_OBJECT, "object" },
	{ SCHEMA_LIST, "array" },    { SCHEMA_MAP, "object" },   { SCHEMA_STRINGS, "array" },
	{ SCHEMA_NULL, "null" },
};

static void answer_type(struct jw *w, unsigned mask)
{
	jw_key(w, "type");
	if ((mask & (mask - 1)) != 0) /* several */
		jw_array_begin(w);
	for (size_t i = 0; i < sizeof(answer_types) / sizeof(answer_types[0]); i++)
		if (mask & answer_types[i].type)
			jw_string(w, answer_types[i].name);
	if ((mask & (mask - 1)) != 0)
		jw_array_end(w);
}

static void object_or_null(struct jw *w, const struct schema_field *f)
{
	jw_key(w, "anyOf");
	jw_array_begin(w);
	openapi_ref(w, f->ref);
	jw_object_begin(w);
	jw_str_field(w, "type", "null");
	jw_object_end(w);
	jw_array_end(w);
}

static void answer_choices(struct jw *w, const struct schema_field *f)
{
	jw_key(w, "enum");
	jw_array_begin(w);
	for (size_t i = 0; f->choices[i]; i++)
		jw_string(w, f->choices[i]);
	if (f->types & SCHEMA_NULL)
		jw_null(w);
	jw_array_end(w);
}

static void answer_parts(struct jw *w, const struct schema_field *f)
{
	const char *of = f->types & SCHEMA_MAP ? "additionalProperties" : "items";

	if (f->types & SCHEMA_TIME)
		jw_str_field(w, "format", "date-time");
	if (f->choices)
		answer_choices(w, f);
	if (f->types & (SCHEMA_MAP | SCHEMA_STRINGS)) {
		jw_key(w, of);
		jw_object_begin(w);
		jw_str_field(w, "type", "string");
		jw_object_end(w);
	}
	if (f->types & SCHEMA_LIST && f->ref) {
		jw_key(w, of);
		openapi_ref(w, f->ref);
	}
}

static void answer_field(struct jw *w, const struct schema_field *f)
{
	if (f->types == SCHEMA_OBJECT && f->ref)
		return openapi_ref(w, f->ref);
	jw_object_begin(w);
	if (f->types & SCHEMA_OBJECT && f->ref) {
		object_or_null(w, f);
	} else if (!(f->types & SCHEMA_ANY)) {
		answer_type(w, f->types);
		answer_parts(w, f);
	}
	help(w, f->help);
	jw_object_end(w);
}

void openapi_answer(struct jw *w, const struct schema *s)
{
	jw_object_begin(w);
	jw_str_field(w, "type", "object");
	help(w, s->about);
	jw_key(w, "properties");
	jw_object_begin(w);
	for (size_t i = 0; i < s->count; i++) {
		jw_key(w, s->fields[i].name);
		answer_field(w, &s->fields[i]);
	}
	jw_object_end(w);
	jw_key(w, "required");
	jw_array_begin(w);
	for (size_t i = 0; i < s->count; i++)
		if (!s->fields[i].optional)
			jw_string(w, s->fields[i].name);
	jw_array_end(w);
	jw_object_end(w);
}
