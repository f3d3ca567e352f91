#include "mcp/metadata.h"

#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "auth/scope.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "net/http.h"
#include "json/jw.h"

#define BASE_MAX 512

/* As the client calls us. */
static void base_url(const struct api_call *c, char dst[BASE_MAX])
{
	const char *host = http_header(c->http, "Host");

	(void)snprintf(dst, BASE_MAX, "%s://%.255s", http_is_tls(c->http) ? "https" : "http",
		       host ? host : "localhost");
}

void mcp_metadata(struct api_call *c)
{
	const struct config *config = c->api->deps.config;
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	char url[BASE_MAX], resource[BASE_MAX + 256];
	const char *path = http_path(c->http) + strlen(MCP_METADATA_PATH);

	if (!config->jwt_issuer)
		return problem_status(c, 404, "tokens of an identity provider are not taken here");
	base_url(c, url);
	(void)snprintf(resource, sizeof(resource), "%s%.200s", url, path[0] ? path : "/mcp");
	jw_object_begin(&w);
	jw_str_field(&w, "resource", resource);
	jw_str_field(&w, "resource_name", "Holt");
	jw_key(&w, "authorization_servers");
	jw_array_begin(&w);
	jw_string(&w, config->jwt_issuer);
	jw_array_end(&w);
	jw_key(&w, "bearer_methods_supported");
	jw_array_begin(&w);
	jw_string(&w, "header");
	jw_array_end(&w);
	jw_object_end(&w);
	call_reply(c, 200, &w);
}

void mcp_metadata_challenge(struct api_call *c, int status)
{
	char url[BASE_MAX], value[2 * BASE_MAX];
	const char *error = status == 403 ? "error=\"insufficient_scope\"" : "";

	if (!c->api->deps.config->jwt_issuer) {
		(void)http_header_add(c->http, "WWW-Authenticate", "Bearer realm=\"holt\"");
		return;
	}
	base_url(c, url);
	(void)snprintf(value, sizeof(value),
		       "Bearer %s%sresource_metadata=\"%s" MCP_METADATA_PATH "%.200s\"", error,
		       error[0] ? ", " : "", url, http_path(c->http));
	(void)http_header_add(c->http, "WWW-Authenticate", value);
}
