#include "json/schema_check.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "base/str.h"

#define STEPS_MAX 20000u /* schemas looked at: references may lead in circles */
#define DEPTH_MAX 64u
#define PATH_ROOM 128
#define KEY_ROOM 128

struct checker {
	struct jv root; /* what "#/..." begins at */
	unsigned steps, depth;
	struct err *err;
};

struct spot { /* where in the value we are */
	char path[PATH_ROOM];
};

static int check(struct checker *k, struct jv schema, struct jv v, const struct spot *at);

static int wrong(struct checker *k, const struct spot *at, const char *text)
{
	return err_set(k->err, EINVAL, "%s: %s", at->path[0] ? at->path : "arguments", text);
}

static struct spot below(const struct spot *at, struct str key, size_t index)
{
	struct spot s = { "" };

	/* One that is too long is left out: it is for a person. */
	if (key.data)
		(void)str_format(s.path, sizeof(s.path), "%s%s%.*s", at->path,
				 at->path[0] ? "." : "", (int)key.len, key.data);
	else
		(void)str_format(s.path, sizeof(s.path), "%s[%zu]", at->path, index);
	return s;
}

/* ---- values ---- */

static bool is_equal(struct jv a, struct jv b)
{
	struct str s, t;
	double x, y;
	bool p, q;

	if (jv_kind(a) != jv_kind(b) || jv_len(a) != jv_len(b))
		return false;
	switch (jv_kind(a)) {
	case JV_BOOL:
		return jv_bool(a, &p) == 0 && jv_bool(b, &q) == 0 && p == q;
	case JV_NUMBER:
		return jv_double(a, &x) == 0 && jv_double(b, &y) == 0 && !(x < y) && !(x > y);
	case JV_STRING:
		return jv_str(a, &s) == 0 && jv_str(b, &t) == 0 &&
		       memcmp(s.data, t.data, s.len) == 0;
	case JV_ARRAY:
	case JV_OBJECT: /* seldom among choices: taken as right */
	case JV_NULL:
	case JV_ABSENT:
		return true;
	}
	return true;
}

static bool is_of_type(struct jv v, const char *type)
{
	static const struct {
		const char *name;
		enum jv_kind kind;
	} types[] = { { "string", JV_STRING }, { "number", JV_NUMBER }, { "integer", JV_NUMBER },
		      { "boolean", JV_BOOL },  { "array", JV_ARRAY },   { "object", JV_OBJECT },
		      { "null", JV_NULL } };
	double x;

	for (size_t i = 0; i < sizeof(types) / sizeof(types[0]); i++) {
		if (strcmp(types[i].name, type) != 0)
			continue;
		if (jv_kind(v) != types[i].kind)
			return false;
		return strcmp(type, "integer") != 0 || (jv_double(v, &x) == 0 && !(floor(x) < x));
	}
	return true; /* no type that we know */
}

static int check_type(struct checker *k, struct jv type, struct jv v, const struct spot *at)
{
	const char *one = jv_text(type);
	char text[64];

	if (one && !is_of_type(v, one)) {
		(void)snprintf(text, sizeof(text), "want %s %.40s",
			       strchr("aio", one[0]) ? "an" : "a", one);
		return wrong(k, at, strcmp(one, "null") == 0 ? "want null" : text);
	}
	if (jv_kind(type) != JV_ARRAY || jv_len(type) == 0)
		return 0;
	JV_FOREACH (type, it)
		if (!jv_text(it.value) || is_of_type(v, jv_text(it.value)))
			return 0;
	return wrong(k, at, "it is of none of the types that are wanted");
}

static int check_choice(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	struct jv choices = jv_get(schema, "enum"), only = jv_get(schema, "const");

	if (jv_kind(only) != JV_ABSENT && !is_equal(only, v))
		return wrong(k, at, "it is not the value that is wanted");
	if (jv_kind(choices) != JV_ARRAY)
		return 0;
	JV_FOREACH (choices, it)
		if (is_equal(it.value, v))
			return 0;
	return wrong(k, at, "it is none of the values that are allowed");
}

/* ---- bounds ---- */

static int check_bound(struct checker *k, struct jv schema, double have, const char *const keys[2],
		       const char *unit, const struct spot *at)
{
	double bound;
	char text[96];

	if (jv_double(jv_get(schema, keys[0]), &bound) == 0 && have < bound)
		(void)snprintf(text, sizeof(text), "want at least %.15g%s", bound, unit);
	else if (jv_double(jv_get(schema, keys[1]), &bound) == 0 && have > bound)
		(void)snprintf(text, sizeof(text), "want at most %.15g%s", bound, unit);
	else
		return 0;
	return wrong(k, at, text);
}

static size_t count_characters(struct jv v)
{
	struct str s = { 0 };
	size_t n = 0;

	(void)jv_str(v, &s);
	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
	return n;
}

static int check_number(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	static const char *const keys[] = { "minimum", "maximum" };
	double x = 0, bound;
	char text[64];

	(void)jv_double(v, &x);
	if (jv_double(jv_get(schema, "exclusiveMinimum"), &bound) == 0 && x <= bound)
		(void)snprintf(text, sizeof(text), "want more than %.15g", bound);
	else if (jv_double(jv_get(schema, "exclusiveMaximum"), &bound) == 0 && x >= bound)
		(void)snprintf(text, sizeof(text), "want less than %.15g", bound);
	else
		return check_bound(k, schema, x, keys, "", at);
	return wrong(k, at, text);
}

static int check_text(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	static const char *const keys[] = { "minLength", "maxLength" };

	return check_bound(k, schema, (double)count_characters(v), keys, " characters", at);
}

/* ---- lists and objects ---- */

static int check_list(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	static const char *const keys[] = { "minItems", "maxItems" };
	struct jv items = jv_get(schema, "items");
	int r = check_bound(k, schema, (double)jv_len(v), keys, " elements", at);

	if (jv_kind(items) != JV_OBJECT || jv_kind(jv_get(schema, "prefixItems")) != JV_ABSENT)
		return r;
	JV_FOREACH (v, it) {
		struct spot s = below(at, (struct str){ 0 }, it.index);

		if (r == 0)
			r = check(k, items, it.value, &s);
	}
	return r;
}

/* Absent also where the key is longer than any that a schema has. */
static struct jv get(struct jv object, struct str key)
{
	char name[KEY_ROOM];

	if (key.len >= sizeof(name))
		return (struct jv){ NULL };
	(void)snprintf(name, sizeof(name), "%.*s", (int)key.len, key.data);
	return jv_get(object, name);
}

static int check_member(struct checker *k, struct jv schema, const struct jv_iter *it,
			const struct spot *at)
{
	struct jv own = get(jv_get(schema, "properties"), it->key);
	struct jv rest = jv_get(schema, "additionalProperties");
	struct spot s = below(at, it->key, 0);
	bool is_open = true;

	if (jv_kind(own) != JV_ABSENT)
		return check(k, own, it->value, &s);
	if (jv_kind(jv_get(schema, "patternProperties")) != JV_ABSENT)
		return 0;
	if (jv_kind(rest) == JV_OBJECT)
		return check(k, rest, it->value, &s);
	if (jv_bool(rest, &is_open) == 0 && !is_open)
		return wrong(k, &s, "there is no such argument");
	return 0;
}

static int check_object(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	int r = 0;

	JV_FOREACH (jv_get(schema, "required"), it) {
		struct str name = { 0 };
		struct spot s;

		if (r < 0 || jv_str(it.value, &name) < 0 || jv_kind(get(v, name)) != JV_ABSENT)
			continue;
		s = below(at, name, 0);
		r = wrong(k, &s, "it must be given");
	}
	JV_FOREACH (v, it)
		if (r == 0)
			r = check_member(k, schema, &it, at);
	return r;
}

/* ---- schemas made of schemas ---- */

/* "#", "#/$defs/name": of this document. Absent: somewhere else. */
static struct jv resolve(struct jv root, const char *ref)
{
	struct str rest, part;
	struct jv v = root;

	if (strcmp(ref, "#") == 0)
		return root;
	if (strncmp(ref, "#/", 2) != 0 || strpbrk(ref, "~%"))
		return (struct jv){ NULL };
	rest = str_of(ref + 2);
	while (str_split(&rest, '/', &part))
		v = get(v, part);
	return v;
}

/* NOTE: of oneOf, too, more than one may fit: where a keyword is passed over, two that differ by it
 * look alike. */
static int check_any(struct checker *k, struct jv list, struct jv v, const struct spot *at)
{
	struct err *err = k->err, first = { 0 };
	int r = 0;

	if (jv_kind(list) != JV_ARRAY || jv_len(list) == 0)
		return 0;
	JV_FOREACH (list, it) {
		struct err here = { 0 };

		k->err = &here;
		r = check(k, it.value, v, at);
		k->err = err;
		if (r == 0)
			return 0;
		if (first.code == 0 || strstr(first.text, "want null"))
			first = here;
	}
	return err_set(err, EINVAL, "%s", first.text);
}

static int check_parts(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	const char *ref = jv_text(jv_get(schema, "$ref"));
	int r = ref ? check(k, resolve(k->root, ref), v, at) : 0;

	JV_FOREACH (jv_get(schema, "allOf"), it)
		if (r == 0)
			r = check(k, it.value, v, at);
	if (r == 0)
		r = check_any(k, jv_get(schema, "anyOf"), v, at);
	if (r == 0)
		r = check_any(k, jv_get(schema, "oneOf"), v, at);
	return r;
}

static int check_kind(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	switch (jv_kind(v)) {
	case JV_NUMBER:
		return check_number(k, schema, v, at);
	case JV_STRING:
		return check_text(k, schema, v, at);
	case JV_ARRAY:
		return check_list(k, schema, v, at);
	case JV_OBJECT:
		return check_object(k, schema, v, at);
	case JV_BOOL:
	case JV_NULL:
	case JV_ABSENT:
		return 0;
	}
	return 0;
}

static int check(struct checker *k, struct jv schema, struct jv v, const struct spot *at)
{
	bool takes = true;
	int r;

	if (jv_bool(schema, &takes) == 0 && !takes)
		return wrong(k, at, "there is no such argument");
	if (jv_kind(schema) != JV_OBJECT || ++k->steps > STEPS_MAX || k->depth == DEPTH_MAX)
		return 0;
	k->depth++;
	r = check_type(k, jv_get(schema, "type"), v, at);
	if (r == 0)
		r = check_choice(k, schema, v, at);
	if (r == 0)
		r = check_kind(k, schema, v, at);
	if (r == 0)
		r = check_parts(k, schema, v, at);
	k->depth--;
	return r;
}

int schema_check(struct jv schema, struct jv value, struct err *err)
{
	struct checker k = { .root = schema, .err = err };
	struct spot at = { "" };

	return check(&k, schema, value, &at);
}
