#include "cli/client.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"
#include "http_rig.h"
#include "json/jw.h"

#define JSON "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nConnection: close\r\n\r\n"
#define LEN(a) (sizeof(a) / sizeof((a)[0]))

static void a_path_is_made_of_escaped_parts(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	(void)state;
	assert_int_equal(client_path(&b, "sandboxes/%/executions/%/stdin", "a/b", "../c?d"), 0);
	assert_string_equal(b.data, "/api/v1/sandboxes/a%2Fb/executions/..%2Fc%3Fd/stdin");
}

struct seen {
	struct buf ids;
	int stop;
};

static int keep(void *user, struct jv item)
{
	struct seen *s = user;

	(void)buf_printf(&s->ids, "%s ", jv_text(jv_get(item, "id")));
	return s->stop;
}

static int walk(const struct http_step *steps, size_t n, struct seen *s, struct http_rig *rig)
{
	struct client c = { 0 };
	struct err err = { 0 };
	int r;

	http_rig_start(rig, steps, n);
	assert_int_equal(httpc_create(&(struct httpc_options){ .url = rig->url }, &c.http, &err),
			 0);
	r = client_list(&c, "/api/v1/sandboxes?status=all", keep, s, &err);
	c.http = httpc_free(c.http);
	return r;
}

static void a_list_goes_on_to_its_last_page(void **state)
{
	static const struct http_step steps[] = {
		{ .answer = JSON
		  "{\"items\":[{\"id\":\"a\"},{\"id\":\"b\"}],\"nextCursor\":\"x/&\"}" },
		{ .answer = JSON "{\"items\":[],\"nextCursor\":\"y\"}" },
		{ .answer = JSON "{\"items\":[{\"id\":\"c\"}],\"nextCursor\":null}" },
	};
	struct seen s = { 0 };
	struct http_rig rig;

	(void)state;
	assert_int_equal(walk(steps, LEN(steps), &s, &rig), 0);
	assert_string_equal(s.ids.data, "a b c ");
	http_rig_stop(&rig);
	assert_non_null(strstr(rig.got.data, "GET /api/v1/sandboxes?status=all&limit=500 "));
	assert_non_null(
		strstr(rig.got.data, "GET /api/v1/sandboxes?status=all&limit=500&cursor=x%2F%26 "));
	assert_non_null(strstr(rig.got.data, "&cursor=y "));
	http_rig_done(&rig);
	buf_done(&s.ids);
}

static void a_list_ends_where_its_reader_says_so(void **state)
{
	static const struct http_step steps[] = {
		{ .answer =
			  JSON "{\"items\":[{\"id\":\"a\"},{\"id\":\"b\"}],\"nextCursor\":\"x\"}" },
	};
	struct seen s = { .stop = -EPIPE };
	struct http_rig rig;

	(void)state;
	assert_int_equal(walk(steps, LEN(steps), &s, &rig), -EPIPE);
	assert_string_equal(s.ids.data, "a ");
	http_rig_done(&rig);
	buf_done(&s.ids);
}

static void an_answer_that_is_no_json_is_told(void **state)
{
	static const struct http_step steps[] = { { .answer = JSON "{\"items\":[" } };
	struct seen s = { 0 };
	struct http_rig rig;

	(void)state;
	assert_int_equal(walk(steps, LEN(steps), &s, &rig), -EINVAL);
	assert_int_equal(s.ids.len, 0);
	http_rig_done(&rig);
}

static int pairs(bool inherit, size_t n, const char *const *items, struct buf *b, struct err *err)
{
	const struct client_pairs p = { "env", "env", inherit };
	struct opt_list list = { .len = n };
	struct jw w = jw_begin(b);
	int r;

	for (size_t i = 0; i < n; i++)
		list.items[i] = items[i];
	jw_object_begin(&w);
	r = client_pairs(&w, &p, &list, err);
	if (r < 0)
		return r;
	jw_object_end(&w);
	return jw_end(&w);
}

static void the_last_of_several_values_counts(void **state)
{
	static const char *const items[] = { "A=1",           "AB=x=y",          "A=2",
					     "HOLT_TEST_SET", "HOLT_TEST_UNSET", "E=" };
	_cleanup_(buf_done) struct buf b = { 0 }, none = { 0 };
	struct err err = { 0 };

	(void)state;
	(void)setenv("HOLT_TEST_SET", "mine", 1);
	(void)unsetenv("HOLT_TEST_UNSET");
	assert_int_equal(pairs(true, LEN(items), items, &b, &err), 0);
	assert_string_equal(b.data, "{\"env\":{\"AB\":\"x=y\",\"A\":\"2\","
				    "\"HOLT_TEST_SET\":\"mine\",\"E\":\"\"}}");
	assert_int_equal(pairs(true, 0, NULL, &none, &err), 0);
	assert_string_equal(none.data, "{}");
}

static void a_value_without_a_name_is_refused(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(pairs(true, 1, (const char *const[]){ "=x" }, &b, &err), -EINVAL);
	assert_string_equal(err.text, "--env '=x': wants NAME=value or NAME");
	assert_int_equal(pairs(false, 1, (const char *const[]){ "A" }, &b, &err), -EINVAL);
	assert_string_equal(err.text, "--env 'A': wants NAME=value");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_is_made_of_escaped_parts),
		cmocka_unit_test(a_list_goes_on_to_its_last_page),
		cmocka_unit_test(a_list_ends_where_its_reader_says_so),
		cmocka_unit_test(an_answer_that_is_no_json_is_told),
		cmocka_unit_test(the_last_of_several_values_counts),
		cmocka_unit_test(a_value_without_a_name_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
