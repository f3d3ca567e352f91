/* Where a sandbox may go: a few pairs of host and port for one call, or what rules say. */
#pragma once

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct egress_rules;
struct guard_nets;
struct err;
struct sockaddr;

#define POLICY_HOSTS_MAX 8
#define POLICY_HOST_MAX 253

struct egress_policy {
	struct {
		char host[POLICY_HOST_MAX + 1]; /* in lower case */
		uint16_t port;
	} allowed[POLICY_HOSTS_MAX];
	size_t count;
	bool allow_private; /* addresses that are not of the public internet, and our own */
	const struct guard_nets *closed;  /* borrowed: see httpc/guard.h; NULL: nothing more */
	const struct egress_rules *rules; /* borrowed: instead of the pairs above; NULL: those */
};

/* The host and port of "https://host[:port]/..." or "http://...". -EINVAL, -E2BIG. */
int policy_allow_url(struct egress_policy *p, const char *url, struct err *err);
bool policy_allows(const struct egress_policy *p, const char *host, uint16_t port);
/* The address that the name has. */
bool policy_allows_address(const struct egress_policy *p, const char *host,
			   const struct sockaddr *a);
/* "host:port" or "[v6]:port", all of it; port 0 in *ret_port when there is none. -EINVAL. */
int policy_split(const char *authority, char host[POLICY_HOST_MAX + 1], uint16_t *ret_port);
