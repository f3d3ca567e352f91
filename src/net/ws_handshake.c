#include "net/ws_handshake.h"

#include <errno.h>
#include <openssl/evp.h>
#include <string.h>
#include <strings.h>

#include "base/encode.h"
#include "base/str.h"
#include "net/cors.h"
#include "net/exchange.h"
#include "net/server.h"
#include "net/ws.h"

#define KEY_BYTES 16
#define KEY_TEXT 24
#define SHA1_BYTES 20

/* A list header may come in several pieces. */
static bool has_token(const struct http_request *r, const char *header, const char *token)
{
	const char *name, *value;

	for (unsigned i = 0; (value = http_header_at(r, i, &name)); i++) {
		struct str rest = str_of(value), item;

		if (strcasecmp(name, header) != 0)
			continue;
		while (str_split(&rest, ',', &item)) {
			item = str_trim(item);
			if (item.len == strlen(token) &&
			    strncasecmp(item.data, token, item.len) == 0)
				return true;
		}
	}
	return false;
}

static unsigned count(const struct http_request *r, const char *header)
{
	const char *name;
	unsigned n = 0;

	for (unsigned i = 0; http_header_at(r, i, &name); i++)
		n += strcasecmp(name, header) == 0;
	return n;
}

static bool refuse(struct http_request *r, int status, const char *code, const char *message)
{
	http_reply_error(r, status, code, message);
	return false;
}

static bool check_upgrade(struct http_request *r)
{
	const char *version = http_header(r, "sec-websocket-version");

	if (strcmp(http_method(r), "GET") != 0) {
		(void)http_header_add(r, "Allow", "GET");
		return refuse(r, 405, "method_not_allowed", "a WebSocket begins with GET");
	}
	if (http_body_length(r) != 0)
		return refuse(r, 400, "invalid_request", "a WebSocket's request has no body");
	if (!has_token(r, "upgrade", "websocket") || !has_token(r, "connection", "upgrade")) {
		(void)http_header_add(r, "Upgrade", "websocket");
		(void)http_header_add(r, "Connection", "Upgrade");
		return refuse(r, 426, "upgrade_required", "this is a WebSocket");
	}
	if (!version || strcmp(version, "13") != 0 || count(r, "sec-websocket-version") != 1) {
		(void)http_header_add(r, "Sec-WebSocket-Version", "13");
		return refuse(r, 426, "upgrade_required", "the WebSocket version here is 13");
	}
	return true;
}

/* A page of another site must not open a socket with this user's rights: browsers send it without
 * asking, and say only here where it came from. */
static bool check_origin(struct http_request *r, const struct ws_options *o)
{
	const struct http_cors *cors = r->c.server->o.cors;
	const char *origin = http_header(r, "origin");

	if (!origin) /* not a browser */
		return true;
	if (count(r, "origin") == 1 &&
	    (cors_is_same(r, origin) || cors_is_listed(o->origins, origin) ||
	     (cors && cors_is_listed(cors->origins, origin))))
		return true;
	return refuse(r, 403, "forbidden", "this origin is not allowed");
}

static bool choose_protocol(struct http_request *r, const struct ws_options *o, const char **ret)
{
	*ret = "";
	if (!o->protocols || count(r, "sec-websocket-protocol") == 0)
		return true;
	for (const char *const *p = o->protocols; *p; p++) {
		if (has_token(r, "sec-websocket-protocol", *p)) {
			*ret = *p;
			(void)http_header_add(r, "Sec-WebSocket-Protocol", *p);
			return true;
		}
	}
	return refuse(r, 400, "invalid_request",
		      "none of these WebSocket protocols is spoken here");
}

/* Proves that we have understood: the key with a fixed text behind it, hashed. */
int ws_accept_of(const char *key, char ret[WS_ACCEPT_SIZE])
{
	static const char suffix[] = "258EAFA5-E914-47DA-95CA-C5AB0DC85B11";
	unsigned char raw[KEY_BYTES], hash[SHA1_BYTES];
	char text[KEY_TEXT + sizeof(suffix)];

	_Static_assert(BASE64_SIZE(SHA1_BYTES) == WS_ACCEPT_SIZE, "the hash fits");
	if (!key || strlen(key) != KEY_TEXT ||
	    decode_base64(key, KEY_TEXT, raw, sizeof(raw)) != KEY_BYTES)
		return -EINVAL;
	if (str_format(text, sizeof(text), "%s%s", key, suffix) < 0 ||
	    EVP_Digest(text, strlen(text), hash, NULL, EVP_sha1(), NULL) != 1)
		return -EIO;
	(void)encode_base64(hash, sizeof(hash), ret);
	return 0;
}

static bool answer_key(struct http_request *r)
{
	char accept[WS_ACCEPT_SIZE];
	int e = ws_accept_of(http_header(r, "sec-websocket-key"), accept);

	if (e == -EINVAL || count(r, "sec-websocket-key") != 1)
		return refuse(r, 400, "invalid_request", "Sec-WebSocket-Key is not 16 bytes");
	if (e < 0)
		return refuse(r, 500, "internal", "no SHA-1");
	(void)http_header_add(r, "Upgrade", "websocket");
	(void)http_header_add(r, "Connection", "Upgrade");
	(void)http_header_add(r, "Sec-WebSocket-Accept", accept);
	return true;
}

bool ws_handshake(struct http_request *r, const struct ws_options *o, const char **ret_protocol)
{
	return check_upgrade(r) && check_origin(r, o) && choose_protocol(r, o, ret_protocol) &&
	       answer_key(r);
}
