/* Contexts as objects: made, found, ended, begun anew. */
#include "sandbox/context.h"

#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/announce.h"
#include "sandbox/check.h"
#include "sandbox/context_impl.h"

/* ---- objects ---- */

struct context *context_alloc(struct sandbox *sb)
{
	struct context *c = calloc(1, sizeof(*c));

	if (!c)
		return NULL;
	c->sb = sb;
	c->refs = 1;
	list_init(&c->node);
	list_init(&c->queue);
	c->out.max = CONTEXT_CODE_MAX + CONTEXT_ENV_MAX + 4096;
	if (loop_timer_create(sb->all->loop, context_overdue, c, &c->deadline) < 0 ||
	    loop_timer_create(sb->all->loop, context_retry, c, &c->retry) < 0) {
		context_unref(c);
		return NULL;
	}
	return c;
}

struct context *context_ref(struct context *c)
{
	c->refs++;
	return c;
}

void context_unref(struct context *c)
{
	if (--c->refs > 0)
		return;
	(void)loop_timer_free(c->deadline);
	(void)loop_timer_free(c->retry);
	context_frames_done(&c->frames[0]);
	context_frames_done(&c->frames[1]);
	buf_done(&c->out);
	pairs_done(&c->env);
	free(c);
}

/* Leaves what it follows. */
static void unfollow(struct context *c)
{
	struct execution *x = TAKE(c->x);

	if (!x)
		return;
	exec_on_room(x, NULL, NULL);
	exec_unwait(TAKE(c->wait));
	exec_reader_close(TAKE(c->reader));
	exec_unref(x);
}

/* Out of its sandbox; c may be gone afterwards. */
static void leave(struct context *c)
{
	context_set_state(c, CONTEXT_FAILED);
	context_set_deadline(c, 0);
	loop_timer_stop(c->retry);
	unfollow(c);
	context_env_forget(c);
	list_remove(&c->node);
	c->sb->n_contexts--;
	context_unref(c);
}

void contexts_drop(struct sandbox *sb)
{
	LIST_FOREACH (&sb->contexts, c, struct context, node) {
		context_drop_runs(c);
		c->cb = NULL;
		c->is_env_kept = false; /* it stays for whoever finds the context again */
		leave(c);
	}
}

void context_set_state(struct context *c, enum context_state s)
{
	bool is_quiet = s == CONTEXT_IDLE;

	c->state = s;
	if (is_quiet == c->is_quiet)
		return;
	c->is_quiet = is_quiet;
	if (is_quiet)
		c->sb->n_quiet++;
	else
		c->sb->n_quiet--;
	sandbox_touch(c->sb);
	reaper_note(c->sb);
}

static void tell_start(struct context *c, const struct err *err)
{
	context_cb cb = TAKE(c->cb);

	if (cb)
		cb(c->user, err ? NULL : c, err);
}

/* ---- its interpreter ---- */

static void fail(struct context *c, const char *fmt, ...) __attribute__((format(printf, 2, 3)));

static void fail(struct context *c, const char *fmt, ...)
{
	struct err err = { 0 };
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(c->reason, sizeof(c->reason), fmt, ap); /* a long one is cut */
	va_end(ap);
	context_set_state(c, CONTEXT_FAILED);
	context_set_deadline(c, 0);
	if (c->sb->state == SANDBOX_RUNNING) /* else it goes with its sandbox */
		announce_context(c->sb, c, "context.failed", c->reason);
	(void)err_set(&err, EBUSY, "%s", c->reason);
	tell_start(c, &err);
	context_lose_runs(c, c->reason);
}

#define EXIT_NOT_FOUND 127 /* of a shell */

static void set_death(const struct context *c, const struct exec_info *info, char *text,
		      size_t size)
{
	const char *why = info->flags & EXECUTION_OOM_KILLED ? " (out of memory)" : "";
	const char *program = context_program(c->language);

	if (c->is_waiting && program && info->exit_code == EXIT_NOT_FOUND) {
		(void)str_format(text, size, "%s is not available in this template: it has no %s",
				 context_language_name(c->language), program);
		return;
	}
	if (info->state != EXECUTION_EXITED)
		(void)str_format(text, size, "%.200s", info->reason);
	else if (info->signal)
		(void)str_format(text, size, "the interpreter was killed by signal %d%s",
				 info->signal, why);
	else
		(void)str_format(text, size, "the interpreter exited with code %d%s",
				 info->exit_code, why);
}

static void start(struct context *c);
static void fail_start(struct context *c, const struct err *err);

static void on_ended(void *user, struct execution *x)
{
	struct context *c = context_ref(user);
	char why[SANDBOX_TEXT_MAX + 1];
	struct err err = { 0 };
	struct exec_info info;

	exec_info(x, &info);
	set_death(c, &info, why, sizeof(why));
	c->wait = NULL;
	context_pump(c); /* its last words */
	unfollow(c);
	if (c->is_deleted) {
		leave(c);
	} else if (c->is_restarting && sandbox_check_usable(c->sb, NULL) == 0) {
		start(c);
	} else if (c->is_waiting) {
		(void)err_set(&err, EINVAL, "%s", why);
		fail_start(c, &err);
	} else {
		c->is_restarting = false;
		fail(c, "%s", why);
	}
	context_unref(c);
}

static void on_readable(void *user)
{
	context_pump(user);
}

int context_follow(struct context *c, struct execution *x)
{
	struct exec_info info;

	exec_info(x, &info);
	(void)str_copy(c->execution_id, sizeof(c->execution_id), info.id);
	c->x = exec_ref(x);
	c->wait = exec_wait(x, on_ended, c);
	c->reader = exec_reader_open(x, 0, on_readable, c);
	if (c->wait && c->reader)
		return 0;
	unfollow(c);
	return -ENOMEM;
}

/* A new one leaves nothing behind; one that was there stays, failed, and may be tried again. */
static void fail_start(struct context *c, const struct err *err)
{
	c->is_restarting = c->is_waiting = false;
	if (!c->is_new) {
		fail(c, "%.200s", err->text);
		return;
	}
	announce_context(c->sb, c, "context.failed", err->text);
	context_lose_runs(c, err->text);
	(void)context_ref(c);
	leave(c); /* first: whoever hears of it may make another of this name */
	tell_start(c, err);
	context_unref(c);
}

/* What became of it; err is filled when it does not run, and x is then not followed. */
static void take_start(struct context *c, struct execution *x, struct err *err)
{
	struct exec_info info;

	exec_info(x, &info);
	if (info.state == EXECUTION_FAILED)
		(void)err_set(err, EINVAL, "%.200s", info.reason);
	else if (c->is_deleted)
		(void)exec_cancel(x);
	else if (context_follow(c, x) < 0) {
		(void)exec_cancel(x);
		(void)err_sys(err, ENOMEM, "context");
	}
}

void context_started(struct context *c)
{
	bool is_first = c->is_new;

	c->is_new = c->is_restarting = c->is_waiting = false;
	context_set_state(c, CONTEXT_IDLE);
	announce_context(c->sb, c, is_first ? "context.created" : "context.restarted", "");
	tell_start(c, NULL);
	context_next(c);
}

static void on_started(void *user, struct execution *x, const struct err *why)
{
	struct context *c = context_ref(user);
	struct err err = why ? *why : (struct err){ 0 };

	c->is_starting = false;
	if (x)
		take_start(c, x, &err);
	if (c->is_deleted) {
		leave(c);
	} else if (err.code) {
		fail_start(c, &err);
	} else if (context_program(c->language)) {
		c->is_waiting = true;
		context_expect_mark(c);
	} else {
		context_started(c);
	}
	context_unref(c);
}

static void start(struct context *c)
{
	_free_ char *content = NULL;
	struct exec_request req = {
		.kind = EXECUTION_CONTEXT,
		.cwd = c->cwd,
		.env = c->env.items,
		.n_env = c->env.len,
		.has_stdin = true,
		.background = true,
		.keep = CONTEXT_KEEP,
	};

	context_set_state(c, CONTEXT_STARTING);
	c->reason[0] = '\0';
	c->is_unmarked = c->is_overdue = false;
	c->count = 0;
	loop_timer_stop(c->retry);
	buf_clear(&c->out);
	context_frames_begin(&c->frames[0], "", 0);
	context_frames_begin(&c->frames[1], "", 0);
	if (context_content(c, &content) < 0) { /* NOTE: from inside the call, for want of memory */
		fail_start(c, &(struct err){ ENOMEM, "context" });
		return;
	}
	req.content = content;
	context_driver(c->language, &req);
	c->is_starting = true;
	exec_start(c->sb, &req, on_started, c);
}

void context_stop(struct context *c)
{
	context_set_state(c, CONTEXT_STARTING);
	context_set_deadline(c, 0);
	loop_timer_stop(c->retry);
	if (c->is_starting)
		return; /* goes on when it has */
	if (!c->x) {
		if (c->is_deleted)
			leave(c);
		else
			start(c);
		return;
	}
	/* What cannot be reached now ends with its box, or is found again and ended then. */
	if (exec_cancel(c->x) < 0)
		loop_timer_start(c->retry, CONTEXT_RETRY_MS, 0);
}

/* ---- what callers do ---- */

static void tell_refused(void (*cb)(void), void *user, const struct err *err)
{
	((context_cb)cb)(user, NULL, err);
}

static void refuse(struct sandboxes *all, context_cb cb, void *user, const struct err *err)
{
	later_refuse(all, tell_refused, (void (*)(void))cb, user, err);
}

static int check(struct sandbox *sb, const struct context_request *req, struct err *err)
{
	int r = sandbox_check_usable(sb, err);

	if (r < 0)
		return r;
	if (sb->n_contexts >= CONTEXTS_MAX)
		return err_set(err, EAGAIN, "%u contexts live in this sandbox, the limit",
			       CONTEXTS_MAX);
	if (strlen(req->name) > CONTEXT_NAME_MAX)
		return err_set(err, EINVAL, "name: at most %u bytes", CONTEXT_NAME_MAX);
	if (req->name[0] != '\0' && context_find(sb, req->name))
		return err_set(err, EEXIST, "a context '%s' is there already", req->name);
	if (strlen(req->cwd) > CONTEXT_CWD_MAX)
		return err_set(err, EINVAL, "cwd: at most %u bytes", CONTEXT_CWD_MAX);
	return check_env(req->env, req->n_env, err);
}

void context_create(struct sandbox *sb, const struct context_request *req, context_cb cb,
		    void *user)
{
	struct context *c = NULL;
	struct err err = { 0 };
	int r = check(sb, req, &err);

	if (r == 0)
		c = context_alloc(sb);
	if (r == 0 && (!c || pairs_copy(req->env, req->n_env, &c->env) < 0))
		(void)err_sys(&err, ENOMEM, "context");
	if (err.code || !c) {
		if (c)
			context_unref(c);
		refuse(sb->all, cb, user, &err);
		return;
	}
	id_make(c->id);
	(void)str_copy(c->name, sizeof(c->name), req->name); /* fit: checked */
	(void)str_copy(c->cwd, sizeof(c->cwd), req->cwd);
	c->language = req->language;
	c->created_ms = wall_ms(sb->all);
	c->is_new = true;
	c->cb = cb;
	c->user = user;
	r = context_env_keep(c);
	if (r < 0) {
		err = record_error(r);
		context_unref(c);
		refuse(sb->all, cb, user, &err);
		return;
	}
	list_push_back(&sb->contexts, &c->node);
	sb->n_contexts++;
	start(c);
}

struct context *context_find(struct sandbox *sb, const char *id_or_name)
{
	LIST_FOREACH (&sb->contexts, c, struct context, node)
		if (!c->is_deleted && (strcmp(c->id, id_or_name) == 0 ||
				       (c->name[0] && strcmp(c->name, id_or_name) == 0)))
			return c;
	return NULL;
}

void context_info(const struct context *c, struct context_info *ret)
{
	*ret = (struct context_info){
		.id = c->id,
		.sandbox_id = c->sb->id,
		.execution_id = c->execution_id,
		.name = c->name,
		.cwd = c->cwd,
		.reason = c->reason,
		.language = c->language,
		.state = c->state,
		.created_ms = c->created_ms,
		.runs = c->runs,
		.queued = c->n_queued,
	};
}

size_t context_list(struct sandbox *sb, struct context_info *infos)
{
	size_t n = 0;

	LIST_FOREACH (&sb->contexts, c, struct context, node)
		if (!c->is_deleted && n < CONTEXTS_MAX)
			context_info(c, &infos[n++]);
	return n;
}

struct ending { /* of what callers asked for: from the next turn, as runs are told of it */
	struct later later;
	struct context *c; /* owned reference */
	const char *why;   /* of runs that are lost by it; NULL: there were none */
};

static void run_ending(struct later *l, bool is_over)
{
	struct ending *e = LIST_ENTRY(l, struct ending, later);

	if (!is_over) {
		if (e->why)
			context_lose_runs(e->c, e->why);
		context_stop(e->c);
	}
	context_unref(e->c);
	free(e);
}

static int end_later(struct context *c, const char *why)
{
	struct ending *e = calloc(1, sizeof(*e));

	if (!e)
		return -ENOMEM;
	e->c = context_ref(c);
	e->why = why;
	later_post(c->sb->all, &e->later, run_ending);
	return 0;
}

void context_delete(struct context *c)
{
	sandbox_touch(c->sb);
	if (c->is_deleted)
		return;
	c->is_deleted = true;
	if (end_later(c, "the context was deleted") < 0)
		c->is_deleted = false; /* as if it had not been asked for: it is still listed */
	else
		announce_context(c->sb, c, "context.deleted", "");
}

void context_restart(struct context *c, context_cb cb, void *user)
{
	struct err err = { 0 };
	int r = sandbox_check_usable(c->sb, &err);

	sandbox_touch(c->sb);
	if (r == 0 && c->cb)
		r = err_set(&err, EBUSY, "the context is starting");
	if (r == 0 && c->is_env_lost)
		r = err_set(&err, EBUSY,
			    "the context's environment is not known any more: make another");
	/* One that restarts by itself, because a run did not end in time, is the same restart. */
	if (r == 0 && !c->is_restarting &&
	    end_later(c, c->state == CONTEXT_FAILED ? NULL : "the context was restarted") < 0)
		r = err_sys(&err, ENOMEM, "context");
	if (r < 0) {
		refuse(c->sb->all, cb, user, &err);
		return;
	}
	c->is_restarting = true;
	context_set_state(c, CONTEXT_STARTING);
	c->cb = cb;
	c->user = user;
}

int context_interrupt(struct context *c)
{
	sandbox_touch(c->sb);
	if (c->run)
		c->run->is_interrupted = true;
	if (!c->x || c->state != CONTEXT_BUSY)
		return 0;
	/* A shell waits for its children, so they must hear it, too. */
	return exec_signal(c->x, SIGINT, c->language == CONTEXT_BASH);
}
