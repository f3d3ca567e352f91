/* Trees as a hostile box could leave them. */
#include "launch/copy.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/un.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"

#define DIR_FLAGS (O_RDONLY | O_DIRECTORY | O_CLOEXEC)
#define DEPTH 3000 /* more than a path holds, and than there are descriptors */
#define MANY 3000  /* more than one call reads of a directory */

struct rig {
	char dir[40];
	int top, from, to, links;
	struct copy_plan plan;
	struct copy_stats stats;
	struct err err;
};

static int make_dir(int at, const char *name)
{
	int fd;

	assert_true(mkdirat(at, name, 0755) == 0 || errno == EEXIST);
	fd = openat(at, name, DIR_FLAGS);
	assert_true(fd >= 0);
	return fd;
}

static int setup(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	*r = (struct rig){ .dir = "/tmp/holt-copy.XXXXXX",
			   .plan = { .max_bytes = 1u << 20, .max_inodes = 100000 } };
	assert_non_null(mkdtemp(r->dir));
	r->top = open(r->dir, DIR_FLAGS);
	r->from = make_dir(r->top, "from");
	r->to = make_dir(r->top, "to");
	r->links = make_dir(r->top, "links");
	*state = r;
	return 0;
}

static int teardown(void **state)
{
	static const char *const names[] = { "from", "to", "links" };
	struct rig *r = *state;

	for (size_t i = 0; i < 3; i++)
		if (copy_remove(r->top, names[i], &r->err) < 0)
			fail_msg("remove %s: %s", names[i], r->err.text);
	fd_close(r->from);
	fd_close(r->to);
	fd_close(r->links);
	fd_close(r->top);
	assert_int_equal(rmdir(r->dir), 0);
	free(r);
	return 0;
}

static int copy(struct rig *r)
{
	return copy_tree(r->from, r->to, r->links, &r->plan, &r->stats, &r->err);
}

static void must_copy(struct rig *r)
{
	if (copy(r) < 0)
		fail_msg("copy: %s", r->err.text);
}

static void put(int at, const char *name, const char *text)
{
	int fd = openat(at, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	fd_close(fd);
}

static void expect(int at, const char *name, const char *text)
{
	char have[64] = "";
	int fd = openat(at, name, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_true(fd_read_all(fd, have, sizeof(have) - 1) >= 0);
	assert_string_equal(have, text);
	fd_close(fd);
}

static bool exists(int at, const char *name)
{
	return faccessat(at, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

static void links_are_copied_and_never_followed(void **state)
{
	struct rig *r = *state;
	char target[64] = "";
	struct stat a, b;
	int d;

	put(r->top, "secret", "secret");
	d = make_dir(r->from, "d");
	assert_int_equal(symlinkat("/etc/passwd", r->from, "file"), 0);
	assert_int_equal(symlinkat("../../secret", d, "up"), 0);
	assert_int_equal(symlinkat("..", d, "loop"), 0);
	assert_int_equal(symlinkat("self", r->from, "self"), 0);
	/* What was there before must not be written through either. */
	assert_int_equal(symlinkat("../secret", r->to, "victim"), 0);
	put(r->from, "victim", "new");
	must_copy(r);
	assert_true(readlinkat(r->to, "d/up", target, sizeof(target) - 1) > 0);
	assert_string_equal(target, "../../secret");
	assert_int_equal(fstatat(r->to, "file", &a, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISLNK(a.st_mode));
	assert_int_equal(fstatat(r->to, "victim", &b, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISREG(b.st_mode));
	expect(r->top, "secret", "secret");
	assert_int_equal(unlinkat(r->top, "secret", 0), 0);
	fd_close(d);
}

static void ten_thousand_levels_are_copied_and_removed(void **state)
{
	struct rig *r = *state;
	int fd = dup(r->from), next;

	for (int i = 0; i < DEPTH; i++) {
		next = make_dir(fd, "d");
		fd_close(fd);
		fd = next;
	}
	put(fd, "bottom", "x");
	fd_close(fd);
	must_copy(r);
	assert_int_equal(r->stats.inodes, DEPTH + 1);
	fd = dup(r->to);
	for (int i = 0; i < DEPTH; i++) {
		next = openat(fd, "d", DIR_FLAGS);
		assert_true(next >= 0);
		fd_close(fd);
		fd = next;
	}
	expect(fd, "bottom", "x");
	fd_close(fd);
}

static void the_number_of_files_is_bounded(void **state)
{
	struct rig *r = *state;
	char name[16];

	for (int i = 0; i < MANY; i++) {
		(void)snprintf(name, sizeof(name), "%d", i);
		put(r->from, name, "");
	}
	r->plan.max_inodes = MANY - 1;
	assert_int_equal(copy(r), -EDQUOT);
	r->stats = (struct copy_stats){ 0 };
	r->plan.max_inodes = MANY;
	must_copy(r);
	assert_int_equal(r->stats.inodes, MANY);
}

static void the_bytes_are_bounded(void **state)
{
	struct rig *r = *state;

	put(r->from, "a", "12345678");
	put(r->from, "b", "12345678");
	r->plan.max_bytes = 15;
	assert_int_equal(copy(r), -EDQUOT);
	r->plan.max_bytes = 16;
	r->stats = (struct copy_stats){ 0 };
	must_copy(r);
	assert_int_equal(r->stats.bytes, 16);
}

static void holes_stay_holes_and_what_is_too_large_is_skipped(void **state)
{
	struct rig *r = *state;
	int fd = openat(r->from, "hole", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	struct stat st;

	assert_int_equal(ftruncate(fd, 1ll << 40), 0);
	assert_int_equal(pwrite(fd, "x", 1, 1ll << 39), 1);
	fd_close(fd);
	must_copy(r);
	assert_int_equal(fstatat(r->to, "hole", &st, 0), 0);
	assert_true(st.st_size == 1ll << 40 && st.st_blocks * 512 < 1 << 20);
	fd = openat(r->to, "hole", O_RDONLY | O_CLOEXEC);
	assert_true(lseek(fd, 0, SEEK_DATA) <= 1ll << 39);
	fd_close(fd);
}

/* tmpfs has files of exabytes; no disk does. */
static void a_file_of_exabytes_is_skipped_where_it_cannot_be(void **state)
{
	struct rig *r = *state;
	char dir[] = "/dev/shm/holt-copy.XXXXXX", path[64];
	int in, fd;

	if (!mkdtemp(dir))
		skip();
	in = open(dir, DIR_FLAGS);
	fd = openat(in, "huge", O_RDWR | O_CREAT | O_CLOEXEC, 0600);
	if (ftruncate(fd, INT64_MAX) == 0) {
		put(in, "small", "s");
		assert_int_equal(copy_tree(in, r->to, r->links, &r->plan, &r->stats, &r->err), 0);
		expect(r->to, "small", "s");
		if (r->stats.skipped > 0)
			assert_false(exists(r->to, "huge"));
	}
	fd_close(fd);
	fd_close(in);
	(void)snprintf(path, sizeof(path), "%s", dir);
	assert_int_equal(copy_remove(AT_FDCWD, path, &r->err), 0);
}

static void names_of_one_file_stay_names_of_one_file(void **state)
{
	struct rig *r = *state;
	struct stat a, b;
	int d = make_dir(r->from, "d");

	put(r->from, "a", "x");
	assert_int_equal(linkat(r->from, "a", d, "b", 0), 0);
	assert_int_equal(linkat(r->from, "a", r->top, "outside", 0), 0);
	must_copy(r);
	assert_int_equal(unlinkat(r->top, "outside", 0), 0);
	assert_int_equal(fstatat(r->to, "a", &a, 0), 0);
	assert_int_equal(fstatat(r->to, "d/b", &b, 0), 0);
	assert_true(a.st_ino == b.st_ino && a.st_nlink == 3); /* the third is in links */
	assert_int_equal(r->stats.bytes, 1);
	fd_close(d);
}

static void sockets_and_devices_are_skipped_and_counted(void **state)
{
	struct rig *r = *state;
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	uint32_t want = 1;
	struct stat st;

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s/from/sock", r->dir);
	assert_int_equal(bind(s, (struct sockaddr *)&a, sizeof(a)), 0);
	if (mknodat(r->from, "dev", S_IFCHR | 0666, makedev(1, 3)) == 0)
		want++;
	if (mknodat(r->from, "disk", S_IFBLK | 0666, makedev(7, 0)) == 0)
		want++;
	assert_int_equal(mkfifoat(r->from, "fifo", 0640), 0);
	must_copy(r);
	assert_int_equal(r->stats.skipped, want);
	assert_false(exists(r->to, "sock") || exists(r->to, "dev") || exists(r->to, "disk"));
	assert_int_equal(fstatat(r->to, "fifo", &st, 0), 0);
	assert_true(S_ISFIFO(st.st_mode));
	fd_close(s);
}

static void whiteouts_and_opaque_directories_do_in_a_merge_what_they_say(void **state)
{
	struct rig *r = *state;
	struct stat st;
	char value[4];
	int d = make_dir(r->to, "opaque"), fd;

	put(d, "below", "b");
	fd_close(d);
	d = make_dir(r->to, "merged");
	put(d, "below", "b");
	fd_close(d);
	d = make_dir(r->to, "gone");
	put(d, "below", "b");
	fd_close(d);
	put(r->to, "dir", "a file");
	put(make_dir(r->from, "merged"), "above", "a");
	put(make_dir(r->from, "dir"), "above", "a");
	fd = make_dir(r->from, "opaque");
	put(fd, "above", "a");
	if (mknodat(r->from, "gone", S_IFCHR, 0) < 0 ||
	    fsetxattr(fd, "user.overlay.opaque", "y", 1, 0) < 0)
		skip(); /* not on this file system */
	must_copy(r);
	expect(r->to, "merged/below", "b");
	expect(r->to, "merged/above", "a");
	expect(r->to, "dir/above", "a");
	expect(r->to, "opaque/above", "a");
	assert_false(exists(r->to, "opaque/below"));
	assert_int_equal(fstatat(r->to, "gone", &st, AT_SYMLINK_NOFOLLOW), 0);
	assert_true(S_ISCHR(st.st_mode) && st.st_rdev == 0);
	d = openat(r->to, "opaque", DIR_FLAGS);
	assert_int_equal(fgetxattr(d, "user.overlay.opaque", value, sizeof(value)), 1);
	fd_close(d);
	fd_close(fd);
}

static void attributes_that_do_not_fit_are_skipped_and_counted(void **state)
{
	struct rig *r = *state;
	char value[60000], name[32];
	int fd, n = 0;

	put(r->from, "f", "x");
	fd = openat(r->from, "f", O_RDWR | O_CLOEXEC);
	memset(value, 'v', sizeof(value));
	for (size_t size = sizeof(value); size > 100; size /= 3) {
		(void)snprintf(name, sizeof(name), "user.n%d", n);
		n += fsetxattr(fd, name, value, size, 0) == 0;
	}
	(void)fsetxattr(fd, "user.overlay.redirect", "/etc", 4, 0);
	fd_close(fd);
	must_copy(r);
	fd = openat(r->to, "f", O_RDONLY | O_CLOEXEC);
	assert_true(fgetxattr(fd, "user.overlay.redirect", value, 4) < 0);
	fd_close(fd);
	assert_true(r->stats.skipped <= (uint32_t)n);
}

static void owners_outside_of_the_range_become_nobodys(void **state)
{
	struct rig *r = *state;
	struct stat st;

	if (geteuid() != 0)
		skip(); /* only root gives files away */
	r->plan.ids = (struct copy_ids){ 500000, 900000, 4096 };
	put(r->from, "own", "");
	put(r->from, "root", "");
	put(r->from, "suid", "");
	assert_int_equal(fchownat(r->from, "own", 501000, 500000, 0), 0);
	assert_int_equal(fchownat(r->from, "suid", 500000, 500000, 0), 0);
	assert_int_equal(fchmodat(r->from, "suid", 06755, 0), 0);
	must_copy(r);
	assert_int_equal(fstatat(r->to, "own", &st, 0), 0);
	assert_true(st.st_uid == 901000 && st.st_gid == 900000);
	assert_int_equal(fstatat(r->to, "root", &st, 0), 0);
	assert_true(st.st_uid == 904095 && st.st_gid == 904095);
	assert_int_equal(fstatat(r->to, "suid", &st, 0), 0);
	assert_true(st.st_uid == 900000 && (st.st_mode & 07777) == 06755);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(links_are_copied_and_never_followed),
		CASE(ten_thousand_levels_are_copied_and_removed),
		CASE(the_number_of_files_is_bounded),
		CASE(the_bytes_are_bounded),
		CASE(holes_stay_holes_and_what_is_too_large_is_skipped),
		CASE(a_file_of_exabytes_is_skipped_where_it_cannot_be),
		CASE(names_of_one_file_stay_names_of_one_file),
		CASE(sockets_and_devices_are_skipped_and_counted),
		CASE(whiteouts_and_opaque_directories_do_in_a_merge_what_they_say),
		CASE(attributes_that_do_not_fit_are_skipped_and_counted),
		CASE(owners_outside_of_the_range_become_nobodys),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
