#include <errno.h>
#include <string.h>

#include "mcpc/oauth_impl.h"

/* ---- scopes ---- */

static int add_listed(const struct oauth_flow *f, struct buf *b)
{
	int r = 0;

	for (size_t i = 0; i < f->scopes.len && r == 0; i++)
		r = oauth_scope_add(b, str_of(f->scopes.items[i]));
	return r;
}

static int add_wanted(const struct oauth *o, struct buf *b)
{
	const struct oauth_flow *f = &o->flow;
	int r = o->kept.scope ? oauth_scope_add(b, str_of(o->kept.scope)) : 0;

	if (r < 0)
		return r;
	if (f->challenge.scope[0] != '\0')
		return oauth_scope_add(b, str_of(f->challenge.scope));
	if (o->is.scope)
		return oauth_scope_add(b, str_of(o->is.scope));
	return b->len == 0 ? add_listed(f, b) : 0;
}

/* offline_access where it is advertised, and nowhere else; alone it would take the rest away. */
static int settle_offline(const struct oauth *o, struct str all, struct buf *b)
{
	bool is_offline = oauth_strings_have(o->flow.meta.scopes, "offline_access");
	struct str s;
	int r = 0;

	while (r == 0 && str_split(&all, ' ', &s)) {
		if (is_offline || !str_is(s, "offline_access"))
			r = oauth_scope_add(b, s);
	}
	if (r == 0 && is_offline && b->len > 0 && o->is.grant == OAUTH_GRANT_CODE)
		r = oauth_scope_add(b, STR("offline_access"));
	return r;
}

int oauth_choose_scope(struct oauth *o)
{
	struct buf all = { .max = OAUTH_SCOPE_MAX }, b = { .max = OAUTH_SCOPE_MAX };
	int r = add_wanted(o, &all);

	if (r == 0)
		r = settle_offline(o, (struct str){ buf_str(&all), all.len }, &b);
	if (r == 0) {
		o->flow.scope = arena_strndup(o->flow.arena, buf_str(&b), b.len);
		r = o->flow.scope ? 0 : -ENOMEM;
	}
	buf_done(&b);
	buf_done(&all);
	return r;
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
