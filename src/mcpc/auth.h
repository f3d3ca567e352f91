/* How a server over HTTP is told who we are: OAuth (oauth.h), with its requests made by the
 * courier. One for each server, shared by all requests to it: whoever is refused while a token is
 * on its way waits for that one. On the loop. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "mcpc/http.h"
#include "mcpc/oauth.h"

struct courier;
struct guard_nets;
struct loop;

#define MCPC_AUTH_WAITS_MAX 512u
#define MCPC_AUTH_FETCH_MS 15000u  /* of each request to an authorization server */
#define MCPC_AUTH_LOGIN_MS 600000u /* that somebody may take with a browser */

struct mcpc_auth_options {
	struct loop *loop; /* borrowed, as is the courier */
	struct courier *courier;
	const struct guard_nets *closed; /* borrowed: none of what a server names; NULL */
	struct oauth_options oauth;
	/* A file with the JWT that vouches for us, for OAUTH_GRANT_ASSERTION: read each time, since
	 * such tokens are short-lived. NULL: none. */
	const char *assertion_file;
	/* What has to outlast us has changed: JSON with tokens in it, for mcpc_auth_load(); NULL:
	 * nothing. May be NULL itself. */
	void (*keep)(void *user, const char *json);
	/* Somebody has to open this address, and mcpc_auth_redirected() follows. NULL: nobody
	 * can, unless they begin with mcpc_auth_login(). */
	void (*open)(void *user, const char *url);
	uint64_t login_ms;           /* that somebody may take with a browser; 0: as above */
	void (*release)(void *user); /* the last that is called; may be NULL */
	void *user;
};

int mcpc_auth_create(const struct mcpc_auth_options *o, struct mcpc_auth **ret, struct err *err);
/* One token, and no other way: a refusal stands. -EINVAL: it cannot be one. */
int mcpc_auth_create_fixed(const char *token, struct mcpc_auth **ret, struct err *err);
/* Who waits is forgotten. Takes NULL, returns NULL. */
struct mcpc_auth *mcpc_auth_free(struct mcpc_auth *a);
CLEANUP_FUNC(struct mcpc_auth *, mcpc_auth_free)
/* What keep() was given once. -EINVAL leaves it as it was. */
int mcpc_auth_load(struct mcpc_auth *a, const char *json, struct err *err);

/* Somebody wants to log in, and can be reached at `redirect`: opened() comes once, with the address
 * to open or with err. What was under way is given up; who waits for it waits on. -ENOTSUP: nobody
 * logs in there. */
int mcpc_auth_login(struct mcpc_auth *a, const char *redirect,
		    void (*opened)(void *user, const char *url, const struct err *err), void *user,
		    struct err *err);
/* The browser is back, with this behind the '?'. done() comes once when there is a token or none.
 * -EINVAL: that was not asked. */
int mcpc_auth_redirected(struct mcpc_auth *a, const char *query,
			 void (*done)(void *user, const struct err *err), void *user,
			 struct err *err);
/* Forgets all that was got: tokens and who we were there. Whoever waits is told. */
void mcpc_auth_logout(struct mcpc_auth *a);
/* Neither opened() nor done() of this user comes any more. */
void mcpc_auth_leave(struct mcpc_auth *a, void *user);
/* Whether there is anything to go there with: a token, or what gets one by itself. */
bool mcpc_auth_is_ready(const struct mcpc_auth *a);
