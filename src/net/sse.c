#include "net/sse.h"

#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "net/exchange.h"

#define PING_MS 15000

struct sse {
	struct http_request *r; /* borrowed: we live in its arena */
};

static void ping(struct http_request *r, uint64_t now_ms)
{
	if (now_ms - r->c.queued_ms >= PING_MS)
		(void)http_write(r, ":\n\n", 3);
}

struct sse *sse_begin(struct http_request *r)
{
	struct sse *s = arena_alloc(http_arena(r), sizeof(*s));

	if (!s || http_header_add(r, "Cache-Control", "no-store") < 0 ||
	    http_header_add(r, "X-Accel-Buffering", "no") < 0) /* proxies hold it back otherwise */
		return NULL;
	s->r = r;
	http_begin(r, 200, "text/event-stream", -1);
	r->tick = ping;
	return s;
}

const char *sse_last_id(struct http_request *r)
{
	const char *id = http_header(r, "last-event-id");

	if (!id && http_query(r, "lastEventId", &id) <= 0)
		id = NULL;
	return id && *id ? id : NULL;
}

/* The next c from `at` on, or the end; `last` was the answer for a place before. */
static const char *next_of(char c, const char *last, const char *at, const char *end)
{
	const char *found = last && last >= at ? last : memchr(at, c, (size_t)(end - at));

	return found ? found : end;
}

/* One line for each line of the text, however it was ended. Most have one, and are long. */
static void put_data(struct buf *b, const char *data, size_t n)
{
	const char *end = data + n, *lf = NULL, *cr = NULL, *stop;

	for (const char *at = data;; at = stop + 1) {
		lf = next_of('\n', lf, at, end);
		cr = next_of('\r', cr, at, end);
		stop = lf < cr ? lf : cr;
		(void)buf_puts(b, "data: ");
		(void)buf_append(b, at, (size_t)(stop - at));
		(void)buf_putc(b, '\n');
		if (stop == end)
			return;
		if (lf == cr + 1)
			stop = lf;
	}
}

static bool is_line(const char *s)
{
	return !s || s[strcspn(s, "\r\n")] == '\0';
}

ssize_t sse_event(struct sse *s, const char *id, const char *event, const void *data, size_t n)
{
	struct buf b = { 0 };
	ssize_t pending;

	if (!is_line(id) || !is_line(event))
		return -EINVAL;
	if (id)
		(void)buf_printf(&b, "id: %s\n", id);
	if (event)
		(void)buf_printf(&b, "event: %s\n", event);
	put_data(&b, n > 0 ? data : "", n);
	pending = buf_putc(&b, '\n') < 0 ? -ENOMEM : http_write(s->r, b.data, b.len);
	buf_done(&b);
	return pending;
}

ssize_t sse_retry(struct sse *s, unsigned ms)
{
	struct buf b = { 0 };
	ssize_t pending;

	pending =
		buf_printf(&b, "retry: %u\n\n", ms) < 0 ? -ENOMEM : http_write(s->r, b.data, b.len);
	buf_done(&b);
	return pending;
}

void sse_end(struct sse *s)
{
	http_end(s->r);
}
