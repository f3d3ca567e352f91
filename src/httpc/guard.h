/* Which addresses a request may go to that somebody else has asked for: those of the public
 * internet only, none of this machine's own and none that the operator has closed. Asked of the
 * address that is connected to, not of the name, so that a name which resolves to something else
 * the second time changes nothing. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct err;
struct sockaddr;

/* Addresses that begin alike. */
struct guard_net {
	uint8_t address[16]; /* an IPv4 one as IPv6 has it */
	unsigned bits;       /* of the 128 that count */
};

/* "192.0.2.7", "192.0.2.0/24", "2001:db8::/32". 0, or -EINVAL. */
int guard_net_parse(const char *text, struct guard_net *ret);
bool guard_net_has(const struct guard_net *n, const uint8_t address[16]);
/* An address of IPv4 as IPv6 has it, also one that comes in another form of IPv6: mapped, NAT64,
 * 6to4. False for what is not IP. */
bool guard_flatten(const struct sockaddr *addr, uint8_t ret[16]);

/* What the operator has closed, whatever else is allowed. */
#define GUARD_NETS_MAX 256u
struct guard_nets {
	size_t len;
	struct guard_net items[GUARD_NETS_MAX];
};
int guard_nets_add(struct guard_nets *n, const char *text, struct err *err); /* -EINVAL, -E2BIG */

struct guard_terms {
	bool allow_private; /* also what is not of the public internet, and this machine itself */
	const struct guard_nets *closed; /* borrowed; NULL: nothing more */
};
/* The one question of everything that goes out on another's behalf. */
bool guard_allows(const struct guard_terms *t, const struct sockaddr *addr);

/* Its parts. False for loopback, private, link-local, carrier, documentation, multicast and
 * reserved ranges, for IPv6 forms that carry such an IPv4 address, and for what is not IP. */
bool guard_is_public(const struct sockaddr *addr);
/* Whether what is sent there stays on this machine: an address of any of its interfaces, or one
 * that it accepts as its own by a route. Asked of the kernel's routes each time, for addresses come
 * and go. True when that cannot be known. */
bool guard_is_own(const struct sockaddr *addr);
