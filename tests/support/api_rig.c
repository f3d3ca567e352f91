#include "api_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/clock.h"
#include "base/id.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "net/http.h"
#include "telemetry/metrics.h"

#define LATE_MS 10000

static void late(void *user)
{
	struct api_rig *rig = user;

	rig->is_late = true;
	loop_stop(rig->loop);
}

static void stored(void *user, unsigned events)
{
	struct api_rig *rig = user;

	(void)events;
	store_dispatch(&rig->store);
}

void rig_add_key(struct api_rig *rig, enum role role, const char *owner, char text[API_KEY_SIZE])
{
	struct err err = { 0 };
	char id[ID_LEN + 1];
	struct key_row row = {
		.id = id,
		.name = role_name(role),
		.owner = owner,
		.role = (uint8_t)role,
		.created_ms = clock_wall_ms(),
	};

	id_make(id);
	assert_int_equal(api_key_make(text, row.hash), 0);
	assert_int_equal(auth_keys_put(rig->keys, &row, &err), 0);
	assert_int_equal(store_put_key(&rig->store, &row, NULL, NULL), 0);
}

void rig_open(struct api_rig *rig)
{
	struct err err = { 0 };
	char addr[80], dir[] = "/tmp/holt-api-XXXXXX";

	memset(rig, 0, sizeof(*rig));
	log_set_level(LOG_ERROR);
	assert_int_equal(loop_create(&rig->loop, &err), 0);
	assert_int_equal(loop_timer_create(rig->loop, late, rig, &rig->timer), 0);
	service_init(&rig->service, rig->loop);
	assert_int_equal(store_open_memory(&rig->faults, &rig->store, &err), 0);
	assert_int_equal(
		loop_io_create(rig->loop, store_fd(&rig->store), stored, rig, &rig->store_io), 0);
	assert_int_equal(loop_io_want(rig->store_io, LOOP_READ), 0);
	rig->keys = auth_keys_create(AUTH_KEYS_MAX);
	rig->users = users_create(USERS_MAX);
	assert_non_null(rig->users);
	rig->metrics = metrics_create();
	rig_add_key(rig, ROLE_ADMIN, "root", rig->admin);
	rig_add_key(rig, ROLE_USER, "ann", rig->user);
	rig_add_key(rig, ROLE_VIEWER, "ann", rig->viewer);
	rig_add_key(rig, ROLE_USER, "bob", rig->other);
	rig->config.max_json_bytes = 64 << 10;
	rig->config.max_body_bytes = 4 << 20;
	rig->config.sandbox_timeout_max_ms = 24 * 3600 * 1000;
	rig->config.exec_timeout_max_ms = 3600 * 1000;
	rig->config.port_answer_ms = rig->config.port_idle_ms = 60 * 1000;
	assert_int_equal(api_create(&(struct api_deps){ .loop = rig->loop,
							.config = &rig->config,
							.sandboxes = &rig->service,
							.store = &rig->store,
							.keys = rig->keys,
							.users = rig->users,
							.metrics = rig->metrics },
				    &rig->api, &err),
			 0);
	assert_int_equal(http_server_create(rig->loop,
					    &(struct http_server_options){ .handle = api_handle,
									   .done = api_done,
									   .refuse = api_refuse,
									   .user = rig->api },
					    &rig->server, &err),
			 0);
	assert_non_null(mkdtemp(dir));
	(void)str_format(rig->path, sizeof(rig->path), "%s/s", dir);
	(void)str_format(addr, sizeof(addr), "unix:%s", rig->path);
	assert_int_equal(net_listen(rig->server, addr, NULL, &err), 0);
}

void rig_close(struct api_rig *rig)
{
	http_server_close(rig->server);
	rig->api = api_free(rig->api);
	service_done(&rig->service);
	rig->store_io = loop_io_free(rig->store_io);
	store_close(&rig->store);
	rig->server = http_server_free(rig->server);
	rig->keys = auth_keys_free(rig->keys);
	rig->users = users_free(rig->users);
	rig->metrics = metrics_free(rig->metrics);
	rig->timer = loop_timer_free(rig->timer);
	rig->loop = loop_free(rig->loop);
	(void)unlink(rig->path);
	*strrchr(rig->path, '/') = '\0';
	(void)rmdir(rig->path);
}

int rig_setup(void **state)
{
	struct api_rig *rig = calloc(1, sizeof(*rig));

	if (!rig)
		return -1;
	rig_open(rig);
	*state = rig;
	return 0;
}

int rig_teardown(void **state)
{
	rig_close(*state);
	free(*state);
	return 0;
}

static void stop(void *user)
{
	loop_stop(user);
}

/* Turns the loop once; what is not there within LATE_MS never comes. */
static void turn(struct api_rig *rig)
{
	rig->is_late = false;
	loop_timer_start(rig->timer, LATE_MS, 0);
	loop_run(rig->loop);
	loop_timer_stop(rig->timer);
	if (rig->is_late)
		fail_msg("nothing happens any more");
}

void rig_settle(struct api_rig *rig)
{
	struct loop_task end;

	/* What follows from one thing needs a few turns; a turn is one run to a posted stop. */
	loop_task_init(&end, stop, rig->loop);
	for (int i = 0; i < 50; i++) {
		loop_task_post(rig->loop, &end);
		turn(rig);
	}
}

/* ---- connections ---- */

static void readable(void *user, unsigned events)
{
	struct rig_conn *c = user;
	char data[65536];
	ssize_t n;

	(void)events;
	while ((n = read(c->fd, data, sizeof(data))) > 0)
		assert_int_equal(buf_append(&c->in, data, (size_t)n), 0);
	if (n == 0 || (n < 0 && errno != EAGAIN)) {
		c->is_closed = true;
		(void)loop_io_want(c->io, 0);
	}
	loop_stop(c->rig->loop);
}

void rig_connect(struct api_rig *rig, struct rig_conn *c)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memset(c, 0, sizeof(*c));
	c->rig = rig;
	buf_init(&c->in, 64 << 20);
	c->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_true(c->fd >= 0);
	(void)str_copy(a.sun_path, sizeof(a.sun_path), rig->path);
	assert_int_equal(connect(c->fd, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(loop_io_create(rig->loop, c->fd, readable, c, &c->io), 0);
	assert_int_equal(loop_io_want(c->io, LOOP_READ), 0);
}

void rig_disconnect(struct rig_conn *c)
{
	c->io = loop_io_free(c->io);
	(void)close(c->fd);
	buf_done(&c->in);
}

void rig_slow(struct rig_conn *c, bool on)
{
	c->is_slow = on;
	assert_int_equal(loop_io_want(c->io, on ? 0 : LOOP_READ), 0);
}

void rig_send(struct rig_conn *c, const void *data, size_t n)
{
	size_t at = 0;

	for (unsigned tries = 0; at < n && !c->is_closed; tries++) {
		ssize_t r = send(c->fd, (const char *)data + at, n - at, MSG_NOSIGNAL);

		if (r > 0)
			at += (size_t)r;
		else if (errno != EAGAIN)
			return; /* the server does not want more: its answer says why */
		else
			rig_settle(c->rig);
		if (tries > 10000)
			fail_msg("the server does not read");
	}
}

void rig_request(struct rig_conn *c, const char *key, const char *what, const char *headers,
		 long length)
{
	char head[4096], auth[96] = "", size[48] = "";

	if (key && *key)
		(void)str_format(auth, sizeof(auth), "Authorization: Bearer %s\r\n", key);
	if (length >= 0)
		(void)str_format(size, sizeof(size), "Content-Length: %ld\r\n", length);
	assert_int_equal(str_format(head, sizeof(head), "%s HTTP/1.1\r\nHost: x\r\n%s%s%s\r\n",
				    what, auth, size, headers),
			 0);
	rig_send(c, head, strlen(head));
}

bool rig_has(const struct rig_conn *c, const char *text)
{
	return c->in.len > 0 && memmem(c->in.data, c->in.len, text, strlen(text));
}

void rig_until(struct rig_conn *c, const char *text)
{
	while (!rig_has(c, text)) {
		if (c->is_closed)
			fail_msg("closed, and without '%s' in: %s", text, buf_str(&c->in));
		turn(c->rig);
	}
}

void rig_until_closed(struct rig_conn *c)
{
	while (!c->is_closed)
		turn(c->rig);
}

/* ---- answers ---- */

static void take_chunks(struct rig_answer *a, const char *p, const char *end)
{
	for (;;) {
		char *rest;
		/* NOTE: strtoul() reads the hex that parse_u64() does not; the input is our own. */
		size_t n = strtoul(p, &rest, 16);

		if (n == 0 || rest + 2 + n > end)
			return;
		assert_int_equal(buf_append(&a->body, rest + 2, n), 0);
		p = rest + 2 + n + 2;
	}
}

static void take_answer(struct rig_answer *a, const struct buf *in)
{
	const char *end = in->len ? memmem(in->data, in->len, "\r\n\r\n", 4) : NULL;
	uint32_t status = 0;
	char text[4];

	memset(a, 0, sizeof(*a));
	buf_init(&a->body, 64 << 20);
	if (!end)
		fail_msg("no answer: '%s'", buf_str(in));
	a->head = strndup(in->data, (size_t)(end - in->data) + 2);
	(void)str_format(text, sizeof(text), "%.3s", in->data + strlen("HTTP/1.1 "));
	assert_int_equal(parse_u32(text, 100, 599, &status), 0);
	a->status = (int)status;
	end += 4;
	if (rig_header(a, "Transfer-Encoding"))
		take_chunks(a, end, in->data + in->len);
	else
		assert_int_equal(buf_append(&a->body, end, (size_t)(in->data + in->len - end)), 0);
}

void rig_ask(struct api_rig *rig, const char *key, const char *what, const char *headers,
	     const char *body, struct rig_answer *ret)
{
	struct rig_conn c;
	char all[2048];

	rig_connect(rig, &c);
	assert_int_equal(str_format(all, sizeof(all), "Connection: close\r\n%s%s",
				    body && !strstr(headers, "Content-Type")
					    ? "Content-Type: application/json\r\n"
					    : "",
				    headers),
			 0);
	rig_request(&c, key, what, all, body ? (long)strlen(body) : -1);
	if (body)
		rig_send(&c, body, strlen(body));
	rig_until_closed(&c);
	take_answer(ret, &c.in);
	rig_disconnect(&c);
}

void rig_answer_done(struct rig_answer *a)
{
	free(a->head);
	buf_done(&a->body);
}

const char *rig_header(const struct rig_answer *a, const char *name)
{
	static char value[1024]; /* NOTE: for one thread of one test */
	struct str rest = str_of(a->head), line;
	size_t n = strlen(name);

	while (str_split(&rest, '\n', &line)) {
		if (line.len <= n + 1 || strncasecmp(line.data, name, n) != 0 ||
		    line.data[n] != ':')
			continue;
		line = str_trim((struct str){ line.data + n + 1, line.len - n - 1 });
		(void)str_format(value, sizeof(value), "%.*s", (int)line.len, line.data);
		return value;
	}
	return NULL;
}

void rig_expect(struct api_rig *rig, const char *key, const char *what, const char *body,
		int status, const char *piece)
{
	struct rig_answer a;

	rig_ask(rig, key, what, "", body, &a);
	if (a.status != status || (piece && !strstr(buf_str(&a.body), piece)))
		fail_msg("%s: %d %s; want %d %s", what, a.status, buf_str(&a.body), status,
			 piece ? piece : "");
	rig_answer_done(&a);
}

/* ---- WebSocket ---- */

void rig_ws_open(struct api_rig *rig, struct rig_conn *c, const char *key, const char *path)
{
	char what[512];

	rig_connect(rig, c);
	(void)str_format(what, sizeof(what), "GET %s", path);
	rig_request(c, key, what,
		    "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
		    "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n",
		    -1);
	rig_until(c, "\r\n\r\n");
}

void rig_ws_send(struct rig_conn *c, bool text, const void *data, size_t n)
{
	unsigned char head[14] = { (unsigned char)(text ? 0x81 : 0x82) };
	size_t len = 2;

	assert_true(n < 65536);
	if (n < 126) {
		head[1] = (unsigned char)(0x80 | n);
	} else {
		head[1] = 0x80 | 126;
		head[2] = (unsigned char)(n >> 8);
		head[3] = (unsigned char)n;
		len = 4;
	}
	len += 4; /* a mask of zeros changes nothing */
	rig_send(c, head, len);
	rig_send(c, data, n);
}
