#include "api/audit.h"

#include <stdio.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/journal_page.h"
#include "api/problem.h"
#include "api/routes.h"
#include "base/buf.h"
#include "base/encode.h"
#include "net/http.h"
#include "sandbox/audit_log.h"
#include "sandbox/events.h"
#include "json/jw.h"

#define TEXT_MAX 16384u
#define SUBJECT_MAX 256
#define BOX_MAX 128

/* A terminal or a stream of executions begins with GET and changes as much as anything. */
static bool is_mutating(const struct api_call *c)
{
	const char *method = http_method(c->http);

	return c->route && !(c->route->route.flags & ROUTE_PUBLIC) &&
	       ((strcmp(method, "GET") != 0 && strcmp(method, "HEAD") != 0) ||
		c->route->route.flags & ROUTE_SOCKET);
}

static bool is_denial(const struct api_call *c, int status)
{
	/* Who has no key and is shut out for that is counted, but does not fill the log. */
	if (status == 429)
		return c->who->owner[0] != '\0';
	return status == 401 || status == 403 || (status == 404 && c->is_foreign);
}

/* What it is about: as the handler said, else the last name in the path. */
static const char *subject(const struct api_call *c, char dst[SUBJECT_MAX])
{
	const char *text = c->subject;

	if (!text[0] && c->match.count > 0)
		text = c->match.params[c->match.count - 1].value;
	/* A long path is cut: it may be as long as a request's line. */
	(void)snprintf(dst, SUBJECT_MAX, "%s", text);
	return dst;
}

/* Without memory the line is there all the same, and says as much as it can. */
static const char *write_text(const struct api_call *c, int status, struct buf *b)
{
	struct jw w = jw_begin(b);
	char about[SUBJECT_MAX], box[BOX_MAX];

	/* A token's own sandbox, also where the request names another. */
	(void)snprintf(box, sizeof(box), "%s",
		       c->who->sandbox_id[0] ? c->who->sandbox_id : call_param(c, "id"));
	jw_object_begin(&w);
	jw_str_field(&w, "keyId", c->who->key_id);
	jw_str_field(&w, "method", http_method(c->http));
	jw_str_field(&w, "route", c->route ? c->route->route.pattern : "");
	jw_str_field(&w, "sandbox", box);
	jw_str_field(&w, "subject", subject(c, about));
	jw_str_field(&w, "peer", http_peer(c->http));
	jw_int_field(&w, "status", status);
	jw_str_field(&w, "code", status >= 400 ? problem_name(status) : "");
	jw_str_field(&w, "requestId", http_request_id(c->http));
	jw_object_end(&w);
	return jw_end(&w) < 0 ? "{}" : b->data;
}

static void append(const struct api_call *c, const char *kind, int status)
{
	_cleanup_(buf_done) struct buf b = { .max = TEXT_MAX };

	audit_log_end(c->api->deps.audit, c->audit_place - 1, c->who->owner, kind,
		      write_text(c, status, &b));
}

static void begin(struct api_call *c)
{
	_cleanup_(buf_done) struct buf b = { .max = TEXT_MAX };

	c->audit_place =
		1 + audit_log_begin(c->api->deps.audit, c->who->owner, write_text(c, 0, &b));
	if (!(c->route->route.flags & ROUTE_SOCKET))
		return;
	/* What stays open for hours has a line when it begins, and another at its end. */
	append(c, "open", 0);
	c->audit_place = 0;
}

bool audit_may_begin(struct api_call *c)
{
	if (!c->api->deps.audit || !is_mutating(c))
		return true;
	if (!audit_log_is_writable(c->api->deps.audit)) {
		(void)http_header_add(c->http, "Retry-After", "5");
		problem_status(c, 503, "the store does not take the audit log's lines");
		return false;
	}
	begin(c);
	return true;
}

static void tell_denied(const struct api_call *c, int status)
{
	_cleanup_(buf_done) struct buf b = { .max = TEXT_MAX };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_str_field(&w, "peer", http_peer(c->http));
	jw_str_field(&w, "method", http_method(c->http));
	jw_str_field(&w, "route", c->route ? c->route->route.pattern : "");
	jw_int_field(&w, "status", status);
	jw_str_field(&w, "requestId", http_request_id(c->http));
	jw_object_end(&w);
	events_emit(c->api->deps.events,
		    &(struct event){ .kind = status == 401   ? SECURITY_PREFIX "auth_failed"
					     : status == 429 ? SECURITY_PREFIX "limited"
							     : SECURITY_PREFIX "denied",
				     .owner = c->who->owner,
				     .subject = c->who->key_id,
				     .text = jw_end(&w) < 0 ? NULL : b.data });
}

void audit_note(const struct api_call *c, const struct http_request *r, int status)
{
	(void)r;
	if (!c)
		return;
	if (is_denial(c, status))
		tell_denied(c, status);
	if (!c->api->deps.audit)
		return;
	if (is_denial(c, status))
		append(c, "denied", status);
	else if (is_mutating(c))
		append(c, "call", status);
}

static void write_head(struct api_call *c, struct jw *w)
{
	struct audit_chain head;
	char hex[2 * HASH_LEN + 1];

	audit_log_head(c->api->deps.audit, &head);
	encode_hex(head.hash, HASH_LEN, hex);
	jw_key(w, "head");
	jw_object_begin(w);
	jw_uint_field(w, "seq", head.seq);
	jw_str_field(w, "hash", hex);
	jw_bool_field(w, "isIntact", audit_log_is_intact(c->api->deps.audit));
	jw_object_end(w);
}

void api_audit(struct api_call *c)
{
	static const struct journal_page page = { .stream = AUDIT_STREAM,
						  .with_hash = true,
						  .extra = write_head };

	if (!c->api->deps.audit)
		return problem_status(c, 404, "there is no audit log here");
	journal_page_reply(c, &page);
}
