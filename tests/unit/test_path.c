/* Path resolution: whatever a path says, it ends below the root. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "fileop_rig.h"
#include "guest/path.h"

static void only_sound_paths_pass(void **state)
{
	char name[300], longest[PATH_BYTES + 8];
	struct err err = { 0 };

	(void)state;
	assert_int_equal(path_check("a", &err), 0);
	assert_int_equal(path_check("/", &err), 0);
	assert_int_equal(path_check("//a//b/../c/.", &err), 0);
	assert_int_equal(path_check("", &err), -ENOENT);
	memset(name, 'x', sizeof(name));
	name[255] = '\0';
	assert_int_equal(path_check(name, &err), 0);
	name[255] = 'x';
	name[256] = '\0';
	assert_int_equal(path_check(name, &err), -ENAMETOOLONG);
	for (size_t i = 0; i < sizeof(longest); i++)
		longest[i] = i % 2 ? '/' : 'x';
	longest[PATH_BYTES] = '\0';
	assert_int_equal(path_check(longest, &err), -ENAMETOOLONG);
	longest[PATH_BYTES - 1] = '\0';
	assert_int_equal(path_check(longest, &err), 0);
}

/* Opens for reading and gives the first bytes, or "" with the errno in *code. */
static const char *text_at(const struct rig *g, const char *path, int *code)
{
	static char text[64];
	struct err err = { 0 };
	_close_ int fd = path_open(g->root_fd, path, O_RDONLY, &err);
	ssize_t n = fd < 0 ? 0 : read(fd, text, sizeof(text) - 1);

	*code = fd < 0 ? -fd : 0;
	text[n < 0 ? 0 : n] = '\0';
	return text;
}

static void links_resolve_inside_the_root(void **state)
{
	static const char *const out[] = { "../canary", "/../canary", "../../../../../../canary" };
	struct rig *g = *state;
	int code;

	rig_write(g, "canary", "inside");
	for (unsigned i = 0; i < 3; i++) {
		rig_symlink(g, out[i], "link");
		assert_string_equal(text_at(g, "link", &code), "inside");
		assert_int_equal(unlinkat(g->root_fd, "link", 0), 0);
	}
	assert_string_equal(text_at(g, "../canary", &code), "inside");
	assert_string_equal(text_at(g, "/../../canary", &code), "inside");
	rig_symlink(g, g->canary, "link"); /* the whole path outside means nothing here */
	assert_string_equal(text_at(g, "link", &code), "");
	assert_int_equal(code, ENOENT);
	rig_symlink(g, "..", "up");
	assert_string_equal(text_at(g, "up/up/up/canary", &code), "inside");
}

static void magic_links_are_not_followed(void **state)
{
	static const char *const magic[] = { "/proc/self/root/etc/passwd", "/proc/self/cwd/x",
					     "/proc/self/exe", "/proc/thread-self/root" };
	struct rig whole = *(struct rig *)*state;
	_close_ int fd = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC);
	char link[64];
	int code;

	whole.root_fd = fd;
	for (unsigned i = 0; i < 4; i++) {
		(void)text_at(&whole, magic[i], &code);
		assert_int_equal(code, ELOOP);
	}
	(void)snprintf(link, sizeof(link), "/proc/self/fd/%d/etc/passwd", fd);
	(void)text_at(&whole, link, &code);
	assert_int_equal(code, ELOOP);
}

static void link_loops_end(void **state)
{
	struct rig *g = *state;
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	int code;

	rig_symlink(g, "b", "a");
	rig_symlink(g, "a", "b");
	(void)text_at(g, "a", &code);
	assert_int_equal(code, ELOOP);
	assert_int_equal(path_locate_target(g->root_fd, "a", false, &spot, NULL), -ELOOP);
}

static void a_path_must_end_in_a_name(void **state)
{
	static const char *const rows[] = { "/", "//", ".", "..", "d/.", "d/..", "/.." };
	struct rig *g = *state;
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;

	rig_mkdir(g, "d");
	for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(path_locate(g->root_fd, rows[i], false, &spot, NULL), -EINVAL);
	assert_int_equal(spot.dir, -1);
	assert_int_equal(path_locate(g->root_fd, "/d/x//", false, &spot, NULL), 0);
	assert_string_equal(spot.name, "x");
}

static void parents_are_made_where_the_path_leads(void **state)
{
	struct rig *g = *state;
	_cleanup_(path_spot_done) struct path_spot a = PATH_SPOT_NONE, b = PATH_SPOT_NONE;

	rig_mkdir(g, "real");
	rig_symlink(g, "/real", "link");
	assert_int_equal(path_locate(g->root_fd, "link/x/../y/f", true, &a, NULL), 0);
	assert_true(rig_exists(g, "real/y"));
	rig_symlink(g, "nowhere", "dangling");
	assert_int_equal(path_locate(g->root_fd, "dangling/x/f", true, &b, NULL), -ENOENT);
}

static void a_target_is_found_through_links_of_every_kind(void **state)
{
	struct rig *g = *state;
	struct stat want, got;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/e");
	rig_symlink(g, "/d/second", "first");
	rig_symlink(g, "e/../third", "d/second");
	rig_symlink(g, "../d/e/file", "d/third");
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	assert_int_equal(path_locate_target(g->root_fd, "first", false, &spot, NULL), 0);
	assert_string_equal(spot.name, "file");
	assert_int_equal(fstatat(g->root_fd, "d/e", &want, 0), 0);
	assert_int_equal(fstat(spot.dir, &got), 0);
	assert_true(want.st_ino == got.st_ino);
}

static void below_a_directory_no_link_and_no_way_up_is_taken(void **state)
{
	struct rig *g = *state;
	_cleanup_(path_spot_done) struct path_spot spot = PATH_SPOT_NONE;
	_close_ int top = -1;

	rig_mkdir(g, "d");
	rig_mkdir(g, "d/e");
	rig_symlink(g, "e", "d/link");
	rig_write(g, "d/file", "");
	top = openat(g->root_fd, "d", O_PATH | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(path_locate_beneath(top, "link/x", true, &spot, NULL), -ELOOP);
	assert_int_equal(path_locate_beneath(top, "../x", true, &spot, NULL), -EXDEV);
	assert_int_equal(path_locate_beneath(top, "file/x", true, &spot, NULL), -ENOTDIR);
	assert_int_equal(path_locate_beneath(top, "new/x", false, &spot, NULL), -ENOENT);
	assert_int_equal(path_locate_beneath(top, "/new/er/x", true, &spot, NULL), 0);
	assert_true(rig_exists(g, "d/new/er"));
	assert_int_equal(path_open_beneath(top, "link", O_RDONLY), -ELOOP);
	assert_int_equal(path_open_beneath(top, "e/../..", O_PATH), -EXDEV);
}

#define PURE(name) cmocka_unit_test(name)
#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	static const struct CMUnitTest tests[] = {
		PURE(only_sound_paths_pass),
		TEST(links_resolve_inside_the_root),
		TEST(magic_links_are_not_followed),
		TEST(link_loops_end),
		TEST(a_path_must_end_in_a_name),
		TEST(parents_are_made_where_the_path_leads),
		TEST(a_target_is_found_through_links_of_every_kind),
		TEST(below_a_directory_no_link_and_no_way_up_is_taken),
	};

	return cmocka_run_group_tests(tests, rig_drop_root, NULL);
}
