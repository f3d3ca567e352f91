#include <errno.h>
#include <string.h>

#include "base/encode.h"
#include "crypto/hash.h"
#include "crypto/random.h"
#include "crypto/signer.h"
#include "httpc/url.h"
#include "mcpc/oauth_impl.h"
#include "json/jw.h"

#define RANDOM_LEN 32
#define ASSERTION_S 120 /* how long what we sign is good */
#define ASSERTION_TYPE "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

static void wipe(struct buf *b)
{
	if (b->data)
		explicit_bzero(b->data, b->cap);
	buf_done(b);
}

void oauth_flow_wipe(struct oauth_flow *f)
{
	wipe(&f->body);
	wipe(&f->credential);
	buf_init(&f->body, OAUTH_BODY_MAX);
	buf_init(&f->credential, OAUTH_BODY_MAX);
}

/* ---- registration (RFC 7591) ---- */

static const char *wanted_method(const struct oauth_metadata *meta)
{
	/* A program on somebody's machine keeps no secret from them: none, where that is taken. */
	if (oauth_strings_have(meta->methods, "none"))
		return "none";
	if (oauth_strings_have(meta->methods, "client_secret_post") &&
	    !oauth_strings_have(meta->methods, "client_secret_basic"))
		return "client_secret_post";
	return "client_secret_basic";
}

int oauth_write_registration(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	struct jw w;

	oauth_flow_wipe(f);
	f->url = f->meta.registration;
	f->is_json = true;
	w = jw_begin(&f->body);
	jw_object_begin(&w);
	jw_str_field(&w, "client_name", o->is.name);
	jw_str_field(&w, "application_type", "native");
	jw_key(&w, "redirect_uris"), jw_array_begin(&w), jw_string(&w, oauth_redirect(o));
	jw_array_end(&w);
	jw_key(&w, "grant_types"), jw_array_begin(&w), jw_string(&w, "authorization_code");
	jw_string(&w, "refresh_token"), jw_array_end(&w);
	jw_key(&w, "response_types"), jw_array_begin(&w), jw_string(&w, "code");
	jw_array_end(&w);
	jw_str_field(&w, "token_endpoint_auth_method", wanted_method(&f->meta));
	if (f->scope[0] != '\0')
		jw_str_field(&w, "scope", f->scope);
	jw_object_end(&w);
	return jw_end(&w);
}

/* ---- the address to open ---- */

static void make_random(char *dst)
{
	unsigned char raw[RANDOM_LEN];

	random_bytes(raw, sizeof(raw));
	(void)encode_base64url(raw, sizeof(raw), dst);
	explicit_bzero(raw, sizeof(raw));
}

int oauth_write_open(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	char challenge[BASE64_SIZE(HASH_LEN)];
	uint8_t sum[HASH_LEN];
	struct buf b = { .max = 4 * OAUTH_URL_MAX + 3 * OAUTH_SCOPE_MAX };
	int r;

	make_random(f->verifier);
	make_random(f->token_of_state);
	r = hash_sha256(f->verifier, strlen(f->verifier), sum);
	if (r < 0)
		return r;
	(void)encode_base64url(sum, sizeof(sum), challenge);
	(void)buf_puts(&b, f->meta.authorization);
	(void)url_add_query(&b, "response_type", "code");
	(void)url_add_query(&b, "client_id", f->client.id);
	(void)url_add_query(&b, "redirect_uri", oauth_redirect(o));
	(void)url_add_query(&b, "code_challenge", challenge);
	(void)url_add_query(&b, "code_challenge_method", "S256");
	(void)url_add_query(&b, "state", f->token_of_state);
	(void)url_add_query(&b, "resource", f->resource);
	if (f->scope[0] != '\0')
		(void)url_add_query(&b, "scope", f->scope);
	f->url = b.failed ? NULL : arena_strndup(f->arena, buf_str(&b), b.len);
	buf_done(&b);
	return f->url ? 0 : -ENOMEM;
}

/* ---- requests for tokens ---- */

static void form(struct buf *b, const char *name, const char *value)
{
	if (b->len > 0)
		(void)buf_putc(b, '&');
	(void)buf_puts(b, name);
	(void)buf_putc(b, '=');
	(void)url_escape(b, value);
}

/* RFC 6749, 2.3.1: both are encoded before they are put together. */
static int write_basic(struct oauth_flow *f)
{
	struct buf pair = { 0 }, text = { 0 };

	(void)url_escape(&pair, f->client.id);
	(void)buf_putc(&pair, ':');
	(void)url_escape(&pair, f->client.secret);
	if (!pair.failed && buf_reserve(&text, BASE64_SIZE(pair.len)) == 0) {
		text.len = encode_base64(pair.data, pair.len, text.data);
		(void)buf_printf(&f->credential, "Authorization: Basic %s", buf_str(&text));
	}
	wipe(&pair);
	wipe(&text);
	return f->credential.len > 0 ? 0 : -ENOMEM;
}

/* RFC 7523, 2.2: for the issuer alone, once, and not for long. */
static int write_claims(const struct oauth_flow *f, struct buf *b)
{
	char id[64];
	struct jw w = jw_begin(b);

	make_random(id);
	jw_object_begin(&w);
	jw_str_field(&w, "iss", f->client.id);
	jw_str_field(&w, "sub", f->client.id);
	jw_str_field(&w, "aud", f->issuer);
	jw_str_field(&w, "jti", id);
	jw_int_field(&w, "iat", f->now_s);
	jw_int_field(&w, "exp", f->now_s + ASSERTION_S);
	jw_object_end(&w);
	return jw_end(&w);
}

static int append_base64url(struct buf *b, const void *data, size_t n)
{
	int r = buf_reserve(b, BASE64_SIZE(n));

	if (r == 0)
		b->len += encode_base64url(data, n, b->data + b->len);
	return r;
}

static int write_proof(struct oauth *o)
{
	static const char head[] = "{\"alg\":\"ES256\",\"typ\":\"JWT\"}";
	struct buf claims = { .max = OAUTH_BODY_MAX }, jwt = { .max = OAUTH_BODY_MAX };
	uint8_t signature[SIGNER_LEN];
	int r = write_claims(&o->flow, &claims);

	if (r == 0)
		r = append_base64url(&jwt, head, sizeof(head) - 1);
	if (r == 0)
		r = buf_putc(&jwt, '.');
	if (r == 0)
		r = append_base64url(&jwt, claims.data, claims.len);
	if (r == 0)
		r = signer_sign(o->signer, jwt.data, jwt.len, signature);
	if (r == 0)
		r = buf_putc(&jwt, '.');
	if (r == 0)
		r = append_base64url(&jwt, signature, sizeof(signature));
	form(&o->flow.body, "client_assertion_type", ASSERTION_TYPE);
	form(&o->flow.body, "client_assertion", buf_str(&jwt));
	buf_done(&claims);
	wipe(&jwt);
	return r;
}

static void begin(struct oauth_flow *f, const char *grant)
{
	oauth_flow_wipe(f);
	f->url = f->meta.token;
	f->is_json = false;
	form(&f->body, "grant_type", grant);
}

static int finish(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;
	const struct oauth_client *c = &f->client;
	int r = 0;

	form(&f->body, "resource", f->resource);
	if (c->method == OAUTH_BASIC)
		r = write_basic(f);
	else if (c->id)
		form(&f->body, "client_id", c->id);
	if (c->method == OAUTH_JWT)
		r = write_proof(o);
	if (c->method == OAUTH_POST)
		form(&f->body, "client_secret", c->secret);
	return r < 0 ? r : f->body.failed || f->credential.failed ? -ENOMEM : 0;
}

int oauth_write_code(struct oauth *o, const char *code)
{
	struct oauth_flow *f = &o->flow;

	begin(f, "authorization_code");
	form(&f->body, "code", code);
	form(&f->body, "redirect_uri", oauth_redirect(o));
	form(&f->body, "code_verifier", f->verifier);
	return finish(o);
}

int oauth_write_refresh(struct oauth *o, const char *token)
{
	struct oauth_flow *f = &o->flow;

	begin(f, "refresh_token");
	form(&f->body, "refresh_token", token);
	return finish(o);
}

int oauth_write_client(struct oauth *o)
{
	struct oauth_flow *f = &o->flow;

	begin(f, "client_credentials");
	if (f->scope[0] != '\0')
		form(&f->body, "scope", f->scope);
	return finish(o);
}

int oauth_write_assertion(struct oauth *o, const char *jwt)
{
	struct oauth_flow *f = &o->flow;

	begin(f, "urn:ietf:params:oauth:grant-type:jwt-bearer");
	form(&f->body, "assertion", jwt);
	if (f->scope[0] != '\0')
		form(&f->body, "scope", f->scope);
	return finish(o);
}
