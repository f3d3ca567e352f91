/* The reader under any sequence of reads over any bytes. The first half of the input is the
 * sequence, the second half is the message. */
#include <string.h>

#include "fuzz.h"
#include "spec/wire.h"

static uint8_t again[WIRE_FRAME_MAX];

static void read_span(const struct rd *before, const struct rd *r, const uint8_t *p, size_t n)
{
	if (n > 0)
		MUST(p >= before->p && p + n <= r->end && !r->bad);
}

/* One read, written again to w when it was good. */
static void step(struct rd *r, struct wr *w, uint8_t op)
{
	struct rd before = *r;
	const uint8_t *bytes;
	const char *s;
	uint64_t v = 0;
	size_t n;

	switch (op % 7) {
	case 0:
		v = rd_u8(r);
		wr_u8(w, (uint8_t)v);
		break;
	case 1:
		v = rd_u16(r);
		wr_u16(w, (uint16_t)v);
		break;
	case 2:
		v = rd_u32(r);
		wr_u32(w, (uint32_t)v);
		break;
	case 3:
		v = rd_u64(r);
		wr_u64(w, v);
		break;
	case 4:
		s = rd_str(r);
		read_span(&before, r, (const uint8_t *)s, *s ? strlen(s) + 1 : 0);
		wr_str(w, s);
		break;
	case 5:
		bytes = rd_bytes(r, &n);
		read_span(&before, r, bytes, n);
		wr_bytes(w, bytes, n);
		break;
	default:
		bytes = rd_rest(r, &n);
		read_span(&before, r, bytes, n);
		wr_raw(w, bytes, n);
	}
	MUST(r->p >= before.p && r->p <= r->end);
	MUST(!before.bad || (r->bad && v == 0 && r->p == before.p));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *ops = data, *msg = data + size / 2;
	size_t n = size - size / 2;
	struct wire_head head;
	struct wr w;
	struct rd r;
	long len;

	if (wire_open(msg, n, &head, &r) < 0)
		return 0;
	MUST(head.version == WIRE_VERSION && head.len == n - sizeof(head));
	wire_begin(&w, again, sizeof(again), head.type, head.id);
	for (size_t i = 0; i < size / 2 && rd_end(&r) < 0 && !r.bad; i++)
		step(&r, &w, ops[i]);
	if (rd_end(&r) < 0)
		return 0;
	/* All of it was read: there is one spelling of it only. */
	len = wire_finish(&w);
	MUST(len == (long)n && memcmp(again, msg, n) == 0);
	return 0;
}
