/* Entries of lists of networks and names, one a line, the first byte saying which list: what is
 * taken holds for any address and name, and no denial of everything leaves something open. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <string.h>

#include "base/buf.h"
#include "base/str.h"
#include "egress/rules.h"
#include "fuzz.h"

static void ask(const struct egress_rules *r, const uint8_t address[16])
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };

	memcpy(&v6.sin6_addr, address, 16);
	memcpy(&v4.sin_addr, address, 4);
	(void)rules_allow_address(r, (struct sockaddr *)&v6);
	(void)rules_allow_address(r, (struct sockaddr *)&v4);
}

/* The same address as IPv4 and in its IPv6 dress. */
static void check_mapped(const struct egress_rules *r, const uint8_t address[4])
{
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	uint8_t *to = v6.sin6_addr.s6_addr;

	to[10] = to[11] = 0xff;
	memcpy(to + 12, address, 4);
	memcpy(&v4.sin_addr, address, 4);
	MUST(rules_allow_address(r, (struct sockaddr *)&v6) ==
	     rules_allow_address(r, (struct sockaddr *)&v4));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct egress_rules *open = rules_create(true), *closed = rules_create(false);
	struct str rest = { (const char *)data, size }, line;
	uint8_t address[16] = { 0 };
	bool has_allowed = false;

	MUST(open && closed);
	while (str_split(&rest, '\n', &line)) {
		char *text = str_dup(
			(struct str){ line.data + (line.len > 0), line.len - (line.len > 0) });

		MUST(text);
		memcpy(address, text, strlen(text) < 16 ? strlen(text) : 16);
		if (line.len > 0 && line.data[0] == '-') {
			(void)rules_deny(open, text, NULL);
			(void)rules_deny(closed, text, NULL);
		} else {
			has_allowed |= rules_allow(open, text, NULL) == 0;
			(void)rules_allow(closed, text, NULL);
		}
		(void)rules_allow_name(open, text);
		free(text);
	}
	ask(open, address);
	ask(closed, address);
	check_mapped(open, address);
	check_mapped(closed, address);
	if (!has_allowed && rules_deny(open, "0.0.0.0/0", NULL) == 0) {
		struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

		memcpy(&v6.sin6_addr, address, 16);
		MUST(!rules_allow_address(open, (struct sockaddr *)&v6));
		MUST(!rules_allow_address(closed, (struct sockaddr *)&v6));
	}
	(void)rules_free(open);
	(void)rules_free(closed);
	return 0;
}
