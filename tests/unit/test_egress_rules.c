/* What of the internet may be reached: lists of networks and names. */
#include "egress/rules.h"

#include <arpa/inet.h>
#include <errno.h>
#include <netinet/in.h>
#include <string.h>

#include "base/err.h"
#include "check.h"
#include "egress/policy.h"

static bool reaches(const struct egress_rules *r, const char *address)
{
	struct sockaddr_in v4 = { .sin_family = AF_INET };
	struct sockaddr_in6 v6 = { .sin6_family = AF_INET6 };

	if (inet_pton(AF_INET, address, &v4.sin_addr) == 1)
		return rules_allow_address(r, (struct sockaddr *)&v4);
	assert_int_equal(inet_pton(AF_INET6, address, &v6.sin6_addr), 1);
	return rules_allow_address(r, (struct sockaddr *)&v6);
}

static void what_is_in_no_list_is_as_the_rules_are_made(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *open = rules_create(true);
	_cleanup_(rules_free_p) struct egress_rules *closed = rules_create(false);

	(void)state;
	assert_true(reaches(open, "192.0.2.1") && reaches(open, "2001:db8::1"));
	assert_false(reaches(closed, "192.0.2.1") || reaches(closed, "2001:db8::1"));
	assert_false(rules_allow_name(open, "a.example") || rules_allow_name(closed, "a.example"));
	assert_false(rules_allow_address(open, &(struct sockaddr){ .sa_family = AF_UNIX }));
}

static void a_network_ends_where_its_bits_do(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(false);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rules_allow(r, "192.0.2.7", &err), 0);
	assert_int_equal(rules_allow(r, "198.51.100.64/27", &err), 0);
	assert_int_equal(rules_allow(r, "2001:db8:8000::/33", &err), 0);
	assert_true(reaches(r, "192.0.2.7"));
	assert_false(reaches(r, "192.0.2.6") || reaches(r, "192.0.2.8"));
	assert_true(reaches(r, "198.51.100.64") && reaches(r, "198.51.100.95"));
	assert_false(reaches(r, "198.51.100.63") || reaches(r, "198.51.100.96"));
	assert_true(reaches(r, "2001:db8:8000::1") && reaches(r, "2001:db8:ffff::1"));
	assert_false(reaches(r, "2001:db8:7fff::1") || reaches(r, "2001:db9:8000::1"));
	assert_true(reaches(r, "::ffff:192.0.2.7")); /* the same address in another dress */
	assert_false(reaches(r, "::ffff:192.0.2.6"));
}

static void what_is_allowed_wins_over_what_is_denied(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(true);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rules_deny(r, "192.0.2.0/24", &err), 0);
	assert_int_equal(rules_allow(r, "192.0.2.128/25", &err), 0);
	assert_true(reaches(r, "192.0.3.1") && reaches(r, "192.0.2.200"));
	assert_false(reaches(r, "192.0.2.5"));
}

static void all_of_ipv4_is_everything(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(true);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rules_deny(r, "0.0.0.0/0", &err), 0);
	assert_false(reaches(r, "192.0.2.1") || reaches(r, "2001:db8::1"));
	assert_int_equal(rules_allow(r, "api.example.com", &err), 0);
	assert_true(rules_allow_name(r, "api.example.com"));
}

static void a_star_is_what_is_below_a_name(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(false);
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rules_allow(r, "API.example.com", &err), 0);
	assert_int_equal(rules_allow(r, "*.example.org", &err), 0);
	assert_true(rules_allow_name(r, "api.example.com"));
	assert_true(rules_allow_name(r, "a.example.org") && rules_allow_name(r, "a.b.example.org"));
	assert_false(rules_allow_name(r, "example.com") ||
		     rules_allow_name(r, "x.api.example.com"));
	assert_false(rules_allow_name(r, "example.org") || rules_allow_name(r, ".example.org"));
	assert_false(rules_allow_name(r, "badexample.org"));
	assert_int_equal(rules_allow(r, "*", &err), 0);
	assert_true(rules_allow_name(r, "anything"));
}

static void what_is_neither_is_refused_by_its_name(void **state)
{
	static const char *const bad[] = { "",         "/",          "1.2.3.4/33",
					   "1.2.3.4/", "1.2.3.4/-1", "::/129",
					   "a b",      "a/24",       "example.com:443",
					   ".example", "a*.example", "http://a",
					   "*.*",      "[::1]:80" };
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(true);
	struct err err = { 0 };
	char large[400];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		if (rules_allow(r, bad[i], &err) != -EINVAL)
			fail_msg("'%s' was allowed", bad[i]);
		assert_int_equal(rules_deny(r, bad[i], &err), -EINVAL);
	}
	memset(large, 'a', sizeof(large) - 1);
	large[sizeof(large) - 1] = '\0';
	assert_int_equal(rules_allow(r, large, &err), -EINVAL);
	/* An address has many names: one that is denied says nothing. */
	assert_int_equal(rules_deny(r, "a.example", &err), -EINVAL);
}

static void there_is_an_end_to_the_lists(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(true);
	struct err err = { 0 };

	(void)state;
	for (unsigned i = 0; i < RULES_MAX; i++)
		assert_int_equal(i % 2 ? rules_allow(r, "a.example", &err)
				       : rules_deny(r, "192.0.2.1", &err),
				 0);
	assert_int_equal(rules_allow(r, "a.example", &err), -E2BIG);
	assert_int_equal(rules_deny(r, "192.0.2.1", &err), -E2BIG);
}

static void no_rule_leads_into_private_networks(void **state)
{
	_cleanup_(rules_free_p) struct egress_rules *r = rules_create(true);
	struct egress_policy p = { .rules = r };
	struct sockaddr_in a = { .sin_family = AF_INET };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(rules_allow(r, "10.0.0.0/8", &err), 0);
	assert_int_equal(rules_allow(r, "*", &err), 0);
	a.sin_addr.s_addr = htonl(0x0a000001);
	assert_true(policy_allows(&p, "inside.example", 80));
	assert_false(policy_allows_address(&p, "inside.example", (struct sockaddr *)&a));
	a.sin_addr.s_addr = htonl(0x08080808);
	assert_true(policy_allows_address(&p, "inside.example", (struct sockaddr *)&a));
	p.allow_private = true;
	a.sin_addr.s_addr = htonl(0x0a000001);
	assert_true(policy_allows_address(&p, "inside.example", (struct sockaddr *)&a));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_in_no_list_is_as_the_rules_are_made),
		cmocka_unit_test(a_network_ends_where_its_bits_do),
		cmocka_unit_test(what_is_allowed_wins_over_what_is_denied),
		cmocka_unit_test(all_of_ipv4_is_everything),
		cmocka_unit_test(a_star_is_what_is_below_a_name),
		cmocka_unit_test(what_is_neither_is_refused_by_its_name),
		cmocka_unit_test(there_is_an_end_to_the_lists),
		cmocka_unit_test(no_rule_leads_into_private_networks),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
