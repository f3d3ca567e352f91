#include "serve_rig.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/id.h"
#include "base/str.h"
#include "check.h"
#include "loop/loop.h"

void serve_gone(void *user, struct http_request *r)
{
	struct serve_rig *t = user;

	assert_ptr_equal(r, t->kept);
	t->gone = true;
	t->kept = NULL;
}

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	struct serve_rig *t = user;

	t->ended = true;
	assert_int_equal(data[n], '\0');
	http_reply(r, 200, "text/plain", data, n);
}

static void on_data(void *user, struct http_request *r, const char *data, size_t n)
{
	struct serve_rig *t = user;

	assert_int_equal(buf_append(&t->body, data, n), 0);
	t->pieces++;
	if (t->pause)
		http_body_pause(r, true);
	if (strcmp(http_path(r), "/early") == 0)
		http_reply(r, 200, "text/plain", "early", 5);
}

static void on_end(void *user, struct http_request *r)
{
	struct serve_rig *t = user;

	t->ended = true;
	http_reply(r, 200, "text/plain", buf_str(&t->body), t->body.len);
}

static void on_body_gone(void *user, struct http_request *r)
{
	struct serve_rig *t = user;

	(void)r;
	t->body_gone = true;
	t->kept = NULL;
}

const struct http_body_ops serve_body_ops = { on_data, on_end, on_body_gone };

static void describe(struct http_request *r)
{
	struct buf b = { 0 };
	const char *v = "-", *name;
	int n = http_query(r, "q", &v);

	(void)buf_printf(&b, "%s|%s|%s|q=%d:%s|x=%s|%s|%d|", http_method(r), http_path(r),
			 http_query_string(r), n, v,
			 http_header(r, "x-a") ? http_header(r, "x-a") : "-", http_peer(r),
			 http_is_tls(r));
	for (unsigned i = 0; (v = http_header_at(r, i, &name)); i++)
		(void)buf_printf(&b, "%s,", name);
	http_reply(r, 200, "text/plain", b.data, b.len);
	buf_done(&b);
}

void serve_drain(void *user, struct http_request *r)
{
	struct serve_rig *t = user;

	assert_true(http_pending(r) <= 1000);
	t->drains++;
	t->drained = true;
}

static void stream_answer(struct serve_rig *t, struct http_request *r)
{
	http_begin(r, 200, "text/plain", strstr(http_path(r), "sized") ? 11 : -1);
	assert_true(http_write(r, "hello ", 6) > 0);
	assert_true(http_write(r, "", 0) > 0);
	assert_true(http_write(r, "world", 5) > 0);
	http_end(r);
	(void)t;
}

static void handle(void *user, struct http_request *r)
{
	struct serve_rig *t = user;
	const char *path = http_path(r);

	t->handled++;
	assert_true(id_is_valid(http_request_id(r)));
	for (unsigned i = 0; i < HTTP_USER_SLOTS; i++)
		assert_null(http_user(r, i)); /* nothing of the request before */
	http_user_set(r, 1, t);
	assert_ptr_equal(http_user(r, 1), t);
	assert_int_equal(arena_used(http_arena(r)), 0);
	assert_non_null(arena_alloc(http_arena(r), 100));
	if (strcmp(path, "/collect") == 0) {
		http_body_collect(r, 100000, got, t);
		assert_false(t->ended); /* never from within */
	} else if (strcmp(path, "/stream") == 0 || strcmp(path, "/early") == 0) {
		t->kept = r;
		http_body_stream(r, &serve_body_ops, t);
	} else if (strncmp(path, "/answer", 7) == 0) {
		stream_answer(t, r);
	} else if (strcmp(path, "/keep") == 0) {
		t->kept = r;
		http_on_gone(r, serve_gone, t);
	} else if (strcmp(path, "/forget") == 0) {
		t->kept = r; /* nobody tells when the client leaves */
	} else if (strcmp(path, "/header") == 0) {
		assert_int_equal(http_header_add(r, "X-Good", "yes, \xc3\xa4"), 0);
		assert_int_equal(http_header_add(r, "X-Split", "a\r\nSet-Cookie: b"), -EINVAL);
		assert_int_equal(http_header_add(r, "X-Ctl", "a\x01"), -EINVAL);
		assert_int_equal(http_header_add(r, "X Bad", "a"), -EINVAL);
		assert_int_equal(http_header_add(r, "X:Bad", "a"), -EINVAL);
		assert_int_equal(http_header_add(r, "", "a"), -EINVAL);
		http_reply(r, 201, NULL, NULL, 0);
	} else if (strcmp(path, "/204") == 0) {
		http_reply(r, 204, NULL, NULL, 0);
	} else if (strcmp(path, "/error") == 0) {
		http_reply_error(r, 409, "conflict", "a \"name\" is\ntaken");
	} else {
		describe(r);
	}
}

static void done(void *user, const struct http_request *r, int status, uint64_t bytes,
		 uint64_t took_us)
{
	struct serve_rig *t = user;

	t->status = status;
	t->bytes = bytes;
	t->reports++;
	assert_true(took_us < 60000000);
	assert_int_equal(str_copy(t->path, sizeof(t->path), http_path(r)), 0);
	assert_true(id_is_valid(http_request_id(r)));
	assert_true(!http_header(r, "host") || strcmp(http_header(r, "host"), "a") == 0);
}

int serve_setup(void **state)
{
	struct serve_rig *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .done = done, .user = t };

	assert_non_null(t);
	net_rig_open(&t->g, &o);
	net_client_open(&t->c, &t->g);
	*state = t;
	return 0;
}

int serve_teardown(void **state)
{
	struct serve_rig *t = *state;

	net_client_close(&t->c);
	net_rig_close(&t->g);
	buf_done(&t->body);
	free(t);
	return 0;
}

const char *serve_body_of(const char *answer)
{
	const char *end = strstr(answer, "\r\n\r\n");

	assert_non_null(end);
	return end + 4;
}
