/* A stream of events in one piece and in pieces (the first byte says how long): the same events
 * come out, and the same verdict. */
#include <string.h>

#include "fuzz.h"
#include "httpc/sse_reader.h"

#define MAX 256

static int keep(void *user, const struct sse_event *e)
{
	struct buf *all = user;

	MUST(e->event[0] && strlen(e->event) <= SSE_NAME_MAX && strlen(e->id) <= SSE_ID_MAX);
	MUST(e->data[e->len] == '\0' && e->len < MAX);
	(void)buf_printf(all, "%s|%s|", e->event, e->id);
	(void)buf_append(all, e->data, e->len);
	(void)buf_putc(all, ';');
	return 0;
}

static int read_in_steps(const uint8_t *data, size_t n, size_t step, struct buf *all)
{
	struct sse_reader r;
	int result = 0;

	sse_reader_init(&r, MAX);
	for (size_t at = 0; at < n && result == 0; at += step)
		result = sse_reader_feed(&r, data + at, n - at < step ? n - at : step, keep, all);
	sse_reader_done(&r);
	return result;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = { 0 }, pieces = { 0 };
	int a, b;

	if (size < 2)
		return 0;
	a = read_in_steps(data + 1, size - 1, size, &whole);
	b = read_in_steps(data + 1, size - 1, 1 + data[0] % 64, &pieces);
	MUST(a == b && whole.len == pieces.len);
	MUST(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
