#include "mcp/server.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/map.h"
#include "base/str.h"
#include "loop/loop.h"
#include "mcp/box.h"
#include "mcp/server_impl.h"
#include "mcp/task.h"

#define TICK_MS 250u
#define ENDED_MAX 65536u
#define ARENA_MAX (16u << 20) /* bytes of one request */

const char *const mcp_versions[] = { "2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05", NULL };

static void tick(void *user)
{
	struct mcp_server *s = user;
	uint64_t now = clock_now_ms();

	mcp_streams_tick(s, &s->loose, now);
	mcp_sessions_tick(s, now);
	mcp_tasks_tick(s, now);
	if (now - s->boxes_ms < MCP_BOX_LOOK_MS)
		return;
	s->boxes_ms = now;
	mcp_session_boxes_tick(s, clock_wall_ms());
}

int mcp_server_create(const struct mcp_deps *deps, struct mcp_server **ret, struct err *err)
{
	_cleanup_(mcp_server_free_p) struct mcp_server *s = calloc(1, sizeof(*s));
	int r;

	if (!s)
		return err_sys(err, ENOMEM, "mcp");
	s->deps = *deps;
	list_init(&s->requests);
	list_init(&s->sessions);
	list_init(&s->loose);
	list_init(&s->tasks);
	list_init(&s->watches);
	list_init(&s->watched_dirs);
	s->by_id = map_create(MCP_SESSIONS_MAX + 1);
	s->ended = map_create(ENDED_MAX);
	if (!s->by_id || !s->ended)
		return err_sys(err, ENOMEM, "mcp");
	r = loop_timer_create(deps->loop, tick, s, &s->tick);
	if (r < 0)
		return err_sys(err, r, "mcp");
	loop_timer_start(s->tick, TICK_MS, TICK_MS);
	*ret = TAKE(s);
	return 0;
}

struct mcp_server *mcp_server_free(struct mcp_server *s)
{
	if (!s)
		return NULL;
	s->is_closing = true;
	s->tick = loop_timer_free(s->tick);
	while (!list_is_empty(&s->sessions))
		mcp_session_forget(LIST_ENTRY(s->sessions.next, struct mcp_session, node));
	for (struct list *at = s->requests.next; at != &s->requests;) {
		struct mcp_request *q = LIST_ENTRY(at, struct mcp_request, node);

		at = at->next;
		q->stream = NULL;
		/* Also what is being ended already: what it waits for does not come any more. */
		q->is_cancelled = false;
		mcp_cancel(q);
	}
	assert(list_is_empty(&s->requests));
	mcp_tasks_end(s);
	mcp_box_watches_end(s);
	while (!list_is_empty(&s->loose))
		mcp_stream_free(LIST_ENTRY(s->loose.next, struct mcp_stream, node));
	(void)map_free(s->by_id);
	(void)map_free(s->ended);
	buf_done(&s->out);
	free(s);
	return NULL;
}

/* ---- requests ---- */

void mcp_request_free(struct mcp_request *q)
{
	list_remove(&q->node);
	q->server->n_requests--;
	(void)jv_free(q->answers_doc);
	(void)jv_free(q->doc);
	mcp_session_unref(q->session);
	(void)arena_free(q->arena); /* q with it */
}

void mcp_cancel(struct mcp_request *q)
{
	if (q->is_cancelled)
		return;
	q->is_cancelled = true;
	if (q->cancelled)
		q->cancelled(q);
	else
		mcp_drop(q);
}

/* Of its session, or of its owner's without one; and of all of its owner's together. */
static bool is_too_much(const struct mcp_server *s, const struct mcp_call *c)
{
	unsigned like = 0, all = 0;

	LIST_FOREACH (&s->requests, q, struct mcp_request, node) {
		if (strcmp(q->who.owner, c->who->owner) != 0)
			continue;
		all++;
		like += q->session == c->session;
	}
	return like >= MCP_REQUESTS_MAX || all >= MCP_REQUESTS_OWNER_MAX;
}

/* The caller's own sandbox, in both eras: its key's, or that of its owner's tokens, whose name may
 * be anything; of a session that asked for one, its own. Names of sandboxes are each owner's own.
 */
static const char *home_of(const struct mcp_request *q)
{
	if (q->session && q->session->has_own_box)
		return q->session->home;
	if (q->who.key_id[0] == '\0')
		return "mcp-tokens";
	return arena_printf(q->arena, "mcp-key-%s", q->who.key_id);
}

static struct mcp_request *request_create(struct mcp_server *s, const struct mcp_call *c,
					  const struct rpc_message *m)
{
	struct arena *arena = arena_create(ARENA_MAX);
	struct mcp_request *q = arena ? arena_alloc(arena, sizeof(*q)) : NULL;

	if (!q) {
		(void)arena_free(arena);
		return NULL;
	}
	q->arena = arena;
	q->server = s;
	q->session = c->session ? mcp_session_ref(c->session) : NULL;
	q->stream = c->stream;
	q->era = c->era;
	q->version = c->version;
	q->who = *c->who;
	(void)str_copy(q->box_id, sizeof(q->box_id), c->box_id);
	q->method = m->method;
	q->params = m->params;
	q->meta = jv_get(m->params, "_meta");
	q->client = c->client;
	q->log_level = c->log_level;
	q->state = "";
	list_init(&q->asks);
	list_init(&q->asked);
	list_push_back(&s->requests, &q->node);
	s->n_requests++;
	q->home = home_of(q);
	q->base = arena_strndup(q->arena, c->base, strlen(c->base));
	return q;
}

/* A retry of the modern era brings answers, and what we had given with the questions. */
static bool take_answers(struct mcp_request *q)
{
	struct jv state = jv_get(q->params, "requestState");

	if (q->era != MCP_MODERN || !q->row->may_ask)
		return true;
	q->answers = jv_get(q->params, "inputResponses");
	if (jv_kind(state) == JV_ABSENT)
		return true;
	if (jv_text(state) && mcp_state_open(q, jv_text(state), &q->state) == 0)
		return true;
	mcp_fail(q, RPC_PARAMS,
		 "requestState: not one that was given for this request, or too old");
	return false;
}

/* Nothing could be made for it: the stream is answered all the same. */
static void refuse(struct mcp_server *s, const struct mcp_call *c, const struct rpc_message *m,
		   long code, const char *text)
{
	char id[RPC_ID_MAX];
	bool has_id = rpc_id(m->id, id, sizeof(id)) == 0;

	buf_clear(&s->out);
	s->w = jw_begin(&s->out);
	rpc_error(&s->w, has_id ? id : NULL, code, text, NULL);
	(void)jw_end(&s->w);
	mcp_stream_answer(c->stream, buf_str(&s->out), s->out.len, code);
}

void mcp_begin(struct mcp_server *s, const struct mcp_call *c, struct jv_doc *doc,
	       const struct rpc_message *m)
{
	struct mcp_request *q;

	if (is_too_much(s, c)) {
		refuse(s, c, m, RPC_INTERNAL, "too many requests are under way");
		(void)jv_free(doc);
		return;
	}
	q = request_create(s, c, m);
	if (!q || !q->home || !q->base || rpc_id(m->id, q->id, sizeof(q->id)) < 0) {
		refuse(s, c, m, RPC_INTERNAL, "the request is too large");
		if (q)
			mcp_request_free(q);
		(void)jv_free(doc);
		return;
	}
	q->doc = doc;
	q->row = mcp_method_find(q->method, q->era);
	if (!q->row)
		return mcp_fail(q, RPC_NO_METHOD, "there is no method '%.100s'", q->method);
	if (take_answers(q))
		q->row->handle(q);
}

void mcp_part(struct mcp_request *q, unsigned retry_ms)
{
	if (q->session && q->stream)
		mcp_stream_part(q->stream, retry_ms);
}

/* ---- telling everybody ---- */

static const struct {
	const char *filter, *method;
} changes[] = {
	{ "toolsListChanged", "notifications/tools/list_changed" },
	{ "promptsListChanged", "notifications/prompts/list_changed" },
	{ "resourcesListChanged", "notifications/resources/list_changed" },
};

/* To a session of the legacy era: on its own stream, if it ever opened one. */
static void tell_session(struct mcp_session *n, const char *method, const char *uri)
{
	struct mcp_server *s = n->server;

	if (!n->common)
		return;
	buf_clear(&s->out);
	s->w = jw_begin(&s->out);
	rpc_notification_begin(&s->w, method);
	jw_object_begin(&s->w);
	if (uri)
		jw_str_field(&s->w, "uri", uri);
	jw_object_end(&s->w);
	rpc_end(&s->w);
	if (jw_end(&s->w) == 0)
		mcp_stream_send(n->common, s->out.data, s->out.len);
}

void mcp_server_changed(struct mcp_server *s, enum mcp_change what)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++) {
		if (!((unsigned)what & (1u << i)))
			continue;
		LIST_FOREACH (&s->sessions, n, struct mcp_session, node)
			tell_session(n, changes[i].method, NULL);
		LIST_FOREACH (&s->requests, q, struct mcp_request, node) {
			if (!q->is_listening || !(q->wants & (1u << i)))
				continue;
			(void)mcp_notice_begin(q, changes[i].method);
			mcp_notice_end(q);
		}
	}
}

unsigned mcp_wants_of(struct jv filter)
{
	unsigned wants = 0;
	bool is_wanted;

	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (jv_bool(jv_get(filter, changes[i].filter), &is_wanted) == 0 && is_wanted)
			wants |= 1u << i;
	return wants;
}

void mcp_wants_write(struct jw *w, unsigned wants)
{
	for (size_t i = 0; i < sizeof(changes) / sizeof(changes[0]); i++)
		if (wants & (1u << i))
			jw_bool_field(w, changes[i].filter, true);
}

static bool has_text(struct jv array, const char *value)
{
	JV_FOREACH (array, it) {
		const char *text = jv_text(it.value);

		if (text && strcmp(text, value) == 0)
			return true;
	}
	return false;
}

void mcp_server_tell(struct mcp_server *s, const struct mcp_notice *n)
{
	LIST_FOREACH (&s->requests, q, struct mcp_request, node) {
		struct jv wanted = jv_get(jv_get(q->params, "notifications"), n->filter);

		if (!q->is_listening || !has_text(wanted, n->value) || !n->may(n->user, q))
			continue;
		n->write(n->user, mcp_notice_begin(q, n->method));
		mcp_notice_end(q);
	}
}

void mcp_server_updated(struct mcp_server *s, const char *owner, const char *uri)
{
	static const char method[] = "notifications/resources/updated";

	LIST_FOREACH (&s->sessions, n, struct mcp_session, node)
		if (strcmp(n->owner, owner) == 0 && mcp_session_has(n, uri))
			tell_session(n, method, uri);
	LIST_FOREACH (&s->requests, q, struct mcp_request, node) {
		if (!q->is_listening || strcmp(q->who.owner, owner) != 0 ||
		    !mcp_request_has(q, uri))
			continue;
		jw_str_field(mcp_notice_begin(q, method), "uri", uri);
		mcp_notice_end(q);
	}
}
