#include "e2b/refuse.h"

#include <string.h>

#include "api/call.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "e2b/rpc.h"
#include "net/http.h"
#include "json/jw.h"

static void reply(struct api_call *c, int status, struct jw *w)
{
	jw_object_end(w);
	if (jw_end(w) < 0)
		return http_reply_error(c->http, status, "internal_error", "out of memory");
	http_reply(c->http, status, "application/json", w->buf->data, w->buf->len);
}

/* Their errors have no place for a field: the message names it. */
static void write_message(struct jw *w, const char *message, const char *field)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (field && !strstr(message, field) && buf_printf(&b, "%s: %s", field, message) == 0)
		message = buf_str(&b);
	jw_str_field(w, "message", message);
}

static void begin(struct jw *w, int status, const char *message, const char *field)
{
	jw_object_begin(w);
	jw_int_field(w, "code", status);
	write_message(w, message, field);
}

void e2b_refuse_rest(struct api_call *c, int status, const char *code, const char *message,
		     const char *field)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	/* To their clients a quota is a matter of asking again later, when others have ended. */
	if (strcmp(code, "quota_exceeded") == 0) {
		status = 429;
		(void)http_header_add(c->http, "Retry-After", "1");
	}
	begin(&w, status, message, field);
	jw_str_field(&w, "error_code", code);
	reply(c, status, &w);
}

/* "/process.Process/Start", "/filesystem.Filesystem/Stat". */
static bool is_rpc(const struct api_call *c)
{
	const char *path = http_path(c->http), *name = strchr(path + (path[0] == '/'), '/');

	return name && memchr(path, '.', (size_t)(name - path));
}

void e2b_refuse_envd(struct api_call *c, int status, const char *code, const char *message,
		     const char *field)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	(void)code; /* what is in a sandbox has no such field, unlike the control plane */
	if (!is_rpc(c)) {
		begin(&w, status, message, field);
		return reply(c, status, &w);
	}
	if (!c->route) /* a call that nobody knows: the status says so, also to a stream */
		return rpc_refuse_unknown(c);
	rpc_refuse(c, status, message);
}

void e2b_refuse_text(struct api_call *c, int status, const char *code, const char *message,
		     const char *field)
{
	(void)code;
	(void)field;
	http_reply(c->http, status, "text/plain; charset=utf-8", message, strlen(message));
}
