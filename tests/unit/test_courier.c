#include "outbound/courier.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "http_rig.h"
#include "loop/loop.h"
#include "loop/resolve.h"

#define OK "HTTP/1.1 204 No Content\r\nConnection: close\r\n\r\n"
#define NOBODY "http://127.0.0.1:1/"

struct rig {
	struct loop *loop;
	struct courier *courier;
	struct loop_timer *limit;
	unsigned told, wanted;
	int r, status;
	char text[240];
	char header[64];  /* the first that was wanted */
	struct buf heard; /* of the body */
	size_t largest;   /* of its pieces */
	struct courier_job *job;
};

static void too_long(void *user)
{
	(void)user;
	fail_msg("nothing came");
}

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ 0 };
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	assert_int_equal(courier_create(g.loop, &g.courier, NULL), 0);
	assert_int_equal(loop_timer_create(g.loop, too_long, &g, &g.limit), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->courier = courier_free(g->courier);
	g->limit = loop_timer_free(g->limit);
	g->loop = loop_free(g->loop);
	buf_done(&g->heard);
	return 0;
}

static void done(void *user, const struct courier_answer *a)
{
	struct rig *g = user;

	g->told++;
	g->r = a->r;
	g->status = a->status;
	(void)str_copy(g->text, sizeof(g->text), a->err.text);
	if (g->told >= g->wanted)
		loop_stop(g->loop);
}

static void never(void *user, const struct courier_answer *a)
{
	(void)user;
	(void)a;
	fail_msg("it was cut off");
}

static void wait_for(struct rig *g, unsigned told)
{
	g->wanted = told;
	loop_timer_start(g->limit, 60000, 0);
	if (g->told < told)
		loop_run(g->loop);
	loop_timer_stop(g->limit);
	assert_int_equal(g->told, told);
}

static struct courier_request to(const char *url)
{
	return (struct courier_request){
		.method = "POST", .url = url, .max = 1000, .timeout_ms = 50000
	};
}

static void one_that_does_not_answer_delays_no_other(void **state)
{
	struct rig *g = *state;
	struct http_step slow = { .answer = "", .read_more = 1 }; /* until we have left */
	struct http_step quick = { .answer = OK };
	struct http_rig servers[6];
	struct courier_request req;

	for (size_t i = 0; i < 5; i++) {
		http_rig_start(&servers[i], &slow, 1);
		req = to(servers[i].url);
		assert_int_equal(courier_send(g->courier, &req, never, g), 0);
	}
	http_rig_start(&servers[5], &quick, 1);
	req = to(servers[5].url);
	assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	wait_for(g, 1);
	assert_int_equal(g->r, 0);
	assert_int_equal(g->status, 204);
	g->courier = courier_free(g->courier); /* with all others under way */
	for (size_t i = 0; i < 6; i++)
		http_rig_done(&servers[i]);
}

static void what_is_not_public_is_said_to_be(void **state)
{
	static const char *const urls[] = { NOBODY, "http://localhost:1/", "http://[::1]:1/",
					    "http://0177.0.0.1:1/", "http://2130706433:1/" };
	struct rig *g = *state;

	for (unsigned i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct courier_request req = to(urls[i]);

		req.public_only = true;
		assert_int_equal(courier_send(g->courier, &req, done, g), 0);
		wait_for(g, i + 1);
		assert_int_equal(g->r, -EACCES);
		assert_int_equal(g->status, 0);
		assert_non_null(strstr(g->text, "public internet"));
	}
}

static void addresses_that_are_none_are_refused_at_once(void **state)
{
	static const char *const urls[] = { "",
					    "example.com",
					    "ftp://example.com/",
					    "http://",
					    "http://a b/",
					    "http://example.com/#x",
					    "http://u:p@example.com/",
					    "http://example.com/\r\nX: y" };
	struct rig *g = *state;

	for (size_t i = 0; i < sizeof(urls) / sizeof(urls[0]); i++) {
		struct courier_request req = to(urls[i]);

		assert_int_equal(courier_send(g->courier, &req, never, g), -EINVAL);
	}
}

static void so_many_are_under_way_and_no_more(void **state)
{
	struct rig *g = *state;
	struct courier_request req = to(NOBODY);

	for (unsigned i = 0; i < COURIER_MAX; i++)
		assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	assert_int_equal(courier_send(g->courier, &req, done, g), -EAGAIN);
	wait_for(g, COURIER_MAX);
	assert_int_equal(g->r, -ECONNREFUSED);
	assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	wait_for(g, COURIER_MAX + 1);
}

static const char *const want[] = { "X-Kind", NULL };

static void heard(void *user, const struct courier_answer *a, const void *data, size_t n)
{
	struct rig *g = user;

	assert_int_equal(n == 0, g->status == 0); /* the head comes once, and first */
	g->status = a->status;
	assert_int_equal(str_copy(g->header, sizeof(g->header), a->headers[0]), 0);
	assert_int_equal(buf_append(&g->heard, data, n), 0);
	g->largest = n > g->largest ? n : g->largest;
	if (g->job && g->heard.len >= 3) { /* enough: the rest is not wanted */
		courier_cancel(g->courier, TAKE(g->job));
		loop_stop(g->loop);
	}
}

static void a_body_is_told_as_it_comes(void **state)
{
	struct rig *g = *state;
	struct http_step step = { .answer = "HTTP/1.1 200 OK\r\nX-Kind: stream\r\nConnection: "
					    "close\r\n\r\none",
				  .more = "two",
				  .more_after_ms = 20 };
	struct http_rig server;
	struct courier_request req;

	http_rig_start(&server, &step, 1);
	req = to(server.url);
	req.want = want;
	req.data = heard;
	assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	wait_for(g, 1);
	assert_int_equal(g->r, 0);
	assert_string_equal(g->header, "stream");
	assert_string_equal(buf_str(&g->heard), "onetwo");
	http_rig_done(&server);
}

static void what_is_cut_off_is_not_heard_of_again(void **state)
{
	struct rig *g = *state;
	struct http_step step = { .answer = "HTTP/1.1 200 OK\r\nX-Kind: stream\r\n\r\none",
				  .read_more = 1 }; /* until we have left */
	struct http_rig server;
	struct courier_request req;

	http_rig_start(&server, &step, 1);
	req = to(server.url);
	req.want = want;
	req.data = heard;
	assert_int_equal(courier_open(g->courier, &req, never, g, &g->job), 0);
	loop_timer_start(g->limit, 60000, 0);
	loop_run(g->loop);
	loop_timer_stop(g->limit);
	http_rig_stop(&server); /* the connection is closed, or this would wait */
	http_rig_done(&server);
	assert_string_equal(buf_str(&g->heard), "one");
}

static void a_server_that_is_faster_than_the_loop_is_held_back(void **state)
{
	static const char head[] = "HTTP/1.1 200 OK\r\nX-Kind: a\r\nConnection: close\r\n\r\n";
	const size_t n = 6 * COURIER_PIECE_MAX;
	struct rig *g = *state;
	char *bytes = calloc(1, n);
	struct http_step step = { .answer = head, .more = bytes, .more_len = n };
	struct http_rig server;
	struct courier_request req;

	assert_non_null(bytes);
	http_rig_start(&server, &step, 1);
	req = to(server.url);
	req.want = want;
	req.data = heard;
	assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	(void)usleep(200000); /* all of it would be there by now */
	wait_for(g, 1);
	assert_int_equal(g->r, 0);
	assert_int_equal(g->heard.len, n);
	assert_true(g->largest < COURIER_PIECE_MAX + (1u << 20));
	http_rig_done(&server);
	free(bytes);
}

static void refused(void *user, const struct courier_answer *a)
{
	struct rig *g = user;

	assert_int_equal(str_copy(g->header, sizeof(g->header), a->headers[0]), 0);
	assert_int_equal(buf_append(&g->heard, a->body.data, a->body.len), 0);
	done(user, a);
}

static void a_refusal_is_told_with_all_that_it_says(void **state)
{
	struct rig *g = *state;
	struct http_step step = {
		.answer = "HTTP/1.1 401 No\r\nX-Kind: no\r\nX-Kind: never\r\nContent-Length: 4"
			  "\r\nConnection: close\r\n\r\nwhy?"
	};
	struct http_rig server;
	struct courier_request req;

	http_rig_start(&server, &step, 1);
	req = to(server.url);
	req.want = want;
	req.data = heard; /* is not called */
	assert_int_equal(courier_send(g->courier, &req, refused, g), 0);
	wait_for(g, 1);
	assert_int_equal(g->r, -EACCES);
	assert_int_equal(g->status, 401);
	assert_string_equal(g->header, "no, never");
	assert_string_equal(buf_str(&g->heard), "why?");
	http_rig_done(&server);
}

/* A name server that says nothing, and a resolver that asks no other. */
static struct resolver *open_silent(struct rig *g, int *ret_server)
{
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	struct resolver *r = NULL;
	char servers[40];

	*ret_server = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(*ret_server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(getsockname(*ret_server, (struct sockaddr *)&at, &size), 0);
	(void)str_format(servers, sizeof(servers), "127.0.0.1:%u", ntohs(at.sin_port));
	assert_int_equal(
		resolver_create(g->loop, &(struct resolve_options){ servers, 300 }, &r, NULL), 0);
	courier_set_resolver(g->courier, r);
	return r;
}

static unsigned count_threads(void)
{
	char text[4096];
	uint32_t n = 0;
	const char *at;

	assert_true(fd_read_file_at(AT_FDCWD, "/proc/self/status", text, sizeof(text)) > 0);
	at = strstr(text, "Threads:\t");
	assert_non_null(at);
	for (at += strlen("Threads:\t"); *at >= '0' && *at <= '9'; at++)
		n = n * 10 + (uint32_t)(*at - '0');
	return n;
}

static void names_that_an_owner_asks_for_take_no_thread_and_are_bounded(void **state)
{
	struct rig *g = *state;
	int server;
	struct resolver *resolver = open_silent(g, &server);
	struct http_step step = { .answer = OK };
	struct http_rig rig;
	struct courier_request req = to("http://silent.test:1/");
	unsigned threads = count_threads();
	char url[64];

	req.owner = "a";
	for (unsigned i = 0; i < RESOLVE_OWNER_MAX; i++)
		assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	assert_int_equal(courier_send(g->courier, &req, done, g), -EAGAIN);
	assert_int_equal(courier_count(g->courier), RESOLVE_OWNER_MAX);
	assert_int_equal(count_threads(), threads);
	wait_for(g, RESOLVE_OWNER_MAX);
	assert_int_equal(g->r, -ETIMEDOUT);
	assert_int_equal(courier_count(g->courier), 0);

	/* One that is known is gone to by what was found. */
	http_rig_start(&rig, &step, 1);
	(void)str_format(url, sizeof(url), "http://localhost:%s", strrchr(rig.url, ':') + 1);
	req.url = url;
	req.owner = "b";
	assert_int_equal(courier_send(g->courier, &req, done, g), 0);
	wait_for(g, RESOLVE_OWNER_MAX + 1);
	assert_int_equal(g->r, 0);
	http_rig_stop(&rig);
	http_rig_done(&rig);
	/* What is under way at the end is let go of. */
	req.url = "http://silent.test:1/";
	assert_int_equal(courier_send(g->courier, &req, never, g), 0);
	g->courier = courier_free(g->courier);
	(void)resolver_free(resolver);
	(void)close(server);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(one_that_does_not_answer_delays_no_other, setup,
						teardown),
		cmocka_unit_test_setup_teardown(what_is_not_public_is_said_to_be, setup, teardown),
		cmocka_unit_test_setup_teardown(addresses_that_are_none_are_refused_at_once, setup,
						teardown),
		cmocka_unit_test_setup_teardown(so_many_are_under_way_and_no_more, setup, teardown),
		cmocka_unit_test_setup_teardown(a_body_is_told_as_it_comes, setup, teardown),
		cmocka_unit_test_setup_teardown(what_is_cut_off_is_not_heard_of_again, setup,
						teardown),
		cmocka_unit_test_setup_teardown(a_server_that_is_faster_than_the_loop_is_held_back,
						setup, teardown),
		cmocka_unit_test_setup_teardown(a_refusal_is_told_with_all_that_it_says, setup,
						teardown),
		cmocka_unit_test_setup_teardown(
			names_that_an_owner_asks_for_take_no_thread_and_are_bounded, setup,
			teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
