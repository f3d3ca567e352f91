#include "net/addr.h"

#include <arpa/inet.h>
#include <errno.h>
#include <string.h>

#include "base/parse.h"
#include "base/str.h"

static int parse_unix(const char *path, union addr_any *ret, socklen_t *ret_len)
{
	ret->un.sun_family = AF_UNIX;
	if (path[0] != '/' || str_copy(ret->un.sun_path, sizeof(ret->un.sun_path), path) < 0)
		return -EINVAL;
	*ret_len = sizeof(ret->un);
	return 0;
}

static int parse_host(char *host, uint16_t port, union addr_any *ret, socklen_t *ret_len)
{
	size_t n = strlen(host);

	*ret_len = sizeof(ret->v6);
	ret->v6.sin6_family = AF_INET6;
	ret->v6.sin6_port = port;
	if (n == 0 || strcmp(host, "*") == 0)
		return 0; /* in6addr_any is zero */
	if (host[0] == '[' && host[n - 1] == ']') {
		host[n - 1] = '\0';
		return inet_pton(AF_INET6, host + 1, &ret->v6.sin6_addr) == 1 ? 0 : -EINVAL;
	}
	*ret = (union addr_any){ .v4 = { .sin_family = AF_INET, .sin_port = port } };
	*ret_len = sizeof(ret->v4);
	return inet_pton(AF_INET, strcmp(host, "localhost") == 0 ? "127.0.0.1" : host,
			 &ret->v4.sin_addr) == 1
		       ? 0
		       : -EINVAL;
}

int addr_parse(const char *text, union addr_any *ret, socklen_t *ret_len)
{
	const char *colon = strrchr(text, ':');
	char host[64];
	uint32_t port;

	*ret = (union addr_any){ 0 };
	if (strncmp(text, "unix:", 5) == 0)
		return parse_unix(text + 5, ret, ret_len);
	if (!colon || (size_t)(colon - text) >= sizeof(host) ||
	    parse_u32(colon + 1, 0, 65535, &port) < 0)
		return -EINVAL;
	memcpy(host, text, (size_t)(colon - text));
	host[colon - text] = '\0';
	return parse_host(host, htons((uint16_t)port), ret, ret_len);
}

bool addr_is_any(const union addr_any *a)
{
	return a->any.sa_family == AF_INET6 && IN6_IS_ADDR_UNSPECIFIED(&a->v6.sin6_addr);
}

socklen_t addr_any_v4(union addr_any *a)
{
	uint16_t port = a->v6.sin6_port;

	*a = (union addr_any){ .v4 = { .sin_family = AF_INET, .sin_port = port } };
	return sizeof(a->v4);
}

unsigned short addr_port(const union addr_any *a)
{
	if (a->any.sa_family == AF_INET)
		return ntohs(a->v4.sin_port);
	return a->any.sa_family == AF_INET6 ? ntohs(a->v6.sin6_port) : 0;
}

/* The bytes of an address, NULL of a Unix socket; an IPv4 address in IPv6 clothes is one of IPv4.
 */
static const void *bytes_of(const union addr_any *a, int *ret_family)
{
	*ret_family = a->any.sa_family;
	if (*ret_family == AF_INET)
		return &a->v4.sin_addr;
	if (*ret_family != AF_INET6)
		return NULL;
	if (!IN6_IS_ADDR_V4MAPPED(&a->v6.sin6_addr))
		return &a->v6.sin6_addr;
	*ret_family = AF_INET;
	return &a->v6.sin6_addr.s6_addr[12];
}

size_t addr_key(const union addr_any *a, char key[ADDR_KEY_MAX])
{
	int family;
	const void *bytes = bytes_of(a, &family);
	size_t n = family == AF_INET ? 4 : ADDR_KEY_MAX - 1;

	if (!bytes)
		return 0;
	key[0] = (char)family;
	memcpy(key + 1, bytes, n);
	return n + 1;
}

void addr_text(const union addr_any *a, char *dst, size_t size)
{
	int family;
	const void *bytes = bytes_of(a, &family);

	if (!bytes || !inet_ntop(family, bytes, dst, (socklen_t)size))
		(void)str_copy(dst, size, bytes ? "?" : "unix");
}
