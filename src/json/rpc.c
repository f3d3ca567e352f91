#include "json/rpc.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "json/jw.h"

static bool is_id(struct jv v)
{
	int64_t n;

	return jv_kind(v) == JV_STRING || jv_i64(v, &n) == 0;
}

static int read_answer(struct jv v, struct rpc_message *m, struct err *err)
{
	struct jv error = jv_get(v, "error");
	int64_t code;

	m->result = jv_get(v, "result");
	if (jv_kind(error) == JV_ABSENT) {
		m->kind = RPC_RESULT;
		if (jv_kind(m->result) != JV_OBJECT)
			return err_set(err, EINVAL, "result: want an object");
		return jv_kind(m->id) == JV_ABSENT ? err_set(err, EINVAL, "id: wanted") : 0;
	}
	m->kind = RPC_ERROR;
	if (jv_kind(m->result) != JV_ABSENT)
		return err_set(err, EINVAL, "both result and error");
	if (jv_i64(jv_get(error, "code"), &code) < 0)
		return err_set(err, EINVAL, "error.code: want an integer");
	m->code = (long)code;
	m->text = jv_text(jv_get(error, "message"));
	if (!m->text)
		m->text = "";
	m->data = jv_get(error, "data");
	return 0;
}

int rpc_read(struct jv v, struct rpc_message *ret, struct err *err)
{
	struct rpc_message m = { .text = "" };
	const char *version = jv_text(jv_get(v, "jsonrpc"));
	struct jv id = jv_get(v, "id"), method = jv_get(v, "method");
	int r = 0;

	if (is_id(id))
		m.id = id;
	*ret = m;
	if (jv_kind(v) != JV_OBJECT)
		return err_set(err, EINVAL, "a message is an object");
	if (!version || strcmp(version, "2.0") != 0)
		return err_set(err, EINVAL, "jsonrpc: want \"2.0\"");
	if (jv_kind(method) == JV_ABSENT) {
		r = read_answer(v, &m, err);
		*ret = m;
		return r;
	}
	m.method = jv_text(method);
	m.params = jv_get(v, "params");
	if (!m.method)
		r = err_set(err, EINVAL, "method: want a string");
	else if (jv_kind(id) != JV_ABSENT && !is_id(id))
		r = err_set(err, EINVAL, "id: want a string or an integer");
	else if (jv_kind(m.params) != JV_ABSENT && jv_kind(m.params) != JV_OBJECT)
		r = err_set(err, EINVAL, "params: want an object");
	m.kind = jv_kind(id) == JV_ABSENT ? RPC_NOTIFICATION : RPC_REQUEST;
	*ret = m;
	return r;
}

int rpc_id(struct jv id, char *dst, size_t size)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct jw w = jw_begin(&text);
	int r;

	if (!is_id(id))
		return -EINVAL;
	jw_value(&w, id);
	r = jw_end(&w);
	if (r < 0)
		return r;
	if (text.len >= size)
		return -E2BIG;
	memcpy(dst, text.data, text.len);
	dst[text.len] = '\0';
	return 0;
}

static void begin(struct jw *w)
{
	jw_object_begin(w);
	jw_str_field(w, "jsonrpc", "2.0");
}

static void write_id(struct jw *w, const char *id)
{
	if (id)
		jw_raw_field(w, "id", id, strlen(id));
	else
		jw_null_field(w, "id");
}

void rpc_request_begin(struct jw *w, const char *id, const char *method)
{
	begin(w);
	write_id(w, id);
	jw_str_field(w, "method", method);
	jw_key(w, "params");
}

void rpc_notification_begin(struct jw *w, const char *method)
{
	begin(w);
	jw_str_field(w, "method", method);
	jw_key(w, "params");
}

void rpc_result_begin(struct jw *w, const char *id)
{
	begin(w);
	write_id(w, id);
	jw_key(w, "result");
}

void rpc_end(struct jw *w)
{
	jw_object_end(w);
}

void rpc_error(struct jw *w, const char *id, long code, const char *text, const char *data)
{
	begin(w);
	write_id(w, id);
	jw_key(w, "error");
	jw_object_begin(w);
	jw_int_field(w, "code", code);
	jw_str_field(w, "message", text);
	if (data)
		jw_raw_field(w, "data", data, strlen(data));
	jw_object_end(w);
	rpc_end(w);
}
