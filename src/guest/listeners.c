/* Which TCP ports listen in the box, and whose they are as far as this user may see. It looks at
 * the box's own /proc, from inside and as the box's user: what is there is the box's to lie about,
 * and every number of it is bounded. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "guest/ops.h"
#include "guest/proc_net.h"

#define TABLE_MAX ((size_t)4 << 20) /* bytes of a table: some 28,000 sockets */
#define LOOKS_MAX 16384u            /* descriptors that are looked at to find whose a socket is */
#define COMM_SIZE 65                /* of a command's name, which the kernel cuts at 15 */

struct listener {
	struct proc_net_socket socket;
	uint32_t pid; /* 0: not known */
	char command[COMM_SIZE];
};

struct listeners {
	int proc; /* owned */
	struct listener all[GUEST_PORTS_MAX];
	size_t count;
	size_t total; /* that there are */
	unsigned looks;
};

static int read_table(int dir, const char *name, struct buf *b)
{
	_close_ int fd = openat(dir, name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	char bytes[16384];
	ssize_t n;
	int r = 0;

	if (fd < 0)
		return errno == ENOENT ? 0 : -errno; /* a kernel without IPv6 */
	while (r == 0 && ((n = read(fd, bytes, sizeof(bytes))) > 0 || (n < 0 && errno == EINTR)))
		r = n > 0 ? buf_append(b, bytes, (size_t)n) : 0;
	if (r == 0 && n < 0)
		r = -errno;
	return r == -E2BIG ? 0 : r; /* the rest is not looked at */
}

static void add(struct listeners *l, const struct proc_net_socket *s)
{
	l->total++;
	if (l->count == GUEST_PORTS_MAX)
		return;
	l->all[l->count++] = (struct listener){ .socket = *s };
}

static int collect(struct listeners *l, const char *name, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct str rest, line;
	int r;

	buf_init(&b, TABLE_MAX);
	r = read_table(l->proc, name, &b);
	if (r < 0)
		return err_sys(err, r, "/proc/%s", name);
	rest = (struct str){ b.data, b.len };
	while (str_split(&rest, '\n', &line)) {
		struct proc_net_socket s;

		if (proc_net_parse(line, &s) == 0)
			add(l, &s);
	}
	return 0;
}

static void read_command(int dir, char dst[COMM_SIZE])
{
	_close_ int fd = openat(dir, "comm", O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	ssize_t n = fd < 0 ? -1 : read(fd, dst, COMM_SIZE - 1);

	dst[n > 0 ? n : 0] = '\0';
	dst[strcspn(dst, "\n")] = '\0';
}

static void note_owner(struct listeners *l, int dir, uint32_t pid, uint64_t inode)
{
	for (size_t i = 0; i < l->count; i++) {
		struct listener *one = &l->all[i];

		if (one->socket.inode != inode || one->pid != 0)
			continue;
		one->pid = pid;
		read_command(dir, one->command);
	}
}

/* "socket:[123]" */
static void look_at_fd(struct listeners *l, int dir, int fds, const char *name, uint32_t pid)
{
	char link[64];
	ssize_t n = readlinkat(fds, name, link, sizeof(link) - 1);
	uint64_t inode;

	if (n < 10 || strncmp(link, "socket:[", 8) != 0 || link[n - 1] != ']')
		return;
	link[n - 1] = '\0';
	if (parse_u64(link + 8, 1, UINT64_MAX, &inode) == 0)
		note_owner(l, dir, pid, inode);
}

static void look_at_process(struct listeners *l, const char *name, uint32_t pid)
{
	_close_ int dir = openat(l->proc, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int fd = dir < 0 ? -1 : openat(dir, "fd", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *fds = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!fds) { /* another user's, or gone */
		(void)fd_close(fd);
		return;
	}
	while (l->looks < LOOKS_MAX && (e = readdir(fds))) {
		l->looks++;
		look_at_fd(l, dir, dirfd(fds), e->d_name, pid);
	}
	(void)closedir(fds);
}

static bool is_known(const struct listeners *l)
{
	for (size_t i = 0; i < l->count; i++)
		if (l->all[i].pid == 0)
			return false;
	return true;
}

static int find_owners(struct listeners *l, struct chan *c)
{
	int fd = openat(l->proc, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *all = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;
	uint32_t pid;
	int r = 0;

	if (!all) {
		(void)fd_close(fd);
		return 0;
	}
	while (r == 0 && l->looks < LOOKS_MAX && !is_known(l) && (e = readdir(all))) {
		l->looks++;
		if (parse_u32(e->d_name, 1, INT32_MAX, &pid) == 0)
			look_at_process(l, e->d_name, pid);
		r = chan_check(c);
	}
	(void)closedir(all);
	return r;
}

/* By number; on several addresses, by these. */
static int compare(const void *a, const void *b)
{
	const struct proc_net_socket *x = &((const struct listener *)a)->socket;
	const struct proc_net_socket *y = &((const struct listener *)b)->socket;

	return x->port == y->port ? strcmp(x->address, y->address) : (int)x->port - (int)y->port;
}

static int tell(struct fileop *op, const struct listeners *l)
{
	int r = 0;

	for (size_t i = 0; i < l->count && r == 0; i++) {
		const struct listener *one = &l->all[i];

		r = chan_found(&op->chan, &(struct guest_found){ .kind = FOUND_PORT,
								 .column = one->pid,
								 .number = one->socket.port,
								 .path = one->socket.address,
								 .text = one->command });
	}
	op->count = l->total;
	return r;
}

int files_ports(struct fileop *op, struct err *err)
{
	_free_ struct listeners *l = calloc(1, sizeof(*l));
	_close_ int proc = openat(op->root_fd, "proc", O_PATH | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (!l)
		return err_sys(err, ENOMEM, "ports");
	if (proc < 0)
		return err_sys(err, errno, "/proc");
	l->proc = proc;
	r = collect(l, "net/tcp", err);
	if (r == 0)
		r = collect(l, "net/tcp6", err);
	qsort(l->all, l->count, sizeof(l->all[0]), compare);
	if (r == 0)
		r = find_owners(l, &op->chan);
	return r < 0 ? r : tell(op, l);
}
