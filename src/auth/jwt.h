/* Access tokens of an identity provider (RFC 7519, RFC 9068): RS256, ES256 and EdDSA, nothing else.
 * The key is found by its name and by the kind that the algorithm needs, so a token cannot make one
 * kind of key be used as another; keys and addresses that a token brings along are not looked at.
 * No I/O and no clock of its own. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "auth/principal.h"

struct err;
struct jwks;

#define JWT_MAX 8192u /* bytes of a token */

struct jwt_rules {                     /* texts borrowed */
	const char *issuer, *audience; /* must be said by the token */
	const char *owner_claim;       /* who it is: "sub" */
	const char *role_claim;        /* NULL: every token is a user's */
	bool may_be_admin;             /* else a token that says admin is a user's */
	/* Who is not in the provider's space, but the local owner of that name; ended by NULL, may
	 * be NULL. */
	const char *const *local_owners;
	int64_t skew_s; /* how far clocks may be apart */
};

/* Whether a text has the form of a token: three parts. */
bool jwt_is_like(const char *text);
/* Whether it says that this issuer has made it for this audience. Nothing of it is checked: for who
 * wants to keep it from others, and for nothing else. */
bool jwt_is_meant_for(const char *token, const char *issuer, const char *audience);
/* Checks everything; *ret is filled on success only, its key_id stays "". `scope` narrows what the
 * role gives to the scopes in it that are ours, if there are any. -EACCES (401): refused, *err says
 * why. -EAGAIN: the set of keys does not know its key: look for a newer one. -ENOMEM. */
int jwt_check(const char *token, const struct jwks *keys, const struct jwt_rules *rules,
	      int64_t now_s, struct principal *ret, struct err *err);
