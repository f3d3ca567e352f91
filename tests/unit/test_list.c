#include "base/list.h"

#include <stdlib.h>

#include "check.h"

struct item {
	int value;
	struct list link;
};

static struct list at_rest = LIST_INIT(at_rest);

static int sum_in_order(struct list *head)
{
	int digits = 0;

	LIST_FOREACH (head, it, struct item, link)
		digits = digits * 10 + it->value;
	return digits;
}

static void a_fresh_list_is_empty(void **state)
{
	struct list head;

	(void)state;
	list_init(&head);
	assert_true(list_is_empty(&head));
	assert_true(list_is_empty(&at_rest));
	assert_int_equal(sum_in_order(&head), 0);
}

static void nodes_keep_their_order(void **state)
{
	struct item a = { .value = 1 }, b = { .value = 2 }, c = { .value = 3 };
	struct list head;

	(void)state;
	list_init(&head);
	list_push_back(&head, &b.link);
	list_push_back(&head, &c.link);
	list_push_front(&head, &a.link);
	assert_false(list_is_empty(&head));
	assert_int_equal(sum_in_order(&head), 123);
	assert_ptr_equal(LIST_ENTRY(head.next, struct item, link), &a);
}

static void removing_twice_is_harmless(void **state)
{
	struct item a = { .value = 1 }, b = { .value = 2 };
	struct list head;

	(void)state;
	list_init(&head);
	list_push_back(&head, &a.link);
	list_push_back(&head, &b.link);
	list_remove(&a.link);
	list_remove(&a.link);
	assert_int_equal(sum_in_order(&head), 2);
	list_remove(&b.link);
	assert_true(list_is_empty(&head));
}

static void the_current_entry_may_be_freed_on_the_way(void **state)
{
	struct list head;
	int freed = 0;

	(void)state;
	list_init(&head);
	for (int i = 0; i < 5; i++) {
		struct item *it = calloc(1, sizeof(*it));

		assert_non_null(it);
		list_push_back(&head, &it->link);
	}
	LIST_FOREACH (&head, it, struct item, link) {
		list_remove(&it->link);
		free(it);
		freed++;
	}
	assert_int_equal(freed, 5);
	assert_true(list_is_empty(&head));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_fresh_list_is_empty),
		cmocka_unit_test(nodes_keep_their_order),
		cmocka_unit_test(removing_twice_is_harmless),
		cmocka_unit_test(the_current_entry_may_be_freed_on_the_way),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
