/* multipart/form-data: what comes out is what was put in, however the bytes are cut. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "e2b/multipart.h"

#define TYPE "multipart/form-data; boundary=XX"
#define PART(name) "--XX\r\nContent-Disposition: form-data; name=\"" name "\"\r\n\r\n"

/* Everything that was told, as text: "name|file:data;" for each part, "." at the end. */
static int read_in_steps(const char *type, const char *body, size_t len, size_t step,
			 struct buf *ret)
{
	struct multipart m;
	int r = multipart_init(&m, type, NULL);

	buf_clear(ret);
	for (size_t at = 0; r >= 0 && at < len; at += step) {
		const char *p = body + at;
		size_t n = len - at < step ? len - at : step;

		while ((r = multipart_read(&m, &p, &n, NULL)) > 0) {
			if (r == MULTIPART_PART)
				(void)buf_printf(ret, "%s|%s:", m.name, m.file);
			else if (r == MULTIPART_DATA)
				(void)buf_append(ret, m.data, m.len);
			else
				(void)buf_putc(ret, r == MULTIPART_PART_END ? ';' : '.');
		}
		assert_true(r < 0 || n == 0);
	}
	return r < 0 ? r : multipart_finish(&m, NULL);
}

static int read_all(const char *body, size_t len, struct buf *ret)
{
	_cleanup_(buf_done) struct buf other = { 0 };
	int r = read_in_steps(TYPE, body, len, len, ret);

	for (size_t step = 1; step < 8; step++) {
		assert_int_equal(read_in_steps(TYPE, body, len, step, &other), r);
		if (r == 0)
			assert_string_equal(buf_str(&other), buf_str(ret));
	}
	return r;
}

static void expect(const char *body, const char *want)
{
	_cleanup_(buf_done) struct buf got = { 0 };

	assert_int_equal(read_all(body, strlen(body), &got), 0);
	assert_string_equal(buf_str(&got), want);
}

static void refused(const char *body, int why)
{
	_cleanup_(buf_done) struct buf got = { 0 };

	assert_int_equal(read_all(body, strlen(body), &got), why);
}

static void parts_come_as_they_were_sent(void **state)
{
	(void)state;
	expect(PART("a") "one\r\n" PART("b") "two\r\n--XX--\r\n", "a|:one;b|:two;.");
	expect(PART("a") "\r\n--XX--", "a|:;.");
	expect("--XX\r\nContent-Type: text/plain\r\n\r\nx\r\n--XX--", "|:x;.");
	expect("--XX\r\n\r\nx\r\n--XX--", "|:x;.");
	expect("--XX--", ".");
}

static void what_looks_like_a_boundary_is_data(void **state)
{
	(void)state;
	expect(PART("a") "\r\r\n\r\n-\r\n--X\r\n--XY\r\n--XX--", "a|:\r\r\n\r\n-\r\n--X\r\n--XY;.");
	expect(PART("a") "--XX\r\n--XX--", "a|:--XX;.");
	expect(PART("a") "\r\r\n--XX--", "a|:\r;.");
}

static void the_file_has_its_name(void **state)
{
	(void)state;
	expect("--XX\r\ncontent-disposition:form-data;filename=\"d/a b.txt\" ; name=file\r\n\r\n"
	       "x\r\n--XX--",
	       "file|d/a b.txt:x;.");
	expect("--XX\r\nContent-Disposition: form-data; name=\"file\"; "
	       "filename=\"a\\\"b\\\\c;d\\e.txt\"\r\n\r\n\r\n--XX--",
	       "file|a\"b\\c;d\\e.txt:;.");
	expect("--XX\r\nContent-Disposition: attachment; name=\"file\"\r\n\r\n\r\n--XX--", "|:;.");
	expect("--XX\r\nContent-Disposition: form-data; a; =; b=c\r\n\r\n\r\n--XX--", "|:;.");
}

static void what_is_around_the_parts_is_passed_over(void **state)
{
	(void)state;
	expect("hello\r\n" PART("a") "x\r\n--XX \t\r\nA: b\r\n\r\ny\r\n--XX--\r\nbye --XX",
	       "a|:x;|:y;.");
}

static void a_body_without_its_end_is_refused(void **state)
{
	(void)state;
	refused("x", -EBADMSG);
	refused(PART("a"), -EBADMSG);
	refused(PART("a") "x", -EBADMSG);
	refused(PART("a") "x\r\n--XX", -EBADMSG);
	refused(PART("a") "x\r\n--XX-", -EBADMSG);
	refused(PART("a") "x\r\n--XX\r\n", -EBADMSG);
}

static void what_is_not_well_formed_is_refused(void **state)
{
	(void)state;
	refused("--XXy\r\n\r\nx\r\n--XX--", -EBADMSG);
	refused("--XX-\r\n\r\nx\r\n--XX--", -EBADMSG);
	refused("--XX\r\r\n\r\nx\r\n--XX--", -EBADMSG);
	refused("--XX\r\nContent-Disposition: form-data; name=\"a\r\n\r\nx\r\n--XX--", -EBADMSG);
}

static void a_name_with_a_nul_is_refused(void **state)
{
	static const char body[] =
		"--XX\r\nContent-Disposition: form-data; name=\"a\0b\"\r\n\r\nx\r\n--XX--";
	_cleanup_(buf_done) struct buf got = { 0 };

	(void)state;
	assert_int_equal(read_all(body, sizeof(body) - 1, &got), -EBADMSG);
}

static void every_limit_is_held(void **state)
{
	_cleanup_(buf_done) struct buf body = { 0 }, got = { 0 };

	(void)state;
	(void)buf_puts(&body, "--XX\r\nContent-Disposition: form-data; name=\"");
	for (unsigned i = 0; i < MULTIPART_NAME_MAX - 1; i++)
		(void)buf_putc(&body, 'n');
	(void)buf_puts(&body, "\"\r\n\r\nx\r\n--XX--");
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), 0);
	buf_clear(&body);
	(void)buf_puts(&body, "--XX\r\nContent-Disposition: form-data; name=\"n");
	for (unsigned i = 0; i < MULTIPART_NAME_MAX - 1; i++)
		(void)buf_putc(&body, 'n');
	(void)buf_puts(&body, "\"\r\n\r\nx\r\n--XX--");
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), -E2BIG);

	buf_clear(&body);
	(void)buf_puts(&body, "--XX\r\nA: ");
	while (body.len < MULTIPART_HEAD_MAX + 6)
		(void)buf_putc(&body, 'a');
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), -EBADMSG);
	(void)buf_putc(&body, 'a');
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), -E2BIG);

	buf_clear(&body);
	while (body.len < MULTIPART_LOST_MAX)
		(void)buf_putc(&body, 'a');
	(void)buf_puts(&body, "\r\n--XX--");
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), 0);
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, body.len, &got), 0);
	body.data[MULTIPART_LOST_MAX] = 'a';
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), -E2BIG);

	buf_clear(&body);
	for (unsigned i = 0; i < MULTIPART_PARTS_MAX; i++)
		(void)buf_puts(&body, "--XX\r\n\r\n\r\n");
	(void)buf_puts(&body, "--XX--");
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), 0);
	buf_clear(&body);
	for (unsigned i = 0; i <= MULTIPART_PARTS_MAX; i++)
		(void)buf_puts(&body, "--XX\r\n\r\n\r\n");
	assert_int_equal(read_in_steps(TYPE, body.data, body.len, 100, &got), -E2BIG);
}

static void the_boundary_is_checked(void **state)
{
	static const char *const bad[] = {
		"text/plain",
		"multipart/form-data",
		"multipart/form-data; boundary=",
		"multipart/form-data; boundary=\"a",
		"multipart/form-data; charset=x",
	};
	char type[128] = "multipart/form-data; boundary=";
	size_t n = strlen(type);
	struct multipart m;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_int_equal(multipart_init(&m, bad[i], NULL), -EINVAL);
	memset(type + n, 'b', MULTIPART_BOUNDARY_MAX);
	assert_int_equal(multipart_init(&m, type, NULL), 0);
	type[n + MULTIPART_BOUNDARY_MAX] = 'b';
	assert_int_equal(multipart_init(&m, type, NULL), -EINVAL);
	assert_int_equal(
		multipart_init(&m, "Multipart/Form-Data; x=y; Boundary=\"a b\"; z=1", NULL), 0);
	assert_string_equal(m.line, "\r\n--a b");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parts_come_as_they_were_sent),
		cmocka_unit_test(what_looks_like_a_boundary_is_data),
		cmocka_unit_test(the_file_has_its_name),
		cmocka_unit_test(what_is_around_the_parts_is_passed_over),
		cmocka_unit_test(a_body_without_its_end_is_refused),
		cmocka_unit_test(what_is_not_well_formed_is_refused),
		cmocka_unit_test(a_name_with_a_nul_is_refused),
		cmocka_unit_test(every_limit_is_held),
		cmocka_unit_test(the_boundary_is_checked),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
