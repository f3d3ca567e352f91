#include "launch/locks.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/launch.h"
#include "launch/process.h"

#define CHUNK 16384
#define PID_FIELD 5 /* "1: POSIX  ADVISORY  WRITE 4711 fe:00:23 0 EOF", blanks doubled or not */
#define SHARE 50    /* a look takes no more than one part in so many of the time */
#define FEW (LOCKS_MACHINE_MAX / 64) /* too few to be the cause of too many */

static pid_t parse_pid(struct str line)
{
	struct str word = { 0 };
	char text[16];
	uint32_t pid;
	int n = 0;

	while (n < PID_FIELD && str_split(&line, ' ', &word))
		n += word.len > 0 && !str_is(word, "->"); /* one that waits for another */
	if (n < PID_FIELD || str_format(text, sizeof(text), "%.*s", (int)word.len, word.data) < 0 ||
	    parse_u32(text, 1, INT32_MAX, &pid) < 0)
		return 0;
	return (pid_t)pid;
}

size_t locks_parse(const char *text, size_t size, pid_t *pids, size_t *n, size_t max)
{
	size_t done = 0;

	while (*n < max) {
		const char *end = memchr(text + done, '\n', size - done);
		pid_t pid;

		if (!end)
			break;
		pid = parse_pid((struct str){ text + done, (size_t)(end - text) - done });
		if (pid > 0)
			pids[(*n)++] = pid;
		done = (size_t)(end - text) + 1;
	}
	return done;
}

static int compare_pids(const void *a, const void *b)
{
	pid_t x = *(const pid_t *)a, y = *(const pid_t *)b;

	return (x > y) - (x < y);
}

size_t locks_count(pid_t *pids, size_t n, struct lock_holder *ret)
{
	size_t rows = 0;

	qsort(pids, n, sizeof(pids[0]), compare_pids);
	for (size_t i = 0; i < n; i++) {
		if (rows == 0 || ret[rows - 1].pid != pids[i])
			ret[rows++] = (struct lock_holder){ .pid = pids[i] };
		ret[rows - 1].count++;
	}
	return rows;
}

static int compare_holders(const void *a, const void *b)
{
	uint64_t x = ((const struct lock_holder *)a)->pid_ns;
	uint64_t y = ((const struct lock_holder *)b)->pid_ns;

	return (x > y) - (x < y);
}

uint64_t locks_judge(struct lock_holder *holders, size_t n, size_t most)
{
	uint64_t found = 0;

	qsort(holders, n, sizeof(holders[0]), compare_holders);
	for (size_t i = 0, sum = 0; i < n; i++) {
		bool goes_on = i > 0 && holders[i - 1].pid_ns == holders[i].pid_ns;

		sum = (goes_on ? sum : 0) + holders[i].count;
		if (holders[i].pid_ns == 0 || sum <= most)
			continue;
		most = sum;
		found = holders[i].pid_ns;
	}
	return found;
}

/* The first lines: what is newest on a processor comes first, and to read on costs the kernel the
 * square of what there is. */
static size_t read_locks(const struct launch *l, pid_t pids[LOCKS_MACHINE_MAX])
{
	_close_ int fd = openat(l->proc_fd, "locks", O_RDONLY | O_CLOEXEC);
	char text[CHUNK];
	size_t n = 0, have = 0;
	ssize_t r;

	while (fd >= 0 && n < LOCKS_MACHINE_MAX &&
	       (r = read(fd, text + have, sizeof(text) - have)) > 0) {
		size_t used;

		have += (size_t)r;
		used = locks_parse(text, have, pids, &n, LOCKS_MACHINE_MAX);
		memmove(text, text + used, have - used);
		have -= used;
	}
	return n;
}

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

static void judge(const struct launch *l, pid_t *pids, size_t n)
{
	size_t most = n < LOCKS_MACHINE_MAX ? LOCKS_BOX_MAX : FEW, rows, n_spaces;
	_free_ struct lock_holder *holders = calloc(n, sizeof(*holders));
	_free_ struct space *spaces = calloc(map_len(l->by_id), sizeof(*spaces));
	uint64_t pid_ns;

	if (!holders || !spaces)
		return;
	n_spaces = list_spaces(l, spaces);
	rows = locks_count(pids, n, holders);
	for (size_t i = 0; i < rows; i++) {
		holders[i].pid_ns = pid_ns_of(l, holders[i].pid);
		if (!find_box(spaces, n_spaces, holders[i].pid_ns))
			holders[i].pid_ns = 0;
	}
	pid_ns = locks_judge(holders, rows, most);
	if (pid_ns != 0)
		end_holders(l, find_box(spaces, n_spaces, pid_ns), holders, rows, pid_ns);
}

int locks_look(struct launch *l)
{
	uint64_t now = clock_now_ms(), cost;
	_free_ pid_t *pids = NULL;
	size_t n;

	if (map_len(l->by_id) == 0)
		return -1;
	if (now < l->locks.next_ms)
		return (int)(l->locks.next_ms - now);
	pids = calloc(LOCKS_MACHINE_MAX, sizeof(*pids));
	n = pids ? read_locks(l, pids) : 0;
	if (n > LOCKS_BOX_MAX)
		judge(l, pids, n);
	cost = clock_now_ms() - now;
	l->locks.next_ms =
		now + (cost * SHARE > LOCKS_LOOK_MS ? cost * SHARE : (uint64_t)LOCKS_LOOK_MS);
	return (int)(l->locks.next_ms - now);
}
