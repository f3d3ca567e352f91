#include "json/jw.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <string.h>

#include <yyjson.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/utf8.h"

#define NUMBER_ROOM 512 /* for the library to write one number in; needs about a hundred */

static void put(struct jw *w, const char *s, size_t n)
{
	if (w->failed == 0)
		w->failed = buf_append(w->buf, s, n);
}

static void put_quoted(struct jw *w, const char *s, size_t n)
{
	put(w, "\"", 1);
	if (w->failed == 0)
		w->failed = utf8_json_escape(w->buf, s, n);
	put(w, "\"", 1);
}

static uint64_t level(const struct jw *w)
{
	return 1ull << (w->depth - 1);
}

static void comma(struct jw *w)
{
	if (w->depth == 0)
		return;
	if (w->comma & level(w))
		put(w, ",", 1);
	w->comma |= level(w);
}

/* Each value begins here: behind its key, or as the next one of an array. */
static void value(struct jw *w)
{
	if (w->after_key) {
		w->after_key = false;
		return;
	}
	assert(w->depth == 0 || !(w->object & level(w))); /* a member needs its key first */
	comma(w);
}

static void begin(struct jw *w, bool object)
{
	value(w);
	assert(w->depth < JW_DEPTH_MAX);
	w->depth++;
	w->comma &= ~level(w);
	w->object = object ? w->object | level(w) : w->object & ~level(w);
	put(w, object ? "{" : "[", 1);
}

static void end(struct jw *w, bool object)
{
	assert(w->depth > 0 && !w->after_key && object == !!(w->object & level(w)));
	w->depth--;
	put(w, object ? "}" : "]", 1);
}

struct jw jw_begin(struct buf *b)
{
	return (struct jw){ .buf = b };
}

int jw_end(struct jw *w)
{
	assert(w->depth == 0 && !w->after_key);
	return w->failed;
}

void jw_object_begin(struct jw *w)
{
	begin(w, true);
}

void jw_object_end(struct jw *w)
{
	end(w, true);
}

void jw_array_begin(struct jw *w)
{
	begin(w, false);
}

void jw_array_end(struct jw *w)
{
	end(w, false);
}

void jw_key(struct jw *w, const char *key)
{
	jw_key_n(w, key, strlen(key));
}

void jw_key_n(struct jw *w, const char *key, size_t n)
{
	assert(w->depth > 0 && (w->object & level(w)) && !w->after_key);
	comma(w);
	put_quoted(w, key, n);
	put(w, ":", 1);
	w->after_key = true;
}

void jw_string(struct jw *w, const char *s)
{
	if (s)
		jw_string_n(w, s, strlen(s));
	else
		jw_null(w);
}

void jw_string_n(struct jw *w, const char *s, size_t n)
{
	value(w);
	put_quoted(w, s, n);
}

void jw_int(struct jw *w, int64_t v)
{
	value(w);
	if (w->failed == 0)
		w->failed = buf_printf(w->buf, "%lld", (long long)v);
}

void jw_uint(struct jw *w, uint64_t v)
{
	value(w);
	if (w->failed == 0)
		w->failed = buf_printf(w->buf, "%llu", (unsigned long long)v);
}

/* The library's own: shortest, and the same in every locale. */
void jw_double(struct jw *w, double v)
{
	char room[NUMBER_ROOM] __attribute__((aligned(16)));
	const char *text = NULL;
	yyjson_val number = { 0 };
	yyjson_alc alc;
	size_t n = 0;

	if (!isfinite(v)) {
		jw_null(w);
		return;
	}
	unsafe_yyjson_set_real(&number, v);
	if (yyjson_alc_pool_init(&alc, room, sizeof(room)))
		text = yyjson_val_write_opts(&number, YYJSON_WRITE_NOFLAG, &alc, &n, NULL);
	assert(text); /* a number of any size fits */
	jw_raw(w, text, n);
}

void jw_bool(struct jw *w, bool v)
{
	jw_raw(w, v ? "true" : "false", v ? 4 : 5);
}

void jw_null(struct jw *w)
{
	jw_raw(w, "null", 4);
}

void jw_raw(struct jw *w, const char *json, size_t n)
{
	value(w);
	put(w, json, n);
}

static void container(struct jw *w, struct jv v)
{
	bool object = jv_kind(v) == JV_OBJECT;

	begin(w, object);
	JV_FOREACH (v, it) {
		if (object)
			jw_key_n(w, it.key.data, it.key.len);
		jw_value(w, it.value);
	}
	end(w, object);
}

static void number(struct jw *w, struct jv v)
{
	if (yyjson_is_uint(v.val))
		jw_uint(w, yyjson_get_uint(v.val));
	else if (yyjson_is_sint(v.val))
		jw_int(w, yyjson_get_sint(v.val));
	else
		jw_double(w, yyjson_get_real(v.val));
}

/* Recursion is bounded by JV_DEPTH_MAX. */
void jw_value(struct jw *w, struct jv v)
{
	struct str s;

	switch (jv_kind(v)) {
	case JV_BOOL:
		jw_bool(w, yyjson_get_bool(v.val));
		break;
	case JV_NUMBER:
		number(w, v);
		break;
	case JV_STRING:
		(void)jv_str(v, &s);
		jw_string_n(w, s.data, s.len);
		break;
	case JV_ARRAY:
	case JV_OBJECT:
		container(w, v);
		break;
	default:
		jw_null(w);
	}
}

void jw_str_field(struct jw *w, const char *key, const char *v)
{
	jw_key(w, key);
	jw_string(w, v);
}

void jw_int_field(struct jw *w, const char *key, int64_t v)
{
	jw_key(w, key);
	jw_int(w, v);
}

void jw_uint_field(struct jw *w, const char *key, uint64_t v)
{
	jw_key(w, key);
	jw_uint(w, v);
}

void jw_double_field(struct jw *w, const char *key, double v)
{
	jw_key(w, key);
	jw_double(w, v);
}

void jw_bool_field(struct jw *w, const char *key, bool v)
{
	jw_key(w, key);
	jw_bool(w, v);
}

void jw_null_field(struct jw *w, const char *key)
{
	jw_key(w, key);
	jw_null(w);
}

void jw_raw_field(struct jw *w, const char *key, const char *json, size_t n)
{
	jw_key(w, key);
	jw_raw(w, json, n);
}

void jw_iso_field(struct jw *w, const char *key, int64_t wall_ms)
{
	char text[CLOCK_ISO_SIZE];

	if (wall_ms == 0) {
		jw_null_field(w, key);
		return;
	}
	clock_iso(wall_ms, text);
	jw_str_field(w, key, text);
}
