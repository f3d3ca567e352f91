/* A ring of bytes with running positions: what came in as the n-th byte is at n modulo the size. */
#pragma once

#include <stddef.h>
#include <stdint.h>

struct ring {
	char *data; /* owned; NULL until the first byte, so that what is quiet costs nothing */
	size_t size;
	uint64_t head, tail; /* positions of the oldest byte kept and behind the newest */
};

void ring_init(struct ring *r, size_t size);
void ring_done(struct ring *r);
size_t ring_len(const struct ring *r);
size_t ring_room(const struct ring *r);
/* A contiguous place for new bytes; its length in *ret_n (0: full). NULL without memory. */
char *ring_space(struct ring *r, size_t *ret_n);
void ring_added(struct ring *r, size_t n);
/* The bytes from position `at` on, as far as they are contiguous. */
const char *ring_at(const struct ring *r, uint64_t at, size_t *ret_n);
void ring_drop(struct ring *r, size_t n); /* the n oldest */
/* Copies n bytes in, wherever they wrap. -ENOMEM, -E2BIG without room for all. */
int ring_push(struct ring *r, const void *data, size_t n);
