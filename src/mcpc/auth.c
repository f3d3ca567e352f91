#include "mcpc/auth.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/list.h"
#include "base/log.h"
#include "base/str.h"
#include "crypto/secret.h"
#include "httpc/url.h"
#include "loop/loop.h"
#include "mcpc/auth_file.h"
#include "outbound/courier.h"

struct wait {
	struct list node;
	void (*done)(void *user, const struct err *err);
	void *user;
	struct err err; /* code 0: there is a token */
};

struct auth {
	struct mcpc_auth base; /* first: what transports know */
	struct mcpc_auth_options is;
	struct oauth *oauth;         /* owned; NULL where a token is fixed */
	struct secret *fixed;        /* owned; NULL: none */
	struct courier_job *job;     /* under way; NULL */
	struct loop_task step;       /* nobody is called back from inside of their own call */
	struct loop_timer *patience; /* owned: for whoever has a browser open */
	struct list waits, told; /* struct wait, owned: for what comes, and with what has come */
	struct loop_task tell;
	size_t n_waits;
	bool is_busy;         /* a token is being got */
	char *assertion_file; /* owned; NULL */
	uint64_t number;      /* of the token: one more with each */
	void (*opened)(void *user, const char *url, const struct err *err);
	void *opened_user;
};

static struct auth *of(struct mcpc_auth *a)
{
	return (struct auth *)(void *)a;
}

static int64_t now_s(void)
{
	return clock_wall_ms() / 1000;
}

/* ---- telling ---- */

static void keep(struct auth *a)
{
	struct buf b = { 0 };

	if (a->is.keep && oauth_save(a->oauth, &b) == 0)
		a->is.keep(a->is.user, strcmp(buf_str(&b), "{}") == 0 ? NULL : buf_str(&b));
	if (b.data)
		explicit_bzero(b.data, b.cap);
	buf_done(&b);
}

static void tell_opened(struct auth *a, const char *url, const struct err *err)
{
	void (*opened)(void *user, const char *url, const struct err *err) = a->opened;

	a->opened = NULL;
	if (opened)
		opened(a->opened_user, url, err);
}

/* One at a time: whoever is told may ask again, forget others, or free all of this. */
static void tell(void *user)
{
	struct auth *a = user;
	struct wait *w;
	struct wait one;

	if (list_is_empty(&a->told))
		return;
	w = LIST_ENTRY(a->told.next, struct wait, node);
	list_remove(&w->node);
	one = *w;
	free(w);
	if (!list_is_empty(&a->told))
		loop_task_post(a->is.loop, &a->tell);
	one.done(one.user, one.err.code ? &one.err : NULL);
}

static void finish(struct auth *a, const struct err *err)
{
	loop_timer_stop(a->patience);
	a->is_busy = false;
	(void)oauth_set_redirect(a->oauth, NULL, NULL);
	keep(a);
	LIST_FOREACH (&a->waits, w, struct wait, node) {
		w->err = err ? *err : (struct err){ 0 };
		list_remove(&w->node);
		list_push_back(&a->told, &w->node);
	}
	a->n_waits = 0;
	loop_task_post(a->is.loop, &a->tell);
	tell_opened(a, NULL, err);
}

/* ---- going on ---- */

static void fetched(void *user, const struct courier_answer *answer)
{
	struct auth *a = user;
	struct err err = answer->err;

	a->job = NULL;
	if (answer->status == 0) /* what a server has said stays out of our errors */
		oauth_answer(a->oauth, 0, NULL, 0, now_s(), &err);
	else
		oauth_answer(a->oauth, answer->status, buf_str(&answer->body), answer->body.len,
			     now_s(), NULL);
	loop_task_post(a->is.loop, &a->step);
}

static int fetch(struct auth *a, const struct oauth_todo *todo)
{
	const char *headers[3] = { "Accept: application/json", todo->authorization, NULL };
	struct courier_request req = { .method = todo->method,
				       .url = todo->url,
				       .headers = headers,
				       .type = todo->type,
				       .body = todo->body,
				       .body_len = todo->body_len,
				       .max = OAUTH_BODY_MAX,
				       .timeout_ms = MCPC_AUTH_FETCH_MS,
				       .public_only = todo->public_only,
				       .closed = todo->is_foreign ? a->is.closed : NULL };

	return courier_open(a->is.courier, &req, fetched, a, &a->job);
}

static void step(void *user)
{
	struct auth *a = user;
	struct oauth_todo todo;
	struct err err = { 0 };
	int r;

	oauth_todo(a->oauth, &todo);
	switch (todo.step) {
	case OAUTH_FETCH:
		r = fetch(a, &todo);
		if (r == 0)
			return;
		(void)err_sys(&err, r, "oauth");
		oauth_answer(a->oauth, 0, NULL, 0, now_s(), &err);
		loop_task_post(a->is.loop, &a->step);
		return;
	case OAUTH_OPEN:
		loop_timer_start(a->patience, a->is.login_ms ? a->is.login_ms : MCPC_AUTH_LOGIN_MS,
				 0);
		keep(a); /* a registration is in it, perhaps */
		if (a->opened)
			tell_opened(a, todo.url, NULL);
		else if (a->is.open)
			a->is.open(a->is.user, todo.url);
		return;
	case OAUTH_READY:
		a->number++;
		finish(a, NULL);
		return;
	case OAUTH_FAILED:
	case OAUTH_IDLE:
		(void)err_copy(&err, todo.err);
		finish(a, &err);
		return;
	}
}

static void stop(struct auth *a)
{
	if (a->job)
		courier_cancel(a->is.courier, a->job);
	a->job = NULL;
	loop_task_cancel(&a->step);
	loop_timer_stop(a->patience);
}

static void give_up(void *user)
{
	struct auth *a = user;
	struct err err = { 0 };

	(void)err_set(&err, ETIMEDOUT, "nobody has logged in in time");
	stop(a);
	oauth_cancel(a->oauth, &err);
	finish(a, &err);
}

/* As it is now. A small file of the operator's, next to what the daemon itself is made of: there is
 * no use in a thread for it. */
static int read_assertion(struct auth *a, struct err *err)
{
	struct buf b = { .max = OAUTH_TOKEN_MAX };
	int r = 0;

	if (!a->assertion_file)
		return 0;
	r = auth_file_read(a->assertion_file, &b);
	if (r == 0)
		r = oauth_set_assertion(a->oauth, buf_str(&b));
	auth_file_wipe(&b);
	return r < 0 ? err_sys(err, r, "'%.100s'", a->assertion_file) : 0;
}

static int begin(struct auth *a, int status, const char *challenge, struct err *err)
{
	int r;

	stop(a);
	r = read_assertion(a, err);
	if (r < 0)
		return r;
	r = oauth_begin(a->oauth, status, challenge, err);
	if (r < 0)
		return r;
	a->is_busy = true;
	loop_task_post(a->is.loop, &a->step);
	return 0;
}

/* ---- what transports ask ---- */

static const char *token(struct mcpc_auth *base, uint64_t *ret_number)
{
	struct auth *a = of(base);

	*ret_number = a->number;
	return a->fixed ? secret_reveal(a->fixed, NULL) : oauth_token(a->oauth, now_s());
}

static int add_wait(struct auth *a, struct list *to,
		    void (*done)(void *user, const struct err *err), void *user)
{
	struct wait *w = a->n_waits < MCPC_AUTH_WAITS_MAX ? calloc(1, sizeof(*w)) : NULL;

	if (!w)
		return -EAGAIN;
	w->done = done;
	w->user = user;
	list_push_back(to, &w->node);
	if (to == &a->waits)
		a->n_waits++;
	else
		loop_task_post(a->is.loop, &a->tell);
	return 0;
}

static size_t drop(struct list *waits, void *user)
{
	size_t n = 0;

	LIST_FOREACH (waits, w, struct wait, node) {
		if (user && w->user != user)
			continue;
		list_remove(&w->node);
		free(w);
		n++;
	}
	return n;
}

static void forget(struct mcpc_auth *base, void *user)
{
	struct auth *a = of(base);

	a->n_waits -= drop(&a->waits, user);
	(void)drop(&a->told, user);
}

static int refused(struct mcpc_auth *base, uint64_t number, int status, const char *challenge,
		   void (*done)(void *user, const struct err *err), void *user)
{
	struct auth *a = of(base);
	struct err err = { 0 };
	int r;

	if (a->fixed)
		return -EACCES;
	/* An answer that was on its way while another one came: that one has not been tried. */
	if (!a->is_busy && number != a->number && oauth_token(a->oauth, now_s()))
		return add_wait(a, &a->told, done, user);
	r = a->is_busy ? 0 : begin(a, status, challenge, &err);
	if (r < 0)
		log_debug("mcp", "%s", err.text);
	return r < 0 ? r : add_wait(a, &a->waits, done, user);
}

/* ---- somebody with a browser ---- */

/* A code goes to a browser's own machine, and nowhere else. */
static bool is_here(const char *redirect)
{
	struct url url;

	return strncmp(redirect, "http://", 7) == 0 && url_parse(redirect, &url, NULL) == 0 &&
	       url.loopback;
}

int mcpc_auth_login(struct mcpc_auth *base, const char *redirect,
		    void (*opened)(void *user, const char *url, const struct err *err), void *user,
		    struct err *err)
{
	struct auth *a = of(base);
	int r;

	if (a->fixed || a->is.oauth.grant != OAUTH_GRANT_CODE)
		return err_set(err, ENOTSUP, "nobody logs in at this server");
	if (!is_here(redirect))
		return err_set(err, EINVAL, "redirect_uri: want http://127.0.0.1:PORT/...");
	r = oauth_set_redirect(a->oauth, redirect, err);
	if (r < 0)
		return r;
	if (a->opened) {
		struct err other = { .code = ECANCELED, .text = "somebody else logs in" };

		tell_opened(a, NULL, &other);
	}
	a->opened = opened;
	a->opened_user = user;
	r = begin(a, 0, NULL, err);
	if (r < 0)
		a->opened = NULL;
	return r;
}

int mcpc_auth_redirected(struct mcpc_auth *base, const char *query,
			 void (*done)(void *user, const struct err *err), void *user,
			 struct err *err)
{
	struct auth *a = of(base);
	int r;

	if (a->fixed)
		return err_set(err, ENOTSUP, "nobody logs in at this server");
	r = oauth_redirected(a->oauth, query, err);
	if (r < 0)
		return r;
	r = done ? add_wait(a, &a->waits, done, user) : 0;
	loop_task_post(a->is.loop, &a->step);
	return r < 0 ? err_sys(err, r, "oauth") : 0;
}

void mcpc_auth_logout(struct mcpc_auth *base)
{
	struct err err = { .code = ECANCELED, .text = "somebody has logged out" };
	struct auth *a = of(base);

	if (a->fixed)
		return;
	stop(a);
	(void)oauth_load(a->oauth, "{}", 2, NULL);
	a->number++;
	if (a->is_busy)
		finish(a, &err);
	else
		keep(a);
}

void mcpc_auth_leave(struct mcpc_auth *base, void *user)
{
	struct auth *a = of(base);

	forget(base, user);
	if (a->opened && a->opened_user == user)
		a->opened = NULL;
}

/* ---- making one ---- */

bool mcpc_auth_is_ready(const struct mcpc_auth *base)
{
	const struct auth *a = (const struct auth *)(const void *)base;

	return a->fixed || a->is.oauth.grant != OAUTH_GRANT_CODE || oauth_has_tokens(a->oauth);
}

int mcpc_auth_load(struct mcpc_auth *base, const char *json, struct err *err)
{
	if (of(base)->fixed || of(base)->is_busy)
		return err_set(err, ENOTSUP, "there is nothing to load");
	return oauth_load(of(base)->oauth, json, strlen(json), err);
}

static struct auth *alloc(void)
{
	static const struct mcpc_auth_ops ops = { .token = token,
						  .refused = refused,
						  .forget = forget };
	struct auth *a = calloc(1, sizeof(*a));

	if (!a)
		return NULL;
	a->base.ops = &ops;
	list_init(&a->waits);
	list_init(&a->told);
	loop_task_init(&a->step, step, a);
	loop_task_init(&a->tell, tell, a);
	return a;
}

int mcpc_auth_create_fixed(const char *token_text, struct mcpc_auth **ret, struct err *err)
{
	struct auth *a;

	for (const char *p = token_text; *p; p++) {
		if (*p <= ' ' || *p > '~')
			return err_set(err, EINVAL, "auth.token: has bytes that no token has");
	}
	a = alloc();
	if (a)
		a->fixed = secret_create(token_text, strlen(token_text));
	if (!a || !a->fixed) {
		free(a);
		return err_sys(err, ENOMEM, "auth");
	}
	*ret = &a->base;
	return 0;
}

int mcpc_auth_create(const struct mcpc_auth_options *o, struct mcpc_auth **ret, struct err *err)
{
	struct auth *a = alloc();
	int r = 0;

	if (!a)
		return err_sys(err, ENOMEM, "oauth");
	a->is = *o;
	a->is.assertion_file = NULL;
	a->is.oauth = (struct oauth_options){ .grant = o->oauth.grant }; /* the rest is theirs */
	if (o->assertion_file) {
		a->assertion_file = str_dup(str_of(o->assertion_file));
		if (!a->assertion_file)
			r = err_sys(err, ENOMEM, "oauth");
	}
	if (r == 0)
		r = oauth_create(&o->oauth, &a->oauth, err);
	if (r == 0) {
		r = loop_timer_create(o->loop, give_up, a, &a->patience);
		if (r < 0)
			(void)err_sys(err, r, "oauth");
	}
	if (r < 0) {
		a->is.release = NULL; /* it stays theirs */
		(void)mcpc_auth_free(&a->base);
		return r;
	}
	*ret = &a->base;
	return 0;
}

struct mcpc_auth *mcpc_auth_free(struct mcpc_auth *base)
{
	struct auth *a = of(base);

	if (!a)
		return NULL;
	if (a->job)
		courier_cancel(a->is.courier, a->job);
	loop_task_cancel(&a->step);
	if (a->patience)
		a->patience = loop_timer_free(a->patience);
	loop_task_cancel(&a->tell);
	(void)drop(&a->waits, NULL);
	(void)drop(&a->told, NULL);
	a->oauth = oauth_free(a->oauth);
	a->fixed = secret_free(a->fixed);
	free(a->assertion_file);
	if (a->is.release)
		a->is.release(a->is.user);
	free(a);
	return NULL;
}
