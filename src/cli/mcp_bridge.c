#include "cli/mcp_bridge.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "mcpc/mcpc.h"
#include "json/jw.h"
#include "json/rpc.h"

#define RPC_SERVER (-32000) /* what is wrong is between us and the server */
#define VERSION_KEY "io.modelcontextprotocol/protocolVersion"

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct pending { /* a request of the client */
	bool is_modern, is_first, is_listening;
};

struct mcp_bridge {
	struct mcpc_transport *t; /* owned */
	const struct mcp_bridge_ops *ops;
	void *user;
	struct buf line;     /* begun and not ended */
	bool is_too_long;    /* the rest of it is passed over */
	struct map *pending; /* owned: struct pending by id */
	struct map *asked;   /* owned: ids of the server that have no answer yet */
	char version[32];    /* that the handshake has agreed on; "" */
	char modern[32];     /* that the last modern request has named; "" */
	bool is_modern;      /* as the last request was */
	bool has_greeted;    /* said that the handshake is over */
	bool has_ended, is_over;
};

/* ---- to the client ---- */

static void say(struct mcp_bridge *b, struct buf *text)
{
	if (!text->failed && text->len > 0)
		b->ops->line(b->user, text->data, text->len);
}

/* id is JSON text, or NULL. */
static void say_error(struct mcp_bridge *b, const char *id, long code, const char *text,
		      struct jv data)
{
	_cleanup_(buf_done) struct buf out = { 0 }, more = { 0 };
	struct jw w = jw_begin(&more);

	if (jv_kind(data) != JV_ABSENT)
		jw_value(&w, data);
	(void)jw_end(&w);
	w = jw_begin(&out);
	rpc_error(&w, id, code, text, more.data);
	if (jw_end(&w) == 0)
		say(b, &out);
}

static void check_over(struct mcp_bridge *b)
{
	if (!b->has_ended || b->is_over || map_len(b->pending) > 0)
		return;
	b->is_over = true;
	b->ops->over(b->user);
}

/* ---- from the client ---- */

static bool forget(struct mcp_bridge *b, const char *id)
{
	struct pending *p = map_remove(b->pending, id, strlen(id));

	free(p);
	return p != NULL;
}

static int note_request(struct mcp_bridge *b, const char *id, struct mcpc_send *m)
{
	struct pending *p;

	if (map_get(b->pending, id, strlen(id)))
		return -EEXIST;
	p = calloc(1, sizeof(*p));
	if (!p)
		return -ENOMEM;
	p->is_modern = m->is_modern;
	p->is_first = strcmp(m->method, "initialize") == 0;
	p->is_listening = strcmp(m->method, "subscriptions/listen") == 0;
	if (map_put(b->pending, id, strlen(id), p, NULL) < 0) {
		free(p);
		return -EAGAIN;
	}
	return 0;
}

static void pass_request(struct mcp_bridge *b, const struct rpc_message *q, struct mcpc_send *m)
{
	char id[RPC_ID_MAX];
	const char *version = jv_text(jv_get(jv_get(q->params, "_meta"), VERSION_KEY));
	struct err err = { 0 };
	int r = rpc_id(q->id, id, sizeof(id));

	if (r < 0) {
		say_error(b, NULL, RPC_INVALID, "id: too long", (struct jv){ 0 });
		return;
	}
	m->id = id;
	m->name = mcpc_name_of(q->method, q->params);
	b->is_modern = m->is_modern = version != NULL;
	m->version = version;
	if (version)
		(void)str_copy(b->modern, sizeof(b->modern), version);
	r = note_request(b, id, m);
	if (r < 0) {
		say_error(b, id, r == -EEXIST ? RPC_INVALID : RPC_SERVER,
			  r == -EEXIST ? "id: is in use" : "too many requests are under way",
			  (struct jv){ 0 });
		return;
	}
	if (b->t->ops->send(b->t, m, &err) == 0)
		return;
	(void)forget(b, id);
	say_error(b, id, RPC_SERVER, err.text, (struct jv){ 0 });
}

static void send_on(struct mcp_bridge *b, struct mcpc_send *m)
{
	struct err err = { 0 };

	const char *version = b->is_modern ? b->modern : b->version;

	m->is_modern = b->is_modern;
	m->version = version[0] ? version : NULL;
	if (b->t->ops->send(b->t, m, &err) < 0)
		log_debug("mcp", "a message is lost: %s", err.text);
}

static void pass_notice(struct mcp_bridge *b, const struct rpc_message *q, struct mcpc_send *m)
{
	struct pending *p = NULL;
	char id[RPC_ID_MAX];

	if (strcmp(q->method, "notifications/cancelled") == 0 &&
	    rpc_id(jv_get(q->params, "requestId"), id, sizeof(id)) == 0)
		p = map_get(b->pending, id, strlen(id));
	if (p && p->is_modern && b->t->ops->forget_cancels) {
		b->t->ops->forget(b->t, id); /* which is how it is said there */
		(void)forget(b, id);
		return;
	}
	send_on(b, m);
	if (p)
		(void)forget(b, id); /* an answer may come or not: it is not waited for */
	if (strcmp(q->method, "notifications/initialized") == 0) {
		b->has_greeted = true;
		if (b->version[0])
			b->t->ops->agreed(b->t, b->version);
	}
}

static void pass_answer(struct mcp_bridge *b, const struct rpc_message *q, struct mcpc_send *m)
{
	char id[RPC_ID_MAX];

	if (rpc_id(q->id, id, sizeof(id)) == 0)
		(void)map_remove(b->asked, id, strlen(id));
	send_on(b, m);
}

static void take_message(struct mcp_bridge *b, struct jv v, const char *text, size_t n)
{
	struct mcpc_send m = { .text = text, .len = n };
	struct rpc_message q;
	struct err err = { 0 };
	char id[RPC_ID_MAX];

	if (rpc_read(v, &q, &err) < 0) {
		bool has_id = rpc_id(q.id, id, sizeof(id)) == 0;

		say_error(b, has_id ? id : NULL, RPC_INVALID, err.text, (struct jv){ 0 });
		return;
	}
	m.method = q.method;
	if (q.kind == RPC_REQUEST)
		pass_request(b, &q, &m);
	else if (q.kind == RPC_NOTIFICATION)
		pass_notice(b, &q, &m);
	else
		pass_answer(b, &q, &m);
}

static void take_batch(struct mcp_bridge *b, struct jv all)
{
	if (jv_len(all) == 0)
		say_error(b, NULL, RPC_INVALID, "a batch without messages", (struct jv){ 0 });
	JV_FOREACH (all, it) {
		_cleanup_(buf_done) struct buf one = { 0 };
		struct jw w = jw_begin(&one);

		jw_value(&w, it.value);
		if (jw_end(&w) == 0)
			take_message(b, it.value, one.data, one.len);
	}
}

static void take_line(struct mcp_bridge *b, const char *text, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct str line = str_trim((struct str){ text, n });
	struct err err = { 0 };

	if (line.len == 0)
		return;
	if (jv_parse(line.data, line.len, MCPC_MESSAGE_MAX, &doc, &err) < 0)
		say_error(b, NULL, RPC_PARSE, err.text, (struct jv){ 0 });
	else if (jv_kind(jv_root(doc)) == JV_ARRAY)
		take_batch(b, jv_root(doc));
	else
		take_message(b, jv_root(doc), line.data, line.len);
}

/* A line that has ended, or its first part. */
static void take_part(struct mcp_bridge *b, const char *data, size_t n, bool has_ended)
{
	if (!b->is_too_long && buf_append(&b->line, data, n) < 0) {
		b->is_too_long = true;
		buf_done(&b->line);
		buf_init(&b->line, MCPC_MESSAGE_MAX);
		say_error(b, NULL, RPC_INVALID, "the line is too long", (struct jv){ 0 });
	}
	if (!has_ended)
		return;
	if (!b->is_too_long && b->line.len > 0)
		take_line(b, b->line.data, b->line.len);
	b->is_too_long = false;
	buf_clear(&b->line);
}

void mcp_bridge_feed(struct mcp_bridge *b, const char *data, size_t n)
{
	while (n > 0) {
		const char *end = memchr(data, '\n', n);
		size_t part = end ? (size_t)(end - data) : n;

		take_part(b, data, part, end != NULL);
		part += end ? 1 : 0;
		data += part;
		n -= part;
	}
}

/* ---- from the server ---- */

static void refuse_asked(struct mcp_bridge *b, const char *id)
{
	_cleanup_(buf_done) struct buf out = { 0 };
	struct jw w = jw_begin(&out);

	rpc_error(&w, id, RPC_SERVER, "the client is gone", NULL);
	if (jw_end(&w) == 0)
		send_on(b, &(struct mcpc_send){ .text = out.data, .len = out.len });
}

/* True: it is for the client. */
static bool note_message(struct mcp_bridge *b, struct jv v)
{
	struct rpc_message q;
	struct err ignored = { 0 };
	const struct pending *p;
	const char *version;
	char id[RPC_ID_MAX];

	if (rpc_read(v, &q, &ignored) < 0 || q.kind == RPC_NOTIFICATION ||
	    rpc_id(q.id, id, sizeof(id)) < 0)
		return true;
	if (q.kind == RPC_REQUEST) {
		if (!b->has_ended && map_put(b->asked, id, strlen(id), b, NULL) == 0)
			return true;
		refuse_asked(b, id);
		return false;
	}
	p = map_get(b->pending, id, strlen(id));
	version = jv_text(jv_get(q.result, "protocolVersion"));
	if (p && p->is_first && version && str_copy(b->version, sizeof(b->version), version) == 0 &&
	    b->has_greeted)
		b->t->ops->agreed(b->t, b->version); /* a client that did not wait for it */
	return forget(b, id); /* nobody waits for an answer that was cancelled */
}

static void on_message(void *user, const char *text, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	_cleanup_(buf_done) struct buf flat = { 0 };
	struct mcp_bridge *b = user;
	struct jw w = jw_begin(&flat);
	struct err err = { 0 };

	if (jv_parse(text, n, MCPC_MESSAGE_MAX, &doc, &err) < 0) {
		log_debug("mcp", "the server's message is no JSON: %s", err.text);
		return;
	}
	if (note_message(b, jv_root(doc))) {
		if (memchr(text, '\n', n) || memchr(text, '\r', n)) { /* a message is a line */
			jw_value(&w, jv_root(doc));
			if (jw_end(&w) == 0)
				say(b, &flat);
		} else {
			b->ops->line(b->user, text, n);
		}
	}
	check_over(b);
}

static void on_failed(void *user, const char *id, int status, const char *body, size_t n,
		      const struct err *why)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct mcp_bridge *b = user;
	struct rpc_message q;
	struct err ignored = { 0 };

	(void)status;
	if (!forget(b, id))
		return;
	if (n > 0 && jv_parse(body, n, MCPC_MESSAGE_MAX, &doc, &ignored) == 0 &&
	    rpc_read(jv_root(doc), &q, &ignored) == 0 && q.kind == RPC_ERROR)
		say_error(b, id, q.code, q.text, q.data);
	else
		say_error(b, id, RPC_SERVER, why && why->text[0] ? why->text : "no answer",
			  (struct jv){ 0 });
	check_over(b);
}

static void on_lost(void *user, const struct err *err)
{
	(void)user;
	log_debug("mcp", "the server is gone: %s", err ? err->text : "");
}

static const struct mcpc_transport_events events = {
	.message = on_message,
	.failed = on_failed,
	.lost = on_lost,
};

/* ---- its beginning and its end ---- */

/* What never ends by itself is not waited for. */
static void forget_listening(struct mcp_bridge *b)
{
	bool found = true;

	while (found) {
		char id[RPC_ID_MAX] = "";

		found = false;
		MAP_FOREACH (b->pending, it) {
			if (!((const struct pending *)it.value)->is_listening)
				continue;
			found = str_format(id, sizeof(id), "%.*s", (int)it.key_len, it.key) == 0;
			break;
		}
		if (found) {
			b->t->ops->forget(b->t, id);
			(void)forget(b, id);
		}
	}
}

void mcp_bridge_end(struct mcp_bridge *b)
{
	if (b->has_ended)
		return;
	take_part(b, "", 0, true); /* a last line may lack its end */
	b->has_ended = true;
	MAP_FOREACH (b->asked, it) {
		char id[RPC_ID_MAX];

		if (str_format(id, sizeof(id), "%.*s", (int)it.key_len, it.key) == 0)
			refuse_asked(b, id);
	}
	forget_listening(b);
	check_over(b);
}

int mcp_bridge_create(struct mcpc_transport *t, const struct mcp_bridge_ops *ops, void *user,
		      struct mcp_bridge **ret, struct err *err)
{
	_cleanup_(mcp_bridge_free_p) struct mcp_bridge *b = calloc(1, sizeof(*b));

	if (!b) {
		t->ops->close(t);
		return err_sys(err, ENOMEM, "bridge");
	}
	b->t = t;
	t->events = &events;
	t->user = b;
	b->ops = ops;
	b->user = user;
	buf_init(&b->line, MCPC_MESSAGE_MAX);
	b->pending = map_create(MCP_BRIDGE_PENDING_MAX);
	b->asked = map_create(MCP_BRIDGE_PENDING_MAX);
	if (!b->pending || !b->asked)
		return err_sys(err, ENOMEM, "bridge");
	*ret = TAKE(b);
	return 0;
}

struct mcp_bridge *mcp_bridge_free(struct mcp_bridge *b)
{
	if (!b)
		return NULL;
	b->t->ops->close(b->t);
	if (b->pending)
		MAP_FOREACH (b->pending, it)
			free(it.value);
	b->pending = map_free(b->pending);
	b->asked = map_free(b->asked);
	buf_done(&b->line);
	free(b);
	return NULL;
}
