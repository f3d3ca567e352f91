#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "config/source.h"
#include "config/yaml_event.h"

#define DEPTH_MAX 4u
#define NAME_ROOM 256u
#define VALUE_ROOM 8192u /* a sequence, joined */

struct reader {
	yaml_parser_t parser;
	const char *file;
	source_fn fn;
	void *user;
	struct err *err;
	char name[NAME_ROOM]; /* the keys on the way down, joined */
};

static int bad(const struct reader *r, const yaml_event_t *e, const char *what)
{
	return err_set(r->err, EINVAL, "%s:%zu: %s", r->file, e->start_mark.line + 1, what);
}

static int next(struct reader *r, yaml_event_t *ret)
{
	if (yaml_parser_parse(&r->parser, ret))
		return 0;
	memset(ret, 0, sizeof(*ret));
	if (r->parser.error == YAML_MEMORY_ERROR)
		return err_sys(r->err, ENOMEM, "%s", r->file);
	return err_set(r->err, EINVAL, "%s:%zu: %s", r->file, r->parser.problem_mark.line + 1,
		       r->parser.problem ? r->parser.problem : "is not YAML");
}

static const char *text_of(const yaml_event_t *e)
{
	return (const char *)e->data.scalar.value;
}

static int check_plain(const struct reader *r, const yaml_event_t *e)
{
	const char *why = yaml_event_problem(e);

	return why ? bad(r, e, why) : 0;
}

/* Down one key: the name so far and the key, joined. Returns the length to come back to. */
static int enter(struct reader *r, const yaml_event_t *key, size_t *ret_before)
{
	size_t before = strlen(r->name), n = key->data.scalar.length;

	if (n == 0)
		return bad(r, key, "a key is empty");
	if (before + 1 + n >= sizeof(r->name))
		return bad(r, key, "a key is too long");
	if (before > 0)
		r->name[before] = '_';
	memcpy(r->name + before + (before > 0), text_of(key), n + 1);
	*ret_before = before;
	return 0;
}

/* "a,b,c" from the scalars up to the sequence's end. */
static int read_sequence(struct reader *r, size_t line)
{
	_cleanup_(buf_done) struct buf all = { .max = VALUE_ROOM };

	for (;;) {
		_cleanup_(yaml_event_done) yaml_event_t e = { 0 };
		int n = next(r, &e);

		if (n == 0)
			n = check_plain(r, &e);
		if (n < 0)
			return n;
		if (e.type == YAML_SEQUENCE_END_EVENT)
			return r->fn(r->user, r->name, buf_str(&all), line, r->err);
		if (e.type != YAML_SCALAR_EVENT || yaml_event_is_null(&e) ||
		    strchr(text_of(&e), ','))
			return bad(r, &e, "want a list of texts without commas");
		n = buf_printf(&all, "%s%s", all.len ? "," : "", text_of(&e));
		if (n == -E2BIG)
			return bad(r, &e, "the list is too long");
		if (n < 0)
			return err_sys(r->err, n, "%s", r->file);
	}
}

/* Up to the mapping's end. Recursion is bounded by DEPTH_MAX. */
static int read_mapping(struct reader *r, unsigned depth);

static int read_value(struct reader *r, unsigned depth)
{
	_cleanup_(yaml_event_done) yaml_event_t e = { 0 };
	size_t line;
	int n = next(r, &e);

	if (n == 0)
		n = check_plain(r, &e);
	if (n < 0)
		return n;
	line = e.start_mark.line + 1;
	if (e.type == YAML_SCALAR_EVENT)
		return r->fn(r->user, r->name, yaml_event_is_null(&e) ? NULL : text_of(&e), line,
			     r->err);
	if (e.type == YAML_SEQUENCE_START_EVENT)
		return read_sequence(r, line);
	if (depth == DEPTH_MAX)
		return bad(r, &e, "is nested too deep");
	return read_mapping(r, depth + 1);
}

static int read_mapping(struct reader *r, unsigned depth)
{
	for (;;) {
		_cleanup_(yaml_event_done) yaml_event_t key = { 0 };
		size_t before = 0;
		int n = next(r, &key);

		if (n == 0)
			n = check_plain(r, &key);
		if (n == 0 && key.type == YAML_MAPPING_END_EVENT)
			return 0;
		if (n == 0 && key.type != YAML_SCALAR_EVENT)
			n = bad(r, &key, "want a plain name as key");
		if (n == 0)
			n = enter(r, &key, &before);
		if (n == 0)
			n = read_value(r, depth);
		if (n < 0)
			return n;
		r->name[before] = '\0';
	}
}

/* The one document: a mapping, or nothing at all. */
static int read_document(struct reader *r, const yaml_event_t *e)
{
	int n = check_plain(r, e);

	if (n < 0)
		return n;
	if (e->type == YAML_MAPPING_START_EVENT)
		return read_mapping(r, 1);
	if (e->type == YAML_SCALAR_EVENT && yaml_event_is_null(e))
		return 0;
	return bad(r, e, "want names and values");
}

static int read_stream(struct reader *r)
{
	unsigned documents = 0;

	for (;;) {
		_cleanup_(yaml_event_done) yaml_event_t e = { 0 };
		int n = next(r, &e);

		if (n < 0)
			return n;
		switch (e.type) {
		case YAML_STREAM_END_EVENT:
			return 0;
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (documents++ > 0)
				return bad(r, &e, "want one document");
			break;
		default:
			n = read_document(r, &e);
			if (n < 0)
				return n;
		}
	}
}

int yaml_read(const char *file, const char *text, size_t n, source_fn fn, void *user,
	      struct err *err)
{
	struct reader r = { .file = file, .fn = fn, .user = user, .err = err };
	int result;

	if (!yaml_parser_initialize(&r.parser))
		return err_sys(err, ENOMEM, "%s", file);
	yaml_parser_set_input_string(&r.parser, (const unsigned char *)text, n);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	result = read_stream(&r);
	yaml_parser_delete(&r.parser);
	return result;
}
