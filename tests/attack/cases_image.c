/* I: templates made from a directory that somebody hostile has filled. */
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "attack.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

struct image {
	char dir[256];
	int fd;
};

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st, (void)type, (void)ftw;
	return remove(path);
}

/* An empty one. Its place is our directory for temporary files, not the canaries'. */
static void image_open(struct image *im)
{
	const char *top = getenv("TMPDIR");

	(void)snprintf(im->dir, sizeof(im->dir), "%s/holt-image.XXXXXX", top ? top : "/tmp");
	assert_non_null(mkdtemp(im->dir));
	assert_int_equal(chmod(im->dir, 0755), 0);
	im->fd = open(im->dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(im->fd >= 0);
}

static void image_close(struct image *im)
{
	im->fd = fd_close(im->fd);
	(void)nftw(im->dir, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

static void put(struct image *im, const char *path, const char *text, mode_t mode)
{
	_close_ int fd = openat(im->fd, path, O_WRONLY | O_CREAT | O_CLOEXEC, mode);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
	assert_int_equal(fchmod(fd, mode), 0);
}

static int define(struct world *w, struct image *im, uint32_t flags)
{
	struct template_spec t = {
		.id = TEMPLATE_DIR, .root = ROOT_DIR, .flags = flags, .preload = ""
	};

	return launcher_template_sync(w->launcher, &t, im->fd, NULL);
}

/* Claims a box of it and attacks; a template or a box that is refused has held as well. */
static void attack_image(struct world *w, struct image *im, uint32_t flags,
			 const char *const *probes, size_t n)
{
	struct launch_spec spec = { .template_id = TEMPLATE_DIR };
	struct launcher_box box;

	if (define(w, im, flags) < 0 || launcher_claim_sync(w->launcher, &spec, &box, NULL) < 0)
		return;
	(void)close(box.sock);
	(void)close(box.pidfd);
	(void)launcher_destroy_sync(w->launcher, box.id, NULL, NULL);
	while (launcher_next_death(w->launcher, box.id, &(int){ 0 }, &(struct box_usage){ 0 }))
		;
	box_open(w, &w->box, TEMPLATE_DIR, NULL);
	box_upload(w, &w->box);
	for (size_t i = 0; i < n; i++)
		box_expect_held(w, &w->box, probes[i], MAY_BE_ABSENT);
	box_expect_answer(&w->box);
	box_close(w, &w->box, NULL);
}

static const char *const everything[] = { "inside-root",
					  "nothing-held",
					  "descriptors",
					  "sysctls",
					  "cgroups",
					  "sys-tree",
					  "paths-absent @canary @dir",
					  "dev-machine",
					  "init-files",
					  "leak-search @secrets" };

/* Every place that the launcher mounts something on is a link to the machine. */
static void links_for_mount_points(struct world *w, const struct attack *a)
{
	static const char *const points[] = { "proc", "dev", "tmp", "workspace", "home", "etc",
					      "sys",  "run", "var", "usr",       "root" };
	char target[300];
	struct image im;

	(void)a;
	for (size_t i = 0; i <= COUNT(points); i++) { /* one after the other, then all at once */
		image_open(&im);
		(void)snprintf(target, sizeof(target), "%s/dir", w->dir);
		for (size_t k = 0; k < COUNT(points); k++)
			if (k == i || i == COUNT(points))
				assert_int_equal(symlinkat(target, im.fd, points[k]), 0);
			else
				assert_int_equal(mkdirat(im.fd, points[k], 0755), 0);
		attack_image(w, &im, 0, everything, COUNT(everything));
		image_close(&im);
	}
}

/* The same with links that climb, and with files where directories belong. */
static void odd_mount_points(struct world *w, const struct attack *a)
{
	static const char *const targets[] = { "..",   "../../../../../..",
					       "/",    "/proc/self/root",
					       "proc", "" };
	struct image im;

	(void)a;
	for (size_t i = 0; i < COUNT(targets); i++) {
		image_open(&im);
		if (targets[i][0]) {
			(void)symlinkat(targets[i], im.fd, "proc");
			(void)symlinkat(targets[i], im.fd, "dev");
			(void)symlinkat(targets[i], im.fd, "tmp");
		} else {
			put(&im, "proc", "a file", 0644);
			put(&im, "dev", "a file", 0644);
			put(&im, "etc", "a file", 0644);
		}
		attack_image(w, &im, 0, everything, COUNT(everything));
		image_close(&im);
	}
}

/* Account files that hang, are endless, or are a link to the machine's. */
static void odd_account_files(struct world *w, const struct attack *a)
{
	static const char *const probes[] = { "ids 1000", "leak-search @secrets" };
	struct image im;
	char target[300];

	(void)a;
	for (int kind = 0; kind < 4; kind++) {
		image_open(&im);
		assert_int_equal(mkdirat(im.fd, "etc", 0755), 0);
		(void)snprintf(target, sizeof(target), "%s/canary", w->dir);
		if (kind == 0)
			assert_int_equal(mkfifoat(im.fd, "etc/passwd", 0666), 0);
		if (kind == 1)
			assert_int_equal(symlinkat(target, im.fd, "etc/passwd"), 0);
		if (kind == 2)
			put(&im, "etc/passwd",
			    "user:x:0:0::/:/bin/sh\nroot:x:1000:1000::/:/bin/sh\n", 0644);
		if (kind == 3)
			assert_int_equal(symlinkat("/dev/zero", im.fd, "etc/passwd"), 0);
		attack_image(w, &im, 0, probes, kind == 2 ? 0 : COUNT(probes));
		image_close(&im);
	}
}

/* Set-id programs and device nodes that lie in the image. */
static void privileges_in_the_image(struct world *w, const struct attack *a)
{
	static const char *const probes[] = { "suid-system", "dev-machine", "nothing-held",
					      "paths-absent /dev/holt-none" };
	struct image im;

	(void)a;
	image_open(&im);
	assert_int_equal(mkdirat(im.fd, "dev", 0755), 0);
	assert_int_equal(mkdirat(im.fd, "usr", 0755), 0);
	assert_int_equal(mkdirat(im.fd, "usr/bin", 0755), 0);
	put(&im, "usr/bin/tool", "#!/bin/sh\n", 06755);
	if (geteuid() == 0) { /* as a careless unpacker would have left them */
		assert_int_equal(mknodat(im.fd, "dev/mem", S_IFCHR | 0666, makedev(1, 1)), 0);
		assert_int_equal(mknodat(im.fd, "dev/kmsg", S_IFCHR | 0666, makedev(1, 11)), 0);
		assert_int_equal(mknodat(im.fd, "dev/vda", S_IFBLK | 0666, makedev(254, 0)), 0);
	}
	attack_image(w, &im, 0, probes, COUNT(probes));
	image_close(&im);
}

/* A writable root on an image: the image on the machine stays as it is. */
static void image_is_never_written(struct world *w, const struct attack *a)
{
	static const char *const probes[] = { "deface" };
	char text[64];
	struct stat st;
	struct image im;

	(void)a;
	image_open(&im);
	assert_int_equal(mkdirat(im.fd, "usr", 0777), 0);
	assert_int_equal(mkdirat(im.fd, "usr/bin", 0777), 0);
	assert_int_equal(mkdirat(im.fd, "etc", 0777), 0);
	assert_int_equal(fchmodat(im.fd, "usr", 0777, 0), 0);
	assert_int_equal(fchmodat(im.fd, "usr/bin", 0777, 0), 0);
	put(&im, "usr/bin/env", "original", 0777);
	put(&im, "usr/bin/true", "original", 0777);
	for (int writable = 0; writable < 2; writable++) {
		attack_image(w, &im, writable ? TEMPLATE_WRITABLE_ROOT : 0, probes, COUNT(probes));
		assert_int_equal(fd_read_file_at(im.fd, "usr/bin/env", text, sizeof(text)), 8);
		assert_string_equal(text, "original");
		assert_int_equal(fstatat(im.fd, "usr/bin/true", &st, 0), 0);
		assert_true(fstatat(im.fd, "usr/holt-defaced", &st, 0) < 0);
		assert_true(fstatat(im.fd, "etc/holt-defaced", &st, 0) < 0);
		assert_true(fstatat(im.fd, "holt-defaced", &st, 0) < 0);
	}
	image_close(&im);
}

/* The copy-on-write layer lies on the box's own disk and counts there. */
static void written_layers_are_part_of_the_quota(struct world *w, const struct attack *a)
{
	struct image im;

	image_open(&im);
	assert_int_equal(mkdirat(im.fd, "data", 0777), 0);
	assert_int_equal(fchmodat(im.fd, "data", 0777, 0), 0);
	assert_int_equal(define(w, &im, TEMPLATE_WRITABLE_ROOT), 0);
	box_open(w, &w->box, TEMPLATE_DIR, &a->limits);
	box_upload(w, &w->box);
	box_expect_held(w, &w->box, "fill /data one 16", 0);
	box_expect_held(w, &w->box, "fill /data many 16", MAY_BE_ABSENT);
	box_close(w, &w->box, NULL);
	image_close(&im);
}

static const struct attack rows[] = {
	{ "I1 links in place of mount points do not lead the launcher out",
	  NULL,
	  0,
	  0,
	  { 0 },
	  links_for_mount_points },
	{ "I2 climbing links and files in place of mount points are no way out",
	  NULL,
	  0,
	  0,
	  { 0 },
	  odd_mount_points },
	{ "I3 account files that hang, lie or lead out do no harm",
	  NULL,
	  0,
	  0,
	  { 0 },
	  odd_account_files },
	{ "I4 set-id programs and devices in an image are powerless",
	  NULL,
	  0,
	  0,
	  { 0 },
	  privileges_in_the_image },
	{ "R3 a copy-on-write root is part of the quota",
	  NULL,
	  0,
	  0,
	  { .disk_bytes = 16u << 20 },
	  written_layers_are_part_of_the_quota },
	{ "I5 an image is never written", NULL, 0, 0, { 0 }, image_is_never_written },
};

const struct attack_table attacks_image = { rows, COUNT(rows) };
