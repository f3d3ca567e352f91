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
	int r = buf_printf(&text, "file:%s:%s:%" PRId64 ":%s", s->sandbox_id,
			   s->is_write ? "write" : "read", s->expires, s->path);

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

static int put_path(struct buf *b, const char *path)
{
	for (; *path; path++) {
		bool is_plain = (*path >= '0' && *path <= '9') || (*path >= 'a' && *path <= 'z') ||
				(*path >= 'A' && *path <= 'Z') || strchr("/-._~", *path);
		int r = buf_printf(b, is_plain ? "%c" : "%%%02X", (unsigned char)*path);

		if (r < 0)
			return r;
	}
	return 0;
}

int signed_file_url(const struct secret *secret, const char *base, const struct signed_file *s,
		    struct buf *ret)
{
	char signature[SIGNED_FILE_SIZE];
	int r = s->path[0] == '/' ? signed_file_make(secret, s, signature) : -EINVAL;

	if (r == 0)
		r = buf_printf(ret, "%s/api/v1/sandboxes/%s/files", base, s->sandbox_id);
	if (r == 0)
		r = put_path(ret, s->path);
	return r < 0 ? r
		     : buf_printf(ret, "?expires=%" PRId64 "&signature=%s", s->expires, signature);
}
