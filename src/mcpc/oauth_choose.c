#include <errno.h>
#include <string.h>

#include "mcpc/oauth_impl.h"

/* ---- scopes ---- */

int oauth_choose_scope(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	struct buf b = { .max = OAUTH_SCOPE_MAX }, all = { .max = OAUTH_SCOPE_MAX };
	struct str rest, s;
	bool is_offline = oauth_strings_have(f->meta.scopes, "offline_access");

	if (o->kept.scope)
		(void)oauth_scope_add(&all, str_of(o->kept.scope));
	if (f->challenge.scope[0] != '\0')
		(void)oauth_scope_add(&all, str_of(f->challenge.scope));
	else if (o->is.scope)
		(void)oauth_scope_add(&all, str_of(o->is.scope));
	else if (all.len == 0)
		for (size_t i = 0; i < f->scopes.len; i++)
			(void)oauth_scope_add(&all, str_of(f->scopes.items[i]));
	rest = (struct str){ .data = buf_str(&all), .len = all.len };
	while (str_split(&rest, ' ', &s)) {
		if (is_offline || !str_is(s, "offline_access"))
			(void)oauth_scope_add(&b, s);
	}
	if (is_offline && b.len > 0 && o->is.grant == OAUTH_GRANT_CODE)
		(void)oauth_scope_add(&b, STR("offline_access"));
	f->scope = b.failed || all.failed ? NULL : arena_strndup(f->arena, buf_str(&b), b.len);
	buf_done(&b);
	buf_done(&all);
	return f->scope ? 0 : -E2BIG;
}

/* ---- as whom ---- */

static enum oauth_method choose_method(const struct oauth_flow *f, const char *secret,
				       const char *registered)
{
	struct jv_strings list = f->meta.methods;

	if (!secret)
		return OAUTH_NONE;
	if (registered && strcmp(registered, "client_secret_post") == 0)
		return OAUTH_POST;
	if (registered && strcmp(registered, "none") == 0)
		return OAUTH_NONE;
	if (list.len == 0 || oauth_strings_have(list, "client_secret_basic"))
		return OAUTH_BASIC;
	if (oauth_strings_have(list, "client_secret_post"))
		return OAUTH_POST;
	return oauth_strings_have(list, "none") ? OAUTH_NONE : OAUTH_BASIC;
}

bool oauth_use_configured(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;

	if (!o->is.client_id)
		return false;
	f->client = (struct oauth_client){
		.id = o->is.client_id,
		.secret = o->is.client_secret,
		.method =
			o->is.client_key ? OAUTH_JWT : choose_method(f, o->is.client_secret, NULL),
	};
	return true;
}

bool oauth_use_document(struct oauth *o)
{
	if (!o->is.document || !o->flow.meta.takes_documents)
		return false;
	o->flow.client = (struct oauth_client){ .id = o->is.document };
	return true;
}

bool oauth_use_kept(struct oauth *o)
{
	const struct oauth_kept *k = &o->kept;
	const char *secret = secret_reveal(k->client_secret, NULL);

	if (!k->client_id)
		return false;
	o->flow.client =
		(struct oauth_client){ .id = k->client_id,
				       .secret = secret,
				       .method = choose_method(&o->flow, secret, k->method) };
	return true;
}
