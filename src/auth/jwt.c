#include "auth/jwt.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <string.h>
#include <strings.h>

#include "auth/jwks.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "crypto/hash.h"
#include "crypto/pubkey.h"
#include "json/jv.h"

#define PART_COUNT 3
#define TIME_MAX 1e11 /* seconds: beyond, it is no time of anybody's */

enum part { PART_HEAD, PART_CLAIMS, PART_SIGNATURE };

CLEANUP_FUNC(struct jv_doc *, jv_free)

static const struct {
	const char *name;
	enum pubkey_kind kind;
} algorithms[] = {
	{ "RS256", PUBKEY_RSA },
	{ "ES256", PUBKEY_P256 },
	{ "EdDSA", PUBKEY_ED25519 },
};

/* ---- the form ---- */

static int split(const char *token, struct str parts[PART_COUNT])
{
	const char *at = token;

	for (size_t i = 0; i < PART_COUNT; i++) {
		size_t n = strcspn(at, ".");

		parts[i] = (struct str){ at, n };
		if (n == 0 || (at[n] == '\0') != (i == PART_COUNT - 1))
			return -EINVAL;
		at += n + 1;
	}
	return 0;
}

bool jwt_is_like(const char *text)
{
	struct str parts[PART_COUNT];

	return split(text, parts) == 0; /* a key of ours has no dots */
}

static int parse_part(struct str part, const char *what, struct jv_doc **ret, struct err *err)
{
	char text[JWT_MAX];
	struct err why = { 0 };
	ssize_t n = decode_base64url(part.data, part.len, text, sizeof(text));
	int r;

	if (n < 0)
		return err_set(err, EACCES, "the token's %s is not base64url", what);
	r = jv_parse(text, (size_t)n, sizeof(text), ret, &why);
	if (r == -ENOMEM)
		return err_sys(err, ENOMEM, "token");
	if (r < 0 || jv_kind(jv_root(*ret)) != JV_OBJECT)
		return err_set(err, EACCES, "the token's %s is not one JSON object", what);
	return 0;
}

/* ---- the head ---- */

static int find_algorithm(struct jv head, enum pubkey_kind *ret, struct err *err)
{
	const char *alg = jv_text(jv_get(head, "alg"));

	for (size_t i = 0; alg && i < sizeof(algorithms) / sizeof(algorithms[0]); i++)
		if (strcmp(algorithms[i].name, alg) == 0) {
			*ret = algorithms[i].kind;
			return 0;
		}
	return err_set(err, EACCES, "the token's alg is not RS256, ES256 or EdDSA");
}

/* Tokens that an issuer makes for other purposes say so in their typ. */
static bool is_access_token(struct jv head)
{
	static const char *const types[] = { "JWT", "at+jwt", "application/at+jwt" };
	const char *typ = jv_text(jv_get(head, "typ"));

	if (jv_kind(jv_get(head, "typ")) == JV_ABSENT)
		return true;
	for (size_t i = 0; typ && i < sizeof(types) / sizeof(types[0]); i++)
		if (strcasecmp(types[i], typ) == 0)
			return true;
	return false;
}

static int find_key(struct jv head, const struct jwks *keys, const struct pubkey **ret,
		    struct err *err)
{
	const char *kid = jv_text(jv_get(head, "kid"));
	enum pubkey_kind kind = PUBKEY_RSA;
	int r = find_algorithm(head, &kind, err);

	if (r < 0)
		return r;
	if (!is_access_token(head))
		return err_set(err, EACCES, "the token's typ is not that of an access token");
	if (jv_kind(jv_get(head, "crit")) != JV_ABSENT)
		return err_set(err, EACCES,
			       "the token has critical extensions, which are not known");
	if (jv_kind(jv_get(head, "kid")) != JV_ABSENT && (!kid || strlen(kid) > JWKS_KID_MAX))
		return err_set(err, EACCES, "the token's kid is no text of at most %u bytes",
			       JWKS_KID_MAX);
	*ret = keys ? jwks_find(keys, kid, kind) : NULL;
	return *ret ? 0 : err_set(err, EAGAIN, "the token's key is not known");
}

static int check_signature(const char *token, const struct str parts[PART_COUNT],
			   const struct pubkey *key, struct err *err)
{
	uint8_t signature[PUBKEY_RSA_MAX];
	struct str sig = parts[PART_SIGNATURE];
	ssize_t n = decode_base64url(sig.data, sig.len, signature, sizeof(signature));
	int r = -EBADMSG;

	if (n > 0)
		r = pubkey_verify(key, token, (size_t)(sig.data - token) - 1, signature, (size_t)n);
	if (r == -ENOMEM)
		return err_sys(err, ENOMEM, "token");
	return r < 0 ? err_set(err, EACCES, "the token's signature is not valid") : 0;
}

/* ---- the claims ---- */

static bool is_text(struct jv v, const char *want)
{
	const char *text = jv_text(v);

	return text && strcmp(text, want) == 0;
}

static int check_parties(struct jv claims, const struct jwt_rules *rules, struct err *err)
{
	struct jv aud = jv_get(claims, "aud");
	bool found = is_text(aud, rules->audience);

	if (!is_text(jv_get(claims, "iss"), rules->issuer))
		return err_set(err, EACCES, "the token is of another issuer");
	if (jv_kind(aud) == JV_ARRAY)
		JV_FOREACH (aud, it)
			found |= is_text(it.value, rules->audience);
	return found ? 0 : err_set(err, EACCES, "the token is for another audience");
}

/* 1: *ret is the time, 0: absent, else refused. */
static int claim_time(struct jv claims, const char *name, int64_t *ret, struct err *err)
{
	struct jv v = jv_get(claims, name);
	double t;

	if (jv_kind(v) == JV_ABSENT)
		return 0;
	if (jv_double(v, &t) < 0 || !isfinite(t) || t < 0 || t > TIME_MAX)
		return err_set(err, EACCES, "the token's %s is not a time", name);
	*ret = (int64_t)t;
	return 1;
}

static int check_times(struct jv claims, int64_t skew_s, int64_t now_s, int64_t *ret_exp_s,
		       struct err *err)
{
	int64_t nbf = 0, iat = 0;
	int r = claim_time(claims, "exp", ret_exp_s, err);

	if (r < 0)
		return r;
	if (r == 0)
		return err_set(err, EACCES, "the token has no exp: it would be good for ever");
	if (now_s >= *ret_exp_s + skew_s)
		return err_set(err, EACCES, "the token has expired");
	if (claim_time(claims, "nbf", &nbf, err) < 0 || claim_time(claims, "iat", &iat, err) < 0)
		return -EACCES;
	if (nbf > now_s + skew_s || iat > now_s + skew_s)
		return err_set(err, EACCES, "the token is not yet valid: compare the clocks");
	return 0;
}

/* An owner's name gets into logs, lists and file names of others: no blanks, quotes, slashes or
 * letters that look like other letters. */
static bool is_safe(const char *owner)
{
	static const char first[] =
		"abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";
	static const char others[] = "._@:|+-";
	size_t n = strlen(owner);

	if (n == 0 || n > OWNER_FOREIGN_MAX || !strchr(first, owner[0]))
		return false;
	for (size_t i = 1; i < n; i++)
		if (!strchr(first, owner[i]) && !strchr(others, owner[i]))
			return false;
	return true;
}

static bool is_local(const struct jwt_rules *rules, const char *owner)
{
	for (const char *const *one = rules->local_owners; one && *one; one++)
		if (strcmp(*one, owner) == 0)
			return true;
	return false;
}

/* A provider's "admin" is nobody here: what its tokens name is in a space of its own. */
static int set_owner(const char *owner, const struct jwt_rules *rules, struct principal *p,
		     struct err *err)
{
	uint8_t hash[HASH_LEN];
	char hex[2 * HASH_LEN + 1];
	int r;

	if (is_local(rules, owner))
		return str_copy(p->owner, sizeof(p->owner), owner); /* fits: is_safe() */
	r = hash_sha256(rules->issuer, strlen(rules->issuer), hash);
	if (r < 0)
		return err_sys(err, r, "token");
	encode_hex(hash, sizeof(hash), hex);
	return str_format(p->owner, sizeof(p->owner), "%.*s%c%s", OWNER_SPACE_LEN, hex,
			  OWNER_SPACE_MARK, owner); /* fits, too */
}

static void raise_role(struct jv v, const struct jwt_rules *rules, enum role *role)
{
	enum role said;

	if (role_from(jv_text(v), &said) < 0)
		return;
	if (said == ROLE_ADMIN && !rules->may_be_admin)
		said = ROLE_USER;
	if (*role == ROLE_COUNT || said > *role)
		*role = said;
}

/* One role or a list; of several the highest. Names of other programs are not ours to judge. */
static enum role find_role(struct jv claims, const struct jwt_rules *rules)
{
	struct jv v = rules->role_claim ? jv_get(claims, rules->role_claim) : (struct jv){ NULL };
	enum role role = ROLE_COUNT;

	raise_role(v, rules, &role);
	if (jv_kind(v) == JV_ARRAY)
		JV_FOREACH (v, it)
			raise_role(it.value, rules, &role);
	return role == ROLE_COUNT ? ROLE_USER : role;
}

static unsigned scopes_named(struct str text)
{
	unsigned found = SCOPE_NONE;
	struct str one;

	while (str_split(&text, ' ', &one))
		for (unsigned bit = 1; bit & SCOPE_ALL; bit <<= 1) {
			const char *name = scope_name((enum scope)bit);

			if (name && str_is(one, name))
				found |= bit;
		}
	return found;
}

static int fill(struct jv claims, const struct jwt_rules *rules, struct principal *p,
		struct err *err)
{
	const char *owner = jv_text(jv_get(claims, rules->owner_claim));
	struct str scope = { 0 };
	unsigned named;
	int r;

	if (!owner || !is_safe(owner))
		return err_set(err, EACCES,
			       "the token's %.60s is no owner's name: want 1 to %d of letters, "
			       "digits and ._@:|+-",
			       rules->owner_claim, OWNER_FOREIGN_MAX);
	r = set_owner(owner, rules, p, err);
	if (r < 0)
		return r;
	p->role = find_role(claims, rules);
	p->scopes = scope_of_role(p->role);
	(void)jv_str(jv_get(claims, "scope"), &scope);
	named = scopes_named(scope);
	if (named != SCOPE_NONE)
		p->scopes &= named;
	return 0;
}

int jwt_check(const char *token, const struct jwks *keys, const struct jwt_rules *rules,
	      int64_t now_s, struct principal *ret, struct err *err)
{
	_cleanup_(jv_free_p) struct jv_doc *head = NULL;
	_cleanup_(jv_free_p) struct jv_doc *claims = NULL;
	struct str parts[PART_COUNT];
	const struct pubkey *key = NULL;
	struct principal p = { 0 };
	int64_t exp_s = 0;
	int r;

	if (strlen(token) > JWT_MAX)
		return err_set(err, EACCES, "the token has more than %u bytes", JWT_MAX);
	if (split(token, parts) < 0)
		return err_set(err, EACCES, "the token has not three parts");
	r = parse_part(parts[PART_HEAD], "head", &head, err);
	if (r == 0)
		r = find_key(jv_root(head), keys, &key, err);
	if (r == 0)
		r = check_signature(token, parts, key, err);
	/* Nothing is read of claims that nobody has signed. */
	if (r == 0)
		r = parse_part(parts[PART_CLAIMS], "claims", &claims, err);
	if (r == 0)
		r = check_parties(jv_root(claims), rules, err);
	if (r == 0)
		r = check_times(jv_root(claims), rules->skew_s, now_s, &exp_s, err);
	if (r == 0)
		r = fill(jv_root(claims), rules, &p, err);
	if (r < 0)
		return r;
	p.expires_ms = (exp_s + rules->skew_s) * 1000;
	*ret = p;
	return 0;
}

bool jwt_is_meant_for(const char *token, const char *issuer, const char *audience)
{
	const struct jwt_rules rules = { .issuer = issuer, .audience = audience };
	_cleanup_(jv_free_p) struct jv_doc *claims = NULL;
	struct str parts[PART_COUNT];

	return strlen(token) <= JWT_MAX && split(token, parts) == 0 &&
	       parse_part(parts[PART_CLAIMS], "claims", &claims, NULL) == 0 &&
	       check_parties(jv_root(claims), &rules, NULL) == 0;
}
