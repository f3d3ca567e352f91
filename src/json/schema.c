#include "json/schema.h"

#include <stdbool.h>
#include <stdint.h>

#include "json/jv_decode.h"
#include "json/jw.h"

/* What parse_size() and parse_cpu() take. */
#define SIZE "^[0-9]+(\\.[0-9]+)?([KMGT](i?B?)?)?$"
#define CPU "^[0-9]+(\\.[0-9]+)?m?$"
#define DURATION SCHEMA_DURATION

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

struct out {
	struct jw *w;
	bool is_answer;       /* ours: without bounds */
	const void *defaults; /* of the members that are being written; NULL: not told */
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

static void bounds(struct out *o, const struct jv_field *f, const char *min, const char *max,
		   uint64_t standard)
{
	uint64_t most = f->max > 0 ? (uint64_t)f->max : standard;

	if (o->is_answer)
		return;
	if (f->min > 0)
		jw_int_field(o->w, min, f->min);
	if (most > 0)
		jw_uint_field(o->w, max, most);
}

static void bound(struct jw *w, const char *key, int64_t v, double unit)
{
	if (unit > 1)
		jw_double_field(w, key, (double)v / unit);
	else
		jw_int_field(w, key, v);
}

static void number(struct out *o, const struct jv_field *f)
{
	double unit = kinds[f->type].unit;
	bool is_signed = f->type == JV_TYPE_I64 || f->type == JV_TYPE_DOUBLE;

	if (o->is_answer)
		return;
	if (f->min != 0 || f->max != 0 || !is_signed)
		bound(o->w, "minimum", f->min, unit);
	if (f->max != 0)
		bound(o->w, "maximum", f->max, unit);
	else if (f->type == JV_TYPE_U32)
		jw_uint_field(o->w, "maximum", UINT32_MAX);
	if (kinds[f->type].pattern)
		jw_str_field(o->w, "pattern", kinds[f->type].pattern);
}

static void texts(struct out *o, const char *key, const struct jv_field *f)
{
	jw_key(o->w, key);
	jw_object_begin(o->w);
	jw_str_field(o->w, "type", "string");
	if (!o->is_answer)
		jw_uint_field(o->w, "maxLength", f->text_max > 0 ? f->text_max : JV_TEXT_MAX);
	jw_object_end(o->w);
}

static void object(struct out *o, const struct jv_field *fields, size_t n);
static void members(struct out *o, const struct jv_field *fields, size_t n);

static void container(struct out *o, const struct jv_field *f)
{
	switch (f->type) {
	case JV_TYPE_STRINGS:
		bounds(o, f, "minItems", "maxItems", JV_COUNT_MAX);
		return texts(o, "items", f);
	case JV_TYPE_PAIRS:
		bounds(o, f, "minProperties", "maxProperties", JV_COUNT_MAX);
		return texts(o, "additionalProperties", f);
	case JV_TYPE_OBJECT:
		return members(&(struct out){ o->w, o->is_answer, NULL }, f->sub, f->sub_count);
	case JV_TYPE_OBJECTS:
		bounds(o, f, "minItems", "maxItems", JV_COUNT_MAX);
		jw_key(o->w, "items");
		return object(&(struct out){ o->w, o->is_answer, NULL }, f->sub, f->sub_count);
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

/* What is meant without it, where that is a value and not a matter of the daemon's. */
static void standard(struct out *o, const struct jv_field *f)
{
	const void *at = o->defaults ? (const char *)o->defaults + f->offset : NULL;
	const char *text = NULL;
	uint64_t number = 0;

	if (!at || f->flags & JV_REQUIRED)
		return;
	if (f->type == JV_TYPE_BOOL)
		return jw_bool_field(o->w, "default", *(const bool *)at);
	if (f->type == JV_TYPE_STRING)
		text = *(const char *const *)at;
	else if (f->type == JV_TYPE_CHOICE)
		text = f->choices[*(const int *)at];
	else if (f->type == JV_TYPE_U32)
		number = *(const uint32_t *)at;
	else if (f->type == JV_TYPE_U64)
		number = *(const uint64_t *)at;
	if (text)
		jw_str_field(o->w, "default", text);
	else if (number > 0)
		jw_uint_field(o->w, "default", number);
}

static void property(struct out *o, const struct jv_field *f)
{
	jw_object_begin(o->w);
	if (f->type != JV_TYPE_VALUE)
		types(o->w, f);
	if (f->type == JV_TYPE_STRING)
		bounds(o, f, "minLength", "maxLength", JV_TEXT_MAX);
	else if (f->type == JV_TYPE_CHOICE)
		choices(o->w, f);
	else if (kinds[f->type].unit > 0)
		number(o, f);
	else
		container(o, f);
	standard(o, f);
	if (f->help)
		jw_str_field(o->w, "description", f->help);
	jw_object_end(o->w);
}

static void members(struct out *o, const struct jv_field *fields, size_t n)
{
	size_t required = 0;

	if (!o->is_answer)
		jw_bool_field(o->w, "additionalProperties", false);
	jw_key(o->w, "properties");
	jw_object_begin(o->w);
	for (size_t i = 0; i < n; i++) {
		jw_key(o->w, fields[i].name);
		property(o, &fields[i]);
		required += fields[i].flags & JV_REQUIRED ? 1 : 0;
	}
	jw_object_end(o->w);
	if (required == 0)
		return;
	jw_key(o->w, "required");
	jw_array_begin(o->w);
	for (size_t i = 0; i < n; i++)
		if (fields[i].flags & JV_REQUIRED)
			jw_string(o->w, fields[i].name);
	jw_array_end(o->w);
}

static void object(struct out *o, const struct jv_field *fields, size_t n)
{
	jw_object_begin(o->w);
	jw_str_field(o->w, "type", "object");
	members(o, fields, n);
	jw_object_end(o->w);
}

void schema_write_body(struct jw *w, const struct jv_field *fields, size_t n)
{
	object(&(struct out){ .w = w }, fields, n);
}

void schema_write_input(struct jw *w, const struct jv_field *fields, size_t n, const void *defaults)
{
	object(&(struct out){ .w = w, .defaults = defaults }, fields, n);
}

void schema_write_answer(struct jw *w, const struct jv_field *fields, size_t n)
{
	object(&(struct out){ .w = w, .is_answer = true }, fields, n);
}
