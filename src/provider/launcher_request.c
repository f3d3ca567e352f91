/* Each request as a frame. */
#include <errno.h>

#include "base/err.h"
#include "provider/launcher_impl.h"

#define SMALL_FRAME_MAX 256 /* every request fits but a template and a claim */
#define LARGE_FRAME_MAX 4096

int launcher_ask_plain(struct launcher *l, struct ask *a, struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	a->id = launcher_next_id(l);
	a->fd = -1;
	wire_begin(&w, frame, sizeof(frame), a->type, a->id);
	a->frame = frame;
	a->size = wire_finish(&w);
	return launcher_ask(l, a, err);
}

int launcher_hello(struct launcher *l, provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = L_HELLO, .cb = cb, .user = user };

	return launcher_ask_plain(l, &a, err);
}

static void on_pong(void *user, const struct provider_reply *r)
{
	(void)user; /* that something came has been noted */
	(void)r;
}

bool launcher_ping(struct launcher *l)
{
	if (l->is_asked && !l->has_spoken)
		return true;
	(void)launcher_hello(l, on_pong, NULL, NULL);
	/* Refused, too, when too much waits for it already: also then there is something to say. */
	l->is_asked = !list_is_empty(&l->pending);
	l->has_spoken = false;
	return false;
}

int launcher_template(struct launcher *l, const struct template_spec *t, int dir_fd, provider_cb cb,
		      void *user, struct err *err)
{
	struct ask a = { .type = L_TEMPLATE, .fd = dir_fd, .cb = cb, .user = user };
	uint8_t frame[LARGE_FRAME_MAX];
	int r = spec_check_template(t, err);

	if (r < 0)
		return r;
	a.id = launcher_next_id(l);
	a.frame = frame;
	a.size = launch_put_template(frame, sizeof(frame), a.id, t);
	return launcher_ask(l, &a, err);
}

int launcher_pool(struct launcher *l, const struct pool_spec *p, provider_cb cb, void *user,
		  struct err *err)
{
	struct ask a = { .type = L_POOL, .fd = -1, .cb = cb, .user = user };
	uint8_t frame[SMALL_FRAME_MAX];

	a.id = launcher_next_id(l);
	a.frame = frame;
	a.size = launch_put_pool(frame, sizeof(frame), a.id, p);
	return launcher_ask(l, &a, err);
}

int launcher_ask_template(struct launcher *l, enum launch_type type, uint32_t template_id,
			  provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = type, .fd = -1, .cb = cb, .user = user };
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	a.id = launcher_next_id(l);
	wire_begin(&w, frame, sizeof(frame), a.type, a.id);
	wr_u32(&w, template_id);
	a.frame = frame;
	a.size = wire_finish(&w);
	return launcher_ask(l, &a, err);
}

int launcher_pool_state(struct launcher *l, uint32_t template_id, provider_cb cb, void *user,
			struct err *err)
{
	return launcher_ask_template(l, L_POOL_STATE, template_id, cb, user, err);
}

int launcher_claim(struct launcher *l, const struct launch_spec *spec, provider_cb cb, void *user,
		   struct err *err)
{
	struct ask a = { .type = L_CLAIM, .fd = -1, .cb = cb, .user = user };
	uint8_t frame[LARGE_FRAME_MAX];
	int r = spec_check_launch(spec, err);

	if (r < 0)
		return r;
	a.id = launcher_next_id(l);
	a.frame = frame;
	a.size = launch_put_claim(frame, sizeof(frame), a.id, spec);
	return launcher_ask(l, &a, err);
}

int launcher_list(struct launcher *l, provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = L_LIST, .cb = cb, .user = user };

	return launcher_ask_plain(l, &a, err);
}

/* A request that begins with an id: the rest is w's caller's. */
static void begin_id(struct launcher *l, struct ask *a, struct wr *w, uint8_t *frame,
		     const char *id)
{
	a->id = launcher_next_id(l);
	a->frame = frame;
	a->fd = -1;
	wire_begin(w, frame, SMALL_FRAME_MAX, a->type, a->id);
	wr_str(w, id);
}

int launcher_ask_id(struct launcher *l, struct ask *a, const char *id, struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	begin_id(l, a, &w, frame, id);
	a->size = wire_finish(&w);
	return launcher_ask(l, a, err);
}

int launcher_attach(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		    struct err *err)
{
	struct ask a = { .type = L_ATTACH, .cb = cb, .user = user };

	return launcher_ask_id(l, &a, box_id, err);
}

int launcher_destroy(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		     struct err *err)
{
	struct ask a = { .type = L_DESTROY, .cb = cb, .user = user };

	return launcher_ask_id(l, &a, box_id, err);
}

int launcher_usage(struct launcher *l, const char *box_id, provider_cb cb, void *user,
		   struct err *err)
{
	struct ask a = { .type = L_USAGE, .cb = cb, .user = user };

	return launcher_ask_id(l, &a, box_id, err);
}

int launcher_freeze(struct launcher *l, const char *box_id, bool on, provider_cb cb, void *user,
		    struct err *err)
{
	struct ask a = { .type = L_FREEZE, .cb = cb, .user = user };
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	begin_id(l, &a, &w, frame, box_id);
	wr_u8(&w, on);
	a.size = wire_finish(&w);
	return launcher_ask(l, &a, err);
}

int launcher_limits(struct launcher *l, const char *box_id, const struct limits *limits,
		    provider_cb cb, void *user, struct err *err)
{
	struct ask a = { .type = L_LIMITS, .cb = cb, .user = user };
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	begin_id(l, &a, &w, frame, box_id);
	launch_wr_limits(&w, limits);
	a.size = wire_finish(&w);
	return launcher_ask(l, &a, err);
}
