#include <errno.h>
#include <string.h>

#include "mcpc/oauth_impl.h"
#include "json/jv.h"
#include "json/jw.h"

#define KEPT_MAX (128u << 10) /* bytes of it as JSON */

void oauth_kept_done(struct oauth_kept *k)
{
	free(k->issuer);
	free(k->client_id);
	free(k->redirect);
	free(k->scope);
	free(k->method);
	(void)secret_free(k->client_secret);
	(void)secret_free(k->access);
	(void)secret_free(k->refresh);
	*k = (struct oauth_kept){ 0 };
}

int oauth_kept_text(char **dst, const char *text)
{
	char *copy = text ? str_dup(str_of(text)) : NULL;

	if (text && !copy)
		return -ENOMEM;
	free(*dst);
	*dst = copy;
	return 0;
}

int oauth_kept_secret(struct secret **dst, const char *text)
{
	struct secret *copy = text ? secret_create(text, strlen(text)) : NULL;

	if (text && !copy)
		return -ENOMEM;
	(void)secret_free(*dst);
	*dst = copy;
	return 0;
}

int oauth_save(const struct oauth *o, struct buf *b)
{
	const struct oauth_kept *k = &o->kept;
	struct jw w = jw_begin(b);

	jw_object_begin(&w);
	if (k->issuer) {
		jw_str_field(&w, "issuer", k->issuer);
		jw_str_field(&w, "client_id", k->client_id);
		jw_str_field(&w, "client_secret", secret_reveal(k->client_secret, NULL));
		jw_str_field(&w, "method", k->method);
		jw_str_field(&w, "redirect", k->redirect);
		jw_str_field(&w, "scope", k->scope);
		jw_str_field(&w, "access", secret_reveal(k->access, NULL));
		jw_str_field(&w, "refresh", secret_reveal(k->refresh, NULL));
		jw_int_field(&w, "ends", k->ends_s);
	}
	jw_object_end(&w);
	return jw_end(&w);
}

struct text { /* as it is read */
	const char *issuer, *client_id, *client_secret, *method, *redirect, *scope;
	const char *access, *refresh;
	int64_t ends_s;
};

#define MAYBE(name, member, most) \
	JV_FIELD(name, STRING, struct text, member, .max = (most), .flags = JV_NULLABLE)

static const struct jv_field fields[] = {
	MAYBE("issuer", issuer, OAUTH_URL_MAX - 1),     MAYBE("client_id", client_id, 1024),
	MAYBE("client_secret", client_secret, 4096),    MAYBE("method", method, 64),
	MAYBE("redirect", redirect, OAUTH_URL_MAX - 1), MAYBE("scope", scope, OAUTH_SCOPE_MAX),
	MAYBE("access", access, OAUTH_TOKEN_MAX),       MAYBE("refresh", refresh, OAUTH_TOKEN_MAX),
	JV_FIELD("ends", I64, struct text, ends_s),
};

static int take(const struct text *t, struct oauth_kept *k)
{
	k->ends_s = t->ends_s;
	if (!t->issuer)
		return 0;
	if (oauth_kept_text(&k->issuer, t->issuer) < 0 ||
	    oauth_kept_text(&k->client_id, t->client_id) < 0 ||
	    oauth_kept_text(&k->method, t->method) < 0 ||
	    oauth_kept_text(&k->redirect, t->redirect) < 0 ||
	    oauth_kept_text(&k->scope, t->scope) < 0 ||
	    oauth_kept_secret(&k->client_secret, t->client_secret) < 0 ||
	    oauth_kept_secret(&k->access, t->access) < 0 ||
	    oauth_kept_secret(&k->refresh, t->refresh) < 0)
		return -ENOMEM;
	return 0;
}

int oauth_load(struct oauth *o, const char *json, size_t n, struct err *err)
{
	struct arena *a = arena_create(KEPT_MAX);
	struct jv_doc *doc = NULL;
	struct text t = { 0 };
	struct oauth_kept k = { 0 };
	int r = a ? jv_parse(json, n, KEPT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = jv_decode(jv_root(doc), fields, sizeof(fields) / sizeof(fields[0]), a, &t,
			      NULL);
	if (r == 0)
		r = take(&t, &k);
	if (r == 0) {
		oauth_flow_done(&o->flow); /* it may use what is replaced */
		oauth_kept_done(&o->kept);
		o->kept = k;
	} else {
		oauth_kept_done(&k);
		r = err_set(err, r == -ENOMEM ? ENOMEM : EINVAL,
			    "what was kept of a server's tokens cannot be read");
	}
	doc = jv_free(doc);
	a = arena_free(a);
	return r;
}
