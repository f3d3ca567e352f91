/* What happened to a sandbox and in it, as lines of a log: Holt's events about it. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/handlers.h"
#include "e2b/queries.h"
#include "e2b/sandbox_json.h"
#include "net/http.h"
#include "sandbox/events.h"
#include "sandbox/sandbox.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

#define LOGS_MAX 1000
#define STORE_PAGE 500
#define LOOK_MAX 5000u /* lines of the owner that are looked at for one answer */
#define SEARCH_MAX 256

static const char *const directions[] = { "forward", "backward", NULL };
static const char *const levels[] = { "debug", "info", "warn", "error", NULL };

const struct route_query e2b_query_logs[] = {
	{ "cursor", QUERY_U64, 0, INT64_MAX, NULL, "milliseconds since 1970" },
	{ "limit", QUERY_U64, 0, LOGS_MAX, NULL, "how many at most" },
	{ "direction", QUERY_CHOICE, 0, 0, directions, "of time" },
	{ "level", QUERY_CHOICE, 0, 0, levels, "this and above" },
	{ "search", QUERY_TEXT, 0, SEARCH_MAX, NULL, "what the message holds" },
	{ 0 },
};
const struct route_query e2b_query_logs_old[] = {
	{ "start", QUERY_U64, 0, INT64_MAX, NULL, "milliseconds since 1970" },
	{ "limit", QUERY_U64, 0, INT32_MAX, NULL, "how many at most" },
	{ 0 },
};

struct line { /* arena */
	int64_t at_ms;
	const char *kind, *message;
	size_t level;
};

struct reading { /* arena */
	struct api_call *call;
	char id[ID_LEN + 1], owner[OWNER_MAX + 1];
	bool is_old, is_backward;
	uint64_t from_ms, limit;
	size_t level;
	const char *search; /* "": any */
	struct line *lines;
	size_t n, looked;
	uint64_t at; /* the last that was looked at */
};

/* ---- answers ---- */

static void write_entry(struct jw *w, const struct line *l)
{
	jw_object_begin(w);
	jw_iso_field(w, "timestamp", l->at_ms);
	jw_str_field(w, "level", levels[l->level]);
	jw_str_field(w, "message", l->message);
	jw_key(w, "fields");
	jw_object_begin(w);
	jw_str_field(w, "event", l->kind);
	jw_object_end(w);
	jw_object_end(w);
}

/* Each line is JSON in itself: E2B's command line reads it as such. */
static void write_line(struct jw *w, const struct line *l)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw inner = jw_begin(&text);

	jw_object_begin(&inner);
	jw_str_field(&inner, "level", levels[l->level]);
	jw_str_field(&inner, "logger", "holt");
	jw_str_field(&inner, "message", l->message);
	jw_object_end(&inner);
	if (jw_end(&inner) < 0)
		w->failed = -ENOMEM;
	jw_object_begin(w);
	jw_iso_field(w, "timestamp", l->at_ms);
	jw_str_field(w, "line", buf_str(&text));
	jw_object_end(w);
}

static void write_list(struct jw *w, const char *key, const struct reading *r,
		       void (*write)(struct jw *w, const struct line *l))
{
	jw_key(w, key);
	jw_array_begin(w);
	for (size_t i = 0; i < r->n; i++)
		write(w, &r->lines[i]);
	jw_array_end(w);
}

static void reply(struct reading *r)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	write_list(&w, "logs", r, r->is_old ? write_line : write_entry);
	if (r->is_old)
		write_list(&w, "logEntries", r, write_entry);
	jw_object_end(&w);
	call_reply(r->call, 200, &w);
}

/* ---- reading ---- */

static size_t level_of(const char *kind)
{
	if (strncmp(kind, SECURITY_PREFIX, strlen(SECURITY_PREFIX)) == 0)
		return 2;
	return strstr(kind, "failed") ? 3 : 1;
}

static bool is_text(struct jv root, const char *key, const char *want)
{
	const char *text = jv_text(jv_get(root, key));

	return text && strcmp(text, want) == 0;
}

/* "execution.ended {...}": the event, and what it says. */
static void take(struct reading *r, const struct journal_row *row)
{
	struct line *l = &r->lines[r->n];
	struct jv_doc *doc = NULL;
	bool is_about = false;

	if (jv_parse(row->text, strlen(row->text), STORE_TEXT_MAX, &doc, NULL) == 0)
		is_about = is_text(jv_root(doc), "subject", r->id) ||
			   is_text(jv_root(doc), "sandbox", r->id);
	(void)jv_free(doc);
	if (!is_about || level_of(row->kind) < r->level)
		return;
	l->at_ms = row->at_ms;
	l->level = level_of(row->kind);
	l->kind = arena_strndup(http_arena(r->call->http), row->kind, strlen(row->kind));
	l->message = arena_printf(http_arena(r->call->http), "%s %s", row->kind, row->text);
	if (l->kind && l->message && strstr(l->message, r->search))
		r->n++;
}

static void ask(struct reading *r);

static void got(void *user, int code, const struct journal_row *rows, size_t n, bool more)
{
	struct reading *r = user;

	if (code < 0)
		return problem_reply(r->call, &(struct err){ -code, "logs" });
	for (size_t i = 0; i < n && r->n < r->limit; i++) {
		r->at = rows[i].seq;
		take(r, &rows[i]);
	}
	r->looked += n;
	if (more && r->n < r->limit && r->looked < LOOK_MAX)
		ask(r);
	else
		reply(r);
}

static void ask(struct reading *r)
{
	const struct api_deps *deps = &r->call->api->deps;
	struct store_journal_filter f = { .owner = r->owner, .newest_first = r->is_backward };
	int code;

	if (r->is_backward) {
		f.before_seq = r->at;
		f.to_ms = r->from_ms ? (int64_t)r->from_ms + 1 : 0;
	} else {
		f.after_seq = r->at;
		f.from_ms = (int64_t)r->from_ms;
	}
	code = store_list_journal(deps->store, EVENT_STREAM, &f, STORE_PAGE, got, r);
	if (code < 0)
		problem_reply(r->call, &(struct err){ -code, "logs" });
}

static void begin(struct api_call *c, const struct reading *wish)
{
	struct sandbox *sb = e2b_find(c);
	struct reading *r = sb ? arena_alloc(http_arena(c->http), sizeof(*r)) : NULL;
	struct sandbox_info info;

	if (!sb)
		return;
	if (r) {
		*r = *wish;
		r->call = c;
		r->lines = arena_array(http_arena(c->http), r->limit + 1, sizeof(*r->lines));
	}
	if (!r || !r->lines)
		return problem_reply(c, &(struct err){ ENOMEM, "logs" });
	sandbox_info(sb, &info);
	(void)str_copy(r->id, sizeof(r->id), info.id);
	(void)str_copy(r->owner, sizeof(r->owner), info.owner);
	/* Nothing is older than itself: an old owner's journal need not be walked through. */
	if (!r->is_backward && (int64_t)r->from_ms < info.created_ms)
		r->from_ms = (uint64_t)info.created_ms;
	ask(r);
}

static size_t level_from(const char *name)
{
	size_t i = 0;

	while (levels[i] && strcmp(levels[i], name) != 0)
		i++;
	return levels[i] ? i : 0;
}

void e2b_sandbox_logs(struct api_call *c)
{
	struct reading r = { .limit = LOGS_MAX, .search = "" };
	const char *direction = "forward", *level = "debug";

	if (!call_query_u64(c, "cursor", &r.from_ms) || !call_query_u64(c, "limit", &r.limit) ||
	    !call_query(c, "direction", &direction) || !call_query(c, "level", &level) ||
	    !call_query(c, "search", &r.search))
		return;
	r.is_backward = strcmp(direction, "backward") == 0;
	r.level = level_from(level);
	begin(c, &r);
}

void e2b_sandbox_logs_old(struct api_call *c)
{
	struct reading r = { .limit = LOGS_MAX, .search = "", .is_old = true };

	if (!call_query_u64(c, "start", &r.from_ms) || !call_query_u64(c, "limit", &r.limit))
		return;
	if (r.limit > LOGS_MAX)
		r.limit = LOGS_MAX;
	begin(c, &r);
}
