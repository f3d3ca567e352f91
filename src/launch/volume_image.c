#include "launch/volume_image.h"

#include <errno.h>
#include <poll.h>
#include <stdbool.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mount.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "launch/loop.h"
#include "launch/mounts.h"

#define LOCK_MS 3000 /* the box before may still be on its way out */
#define PACKAGE "e2fsprogs"

/* Of an ext4 superblock. */
#define SUPER_AT 1024
#define SUPER_SIZE 128
#define STATE_AT 0x3a
#define STATE_CLEAN 1u
#define INCOMPAT_AT 0x60
#define INCOMPAT_RECOVER 4u

#define ARG(text) ((char *)(uintptr_t)(text))

int image_make(int image, uint64_t bytes, uint32_t owner, struct err *err)
{
	static const char *const paths[2] = { "/usr/sbin/mkfs.ext4", "/sbin/mkfs.ext4" };
	char extended[96];
	char *argv[] = { ARG("mkfs.ext4"), ARG("-q"), ARG("-F"), ARG("-m"), ARG("0"),
			 ARG("-E"),        extended,  NULL,      NULL };
	int r;

	(void)str_format(extended, sizeof(extended),
			 "root_owner=%u:%u,lazy_itable_init=1,lazy_journal_init=1,nodiscard", owner,
			 owner);
	argv[7] = ARG(LOOP_TOOL_PATH);
	if (ftruncate(image, (off_t)bytes) < 0)
		return err_sys(err, errno, "size of a volume");
	r = loop_run_tool(paths, argv, image, PACKAGE, err);
	return r > 0 ? err_set(err, EIO, "mkfs.ext4 ended with code %d", r) : r;
}

static bool is_clean(int image)
{
	uint8_t super[SUPER_SIZE];
	uint16_t state;
	uint32_t incompat;

	if (pread(image, super, sizeof(super), SUPER_AT) != (ssize_t)sizeof(super))
		return false;
	memcpy(&state, super + STATE_AT, sizeof(state));
	memcpy(&incompat, super + INCOMPAT_AT, sizeof(incompat));
	return state == STATE_CLEAN && !(incompat & INCOMPAT_RECOVER);
}

static int check(int image, struct err *err)
{
	static const char *const paths[2] = { "/usr/sbin/e2fsck", "/sbin/e2fsck" };
	char *argv[] = { ARG("e2fsck"), ARG("-p"), ARG(LOOP_TOOL_PATH), NULL };
	int r;

	if (is_clean(image))
		return 0;
	r = loop_run_tool(paths, argv, image, PACKAGE, err);
	/* 1 and 2: errors that were corrected. */
	return r > 2 ? err_set(err, EUCLEAN, "the volume is damaged: e2fsck ended with code %d", r)
	       : r < 0 ? r
		       : 0;
}

/* Where the image goes, its lock goes too. */
int image_lock(int image, struct err *err)
{
	uint64_t deadline = clock_now_ms() + LOCK_MS;

	while (flock(image, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, errno, "lock of a volume");
		if (clock_now_ms() >= deadline)
			return err_set(err, EBUSY, "the volume is still mounted");
		(void)poll(NULL, 0, 2);
	}
	return 0;
}

int image_mount(int image, struct err *err)
{
	char path[LOOP_PATH_SIZE];
	struct fs_option options[] = { { "source", path },
				       { "discard", NULL },
				       { "errors", "remount-ro" } };
	_close_ int loop = -1;
	int r = image_lock(image, err);

	if (r == 0)
		r = check(image, err);
	if (r == 0)
		r = loop = loop_attach(image, path, err);
	return r < 0 ? r
		     : mounts_new("ext4", options, sizeof(options) / sizeof(options[0]),
				  MOUNT_ATTR_NOSUID | MOUNT_ATTR_NODEV, err);
}
