#include "guest/ring.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

void ring_init(struct ring *r, size_t size)
{
	*r = (struct ring){ .size = size };
}

void ring_done(struct ring *r)
{
	free(r->data);
	*r = (struct ring){ .size = r->size };
}

size_t ring_len(const struct ring *r)
{
	return (size_t)(r->tail - r->head);
}

size_t ring_room(const struct ring *r)
{
	return r->size - ring_len(r);
}

char *ring_space(struct ring *r, size_t *ret_n)
{
	size_t at = (size_t)(r->tail % r->size);
	size_t room = ring_room(r);

	if (!r->data)
		r->data = malloc(r->size);
	if (!r->data)
		return NULL;
	*ret_n = room < r->size - at ? room : r->size - at;
	return r->data + at;
}

void ring_added(struct ring *r, size_t n)
{
	assert(n <= ring_room(r));
	r->tail += n;
}

const char *ring_at(const struct ring *r, uint64_t at, size_t *ret_n)
{
	size_t from = (size_t)(at % r->size);
	size_t len = (size_t)(r->tail - at);

	assert(at >= r->head && at <= r->tail);
	*ret_n = len < r->size - from ? len : r->size - from;
	return r->data + from;
}

void ring_drop(struct ring *r, size_t n)
{
	assert(n <= ring_len(r));
	r->head += n;
}

int ring_push(struct ring *r, const void *data, size_t n)
{
	const char *from = data;

	if (n > ring_room(r))
		return -E2BIG;
	while (n > 0) {
		size_t part;
		char *to = ring_space(r, &part);

		if (!to)
			return -ENOMEM;
		part = part < n ? part : n;
		memcpy(to, from, part);
		ring_added(r, part);
		from += part;
		n -= part;
	}
	return 0;
}
