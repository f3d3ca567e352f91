#include "guest/out.h"

#include <assert.h>
#include <errno.h>

#include "spec/guest.h"

void out_init(struct out *o, uint64_t limit)
{
	*o = (struct out){ .limit = limit };
	ring_init(&o->ring, GUEST_WINDOW);
}

void out_done(struct out *o)
{
	ring_done(&o->ring);
}

bool out_is_dropping(const struct out *o)
{
	return o->limit > 0 && o->kept >= o->limit;
}

char *out_space(struct out *o, size_t *ret_n)
{
	size_t n;
	char *to = ring_space(&o->ring, &n);

	if (out_has_unsent(o))
		n = 0;
	*ret_n = n < GUEST_CHUNK ? n : GUEST_CHUNK;
	return to;
}

void out_commit(struct out *o, enum out_stream stream, size_t n)
{
	size_t keep = n;

	o->written += n;
	if (o->limit > 0 && keep > o->limit - o->kept)
		keep = (size_t)(o->limit - o->kept);
	if (keep < n)
		o->is_truncated = true;
	if (keep == 0)
		return; /* dropping goes on even while a kept chunk waits to be sent */
	assert(!out_has_unsent(o));
	o->kept += keep;
	o->unsent_stream = stream;
	ring_added(&o->ring, keep);
}

bool out_has_unsent(const struct out *o)
{
	return o->sent_at < o->ring.tail;
}

struct out_chunk out_next(const struct out *o)
{
	struct out_chunk c = { .stream = o->unsent_stream, .offset = o->offset[o->unsent_stream] };

	c.data = ring_at(&o->ring, o->sent_at, &c.len);
	return c;
}

void out_sent(struct out *o)
{
	o->offset[o->unsent_stream] += o->ring.tail - o->sent_at;
	o->sent_at = o->ring.tail;
}

int out_credit(struct out *o, uint64_t n)
{
	if (n > o->sent_at - o->ring.head)
		return -EPROTO;
	ring_drop(&o->ring, (size_t)n);
	return 0;
}

void out_abandon(struct out *o)
{
	if (out_has_unsent(o))
		o->is_truncated = true;
	o->ring.tail = o->sent_at;
	o->limit = o->kept > 0 ? o->kept : 1;
	o->kept = o->limit;
}
