/* Notices of the modern era: a request that stays open, and is made again when it ends. */
#include <string.h>

#include "mcpc/client_impl.h"
#include "json/jw.h"

#define PAUSE_MIN_MS 1000u
#define PAUSE_MAX_MS 60000u

static const struct {
	const char *capability, *name;
} kinds[] = {
	{ "tools", "toolsListChanged" },
	{ "prompts", "promptsListChanged" },
	{ "resources", "resourcesListChanged" },
};

/* What the server says it would tell. */
static bool has_any(const struct mcpc *c, struct jw *w)
{
	struct jv offered = jv_get(c->hello ? jv_root(c->hello) : (struct jv){ 0 }, "capabilities");
	bool any = false;

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		bool is_told = false;

		(void)jv_bool(jv_get(jv_get(offered, kinds[i].capability), "listChanged"),
			      &is_told);
		if (is_told)
			jw_bool_field(w, kinds[i].name, true);
		any = any || is_told;
	}
	return any;
}

static void again(void *user)
{
	mcpc_listen(user);
}

static void pause_then(struct mcpc *c)
{
	if (!c->ear_timer && loop_timer_create(c->loop, again, c, &c->ear_timer) < 0)
		return;
	loop_timer_start(c->ear_timer, c->ear_pause_ms, 0);
	c->ear_pause_ms = c->ear_pause_ms * 2 > PAUSE_MAX_MS ? PAUSE_MAX_MS : c->ear_pause_ms * 2;
}

static void ended(void *user, const struct mcpc_outcome *o)
{
	struct mcpc *c = user;

	if (o->rpc_code != RPC_NO_METHOD && c->state == MCPC_READY)
		pause_then(c);
}

void mcpc_listen(struct mcpc *c)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	bool any;

	if (!c->handlers || !c->handlers->changed || c->ear)
		return;
	if (c->ear_pause_ms == 0)
		c->ear_pause_ms = PAUSE_MIN_MS;
	jw_object_begin(&w);
	jw_key(&w, "notifications");
	jw_object_begin(&w);
	any = has_any(c, &w);
	jw_object_end(&w);
	jw_object_end(&w);
	if (jw_end(&w) < 0 || !any)
		return;
	if (mcpc_call_start(c,
			    &(struct mcpc_request){ .method = "subscriptions/listen",
						    .params = b.data,
						    .done = ended,
						    .user = c,
						    .timeout_ms = MCPC_NO_LIMIT },
			    false, &c->ear, NULL) < 0)
		pause_then(c);
}
