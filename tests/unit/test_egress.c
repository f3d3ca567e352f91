/* The proxy's bounds: what a program hears that wants one connection or one byte too many. The
 * registry is a socket of the test's own. */
#include "egress/proxy.h"

#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "egress/rules.h"
#include "httpc/guard.h"
#include "loop/resolve.h"
#include "net_rig.h"
#include "own_net.h"

#define BYTES_MAX 1000

static bool has_own_net; /* set once, before the tests */

struct rig {
	struct net_rig net;
	struct egress *egress;
	struct resolver *resolver;
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
	assert_int_equal(resolver_create(g.net.loop, NULL, &g.resolver, &err), 0);
	o.resolver = g.resolver;
	assert_int_equal(policy_allow_url(&o.policy, url, &err), 0);
	assert_int_equal(egress_create(&o, &g.egress, &err), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->egress = egress_free(g->egress);
	g->resolver = resolver_free(g->resolver);
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

/* ---- addresses ---- */

#define OWN "9.9.9.9" /* of the public internet, if it were not this machine's */

/* What a program hears that wants to go to OWN, on a port where somebody listens. */
static void try_own(struct rig *g, const struct egress_policy *policy, const char *name,
		    const char *answer)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	socklen_t size = sizeof(at);
	struct egress_options o = {
		.loop = g->net.loop, .resolver = g->resolver, .policy = *policy, .bytes_max = 1000
	};
	struct net_client program;
	char line[120];
	int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	g->egress = egress_free(g->egress);
	assert_int_equal(egress_create(&o, &g->egress, NULL), 0);
	assert_int_equal(bind(listener, (struct sockaddr *)&at, sizeof(at)), 0); /* all addresses */
	assert_int_equal(listen(listener, 8), 0);
	assert_int_equal(getsockname(listener, (struct sockaddr *)&at, &size), 0);
	(void)str_format(line, sizeof(line), "CONNECT %s:%u HTTP/1.1\r\nHost: a\r\n\r\n", name,
			 ntohs(at.sin_port));
	enter(g, &program);
	net_client_puts(&program, line);
	net_client_until(&program, answer);
	net_client_close(&program);
	(void)close(listener);
}

static void this_machine_is_not_reached_by_its_public_address(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *open = rules_create(true);
	struct egress_policy policy = { .rules = open };

	if (!has_own_net)
		skip();
	try_own(*state, &policy, OWN, "HTTP/1.1 403 ");
	try_own(*state, &policy, "[::ffff:" OWN "]", "HTTP/1.1 403 ");
	assert_int_equal(rules_allow(open, OWN, NULL), 0); /* a tenant's word opens nothing */
	try_own(*state, &policy, OWN, "HTTP/1.1 403 ");
	policy.allow_private = true; /* the operator's does */
	try_own(*state, &policy, OWN, "HTTP/1.1 200 ");
}

static void what_the_operator_has_closed_is_closed_to_all(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *open = rules_create(true);
	static struct guard_nets closed;
	struct egress_policy policy = { .rules = open, .allow_private = true, .closed = &closed };

	try_own(*state, &policy, "127.0.0.7", "HTTP/1.1 200 ");
	assert_int_equal(guard_nets_add(&closed, "127.0.0.4/30", NULL), 0);
	try_own(*state, &policy, "127.0.0.3", "HTTP/1.1 200 ");
	try_own(*state, &policy, "127.0.0.7", "HTTP/1.1 403 ");
	try_own(*state, &policy, "[::ffff:127.0.0.7]", "HTTP/1.1 403 ");
}

int main(void)
{
	has_own_net = own_net_enter();
	if (has_own_net)
		own_net_add(1, OWN);
#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		TEST(a_connection_too_many_is_closed_and_the_others_go_on),
		TEST(a_byte_too_many_either_way_cuts_the_connection),
		TEST(this_machine_is_not_reached_by_its_public_address),
		TEST(what_the_operator_has_closed_is_closed_to_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
