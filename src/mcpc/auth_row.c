#include "mcpc/auth_row.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/log.h"
#include "base/str.h"
#include "mcpc/auth.h"
#include "mcpc/auth_file.h"
#include "mcpc/auth_kept.h"
#include "mcpc/oauth_impl.h"
#include "mcpc/servers_row.h"

#define ROW_MAX (256u << 10) /* bytes of all texts of a row */

enum type { BEARER, CLIENT_CREDENTIALS, LOGIN, WORKLOAD };

const char *const auth_row_files[] = { "token_file", "client_secret_file", "client_key_file",
				       NULL };

static const char *const types[] = { "bearer", "client_credentials", "login", "workload", NULL };

struct said {
	int type;
	const char *token, *token_file;
	const char *client_id, *client_secret, *client_secret_file, *client_key, *client_key_file;
	const char *issuer, *scope, *document;
	bool allow_private;
};

static const struct jv_field fields[] = {
	JV_FIELD("type", CHOICE, struct said, type, .choices = types, .flags = JV_REQUIRED),
	JV_FIELD("token", STRING, struct said, token, .min = 1, .max = OAUTH_TOKEN_MAX),
	JV_FIELD("token_file", STRING, struct said, token_file, .min = 1),
	JV_FIELD("client_id", STRING, struct said, client_id, .min = 1, .max = 1024),
	JV_FIELD("client_secret", STRING, struct said, client_secret, .min = 1),
	JV_FIELD("client_secret_file", STRING, struct said, client_secret_file, .min = 1),
	JV_FIELD("client_key_file", STRING, struct said, client_key_file, .min = 1),
	JV_FIELD("issuer", STRING, struct said, issuer, .min = 1, .max = OAUTH_URL_MAX - 1),
	JV_FIELD("scope", STRING, struct said, scope, .max = OAUTH_SCOPE_MAX - 1),
	JV_FIELD("client_id_document", STRING, struct said, document, .min = 1,
		 .max = OAUTH_URL_MAX - 1),
	JV_FIELD("allow_private", BOOL, struct said, allow_private),
};

/* ---- texts ---- */

static int expand(const char *field, const char **text, const struct mcpc_servers_deps *deps,
		  struct arena *a, struct err *err)
{
	struct err why = { 0 };
	int r = *text ? server_row_expand(*text, deps, a, text, &why) : 0;

	return r < 0 ? err_set(err, -r, "auth.%s: %s", field, why.text) : 0;
}

/* What is in a file, without the end of its last line, in the place of a text. */
static int take_file(const char *field, const char *path, const char **text, struct arena *a,
		     struct err *err)
{
	struct buf b = { .max = AUTH_ROW_FILE_MAX };
	int r = 0;

	if (!path)
		return 0;
	if (*text)
		return err_set(err, EINVAL, "auth.%s: is given in another way, too", field);
	r = auth_file_read(path, &b);
	if (r == 0) {
		*text = arena_strndup(a, b.data, b.len);
		r = *text ? 0 : -ENOMEM;
	}
	auth_file_wipe(&b);
	return r < 0 ? err_sys(err, r, "auth.%s: '%.100s'", field, path) : 0;
}

static int read_row(const struct server_row *row, const struct mcpc_servers_deps *deps,
		    struct arena *a, struct said *ret, struct err *err)
{
	struct jv_problem problem = { 0 };
	int r = jv_decode(row->auth, fields, sizeof(fields) / sizeof(fields[0]), a, ret, &problem);

	if (r < 0)
		return err_set(err, r == -ENOMEM ? ENOMEM : EINVAL, "auth.%s: %s", problem.field,
			       problem.text);
	r = expand("token", &ret->token, deps, a, err);
	if (r == 0)
		r = expand("client_id", &ret->client_id, deps, a, err);
	if (r == 0)
		r = expand("client_secret", &ret->client_secret, deps, a, err);
	if (r == 0 && ret->type != WORKLOAD) /* there it is read each time */
		r = take_file("token_file", ret->token_file, &ret->token, a, err);
	if (r == 0)
		r = take_file("client_secret_file", ret->client_secret_file, &ret->client_secret, a,
			      err);
	if (r == 0)
		r = take_file("client_key_file", ret->client_key_file, &ret->client_key, a, err);
	return r;
}

/* ---- what goes together ---- */

static int check_bearer(const struct said *s, struct err *err)
{
	if (s->client_id || s->client_secret || s->client_key || s->issuer || s->document ||
	    s->scope)
		return err_set(err, EINVAL, "auth.type: a bearer has a token and nothing else");
	return s->token ? 0 : err_set(err, EINVAL, "auth.token: is missing");
}

static int check_workload(const struct said *s, struct err *err)
{
	if (s->client_secret || s->client_key || s->document)
		return err_set(err, EINVAL, "auth.type: a workload has a token_file, no secret");
	if (!s->token_file)
		return err_set(err, EINVAL, "auth.token_file: is missing");
	return s->issuer ? 0
			 : err_set(err, EINVAL,
				   "auth.issuer: whom the token may be shown to is missing");
}

static int check_row(const struct said *s, struct err *err)
{
	bool has_secret = s->client_secret || s->client_key;

	if (s->type == BEARER)
		return check_bearer(s, err);
	if (s->token || (s->token_file && s->type != WORKLOAD))
		return err_set(err, EINVAL, "auth.token: is for the type bearer");
	if (s->type == WORKLOAD)
		return check_workload(s, err);
	if (s->client_secret && s->client_key)
		return err_set(err, EINVAL, "auth.client_key_file: is given beside a secret");
	if (s->type == CLIENT_CREDENTIALS && (!s->client_id || !has_secret))
		return err_set(err, EINVAL,
			       "auth.client_id: it and a client_secret or key have to be given");
	if (has_secret && !s->issuer)
		return err_set(err, EINVAL,
			       "auth.issuer: whom the client_secret may be shown to is missing");
	return 0;
}

/* ---- making one ---- */

static void keep(void *user, const char *json)
{
	auth_kept_put(user, json);
}

static void release(void *user)
{
	(void)auth_kept_free(user);
}

static int create_oauth(const struct server_row *row, const struct mcpc_servers_deps *deps,
			const struct said *s, struct mcpc_auth **ret, struct err *err)
{
	static const enum oauth_grant grants[] = {
		[CLIENT_CREDENTIALS] = OAUTH_GRANT_CLIENT,
		[LOGIN] = OAUTH_GRANT_CODE,
		[WORKLOAD] = OAUTH_GRANT_ASSERTION,
	};
	struct mcpc_auth_options o = {
		.loop = deps->loop,
		.courier = deps->courier,
		.closed = deps->closed,
		.keep = keep,
		.release = release,
		.assertion_file = s->type == WORKLOAD ? s->token_file : NULL,
		.oauth = { .server = row->url,
			   .grant = grants[s->type],
			   .client_id = s->client_id,
			   .client_secret = s->client_secret,
			   .client_key = s->client_key,
			   .issuer = s->issuer,
			   .document = s->document,
			   .scope = s->scope,
			   .allow_private = s->allow_private },
	};
	struct auth_kept *kept = auth_kept_create(deps->sandboxes, row->name, row->url);
	struct err why = { 0 };
	const char *json;
	int r;

	if (!kept)
		return err_sys(err, ENOMEM, "auth");
	o.user = kept;
	r = mcpc_auth_create(&o, ret, &why);
	if (r < 0) {
		(void)auth_kept_free(kept);
		return err_set(err, -r, "auth: %s", why.text);
	}
	json = auth_kept_find(kept);
	if (json && mcpc_auth_load(*ret, json, &why) < 0)
		log_warn("mcp", "server '%s': %s", row->name, why.text);
	return 0;
}

int mcpc_auth_from_row(const struct server_row *row, const struct mcpc_servers_deps *deps,
		       struct mcpc_auth **ret, struct err *err)
{
	struct arena *a = arena_create(ROW_MAX);
	struct said s = { 0 };
	int r = a ? read_row(row, deps, a, &s, err) : err_sys(err, ENOMEM, "auth");

	if (r == 0)
		r = check_row(&s, err);
	if (r == 0)
		r = oauth_url_check("url", row->url, err); /* tokens go there */
	if (r == 0)
		r = s.type == BEARER ? mcpc_auth_create_fixed(s.token, ret, err)
				     : create_oauth(row, deps, &s, ret, err);
	a = arena_free(a);
	return r;
}
