#include "cli/show.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "cli/escape.h"
#include "cli/when.h"

#define DEPTH_MAX 8

static const char *show_number(struct jv v, char *dst, size_t size)
{
	int64_t i;
	double d = 0;

	dst[0] = '\0';
	if (jv_i64(v, &i) == 0)
		(void)snprintf(dst, size, "%" PRId64, i);
	else if (jv_double(v, &d) == 0)
		(void)snprintf(dst, size, "%g", d);
	return dst;
}

static const char *show_word(const char *word, char *dst, size_t size)
{
	(void)str_copy(dst, size, word);
	return dst;
}

const char *show_text(struct jv v, char *dst, size_t size)
{
	bool yes = false;
	struct str s;

	switch (jv_kind(v)) {
	case JV_STRING:
		(void)jv_str(v, &s);
		if (str_format(dst, size, "%.*s", (int)s.len, s.data) < 0)
			dst[0] = '\0';
		return dst;
	case JV_NUMBER:
		return show_number(v, dst, size);
	case JV_BOOL:
		(void)jv_bool(v, &yes);
		return show_word(yes ? "yes" : "no", dst, size);
	default:
		return show_word("-", dst, size);
	}
}

static void print_members(struct jv v, unsigned depth, FILE *to);

static void print_text(struct str s, FILE *to)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)escape_text(&b, s.data, s.len);
	(void)fputs(buf_str(&b), to);
}

static void print_value(struct jv v, unsigned depth, FILE *to)
{
	char text[64];
	struct str s;

	if (jv_kind(v) == JV_OBJECT || jv_kind(v) == JV_ARRAY) {
		(void)fputs(jv_len(v) ? "\n" : "-\n", to);
		print_members(v, depth + 1, to);
		return;
	}
	if (jv_str(v, &s) == 0)
		print_text(s, to);
	else
		(void)fputs(show_text(v, text, sizeof(text)), to);
	(void)fputc('\n', to);
}

/* The document's depth is bounded by its reader; ours is for the eye. */
static void print_members(struct jv v, unsigned depth, FILE *to)
{
	if (depth > DEPTH_MAX)
		return;
	JV_FOREACH (v, it) {
		(void)fprintf(to, "%*s", (int)(2 * depth), "");
		if (it.key.data)
			print_text(it.key, to);
		(void)fputs(it.key.data ? ": " : "- ", to);
		print_value(it.value, depth, to);
	}
}

void show_object(struct jv object, FILE *to)
{
	print_members(object, 0, to);
}

/* sign 1: from then until now; -1: from now until then. */
static const char *show_span(struct jv iso, int sign, char *dst, size_t size)
{
	const char *text = jv_text(iso);
	char span[WHEN_SIZE];
	int64_t at, ms;

	if (!text || when_parse(text, &at) < 0)
		return show_word("-", dst, size);
	ms = sign * (clock_wall_ms() - at);
	if (ms < 1000)
		return show_word("0s", dst, size); /* two clocks do not agree on less */
	when_span(ms, span);
	return show_word(span, dst, size);
}

const char *show_since(struct jv iso, char *dst, size_t size)
{
	return show_span(iso, 1, dst, size);
}

const char *show_until(struct jv iso, char *dst, size_t size)
{
	return show_span(iso, -1, dst, size);
}
