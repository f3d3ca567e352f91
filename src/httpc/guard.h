/* Which addresses a request may go to that somebody else has asked for: those of the public
 * internet only. Asked of the address that is connected to, not of the name, so that a name which
 * resolves to something else the second time changes nothing. */
#pragma once

#include <stdbool.h>

struct sockaddr;

/* False for loopback, private, link-local, carrier, documentation, multicast and reserved ranges,
 * for IPv6 forms that carry such an IPv4 address, and for what is not IP. */
bool guard_is_public(const struct sockaddr *addr);
