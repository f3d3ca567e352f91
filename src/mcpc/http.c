#include "mcpc/http.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/str.h"
#include "mcpc/http_impl.h"

#define DELETE_MS 5000u
#define GATE_MS 3000u /* for a server to say that it is listened to */

static void http_free(struct mcpc_http *h)
{
	for (size_t i = 0; h->headers[i]; i++) {
		explicit_bzero(h->headers[i], strlen(h->headers[i])); /* keys are among them */
		free(h->headers[i]);
	}
	free(h->url);
	free(h->server);
	free(h->ca_file);
	free(h->post_url);
	h->gate_timer = loop_timer_free(h->gate_timer);
	free(h);
}

void mcpc_http_enter(struct mcpc_http *h)
{
	h->busy++;
}

void mcpc_http_leave(struct mcpc_http *h)
{
	if (--h->busy > 0)
		return;
	LIST_FOREACH (&h->all, x, struct mcpc_exchange, node)
		if (x->is_over || h->is_closed)
			mcpc_exchange_free(x);
	if (h->is_closed)
		http_free(h);
}

/* ---- what the client asks for ---- */

static int http_send(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct mcpc_http *h = (struct mcpc_http *)t;
	struct mcpc_exchange *x = mcpc_exchange_create(h, m, err);
	int r = 0;

	if (!x)
		return err_result(err, ENOMEM);
	if (x->is_first) {
		h->session[0] = '\0'; /* a new one comes with the answer */
		h->version[0] = '\0';
		h->session_no++;
	}
	if (h->is_old && !h->post_url && !h->ear)
		r = mcpc_http_old_open(h, err);
	if (h->gate && (!x->is_first || h->is_old))
		x->is_held = true;
	else if (r == 0)
		r = mcpc_exchange_start(x, err);
	if (r < 0)
		mcpc_exchange_free(x);
	else if (x->is_gate && !x->is_held)
		h->gate = x;
	return r;
}

static void http_forget(struct mcpc_transport *t, const char *id)
{
	struct mcpc_http *h = (struct mcpc_http *)t;

	mcpc_http_enter(h);
	LIST_FOREACH (&h->all, x, struct mcpc_exchange, node)
		if (!x->is_over && x->id && strcmp(x->id, id) == 0)
			mcpc_exchange_drop(x);
	mcpc_http_leave(h);
}

/* What the server says by itself. Requests wait until it is heard: a server may ask something there
 * before it answers one. */
static void listen(struct mcpc_http *h)
{
	struct err err = { 0 };

	h->wants_ear = false;
	h->ear = mcpc_exchange_create(h, NULL, &err);
	if (h->ear && mcpc_exchange_start(h->ear, &err) < 0)
		mcpc_exchange_drop(h->ear);
	if (err.code)
		log_debug("mcpc", "the server is not listened to: %s", err.text);
	h->gate = h->ear;
	if (h->gate)
		loop_timer_start(h->gate_timer, GATE_MS, 0);
}

static void start_held(struct mcpc_http *h, struct mcpc_exchange *x)
{
	struct err err = { 0 };

	x->is_held = false;
	if (mcpc_exchange_start(x, &err) == 0) {
		h->gate = x->is_gate ? x : NULL; /* the next one */
		return;
	}
	x->is_over = true;
	if (x->id)
		h->base.events->failed(h->base.user, x->id, 0, "", 0, &err);
}

void mcpc_http_pass_gate(struct mcpc_http *h, const struct mcpc_exchange *x)
{
	if (h->gate != x || h->is_closed)
		return;
	mcpc_http_enter(h);
	h->gate = NULL;
	loop_timer_stop(h->gate_timer);
	if (h->wants_ear && !x->is_first)
		listen(h);
	LIST_FOREACH (&h->all, held, struct mcpc_exchange, node)
		if (held->is_held && !held->is_over && !h->gate && !h->is_closed)
			start_held(h, held);
	mcpc_http_leave(h);
}

static void gate_stuck(void *user)
{
	struct mcpc_http *h = user;

	if (h->gate)
		mcpc_http_pass_gate(h, h->gate);
}

static void http_agreed(struct mcpc_transport *t, const char *version)
{
	struct mcpc_http *h = (struct mcpc_http *)t;

	if (str_copy(h->version, sizeof(h->version), version) < 0 || h->is_old)
		return;
	if (h->ear) { /* of the session before */
		struct mcpc_exchange *old = TAKE(h->ear);

		mcpc_exchange_drop(old);
	}
	h->wants_ear = true;
	if (!h->gate)
		listen(h);
}

static void deleted(void *user, const struct courier_answer *a)
{
	(void)user;
	if (a->r < 0 && a->status != 405) /* which says that it may not be done */
		log_debug("mcpc", "a session is not ended: %s", a->err.text);
}

static void end_session(struct mcpc_http *h)
{
	struct mcpc_exchange x = { .h = h };
	struct courier_request req = { .method = "DELETE",
				       .url = h->url,
				       .server = h->server,
				       .ca_file = h->ca_file,
				       .max = 4096,
				       .timeout_ms = DELETE_MS,
				       .public_only = h->public_only,
				       .is_untraced = true };
	char **headers = NULL;

	if (!h->session[0] || mcpc_http_head_write(&x, &headers) < 0)
		return;
	req.headers = (const char *const *)headers;
	(void)courier_send(h->courier, &req, deleted, NULL);
	mcpc_http_head_free(headers);
}

static void http_close(struct mcpc_transport *t)
{
	struct mcpc_http *h = (struct mcpc_http *)t;

	mcpc_http_enter(h);
	h->is_closed = true;
	end_session(h);
	LIST_FOREACH (&h->all, x, struct mcpc_exchange, node)
		mcpc_exchange_drop(x);
	mcpc_http_leave(h);
}

static const struct mcpc_transport_ops ops = {
	.send = http_send,
	.forget = http_forget,
	.agreed = http_agreed,
	.close = http_close,
	.forget_cancels = true,
};

/* ---- making one ---- */

static int copy(const char *text, char **ret)
{
	*ret = text ? str_dup(str_of(text)) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

/* A line break in one would begin another. */
static bool is_header(const char *line)
{
	const char *colon = strchr(line, ':');

	for (const char *p = line; *p; p++)
		if ((unsigned char)*p < ' ' || *p == 0x7f || (colon && p < colon && *p == ' '))
			return false;
	return colon && colon > line;
}

static int copy_headers(struct mcpc_http *h, const char *const *headers, struct err *err)
{
	for (size_t i = 0; headers && headers[i]; i++) {
		if (i == MCPC_HEADERS_MAX)
			return err_set(err, E2BIG, "headers: more than %u", MCPC_HEADERS_MAX);
		if (!is_header(headers[i]))
			return err_set(err, EINVAL, "headers: want \"Name: value\"");
		if (copy(headers[i], &h->headers[i]) < 0)
			return err_sys(err, ENOMEM, "headers");
	}
	return 0;
}

int mcpc_http_create(const struct mcpc_http_options *o, struct mcpc_transport **ret,
		     struct err *err)
{
	struct mcpc_http *h;
	int r = o->server ? 0 : courier_check_url(o->url, err);

	if (r < 0)
		return r;
	h = calloc(1, sizeof(*h));
	if (!h)
		return err_sys(err, ENOMEM, "MCP transport");
	list_init(&h->all);
	h->base.ops = &ops;
	h->loop = o->loop;
	h->courier = o->courier;
	h->auth = o->auth;
	h->public_only = o->public_only;
	h->is_old = h->is_old_only = o->is_old;
	if (copy(o->url, &h->url) < 0 || copy(o->server, &h->server) < 0 ||
	    copy(o->ca_file, &h->ca_file) < 0)
		r = err_sys(err, ENOMEM, "MCP transport");
	else
		r = copy_headers(h, o->headers, err);
	if (r == 0 && loop_timer_create(h->loop, gate_stuck, h, &h->gate_timer) < 0)
		r = err_sys(err, ENOMEM, "MCP transport");
	if (r < 0) {
		http_free(h);
		return r;
	}
	*ret = &h->base;
	return 0;
}
