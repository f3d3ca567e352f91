/* Holt's own doors: REST, server-sent events and WebSocket under /api/v1, health and metrics beside
 * it. Thin: everything that can be done is done by the services in `deps`.
 *
 * The end: http_server_close() first (it lets go of all requests but those that wait for an answer
 * of a service), then api_free(), then what is in `deps`, then http_server_free(); the loop does
 * not run in between. */
#pragma once

#include <stdbool.h>
#include <stdint.h>

#include "base/cleanup.h"

struct guard_nets;
struct resolver;
struct api; /* opaque */
struct api_door;
struct audit_log;
struct auth_keys;
struct bridges;
struct config;
struct err;
struct events;
struct http_request;
struct jwks_source;
struct loop;
struct mcp_server;
struct mcpc_servers;
struct metrics;
struct sandboxes;
struct secret;
struct skills;
struct store;
struct tracer;
struct users;
struct webhooks;

struct api_deps { /* all borrowed, outlive the api */
	struct loop *loop;
	struct resolver *resolver; /* of names that sandboxes ask for */
	const struct config *config;
	unsigned conns_max;              /* connections of the server; 0: no limit */
	const struct guard_nets *closed; /* addresses that nothing may go to; NULL: none */
	struct sandboxes *sandboxes;
	const struct store *store;
	struct auth_keys *keys;
	struct users *users;      /* may be NULL: nobody has a record */
	struct metrics *metrics;  /* may be NULL */
	struct audit_log *audit;  /* NULL: nothing is noted */
	struct events *events;    /* NULL: none are kept */
	struct jwks_source *jwks; /* NULL: no tokens of an identity provider */
	struct tracer *tracer;    /* NULL: no traces */
	struct webhooks *webhooks;
	struct mcpc_servers *servers;        /* others' tools; NULL: none */
	struct bridges *bridges;             /* programs' way to them; NULL: none */
	struct skills *skills;               /* NULL: there are none */
	struct mcp_server *mcp;              /* behind mcp's door; NULL: there is none */
	const struct api_door *const *doors; /* beside our own, ended by NULL; NULL: none */
	const struct secret *secret; /* what tokens of sandboxes are made with; NULL: none are good
				      */
};

int api_create(const struct api_deps *deps, struct api **ret, struct err *err);
struct api *api_free(struct api *api); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct api *, api_free)

/* For struct http_server_options; user is the api. */
void api_handle(void *api, struct http_request *r);
bool api_refuse(void *api, struct http_request *r, int status, const char *message);
void api_crowded(void *api, bool is_refused);
void api_done(void *api, const struct http_request *r, int status, uint64_t bytes,
	      uint64_t took_us);
