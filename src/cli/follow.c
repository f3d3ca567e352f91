#include "cli/follow.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/str.h"
#include "httpc/url.h"

#define EVENT_MAX (16u << 20)
#define SILENCE_MS 60000u /* the server says something every 15 s */
#define RETRY_MAX 8u
#define RETRY_FIRST_MS 100u

CLEANUP_FUNC(struct jv_doc *, jv_free)

/* --- events -------------------------------------------------------------------------------- */

static int on_start(struct follow *f, struct jv v)
{
	const char *id = jv_text(jv_get(v, "executionId"));

	if (!id || str_copy(f->id, sizeof(f->id), id) < 0)
		return err_set(&f->err, EPROTO, "the daemon's answer has no execution id");
	return f->ops->start ? f->ops->start(f->user, v) : 0;
}

static int on_output(struct follow *f, struct jv v)
{
	_cleanup_(buf_done) struct buf bytes = { 0 };
	const char *stream = jv_text(jv_get(v, "stream"));
	int to = stream && strcmp(stream, "stderr") == 0 ? 2 : 1;
	int r;

	if (!f->ops->output)
		return 0; /* as text it goes to raw() only */
	r = client_bytes(jv_get(v, "data"), &bytes, &f->err);
	return r < 0 ? r : f->ops->output(f->user, to, buf_str(&bytes), bytes.len);
}

static int on_gap(struct follow *f, struct jv v)
{
	uint64_t omitted = 0;

	(void)jv_u64(jv_get(v, "omitted"), &omitted);
	return f->ops->gap ? f->ops->gap(f->user, omitted) : 0;
}

static int on_end(struct follow *f, struct jv v)
{
	f->over = true;
	return f->ops->end ? f->ops->end(f->user, v) : 0;
}

static const struct {
	const char *name;
	int (*take)(struct follow *f, struct jv v);
} events[] = {
	{ "start", on_start },
	{ "output", on_output },
	{ "gap", on_gap },
	{ "end", on_end },
};

static int on_event(void *user, const struct sse_event *e)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct follow *f = user;
	int r;

	if (f->over)
		return 0; /* nobody wants to know what else the same bytes hold */
	r = jv_parse(e->data, e->len, EVENT_MAX, &doc, &f->err);
	if (r == 0 && f->ops->raw)
		r = f->ops->raw(f->user, e);
	for (size_t i = 0; r == 0 && i < sizeof(events) / sizeof(events[0]); i++)
		if (strcmp(events[i].name, e->event) == 0)
			r = events[i].take(f, jv_root(doc));
	if (r == 0)
		r = str_copy(f->last, sizeof(f->last), e->id);
	f->failures = 0;
	return r;
}

static int on_data(void *user, const void *data, size_t n)
{
	struct follow *f = user;

	if (f->hold) {
		f->held = true;
		return HTTPC_HOLD;
	}
	return sse_reader_feed(&f->reader, data, n, on_event, f);
}

/* --- connections --------------------------------------------------------------------------- */

static int begin(struct follow *f, const struct httpc_request *req, struct err *err)
{
	struct httpc_request r = *req;

	f->call = httpc_call_free(f->call);
	sse_reader_done(&f->reader);
	sse_reader_init(&f->reader, EVENT_MAX);
	f->retry_ms = 0;
	f->held = false;
	r.target = buf_str(&f->target);
	r.accept = "text/event-stream";
	r.data = on_data;
	r.user = f;
	r.timeout_ms = HTTPC_NO_LIMIT;
	r.stall_ms = SILENCE_MS;
	return httpc_begin(f->client->http, &r, &f->call, err);
}

int follow_start(struct follow *f, const struct buf *body, struct err *err)
{
	struct httpc_request req = { .method = "POST",
				     .type = "application/json",
				     .body = buf_str(body),
				     .body_len = body->len };
	int r = client_path(&f->target, f->route ? f->route : "sandboxes/%/executions", f->sandbox);

	if (r == 0 && !f->text)
		r = url_add_query(&f->target, "encoding", "base64");
	return r < 0 ? err_sys(err, r, "request") : begin(f, &req, err);
}

static int attach(struct follow *f, struct err *err)
{
	struct httpc_request req = { .method = "GET" };
	int r;

	buf_clear(&f->target);
	buf_clear(&f->header);
	r = client_path(&f->target, "sandboxes/%/executions/%/output", f->sandbox, f->id);
	if (r == 0 && !f->text)
		r = url_add_query(&f->target, "encoding", "base64");
	if (r == 0 && f->last[0])
		r = buf_printf(&f->header, "Last-Event-ID: %s", f->last);
	if (r < 0)
		return err_sys(err, r, "request");
	if (f->last[0])
		f->headers[0] = f->header.data;
	req.headers = f->headers;
	return begin(f, &req, err);
}

int follow_attach(struct follow *f, const char *id, struct err *err)
{
	if (str_copy(f->id, sizeof(f->id), id) < 0)
		return err_set(err, EINVAL, "'%.60s...' is too long for an execution's id", id);
	return attach(f, err);
}

void follow_done(struct follow *f)
{
	f->call = httpc_call_free(f->call);
	sse_reader_done(&f->reader);
	buf_done(&f->target);
	buf_done(&f->header);
}

/* A connection that ended without the last event: is it worth trying again? */
static int lost(struct follow *f, int code, const struct err *why, struct err *err)
{
	bool passing = code == -ECONNRESET || code == -ETIMEDOUT || code == -ECONNREFUSED ||
		       code == -EAGAIN || code == -EREMOTEIO;

	if (!f->id[0] || !passing || f->failures >= RETRY_MAX) {
		(void)err_copy(err, why);
		return code;
	}
	f->call = httpc_call_free(f->call);
	f->retry_ms = clock_now_ms() + (RETRY_FIRST_MS << f->failures);
	f->failures++;
	return 0;
}

static int on_call_over(struct follow *f, struct err *err)
{
	struct httpc_answer answer = { 0 };
	struct err why = { 0 };
	int r;

	if (f->over)
		return 0;
	why = f->err;
	r = httpc_result(f->call, &answer, &why);
	buf_done(&answer.body);
	f->client->status = answer.status;
	if (r == 0)
		r = err_set(&why, ECONNRESET, "%s: the events ended before the execution did",
			    httpc_url(f->client->http));
	return lost(f, r, &why, err);
}

static int wait_ms(const struct follow *f, int timeout_ms)
{
	uint64_t now = clock_now_ms();
	int left = f->retry_ms > now ? (int)(f->retry_ms - now) : 0;

	if (f->retry_ms == 0)
		return timeout_ms;
	return timeout_ms < 0 || left < timeout_ms ? left : timeout_ms;
}

int follow_turn(struct follow *f, struct pollfd *fds, size_t n, int timeout_ms, struct err *err)
{
	int r;

	if (f->retry_ms && clock_now_ms() >= f->retry_ms) {
		r = attach(f, err);
		if (r < 0)
			return r;
	}
	r = httpc_turn(f->client->http, fds, n, wait_ms(f, timeout_ms), err);
	if (r < 0)
		return r;
	return f->call && httpc_is_over(f->call) ? on_call_over(f, err) : 0;
}

void follow_resume(struct follow *f)
{
	f->hold = false;
	if (!f->held)
		return;
	f->held = false;
	if (f->call)
		httpc_resume(f->call);
}
