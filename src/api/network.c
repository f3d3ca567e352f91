#include "api/network.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/way.h"
#include "base/arena.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "config/config.h"
#include "egress/policy.h"
#include "egress/rules.h"
#include "net/http.h"
#include "sandbox/sandbox.h"

struct network {
	struct list node;           /* api.networks */
	struct way *way;            /* owned */
	struct egress_rules *rules; /* owned */
	struct list waiting;        /* struct network_wait */
	uint16_t port;              /* 0: not yet open */
	char sandbox_id[ID_LEN + 1];
};

static struct network *find(struct api *api, const char *sandbox_id)
{
	LIST_FOREACH (&api->networks, n, struct network, node)
		if (strcmp(n->sandbox_id, sandbox_id) == 0)
			return n;
	return NULL;
}

static void network_free(struct network *n)
{
	list_remove(&n->node);
	way_close(n->way);
	(void)rules_free(n->rules);
	free(n);
}

static void tell(struct network *n, uint16_t port)
{
	while (!list_is_empty(&n->waiting)) {
		struct network_wait *w = LIST_ENTRY(n->waiting.next, struct network_wait, node);

		list_remove(&w->node);
		w->ready(w->user, port);
	}
}

static void opened(void *user, uint16_t port)
{
	struct network *n = user;

	n->port = port;
	tell(n, port);
}

/* What is to run runs without it, as it would where nobody may go out. */
static void failed(void *user, const struct err *err)
{
	struct network *n = user;

	log_warn("api", "sandbox %s has no way out: %s", n->sandbox_id, err->text);
	tell(n, 0);
	network_free(n);
}

static void lost(void *user)
{
	network_free(user);
}

static struct network *network_create(struct api *api, struct sandbox *sb,
				      const struct network_terms *t, struct err *err)
{
	static const struct way_ops ops = { opened, failed, lost };
	struct egress_policy policy = { .allow_private = api->deps.config->internet_allow_private,
					.closed = api->deps.closed };
	struct network *n = calloc(1, sizeof(*n));
	int r;

	if (!n)
		return NULL;
	list_init(&n->waiting);
	list_init(&n->node);
	(void)str_copy(n->sandbox_id, sizeof(n->sandbox_id), sandbox_id(sb));
	r = network_rules(t, &n->rules, err);
	policy.rules = n->rules;
	if (r == 0)
		r = way_open(api, sb, &policy, true, &ops, n, &n->way, err);
	if (r < 0) {
		network_free(n);
		return NULL;
	}
	list_push_back(&api->networks, &n->node);
	return n;
}

void network_await(struct api *api, struct sandbox *sb, const struct network_terms *t,
		   struct network_wait *w)
{
	struct err err = { ENOMEM, "out of memory" };
	struct network *n;

	if (!api->deps.config->internet || (!t->is_open && t->allow.len == 0))
		return w->ready(w->user, 0);
	n = find(api, sandbox_id(sb));
	if (n && n->port != 0)
		return w->ready(w->user, n->port);
	if (!n)
		n = network_create(api, sb, t, &err);
	if (!n) {
		log_warn("api", "sandbox %s has no way out: %s", sandbox_id(sb), err.text);
		return w->ready(w->user, 0);
	}
	list_push_back(&n->waiting, &w->node);
}

void network_open(struct api_call *c, struct sandbox *sb, const struct network_terms *t,
		  void (*ready)(void *user, uint16_t port), void *user)
{
	struct network_wait *w = arena_alloc(http_arena(c->http), sizeof(*w));

	if (!w) {
		log_warn("api", "sandbox %s has no way out: out of memory", sandbox_id(sb));
		return ready(user, 0);
	}
	w->user = user;
	w->ready = ready;
	network_await(c->api, sb, t, w);
}

void network_change(struct api *api, const char *sandbox_id, const struct network_terms *t)
{
	struct network *n = find(api, sandbox_id);
	struct egress_rules *rules = NULL;
	struct err err = { 0 };

	if (!n)
		return;
	if (network_rules(t, &rules, &err) <
	    0) /* rather nothing than what is not wanted any more */
		rules = rules_create(false);
	if (!rules) {
		tell(n, 0);
		return network_free(n);
	}
	way_set_rules(n->way, rules);
	(void)rules_free(n->rules);
	n->rules = rules;
}

void network_forget(struct api *api)
{
	while (!list_is_empty(&api->networks))
		network_free(LIST_ENTRY(api->networks.next, struct network, node));
}
