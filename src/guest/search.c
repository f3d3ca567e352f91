#include "guest/search.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"

#define CHECK_EVERY 64              /* entries between two looks for a cancel */
#define MEMORY_BYTES (128ull << 20) /* that a search may take beyond what the process has */
#define LEVELS_ALL UINT32_MAX
#define OVER_TEXT "the search took more than %u ms of processor time"

/* ---- bounds ---- */

static void on_time_over(int signo, siginfo_t *info, void *context)
{
	struct search *s = info->si_value.sival_ptr;

	(void)signo;
	(void)context;
	if (s->holds_file) {
		s->is_late = 1;
		return;
	}
	(void)send(s->op->chan.sock, s->last_words, s->last_len, MSG_NOSIGNAL);
	_exit(1);
}

/* How much the process has mapped by now, which is little, unless it is a test's. */
static uint64_t mapped_bytes(void)
{
	char text[128];
	uint64_t pages = 0;

	if (fd_read_file_at(AT_FDCWD, "/proc/self/statm", text, sizeof(text)) < 0)
		return 0;
	text[strcspn(text, " ")] = '\0';
	(void)parse_u64(text, 0, UINT64_MAX >> 16, &pages);
	return pages * (uint64_t)sysconf(_SC_PAGESIZE);
}

static int bound_work(struct search *s, struct err *err)
{
	uint32_t asked = s->op->f->search.cpu_ms;
	uint32_t ms = asked && asked < GUEST_SEARCH_CPU_MS ? asked : GUEST_SEARCH_CPU_MS;
	struct itimerspec when = { .it_value = { ms / 1000, (long)(ms % 1000) * 1000000 } };
	struct sigaction act = { .sa_sigaction = on_time_over,
				 .sa_flags = SA_SIGINFO | SA_RESTART };
	struct sigevent event = { .sigev_notify = SIGEV_SIGNAL,
				  .sigev_signo = SIGPROF,
				  .sigev_value.sival_ptr = s };
	struct rlimit memory;
	char text[96];
	long n;

	(void)str_format(text, sizeof(text), OVER_TEXT, ms);
	n = guest_put_error(s->last_words, sizeof(s->last_words), s->op->chan.id, ETIMEDOUT, text);
	s->last_len = n > 0 ? (size_t)n : 0;
	memory.rlim_cur = memory.rlim_max = mapped_bytes() + MEMORY_BYTES;
	(void)setrlimit(RLIMIT_AS, &memory); /* a lower one is there already: as good */
	if (sigaction(SIGPROF, &act, NULL) < 0 ||
	    timer_create(CLOCK_PROCESS_CPUTIME_ID, &event, &s->timer) < 0)
		return err_sys(err, errno, "limit the time of a search");
	s->has_timer = true;
	if (timer_settime(s->timer, 0, &when, NULL) < 0)
		return err_sys(err, errno, "limit the time of a search");
	return 0;
}

void search_hold(struct search *s)
{
	s->holds_file = 1;
}

int search_release(struct search *s, struct err *err)
{
	s->holds_file = 0;
	if (!s->is_late)
		return 0;
	return err_set(err, ETIMEDOUT, "the search took too much processor time");
}

/* ---- the way ---- */

int search_begin(struct search *s, struct fileop *op, struct err *err)
{
	uint32_t levels = op->f->depth ? op->f->depth : LEVELS_ALL;
	_close_ int fd = -1;
	struct stat st;
	int r;

	s->op = op;
	s->spot = (struct path_spot)PATH_SPOT_NONE;
	r = bound_work(s, err);
	if (r < 0)
		return r;
	fd = path_open(op->root_fd, op->f->path, O_RDONLY | O_DIRECTORY, err);
	if (fd == -ENOTDIR)
		return path_locate_target(op->root_fd, op->f->path, false, &s->spot, err);
	if (fd < 0)
		return fd;
	if (fstat(fd, &st) < 0)
		return err_sys(err, errno, "stat '%.150s'", op->f->path);
	s->dev = st.st_dev;
	return walk_create(TAKE_FD(fd), levels, &s->walk, err);
}

void search_done(struct search *s)
{
	if (s->has_timer)
		(void)timer_delete(s->timer);
	s->has_timer = false;
	s->walk = walk_free(s->walk);
	path_spot_done(&s->spot);
}

static int next_one(struct search *s, struct walk_entry *ret, struct err *err)
{
	if (s->is_over)
		return 0;
	s->is_over = true;
	memset(ret, 0, sizeof(*ret));
	ret->path = "";
	ret->name = s->spot.name;
	ret->dir_fd = s->spot.dir;
	if (fstatat(ret->dir_fd, ret->name, &ret->st, AT_SYMLINK_NOFOLLOW) < 0)
		return err_sys(err, errno, "stat '%.150s'", s->op->f->path);
	return 1;
}

static bool fits(const char *glob, const struct walk_entry *e)
{
	if (strchr(glob, '/'))
		return fnmatch(glob, e->path, FNM_PATHNAME) == 0;
	return fnmatch(glob, e->name, 0) == 0;
}

/* Files of the kernel are made as they are read, and have neither sizes nor an end. */
static bool is_kernels(const struct walk_entry *e)
{
	static const unsigned long kinds[] = { 0x9fa0 /* proc */, 0x62656572 /* sysfs */,
					       0x27e0eb /* cgroup */, 0x63677270 /* cgroup2 */ };
	_close_ int fd = openat(e->dir_fd, e->name, O_PATH | O_NOFOLLOW | O_CLOEXEC);
	struct statfs fs;

	if (fd < 0 || fstatfs(fd, &fs) < 0)
		return true;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if ((unsigned long)fs.f_type == kinds[i])
			return true;
	return false;
}

static bool is_left_out(struct search *s, const struct walk_entry *e)
{
	const char *exclude = s->op->f->search.exclude;
	bool is_dir = S_ISDIR(e->st.st_mode);

	if (exclude[0] && fits(exclude, e)) {
		if (is_dir)
			walk_prune(s->walk);
		return true;
	}
	if (!is_dir || e->st.st_dev == s->dev)
		return false;
	if (is_kernels(e))
		walk_prune(s->walk);
	else
		s->dev = e->st.st_dev; /* most of what comes next is on it too */
	return false;
}

int search_next(struct search *s, struct walk_entry *ret, struct err *err)
{
	int r;

	if (!s->walk)
		return next_one(s, ret, err);
	for (;;) {
		r = ++s->seen % CHECK_EVERY == 0 ? chan_check(&s->op->chan) : 0;
		if (r == 0)
			r = walk_next(s->walk, ret, err);
		if (r <= 0)
			return r;
		if (!ret->failed && !is_left_out(s, ret))
			return 1;
	}
}

bool search_wants(const struct search *s, const struct walk_entry *e)
{
	const struct guest_search *q = &s->op->f->search;
	struct guest_entry entry = files_entry(&e->st, "", "");
	bool is_file = entry.type == ENTRY_FILE;

	if (q->types && !(q->types & 1u << entry.type))
		return false;
	if ((q->size_min || q->size_max) && !is_file)
		return false;
	if (entry.size < q->size_min || (q->size_max && entry.size > q->size_max))
		return false;
	if ((q->after_ns && entry.mtime_ns < q->after_ns) ||
	    (q->before_ns && entry.mtime_ns >= q->before_ns))
		return false;
	return q->name[0] == '\0' || fits(q->name, e);
}

int search_open(const struct walk_entry *e, struct stat *ret)
{
	const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	_close_ int fd = -1;

	if (!S_ISREG(e->st.st_mode))
		return -EINVAL;
	fd = openat(e->dir_fd, e->name, flags);
	if (fd < 0 || fstat(fd, ret) < 0)
		return -errno;
	return S_ISREG(ret->st_mode) ? TAKE_FD(fd) : -EINVAL; /* it may be another by now */
}

/* ---- what is told ---- */

int search_count(struct search *s)
{
	return ++s->op->count > s->op->f->search.limit;
}

int search_tell(struct search *s, const struct guest_found *f)
{
	int r = chan_found(&s->op->chan, f);

	return r == -E2BIG ? 0 : r; /* deeper than a frame can say: counted, not named */
}

int search_skip(struct search *s, const char *path, const char *why)
{
	return search_tell(s, &(struct guest_found){ FOUND_SKIPPED, 0, 0, 0, path, why });
}
