/* Web pages must not speak to a server on their reader's machine by way of his browser: neither
 * from an origin of their own, nor under a name of their own for this machine (DNS rebinding). */
#include "mcp/guard.h"

#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "config/config.h"
#include "net/cors.h"
#include "net/http.h"

#define ORIGIN_MAX 300

static bool is_listed(const struct config *config, const char *origin)
{
	return config->cors_origins.len > 0 && cors_is_listed(config->cors_origins.items, origin);
}

/* Of "https://holt.example/sub" what stands between the slashes. */
static bool is_public(const struct config *config, const char *host)
{
	const char *url = config->public_url ? strstr(config->public_url, "://") : NULL;
	size_t n = url ? strcspn(url + 3, "/") : 0;

	return n > 0 && strlen(host) == n && strncasecmp(url + 3, host, n) == 0;
}

/* The address of this machine for itself, or what the operator calls it. */
static bool is_host(const struct config *config, const char *host)
{
	char origin[ORIGIN_MAX];
	size_t n = host[0] == '[' ? strcspn(host, "]") + 1 : strcspn(host, ":");

	if (config_is_loopback(host[n] == ':' ? host : ""))
		return true;
	(void)snprintf(origin, sizeof(origin), "%.*s:0", (int)n, host);
	if (config_is_loopback(origin))
		return true;
	if (is_public(config, host) || (config->domain && strlen(config->domain) == n &&
					strncasecmp(config->domain, host, n) == 0))
		return true;
	for (int tls = 0; tls < 2; tls++) {
		(void)snprintf(origin, sizeof(origin), "%s://%s", tls ? "https" : "http", host);
		if (is_listed(config, origin))
			return true;
	}
	return false;
}

bool mcp_guard(const struct api_call *c)
{
	const struct config *config = c->api->deps.config;
	const char *host = http_header(c->http, "Host");
	const char *origin = http_header(c->http, "Origin");

	if (config_is_loopback(config->listen) && strcmp(http_peer(c->http), "unix") != 0 &&
	    (!host || !is_host(config, host)))
		return false;
	return !origin || cors_is_same(c->http, origin) || is_listed(config, origin);
}
