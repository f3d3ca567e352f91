#include "api/socket.h"

#include <errno.h>

#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "net/ws.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define CLOSE_FAILURE 1011

void socket_send(struct ws *w, struct jw *message)
{
	ssize_t r = jw_end(message);

	if (r == 0)
		r = ws_send_text(w, message->buf->data, message->buf->len);
	if (r < 0) /* nothing happens to one that is closing */
		ws_close(w, CLOSE_FAILURE, r == -ENOBUFS ? "too much is unread" : "out of memory");
}

static void send_error(struct ws *w, const char *code, const char *field, const char *text,
		       const char *id)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw j = jw_begin(&b);

	jw_object_begin(&j);
	jw_str_field(&j, "type", "error");
	jw_str_field(&j, "code", code);
	jw_str_field(&j, "message", text);
	jw_str_field(&j, "field", field);
	jw_str_field(&j, "executionId", id);
	jw_object_end(&j);
	socket_send(w, &j);
}

void socket_send_error(struct ws *w, int status, const char *field, const char *text,
		       const char *id)
{
	send_error(w, problem_name(status), field, text, id);
}

void socket_send_refusal(struct ws *w, const struct err *err, const char *id)
{
	const struct problem *p = problem_find(err->code, PROBLEM_HERE);

	send_error(w, problem_code(p), NULL, problem_text(p, err), id);
}

void socket_send_pong(struct ws *w)
{
	static const char pong[] = "{\"type\":\"pong\"}";

	(void)ws_send_text(w, pong, sizeof(pong) - 1);
}

bool socket_decode(struct ws *w, const char *data, size_t n, const struct jv_field *fields,
		   size_t count, struct arena *a, void *dst, struct jv_doc **ret_doc)
{
	struct jv_problem problem = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	if (jv_parse(data, n, SOCKET_MESSAGE_MAX, &doc, &err) < 0) {
		socket_send_error(w, 400, NULL, err.text, NULL);
		return false;
	}
	if (jv_decode(jv_root(doc), fields, count, a, dst, &problem) < 0) {
		socket_send_error(w, 400, problem.field[0] ? problem.field : NULL,
				  problem.text[0] ? problem.text : "out of memory", NULL);
		(void)jv_free(doc);
		return false;
	}
	*ret_doc = doc;
	return true;
}
