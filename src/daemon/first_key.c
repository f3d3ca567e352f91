#include "daemon/first_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "auth/api_key.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "daemon/admin_key.h"

#define DATABASE "holt.db"
#define PENDING                                                                           \
	"first-key" /* in the data: hash of a key that the file has and the store may not \
		     */

/* We may be root, and the directory somebody's who would like to have a file of root's written
 * over: what has another name, or is no file, is left alone. */
static int open_own(const char *path, int more)
{
	_close_ int fd =
		open(path, O_RDWR | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK | O_NOCTTY | more, 0600);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_nlink != 1)
		return -EPERM;
	return fchmod(fd, 0600) < 0 ? -errno : TAKE_FD(fd);
}

static void hash_to_hex(const uint8_t hash[HASH_LEN], char hex[2 * HASH_LEN + 1])
{
	encode_hex(hash, HASH_LEN, hex);
	hex[2 * HASH_LEN] = '\0';
}

/* Whether the key is one that an earlier first start of ours wrote, and did not come to store. */
static bool is_pending(const char *key, int data_fd)
{
	char hex[2 * HASH_LEN + 1], noted[2 * HASH_LEN + 2];
	uint8_t hash[HASH_LEN];

	if (api_key_hash(key, hash) < 0)
		return false;
	hash_to_hex(hash, hex);
	return fd_read_file_at(data_fd, PENDING, noted, sizeof(noted)) > 0 &&
	       strcmp(hex, noted) == 0;
}

/* Only the hash of a key is kept: written over, another daemon's key is lost for good. */
static int check_file(const struct first_key_file *f, struct err *err)
{
	char text[API_KEY_SIZE + 2];
	ssize_t n = pread(f->fd, text, sizeof(text) - 1, 0);
	bool is_ours;

	if (n < 0)
		return err_sys(err, errno, "admin key file '%s'", f->path);
	text[n] = '\0';
	text[strcspn(text, "\n")] = '\0';
	is_ours = n == 0 || is_pending(text, f->data_fd);
	explicit_bzero(text, sizeof(text));
	if (is_ours)
		return 0;
	return err_set(err, EEXIST,
		       "admin key file '%s' is not empty, and its key is not one of this state "
		       "directory: name another file, or move this one away",
		       f->path);
}

int first_key_open(const char *path, int data_fd, struct first_key_file *ret, struct err *err)
{
	struct stat st;
	bool is_first = fstatat(data_fd, DATABASE, &st, AT_SYMLINK_NOFOLLOW) < 0;
	int fd;

	*ret = (struct first_key_file){ -1, data_fd, path };
	if (!path)
		return 0;
	/* A database without keys is what a first start leaves that did not get far. It has made
	 * the file, which may then say nothing, or a key that was never stored. */
	fd = open_own(path, is_first ? O_CREAT : 0);
	if (fd < 0 && is_first)
		return err_sys(err, fd, "admin key file '%s'", path);
	ret->fd = fd < 0 ? -1 : fd;
	return is_first ? check_file(ret, err) : 0;
}

/* What says that the file's key is ours is there before the key is. */
static int note_pending(int data_fd, const uint8_t hash[HASH_LEN])
{
	_close_ int fd = openat(data_fd, PENDING,
				O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0600);
	char hex[2 * HASH_LEN + 1];
	int r = fd < 0 ? -errno : 0;

	hash_to_hex(hash, hex);
	if (r == 0)
		r = fd_write_all(fd, hex, strlen(hex));
	return r == 0 && fsync(fd) < 0 ? -errno : r;
}

static int write_file(const struct first_key_file *f, const struct admin_key *k, struct err *err)
{
	/* Emptied first: what the file holds is ours by the note, which is about to be another's.
	 */
	int r = ftruncate(f->fd, 0) < 0 ? -errno : 0;

	if (r == 0)
		r = note_pending(f->data_fd, k->row.hash);
	if (r == 0)
		r = fd_write_all(f->fd, k->text, strlen(k->text));
	if (r == 0)
		r = fd_write_all(f->fd, "\n", 1);
	return r < 0 ? err_sys(err, r, "admin key file '%s'", f->path) : 0;
}

int first_key_make(const struct store *store, struct auth_keys *keys,
		   const struct first_key_file *file, char *ret, size_t size, struct err *err)
{
	_cleanup_(admin_key_done) struct admin_key k = { 0 };
	int r;

	ret[0] = '\0';
	if (auth_keys_len(keys) > 0)
		return 0;
	r = file->fd >= 0 ? check_file(file, err) : 0;
	if (r == 0)
		r = admin_key_init(&k, "first", err);
	/* The file first: a key that is stored and known to nobody would lock everybody out. */
	if (r == 0 && file->fd >= 0)
		r = write_file(file, &k, err);
	if (r == 0)
		r = admin_key_put(&k, store, err);
	if (r == 0)
		r = auth_keys_put(keys, &k.row, err);
	if (r < 0)
		return r;
	(void)unlinkat(file->data_fd, PENDING, 0);
	return file->fd < 0 ? str_copy(ret, size, k.text) : 0;
}
