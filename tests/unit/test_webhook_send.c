#include "outbound/webhook_send.h"

#include <string.h>

#include "check.h"
#include "store/store.h"

static const struct journal_row row = { .stream = "event",
					.seq = 42,
					.at_ms = 1700000000123,
					.owner = "ann",
					.kind = "sandbox.created",
					.text = "{\"subject\":\"abc\",\"name\":\"x\"}" };

static void a_message_is_the_event_and_its_proof(void **state)
{
	struct webhook_message m;

	(void)state;
	assert_int_equal(
		webhook_message_make(&row, "hookid", "whsec_0123456789", 0, 1700000001999, &m), 0);
	assert_string_equal(m.body.data,
			    "{\"seq\":42,\"at\":\"2023-11-14T22:13:20.123Z\",\"owner\":\"ann\","
			    "\"kind\":\"sandbox.created\",\"data\":{\"subject\":\"abc\",\"name\":"
			    "\"x\"}}");
	assert_string_equal(m.list[0], "Holt-Event: sandbox.created");
	assert_string_equal(m.list[1], "Holt-Delivery: hookid.42");
	assert_string_equal(m.list[2], "Holt-Timestamp: 1700000001");
	/* printf '%s' "1700000001.$BODY" | openssl dgst -sha256 -hmac whsec_0123456789 */
	assert_string_equal(m.list[3],
			    "Holt-Signature: "
			    "v1=db92efb0ddb58b3efe1b1243e869267e4a247466da25ae891a30b93acbb141bf");
	assert_string_equal(m.list[4], "Holt-Webhook: hookid");
	assert_null(m.list[WEBHOOK_HEADERS]);
	webhook_message_done(&m);
}

static void what_was_missed_is_part_of_what_is_signed(void **state)
{
	struct webhook_message a, b;

	(void)state;
	assert_int_equal(webhook_message_make(&row, "h", "0123456789abcdef", 0, 1000, &a), 0);
	assert_int_equal(webhook_message_make(&row, "h", "0123456789abcdef", 3, 1000, &b), 0);
	assert_non_null(strstr(b.body.data, ",\"missed\":3}"));
	assert_null(strstr(a.body.data, "missed"));
	assert_string_not_equal(a.list[3], b.list[3]);
	webhook_message_done(&a);
	webhook_message_done(&b);
}

static void the_moment_and_the_secret_change_the_proof(void **state)
{
	struct webhook_message m[3];

	(void)state;
	assert_int_equal(webhook_message_make(&row, "h", "0123456789abcdef", 0, 1000, &m[0]), 0);
	assert_int_equal(webhook_message_make(&row, "h", "0123456789abcdef", 0, 2000, &m[1]), 0);
	assert_int_equal(webhook_message_make(&row, "h", "0123456789abcdeX", 0, 1000, &m[2]), 0);
	assert_string_not_equal(m[0].list[3], m[1].list[3]);
	assert_string_not_equal(m[0].list[3], m[2].list[3]);
	for (size_t i = 0; i < 3; i++)
		webhook_message_done(&m[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_message_is_the_event_and_its_proof),
		cmocka_unit_test(what_was_missed_is_part_of_what_is_signed),
		cmocka_unit_test(the_moment_and_the_secret_change_the_proof),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
