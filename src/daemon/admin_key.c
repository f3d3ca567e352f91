#include "daemon/admin_key.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "provider/privilege.h"

#define DATABASE "holt.db"

int admin_key_init(struct admin_key *k, const char *name, struct err *err)
{
	int r;

	id_make(k->id);
	k->row = (struct key_row){ .id = k->id,
				   .name = name,
				   .owner = ADMIN_KEY_OWNER,
				   .role = ROLE_ADMIN,
				   .created_ms = clock_wall_ms() };
	r = api_key_make(k->text, k->row.hash);
	return r < 0 ? err_sys(err, r, "make an admin key") : 0;
}

void admin_key_done(struct admin_key *k)
{
	explicit_bzero(k->text, sizeof(k->text));
}

static void on_stored(void *user, int r)
{
	*(int *)user = r;
}

int admin_key_put(const struct admin_key *k, const struct store *store, struct err *err)
{
	int result = 1, r = store_put_key(store, &k->row, on_stored, &result);

	if (r == 0)
		r = store_flush(store);
	if (r == 0) {
		store_dispatch(store);
		r = result;
	}
	return r == 0 ? 0 : err_sys(err, r < 0 ? r : -EIO, "store the key");
}

/* Root would leave files of root's that the daemon cannot open. */
static int become_owner(const char *data_path, struct err *err)
{
	_close_ int fd = open(data_path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	struct account owner = { 0 };
	struct stat dir, file;

	if (fd < 0 || fstat(fd, &dir) < 0)
		return err_sys(err, errno, "state directory '%s'", data_path);
	if (fstatat(fd, DATABASE, &file, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "state directory '%s': '" DATABASE "'", data_path);
	if (dir.st_uid == geteuid())
		return 0;
	if (geteuid() != 0)
		return err_set(err, EPERM,
			       "'%s' belongs to uid %u: only it and root can make a key there",
			       data_path, (unsigned)dir.st_uid);
	owner.uid = dir.st_uid;
	owner.gid = dir.st_gid;
	(void)str_format(owner.name, sizeof(owner.name), "uid %u", (unsigned)dir.st_uid);
	return privilege_drop(&owner, err);
}

static int put_in(const struct admin_key *k, const char *data_path, struct err *err)
{
	struct store_options o = { .dir = data_path };
	struct store store = { 0 };
	int r = store_open_sqlite(&o, &store, err);

	if (r == -EBUSY)
		return err_set(err, EBUSY, "a daemon runs in '%s': stop it first", data_path);
	if (r < 0)
		return r;
	r = admin_key_put(k, &store, err);
	store_close(&store);
	return r;
}

int admin_key_make_offline(const char *state_dir, const char *name, int64_t expires_ms,
			   char ret[API_KEY_SIZE], struct err *err)
{
	_cleanup_(admin_key_done) struct admin_key k;
	char data_path[4096];
	int r = str_format(data_path, sizeof(data_path), "%s/data", state_dir);

	if (r < 0)
		return err_set(err, ENAMETOOLONG, "the state directory's path is too long");
	r = admin_key_init(&k, name, err);
	if (r < 0)
		return r;
	k.row.expires_ms = expires_ms;
	r = become_owner(data_path, err);
	if (r == 0)
		r = put_in(&k, data_path, err);
	return r < 0 ? r : str_copy(ret, API_KEY_SIZE, k.text);
}
