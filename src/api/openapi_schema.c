#include "api/openapi_schema.h"

#include <stdint.h>

#include "api/queries.h"
#include "api/schemas.h"
#include "base/str.h"
#include "json/jv_decode.h"
#include "json/jw.h"

/* What parse_duration(), parse_size() and parse_cpu() take. */
#define DURATION "^[0-9]+(\\.[0-9]+)?(ms|s|m|h)?$"
#define SIZE "^[0-9]+(\\.[0-9]+)?([KMGT](i?B?)?)?$"
#define CPU "^[0-9]+(\\.[0-9]+)?m?$"

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

/* ---- bodies ---- */

static const struct {
	const char *name;
	double unit;         /* of the row's bounds, in one of the number's */
	const char *pattern; /* what a string looks like instead; NULL: no string */
} kinds[JV_TYPE_COUNT] = {
	[JV_TYPE_STRING] = { "string", 0, NULL }, [JV_TYPE_BOOL] = { "boolean", 0, NULL },
	[JV_TYPE_U32] = { "integer", 1, NULL },   [JV_TYPE_U64] = { "integer", 1, NULL },
	[JV_TYPE_I64] = { "integer", 1, NULL },   [JV_TYPE_DOUBLE] = { "number", 1, NULL },
	[JV_TYPE_SIZE] = { "integer", 1, SIZE },  [JV_TYPE_DURATION] = { "number", 1000, DURATION },
	[JV_TYPE_CPU] = { "number", 1000, CPU },  [JV_TYPE_CHOICE] = { "string", 0, NULL },
	[JV_TYPE_STRINGS] = { "array", 0, NULL }, [JV_TYPE_PAIRS] = { "object", 0, NULL },
	[JV_TYPE_OBJECT] = { "object", 0, NULL }, [JV_TYPE_OBJECTS] = { "array", 0, NULL },
	[JV_TYPE_VALUE] = { NULL, 0, NULL },
};

static void types(struct jw *w, const struct jv_field *f)
{
	jw_key(w, "type");
	if (!kinds[f->type].pattern && !(f->flags & JV_NULLABLE))
		return jw_string(w, kinds[f->type].name);
	jw_array_begin(w);
	jw_string(w, kinds[f->type].name);
	if (kinds[f->type].pattern)
		jw_string(w, "string");
	if (f->flags & JV_NULLABLE)
		jw_string(w, "null");
	jw_array_end(w);
}

static void bounds(struct jw *w, const struct jv_field *f, const char *min, const char *max,
		   uint64_t standard)
{
	uint64_t most = f->max > 0 ? (uint64_t)f->max : standard;

	if (f->min > 0)
		jw_int_field(w, min, f->min);
	if (most > 0)
		jw_uint_field(w, max, most);
}

static void bound(struct jw *w, const char *key, int64_t v, double unit)
{
	if (unit > 1)
		jw_double_field(w, key, (double)v / unit);
	else
		jw_int_field(w, key, v);
}

static void number(struct jw *w, const struct jv_field *f)
{
	double unit = kinds[f->type].unit;
	bool is_signed = f->type == JV_TYPE_I64 || f->type == JV_TYPE_DOUBLE;

	if (f->min != 0 || f->max != 0 || !is_signed)
		bound(w, "minimum", f->min, unit);
	if (f->max != 0)
		bound(w, "maximum", f->max, unit);
	else if (f->type == JV_TYPE_U32)
		jw_uint_field(w, "maximum", UINT32_MAX);
	if (kinds[f->type].pattern)
		jw_str_field(w, "pattern", kinds[f->type].pattern);
}

static void properties(struct jw *w, const struct jv_field *fields, size_t n);

static void texts(struct jw *w, const char *key, const struct jv_field *f)
{
	jw_key(w, key);
	jw_object_begin(w);
	jw_str_field(w, "type", "string");
	jw_uint_field(w, "maxLength", f->text_max > 0 ? f->text_max : JV_TEXT_MAX);
	jw_object_end(w);
}

static void container(struct jw *w, const struct jv_field *f)
{
	switch (f->type) {
	case JV_TYPE_STRINGS:
		bounds(w, f, "minItems", "maxItems", JV_COUNT_MAX);
		return texts(w, "items", f);
	case JV_TYPE_PAIRS:
		bounds(w, f, "minProperties", "maxProperties", JV_COUNT_MAX);
		return texts(w, "additionalProperties", f);
	case JV_TYPE_OBJECT:
		return properties(w, f->sub, f->sub_count);
	case JV_TYPE_OBJECTS:
		bounds(w, f, "minItems", "maxItems", JV_COUNT_MAX);
		jw_key(w, "items");
		return openapi_body(w, f->sub, f->sub_count);
	default:
		return;
	}
}

static void choices(struct jw *w, const struct jv_field *f)
{
	jw_key(w, "enum");
	jw_array_begin(w);
	for (size_t i = 0; f->choices[i]; i++)
		jw_string(w, f->choices[i]);
	if (f->flags & JV_NULLABLE)
		jw_null(w);
	jw_array_end(w);
}

static void property(struct jw *w, const struct jv_field *f)
{
	jw_object_begin(w);
	if (f->type != JV_TYPE_VALUE)
		types(w, f);
	if (f->type == JV_TYPE_STRING)
		bounds(w, f, "minLength", "maxLength", JV_TEXT_MAX);
	else if (f->type == JV_TYPE_CHOICE)
		choices(w, f);
	else if (kinds[f->type].unit > 0)
		number(w, f);
	else
		container(w, f);
	help(w, f->help);
	jw_object_end(w);
}

static void properties(struct jw *w, const struct jv_field *fields, size_t n)
{
	size_t required = 0;

	jw_bool_field(w, "additionalProperties", false);
	jw_key(w, "properties");
	jw_object_begin(w);
	for (size_t i = 0; i < n; i++) {
		jw_key(w, fields[i].name);
		property(w, &fields[i]);
		required += fields[i].flags & JV_REQUIRED ? 1 : 0;
	}
	jw_object_end(w);
	if (required == 0)
		return;
	jw_key(w, "required");
	jw_array_begin(w);
	for (size_t i = 0; i < n; i++)
		if (fields[i].flags & JV_REQUIRED)
			jw_string(w, fields[i].name);
	jw_array_end(w);
}

void openapi_body(struct jw *w, const struct jv_field *fields, size_t n)
{
	jw_object_begin(w);
	jw_str_field(w, "type", "object");
	properties(w, fields, n);
	jw_object_end(w);
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
		jw_str_field(w, "pattern", DURATION);
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
