#include "e2b/connect.h"

#include <errno.h>
#include <string.h>
#include <strings.h>

#include "base/buf.h"
#include "base/encode.h"
#include "base/parse.h"
#include "base/str.h"
#include "json/jw.h"

#define FLAG_END 0x02u
#define BASIC "Basic "

static const struct {
	const char *name;
	int status;
} codes[CONNECT_CODE_COUNT] = {
	[CONNECT_OK] = { "ok", 200 },
	[CONNECT_CANCELED] = { "canceled", 499 },
	[CONNECT_UNKNOWN] = { "unknown", 500 },
	[CONNECT_INVALID_ARGUMENT] = { "invalid_argument", 400 },
	[CONNECT_DEADLINE_EXCEEDED] = { "deadline_exceeded", 504 },
	[CONNECT_NOT_FOUND] = { "not_found", 404 },
	[CONNECT_ALREADY_EXISTS] = { "already_exists", 409 },
	[CONNECT_PERMISSION_DENIED] = { "permission_denied", 403 },
	[CONNECT_RESOURCE_EXHAUSTED] = { "resource_exhausted", 429 },
	[CONNECT_FAILED_PRECONDITION] = { "failed_precondition", 400 },
	[CONNECT_ABORTED] = { "aborted", 409 },
	[CONNECT_OUT_OF_RANGE] = { "out_of_range", 400 },
	[CONNECT_UNIMPLEMENTED] = { "unimplemented", 501 },
	[CONNECT_INTERNAL] = { "internal", 500 },
	[CONNECT_UNAVAILABLE] = { "unavailable", 503 },
	[CONNECT_DATA_LOSS] = { "data_loss", 500 },
	[CONNECT_UNAUTHENTICATED] = { "unauthenticated", 401 },
};

const char *connect_name(enum connect_code code)
{
	return codes[code].name;
}

int connect_status(enum connect_code code)
{
	return codes[code].status;
}

enum connect_code connect_code_of(int status)
{
	static const struct {
		int status;
		enum connect_code code;
	} rows[] = {
		{ 400, CONNECT_INVALID_ARGUMENT },
		{ 401, CONNECT_UNAUTHENTICATED },
		{ 403, CONNECT_PERMISSION_DENIED },
		{ 404, CONNECT_NOT_FOUND },
		{ 405, CONNECT_UNIMPLEMENTED },
		{ 408, CONNECT_DEADLINE_EXCEEDED },
		{ 409, CONNECT_FAILED_PRECONDITION },
		{ 413, CONNECT_RESOURCE_EXHAUSTED },
		{ 415, CONNECT_INVALID_ARGUMENT },
		{ 429, CONNECT_RESOURCE_EXHAUSTED },
		{ 499, CONNECT_CANCELED },
		{ 501, CONNECT_UNIMPLEMENTED },
		{ 502, CONNECT_UNAVAILABLE },
		{ 503, CONNECT_UNAVAILABLE },
		{ 504, CONNECT_DEADLINE_EXCEEDED },
		{ 507, CONNECT_RESOURCE_EXHAUSTED },
	};

	if (status >= 200 && status < 300)
		return CONNECT_OK;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (rows[i].status == status)
			return rows[i].code;
	return status >= 400 && status < 500 ? CONNECT_INVALID_ARGUMENT : CONNECT_INTERNAL;
}

/* ---- headers ---- */

static bool is_type(struct str got, const char *want)
{
	return got.len == strlen(want) && strncasecmp(got.data, want, got.len) == 0;
}

int connect_kind_of(const char *content_type, enum connect_kind *ret)
{
	struct str rest = str_of(content_type), type;

	if (!str_split(&rest, ';', &type))
		return -EPROTONOSUPPORT;
	type = str_trim(type);
	if (is_type(type, CONNECT_TYPE_UNARY))
		*ret = CONNECT_UNARY;
	else if (is_type(type, CONNECT_TYPE_STREAM))
		*ret = CONNECT_STREAM;
	else
		return -EPROTONOSUPPORT;
	return 0;
}

int connect_timeout(const char *header, uint64_t *ret_ms)
{
	*ret_ms = 0;
	if (!header || !header[0])
		return 0;
	if (strlen(header) > CONNECT_TIMEOUT_DIGITS || header[strspn(header, "0123456789")])
		return -EINVAL;
	return parse_u64(header, 0, UINT64_MAX, ret_ms);
}

uint64_t connect_keepalive_ms(const char *header)
{
	uint64_t seconds = 0;

	if (!header || parse_u64(header, 1, CONNECT_KEEPALIVE_MAX_S, &seconds) < 0)
		return 0;
	return seconds * 1000;
}

int connect_user(const char *authorization, char ret[CONNECT_USER_MAX + 1])
{
	char text[CONNECT_USER_MAX + 2 + 64]; /* a password is not looked at, but may be there */
	const char *coded, *colon;
	ssize_t n;

	ret[0] = '\0';
	if (!authorization || strncasecmp(authorization, BASIC, strlen(BASIC)) != 0)
		return 0;
	coded = authorization + strlen(BASIC);
	n = decode_base64(coded, strlen(coded), text, sizeof(text));
	if (n < 0 || memchr(text, '\0', (size_t)n))
		return -EINVAL;
	colon = memchr(text, ':', (size_t)n);
	if (!colon || (size_t)(colon - text) > CONNECT_USER_MAX)
		return -EINVAL;
	memcpy(ret, text, (size_t)(colon - text));
	ret[colon - text] = '\0';
	return 0;
}

/* ---- envelopes ---- */

ssize_t connect_next(const void *data, size_t n, size_t max, struct connect_envelope *ret)
{
	const unsigned char *p = data;
	size_t len;

	if (n > 0 && (p[0] & ~FLAG_END) != 0)
		return -EBADMSG;
	if (n < CONNECT_HEAD)
		return 0;
	len = (size_t)p[1] << 24 | (size_t)p[2] << 16 | (size_t)p[3] << 8 | p[4];
	if (len > max)
		return -E2BIG;
	if (n - CONNECT_HEAD < len)
		return 0;
	ret->is_end = (p[0] & FLAG_END) != 0;
	ret->data = (const char *)data + CONNECT_HEAD;
	ret->len = len;
	return (ssize_t)(CONNECT_HEAD + len);
}

size_t connect_begin(struct buf *b)
{
	static const char head[CONNECT_HEAD];
	size_t at = b->len;

	(void)buf_append(b, head, sizeof(head)); /* a failure sticks */
	return at;
}

static int finish(struct buf *b, size_t at, unsigned flags)
{
	size_t len = b->len - at - CONNECT_HEAD;

	if (b->failed || b->len < at + CONNECT_HEAD)
		return -ENOMEM;
	if (len > UINT32_MAX)
		return -E2BIG;
	b->data[at] = (char)flags;
	for (unsigned i = 0; i < 4; i++)
		b->data[at + 1 + i] = (char)(len >> (24 - 8 * i));
	return 0;
}

int connect_finish(struct buf *b, size_t at)
{
	return finish(b, at, 0);
}

void connect_write_error(struct jw *w, enum connect_code code, const char *message)
{
	jw_object_begin(w);
	jw_str_field(w, "code", connect_name(code));
	jw_str_field(w, "message", message);
	jw_object_end(w);
}

int connect_put_end(struct buf *b, enum connect_code code, const char *message)
{
	size_t at = connect_begin(b);
	struct jw w = jw_begin(b);
	int r;

	jw_object_begin(&w);
	if (code != CONNECT_OK) {
		jw_key(&w, "error");
		connect_write_error(&w, code, message);
	}
	jw_object_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : finish(b, at, FLAG_END);
}
