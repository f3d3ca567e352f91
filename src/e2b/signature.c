#include "e2b/signature.h"

#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/str.h"
#include "crypto/hash.h"

/* SHA-256 of "path:operation:user:token[:expiration]", as their SDKs make it. */
int e2b_signature_make(const char *token, const struct e2b_signed *s, char ret[E2B_SIGNATURE_SIZE])
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char base64[BASE64_SIZE(HASH_LEN)];
	uint8_t hash[HASH_LEN];
	size_t n;
	int r = buf_printf(&b, "%s:%s:%s:%s", s->path, s->is_write ? "write" : "read", s->user,
			   token);

	if (r == 0 && s->expires != 0)
		r = buf_printf(&b, ":%" PRId64, s->expires);
	if (r == 0)
		r = hash_sha256(b.data, b.len, hash);
	explicit_bzero(b.data, b.len);
	if (r < 0)
		return r;
	n = encode_base64(hash, sizeof(hash), base64);
	while (n > 0 && base64[n - 1] == '=')
		base64[--n] = '\0';
	return str_format(ret, E2B_SIGNATURE_SIZE, "v1_%s", base64);
}
