/* Accounts of a directory template: whoever gives the directory may not be believed. */
#include "launch/template_etc.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"

struct rig {
	char dir[40];
	int fd; /* of it: image, root, private */
	int image, root;
};

static int open_dir(int at, const char *name)
{
	int fd;

	assert_int_equal(mkdirat(at, name, 0755), 0);
	fd = openat(at, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void put(int at, const char *path, const char *text, mode_t mode)
{
	_close_ int fd = openat(at, path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int setup(void **state)
{
	static struct rig rig;

	rig = (struct rig){ .dir = "/tmp/holt-template.XXXXXX" };
	assert_non_null(mkdtemp(rig.dir));
	rig.fd = open(rig.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	rig.image = open_dir(rig.fd, "image");
	rig.root = open_dir(rig.fd, "root");
	(void)fd_close(open_dir(rig.fd, "private"));
	put(rig.fd, "private/passwd", "secret:x:1:1::/:/bin/sh\n", 0600);
	*state = &rig;
	return 0;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	(void)fd_close(rig->image);
	(void)fd_close(rig->root);
	(void)fd_close(rig->fd);
	return nftw(rig->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* The passwd file that boxes will have. */
static void fill(struct rig *rig, char text[4096])
{
	struct err err = { 0 };

	if (template_fill(rig->root, false, rig->image, false, &err) < 0)
		fail_msg("%s", err.text);
	assert_true(fd_read_file_at(rig->root, "etc/passwd", text, 4096) > 0);
	assert_non_null(strstr(text, "user:x:1000:"));
}

static void an_images_accounts_are_kept_and_ours_added(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	(void)fd_close(open_dir(rig->image, "etc"));
	put(rig->image, "etc/passwd", "daemon:x:2:2::/:/bin/sh", 0644);
	fill(rig, text);
	assert_memory_equal(text, "daemon:x:2:2::/:/bin/sh\nuser:x:1000:", 36);
}

static void a_link_inside_of_the_image_is_followed_there(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	(void)fd_close(open_dir(rig->image, "real"));
	put(rig->image, "real/passwd", "daemon:x:2:2::/:/bin/sh\n", 0644);
	assert_int_equal(symlinkat("/real", rig->image, "etc"), 0);
	fill(rig, text);
	assert_non_null(strstr(text, "daemon:x:2:"));
}

/* The launcher may read anything; what it reads for a client, everybody in a box can see. */
static void no_file_outside_of_the_image_is_read_for_it(void **state)
{
	struct rig *rig = *state;
	char text[4096], target[64];

	for (size_t i = 0; i < 2; i++) {
		(void)snprintf(target, sizeof(target), "%s/private", i == 0 ? ".." : rig->dir);
		assert_int_equal(symlinkat(target, rig->image, "etc"), 0);
		fill(rig, text);
		assert_null(strstr(text, "secret"));
		assert_int_equal(unlinkat(rig->image, "etc", 0), 0);
		(void)teardown(state);
		(void)setup(state);
	}
}

static void what_not_everybody_may_read_stays_unread(void **state)
{
	struct rig *rig = *state;
	char text[4096];

	(void)fd_close(open_dir(rig->image, "etc"));
	put(rig->image, "etc/passwd", "secret:x:1:1::/:/bin/sh\n", 0640);
	fill(rig, text);
	assert_null(strstr(text, "secret"));
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(an_images_accounts_are_kept_and_ours_added),
		CASE(a_link_inside_of_the_image_is_followed_there),
		CASE(no_file_outside_of_the_image_is_read_for_it),
		CASE(what_not_everybody_may_read_stays_unread),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
