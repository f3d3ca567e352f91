/* Who logs in for the conformance suite: a browser without a person. The address that is to be
 * opened is asked for, and where its answer sends us to is where we come back. */
#pragma once

#include "json/jv.h"

struct browser; /* opaque */
struct courier;
struct err;
struct loop;
struct mcpc_auth;

/* context: what the suite says of credentials; may be absent. */
int browser_create(struct loop *loop, struct courier *courier, const char *url,
		   const char *scenario, struct jv context, struct browser **ret, struct err *err);
struct browser *browser_free(struct browser *b);   /* takes NULL, returns NULL */
struct mcpc_auth *browser_auth(struct browser *b); /* borrowed */
