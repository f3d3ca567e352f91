#include "mcp/metadata.h"

#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "config/config.h"
#include "net/http.h"
#include "json/jw.h"

void mcp_metadata(struct api_call *c)
{
	const struct config *config = c->api->deps.config;
	_cleanup_(buf_done) struct buf b = { 0 }, resource = { 0 };
	struct jw w = jw_begin(&b);
	const char *url = call_base(c), *path = http_path(c->http) + strlen(MCP_METADATA_PATH);

	if (!config->jwt_issuer)
		return problem_status(c, 404, "tokens of an identity provider are not taken here");
	if (!url)
		return problem_status(c, 503, "out of memory");
	/* What clients ask tokens for is what those must say: where the audience is an address, it
	 * is that one, for all that lies below it. */
	if (strncmp(config->jwt_audience, "https://", 8) == 0 ||
	    strncmp(config->jwt_audience, "http://", 7) == 0)
		(void)buf_puts(&resource, config->jwt_audience);
	else
		(void)buf_printf(&resource, "%s%s", url, path[0] ? path : "/mcp");
	jw_object_begin(&w);
	jw_str_field(&w, "resource", buf_str(&resource));
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

void mcp_metadata_challenge(struct api_call *c)
{
	_cleanup_(buf_done) struct buf value = { 0 };
	const char *url = call_base(c), *path = http_path(c->http);

	if (!c->api->deps.config->jwt_issuer) {
		(void)http_header_add(c->http, "WWW-Authenticate", "Bearer realm=\"holt\"");
		return;
	}
	/* a path that could end the quotes is not ours */
	(void)buf_printf(&value, "Bearer resource_metadata=\"%s" MCP_METADATA_PATH "%s\"",
			 url ? url : "", strpbrk(path, "\"\\") ? "" : path);
	if (url && !value.failed)
		(void)http_header_add(c->http, "WWW-Authenticate", buf_str(&value));
}
