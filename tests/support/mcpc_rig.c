#include "mcpc_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "json/jw.h"

static char *copy(const char *text)
{
	char *s = str_dup(str_of(text));

	assert_non_null(s);
	return s;
}

static int on_send(struct mcpc_transport *t, const struct mcpc_send *m, struct err *err)
{
	struct mcpc_rig *g = (struct mcpc_rig *)t;

	if (g->send_fails < 0)
		return err_sys(err, g->send_fails, "send");
	if (g->is_deaf)
		return 0;
	assert_true(g->n_sent < MCPC_RIG_SENT_MAX);
	assert_int_equal(strlen(m->text), m->len);
	g->sent[g->n_sent++] = copy(m->text);
	free(TAKE(g->headers));
	if (m->headers && m->headers[0])
		g->headers = copy(m->headers[0]);
	if (m->name) {
		free(g->name);
		g->name = copy(m->name);
	}
	return 0;
}

static void on_forget(struct mcpc_transport *t, const char *id)
{
	struct mcpc_rig *g = (struct mcpc_rig *)t;

	assert_int_equal(str_copy(g->forgotten, sizeof(g->forgotten), id), 0);
}

static void on_agreed(struct mcpc_transport *t, const char *version)
{
	struct mcpc_rig *g = (struct mcpc_rig *)t;

	assert_int_equal(str_copy(g->agreed, sizeof(g->agreed), version), 0);
}

static void on_close(struct mcpc_transport *t)
{
	((struct mcpc_rig *)t)->is_closed = true;
}

static const struct mcpc_transport_ops stream_ops = {
	.send = on_send, .forget = on_forget, .agreed = on_agreed, .close = on_close
};
static const struct mcpc_transport_ops http_ops = { .send = on_send,
						    .forget = on_forget,
						    .agreed = on_agreed,
						    .close = on_close,
						    .forget_cancels = true };

static void asked(void *user, struct mcpc *c, void *ask, const char *method, struct jv params)
{
	struct mcpc_rig *g = user;

	(void)params;
	g->n_asked++;
	g->ask = ask;
	assert_int_equal(str_copy(g->asked, sizeof(g->asked), method), 0);
	if (g->answer)
		mcpc_answer(c, ask, g->answer);
}

static void changed(void *user, struct mcpc *c, const char *method)
{
	(void)c;
	(void)method;
	((struct mcpc_rig *)user)->n_changed++;
}

static void lost(void *user, struct mcpc *c, const struct err *err)
{
	struct mcpc_rig *g = user;

	(void)c;
	g->n_lost++;
	g->lost_err = *err;
	if (g->frees_in_callbacks)
		g->client = mcpc_free(g->client);
}

static const struct mcpc_handlers handlers = { .asked = asked, .changed = changed, .lost = lost };

static void too_long(void *user)
{
	(void)user;
	fail_msg("nothing came");
}

struct mcpc_rig *mcpc_rig_create(const char *only_version, bool forget_cancels)
{
	struct mcpc_rig *g = calloc(1, sizeof(*g));
	struct mcpc_options o = { .name = "holt",
				  .version = "1",
				  .capabilities = "{\"elicitation\":{}}",
				  .only_version = only_version,
				  .handlers = &handlers,
				  .user = g };

	assert_non_null(g);
	assert_int_equal(loop_create(&g->loop, NULL), 0);
	assert_int_equal(loop_timer_create(g->loop, too_long, g, &g->limit), 0);
	g->transport.ops = forget_cancels ? &http_ops : &stream_ops;
	o.loop = g->loop;
	assert_int_equal(mcpc_create(&o, &g->transport, &g->client, NULL), 0);
	return g;
}

void mcpc_rig_free(struct mcpc_rig *g)
{
	g->client = mcpc_free(g->client);
	assert_true(g->is_closed);
	g->limit = loop_timer_free(g->limit);
	g->loop = loop_free(g->loop);
	for (size_t i = 0; i < g->n_sent; i++)
		free(g->sent[i]);
	free(g->headers);
	free(g->name);
	free(g->result);
	free(g);
}

const char *mcpc_rig_last(const struct mcpc_rig *g)
{
	assert_true(g->n_sent > 0);
	return g->sent[g->n_sent - 1];
}

const char *mcpc_rig_id(const struct mcpc_rig *g)
{
	static char id[32];

	for (size_t i = g->n_sent; i-- > 0;) {
		const char *at = strstr(g->sent[i], "\"id\":");

		if (!at || !strstr(g->sent[i], "\"method\":"))
			continue;
		assert_int_equal(
			str_format(id, sizeof(id), "%.*s", (int)strcspn(at + 5, ",}"), at + 5), 0);
		return id;
	}
	fail_msg("no request was sent");
	return NULL;
}

void mcpc_rig_say(struct mcpc_rig *g, const char *text)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (; *text; text++)
		assert_int_equal(*text == '$' ? buf_puts(&b, mcpc_rig_id(g)) : buf_putc(&b, *text),
				 0);
	g->transport.events->message(g->transport.user, buf_str(&b), b.len);
}

static void ready(void *user, const struct err *err)
{
	struct mcpc_rig *g = user;

	g->n_ready++;
	g->ready_err = err ? *err : (struct err){ 0 };
}

void mcpc_rig_connect_modern(struct mcpc_rig *g, const char *capabilities)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	mcpc_connect(g->client, ready, g);
	(void)buf_puts(&b, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"resultType\":\"complete\","
			   "\"supportedVersions\":[\"2026-07-28\"],\"capabilities\":");
	(void)buf_puts(&b, capabilities);
	assert_int_equal(buf_puts(&b, "}}"), 0);
	mcpc_rig_say(g, b.data);
	assert_int_equal(g->n_ready, 1);
	assert_int_equal(g->ready_err.code, 0);
}

void mcpc_rig_connect_legacy(struct mcpc_rig *g)
{
	mcpc_connect(g->client, ready, g);
	if (strstr(mcpc_rig_last(g), "server/discover"))
		mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"error\":{\"code\":-32601,"
				"\"message\":\"no\"}}");
	assert_non_null(strstr(mcpc_rig_last(g), "\"initialize\""));
	mcpc_rig_say(g, "{\"jsonrpc\":\"2.0\",\"id\":$,\"result\":{\"protocolVersion\":"
			"\"2025-06-18\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":"
			"\"old\",\"version\":\"1\"}}}");
	assert_int_equal(g->n_ready, 1);
	assert_int_equal(g->ready_err.code, 0);
}

void mcpc_rig_done(void *user, const struct mcpc_outcome *o)
{
	struct mcpc_rig *g = user;
	struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	g->n_done++;
	g->err = o->err;
	g->rpc_code = o->rpc_code;
	jw_value(&w, o->result);
	assert_int_equal(jw_end(&w), 0);
	free(g->result);
	g->result = buf_take(&b);
	if (g->frees_in_callbacks)
		g->client = mcpc_free(g->client);
}

static void progress(void *user, double at, double total, const char *text)
{
	(void)at;
	(void)total;
	(void)text;
	((struct mcpc_rig *)user)->n_progress++;
}

struct mcpc_call *mcpc_rig_ask(struct mcpc_rig *g, const char *method, const char *params)
{
	struct mcpc_call *call = NULL;
	struct mcpc_request req = { .method = method,
				    .params = params,
				    .done = mcpc_rig_done,
				    .progress = progress,
				    .user = g };

	assert_int_equal(mcpc_request(g->client, &req, &call, NULL), 0);
	return call;
}

struct watch {
	struct mcpc_rig *g;
	const unsigned *counter;
	unsigned value;
};

static void look(void *user)
{
	const struct watch *w = user;

	if (*w->counter == w->value)
		loop_stop(w->g->loop);
}

void mcpc_rig_wait(struct mcpc_rig *g, const unsigned *counter, unsigned value)
{
	struct watch w = { g, counter, value };
	struct loop_timer *t = NULL;

	assert_int_equal(loop_timer_create(g->loop, look, &w, &t), 0);
	loop_timer_start(t, 1, 1);
	loop_timer_start(g->limit, 60000, 0);
	loop_run(g->loop);
	loop_timer_stop(g->limit);
	t = loop_timer_free(t);
	assert_int_equal(*counter, value);
}
