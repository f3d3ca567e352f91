/* Pages of the logs: events, security events, the audit. One shape for all of them:
 * {"items":[{"seq","at","owner","kind","data"}],"nextCursor"}, oldest first, ?owner= (admins),
 * ?kind=, ?from=, ?to=, ?limit=, ?cursor=. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

struct api_call;
struct journal_row;
struct jw;

struct journal_page {
	const char *stream;
	bool with_hash;
	/* May be NULL: members beside the items. */
	void (*extra)(struct api_call *c, struct jw *w);
};

/* Who is no admin sees lines of their own. `page` outlives the request. */
void journal_page_reply(struct api_call *c, const struct journal_page *page);
/* One line as a JSON object. */
void journal_page_write(struct jw *w, const struct journal_row *row, bool with_hash);
/* ?from= and ?to=; false after 400. */
bool journal_page_times(struct api_call *c, int64_t *ret_from_ms, int64_t *ret_to_ms);
