#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "e2b/build_id.h"

static void an_id_is_a_uuid_and_comes_back(void **state)
{
	static const char *const ids[] = { "aaaaaaaaaaaaaaaaaaaa", "99999999999999999999",
					   "03upe2zkbtiynkmjjca1", "baaaaaaaaaaaaaaaaaaa" };
	char uuid[BUILD_UUID_SIZE], id[ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(ids) / sizeof(ids[0]); i++) {
		build_id_write(ids[i], uuid);
		assert_int_equal(strlen(uuid), 36);
		assert_int_equal(strspn(uuid, "0123456789abcdef-"), 36);
		assert_int_equal(uuid[14], '4');
		assert_int_equal(uuid[19], '8');
		assert_true(build_id_read(uuid, id));
		assert_string_equal(id, ids[i]);
	}
	for (size_t i = 0; i < 1000; i++) {
		char made[ID_LEN + 1];

		id_make(made);
		build_id_write(made, uuid);
		assert_true(build_id_read(uuid, id));
		assert_string_equal(id, made);
	}
}

static void capitals_are_the_same(void **state)
{
	char uuid[BUILD_UUID_SIZE], id[ID_LEN + 1];

	(void)state;
	build_id_write("03upe2zkbtiynkmjjca1", uuid);
	for (char *p = uuid; *p; p++)
		*p = *p >= 'a' && *p <= 'f' ? (char)(*p & ~0x20) : *p;
	assert_true(build_id_read(uuid, id));
	assert_string_equal(id, "03upe2zkbtiynkmjjca1");
}

static void other_texts_are_none(void **state)
{
	static const char *const rows[] = {
		"",
		"03upe2zkbtiynkmjjca1",
		"00000000-0000-0000-0000-000000000000", /* another version */
		"00000000-0000-4000-9000-000000000000", /* another variant than ours */
		"00000000-0000-4000-8000-00000000000",
		"00000000-0000-4000-8000-0000000000000",
		"00000000-0000-4000-8000-00000000000g",
		"00000000x0000-4000-8000-000000000000",
		"ffffffff-ffff-4fff-8fff-ffffffffffff", /* more than an id can be */
	};
	char id[ID_LEN + 1];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		if (build_id_read(rows[i], id))
			fail_msg("'%s' was taken", rows[i]);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(an_id_is_a_uuid_and_comes_back),
		cmocka_unit_test(capitals_are_the_same),
		cmocka_unit_test(other_texts_are_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
