/* The proxy: see README.md. All functions belong to the loop's thread. */
#pragma once

#include <stdint.h>

#include "egress/policy.h"

struct egress; /* opaque */
struct err;
struct loop;
struct resolver;

#define EGRESS_CONNS_MAX 32u                 /* at once */
#define EGRESS_BYTES_MAX ((uint64_t)4 << 30) /* both ways, of all connections */
#define EGRESS_IDLE_MS 60000u                /* without a byte either way */

struct egress_options { /* copied */
	struct loop *loop;
	struct resolver *resolver; /* borrowed */
	const char *owner;         /* borrowed: whose lookups count together; NULL: nobody's */
	struct egress_policy policy;
	uint64_t bytes_max; /* EGRESS_BYTES_MAX, or fewer; 0: not one passes */
	/* May be NULL: somebody asked for what is not allowed. Texts are borrowed. */
	void (*refused)(void *user, const char *host, uint16_t port, const char *why);
	void *user;
};

int egress_create(const struct egress_options *o, struct egress **ret, struct err *err);
/* Cuts all that is open; takes NULL, returns NULL. */
struct egress *egress_free(struct egress *e);
void egress_accept(struct egress *e, int fd); /* takes fd: a program's connection */
/* For one that was made with rules: others from now on (borrowed). What is open is cut. */
void egress_set_rules(struct egress *e, const struct egress_rules *rules);
uint64_t egress_bytes(const struct egress *e); /* both ways, so far */
