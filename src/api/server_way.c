/* The way out of sandboxes that others' MCP servers run in, as far as their rows go. */
#include "api/server_way.h"

#include <stdlib.h>

#include "api/call.h"
#include "api/network.h"
#include "base/arena.h"
#include "sandbox/sandbox.h"

#define ARENA_MAX 4096u

struct leading {
	struct network_wait wait;
	struct list node; /* in api.leadings */
	void (*ready)(void *user, const struct sandbox_pair *env, size_t n);
	void *user;
};

static void leading_free(struct leading *l)
{
	list_remove(&l->node);
	free(l);
}

static void led(void *user, uint16_t port)
{
	struct leading *l = user;
	struct sandbox_pair env[NETWORK_VARIABLES];
	struct arena *a = port ? arena_create(ARENA_MAX) : NULL;
	ssize_t n = a ? network_add_env(env, 0, port, a) : 0;

	l->ready(l->user, env, n > 0 ? (size_t)n : 0);
	(void)arena_free(a);
	leading_free(l);
}

static void lead_out(void *self, struct sandbox *sb, const struct stdio_network *wish,
		     void (*ready)(void *user, const struct sandbox_pair *env, size_t n),
		     void *user)
{
	const struct network_terms terms = { .is_open = wish->is_open, .allow = wish->allow };
	struct leading *l = calloc(1, sizeof(*l));
	struct api *api = self;

	if (!l)
		return ready(user, NULL, 0);
	list_push_back(&api->leadings, &l->node);
	l->ready = ready;
	l->user = user;
	l->wait.ready = led;
	l->wait.user = l;
	network_await(api, sb, &terms, &l->wait);
}

struct stdio_way api_server_way(struct api *api)
{
	return (struct stdio_way){ .open = lead_out, .self = api };
}

void server_ways_forget(struct api *api)
{
	LIST_FOREACH (&api->leadings, l, struct leading, node)
		leading_free(l);
}
