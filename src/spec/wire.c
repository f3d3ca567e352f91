#include "spec/wire.h"

#include <errno.h>
#include <string.h>

_Static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "the wire is little-endian");
_Static_assert(sizeof(struct wire_head) == 12, "the head has no padding");

int wire_open(const void *msg, size_t n, struct wire_head *ret, struct rd *ret_payload)
{
	struct wire_head head;
	const uint8_t *bytes = msg;

	if (n < sizeof(head))
		return -EPROTO;
	memcpy(&head, bytes, sizeof(head));
	if (head.version != WIRE_VERSION)
		return -EPROTONOSUPPORT;
	if (head.len > WIRE_PAYLOAD_MAX || head.len != n - sizeof(head))
		return -EPROTO;
	*ret = head;
	*ret_payload = (struct rd){ bytes + sizeof(head), bytes + n, false };
	return 0;
}

static const uint8_t *take(struct rd *r, size_t n)
{
	const uint8_t *p = r->p;

	if (r->bad || (size_t)(r->end - r->p) < n) {
		r->bad = true;
		return NULL;
	}
	r->p += n;
	return p;
}

static void take_int(struct rd *r, void *dst, size_t n)
{
	const uint8_t *p = take(r, n);

	if (p)
		memcpy(dst, p, n);
}

uint8_t rd_u8(struct rd *r)
{
	uint8_t v = 0;

	take_int(r, &v, sizeof(v));
	return v;
}

uint16_t rd_u16(struct rd *r)
{
	uint16_t v = 0;

	take_int(r, &v, sizeof(v));
	return v;
}

uint32_t rd_u32(struct rd *r)
{
	uint32_t v = 0;

	take_int(r, &v, sizeof(v));
	return v;
}

uint64_t rd_u64(struct rd *r)
{
	uint64_t v = 0;

	take_int(r, &v, sizeof(v));
	return v;
}

const void *rd_bytes(struct rd *r, size_t *ret_n)
{
	uint32_t n = rd_u32(r);
	const uint8_t *p = take(r, n);

	*ret_n = p ? n : 0;
	return p ? p : (const uint8_t *)"";
}

const char *rd_str(struct rd *r)
{
	size_t n;
	const char *s = rd_bytes(r, &n);

	/* The terminator travels with the text, so the slice is a C string where it lies. */
	if (r->bad || n == 0 || memchr(s, '\0', n) != s + n - 1) {
		r->bad = true;
		return "";
	}
	return s;
}

const void *rd_rest(struct rd *r, size_t *ret_n)
{
	size_t n = r->bad ? 0 : (size_t)(r->end - r->p);
	const uint8_t *p = take(r, n);

	*ret_n = p ? n : 0;
	return p ? p : (const uint8_t *)"";
}

int rd_end(const struct rd *r)
{
	return r->bad || r->p != r->end ? -EPROTO : 0;
}

static void put(struct wr *w, const void *data, size_t n)
{
	if (w->full || w->cap - w->len < n) {
		w->full = true;
		return;
	}
	if (n > 0)
		memcpy(w->data + w->len, data, n);
	w->len += n;
}

void wire_begin(struct wr *w, void *data, size_t cap, uint16_t type, uint32_t id)
{
	struct wire_head head = { WIRE_VERSION, type, id, 0 };

	*w = (struct wr){ data, 0, cap, false };
	put(w, &head, sizeof(head));
}

void wr_u8(struct wr *w, uint8_t v)
{
	put(w, &v, sizeof(v));
}

void wr_u16(struct wr *w, uint16_t v)
{
	put(w, &v, sizeof(v));
}

void wr_u32(struct wr *w, uint32_t v)
{
	put(w, &v, sizeof(v));
}

void wr_u64(struct wr *w, uint64_t v)
{
	put(w, &v, sizeof(v));
}

void wr_bytes(struct wr *w, const void *data, size_t n)
{
	if (n > UINT32_MAX) {
		w->full = true;
		return;
	}
	wr_u32(w, (uint32_t)n);
	put(w, data, n);
}

void wr_str(struct wr *w, const char *s)
{
	if (!s)
		s = "";
	wr_bytes(w, s, strlen(s) + 1);
}

void wr_raw(struct wr *w, const void *data, size_t n)
{
	put(w, data, n);
}

long wire_finish(struct wr *w)
{
	uint32_t len;

	if (w->full || w->len - sizeof(struct wire_head) > WIRE_PAYLOAD_MAX)
		return -E2BIG;
	len = (uint32_t)(w->len - sizeof(struct wire_head));
	memcpy(w->data + offsetof(struct wire_head, len), &len, sizeof(len));
	return (long)w->len;
}
