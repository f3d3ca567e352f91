/* A server's life: connected, its lists read, lost, tried again. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/log.h"
#include "mcpc/auth.h"
#include "mcpc/auth_row.h"
#include "mcpc/http.h"
#include "mcpc/servers_impl.h"
#include "sandbox/events.h"
#include "json/jw.h"

#define CLIENT_NAME "holt"
#define HEADERS_ROOM (1u << 20)

static const struct {
	const char *capability, *method, *changed;
} lists[SERVER_LIST_COUNT] = {
	[SERVER_TOOLS] = { "tools", "tools/list", "notifications/tools/list_changed" },
	[SERVER_RESOURCES] = { "resources", "resources/list",
			       "notifications/resources/list_changed" },
	[SERVER_PROMPTS] = { "prompts", "prompts/list", "notifications/prompts/list_changed" },
};

/* Admins hear of it: the servers are theirs. */
static void tell(const struct server *s, const char *kind)
{
	_cleanup_(buf_done) struct buf b = { .max = 4096 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "server", s->row.name);
	jw_str_field(&w, "reason", s->err.code ? s->err.text : "");
	jw_object_end(&w);
	events_emit(s->all->deps.events, &(struct event){ .kind = kind,
							  .owner = "",
							  .subject = s->row.name,
							  .text = jw_end(&w) < 0 ? NULL : b.data });
}

static void set_state(struct server *s, enum mcpc_server_state state)
{
	s->state = state;
	s->since_ms = clock_wall_ms();
}

/* ---- away ---- */

static void let_go(struct server *s)
{
	s->lists_due = s->lists_asked = 0;
	s->client = mcpc_free(s->client);
}

static void plan_retry(struct server *s)
{
	uint64_t wait = MCPC_RETRY_MIN_MS, now = loop_now_ms(s->all->deps.loop);

	for (unsigned i = 1; i < s->failures && wait < MCPC_RETRY_MAX_MS; i++)
		wait *= 2;
	if (wait > MCPC_RETRY_MAX_MS)
		wait = MCPC_RETRY_MAX_MS;
	s->retry_at = now + wait;
	loop_timer_start(s->timer, wait, 0);
}

void server_lose(struct server *s, const struct err *err)
{
	bool was_ready = s->state == MCPC_SERVER_READY;
	uint64_t now = loop_now_ms(s->all->deps.loop);

	if (s->state != MCPC_SERVER_CONNECTING && !was_ready)
		return;
	if (was_ready && now - s->ready_at > SERVERS_STABLE_MS)
		s->failures = 0;
	s->failures++;
	s->err = *err;
	log_debug("mcpc", "%s: %s", s->row.name, err->text);
	set_state(s, MCPC_SERVER_WAITING);
	plan_retry(s);
	tell(s, "mcp.server_lost");
	server_fail_uses(s, err);
	server_drop_asks(s);
	server_drop_tools(s);
	let_go(s);
	if (was_ready)
		servers_changed(s);
}

void server_disconnect(struct server *s)
{
	if (s->timer)
		loop_timer_stop(s->timer);
	server_drop_asks(s);
	let_go(s);
	if (s->auth)
		s->auth = mcpc_auth_free(s->auth);
	if (s->state == MCPC_SERVER_CONNECTING || s->state == MCPC_SERVER_READY)
		set_state(s, MCPC_SERVER_WAITING);
}

/* ---- lists ---- */

static void ask_lists(struct server *s);

static void become_ready(struct server *s)
{
	if (s->state != MCPC_SERVER_CONNECTING)
		return;
	s->err = (struct err){ 0 };
	s->ready_at = loop_now_ms(s->all->deps.loop);
	s->restarts += s->failures > 0;
	set_state(s, MCPC_SERVER_READY);
	tell(s, "mcp.server_ready");
	server_ready_uses(s);
}

static void listed(struct server *s, enum server_list which, const struct mcpc_outcome *o)
{
	struct err err = { 0 };

	s->lists_asked &= ~(1u << which);
	if (o->err.code == EPIPE || o->err.code == ECANCELED)
		return; /* its loss is told by itself */
	if (o->err.code && which == SERVER_TOOLS) {
		server_lose(s, &o->err);
		return;
	}
	if (!o->err.code && which != SERVER_TOOLS)
		s->counts[which] = jv_len(jv_get(o->result, lists[which].capability));
	if (which != SERVER_TOOLS)
		return;
	if (server_take_tools(s, o->result, &err) < 0) {
		server_lose(s, &err);
		return;
	}
	become_ready(s);
	servers_changed(s);
}

static void tools_listed(void *user, const struct mcpc_outcome *o)
{
	listed(user, SERVER_TOOLS, o);
}

static void resources_listed(void *user, const struct mcpc_outcome *o)
{
	listed(user, SERVER_RESOURCES, o);
}

static void prompts_listed(void *user, const struct mcpc_outcome *o)
{
	listed(user, SERVER_PROMPTS, o);
}

static mcpc_done_fn const takers[SERVER_LIST_COUNT] = { tools_listed, resources_listed,
							prompts_listed };

static void ask_lists(struct server *s)
{
	struct err err = { 0 };

	for (unsigned i = 0; i < SERVER_LIST_COUNT && s->client; i++) {
		if (!(s->lists_due & 1u << i) || s->lists_asked & 1u << i)
			continue;
		s->lists_due &= ~(1u << i);
		s->lists_asked |= 1u << i;
		if (mcpc_list(s->client, lists[i].method, lists[i].capability, takers[i], s, &err) <
		    0) {
			server_lose(s, &err);
			return;
		}
	}
}

/* A server that says so a thousand times a second is looked at now and then. */
void server_list_due(struct server *s, unsigned which)
{
	bool is_planned = s->lists_due != 0;

	s->lists_due |= which;
	if (s->state == MCPC_SERVER_READY && !is_planned)
		loop_timer_start(s->timer, SERVERS_LIST_MS, 0);
}

static void changed(void *user, struct mcpc *c, const char *method)
{
	struct server *s = user;

	for (unsigned i = 0; i < SERVER_LIST_COUNT; i++)
		if (strcmp(method, lists[i].changed) == 0 && mcpc_offers(c, lists[i].capability))
			server_list_due(s, 1u << i);
}

/* ---- there ---- */

static void ready(void *user, const struct err *err)
{
	struct server *s = user;

	if (s->state != MCPC_SERVER_CONNECTING || !s->client)
		return;
	if (err) {
		server_lose(s, err);
		return;
	}
	for (unsigned i = 0; i < SERVER_LIST_COUNT; i++)
		if (mcpc_offers(s->client, lists[i].capability))
			s->lists_due |= 1u << i;
	if (!(s->lists_due & 1u << SERVER_TOOLS))
		become_ready(s);
	ask_lists(s);
}

static void lost(void *user, struct mcpc *c, const struct err *err)
{
	struct server *s = user;

	if (c == s->client)
		server_lose(s, err);
}

static void logged(void *user, struct mcpc *c, const char *level, struct jv data)
{
	const struct server *s = user;
	const char *text = jv_text(data);

	(void)c;
	log_debug("mcpc", "%s: (%.16s) %.400s", s->row.name, level, text ? text : "...");
}

static const struct mcpc_handlers handlers = {
	.asked = server_asked,
	.changed = changed,
	.logged = logged,
	.lost = lost,
};

static int open_process(struct server *s, struct mcpc_transport **ret, struct err *err)
{
	const struct server_row *row = &s->row;
	const char *argv[SERVER_ARGS_MAX + 1];
	struct stdio_spec spec = server_row_spec(row, argv);

	return row->is_on_host ? stdio_host_open(&s->all->yard, &spec, ret, err)
			       : stdio_box_open(&s->all->yard, &spec, ret, err);
}

int server_need_auth(struct server *s, struct err *err)
{
	if (s->auth || jv_kind(s->row.auth) == JV_ABSENT)
		return 0;
	return mcpc_auth_from_row(&s->row, &s->all->deps, &s->auth, err);
}

static int open_remote(struct server *s, struct mcpc_transport **ret, struct err *err)
{
	const struct server_row *row = &s->row;
	struct arena *a = arena_create(HEADERS_ROOM);
	const char **headers = a ? arena_array(a, row->headers.len + 1, sizeof(*headers)) : NULL;
	struct mcpc_http_options o = { .loop = s->all->deps.loop,
				       .courier = s->all->deps.courier,
				       .url = row->url };
	int r = server_need_auth(s, err);

	if (r < 0) {
		(void)arena_free(a);
		return r;
	}
	o.auth = s->auth;
	for (size_t i = 0; headers && i < row->headers.len; i++) {
		headers[i] = arena_printf(a, "%s: %s", row->headers.items[i].name,
					  row->headers.items[i].value);
		if (!headers[i])
			headers = NULL;
	}
	o.headers = headers;
	r = headers ? mcpc_http_create(&o, ret, err) : err_sys(err, ENOMEM, "headers");
	(void)arena_free(a);
	return r;
}

static int open_client(struct server *s, struct err *err)
{
	_cleanup_(buf_done) struct buf capabilities = { .max = 4096 };
	struct mcpc_options o = { .loop = s->all->deps.loop,
				  .name = CLIENT_NAME,
				  .version = s->all->deps.version,
				  .handlers = &handlers,
				  .user = s,
				  .timeout_ms = s->row.timeout_ms };
	struct mcpc_transport *t = NULL;
	int r = s->row.url ? open_remote(s, &t, err) : open_process(s, &t, err);

	if (r < 0)
		return r;
	server_write_capabilities(s, &capabilities);
	o.capabilities = capabilities.len ? buf_str(&capabilities) : "{}";
	return mcpc_create(&o, t, &s->client, err);
}

static void on_timer(void *user)
{
	struct server *s = user;

	if (s->state == MCPC_SERVER_WAITING && !s->all->is_stopping)
		server_connect(s);
	else
		ask_lists(s);
}

void server_connect(struct server *s)
{
	struct err err = { 0 };

	if (!s->timer && loop_timer_create(s->all->deps.loop, on_timer, s, &s->timer) < 0)
		return;
	loop_timer_stop(s->timer);
	set_state(s, MCPC_SERVER_CONNECTING);
	if (open_client(s, &err) < 0)
		server_lose(s, &err);
	else
		mcpc_connect(s->client, ready, s);
}
