#include "sandbox/pairs.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "json/jv.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define PAIRS_JSON_MAX (1u << 20)

static const char *put_text(char **at, const char *s)
{
	size_t n = strlen(s) + 1;
	char *begin = *at;

	memcpy(begin, s, n);
	*at += n;
	return begin;
}

int pairs_copy(const struct sandbox_pair *items, size_t n, struct pairs *ret)
{
	size_t size = n * sizeof(*items);
	struct sandbox_pair *copy;
	char *text;

	if (n == 0) {
		*ret = (struct pairs){ 0 };
		return 0;
	}
	for (size_t i = 0; i < n; i++)
		size += strlen(items[i].name) + strlen(items[i].value) + 2;
	copy = malloc(size);
	if (!copy)
		return -ENOMEM;
	text = (char *)(copy + n);
	for (size_t i = 0; i < n; i++) {
		copy[i].name = put_text(&text, items[i].name);
		copy[i].value = put_text(&text, items[i].value);
	}
	*ret = (struct pairs){ copy, n };
	return 0;
}

static bool has_name(const struct sandbox_pair *items, size_t n, const char *name)
{
	for (size_t i = 0; i < n; i++)
		if (strcmp(items[i].name, name) == 0)
			return true;
	return false;
}

int pairs_merge(const struct sandbox_pair *base, size_t n_base, const struct sandbox_pair *over,
		size_t n_over, struct pairs *ret)
{
	struct sandbox_pair *both = calloc(n_base + n_over + 1, sizeof(*both));
	size_t n = 0;
	int r;

	if (!both)
		return -ENOMEM;
	for (size_t i = 0; i < n_base; i++)
		if (!has_name(over, n_over, base[i].name))
			both[n++] = base[i];
	for (size_t i = 0; i < n_over; i++)
		both[n++] = over[i];
	r = pairs_copy(both, n, ret);
	free(both);
	return r;
}

void pairs_done(struct pairs *p)
{
	free(p->items);
	*p = (struct pairs){ 0 };
}

void pairs_write(const struct sandbox_pair *items, size_t n, struct jw *w)
{
	jw_object_begin(w);
	for (size_t i = 0; i < n; i++)
		jw_str_field(w, items[i].name, items[i].value);
	jw_object_end(w);
}

static int parse_members(struct jv object, struct pairs *ret)
{
	size_t n = jv_len(object), i = 0;
	struct sandbox_pair *items = calloc(n + 1, sizeof(*items));
	int r = items ? 0 : -ENOMEM;

	if (r == 0)
		JV_FOREACH (object, it) {
			items[i].name = it.key.data; /* the parser ends its texts with a NUL */
			items[i].value = jv_text(it.value);
			if (!items[i].value || strlen(items[i].name) != it.key.len)
				r = -EINVAL;
			i++;
		}
	if (r == 0)
		r = pairs_copy(items, i, ret);
	free(items);
	return r;
}

int pairs_parse(const char *json, struct pairs *ret)
{
	struct jv_doc *doc = NULL;
	int r;

	if (!json || json[0] == '\0') {
		*ret = (struct pairs){ 0 };
		return 0;
	}
	r = jv_parse(json, strlen(json), PAIRS_JSON_MAX, &doc, NULL);
	if (r == 0)
		r = jv_kind(jv_root(doc)) == JV_OBJECT ? parse_members(jv_root(doc), ret) : -EINVAL;
	(void)jv_free(doc);
	return r;
}

int pairs_read(struct jv v, struct pairs *ret)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	int r;

	if (jv_kind(v) == JV_ABSENT)
		return 0;
	jw_value(&w, v);
	r = jw_end(&w);
	return r < 0 ? r : pairs_parse(buf_str(&b), ret);
}

const struct sandbox_pair *pairs_given(struct arena *a, const struct jv_pairs *from)
{
	struct sandbox_pair *to;

	if (from->len == 0 || from->len == SIZE_MAX)
		return NULL;
	to = arena_array(a, from->len, sizeof(*to));
	for (size_t i = 0; to && i < from->len; i++)
		to[i] = (struct sandbox_pair){ from->items[i].name, from->items[i].value };
	return to;
}
