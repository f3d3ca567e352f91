#include "auth/signed_file.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"

/* The path stands last: it alone can hold anything. */
int signed_file_make(const struct secret *secret, const struct signed_file *s,
		     char ret[SIGNED_FILE_SIZE])
{
	_cleanup_(buf_done) struct buf text = { 0 };
	uint8_t mac[HASH_LEN];
	size_t n = 0;
	const char *key = secret_reveal(secret, &n);
	int r = buf_printf(&text, "file:%s:%s:%" PRId64 ":%s:%s", s->sandbox_id,
			   s->is_write ? "write" : "read", s->expires, s->key_id, s->path);

	if (r == 0)
		r = key ? hmac_sha256(key, n, text.data, text.len, mac) : -EINVAL;
	if (r == 0)
		encode_hex(mac, sizeof(mac), ret);
	return r;
}

bool signed_file_is(const struct secret *secret, const struct signed_file *s, const char *text)
{
	char right[SIGNED_FILE_SIZE];

	return strlen(text) == SIGNED_FILE_SIZE - 1 && signed_file_make(secret, s, right) == 0 &&
	       secret_bytes_equal(right, text, SIGNED_FILE_SIZE);
}
