/* holt skills ls, show, check: instructions that agents are given. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "cli/client.h"
#include "cli/command.h"
#include "cli/outcome.h"
#include "cli/show.h"
#include "cli/table.h"
#include "tools/skill_set.h"

static const char *const heads[] = { "NAME", "FILES", "SIZE", "DESCRIPTION", NULL };

static int add_row(struct table *t, struct jv item)
{
	char text[2048], size[32] = "-";
	uint64_t bytes;
	int r = table_add(t, show_text(jv_get(item, "name"), text, sizeof(text)));

	if (jv_u64(jv_get(item, "bytes"), &bytes) == 0)
		outcome_size(bytes, size);
	if (r == 0)
		r = table_add(t, show_text(jv_get(item, "files"), text, sizeof(text)));
	if (r == 0)
		r = table_add(t, size);
	if (r == 0)
		r = table_add(t, show_text(jv_get(item, "description"), text, sizeof(text)));
	return r;
}

static void say_problem(const char *name, const char *why)
{
	cli_say("%s: left out: %s", name && name[0] ? name : "skills", why ? why : "");
}

static int list(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(table_done) struct table t = { 0 };
	struct jv problems;
	int r = client_json(c, "GET", "/api/v1/skills", NULL, &d, err);

	(void)args, (void)n, (void)operands;
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	table_init(&t, heads);
	JV_FOREACH (jv_get(jv_root(d.doc), "items"), it) {
		r = add_row(&t, it.value);
		if (r < 0)
			return err_sys(err, r, "print");
	}
	table_print(&t, stdout);
	problems = jv_get(jv_root(d.doc), "problems");
	JV_FOREACH (problems, it)
		say_problem(jv_text(jv_get(it.value, "name")), jv_text(jv_get(it.value, "reason")));
	return 0;
}

static int show(struct client *c, void *args, int n, char **operands, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	struct str text;
	int r = client_path(&target, "skills/%", operands[0]);

	(void)args, (void)n;
	if (r < 0)
		return err_sys(err, r, "request");
	r = client_json(c, "GET", target.data, NULL, &d, err);
	if (r < 0)
		return r;
	if (c->json)
		return client_print(&d.text);
	if (jv_str(jv_get(jv_root(d.doc), "text"), &text) < 0)
		return err_set(err, EPROTO, "the daemon's answer has no text");
	r = fd_write_all(STDOUT_FILENO, text.data, text.len);
	return r < 0 ? err_sys(err, r, "print") : 0;
}

int cmd_skills_ls(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 0, 0, list };

	return client_run(cmd, argc, argv, &task);
}

int cmd_skills_show(const struct command *cmd, int argc, char **argv)
{
	struct client_args args = { 0 };
	struct client_task task = { &args, &args, 1, 1, show };

	return client_run(cmd, argc, argv, &task);
}

/* ---- without a daemon: what an author wants to know ---- */

/* Whether the folder is a good skill; says what it is, or why it is not. */
static bool check(const char *path, struct err *err)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	char size[32];

	if (skill_set_read_one(path, &set, err) < 0)
		return false;
	for (size_t i = 0; i < set->n_problems; i++)
		cli_say("%s: %s", path, set->problems[i].why);
	for (size_t i = 0; i < set->n_skills; i++) {
		outcome_size(set->skills[i].bytes, size);
		(void)printf("%s: good, %zu files, %s\n", set->skills[i].front.name,
			     set->skills[i].n_files, size);
	}
	return set->n_problems == 0;
}

int cmd_skills_check(const struct command *cmd, int argc, char **argv)
{
	int n = cli_parse(cmd, argc, argv, NULL), code = CLI_OK;

	if (n <= 0)
		return -n;
	if (!cli_takes(cmd, argc, argv, n, 1, 1000))
		return CLI_USAGE;
	for (; n < argc; n++) {
		struct err err = { 0 };

		if (check(argv[n], &err))
			continue;
		if (err.code)
			cli_say("%s", err.text);
		code = CLI_FAILED;
	}
	return code;
}
