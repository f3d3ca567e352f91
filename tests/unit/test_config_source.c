#include "config/source.h"

#include <errno.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "fault.h"

#define LEN(a) (sizeof(a) / sizeof((a)[0]))

typedef int (*read_fn)(const char *file, const char *text, size_t n, source_fn fn, void *user,
		       struct err *err);

/* "name=value@line;" for each pair. */
static int note(void *user, const char *name, const char *value, size_t line, struct err *err)
{
	(void)err;
	return buf_printf(user, "%s=%s@%zu;", name, value ? value : "(null)", line);
}

struct row {
	const char *text;
	int result;
	const char *want; /* the pairs, or the message */
};

static void check(read_fn read, const struct row *row, size_t n)
{
	_cleanup_(buf_done) struct buf got = { 0 };
	struct err err = { 0 };
	int r = read("f", row->text, n, note, &got, &err);

	if (r != row->result || strcmp(r < 0 ? err.text : buf_str(&got), row->want) != 0)
		fail_msg("%s: %d, '%s', '%s'", row->text, r, buf_str(&got), err.text);
}

static void yaml_gives_names_values_and_lines(void **state)
{
	static const struct row rows[] = {
		{ "", 0, "" },
		{ "# nothing\n", 0, "" },
		{ "---\n...\n", 0, "" },
		{ "a: 1\nb: 'x y'\n\nc: \"q\\\"\"\n", 0, "a=1@1;b=x y@2;c=q\"@4;" },
		{ "{a: 1, b: 2}", 0, "a=1@1;b=2@1;" },
		{ "g:\n  a: 1\n  h:\n    b: 2\nc: 3\n", 0, "g_a=1@2;g_h_b=2@4;c=3@5;" },
		{ "l: [a, b c, 'd']\nm:\n- x\n- y\ne: []\n", 0, "l=a,b c,d@1;m=x,y@3;e=@5;" },
		{ "a:\nb: ~\nc: null\nd: ''\ne: 'null'\n", 0,
		  "a=(null)@1;b=(null)@2;c=(null)@3;d=@4;e=null@5;" },
		{ "u: \xc3\xa4\n", 0, "u=\xc3\xa4@1;" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++)
		check(yaml_read, &rows[i], strlen(rows[i].text));
}

static void yaml_refuses_what_is_clever(void **state)
{
	static const struct row rows[] = {
		{ "a: &x 1\nb: 2\n", -EINVAL, "f:1: anchors are not taken" },
		{ "a: 1\nb: *x\n", -EINVAL, "f:2: aliases are not taken" },
		{ "a: &x [1]\n", -EINVAL, "f:1: anchors are not taken" },
		{ "&x a: 1\n", -EINVAL, "f:1: anchors are not taken" },
		{ "&x {a: 1}\n", -EINVAL, "f:1: anchors are not taken" },
		{ "a: !!str 1\n", -EINVAL, "f:1: tags are not taken" },
		{ "a: !mine {}\n", -EINVAL, "f:1: tags are not taken" },
		{ "a: !mine []\n", -EINVAL, "f:1: tags are not taken" },
		{ "a: 1\n---\nb: 2\n", -EINVAL, "f:2: want one document" },
		{ "just text\n", -EINVAL, "f:1: want names and values" },
		{ "- a\n", -EINVAL, "f:1: want names and values" },
		{ "[a]: 1\n", -EINVAL, "f:1: want a plain name as key" },
		{ "? {a: 1}\n: 2\n", -EINVAL, "f:1: want a plain name as key" },
		{ "'': 1\n", -EINVAL, "f:1: a key is empty" },
		{ "a: \"x\\0y\"\n", -EINVAL, "f:1: has a NUL byte" },
		{ "l: [[a]]\n", -EINVAL, "f:1: want a list of texts without commas" },
		{ "l: ['a,b']\n", -EINVAL, "f:1: want a list of texts without commas" },
		{ "l:\n- {a: 1}\n", -EINVAL, "f:2: want a list of texts without commas" },
		{ "l: [a, ~]\n", -EINVAL, "f:1: want a list of texts without commas" },
		{ "a: {b: {c: {d: 1}}}\n", 0, "a_b_c_d=1@1;" },
		{ "a: {b: {c: {d: {e: 1}}}}\n", -EINVAL, "f:1: is nested too deep" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++)
		check(yaml_read, &rows[i], strlen(rows[i].text));
}

static void yaml_that_is_broken_is_told_with_its_line(void **state)
{
	static const char *const texts[] = { "a: 1\n b: 2\n", "a: [1\n", "a: 'x\n",  "\ta: 1\n",
					     "a: \xff\n",     "@a: 1\n", "a: b: c\n" };

	(void)state;
	for (size_t i = 0; i < LEN(texts); i++) {
		_cleanup_(buf_done) struct buf got = { 0 };
		struct err err = { 0 };

		assert_int_equal(yaml_read("f", texts[i], strlen(texts[i]), note, &got, &err),
				 -EINVAL);
		assert_int_equal(strncmp(err.text, "f:", 2), 0);
		assert_true(err.text[2] >= '1' && err.text[2] <= '3' && err.text[3] == ':');
	}
}

static void yaml_names_and_lists_have_limits(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	for (int i = 0; i < 255; i++)
		buf_putc(&b, 'k');
	buf_puts(&b, ": 1\n");
	{
		_cleanup_(buf_done) struct buf got = { 0 };

		assert_int_equal(yaml_read("f", b.data, b.len, note, &got, &err), -EINVAL);
		assert_string_equal(err.text, "f:1: a key is too long");
		assert_int_equal(yaml_read("f", b.data + 1, b.len - 1, note, &got, &err), 0);
	}
	buf_clear(&b);
	buf_puts(&b, "l: [a");
	for (int i = 0; i < 5000; i++)
		buf_puts(&b, ", b");
	buf_puts(&b, "]\n");
	{
		_cleanup_(buf_done) struct buf got = { 0 };

		assert_int_equal(yaml_read("f", b.data, b.len, note, &got, &err), -EINVAL);
		assert_string_equal(err.text, "f:1: the list is too long");
	}
}

static void dotenv_gives_names_values_and_lines(void **state)
{
	static const struct row rows[] = {
		{ "", 0, "" },
		{ "A=1\nB = 2 \nexport C=3", 0, "A=1@1;B=2@2;C=3@3;" },
		{ "# A=1\n\n  A=1 # one\nB=x#y\nC=#\n", 0, "A=1@3;B=x#y@4;C=@5;" },
		{ "A='it is # \\n $X'\nB=\"a\\\"b\\n\\t\\\\ \\$ \\q\"\n", 0,
		  "A=it is # \\n $X@1;B=a\"b\n\t\\ $ \\q@2;" },
		{ "A=\"one\nA=two\n\"\nB=3\n", 0, "A=one\nA=two\n@1;B=3@4;" },
		{ "A=1\r\nB=\"2\"\r\n", 0, "A=1@1;B=2@2;" },
		{ "what is this\n1A=2\n=3\nA\nif [ x ]; then\nB=1\n", 0, "B=1@6;" },
		{ "exported=1\nexport\nexport  D=2\n", 0, "exported=1@1;D=2@3;" },
		{ "A=\nB=''\nC=\"\"", 0, "A=@1;B=@2;C=@3;" },
		{ "A='x\nB=1\n", -EINVAL, "f:1: the quote does not end" },
		{ "B=1\nA=\"x\\\"", -EINVAL, "f:2: the quote does not end" },
	};

	(void)state;
	for (size_t i = 0; i < LEN(rows); i++)
		check(dotenv_read, &rows[i], strlen(rows[i].text));
	check(dotenv_read, &(struct row){ "A=1\0", -EINVAL, "f: has a NUL byte" }, 4);
}

static void dotenv_values_have_a_limit(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct err err = { 0 };

	(void)state;
	buf_puts(&b, "A='");
	for (int i = 0; i < 65537; i++)
		buf_putc(&b, 'x');
	buf_puts(&b, "'");
	assert_int_equal(dotenv_read("f", b.data, b.len, note, &b, &err), -E2BIG);
}

static int refuse(void *user, const char *name, const char *value, size_t line, struct err *err)
{
	(void)user;
	(void)value;
	return strcmp(name, "b") == 0 ? err_set(err, EPERM, "not %s of line %zu", name, line) : 0;
}

static void a_refusal_ends_the_reading_and_is_passed_on(void **state)
{
	struct err err = { 0 };

	(void)state;
	assert_int_equal(yaml_read("f", "a: 1\nb: 2\nc: [", 14, refuse, NULL, &err), -EPERM);
	assert_string_equal(err.text, "not b of line 2");
	assert_int_equal(dotenv_read("f", "a=1\n\nb=2\nc='", 12, refuse, NULL, &err), -EPERM);
	assert_string_equal(err.text, "not b of line 3");
}

static int read_once(void *arg)
{
	_cleanup_(buf_done) struct buf got = { 0 };

	if (arg)
		return yaml_read("f", "a: [1, 2]\nb: 3\n", 15, note, &got, NULL);
	return dotenv_read("f", "a='1'\nb=2\n", 10, note, &got, NULL);
}

static void reading_fails_cleanly_without_memory(void **state)
{
	(void)state;
	assert_true(fault_each(read_once, NULL) > 1);
	assert_true(fault_each(read_once, state) > 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(yaml_gives_names_values_and_lines),
		cmocka_unit_test(yaml_refuses_what_is_clever),
		cmocka_unit_test(yaml_that_is_broken_is_told_with_its_line),
		cmocka_unit_test(yaml_names_and_lists_have_limits),
		cmocka_unit_test(dotenv_gives_names_values_and_lines),
		cmocka_unit_test(dotenv_values_have_a_limit),
		cmocka_unit_test(a_refusal_ends_the_reading_and_is_passed_on),
		cmocka_unit_test(reading_fails_cleanly_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
