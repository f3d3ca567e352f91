/* The proxy's bounds: what a program hears that wants one connection or one byte too many. The
 * registry is a socket of the test's own. */
#include "egress/proxy.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "net_rig.h"

#define BYTES_MAX 1000

struct rig {
	struct net_rig net;
	struct egress *egress;
	char connect[80]; /* what asks for the registry */
	int listener;
};

static void nothing(void *user, struct http_request *req)
{
	(void)user;
	(void)req;
}

static int setup(void **state)
{
	static struct rig g; /* one test at a time */
	struct sockaddr_in at = { .sin_family = AF_INET,
				  .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t size = sizeof(at);
	struct egress_options o = { .policy.allow_private = true, .bytes_max = BYTES_MAX };
	struct err err = { 0 };
	char url[40];

	net_rig_open(&g.net, &(struct http_server_options){ .handle = nothing });
	g.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(g.listener, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(g.listener, 8), 0);
	assert_int_equal(getsockname(g.listener, (struct sockaddr *)&at, &size), 0);
	(void)str_format(url, sizeof(url), "http://127.0.0.1:%u", ntohs(at.sin_port));
	(void)str_format(g.connect, sizeof(g.connect),
			 "CONNECT 127.0.0.1:%u HTTP/1.1\r\nHost: a\r\n\r\n", ntohs(at.sin_port));
	o.loop = g.net.loop;
	assert_int_equal(policy_allow_url(&o.policy, url, &err), 0);
	assert_int_equal(egress_create(&o, &g.egress, &err), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->egress = egress_free(g->egress);
	(void)close(g->listener);
	net_rig_close(&g->net);
	return 0;
}

/* A program of the box. */
static void enter(struct rig *g, struct net_client *c)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
	net_client_adopt(c, &g->net, pair[0]);
	egress_accept(g->egress, pair[1]);
}

/* Both ends of a way to the registry. */
static void go_through(struct rig *g, struct net_client *program, struct net_client *registry)
{
	enter(g, program);
	net_client_puts(program, g->connect);
	net_client_until(program, "HTTP/1.1 200 ");
	net_client_forget(program);
	net_client_adopt(registry, &g->net, accept4(g->listener, NULL, NULL, SOCK_CLOEXEC));
}

static void a_connection_too_many_is_closed_and_the_others_go_on(void **state)
{
	struct rig *g = *state;
	struct net_client c[EGRESS_CONNS_MAX], more;

	for (unsigned i = 0; i < EGRESS_CONNS_MAX; i++)
		enter(g, &c[i]);
	enter(g, &more);
	net_client_until_closed(&more);
	assert_int_equal(more.got.len, 0);
	net_client_close(&more);
	for (unsigned i = 0; i < EGRESS_CONNS_MAX; i++) {
		net_client_puts(&c[i], "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
		net_client_until(&c[i], "HTTP/1.1 400 ");
		net_client_until_closed(&c[i]);
		net_client_close(&c[i]);
	}
	enter(g, &more); /* there is room again */
	net_client_puts(&more, "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
	net_client_until(&more, "HTTP/1.1 400 ");
	net_client_close(&more);
}

static void a_byte_too_many_either_way_cuts_the_connection(void **state)
{
	struct rig *g = *state;
	struct net_client program, registry;
	char bytes[BYTES_MAX] = { 0 };

	go_through(g, &program, &registry);
	net_client_send(&program, bytes, BYTES_MAX - 10);
	net_client_until_len(&registry, BYTES_MAX - 10);
	net_client_send(&registry, bytes, 10);
	net_client_until_len(&program, 10);
	assert_int_equal(egress_bytes(g->egress), BYTES_MAX);
	net_client_send(&registry, bytes, 1);
	net_client_until_closed(&program);
	net_client_until_closed(&registry);
	assert_int_equal(program.got.len, 10);
	net_client_close(&program);
	net_client_close(&registry);

	/* The bound is that of all connections: a new one carries nothing. */
	go_through(g, &program, &registry);
	net_client_send(&program, bytes, 1);
	net_client_until_closed(&program);
	net_client_until_closed(&registry);
	assert_int_equal(registry.got.len, 0);
	net_client_close(&program);
	net_client_close(&registry);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_connection_too_many_is_closed_and_the_others_go_on),
		TEST(a_byte_too_many_either_way_cuts_the_connection),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
