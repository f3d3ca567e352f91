#include "httpc/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/rtnetlink.h>
#include <netinet/in.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"

#define V4_BITS 32
#define V6_BITS 128
#define MAPPED 12 /* bytes in front of an IPv4 address in an IPv6 one */

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

/* ---- networks ---- */

static const uint8_t mapped[MAPPED] = { [10] = 0xff, [11] = 0xff };

static void map_v4(uint8_t to[16], const void *v4)
{
	uint8_t four[4]; /* may lie in `to` */

	memcpy(four, v4, sizeof(four));
	memcpy(to, mapped, MAPPED);
	memcpy(to + MAPPED, four, sizeof(four));
}

int guard_net_parse(const char *text, struct guard_net *ret)
{
	char address[INET6_ADDRSTRLEN + 1];
	const char *slash = strchr(text, '/');
	size_t n = slash ? (size_t)(slash - text) : strlen(text);
	uint8_t v4[4];
	uint32_t bits;

	if (n >= sizeof(address))
		return -EINVAL;
	memcpy(address, text, n);
	address[n] = '\0';
	if (inet_pton(AF_INET, address, v4) == 1) {
		map_v4(ret->address, v4);
		bits = V4_BITS;
		if (slash && parse_u32(slash + 1, 0, V4_BITS, &bits) < 0)
			return -EINVAL;
		/* All of IPv4 is how clients write "everything": IPv6 is in it. */
		ret->bits = bits == 0 ? 0 : bits + V6_BITS - V4_BITS;
		return 0;
	}
	bits = V6_BITS;
	if (inet_pton(AF_INET6, address, ret->address) != 1 ||
	    (slash && parse_u32(slash + 1, 0, V6_BITS, &bits) < 0))
		return -EINVAL;
	ret->bits = bits;
	return 0;
}

bool guard_net_has(const struct guard_net *n, const uint8_t address[16])
{
	size_t whole = n->bits / 8;
	unsigned rest = n->bits % 8;

	if (memcmp(n->address, address, whole) != 0)
		return false;
	return rest == 0 || (n->address[whole] ^ address[whole]) >> (8 - rest) == 0;
}

bool guard_flatten(const struct sockaddr *addr, uint8_t ret[16])
{
	static const uint8_t nat64[MAPPED] = { 0x00, 0x64, 0xff, 0x9b };
	struct sockaddr_in v4;
	struct sockaddr_in6 v6;

	if (addr->sa_family == AF_INET) {
		memcpy(&v4, addr, sizeof(v4));
		map_v4(ret, &v4.sin_addr);
		return true;
	}
	if (addr->sa_family != AF_INET6)
		return false;
	memcpy(&v6, addr, sizeof(v6));
	memcpy(ret, v6.sin6_addr.s6_addr, 16);
	if (memcmp(ret, nat64, sizeof(nat64)) == 0)
		map_v4(ret, ret + MAPPED);
	else if (ret[0] == 0x20 && ret[1] == 0x02) /* 6to4 */
		map_v4(ret, ret + 2);
	return true;
}

int guard_nets_add(struct guard_nets *n, const char *text, struct err *err)
{
	if (n->len == GUARD_NETS_MAX)
		return err_set(err, E2BIG, "more than %u networks", GUARD_NETS_MAX);
	if (guard_net_parse(text, &n->items[n->len]) < 0)
		return err_set(err, EINVAL,
			       "'%.80s': want an address or a network such as 192.0.2.0/24", text);
	n->len++;
	return 0;
}

/* ---- this machine ---- */

struct question {
	struct nlmsghdr head;
	struct rtmsg route;
	struct rtattr to;
	uint8_t address[16];
};

/* What kind of route leads there; negative errno: none, or it cannot be asked. */
static int find_route(const void *address, uint8_t family, size_t n)
{
	struct question q = { .head = { .nlmsg_type = RTM_GETROUTE, .nlmsg_flags = NLM_F_REQUEST },
			      .route = { .rtm_family = family, .rtm_dst_len = (uint8_t)(n * 8) },
			      .to = { .rta_type = RTA_DST } };
	union {
		struct nlmsghdr head;
		char bytes[4096];
	} a;
	_close_ int sock = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
	ssize_t got;

	q.head.nlmsg_len = (uint32_t)(NLMSG_LENGTH(sizeof(q.route)) + RTA_LENGTH(n));
	q.to.rta_len = (uint16_t)RTA_LENGTH(n);
	memcpy(q.address, address, n);
	if (sock < 0 || send(sock, &q, q.head.nlmsg_len, 0) < 0)
		return -EIO;
	got = recv(sock, &a, sizeof(a), MSG_DONTWAIT); /* the answer is there when send() returns */
	if (got < 0 || !NLMSG_OK(&a.head, (size_t)got))
		return -EIO;
	if (a.head.nlmsg_type == NLMSG_ERROR &&
	    got >= (ssize_t)NLMSG_LENGTH(sizeof(struct nlmsgerr)))
		return ((struct nlmsgerr *)NLMSG_DATA(&a.head))->error;
	if (a.head.nlmsg_type != RTM_NEWROUTE || got < (ssize_t)NLMSG_LENGTH(sizeof(struct rtmsg)))
		return -EIO;
	return ((struct rtmsg *)NLMSG_DATA(&a.head))->rtm_type;
}

bool guard_is_own(const struct sockaddr *addr)
{
	uint8_t ip[16];
	int kind;

	if (!guard_flatten(addr, ip))
		return true;
	kind = memcmp(ip, mapped, MAPPED) == 0 ? find_route(ip + MAPPED, AF_INET, 4)
					       : find_route(ip, AF_INET6, 16);
	/* Nowhere is not here: connecting says so. */
	return kind != RTN_UNICAST && kind != -ENETUNREACH && kind != -EHOSTUNREACH;
}

bool guard_allows(const struct guard_terms *t, const struct sockaddr *addr)
{
	uint8_t ip[16];

	if (!guard_flatten(addr, ip))
		return false;
	for (size_t i = 0; t->closed && i < t->closed->len; i++)
		if (guard_net_has(&t->closed->items[i], ip))
			return false;
	return t->allow_private || (guard_is_public(addr) && !guard_is_own(addr));
}
