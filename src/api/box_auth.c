#include "api/box_auth.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/routes.h"
#include "auth/api_key.h"
#include "auth/box_token.h"
#include "auth/signed_file.h"
#include "auth/users.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/sandbox.h"

#define PREFIX "box_"
#define BEARER "Bearer "

void box_auth_fill(const struct sandbox *sb, unsigned scopes, struct principal *ret)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	*ret = (struct principal){ .role = ROLE_USER, .scopes = scopes, .expires_ms = INT64_MAX };
	(void)str_copy(ret->owner, sizeof(ret->owner), info.owner);
	(void)str_copy(ret->sandbox_id, sizeof(ret->sandbox_id), info.id);
}

/* By its id alone. */
static struct sandbox *find(struct api_call *c, const char *id)
{
	struct sandbox *sb = sandboxes_find(c->api->deps.sandboxes, id, NULL);

	return sb && strcmp(sandbox_id(sb), id) == 0 ? sb : NULL;
}

/* ---- tokens ---- */

const char *box_auth_token(const char *authorization, const char *query)
{
	const char *text = query;

	if (authorization) {
		if (strncasecmp(authorization, BEARER, strlen(BEARER)) != 0)
			return NULL;
		text = authorization + strlen(BEARER);
		text += strspn(text, " ");
	}
	return text && strncmp(text, PREFIX, strlen(PREFIX)) == 0 ? text + strlen(PREFIX) : NULL;
}

/* What was given out for a key is as good as the key: it must still be let in, to this sandbox and
 * with these scopes. */
static int bind_to_key(struct api_call *c, const char *key_id, struct principal *p, struct err *err)
{
	struct principal maker;

	if (auth_keys_get(c->api->deps.keys, key_id, &maker) < 0 ||
	    users_admit(c->api->deps.users, &maker, NULL) < 0 ||
	    principal_check(&maker, p->scopes, NULL) < 0 ||
	    !principal_may_enter(&maker, p->owner, p->sandbox_id))
		return err_set(err, EACCES, "the key that this was made for is not good any more");
	(void)str_copy(p->key_id, sizeof(p->key_id), maker.key_id);
	p->expires_ms = maker.expires_ms;
	return 0;
}

int box_auth_check(struct api_call *c, const char *token, struct principal *ret, struct err *err)
{
	struct box_maker by;
	char id[ID_LEN + 1];
	struct sandbox *sb =
		box_session_read(c->api->deps.secret, token, id, &by) ? find(c, id) : NULL;

	/* Which of the two it was is nobody's business. */
	if (!sb)
		return err_set(err, EACCES, "the token is not valid, or its sandbox has ended");
	box_auth_fill(sb, box_token_scopes(BOX_TOKEN_SESSION), ret);
	if (by.key_id[0] != '\0')
		return bind_to_key(c, by.key_id, ret, err);
	if (by.until_ms <= clock_wall_ms())
		return err_set(err, EACCES, "the token has expired");
	ret->expires_ms = by.until_ms;
	return 0;
}

int box_auth_give(const struct api_call *c, enum box_token kind, const char *id,
		  char ret[BOX_TOKEN_SIZE])
{
	int r = principal_check(c->who, box_token_scopes(kind), NULL);

	if (r == 0)
		r = box_token_make(c->api->deps.secret, kind, id, ret);
	if (r == 0 && kind == BOX_TOKEN_ENVD)
		recent_note(&c->api->signers, id);
	return r;
}

int box_auth_write(const struct api_call *c, const char *sandbox_id, struct buf *ret)
{
	struct box_maker by = { .until_ms = c->who->expires_ms };
	char token[BOX_SESSION_SIZE];
	int r = principal_check(c->who, box_token_scopes(BOX_TOKEN_SESSION), NULL);

	(void)str_copy(by.key_id, sizeof(by.key_id), c->who->key_id);
	if (r == 0)
		r = box_session_make(c->api->deps.secret, sandbox_id, &by, token);
	if (r == 0)
		r = buf_printf(ret, BEARER PREFIX "%s", token);
	explicit_bzero(token, sizeof(token));
	return r;
}

/* ---- addresses ---- */

struct address {
	const char *expires, *signature, *by;
	bool has_more; /* whose rights, which mode ...: none of it was signed */
};

/* -EINVAL: not well-formed. */
static int read_query(struct api_call *c, struct address *ret)
{
	struct str rest = str_of(http_query_string(c->http));
	const char *name, *value;
	int r;

	*ret = (struct address){ 0 };
	while ((r = http_query_next(c->http, &rest, &name, &value)) > 0) {
		if (strcmp(name, "expires") == 0 && !ret->expires)
			ret->expires = value;
		else if (strcmp(name, "signature") == 0 && !ret->signature)
			ret->signature = value;
		else if (strcmp(name, "by") == 0 && !ret->by)
			ret->by = value;
		else
			ret->has_more = true;
	}
	return r;
}

bool box_auth_is_signed(struct api_call *c)
{
	struct address a;

	return c->route->route.flags & ROUTE_SIGNED && !http_header(c->http, "Authorization") &&
	       !http_header(c->http, "X-API-Key") && read_query(c, &a) == 0 && a.signature;
}

int box_auth_check_signed(struct api_call *c, struct principal *ret, struct err *err)
{
	struct signed_file s = { .is_write = strcmp(http_method(c->http), "PUT") == 0 };
	struct sandbox *sb = find(c, call_param(c, "id"));
	struct address a;
	uint64_t expires = 0;

	s.path = arena_printf(http_arena(c->http), "/%s", call_param(c, "path"));
	if (!s.path)
		return err_sys(err, ENOMEM, "address");
	if (read_query(c, &a) < 0 || a.has_more || (a.by && !id_is_valid(a.by)) || !a.signature ||
	    !a.expires || parse_u64(a.expires, 0, INT64_MAX / 1000, &expires) < 0 || !sb)
		return err_set(err, EACCES, "the address is not signed by this server");
	s.sandbox_id = sandbox_id(sb);
	s.key_id = a.by ? a.by : "";
	s.expires = (int64_t)expires;
	if (!signed_file_is(c->api->deps.secret, &s, a.signature))
		return err_set(err, EACCES, "the address is not signed by this server");
	if (s.expires * 1000 <= clock_wall_ms())
		return err_set(err, EACCES, "the address is not good any more: ask for another");
	box_auth_fill(sb, s.is_write ? SCOPE_FILE_WRITE : SCOPE_FILE_READ, ret);
	ret->expires_ms = s.expires * 1000;
	return s.key_id[0] != '\0' ? bind_to_key(c, s.key_id, ret, err) : 0;
}
