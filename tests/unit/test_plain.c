/* Which lines need a shell, and that one cannot tell when it was left out. */
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/str.h"
#include "guest/plain.h"
#include "guest_rig.h"

static int start(void **state)
{
	static struct guest_rig rig;

	rig_start(&rig);
	*state = &rig;
	return 0;
}

static int stop(void **state)
{
	rig_stop(*state, 0);
	return 0;
}

static void plain_lines_are_cut_into_words(void **state)
{
	static const struct {
		const char *line, *joined; /* words with '|' between them; NULL: for the shell */
	} rows[] = {
		{ "/bin/true", "/bin/true" },
		{ "/bin/true ", "/bin/true" },
		{ "/usr/bin/env  a=b\t-c", "/usr/bin/env|a=b|-c" },
		{ "/x 1 2 3", "/x|1|2|3" },
		{ "", NULL },
		{ " /bin/true", NULL },
		{ "true", NULL },
		{ "./x", NULL },
		{ "/bin/true\n", NULL },
		{ "/bin/true;", NULL },
		{ "/bin/echo *", NULL },
		{ "/bin/echo ~", NULL },
		{ "/bin/echo 'a'", NULL },
		{ "/bin/echo $HOME", NULL },
		{ "/bin/echo a#b", NULL },
		{ "/bin/echo {a,b}", NULL },
		{ "/bin/echo >x", NULL },
		{ "/bin/echo a\\ b", NULL },
		{ "/bin/\xc3\xa9", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct buf joined = { 0 };
		struct plain p;

		assert_int_equal(plain_split(rows[i].line, &p), rows[i].joined != NULL);
		if (!rows[i].joined)
			continue;
		for (size_t w = 0; p.argv[w]; w++) {
			(void)buf_puts(&joined, w > 0 ? "|" : "");
			(void)buf_puts(&joined, p.argv[w]);
		}
		assert_string_equal(buf_str(&joined), rows[i].joined);
		buf_done(&joined);
	}
}

static void long_lines_are_left_to_the_shell(void **state)
{
	char line[2 * PLAIN_MAX] = "/x";
	struct plain p;

	(void)state;
	for (size_t i = 1; i < PLAIN_WORDS; i++)
		memcpy(line + 2 * i, " y", 3);
	assert_true(plain_split(line, &p));
	memcpy(line + 2 * PLAIN_WORDS, " y", 3);
	assert_false(plain_split(line, &p));
	memset(line, 'a', sizeof(line));
	line[0] = '/';
	line[PLAIN_MAX - 1] = '\0';
	assert_true(plain_split(line, &p));
	line[PLAIN_MAX - 1] = 'a';
	line[PLAIN_MAX] = '\0';
	assert_false(plain_split(line, &p));
}

static void variables_that_mean_something_to_the_shell_call_for_it(void **state)
{
	static const char *const harmless[] = { "A=1", "MYBASH_ENV=x", NULL };
	static const char *const rows[][2] = { { "BASH_ENV=/x" },
					       { "SHELLOPTS=xtrace" },
					       { "BASH_FUNC_f%%=() { :; }" },
					       { "BASHOPTS=extglob" },
					       { "ENV=/x" } };

	(void)state;
	assert_true(plain_env(harmless));
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_false(plain_env(rows[i]));
}

static void run(struct guest_rig *rig, const char *line, bool may_skip, struct rig_result *r)
{
	const char *argv[] = { "/bin/bash", "-c", line, NULL };
	struct guest_exec e = rig_command(argv);

	e.cwd = "/usr";
	e.flags = may_skip ? EXEC_SHELL : 0;
	e.envp[e.envc++] = "PATH=/usr/bin:/bin";
	rig_run(rig, 1, &e, r);
}

static int by_text(const void *a, const void *b)
{
	const struct str *x = a, *y = b;
	int order = memcmp(x->data, y->data, x->len < y->len ? x->len : y->len);

	return order ? order : (x->len > y->len) - (x->len < y->len);
}

static void sort_lines(struct buf *text)
{
	struct str rest = { text->data, text->len }, lines[32];
	struct buf sorted = { 0 };
	size_t n = 0;

	while (n < 32 && str_split(&rest, '\n', &lines[n]))
		n++;
	qsort(lines, n, sizeof(lines[0]), by_text);
	for (size_t i = 0; i < n; i++)
		(void)buf_printf(&sorted, "%.*s\n", (int)lines[i].len, lines[i].data);
	buf_done(text);
	*text = sorted;
}

/* Programs there are, programs there are not, and files that only a shell can run. */
static void one_cannot_tell_whether_the_shell_was_left_out(void **state)
{
	char script[] = "/tmp/plain-test-XXXXXX";
	int fd = mkstemp(script);
	const char *const lines[] = { "/usr/bin/env",     "/usr/bin/printf a%sc b",
				      "/no/such/program", "/etc",
				      "/etc/passwd",      script };

	assert_true(fd >= 0);
	assert_int_equal(write(fd, "echo from a shell; exit 5\n", 26), 26);
	assert_int_equal(fchmod(fd, 0755), 0);
	assert_int_equal(close(fd), 0);
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct rig_result with, without;

		run(*state, lines[i], false, &with);
		run(*state, lines[i], true, &without);
		sort_lines(&with.out);
		sort_lines(&without.out);
		assert_true(without.is_exit);
		assert_int_equal(without.exit.code, with.exit.code);
		assert_int_equal(without.exit.flags, with.exit.flags);
		assert_string_equal(buf_str(&without.out), buf_str(&with.out));
		assert_string_equal(buf_str(&without.err), buf_str(&with.err));
		rig_result_done(&with);
		rig_result_done(&without);
	}
	assert_int_equal(unlink(script), 0);
}

static void a_plain_line_runs_where_there_is_no_shell(void **state)
{
	const char *argv[] = { "/no/such/shell", "-c", "/bin/echo a", NULL };
	struct guest_exec e = rig_command(argv);
	struct rig_result r;

	e.flags = EXEC_SHELL;
	rig_run(*state, 1, &e, &r);
	assert_true(r.is_exit);
	assert_string_equal(buf_str(&r.out), "a\n");
	rig_result_done(&r);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(plain_lines_are_cut_into_words),
		cmocka_unit_test(long_lines_are_left_to_the_shell),
		cmocka_unit_test(variables_that_mean_something_to_the_shell_call_for_it),
		cmocka_unit_test_setup_teardown(one_cannot_tell_whether_the_shell_was_left_out,
						start, stop),
		cmocka_unit_test_setup_teardown(a_plain_line_runs_where_there_is_no_shell, start,
						stop),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
