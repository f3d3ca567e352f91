/* The blocking forms: a request, and a loop of one descriptor until it is answered. */
#include <errno.h>
#include <poll.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "provider/launcher_impl.h"

/* Where the answer goes. */
struct wait {
	struct launcher *l;
	bool done;
	struct err err; /* code 0: it was not refused */
	struct launcher_box *box;
	struct box_usage usage;
	struct pool_state pool;
	struct layer_info layer;
	void (*each)(void *user, const struct launch_box_info *box);
	void (*each_layer)(void *user, const struct layer_info *layer);
	void (*each_volume)(void *user, const struct volume_info *volume);
	void *each_user;
};

static void on_reply(void *user, const struct provider_reply *r)
{
	struct wait *w = user;

	w->done = true;
	if (r->code < 0) {
		(void)err_set(&w->err, -r->code, "%s", r->text);
		return;
	}
	w->usage = r->usage;
	w->pool = r->pool;
	if (r->box && w->box) {
		*w->box = *r->box;
		r->box->sock = r->box->pidfd = -1;
	}
	for (size_t i = 0; w->each && i < r->n_boxes; i++)
		w->each(w->each_user, &r->boxes[i]);
	for (size_t i = 0; w->each_layer && i < r->n_layers; i++)
		w->each_layer(w->each_user, &r->layers[i]);
	for (size_t i = 0; w->each_volume && i < r->n_volumes; i++)
		w->each_volume(w->each_user, &r->volumes[i]);
	if (r->n_layers == 1)
		w->layer = r->layers[0];
}

/* Goes around the request: while it is under way, we may block. */
static void begin(struct wait *w)
{
	w->l->waiting++;
}

static int turn(struct launcher *l, int timeout_ms)
{
	short events = launcher_wants_write(l) ? POLLIN | POLLOUT : POLLIN;
	struct pollfd p = { .fd = l->sock, .events = events };
	int n = poll(&p, 1, timeout_ms);

	if (n < 0)
		return 0; /* a signal, or no memory for a moment: the answer still comes */
	if (n == 0)
		return -ETIMEDOUT;
	if (p.revents & POLLOUT)
		launcher_flush(l);
	if (p.revents & ~POLLOUT)
		(void)launcher_receive(l); /* its end is the answer to every request */
	return 0;
}

/* With a deadline of 0 it returns only behind the callback: *w is on the caller's stack. */
static int until(struct wait *w, int sent, uint64_t deadline_ms, struct err *err)
{
	int r = sent;

	while (r == 0 && !w->done) {
		uint64_t now = clock_now_ms();
		bool is_late = deadline_ms > 0 && now >= deadline_ms;

		if (deadline_ms == 0)
			r = turn(w->l, -1);
		else
			r = is_late ? -ETIMEDOUT : turn(w->l, (int)(deadline_ms - now));
	}
	w->l->waiting--;
	if (sent < 0)
		return sent; /* err has been set */
	if (!w->done)
		return err_sys(err, r, "wait for " LAUNCHER_PROGRAM);
	return w->err.code ? err_set(err, w->err.code, "%s", w->err.text) : 0;
}

/* One that is out of patience gets its callback, too: from launcher_kill(). */
static int finish(struct wait *w, int sent, struct err *err)
{
	unsigned ms = w->l->patience_ms;
	int r = until(w, sent, ms ? clock_now_ms() + ms : 0, err);

	if (sent == 0 && !w->done)
		launcher_kill(w->l);
	return r;
}

void launcher_set_patience(struct launcher *l, unsigned ms)
{
	l->patience_ms = ms;
}

int launcher_hello_sync(struct launcher *l, int timeout_ms, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return until(&w, launcher_hello(l, on_reply, &w, err),
		     clock_now_ms() + (uint64_t)timeout_ms, err);
}

int launcher_template_sync(struct launcher *l, const struct template_spec *t, int dir_fd,
			   struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_template(l, t, dir_fd, on_reply, &w, err), err);
}

int launcher_pool_sync(struct launcher *l, const struct pool_spec *p, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_pool(l, p, on_reply, &w, err), err);
}

int launcher_pool_state_sync(struct launcher *l, uint32_t template_id, struct pool_state *ret,
			     struct err *err)
{
	struct wait w = { .l = l };
	int r;

	begin(&w);
	r = finish(&w, launcher_pool_state(l, template_id, on_reply, &w, err), err);
	if (r == 0)
		*ret = w.pool;
	return r;
}

int launcher_claim_sync(struct launcher *l, const struct launch_spec *s, struct launcher_box *ret,
			struct err *err)
{
	struct wait w = { .l = l, .box = ret };

	begin(&w);
	return finish(&w, launcher_claim(l, s, on_reply, &w, err), err);
}

int launcher_attach_sync(struct launcher *l, const char *box_id, struct launcher_box *ret,
			 struct err *err)
{
	struct wait w = { .l = l, .box = ret };

	begin(&w);
	return finish(&w, launcher_attach(l, box_id, on_reply, &w, err), err);
}

int launcher_list_sync(struct launcher *l,
		       void (*each)(void *user, const struct launch_box_info *box), void *user,
		       struct err *err)
{
	struct wait w = { .l = l, .each = each, .each_user = user };

	begin(&w);
	return finish(&w, launcher_list(l, on_reply, &w, err), err);
}

int launcher_destroy_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			  struct err *err)
{
	struct wait w = { .l = l };
	int r;

	begin(&w);
	r = finish(&w, launcher_destroy(l, box_id, on_reply, &w, err), err);
	if (r == 0 && ret)
		*ret = w.usage;
	return r;
}

int launcher_usage_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			struct err *err)
{
	struct wait w = { .l = l };
	int r;

	begin(&w);
	r = finish(&w, launcher_usage(l, box_id, on_reply, &w, err), err);
	if (r == 0)
		*ret = w.usage;
	return r;
}

int launcher_freeze_sync(struct launcher *l, const char *box_id, bool on, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_freeze(l, box_id, on, on_reply, &w, err), err);
}

int launcher_limits_sync(struct launcher *l, const char *box_id, const struct limits *limits,
			 struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_limits(l, box_id, limits, on_reply, &w, err), err);
}

int launcher_template_drop_sync(struct launcher *l, uint32_t template_id, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_template_drop(l, template_id, on_reply, &w, err), err);
}

int launcher_snapshot_sync(struct launcher *l, const struct snapshot_spec *s,
			   struct layer_info *ret, struct err *err)
{
	struct wait w = { .l = l };
	int r;

	begin(&w);
	r = finish(&w, launcher_snapshot(l, s, on_reply, &w, err), err);
	w.layer.id = NULL;
	if (r == 0 && ret)
		*ret = w.layer;
	return r;
}

int launcher_layer_drop_sync(struct launcher *l, const char *layer_id, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_layer_drop(l, layer_id, on_reply, &w, err), err);
}

int launcher_layers_sync(struct launcher *l,
			 void (*each)(void *user, const struct layer_info *layer), void *user,
			 struct err *err)
{
	struct wait w = { .l = l, .each_layer = each, .each_user = user };

	begin(&w);
	return finish(&w, launcher_layers(l, on_reply, &w, err), err);
}

int launcher_volume_make_sync(struct launcher *l, const struct volume_spec *v, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_volume_make(l, v, on_reply, &w, err), err);
}

int launcher_volume_drop_sync(struct launcher *l, const char *volume_id, struct err *err)
{
	struct wait w = { .l = l };

	begin(&w);
	return finish(&w, launcher_volume_drop(l, volume_id, on_reply, &w, err), err);
}

int launcher_volumes_sync(struct launcher *l,
			  void (*each)(void *user, const struct volume_info *volume), void *user,
			  struct err *err)
{
	struct wait w = { .l = l, .each_volume = each, .each_user = user };

	begin(&w);
	return finish(&w, launcher_volumes(l, on_reply, &w, err), err);
}

bool launcher_next_death(struct launcher *l, char ret_id[ID_LEN + 1], int *ret_status,
			 struct box_usage *ret_usage)
{
	struct death d;

	if (l->deaths_len == 0)
		while (launcher_receive(l) > 0)
			;
	if (!launcher_pop_death(l, &d))
		return false;
	memcpy(ret_id, d.id, sizeof(d.id));
	*ret_status = d.status;
	if (ret_usage)
		*ret_usage = d.usage;
	return true;
}
