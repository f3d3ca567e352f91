#include <errno.h>
#include <string.h>
#include <strings.h>

#include "mcpc/oauth_impl.h"
#include "json/jv.h"

#define TEXTS .max = OAUTH_LIST_MAX, .text_max = 512, .flags = JV_NULLABLE
#define ADDRESS .max = OAUTH_URL_MAX - 1

static const struct jv_field resource_fields[] = {
	JV_FIELD("resource", STRING, struct oauth_resource, resource, ADDRESS,
		 .flags = JV_REQUIRED),
	JV_FIELD("authorization_servers", STRINGS, struct oauth_resource, servers,
		 .max = OAUTH_SERVERS_MAX, .text_max = OAUTH_URL_MAX - 1, .flags = JV_NULLABLE),
	JV_FIELD("scopes_supported", STRINGS, struct oauth_resource, scopes, TEXTS),
};

static const struct jv_field metadata_fields[] = {
	JV_FIELD("issuer", STRING, struct oauth_metadata, issuer, ADDRESS, .flags = JV_REQUIRED),
	JV_FIELD("authorization_endpoint", STRING, struct oauth_metadata, authorization, ADDRESS,
		 .flags = JV_NULLABLE),
	JV_FIELD("token_endpoint", STRING, struct oauth_metadata, token, ADDRESS,
		 .flags = JV_REQUIRED),
	JV_FIELD("registration_endpoint", STRING, struct oauth_metadata, registration, ADDRESS,
		 .flags = JV_NULLABLE),
	JV_FIELD("scopes_supported", STRINGS, struct oauth_metadata, scopes, TEXTS),
	JV_FIELD("token_endpoint_auth_methods_supported", STRINGS, struct oauth_metadata, methods,
		 TEXTS),
	JV_FIELD("code_challenge_methods_supported", STRINGS, struct oauth_metadata, challenges,
		 TEXTS),
	JV_FIELD("authorization_response_iss_parameter_supported", BOOL, struct oauth_metadata,
		 says_iss, .flags = JV_NULLABLE),
	JV_FIELD("client_id_metadata_document_supported", BOOL, struct oauth_metadata,
		 takes_documents, .flags = JV_NULLABLE),
};

static const struct jv_field registered_fields[] = {
	JV_FIELD("client_id", STRING, struct oauth_registered, id, .min = 1, .max = 1024,
		 .flags = JV_REQUIRED),
	JV_FIELD("client_secret", STRING, struct oauth_registered, secret, .max = 4096,
		 .flags = JV_NULLABLE),
	JV_FIELD("token_endpoint_auth_method", STRING, struct oauth_registered, method, .max = 64,
		 .flags = JV_NULLABLE),
};

static const struct jv_field token_fields[] = {
	JV_FIELD("access_token", STRING, struct oauth_tokens, access, .min = 1,
		 .max = OAUTH_TOKEN_MAX, .flags = JV_REQUIRED),
	JV_FIELD("refresh_token", STRING, struct oauth_tokens, refresh, .max = OAUTH_TOKEN_MAX,
		 .flags = JV_NULLABLE),
	JV_FIELD("token_type", STRING, struct oauth_tokens, type, .max = 64, .flags = JV_REQUIRED),
	JV_FIELD("scope", STRING, struct oauth_tokens, scope, .max = OAUTH_SCOPE_MAX,
		 .flags = JV_NULLABLE),
	JV_FIELD("expires_in", DOUBLE, struct oauth_tokens, expires_s, .flags = JV_NULLABLE),
};

static void doc_free(struct jv_doc **doc)
{
	*doc = jv_free(*doc);
}

/* What is wrong is said by the field's name: never by what stood in it, which may be a token. */
static int decode(const char *what, const char *body, size_t n, const struct jv_field *fields,
		  size_t n_fields, struct arena *a, void *dst, struct err *err)
{
	_cleanup_(doc_free) struct jv_doc *doc = NULL;
	struct jv_problem problem = { 0 };
	int r = jv_parse(body, n, OAUTH_BODY_MAX, &doc, NULL);

	if (r < 0)
		return err_set(err, r == -ENOMEM ? ENOMEM : EPROTO, "%s is no JSON", what);
	if (jv_kind(jv_root(doc)) != JV_OBJECT)
		return err_set(err, EPROTO, "%s is no object", what);
	r = jv_decode_known(jv_root(doc), fields, n_fields, a, dst, &problem);
	if (r < 0)
		return err_set(err, r == -ENOMEM ? ENOMEM : EPROTO, "%s: '%s' is not as it must be",
			       what, problem.field);
	return 0;
}

#define DECODE(what, fields) \
	decode(what, body, n, fields, sizeof(fields) / sizeof((fields)[0]), a, ret, err)

int oauth_read_resource(const char *body, size_t n, struct arena *a, struct oauth_resource *ret,
			struct err *err)
{
	return DECODE("metadata of the server", resource_fields);
}

int oauth_read_metadata(const char *body, size_t n, struct arena *a, struct oauth_metadata *ret,
			struct err *err)
{
	int r = DECODE("metadata of the authorization server", metadata_fields);

	if (r == 0)
		r = oauth_url_check("token_endpoint", ret->token, err);
	if (r == 0 && ret->authorization)
		r = oauth_url_check("authorization_endpoint", ret->authorization, err);
	if (r == 0 && ret->registration)
		r = oauth_url_check("registration_endpoint", ret->registration, err);
	return r;
}

int oauth_read_registered(const char *body, size_t n, struct arena *a, struct oauth_registered *ret,
			  struct err *err)
{
	return DECODE("the registration's answer", registered_fields);
}

/* RFC 6750, 2.1: what may stand in a header. */
static bool is_b64token(const char *text)
{
	for (; *text; text++) {
		if (*text <= ' ' || *text > '~')
			return false;
	}
	return true;
}

int oauth_read_tokens(const char *body, size_t n, struct arena *a, struct oauth_tokens *ret,
		      struct err *err)
{
	int r = DECODE("the token's answer", token_fields);

	if (r < 0)
		return r;
	if (strcasecmp(ret->type, "Bearer") != 0)
		return err_set(err, EPROTO, "the token is of a type that is not known here");
	if (!is_b64token(ret->access))
		return err_set(err, EPROTO, "the token's answer: 'access_token' has odd bytes");
	return 0;
}

void oauth_read_error(const char *body, size_t n, char *dst, size_t size)
{
	_cleanup_(doc_free) struct jv_doc *doc = NULL;
	const char *text = NULL;

	dst[0] = '\0';
	if (jv_parse(body, n, OAUTH_BODY_MAX, &doc, NULL) == 0)
		text = jv_text(jv_get(jv_root(doc), "error"));
	if (text && text[strspn(text, "abcdefghijklmnopqrstuvwxyz_")] == '\0')
		(void)str_copy(dst, size, text);
}

bool oauth_strings_have(struct jv_strings list, const char *one)
{
	for (size_t i = 0; i < list.len; i++) {
		if (strcmp(list.items[i], one) == 0)
			return true;
	}
	return false;
}
