#include "auth/jwks.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "json/jv.h"

struct entry {
	char kid[JWKS_KID_MAX + 1]; /* "": none */
	struct pubkey *key;         /* owned */
};

struct jwks {
	size_t len;
	struct entry items[JWKS_KEYS_MAX];
};

struct jwks *jwks_free(struct jwks *set)
{
	if (!set)
		return NULL;
	for (size_t i = 0; i < set->len; i++)
		(void)pubkey_free(set->items[i].key);
	free(set);
	return NULL;
}

size_t jwks_len(const struct jwks *set)
{
	return set->len;
}

const struct pubkey *jwks_find(const struct jwks *set, const char *kid, enum pubkey_kind kind)
{
	const struct pubkey *found = NULL;

	for (size_t i = 0; i < set->len; i++) {
		if (pubkey_kind(set->items[i].key) != kind)
			continue;
		if (kid && strcmp(set->items[i].kid, kid) == 0)
			return set->items[i].key;
		if (!kid && found)
			return NULL; /* which one is meant cannot be known */
		if (!kid)
			found = set->items[i].key;
	}
	return found;
}

/* Bytes of a base64url member; 0: absent or none. */
static size_t bytes(struct jv key, const char *name, uint8_t *dst, size_t size)
{
	struct str s;
	ssize_t n;

	if (jv_str(jv_get(key, name), &s) < 0)
		return 0;
	n = decode_base64url(s.data, s.len, dst, size);
	return n > 0 ? (size_t)n : 0;
}

/* Whether a member that may be absent says what we want. */
static bool says(struct jv key, const char *name, const char *want)
{
	const char *text = jv_text(jv_get(key, name));

	return jv_kind(jv_get(key, name)) == JV_ABSENT || (text && strcmp(text, want) == 0);
}

static int read_rsa(struct jv key, struct pubkey **ret)
{
	uint8_t n[PUBKEY_RSA_MAX], e[PUBKEY_RSA_E_MAX];
	size_t n_len = bytes(key, "n", n, sizeof(n)), e_len = bytes(key, "e", e, sizeof(e));

	return pubkey_rsa(n, n_len, e, e_len, ret);
}

static int read_p256(struct jv key, struct pubkey **ret)
{
	uint8_t x[PUBKEY_POINT_LEN], y[PUBKEY_POINT_LEN];

	if (bytes(key, "x", x, sizeof(x)) != sizeof(x) ||
	    bytes(key, "y", y, sizeof(y)) != sizeof(y))
		return -EINVAL;
	return pubkey_p256(x, y, ret);
}

static int read_ed25519(struct jv key, struct pubkey **ret)
{
	uint8_t x[PUBKEY_POINT_LEN];

	return bytes(key, "x", x, sizeof(x)) == sizeof(x) ? pubkey_ed25519(x, ret) : -EINVAL;
}

static const struct {
	const char *kty, *crv, *alg;
	int (*read)(struct jv key, struct pubkey **ret);
} kinds[] = {
	{ "RSA", NULL, "RS256", read_rsa },
	{ "EC", "P-256", "ES256", read_p256 },
	{ "OKP", "Ed25519", "EdDSA", read_ed25519 },
};

/* -EINVAL: not of use to us. */
static int read_key(struct jv key, struct pubkey **ret)
{
	const char *kty = jv_text(jv_get(key, "kty")), *crv = jv_text(jv_get(key, "crv"));

	if (!kty || !says(key, "use", "sig"))
		return -EINVAL;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		if (strcmp(kinds[i].kty, kty) != 0 || !says(key, "alg", kinds[i].alg))
			continue;
		if (kinds[i].crv && (!crv || strcmp(kinds[i].crv, crv) != 0))
			continue;
		return kinds[i].read(key, ret);
	}
	return -EINVAL;
}

static int add(struct jwks *set, struct jv key, struct err *err)
{
	struct entry *e = &set->items[set->len];
	const char *kid = jv_text(jv_get(key, "kid"));
	struct pubkey *pub = NULL;
	int r = read_key(key, &pub);

	if (r == -EINVAL)
		return 0;
	if (r < 0)
		return err_sys(err, r, "JWKS");
	if ((jv_kind(jv_get(key, "kid")) != JV_ABSENT && !kid) ||
	    (kid && str_copy(e->kid, sizeof(e->kid), kid) < 0)) {
		(void)pubkey_free(pub);
		return err_set(err, EINVAL, "JWKS: a kid is no text of at most %u bytes",
			       JWKS_KID_MAX);
	}
	if (kid && jwks_find(set, kid, pubkey_kind(pub))) {
		(void)pubkey_free(pub);
		return err_set(err, EINVAL, "JWKS: two keys have the kid '%.60s'", kid);
	}
	e->key = pub;
	set->len++;
	return 0;
}

static int add_all(struct jwks *set, struct jv keys, struct err *err)
{
	if (jv_kind(keys) != JV_ARRAY)
		return err_set(err, EINVAL, "JWKS: want an object with an array 'keys'");
	if (jv_len(keys) > JWKS_KEYS_MAX)
		return err_set(err, E2BIG, "JWKS: more than %u keys", JWKS_KEYS_MAX);
	JV_FOREACH (keys, it) {
		int r = add(set, it.value, err);

		if (r < 0)
			return r;
	}
	if (set->len == 0)
		return err_set(err, EINVAL, "JWKS: no key for RS256, ES256 or EdDSA in it");
	return 0;
}

int jwks_parse(const void *data, size_t n, struct jwks **ret, struct err *err)
{
	_cleanup_(jwks_free_p) struct jwks *set = calloc(1, sizeof(*set));
	struct jv_doc *doc = NULL;
	int r;

	if (!set)
		return err_sys(err, ENOMEM, "JWKS");
	r = jv_parse(data, n, JWKS_BYTES_MAX, &doc, err);
	if (r < 0)
		return r;
	r = add_all(set, jv_get(jv_root(doc), "keys"), err);
	(void)jv_free(doc);
	if (r == 0)
		*ret = TAKE(set);
	return r;
}
