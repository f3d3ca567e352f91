#include "httpc/guard.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/err.h"
#include "check.h"
#include "http_rig.h"
#include "httpc/httpc.h"
#include "own_net.h"

static bool is_public(const char *text)
{
	struct sockaddr_storage a = { 0 };
	struct sockaddr_in *v4 = (struct sockaddr_in *)(void *)&a;
	struct sockaddr_in6 *v6 = (struct sockaddr_in6 *)(void *)&a;

	if (inet_pton(AF_INET, text, &v4->sin_addr) == 1) {
		a.ss_family = AF_INET;
	} else {
		assert_int_equal(inet_pton(AF_INET6, text, &v6->sin6_addr), 1);
		a.ss_family = AF_INET6;
	}
	return guard_is_public((struct sockaddr *)&a);
}

static void addresses_that_lead_inside_are_refused(void **state)
{
	static const char *const closed[] = {
		"127.0.0.1",
		"127.255.255.254",
		"0.0.0.0",
		"10.1.2.3",
		"100.64.0.1",
		"100.127.255.255",
		"169.254.169.254",
		"172.16.0.1",
		"172.31.255.255",
		"192.168.1.1",
		"192.0.0.170",
		"192.0.2.1",
		"198.18.0.1",
		"198.19.255.255",
		"198.51.100.7",
		"203.0.113.9",
		"224.0.0.1",
		"239.255.255.255",
		"255.255.255.255",
		"240.0.0.1",
		"::",
		"::1",
		"::ffff:127.0.0.1",
		"::ffff:10.0.0.1",
		"::127.0.0.1",
		"64:ff9b::7f00:1",
		"fe80::1",
		"fc00::1",
		"fd12:3456::1",
		"ff02::1",
		"2001:db8::1",
		"2002:7f00:1::1",
		"2001::1",
		"2001:10::1",
		"3fff::1",
		"fec0::1",
		"100::1",
		"5f00::1",
		"2001:1ff:ffff::1",
	};
	static const char *const open[] = { "1.1.1.1",
					    "8.8.8.8",
					    "100.63.255.255",
					    "100.128.0.0",
					    "172.15.0.1",
					    "172.32.0.1",
					    "192.0.1.1",
					    "11.0.0.1",
					    "223.255.255.255",
					    "2606:4700::1111",
					    "2001:4860:4860::8888",
					    "::ffff:8.8.8.8",
					    "2a00::1" };
	struct sockaddr_un un = { .sun_family = AF_UNIX };

	(void)state;
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		if (is_public(closed[i]))
			fail_msg("%s", closed[i]);
	for (size_t i = 0; i < sizeof(open) / sizeof(open[0]); i++)
		if (!is_public(open[i]))
			fail_msg("%s", open[i]);
	assert_false(guard_is_public((struct sockaddr *)&un));
}

static int get(const char *url, bool public_only)
{
	struct httpc_request req = { .method = "GET", .target = "/", .timeout_ms = 5000 };
	struct httpc_options o = { .url = url, .public_only = public_only };
	struct httpc *client = NULL;
	struct err err = { 0 };
	int r = httpc_create(&o, &client, &err);

	if (r == 0)
		r = httpc_request(client, &req, NULL, &err);
	httpc_free(client);
	return r;
}

static void a_guarded_client_connects_to_nothing_inside_by_whatever_name(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n" },
	};
	struct http_rig rig;
	char name[64] = "http://localhost", *port;

	(void)state;
	http_rig_start(&rig, steps, 1);
	port = strrchr(rig.url, ':');
	assert_non_null(port);
	memcpy(name + strlen(name), port, strlen(port) + 1);
	assert_int_not_equal(get(rig.url, true), 0);
	assert_int_not_equal(get(name, true), 0);
	/* the one request that gets through is the one that may */
	assert_int_equal(get(rig.url, false), 0);
	http_rig_stop(&rig);
	assert_null(strstr(strstr(rig.got.data, "GET / ") + 1, "GET / "));
	http_rig_done(&rig);
}

/* Kept connections of others in the group lead where this client may not go. */
static void a_guarded_client_takes_no_connection_that_another_has_left(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", .read_more = 1 },
	};
	struct httpc_request req = { .method = "GET", .target = "/", .timeout_ms = 5000 };
	struct httpc_group *group = httpc_group_create();
	struct httpc *open = NULL, *guarded = NULL;
	struct http_rig rig;
	struct err err = { 0 };

	(void)state;
	assert_non_null(group);
	http_rig_start(&rig, steps, 1);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = rig.url, .group = group },
				      &open, &err),
			 0);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = rig.url,
							       .public_only = true,
							       .group = group },
				      &guarded, &err),
			 0);
	assert_int_equal(httpc_request(open, &req, NULL, &err), 0);
	assert_int_equal(httpc_request(guarded, &req, NULL, &err), -EACCES);
	assert_non_null(strstr(err.text, "public"));
	guarded = httpc_free(guarded);
	open = httpc_free(open);
	group = httpc_group_free(group);
	http_rig_stop(&rig);
	assert_null(strstr(strstr(rig.got.data, "GET / ") + 1, "G"));
	http_rig_done(&rig);
}

static bool has_own_net; /* set once, before the tests */

static void read_address(const char *text, struct sockaddr_storage *ret)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, text, &v4.sin_addr) == 1)
		memcpy(ret, &v4, sizeof(v4));
	else if (inet_pton(AF_INET6, text, &v6.sin6_addr) == 1)
		memcpy(ret, &v6, sizeof(v6));
	else
		fail_msg("%s", text);
}

static bool allows(const struct guard_terms *t, const char *text)
{
	struct sockaddr_storage a;

	read_address(text, &a);
	return guard_allows(t, (struct sockaddr *)&a);
}

static void addresses_of_this_machine_are_refused_in_every_form(void **state)
{
	static const char *const own[] = { "9.9.9.9",          "::ffff:9.9.9.9",
					   "64:ff9b::909:909", "2002:909:909::1",
					   "127.0.0.1",        "::1",
					   "0.0.0.0",          "::" };
	struct guard_terms strict = { 0 };
	struct sockaddr_storage a;

	(void)state;
	if (!has_own_net)
		skip();
	for (size_t i = 0; i < sizeof(own) / sizeof(own[0]); i++)
		assert_false(allows(&strict, own[i]));
	read_address("9.9.9.9", &a);
	assert_true(guard_is_own((struct sockaddr *)&a));
	read_address("8.8.4.4", &a); /* nobody here has it, and no route leads there */
	assert_false(guard_is_own((struct sockaddr *)&a));
	assert_true(allows(&strict, "8.8.4.4"));
}

static void closed_networks_are_closed_in_every_form(void **state)
{
	static const char *const closed[] = { "8.8.4.4",          "::ffff:8.8.4.4",
					      "64:ff9b::808:404", "2002:808:404::1",
					      "2600:1::1",        "2600:1:ffff::" };
	static struct guard_nets nets;
	struct guard_terms t = { .allow_private = true, .closed = &nets };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(guard_nets_add(&nets, "8.8.4.0/24", &err), 0);
	assert_int_equal(guard_nets_add(&nets, "2600:1::/32", &err), 0);
	assert_int_equal(guard_nets_add(&nets, "8.8.4.0/33", &err), -EINVAL);
	assert_int_equal(guard_nets_add(&nets, "example.com", &err), -EINVAL);
	for (size_t i = 0; i < sizeof(closed) / sizeof(closed[0]); i++)
		assert_false(allows(&t, closed[i]));
	assert_true(allows(&t, "8.8.5.4"));
	assert_true(allows(&t, "2600:2::1"));
	assert_true(allows(&t, "127.0.0.1"));
	while (nets.len < GUARD_NETS_MAX)
		assert_int_equal(guard_nets_add(&nets, "192.0.2.1", &err), 0);
	assert_int_equal(guard_nets_add(&nets, "192.0.2.1", &err), -E2BIG);
}

int main(void)
{
	has_own_net = own_net_enter();
	if (has_own_net)
		own_net_add(1, "9.9.9.9");
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(addresses_that_lead_inside_are_refused),
		cmocka_unit_test(a_guarded_client_connects_to_nothing_inside_by_whatever_name),
		cmocka_unit_test(a_guarded_client_takes_no_connection_that_another_has_left),
		cmocka_unit_test(addresses_of_this_machine_are_refused_in_every_form),
		cmocka_unit_test(closed_networks_are_closed_in_every_form),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
