#include "guest/kept.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/str.h"
#include "guest/guest.h"

struct kept *kept_create(uint32_t id, const char *tag, uint8_t flags)
{
	struct kept *k = calloc(1, sizeof(*k));

	if (!k)
		return NULL;
	k->id = id;
	k->flags = flags;
	list_init(&k->node);
	out_init(&k->out, 0);
	(void)str_format(k->tag, sizeof(k->tag), "%s", tag); /* fits: the decoder has seen to it */
	return k;
}

struct kept *kept_free(struct kept *k)
{
	if (!k)
		return NULL;
	list_remove(&k->node);
	out_done(&k->out);
	free(k);
	return NULL;
}

static void tell_exit(struct guest *g, struct kept *k)
{
	uint8_t frame[128];

	k->exit.flags |= k->out.is_truncated ? EXIT_TRUNCATED : 0;
	conn_send(&g->conn, frame, guest_put_exit(frame, sizeof(frame), k->id, &k->exit));
	k->is_told = true;
}

static void advance(struct guest *g, struct kept *k)
{
	conn_send_unsent(&g->conn, k->id, &k->out);
	if (!out_has_unsent(&k->out) && !k->is_told && conn_is_free(&g->conn))
		tell_exit(g, k);
}

/* The oldest lose their output first: whoever was to take it had the most time. */
static void bound_memory(struct guest *g)
{
	size_t total = 0;

	LIST_FOREACH (&g->kept, k, struct kept, node)
		total += out_memory(&k->out);
	LIST_FOREACH (&g->kept, k, struct kept, node) {
		if (total <= GUEST_KEPT_BYTES)
			return;
		total -= out_memory(&k->out);
		out_give_up(&k->out);
	}
}

void kept_add(struct guest *g, struct kept *k)
{
	out_shrink(&k->out);
	list_push_back(&g->kept, &k->node);
	g->n_kept++;
	advance(g, k);
	bound_memory(g);
}

struct kept *kept_find(struct guest *g, uint32_t id)
{
	LIST_FOREACH (&g->kept, k, struct kept, node)
		if (k->id == id)
			return k;
	return NULL;
}

int kept_credit(struct kept *k, uint64_t n)
{
	int r = out_credit(&k->out, n);

	if (r == 0 && ring_len(&k->out.ring) == 0)
		out_shrink(&k->out);
	return r;
}

void kept_ack(struct guest *g, struct kept *k)
{
	if (!k->is_told)
		tell_exit(g, k); /* every request has its end */
	g->n_kept--;
	(void)kept_free(k);
}

void kept_tell(struct guest *g, const struct kept *k, const struct out *out,
	       const struct guest_live *rest)
{
	struct guest_live live = *rest;
	uint8_t frame[256];

	live.id = k->id;
	live.pid = k->pid;
	live.flags |= k->flags;
	live.age_ms = (clock_now_ns() - k->started_ns) / 1000000;
	live.tag = k->tag;
	memcpy(live.offset, out->base, sizeof(live.offset));
	conn_send(&g->conn, frame, guest_put_live(frame, sizeof(frame), &live));
}

void kept_tell_all(struct guest *g)
{
	LIST_FOREACH (&g->kept, k, struct kept, node) {
		struct guest_live rest = { .flags = LIVE_ENDED, .stdin_taken = k->stdin_taken };

		kept_tell(g, k, &k->out, &rest);
	}
}

void kept_rewind_all(struct guest *g)
{
	LIST_FOREACH (&g->kept, k, struct kept, node) {
		out_rewind(&k->out);
		k->is_told = false;
	}
}

void kept_resume_all(struct guest *g)
{
	LIST_FOREACH (&g->kept, k, struct kept, node)
		advance(g, k);
}

void kept_free_all(struct guest *g)
{
	LIST_FOREACH (&g->kept, k, struct kept, node)
		(void)kept_free(k);
}
