/* Any frame as a guest's or a client's message: what is accepted has one spelling only, so encoding
 * it again gives the same payload. */
#include <string.h>

#include "fuzz.h"
#include "spec/guest.h"

static uint8_t again[WIRE_FRAME_MAX];

/* Decode, encode: the size of the new frame, or a negative errno of the decoder. */
static long again_exec(struct rd *r)
{
	static struct guest_exec e;
	int n = guest_get_exec(r, &e);

	if (n < 0)
		return n;
	MUST(e.argc <= GUEST_ARGS_MAX && !e.argv[e.argc] && !e.envp[e.envc]);
	MUST(e.kind < EXEC_KIND_COUNT && strlen(e.tag) <= GUEST_TAG_MAX);
	return guest_put_exec(again, sizeof(again), 1, &e);
}

static long again_exit(struct rd *r)
{
	struct guest_exit e;
	int n = guest_get_exit(r, &e);

	return n < 0 ? n : guest_put_exit(again, sizeof(again), 1, &e);
}

static long again_file(struct rd *r)
{
	struct guest_file f;
	int n = guest_get_file(r, &f);

	return n < 0 ? n : guest_put_file(again, sizeof(again), 1, &f);
}

static long again_entry(struct rd *r)
{
	struct guest_entry e;
	int n = guest_get_entry(r, &e);

	return n < 0 ? n : guest_put_entry(again, sizeof(again), 1, &e);
}

static long again_found(struct rd *r)
{
	struct guest_found f;
	int n = guest_get_found(r, &f);

	return n < 0 ? n : guest_put_found(again, sizeof(again), 1, &f);
}

static long again_ready(struct rd *r)
{
	struct guest_ready e;
	int n = guest_get_ready(r, &e);

	return n < 0 ? n : guest_put_ready(again, sizeof(again), &e);
}

static long again_live(struct rd *r)
{
	struct guest_live e;
	int n = guest_get_live(r, 1, &e);

	if (n < 0)
		return n;
	MUST(strlen(e.tag) <= GUEST_TAG_MAX && e.stdin_kept <= GUEST_WINDOW);
	return guest_put_live(again, sizeof(again), &e);
}

static long again_door(struct rd *r, uint16_t type)
{
	struct guest_connect c;
	int n = guest_get_connect(r, type, &c);

	if (n < 0)
		return n;
	MUST(c.address < ADDRESS_COUNT && (c.port > 0 || type == G_LISTEN));
	MUST(c.address != ADDRESS_UNIX || (type == G_LISTEN && c.path[0] == '/'));
	return guest_put_connect(again, sizeof(again), type, 1, &c);
}

static long again_connect(struct rd *r)
{
	return again_door(r, G_CONNECT);
}

static long again_listen(struct rd *r)
{
	return again_door(r, G_LISTEN);
}

static const struct {
	uint16_t type;
	long (*again)(struct rd *r);
} rows[] = {
	{ G_CONNECT, again_connect }, { G_LISTEN, again_listen }, { G_EXEC, again_exec },
	{ G_EXIT, again_exit },       { G_FILE, again_file },     { G_ENTRY, again_entry },
	{ G_READY, again_ready },     { G_LIVE, again_live },     { G_FOUND, again_found },
};

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct wire_head head;
	struct rd r;

	if (wire_open(data, size, &head, &r) < 0)
		return 0;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct rd copy = r;
		long n;

		if (rows[i].type != head.type)
			continue;
		n = rows[i].again(&copy);
		if (n < 0)
			continue;
		MUST((size_t)n == size);
		MUST(memcmp(again + sizeof(head), data + sizeof(head), size - sizeof(head)) == 0);
	}
	return 0;
}
