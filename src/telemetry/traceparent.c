#include "telemetry/traceparent.h"

#include <errno.h>
#include <string.h>

#include "base/encode.h"
#include "base/str.h"

#define KNOWN_FLAGS (TRACE_SAMPLED | TRACE_RANDOM)

static bool is_zero(const uint8_t *bytes, size_t n)
{
	uint8_t any = 0;

	for (size_t i = 0; i < n; i++)
		any |= bytes[i];
	return any == 0;
}

bool trace_is_set(const struct trace_context *t)
{
	return t && !is_zero(t->trace_id, sizeof(t->trace_id));
}

/* n bytes from 2n lower-case digits: decode_hex() takes both cases. */
static bool take_hex(const char *src, uint8_t *dst, size_t n)
{
	for (size_t i = 0; i < 2 * n; i++)
		if (src[i] >= 'A' && src[i] <= 'F')
			return false;
	return decode_hex(src, 2 * n, dst, n) == (ssize_t)n;
}

/* Whether the fields are where they must be. More than we know may only follow a dash, and only in
 * a version above ours. */
static bool has_form(struct str value, uint8_t version)
{
	if (version == 0xff || (version == 0 && value.len != TRACEPARENT_LEN))
		return false;
	if (value.len > TRACEPARENT_LEN && value.data[TRACEPARENT_LEN] != '-')
		return false;
	return value.data[2] == '-' && value.data[35] == '-' && value.data[52] == '-';
}

int traceparent_parse(struct str value, struct trace_context *ret)
{
	struct trace_context t;
	uint8_t version;

	if (value.len < TRACEPARENT_LEN || !take_hex(value.data, &version, 1) ||
	    !has_form(value, version))
		return -EINVAL;
	if (!take_hex(value.data + 3, t.trace_id, sizeof(t.trace_id)) ||
	    !take_hex(value.data + 36, t.span_id, sizeof(t.span_id)) ||
	    !take_hex(value.data + 53, &t.flags, 1))
		return -EINVAL;
	if (is_zero(t.trace_id, sizeof(t.trace_id)) || is_zero(t.span_id, sizeof(t.span_id)))
		return -EINVAL;
	t.flags &= KNOWN_FLAGS; /* what others mean by the rest is not ours to pass on */
	*ret = t;
	return 0;
}

void traceparent_format(const struct trace_context *t, char dst[TRACEPARENT_SIZE])
{
	memcpy(dst, "00-", 3);
	encode_hex(t->trace_id, sizeof(t->trace_id), dst + 3);
	dst[35] = '-';
	encode_hex(t->span_id, sizeof(t->span_id), dst + 36);
	dst[52] = '-';
	encode_hex(&t->flags, 1, dst + 53);
}

/* ---- tracestate ---- */

static bool is_key_char(char c)
{
	return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '_' || c == '-' ||
	       c == '*' || c == '/' || c == '@';
}

static bool is_key(struct str key)
{
	if (key.len == 0 || key.len > 256 ||
	    !((key.data[0] >= 'a' && key.data[0] <= 'z') ||
	      (key.data[0] >= '0' && key.data[0] <= '9')))
		return false;
	for (size_t i = 0; i < key.len; i++)
		if (!is_key_char(key.data[i]))
			return false;
	return true;
}

static bool is_value(struct str value)
{
	if (value.len == 0 || value.len > 256)
		return false;
	for (size_t i = 0; i < value.len; i++)
		if (value.data[i] < ' ' || value.data[i] > '~' || value.data[i] == '=')
			return false;
	return true;
}

static bool is_member(struct str member)
{
	const char *equals = memchr(member.data, '=', member.len);
	size_t n = equals ? (size_t)(equals - member.data) : 0;

	return equals && is_key((struct str){ member.data, n }) &&
	       is_value((struct str){ equals + 1, member.len - n - 1 });
}

/* The first ones are the most recent: what comes late gives way, and long ones before that. */
static void append(struct tracestate *s, struct str member)
{
	size_t comma = s->len > 0;

	if (s->is_cut || s->len + comma + member.len > TRACESTATE_MAX) {
		s->is_cut = s->is_cut || member.len <= TRACESTATE_LONG;
		return;
	}
	if (comma)
		s->text[s->len++] = ',';
	memcpy(s->text + s->len, member.data, member.len);
	s->len += member.len;
	s->text[s->len] = '\0';
}

void tracestate_add(struct tracestate *s, struct str value)
{
	struct str member;

	s->input += value.len;
	if (s->input > TRACESTATE_INPUT)
		s->is_bad = true;
	while (!s->is_bad && str_split(&value, ',', &member)) {
		member = str_trim(member);
		if (member.len == 0)
			continue;
		s->is_bad = ++s->members > TRACESTATE_MEMBERS || !is_member(member);
		if (!s->is_bad)
			append(s, member);
	}
}

const char *tracestate_text(const struct tracestate *s)
{
	return s->is_bad ? "" : s->text;
}
