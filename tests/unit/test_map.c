#include "base/map.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "check.h"
#include "fault.h"

enum { MODEL_KEYS = 200, MODEL_STEPS = 20000 };

static int values[MODEL_KEYS];

static size_t key_of(char dst[16], size_t i)
{
	assert_int_equal(str_format(dst, 16, "key-%zu", i), 0);
	return strlen(dst);
}

static void what_was_put_is_found_until_removed(void **state)
{
	struct map *m = map_create(10);
	int a, b;
	void *old = &a;

	(void)state;
	assert_null(map_get(m, "x", 1));
	assert_null(map_remove(m, "x", 1));
	assert_int_equal(map_put(m, "x", 1, &a, &old), 0);
	assert_null(old);
	assert_ptr_equal(map_get(m, "x", 1), &a);
	assert_int_equal(map_put(m, "x", 1, &b, &old), 0);
	assert_ptr_equal(old, &a);
	assert_int_equal(map_len(m), 1);
	assert_ptr_equal(map_remove(m, "x", 1), &b);
	assert_null(map_get(m, "x", 1));
	assert_int_equal(map_len(m), 0);
	assert_null(map_free(m));
}

static void keys_are_bytes_and_are_copied(void **state)
{
	struct map *m = map_create(10);
	char key[] = "a\0b";
	int v[4];

	(void)state;
	assert_int_equal(map_put(m, key, 3, &v[0], NULL), 0);
	assert_int_equal(map_put(m, key, 1, &v[1], NULL), 0);
	assert_int_equal(map_put(m, NULL, 0, &v[2], NULL), 0);
	assert_int_equal(map_put(m, "12345678", 8, &v[3], NULL), 0);
	memset(key, 'z', 3);
	assert_ptr_equal(map_get(m, "a\0b", 3), &v[0]);
	assert_ptr_equal(map_get(m, "a", 1), &v[1]);
	assert_ptr_equal(map_get(m, "", 0), &v[2]);
	assert_ptr_equal(map_get(m, "12345678", 8), &v[3]);
	assert_null(map_get(m, "a\0c", 3));
	map_free(m);
}

static void a_full_map_still_replaces(void **state)
{
	struct map *m = map_create(2);
	int a, b, c;
	void *old = &c;

	(void)state;
	assert_int_equal(map_put(m, "a", 1, &a, NULL), 0);
	assert_int_equal(map_put(m, "b", 1, &b, NULL), 0);
	assert_int_equal(map_put(m, "c", 1, &c, &old), -E2BIG);
	assert_ptr_equal(old, &c); /* untouched */
	assert_int_equal(map_put(m, "b", 1, &c, NULL), 0);
	assert_ptr_equal(map_get(m, "b", 1), &c);
	assert_ptr_equal(map_remove(m, "a", 1), &a);
	assert_int_equal(map_put(m, "c", 1, &c, NULL), 0);
	assert_int_equal(map_len(m), 2);
	map_free(m);
}

static void a_map_of_nothing_refuses_all(void **state)
{
	struct map *m = map_create(0);
	int a;

	(void)state;
	assert_int_equal(map_put(m, "a", 1, &a, NULL), -E2BIG);
	assert_int_equal(map_len(m), 0);
	map_free(m);
}

static void each_entry_is_visited_once(void **state)
{
	struct map *m = map_create(MODEL_KEYS);
	bool seen[MODEL_KEYS] = { false };
	size_t count = 0;
	char key[16];

	(void)state;
	MAP_FOREACH (m, none)
		count += none.value != NULL;
	assert_int_equal(count, 0);
	for (size_t i = 0; i < MODEL_KEYS; i++)
		assert_int_equal(map_put(m, key, key_of(key, i), &values[i], NULL), 0);
	MAP_FOREACH (m, it) {
		size_t i = (size_t)((int *)it.value - values);

		assert_int_equal(it.key_len, key_of(key, i));
		assert_memory_equal(it.key, key, it.key_len);
		assert_false(seen[i]);
		seen[i] = true;
		count++;
	}
	assert_int_equal(count, MODEL_KEYS);
	map_free(m);
}

/* Puts and removals in a fixed random order against an array that cannot be wrong. */
static void it_agrees_with_a_plain_array(void **state)
{
	struct map *m = map_create(MODEL_KEYS);
	bool there[MODEL_KEYS] = { false };
	unsigned seed = 12345;
	size_t len = 0;
	char key[16];

	(void)state;
	for (int step = 0; step < MODEL_STEPS; step++) {
		size_t i = (size_t)rand_r(&seed) % MODEL_KEYS, n = key_of(key, i);

		assert_ptr_equal(map_get(m, key, n), there[i] ? &values[i] : NULL);
		if (rand_r(&seed) % 2) {
			assert_int_equal(map_put(m, key, n, &values[i], NULL), 0);
			len += !there[i];
			there[i] = true;
		} else {
			assert_ptr_equal(map_remove(m, key, n), there[i] ? &values[i] : NULL);
			len -= there[i];
			there[i] = false;
		}
		assert_int_equal(map_len(m), len);
	}
	for (size_t i = 0; i < MODEL_KEYS; i++)
		assert_ptr_equal(map_get(m, key, key_of(key, i)), there[i] ? &values[i] : NULL);
	map_free(m);
}

static void two_maps_order_the_same_keys_differently(void **state)
{
	struct map *m[2];
	char order[2][MODEL_KEYS * 8] = { "", "" };
	char key[16];

	(void)state;
	for (int k = 0; k < 2; k++) {
		size_t at = 0;

		m[k] = map_create(MODEL_KEYS);
		for (size_t i = 0; i < MODEL_KEYS; i++)
			assert_int_equal(map_put(m[k], key, key_of(key, i), &values[i], NULL), 0);
		MAP_FOREACH (m[k], it)
			at += (size_t)snprintf(order[k] + at, sizeof(order[k]) - at, "%td,",
					       (int *)it.value - values);
		map_free(m[k]);
	}
	/* Equal only if the random keys were: once in 2^128, or when the key is not random. */
	assert_string_not_equal(order[0], order[1]);
}

static int build(void *arg)
{
	struct map *m = map_create(1000);
	char key[16];
	int r = 0;

	(void)arg;
	if (!m)
		return -ENOMEM;
	for (size_t i = 0; r == 0 && i < 50; i++) {
		r = map_put(m, key, key_of(key, i), &values[i], NULL);
		if (r == 0)
			continue;
		assert_int_equal(map_len(m), i);
		assert_null(map_get(m, key, key_of(key, i)));
		for (size_t k = 0; k < i; k++)
			assert_ptr_equal(map_get(m, key, key_of(key, k)), &values[k]);
	}
	map_free(m);
	return r;
}

static void a_put_without_memory_changes_nothing(void **state)
{
	(void)state;
	assert_true(fault_each(build, NULL) > 50);
}

static void nothing_is_freed_from_null(void **state)
{
	(void)state;
	assert_null(map_free(NULL));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_found_until_removed),
		cmocka_unit_test(keys_are_bytes_and_are_copied),
		cmocka_unit_test(a_full_map_still_replaces),
		cmocka_unit_test(a_map_of_nothing_refuses_all),
		cmocka_unit_test(each_entry_is_visited_once),
		cmocka_unit_test(it_agrees_with_a_plain_array),
		cmocka_unit_test(two_maps_order_the_same_keys_differently),
		cmocka_unit_test(a_put_without_memory_changes_nothing),
		cmocka_unit_test(nothing_is_freed_from_null),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
