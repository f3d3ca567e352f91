/* Names to addresses, by c-ares behind our names: on the loop's thread, without waiting for
 * anybody. As the machine does it (nsswitch.conf as far as it says files and dns, hosts,
 * resolv.conf), within a time and for so many lookups at once; of one owner fewer, so that one who
 * asks servers that do not answer takes nothing from another. Belongs to the loop's thread. */
#pragma once

#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>

#include "base/cleanup.h"

struct err;
struct loop;
struct resolve;  /* opaque: one lookup */
struct resolver; /* opaque */

#define RESOLVE_MAX 1024u     /* under way, of all owners */
#define RESOLVE_OWNER_MAX 32u /* of one */
#define RESOLVE_MS 10000u     /* for a lookup, whatever servers do */
#define RESOLVE_ADDRESSES_MAX 16u
#define RESOLVE_NAME_MAX 253u

union resolve_address {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
};

struct resolve_options {
	const char *servers; /* "127.0.0.1:5353,[::1]:53" instead of the machine's; NULL */
	uint32_t timeout_ms; /* 0: RESOLVE_MS */
};

/* code: 0 and at least one address, best first, with their port; -ENOENT: the name has none;
 * -ETIMEDOUT; -EIO: servers fail. Addresses are borrowed for the call. */
typedef void (*resolve_cb)(void *user, int code, const union resolve_address *addresses, size_t n);

int resolver_create(struct loop *loop, const struct resolve_options *o, struct resolver **ret,
		    struct err *err);
/* No callback is called any more. Takes NULL, returns NULL. */
struct resolver *resolver_free(struct resolver *r);
CLEANUP_FUNC(struct resolver *, resolver_free)
/* 0: the callback comes once, never from inside the call. -EAGAIN: too many of the owner's, or of
 * all, are under way; -EINVAL, -ENOMEM. owner "": nobody's in particular, bounded like one. */
int resolver_ask(struct resolver *r, const char *owner, const char *host, uint16_t port,
		 resolve_cb cb, void *user, struct resolve **ret, struct err *err);
/* Before its callback: it is not called. */
void resolve_cancel(struct resolve *q);
