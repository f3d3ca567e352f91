/* Which addresses of the internet somebody may reach: networks and names that are allowed, networks
 * that are denied, in this order; and what is in neither list. Names count as they are asked for,
 * networks by the address that is connected to. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct egress_rules; /* opaque */
struct err;
struct sockaddr;

#define RULES_MAX 512u /* entries of both lists */

/* is_open: what is in neither list may be reached. NULL without memory. */
struct egress_rules *rules_create(bool is_open);
struct egress_rules *rules_free(struct egress_rules *r); /* takes NULL, returns NULL */
CLEANUP_FUNC(struct egress_rules *, rules_free)
/* "192.0.2.7", "192.0.2.0/24", "2001:db8::/32", "api.example.com", "*.example.com" (not
 * "example.com" itself), "*". -EINVAL, -E2BIG, -ENOMEM. */
int rules_allow(struct egress_rules *r, const char *text, struct err *err);
/* The same, but for names: an address has many, and one that was not thought of would lead there.
 */
int rules_deny(struct egress_rules *r, const char *text, struct err *err);

/* Whether a name (in lower case) is allowed as such, whatever its address. */
bool rules_allow_name(const struct egress_rules *r, const char *host);
bool rules_allow_address(const struct egress_rules *r, const struct sockaddr *a);
