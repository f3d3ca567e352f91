/* Access to a server that wants OAuth, as MCP has it (RFC 6749, 7636, 7591, 8414, 8707, 9207,
 * 9728): says what to do next and does none of it. Sans-I/O: no sockets and no clock.
 *
 * Nothing is believed because a server says it: metadata counts only from where it belongs to
 * (plain comparison of `resource` and `issuer`), what one authorization server has given is never
 * shown to another one, and everything but loopback is TLS. Tokens and secrets are in no error. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"
#include "base/err.h"

struct buf;
struct oauth; /* opaque: one server, and what we have for it */

#define OAUTH_BODY_MAX (64u << 10) /* bytes of an answer */
#define OAUTH_SCOPE_MAX 2048u      /* bytes of all scopes asked for */
#define OAUTH_TOKEN_MAX (16u << 10)
#define OAUTH_QUERY_MAX (8u << 10) /* bytes that a browser may come back with */
#define OAUTH_SKEW_S 30            /* a token is used up so long before its end */

enum oauth_grant {
	OAUTH_GRANT_CODE,      /* a person says yes, in a browser */
	OAUTH_GRANT_CLIENT,    /* we ourselves are known there */
	OAUTH_GRANT_ASSERTION, /* whoever runs us vouches for us: a JWT (RFC 7523, 2.1) */
};

struct oauth_options {      /* copied */
	const char *server; /* the address that requests go to */
	enum oauth_grant grant;
	const char *client_id, *client_secret; /* registered beforehand; NULL */
	const char *client_key;                /* PEM, P-256: instead of the secret; NULL */
	/* Whom the above are for. NULL: whom the server names first, and nobody else after that. */
	const char *issuer;
	const char *document; /* address of our client id metadata document; NULL */
	const char *redirect; /* where a browser comes back to; NULL: there is none */
	const char *scope;    /* asked for when the server does not say what it wants; NULL */
	const char *name;     /* of us, for people who are asked */
	bool allow_private;   /* the server may name addresses that are not public */
};

int oauth_create(const struct oauth_options *o, struct oauth **ret, struct err *err);
struct oauth *oauth_free(struct oauth *o); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct oauth *, oauth_free)

/* The access token; NULL: none, or used up. */
const char *oauth_token(const struct oauth *o, int64_t now_s);
bool oauth_has_tokens(const struct oauth *o); /* one, or what gets one */
/* What outlasts the process, as JSON; -ENOMEM, -E2BIG. */
int oauth_save(const struct oauth *o, struct buf *b);
/* The way back: what there was is replaced, and what was begun is forgotten. -EINVAL changes
 * nothing. */
int oauth_load(struct oauth *o, const char *json, size_t n, struct err *err);

/* ---- getting one ---- */

/* A request was refused with this status (401, 403) and WWW-Authenticate (NULL: none), or, with
 * status 0, a person wants to log in. -EACCES: there is no use in trying. */
int oauth_begin(struct oauth *o, int status, const char *challenge, struct err *err);
/* The JWT that vouches for us, as it is now; copied. -ENOMEM. */
int oauth_set_assertion(struct oauth *o, const char *jwt);
/* Instead of the one of the options, for what is begun from now on; NULL: that one again. */
int oauth_set_redirect(struct oauth *o, const char *redirect, struct err *err);

/* What was begun ends, with this. */
void oauth_cancel(struct oauth *o, const struct err *err);

enum oauth_step {
	OAUTH_IDLE,   /* nothing was begun */
	OAUTH_FETCH,  /* make this request, then oauth_answer() */
	OAUTH_OPEN,   /* this address has to be opened, then oauth_redirected() */
	OAUTH_READY,  /* there is a token */
	OAUTH_FAILED, /* see err */
};

struct oauth_todo { /* borrowed until the next call */
	enum oauth_step step;
	const char *method, *url, *type, *body; /* type, body: NULL unless it has one */
	size_t body_len;
	const char *authorization; /* "Authorization: Basic ..."; NULL: none */
	bool is_foreign;           /* the server has named it, not the operator */
	bool public_only;          /* see httpc/guard.h */
	const struct err *err;
};
void oauth_todo(const struct oauth *o, struct oauth_todo *ret);
/* What came of OAUTH_FETCH: status 0 and err when nothing did. */
void oauth_answer(struct oauth *o, int status, const char *body, size_t n, int64_t now_s,
		  const struct err *err);
/* What a browser came back with, behind the '?'. -EINVAL: that is no answer to our question, which
 * stays open. */
int oauth_redirected(struct oauth *o, const char *query, struct err *err);
