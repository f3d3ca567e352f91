#include "config/yaml_json.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/utf8.h"
#include "config/yaml_event.h"
#include "json/jw.h"

#define DIGITS "0123456789"
#define NUMBER_MAX 64u /* longer ones are texts */

struct reader {
	yaml_parser_t parser;
	const char *file;
	struct jw w;
	bool is_exact;
	struct err *err;
};

static int bad(const struct reader *r, const yaml_event_t *e, const char *what)
{
	return err_set(r->err, EINVAL, "%s:%zu: %s", r->file, e->start_mark.line + 1, what);
}

static int next(struct reader *r, yaml_event_t *ret)
{
	const char *why;

	if (yaml_parser_parse(&r->parser, ret)) {
		why = yaml_event_problem(ret);
		return why ? bad(r, ret, why) : 0;
	}
	memset(ret, 0, sizeof(*ret));
	if (r->parser.error == YAML_MEMORY_ERROR)
		return err_sys(r->err, ENOMEM, "%s", r->file);
	return err_set(r->err, EINVAL, "%s:%zu: %s", r->file, r->parser.problem_mark.line + 1,
		       r->parser.problem ? r->parser.problem : "is not YAML");
}

/* As JSON writes numbers; everything else that YAML calls one (hex, .inf, 1_000) is a text. */
static bool is_number(const char *s)
{
	size_t n;

	s += *s == '-';
	n = strspn(s, DIGITS);
	if (n == 0 || (n > 1 && *s == '0'))
		return false;
	s += n;
	if (*s == '.') {
		n = strspn(++s, DIGITS);
		if (n == 0)
			return false;
		s += n;
	}
	if (*s == 'e' || *s == 'E') {
		s++;
		s += *s == '+' || *s == '-';
		n = strspn(s, DIGITS);
		if (n == 0)
			return false;
		s += n;
	}
	return *s == '\0';
}

/* As the core schema of YAML 1.2 writes numbers to the base of ten. */
static bool is_core_decimal(const char *s)
{
	size_t whole, rest = 0;

	s += *s == '-' || *s == '+';
	whole = strspn(s, DIGITS);
	s += whole;
	if (*s == '.') {
		rest = strspn(++s, DIGITS);
		s += rest;
	}
	if (whole + rest == 0)
		return false;
	if (*s != 'e' && *s != 'E')
		return *s == '\0';
	s++;
	s += *s == '+' || *s == '-';
	return *s && s[strspn(s, DIGITS)] == '\0';
}

/* Whether that schema takes a plain scalar for something else than a text. */
static bool is_core(const char *s)
{
	static const char *const words[] = { "True",  "TRUE",  "False", "FALSE", "Null",  "NULL",
					     ".nan",  ".NaN",  ".NAN",  ".inf",  ".Inf",  ".INF",
					     "-.inf", "-.Inf", "-.INF", "+.inf", "+.Inf", "+.INF" };

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strcmp(s, words[i]) == 0)
			return true;
	if (strncmp(s, "0x", 2) == 0)
		return s[2] && s[2 + strspn(s + 2, DIGITS "abcdefABCDEF")] == '\0';
	if (strncmp(s, "0o", 2) == 0)
		return s[2] && s[2 + strspn(s + 2, "01234567")] == '\0';
	return is_core_decimal(s);
}

/* A text to us, and something else to others. */
static bool is_odd(const yaml_event_t *e)
{
	const char *v = (const char *)e->data.scalar.value;

	return e->type == YAML_SCALAR_EVENT && e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
	       is_core(v) && (!is_number(v) || e->data.scalar.length >= NUMBER_MAX);
}

static void write_scalar(struct reader *r, const yaml_event_t *e)
{
	const char *v = (const char *)e->data.scalar.value;
	bool is_plain = e->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;

	if (is_plain && yaml_event_is_null(e))
		jw_null(&r->w);
	else if (is_plain && (strcmp(v, "true") == 0 || strcmp(v, "false") == 0))
		jw_bool(&r->w, v[0] == 't');
	else if (is_plain && is_number(v) && e->data.scalar.length < NUMBER_MAX)
		jw_raw(&r->w, v, e->data.scalar.length);
	else
		jw_string_n(&r->w, v, e->data.scalar.length);
}

/* What stands there, up to its end. Recursion is bounded by YAML_JSON_DEPTH. */
static int read_value(struct reader *r, yaml_event_t *e, unsigned depth);

static int read_inside(struct reader *r, bool is_map, unsigned depth)
{
	for (;;) {
		_cleanup_(yaml_event_done) yaml_event_t e = { 0 };
		_cleanup_(yaml_event_done) yaml_event_t value = { 0 };
		int n = next(r, &e);

		if (n < 0)
			return n;
		if (e.type == YAML_MAPPING_END_EVENT || e.type == YAML_SEQUENCE_END_EVENT)
			return 0;
		if (!is_map) {
			n = read_value(r, &e, depth);
		} else {
			if (e.type != YAML_SCALAR_EVENT)
				return bad(r, &e, "a key is no text");
			jw_key_n(&r->w, (const char *)e.data.scalar.value, e.data.scalar.length);
			n = next(r, &value);
			if (n == 0)
				n = read_value(r, &value, depth);
		}
		if (n < 0)
			return n;
	}
}

static int read_value(struct reader *r, yaml_event_t *e, unsigned depth)
{
	bool is_map = e->type == YAML_MAPPING_START_EVENT;
	int n;

	if (r->is_exact && is_odd(e))
		return bad(r, e, "means something else to other readers: quote it");
	if (e->type == YAML_SCALAR_EVENT) {
		write_scalar(r, e);
		return 0;
	}
	if (!is_map && e->type != YAML_SEQUENCE_START_EVENT)
		return bad(r, e, "is no value");
	if (depth == YAML_JSON_DEPTH)
		return bad(r, e, "is nested too deep");
	if (is_map)
		jw_object_begin(&r->w);
	else
		jw_array_begin(&r->w);
	n = read_inside(r, is_map, depth + 1);
	if (n < 0)
		return n;
	if (is_map)
		jw_object_end(&r->w);
	else
		jw_array_end(&r->w);
	return 0;
}

static int read_stream(struct reader *r)
{
	bool has_document = false;

	for (;;) {
		_cleanup_(yaml_event_done) yaml_event_t e = { 0 };
		int n = next(r, &e);

		if (n < 0)
			return n;
		switch (e.type) {
		case YAML_STREAM_START_EVENT:
		case YAML_DOCUMENT_END_EVENT:
			break;
		case YAML_DOCUMENT_START_EVENT:
			if (has_document)
				return bad(r, &e, "a second document");
			has_document = true;
			break;
		case YAML_STREAM_END_EVENT:
			if (!has_document)
				jw_null(&r->w);
			return 0;
		default:
			n = read_value(r, &e, 0);
			if (n < 0)
				return n;
			break;
		}
	}
}

static int read_all(const char *file, const void *yaml, size_t n, bool is_exact, struct buf *ret,
		    struct err *err)
{
	struct reader r = { .file = file, .w = jw_begin(ret), .is_exact = is_exact, .err = err };
	int failed;

	if (n > YAML_JSON_MAX)
		return err_set(err, E2BIG, "%s: at most %u bytes", file, YAML_JSON_MAX);
	if (!utf8_is_valid(yaml, n)) /* else the library would guess at UTF-16 */
		return err_set(err, EINVAL, "%s: is not UTF-8", file);
	if (!yaml_parser_initialize(&r.parser))
		return err_sys(err, ENOMEM, "%s", file);
	yaml_parser_set_encoding(&r.parser, YAML_UTF8_ENCODING);
	yaml_parser_set_input_string(&r.parser, yaml, n);
	failed = read_stream(&r);
	yaml_parser_delete(&r.parser);
	if (failed < 0)
		return failed;
	failed = jw_end(&r.w);
	return failed < 0 ? err_sys(err, failed, "%s", file) : 0;
}

int yaml_json(const char *file, const void *yaml, size_t n, struct buf *ret, struct err *err)
{
	return read_all(file, yaml, n, false, ret, err);
}

int yaml_json_exact(const char *file, const void *yaml, size_t n, struct buf *ret, struct err *err)
{
	return read_all(file, yaml, n, true, ret, err);
}
