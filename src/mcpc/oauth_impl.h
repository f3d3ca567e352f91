/* What the files of OAuth know of each other. */
#pragma once

#include "base/arena.h"
#include "base/buf.h"
#include "base/str.h"
#include "crypto/secret.h"
#include "crypto/signer.h"
#include "mcpc/oauth.h"
#include "json/jv_decode.h"

#define OAUTH_URL_MAX 2048u
#define OAUTH_PLACES_MAX 3u
#define OAUTH_LIST_MAX 1024u      /* elements of a list in metadata */
#define OAUTH_SERVERS_MAX 16u     /* authorization servers of one resource */
#define OAUTH_FLOW_MAX (1u << 20) /* bytes of one way to a token */

/* ---- WWW-Authenticate: oauth_challenge.c ---- */

struct oauth_challenge { /* "": not said */
	char error[64], scope[OAUTH_SCOPE_MAX], metadata[OAUTH_URL_MAX];
};
/* The first Bearer challenge in it; what is not understood or too long is not said. */
void oauth_challenge_parse(const char *text, struct oauth_challenge *ret);

/* ---- addresses: oauth_url.c ---- */

/* TLS, or loopback; no user, no fragment, no odd bytes. `what` is for the error. */
int oauth_url_check(const char *what, const char *url, struct err *err);
struct str oauth_url_origin(const char *url);
bool oauth_url_same_origin(const char *a, const char *b);
/* Whether what a resource calls itself may stand for the server at this address: the address
 * itself, or a part of its path from the left. No normalization. */
bool oauth_url_covers(const char *resource, const char *server);
/* Where metadata may be, best first; NULL behind the last. -ENOMEM. */
int oauth_url_resource(struct arena *a, const char *server, const char *said,
		       const char *places[OAUTH_PLACES_MAX + 1]);
int oauth_url_issuer(struct arena *a, const char *issuer, bool is_old,
		     const char *places[OAUTH_PLACES_MAX + 1]);

/* ---- scopes: oauth_scope.c ---- */

bool oauth_scope_has(struct str all, struct str one);
bool oauth_scope_has_all(struct str all, struct str some);
/* Those that b does not have yet. -E2BIG, -ENOMEM. */
int oauth_scope_add(struct buf *b, struct str more);

/* ---- what servers answer: oauth_answer.c ---- */

struct oauth_resource {
	const char *resource;
	struct jv_strings servers, scopes;
};
struct oauth_metadata {
	const char *issuer, *authorization, *token, *registration; /* the last may be NULL */
	struct jv_strings scopes, methods, challenges;
	bool says_iss, takes_documents;
	bool is_guessed; /* there is none: endpoints as they were before there was metadata */
};
struct oauth_registered {
	const char *id, *secret, *method; /* the last two may be NULL */
};
struct oauth_tokens {
	const char *access, *refresh, *type, *scope; /* all but access may be NULL */
	double expires_s;                            /* 0: not said */
};
int oauth_read_resource(const char *body, size_t n, struct arena *a, struct oauth_resource *ret,
			struct err *err);
int oauth_read_metadata(const char *body, size_t n, struct arena *a, struct oauth_metadata *ret,
			struct err *err);
int oauth_read_registered(const char *body, size_t n, struct arena *a, struct oauth_registered *ret,
			  struct err *err);
int oauth_read_tokens(const char *body, size_t n, struct arena *a, struct oauth_tokens *ret,
		      struct err *err);
/* "invalid_grant"; "" when the body says no such thing. */
void oauth_read_error(const char *body, size_t n, char *dst, size_t size);
bool oauth_strings_have(struct jv_strings list, const char *one);

/* ---- what is kept: oauth_keep.c ---- */

enum oauth_method { OAUTH_NONE, OAUTH_BASIC, OAUTH_POST, OAUTH_JWT };

struct oauth_kept {   /* of one authorization server; all owned, "" or NULL: none */
	char *issuer; /* NULL: nothing is kept */
	char *client_id, *redirect, *scope, *method;
	struct secret *client_secret, *access, *refresh;
	int64_t ends_s; /* of the access token; 0: not said */
};
void oauth_kept_done(struct oauth_kept *k);
/* Copies; -ENOMEM. */
int oauth_kept_text(char **dst, const char *text);
int oauth_kept_secret(struct secret **dst, const char *text);

/* ---- the way ---- */

enum oauth_state {
	OAUTH_AT_REST,
	OAUTH_AT_RESOURCE, /* the server's own metadata */
	OAUTH_AT_METADATA, /* the authorization server's */
	OAUTH_AT_REFRESH,
	OAUTH_AT_REGISTER,
	OAUTH_AT_OPEN,
	OAUTH_AT_TOKEN,
	OAUTH_AT_END, /* there is a token */
	OAUTH_AT_LOSS,
	OAUTH_STATES
};

struct oauth_client { /* as whom we go there */
	const char *id, *secret;
	enum oauth_method method;
};

struct oauth_flow {
	enum oauth_state state;
	struct arena *arena; /* owned: all texts here */
	int status;          /* that it began with */
	int64_t now_s;       /* of the last answer */
	struct oauth_challenge challenge;
	const char *places[OAUTH_PLACES_MAX + 1];
	size_t place;
	bool is_old; /* the server has no metadata: it is its own authorization server */
	const char *resource, *issuer;
	struct jv_strings scopes; /* of the resource */
	struct oauth_metadata meta;
	struct oauth_client client;
	const char *scope; /* asked for; "" */
	char verifier[64], token_of_state[64];
	const char *url;             /* of the request, or to be opened */
	struct buf body, credential; /* secrets are in them */
	bool is_json;
	struct err err;
};

struct oauth {
	struct arena *arena; /* owned: the options' texts */
	struct oauth_options is;
	struct signer *signer;    /* owned: of client_key; NULL */
	struct secret *assertion; /* owned; NULL: none */
	char *redirect;           /* owned: in the place of the options' own; NULL */
	struct oauth_kept kept;
	struct oauth_flow flow;
};

const char *oauth_redirect(const struct oauth *o); /* the one in force; NULL */

/* ---- what to ask for, and as whom: oauth_choose.c ---- */

/* What the server wants now (or, where it does not say, has), and what was asked for before. */
int oauth_choose_scope(struct oauth *o); /* -E2BIG, -ENOMEM */
/* Each sets flow.client; false: there is no such. */
bool oauth_use_configured(struct oauth *o);
bool oauth_use_document(struct oauth *o);
bool oauth_use_kept(struct oauth *o);

/* ---- requests: oauth_request.c ---- */

int oauth_write_registration(struct oauth *o);
int oauth_write_open(struct oauth *o);                   /* url */
int oauth_write_code(struct oauth *o, const char *code); /* body and credential, as the others */
int oauth_write_refresh(struct oauth *o, const char *token);
int oauth_write_client(struct oauth *o);
int oauth_write_assertion(struct oauth *o, const char *jwt);
void oauth_flow_wipe(struct oauth_flow *f); /* body and credential */
void oauth_flow_done(struct oauth_flow *f); /* oauth.c: all of it */
