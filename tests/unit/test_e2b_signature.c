#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "e2b/signature.h"

static void a_signature_is_the_one_that_their_clients_make(void **state)
{
	static const char token[] = "0tQG31xiMp0IOQfaz9dcwi72L1CPo8e0";
	struct e2b_signed what = { .path = "hello.txt", .user = "user" };
	char text[E2B_SIGNATURE_SIZE], other[E2B_SIGNATURE_SIZE];

	(void)state;
	assert_int_equal(e2b_signature_make(token, &what, text), 0);
	assert_string_equal(text, "v1_gUtH/s9YCJWgCizjfUxuWfhFE4QSydOWEIIvfLwDr6E");
	what.is_write = true;
	assert_int_equal(e2b_signature_make(token, &what, other), 0);
	assert_string_not_equal(text, other);
	what.is_write = false;
	what.expires = 1;
	assert_int_equal(e2b_signature_make(token, &what, other), 0);
	assert_string_not_equal(text, other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_signature_is_the_one_that_their_clients_make),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
