/* The tables hang together, and the document that is made from them is whole. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "api/openapi.h"
#include "api/problem.h"
#include "api/queries.h"
#include "api/routes.h"
#include "api/schemas.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "fault.h"
#include "json/jv.h"

static void every_answer_of_a_route_has_a_schema(void **state)
{
	size_t n;
	const struct api_route *rows = routes_table(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		assert_non_null(rows[i].summary);
		if (rows[i].answer && !schema_find(rows[i].answer))
			fail_msg("%s: there is no schema '%s'", rows[i].route.pattern,
				 rows[i].answer);
	}
}

static void every_schema_is_named_once_and_refers_to_others_that_are_there(void **state)
{
	const struct schema *s;

	(void)state;
	for (size_t i = 0; (s = schema_at(i)); i++) {
		assert_ptr_equal(schema_find(s->name), s);
		for (size_t k = 0; k < s->count; k++) {
			const struct schema_field *f = &s->fields[k];

			assert_int_not_equal(f->types, 0);
			if (f->ref && !schema_find(f->ref))
				fail_msg("%s.%s: there is no schema '%s'", s->name, f->name,
					 f->ref);
		}
	}
	assert_null(schema_find("Nothing"));
}

static void every_query_parameter_says_what_it_takes(void **state)
{
	size_t n;
	const struct api_route *rows = routes_table(&n);

	(void)state;
	for (size_t i = 0; i < n; i++) {
		for (const struct route_query *q = rows[i].query; q && q->name; q++) {
			assert_non_null(q->help);
			assert_true(q->type != QUERY_CHOICE || q->choices);
			assert_true(q->max == 0 || q->max >= q->min);
			assert_ptr_equal(query_find(&rows[i], q->name), q);
		}
		assert_null(query_find(&rows[i], "no such parameter"));
	}
}

static bool is_code(const char *name)
{
	for (size_t i = 0; problem_codes[i]; i++)
		if (strcmp(problem_codes[i], name) == 0)
			return true;
	return false;
}

static void the_code_of_every_status_is_one_that_is_published(void **state)
{
	(void)state;
	for (int status = 400; status < 600; status++)
		assert_true(is_code(problem_name(status)));
}

static void the_document_is_json_with_every_route(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jv_doc *doc = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(openapi_write(&b), 0);
	assert_int_equal(jv_parse(b.data, b.len, b.len, &doc, &err), 0);
	assert_string_equal(jv_text(jv_get(jv_root(doc), "openapi")), "3.1.0");
	assert_non_null(strstr(b.data, "\"/api/v1/sandboxes/{id}/files/{path}\":{\"get\":"));
	assert_non_null(strstr(b.data, "\"operationId\":\"getKeys\""));
	assert_non_null(strstr(b.data, "\"operationId\":\"deleteKeysByKid\""));
	(void)jv_free(doc);
}

static int write_once(void *arg)
{
	struct buf b = { 0 };
	int r = openapi_write(&b);

	(void)arg;
	buf_done(&b);
	return r;
}

static void a_document_that_finds_no_memory_is_none(void **state)
{
	struct buf small;

	(void)state;
	assert_true(fault_each(write_once, NULL) > 0);
	buf_init(&small, 4096);
	assert_int_equal(openapi_write(&small), -E2BIG);
	buf_done(&small);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_answer_of_a_route_has_a_schema),
		cmocka_unit_test(every_schema_is_named_once_and_refers_to_others_that_are_there),
		cmocka_unit_test(every_query_parameter_says_what_it_takes),
		cmocka_unit_test(the_code_of_every_status_is_one_that_is_published),
		cmocka_unit_test(the_document_is_json_with_every_route),
		cmocka_unit_test(a_document_that_finds_no_memory_is_none),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
