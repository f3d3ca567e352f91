/* What `sudo` makes of its words: options, variables, the line of a shell. */
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "guest/sudo.h"
#include "spec/guest.h"

#define WORDS_MAX 16

struct words {
	int argc;
	const char *argv[WORDS_MAX + 1];
	char text[256];
};

/* "sudo -n id": at the blanks. */
static void split(struct words *w, const char *line)
{
	*w = (struct words){ 0 };
	assert_true(strlen(line) < sizeof(w->text));
	memcpy(w->text, line, strlen(line) + 1);
	for (char *p = w->text; p && w->argc < WORDS_MAX;) {
		w->argv[w->argc++] = p;
		p = strchr(p, ' ');
		if (p)
			*p++ = '\0';
	}
}

static int parse(struct words *w, const char *line, struct sudo_args *ret, struct err *err)
{
	split(w, line);
	return sudo_parse_args(w->argc, w->argv, ret, err);
}

static void options_are_those_of_other_sudos(void **state)
{
	static const struct {
		const char *line;
		const char *user, *dir, *keep, *first;
		enum sudo_mode mode;
		int argc, vars;
		bool keep_env, set_home, is_background;
	} cases[] = {
		{ .line = "sudo id", .first = "id", .argc = 1 },
		{ .line = "sudo id -u x", .first = "id", .argc = 3 },
		{ .line = "sudo -n -S -A id", .first = "id", .argc = 1 },
		{ .line = "sudo -nE id", .first = "id", .argc = 1, .keep_env = true },
		{ .line = "sudo -u bob id", .user = "bob", .first = "id", .argc = 1 },
		{ .line = "sudo -ubob id", .user = "bob", .first = "id", .argc = 1 },
		{ .line = "sudo -nubob id", .user = "bob", .first = "id", .argc = 1 },
		{ .line = "sudo --user=bob id", .user = "bob", .first = "id", .argc = 1 },
		{ .line = "sudo --user bob -- -x", .user = "bob", .first = "-x", .argc = 1 },
		{ .line = "sudo -p ask: -C 3 id", .first = "id", .argc = 1 },
		{ .line = "sudo -D /x -H id",
		  .dir = "/x",
		  .first = "id",
		  .argc = 1,
		  .set_home = true },
		{ .line = "sudo --preserve-env id", .first = "id", .argc = 1, .keep_env = true },
		{ .line = "sudo --preserve-env=A,B id", .keep = "A,B", .first = "id", .argc = 1 },
		{ .line = "sudo A=1 _B2= id C=3", .first = "id", .argc = 2, .vars = 2 },
		{ .line = "sudo 1A=1", .first = "1A=1", .argc = 1 },
		{ .line = "sudo -b id", .first = "id", .argc = 1, .is_background = true },
		{ .line = "sudo -s", .mode = SUDO_SHELL },
		{ .line = "sudo -i ls", .mode = SUDO_LOGIN, .first = "ls", .argc = 1 },
		{ .line = "sudo -l", .mode = SUDO_LIST },
		{ .line = "sudo -k", .mode = SUDO_VALIDATE },
		{ .line = "sudo -k id", .first = "id", .argc = 1 },
		{ .line = "sudo --version", .mode = SUDO_VERSION },
		{ .line = "sudo - x", .first = "-", .argc = 2 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct err err = { 0 };
		struct sudo_args a;
		struct words w;

		if (parse(&w, cases[i].line, &a, &err) < 0)
			fail_msg("%s: %s", cases[i].line, err.text);
		assert_string_equal(a.user, cases[i].user ? cases[i].user : "root");
		assert_string_equal(a.dir ? a.dir : "", cases[i].dir ? cases[i].dir : "");
		assert_string_equal(a.keep ? a.keep : "", cases[i].keep ? cases[i].keep : "");
		assert_int_equal(a.mode, cases[i].mode);
		assert_int_equal(a.argc, cases[i].argc);
		assert_int_equal(a.n_vars, cases[i].vars);
		assert_string_equal(a.argc ? a.argv[0] : "", cases[i].first ? cases[i].first : "");
		assert_int_equal(a.keep_env, cases[i].keep_env);
		assert_int_equal(a.set_home, cases[i].set_home);
		assert_int_equal(a.is_background, cases[i].is_background);
	}
}

static void what_cannot_be_done_is_said_and_not_passed_over(void **state)
{
	static const char *const lines[] = {
		"sudo",
		"sudo -n",
		"sudo A=1",
		"sudo -x id",
		"sudo --nope id",
		"sudo -u",
		"sudo --user",
		"sudo -e /etc/x",
		"sudo -g x id",
		"sudo --chroot / id",
		"sudo -n=1 id",
		"sudo --",
		"sudo --login=x id",
		"sudo -T 5 id",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(lines[0]); i++) {
		struct err err = { 0 };
		struct sudo_args a;
		struct words w;

		if (parse(&w, lines[i], &a, &err) != -EINVAL)
			fail_msg("%s was taken", lines[i]);
		assert_true(err.text[0] != '\0');
	}
}

/* What a shell says to a line. */
static void run_shell(const char *line, char *dst, size_t size)
{
	size_t n = 0;
	ssize_t r;
	pid_t pid;
	int p[2];

	assert_int_equal(pipe(p), 0);
	pid = fork();
	if (pid == 0) {
		(void)dup2(p[1], 1);
		(void)execl("/bin/sh", "sh", "-c", line, NULL);
		_exit(1);
	}
	(void)close(p[1]);
	while (n + 1 < size && (r = read(p[0], dst + n, size - 1 - n)) > 0)
		n += (size_t)r;
	dst[n] = '\0';
	(void)close(p[0]);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

static void a_shell_reads_back_the_words_it_is_given(void **state)
{
	/* Variables of the new shell are left to it, as elsewhere. */
	const char *words[] = {
		"printf", "%s\\n", "a  b", "x$y", "'\"\\;|&*?~`!#", "\303\244", NULL
	};
	char line[256], command[400], out[256];

	(void)state;
	assert_int_equal(sudo_quote(words, 6, line, sizeof(line)), 0);
	assert_true(snprintf(command, sizeof(command), "y=5; %s", line) < (int)sizeof(command));
	run_shell(command, out, sizeof(out));
	assert_string_equal(out, "a  b\nx5\n'\"\\;|&*?~`!#\n\303\244\n");
	assert_int_equal(sudo_quote(words, 6, line, 8), -E2BIG);
	assert_int_equal(sudo_quote(words, 1, line, 1), -E2BIG);
}

static const char *find(const struct guest_exec *e, const char *name)
{
	size_t n = strlen(name), seen = 0;
	const char *value = NULL;

	for (size_t i = 0; i < e->envc; i++)
		if (strncmp(e->envp[i], name, n) == 0 && e->envp[i][n] == '=') {
			value = e->envp[i] + n + 1;
			seen++;
		}
	assert_true(seen <= 1);
	return value;
}

static void fill(const char *line, struct words *w, struct sudo_text *text, struct guest_exec *ret)
{
	static const char *const now[] = {
		"A=1",      "B=2",     "LANG=C", "LC_ALL=D",     "TERM=vt100", "PATH=/evil", "bad",
		"=alsobad", "HOME=/h", "USER=u", "LD_PRELOAD=x", "A1=",        NULL
	};
	struct err err = { 0 };
	struct sudo_args a;

	assert_int_equal(parse(w, line, &a, &err), 0);
	if (sudo_fill(&a, now, text, ret, &err) < 0)
		fail_msg("%s: %s", line, err.text);
	assert_null(ret->argv[ret->argc]);
	assert_null(ret->envp[ret->envc]);
}

static void variables_of_the_caller_stay_behind_but_for_a_few(void **state)
{
	_free_ struct sudo_text *text = sudo_text_create();
	struct guest_exec e;
	struct words w;

	(void)state;
	assert_non_null(text);
	fill("sudo C=3 A=9 id", &w, text, &e);
	assert_string_equal(e.user, "root");
	assert_string_equal(e.cwd, "");
	assert_string_equal(find(&e, "LANG"), "C");
	assert_string_equal(find(&e, "LC_ALL"), "D");
	assert_string_equal(find(&e, "TERM"), "vt100");
	assert_null(find(&e, "B"));
	assert_null(find(&e, "LD_PRELOAD"));
	assert_string_equal(find(&e, "A"), "9");
	assert_string_equal(find(&e, "C"), "3");
	assert_string_equal(find(&e, "USER"), "root");
	assert_string_equal(find(&e, "HOME"), "/root");
	assert_non_null(strstr(find(&e, "PATH"), "/usr/sbin"));
	assert_string_equal(find(&e, "SUDO_COMMAND"), "id");
	assert_non_null(find(&e, "SUDO_UID"));

	fill("sudo -E id", &w, text, &e);
	assert_string_equal(find(&e, "B"), "2");
	assert_string_equal(find(&e, "HOME"), "/h");
	assert_string_equal(find(&e, "USER"), "root");
	assert_null(strstr(find(&e, "PATH"), "evil"));
	fill("sudo -EH id", &w, text, &e);
	assert_string_equal(find(&e, "HOME"), "/root");
	fill("sudo --preserve-env=B,A1 id", &w, text, &e);
	assert_string_equal(find(&e, "B"), "2");
	assert_string_equal(find(&e, "A1"), "");
	assert_null(find(&e, "A"));
}

static void a_login_is_at_home_in_the_users_shell(void **state)
{
	_free_ struct sudo_text *text = sudo_text_create();
	struct guest_exec e;
	struct words w;

	(void)state;
	assert_non_null(text);
	fill("sudo -i", &w, text, &e);
	assert_string_equal(e.cwd, "/root");
	assert_int_equal(e.argc, 2);
	assert_string_equal(e.argv[1], "-l");
	fill("sudo -i echo a*b", &w, text, &e);
	assert_int_equal(e.argc, 4);
	assert_string_equal(e.argv[2], "-c");
	assert_string_equal(e.argv[3], "echo a\\*b");
	assert_int_equal(setenv("SHELL", "/bin/other", 1), 0);
	fill("sudo -s", &w, text, &e);
	assert_int_equal(e.argc, 1);
	assert_string_equal(e.argv[0], "/bin/other");
	assert_string_equal(e.cwd, "");
}

static void too_much_is_refused_and_nothing_is_cut(void **state)
{
	_free_ struct sudo_text *text = sudo_text_create();
	static const char *argv[GUEST_ARGS_MAX + 3], *now[GUEST_ARGS_MAX + 3];
	static char names[GUEST_ARGS_MAX + 2][16];
	struct err err = { 0 };
	struct guest_exec e;
	struct sudo_args a;

	(void)state;
	assert_non_null(text);
	argv[0] = "sudo";
	for (int i = 1; i <= GUEST_ARGS_MAX + 1; i++) {
		argv[i] = "x";
		(void)snprintf(names[i], sizeof(names[i]), "V%d=1", i);
		now[i - 1] = names[i];
	}
	assert_int_equal(sudo_parse_args(GUEST_ARGS_MAX + 2, argv, &a, &err), 0);
	assert_int_equal(sudo_fill(&a, now, text, &e, &err), -E2BIG);
	assert_int_equal(sudo_parse_args(2, argv, &a, &err), 0);
	assert_int_equal(sudo_fill(&a, now, text, &e, &err), 0); /* none of them is kept */
	a.keep_env = true;
	assert_int_equal(sudo_fill(&a, now, text, &e, &err), -E2BIG);
	a.keep_env = false;
	a.user = "no-such-user-here";
	assert_true(sudo_fill(&a, now, text, &e, &err) < 0);
}

static void it_is_sudo_by_its_name_alone(void **state)
{
	(void)state;
	assert_true(sudo_is_name("sudo"));
	assert_true(sudo_is_name("/usr/bin/sudo"));
	assert_false(sudo_is_name("holt-init"));
	assert_false(sudo_is_name("/sudo/holt-init"));
	assert_false(sudo_is_name(""));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(options_are_those_of_other_sudos),
		cmocka_unit_test(what_cannot_be_done_is_said_and_not_passed_over),
		cmocka_unit_test(a_shell_reads_back_the_words_it_is_given),
		cmocka_unit_test(variables_of_the_caller_stay_behind_but_for_a_few),
		cmocka_unit_test(a_login_is_at_home_in_the_users_shell),
		cmocka_unit_test(too_much_is_refused_and_nothing_is_cut),
		cmocka_unit_test(it_is_sudo_by_its_name_alone),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
