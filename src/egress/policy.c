#include "egress/policy.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "egress/rules.h"
#include "httpc/guard.h"

#define HTTP_PORT 80
#define HTTPS_PORT 443

/* In lower case; false when there is something in it that no host has. */
static bool copy_host(char *to, const char *from, size_t n, bool is_v6)
{
	for (size_t i = 0; i < n; i++) {
		char c = from[i];

		if (c >= 'A' && c <= 'Z')
			c = (char)(c | 0x20);
		if (!strchr("abcdefghijklmnopqrstuvwxyz0123456789.-_:", c) || (c == ':' && !is_v6))
			return false;
		to[i] = c;
	}
	to[n] = '\0';
	return true;
}

int policy_split(const char *authority, char host[POLICY_HOST_MAX + 1], uint16_t *ret_port)
{
	const char *end = authority[0] == '[' ? strchr(authority, ']') : strchr(authority, ':');
	const char *from = authority + (authority[0] == '[');
	size_t n = end ? (size_t)(end - from) : strlen(from);
	const char *rest = end ? end + (authority[0] == '[') : "";
	uint32_t port = 0;

	if ((authority[0] == '[' && !end) || n == 0 || n > POLICY_HOST_MAX)
		return -EINVAL;
	if (rest[0] != '\0' && (rest[0] != ':' || parse_u32(rest + 1, 1, UINT16_MAX, &port) < 0))
		return -EINVAL;
	if (!copy_host(host, from, n, authority[0] == '['))
		return -EINVAL;
	*ret_port = (uint16_t)port;
	return 0;
}

int policy_allow_url(struct egress_policy *p, const char *url, struct err *err)
{
	bool is_https = strncasecmp(url, "https://", 8) == 0;
	const char *authority = url + (is_https ? 8 : 7);
	char text[POLICY_HOST_MAX + 10];
	size_t n;
	uint16_t port;
	int r;

	if (!is_https && strncasecmp(url, "http://", 7) != 0)
		return err_set(err, EINVAL, "registry %.60s: want http:// or https://", url);
	n = strcspn(authority, "/?#");
	if (n >= sizeof(text) || memchr(authority, '@', n))
		return err_set(err, EINVAL, "registry %.60s: want a plain host", url);
	if (p->count == POLICY_HOSTS_MAX)
		return err_set(err, E2BIG, "at most %d registries", POLICY_HOSTS_MAX);
	memcpy(text, authority, n);
	text[n] = '\0';
	r = policy_split(text, p->allowed[p->count].host, &port);
	if (r < 0)
		return err_set(err, EINVAL, "registry %.60s: want a plain host", url);
	p->allowed[p->count++].port = port ? port : is_https ? HTTPS_PORT : HTTP_PORT;
	return 0;
}

bool policy_allows(const struct egress_policy *p, const char *host, uint16_t port)
{
	if (p->rules)
		return true; /* its address tells */
	for (size_t i = 0; i < p->count; i++)
		if (p->allowed[i].port == port && strcmp(p->allowed[i].host, host) == 0)
			return true;
	return false;
}

bool policy_allows_address(const struct egress_policy *p, const char *host,
			   const struct sockaddr *a)
{
	if (!guard_allows(&(struct guard_terms){ p->allow_private, p->closed }, a))
		return false;
	return !p->rules || rules_allow_name(p->rules, host) || rules_allow_address(p->rules, a);
}
