#include "provider/fake.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "provider/fake_impl.h"

int fake_enqueue(struct fake *f, const struct fake_call *call, struct err *err)
{
	struct fake_call *c;
	int fail_with = 0;

	f->calls++;
	if (f->gone)
		return err_set(err, EPIPE, "the provider is gone");
	if (f->fail_in > 0 && --f->fail_in == 0)
		fail_with = f->fail_with ? f->fail_with : EIO;
	if (fail_with && f->fail_at_once)
		return err_set(err, fail_with, "%s refused", call->name);
	if (f->queued == FAKE_QUEUE_MAX)
		return err_set(err, EAGAIN, "%d calls wait, no more", FAKE_QUEUE_MAX);
	c = malloc(sizeof(*c));
	if (!c)
		return err_sys(err, ENOMEM, "%s", call->name);
	*c = *call;
	c->fail_with = fail_with;
	list_push_back(&f->queue, &c->node);
	f->queued++;
	return 0;
}

/* The same for a call about one box. */
static int enqueue_box(struct fake *f, struct fake_call *c, const char *box_id, struct err *err)
{
	if (str_copy(c->box_id, sizeof(c->box_id), box_id) < 0)
		return err_set(err, EINVAL, "a box's id is at most %d characters", ID_LEN);
	return fake_enqueue(f, c, err);
}

struct fake_box *fake_box_of(struct fake *f, const struct fake_call *c, struct err *err)
{
	struct fake_box *box = c->box_id[0] != '\0' ? fake_find(f, c->box_id) : NULL;

	if (!box)
		(void)err_set(err, ENOENT, "no box '%s'", c->box_id);
	return box;
}

/* Gives the box a new control socket in place of the one it has. */
static int connect_box(struct fake_call *c, struct fake_box *box, struct provider_reply *r,
		       struct err *err)
{
	int pair[2];

	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	(void)fd_close(box->guest);
	box->guest = pair[1];
	c->box = (struct launcher_box){ .sock = pair[0], .pidfd = -1, .limits = box->limits };
	memcpy(c->box.id, box->id, sizeof(box->id));
	r->box = &c->box;
	return 0;
}

static void clear_box(struct fake *f, struct fake_box *box)
{
	(void)fd_close(box->guest);
	*box = (struct fake_box){ .guest = -1 };
	f->live--;
}

static int do_claim(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	struct fake_box *box = fake_find(f, "");
	int e;

	if (!box)
		return err_set(err, EAGAIN, "all %d boxes are in use", FAKE_BOXES_MAX);
	e = spec_fill_limits(&c->limits, NULL, err);
	if (e < 0)
		return e;
	e = fake_check_disk(f, c, err);
	if (e < 0)
		return e;
	*box = (struct fake_box){ .guest = -1, .limits = c->limits, .template_id = c->template_id };
	fake_use_disk(c, box);
	id_make(box->id);
	memcpy(box->tag, c->tag, sizeof(box->tag));
	f->live++;
	e = connect_box(c, box, r, err);
	if (e < 0)
		clear_box(f, box);
	return e;
}

static int do_attach(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	struct fake_box *box = fake_box_of(f, c, err);

	return box ? connect_box(c, box, r, err) : -ENOENT;
}

static int do_list(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	(void)err;
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++) {
		const struct fake_box *box = &f->boxes[i];

		if (box->id[0] == '\0')
			continue;
		c->boxes[r->n_boxes++] = (struct launch_box_info){
			.id = box->id,
			.tag = box->tag,
			.limits = box->limits,
			.frozen = box->frozen,
		};
	}
	r->boxes = c->boxes;
	return 0;
}

static int do_destroy(struct fake *f, struct fake_call *c, struct provider_reply *r,
		      struct err *err)
{
	struct fake_box *box = fake_box_of(f, c, err);

	if (!box)
		return -ENOENT;
	clear_box(f, box);
	r->usage = f->usage;
	return 0;
}

static int do_freeze(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	struct fake_box *box = fake_box_of(f, c, err);

	(void)r;
	if (!box)
		return -ENOENT;
	box->frozen = c->on;
	return 0;
}

static int do_usage(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	if (!fake_box_of(f, c, err))
		return -ENOENT;
	r->usage = f->usage;
	return 0;
}

static int do_limits(struct fake *f, struct fake_call *c, struct provider_reply *r, struct err *err)
{
	struct fake_box *box = fake_box_of(f, c, err);
	int e;

	(void)r;
	if (!box)
		return -ENOENT;
	e = spec_fill_limits(&c->limits, &box->limits, err);
	if (e == 0)
		box->limits = c->limits;
	return e;
}

static int do_pool_state(struct fake *f, struct fake_call *c, struct provider_reply *r,
			 struct err *err)
{
	(void)c;
	(void)err;
	r->pool = f->pool;
	return 0;
}

static int fake_claim(void *self, const struct launch_spec *spec, provider_cb cb, void *user,
		      struct err *err)
{
	struct fake_call c = { .name = "claim", .effect = do_claim, .cb = cb, .user = user };
	int r = spec_check_launch(spec, err);

	if (r < 0)
		return r;
	(void)str_copy(c.tag, sizeof(c.tag), spec->tag ? spec->tag : ""); /* fits: checked */
	fake_note_disk(&c, spec);
	c.template_id = spec->template_id;
	c.limits = spec->limits;
	return fake_enqueue(self, &c, err);
}

static int fake_attach(void *self, const char *box_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "attach", .effect = do_attach, .cb = cb, .user = user };

	return enqueue_box(self, &c, box_id, err);
}

static int fake_list(void *self, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "list", .effect = do_list, .cb = cb, .user = user };

	return fake_enqueue(self, &c, err);
}

static int fake_destroy(void *self, const char *box_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "destroy", .effect = do_destroy, .cb = cb, .user = user };

	return enqueue_box(self, &c, box_id, err);
}

static int fake_freeze(void *self, const char *box_id, bool on, provider_cb cb, void *user,
		       struct err *err)
{
	struct fake_call c = { .name = "freeze", .effect = do_freeze, .cb = cb, .user = user };

	c.on = on;
	return enqueue_box(self, &c, box_id, err);
}

static int fake_usage(void *self, const char *box_id, provider_cb cb, void *user, struct err *err)
{
	struct fake_call c = { .name = "usage", .effect = do_usage, .cb = cb, .user = user };

	return enqueue_box(self, &c, box_id, err);
}

static int fake_limits(void *self, const char *box_id, const struct limits *limits, provider_cb cb,
		       void *user, struct err *err)
{
	struct fake_call c = { .name = "limits", .effect = do_limits, .cb = cb, .user = user };

	c.limits = *limits;
	return enqueue_box(self, &c, box_id, err);
}

static int fake_pool_state(void *self, uint32_t template_id, provider_cb cb, void *user,
			   struct err *err)
{
	struct fake_call c = { .name = "pool", .effect = do_pool_state, .cb = cb, .user = user };

	c.template_id = template_id;
	return fake_enqueue(self, &c, err);
}

static void fake_on_death(void *self, provider_death_cb cb, void *user)
{
	struct fake *f = self;

	f->on_death = cb;
	f->on_death_user = user;
}

static const struct provider_ops fake_ops = {
	.name = "fake",
	.claim = fake_claim,
	.attach = fake_attach,
	.list = fake_list,
	.destroy = fake_destroy,
	.freeze = fake_freeze,
	.usage = fake_usage,
	.limits = fake_limits,
	.pool_state = fake_pool_state,
	.define = fake_define,
	.undefine = fake_undefine,
	.pool = fake_pool,
	.snapshot = fake_snapshot,
	.drop_layer = fake_drop_layer,
	.layers = fake_layers,
	.make_volume = fake_make_volume,
	.drop_volume = fake_drop_volume,
	.volumes = fake_volumes,
	.on_death = fake_on_death,
};

struct provider provider_fake(struct fake *f)
{
	if (!f->queue.next)
		list_init(&f->queue);
	return (struct provider){ &fake_ops, f, true };
}

struct fake_box *fake_find(struct fake *f, const char *box_id)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (strcmp(f->boxes[i].id, box_id) == 0)
			return &f->boxes[i];
	return NULL;
}

/* The oldest entry, detached: a callback may queue and answer others. NULL when there is none. */
static struct fake_call *pop(struct fake *f)
{
	struct fake_call *c;

	if (!f->queue.next || list_is_empty(&f->queue))
		return NULL;
	c = LIST_ENTRY(f->queue.next, struct fake_call, node);
	list_remove(&c->node);
	f->queued--;
	return c;
}

static void answer(struct fake *f, struct fake_call *c)
{
	struct provider_reply r = { 0 };
	struct err err = { 0 };

	if (f->gone)
		r.code = err_set(&err, EPIPE, "the provider is gone");
	else if (c->fail_with)
		r.code = err_set(&err, c->fail_with, "%s refused", c->name);
	else
		r.code = c->effect(f, c, &r, &err);
	r.text = err.text;
	c->cb(c->user, &r);
	if (r.box)
		launcher_box_done(r.box);
}

bool fake_step(struct fake *f)
{
	_free_ struct fake_call *c = pop(f);

	if (!c)
		return false;
	if (c->effect)
		answer(f, c);
	else if (f->on_death)
		f->on_death(f->on_death_user, c->box_id, c->status, &f->usage);
	return true;
}

size_t fake_run(struct fake *f)
{
	size_t n = 0;

	while (fake_step(f))
		n++;
	return n;
}

void fake_kill(struct fake *f, const char *box_id, int status)
{
	struct fake_box *box = fake_find(f, box_id);
	struct fake_call *c;

	if (!box || box->id[0] == '\0')
		return;
	c = calloc(1, sizeof(*c));
	if (!c)
		abort(); /* a test that is not told of the death would wait for it */
	memcpy(c->box_id, box->id, sizeof(box->id));
	c->status = status;
	list_push_back(&f->queue, &c->node);
	f->queued++;
	clear_box(f, box);
}

void fake_go_away(struct fake *f)
{
	struct fake_call *c;

	f->gone = true;
	while ((c = pop(f))) {
		if (c->effect)
			answer(f, c);
		free(c);
	}
}

void fake_done(struct fake *f)
{
	struct fake_call *c;

	while ((c = pop(f)))
		free(c);
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (f->boxes[i].id[0] != '\0')
			clear_box(f, &f->boxes[i]);
}
