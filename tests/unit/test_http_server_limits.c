/* The server's limits with short times, its listeners, its shutting down, and who may ask. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "loop/loop.h"
#include "net_rig.h"

#define H "Host: a\r\n"
#define GET "GET / HTTP/1.1\r\n" H "\r\n"

struct test {
	struct net_rig g;
	struct net_client c;
	struct http_request *kept;
	bool gone, drained;
	unsigned handled, reports;
	int status;
};

static void on_gone(void *user, struct http_request *r)
{
	struct test *t = user;

	(void)r;
	t->gone = true;
	t->kept = NULL;
}

static void got(void *user, struct http_request *r, const char *data, size_t n)
{
	(void)user;
	http_reply(r, 200, "text/plain", data, n);
}

static void handle(void *user, struct http_request *r)
{
	struct test *t = user;

	t->handled++;
	if (strcmp(http_path(r), "/keep") == 0) {
		t->kept = r;
		http_on_gone(r, on_gone, t);
	} else if (strcmp(http_path(r), "/collect") == 0) {
		http_on_gone(r, on_gone, t);
		http_body_collect(r, 1000, got, t);
	} else {
		http_reply(r, 200, "text/plain", http_peer(r), strlen(http_peer(r)));
	}
}

static void done(void *user, const struct http_request *r, int status, uint64_t bytes,
		 uint64_t took_us)
{
	struct test *t = user;

	(void)r;
	(void)bytes;
	(void)took_us;
	t->reports++;
	t->status = status;
}

static struct test *open_with(const struct http_limits *limits, const struct http_cors *cors)
{
	struct test *t = calloc(1, sizeof(*t));
	struct http_server_options o = { .handle = handle, .done = done, .user = t, .cors = cors };

	assert_non_null(t);
	if (limits)
		o.limits = *limits;
	net_rig_open(&t->g, &o);
	net_client_open(&t->c, &t->g);
	return t;
}

static void close_test(struct test *t)
{
	net_client_close(&t->c);
	net_rig_close(&t->g);
	free(t);
}

static void a_head_that_drips_is_ended(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .head_ms = 100 }, NULL);

	(void)state;
	/* A byte now and then does not help: the time is that of the whole head. */
	for (int i = 0; i < 100 && !t->c.closed; i++) {
		net_client_puts(&t->c, i == 0 ? "GET / HTTP/1.1\r\nX: " : "y");
		net_rig_run_ms(&t->g, 10);
	}
	assert_true(t->c.closed); /* while it was dripping */
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 408 ", 13);
	assert_int_equal(t->handled, 0);
	assert_int_equal(t->status, 408);
	close_test(t);
}

static void even_blank_lines_start_the_clock_of_a_head(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .head_ms = 100 }, NULL);

	(void)state;
	for (int i = 0; i < 100 && !t->c.closed; i++) {
		net_client_puts(&t->c, "\r\n");
		net_rig_run_ms(&t->g, 10);
	}
	net_client_until(&t->c, "HTTP/1.1 408 ");
	close_test(t);
}

static void an_idle_connection_is_closed_without_a_word(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .idle_ms = 100 }, NULL);
	struct net_client fresh;

	(void)state;
	net_client_open(&fresh, &t->g); /* never says anything */
	(void)net_client_ask(&t->c, GET);
	net_client_forget(&t->c);
	net_client_until_closed(&t->c);
	net_client_until_closed(&fresh);
	assert_int_equal(t->c.got.len + fresh.got.len, 0);
	assert_int_equal(t->reports, 1);
	net_client_close(&fresh);
	close_test(t);
}

static void requests_keep_a_connection_from_being_idle(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .idle_ms = 1000 }, NULL);

	(void)state;
	for (int i = 0; i < 10; i++) {
		(void)net_client_ask(&t->c, GET);
		net_rig_run_ms(&t->g, 150);
	}
	assert_false(t->c.closed);
	close_test(t);
}

static void a_request_under_way_has_all_the_time_it_wants(void **state)
{
	struct test *t = open_with(
		&(struct http_limits){
			.idle_ms = 50, .head_ms = 50, .body_ms = 50, .write_ms = 50 },
		NULL);

	(void)state;
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 300);
	assert_false(t->gone);
	http_reply(t->kept, 200, "text/plain", "late", 4);
	net_client_until(&t->c, "late");
	close_test(t);
}

static void a_body_that_stops_coming_is_ended(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .body_ms = 1000 }, NULL);

	(void)state;
	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 20\r\n\r\n");
	for (int i = 0; i < 15; i++) { /* slow is fine */
		net_client_puts(&t->c, "x");
		net_rig_run_ms(&t->g, 100);
	}
	assert_false(t->c.closed);
	assert_false(t->gone);
	net_client_until_closed(&t->c);
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 408 ", 13);
	assert_true(t->gone);
	assert_int_equal(t->reports, 1);
	close_test(t);
}

static void a_body_that_comes_for_ever_is_ended(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .whole_ms = 500 }, NULL);

	(void)state;
	net_client_puts(&t->c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 1000\r\n\r\n");
	while (!t->c.closed && !t->gone) {
		net_client_puts(&t->c, "x");
		net_rig_run_ms(&t->g, 20);
	}
	net_client_until_closed(&t->c);
	assert_non_null(strstr(buf_str(&t->c.got), "the request's body took too long"));
	assert_memory_equal(buf_str(&t->c.got), "HTTP/1.1 408 ", 13);
	assert_true(t->gone);
	close_test(t);
}

static void a_client_that_does_not_read_is_cut(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .write_ms = 100 }, NULL);
	char *data = calloc(1, 8 << 20);

	(void)state;
	assert_non_null(data);
	net_client_read(&t->c, false);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "application/octet-stream", -1);
	assert_true(http_write(t->kept, data, 8 << 20) > 0);
	net_rig_until(&t->g, &t->gone);
	assert_int_equal(http_server_connections(t->g.server), 0);
	free(data);
	close_test(t);
}

static void a_slow_reader_is_not_cut_while_it_reads(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .write_ms = 1000 }, NULL);
	char *data = calloc(1, 8 << 20);

	(void)state;
	assert_non_null(data);
	net_client_read(&t->c, false);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_reply(t->kept, 200, "application/octet-stream", data, 8 << 20);
	for (int i = 0; i < 12; i++) {
		net_rig_run_ms(&t->g, 120);
		for (int k = 0; k < 8; k++) {
			ssize_t n = recv(t->c.fd, data, 65536, 0);

			assert_true(n > 0 || errno == EAGAIN);
		}
	}
	assert_int_equal(http_server_connections(t->g.server), 1);
	free(data);
	close_test(t);
}

static void pending_output_has_a_limit(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .pending_max = 1 << 20 }, NULL);
	char *data = calloc(1, 2 << 20);
	ssize_t n = 0;

	(void)state;
	assert_non_null(data);
	net_client_read(&t->c, false);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_begin(t->kept, 200, "application/octet-stream", -1);
	for (int i = 0; i < 1000 && n >= 0; i++)
		n = http_write(t->kept, data, 100000);
	assert_int_equal(n, -ENOBUFS);
	assert_false(t->gone); /* not from within */
	assert_true(http_pending(t->kept) <= (1 << 20) + 100);
	net_rig_until(&t->g, &t->gone);
	net_client_read(&t->c, true);
	net_client_until_closed(&t->c);
	net_client_close(&t->c);
	/* A whole answer above it is an error of ours. */
	net_client_open(&t->c, &t->g);
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_reply(t->kept, 200, "text/plain", data, (1 << 20) + 1);
	net_client_until(&t->c, "HTTP/1.1 500 ");
	free(data);
	close_test(t);
}

static void who_does_not_read_answers_gets_no_more_of_them(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .pending_max = 1 << 20 }, NULL);
	unsigned before;

	(void)state;
	net_client_read(&t->c, false);
	for (int i = 0; i < 500; i++) {
		for (int k = 0; k < 200; k++)
			(void)send(t->c.fd, GET, sizeof(GET) - 1, MSG_NOSIGNAL | MSG_DONTWAIT);
		net_rig_run_ms(&t->g, 1);
	}
	before = t->handled;
	net_rig_run_ms(&t->g, 50);
	assert_int_equal(t->handled, before); /* it stands still ... */
	assert_int_equal(http_server_connections(t->g.server), 1);
	net_client_read(&t->c, true);
	for (int i = 0; i < 2000 && t->handled == before; i++)
		net_rig_run_ms(&t->g, 1);
	assert_true(t->handled > before); /* ... until the client reads */
	close_test(t);
}

static void clients_above_the_limit_are_turned_away(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .conns_max = 3 }, NULL);
	struct net_client more[3];

	(void)state;
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n"); /* each waits for its answer */
	for (int i = 0; i < 2; i++) {
		net_client_open(&more[i], &t->g);
		net_client_puts(&more[i],
				"POST /collect HTTP/1.1\r\n" H "Content-Length: 2\r\n\r\n1");
	}
	while (t->handled < 3)
		net_rig_run_ms(&t->g, 1);
	net_client_open(&more[2], &t->g);
	net_client_until_closed(&more[2]);
	assert_memory_equal(buf_str(&more[2].got), "HTTP/1.1 503 ", 13);
	assert_true(net_client_has(&more[2], "\"code\":\"unavailable\""));
	assert_int_equal(http_server_connections(t->g.server), 3);
	net_client_puts(&more[1], "2"); /* the others are served */
	net_client_until(&more[1], "\r\n\r\n12");
	net_client_close(&more[0]);
	net_client_close(&more[2]);
	net_rig_run_ms(&t->g, 30);
	net_client_open(&more[0], &t->g); /* and there is room again */
	(void)net_client_ask(&more[0], GET);
	net_client_close(&more[0]);
	net_client_close(&more[1]);
	close_test(t);
}

/* Whoever only holds connections keeps nobody out, however he makes them look busy. */
static void who_is_quiet_gives_way_to_who_comes(void **state)
{
	static const char *const quiet[] = {
		"",                      /* not a word */
		"GET / HTTP/1.1\r\nX: ", /* half a head */
		GET,                     /* between two */
		"POST / HTTP/1.1\r\n" H
		"Content-Length: 1000\r\n\r\nbody", /* answered before its end */
	};
	struct net_client others[4], late;

	(void)state;
	for (size_t i = 0; i < sizeof(quiet) / sizeof(quiet[0]); i++) {
		struct test *t = open_with(&(struct http_limits){ .conns_max = 5 }, NULL);

		net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
		for (int k = 0; k < 4; k++) {
			net_client_open(&others[k], &t->g);
			net_client_puts(&others[k], quiet[i]);
			net_rig_run_ms(&t->g, 5);
		}
		net_client_open(&late, &t->g);
		(void)net_client_ask(&late, GET);
		net_client_until_closed(&others[0]); /* the first of them */
		assert_false(others[1].closed);
		assert_int_equal(http_server_connections(t->g.server), 5);
		http_reply(t->kept, 200, "text/plain", "kept",
			   4); /* who waited is not among them */
		net_client_until(&t->c, "kept");
		net_client_close(&late);
		for (int k = 0; k < 4; k++)
			net_client_close(&others[k]);
		close_test(t);
	}
}

static void without_descriptors_the_server_waits_and_goes_on(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .linger_ms = 40 }, NULL);
	struct rlimit before, few;
	struct net_client late;
	int spare = dup(0);

	(void)state;
	(void)net_client_ask(&t->c, GET);
	net_client_open(&late, &t->g);
	assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
	few = before;
	few.rlim_cur = 3; /* every number below it is taken */
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &few), 0);
	net_rig_run_ms(&t->g, 60);
	assert_int_equal(http_server_connections(t->g.server), 1);
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
	(void)net_client_ask(&late, GET);
	net_client_close(&late);
	(void)close(spare);
	close_test(t);
}

static void a_lingering_connection_is_closed_in_the_end(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .linger_ms = 100 }, NULL);

	(void)state;
	net_client_puts(&t->c, "BAD\r\n\r\n");
	net_client_until_closed(&t->c); /* our half of it */
	assert_int_equal(http_server_connections(t->g.server), 1);
	for (int i = 0; i < 2000 && http_server_connections(t->g.server) > 0; i++)
		net_rig_run_ms(&t->g, 1);
	assert_int_equal(http_server_connections(t->g.server), 0);
	close_test(t);
}

static void on_drained(void *user)
{
	struct test *t = user;

	t->drained = true;
	t->g.server = http_server_free(t->g.server); /* allowed here */
}

static void draining_closes_the_idle_and_waits_for_the_busy(void **state)
{
	struct test *t = open_with(NULL, NULL);
	struct net_client busy;

	(void)state;
	net_client_open(&busy, &t->g);
	(void)net_client_ask(&t->c, GET);
	net_client_puts(&busy, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_server_drain(t->g.server, 10000, on_drained, t);
	net_client_until_closed(&t->c);
	net_rig_run_ms(&t->g, 20);
	assert_false(t->drained);
	http_reply(t->kept, 200, "text/plain", "bye", 3);
	net_client_until_closed(&busy);
	assert_true(net_client_has(&busy, "bye"));
	assert_true(net_client_has(&busy, "Connection: close\r\n"));
	net_rig_until(&t->g, &t->drained);
	assert_false(t->gone);
	net_client_close(&busy);
	close_test(t);
}

static void draining_does_not_wait_for_ever(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .linger_ms = 100 }, NULL);

	(void)state;
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	http_server_drain(t->g.server, 100, on_drained, t);
	net_rig_until(&t->g, &t->drained);
	assert_true(t->gone);
	net_client_until_closed(&t->c);
	close_test(t);
}

static void draining_nothing_is_soon_over(void **state)
{
	struct test *t = open_with(NULL, NULL);

	(void)state;
	net_client_close(&t->c);
	net_rig_run_ms(&t->g, 20);
	http_server_drain(t->g.server, 10000, on_drained, t);
	assert_false(t->drained); /* not from within */
	net_rig_until(&t->g, &t->drained);
	net_rig_close(&t->g);
	free(t);
}

static void freeing_the_server_tells_all_that_they_are_gone(void **state)
{
	struct test *t = open_with(NULL, NULL);

	(void)state;
	net_client_puts(&t->c, "GET /keep HTTP/1.1\r\n" H "\r\n");
	net_rig_run_ms(&t->g, 20);
	t->g.server = http_server_free(t->g.server);
	assert_true(t->gone);
	net_client_until_closed(&t->c);
	close_test(t);
}

static void addresses_that_are_none_are_refused(void **state)
{
	static const char *const bad[] = {
		"",       "127.0.0.1", "127.0.0.1:",     "127.0.0.1:65536", "127.0.0.1:-1",
		"::1:80", "[::1:80",   "[127.0.0.1]:80", "example.org:80",  "unix:relative",
		"unix:"
	};
	struct test *t = open_with(NULL, NULL);
	struct err err;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		err = (struct err){ 0 };
		assert_int_equal(net_listen(t->g.server, bad[i], NULL, &err), -EINVAL);
		assert_non_null(strstr(err.text, "listen on '"));
	}
	close_test(t);
}

static void several_addresses_are_listened_on(void **state)
{
	static const char *const good[] = { "localhost:0", ":0", "*:0" };
	struct test *t = open_with(NULL, NULL);
	struct net_client c;
	struct err err = { 0 };
	char again[32];
	int first = t->g.port;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t->g.port = net_listen(t->g.server, good[i], NULL, &err);
		assert_true(t->g.port > 0);
		net_client_open(&c, &t->g);
		/* An IPv4 client is one, also at a socket for both kinds. */
		assert_non_null(strstr(net_client_ask(&c, GET), "\r\n\r\n127.0.0.1"));
		net_client_close(&c);
	}
	/* A machine may be without IPv6. */
	assert_true(net_listen(t->g.server, "[::1]:0", NULL, &err) > 0 ||
		    err.code == EADDRNOTAVAIL || err.code == EAFNOSUPPORT);
	assert_int_equal(str_format(again, sizeof(again), "127.0.0.1:%d", first), 0);
	assert_int_equal(net_listen(t->g.server, again, NULL, &err), -EADDRINUSE);
	close_test(t);
}

static void unix_sockets_are_private_and_replace_only_the_dead(void **state)
{
	struct test *t = open_with(NULL, NULL);
	char dir[] = "/tmp/holt-test-XXXXXX", path[64], addr[80];
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	struct err err = { 0 };
	struct stat st;
	int fd;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(str_format(path, sizeof(path), "%s/s", dir), 0);
	assert_int_equal(str_format(addr, sizeof(addr), "unix:%s", path), 0);
	assert_int_equal(str_copy(to.sun_path, sizeof(to.sun_path), path), 0);
	/* Left behind by somebody who died. */
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	assert_int_equal(close(fd), 0);
	assert_int_equal(net_listen(t->g.server, addr, NULL, &err), 0);
	assert_int_equal(stat(path, &st), 0);
	assert_int_equal(st.st_mode & 0777, 0600);
	assert_int_equal(net_listen(t->g.server, addr, NULL, &err), -EADDRINUSE);
	net_client_close(&t->c);
	fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&to, sizeof(to)), 0);
	net_client_adopt(&t->c, &t->g, fd);
	assert_non_null(strstr(net_client_ask(&t->c, GET), "\r\n\r\nunix"));
	/* It is removed with the server; a file is never. */
	close_test(t);
	assert_int_equal(access(path, F_OK), -1);
	fd = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	t = open_with(NULL, NULL);
	assert_int_equal(net_listen(t->g.server, addr, NULL, &err), -EEXIST);
	assert_int_equal(access(path, F_OK), 0);
	close_test(t);
	assert_int_equal(close(fd) + unlink(path) + rmdir(dir), 0);
}

#define ASK(c, headers) net_client_ask(c, "GET / HTTP/1.1\r\n" H headers "\r\n")
#define PREFLIGHT(origin)                                    \
	"OPTIONS /x HTTP/1.1\r\n" H "Origin: " origin "\r\n" \
	"Access-Control-Request-Method: PUT\r\n\r\n"

static void without_cors_no_origin_gets_anything(void **state)
{
	struct test *t = open_with(NULL, NULL);

	(void)state;
	assert_null(strstr(ASK(&t->c, "Origin: https://a.example\r\n"), "Access-Control"));
	assert_int_equal(t->handled, 1);
	assert_null(
		strstr(net_client_ask(&t->c, PREFLIGHT("https://a.example")), "Access-Control"));
	assert_int_equal(t->handled, 2); /* OPTIONS is the handler's */
	close_test(t);
}

static void listed_origins_get_access_and_others_do_not(void **state)
{
	static const char *const list[] = { "https://a.example", "http://b.example:8080", NULL };
	static const struct http_cors cors = { .origins = list, .credentials = true };
	struct test *t = open_with(NULL, &cors);
	const char *a;

	(void)state;
	a = ASK(&t->c, "Origin: https://a.example\r\n");
	assert_non_null(strstr(a, "\r\nAccess-Control-Allow-Origin: https://a.example\r\n"));
	assert_non_null(strstr(a, "\r\nAccess-Control-Allow-Credentials: true\r\n"));
	assert_non_null(strstr(a, "\r\nVary: Origin\r\n"));
	a = ASK(&t->c, "Origin: https://a.example.evil\r\n");
	assert_null(strstr(a, "Access-Control"));
	assert_non_null(strstr(a, "\r\nVary: Origin\r\n"));
	assert_null(strstr(ASK(&t->c, "Origin: null\r\n"), "Access-Control"));
	assert_null(strstr(ASK(&t->c, ""), "Access-Control"));
	assert_int_equal(t->handled, 4);
	net_client_forget(&t->c);
	net_client_puts(&t->c, PREFLIGHT("http://b.example:8080"));
	net_client_until(&t->c, "\r\n\r\n");
	a = buf_str(&t->c.got);
	assert_memory_equal(a, "HTTP/1.1 204 ", 13);
	assert_non_null(strstr(a, "Access-Control-Allow-Origin: http://b.example:8080\r\n"));
	assert_non_null(strstr(a, "Access-Control-Allow-Methods: GET, HEAD, POST, PUT"));
	assert_non_null(strstr(a, "Access-Control-Allow-Headers: Authorization, "));
	assert_non_null(strstr(a, "Access-Control-Max-Age: 600\r\n"));
	a = net_client_ask(&t->c, PREFLIGHT("http://c.example"));
	assert_memory_equal(a, "HTTP/1.1 403 ", 13);
	assert_null(strstr(a, "Access-Control"));
	assert_int_equal(t->handled, 4);
	close_test(t);
}

static void any_origin_is_a_star_without_credentials(void **state)
{
	static const char *const any[] = { "*", NULL };
	static const struct http_cors open = { .origins = any };
	static const struct http_cors wrong = { .origins = any, .credentials = true };
	struct test *t = open_with(NULL, &open);
	struct http_server_options o = { .handle = handle, .cors = &wrong };
	struct http_server *s = NULL;
	struct err err = { 0 };
	const char *a = ASK(&t->c, "Origin: https://a.example\r\n");

	(void)state;
	assert_non_null(strstr(a, "\r\nAccess-Control-Allow-Origin: *\r\n"));
	assert_null(strstr(a, "Credentials"));
	assert_int_equal(http_server_create(t->g.loop, &o, &s, &err), -EINVAL);
	assert_null(s);
	close_test(t);
}

static void an_origin_that_is_none_is_refused_at_the_start(void **state)
{
	static const char *const bad[] = { "a.example", "https://a.example/", "https://" };
	struct test *t = open_with(NULL, NULL);

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		const char *const list[] = { bad[i], NULL };
		struct http_cors cors = { .origins = list };
		struct http_server_options o = { .handle = handle, .cors = &cors };
		struct http_server *s = NULL;

		assert_int_equal(http_server_create(t->g.loop, &o, &s, NULL), -EINVAL);
	}
	close_test(t);
}

static int make_server(void *arg)
{
	struct test *t = arg;
	struct http_server_options o = { .handle = handle, .user = t };
	struct http_server *s = NULL;
	int r = http_server_create(t->g.loop, &o, &s, NULL);

	if (r == 0)
		r = net_listen(s, "127.0.0.1:0", NULL, NULL);
	s = http_server_free(s);
	return r > 0 ? 0 : r;
}

static void a_server_is_not_made_without_memory(void **state)
{
	struct test *t = open_with(NULL, NULL);

	(void)state;
	assert_true(fault_each(make_server, t) >= 6);
	close_test(t);
}

/* Whatever allocation fails, the client is answered or cut, and the next one is served. */
static void a_request_without_memory_harms_no_other(void **state)
{
	struct test *t = open_with(&(struct http_limits){ .head_ms = 200, .idle_ms = 200 }, NULL);
	bool failed = true;

	(void)state;
	for (size_t n = 1; failed && n < 100; n++) {
		struct net_client c;

		net_client_open(&c, &t->g);
		net_client_read(&c, false); /* whose memory is not meant */
		net_client_puts(&c, "POST /collect HTTP/1.1\r\n" H "Content-Length: 5\r\n\r\nhel");
		fault_arm(n);
		net_rig_run_ms(&t->g, 10);
		net_client_puts(&c, "lo");
		net_rig_run_ms(&t->g, 10);
		failed = fault_disarm();
		net_client_close(&c);
		net_client_open(&c, &t->g);
		(void)net_client_ask(&c, GET);
		net_client_close(&c);
	}
	assert_false(failed);
	close_test(t);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_head_that_drips_is_ended),
		cmocka_unit_test(even_blank_lines_start_the_clock_of_a_head),
		cmocka_unit_test(an_idle_connection_is_closed_without_a_word),
		cmocka_unit_test(requests_keep_a_connection_from_being_idle),
		cmocka_unit_test(a_request_under_way_has_all_the_time_it_wants),
		cmocka_unit_test(a_body_that_stops_coming_is_ended),
		cmocka_unit_test(a_body_that_comes_for_ever_is_ended),
		cmocka_unit_test(a_client_that_does_not_read_is_cut),
		cmocka_unit_test(a_slow_reader_is_not_cut_while_it_reads),
		cmocka_unit_test(pending_output_has_a_limit),
		cmocka_unit_test(who_does_not_read_answers_gets_no_more_of_them),
		cmocka_unit_test(clients_above_the_limit_are_turned_away),
		cmocka_unit_test(who_is_quiet_gives_way_to_who_comes),
		cmocka_unit_test(without_descriptors_the_server_waits_and_goes_on),
		cmocka_unit_test(a_lingering_connection_is_closed_in_the_end),
		cmocka_unit_test(draining_closes_the_idle_and_waits_for_the_busy),
		cmocka_unit_test(draining_does_not_wait_for_ever),
		cmocka_unit_test(draining_nothing_is_soon_over),
		cmocka_unit_test(freeing_the_server_tells_all_that_they_are_gone),
		cmocka_unit_test(addresses_that_are_none_are_refused),
		cmocka_unit_test(several_addresses_are_listened_on),
		cmocka_unit_test(unix_sockets_are_private_and_replace_only_the_dead),
		cmocka_unit_test(without_cors_no_origin_gets_anything),
		cmocka_unit_test(listed_origins_get_access_and_others_do_not),
		cmocka_unit_test(any_origin_is_a_star_without_credentials),
		cmocka_unit_test(an_origin_that_is_none_is_refused_at_the_start),
		cmocka_unit_test(a_server_is_not_made_without_memory),
		cmocka_unit_test(a_request_without_memory_harms_no_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
