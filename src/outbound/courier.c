#include "outbound/courier.h"

#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "httpc/httpc.h"
#include "httpc/url.h"
#include "loop/loop.h"
#include "telemetry/trace.h"

#define FAILED_MS 1000 /* libcurl could not: it is asked again after this */
#define TRACE_HEADER "traceparent: "

struct job {
	struct list node;
	courier_fn *done;
	void *user;
	/* Owned copies; `base` is the server, `target` all behind it. */
	char *method, *base, *target, *type, *body;
	char *headers[COURIER_HEADERS_MAX + 2]; /* one is ours */
	size_t body_len, max;
	uint32_t timeout_ms;
	bool public_only;
	struct span *span; /* the loop's; NULL: none */
	/* The thread's. */
	struct httpc *client;
	struct httpc_call *call;
	struct courier_answer answer;
};

struct courier {
	struct loop_wake *wake;
	struct tracer *tracer;     /* borrowed; NULL: none */
	struct httpc_group *group; /* owned; the thread's */
	struct list under_way;     /* the thread's */
	int bell;                  /* owned: there is something to do for the thread */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of all below */
	struct list waiting, over;
	size_t n; /* not called back */
	bool is_stopping;
};

static void job_free(struct job *j)
{
	span_drop(j->span);
	free(j->method);
	free(j->base);
	free(j->target);
	free(j->type);
	free(j->body);
	for (size_t i = 0; j->headers[i]; i++) {
		explicit_bzero(j->headers[i], strlen(j->headers[i])); /* tokens are among them */
		free(j->headers[i]);
	}
	j->call = httpc_call_free(j->call);
	j->client = httpc_free(j->client);
	buf_done(&j->answer.body);
	free(j);
}

/* ---- on a thread ---- */

/* "public, max-age=300, must-revalidate" */
static int64_t find_max_age(const char *text)
{
	struct str rest = str_of(text), one;
	char number[24];
	int64_t age;

	while (str_split(&rest, ',', &one)) {
		one = str_trim(one);
		if (one.len < 8 || strncasecmp(one.data, "max-age=", 8) != 0)
			continue;
		if (str_format(number, sizeof(number), "%.*s", (int)one.len - 8, one.data + 8) ==
			    0 &&
		    parse_i64(number, 0, INT32_MAX, &age) == 0)
			return age;
	}
	return -1;
}

static int64_t find_seconds(const char *text)
{
	int64_t n;

	return text && parse_i64(text, 0, INT32_MAX, &n) == 0 ? n : -1;
}

static int begin(struct courier *c, struct job *j)
{
	struct httpc_options o = { .url = j->base,
				   .public_only = j->public_only,
				   .group = c->group };
	struct httpc_request req = { .method = j->method,
				     .target = j->target,
				     .headers = (const char *const *)j->headers,
				     .type = j->type,
				     .body = j->body,
				     .body_len = j->body_len,
				     .max = j->max,
				     .timeout_ms = j->timeout_ms };
	int r = httpc_create(&o, &j->client, &j->answer.err);

	return r < 0 ? r : httpc_begin(j->client, &req, &j->call, &j->answer.err);
}

static void take_result(struct job *j)
{
	struct courier_answer *a = &j->answer;
	struct httpc_answer got = { 0 };

	a->r = httpc_result(j->call, &got, &a->err);
	a->status = got.status;
	a->body = got.body;
	a->max_age_s = find_max_age(httpc_header(j->call, "Cache-Control"));
	a->retry_after_s = find_seconds(httpc_header(j->call, "Retry-After"));
}

/* What belongs to the thread is let go of there. */
static void hand_over(struct courier *c, struct job *j)
{
	list_remove(&j->node);
	j->call = httpc_call_free(j->call);
	j->client = httpc_free(j->client);
	pthread_mutex_lock(&c->lock);
	list_push_back(&c->over, &j->node);
	pthread_mutex_unlock(&c->lock);
	loop_wake_send(c->wake);
}

/* What is new is begun. False: the end. */
static bool take_in(struct courier *c)
{
	struct list fresh = LIST_INIT(fresh);
	bool on;

	pthread_mutex_lock(&c->lock);
	on = !c->is_stopping;
	LIST_FOREACH (&c->waiting, j, struct job, node) {
		list_remove(&j->node);
		list_push_back(&fresh, &j->node);
	}
	pthread_mutex_unlock(&c->lock);
	LIST_FOREACH (&fresh, j, struct job, node) {
		list_remove(&j->node);
		list_push_back(&c->under_way, &j->node);
		j->answer.r = on ? begin(c, j) : -ECANCELED;
		if (j->answer.r < 0)
			hand_over(c, j);
	}
	return on;
}

static void *work(void *user)
{
	struct courier *c = user;
	struct pollfd fds = { .fd = c->bell, .events = POLLIN };
	struct err err = { 0 };
	eventfd_t rung;

	while (take_in(c)) {
		if (httpc_group_turn(c->group, &fds, 1, -1, &err) < 0) {
			log_debug("courier", "%s", err.text);
			(void)poll(&fds, 1, FAILED_MS);
		}
		(void)eventfd_read(c->bell, &rung);
		LIST_FOREACH (&c->under_way, j, struct job, node)
			if (httpc_is_over(j->call)) {
				take_result(j);
				hand_over(c, j);
			}
	}
	LIST_FOREACH (&c->under_way, j, struct job, node)
		hand_over(c, j);
	return NULL;
}

/* ---- on the loop ---- */

static struct job *take_over(struct courier *c)
{
	struct job *j = NULL;

	pthread_mutex_lock(&c->lock);
	if (!list_is_empty(&c->over)) {
		j = LIST_ENTRY(c->over.next, struct job, node);
		list_remove(&j->node);
		c->n--;
	}
	pthread_mutex_unlock(&c->lock);
	return j;
}

static void end_span(struct job *j)
{
	if (j->answer.status > 0)
		span_int(j->span, "http.response.status_code", j->answer.status);
	if (j->answer.r < 0)
		span_fail(j->span, j->answer.err.text);
	span_end(TAKE(j->span));
}

static void woken(void *user)
{
	struct courier *c = user;
	struct job *j;

	while ((j = take_over(c))) {
		end_span(j);
		j->done(j->user, &j->answer);
		job_free(j);
	}
}

int courier_create(struct loop *loop, struct courier **ret, struct err *err)
{
	_cleanup_(courier_free_p) struct courier *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_sys(err, ENOMEM, "courier");
	list_init(&c->under_way);
	list_init(&c->waiting);
	list_init(&c->over);
	(void)pthread_mutex_init(&c->lock, NULL);
	c->bell = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	c->group = httpc_group_create();
	r = c->bell < 0 ? -errno : c->group ? 0 : -ENOMEM;
	if (r == 0)
		r = loop_wake_create(loop, woken, c, &c->wake);
	if (r == 0)
		r = -pthread_create(&c->thread, NULL, work, c);
	c->has_thread = r == 0;
	if (r < 0)
		return err_sys(err, r, "courier");
	*ret = TAKE(c);
	return 0;
}

static void free_list(struct list *jobs)
{
	LIST_FOREACH (jobs, j, struct job, node) {
		list_remove(&j->node);
		job_free(j);
	}
}

struct courier *courier_free(struct courier *c)
{
	if (!c)
		return NULL;
	pthread_mutex_lock(&c->lock);
	c->is_stopping = true;
	pthread_mutex_unlock(&c->lock);
	if (c->has_thread) {
		(void)eventfd_write(c->bell, 1);
		(void)pthread_join(c->thread, NULL);
	}
	c->wake = loop_wake_free(c->wake);
	free_list(&c->waiting);
	free_list(&c->over);
	c->group = httpc_group_free(c->group);
	(void)fd_close(c->bell);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

/* Where the server's address ends and the target begins. */
static const char *find_target(const char *url)
{
	const char *host = strstr(url, "://");

	return host ? host + 3 + strcspn(host + 3, "/?#") : NULL;
}

int courier_check_url(const char *url, struct err *err)
{
	const char *target = find_target(url);
	_free_ char *base = NULL;
	struct url parsed;

	if (!target || strlen(url) > COURIER_URL_MAX)
		return err_set(err, EINVAL, "url: want http:// or https:// and at most %u bytes",
			       COURIER_URL_MAX);
	for (const char *p = url; *p; p++)
		if (*p <= ' ' || *p > '~' || *p == '#')
			return err_set(err, EINVAL, "url: has a character that no address has");
	base = str_dup((struct str){ url, (size_t)(target - url) });
	if (!base)
		return err_sys(err, ENOMEM, "url");
	return url_parse(base, &parsed, err);
}

static int copy(const char *text, char **ret)
{
	*ret = text ? str_dup(str_of(text)) : NULL;
	return text && !*ret ? -ENOMEM : 0;
}

static int copy_target(const char *url, struct job *j)
{
	const char *target = find_target(url);
	struct buf b = { 0 };

	if (!target)
		return -EINVAL;
	j->base = str_dup((struct str){ url, (size_t)(target - url) });
	if (target[0] != '/')
		(void)buf_putc(&b, '/');
	(void)buf_puts(&b, target);
	if (b.failed) {
		buf_done(&b);
		return -ENOMEM;
	}
	j->target = buf_take(&b);
	return j->base ? 0 : -ENOMEM;
}

static int fill(struct job *j, const struct courier_request *req)
{
	int r = copy(req->method, &j->method);

	if (r == 0)
		r = copy_target(req->url, j);
	if (r == 0)
		r = copy(req->type, &j->type);
	for (size_t i = 0; r == 0 && req->headers && req->headers[i]; i++)
		r = i < COURIER_HEADERS_MAX ? copy(req->headers[i], &j->headers[i]) : -E2BIG;
	if (r == 0 && req->body) {
		j->body = str_dup((struct str){ req->body, req->body_len });
		r = j->body ? 0 : -ENOMEM;
	}
	j->body_len = req->body_len;
	j->max = req->max;
	j->timeout_ms = req->timeout_ms;
	j->public_only = req->public_only;
	j->answer.max_age_s = j->answer.retry_after_s = -1;
	return r;
}

/* A part of what it is for, or a trace of its own. The address is not told, only the host. */
static int begin_span(struct courier *c, const struct courier_request *req, struct job *j)
{
	char header[sizeof(TRACE_HEADER) + TRACEPARENT_LEN] = TRACE_HEADER;
	const char *host = strstr(j->base, "://");
	struct trace_context root;
	size_t n = 0;

	if (!c->tracer || req->is_untraced)
		return 0;
	if (!req->trace)
		trace_begin(c->tracer, &root);
	j->span = span_begin(c->tracer, req->trace ? req->trace : &root, SPAN_CLIENT, j->method);
	if (!j->span)
		return 0;
	span_str(j->span, "http.request.method", j->method);
	span_str(j->span, "server.address", host ? host + 3 : NULL);
	traceparent_format(span_context(j->span), header + strlen(TRACE_HEADER));
	while (j->headers[n])
		n++;
	return copy(header, &j->headers[n]);
}

void courier_set_tracer(struct courier *c, struct tracer *tracer)
{
	c->tracer = tracer;
}

static int enqueue(struct courier *c, struct job *j)
{
	int r = 0;

	pthread_mutex_lock(&c->lock);
	if (c->n >= COURIER_MAX) {
		r = -EAGAIN;
	} else {
		c->n++;
		list_push_back(&c->waiting, &j->node);
	}
	pthread_mutex_unlock(&c->lock);
	if (r == 0)
		(void)eventfd_write(c->bell, 1);
	return r;
}

int courier_send(struct courier *c, const struct courier_request *req, courier_fn *done, void *user)
{
	struct job *j;
	int r = courier_check_url(req->url, NULL);

	if (r < 0)
		return r;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	list_init(&j->node);
	j->done = done;
	j->user = user;
	r = fill(j, req);
	if (r == 0)
		r = begin_span(c, req, j);
	if (r == 0)
		r = enqueue(c, j);
	if (r < 0)
		job_free(j);
	return r;
}
