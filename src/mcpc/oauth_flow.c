#include <errno.h>
#include <stdarg.h>
#include <string.h>

#include "mcpc/oauth_impl.h"
#include "net/percent.h"

/* All of the way, from the server's metadata to a token. Every step either sets the next state and
 * what is to be fetched there, or loses. */

#define EXPIRES_MAX_S 315360000.0 /* ten years */

static void lose(struct oauth *o, const struct err *err)
{
	oauth_flow_wipe(&o->flow);
	o->flow.state = OAUTH_AT_LOSS;
	o->flow.err = *err;
}

static void lose_memory(struct oauth *o)
{
	struct err err = { 0 };

	(void)err_sys(&err, ENOMEM, "oauth");
	lose(o, &err);
}

__attribute__((format(printf, 2, 3))) static void refuse(struct oauth *o, const char *fmt, ...)
{
	struct err err = { .code = EACCES };
	va_list args;

	va_start(args, fmt);
	(void)vsnprintf(err.text, sizeof(err.text), fmt, args);
	va_end(args);
	lose(o, &err);
}

/* A token endpoint or a registration has said no: by the name of the error, never its text. */
static void refuse_answer(struct oauth *o, const char *what, int status, const char *error)
{
	if (strcmp(error, "invalid_client") == 0) /* it has forgotten us: the next time anew */
		(void)oauth_kept_text(&o->kept.client_id, NULL);
	refuse(o, "%s of %.100s says no: %d%s%s", what, o->flow.issuer, status,
	       error[0] ? ", " : "", error);
}

static void go(struct oauth *o, enum oauth_state state, int r)
{
	if (r < 0)
		lose_memory(o);
	else
		o->flow.state = state;
}

/* ---- a code, by a browser ---- */

static bool has_kept_redirect(const struct oauth *o)
{
	return o->kept.redirect && strcmp(o->kept.redirect, oauth_redirect(o)) == 0;
}

static void begin_code(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;

	if (!oauth_redirect(o))
		refuse(o, "somebody has to log in at %.100s: holt mcp login", f->issuer);
	else if (!f->meta.authorization)
		refuse(o, "%.100s has no authorization_endpoint", f->issuer);
	else if (!f->meta.is_guessed && !oauth_strings_have(f->meta.challenges, "S256"))
		refuse(o, "%.100s does not offer PKCE with S256", f->issuer);
	else if (oauth_use_configured(o) || oauth_use_document(o) ||
		 (has_kept_redirect(o) && oauth_use_kept(o)))
		go(o, OAUTH_AT_OPEN, oauth_write_open(o));
	else if (f->meta.registration)
		go(o, OAUTH_AT_REGISTER, oauth_write_registration(o));
	else
		refuse(o, "%.100s registers nobody: a client_id has to be given", f->issuer);
}

static void on_registered(struct oauth *o, int status, const char *body, size_t n)
{
	struct oauth_flow *f = &o->flow;
	struct oauth_registered got = { 0 };
	struct err err = { 0 };
	char error[64];

	if (status != 200 && status != 201) {
		oauth_read_error(body, n, error, sizeof(error));
		refuse_answer(o, "the registration", status, error);
		return;
	}
	if (oauth_read_registered(body, n, f->arena, &got, &err) < 0) {
		lose(o, &err);
		return;
	}
	if (oauth_kept_text(&o->kept.client_id, got.id) < 0 ||
	    oauth_kept_text(&o->kept.method, got.method) < 0 ||
	    oauth_kept_text(&o->kept.redirect, oauth_redirect(o)) < 0 ||
	    oauth_kept_secret(&o->kept.client_secret, got.secret) < 0 || !oauth_use_kept(o)) {
		lose_memory(o);
		return;
	}
	go(o, OAUTH_AT_OPEN, oauth_write_open(o));
}

struct back { /* what a browser comes back with; NULL: not said */
	char *code, *state, *iss, *error;
};

/* text is decoded in its place. -EINVAL: twice the same name, or no encoding. */
static int read_back(char *text, struct back *ret)
{
	struct str rest = str_of(text), one;

	while (str_split(&rest, '&', &one)) {
		struct str name = one;
		char **dst;

		name.len = strcspn(one.data, "=&");
		dst = str_is(name, "code")    ? &ret->code
		      : str_is(name, "state") ? &ret->state
		      : str_is(name, "iss")   ? &ret->iss
		      : str_is(name, "error") ? &ret->error
					      : NULL;
		if (!dst || name.len >= one.len)
			continue;
		one = (struct str){ one.data + name.len + 1, one.len - name.len - 1 };
		if (*dst)
			return -EINVAL;
		*dst = text + (one.data - text);
		if (percent_decode(one, true, *dst) < 0)
			return -EINVAL;
	}
	return 0;
}

/* RFC 9207, 2.4: compared as it is, whether it was promised or not. */
static bool is_from_issuer(const struct oauth_flow *f, const struct back *b)
{
	return b->iss ? strcmp(b->iss, f->issuer) == 0 : !f->meta.says_iss;
}

static bool is_ours(const struct oauth_flow *f, const struct back *b)
{
	size_t n = strlen(f->token_of_state);

	return b->state && strlen(b->state) == n &&
	       secret_bytes_equal(b->state, f->token_of_state, n);
}

int oauth_redirected(struct oauth *o, const char *query, struct err *err)
{
	struct oauth_flow *f = &o->flow;
	struct back b = { 0 };
	size_t n = strlen(query);
	char *text;

	if (f->state != OAUTH_AT_OPEN)
		return err_set(err, EINVAL, "nobody is waiting for a browser to come back");
	if (n > OAUTH_QUERY_MAX)
		return err_set(err, EINVAL, "that is longer than %u bytes", OAUTH_QUERY_MAX);
	text = arena_strndup(f->arena, query, n);
	if (!text || read_back(text, &b) < 0 || !is_ours(f, &b))
		return err_set(err, EINVAL, "that is no answer to what was asked");
	if (!is_from_issuer(f, &b))
		refuse(o, "the answer does not come from %.100s", f->issuer);
	else if (b.error)
		refuse(o, "%.100s says no: %.60s", f->issuer,
		       b.error[strspn(b.error, "abcdefghijklmnopqrstuvwxyz_")] ? "an error"
									       : b.error);
	else if (!b.code || b.code[0] == '\0')
		refuse(o, "%.100s has given no code", f->issuer);
	else
		go(o, OAUTH_AT_TOKEN, oauth_write_code(o, b.code));
	return 0;
}

/* ---- tokens ---- */

static void take_tokens(struct oauth *o, const char *body, size_t n)
{
	struct oauth_flow *f = &o->flow;
	struct oauth_tokens got = { 0 };
	struct oauth_kept *k = &o->kept;
	struct err err = { 0 };
	double s;

	if (oauth_read_tokens(body, n, f->arena, &got, &err) < 0) {
		lose(o, &err);
		return;
	}
	s = got.expires_s > EXPIRES_MAX_S ? EXPIRES_MAX_S : got.expires_s;
	if (oauth_kept_secret(&k->access, got.access) < 0 ||
	    (got.refresh && oauth_kept_secret(&k->refresh, got.refresh) < 0) ||
	    (f->state == OAUTH_AT_TOKEN && oauth_kept_text(&k->scope, f->scope) < 0)) {
		lose_memory(o);
		return;
	}
	k->ends_s = s > 0 ? f->now_s + (int64_t)s : 0;
	oauth_flow_wipe(f);
	f->state = OAUTH_AT_END;
}

static void on_token(struct oauth *o, int status, const char *body, size_t n)
{
	char error[64];

	if (status == 200) {
		take_tokens(o, body, n);
		return;
	}
	oauth_read_error(body, n, error, sizeof(error));
	refuse_answer(o, "the token endpoint", status, error);
}

static void on_refreshed(struct oauth *o, int status, const char *body, size_t n)
{
	char error[64];

	if (status < 400 || status >= 500) {
		on_token(o, status, body, n);
		return;
	}
	oauth_read_error(body, n, error, sizeof(error));
	if (strcmp(error, "invalid_client") == 0)
		(void)oauth_kept_text(&o->kept.client_id, NULL);
	o->kept.refresh = secret_free(o->kept.refresh);
	begin_code(o);
}

/* ---- metadata ---- */

/* What one authorization server has given is not for another one. */
static int turn_to_issuer(struct oauth *o)
{
	struct oauth_kept *k = &o->kept;

	if (k->issuer && strcmp(k->issuer, o->flow.issuer) == 0)
		return 0;
	oauth_kept_done(k);
	return oauth_kept_text(&k->issuer, o->flow.issuer);
}

static void begin_assertion(struct oauth *o)
{
	const char *jwt = secret_reveal(o->assertion, NULL);

	(void)oauth_use_configured(o);
	if (!jwt)
		refuse(o, "there is no token that vouches for us");
	else
		go(o, OAUTH_AT_TOKEN, oauth_write_assertion(o, jwt));
}

static void on_known(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	const char *refresh;
	int r;

	r = turn_to_issuer(o);
	if (r == 0)
		r = oauth_choose_scope(o);
	if (r == -E2BIG)
		refuse(o, "the scopes are longer than %u bytes", OAUTH_SCOPE_MAX);
	else if (r < 0)
		lose_memory(o);
	if (r < 0)
		return;
	refresh = secret_reveal(o->kept.refresh, NULL);
	if (o->is.grant == OAUTH_GRANT_ASSERTION) {
		begin_assertion(o);
	} else if (o->is.grant == OAUTH_GRANT_CLIENT) {
		(void)oauth_use_configured(o);
		go(o, OAUTH_AT_TOKEN, oauth_write_client(o));
	} else if (refresh && f->status == 401 &&
		   (oauth_use_configured(o) || oauth_use_document(o) || oauth_use_kept(o))) {
		go(o, OAUTH_AT_REFRESH, oauth_write_refresh(o, refresh));
	} else {
		begin_code(o);
	}
}

/* Before there was metadata: fixed places at the server itself. */
static void guess_metadata(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;

	f->meta = (struct oauth_metadata){
		.issuer = f->issuer,
		.authorization = arena_printf(f->arena, "%s/authorize", f->issuer),
		.token = arena_printf(f->arena, "%s/token", f->issuer),
		.registration = arena_printf(f->arena, "%s/register", f->issuer),
		.is_guessed = true,
	};
	if (!f->meta.authorization || !f->meta.token || !f->meta.registration)
		lose_memory(o);
	else
		on_known(o);
}

static bool next_place(struct oauth_flow *f, int status)
{
	return status >= 400 && status < 500 && f->places[++f->place];
}

static void on_metadata(struct oauth *o, int status, const char *body, size_t n)
{
	struct oauth_flow *f = &o->flow;
	struct err err = { 0 };

	if (next_place(f, status))
		return;
	if (status != 200) {
		if (f->is_old && status >= 400 && status < 500)
			guess_metadata(o);
		else
			refuse(o, "%.100s has no metadata (%d)", f->issuer, status);
		return;
	}
	f->meta = (struct oauth_metadata){ 0 };
	if (oauth_read_metadata(body, n, f->arena, &f->meta, &err) < 0)
		lose(o, &err);
	else if (strcmp(f->meta.issuer, f->issuer) != 0)
		refuse(o, "the metadata of %.100s is another issuer's", f->issuer);
	else
		on_known(o);
}

static void begin_metadata(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	struct err err = { 0 };

	if (oauth_url_check("authorization server", f->issuer, &err) < 0) {
		lose(o, &err);
		return;
	}
	if (o->is.issuer && strcmp(o->is.issuer, f->issuer) != 0) {
		refuse(o, "the server wants %.80s, which is not the issuer that was given",
		       f->issuer);
		return;
	}
	/* A secret that was given without an issuer is the first one's. */
	if (!o->is.issuer && (o->is.client_secret || o->assertion) && o->kept.issuer &&
	    strcmp(o->kept.issuer, f->issuer) != 0) {
		refuse(o, "the server wants %.80s now, and the client_secret is not for it",
		       f->issuer);
		return;
	}
	f->place = 0;
	go(o, OAUTH_AT_METADATA, oauth_url_issuer(f->arena, f->issuer, f->is_old, f->places));
}

/* The one that was given; else the one that something is kept of; else the first. */
static const char *choose_issuer(const struct oauth *o, struct jv_strings list)
{
	if (o->is.issuer && oauth_strings_have(list, o->is.issuer))
		return o->is.issuer;
	if (o->kept.issuer && oauth_strings_have(list, o->kept.issuer))
		return o->kept.issuer;
	return list.items[0];
}

static void be_old(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	struct str origin = oauth_url_origin(o->is.server);

	f->is_old = true;
	f->resource = o->is.server;
	f->issuer = arena_strndup(f->arena, origin.data, origin.len);
	if (!f->issuer)
		lose_memory(o);
	else
		begin_metadata(o);
}

static void on_resource(struct oauth *o, int status, const char *body, size_t n)
{
	struct oauth_flow *f = &o->flow;
	struct oauth_resource got = { 0 };
	struct err err = { 0 };
	const char *issuer;

	if (next_place(f, status))
		return;
	if (status >= 400 && status < 500) {
		be_old(o);
		return;
	}
	if (status != 200) {
		refuse(o, "the server's metadata cannot be had (%d)", status);
		return;
	}
	if (oauth_read_resource(body, n, f->arena, &got, &err) < 0) {
		lose(o, &err);
		return;
	}
	if (!oauth_url_covers(got.resource, o->is.server)) {
		refuse(o, "the server's metadata is another resource's");
		return;
	}
	if (got.servers.len == 0) {
		refuse(o, "the server's metadata names no authorization server");
		return;
	}
	issuer = choose_issuer(o, got.servers);
	f->resource = got.resource;
	f->scopes = got.scopes;
	f->issuer = arena_strndup(f->arena, issuer, strlen(issuer));
	if (!f->issuer)
		lose_memory(o);
	else
		begin_metadata(o);
}

void oauth_cancel(struct oauth *o, const struct err *err)
{
	if (o->flow.state != OAUTH_AT_REST)
		lose(o, err);
}

/* ---- answers ---- */

void oauth_answer(struct oauth *o, int status, const char *body, size_t n, int64_t now_s,
		  const struct err *err)
{
	static void (*const steps[OAUTH_STATES])(struct oauth * o, int status, const char *body,
						 size_t n) = {
		[OAUTH_AT_RESOURCE] = on_resource, [OAUTH_AT_METADATA] = on_metadata,
		[OAUTH_AT_REFRESH] = on_refreshed, [OAUTH_AT_REGISTER] = on_registered,
		[OAUTH_AT_TOKEN] = on_token,
	};

	if (!steps[o->flow.state])
		return;
	if (status == 0) {
		struct err none = { .code = EIO, .text = "there was no answer" };

		lose(o, err && err->code ? err : &none);
		return;
	}
	o->flow.now_s = now_s;
	steps[o->flow.state](o, status, body ? body : "", n);
}
