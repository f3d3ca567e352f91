#include "json/jv_decode.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/parse.h"
#include "base/utf8.h"

#define MS_MAX 9e15 /* of a duration given as a number: far from where doubles get rough */

struct decoder {
	struct arena *a;            /* borrowed */
	struct jv_problem *problem; /* borrowed; may be NULL */
	bool known_only;
	size_t path_len;
	char path[sizeof(((struct jv_problem *)0)->field)];
};

typedef int (*decode_fn)(struct decoder *d, const struct jv_field *f, struct jv v, void *dst);

static int decode_object(struct decoder *d, const struct jv_field *fields, size_t n, struct jv v,
			 void *dst);

static int bad(struct decoder *d, int code, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));
static int bad(struct decoder *d, int code, const char *fmt, ...)
{
	va_list ap;

	if (!d->problem)
		return -code;
	memcpy(d->problem->field, d->path, sizeof(d->path));
	va_start(ap, fmt);
	(void)vsnprintf(d->problem->text, sizeof(d->problem->text), fmt, ap);
	va_end(ap);
	return -code;
}

/* Goes down to a member; the length to come back to is returned. A path too long is cut, between
 * characters. */
static size_t enter(struct decoder *d, const char *name, size_t n, bool dot)
{
	size_t before = d->path_len, room;

	if (dot && d->path_len > 0 && d->path_len + 1 < sizeof(d->path))
		d->path[d->path_len++] = '.';
	room = sizeof(d->path) - 1 - d->path_len;
	if (n > room)
		n = utf8_prefix(name, room, NULL);
	memcpy(d->path + d->path_len, name, n);
	d->path_len += n;
	d->path[d->path_len] = '\0';
	return before;
}

static size_t enter_index(struct decoder *d, size_t index)
{
	char text[32];
	int n = snprintf(text, sizeof(text), "[%zu]", index);

	return enter(d, text, n > 0 ? (size_t)n : 0, false);
}

static void leave(struct decoder *d, size_t before)
{
	d->path_len = before;
	d->path[before] = '\0';
}

/* A row's bounds for what is counted in whole numbers; max 0 is the type's own. */
static int out_of_bounds(struct decoder *d, const struct jv_field *f, const char *what)
{
	if (f->max == 0)
		return bad(d, EINVAL, "want %s of at least %lld", what, (long long)f->min);
	return bad(d, EINVAL, "want %s from %lld to %lld", what, (long long)f->min,
		   (long long)f->max);
}

static int check_i64(struct decoder *d, const struct jv_field *f, int64_t v, const char *what)
{
	bool lowest = f->min == 0 && f->max == 0;

	if ((!lowest && v < f->min) || (f->max != 0 && v > f->max))
		return out_of_bounds(d, f, what);
	return 0;
}

static int check_u64(struct decoder *d, const struct jv_field *f, uint64_t v, const char *what)
{
	if (v > INT64_MAX)
		return f->max == 0 ? 0 : out_of_bounds(d, f, what);
	return check_i64(d, f, (int64_t)v, what);
}

static int copy_text(struct decoder *d, struct jv v, size_t max, const char **ret)
{
	const char *text = jv_text(v);
	size_t n = jv_len(v);

	if (jv_kind(v) != JV_STRING)
		return bad(d, EINVAL, "want a string, got %s", jv_kind_name(jv_kind(v)));
	if (!text)
		return bad(d, EINVAL, "want a string without NUL bytes");
	if (n > max)
		return bad(d, E2BIG, "want at most %zu bytes, got %zu", max, n);
	text = arena_strndup(d->a, text, n);
	if (!text)
		return bad(d, ENOMEM, "no memory");
	*ret = text;
	return 0;
}

static int decode_string(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	if (jv_kind(v) == JV_STRING && (int64_t)jv_len(v) < f->min)
		return bad(d, EINVAL, "want at least %lld bytes, got %zu", (long long)f->min,
			   jv_len(v));
	return copy_text(d, v, f->max ? (size_t)f->max : JV_TEXT_MAX, dst);
}

static int decode_bool(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	(void)f;
	if (jv_bool(v, dst) < 0)
		return bad(d, EINVAL, "want true or false, got %s", jv_kind_name(jv_kind(v)));
	return 0;
}

static int decode_u64(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	static const char what[] = "a whole number";
	uint64_t u;
	int r;

	if (jv_u64(v, &u) < 0)
		return bad(d, EINVAL, "want %s, not negative", what);
	r = check_u64(d, f, u, what);
	if (r == 0)
		*(uint64_t *)dst = u;
	return r;
}

static int decode_u32(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	uint64_t u;
	int r = decode_u64(d, f, v, &u);

	if (r < 0)
		return r;
	if (u > UINT32_MAX)
		return bad(d, EINVAL, "want a whole number up to %u", UINT32_MAX);
	*(uint32_t *)dst = (uint32_t)u;
	return 0;
}

static int decode_i64(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	static const char what[] = "a whole number";
	int64_t i;
	int r;

	if (jv_i64(v, &i) < 0)
		return bad(d, EINVAL, "want %s", what);
	r = check_i64(d, f, i, what);
	if (r == 0)
		*(int64_t *)dst = i;
	return r;
}

static int decode_double(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	double x;

	if (jv_double(v, &x) < 0)
		return bad(d, EINVAL, "want a number, got %s", jv_kind_name(jv_kind(v)));
	if ((!(f->min == 0 && f->max == 0) && x < (double)f->min) ||
	    (f->max != 0 && x > (double)f->max))
		return out_of_bounds(d, f, "a number");
	*(double *)dst = x;
	return 0;
}

static int decode_size(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	const char *text = jv_text(v);
	uint64_t bytes;
	int r;

	r = text ? parse_size(text, 0, UINT64_MAX, &bytes) : jv_u64(v, &bytes);
	if (r < 0)
		return bad(d, EINVAL, "want a size such as 268435456 or \"256Mi\"");
	r = check_u64(d, f, bytes, "a size in bytes");
	if (r == 0)
		*(uint64_t *)dst = bytes;
	return r;
}

/* A number of wholes (seconds, cores) in thousandths, to the nearest. */
static int thousandths(struct jv v, uint64_t *ret)
{
	double x;

	if (jv_double(v, &x) < 0 || !(x >= 0) || x * 1000 > MS_MAX)
		return -EINVAL;
	*ret = (uint64_t)floor(x * 1000 + 0.5);
	return 0;
}

static int decode_duration(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	const char *text = jv_text(v);
	uint64_t ms;
	int r;

	r = text ? parse_duration(text, 0, (uint64_t)MS_MAX, &ms) : thousandths(v, &ms);
	if (r < 0)
		return bad(d, EINVAL, "want a time such as 30 (seconds), 1.5 or \"5m\"");
	r = check_u64(d, f, ms, "a time in milliseconds");
	if (r == 0)
		*(uint64_t *)dst = ms;
	return r;
}

static int decode_cpu(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	const char *text = jv_text(v);
	uint64_t milli = 0;
	uint32_t parsed = 0;
	int r;

	if (text) {
		r = parse_cpu(text, 0, UINT32_MAX, &parsed);
		milli = parsed;
	} else {
		r = thousandths(v, &milli);
	}
	if (r < 0 || milli > UINT32_MAX)
		return bad(d, EINVAL, "want a number of cores such as 0.5 or \"500m\"");
	r = check_u64(d, f, milli, "thousandths of a core");
	if (r == 0)
		*(uint32_t *)dst = (uint32_t)milli;
	return r;
}

static int decode_choice(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	const char *text = jv_text(v);
	char all[128] = "";
	size_t n = 0;

	for (int i = 0; text && f->choices[i]; i++) {
		if (strcmp(f->choices[i], text) == 0) {
			*(int *)dst = i;
			return 0;
		}
	}
	for (int i = 0; f->choices[i] && n < sizeof(all); i++)
		n += (size_t)snprintf(all + n, sizeof(all) - n, "%s%s", i ? ", " : "",
				      f->choices[i]);
	return bad(d, EINVAL, "want one of: %s", all);
}

/* An array or object with as many elements as the row allows. */
static int check_container(struct decoder *d, const struct jv_field *f, struct jv v,
			   enum jv_kind kind)
{
	size_t max = f->max ? (size_t)f->max : JV_COUNT_MAX;

	if (jv_kind(v) != kind)
		return bad(d, EINVAL, "want %s, got %s", jv_kind_name(kind),
			   jv_kind_name(jv_kind(v)));
	if (jv_len(v) > max)
		return bad(d, E2BIG, "want at most %zu entries, got %zu", max, jv_len(v));
	if ((int64_t)jv_len(v) < f->min)
		return bad(d, EINVAL, "want at least %lld entries, got %zu", (long long)f->min,
			   jv_len(v));
	return 0;
}

static int decode_strings(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	struct jv_strings *ret = dst;
	const char **items = NULL;
	int r = check_container(d, f, v, JV_ARRAY);

	if (r < 0)
		return r;
	items = arena_array(d->a, jv_len(v) + 1, sizeof(char *));
	if (!items)
		return bad(d, ENOMEM, "no memory");
	JV_FOREACH (v, it) {
		size_t before = enter_index(d, it.index);

		r = copy_text(d, it.value, f->text_max ? f->text_max : JV_TEXT_MAX,
			      &items[it.index]);
		if (r < 0)
			return r;
		leave(d, before);
	}
	*ret = (struct jv_strings){ items, jv_len(v) };
	return 0;
}

static int decode_pair(struct decoder *d, const struct jv_field *f, const struct jv_iter *it,
		       struct jv_pair *ret)
{
	size_t n = it->key.len;

	if (n == 0 || n > JV_KEY_MAX || memchr(it->key.data, '\0', n))
		return bad(d, n > JV_KEY_MAX ? E2BIG : EINVAL,
			   "want names of 1 to %u bytes without NUL", JV_KEY_MAX);
	ret->name = arena_strndup(d->a, it->key.data, n);
	if (!ret->name)
		return bad(d, ENOMEM, "no memory");
	return copy_text(d, it->value, f->text_max ? f->text_max : JV_TEXT_MAX, &ret->value);
}

static int decode_pairs(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	struct jv_pairs *ret = dst;
	struct jv_pair *items = NULL;
	int r = check_container(d, f, v, JV_OBJECT);

	if (r < 0)
		return r;
	items = arena_array(d->a, jv_len(v) + 1, sizeof(*items));
	if (!items)
		return bad(d, ENOMEM, "no memory");
	JV_FOREACH (v, it) {
		size_t before = enter(d, it.key.data, it.key.len, true);

		r = decode_pair(d, f, &it, &items[it.index]);
		if (r < 0)
			return r;
		leave(d, before);
	}
	*ret = (struct jv_pairs){ items, jv_len(v) };
	return 0;
}

static int decode_sub(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	return decode_object(d, f->sub, f->sub_count, v, dst);
}

static int decode_objects(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	struct jv_objects *ret = dst;
	char *items = NULL;
	int r = check_container(d, f, v, JV_ARRAY);

	if (r < 0)
		return r;
	items = arena_array(d->a, jv_len(v) + 1, f->size);
	if (!items)
		return bad(d, ENOMEM, "no memory");
	JV_FOREACH (v, it) {
		size_t before = enter_index(d, it.index);

		r = decode_object(d, f->sub, f->sub_count, it.value, items + it.index * f->size);
		if (r < 0)
			return r;
		leave(d, before);
	}
	*ret = (struct jv_objects){ items, jv_len(v) };
	return 0;
}

static int decode_value(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	(void)d;
	(void)f;
	*(struct jv *)dst = v;
	return 0;
}

static const decode_fn decoders[JV_TYPE_COUNT] = {
	[JV_TYPE_STRING] = decode_string,   [JV_TYPE_BOOL] = decode_bool,
	[JV_TYPE_U32] = decode_u32,         [JV_TYPE_U64] = decode_u64,
	[JV_TYPE_I64] = decode_i64,         [JV_TYPE_DOUBLE] = decode_double,
	[JV_TYPE_SIZE] = decode_size,       [JV_TYPE_DURATION] = decode_duration,
	[JV_TYPE_CPU] = decode_cpu,         [JV_TYPE_CHOICE] = decode_choice,
	[JV_TYPE_STRINGS] = decode_strings, [JV_TYPE_PAIRS] = decode_pairs,
	[JV_TYPE_OBJECT] = decode_sub,      [JV_TYPE_OBJECTS] = decode_objects,
	[JV_TYPE_VALUE] = decode_value,
};

static const struct jv_field *find(const struct jv_field *fields, size_t n, struct str name)
{
	for (size_t i = 0; i < n; i++)
		if (str_is(name, fields[i].name))
			return &fields[i];
	return NULL;
}

static int decode_field(struct decoder *d, const struct jv_field *f, struct jv v, void *dst)
{
	enum jv_kind kind = jv_kind(v);

	if (kind == JV_ABSENT || (kind == JV_NULL && f->flags & JV_NULLABLE))
		return f->flags & JV_REQUIRED ? bad(d, EINVAL, "is required") : 0;
	return decoders[f->type](d, f, v, (char *)dst + f->offset);
}

/* Unknown fields first: a mistyped name explains a missing one. */
static int check_names(struct decoder *d, const struct jv_field *fields, size_t n, struct jv v)
{
	JV_FOREACH (v, it) {
		if (find(fields, n, it.key))
			continue;
		(void)enter(d, it.key.data, it.key.len, true);
		return bad(d, EINVAL, "is not a field of this");
	}
	return 0;
}

static int decode_object(struct decoder *d, const struct jv_field *fields, size_t n, struct jv v,
			 void *dst)
{
	int r = 0;

	if (jv_kind(v) != JV_OBJECT)
		return bad(d, EINVAL, "want an object, got %s", jv_kind_name(jv_kind(v)));
	if (!d->known_only)
		r = check_names(d, fields, n, v);
	for (size_t i = 0; i < n && r == 0; i++) {
		size_t before = enter(d, fields[i].name, strlen(fields[i].name), true);

		r = decode_field(d, &fields[i], jv_get(v, fields[i].name), dst);
		if (r == 0)
			leave(d, before);
	}
	return r;
}

int jv_decode(struct jv object, const struct jv_field *fields, size_t n, struct arena *a, void *dst,
	      struct jv_problem *problem)
{
	struct decoder d = { .a = a, .problem = problem };

	return decode_object(&d, fields, n, object, dst);
}

int jv_decode_known(struct jv object, const struct jv_field *fields, size_t n, struct arena *a,
		    void *dst, struct jv_problem *problem)
{
	struct decoder d = { .a = a, .problem = problem, .known_only = true };

	return decode_object(&d, fields, n, object, dst);
}
