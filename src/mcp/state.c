/* requestState: what a client brings back, and could have changed. "<body>.<mac>", where the body
 * is
 * "<until, ms> <digest of the request> <what the handler wants back>". */
#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/arena.h"
#include "base/clock.h"
#include "base/encode.h"
#include "base/parse.h"
#include "base/str.h"
#include "crypto/hmac.h"
#include "crypto/secret.h"
#include "mcp/server_impl.h"

#define STATE_MAX 65536u

/* The request as it will come again: method, name and arguments. */
static int digest(const struct mcp_request *q, char ret[2 * HASH_LEN + 1])
{
	static const char *const parts[] = { "name", "uri", "arguments" };
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	uint8_t sum[HASH_LEN];
	int r;

	jw_array_begin(&w);
	jw_string(&w, q->method);
	jw_string(&w, q->box_id);
	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		jw_value(&w, jv_get(q->params, parts[i]));
	jw_array_end(&w);
	r = jw_end(&w);
	if (r == 0)
		r = hash_sha256(b.data, b.len, sum);
	if (r == 0)
		encode_hex(sum, sizeof(sum), ret);
	return r;
}

/* Whose it is goes into the proof and not into the text. */
static int prove(const struct mcp_request *q, const char *body, size_t n, uint8_t ret[HASH_LEN])
{
	_cleanup_(buf_done) struct buf b = { 0 };
	size_t key_len = 0;
	const char *key = secret_reveal(q->server->deps.secret, &key_len);
	int r = buf_printf(&b, "mcp.state:%s:", q->who.owner);

	if (r == 0)
		r = buf_append(&b, body, n);
	if (r == 0)
		r = key ? hmac_sha256(key, key_len, b.data, b.len, ret) : -EINVAL;
	return r;
}

int mcp_state_seal(const struct mcp_request *q, const char *state, struct buf *ret)
{
	_cleanup_(buf_done) struct buf body = { .max = STATE_MAX };
	char sum[2 * HASH_LEN + 1];
	uint8_t mac[HASH_LEN];
	int64_t until = clock_wall_ms() + (int64_t)MCP_STATE_MS;
	int r = digest(q, sum);

	if (r == 0)
		r = buf_printf(&body, "%" PRId64 " %s %s", until, sum, state);
	if (r == 0)
		r = prove(q, body.data, body.len, mac);
	if (r == 0)
		r = buf_reserve(ret, BASE64_SIZE(body.len) + BASE64_SIZE(sizeof(mac)) + 1);
	if (r < 0)
		return r;
	ret->len += encode_base64url(body.data, body.len, ret->data + ret->len);
	ret->data[ret->len++] = '.';
	ret->len += encode_base64url(mac, sizeof(mac), ret->data + ret->len);
	return 0;
}

/* "<until> <digest> <state>", whose proof was good. */
static int look_at(const struct mcp_request *q, char *body, const char **ret)
{
	char *sum = strchr(body, ' '), *state = sum ? strchr(sum + 1, ' ') : NULL;
	char right[2 * HASH_LEN + 1];
	uint64_t until;

	if (!state)
		return -EINVAL;
	*sum++ = '\0';
	*state++ = '\0';
	if (parse_u64(body, 0, INT64_MAX, &until) < 0 || (int64_t)until < clock_wall_ms() ||
	    digest(q, right) < 0 || strcmp(right, sum) != 0)
		return -EINVAL;
	*ret = state;
	return 0;
}

int mcp_state_open(struct mcp_request *q, const char *text, const char **ret)
{
	const char *dot = strchr(text, '.');
	size_t n = dot ? (size_t)(dot - text) : 0;
	uint8_t mac[HASH_LEN], right[HASH_LEN];
	ssize_t got;
	char *body;

	if (!dot || strlen(text) > 2 * STATE_MAX ||
	    decode_base64url(dot + 1, strlen(dot + 1), mac, sizeof(mac)) != (ssize_t)sizeof(mac))
		return -EINVAL;
	body = arena_alloc(q->arena, n + 1);
	if (!body)
		return -ENOMEM;
	got = decode_base64url(text, n, body, n);
	if (got < 0 || memchr(body, '\0', (size_t)got) || prove(q, body, (size_t)got, right) < 0 ||
	    !secret_bytes_equal(mac, right, sizeof(mac)))
		return -EINVAL;
	body[got] = '\0';
	return look_at(q, body, ret);
}
