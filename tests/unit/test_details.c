/* What is told of files beyond their sizes, and paths from a home. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "check.h"
#include "fileop_rig.h"
#include "guest/home.h"
#include "guest/temp.h"

#define FILE_OP(...) (&(struct guest_file){ .target = "", .user = "", __VA_ARGS__ })
#define PAIRS "e2b.author\0joe\0plain\0x"

static const char *resolved(const char *path)
{
	static char ret[PATH_BYTES];

	assert_int_equal(home_resolve("/home/user", path, ret, NULL), 0);
	return ret;
}

static void a_path_begins_at_home_or_at_the_root(void **state)
{
	(void)state;
	assert_string_equal(resolved(""), "/home/user");
	assert_string_equal(resolved("~"), "/home/user");
	assert_string_equal(resolved("~/"), "/home/user");
	assert_string_equal(resolved("."), "/home/user");
	assert_string_equal(resolved("a/b"), "/home/user/a/b");
	assert_string_equal(resolved("~/a//b/"), "/home/user/a/b");
	assert_string_equal(resolved("/a/./b"), "/a/b");
	assert_string_equal(resolved("/"), "/");
	assert_string_equal(resolved("a~"), "/home/user/a~");
}

static void steps_up_end_at_the_root(void **state)
{
	(void)state;
	assert_string_equal(resolved("../x"), "/home/x");
	assert_string_equal(resolved("../../../../x"), "/x");
	assert_string_equal(resolved("/.."), "/");
	assert_string_equal(resolved("/a/../../b/.."), "/");
}

static void anothers_home_has_no_name(void **state)
{
	char ret[PATH_BYTES] = "as it was";

	(void)state;
	assert_int_equal(home_resolve("/home/user", "~joe/a", ret, NULL), -EINVAL);
	assert_int_equal(home_resolve("/home/user", "~~", ret, NULL), -EINVAL);
	assert_string_equal(ret, "as it was");
}

static void a_path_too_long_is_refused(void **state)
{
	char path[PATH_BYTES + 2], ret[PATH_BYTES];

	(void)state;
	memset(path, 'a', sizeof(path) - 1);
	path[sizeof(path) - 1] = '\0';
	assert_int_equal(home_resolve("/home/user", path, ret, NULL), -ENAMETOOLONG);
	path[PATH_BYTES - 1] = '\0';
	path[0] = '/';
	assert_int_equal(home_resolve("/home/user", path, ret, NULL), 0);
	path[0] = 'a';
	assert_int_equal(home_resolve("/home/user", path, ret, NULL), -ENAMETOOLONG);
}

static void only_names_of_ours_are_hidden(void **state)
{
	struct temp t = TEMP_NONE;

	(void)state;
	temp_name(&t, -1);
	assert_true(temp_is_name(t.name));
	assert_false(temp_is_name(".holt-"));
	assert_false(temp_is_name(".holt-rm-aaaaaaaaaaaaaaaaaaaa"));
	assert_false(temp_is_name("aaaaaaaaaaaaaaaaaaaaaaaaaa"));
}

static void stat_of(const struct rig *g, const char *path, uint32_t flags, struct rig_answer *a)
{
	rig_run(g, FILE_OP(.op = FILE_STAT, .path = path, .flags = flags | FILE_DETAILS), NULL, 0,
		a);
	assert_int_equal(a->error, 0);
	assert_int_equal(a->entry_count, 1);
}

static void a_file_is_told_with_its_owner_and_type(void **state)
{
	const struct rig *g = *state;
	struct rig_answer a = { 0 };

	rig_write(g, "a", "text");
	stat_of(g, "/a", 0, &a);
	assert_string_equal(a.entries[0].path, "/a");
	assert_true(a.entries[0].owner[0] != '\0');
	assert_true(a.entries[0].group[0] != '\0');
	assert_true(S_ISREG(a.entries[0].e.mode));
	assert_int_equal(a.entries[0].e.real_type, ENTRY_FILE);
	rig_answer_done(&a);
}

static void a_link_tells_where_it_leads_in_the_end(void **state)
{
	const struct rig *g = *state;
	struct rig_answer a = { 0 };

	rig_mkdir(g, "dir");
	rig_symlink(g, "dir", "first");
	rig_symlink(g, "/first", "second");
	rig_symlink(g, "nowhere", "dangling");
	rig_symlink(g, "/../../../../../etc", "out");
	stat_of(g, "/second", FILE_NOFOLLOW, &a);
	assert_int_equal(a.entries[0].e.type, ENTRY_SYMLINK);
	assert_int_equal(a.entries[0].e.real_type, ENTRY_DIR);
	assert_string_equal(a.entries[0].target, "/dir");
	rig_answer_done(&a);
	stat_of(g, "/dangling", FILE_NOFOLLOW, &a);
	assert_int_equal(a.entries[0].e.real_type, ENTRY_OTHER);
	assert_string_equal(a.entries[0].target, "");
	rig_answer_done(&a);
	stat_of(g, "/out", FILE_NOFOLLOW, &a);
	assert_string_equal(a.entries[0].target, ""); /* /etc of the root, which has none */
	rig_answer_done(&a);
}

static void a_list_with_details_tells_whole_paths(void **state)
{
	const struct rig *g = *state;
	struct rig_answer a = { 0 };

	rig_mkdir(g, "dir");
	rig_write(g, "dir/a", "text");
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/dir", .flags = FILE_DETAILS), NULL, 0, &a);
	assert_int_equal(a.entry_count, 1);
	assert_string_equal(a.entries[0].path, "/dir/a");
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_LIST, .path = "/", .flags = FILE_DETAILS), NULL, 0, &a);
	assert_string_equal(a.entries[0].path, "/dir");
	rig_answer_done(&a);
}

static bool has_attributes(const struct rig *g)
{
	char path[128];

	rig_write(g, "probe", "");
	(void)snprintf(path, sizeof(path), "%s/probe", g->root);
	return setxattr(path, "user.probe", "1", 1, 0) == 0;
}

static int write_with(const struct rig *g, const char *attrs, size_t n, struct rig_answer *a)
{
	rig_run(g,
		FILE_OP(.op = FILE_WRITE, .path = "/dir/a", .attrs = attrs, .attrs_len = n,
			.flags = FILE_PARENTS | FILE_DETAILS | FILE_ATTRS),
		"text", 4, a);
	return (int)a->error;
}

static void a_write_replaces_all_attributes(void **state)
{
	const struct rig *g = *state;
	struct rig_answer a = { 0 };

	if (!has_attributes(g))
		skip(); /* this file system has none */
	assert_int_equal(write_with(g, PAIRS, sizeof(PAIRS), &a), 0);
	assert_int_equal(a.entry_count, 1);
	assert_string_equal(a.entries[0].path, "/dir/a");
	assert_int_equal(a.entries[0].e.attrs_len, sizeof(PAIRS));
	rig_answer_done(&a);
	assert_int_equal(write_with(g, "k\0v", 4, &a), 0);
	assert_int_equal(a.entries[0].e.attrs_len, 4);
	assert_memory_equal(a.entries[0].attrs, "k\0v", 4);
	rig_answer_done(&a);
	assert_int_equal(write_with(g, "", 0, &a), 0);
	assert_int_equal(a.entries[0].e.attrs_len, 0);
	rig_answer_done(&a);
}

static void attributes_that_do_not_fit_leave_the_old_file(void **state)
{
	static char much[GUEST_ATTRS_BYTES];
	const struct rig *g = *state;
	struct rig_answer a = { 0 };
	char path[128];

	if (!has_attributes(g))
		skip();
	(void)snprintf(path, sizeof(path), "%s/probe", g->root);
	memset(much, 'v', sizeof(much));
	if (setxattr(path, "user.much", much, sizeof(much), 0) == 0)
		skip(); /* here they fit */
	memcpy(much, "k", 2);
	much[sizeof(much) - 1] = '\0';
	rig_mkdir(g, "dir");
	rig_write(g, "dir/a", "old");
	assert_int_not_equal(write_with(g, much, sizeof(much), &a), 0);
	rig_answer_done(&a);
	assert_string_equal(rig_text(g, "dir/a"), "old");
	assert_int_equal(rig_count(g, "dir"), 1);
}

static void what_was_made_or_renamed_is_told(void **state)
{
	const struct rig *g = *state;
	struct rig_answer a = { 0 };

	rig_run(g, FILE_OP(.op = FILE_MKDIR, .path = "/x/y", .flags = FILE_PARENTS | FILE_DETAILS),
		NULL, 0, &a);
	assert_int_equal(a.done, 1);
	assert_string_equal(a.entries[0].path, "/x/y");
	assert_int_equal(a.entries[0].e.type, ENTRY_DIR);
	rig_answer_done(&a);
	rig_run(g, FILE_OP(.op = FILE_MKDIR, .path = "/x/y", .flags = FILE_PARENTS | FILE_DETAILS),
		NULL, 0, &a);
	assert_int_equal(a.done, 0); /* it was there */
	rig_answer_done(&a);
	rig_run(g,
		&(struct guest_file){ .op = FILE_RENAME,
				      .user = "",
				      .path = "/x",
				      .target = "/n/z",
				      .flags = FILE_PARENTS | FILE_DETAILS },
		NULL, 0, &a);
	assert_string_equal(a.entries[0].path, "/n/z");
	rig_answer_done(&a);
}

static int compose(const struct rig *g, const char *path, const char *sources, size_t n)
{
	return rig_do(g,
		      FILE_OP(.op = FILE_COMPOSE, .path = path, .sources = sources,
			      .sources_len = n, .flags = FILE_PARENTS),
		      NULL, 0);
}

static void several_files_become_one(void **state)
{
	const struct rig *g = *state;

	rig_write(g, "a", "one ");
	rig_write(g, "b", "two");
	assert_int_equal(compose(g, "/n/c", "/a\0/b", 6), 0);
	assert_string_equal(rig_text(g, "n/c"), "one two");
	assert_false(rig_exists(g, "a"));
	assert_false(rig_exists(g, "b"));
	rig_write(g, "d", "three");
	assert_int_equal(compose(g, "/n/c", "/n/c\0/d", 8), 0); /* the old one is a source, too */
	assert_string_equal(rig_text(g, "n/c"), "one twothree");
	assert_int_equal(rig_count(g, "n"), 1);
}

static void a_source_that_is_missing_leaves_all_as_it_was(void **state)
{
	const struct rig *g = *state;

	rig_write(g, "a", "one");
	rig_write(g, "c", "old");
	rig_mkdir(g, "dir");
	assert_int_equal(compose(g, "/c", "/a\0/b", 6), ENOENT);
	assert_int_equal(compose(g, "/c", "/a\0/dir", 8), EISDIR);
	assert_int_equal(compose(g, "/dir", "/a", 3), EISDIR);
	assert_string_equal(rig_text(g, "a"), "one");
	assert_string_equal(rig_text(g, "c"), "old");
	assert_int_equal(rig_count(g, "."), 3);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_begins_at_home_or_at_the_root),
		cmocka_unit_test(steps_up_end_at_the_root),
		cmocka_unit_test(anothers_home_has_no_name),
		cmocka_unit_test(a_path_too_long_is_refused),
		cmocka_unit_test(only_names_of_ours_are_hidden),
		TEST(a_file_is_told_with_its_owner_and_type),
		TEST(a_link_tells_where_it_leads_in_the_end),
		TEST(a_list_with_details_tells_whole_paths),
		TEST(a_write_replaces_all_attributes),
		TEST(attributes_that_do_not_fit_leave_the_old_file),
		TEST(what_was_made_or_renamed_is_told),
		TEST(several_files_become_one),
		TEST(a_source_that_is_missing_leaves_all_as_it_was),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
