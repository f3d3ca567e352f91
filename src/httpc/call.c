/* One request under way, and the turns that move all of them. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/err.h"
#include "httpc/httpc.h"
#include "httpc/httpc_impl.h"
#include "httpc/problem.h"

#define TIMEOUT_MS 120000u
#define STALL_MS 60000u
#define PROBLEM_MAX (64u << 10) /* of an answer that says no */
#define FDS_MAX 16

struct httpc_call {
	struct httpc *client; /* borrowed */
	struct httpc_request req;
	CURL *easy;                 /* owned */
	struct curl_slist *headers; /* owned */
	struct buf body;            /* collected, or the problem's */
	char words[CURL_ERROR_SIZE];
	CURLcode code;
	int failed; /* what a callback returned */
	bool has_head, checked, over;
};

/* --- what curl calls ----------------------------------------------------------------------- */

int httpc_status(const struct httpc_call *call)
{
	long status = 0;

	(void)curl_easy_getinfo(call->easy, CURLINFO_RESPONSE_CODE, &status);
	return (int)status;
}

static bool is_success(const struct httpc_call *x)
{
	int status = httpc_status(x);

	return status >= 200 && status < 300;
}

/* Something that answers 200 to everything is no API. */
static bool is_type_wanted(const struct httpc_call *x)
{
	const char *type = NULL;

	if (!x->req.accept)
		return true;
	(void)curl_easy_getinfo(x->easy, CURLINFO_CONTENT_TYPE, &type);
	return type && strncasecmp(type, x->req.accept, strlen(x->req.accept)) == 0;
}

static size_t on_body(char *data, size_t size, size_t n, void *user)
{
	struct httpc_call *x = user;
	int r;

	(void)size; /* always 1 */
	x->client->group->progress = true;
	if (!is_success(x)) {
		(void)buf_append(&x->body, data, n); /* beyond its ceiling nobody reads it */
		return n;
	}
	if (!x->checked && !is_type_wanted(x)) {
		x->failed = -EPROTO;
		return CURL_WRITEFUNC_ERROR;
	}
	x->checked = true;
	r = x->req.data ? x->req.data(x->req.user, data, n) : buf_append(&x->body, data, n);
	if (r == HTTPC_HOLD)
		return CURL_WRITEFUNC_PAUSE;
	if (r == -E2BIG && !x->req.data)
		r = -EFBIG;
	x->failed = r;
	return r < 0 ? CURL_WRITEFUNC_ERROR : n;
}

/* Each line of the head; an empty one ends it, unless it was that of an interim answer. */
static size_t on_header(char *line, size_t size, size_t n, void *user)
{
	struct httpc_call *x = user;

	(void)size; /* always 1 */
	if (n > 0 && (line[0] == '\r' || line[0] == '\n') && !x->has_head &&
	    httpc_status(x) >= 200) {
		x->has_head = true; /* what follows the body is none */
		x->client->group->progress = true;
		x->req.head(x->req.user);
	}
	return n;
}

static size_t on_read(char *dst, size_t size, size_t n, void *user)
{
	struct httpc_call *x = user;
	ssize_t r = x->req.read(x->req.user, dst, size * n);

	if (r < 0) {
		x->failed = (int)r;
		return CURL_READFUNC_ABORT;
	}
	return (size_t)r;
}

/* --- making it ----------------------------------------------------------------------------- */

static int add_header(struct httpc_call *x, const char *text)
{
	struct curl_slist *more = curl_slist_append(x->headers, text);

	if (!more)
		return -ENOMEM;
	x->headers = more;
	return 0;
}

static int add_named(struct httpc_call *x, const char *name, const char *value)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int r;

	if (!value)
		return 0;
	(void)buf_puts(&b, name);
	r = buf_puts(&b, value);
	if (r == 0)
		r = add_header(x, b.data);
	if (b.data)
		explicit_bzero(b.data, b.len); /* the key went through it */
	return r;
}

static int set_headers(struct httpc_call *x)
{
	int r = add_named(x, "Authorization: Bearer ", x->client->key);

	if (r == 0)
		r = add_named(x, "Accept: ", x->req.accept);
	if (r == 0)
		r = add_named(x, "Content-Type: ", x->req.type);
	if (r == 0 && !x->req.type)
		r = add_header(x, "Content-Type:"); /* curl would make one up */
	if (r == 0 && !x->req.read)
		r = add_header(x, "Expect:"); /* the body is small: asking first costs more */
	for (size_t i = 0; r == 0 && x->req.headers && x->req.headers[i]; i++)
		r = add_header(x, x->req.headers[i]);
	return r;
}

static bool set_body(struct httpc_call *x)
{
	const struct httpc_request *req = &x->req;
	bool bad = false;

	if (req->read) {
		bad |= curl_easy_setopt(x->easy, CURLOPT_UPLOAD, 1L);
		bad |= curl_easy_setopt(x->easy, CURLOPT_READFUNCTION, on_read);
		bad |= curl_easy_setopt(x->easy, CURLOPT_READDATA, x);
		bad |= curl_easy_setopt(x->easy, CURLOPT_INFILESIZE_LARGE,
					(curl_off_t)req->read_size);
	} else if (req->body || strcmp(req->method, "POST") == 0) {
		bad |= curl_easy_setopt(x->easy, CURLOPT_POST, 1L);
		bad |= curl_easy_setopt(x->easy, CURLOPT_POSTFIELDS, req->body ? req->body : "");
		bad |= curl_easy_setopt(x->easy, CURLOPT_POSTFIELDSIZE_LARGE,
					(curl_off_t)req->body_len);
	}
	if (strcmp(req->method, "HEAD") == 0)
		bad |= curl_easy_setopt(x->easy, CURLOPT_NOBODY, 1L);
	bad |= curl_easy_setopt(x->easy, CURLOPT_CUSTOMREQUEST, req->method);
	return !bad;
}

static bool set_limits(struct httpc_call *x)
{
	uint32_t all = x->req.timeout_ms ? x->req.timeout_ms : TIMEOUT_MS;
	uint32_t stall = x->req.stall_ms ? x->req.stall_ms : STALL_MS;
	bool bad = false;

	if (all != HTTPC_NO_LIMIT)
		bad |= curl_easy_setopt(x->easy, CURLOPT_TIMEOUT_MS, (long)all);
	if (stall != HTTPC_NO_LIMIT) {
		bad |= curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_LIMIT, 1L);
		bad |= curl_easy_setopt(x->easy, CURLOPT_LOW_SPEED_TIME, (long)(stall / 1000));
	}
	return !bad;
}

static bool set_callbacks(struct httpc_call *x)
{
	bool bad = false;

	bad |= curl_easy_setopt(x->easy, CURLOPT_WRITEFUNCTION, on_body);
	bad |= curl_easy_setopt(x->easy, CURLOPT_WRITEDATA, x);
	if (x->req.head) {
		bad |= curl_easy_setopt(x->easy, CURLOPT_HEADERFUNCTION, on_header);
		bad |= curl_easy_setopt(x->easy, CURLOPT_HEADERDATA, x);
	}
	bad |= curl_easy_setopt(x->easy, CURLOPT_ERRORBUFFER, x->words);
	bad |= curl_easy_setopt(x->easy, CURLOPT_PRIVATE, x);
	bad |= curl_easy_setopt(x->easy, CURLOPT_HTTPHEADER, x->headers);
	return !bad;
}

static bool set_target(struct httpc_call *x)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)buf_puts(&b, x->client->url.base);
	return buf_puts(&b, x->req.target) == 0 &&
	       curl_easy_setopt(x->easy, CURLOPT_URL, b.data) == CURLE_OK;
}

static int start(struct httpc_call *x)
{
	size_t max = x->req.max ? x->req.max : HTTPC_ANSWER_MAX;
	int r;

	x->easy = curl_easy_init();
	if (!x->easy)
		return -ENOMEM;
	buf_init(&x->body, x->req.data ? PROBLEM_MAX : max);
	r = set_headers(x);
	if (r == 0)
		r = httpc_configure(x->client, x->easy);
	if (r == 0 && !(set_target(x) && set_body(x) && set_limits(x) && set_callbacks(x)))
		r = -ENOMEM;
	if (r == 0 && curl_multi_add_handle(x->client->group->multi, x->easy) != CURLM_OK)
		r = -ENOMEM;
	return r;
}

int httpc_begin(struct httpc *c, const struct httpc_request *req, struct httpc_call **ret,
		struct err *err)
{
	_cleanup_(httpc_call_free_p) struct httpc_call *x = calloc(1, sizeof(*x));
	int r;

	if (!x)
		return err_sys(err, ENOMEM, "request");
	x->client = c;
	x->req = *req;
	r = start(x);
	if (r < 0)
		return err_sys(err, r, "request");
	*ret = TAKE(x);
	return 0;
}

struct httpc_call *httpc_call_free(struct httpc_call *call)
{
	if (!call)
		return NULL;
	if (call->easy)
		(void)curl_multi_remove_handle(call->client->group->multi, call->easy);
	curl_easy_cleanup(call->easy);
	if (call->headers) /* the first has the key, if there is one */
		explicit_bzero(call->headers->data, strlen(call->headers->data));
	curl_slist_free_all(call->headers);
	buf_done(&call->body);
	free(call);
	return NULL;
}

/* --- moving it ----------------------------------------------------------------------------- */

/* Whether a call is over that was not before. */
static bool take_messages(struct httpc_group *g)
{
	bool any = false;
	CURLMsg *m;
	int left;

	while ((m = curl_multi_info_read(g->multi, &left))) {
		char *x = NULL;

		if (m->msg != CURLMSG_DONE)
			continue;
		(void)curl_easy_getinfo(m->easy_handle, CURLINFO_PRIVATE, &x);
		((struct httpc_call *)(void *)x)->code = m->data.result;
		((struct httpc_call *)(void *)x)->over = true;
		any = true;
	}
	return any;
}

/* *ret_any: a call is over, or a callback ran. */
static int perform(struct httpc_group *g, bool *ret_any, struct err *err)
{
	int running;
	CURLMcode m;

	g->progress = false;
	m = curl_multi_perform(g->multi, &running);
	if (m != CURLM_OK)
		return err_set(err, EIO, "HTTP client: %s", curl_multi_strerror(m));
	*ret_any = take_messages(g) || g->progress;
	return 0;
}

int httpc_group_turn(struct httpc_group *g, struct pollfd *fds, size_t n, int timeout_ms,
		     struct err *err)
{
	struct curl_waitfd wait[FDS_MAX];
	unsigned count = 0;
	bool any = false;
	CURLMcode m;
	int r = perform(g, &any, err);

	if (r < 0)
		return r;
	for (size_t i = 0; i < n && count < FDS_MAX; i++)
		if (fds[i].fd >= 0)
			wait[count++] = (struct curl_waitfd){ fds[i].fd, fds[i].events, 0 };
	m = curl_multi_poll(g->multi, wait, count,
			    any              ? 0
			    : timeout_ms < 0 ? 60000
					     : timeout_ms,
			    NULL);
	if (m != CURLM_OK)
		return err_set(err, EIO, "HTTP client: %s", curl_multi_strerror(m));
	/* curl does not tell of POLLHUP and POLLERR: they are asked for again. */
	if (n > 0 && poll(fds, n, 0) < 0 && errno != EINTR)
		return err_sys(err, errno, "poll");
	return perform(g, &any, err);
}

int httpc_turn(struct httpc *c, struct pollfd *fds, size_t n, int timeout_ms, struct err *err)
{
	return httpc_group_turn(c->group, fds, n, timeout_ms, err);
}

bool httpc_is_over(const struct httpc_call *call)
{
	return call->over;
}

void httpc_resume(struct httpc_call *call)
{
	if (!call->over)
		(void)curl_easy_pause(call->easy, CURLPAUSE_CONT);
}

int64_t httpc_size(const struct httpc_call *call)
{
	curl_off_t n = -1;

	(void)curl_easy_getinfo(call->easy, CURLINFO_CONTENT_LENGTH_DOWNLOAD_T, &n);
	return n;
}

/* --- its end ------------------------------------------------------------------------------- */

static int explain_callback(const struct httpc_call *x, struct err *err)
{
	const char *type = NULL;

	if (x->failed == -EFBIG)
		return err_set(err, EFBIG, "%s: the answer has more than %zu bytes",
			       x->client->given, x->body.max);
	if (x->failed == -EPROTO && !x->checked) {
		(void)curl_easy_getinfo(x->easy, CURLINFO_CONTENT_TYPE, &type);
		return err_set(err, EPROTO, "%s does not speak Holt's API (it answered with %s)",
			       x->client->given, type ? type : "bytes of no type");
	}
	if (!err_code(err))
		(void)err_sys(err, x->failed, "%s", x->client->given);
	return x->failed; /* the callback has said why */
}

const char *httpc_header(struct httpc_call *call, const char *name)
{
	struct curl_header *h = NULL;

	return curl_easy_header(call->easy, name, 0, CURLH_HEADER, -1, &h) == CURLHE_OK ? h->value
											: NULL;
}

char *httpc_headers(struct httpc_call *call, const char *name)
{
	struct buf all = { 0 };
	struct curl_header *h = NULL;

	for (size_t i = 0; curl_easy_header(call->easy, name, i, CURLH_HEADER, -1, &h) == CURLHE_OK;
	     i++) {
		(void)buf_puts(&all, i > 0 ? ", " : "");
		(void)buf_puts(&all, h->value);
	}
	if (all.failed)
		buf_done(&all);
	return buf_take(&all);
}

const struct buf *httpc_refusal(const struct httpc_call *call)
{
	return &call->body;
}

int httpc_result(struct httpc_call *call, struct httpc_answer *ret, struct err *err)
{
	int status = httpc_status(call);

	if (ret)
		ret->status = status;
	if (call->failed < 0)
		return explain_callback(call, err);
	/* A refusal may come before our body is through: what it says counts. */
	if (status >= 300)
		return httpc_problem(status, call->body.data, call->body.len, err);
	if (call->code != CURLE_OK)
		return httpc_curl_problem(call->client, call->easy, call->code, call->words, err);
	if (ret) {
		ret->body = call->body;
		call->body = (struct buf){ 0 };
	}
	return 0;
}

int httpc_request(struct httpc *c, const struct httpc_request *req, struct httpc_answer *ret,
		  struct err *err)
{
	_cleanup_(httpc_call_free_p) struct httpc_call *call = NULL;
	int r = httpc_begin(c, req, &call, err);

	while (r == 0 && !httpc_is_over(call))
		r = httpc_turn(c, NULL, 0, -1, err);
	return r < 0 ? r : httpc_result(call, ret, err);
}
