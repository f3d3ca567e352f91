/* Where a call may go: hosts and ports from addresses, and nothing that looks like them. */
#include "egress/policy.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>

#include "base/err.h"
#include "check.h"

static void a_registry_s_address_allows_its_host_and_port_alone(void **state)
{
	struct egress_policy p = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(policy_allow_url(&p, "https://Pkg.Example/simple/", &err), 0);
	assert_int_equal(policy_allow_url(&p, "http://files.example:8080", &err), 0);
	assert_true(policy_allows(&p, "pkg.example", 443));
	assert_true(policy_allows(&p, "files.example", 8080));
	assert_false(policy_allows(&p, "pkg.example", 80));
	assert_false(policy_allows(&p, "pkg.example", 8080));
	assert_false(policy_allows(&p, "files.example", 443));
	assert_false(policy_allows(&p, "a.pkg.example", 443));
	assert_false(policy_allows(&p, "pkg.example.", 443));
}

static void an_address_with_more_than_a_host_is_refused(void **state)
{
	static const char *const bad[] = { "ftp://a",      "a",           "https://",
					   "https://u@a/", "https://a:0", "https://a:70000",
					   "https://a:x",  "https://a b", "https://[::1" };
	struct egress_policy p = { 0 };
	struct err err = { 0 };

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(policy_allow_url(&p, bad[i], &err), -EINVAL);
	assert_int_equal(p.count, 0);
}

static void the_number_of_registries_is_bounded(void **state)
{
	struct egress_policy p = { 0 };
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < POLICY_HOSTS_MAX; i++)
		assert_int_equal(policy_allow_url(&p, "https://a", &err), 0);
	assert_int_equal(policy_allow_url(&p, "https://a", &err), -E2BIG);
}

static void only_addresses_of_the_public_internet_are_gone_to_unless_allowed(void **state)
{
	struct egress_policy p = { 0 };
	struct sockaddr_in a = { .sin_family = AF_INET };

	(void)state;
	a.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_false(policy_allows_address(&p, "a.example", (struct sockaddr *)&a));
	assert_int_equal(inet_pton(AF_INET, "169.254.169.254", &a.sin_addr), 1);
	assert_false(policy_allows_address(&p, "a.example", (struct sockaddr *)&a));
	assert_int_equal(inet_pton(AF_INET, "10.1.2.3", &a.sin_addr), 1);
	assert_false(policy_allows_address(&p, "a.example", (struct sockaddr *)&a));
	p.allow_private = true;
	assert_true(policy_allows_address(&p, "a.example", (struct sockaddr *)&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_registry_s_address_allows_its_host_and_port_alone),
		cmocka_unit_test(an_address_with_more_than_a_host_is_refused),
		cmocka_unit_test(the_number_of_registries_is_bounded),
		cmocka_unit_test(only_addresses_of_the_public_internet_are_gone_to_unless_allowed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
