/* Archives that a build copies from: a client asks for an address, and sends them there. Its hash
 * is of the files and of where they go, not of the archive: a label, which is kept for its owner.
 * The address is signed and good for a while, because the upload has no key with it. */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "api/build_json.h"
#include "api/call.h"
#include "api/call_auth.h"
#include "api/open_calls.h"
#include "api/problem.h"
#include "api/queries.h"
#include "auth/api_key.h"
#include "auth/users.h"
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
	{ "by", QUERY_TEXT, 0, ID_LEN, NULL, "the key that the address ends with" },
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

struct upload {                             /* what is signed */
	const char *owner, *key_id, *label; /* key_id "": a token that has no name asked for it */
	uint64_t expires;
};

static int sign(const struct api_call *c, const struct upload *u, char ret[MAC_SIZE])
{
	_cleanup_(buf_done) struct buf text = { 0 };
	uint8_t mac[HASH_LEN];
	size_t n = 0;
	const char *key = secret_reveal(c->api->deps.secret, &n);
	int r = buf_printf(&text, "e2b.upload:%s:%s:%" PRIu64 ":%s", u->key_id, u->label,
			   u->expires, u->owner);

	if (r == 0)
		r = key ? hmac_sha256(key, n, text.data, text.len, mac) : -EINVAL;
	if (r == 0)
		encode_hex(mac, HASH_LEN, ret);
	return r;
}

static int write_url(struct api_call *c, const char *label, struct buf *url)
{
	const char *base = call_base(c), *owner = c->who->owner;
	struct upload u = { owner, c->who->key_id, label,
			    (uint64_t)(clock_wall_ms() + GOOD_FOR_MS) };
	char mac[MAC_SIZE];
	int r;

	if (c->who->expires_ms != 0 && u.expires > (uint64_t)c->who->expires_ms)
		u.expires = (uint64_t)c->who->expires_ms;
	r = sign(c, &u, mac);
	if (r < 0 || !base)
		return r < 0 ? r : -ENOMEM;
	(void)buf_printf(url, "%s/templates/files/%s?owner=", base, label + strlen(BUILD_LABEL));
	for (const char *p = owner; *p; p++)
		(void)buf_printf(url, "%%%02x", (unsigned char)*p);
	if (u.key_id[0] != '\0')
		(void)buf_printf(url, "&by=%s", u.key_id);
	return buf_printf(url, "&expires=%" PRIu64 "&signature=%s", u.expires, mac);
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

/* As good as the key that asked for the address, and its owner's. */
static int admit_upload(struct api_call *c, const struct upload *u, struct err *err)
{
	struct principal who = { .role = ROLE_USER,
				 .scopes = SCOPE_TEMPLATE,
				 .expires_ms = (int64_t)u->expires };
	int r = str_copy(who.owner, sizeof(who.owner), u->owner);

	if (r == 0 && u->key_id[0] != '\0')
		r = auth_keys_get(c->api->deps.keys, u->key_id, &who);
	if (r == 0)
		r = users_admit(c->api->deps.users, &who, NULL);
	if (r == 0)
		r = principal_check(&who, SCOPE_TEMPLATE, NULL);
	if (r < 0 || strcmp(who.owner, u->owner) != 0)
		return err_set(err, EACCES, "the key that this was made for is not good any more");
	who.scopes = SCOPE_TEMPLATE;
	return call_admit(c, &who, err);
}

void e2b_file_put(struct api_call *c)
{
	char label[BUILD_FILE_NAME_MAX + 1], right[MAC_SIZE];
	struct upload u = { .owner = "", .key_id = "", .label = label };
	const char *signature = "";
	struct err err = { 0 };

	if (!take_label(c, label) || !call_query(c, "owner", &u.owner) ||
	    !call_query(c, "by", &u.key_id) || !call_query(c, "signature", &signature) ||
	    !call_query_u64(c, "expires", &u.expires))
		return;
	if (sign(c, &u, right) < 0 || strlen(signature) != MAC_SIZE - 1 ||
	    !secret_bytes_equal(right, signature, MAC_SIZE))
		return problem_status(c, 401, "the address is not signed by this server");
	if ((int64_t)u.expires < clock_wall_ms())
		return problem_status(c, 401, "the address is not good any more: ask for another");
	if (admit_upload(c, &u, &err) < 0)
		return problem_status(c, 401, "%s", err.text);
	if (open_calls_begin(c, u.owner))
		build_file_receive(c, u.owner, label, kept);
}
