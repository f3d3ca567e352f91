/* Files for tools, as real interpreters read them. */
#include "tools/stubs.h"

#include <errno.h>
#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "check.h"
#include "tools/stub_text.h"
#include "json/jv.h"

static char dir[64];

static int run(const char *const *argv)
{
	pid_t pid;
	int status = 0;

	assert_int_equal(
		posix_spawnp(&pid, argv[0], NULL, NULL, (char *const *)(uintptr_t)argv, environ),
		0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static int enter(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/stubs-XXXXXX");
	assert_non_null(mkdtemp(dir));
	return 0;
}

static int leave(void **state)
{
	const char *const argv[] = { "rm", "-rf", dir, NULL };

	(void)state;
	return run(argv);
}

static void unpack(const struct buf *tar)
{
	char path[96];
	const char *const argv[] = { "tar", "-xf", path, "-C", dir, NULL };
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/all.tar", dir);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, tar->data, tar->len), 0);
	assert_int_equal(run(argv), 0);
}

/* Runs it with the package in reach, and with what calls out put aside. */
static void expect_python(const char *code)
{
	char head[512];
	_cleanup_(buf_done) struct buf all = { 0 };
	const char *argv[] = { "/usr/bin/python3", "-B", "-c", NULL, NULL };

	(void)snprintf(head, sizeof(head),
		       "import sys, os\nos.chdir(%c%s%c)\nos.rename('tools', 'holt_tools')\n"
		       "sys.path.insert(0, '.')\nimport holt_tools._call as c\ngot = []\n"
		       "c.call = lambda *a: got.append(a)\n",
		       '\'', dir, '\'');
	(void)buf_puts(&all, head);
	(void)buf_puts(&all, code);
	argv[3] = buf_str(&all);
	assert_int_equal(run(argv), 0);
}

static void expect_node(const char *code)
{
	_cleanup_(buf_done) struct buf all = { 0 };
	const char *argv[] = { "node", "--input-type=module", "-e", NULL, NULL };

	(void)buf_printf(&all, "const dir = \"%s/tools/\";\n%s", dir, code);
	argv[3] = buf_str(&all);
	assert_int_equal(run(argv), 0);
}

static void add(struct stubs *s, const char *server, const char *name, const char *about,
		const char *input, int want)
{
	struct jv_doc *doc = NULL;
	struct stub_tool t = { .server = server, .name = name, .about = about };

	if (input)
		assert_int_equal(jv_parse(input, strlen(input), 1u << 20, &doc, NULL), 0);
	t.input = jv_root(doc);
	assert_int_equal(stubs_add(s, &t), want);
	(void)jv_free(doc);
}

#define INPUT                                                                           \
	"{\"type\":\"object\",\"properties\":{\"times\":{\"type\":\"integer\"},"        \
	"\"message\":{\"type\":\"string\",\"description\":\"what to say\"},"            \
	"\"in-reply-to\":{\"type\":[\"string\",\"null\"]},\"class\":{\"enum\":[1,2]}}," \
	"\"required\":[\"message\"]}"

static void a_tool_is_a_function_with_its_parameters(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();

	(void)state;
	add(s, "every-thing", "echo", "Says it again.", INPUT, 0);
	add(s, "every-thing", "print.now", "", NULL, 0);
	add(s, "other", "echo", "", "{}", 0);
	unpack(stubs_end(s));
	expect_node("import { deepStrictEqual as same } from 'node:assert';\n"
		    "const a = await import(dir + 'every_thing/index.mjs');\n"
		    "same(Object.keys(a).sort(), ['echo', 'print_now']);\n"
		    "const b = await import(dir + 'other/echo.mjs');\n"
		    "same(Object.keys(b), ['echo']);\n");
	expect_python("from holt_tools.every_thing import echo, print_now\n"
		      "import inspect\n"
		      "echo('hi', times=2, in_reply_to=None, extra=1)\n"
		      "print_now()\n"
		      "assert got[0] == ('every-thing', 'echo', {'extra': 1, 'times': 2, "
		      "'message': 'hi',\n"
		      "    'in-reply-to': None, 'class': ...}), got\n"
		      "assert got[1] == ('every-thing', 'print.now', {}), got\n"
		      "p = inspect.signature(echo).parameters\n"
		      "assert list(p) == ['message', 'times', 'in_reply_to', 'class_', 'more'], p\n"
		      "assert p['in_reply_to'].annotation == 'str | None', p\n"
		      "assert 'Says it again.' in echo.__doc__ and 'what to say' in echo.__doc__\n"
		      "from holt_tools.other import echo as other\n"
		      "other()\n"
		      "assert got[2][:2] == ('other', 'echo')\n");
}

/* Every one of them would leave a mark if it were run. */
static const char *const evil[] = {
	"\"\"\"\nopen('owned','w')\n\"\"\"",
	"'''\nopen('owned','w')\n'''",
	"*/ globalThis.owned = 1; /*",
	"\n*/\nglobalThis.owned = 1;\n/*",
	"/\nglobalThis.owned = 1;",
	"\\\"\"\"\nopen('owned','w')",
	"\\",
	"\"",
	"`${globalThis.owned = 1}`",
	"\r\nopen('owned','w')\r\n",
	"\xe2\x80\xa8globalThis.owned = 1;\xe2\x80\xa9",
	"\xe2\x80\xae\xf0\x9f\x98\x80 \xc3\xa9",
	"__import__('os').system('touch owned')",
	"x=open('owned','w')",
	"x: open('owned','w')",
	"../../../../tmp/owned",
	"..",
	".",
	"/",
	"__init__",
	"_call",
	"index",
	"__class__",
	"def",
	"await",
	"constructor",
	"a\tb",
	"1 2",
	"# -*- coding: utf-7 -*-",
	"# coding: utf-7\n+AG8-",
};
#define EVIL (sizeof(evil) / sizeof(evil[0]))

static void put_json(struct buf *b, const char *text)
{
	(void)buf_putc(b, '"');
	for (const char *p = text; *p; p++) {
		if (*p == '"' || *p == '\\')
			(void)buf_printf(b, "\\%c", *p);
		else if ((unsigned char)*p < 0x20)
			(void)buf_printf(b, "\\u%04x", *p);
		else
			(void)buf_putc(b, *p);
	}
	(void)buf_putc(b, '"');
}

static void write_evil_input(struct buf *b)
{
	(void)buf_puts(b, "{\"type\":\"object\",\"properties\":{");
	for (size_t i = 0; i < EVIL; i++) {
		(void)buf_puts(b, i ? "," : "");
		put_json(b, evil[i]);
		(void)buf_puts(b, ":{\"type\":[");
		put_json(b, evil[i]);
		(void)buf_puts(b, ",\"string\"],\"description\":");
		put_json(b, evil[i]);
		(void)buf_puts(b, ",\"default\":");
		put_json(b, evil[i]);
		(void)buf_puts(b, ",\"enum\":[");
		put_json(b, evil[i]);
		(void)buf_puts(b, "]}");
	}
	(void)buf_puts(b, "},\"required\":[");
	put_json(b, evil[3]);
	(void)buf_puts(b, "]}");
}

/* Each of the words as a server, a tool, a parameter, a description: what is read is what was said,
 * and nothing of it runs. */
static void nothing_that_a_server_says_becomes_code(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();
	_cleanup_(buf_done) struct buf input = { 0 }, code = { 0 };

	(void)state;
	write_evil_input(&input);
	for (size_t i = 0; i < EVIL; i++)
		for (size_t k = 0; k < EVIL; k += i == 0 ? 1 : 7)
			add(s, evil[i], evil[k], evil[k], buf_str(&input), 0);
	unpack(stubs_end(s));
	(void)buf_puts(&code, "import { readdirSync } from 'node:fs';\n"
			      "let n = 0;\n"
			      "for (const d of readdirSync(dir, { withFileTypes: true })) {\n"
			      "  if (!d.isDirectory()) continue;\n"
			      "  const all = await import(dir + d.name + '/index.mjs');\n"
			      "  n += Object.keys(all).length;\n"
			      "}\n"
			      "if (globalThis.owned || n < ");
	(void)buf_printf(&code, "%zu) process.exit(1);\n", EVIL);
	expect_node(buf_str(&code));
	buf_clear(&code);
	(void)buf_puts(&code, "import importlib, pkgutil\nwant = {");
	for (size_t i = 0; i < EVIL; i++) {
		stub_literal(&code, STUB_PYTHON, evil[i]);
		(void)buf_puts(&code, ", ");
	}
	(void)buf_puts(&code,
		       "}\nservers, tools = set(), set()\n"
		       "for m in pkgutil.iter_modules(['holt_tools']):\n"
		       "    if not m.ispkg: continue\n"
		       "    p = importlib.import_module('holt_tools.' + m.name)\n"
		       "    for name in [n.name for n in pkgutil.iter_modules(p.__path__)]:\n"
		       "        f = getattr(p, name)\n"
		       "        f(1)\n"
		       "        server, tool, args = got[-1]\n"
		       "        servers.add(server); tools.add(tool)\n"
		       "        assert set(args) == want, (set(args) ^ want)\n"
		       "assert servers == want and tools == want, (servers ^ want, tools ^ want)\n"
		       "assert not os.path.exists('owned') and not os.path.exists('/tmp/owned')\n");
	expect_python(buf_str(&code));
}

static void names_that_come_out_the_same_are_told_apart(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();

	(void)state;
	add(s, "a b", "x-y", "", "{\"properties\":{\"p q\":{},\"p-q\":{},\"p_q_2\":{}}}", 0);
	add(s, "a b", "x_y", "", "{}", 0);
	add(s, "a.b", "x_y", "", "{}", 0);
	unpack(stubs_end(s));
	expect_python(
		"from holt_tools.a_b import x_y, x_y_2\n"
		"from holt_tools.a_b_2 import x_y as third\n"
		"x_y(1, 2, 3); x_y_2(); third()\n"
		"assert got[0] == ('a b', 'x-y', {'p q': 1, 'p-q': 2, 'p_q_2': 3}), got\n"
		"assert got[1][:2] == ('a b', 'x_y') and got[2][:2] == ('a.b', 'x_y'), got\n");
}

static void schemas_that_are_none_are_taken_for_anything(void **state)
{
	static const char *const odd[] = { "[]",
					   "1",
					   "{\"properties\":[]}",
					   "{\"properties\":{\"a\":1,\"\":{},\"b\":null}}",
					   "{\"properties\":{\"a\":{\"type\":{}}},\"required\":{}}",
					   "{\"required\":[1,null,\"a\"]}" };
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();
	char name[16];

	(void)state;
	for (size_t i = 0; i < sizeof(odd) / sizeof(odd[0]); i++) {
		(void)snprintf(name, sizeof(name), "t%zu", i);
		add(s, "odd", name, "", odd[i], 0);
	}
	unpack(stubs_end(s));
	expect_python("import holt_tools.odd as o\n"
		      "for i in range(6): getattr(o, 't%d' % i)(b=2)\n"
		      "assert all(g[2].get('b') == 2 for g in got), got\n");
}

static void a_tool_of_no_server_is_left_off(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();

	(void)state;
	add(s, "", "echo", "", "{}", -EINVAL);
	add(s, "a", "echo", "", "{}", 0);
	assert_int_equal(stubs_left_off(s), 1);
	unpack(stubs_end(s));
	expect_python("from holt_tools.a import echo\necho()\n");
}

static void what_is_too_much_is_left_off_and_counted(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();
	_cleanup_(buf_done) struct buf about = { 0 };
	const struct buf *tar;
	size_t added = 0;
	char name[16];

	(void)state;
	while (about.len < 60000)
		(void)buf_puts(&about, "long ");
	for (unsigned i = 0; i < STUBS_TOOLS_MAX + 10; i++) {
		struct stub_tool t = { .server = i % 2 ? "b" : "a", .about = buf_str(&about) };

		(void)snprintf(name, sizeof(name), "t%u", i);
		t.server = i < STUBS_TOOLS_MAX / 2 ? "a" : "b";
		t.name = name;
		added += stubs_add(s, &t) == 0;
	}
	assert_in_range(added, 100, STUBS_TOOLS_MAX);
	assert_int_equal(stubs_left_off(s), STUBS_TOOLS_MAX + 10 - added);
	tar = stubs_end(s);
	assert_non_null(tar);
	assert_in_range(tar->len, 1, STUBS_BYTES_MAX);
	unpack(tar);
	expect_python("import holt_tools.a as a\nassert len(a.t0.__doc__) < 3000\na.t0()\n"
		      "assert got[0][:2] == ('a', 't0')\n");
}

static void a_tool_has_a_bounded_number_of_parameters(void **state)
{
	_cleanup_(stubs_free_p) struct stubs *s = stubs_create();
	_cleanup_(buf_done) struct buf input = { 0 };

	(void)state;
	(void)buf_puts(&input, "{\"properties\":{\"p\":{}");
	for (int i = 0; i < 500; i++)
		(void)buf_printf(&input, ",\"p%d\":{\"type\":\"string\"}", i);
	(void)buf_puts(&input, "}}");
	add(s, "a", "t", "", buf_str(&input), 0);
	unpack(stubs_end(s));
	expect_python("from holt_tools.a import t\nt(p=1, p499='x')\n"
		      "assert got[0][2]['p499'] == 'x' and len(got[0][2]) == 65, got\n");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(a_tool_is_a_function_with_its_parameters, enter,
						leave),
		cmocka_unit_test_setup_teardown(nothing_that_a_server_says_becomes_code, enter,
						leave),
		cmocka_unit_test_setup_teardown(names_that_come_out_the_same_are_told_apart, enter,
						leave),
		cmocka_unit_test_setup_teardown(schemas_that_are_none_are_taken_for_anything, enter,
						leave),
		cmocka_unit_test_setup_teardown(a_tool_of_no_server_is_left_off, enter, leave),
		cmocka_unit_test_setup_teardown(what_is_too_much_is_left_off_and_counted, enter,
						leave),
		cmocka_unit_test_setup_teardown(a_tool_has_a_bounded_number_of_parameters, enter,
						leave),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
