#include "browser.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "mcpc/auth.h"
#include "outbound/courier.h"

#define DOCUMENT "https://conformance-test.local/client-metadata.json"
#define REDIRECT "http://localhost:3000/callback" /* nobody listens there: we look at it only */
#define OPEN_MS 10000u

struct browser {
	struct courier *courier; /* borrowed */
	struct mcpc_auth *auth;  /* owned */
	char file[32];           /* with a token that vouches for us; "": none */
};

static void came(void *user, const struct courier_answer *a)
{
	struct browser *b = user;
	const char *query = a->headers[0] ? strchr(a->headers[0], '?') : NULL;
	struct err err = { 0 };

	if (a->status != 302 || strncmp(a->headers[0] ? a->headers[0] : "", REDIRECT, 30) != 0 ||
	    !query)
		(void)fprintf(stderr, "browser: %d %s\n", a->status, a->err.text);
	else if (mcpc_auth_redirected(b->auth, query + 1, NULL, NULL, &err) < 0)
		(void)fprintf(stderr, "browser: %s\n", err.text);
}

static void open_address(void *user, const char *url)
{
	static const char *const want[] = { "Location", NULL };
	struct browser *b = user;
	struct courier_request req = {
		.method = "GET", .url = url, .want = want, .max = 65536, .timeout_ms = OPEN_MS
	};

	if (courier_send(b->courier, &req, came, b) < 0)
		(void)fprintf(stderr, "browser: cannot open\n");
}

static enum oauth_grant grant_of(const char *scenario)
{
	return strstr(scenario, "client-credentials") ? OAUTH_GRANT_CLIENT
	       : strstr(scenario, "wif")              ? OAUTH_GRANT_ASSERTION
						      : OAUTH_GRANT_CODE;
}

static int write_token(struct browser *b, const char *text)
{
	int fd, r;

	(void)str_copy(b->file, sizeof(b->file), "/tmp/mcp-token-XXXXXX");
	fd = mkostemp(b->file, O_CLOEXEC);
	if (fd < 0)
		return -errno;
	r = fd_write_all(fd, text, strlen(text));
	(void)fd_close(fd);
	return r;
}

int browser_create(struct loop *loop, struct courier *courier, const char *url,
		   const char *scenario, struct jv context, struct browser **ret, struct err *err)
{
	struct browser *b = calloc(1, sizeof(*b));
	struct mcpc_auth_options o = {
		.loop = loop,
		.courier = courier,
		.open = open_address,
		.user = b,
		.oauth = { .server = url,
			   .grant = grant_of(scenario),
			   .client_id = jv_text(jv_get(context, "client_id")),
			   .client_secret = jv_text(jv_get(context, "client_secret")),
			   .client_key = jv_text(jv_get(context, "private_key_pem")),
			   .issuer = jv_text(jv_get(context, "issuer")),
			   .document = DOCUMENT,
			   .redirect = REDIRECT,
			   .allow_private = true },
	};
	const char *jwt = jv_text(jv_get(context, "valid_jwt"));
	int r;

	if (!b)
		return err_sys(err, ENOMEM, "browser");
	b->courier = courier;
	r = jwt ? write_token(b, jwt) : 0;
	o.assertion_file = jwt ? b->file : NULL;
	if (r == 0)
		r = mcpc_auth_create(&o, &b->auth, err);
	if (r < 0) {
		(void)browser_free(b);
		return r;
	}
	*ret = b;
	return 0;
}

struct browser *browser_free(struct browser *b)
{
	if (!b)
		return NULL;
	b->auth = mcpc_auth_free(b->auth);
	if (b->file[0])
		(void)unlink(b->file);
	free(b);
	return NULL;
}

struct mcpc_auth *browser_auth(struct browser *b)
{
	return b->auth;
}
