#include "outbound/courier.h"

#include <arpa/inet.h>
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>

#include "base/fd.h"
#include "base/list.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "httpc/httpc.h"
#include "httpc/url.h"
#include "loop/loop.h"
#include "loop/resolve.h"
#include "outbound/courier_job.h"
#include "telemetry/trace.h"

#define FAILED_MS 1000 /* libcurl could not: it is asked again after this */
#define TRACE_HEADER "traceparent: "

struct courier {
	struct loop_wake *wake;
	struct tracer *tracer;     /* borrowed; NULL: none */
	struct resolver *resolver; /* borrowed; NULL: none */
	struct list resolving;     /* the loop's: their names are looked up */
	struct httpc_group *group; /* owned; the thread's */
	struct list under_way;     /* the thread's */
	int bell;                  /* owned: there is something to do for the thread */
	pthread_t thread;
	bool has_thread;
	pthread_mutex_t lock; /* of all below */
	struct list waiting, speaking, over;
	size_t n; /* not called back */
	bool is_stopping;
};

/* ---- on a thread ---- */

static void speak_up(struct courier *c, struct courier_job *j)
{
	if (list_is_empty(&j->speaks))
		list_push_back(&c->speaking, &j->speaks);
}

static void on_head(void *user)
{
	struct courier_job *j = user;
	struct courier *c = j->courier;

	courier_job_take_head(j);
	if (j->answer.status >= 300)
		return; /* it is told at the end, with the rest */
	pthread_mutex_lock(&c->lock);
	j->has_begun = true;
	speak_up(c, j);
	pthread_mutex_unlock(&c->lock);
	loop_wake_send(c->wake);
}

/* Bytes of the body: they wait for the loop. */
static int on_data(void *user, const void *data, size_t n)
{
	struct courier_job *j = user;
	struct courier *c = j->courier;
	int r;

	pthread_mutex_lock(&c->lock);
	j->is_held = j->piece.len >= COURIER_PIECE_MAX;
	r = j->is_held ? HTTPC_HOLD : buf_append(&j->piece, data, n);
	if (r == 0)
		speak_up(c, j);
	pthread_mutex_unlock(&c->lock);
	loop_wake_send(c->wake);
	return r;
}

static int begin(struct courier *c, struct courier_job *j)
{
	struct httpc_options o = { .url = j->base,
				   .ca_file = j->ca_file,
				   .public_only = j->public_only,
				   .closed = j->closed,
				   .addresses = j->addresses,
				   .group = c->group };
	struct httpc_request req = { .method = j->method,
				     .target = j->target,
				     .headers = (const char *const *)j->headers,
				     .type = j->type,
				     .body = j->body,
				     .body_len = j->body_len,
				     .head = j->data ? on_head : NULL,
				     .data = j->data ? on_data : NULL,
				     .user = j,
				     .max = j->max,
				     .timeout_ms = j->timeout_ms,
				     .stall_ms = j->stall_ms };
	int r = httpc_create(&o, &j->client, &j->answer.err);

	return r < 0 ? r : httpc_begin(j->client, &req, &j->call, &j->answer.err);
}

/* What belongs to the thread is let go of there. */
static void hand_over(struct courier *c, struct courier_job *j)
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
	LIST_FOREACH (&c->waiting, j, struct courier_job, node) {
		list_remove(&j->node);
		list_push_back(&fresh, &j->node);
	}
	pthread_mutex_unlock(&c->lock);
	LIST_FOREACH (&fresh, j, struct courier_job, node) {
		list_remove(&j->node);
		list_push_back(&c->under_way, &j->node);
		j->answer.r = on ? begin(c, j) : -ECANCELED;
		if (j->answer.r < 0)
			hand_over(c, j);
	}
	return on;
}

/* One of those under way: what has come of it, or is wanted of it. */
static void look_after(struct courier *c, struct courier_job *j)
{
	if (httpc_is_over(j->call)) {
		courier_job_take_result(j);
		hand_over(c, j);
	} else if (atomic_load(&j->is_cancelled)) {
		j->answer.r = -ECANCELED;
		hand_over(c, j);
	} else if (atomic_exchange(&j->goes_on, false)) {
		httpc_resume(j->call);
	}
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
		LIST_FOREACH (&c->under_way, j, struct courier_job, node)
			look_after(c, j);
	}
	LIST_FOREACH (&c->under_way, j, struct courier_job, node)
		hand_over(c, j);
	return NULL;
}

/* ---- on the loop ---- */

static struct courier_job *take_over(struct courier *c)
{
	struct courier_job *j = NULL;

	pthread_mutex_lock(&c->lock);
	if (!list_is_empty(&c->over)) {
		j = LIST_ENTRY(c->over.next, struct courier_job, node);
		list_remove(&j->node);
		c->n--;
	}
	pthread_mutex_unlock(&c->lock);
	return j;
}

static void end_span(struct courier_job *j)
{
	if (j->answer.status > 0)
		span_int(j->span, "http.response.status_code", j->answer.status);
	if (j->answer.r < 0)
		span_fail(j->span, j->answer.err.text);
	span_end(TAKE(j->span));
}

/* What has come of its body so far; it may be cancelled on the way. */
static void speak(struct courier *c, struct courier_job *j)
{
	_cleanup_(buf_done) struct buf piece = { 0 };
	bool was_held, has_begun;

	pthread_mutex_lock(&c->lock);
	list_remove(&j->speaks);
	has_begun = j->has_begun;
	j->has_begun = false;
	piece = j->piece;
	j->piece = (struct buf){ 0 };
	was_held = j->is_held;
	j->is_held = false;
	pthread_mutex_unlock(&c->lock);
	if (was_held) {
		atomic_store(&j->goes_on, true);
		(void)eventfd_write(c->bell, 1);
	}
	if (has_begun && !atomic_load(&j->is_cancelled))
		j->data(j->user, &j->answer, "", 0);
	if (piece.len > 0 && !atomic_load(&j->is_cancelled))
		j->data(j->user, &j->answer, piece.data, piece.len);
}

static struct courier_job *next_speaker(struct courier *c)
{
	struct courier_job *j = NULL;

	pthread_mutex_lock(&c->lock);
	if (!list_is_empty(&c->speaking))
		j = LIST_ENTRY(c->speaking.next, struct courier_job, speaks);
	pthread_mutex_unlock(&c->lock);
	return j;
}

static void woken(void *user)
{
	struct courier *c = user;
	struct courier_job *j;

	while ((j = next_speaker(c)))
		speak(c, j);
	while ((j = take_over(c))) {
		speak(c, j); /* its last words */
		end_span(j);
		if (!atomic_load(&j->is_cancelled))
			j->done(j->user, &j->answer);
		j = courier_job_free(j);
	}
}

int courier_create(struct loop *loop, struct courier **ret, struct err *err)
{
	_cleanup_(courier_free_p) struct courier *c = calloc(1, sizeof(*c));
	int r;

	if (!c)
		return err_sys(err, ENOMEM, "courier");
	list_init(&c->under_way);
	list_init(&c->resolving);
	list_init(&c->waiting);
	list_init(&c->speaking);
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
	LIST_FOREACH (jobs, j, struct courier_job, node) {
		list_remove(&j->node);
		(void)courier_job_free(j);
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
	LIST_FOREACH (&c->resolving, j, struct courier_job, node)
		resolve_cancel(j->lookup);
	free_list(&c->resolving);
	free_list(&c->waiting);
	free_list(&c->over);
	c->group = httpc_group_free(c->group);
	(void)fd_close(c->bell);
	(void)pthread_mutex_destroy(&c->lock);
	free(c);
	return NULL;
}

/* A part of what it is for, or a trace of its own. The address is not told, only the host. */
static int begin_span(struct courier *c, const struct courier_request *req, struct courier_job *j)
{
	char header[sizeof(TRACE_HEADER) + TRACEPARENT_LEN] = TRACE_HEADER;
	const char *host = strstr(j->base, "://");
	struct trace_context root;

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
	return courier_job_add_header(j, header);
}

void courier_set_tracer(struct courier *c, struct tracer *tracer)
{
	c->tracer = tracer;
}

void courier_set_resolver(struct courier *c, struct resolver *resolver)
{
	c->resolver = resolver;
}

/* One more under way. */
static int count_in(struct courier *c)
{
	int r = 0;

	pthread_mutex_lock(&c->lock);
	if (c->n >= COURIER_MAX)
		r = -EAGAIN;
	else
		c->n++;
	pthread_mutex_unlock(&c->lock);
	return r;
}

static void count_out(struct courier *c)
{
	pthread_mutex_lock(&c->lock);
	c->n--;
	pthread_mutex_unlock(&c->lock);
}

/* To the thread, or, when there is nothing to do for it any more, to whoever waits. */
static void pass_on(struct courier *c, struct courier_job *j)
{
	bool is_over = j->answer.r < 0;

	pthread_mutex_lock(&c->lock);
	list_push_back(is_over ? &c->over : &c->waiting, &j->node);
	pthread_mutex_unlock(&c->lock);
	if (is_over)
		loop_wake_send(c->wake);
	else
		(void)eventfd_write(c->bell, 1);
}

/* "host:port:address,address" */
static int put_addresses(struct courier_job *j, const union resolve_address *a, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char text[INET6_ADDRSTRLEN];

	(void)buf_puts(&b, j->name);
	for (size_t i = 0; i < n; i++) {
		bool is_v4 = a[i].any.sa_family == AF_INET;
		const void *raw =
			is_v4 ? (const void *)&a[i].v4.sin_addr : (const void *)&a[i].v6.sin6_addr;

		(void)buf_puts(&b, i == 0 ? ":" : ",");
		(void)buf_puts(&b, inet_ntop(a[i].any.sa_family, raw, text, sizeof(text)));
	}
	j->addresses = b.failed ? NULL : str_dup(str_of(buf_str(&b)));
	return j->addresses ? 0 : -ENOMEM;
}

static void on_resolved(void *user, int code, const union resolve_address *a, size_t n)
{
	struct courier_job *j = user;

	j->lookup = NULL;
	list_remove(&j->node);
	if (code == 0)
		code = put_addresses(j, a, n);
	if (code == -ETIMEDOUT)
		j->answer.r = err_set(&j->answer.err, ETIMEDOUT, "%s: no answer in time", j->base);
	else if (code < 0)
		j->answer.r = err_set(&j->answer.err, EHOSTUNREACH, "%s: no such host", j->base);
	pass_on(j->courier, j);
}

/* The name and the port of a server; -EINVAL: there is nothing to look up. */
static int find_name(struct courier_job *j, char host[RESOLVE_NAME_MAX + 1], uint16_t *ret_port)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct in_addr v4;
	struct url url;
	uint32_t port;
	char *colon;

	if (url_parse(j->base, &url, NULL) < 0 || url.socket[0] || url.host[0] == '[')
		return -EINVAL;
	port = url.tls ? 443 : 80;
	colon = strchr(url.host, ':');
	if (colon && parse_u32(colon + 1, 1, UINT16_MAX, &port) < 0)
		return -EINVAL;
	if (colon)
		*colon = '\0';
	if (inet_pton(AF_INET, url.host, &v4) == 1 ||
	    str_copy(host, RESOLVE_NAME_MAX + 1, url.host) < 0)
		return -EINVAL;
	if (buf_printf(&b, "%s:%u", host, port) < 0 || !(j->name = str_dup(str_of(buf_str(&b)))))
		return -ENOMEM;
	*ret_port = (uint16_t)port;
	return 0;
}

/* What others have asked for is looked up here: libcurl would take a thread for each. */
static int look_up(struct courier *c, struct courier_job *j, const char *owner)
{
	char host[RESOLVE_NAME_MAX + 1];
	uint16_t port = 0;
	int r = c->resolver && owner ? find_name(j, host, &port) : -EINVAL;

	if (r == -EINVAL) {
		pass_on(c, j);
		return 0;
	}
	if (r == 0)
		r = resolver_ask(c->resolver, owner, host, port, on_resolved, j, &j->lookup, NULL);
	if (r == 0)
		list_push_back(&c->resolving, &j->node);
	return r;
}

int courier_open(struct courier *c, const struct courier_request *req, courier_fn *done, void *user,
		 struct courier_job **ret)
{
	_cleanup_(courier_job_free_p) struct courier_job *j = NULL;
	int r = courier_job_create(req, &j);

	if (r < 0)
		return r;
	j->courier = c;
	j->done = done;
	j->user = user;
	r = begin_span(c, req, j);
	if (r == 0)
		r = count_in(c);
	if (r < 0)
		return r;
	r = look_up(c, j, req->owner);
	if (r < 0) {
		count_out(c);
		return r;
	}
	*ret = TAKE(j);
	return 0;
}

int courier_send(struct courier *c, const struct courier_request *req, courier_fn *done, void *user)
{
	struct courier_job *ignored;

	return courier_open(c, req, done, user, &ignored);
}

void courier_cancel(struct courier *c, struct courier_job *job)
{
	atomic_store(&job->is_cancelled, true);
	(void)eventfd_write(c->bell, 1);
}

size_t courier_count(struct courier *c)
{
	size_t n;

	pthread_mutex_lock(&c->lock);
	n = c->n;
	pthread_mutex_unlock(&c->lock);
	return n;
}
