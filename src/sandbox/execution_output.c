/* Output on its way from the box into the ring, and credit back.
 *
 * What an open reader has not read is not given up: while the ring has no room, chunks wait in a
 * queue and are not credited, so that the box stops within its window and the queue is bounded by
 * it. Without readers the oldest give way. */
#include <errno.h>
#include <string.h>

#include "base/log.h"
#include "provider/guest_client.h"
#include "sandbox/execution.h"

/* Before each chunk in the queue. */
struct chunk_head {
	uint32_t len;
	uint8_t stream;
} __attribute__((packed));

/* The client lets two windows in, of single bytes with a head each at the worst; and as much again
 * that has been taken and is not yet cut off. */
#define QUEUE_MAX (4 * GUEST_WINDOW * (sizeof(struct chunk_head) + 1))

/* The position of the reader that is furthest behind, or the end. */
static uint64_t slowest(const struct execution *x)
{
	uint64_t begin = output_begin(x->output), at = output_end(x->output);

	LIST_FOREACH (&x->readers, r, struct exec_reader, node)
		if (r->at < at)
			at = r->at < begin ? begin : r->at;
	return at;
}

/* How many of n bytes the ring can take now. */
static size_t room(const struct execution *x, size_t n)
{
	uint64_t from;

	if (list_is_empty(&x->readers))
		return n;
	from = slowest(x);
	while (n > 0 && !output_has_room(x->output, n, from))
		n /= 2;
	return n;
}

/* Few bytes are kept by the box until the end is recorded, and cost no file. More go into one, so
 * that the box may forget them and they still outlive us. */
static void spool(struct execution *x)
{
	int r;

	if (x->is_crediting || output_end(x->output) <= EXECUTION_SMALL)
		return;
	r = output_persist(x->output, x->all->settings.spool_fd, x->id);
	if (r < 0)
		log_debug("sandbox", "%s: output is in memory only: %s", x->id, strerror(-r));
	x->is_crediting = true;
}

static void append(struct execution *x, int stream, const char *data, size_t n)
{
	if (output_append(x->output, stream, data, n) < 0 || output_begin(x->output) > 0)
		x->flags |= EXECUTION_TRUNCATED;
	if (x->all)
		spool(x);
}

static void credit(struct execution *x)
{
	uint64_t waiting = x->queued[0] + x->queued[1], safe;

	/* Less than what waits: the box is repeating it, on a new connection. */
	if (!x->is_crediting || !x->is_bound || x->uncredited <= waiting)
		return;
	safe = x->uncredited - waiting;
	(void)guest_credit(x->sb->guest, x->guest_id, safe);
	x->uncredited -= safe;
	link_kick(x->sb);
}

static int enqueue(struct execution *x, int stream, const char *data, size_t n)
{
	struct chunk_head h = { .len = (uint32_t)n, .stream = (uint8_t)stream };

	x->queue.max = QUEUE_MAX;
	if (buf_reserve(&x->queue, sizeof(h) + n) < 0) {
		x->queue.failed = false; /* what waits is whole, and others may find memory */
		return -ENOMEM;
	}
	(void)buf_append(&x->queue, &h, sizeof(h)); /* reserved */
	(void)buf_append(&x->queue, data, n);
	x->queued[stream - 1] += n;
	return 0;
}

/* One piece of the queue into the ring; false when there is no room for any. */
static bool take_queued(struct execution *x)
{
	const char *at = x->queue.data + x->queue_at;
	struct chunk_head h;
	size_t left, n;

	memcpy(&h, at, sizeof(h));
	left = h.len - x->queue_cut;
	n = room(x, left);
	if (n == 0)
		return false;
	append(x, h.stream, at + sizeof(h) + x->queue_cut, n);
	x->queued[h.stream - 1] -= n;
	x->queue_cut += n;
	if (n == left) {
		x->queue_at += sizeof(h) + h.len;
		x->queue_cut = 0;
	}
	return true;
}

static bool drain(struct execution *x)
{
	bool is_moved = false;

	while (x->queue_at < x->queue.len && take_queued(x))
		is_moved = true;
	if (x->queue_at == x->queue.len) {
		buf_clear(&x->queue);
		x->queue_at = 0;
	} else if (x->queue_at > x->queue.len / 2) {
		buf_drop(&x->queue, x->queue_at);
		x->queue_at = 0;
	}
	return is_moved;
}

void execution_drain(struct execution *x)
{
	if (x->queue.len == 0 || !drain(x))
		return;
	execution_tell_later(x);
	credit(x);
	if (x->queue.len == 0 && x->is_record_due)
		execution_record(x);
}

/* All of it, in order behind what waits. */
static void take(struct execution *x, int stream, const char *data, size_t n)
{
	size_t fits;

	if (!x->output) {
		x->output = output_create(x->keep);
		if (x->output && x->all)
			output_limit(x->output, x->all->output_budget);
	}
	if (!x->output) {
		x->flags |= EXECUTION_TRUNCATED;
		return;
	}
	(void)drain(x);
	while (x->queue.len == 0 && n > 0 && (fits = room(x, n)) > 0) {
		append(x, stream, data, fits);
		data += fits;
		n -= fits;
	}
	if (n > 0 && enqueue(x, stream, data, n) < 0)
		x->flags |= EXECUTION_TRUNCATED;
}

void execution_on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	struct execution *x = user;
	uint64_t have = x->queued[stream - 1];
	size_t known = 0;

	if (x->output)
		have += output_stream_end(x->output, stream);
	x->uncredited += n;
	/* A box that we have found again repeats what was not credited; some of it we have. */
	if (offset < have)
		known = have - offset < n ? (size_t)(have - offset) : n;
	if (offset > have)
		x->flags |= EXECUTION_TRUNCATED; /* what lay between is lost */
	if (known < n) {
		take(x, stream, (const char *)data + known, n - known);
		execution_tell(x);
	}
	credit(x);
}
