/* Lists of sandboxes, in pages. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/cursor.h"
#include "api/problem.h"
#include "api/queries.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "e2b/client.h"
#include "e2b/filter.h"
#include "e2b/handlers.h"
#include "e2b/note.h"
#include "e2b/queries.h"
#include "e2b/sandbox_json.h"
#include "e2b/sandboxes.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

#define PAGE 100

static const char *const orders[] = { "asc", "desc", NULL };

const struct route_query e2b_query_sandboxes[] = {
	{ "metadata", QUERY_TEXT, 0, 0, NULL, "pairs, encoded twice" },
	{ "state", QUERY_TEXT, 0, 0, NULL, "running, paused or both with a comma" },
	{ "template", QUERY_TEXT, 0, NOTE_TEMPLATE_MAX, NULL, "only those made from it" },
	{ "startedAfter", QUERY_TEXT, 0, 64, NULL, "then or later" },
	{ "order", QUERY_CHOICE, 0, 0, orders, "by time of start" },
	{ "limit", QUERY_U64, 1, PAGE, NULL, "how many at most" },
	{ "nextToken", QUERY_TEXT, 0, 0, NULL, "X-Next-Token of the page before" },
	{ 0 },
};
const struct route_query e2b_query_metadata[] = {
	{ "metadata", QUERY_TEXT, 0, 0, NULL, "pairs, encoded twice" },
	{ 0 },
};

/* ---- pages ---- */

void e2b_next_token(struct api_call *c, bool more, int64_t before_ms, const char *before_id)
{
	char text[CURSOR_SIZE];

	if (more && cursor_format(before_ms, before_id, text) == 0)
		(void)http_header_add(c->http, "X-Next-Token", text);
}

bool e2b_take_token(struct api_call *c, struct cursor *ret)
{
	const char *text = NULL;

	if (!call_query(c, "nextToken", &text))
		return false;
	if (!text || text[0] == '\0' || cursor_parse(text, ret) == 0)
		return true;
	problem_field(c, "nextToken", "nextToken: this is no token of a page");
	return false;
}

/* ---- what is wanted ---- */

#define RUNNING (1u << SANDBOX_RUNNING | 1u << SANDBOX_PAUSING | 1u << SANDBOX_SUSPENDING)
#define PAUSED                                                                     \
	(1u << SANDBOX_PAUSED | 1u << SANDBOX_RESUMING | 1u << SANDBOX_SUSPENDED | \
	 1u << SANDBOX_STARTING)

static bool take_states(struct api_call *c, unsigned *ret)
{
	const char *text = NULL;
	struct str rest, one;

	if (!call_query(c, "state", &text))
		return false;
	rest = str_of(text);
	while (str_split(&rest, ',', &one)) {
		if (str_is(one, "running")) {
			*ret |= RUNNING;
		} else if (str_is(one, "paused")) {
			*ret |= PAUSED;
		} else {
			problem_field(c, "state", "state: want running, paused or both");
			return false;
		}
	}
	if (*ret == 0)
		*ret = RUNNING | PAUSED;
	return true;
}

static bool take_metadata(struct api_call *c, struct sandbox_filter *f)
{
	struct arena *a = http_arena(c->http);
	const char *text = NULL;
	struct sandbox_pair *pairs;
	int r;

	if (!call_query(c, "metadata", &text))
		return false;
	if (!text)
		return true;
	pairs = arena_array(a, FILTER_PAIRS_MAX, sizeof(*pairs));
	r = pairs ? filter_pairs(text, a, pairs, &f->n_metadata) : -ENOMEM;
	f->metadata = pairs;
	if (r == -ENOMEM)
		problem_reply(c, &(struct err){ ENOMEM, "list" });
	else if (r < 0)
		problem_field(c, "metadata", "metadata: want name=value pairs, at most %u",
			      FILTER_PAIRS_MAX);
	return r == 0;
}

static bool take_time(struct api_call *c, int64_t *ret)
{
	const char *text = NULL;

	if (!call_query(c, "startedAfter", &text))
		return false;
	if (!text || clock_from_iso(text, ret) == 0)
		return true;
	problem_field(c, "startedAfter", "startedAfter: want a time such as 2026-01-02T03:04:05Z");
	return false;
}

static bool is_of_template(void *user, const struct sandbox *sb)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	return note_is_of(info.note, info.template, user);
}

static bool take_order(struct api_call *c, bool *ret)
{
	const char *order = "desc";

	if (!call_query(c, "order", &order))
		return false;
	*ret = strcmp(order, "asc") == 0;
	return true;
}

/* ---- answers ---- */

static void listed(void *user, const struct sandbox_info *infos, size_t n, bool more,
		   const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(c, err);
	jw_array_begin(&w);
	for (size_t i = 0; i < n; i++)
		e2b_write_detail(c, &w, &infos[i], true);
	jw_array_end(&w);
	e2b_next_token(c, more && n > 0, n ? infos[n - 1].created_ms : 0, n ? infos[n - 1].id : "");
	call_reply(c, 200, &w);
}

void e2b_sandbox_list(struct api_call *c)
{
	struct sandbox_filter f = { .owner = call_owner(c) };
	struct cursor cursor = { 0 };
	const char *template = NULL;
	uint64_t limit = PAGE;

	if (!client_is_known(c) || !take_states(c, &f.states) || !take_metadata(c, &f) ||
	    !take_time(c, &f.created_after) || !take_order(c, &f.oldest_first) ||
	    !call_query(c, "template", &template) || !call_query_u64(c, "limit", &limit) ||
	    !e2b_take_token(c, &cursor))
		return;
	f.limit = limit;
	f.before_ms = cursor.before_ms;
	/* In the arena: the list is made before this returns. */
	f.before_id = cursor.before_ms ? cursor.before_id : NULL;
	if (template && template[0]) {
		f.also = is_of_template;
		f.also_user = (void *)template;
	}
	sandbox_list(c->api->deps.sandboxes, &f, listed, c);
}

/* All that run, as there were no pages then. */
void e2b_sandbox_list_old(struct api_call *c)
{
	struct sandbox_filter f = { .owner = call_owner(c), .states = RUNNING, .limit = 1000 };

	if (client_is_known(c) && take_metadata(c, &f))
		sandbox_list(c->api->deps.sandboxes, &f, listed, c);
}
