#include "mcpc/oauth.h"

#include <errno.h>
#include <string.h>

#include "mcpc/oauth_impl.h"

#define TEXTS_MAX (64u << 10) /* bytes of all options */

/* ---- making one ---- */

static int copy_options(struct oauth *o, struct err *err)
{
	const char **texts[] = { &o->is.server,     &o->is.client_id, &o->is.client_secret,
				 &o->is.client_key, &o->is.issuer,    &o->is.document,
				 &o->is.redirect,   &o->is.scope,     &o->is.name };

	size_t n = 0;

	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		n += *texts[i] ? strlen(*texts[i]) : 0;
	if (n > TEXTS_MAX)
		return err_set(err, E2BIG, "oauth: the options are longer than %u bytes",
			       TEXTS_MAX);
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
		if (!*texts[i])
			continue;
		*texts[i] = arena_strndup(o->arena, *texts[i], strlen(*texts[i]));
		if (!*texts[i])
			return err_sys(err, ENOMEM, "oauth");
	}
	return 0;
}

static int check_options(const struct oauth_options *is, struct err *err)
{
	int r = oauth_url_check("the server's address", is->server, err);

	if (r == 0 && is->issuer)
		r = oauth_url_check("issuer", is->issuer, err);
	if (r == 0 && is->document)
		r = oauth_url_check("client_id_document", is->document, err);
	if (r == 0 && is->redirect)
		r = oauth_url_check("redirect", is->redirect, err);
	if (r < 0)
		return r;
	if ((is->client_secret || is->client_key) && !is->client_id)
		return err_set(err, EINVAL, "client_secret: wants a client_id beside it");
	if (is->grant == OAUTH_GRANT_CLIENT && !is->client_secret && !is->client_key)
		return err_set(err, EINVAL,
			       "client_id: with it a client_secret or a key is needed");
	return 0;
}

int oauth_create(const struct oauth_options *options, struct oauth **ret, struct err *err)
{
	_cleanup_(oauth_free_p) struct oauth *o = calloc(1, sizeof(*o));
	int r;

	if (!o)
		return err_sys(err, ENOMEM, "oauth");
	o->is = *options;
	if (!o->is.name)
		o->is.name = "Holt";
	o->arena = arena_create(2 * TEXTS_MAX); /* with what alignment takes */
	if (!o->arena)
		return err_sys(err, ENOMEM, "oauth");
	r = copy_options(o, err);
	if (r == 0)
		r = check_options(&o->is, err);
	if (r < 0)
		return r;
	if (o->is.client_key && signer_create(o->is.client_key, &o->signer) < 0)
		return err_set(err, EINVAL, "client_key: no key on P-256 in PEM");
	*ret = TAKE(o);
	return 0;
}

void oauth_flow_done(struct oauth_flow *f)
{
	oauth_flow_wipe(f);
	explicit_bzero(f->verifier, sizeof(f->verifier));
	f->arena = arena_free(f->arena);
	*f = (struct oauth_flow){ 0 };
}

struct oauth *oauth_free(struct oauth *o)
{
	if (!o)
		return NULL;
	oauth_flow_done(&o->flow);
	oauth_kept_done(&o->kept);
	o->signer = signer_free(o->signer);
	o->assertion = secret_free(o->assertion);
	free(o->redirect);
	o->arena = arena_free(o->arena);
	free(o);
	return NULL;
}

int oauth_set_redirect(struct oauth *o, const char *redirect, struct err *err)
{
	int r = redirect ? oauth_url_check("redirect", redirect, err) : 0;

	if (r < 0)
		return r;
	return oauth_kept_text(&o->redirect, redirect) < 0 ? err_sys(err, ENOMEM, "oauth") : 0;
}

int oauth_set_assertion(struct oauth *o, const char *jwt)
{
	return oauth_kept_secret(&o->assertion, jwt);
}

const char *oauth_redirect(const struct oauth *o)
{
	return o->redirect ? o->redirect : o->is.redirect;
}

bool oauth_has_tokens(const struct oauth *o)
{
	return o->kept.access || o->kept.refresh;
}

const char *oauth_token(const struct oauth *o, int64_t now_s)
{
	if (o->kept.ends_s != 0 && now_s + OAUTH_SKEW_S >= o->kept.ends_s)
		return NULL;
	return secret_reveal(o->kept.access, NULL);
}

/* ---- beginning ---- */

/* A scope that was asked for already and not given is not given the next time. */
static int check_step_up(const struct oauth *o, struct err *err)
{
	const struct oauth_challenge *c = &o->flow.challenge;

	if (strcmp(c->error, "insufficient_scope") != 0 || c->scope[0] == '\0')
		return err_set(err, EACCES, "the server refuses us (403)");
	if (o->kept.access && oauth_scope_has_all(str_of(o->kept.scope), str_of(c->scope)))
		return err_set(err, EACCES,
			       "the server wants a scope that was asked for and is not enough");
	return 0;
}

int oauth_begin(struct oauth *o, int status, const char *challenge, struct err *err)
{
	struct oauth_flow *f = &o->flow;
	int r;

	oauth_flow_done(f);
	f->status = status;
	f->scope = "";
	oauth_challenge_parse(challenge ? challenge : "", &f->challenge);
	if (status == 403) {
		r = check_step_up(o, err);
		if (r < 0)
			return r;
	}
	if (f->challenge.metadata[0] != '\0') {
		r = oauth_url_check("resource_metadata", f->challenge.metadata, err);
		if (r < 0)
			return r;
	}
	if (status == 401)
		o->kept.access = secret_free(o->kept.access);
	f->arena = arena_create(OAUTH_FLOW_MAX);
	if (!f->arena ||
	    oauth_url_resource(f->arena, o->is.server, f->challenge.metadata, f->places) < 0)
		return err_sys(err, ENOMEM, "oauth");
	f->state = OAUTH_AT_RESOURCE;
	return 0;
}

/* ---- what to do ---- */

/* What the operator has named is theirs to reach; what a server names is not ours. */
static bool is_foreign(const struct oauth *o, const char *url)
{
	return !oauth_url_same_origin(url, o->is.server) &&
	       !(o->is.issuer && oauth_url_same_origin(url, o->is.issuer));
}

void oauth_todo(const struct oauth *o, struct oauth_todo *ret)
{
	static const enum oauth_step steps[OAUTH_STATES] = {
		[OAUTH_AT_REST] = OAUTH_IDLE,      [OAUTH_AT_RESOURCE] = OAUTH_FETCH,
		[OAUTH_AT_METADATA] = OAUTH_FETCH, [OAUTH_AT_REFRESH] = OAUTH_FETCH,
		[OAUTH_AT_REGISTER] = OAUTH_FETCH, [OAUTH_AT_OPEN] = OAUTH_OPEN,
		[OAUTH_AT_TOKEN] = OAUTH_FETCH,    [OAUTH_AT_END] = OAUTH_READY,
		[OAUTH_AT_LOSS] = OAUTH_FAILED,
	};
	const struct oauth_flow *f = &o->flow;
	bool is_get = f->state == OAUTH_AT_RESOURCE || f->state == OAUTH_AT_METADATA;

	*ret = (struct oauth_todo){ .step = steps[f->state], .err = &f->err };
	if (ret->step == OAUTH_OPEN)
		ret->url = f->url;
	if (ret->step != OAUTH_FETCH)
		return;
	ret->method = is_get ? "GET" : "POST";
	ret->url = is_get ? f->places[f->place] : f->url;
	ret->is_foreign = is_foreign(o, ret->url);
	ret->public_only = ret->is_foreign && !o->is.allow_private;
	if (is_get)
		return;
	ret->type = f->is_json ? "application/json" : "application/x-www-form-urlencoded";
	ret->body = buf_str(&f->body);
	ret->body_len = f->body.len;
	ret->authorization = f->credential.len ? buf_str(&f->credential) : NULL;
}
