#include "httpc/guard.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>

struct range4 {
	uint32_t base;
	unsigned bits;
};

#define IP4(a, b, c, d) \
	((uint32_t)(a) << 24 | (uint32_t)(b) << 16 | (uint32_t)(c) << 8 | (uint32_t)(d))

/* RFC 6890 and its registry: everything that is not globally reachable. */
static const struct range4 closed4[] = {
	{ IP4(0, 0, 0, 0), 8 },      { IP4(10, 0, 0, 0), 8 },     { IP4(100, 64, 0, 0), 10 },
	{ IP4(127, 0, 0, 0), 8 },    { IP4(169, 254, 0, 0), 16 }, { IP4(172, 16, 0, 0), 12 },
	{ IP4(192, 0, 0, 0), 24 },   { IP4(192, 0, 2, 0), 24 },   { IP4(192, 88, 99, 0), 24 },
	{ IP4(192, 168, 0, 0), 16 }, { IP4(198, 18, 0, 0), 15 },  { IP4(198, 51, 100, 0), 24 },
	{ IP4(203, 0, 113, 0), 24 }, { IP4(224, 0, 0, 0), 4 },    { IP4(240, 0, 0, 0), 4 },
};

struct range6 {
	uint8_t base[8]; /* no range is narrower than 64 bits */
	unsigned bits;
};

/* Of IPv6 only 2000::/3 is given out at all; these are the parts of it that lead elsewhere. */
static const struct range6 closed6[] = {
	{ { 0x20, 0x01, 0x00, 0x00 }, 23 }, /* protocol assignments: Teredo, benchmarking, ORCHID */
	{ { 0x20, 0x01, 0x0d, 0xb8 }, 32 }, /* documentation */
	{ { 0x20, 0x02 }, 16 },             /* 6to4: carries any IPv4 address */
	{ { 0x3f, 0xff }, 20 },             /* documentation */
};

static bool is_public4(uint32_t ip)
{
	for (size_t i = 0; i < sizeof(closed4) / sizeof(closed4[0]); i++)
		if ((ip ^ closed4[i].base) >> (32 - closed4[i].bits) == 0)
			return false;
	return true;
}

static bool starts_with(const uint8_t *ip, const struct range6 *r)
{
	for (unsigned bit = 0; bit < r->bits; bit++)
		if ((ip[bit / 8] ^ r->base[bit / 8]) & (0x80 >> bit % 8))
			return false;
	return true;
}

static bool is_public6(const struct in6_addr *addr)
{
	const uint8_t *ip = addr->s6_addr;

	if (IN6_IS_ADDR_V4MAPPED(addr))
		return is_public4(IP4(ip[12], ip[13], ip[14], ip[15]));
	if ((ip[0] & 0xe0) != 0x20)
		return false;
	for (size_t i = 0; i < sizeof(closed6) / sizeof(closed6[0]); i++)
		if (starts_with(ip, &closed6[i]))
			return false;
	return true;
}

bool guard_is_public(const struct sockaddr *addr)
{
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (addr->sa_family == AF_INET) {
		memcpy(&v4, addr, sizeof(v4));
		return is_public4(ntohl(v4.sin_addr.s_addr));
	}
	if (addr->sa_family == AF_INET6) {
		memcpy(&v6, addr, sizeof(v6));
		return is_public6(&v6.sin6_addr);
	}
	return false;
}
