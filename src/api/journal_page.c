#include "api/journal_page.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/journal.h"
#include "store/store.h"
#include "json/jw.h"

#define LIST_DEFAULT 100

struct ask {
	struct api_call *call; /* NULL: the client is gone */
	const struct journal_page *page;
};

void journal_page_write(struct jw *w, const struct journal_row *row, bool with_hash)
{
	char hex[2 * STORE_HASH_LEN + 1];

	jw_object_begin(w);
	journal_write(w, row);
	if (with_hash) {
		encode_hex(row->hash, STORE_HASH_LEN, hex);
		jw_str_field(w, "hash", hex);
	}
	jw_object_end(w);
}

static void reply(struct api_call *c, const struct journal_page *page,
		  const struct journal_row *rows, size_t n, bool more)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char next[24];

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		journal_page_write(&w, &rows[i], page->with_hash);
	jw_array_end(&w);
	if (more && n > 0 && str_format(next, sizeof(next), "%" PRIu64, rows[n - 1].seq) == 0)
		jw_str_field(&w, "nextCursor", next);
	else
		jw_null_field(&w, "nextCursor");
	if (page->extra)
		page->extra(c, &w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

static void got(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct ask *a = user;

	if (a->call && r < 0)
		problem_reply(a->call, &(struct err){ -r, "log" });
	else if (a->call)
		reply(a->call, a->page, rows, n, more);
	free(a);
}

static void gone(void *user, struct http_request *r)
{
	struct ask *a = user;

	(void)r;
	a->call = NULL;
}

static bool query_time(struct api_call *c, const char *name, int64_t *ret)
{
	const char *text = NULL;

	if (!call_query(c, name, &text))
		return false;
	if (!text || clock_from_iso(text, ret) == 0)
		return true;
	problem_field(c, name, "%s: want a time such as 2026-01-02T03:04:05Z, or a day", name);
	return false;
}

bool journal_page_times(struct api_call *c, int64_t *ret_from_ms, int64_t *ret_to_ms)
{
	return query_time(c, "from", ret_from_ms) && query_time(c, "to", ret_to_ms);
}

static bool read_filter(struct api_call *c, struct store_journal_filter *f)
{
	const char *cursor = NULL;

	if (!call_query(c, "owner", &f->owner) || !call_query(c, "kind", &f->kind) ||
	    !call_query(c, "cursor", &cursor) || !journal_page_times(c, &f->from_ms, &f->to_ms))
		return false;
	if (cursor && parse_u64(cursor, 0, INT64_MAX, &f->after_seq) < 0) {
		problem_field(c, "cursor", "want a cursor as an earlier answer gave it");
		return false;
	}
	if (call_owner(c))
		f->owner = call_owner(c);
	return true;
}

void journal_page_reply(struct api_call *c, const struct journal_page *page)
{
	struct store_journal_filter filter = { 0 };
	uint64_t limit = LIST_DEFAULT;
	struct ask *a;
	int r;

	if (!read_filter(c, &filter) || !call_query_u64(c, "limit", &limit))
		return;
	a = calloc(1, sizeof(*a));
	if (!a)
		return problem_reply(c, &(struct err){ ENOMEM, "log" });
	a->call = c;
	a->page = page;
	r = store_list_journal(c->api->deps.store, page->stream, &filter, (uint32_t)limit, got, a);
	if (r == 0)
		return http_on_gone(c->http, gone, a);
	free(a);
	problem_reply(c, &(struct err){ -r, "log" });
}
