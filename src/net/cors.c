#include "net/cors.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "base/str.h"
#include "net/http.h"

int cors_check(const struct http_cors *cors, struct err *err)
{
	if (!cors)
		return 0;
	for (const char *const *o = cors->origins; o && *o; o++) {
		const char *host = strstr(*o, "://");

		if (strcmp(*o, "*") == 0 && cors->credentials)
			return err_set(err, EINVAL,
				       "CORS: credentials need a list of origins, not '*'");
		if (strcmp(*o, "*") != 0 && (!host || host[3] == '\0' || strchr(host + 3, '/')))
			return err_set(err, EINVAL,
				       "CORS: origin '%.100s': want scheme://host[:port]", *o);
	}
	return 0;
}

bool cors_is_listed(const char *const *list, const char *origin)
{
	for (; list && *list; list++)
		if (strcmp(*list, "*") == 0 || strcasecmp(*list, origin) == 0)
			return true;
	return false;
}

/* A port that is the scheme's own may be left out on either side. */
static size_t without_port(const char *host, const char *port)
{
	size_t n = strlen(host), p = strlen(port);

	return n > p && strcmp(host + n - p, port) == 0 ? n - p : n;
}

bool cors_is_same(const struct http_request *r, const char *origin)
{
	const char *host = http_header(r, "host");
	const char *scheme = http_is_tls(r) ? "https://" : "http://";
	const char *port = http_is_tls(r) ? ":443" : ":80";
	size_t n = strlen(scheme);

	if (!host)
		return false;
	/* Behind a proxy that ends TLS a page of https:// reaches us in plain: the host decides. */
	if (strncasecmp(origin, "https://", 8) == 0 && !http_is_tls(r)) {
		port = ":443";
		n = 8;
	} else if (strncasecmp(origin, scheme, n) != 0) {
		return false;
	}
	origin += n;
	n = without_port(origin, port);
	return n == without_port(host, port) && strncasecmp(origin, host, n) == 0;
}

static void add(struct http_request *r, const char *name, const char *value, const char *fallback)
{
	(void)http_header_add(r, name, value ? value : fallback);
}

static void answer_preflight(struct http_request *r, const struct http_cors *cors)
{
	char age[16];

	add(r, "Access-Control-Allow-Methods", cors->methods,
	    "GET, HEAD, POST, PUT, PATCH, DELETE");
	add(r, "Access-Control-Allow-Headers", cors->headers, HTTP_CORS_HEADERS);
	if (str_format(age, sizeof(age), "%u", cors->max_age_s ? cors->max_age_s : 600) == 0)
		add(r, "Access-Control-Max-Age", age, NULL);
	http_reply(r, 204, NULL, NULL, 0);
}

bool cors_answer(struct http_request *r, const struct http_cors *cors)
{
	const char *origin = http_header(r, "origin");
	bool preflight = strcmp(http_method(r), "OPTIONS") == 0 &&
			 http_header(r, "access-control-request-method");

	/* Caches must not hand one origin's answer to another. */
	add(r, "Vary", "Origin", NULL);
	if (!origin)
		return false;
	if (!cors_is_listed(cors->origins, origin)) {
		if (!preflight)
			return false; /* without our headers the browser keeps the answer to itself
				       */
		http_reply_error(r, 403, "forbidden", "this origin is not allowed");
		return true;
	}
	if (cors_is_listed(cors->origins, "") && !cors->credentials)
		add(r, "Access-Control-Allow-Origin", "*", NULL);
	else
		add(r, "Access-Control-Allow-Origin", origin, NULL);
	if (cors->credentials)
		add(r, "Access-Control-Allow-Credentials", "true", NULL);
	if (preflight)
		answer_preflight(r, cors);
	else
		add(r, "Access-Control-Expose-Headers", cors->expose, HTTP_CORS_EXPOSE);
	return preflight;
}
