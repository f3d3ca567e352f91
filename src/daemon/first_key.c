#include "daemon/first_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/api_key.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "store/store.h"

#define DATABASE "holt.db"

/* We may be root, and the directory somebody's who would like to have a file of root's written
 * over: what has another name, or is no file, is left alone. */
static int open_own(const char *path, int more)
{
	_close_ int fd =
		open(path, O_WRONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EPERM;
	return fchmod(fd, 0600) < 0 ? -errno : TAKE_FD(fd);
}

int first_key_open(const char *path, int data_fd, int *ret_fd, struct err *err)
{
	struct stat st;
	bool is_first = fstatat(data_fd, DATABASE, &st, AT_SYMLINK_NOFOLLOW) < 0;
	int fd;

	*ret_fd = -1;
	if (!path)
		return 0;
	/* A database without keys is what a first start leaves that did not get far. It has made
	 * the file, which may then say nothing, or a key that was never stored. */
	fd = open_own(path, is_first ? O_CREAT : 0);
	if (fd < 0 && is_first)
		return err_sys(err, fd, "admin key file '%s'", path);
	*ret_fd = fd < 0 ? -1 : fd;
	return 0;
}

static void stored(void *user, int r)
{
	*(int *)user = r;
}

/* Blocks until it is on disk: nothing else happens yet. */
static int put(const struct store *store, const struct key_row *row, struct err *err)
{
	int result = 1, r = store_put_key(store, row, stored, &result);

	if (r == 0)
		r = store_flush(store);
	if (r == 0) {
		store_dispatch(store);
		r = result;
	}
	return r == 0 ? 0 : err_sys(err, r < 0 ? r : -EIO, "store the first key");
}

static int write_file(int fd, const char *text, struct err *err)
{
	int r = ftruncate(fd, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = fd_write_all(fd, text, strlen(text));
	if (r == 0)
		r = fd_write_all(fd, "\n", 1);
	return r < 0 ? err_sys(err, r, "admin key file") : 0;
}

int first_key_make(const struct store *store, struct auth_keys *keys, int fd, char *ret,
		   size_t size, struct err *err)
{
	char text[API_KEY_SIZE], id[ID_LEN + 1];
	struct key_row row = { .id = id,
			       .name = "first",
			       .owner = FIRST_KEY_OWNER,
			       .role = ROLE_ADMIN,
			       .created_ms = clock_wall_ms() };
	int r;

	ret[0] = '\0';
	if (auth_keys_len(keys) > 0)
		return 0;
	id_make(id);
	r = api_key_make(text, row.hash);
	if (r < 0)
		return err_sys(err, r, "make the first key");
	/* The file first: a key that is stored and known to nobody would lock everybody out. */
	if (fd >= 0)
		r = write_file(fd, text, err);
	if (r == 0)
		r = put(store, &row, err);
	if (r == 0)
		r = auth_keys_put(keys, &row, err);
	if (r == 0 && fd < 0)
		r = str_copy(ret, size, text);
	explicit_bzero(text, sizeof(text));
	return r;
}
