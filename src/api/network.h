/* A sandbox's way to the internet, for as long as it lives: where the operator allows such a thing,
 * and as far as the sandbox's own terms go. It is made when something is run that could use it. */
#pragma once

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/list.h"
#include "json/jv_decode.h"

struct api;
struct api_call;
struct arena;
struct egress_rules;
struct err;
struct sandbox;
struct sandbox_pair;

struct network_terms {
	bool is_open;            /* what is in neither list may be reached */
	struct jv_strings allow; /* addresses, networks and names: they win */
	struct jv_strings deny;  /* addresses and networks */
};

/* -EINVAL: an entry that is none. */
int network_check(const struct network_terms *t, struct err *err);
int network_rules(const struct network_terms *t, struct egress_rules **ret, struct err *err);
/* Calls ready(), at once or later, with the port of the box's own 127.0.0.1 where its proxy
 * listens; 0: it has none. */
void network_open(struct api_call *c, struct sandbox *sb, const struct network_terms *t,
		  void (*ready)(void *user, uint16_t port), void *user);
/* The same for who has no request; w is theirs, until ready(). */
struct network_wait {
	struct list node;
	void (*ready)(void *user, uint16_t port);
	void *user;
};
void network_await(struct api *api, struct sandbox *sb, const struct network_terms *t,
		   struct network_wait *w);
/* The terms are others from now on; what is open is cut. */
void network_change(struct api *api, const char *sandbox_id, const struct network_terms *t);
void network_forget(struct api *api); /* all of them: the api goes */

/* Variables that lead programs to the proxy, ended by NULL. */
#define NETWORK_VARIABLES 6
extern const char *const network_variables[NETWORK_VARIABLES + 1];
/* Adds them to the n there are, but for those that are there already; port 0: none. How many there
 * are then, or -ENOMEM. */
ssize_t network_add_env(struct sandbox_pair *env, size_t n, uint16_t port, struct arena *a);
