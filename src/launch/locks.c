#include "launch/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/process.h"

#define SHARE 10                     /* a look takes no more than one part in so many of the time */
#define FEW (LOCKS_MACHINE_MAX / 64) /* too few to be the cause of too many */

static uint64_t pid_ns_of(const struct launch *l, pid_t pid)
{
	char path[32];
	struct stat st;

	(void)str_format(path, sizeof(path), "%d/ns/pid", (int)pid);
	return fstatat(l->proc_fd, path, &st, 0) < 0 ? 0 : (uint64_t)st.st_ino;
}

/* A box, by what all its processes have in common. */
struct space {
	uint64_t pid_ns;
	const struct box *box;
};

static int compare_spaces(const void *a, const void *b)
{
	uint64_t x = ((const struct space *)a)->pid_ns, y = ((const struct space *)b)->pid_ns;

	return (x > y) - (x < y);
}

static const struct box *find_box(const struct space *spaces, size_t n, uint64_t pid_ns)
{
	struct space key = { pid_ns, NULL }, *found = NULL;

	if (pid_ns != 0)
		found = bsearch(&key, spaces, n, sizeof(key), compare_spaces);
	return found ? found->box : NULL;
}

/* 0: it has none of its own, or not yet. The number of an adopted box's process is another's as
 * soon as that has ended: whoever still lives had it when we looked. */
static uint64_t space_of(const struct launch *l, const struct box *b, uint64_t own)
{
	uint64_t pid_ns = b->state == BOX_BUILDING || b->pid <= 0 ? 0 : pid_ns_of(l, b->pid);

	if (pid_ns == own || (b->pidfd >= 0 && process_wait(b->pidfd, 0) == 0))
		return 0;
	return pid_ns;
}

/* In the order of find_box(). */
static size_t list_spaces(const struct launch *l, struct space *ret)
{
	uint64_t own = pid_ns_of(l, getpid());
	size_t n = 0;

	MAP_FOREACH (l->by_id, it)
		ret[n++] = (struct space){ space_of(l, it.value, own), it.value };
	qsort(ret, n, sizeof(ret[0]), compare_spaces);
	return n;
}

/* The number may be another's by now; what the descriptor stands for is looked at again. */
static void end_holder(const struct launch *l, const struct lock_holder *h)
{
	_close_ int fd = (int)syscall(SYS_pidfd_open, h->pid, 0);

	if (fd >= 0 && pid_ns_of(l, h->pid) == h->pid_ns)
		process_kill(fd);
}

static void end_holders(const struct launch *l, const struct box *b,
			const struct lock_holder *holders, size_t n, uint64_t pid_ns)
{
	size_t count = 0;

	for (size_t i = 0; i < n; i++) {
		if (holders[i].pid_ns != pid_ns)
			continue;
		count += holders[i].count;
		if (holders[i].pid != b->pid)
			end_holder(l, &holders[i]);
	}
	log_warn("launch", "box %s held %zu file locks, at most %d: their processes were ended",
		 b->id, count, LOCKS_BOX_MAX);
}

static void judge(const struct launch *l, struct lock_table *t)
{
	size_t owned = 0, n_spaces, most;
	_free_ struct space *spaces = calloc(map_len(l->by_id), sizeof(*spaces));
	uint64_t pid_ns;

	if (!spaces || t->rows > LOCKS_MACHINE_MAX)
		return;
	n_spaces = list_spaces(l, spaces);
	for (size_t i = 0; i < t->rows; i++) {
		struct lock_holder *h = &t->holders[i];

		owned += h->count;
		h->pid_ns = pid_ns_of(l, h->pid);
		if (!find_box(spaces, n_spaces, h->pid_ns))
			h->pid_ns = 0;
	}
	/* Who fills the list with what is nobody's must not make others pay for it. */
	most = t->total < LOCKS_MACHINE_MAX || owned < LOCKS_MACHINE_MAX / 2 ? LOCKS_BOX_MAX : FEW;
	pid_ns = locks_judge(t->holders, t->rows, most);
	if (pid_ns != 0)
		end_holders(l, find_box(spaces, n_spaces, pid_ns), t->holders, t->rows, pid_ns);
}

static void lose_reader(struct launch *l)
{
	launch_unwatch(l, l->locks.sock);
	l->locks.sock = fd_close(l->locks.sock);
	l->locks.is_asked = false;
}

/* The time that it took is the pace of the next: no more than its share, whatever is in the list.
 */
static void on_table(struct launch *l, struct source *self)
{
	struct locks *k = (struct locks *)self;
	uint64_t now = clock_now_ms(), wait = (now - k->asked_ms) * SHARE;
	char byte;
	ssize_t n = recv(k->sock, &byte, 1, MSG_DONTWAIT);

	if (n < 0 && errno == EAGAIN)
		return;
	k->next_ms = now + (wait > LOCKS_LOOK_MS ? wait : (uint64_t)LOCKS_LOOK_MS);
	k->is_asked = false;
	if (n != 1)
		lose_reader(l);
	else if (k->table->total > LOCKS_BOX_MAX && map_len(l->by_id) > 0)
		judge(l, k->table);
}

static int find_reader(struct launch *l, struct err *err)
{
	struct locks *k = &l->locks;
	int r;

	if (k->sock >= 0)
		return 0;
	if (!k->table) {
		void *p = mmap(NULL, sizeof(*k->table), PROT_READ | PROT_WRITE,
			       MAP_SHARED | MAP_ANONYMOUS, -1, 0);

		if (p == MAP_FAILED)
			return err_sys(err, errno, "table of file locks");
		k->table = p;
	}
	r = k->sock = locks_start_reader(l, k->table, err);
	k->source.ready = on_table;
	if (r >= 0)
		r = launch_watch(l, k->sock, &k->source, err);
	return r;
}

/* When it fails, it is tried again as if it had been done. */
static void ask(struct launch *l, uint64_t now)
{
	struct locks *k = &l->locks;
	struct err err = { 0 };

	k->asked_ms = now;
	k->next_ms = now + LOCKS_LOOK_MS;
	if (find_reader(l, &err) < 0) {
		log_warn("launch", "file locks are not counted: %s", err.text);
		k->sock = fd_close(k->sock);
		return;
	}
	k->is_asked = send(k->sock, "", 1, MSG_NOSIGNAL) == 1;
	if (!k->is_asked)
		lose_reader(l);
}

void locks_init(struct locks *k)
{
	*k = (struct locks){ .sock = -1 };
}

void locks_done(struct locks *k)
{
	k->sock = fd_close(k->sock);
	if (k->table)
		(void)munmap(k->table, sizeof(*k->table));
	k->table = NULL;
}

int locks_look(struct launch *l)
{
	struct locks *k = &l->locks;
	uint64_t now = clock_now_ms();

	if (map_len(l->by_id) == 0 || k->is_asked)
		return -1;
	if (k->next_ms == 0) /* a client that runs one command is not made to wait for this */
		k->next_ms = now + LOCKS_LOOK_MS;
	if (now >= k->next_ms) {
		ask(l, now);
		return LOCKS_LOOK_MS;
	}
	return (int)(k->next_ms - now);
}
