#include "launch/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
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
#include "launch/backlog.h"
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
	if (l->locks.sock >= 0)
		launch_unwatch(l, l->locks.sock);
	l->locks.sock = fd_close(l->locks.sock);
	l->locks.reader = 0;
	l->locks.is_asked = false;
}

static void *drop_table(struct lock_table *table)
{
	if (table)
		(void)munmap(table, sizeof(*table));
	return NULL;
}

/* Who looks after the machine is told; the next attempt is due as if this one had worked. */
static void miss(struct launch *l, const char *why)
{
	log_warn("launch", "file locks are not counted: %s", why);
	lose_reader(l);
	builds_uncounted(l, ++l->locks.missed);
}

static void succeed(struct launch *l)
{
	if (l->locks.missed > 0)
		log_info("launch", "file locks are counted again");
	l->locks.missed = 0;
	builds_uncounted(l, 0);
}

/* It may still write into the table when what holds it lets go: the next reader gets another. */
static void give_up_reader(struct launch *l)
{
	struct locks *k = &l->locks;
	char detail[PROCESS_DETAIL_MAX];

	process_describe(l->proc_fd, k->reader, detail, sizeof(detail));
	log_error("launch", "the reader of file locks has not answered in %u ms; process %d: %s",
		  l->builds.limit_ms, (int)k->reader, detail);
	if (k->reader > 0) {
		(void)kill(k->reader, SIGKILL); /* not reaped, so the number is its own */
		k->stuck[k->n_stuck++] = k->reader;
	}
	k->table = drop_table(k->table);
	miss(l, "the reader does not answer");
}

bool locks_reaped(struct launch *l, pid_t pid)
{
	struct locks *k = &l->locks;

	if (pid == k->reader) {
		k->reader = 0; /* the end of its socket is seen to where that is read */
		return true;
	}
	for (unsigned i = 0; i < k->n_stuck; i++)
		if (k->stuck[i] == pid) {
			k->stuck[i] = k->stuck[--k->n_stuck];
			return true;
		}
	return false;
}

bool locks_are_lost(const struct launch *l)
{
	return l->locks.missed >= LOCKS_TRIES || l->locks.n_stuck == LOCKS_TRIES;
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
	if (n != 1) {
		miss(l, "the reader has ended");
		return;
	}
	succeed(l);
	if (k->table->total > LOCKS_BOX_MAX && map_len(l->by_id) > 0)
		judge(l, k->table);
	backlog_judge(l, &k->table->backlog);
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
	r = k->sock = locks_start_reader(l, k->table, &k->reader, err);
	k->source.ready = on_table;
	if (r >= 0)
		r = launch_watch(l, k->sock, &k->source, err);
	return r;
}

static void ask(struct launch *l, uint64_t now)
{
	struct locks *k = &l->locks;
	struct err err = { 0 };

	k->asked_ms = now;
	k->next_ms = now + LOCKS_LOOK_MS;
	if (find_reader(l, &err) < 0) {
		miss(l, err.text);
		return;
	}
	backlog_ask(l, &k->table->backlog);
	k->is_asked = send(k->sock, "", 1, MSG_NOSIGNAL) == 1;
	if (!k->is_asked)
		miss(l, "the reader has ended");
}

void locks_init(struct locks *k)
{
	*k = (struct locks){ .sock = -1 };
}

void locks_done(struct locks *k)
{
	k->sock = fd_close(k->sock);
	if (k->reader > 0)
		(void)kill(k->reader, SIGKILL);
	k->table = drop_table(k->table);
}

/* An answer that is there already is read first: we may have stood still ourselves. */
static int wait_for_answer(struct launch *l, uint64_t now)
{
	uint64_t passed = now - l->locks.asked_ms;

	if (passed < l->builds.limit_ms)
		return (int)(l->builds.limit_ms - passed);
	if (process_hear(l->locks.sock, 0) < 0)
		give_up_reader(l);
	return 0;
}

int locks_look(struct launch *l)
{
	struct locks *k = &l->locks;
	uint64_t now = clock_now_ms();

	if (k->is_asked)
		return wait_for_answer(l, now);
	if ((map_len(l->by_id) == 0 && k->missed == 0) || k->n_stuck == LOCKS_TRIES)
		return -1;
	if (k->next_ms == 0) /* a client that runs one command is not made to wait for this */
		k->next_ms = now + LOCKS_LOOK_MS;
	if (now >= k->next_ms) {
		ask(l, now);
		return LOCKS_LOOK_MS;
	}
	return (int)(k->next_ms - now);
}
