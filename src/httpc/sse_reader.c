#include "httpc/sse_reader.h"

#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

void sse_reader_init(struct sse_reader *r, size_t max)
{
	*r = (struct sse_reader){ .retry_ms = -1 };
	buf_init(&r->line, max);
	buf_init(&r->data, max);
}

void sse_reader_done(struct sse_reader *r)
{
	buf_done(&r->line);
	buf_done(&r->data);
}

static int keep(char *dst, size_t size, struct str value)
{
	if (value.len >= size)
		return -E2BIG;
	memcpy(dst, value.data, value.len);
	dst[value.len] = '\0';
	return 0;
}

static int on_data(struct sse_reader *r, struct str value)
{
	(void)buf_append(&r->data, value.data, value.len);
	return buf_putc(&r->data, '\n');
}

static int on_event(struct sse_reader *r, struct str value)
{
	return keep(r->name, sizeof(r->name), value);
}

static int on_id(struct sse_reader *r, struct str value)
{
	if (memchr(value.data, '\0', value.len))
		return 0; /* the standard says to pass over it */
	return keep(r->id, sizeof(r->id), value);
}

/* Digits only, or it is passed over. */
static int on_retry(struct sse_reader *r, struct str value)
{
	char text[20];
	int64_t ms;

	if (keep(text, sizeof(text), value) == 0 && parse_i64(text, 0, INT32_MAX, &ms) == 0)
		r->retry_ms = ms;
	return 0;
}

static const struct {
	const char *name;
	int (*take)(struct sse_reader *r, struct str value);
} fields[] = {
	{ "data", on_data },
	{ "event", on_event },
	{ "id", on_id },
	{ "retry", on_retry },
};

/* An empty line ends an event; one without data is none, but its id counts. */
static int dispatch(struct sse_reader *r, sse_event_fn fn, void *user)
{
	struct sse_event e = { .event = r->name[0] ? r->name : "message", .id = r->id };
	int result = 0;

	memcpy(r->last_id, r->id, strlen(r->id) + 1);
	if (r->data.len > 0) {
		r->data.data[--r->data.len] = '\0'; /* the last line's LF is none of its */
		e.data = r->data.data;
		e.len = r->data.len;
		result = fn(user, &e);
	}
	buf_clear(&r->data);
	r->name[0] = '\0';
	return result;
}

static int on_line(struct sse_reader *r, struct str line, sse_event_fn fn, void *user)
{
	const char *colon = memchr(line.data, ':', line.len);
	struct str name = line, value = { line.data, 0 };

	if (line.len == 0)
		return dispatch(r, fn, user);
	if (colon) {
		name.len = (size_t)(colon - line.data);
		value = (struct str){ colon + 1, line.len - name.len - 1 };
	}
	if (value.len > 0 && value.data[0] == ' ')
		value = (struct str){ value.data + 1, value.len - 1 };
	for (size_t i = 0; i < sizeof(fields) / sizeof(fields[0]); i++)
		if (str_is(name, fields[i].name))
			return fields[i].take(r, value);
	return 0; /* a comment (no name), or a field of a later day */
}

/* A byte order mark at the very beginning is no part of the first line. */
static size_t skip_bom(struct sse_reader *r, const char *data, size_t n)
{
	static const char mark[] = "\xef\xbb\xbf";
	size_t used = 0;

	while (!r->begun && used < n) {
		if (data[used] != mark[r->bom]) {
			(void)buf_append(&r->line, mark, r->bom); /* it was none after all */
			r->begun = true;
			break;
		}
		used++;
		r->begun = ++r->bom == sizeof(mark) - 1;
	}
	return used;
}

static size_t line_length(const char *data, size_t n)
{
	const char *lf = memchr(data, '\n', n);
	size_t len = lf ? (size_t)(lf - data) : n;
	const char *cr = memchr(data, '\r', len);

	return cr ? (size_t)(cr - data) : len;
}

/* The line that ends at data + n, with what came of it before. */
static int end_line(struct sse_reader *r, const char *data, size_t n, sse_event_fn fn, void *user)
{
	struct str line = { data, n };
	int result;

	if (n > r->line.max)
		return -E2BIG;
	if (r->line.len > 0) {
		result = buf_append(&r->line, data, n);
		if (result < 0)
			return result;
		line = (struct str){ r->line.data, r->line.len };
	}
	result = on_line(r, line, fn, user);
	buf_clear(&r->line);
	return result;
}

int sse_reader_feed(struct sse_reader *r, const void *data, size_t n, sse_event_fn fn, void *user)
{
	const char *p = data;
	size_t used = n > 0 ? skip_bom(r, p, n) : 0;
	int result = 0;

	p += used;
	n -= used;
	while (n > 0 && result == 0) {
		size_t len;

		if (r->after_cr && *p == '\n') {
			p++;
			n--;
			r->after_cr = false;
			continue;
		}
		r->after_cr = false;
		len = line_length(p, n);
		if (len == n)
			return buf_append(&r->line, p, n);
		r->after_cr = p[len] == '\r';
		result = end_line(r, p, len, fn, user);
		p += len + 1;
		n -= len + 1;
	}
	return result;
}
