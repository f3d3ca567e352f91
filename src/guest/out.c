#include "guest/out.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "spec/guest.h"

#define WORD_BITS 64u

_Static_assert(GUEST_WINDOW % WORD_BITS == 0, "a word of marks must not go round the ring's end");

void out_init(struct out *o, uint64_t limit)
{
	*o = (struct out){ .limit = limit };
	ring_init(&o->ring, GUEST_WINDOW);
}

void out_done(struct out *o)
{
	ring_done(&o->ring);
	free(o->marks);
	o->marks = NULL;
}

/* Not cleared: a mark is written with its byte, and short outputs touch few of these pages. */
static uint64_t *new_marks(size_t size)
{
	return malloc(size / WORD_BITS * sizeof(uint64_t));
}

/* As many of the n bytes from position `at` on as have their marks in one word: which, and where
 * in it. */
static size_t marks_at(const struct out *o, uint64_t at, size_t n, uint64_t **ret_word,
		       uint64_t *ret_bits)
{
	size_t from = (size_t)(at % o->ring.size);
	size_t shift = from % WORD_BITS;
	size_t len = n < WORD_BITS - shift ? n : WORD_BITS - shift;

	*ret_word = &o->marks[from / WORD_BITS];
	*ret_bits = (len == WORD_BITS ? UINT64_MAX : (1ull << len) - 1) << shift;
	return len;
}

static void mark(struct out *o, uint64_t at, size_t n, enum out_stream stream)
{
	while (n > 0) {
		uint64_t *word, bits;
		size_t len = marks_at(o, at, n, &word, &bits);

		*word = stream == OUT_STDERR ? *word | bits : *word & ~bits;
		at += len;
		n -= len;
	}
}

static enum out_stream stream_at(const struct out *o, uint64_t at)
{
	uint64_t *word, bit;

	(void)marks_at(o, at, 1, &word, &bit);
	return *word & bit ? OUT_STDERR : OUT_STDOUT;
}

/* How many of the n bytes are of one stream with the first. */
static size_t run_at(const struct out *o, uint64_t at, size_t n)
{
	uint64_t flip = stream_at(o, at) == OUT_STDERR ? UINT64_MAX : 0;
	size_t run = 0;

	while (run < n) {
		uint64_t *word, bits;
		size_t len = marks_at(o, at + run, n - run, &word, &bits);

		if ((*word ^ flip) & bits) {
			unsigned first = (unsigned)__builtin_ctzll((*word ^ flip) & bits);

			return run + first - (size_t)((at + run) % WORD_BITS);
		}
		run += len;
	}
	return run;
}

/* The next n bytes from position `at` on lie behind these offsets. */
static void pass(const struct out *o, uint64_t at, size_t n, uint64_t offset[OUT_STREAMS])
{
	while (n > 0) {
		uint64_t *word, bits;
		size_t len = marks_at(o, at, n, &word, &bits);
		size_t of_stderr = (size_t)__builtin_popcountll(*word & bits);

		offset[OUT_STDERR] += of_stderr;
		offset[OUT_STDOUT] += len - of_stderr;
		at += len;
		n -= len;
	}
}

bool out_is_dropping(const struct out *o)
{
	return o->limit > 0 && o->kept >= o->limit;
}

char *out_space(struct out *o, size_t *ret_n)
{
	size_t n;
	char *to = ring_space(&o->ring, &n);

	if (!o->marks)
		o->marks = new_marks(o->ring.size);
	if (!to || !o->marks)
		return NULL;
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
		return;
	o->kept += keep;
	mark(o, o->ring.tail, keep, stream);
	ring_added(&o->ring, keep);
}

bool out_has_unsent(const struct out *o)
{
	return o->sent_at < o->ring.tail;
}

struct out_chunk out_next(const struct out *o)
{
	struct out_chunk c = { .stream = stream_at(o, o->sent_at) };

	c.offset = o->offset[c.stream];
	c.data = ring_at(&o->ring, o->sent_at, &c.len);
	c.len = run_at(o, o->sent_at, c.len < GUEST_CHUNK ? c.len : GUEST_CHUNK);
	return c;
}

void out_sent(struct out *o, const struct out_chunk *c)
{
	o->offset[c->stream] += c->len;
	o->sent_at += c->len;
}

int out_credit(struct out *o, uint64_t n)
{
	if (o->is_given_up)
		return 0; /* of what was sent before */
	if (n > o->sent_at - o->ring.head)
		return -EPROTO;
	pass(o, o->ring.head, (size_t)n, o->base);
	ring_drop(&o->ring, (size_t)n);
	return 0;
}

void out_abandon(struct out *o)
{
	o->limit = o->kept > 0 ? o->kept : 1;
	o->kept = o->limit;
}

void out_rewind(struct out *o)
{
	o->sent_at = o->ring.head;
	memcpy(o->offset, o->base, sizeof(o->offset));
}

static void free_memory(struct out *o)
{
	free(o->ring.data);
	o->ring.data = NULL;
	free(o->marks);
	o->marks = NULL;
}

/* Copies what is kept to a smaller ring at the same positions. False without memory. */
static bool copy(const struct out *o, struct out *small)
{
	small->marks = new_marks(small->ring.size);
	while (small->marks && small->ring.tail < o->ring.tail) {
		uint64_t at = small->ring.tail;
		size_t len, room;
		const char *from = ring_at(&o->ring, at, &len);
		char *to = ring_space(&small->ring, &room);

		if (!to)
			return false;
		len = run_at(o, at, len < room ? len : room);
		memcpy(to, from, len);
		mark(small, at, len, stream_at(o, at));
		ring_added(&small->ring, len);
	}
	return small->marks;
}

void out_shrink(struct out *o)
{
	size_t len = ring_len(&o->ring);
	size_t size = (len + WORD_BITS - 1) / WORD_BITS * WORD_BITS;
	struct out small = *o;

	if (len == 0)
		free_memory(o);
	if (len == 0 || size >= o->ring.size)
		return;
	ring_init(&small.ring, size);
	small.ring.head = small.ring.tail = o->ring.head;
	if (copy(o, &small)) {
		free_memory(o);
		*o = small;
	} else {
		free_memory(&small);
	}
}

size_t out_memory(const struct out *o)
{
	return o->ring.data ? o->ring.size : 0;
}

void out_give_up(struct out *o)
{
	size_t len = ring_len(&o->ring);

	if (len > 0) {
		pass(o, o->ring.head, len, o->base);
		ring_drop(&o->ring, len);
		o->is_truncated = o->is_given_up = true;
	}
	out_rewind(o);
	free_memory(o);
}
