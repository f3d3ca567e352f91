#include "loop/loop.h"

#include <assert.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
#include <uv.h>

#include "base/err.h"
#include "loop/loop_uv.h"

/* Detached first: what a task posts runs a turn later, so a task that posts itself cannot keep the
 * loop from its descriptors. */
static void run_tasks(struct loop *l)
{
	struct list now, *node;

	if (list_is_empty(&l->tasks))
		return;
	now = l->tasks;
	now.next->prev = now.prev->next = &now;
	list_init(&l->tasks);
	while (!list_is_empty(&now)) {
		struct loop_task *t;

		node = now.next;
		t = LIST_ENTRY(node, struct loop_task, node);
		list_remove(node);
		t->run(t->user);
	}
}

int loop_create(struct loop **ret, struct err *err)
{
	struct loop *l = calloc(1, sizeof(*l));
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "event loop");
	r = uv_loop_init(&l->uv);
	if (r < 0) {
		free(l);
		return err_sys(err, r, "event loop");
	}
	list_init(&l->tasks);
	(void)uv_idle_init(&l->uv, &l->idle); /* cannot fail */
	l->idle.data = l;
	*ret = l;
	return 0;
}

struct loop *loop_free(struct loop *l)
{
	int r;

	if (!l)
		return NULL;
	/* Each was promised its call: it may be what frees the task's object. */
	while (!list_is_empty(&l->tasks))
		run_tasks(l);
	uv_close((uv_handle_t *)&l->idle, NULL);
	(void)uv_run(&l->uv, UV_RUN_DEFAULT); /* the rest of the closing, and of the work */
	r = uv_loop_close(&l->uv);
	assert(r == 0); /* somebody has not freed a timer, a watch, ... */
	(void)r;
	free(l);
	return NULL;
}

void loop_run(struct loop *l)
{
	(void)uv_run(&l->uv, UV_RUN_DEFAULT);
}

void loop_stop(struct loop *l)
{
	uv_stop(&l->uv);
}

uint64_t loop_now_ms(const struct loop *l)
{
	return uv_now(&l->uv);
}

static void on_idle(uv_idle_t *idle)
{
	struct loop *l = idle->data;

	run_tasks(l);
	if (list_is_empty(&l->tasks))
		(void)uv_idle_stop(idle);
}

void loop_task_init(struct loop_task *t, void (*run)(void *user), void *user)
{
	list_init(&t->node);
	t->run = run;
	t->user = user;
}

void loop_task_post(struct loop *l, struct loop_task *t)
{
	if (!list_is_empty(&t->node))
		return;
	list_push_back(&l->tasks, &t->node);
	(void)uv_idle_start(&l->idle, on_idle); /* fails only without a callback */
}

void loop_task_cancel(struct loop_task *t)
{
	list_remove(&t->node);
}

struct work {
	uv_work_t uv;
	void (*run)(void *user);
	void (*done)(void *user);
	void *user;
};

static void on_work(uv_work_t *req)
{
	struct work *w = req->data;

	w->run(w->user);
}

static void on_work_done(uv_work_t *req, int status)
{
	struct work *w = req->data;

	assert(status == 0); /* we never cancel */
	(void)status;
	w->done(w->user);
	free(w);
}

int loop_work(struct loop *l, void (*run)(void *user), void (*done)(void *user), void *user)
{
	struct work *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	w->uv.data = w;
	w->run = run;
	w->done = done;
	w->user = user;
	r = uv_queue_work(&l->uv, &w->uv, on_work, on_work_done);
	if (r < 0)
		free(w);
	return r;
}

/* Work with a thread of its own. */
struct alone {
	uv_async_t uv;
	pthread_t thread;
	void (*run)(void *user);
	void (*done)(void *user);
	void *user;
};

static void *run_alone(void *arg)
{
	struct alone *w = arg;

	w->run(w->user);
	(void)uv_async_send(&w->uv);
	return NULL;
}

static void on_alone_closed(uv_handle_t *h)
{
	free(h->data);
}

static void on_alone_done(uv_async_t *uv)
{
	struct alone *w = uv->data;

	(void)pthread_join(w->thread, NULL); /* it has nothing more to do */
	w->done(w->user);
	uv_close((uv_handle_t *)uv, on_alone_closed);
}

int loop_work_alone(struct loop *l, void (*run)(void *user), void (*done)(void *user), void *user)
{
	struct alone *w = malloc(sizeof(*w));
	int r;

	if (!w)
		return -ENOMEM;
	*w = (struct alone){ .run = run, .done = done, .user = user };
	w->uv.data = w;
	r = uv_async_init(&l->uv, &w->uv, on_alone_done);
	if (r < 0) {
		free(w);
		return r;
	}
	r = -pthread_create(&w->thread, NULL, run_alone, w);
	if (r < 0)
		uv_close((uv_handle_t *)&w->uv, on_alone_closed);
	return r;
}
