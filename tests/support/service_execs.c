#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/output.h"
#include "service_impl.h"

struct execution {
	struct list node;
	struct sandboxes *all;
	struct sandbox *sb;
	unsigned refs;
	char id[ID_LEN + 1], sandbox_id[ID_LEN + 1];
	enum execution_kind kind;
	enum execution_state state;
	unsigned flags;
	int exit_code;
	struct output *output;
	struct list readers, waits;
	size_t taken; /* of standard input since the last room */
	bool is_open;
	void (*room)(void *user);
	void *room_user;
};

struct exec_wait {
	struct list node;
	void (*ended)(void *user, struct execution *x);
	void *user;
	struct execution *x;
	struct loop_task task;
};

struct exec_reader {
	struct list node;
	struct execution *x;
	uint64_t at;
	void (*readable)(void *user);
	void *user;
	struct loop_task task;
};

struct execution *exec_ref(struct execution *x)
{
	x->refs++;
	return x;
}

void exec_unref(struct execution *x)
{
	if (--x->refs > 0)
		return;
	list_remove(&x->node);
	(void)output_free(x->output);
	free(x);
}

void service_execs_done(struct sandboxes *s)
{
	while (!list_is_empty(&s->execs)) {
		struct execution *x = LIST_ENTRY(s->execs.next, struct execution, node);

		if (x->refs != 1)
			abort(); /* somebody forgot to let go of it */
		exec_unref(x);
	}
}

struct execution *service_last(struct sandboxes *s)
{
	return list_is_empty(&s->execs) ? NULL : LIST_ENTRY(s->execs.prev, struct execution, node);
}

static void tell_readers(struct execution *x)
{
	LIST_FOREACH (&x->readers, r, struct exec_reader, node)
		loop_task_post(x->all->loop, &r->task);
}

void service_write(struct execution *x, int stream, const char *data, size_t n)
{
	if (output_append(x->output, stream, data, n) < 0)
		abort();
	tell_readers(x);
}

void service_end(struct execution *x, int exit_code)
{
	x->state = EXECUTION_EXITED;
	x->exit_code = exit_code;
	tell_readers(x);
	LIST_FOREACH (&x->waits, w, struct exec_wait, node)
		loop_task_post(x->all->loop, &w->task);
}

void service_room(struct execution *x)
{
	x->taken = 0;
	if (x->room)
		x->room(x->room_user);
}

/* ---- starting ---- */

static void run_start(struct service_call *c)
{
	struct execution *x = c->x;
	struct sandboxes *all = c->all;
	const struct err *err = service_err(c);

	if (!err && all->auto_stdout)
		service_write(x, 1, all->auto_stdout, strlen(all->auto_stdout));
	if (!err && all->auto_stderr)
		service_write(x, 2, all->auto_stderr, strlen(all->auto_stderr));
	if (!err && all->auto_end)
		service_end(x, all->exit_code);
	c->cb.exec(c->user, err ? NULL : x, err);
	if (err)
		exec_unref(x);
}

void exec_start(struct sandbox *sb, const struct exec_request *req, exec_cb cb, void *user)
{
	struct sandboxes *all = sb->all;
	struct service_call *c = service_call(all, run_start, user);
	struct execution *x = calloc(1, sizeof(*x));

	if (!x)
		abort();
	x->all = all;
	x->sb = sb;
	x->refs = 1;
	id_make(x->id);
	(void)str_copy(x->sandbox_id, sizeof(x->sandbox_id), sb->id);
	x->kind = req->kind;
	x->exit_code = -1;
	x->is_open = req->has_stdin || req->kind == EXECUTION_PTY;
	x->flags = req->background ? EXECUTION_BACKGROUND : 0;
	x->output = output_create(all->keep);
	list_init(&x->readers);
	list_init(&x->waits);
	list_push_back(&all->execs, &x->node);
	all->argc = req->argc;
	all->n_env = req->n_env;
	all->timeout_ms = req->timeout_ms;
	all->background = req->background;
	all->has_stdin = req->has_stdin;
	all->rows = req->rows;
	all->cols = req->cols;
	(void)str_copy(all->language, sizeof(all->language), req->language ? req->language : "");
	(void)str_copy(all->command, sizeof(all->command),
		       req->command ? req->command
		       : req->code  ? req->code
				    : "");
	c->x = x;
	c->cb.exec = cb;
}

void exec_info(const struct execution *x, struct exec_info *ret)
{
	*ret = (struct exec_info){
		.id = x->id,
		.sandbox_id = x->sandbox_id,
		.reason = "",
		.kind = x->kind,
		.state = x->state,
		.flags = x->flags,
		.content = "{}",
		.exit_code = x->exit_code,
		.started_ms = 1767323045678,
		.ended_ms = x->state == EXECUTION_RUNNING ? 0 : 1767323045680,
		.wall_us = 2000,
		.output_begin = output_begin(x->output),
		.output_end = output_end(x->output),
	};
}

const struct output *exec_output(const struct execution *x)
{
	return x->output;
}

struct execution *exec_find(struct sandbox *sb, const char *id)
{
	LIST_FOREACH (&sb->all->execs, x, struct execution, node)
		if (x->sb == sb && strcmp(x->id, id) == 0 && x->state == EXECUTION_RUNNING)
			return x;
	return NULL;
}

static void run_get(struct service_call *c)
{
	struct exec_info info;

	if (c->x)
		exec_info(c->x, &info);
	c->cb.exec_info(c->user, c->x ? &info : NULL, c->x ? c->x->output : NULL, service_err(c));
}

void exec_get(struct sandboxes *all, const char *sandbox_id, const char *owner, const char *id,
	      void (*cb)(void *user, const struct exec_info *info, const struct output *output,
			 const struct err *err),
	      void *user)
{
	struct service_call *c = service_call(all, run_get, user);

	c->cb.exec_info = cb;
	LIST_FOREACH (&all->execs, x, struct execution, node)
		if (strcmp(x->id, id) == 0 && strcmp(x->sandbox_id, sandbox_id) == 0 &&
		    (!owner || strcmp(x->sb->owner, owner) == 0))
			c->x = x;
	if (!c->x)
		c->err = (struct err){ ENOENT, "there is no such execution" };
}

static void run_list(struct service_call *c)
{
	struct exec_info infos[8];
	size_t n = 0;

	LIST_FOREACH (&c->all->execs, x, struct execution, node)
		if (n < 8)
			exec_info(x, &infos[n++]);
	c->cb.exec_list(c->user, infos, n, false, service_err(c));
}

void exec_list(struct sandboxes *all, const char *sandbox_id, const char *owner, int64_t before_ms,
	       const char *before_id, size_t limit,
	       void (*cb)(void *user, const struct exec_info *infos, size_t n, bool more,
			  const struct err *err),
	       void *user)
{
	struct service_call *c = service_call(all, run_list, user);

	(void)sandbox_id;
	(void)owner;
	(void)before_ms;
	(void)before_id;
	(void)limit;
	c->cb.exec_list = cb;
}

/* ---- waiting and reading ---- */

void exec_unwait(struct exec_wait *w)
{
	if (!w)
		return;
	loop_task_cancel(&w->task);
	list_remove(&w->node);
	exec_unref(w->x);
	free(w);
}

static void run_wait(void *user)
{
	struct exec_wait *w = user;

	w->ended(w->user, w->x);
	exec_unwait(w);
}

struct exec_wait *exec_wait(struct execution *x, void (*ended)(void *user, struct execution *x),
			    void *user)
{
	struct exec_wait *w = calloc(1, sizeof(*w));

	if (!w)
		abort();
	w->ended = ended;
	w->user = user;
	w->x = exec_ref(x);
	loop_task_init(&w->task, run_wait, w);
	list_push_back(&x->waits, &w->node);
	if (x->state != EXECUTION_RUNNING)
		loop_task_post(x->all->loop, &w->task);
	return w;
}

static void run_readable(void *user)
{
	struct exec_reader *r = user;

	r->readable(r->user);
}

struct exec_reader *exec_reader_open(struct execution *x, uint64_t from,
				     void (*readable)(void *user), void *user)
{
	struct exec_reader *r = calloc(1, sizeof(*r));

	if (!r)
		abort();
	r->x = exec_ref(x);
	r->at = from;
	r->readable = readable;
	r->user = user;
	loop_task_init(&r->task, run_readable, r);
	list_push_back(&x->readers, &r->node);
	return r;
}

int exec_read(struct exec_reader *r, struct output_chunk *ret, uint64_t *ret_omitted)
{
	if (output_read(r->x->output, r->at, ret, ret_omitted)) {
		if (ret->len > EXEC_READ_MAX)
			ret->len = EXEC_READ_MAX;
		r->at = ret->seq + ret->len;
		return 1;
	}
	return r->x->state == EXECUTION_RUNNING ? 0 : -ENODATA;
}

void exec_reader_close(struct exec_reader *r)
{
	if (!r)
		return;
	loop_task_cancel(&r->task);
	list_remove(&r->node);
	exec_unref(r->x);
	free(r);
}

/* ---- changing ---- */

int exec_stdin(struct execution *x, const void *data, size_t n)
{
	struct sandboxes *all = x->all;
	size_t have = strlen(all->stdin_text);

	if (x->state != EXECUTION_RUNNING)
		return -ESRCH;
	if (!x->is_open)
		return -EPIPE;
	if (x->taken >= all->stdin_room)
		return -EAGAIN;
	x->taken += n;
	for (size_t i = 0; i < n && have + 1 < sizeof(all->stdin_text); i++)
		all->stdin_text[have++] = ((const char *)data)[i];
	all->stdin_text[have] = '\0';
	return 0;
}

int exec_stdin_end(struct execution *x)
{
	if (!x->is_open)
		return -EPIPE;
	x->is_open = false;
	return 0;
}

bool exec_stdin_is_sent(const struct execution *x)
{
	return !x->all->stdin_unsent;
}

void exec_on_room(struct execution *x, void (*room)(void *user), void *user)
{
	x->room = room;
	x->room_user = user;
}

int exec_signal(struct execution *x, int signo, bool tree)
{
	x->all->signals++;
	x->all->signo = signo;
	x->all->tree = tree;
	return 0;
}

int exec_resize(struct execution *x, uint16_t rows, uint16_t cols)
{
	x->all->rows = rows;
	x->all->cols = cols;
	return 0;
}

int exec_cancel(struct execution *x)
{
	x->all->cancels++;
	x->flags |= EXECUTION_CANCELLED;
	if (x->state == EXECUTION_RUNNING)
		service_end(x, 143);
	return 0;
}
