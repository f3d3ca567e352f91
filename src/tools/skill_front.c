#include "tools/skill_front.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "base/utf8.h"
#include "config/yaml_json.h"
#include "json/jv.h"

#define FENCE "---"
#define BYTE_ORDER_MARK "\xef\xbb\xbf"

struct reading {
	struct jv head; /* of a document that lives as long as this */
	struct err *err;
};

bool skill_name_is_valid(const char *name)
{
	size_t n = strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789-");

	return n > 0 && n <= SKILL_NAME_MAX && name[n] == '\0' && name[0] != '-' &&
	       name[n - 1] != '-' && !strstr(name, "--");
}

/* The line at *at, without its end; *at is behind it then. */
static struct str take_line(struct str text, size_t *at)
{
	const char *from = text.data + *at;
	const char *end = memchr(from, '\n', text.len - *at);
	size_t n = end ? (size_t)(end - from) : text.len - *at;

	*at += n + (end != NULL);
	return (struct str){ from, n };
}

static bool is_fence(struct str line)
{
	return str_starts(line, FENCE) &&
	       str_is(str_trim((struct str){ line.data, line.len }), FENCE);
}

/* From the first fence on, which YAML reads as the beginning of a document: so its lines are the
 * file's. */
static int find_head(struct str text, struct str *ret, struct err *err)
{
	size_t at = 0, end;

	if (str_starts(text, BYTE_ORDER_MARK))
		text = (struct str){ text.data + 3, text.len - 3 };
	if (!is_fence(take_line(text, &at)))
		return err_set(err, EINVAL, SKILL_MANIFEST ":1: want a line of --- first");
	while (at < text.len) {
		end = at;
		if (!is_fence(take_line(text, &at)))
			continue;
		if (end > SKILL_FRONT_MAX)
			return err_set(err, E2BIG,
				       SKILL_MANIFEST ": its head has %zu bytes, limit %u", end,
				       SKILL_FRONT_MAX);
		*ret = (struct str){ text.data, end };
		return 0;
	}
	return err_set(err, EINVAL, SKILL_MANIFEST ": its head has no end: want a line of ---");
}

static size_t count_characters(struct str s)
{
	size_t n = 0;

	for (size_t i = 0; i < s.len; i++)
		n += ((unsigned char)s.data[i] & 0xc0) != 0x80;
	return n;
}

/* A text of 1 to max characters, without NUL bytes; absent: NULL, when it need not be there. */
static int read_text(const struct reading *r, const char *key, size_t max, bool is_needed,
		     const char **ret)
{
	struct jv v = jv_get(r->head, key);
	const char *text = jv_text(v);
	size_t n;

	*ret = NULL;
	if (jv_kind(v) == JV_ABSENT)
		return is_needed ? err_set(r->err, EINVAL, SKILL_MANIFEST ": has no %s", key) : 0;
	if (!text)
		return err_set(r->err, EINVAL, SKILL_MANIFEST ": %s: want a text", key);
	n = count_characters(str_of(text));
	if (n == 0 || n > max)
		return err_set(r->err, EINVAL,
			       SKILL_MANIFEST ": %s: want 1 to %zu characters, has %zu", key, max,
			       n);
	*ret = text;
	return 0;
}

static int check_metadata(const struct reading *r)
{
	struct jv v = jv_get(r->head, "metadata");

	if (jv_kind(v) == JV_ABSENT)
		return 0;
	if (jv_kind(v) != JV_OBJECT)
		return err_set(r->err, EINVAL,
			       SKILL_MANIFEST ": metadata: want texts under their names");
	JV_FOREACH (v, it) {
		if (jv_kind(it.value) != JV_STRING)
			return err_set(r->err, EINVAL,
				       SKILL_MANIFEST ": metadata.%.*s: want a text; quote it",
				       (int)(it.key.len < 64 ? it.key.len : 64), it.key.data);
	}
	return 0;
}

static int check(const struct reading *r, const char *dir, struct skill_front *ret)
{
	const char *other;
	int n;

	if (jv_kind(r->head) != JV_OBJECT)
		return err_set(r->err, EINVAL,
			       SKILL_MANIFEST ": its head must have a name and a description");
	n = read_text(r, "name", SKILL_NAME_MAX, true, &ret->name);
	if (n == 0 && !skill_name_is_valid(ret->name))
		n = err_set(r->err, EINVAL,
			    SKILL_MANIFEST ": name: want [a-z0-9] and single hyphens inside");
	if (n == 0 && strcmp(ret->name, dir) != 0)
		n = err_set(r->err, EINVAL,
			    SKILL_MANIFEST ": name: is '%s', but its directory is '%.64s'",
			    ret->name, dir);
	if (n == 0)
		n = read_text(r, "description", SKILL_ABOUT_MAX, true, &ret->about);
	if (n == 0)
		n = read_text(r, "compatibility", SKILL_NEEDS_MAX, false, &other);
	if (n == 0)
		n = read_text(r, "license", SKILL_ABOUT_MAX, false, &other);
	return n < 0 ? n : check_metadata(r);
}

static void doc_done(struct jv_doc **doc)
{
	(void)jv_free(*doc);
}

int skill_front_read(const char *text, size_t n, const char *dir, struct arena *a,
		     struct skill_front *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf json = { .max = 8 * SKILL_FRONT_MAX };
	_cleanup_(doc_done) struct jv_doc *doc = NULL;
	struct reading reading = { .err = err };
	struct skill_front front = { 0 };
	struct str head = { 0 };
	int r;

	if (!utf8_is_valid(text, n))
		return err_set(err, EINVAL, SKILL_MANIFEST ": is not UTF-8");
	r = find_head((struct str){ text, n }, &head, err);
	if (r == 0)
		r = yaml_json_exact(SKILL_MANIFEST, head.data, head.len, &json, err);
	if (r == 0)
		r = jv_parse(json.data, json.len, json.max, &doc, err);
	if (r < 0)
		return r;
	reading.head = jv_root(doc);
	r = check(&reading, dir, &front);
	if (r < 0)
		return r;
	front.name = arena_strndup(a, front.name, strlen(front.name));
	front.about = arena_strndup(a, front.about, strlen(front.about));
	front.json = arena_strndup(a, json.data, json.len);
	front.json_len = json.len;
	if (!front.name || !front.about || !front.json)
		return err_sys(err, ENOMEM, SKILL_MANIFEST);
	*ret = front;
	return 0;
}
