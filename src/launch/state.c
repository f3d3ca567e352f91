#include "launch/state.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <poll.h>
#include <string.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"

#define LOCK_MS 5000
#define LOCK_STEP_MS 5
#define BACKLOG 4 /* connections that wait to be accepted: a box has one client */
#define FILE_FLAGS (O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY)

bool state_is_open(const struct state *s)
{
	return s->dir >= 0;
}

static int check_dir(int fd, struct err *err)
{
	struct stat st;

	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "state directory");
	if (!S_ISDIR(st.st_mode))
		return err_set(err, ENOTDIR, "the state directory is not a directory");
	if (st.st_uid != geteuid() || st.st_mode & 077)
		return err_set(err, EPERM,
			       "the state directory must be the launcher's own, with mode 0700");
	return 0;
}

static int take_lock(struct state *s, struct err *err)
{
	uint64_t deadline = clock_now_ms() + LOCK_MS;

	s->lock = openat(s->dir, "lock", O_RDWR | O_CREAT | FILE_FLAGS, 0600);
	if (s->lock < 0)
		return err_sys(err, errno, "lock of the state directory");
	while (flock(s->lock, LOCK_EX | LOCK_NB) < 0) {
		if (errno != EWOULDBLOCK && errno != EINTR)
			return err_sys(err, errno, "lock of the state directory");
		if (clock_now_ms() >= deadline)
			return err_set(err, EBUSY,
				       "another launcher works with this state directory");
		(void)poll(NULL, 0, LOCK_STEP_MS);
	}
	return 0;
}

/* A small file, whole: length or -errno. */
static ssize_t read_small(const struct state *s, const char *name, char *data, size_t size)
{
	_close_ int fd = openat(s->dir, name, O_RDONLY | FILE_FLAGS);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) < 0)
		return -errno;
	if (!S_ISREG(st.st_mode) || st.st_size > (off_t)size)
		return -EINVAL;
	return fd_read_all(fd, data, size);
}

/* A file that is new or empty. (ext4 takes a truncation for the first half of a replacement, and
 * writes the second half to disk: 100 us.) */
static int write_small(const struct state *s, const char *name, const void *data, size_t n)
{
	_close_ int fd = openat(s->dir, name, O_WRONLY | O_CREAT | FILE_FLAGS, 0600);

	return fd < 0 ? -errno : fd_write_all(fd, data, n);
}

/* As another name first: what is there is always whole. */
static int replace_small(const struct state *s, const char *name, const void *data, size_t n)
{
	char temp[ID_LEN + sizeof(".tmp")];
	int r = str_format(temp, sizeof(temp), "%s.tmp", name);

	if (r < 0)
		return r;
	(void)unlinkat(s->dir, temp, 0); /* one that was left halfway */
	r = write_small(s, temp, data, n);
	if (r == 0 && renameat(s->dir, temp, s->dir, name) < 0)
		r = -errno;
	if (r < 0)
		(void)unlinkat(s->dir, temp, 0);
	return r;
}

static int read_instance(struct state *s, struct err *err)
{
	ssize_t n = read_small(s, "instance", s->instance, ID_LEN);
	int r;

	s->instance[n > 0 ? n : 0] = '\0';
	if (id_is_valid(s->instance))
		return 0;
	if (n < 0 && n != -ENOENT && n != -EINVAL)
		return err_sys(err, (int)n, "instance in the state directory");
	id_make(s->instance);
	r = replace_small(s, "instance", s->instance, ID_LEN);
	return r < 0 ? err_sys(err, r, "instance in the state directory") : 0;
}

static int read_boot_id(struct state *s, int proc_fd, struct err *err)
{
	char text[BOOT_ID_LEN + 2];
	int r = fd_read_file_at(proc_fd, "sys/kernel/random/boot_id", text, sizeof(text));

	if (r < BOOT_ID_LEN)
		return err_sys(err, r < 0 ? r : EINVAL, "boot id of the machine");
	text[BOOT_ID_LEN] = '\0';
	return str_copy(s->boot_id, sizeof(s->boot_id), text);
}

int state_open(struct state *s, int dir_fd, int proc_fd, struct err *err)
{
	int r = check_dir(dir_fd, err);

	if (r < 0)
		return r;
	s->dir = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (s->dir < 0)
		return err_sys(err, errno, "state directory");
	r = take_lock(s, err);
	if (r == 0)
		r = read_boot_id(s, proc_fd, err);
	return r < 0 ? r : read_instance(s, err);
}

void state_close(struct state *s)
{
	s->dir = fd_close(s->dir);
	s->lock = fd_close(s->lock);
}

/* Socket addresses are paths, with no way to say "below this descriptor": the working directory
 * says it. Whoever is cloned from us must not inherit that. */
static int with_address(const struct state *s, const char *box, int sock,
			int (*call)(int, const struct sockaddr *, socklen_t))
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };
	int r = str_format(a.sun_path, sizeof(a.sun_path), "%s.sock", box);

	if (r < 0)
		return r;
	if (fchdir(s->dir) < 0)
		return -errno;
	r = call(sock, (const struct sockaddr *)&a, sizeof(a)) < 0 ? -errno : 0;
	return chdir("/") < 0 && r == 0 ? -errno : r;
}

int state_listen(const struct state *s, const char *box, struct err *err)
{
	_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	int r;

	if (sock < 0)
		return err_sys(err, errno, "socket of a box");
	/* The file gets the socket's mode, so nobody else can ever open it. */
	r = fchmod(sock, 0600) < 0 ? -errno : with_address(s, box, sock, bind);
	if (r == 0 && listen(sock, BACKLOG) < 0)
		r = -errno;
	return r < 0 ? err_sys(err, r, "socket of a box") : TAKE_FD(sock);
}

int state_connect(const struct state *s, const char *box, struct err *err)
{
	_close_ int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
	int r;

	if (sock < 0)
		return err_sys(err, errno, "connection to a box");
	r = with_address(s, box, sock, connect);
	if (r == 0)
		r = fd_nonblock(sock, false);
	return r < 0 ? err_sys(err, r, "connection to box %s", box) : TAKE_FD(sock);
}

static int socket_name(const char *box, char dst[ID_LEN + sizeof(".sock")])
{
	return str_format(dst, ID_LEN + sizeof(".sock"), "%s.sock", box);
}

bool state_has_socket(const struct state *s, const char *box)
{
	char name[ID_LEN + sizeof(".sock")];
	struct stat st;

	return socket_name(box, name) == 0 &&
	       fstatat(s->dir, name, &st, AT_SYMLINK_NOFOLLOW) == 0 && S_ISSOCK(st.st_mode);
}

int state_reserve(const struct state *s, const char *box, struct err *err)
{
	int r = write_small(s, box, "", 0);

	return r < 0 ? err_sys(err, r, "record of a box") : 0;
}

int state_write(const struct state *s, const struct record *rec, bool first, struct err *err)
{
	char data[RECORD_MAX];
	long n = record_put(data, sizeof(data), rec);
	int r = (int)n;

	if (n > 0 && first)
		r = write_small(s, rec->id, data, (size_t)n);
	else if (n > 0)
		r = replace_small(s, rec->id, data, (size_t)n);
	return r < 0 ? err_sys(err, r, "record of a box") : 0;
}

int state_read(const struct state *s, const char *box, char *data, struct record *ret)
{
	ssize_t n = read_small(s, box, data, RECORD_MAX);
	struct record rec;
	int r = n < 0 ? (int)n : record_get(data, (size_t)n, &rec);

	if (r == 0 && strcmp(rec.id, box) != 0)
		r = -EINVAL;
	if (r == 0)
		*ret = rec;
	return r;
}

void state_remove(const struct state *s, const char *box)
{
	static const char *const ends[] = { "", ".sock", ".tmp" };
	char name[ID_LEN + sizeof(".sock")];

	for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
		if (str_format(name, sizeof(name), "%s%s", box, ends[i]) == 0)
			(void)unlinkat(s->dir, name, 0);
}

/* "<box>", "<box>.sock" or "<box>.tmp"; other names are not ours. */
static bool box_of(const char *name, char ret[ID_LEN + 1])
{
	const char *end = strchrnul(name, '.');

	if (end - name != ID_LEN || (*end && strcmp(end, ".sock") != 0 && strcmp(end, ".tmp") != 0))
		return false;
	memcpy(ret, name, ID_LEN);
	ret[ID_LEN] = '\0';
	return id_is_valid(ret);
}

static bool has_record(const struct state *s, const char *box)
{
	return faccessat(s->dir, box, F_OK, AT_SYMLINK_NOFOLLOW) == 0;
}

/* A box's record stands for all it has there; what has none is visited by the name that is left. */
static bool is_first_of(const struct state *s, const char *name, const char *box)
{
	return strcmp(name, box) == 0 || !has_record(s, box);
}

int state_each(const struct state *s, int (*visit)(void *arg, const char *box), void *arg,
	       struct err *err)
{
	int fd = openat(s->dir, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	struct dirent *e;
	int r = 0;

	if (!d) {
		r = err_sys(err, errno, "state directory");
		(void)fd_close(fd);
		return r;
	}
	while (r >= 0 && (e = readdir(d))) {
		char box[ID_LEN + 1];

		if (box_of(e->d_name, box) && is_first_of(s, e->d_name, box))
			r = visit(arg, box);
	}
	(void)closedir(d);
	return r < 0 ? r : 0;
}
