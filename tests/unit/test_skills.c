/* Folders of skills, by good people and by enemies; and a directory that changes. */
#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "fault.h"
#include "loop/loop.h"
#include "tools/media_type.h"
#include "tools/skill_uri.h"
#include "tools/skills.h"

#define HEAD(name) "---\nname: " name "\ndescription: what " name " is for\n---\n# Body\n"

struct rig {
	char dir[32];
};

static void rig_open(struct rig *g)
{
	(void)str_copy(g->dir, sizeof(g->dir), "/tmp/holt-skills-XXXXXX");
	assert_non_null(mkdtemp(g->dir));
}

static void rig_close(struct rig *g)
{
	pid_t pid = fork();

	if (pid == 0) {
		(void)execlp("rm", "rm", "-rf", g->dir, (char *)NULL);
		_exit(1);
	}
	(void)waitpid(pid, NULL, 0);
}

static void path_of(const struct rig *g, const char *path, char ret[256])
{
	assert_int_equal(str_format(ret, 256, "%s/%s", g->dir, path), 0);
}

static void put_bytes(const struct rig *g, const char *path, const void *data, size_t n)
{
	char full[256];
	_close_ int fd = -1;

	path_of(g, path, full);
	for (char *at = full + strlen(g->dir) + 1; (at = strchr(at, '/')) != NULL; at++) {
		*at = '\0';
		(void)mkdir(full, 0755);
		*at = '/';
	}
	fd = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, data, n), 0);
}

static void put(const struct rig *g, const char *path, const char *text)
{
	put_bytes(g, path, text, strlen(text));
}

static struct skill_set *look(const struct rig *g)
{
	struct skill_set *set = NULL;
	struct err err = { 0 };

	assert_int_equal(skill_set_read(g->dir, -1, &set, NULL, &err), 0);
	return set;
}

/* The only folder there is: left out, for this reason. */
static void refuse(const struct rig *g, const char *why)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = look(g);

	assert_int_equal(set->n_skills, 0);
	assert_int_equal(set->n_problems, 1);
	if (!strstr(set->problems[0].why, why))
		fail_msg("want '%s', got '%s'", why, set->problems[0].why);
}

/* ---- the head ---- */

static int front(const char *text, const char *dir, struct arena *a, struct skill_front *ret,
		 struct err *err)
{
	return skill_front_read(text, strlen(text), dir, a, ret, err);
}

static void all_of_the_head_is_kept_as_json(void **state)
{
	struct arena *a = arena_create(1 << 20);
	struct skill_front f;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(front("---\r\nname: pdf-tools\r\ndescription: \"a: b\"\r\nlicense: MIT\r\n"
			       "metadata:\r\n  version: \"1.0\"\r\nallowed-tools: Bash Read\r\n"
			       "x-own: [1, true, null, {a: 2.5}, \"007\", 1e, 2024-01-02, v1, 1e5]"
			       "\r\n---  \r\nbody",
			       "pdf-tools", a, &f, &err),
			 0);
	assert_string_equal(f.name, "pdf-tools");
	assert_string_equal(f.about, "a: b");
	assert_string_equal(f.json,
			    "{\"name\":\"pdf-tools\",\"description\":\"a: b\",\"license\":"
			    "\"MIT\",\"metadata\":{\"version\":\"1.0\"},\"allowed-tools\":"
			    "\"Bash Read\",\"x-own\":[1,true,null,{\"a\":2.5},\"007\",\"1e\","
			    "\"2024-01-02\",\"v1\",1e5]}");
	assert_int_equal(f.json_len, strlen(f.json));
	assert_int_equal(front("\xef\xbb\xbf" HEAD("a"), "a", a, &f, &err), 0);
	assert_int_equal(front("---\nname: a\ndescription: b\n---", "a", a, &f, &err), 0);
	(void)arena_free(a);
}

static void a_wrong_head_is_told_with_its_reason(void **state)
{
	static const struct {
		const char *text, *why;
	} rows[] = {
		{ "", ":1: want a line of --- first" },
		{ "# Title\n", ":1: want a line of --- first" },
		{ "----\nname: a\n---\n", ":1: want a line of --- first" },
		{ "---\nname: a\ndescription: b\n", "has no end" },
		{ "---\n---\n", "must have a name" },
		{ "---\n- a\n---\n", "must have a name" },
		{ "---\ndescription: b\n---\n", "has no name" },
		{ "---\nname: a\n---\n", "has no description" },
		{ "---\nname: a\ndescription: \"\"\n---\n", "description: want 1 to 1024" },
		{ "---\nname: 7\ndescription: b\n---\n", "name: want a text" },
		{ "---\nname: A\ndescription: b\n---\n", "name: want [a-z0-9]" },
		{ "---\nname: a--b\ndescription: b\n---\n", "name: want [a-z0-9]" },
		{ "---\nname: b\ndescription: b\n---\n", "its directory is 'a'" },
		{ "---\nname: a\nname: a\ndescription: b\n---\n", "name" },
		{ "---\nname: a\ndescription: b\nlicense: [x]\n---\n", "license: want a text" },
		{ "---\nname: a\ndescription: b\ncompatibility: \"\"\n---\n", "compatibility" },
		{ "---\nname: a\ndescription: b\nmetadata: x\n---\n", "metadata: want texts" },
		{ "---\nname: a\ndescription: b\nmetadata: {v: 1.0}\n---\n", "metadata.v: want" },
		{ "---\nname: a\ndescription: &x b\n---\n", ":3: anchors" },
		{ "---\nname: a\ndescription: b: c\n---\n", ":3: " },
		{ "---\nname: a\ndescription: \xff\n---\n", "not UTF-8" },
		{ "---\nname: a\ndescription: b\nx: True\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: [0x1F]\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: +1\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: .5\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: 1.\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: 007\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: -.inf\n---\n", ":4: means something else" },
		{ "---\nname: a\ndescription: b\nx: NULL\n---\n", ":4: means something else" },
		{ "---\nname: a\n...\nx: y\n---\n", "" },
	};
	struct arena *a = arena_create(1 << 20);
	struct skill_front f;

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct err err = { 0 };

		assert_int_equal(front(rows[i].text, "a", a, &f, &err), -EINVAL);
		if (!strstr(err.text, rows[i].why))
			fail_msg("row %zu: want '%s', got '%s'", i, rows[i].why, err.text);
	}
	(void)arena_free(a);
}

static void lengths_are_counted_in_characters_and_bounded(void **state)
{
	static char text[SKILL_FRONT_MAX + 4096];
	struct arena *a = arena_create(1 << 20);
	struct skill_front f;
	struct err err = { 0 };
	char *at = text;

	(void)state;
	memcpy(at, "---\nname: a\ndescription: ", 25);
	at += 25;
	for (unsigned i = 0; i < SKILL_ABOUT_MAX; i++, at += 2)
		memcpy(at, "\xc3\xbc", 2);
	memcpy(at, "\n---\n", 6);
	assert_int_equal(front(text, "a", a, &f, &err), 0);
	assert_int_equal(strlen(f.about), 2 * SKILL_ABOUT_MAX);
	memcpy(at, "x\n---\n", 7);
	assert_int_equal(front(text, "a", a, &f, &err), -EINVAL);
	memset(text, '#', sizeof(text) - 1);
	memcpy(text, "---\n#", 5);
	memcpy(text + SKILL_FRONT_MAX + 10, "\n---\n", 6);
	assert_int_equal(front(text, "a", a, &f, &err), -E2BIG);
	(void)arena_free(a);
}

static void names_are_lower_case_words_with_single_hyphens(void **state)
{
	char longest[SKILL_NAME_MAX + 2];

	(void)state;
	memset(longest, 'a', sizeof(longest));
	longest[SKILL_NAME_MAX] = '\0';
	assert_true(skill_name_is_valid(longest));
	longest[SKILL_NAME_MAX] = 'a';
	longest[SKILL_NAME_MAX + 1] = '\0';
	assert_false(skill_name_is_valid(longest));
	assert_true(skill_name_is_valid("a"));
	assert_true(skill_name_is_valid("a-1-b"));
	assert_false(skill_name_is_valid(""));
	assert_false(skill_name_is_valid("-a"));
	assert_false(skill_name_is_valid("a-"));
	assert_false(skill_name_is_valid("a--b"));
	assert_false(skill_name_is_valid("a.b"));
	assert_false(skill_name_is_valid(".."));
	assert_false(skill_name_is_valid("a/b"));
}

/* ---- the folder ---- */

static void files_come_sorted_with_their_sums(void **state)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	const struct skill_file *f;
	struct rig g;
	char path[256];

	(void)state;
	rig_open(&g);
	put(&g, "b/SKILL.md", HEAD("b"));
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/scripts/run.sh", "echo\n");
	put(&g, "a/.git/config", "hidden");
	put_bytes(&g, "a/data.bin", "\0\xff", 2);
	put(&g, "README.md", "of people");
	path_of(&g, "a/scripts/run.sh", path);
	assert_int_equal(chmod(path, 0755), 0);
	set = look(&g);
	assert_int_equal(set->n_problems, 0);
	assert_int_equal(set->n_skills, 2);
	assert_string_equal(set->skills[0].front.name, "a");
	assert_int_equal(set->skills[0].n_files, 3);
	assert_string_equal(set->skills[0].files[0].path, "SKILL.md");
	assert_string_equal(set->skills[0].files[1].path, "data.bin");
	assert_false(set->skills[0].files[1].is_text);
	f = skill_find_file(&set->skills[0], "scripts/run.sh");
	assert_non_null(f);
	assert_string_equal(f->data, "echo\n");
	assert_string_equal(f->digest,
			    "86b0c5a1e2b73b08fd54c727f4458649ed9fe3ad1b6e8ac9460c070113509a1e");
	assert_true(f->is_program && f->is_text);
	assert_string_equal(f->type, "application/x-sh");
	assert_null(skill_find_file(&set->skills[0], ".git/config"));
	assert_null(skill_find_file(&set->skills[0], "../b/SKILL.md"));
	assert_string_equal(skill_manifest(skill_set_find(set, "b"))->data, HEAD("b"));
	assert_null(skill_set_find(set, "c"));
	rig_close(&g);
}

static void links_devices_and_fifos_leave_the_skill_out(void **state)
{
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/deep/file", "x");
	path_of(&g, "a/deep/passwd", path);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	refuse(&g, "'deep/passwd' is a link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc", path), 0);
	refuse(&g, "'deep/passwd' is a link");
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkfifo(path, 0644), 0);
	refuse(&g, "neither a file nor a directory");
	rig_close(&g);
}

static void a_folder_or_manifest_that_is_a_link_is_left_out(void **state)
{
	char path[256];
	struct rig g, other;

	(void)state;
	rig_open(&g);
	rig_open(&other);
	put(&other, "a/SKILL.md", HEAD("a"));
	path_of(&g, "a", path);
	assert_int_equal(symlink(other.dir, path), 0);
	refuse(&g, "is a link");
	assert_int_equal(unlink(path), 0);
	put(&g, "a/x", "");
	path_of(&g, "a/SKILL.md", path);
	assert_int_equal(symlink("/etc/hostname", path), 0);
	refuse(&g, "is a link");
	rig_close(&g);
	rig_close(&other);
}

static void what_anybody_may_write_to_is_left_out(void **state)
{
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	path_of(&g, "a/SKILL.md", path);
	assert_int_equal(chmod(path, 0666), 0);
	refuse(&g, "can be written by anybody");
	assert_int_equal(chmod(path, 0644), 0);
	path_of(&g, "a", path);
	assert_int_equal(chmod(path, 0777), 0);
	refuse(&g, "can be written by anybody");
	assert_int_equal(chmod(path, 0755), 0);
	assert_int_equal(chmod(g.dir, 01777), 0);
	refuse(&g, "can be written by anybody");
	rig_close(&g);
}

static void a_skill_has_so_many_files_and_bytes_and_no_more(void **state)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	char name[64], path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	for (unsigned i = 1; i < SKILL_FILES_MAX; i++) {
		(void)snprintf(name, sizeof(name), "a/f%u", i);
		put(&g, name, "");
	}
	set = look(&g);
	assert_int_equal(set->n_skills, 1);
	assert_int_equal(set->skills[0].n_files, SKILL_FILES_MAX);
	put(&g, "a/one-more", "");
	refuse(&g, "more than 512 files");
	path_of(&g, "a/one-more", path);
	assert_int_equal(unlink(path), 0);
	path_of(&g, "a/f1", path);
	assert_int_equal(truncate(path, SKILL_BYTES_MAX), 0);
	refuse(&g, "more than 16 MiB");
	rig_close(&g);
}

static void all_skills_together_are_bounded(void **state)
{
	static const char *const heads[] = { HEAD("a"), HEAD("b"), HEAD("c"), HEAD("d"),
					     HEAD("e") };
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	char name[64], path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	for (unsigned i = 0; i < 5; i++) {
		(void)snprintf(name, sizeof(name), "%c/SKILL.md", 'a' + i);
		put(&g, name, heads[i]);
		(void)snprintf(name, sizeof(name), "%c/big", 'a' + i);
		put(&g, name, "");
		path_of(&g, name, path);
		assert_int_equal(truncate(path, 15 << 20), 0);
	}
	set = look(&g);
	assert_int_equal(set->n_skills, 4);
	assert_int_equal(set->n_problems, 1);
	assert_non_null(strstr(set->problems[0].why, "together"));
	rig_close(&g);
}

static void deep_and_odd_names_are_left_out(void **state)
{
	_cleanup_(buf_done) struct buf path = { 0 };
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	(void)buf_putc(&path, 'a');
	for (unsigned i = 0; i < SKILL_LEVELS_MAX; i++)
		(void)buf_puts(&path, "/d");
	(void)buf_puts(&path, "/f");
	put(&g, buf_str(&path), "");
	refuse(&g, "nested more than 16 deep");
	rig_close(&g);
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/new\nline", "");
	refuse(&g, "odd characters");
	rig_close(&g);
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/\xff", "");
	refuse(&g, "not UTF-8");
	rig_close(&g);
	rig_open(&g);
	put(&g, "Bad_Name/SKILL.md", HEAD("a"));
	refuse(&g, "the folder's name");
	rig_close(&g);
	rig_open(&g);
	put(&g, "a/skill.md", HEAD("a"));
	refuse(&g, "has no SKILL.md");
	rig_close(&g);
}

static void a_directory_that_is_not_there_has_no_skills(void **state)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(skill_set_read("/nonexistent/skills", -1, &set, NULL, &err), 0);
	assert_int_equal(set->n_skills + set->n_problems, 0);
	set = skill_set_unref(set);
	assert_int_equal(skill_set_read("/etc/hostname", -1, &set, NULL, &err), 0);
	assert_int_equal(set->n_problems, 1);
	set = skill_set_unref(set);
	assert_int_equal(skill_set_read_one("/nonexistent", &set, &err), -ENOENT);
}

static void one_folder_can_be_checked_by_itself(void **state)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	struct err err = { 0 };
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	path_of(&g, "a/", path);
	assert_int_equal(skill_set_read_one(path, &set, &err), 0);
	assert_int_equal(set->n_skills, 1);
	rig_close(&g);
}

static void equal_folders_make_equal_sums(void **state)
{
	_cleanup_(skill_set_unref_p) struct skill_set *one = NULL, *two = NULL, *three = NULL;
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/run", "x");
	one = look(&g);
	two = look(&g);
	assert_memory_equal(one->digest, two->digest, HASH_LEN);
	path_of(&g, "a/run", path);
	assert_int_equal(chmod(path, 0755), 0);
	three = look(&g);
	assert_memory_not_equal(one->digest, three->digest, HASH_LEN);
	rig_close(&g);
}

static int read_again(void *arg)
{
	_cleanup_(skill_set_unref_p) struct skill_set *set = NULL;
	const struct rig *g = arg;
	struct err err = { 0 };

	return skill_set_read(g->dir, -1, &set, NULL, &err);
}

static void a_reading_without_memory_fails_and_leaves_nothing(void **state)
{
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	put(&g, "a/d/f", "x");
	assert_true(fault_each(read_again, &g) > 5);
	rig_close(&g);
}

/* ---- a directory that changes ---- */

struct seen {
	struct loop *loop;
	struct skills *skills;
	size_t want; /* skills, until the loop may end */
	int calls;
};

static void changed(void *user)
{
	struct seen *s = user;

	s->calls++;
	if (skills_now(s->skills)->n_skills == s->want)
		loop_stop(s->loop);
}

static void a_change_is_seen_and_told_and_an_old_set_stays_whole(void **state)
{
	struct skill_set *old;
	struct seen seen = { 0 };
	struct err err = { 0 };
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	assert_int_equal(loop_create(&seen.loop, &err), 0);
	assert_int_equal(skills_create(seen.loop, g.dir, &seen.skills, &err), 0);
	assert_int_equal(skills_now(seen.skills)->n_skills, 1);
	skills_on_change(seen.skills, changed, &seen);
	old = skill_set_ref(skills_now(seen.skills));

	put(&g, "b/deep/x", "");
	put(&g, "b/SKILL.md", HEAD("b"));
	seen.want = 2;
	loop_run(seen.loop);
	assert_non_null(skill_set_find(skills_now(seen.skills), "b"));

	path_of(&g, "b/SKILL.md", path); /* in a directory that was not there before */
	assert_int_equal(unlink(path), 0);
	seen.want = 1;
	loop_run(seen.loop);
	assert_null(skill_set_find(skills_now(seen.skills), "b"));

	assert_string_equal(skill_manifest(skill_set_find(old, "a"))->data, HEAD("a"));
	(void)skill_set_unref(old);
	(void)skills_free(seen.skills);
	(void)loop_free(seen.loop);
	rig_close(&g);
}

static int create_again(void *arg)
{
	const struct rig *g = arg;
	struct skills *s = NULL;
	struct loop *loop = NULL;
	struct err err = { 0 };
	int r = loop_create(&loop, &err);

	if (r == 0)
		r = skills_create(loop, g->dir, &s, &err);
	(void)skills_free(s);
	(void)loop_free(loop);
	return r;
}

/* But for the watch: without it they are looked for now and then. */
static void a_start_without_memory_fails_or_does_without(void **state)
{
	size_t n = 0, failed = 0;
	struct rig g;
	int r;

	(void)state;
	rig_open(&g);
	put(&g, "a/SKILL.md", HEAD("a"));
	do {
		fault_arm(++n);
		r = create_again(&g);
		failed += r == -ENOMEM;
		assert_true(r == 0 || r == -ENOMEM);
	} while (fault_disarm());
	assert_int_equal(r, 0);
	assert_true(failed > 5);
	rig_close(&g);
}

static void a_directory_that_comes_later_is_found(void **state)
{
	struct seen seen = { .want = 1 };
	struct err err = { 0 };
	char path[256];
	struct rig g;

	(void)state;
	rig_open(&g);
	path_of(&g, "later", path);
	assert_int_equal(loop_create(&seen.loop, &err), 0);
	assert_int_equal(skills_create(seen.loop, path, &seen.skills, &err), 0);
	assert_string_equal(skills_dir(seen.skills), path);
	assert_int_equal(skills_now(seen.skills)->n_skills, 0);
	skills_on_change(seen.skills, changed, &seen);
	put(&g, "later/a/SKILL.md", HEAD("a"));
	loop_run(seen.loop);
	assert_non_null(skill_set_find(skills_now(seen.skills), "a"));
	(void)skills_free(seen.skills);
	(void)loop_free(seen.loop);
	rig_close(&g);
}

static void file_types_go_by_the_end_of_the_name(void **state)
{
	(void)state;
	assert_string_equal(media_type("a/b.MD"), "text/markdown");
	assert_string_equal(media_type("b.d/name"), "application/octet-stream");
	assert_string_equal(media_type(".md"), "application/octet-stream");
	assert_string_equal(media_type("x.unheard"), "application/octet-stream");
	assert_string_equal(media_type("x.png"), "image/png");
}

static void an_address_leads_back_to_its_file_in_any_spelling(void **state)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char text[SKILL_URI_MAX], longest[SKILL_URI_MAX + 1];
	const char *name = NULL, *path = NULL;

	(void)state;
	assert_int_equal(skill_uri(&b, "a-b", "d/Q&A \xc3\xbc%.md"), 0);
	assert_string_equal(buf_str(&b), "skill://a-b/d/Q%26A%20%C3%BC%25.md");
	assert_int_equal(skill_uri_read(buf_str(&b), text, &name, &path), 0);
	assert_string_equal(name, "a-b");
	assert_string_equal(path, "d/Q&A \xc3\xbc%.md");
	assert_int_equal(skill_uri_read("skill://a/Q&A", text, &name, &path), 0);
	assert_string_equal(path, "Q&A");
	assert_int_equal(skill_uri_read("skill://a", text, &name, &path), 0);
	assert_string_equal(path, "");
	assert_int_equal(skill_uri_read("file:///etc/passwd", text, &name, &path), -EINVAL);
	assert_int_equal(skill_uri_read("skill://a/b%00c", text, &name, &path), -EINVAL);
	assert_int_equal(skill_uri_read("skill://a/b%2", text, &name, &path), -EINVAL);
	assert_int_equal(skill_uri_read("skill://a/b?c", text, &name, &path), -EINVAL);
	memset(longest, 'a', sizeof(longest));
	memcpy(longest, SKILL_SCHEME, strlen(SKILL_SCHEME));
	longest[SKILL_URI_MAX] = '\0';
	assert_int_equal(skill_uri_read(longest, text, &name, &path), -EINVAL);
	longest[SKILL_URI_MAX - 1] = '\0';
	assert_int_equal(skill_uri_read(longest, text, &name, &path), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_of_the_head_is_kept_as_json),
		cmocka_unit_test(a_wrong_head_is_told_with_its_reason),
		cmocka_unit_test(lengths_are_counted_in_characters_and_bounded),
		cmocka_unit_test(names_are_lower_case_words_with_single_hyphens),
		cmocka_unit_test(files_come_sorted_with_their_sums),
		cmocka_unit_test(links_devices_and_fifos_leave_the_skill_out),
		cmocka_unit_test(a_folder_or_manifest_that_is_a_link_is_left_out),
		cmocka_unit_test(what_anybody_may_write_to_is_left_out),
		cmocka_unit_test(a_skill_has_so_many_files_and_bytes_and_no_more),
		cmocka_unit_test(all_skills_together_are_bounded),
		cmocka_unit_test(deep_and_odd_names_are_left_out),
		cmocka_unit_test(a_directory_that_is_not_there_has_no_skills),
		cmocka_unit_test(one_folder_can_be_checked_by_itself),
		cmocka_unit_test(equal_folders_make_equal_sums),
		cmocka_unit_test(a_reading_without_memory_fails_and_leaves_nothing),
		cmocka_unit_test(a_change_is_seen_and_told_and_an_old_set_stays_whole),
		cmocka_unit_test(a_start_without_memory_fails_or_does_without),
		cmocka_unit_test(a_directory_that_comes_later_is_found),
		cmocka_unit_test(an_address_leads_back_to_its_file_in_any_spelling),
		cmocka_unit_test(file_types_go_by_the_end_of_the_name),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
