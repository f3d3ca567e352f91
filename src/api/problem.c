#include "api/problem.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/log.h"
#include "base/str.h"
#include "net/http.h"
#include "spec/quota.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* Texts of 5xx are ours: what the machinery says about itself is for the log. But why the machine
 * makes no sandbox (EREMOTEIO) is nothing that we know a better word for. */
static const struct problem problems[] = {
	{ EINVAL, PROBLEM_HERE, 400, NULL, 0 },
	{ E2BIG, PROBLEM_HERE, 400, NULL, 0 },
	{ ERANGE, PROBLEM_HERE, 400, NULL, 0 },
	{ ENAMETOOLONG, PROBLEM_HERE, 400, NULL, 0 },
	{ EACCES, PROBLEM_HERE, 401, NULL, 0 },
	{ EPERM, PROBLEM_HERE, 403, NULL, 0 },
	{ ENOENT, PROBLEM_HERE, 404, NULL, 0 },
	{ EEXIST, PROBLEM_HERE, 409, NULL, 0 },
	{ EBUSY, PROBLEM_HERE, 409, NULL, 0 },
	{ ECANCELED, PROBLEM_HERE, 409, NULL, 0 },
	{ EOPNOTSUPP, PROBLEM_HERE, 409, NULL, 0 },
	{ EDQUOT, PROBLEM_HERE, 429, NULL, 5 },
	{ QUOTA_ERRNO, PROBLEM_HERE, 403, NULL, 0 },
	{ ENOBUFS, PROBLEM_HERE, 503, NULL, 5 }, /* the machine has no room for the sandbox */
	{ EAGAIN, PROBLEM_HERE, 503, "too much is under way, try again soon", 1 },
	{ EPIPE, PROBLEM_HERE, 503, "sandboxes cannot be reached just now", 1 },
	{ ETIMEDOUT, PROBLEM_HERE, 503, "it took too long, try again soon", 1 },
	{ ENOMEM, PROBLEM_HERE, 503, "there is no memory left for this", 5 },
	{ EMFILE, PROBLEM_HERE, 503, "there are no descriptors left for this", 5 },
	{ ENFILE, PROBLEM_HERE, 503, "there are no descriptors left for this", 5 },
	{ ENOSPC, PROBLEM_HERE, 503, "the store has no space left", 5 },
	{ EROFS, PROBLEM_HERE, 503, "the store cannot be written to", 5 },
	{ EIO, PROBLEM_HERE, 503, "the store has failed", 5 },
	{ EUCLEAN, PROBLEM_HERE, 503, "the store is damaged", 60 },
	{ EREMOTEIO, PROBLEM_HERE, 503, NULL, 5 },
	{ ESTALE, PROBLEM_HERE, 503, "the store is gone", 60 },

	{ EINVAL, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ E2BIG, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ ENAMETOOLONG, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ ELOOP, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ EBADMSG, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ ESRCH, PROBLEM_IN_BOX, 400, NULL, 0 }, /* a user that the box has not */
	{ EPROTO, PROBLEM_IN_BOX, 400, NULL, 0 },
	{ EACCES, PROBLEM_IN_BOX, 403, NULL, 0 },
	{ EPERM, PROBLEM_IN_BOX, 403, NULL, 0 },
	{ EROFS, PROBLEM_IN_BOX, 403, NULL, 0 },
	{ ENOENT, PROBLEM_IN_BOX, 404, NULL, 0 },
	{ EEXIST, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ENOTDIR, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EISDIR, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ENOTEMPTY, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EBUSY, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EXDEV, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ETXTBSY, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ENXIO, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EOPNOTSUPP, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ENOSPC, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EDQUOT, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ ECANCELED, PROBLEM_IN_BOX, 409, NULL, 0 },
	{ EPIPE, PROBLEM_IN_BOX, 409, "the sandbox has ended", 0 },
	{ ETIMEDOUT, PROBLEM_IN_BOX, 400, NULL, 0 }, /* a search that never ends */
	{ EFBIG, PROBLEM_IN_BOX, 413, NULL, 0 },
	{ EAGAIN, PROBLEM_IN_BOX, 429, "too much is under way in this sandbox", 1 },
	{ EREMOTEIO, PROBLEM_IN_BOX, 503, NULL, 1 },
	{ ENOMEM, PROBLEM_IN_BOX, 503, "there is no memory left for this", 5 },
};

static const struct problem internal = { 0, PROBLEM_HERE, 500, "something went wrong here", 0 };

const struct problem *problem_find(int code, enum problem_place place)
{
	for (size_t i = 0; i < ARRAY_LEN(problems); i++)
		if (problems[i].code == code && problems[i].place == place)
			return &problems[i];
	return &internal;
}

const char *const problem_codes[] = {
	"invalid_request", "unauthorized",    "forbidden",
	"not_found",       "conflict",        "rate_limited",
	"quota_exceeded",  "internal_error",  "service_unavailable",
	"bad_gateway",     "gateway_timeout", NULL,
};

const char *problem_name(int status)
{
	static const struct {
		int status;
		const char *name;
	} names[] = {
		{ 401, "unauthorized" },   { 403, "forbidden" },
		{ 404, "not_found" },      { 409, "conflict" },
		{ 412, "conflict" },       { 429, "rate_limited" },
		{ 502, "bad_gateway" },    { 504, "gateway_timeout" },
		{ 500, "internal_error" }, { 503, "service_unavailable" },
	};

	for (size_t i = 0; i < ARRAY_LEN(names); i++)
		if (names[i].status == status)
			return names[i].name;
	return "invalid_request";
}

const char *problem_text(const struct problem *p, const struct err *err)
{
	if (p->text)
		return p->text;
	return err && err->text[0] ? err->text : "the request cannot be carried out";
}

const char *problem_code(const struct problem *p)
{
	return p->code == QUOTA_ERRNO ? "quota_exceeded" : problem_name(p->status);
}

struct details { /* either may be NULL */
	const char *field;
	const struct quota_refusal *quota;
};

static void write_details(struct jw *w, const struct details *d)
{
	jw_key(w, "details");
	if (!d->field && !d->quota)
		return jw_null(w);
	jw_object_begin(w);
	if (d->field)
		jw_str_field(w, "field", d->field);
	if (d->quota) {
		jw_str_field(w, "quota", quota_name(d->quota->kind));
		jw_uint_field(w, "limit", d->quota->limit);
		jw_uint_field(w, "used", d->quota->used);
	}
	jw_object_end(w);
}

static void write_problem(struct jw *w, const char *code, const char *message,
			  const struct details *details)
{
	jw_object_begin(w);
	jw_str_field(w, "code", code);
	jw_str_field(w, "message", message);
	write_details(w, details);
	jw_object_end(w);
}

void problem_write(struct jw *w, int status, const char *message, const char *field)
{
	write_problem(w, problem_name(status), message, &(struct details){ .field = field });
}

static void reply(struct api_call *c, int status, const char *code, const char *message,
		  const struct details *details)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (c->door)
		return c->door->refuse(c, status, code, message, details->field);
	jw_object_begin(&w);
	jw_key(&w, "error");
	write_problem(&w, code, message, details);
	jw_object_end(&w);
	if (status == 401)
		(void)http_header_add(c->http, "WWW-Authenticate", "Bearer realm=\"holt\"");
	if (jw_end(&w) < 0) /* not even room for an error: say the least */
		return http_reply_error(c->http, status, code, "out of memory");
	http_reply(c->http, status, "application/json", b.data, b.len);
}

/* The services name a bad value first ("timeout: want at most 24h"): when that is a field of this
 * route's body, the client gets its name as data too. */
static const char *field_of(const struct api_call *c, const struct err *err, char name[64])
{
	size_t n = strcspn(err->text, ": ");

	if (!c->route || !c->route->body || n >= 64)
		return NULL;
	for (size_t i = 0; i < c->route->body->count; i++) {
		const char *field = c->route->body->fields[i].name;

		if (strlen(field) == n && memcmp(field, err->text, n) == 0)
			return memcpy(name, field, n + 1);
	}
	return NULL;
}

static void reply_err(struct api_call *c, const struct err *err, enum problem_place place)
{
	const struct problem *p = problem_find(err->code, place);
	struct quota_refusal refusal;
	struct details details = { 0 };
	char after[16], name[64];

	if (p->status >= 500)
		log_warn("api", "request %s: %s %s: %s", http_request_id(c->http),
			 http_method(c->http), http_path(c->http), err->text);
	if (p->retry_s > 0 && str_format(after, sizeof(after), "%u", p->retry_s) == 0)
		(void)http_header_add(c->http, "Retry-After", after);
	if (p->status == 400)
		details.field = field_of(c, err, name);
	if (quota_refusal(err, &refusal) == 0)
		details.quota = &refusal;
	reply(c, p->status, problem_code(p), problem_text(p, err), &details);
}

void problem_reply(struct api_call *c, const struct err *err)
{
	reply_err(c, err, PROBLEM_HERE);
}

void problem_reply_box(struct api_call *c, const struct err *err)
{
	reply_err(c, err, PROBLEM_IN_BOX);
}

void problem_field(struct api_call *c, const char *field, const char *fmt, ...)
{
	char text[240];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* a long one is cut: it is for people */
	va_end(ap);
	reply(c, 400, problem_name(400), text, &(struct details){ .field = field });
}

void problem_status(struct api_call *c, int status, const char *fmt, ...)
{
	char text[240];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap);
	va_end(ap);
	reply(c, status, problem_name(status), text, &(struct details){ 0 });
}
