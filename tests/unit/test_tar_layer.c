/* Layers of images: whiteouts, owners, and what they may not do. By root as it is in a box: it may
 * become others, and that is all. */
#include <errno.h>
#include <fcntl.h>
#include <linux/capability.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/tar.h"
#include "check.h"
#include "fileop_rig.h"

#define FLAGS (FILE_LAYERS | FILE_OWNERS)

/* Without the capabilities that make owners and modes meaningless. */
static int rig_weak_root(void **state)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = { { 0 } };

	(void)state;
	if (geteuid() != 0)
		return 0;
	data[0].effective = data[0].permitted =
		1u << CAP_SETUID | 1u << CAP_SETGID | 1u << CAP_SYS_PTRACE;
	return (int)syscall(SYS_capset, &head, data);
}

static void add(struct buf *b, const struct tar_member *m, const char *data)
{
	struct tar_member full = *m;

	full.link = m->link ? m->link : "";
	full.size = m->type == TAR_FILE ? strlen(data) : 0;
	assert_int_equal(tar_write_member(b, &full), 0);
	assert_int_equal(buf_append(b, data, (size_t)full.size), 0);
	assert_int_equal(buf_append(b, (char[TAR_BLOCK]){ 0 }, tar_padding(full.size)), 0);
}

static void file(struct buf *b, const char *path, uint32_t mode, uint32_t owner, const char *data)
{
	add(b,
	    &(struct tar_member){
		    .type = TAR_FILE, .path = path, .mode = mode, .uid = owner, .gid = owner },
	    data);
}

static void dir(struct buf *b, const char *path, uint32_t mode, uint32_t owner)
{
	add(b,
	    &(struct tar_member){
		    .type = TAR_DIR, .path = path, .mode = mode, .uid = owner, .gid = owner },
	    "");
}

static void soft(struct buf *b, const char *path, const char *target)
{
	add(b,
	    &(struct tar_member){ .type = TAR_SYMLINK, .path = path, .link = target, .mode = 0777 },
	    "");
}

static int put(struct rig *g, struct buf *b, uint32_t flags)
{
	struct guest_file f = { .op = FILE_TAR_PUT, .path = "/t", .flags = flags | FILE_PARENTS };
	int r;

	assert_int_equal(tar_write_end(b), 0);
	r = rig_do(g, &f, b->data, b->len);
	buf_done(b);
	return r;
}

static struct stat look(const struct rig *g, const char *name)
{
	struct stat st;

	assert_int_equal(fstatat(g->root_fd, name, &st, AT_SYMLINK_NOFOLLOW), 0);
	return st;
}

static void expect(const struct rig *g, const char *name, uint32_t mode, uint32_t owner)
{
	struct stat st = look(g, name);

	assert_int_equal(st.st_mode & 07777, mode);
	if (geteuid() == 0) {
		assert_int_equal(st.st_uid, owner);
		assert_int_equal(st.st_gid, owner);
	}
}

static void files_belong_to_whom_the_archive_says(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "var", 0755, 0);
	dir(&b, "var/www", 0750, 33);
	file(&b, "var/www/page", 0640, 33, "hello");
	file(&b, "var/www/root", 0400, 0, "root's in another's directory");
	dir(&b, "home/app", 0700, 1000); /* its parent is in no archive */
	file(&b, "home/app/.profile", 0600, 1000, "x");
	dir(&b, "tmp", 01777, 0);
	file(&b, "usr/bin/sudo", 04755, 0, "elf");
	file(&b, "closed", 0, 7, "nobody reads it");
	assert_int_equal(put(g, &b, FLAGS), 0);
	expect(g, "t/var", 0755, 0);
	expect(g, "t/home", 0755, 0);
	expect(g, "t/tmp", 01777, 0);
	expect(g, "t/usr/bin/sudo", 0755, 0); /* nothing is set-user-id */
	expect(g, "t/closed", 0, 7);
	expect(g, "t/home/app", 0700, 1000);
	expect(g, "t/var/www", 0750, 33);
	expect(g, "t", 0755, 0);
}

static void later_layers_write_into_closed_directories(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "srv", 0555, 33);
	file(&b, "srv/a", 0444, 33, "first");
	dir(&b, "srv/in", 0700, 12);
	file(&b, "srv/in/x", 0600, 12, "x");
	file(&b, "srv/a", 0444, 0, "second"); /* the next layer's */
	file(&b, "srv/in/y", 0600, 33, "y");
	dir(&b, "srv", 0511, 33);
	assert_int_equal(put(g, &b, FLAGS), 0);
	expect(g, "t/srv", 0511, 33);
	if (geteuid() == 0) /* of a directory that others may search */
		expect(g, "t/srv/a", 0444, 0);
	else /* and that can be removed again */
		assert_int_equal(fchmodat(g->root_fd, "t/srv", 0755, 0), 0);
}

static void a_directory_gets_its_later_owner_with_all_that_is_in_it(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "app", 0755, 0);
	dir(&b, "app/lib", 0755, 0);
	file(&b, "app/lib/a", 0644, 0, "kept");
	file(&b, "app/b", 0644, 0, "kept too");
	dir(&b, "app", 0755, 1000);
	assert_int_equal(put(g, &b, FLAGS), 0);
	expect(g, "t/app", 0755, 1000);
	expect(g, "t/app/lib", 0755, 0);
	assert_string_equal(rig_text(g, "t/app/lib/a"), "kept");
	assert_string_equal(rig_text(g, "t/app/b"), "kept too");
	assert_int_equal(rig_count(g, "t"), 1);
	assert_int_equal(rig_count(g, "t/app"), 2);
}

static void whiteouts_take_away_files_and_trees(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "etc", 0755, 0);
	file(&b, "etc/gone", 0644, 0, "");
	file(&b, "etc/stays", 0644, 0, "");
	dir(&b, "etc/tree", 0700, 5);
	dir(&b, "etc/tree/deep", 0700, 6);
	file(&b, "etc/tree/deep/er", 0600, 6, "");
	file(&b, "etc/.wh.gone", 0, 0, "");
	file(&b, "etc/.wh.tree", 0, 0, "");
	file(&b, "etc/.wh.never-there", 0, 0, "");
	file(&b, "no/such/.wh.directory", 0, 0, "");
	file(&b, ".wh..", 0, 0, "");
	file(&b, ".wh...", 0, 0, "");
	file(&b, ".wh.", 0, 0, "");
	assert_int_equal(put(g, &b, FLAGS), 0);
	assert_false(rig_exists(g, "t/etc/gone"));
	assert_false(rig_exists(g, "t/etc/tree"));
	assert_true(rig_exists(g, "t/etc/stays"));
	assert_false(rig_exists(g, "t/no"));
	assert_int_equal(rig_count(g, "t/etc"), 1);
}

static void an_opaque_directory_keeps_nothing_from_below(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "opt", 0755, 9);
	file(&b, "opt/old", 0644, 0, "");
	dir(&b, "opt/sub", 0755, 0);
	file(&b, "opt/sub/old", 0644, 0, "");
	file(&b, "opt/.wh..wh..opq", 0, 0, "");
	file(&b, "opt/new", 0644, 0, "new");
	assert_int_equal(put(g, &b, FLAGS), 0);
	assert_int_equal(rig_count(g, "t/opt"), 1);
	assert_string_equal(rig_text(g, "t/opt/new"), "new");
	expect(g, "t/opt", 0755, 9);
}

static void a_file_takes_the_place_of_a_tree_and_back(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "x", 0755, 0);
	file(&b, "x/y", 0644, 0, "");
	file(&b, "x", 0644, 3, "a file now");
	file(&b, "z", 0644, 0, "");
	dir(&b, "z", 0711, 4);
	file(&b, "z/in", 0644, 0, "");
	assert_int_equal(put(g, &b, FLAGS), 0);
	assert_string_equal(rig_text(g, "t/x"), "a file now");
	expect(g, "t/z", 0711, 4);
}

static void links_of_an_image_lead_nowhere_but_into_it(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	dir(&b, "usr/lib", 0755, 0);
	soft(&b, "lib", "usr/lib");
	file(&b, "lib/libc", 0644, 0, "c");
	soft(&b, "out", "../../../../../..");
	file(&b, "out/canary", 0644, 0, "inside");
	soft(&b, "abs", "/");
	dir(&b, "abs/made", 0755, 0);
	file(&b, "out/.wh.usr-not", 0, 0, "");
	assert_int_equal(put(g, &b, FLAGS), 0);
	assert_string_equal(rig_text(g, "t/usr/lib/libc"), "c");
	assert_string_equal(rig_text(g, "t/canary"), "inside");
	assert_true(rig_exists(g, "t/made"));
}

static void hard_links_reach_files_of_others(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	file(&b, "a", 0600, 33, "shared");
	add(&b, &(struct tar_member){ .type = TAR_HARDLINK, .path = "b", .link = "/a" }, "");
	assert_int_equal(put(g, &b, FLAGS), 0);
	assert_int_equal(look(g, "t/a").st_ino, look(g, "t/b").st_ino);
	add(&b, &(struct tar_member){ .type = TAR_HARDLINK, .path = "c", .link = "../canary" }, "");
	assert_int_equal(put(g, &b, FLAGS), EINVAL);
	add(&b, &(struct tar_member){ .type = TAR_HARDLINK, .path = "c", .link = "nothing" }, "");
	assert_int_equal(put(g, &b, FLAGS), ENOENT);
}

static void an_id_that_the_box_has_not_is_nobodys(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	if (geteuid() != 0)
		skip();
	file(&b, "f", 0644, TAR_ID_NONE, "");
	assert_int_equal(put(g, &b, FLAGS), 0);
	expect(g, "t/f", 0644, 65534);
}

static void other_archives_know_no_whiteouts(void **state)
{
	struct rig *g = *state;
	struct buf b = { 0 };

	file(&b, "a", 0644, 0, "");
	file(&b, ".wh.a", 0644, 0, "just a name");
	assert_int_equal(put(g, &b, FILE_OWNERS), 0);
	assert_true(rig_exists(g, "t/a"));
	assert_string_equal(rig_text(g, "t/.wh.a"), "just a name");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(files_belong_to_whom_the_archive_says),
		TEST(later_layers_write_into_closed_directories),
		TEST(a_directory_gets_its_later_owner_with_all_that_is_in_it),
		TEST(whiteouts_take_away_files_and_trees),
		TEST(an_opaque_directory_keeps_nothing_from_below),
		TEST(a_file_takes_the_place_of_a_tree_and_back),
		TEST(links_of_an_image_lead_nowhere_but_into_it),
		TEST(hard_links_reach_files_of_others),
		TEST(an_id_that_the_box_has_not_is_nobodys),
		TEST(other_archives_know_no_whiteouts),
	};

	return cmocka_run_group_tests(tests, rig_weak_root, NULL);
}
