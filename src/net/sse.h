/* Server-sent events: an answer that goes on, one event after another (text/event-stream). Pings
 * itself (a comment every 15 s), so that middle boxes and both ends notice a dead connection. */
#pragma once

#include <stddef.h>
#include <sys/types.h>

struct http_request;
struct sse; /* opaque; lives and ends with the request */

/* Begins the answer (status 200). Headers added before are sent too. NULL without memory: nothing
 * was answered. Watch the client with http_on_gone() and http_on_drain(). */
struct sse *sse_begin(struct http_request *r);
/* What the client saw last before it reconnected: the header, or the query's "lastEventId"; NULL
 * when it begins anew. */
const char *sse_last_id(struct http_request *r);
/* id and event may be NULL. Data of several lines (LF, CR or CRLF) arrives as several lines joined
 * by LF. Bytes the client has not taken yet, as http_write(); -EINVAL when id or event has a line
 * break or a NUL. */
ssize_t sse_event(struct sse *s, const char *id, const char *event, const void *data, size_t n);
/* How long the client waits before it connects again. */
ssize_t sse_retry(struct sse *s, unsigned ms);
void sse_end(struct sse *s); /* http_end() */
