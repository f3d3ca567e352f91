#include "json/jv.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <yyjson.h>

#include "base/cleanup.h"
#include "base/err.h"

#define FEW_KEYS 8             /* of an object: compared each with each */
#define EXACT 9007199254740992 /* 2^53: whole numbers up to here are exact in a double */

CLEANUP_FUNC(struct jv_doc *, jv_free)

/* The library's allocations go through our own calls, where the tests can make them fail. */
static void *alc_malloc(void *ctx, size_t n)
{
	(void)ctx;
	return malloc(n);
}

static void *alc_realloc(void *ctx, void *p, size_t old, size_t n)
{
	(void)ctx;
	(void)old;
	return realloc(p, n);
}

static void alc_free(void *ctx, void *p)
{
	(void)ctx;
	free(p);
}

/* Before anything is allocated: brackets outside of strings. What is no JSON is the parser's. */
static bool is_too_deep(const char *s, size_t n)
{
	bool quoted = false;
	int depth = 0;

	for (size_t i = 0; i < n; i++) {
		if (quoted) {
			if (s[i] == '\\')
				i++;
			else if (s[i] == '"')
				quoted = false;
		} else if (s[i] == '"') {
			quoted = true;
		} else if (s[i] == '[' || s[i] == '{') {
			if (++depth > JV_DEPTH_MAX)
				return true;
		} else if (s[i] == ']' || s[i] == '}') {
			depth--;
		}
	}
	return false;
}

static int compare_keys(const void *a, const void *b)
{
	const yyjson_val *x = *(yyjson_val *const *)a, *y = *(yyjson_val *const *)b;
	size_t n = yyjson_get_len((yyjson_val *)x), m = yyjson_get_len((yyjson_val *)y);

	if (n != m)
		return n < m ? -1 : 1;
	return memcmp(unsafe_yyjson_get_str((yyjson_val *)x),
		      unsafe_yyjson_get_str((yyjson_val *)y), n);
}

static int twice(yyjson_val *key, struct err *err)
{
	return err_set(err, EINVAL, "JSON: the key \"%.60s\" is there twice",
		       unsafe_yyjson_get_str(key));
}

/* Few keys are compared each with each; many are sorted, so that a hostile object costs no square.
 */
static int check_keys(yyjson_val *object, struct err *err)
{
	size_t n = unsafe_yyjson_get_len(object), i = 0;
	_free_ yyjson_val **keys = NULL;
	yyjson_val *few[FEW_KEYS], **all = few;
	yyjson_obj_iter it = yyjson_obj_iter_with(object);

	if (n > FEW_KEYS) {
		keys = calloc(n, sizeof(yyjson_val *));
		if (!keys)
			return err_sys(err, ENOMEM, "JSON");
		all = keys;
	}
	for (yyjson_val *key; (key = yyjson_obj_iter_next(&it)) && i < n; i++)
		all[i] = key;
	if (n > FEW_KEYS)
		qsort(all, n, sizeof(yyjson_val *), compare_keys);
	for (i = 1; i < n; i++)
		for (size_t k = n > FEW_KEYS ? i - 1 : 0; k < i; k++)
			if (compare_keys(&all[k], &all[i]) == 0)
				return twice(all[i], err);
	return 0;
}

/* Recursion is bounded by JV_DEPTH_MAX. */
static int check_value(yyjson_val *v, struct err *err)
{
	size_t i, n;
	yyjson_val *key, *member;
	int r = 0;

	if (yyjson_is_obj(v)) {
		r = check_keys(v, err);
		if (r < 0)
			return r;
		yyjson_obj_foreach(v, i, n, key, member)
		{
			r = check_value(member, err);
			if (r < 0)
				return r;
		}
	} else if (yyjson_is_arr(v)) {
		yyjson_arr_foreach(v, i, n, member)
		{
			r = check_value(member, err);
			if (r < 0)
				return r;
		}
	}
	return r;
}

int jv_parse(const void *data, size_t n, size_t max, struct jv_doc **ret, struct err *err)
{
	static const yyjson_alc alc = { alc_malloc, alc_realloc, alc_free, NULL };
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	yyjson_read_err why = { 0 };
	int r;

	if (n > max)
		return err_set(err, E2BIG, "JSON of %zu bytes, limit %zu", n, max);
	if (n == 0)
		return err_set(err, EINVAL, "JSON: there is none");
	if (is_too_deep(data, n))
		return err_set(err, E2BIG, "JSON is nested more than %d deep", JV_DEPTH_MAX);
	/* NOTE: the cast is the library's own: without YYJSON_READ_INSITU the input is not changed.
	 */
	doc = (struct jv_doc *)yyjson_read_opts((char *)data, n, YYJSON_READ_NOFLAG, &alc, &why);
	if (!doc && why.code == YYJSON_READ_ERROR_MEMORY_ALLOCATION)
		return err_sys(err, ENOMEM, "JSON");
	if (!doc)
		return err_set(err, EINVAL, "JSON: %s at byte %zu", why.msg, why.pos);
	r = check_value(jv_root(doc).val, err);
	if (r < 0)
		return r;
	*ret = TAKE(doc);
	return 0;
}

struct jv_doc *jv_free(struct jv_doc *doc)
{
	yyjson_doc_free((yyjson_doc *)doc);
	return NULL;
}

struct jv jv_root(const struct jv_doc *doc)
{
	return (struct jv){ yyjson_doc_get_root((yyjson_doc *)doc) };
}

enum jv_kind jv_kind(struct jv v)
{
	switch (yyjson_get_type(v.val)) {
	case YYJSON_TYPE_NULL:
		return JV_NULL;
	case YYJSON_TYPE_BOOL:
		return JV_BOOL;
	case YYJSON_TYPE_NUM:
		return JV_NUMBER;
	case YYJSON_TYPE_STR:
		return JV_STRING;
	case YYJSON_TYPE_ARR:
		return JV_ARRAY;
	case YYJSON_TYPE_OBJ:
		return JV_OBJECT;
	default:
		return JV_ABSENT;
	}
}

const char *jv_kind_name(enum jv_kind kind)
{
	static const char *const names[] = {
		[JV_ABSENT] = "nothing",   [JV_NULL] = "null",       [JV_BOOL] = "true or false",
		[JV_NUMBER] = "a number",  [JV_STRING] = "a string", [JV_ARRAY] = "an array",
		[JV_OBJECT] = "an object",
	};

	return (size_t)kind < sizeof(names) / sizeof(names[0]) ? names[kind] : names[JV_ABSENT];
}

struct jv jv_get(struct jv object, const char *key)
{
	return (struct jv){ yyjson_obj_get(object.val, key) };
}

struct jv jv_at(struct jv array, size_t index)
{
	return (struct jv){ yyjson_arr_get(array.val, index) };
}

size_t jv_len(struct jv v)
{
	enum jv_kind kind = jv_kind(v);

	if (kind != JV_STRING && kind != JV_ARRAY && kind != JV_OBJECT)
		return 0;
	return unsafe_yyjson_get_len(v.val);
}

int jv_str(struct jv v, struct str *ret)
{
	if (!yyjson_is_str(v.val))
		return -EINVAL;
	*ret = (struct str){ unsafe_yyjson_get_str(v.val), unsafe_yyjson_get_len(v.val) };
	return 0;
}

const char *jv_text(struct jv v)
{
	struct str s;

	if (jv_str(v, &s) < 0 || memchr(s.data, '\0', s.len))
		return NULL;
	return s.data;
}

/* 1.0 and 1e3 are whole, as far as a double can tell. */
static int whole(double d, int64_t *ret)
{
	if (d != floor(d))
		return -EINVAL;
	if (d < -(double)EXACT || d > (double)EXACT)
		return -ERANGE;
	*ret = (int64_t)d;
	return 0;
}

int jv_i64(struct jv v, int64_t *ret)
{
	if (yyjson_is_real(v.val))
		return whole(unsafe_yyjson_get_real(v.val), ret);
	if (!yyjson_is_int(v.val))
		return -EINVAL;
	if (yyjson_is_uint(v.val) && unsafe_yyjson_get_uint(v.val) > INT64_MAX)
		return -ERANGE;
	*ret = unsafe_yyjson_get_sint(v.val);
	return 0;
}

int jv_u64(struct jv v, uint64_t *ret)
{
	int64_t i;
	int r;

	if (yyjson_is_uint(v.val)) {
		*ret = unsafe_yyjson_get_uint(v.val);
		return 0;
	}
	r = jv_i64(v, &i);
	if (r < 0)
		return r;
	if (i < 0)
		return -ERANGE;
	*ret = (uint64_t)i;
	return 0;
}

int jv_double(struct jv v, double *ret)
{
	if (!yyjson_is_num(v.val))
		return -EINVAL;
	*ret = yyjson_get_num(v.val);
	return 0;
}

int jv_bool(struct jv v, bool *ret)
{
	if (!yyjson_is_bool(v.val))
		return -EINVAL;
	*ret = unsafe_yyjson_get_bool(v.val);
	return 0;
}

struct jv_iter jv_iter(struct jv v)
{
	struct jv_iter it = { .of = v, .index = SIZE_MAX };

	if (yyjson_is_ctn(v.val) && unsafe_yyjson_get_len(v.val) > 0)
		it.next = unsafe_yyjson_get_first(v.val);
	return it;
}

bool jv_next(struct jv_iter *it)
{
	yyjson_val *v = it->next;

	if (!v)
		return false;
	it->index++;
	if (yyjson_is_obj(it->of.val)) {
		it->key = (struct str){ unsafe_yyjson_get_str(v), unsafe_yyjson_get_len(v) };
		v++; /* a key's value stands behind it */
	}
	it->value.val = v;
	it->next = it->index + 1 < unsafe_yyjson_get_len(it->of.val) ? unsafe_yyjson_get_next(v)
								     : NULL;
	return true;
}
