/* The client under the conformance suite: `mcp-conformance-client URL`, with the scenario in the
 * environment. Holt's client does the work; this says what for. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/log.h"
#include "browser.h"
#include "loop/loop.h"
#include "mcpc/http.h"
#include "mcpc/mcpc.h"
#include "outbound/courier.h"
#include "plan.h"
#include "json/jw.h"

CLEANUP_FUNC(struct jv_doc *, jv_free)
CLEANUP_FUNC(struct loop *, loop_free)

#define CAPABILITIES                                                            \
	"{\"elicitation\":{\"form\":{\"applyDefaults\":true}},\"sampling\":{}," \
	"\"roots\":{\"listChanged\":true}}"
#define LAST_WORDS_MS 200 /* for the end of a session to get through */

struct client {
	struct loop *loop;
	struct courier *courier;
	struct mcpc *mcpc;
	struct loop_timer *timer;
	struct browser *browser; /* NULL: nobody is asked who we are */
	struct plan plan;
	bool is_good;
};

static void stop(void *user)
{
	loop_stop(((struct client *)user)->loop);
}

/* ---- what servers ask ---- */

static void accept_form(struct mcpc *c, void *ask, struct jv params)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "action", "accept");
	jw_key(&w, "content");
	plan_write_value(&w, jv_get(params, "requestedSchema"));
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		mcpc_answer(c, ask, b.data);
	else
		mcpc_refuse(c, ask, RPC_INTERNAL, "out of memory");
}

static void asked(void *user, struct mcpc *c, void *ask, const char *method, struct jv params)
{
	(void)user;
	if (strcmp(method, "elicitation/create") == 0)
		accept_form(c, ask, params);
	else if (strcmp(method, "sampling/createMessage") == 0)
		mcpc_answer(c, ask,
			    "{\"role\":\"assistant\",\"content\":{\"type\":\"text\",\"text\":"
			    "\"test\"},\"model\":\"test\",\"stopReason\":\"endTurn\"}");
	else if (strcmp(method, "roots/list") == 0)
		mcpc_answer(c, ask, "{\"roots\":[]}");
	else
		mcpc_refuse(c, ask, RPC_NO_METHOD, "not known here");
}

static void changed(void *user, struct mcpc *c, const char *method)
{
	(void)user;
	(void)c;
	(void)fprintf(stderr, "changed: %s\n", method);
}

static const struct mcpc_handlers handlers = { .asked = asked, .changed = changed };

/* ---- its course ---- */

static void over(void *user, bool is_good)
{
	struct client *c = user;

	c->is_good = is_good;
	c->mcpc = mcpc_free(c->mcpc);
	loop_timer_start(c->timer, LAST_WORDS_MS, 0);
}

static void ready(void *user, const struct err *err)
{
	struct client *c = user;

	if (err && err->code) {
		(void)fprintf(stderr, "connect: %s\n", err->text);
		over(c, false);
		return;
	}
	c->plan.client = c->mcpc;
	plan_run(&c->plan);
}

static int begin(struct client *c, const char *url, struct err *err)
{
	struct mcpc_transport *t = NULL;
	struct mcpc_options o = { .loop = c->loop,
				  .name = "holt",
				  .version = "1",
				  .capabilities = CAPABILITIES,
				  .only_version = getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"),
				  .handlers = &handlers,
				  .user = c };
	const char *said = getenv("MCP_CONFORMANCE_SCENARIO"), *scenario = said ? said : "";
	int r = courier_create(c->loop, &c->courier, err);

	if (r == 0)
		r = loop_timer_create(c->loop, stop, c, &c->timer);
	if (r == 0 && strncmp(scenario, "auth/", 5) == 0)
		r = browser_create(c->loop, c->courier, url, scenario, jv_root(c->plan.context),
				   &c->browser, err);
	if (r == 0)
		r = mcpc_http_create(
			&(struct mcpc_http_options){ .loop = c->loop,
						     .courier = c->courier,
						     .url = url,
						     .auth = c->browser ? browser_auth(c->browser)
									: NULL },
			&t, err);
	if (r == 0)
		r = mcpc_create(&o, t, &c->mcpc, err);
	if (r == 0)
		mcpc_connect(c->mcpc, ready, c);
	return r;
}

static void end(struct client *c)
{
	c->mcpc = mcpc_free(c->mcpc);
	c->browser = browser_free(c->browser);
	c->timer = loop_timer_free(c->timer);
	c->courier = courier_free(c->courier);
	plan_done(&c->plan);
}

int main(int argc, char **argv)
{
	_cleanup_(jv_free_p) struct jv_doc *context = NULL;
	_cleanup_(loop_free_p) struct loop *loop = NULL;
	const char *text = getenv("MCP_CONFORMANCE_CONTEXT");
	struct client c = { .plan = { .over = over, .user = &c } };
	struct err err = { 0 };

	if (argc < 2)
		return 2;
	if (getenv("MCP_CLIENT_DEBUG"))
		log_set_level(LOG_DEBUG);
	if (text && jv_parse(text, strlen(text), 1 << 20, &context, &err) < 0)
		(void)fprintf(stderr, "context: %s\n", err.text);
	c.plan.context = context;
	if (loop_create(&loop, &err) < 0)
		return 2;
	c.loop = loop;
	if (begin(&c, argv[argc - 1], &err) == 0)
		loop_run(loop);
	else
		(void)fprintf(stderr, "%s\n", err.text);
	end(&c);
	return c.is_good ? 0 : 1;
}
