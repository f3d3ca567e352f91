#include "outbound/courier_job.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/parse.h"
#include "base/str.h"
#include "httpc/httpc.h"
#include "httpc/url.h"
#include "telemetry/trace.h"

struct courier_job *courier_job_free(struct courier_job *j)
{
	if (!j)
		return NULL;
	span_drop(j->span);
	free(j->method);
	free(j->base);
	free(j->target);
	free(j->type);
	free(j->body);
	free(j->ca_file);
	free(j->addresses);
	free(j->name);
	for (size_t i = 0; j->headers[i]; i++) {
		explicit_bzero(j->headers[i], strlen(j->headers[i])); /* tokens are among them */
		free(j->headers[i]);
	}
	j->call = httpc_call_free(j->call);
	j->client = httpc_free(j->client);
	for (size_t i = 0; i < COURIER_WANT_MAX; i++)
		free((char *)j->answer.headers[i]);
	buf_done(&j->answer.body);
	buf_done(&j->piece);
	free(j);
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

static int copy_target(const struct courier_request *req, struct courier_job *j)
{
	const char *target = req->server ? req->url : find_target(req->url);
	struct buf b = { 0 };

	if (!target)
		return -EINVAL;
	j->base = str_dup(req->server ? str_of(req->server)
				      : (struct str){ req->url, (size_t)(target - req->url) });
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

static int copy_headers(struct courier_job *j, const struct courier_request *req)
{
	int r = 0;

	for (size_t i = 0; r == 0 && req->headers && req->headers[i]; i++)
		r = i < COURIER_HEADERS_MAX ? copy(req->headers[i], &j->headers[i]) : -E2BIG;
	return r;
}

static int copy_body(struct courier_job *j, const struct courier_request *req)
{
	if (!req->body)
		return 0;
	j->body = str_dup((struct str){ req->body, req->body_len });
	j->body_len = req->body_len;
	return j->body ? 0 : -ENOMEM;
}

static int fill(struct courier_job *j, const struct courier_request *req)
{
	int r = copy(req->method, &j->method);

	if (r == 0)
		r = copy_target(req, j);
	if (r == 0)
		r = copy(req->type, &j->type);
	if (r == 0)
		r = copy(req->ca_file, &j->ca_file);
	if (r == 0)
		r = copy_headers(j, req);
	return r < 0 ? r : copy_body(j, req);
}

int courier_job_create(const struct courier_request *req, struct courier_job **ret)
{
	_cleanup_(courier_job_free_p) struct courier_job *j = NULL;
	int r = req->server ? 0 : courier_check_url(req->url, NULL);

	if (r < 0)
		return r;
	j = calloc(1, sizeof(*j));
	if (!j)
		return -ENOMEM;
	list_init(&j->node);
	list_init(&j->speaks);
	j->data = req->data;
	j->want = req->want;
	j->max = req->max;
	j->timeout_ms = req->timeout_ms;
	j->stall_ms = req->stall_ms;
	j->public_only = req->public_only;
	j->closed = req->closed;
	j->answer.max_age_s = j->answer.retry_after_s = -1;
	r = fill(j, req);
	if (r < 0)
		return r;
	*ret = TAKE(j);
	return 0;
}

int courier_job_add_header(struct courier_job *j, const char *text)
{
	size_t n = 0;

	while (j->headers[n])
		n++;
	return n <= COURIER_HEADERS_MAX ? copy(text, &j->headers[n]) : -E2BIG;
}

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

void courier_job_take_head(struct courier_job *j)
{
	if (j->has_head)
		return;
	j->has_head = true;
	j->answer.status = httpc_status(j->call);
	for (size_t i = 0; i < COURIER_WANT_MAX && j->want && j->want[i]; i++)
		j->answer.headers[i] = httpc_headers(j->call, j->want[i]);
}

void courier_job_take_result(struct courier_job *j)
{
	struct courier_answer *a = &j->answer;
	struct httpc_answer got = { 0 };
	const struct buf *said = httpc_refusal(j->call);

	courier_job_take_head(j);
	a->r = httpc_result(j->call, &got, &a->err);
	a->body = got.body;
	if (a->r < 0 && a->status >= 300)
		(void)buf_append(&a->body, said->data, said->len);
	a->max_age_s = find_max_age(httpc_header(j->call, "Cache-Control"));
	a->retry_after_s = find_seconds(httpc_header(j->call, "Retry-After"));
}
