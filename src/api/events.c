/* Events: as pages, or as a stream that begins where the client stopped reading. */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/journal_page.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"
#include "net/sse.h"
#include "sandbox/event_kinds.h"
#include "sandbox/events.h"
#include "sandbox/journal.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

#define PAGE 200
#define PENDING_MAX (1u << 20) /* a client that reads less is cut, and comes back for the rest */

struct follow {
	struct api_call *call; /* NULL: over */
	struct call_stream base;
	struct journal_listener listener;
	struct sse *sse;
	bool is_asking, is_live;
	uint64_t at;    /* the last line that was looked at */
	uint64_t known; /* what was committed when the store was asked */
	char owner[OWNER_MAX + 1], kind[64], subject[64]; /* "": any */
};

static void ask(struct follow *f);

static void end(struct follow *f)
{
	f->call = NULL;
	journal_unlisten(&f->listener);
	call_stream_end(&f->base);
	if (!f->is_asking)
		free(f);
}

static void gone(void *user, struct http_request *r)
{
	(void)r;
	end(user);
}

static void cut(struct call_stream *s)
{
	struct follow *f = LIST_ENTRY(s, struct follow, base);
	struct sse *sse = f->sse;

	end(f);
	sse_end(sse);
}

static bool is_about(const char *want, const char *text)
{
	struct jv_doc *doc = NULL;
	bool yes = false;

	if (!want[0])
		return true;
	if (jv_parse(text, strlen(text), STORE_TEXT_MAX, &doc, NULL) == 0) {
		const char *subject = jv_text(jv_get(jv_root(doc), "subject"));
		const char *sandbox = jv_text(jv_get(jv_root(doc), "sandbox"));

		yes = (subject && strcmp(subject, want) == 0) ||
		      (sandbox && strcmp(sandbox, want) == 0);
	}
	(void)jv_free(doc);
	return yes;
}

/* False: the client does not read, and the stream is over. */
static bool send(struct follow *f, const struct journal_row *row)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char id[24];

	f->at = row->seq;
	if ((f->owner[0] && strcmp(f->owner, row->owner) != 0) ||
	    !event_pattern_matches(f->kind, row->kind) || !is_about(f->subject, row->text))
		return true;
	journal_page_write(&w, row, false);
	(void)str_format(id, sizeof(id), "%" PRIu64, row->seq);
	if (jw_end(&w) < 0 || sse_event(f->sse, id, row->kind, b.data, b.len) > PENDING_MAX) {
		cut(&f->base);
		return false;
	}
	return true;
}

static void committed(void *user, const struct journal_row *row)
{
	struct follow *f = user;

	if (f->is_live)
		(void)send(f, row);
}

static void got(void *user, int r, const struct journal_row *rows, size_t n, bool more)
{
	struct follow *f = user;

	f->is_asking = false;
	if (!f->call) {
		free(f);
		return;
	}
	if (r < 0)
		return cut(&f->base);
	for (size_t i = 0; i < n; i++)
		if (!send(f, &rows[i]))
			return;
	if (!more && f->at < f->known)
		f->at = f->known;
	/* What was committed while the store was being asked is asked for again. */
	f->is_live =
		!more && journal_committed(events_journal(f->base.api->deps.events)) <= f->known;
	if (!f->is_live)
		ask(f);
}

static void ask(struct follow *f)
{
	const struct api_deps *deps = &f->base.api->deps;
	struct store_journal_filter filter = { .after_seq = f->at,
					       .owner = f->owner[0] ? f->owner : NULL };

	f->known = journal_committed(events_journal(deps->events));
	f->is_asking = true;
	if (store_list_journal(deps->store, EVENT_STREAM, &filter, PAGE, got, f) == 0)
		return;
	f->is_asking = false;
	cut(&f->base);
}

static bool read_query(struct api_call *c, struct follow *f)
{
	const char *kind = NULL, *sandbox = NULL, *owner = call_owner(c), *last;

	if (!call_query(c, "kind", &kind) || !call_query(c, "sandbox", &sandbox) ||
	    (!owner && !call_query(c, "owner", &owner)))
		return false;
	if (str_copy(f->kind, sizeof(f->kind), kind ? kind : "") < 0 ||
	    str_copy(f->subject, sizeof(f->subject), sandbox ? sandbox : "") < 0 ||
	    str_copy(f->owner, sizeof(f->owner), owner ? owner : "") < 0) {
		problem_status(c, 400, "kind, sandbox or owner is too long");
		return false;
	}
	last = sse_last_id(c->http);
	f->at = journal_committed(events_journal(c->api->deps.events));
	if (!last || parse_u64(last, 0, INT64_MAX, &f->at) == 0)
		return true;
	problem_status(c, 400, "Last-Event-ID: want the id of an event");
	return false;
}

static void follow(struct api_call *c)
{
	struct follow *f = calloc(1, sizeof(*f));
	char place[OWNER_MAX + 2];

	if (!f)
		return problem_reply(c, &(struct err){ ENOMEM, "events" });
	f->base.cut = cut;
	list_init(&f->listener.node);
	(void)str_format(place, sizeof(place), "@%s", c->who->owner);
	if (!read_query(c, f) || !call_stream_begin(c, &f->base, "sse", place)) {
		free(f);
		return;
	}
	f->sse = sse_begin(c->http);
	if (!f->sse) {
		call_stream_end(&f->base);
		free(f);
		return problem_reply(c, &(struct err){ ENOMEM, "events" });
	}
	f->call = c;
	f->listener.committed = committed;
	f->listener.user = f;
	journal_listen(events_journal(c->api->deps.events), &f->listener);
	http_on_gone(c->http, gone, f);
	(void)sse_retry(f->sse, 1000);
	ask(f);
}

void api_events(struct api_call *c)
{
	static const struct journal_page page = { .stream = EVENT_STREAM };

	if (!c->api->deps.events)
		return problem_status(c, 404, "no events are kept here");
	if (call_accepts(c, "text/event-stream"))
		return follow(c);
	journal_page_reply(c, &page);
}

void api_security_events(struct api_call *c)
{
	static const struct journal_page page = { .stream = SECURITY_STREAM };

	journal_page_reply(c, &page);
}
