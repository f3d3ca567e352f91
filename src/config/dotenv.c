#include <errno.h>
#include <stdbool.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "config/source.h"

#define VALUE_ROOM 65536u

struct scanner {
	const char *p, *end;
	size_t line;
	const char *file;
	struct err *err;
};

static bool is_name(char c, bool first)
{
	return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_' ||
	       (!first && c >= '0' && c <= '9');
}

static bool at(const struct scanner *s, char c)
{
	return s->p < s->end && *s->p == c;
}

static void skip_blanks(struct scanner *s)
{
	while (at(s, ' ') || at(s, '\t'))
		s->p++;
}

static void skip_line(struct scanner *s)
{
	while (s->p < s->end && *s->p != '\n')
		s->p++;
	if (s->p < s->end) {
		s->p++;
		s->line++;
	}
}

/* "NAME=", with `export` before it or not; an empty slice when the line is something else. */
static struct str scan_name(struct scanner *s)
{
	struct str name = { 0 };

	skip_blanks(s);
	if (s->end - s->p > 7 && strncmp(s->p, "export", 6) == 0 &&
	    (s->p[6] == ' ' || s->p[6] == '\t')) {
		s->p += 6;
		skip_blanks(s);
	}
	name.data = s->p;
	while (s->p < s->end && is_name(*s->p, name.len == 0)) {
		s->p++;
		name.len++;
	}
	skip_blanks(s);
	if (!at(s, '='))
		return (struct str){ 0 };
	s->p++;
	skip_blanks(s);
	return name;
}

static char unescaped(char c)
{
	return c == 'n' ? '\n' : c == 't' ? '\t' : c == 'r' ? '\r' : c;
}

/* Behind an opening quote, up to its fellow; it may be lines away. */
static int scan_quoted(struct scanner *s, char quote, struct buf *ret)
{
	size_t begin = s->line;
	int r = 0;

	for (; s->p < s->end && *s->p != quote && r == 0; s->p++) {
		char c = *s->p;

		s->line += c == '\n';
		if (quote == '"' && c == '\\' && s->p + 1 < s->end && strchr("nrt\\\"$", s->p[1]))
			c = unescaped(*++s->p);
		r = buf_putc(ret, c);
	}
	if (r < 0)
		return err_sys(s->err, r, "%s:%zu", s->file, begin);
	if (s->p == s->end)
		return err_set(s->err, EINVAL, "%s:%zu: the quote does not end", s->file, begin);
	s->p++;
	return 0;
}

/* Up to the line's end or a comment, without blanks at the ends. */
static int scan_bare(struct scanner *s, struct buf *ret)
{
	struct str text = { s->p, 0 };
	int r;

	for (; s->p < s->end && *s->p != '\n'; s->p++) {
		bool blank = s->p == text.data || s->p[-1] == ' ' || s->p[-1] == '\t';

		if (*s->p == '#' && blank)
			break;
		text.len++;
	}
	text = str_trim(text);
	r = buf_append(ret, text.data, text.len);
	return r < 0 ? err_sys(s->err, r, "%s:%zu", s->file, s->line) : 0;
}

static int scan_value(struct scanner *s, struct buf *ret)
{
	if (at(s, '"') || at(s, '\'')) {
		char quote = *s->p++;

		return scan_quoted(s, quote, ret);
	}
	return scan_bare(s, ret);
}

static int scan_line(struct scanner *s, source_fn fn, void *user)
{
	_cleanup_(buf_done) struct buf value = { .max = VALUE_ROOM };
	size_t line = s->line;
	struct str name = scan_name(s);
	char copy[256];
	int r;

	if (name.len == 0)
		return 0;
	r = scan_value(s, &value);
	if (r < 0)
		return r;
	if (name.len >= sizeof(copy)) /* nothing of ours */
		return 0;
	memcpy(copy, name.data, name.len);
	copy[name.len] = '\0';
	r = fn(user, copy, buf_str(&value), line, s->err);
	if (value.data) /* it may be a secret */
		explicit_bzero(value.data, value.len);
	return r;
}

int dotenv_read(const char *file, const char *text, size_t n, source_fn fn, void *user,
		struct err *err)
{
	struct scanner s = { text, text + n, 1, file, err };

	if (n > 0 && memchr(text, '\0', n))
		return err_set(err, EINVAL, "%s: has a NUL byte", file);
	while (s.p < s.end) {
		int r = scan_line(&s, fn, user);

		if (r < 0)
			return r;
		skip_line(&s);
	}
	return 0;
}
