/* Archives that a build copies from: a client asks for an address, and sends them there. Its hash
 * is of the files and of where they go, not of the archive: a label, which is kept for its owner.
 * The address is signed and good for a while, because the upload has no key with it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/build_json.h"
#include "api/call.h"
#include "api/problem.h"
#include "api/queries.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"
#include "e2b/handlers.h"
#include "e2b/templates.h"
#include "net/http.h"
#include "sandbox/build_files.h"
#include "json/jw.h"

#define GOOD_FOR_MS (60ll * 60 * 1000)
#define MAC_SIZE (2 * HASH_LEN + 1)

const struct route_query e2b_query_upload[] = {
	{ "owner", QUERY_TEXT, 0, OBJECT_OWNER_MAX, NULL, "whose it is, in hex" },
	{ "expires", QUERY_U64, 0, INT64_MAX, NULL, "until when the address is good" },
	{ "signature", QUERY_TEXT, 0, MAC_SIZE, NULL, "of all of it" },
	{ 0 },
};

static bool take_label(struct api_call *c, char ret[BUILD_FILE_NAME_MAX + 1])
{
	const char *hash = call_param(c, "hash");

	if (build_hash_is_valid(hash) &&
	    str_format(ret, BUILD_FILE_NAME_MAX + 1, BUILD_LABEL "%s", hash) == 0)
		return true;
	problem_field(c, "hash", "hash: want a SHA-256 in lower-case hex");
	return false;
}

static int sign(const struct api_call *c, const char *owner, const char *label, uint64_t expires,
		char ret[MAC_SIZE])
{
	_cleanup_(buf_done) struct buf text = { 0 };
	uint8_t mac[HASH_LEN];
	size_t n = 0;
	const char *key = secret_reveal(c->api->deps.secret, &n);
	int r = buf_printf(&text, "e2b.upload:%s:%s:%" PRIu64, owner, label, expires);

	if (r == 0)
		r = key ? hmac_sha256(key, n, text.data, text.len, mac) : -EINVAL;
	if (r == 0)
		encode_hex(mac, HASH_LEN, ret);
	return r;
}

static int write_url(struct api_call *c, const char *label, struct buf *url)
{
	uint64_t expires = (uint64_t)(clock_wall_ms() + GOOD_FOR_MS);
	const char *base = call_base(c), *owner = c->who->owner;
	char mac[MAC_SIZE];
	int r = sign(c, owner, label, expires, mac);

	if (r < 0 || !base)
		return r < 0 ? r : -ENOMEM;
	(void)buf_printf(url, "%s/templates/files/%s?owner=", base, label + strlen(BUILD_LABEL));
	for (const char *p = owner; *p; p++)
		(void)buf_printf(url, "%%%02x", (unsigned char)*p);
	return buf_printf(url, "&expires=%" PRIu64 "&signature=%s", expires, mac);
}

void e2b_file_link(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { 0 }, url = { 0 };
	char label[BUILD_FILE_NAME_MAX + 1];
	struct jw w = jw_begin(&b);

	if (!take_label(c, label))
		return;
	if (write_url(c, label, &url) < 0)
		return problem_reply(c, &(struct err){ ENOMEM, "address" });
	jw_object_begin(&w);
	jw_bool_field(&w, "present",
		      build_file_find(c->api->deps.sandboxes, c->who->owner, label) != NULL);
	jw_str_field(&w, "url", buf_str(&url));
	jw_object_end(&w);
	call_reply(c, 201, &w);
}

static void kept(struct api_call *c, const struct object *o)
{
	(void)o;
	http_reply(c->http, 200, NULL, NULL, 0);
}

void e2b_file_put(struct api_call *c)
{
	const char *owner = "", *signature = "";
	char label[BUILD_FILE_NAME_MAX + 1], right[MAC_SIZE];
	uint64_t expires = 0;

	if (!take_label(c, label) || !call_query(c, "owner", &owner) ||
	    !call_query(c, "signature", &signature) || !call_query_u64(c, "expires", &expires))
		return;
	if (sign(c, owner, label, expires, right) < 0 || strlen(signature) != MAC_SIZE - 1 ||
	    !secret_bytes_equal(right, signature, MAC_SIZE))
		return problem_status(c, 401, "the address is not signed by this server");
	if ((int64_t)expires < clock_wall_ms())
		return problem_status(c, 401, "the address is not good any more: ask for another");
	build_file_receive(c, owner, label, kept);
}
