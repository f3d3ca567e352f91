/* How a server over HTTP is told who we are: OAuth (oauth.h) with its requests made by the courier.
 * One for each server, shared by all requests to it. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/list.h"
#include "mcpc/oauth.h"

struct courier;
struct loop;
struct mcpc_auth; /* opaque */

#define MCPC_AUTH_TRIES 3u /* how often one request may be repeated for it */
#define MCPC_AUTH_WAITS_MAX 512u
#define MCPC_AUTH_FETCH_MS 15000u /* of each request to an authorization server */

struct mcpc_auth_options {
	struct loop *loop; /* borrowed, as is the courier */
	struct courier *courier;
	struct oauth_options oauth;
	/* What has to outlast us has changed: JSON with tokens in it, for mcpc_auth_load(). May be
	 * NULL. */
	void (*keep)(void *user, const char *json);
	/* Somebody has to open this address and come back with mcpc_auth_redirected(). NULL:
	 * nobody can, and only what needs no browser is done. */
	void (*open)(void *user, const char *url);
	void *user;
};

int mcpc_auth_create(const struct mcpc_auth_options *o, struct mcpc_auth **ret, struct err *err);
/* Waits are forgotten. Takes NULL, returns NULL. */
struct mcpc_auth *mcpc_auth_free(struct mcpc_auth *a);
CLEANUP_FUNC(struct mcpc_auth *, mcpc_auth_free)
/* What keep() was given once. -EINVAL leaves it as it was. */
int mcpc_auth_load(struct mcpc_auth *a, const char *json, struct err *err);

/* "Authorization: Bearer ...", borrowed until the loop's next turn, or NULL: there is none (any
 * more). *ret_generation is what mcpc_auth_refused() wants to know. */
const char *mcpc_auth_header(struct mcpc_auth *a, uint64_t *ret_generation);

struct mcpc_auth_wait {
	struct list node; /* initialised by mcpc_auth_refused() */
	/* err NULL: the request may be repeated, with the header that there is then. */
	void (*done)(void *user, const struct err *err);
	void *user;
};
/* A request was refused with 401 or 403 and this WWW-Authenticate (NULL: none). w->done() comes
 * once, never from in here. */
void mcpc_auth_refused(struct mcpc_auth *a, uint64_t generation, int status, const char *challenge,
		       struct mcpc_auth_wait *w);
void mcpc_auth_forget(struct mcpc_auth_wait *w); /* also one that is over, or zeroed */
/* Begins without a refusal: a person wants to log in. w as above. */
void mcpc_auth_login(struct mcpc_auth *a, struct mcpc_auth_wait *w);
/* The browser is back: the query of the address that it came to. -EINVAL: nobody waits for it. */
int mcpc_auth_redirected(struct mcpc_auth *a, const char *query, struct err *err);
