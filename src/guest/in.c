#include "guest/in.h"

#include <errno.h>

#include "spec/guest.h"

void in_init(struct in *in, bool is_terminal)
{
	*in = (struct in){ .is_terminal = is_terminal, .last = '\n' };
	ring_init(&in->ring, GUEST_WINDOW);
}

void in_done(struct in *in)
{
	ring_done(&in->ring);
}

int in_push(struct in *in, const void *data, size_t n)
{
	int r;

	if (in->is_ended && !in->is_terminal)
		return n > 0 ? -EPROTO : 0;
	if (n == 0) {
		in->is_ended = true;
		in->end_at = in->ring.tail;
		return 0;
	}
	r = ring_push(&in->ring, data, n);
	return r == -E2BIG ? -EPROTO : r;
}

const char *in_next(const struct in *in, size_t *ret_n)
{
	const char *data;

	*ret_n = 0;
	if (ring_len(&in->ring) == 0)
		return NULL;
	data = ring_at(&in->ring, in->ring.head, ret_n);
	if (in->is_ended && *ret_n > in->end_at - in->ring.head)
		*ret_n = (size_t)(in->end_at - in->ring.head);
	return data;
}

void in_took(struct in *in, size_t n)
{
	size_t len;
	const char *data = in_next(in, &len);

	if (n > 0 && data && n <= len)
		in->last = data[n - 1];
	ring_drop(&in->ring, n);
}

bool in_is_at_end(const struct in *in)
{
	return in->is_ended && in->ring.head >= in->end_at;
}

void in_reopen(struct in *in)
{
	in->is_ended = false;
}
