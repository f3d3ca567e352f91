/* One exchange over HTTP: a POST and its answer, or a GET that listens; taken up again where it
 * broke off, as far as the legacy era lets us. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/str.h"
#include "httpc/httpc.h"
#include "mcpc/http_impl.h"

#define NOTICE_MS 30000u /* for what nobody waits for */
#define RETRY_MS 1000u   /* unless the server says otherwise */
#define RETRY_MIN_MS 50u /* whatever it says */
#define RETRY_MAX_MS 60000u
#define DOUBLINGS_MAX 6u
#define STEADY_MS 5000u /* a stream that lasted so long was a good one */
#define TRIES_MAX 5u
#define REFUSALS_MAX 2u

CLEANUP_FUNC(struct jv_doc *, jv_free)

enum { TYPE, SESSION, CHALLENGE };
static const char *const want[] = { "Content-Type", "Mcp-Session-Id", "WWW-Authenticate", NULL };

void mcpc_exchange_free(struct mcpc_exchange *x)
{
	list_remove(&x->node);
	x->timer = loop_timer_free(x->timer);
	sse_reader_done(&x->sse);
	buf_done(&x->json);
	mcpc_http_head_free(x->headers);
	free(x->body);
	free(x->id);
	free(x);
}

void mcpc_exchange_drop(struct mcpc_exchange *x)
{
	struct mcpc_http *h = x->h;

	mcpc_http_enter(h);
	x->is_over = true;
	if (x->job)
		courier_cancel(h->courier, TAKE(x->job));
	if (h->auth)
		h->auth->ops->forget(h->auth, x);
	if (x->timer)
		loop_timer_stop(x->timer);
	if (h->ear == x)
		h->ear = NULL;
	mcpc_http_pass_gate(h, x);
	mcpc_http_leave(h);
}

static void fail(struct mcpc_exchange *x, int status, const struct buf *body, const struct err *err)
{
	struct mcpc_http *h = x->h;

	mcpc_exchange_drop(x);
	if (x->id && !h->is_closed)
		h->base.events->failed(h->base.user, x->id, status, body ? buf_str(body) : "",
				       body ? body->len : 0, err);
}

static void fail_with(struct mcpc_exchange *x, int code, const char *text)
{
	struct err err = { 0 };

	(void)err_set(&err, code, "%s", text);
	fail(x, 0, NULL, &err);
}

/* ---- going on ---- */

static void go_on(void *user)
{
	struct mcpc_exchange *x = user;
	struct err err = { 0 };

	x->is_resuming = true;
	mcpc_http_enter(x->h);
	if (mcpc_exchange_start(x, &err) < 0)
		fail(x, 0, NULL, &err);
	mcpc_http_leave(x->h);
}

/* Exactly when the server said; or, when it does not answer, later and later. */
static uint64_t pause_of(const struct mcpc_exchange *x)
{
	uint64_t ms = x->retry_ms >= 0 ? (uint64_t)x->retry_ms : RETRY_MS;
	unsigned doublings = x->tries < DOUBLINGS_MAX ? x->tries : DOUBLINGS_MAX;

	if (ms < RETRY_MIN_MS)
		ms = RETRY_MIN_MS;
	if (x->tries == 0)
		return ms;
	return ms << doublings > RETRY_MAX_MS ? RETRY_MAX_MS : ms << doublings;
}

/* What the server says by itself is waited for as long as there is a session; a request is not. */
static void go_on_later(struct mcpc_exchange *x)
{
	uint64_t ms;

	if (x->is_stream && loop_now_ms(x->h->loop) - x->since_ms >= STEADY_MS)
		x->tries = 0; /* whoever stands between has cut it, as such do */
	ms = pause_of(x);
	if (x->tries++ >= TRIES_MAX && x->body) {
		fail_with(x, ECONNRESET, "the stream broke off, and cannot be taken up again");
		return;
	}
	if (!x->timer && loop_timer_create(x->h->loop, go_on, x, &x->timer) < 0) {
		fail_with(x, ENOMEM, "out of memory");
		return;
	}
	sse_reader_done(&x->sse);
	sse_reader_init(&x->sse, MCPC_MESSAGE_MAX);
	loop_timer_start(x->timer, ms, 0);
}

static bool can_go_on(const struct mcpc_exchange *x)
{
	return !x->is_modern && (!x->body || (x->id && x->last_event[0]));
}

/* ---- what comes ---- */

static bool is_answer_to(const char *id, const char *text, size_t n)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct rpc_message m;
	struct err ignored = { 0 };
	char text_id[RPC_ID_MAX];

	if (jv_parse(text, n, MCPC_MESSAGE_MAX, &doc, &ignored) < 0)
		return false;
	(void)rpc_read(jv_root(doc), &m, &ignored);
	return jv_kind(jv_get(jv_root(doc), "method")) == JV_ABSENT &&
	       rpc_id(m.id, text_id, sizeof(text_id)) == 0 && strcmp(text_id, id) == 0;
}

static void tell(struct mcpc_exchange *x, const char *text, size_t n)
{
	struct mcpc_http *h = x->h;

	/* Only what could be taken up again needs to know. */
	if (x->id && !x->is_modern && x->is_stream && is_answer_to(x->id, text, n))
		x->is_answered = true;
	h->base.events->message(h->base.user, text, n);
}

static int on_event(void *user, const struct sse_event *e)
{
	struct mcpc_exchange *x = user;

	x->tries = 0;
	if (e->len > 0 && strcmp(e->event, "message") == 0)
		tell(x, e->data, e->len);
	else if (x->h->is_old && !x->body && strcmp(e->event, "endpoint") == 0)
		mcpc_http_old_endpoint(x->h, e->data);
	return x->is_over || x->h->is_closed ? -ECANCELED : 0;
}

static bool is_visible(const char *s)
{
	for (; *s; s++)
		if (*s <= ' ' || *s > '~')
			return false;
	return true;
}

static void take_head(struct mcpc_exchange *x, const struct courier_answer *a)
{
	const char *type = a->headers[TYPE], *session = a->headers[SESSION];

	if (x->has_head)
		return;
	x->has_head = true;
	x->since_ms = loop_now_ms(x->h->loop);
	x->is_stream = type && strncasecmp(type, "text/event-stream", 17) == 0;
	if (x->is_first && session && session[0] && is_visible(session))
		(void)str_copy(x->h->session, sizeof(x->h->session), session);
}

static void on_data(void *user, const struct courier_answer *a, const void *data, size_t n)
{
	struct mcpc_exchange *x = user;
	struct mcpc_http *h = x->h;
	int r;

	mcpc_http_enter(h);
	take_head(x, a);
	if (!x->body && !h->is_old) /* whatever it says from now on is heard */
		mcpc_http_pass_gate(h, x);
	if (x->is_stream) {
		r = sse_reader_feed(&x->sse, data, n, on_event, x);
		if (x->sse.last_id[0])
			(void)str_copy(x->last_event, sizeof(x->last_event), x->sse.last_id);
		if (x->sse.retry_ms >= 0)
			x->retry_ms = x->sse.retry_ms;
	} else {
		r = buf_append(&x->json, data, n);
	}
	if (r < 0 && !x->is_over && !h->is_closed)
		fail_with(x, EMSGSIZE, "the server's message is too large");
	mcpc_http_leave(h);
}

/* ---- its end ---- */

static void another_token(void *user, const struct err *err)
{
	struct mcpc_exchange *x = user;
	struct err failure = { 0 };
	struct mcpc_http *h = x->h;

	mcpc_http_enter(h);
	if (err && err->code)
		fail(x, 0, NULL, err);
	else if (mcpc_exchange_start(x, &failure) < 0)
		fail(x, 0, NULL, &failure);
	mcpc_http_leave(h);
}

/* False: the refusal stands. */
static bool wants_token(struct mcpc_exchange *x, const struct courier_answer *a)
{
	struct mcpc_auth *auth = x->h->auth;

	if (!auth || (a->status != 401 && a->status != 403) || x->refusals == REFUSALS_MAX)
		return false;
	x->refusals++;
	return auth->ops->refused(auth, x->token_no, a->status, a->headers[CHALLENGE],
				  another_token, x) == 0;
}

static void ended_well(struct mcpc_exchange *x)
{
	struct mcpc_http *h = x->h;

	if (x->is_stream && can_go_on(x) && !x->is_answered) {
		go_on_later(x);
		return;
	}
	if (!x->is_stream && x->json.len > 0 && !h->is_old)
		tell(x, x->json.data, x->json.len);
	if (x->is_over || h->is_closed)
		return;
	if (x->id && !x->is_answered && !h->is_old) /* who has had its answer does not mind */
		fail_with(x, ECONNRESET, "the server's answer ends without a result");
	else
		mcpc_exchange_drop(x);
}

static void ended_badly(struct mcpc_exchange *x, const struct courier_answer *a)
{
	bool is_broken = a->status < 300 || a->status >= 500;

	if (x->is_answered) {
		mcpc_exchange_drop(x);
	} else if (is_broken && can_go_on(x) && (x->is_resuming || x->is_stream)) {
		go_on_later(x);
	} else if (x->is_resuming) {
		fail_with(x, EPIPE,
			  "the stream broke off, and the server does not know it any more");
	} else if (!mcpc_http_old_try(x, a)) {
		if (a->status == 404 && x->id && x->session_no == x->h->session_no)
			x->h->session[0] = '\0';
		fail(x, a->status, &a->body, &a->err);
	}
}

static void on_done(void *user, const struct courier_answer *a)
{
	struct mcpc_exchange *x = user;
	struct mcpc_http *h = x->h;

	x->job = NULL;
	mcpc_http_enter(h);
	take_head(x, a);
	if (a->r < 0 && !x->id)
		log_debug("mcpc", "a message is lost: %s", a->err.text);
	if (h->is_old && x == h->ear)
		mcpc_http_old_ended(h, a);
	else if (a->r == 0)
		ended_well(x);
	else if (!wants_token(x, a))
		ended_badly(x, a);
	mcpc_http_leave(h);
}

/* ---- its beginning ---- */

int mcpc_exchange_start(struct mcpc_exchange *x, struct err *err)
{
	bool is_post = x->body && !x->is_resuming;
	struct courier_request req = {
		.method = is_post ? "POST" : "GET",
		.url = is_post && x->h->post_url ? x->h->post_url : x->h->url,
		.server = x->h->server,
		.ca_file = x->h->ca_file,
		.want = want,
		.type = is_post ? "application/json" : NULL,
		.body = is_post ? x->body : NULL,
		.body_len = is_post ? x->body_len : 0,
		.data = on_data,
		.timeout_ms = x->id || !x->body ? HTTPC_NO_LIMIT : NOTICE_MS,
		.stall_ms = HTTPC_NO_LIMIT,
		.public_only = x->h->public_only,
		.is_untraced = !is_post,
	};
	char **headers = NULL;
	int r = mcpc_http_head_write(x, &headers);

	if (r < 0)
		return err_sys(err, r, "headers");
	x->session_no = x->h->session_no;
	x->has_head = x->is_stream = false;
	buf_clear(&x->json);
	req.headers = (const char *const *)headers;
	r = courier_open(x->h->courier, &req, on_done, x, &x->job);
	mcpc_http_head_free(headers);
	return r < 0 ? err_sys(err, r, "%s", x->h->url) : 0;
}

static int fill(struct mcpc_exchange *x, const struct mcpc_send *m)
{
	x->id = m->id ? str_dup(str_of(m->id)) : NULL;
	x->body = str_dup((struct str){ m->text, m->len });
	x->body_len = m->len;
	x->is_modern = m->is_modern;
	x->is_first = m->method && strcmp(m->method, "initialize") == 0;
	x->is_gate =
		x->is_first || (m->method && strcmp(m->method, "notifications/initialized") == 0);
	if (!x->body || (m->id && !x->id))
		return -ENOMEM;
	return mcpc_http_head_keep(x, m);
}

/* m NULL: it listens. */
struct mcpc_exchange *mcpc_exchange_create(struct mcpc_http *h, const struct mcpc_send *m,
					   struct err *err)
{
	struct mcpc_exchange *x = calloc(1, sizeof(*x));
	int r = x ? 0 : -ENOMEM;

	if (x) {
		x->h = h;
		x->retry_ms = -1;
		list_push_back(&h->all, &x->node);
		sse_reader_init(&x->sse, MCPC_MESSAGE_MAX);
		buf_init(&x->json, MCPC_MESSAGE_MAX);
		r = m ? fill(x, m) : 0;
	}
	if (r == 0)
		return x;
	(void)err_sys(err, r, "request");
	if (x)
		mcpc_exchange_free(x);
	return NULL;
}
