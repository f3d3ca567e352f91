#include "crypto/secret.h"

#include <stdlib.h>
#include <string.h>

#include <openssl/crypto.h>

struct secret {
	size_t len;
	char data[]; /* len bytes and a NUL */
};

struct secret *secret_create(const void *data, size_t n)
{
	struct secret *s = NULL;

	if (n > SECRET_MAX)
		return NULL;
	s = malloc(sizeof(*s) + n + 1);
	if (!s)
		return NULL;
	s->len = n;
	if (n > 0)
		memcpy(s->data, data, n);
	s->data[n] = '\0';
	return s;
}

struct secret *secret_free(struct secret *s)
{
	if (!s)
		return NULL;
	explicit_bzero(s->data, s->len);
	free(s);
	return NULL;
}

const char *secret_show(const struct secret *s)
{
	return s ? "***" : "";
}

const char *secret_reveal(const struct secret *s, size_t *ret_len)
{
	if (ret_len)
		*ret_len = s ? s->len : 0;
	return s ? s->data : NULL;
}

bool secret_equals(const struct secret *a, const struct secret *b)
{
	return a && b && secret_is(a, b->data, b->len);
}

bool secret_is(const struct secret *s, const void *data, size_t n)
{
	return s && s->len == n && secret_bytes_equal(s->data, data, n);
}

bool secret_bytes_equal(const void *a, const void *b, size_t n)
{
	return n == 0 || CRYPTO_memcmp(a, b, n) == 0;
}
