/* Addresses of listeners and peers as text. Inside of net/. */
#pragma once

#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/socket.h>
#include <sys/un.h>

union addr_any {
	struct sockaddr any;
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;
	struct sockaddr_un un;
};

/* "127.0.0.1:8765", "[::1]:8765", "localhost:80" (127.0.0.1), ":8765" and "*:8765" (all addresses),
 * "unix:/absolute/path". -EINVAL. */
int addr_parse(const char *text, union addr_any *ret, socklen_t *ret_len);
bool addr_is_any(const union addr_any *a);         /* all addresses, as IPv6 */
socklen_t addr_any_v4(union addr_any *a);          /* the same as IPv4 */
unsigned short addr_port(const union addr_any *a); /* 0 for a Unix socket */
/* What counts as one peer, as bytes: an address, of IPv6 its /64 (whoever has one address there has
 * them all). Its length; 0 for a Unix socket. */
#define ADDR_KEY_MAX 9
size_t addr_key(const union addr_any *a, char key[ADDR_KEY_MAX]);
/* Without the port; "unix"; an IPv4 address in IPv6 clothes is an IPv4 address. */
void addr_text(const union addr_any *a, char *dst, size_t size);
