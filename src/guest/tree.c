#include "guest/tree.h"

#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "guest/limits.h"
#include "spec/guest.h"

#define STOP_PASSES 20
#define STOPPED_MAX 256 /* processes that stand still on their own account, remembered */
#define STAT_TEXT_MAX 1024

int tree_open(struct tree_view *v, struct err *err)
{
	v->is_everything = getpid() == 1;
	v->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	v->load_fd = openat(v->proc_fd, "loadavg", O_RDONLY | O_CLOEXEC);
	v->spare_fd = fcntl(v->proc_fd, F_DUPFD_CLOEXEC, 3);
	if (v->spare_fd < 0)
		return err_sys(err, errno, "open '/proc'");
	return 0;
}

void tree_close(struct tree_view *v)
{
	v->proc_fd = fd_close(v->proc_fd);
	v->load_fd = fd_close(v->load_fd);
	v->spare_fd = fd_close(v->spare_fd);
}

/* "0.00 0.01 0.05 1/123 4567\n": the last word. */
int64_t tree_newest(const struct tree_view *v)
{
	char text[64];
	ssize_t n = v->load_fd < 0 ? -1 : pread(v->load_fd, text, sizeof(text) - 1, 0);
	char *word;
	uint32_t pid;

	if (n < 2)
		return -1;
	text[n - 1] = '\0';
	word = strrchr(text, ' ');
	return word && parse_u32(word + 1, 1, INT32_MAX, &pid) == 0 ? (int64_t)pid : -1;
}

enum tree_claim tree_claim_of(uint64_t locks, uint64_t rss, uint64_t mark)
{
	if (locks == RLIM_INFINITY && rss == RLIM_INFINITY)
		return TREE_FREE;
	if (locks > GUEST_MARK_SUM || rss > GUEST_MARK_SUM || locks + rss != GUEST_MARK_SUM)
		return TREE_TAMPERED;
	return locks == mark ? TREE_MEMBER : TREE_FREE;
}

int tree_parse_limits(const char *text, uint64_t *ret_locks, uint64_t *ret_rss)
{
	uint64_t soft, locks, rss;

	if (limits_find(text, "Max file locks", &soft, &locks) < 0 ||
	    limits_find(text, "Max resident set", &soft, &rss) < 0)
		return -EINVAL;
	*ret_locks = locks;
	*ret_rss = rss;
	return 0;
}

int tree_parse_stat(const char *text, char *ret_state, unsigned *ret_threads)
{
	/* Field 2 is the program's name in brackets; it may hold brackets, blanks and newlines. */
	const char *p = strrchr(text, ')');
	struct str rest, word = { 0 };
	unsigned threads = 0;
	char state;

	if (!p || p[1] != ' ' || !p[2])
		return -EINVAL;
	state = p[2];
	rest = str_of(p + 2);
	for (int field = 3; field <= 20; field++)
		if (!str_split(&rest, ' ', &word))
			return -EINVAL;
	for (size_t i = 0; i < word.len && i < 9; i++)
		threads = threads * 10 + (unsigned)(word.data[i] - '0') % 10;
	*ret_state = state;
	*ret_threads = threads;
	return 0;
}

/* prlimit() is a hundred times quicker but for processes of our own user only; the file is open to
 * whom /proc shows the process. */
static int read_limits(struct tree_view *v, const char *name, pid_t pid, uint64_t *ret_locks,
		       uint64_t *ret_rss)
{
	char path[32], text[LIMITS_TEXT_MAX];
	struct rlimit locks, rss;
	int r;

	if (prlimit(pid, RLIMIT_LOCKS, NULL, &locks) == 0 &&
	    prlimit(pid, RLIMIT_RSS, NULL, &rss) == 0) {
		*ret_locks = locks.rlim_max;
		*ret_rss = rss.rlim_max;
		return 0;
	}
	r = str_format(path, sizeof(path), "%s/limits", name);
	if (r == 0)
		r = fd_read_file_at(v->proc_fd, path, text, sizeof(text));
	return r < 0 ? r : tree_parse_limits(text, ret_locks, ret_rss);
}

/* The first thread of a process may be a zombie while others run. */
static bool is_alive(struct tree_view *v, const char *name, char *ret_state)
{
	char path[32], text[STAT_TEXT_MAX];
	unsigned threads;

	if (str_format(path, sizeof(path), "%s/stat", name) < 0 ||
	    fd_read_file_at(v->proc_fd, path, text, sizeof(text)) < 0 ||
	    tree_parse_stat(text, ret_state, &threads) < 0)
		return false;
	return (*ret_state != 'Z' && *ret_state != 'X') || threads > 1;
}

/* One look at all processes: what it does with members and with others, and what it found. */
struct pass {
	struct tree_view *view;
	uint64_t mark;
	int signo;             /* for each live member; 0: none */
	int alive, running;    /* members; those of them that a stop has not reached */
	struct stopped *known; /* others that stand still: noted, or with do_continue left so */
	bool do_continue;
	pid_t except; /* not looked at; 0: none */
};

/* Those who stood still before we stopped everybody. */
struct stopped {
	size_t n;
	pid_t pids[STOPPED_MAX];
};

static bool is_known(const struct stopped *known, pid_t pid)
{
	for (size_t i = 0; i < known->n; i++)
		if (known->pids[i] == pid)
			return true;
	return false;
}

static void visit_other(struct pass *p, const char *name, pid_t pid)
{
	char state;

	if (!p->known)
		return;
	if (p->do_continue) {
		if (!is_known(p->known, pid))
			(void)kill(pid, SIGCONT);
	} else if (is_alive(p->view, name, &state) && state == 'T' && p->known->n < STOPPED_MAX) {
		p->known->pids[p->known->n++] = pid;
	}
}

static void visit_member(struct pass *p, const char *name, pid_t pid)
{
	bool is_urgent = p->signo == SIGSTOP;
	char state;

	/* What runs may have started another by the time its state is read. */
	if (is_urgent)
		(void)kill(pid, p->signo);
	if (!is_alive(p->view, name, &state))
		return;
	p->alive++;
	if (p->signo > 0 && !is_urgent)
		(void)kill(pid, p->signo);
	/* D: waits in the kernel, for a child of vfork() at the longest, and cannot fork meanwhile.
	 */
	if (!strchr("TtDZ", state))
		p->running++;
}

static void visit(struct pass *p, const char *name)
{
	uint64_t locks, rss;
	enum tree_claim claim;
	uint32_t pid;
	int r;

	if (parse_u32(name, 2, INT32_MAX, &pid) < 0 || (pid_t)pid == getpid() ||
	    (pid_t)pid == p->except)
		return;
	r = read_limits(p->view, name, (pid_t)pid, &locks, &rss);
	if (r < 0) {
		/* Gone meanwhile; or we are out of something, and then nothing may pass for gone.
		 */
		p->alive += r != -ENOENT && r != -ESRCH;
		visit_other(p, name, (pid_t)pid);
		return;
	}
	claim = tree_claim_of(locks, rss, p->mark);
	if (claim == TREE_MEMBER || (claim == TREE_TAMPERED && p->view->is_everything))
		visit_member(p, name, (pid_t)pid);
	else
		visit_other(p, name, (pid_t)pid);
}

struct kernel_dirent {
	uint64_t inode;
	int64_t offset;
	uint16_t size;
	uint8_t type;
	char name[];
};

/* getdents64 itself: opendir() would allocate and reopen for every pass. */
static int visit_all(struct pass *p)
{
	_Alignas(struct kernel_dirent) char entries[4096];
	long n;

	if (lseek(p->view->proc_fd, 0, SEEK_SET) < 0)
		return -errno;
	while ((n = syscall(SYS_getdents64, p->view->proc_fd, entries, sizeof(entries))) > 0) {
		for (long at = 0; at < n;) {
			const struct kernel_dirent *d = (const void *)(entries + at);

			if (d->name[0] >= '1' && d->name[0] <= '9')
				visit(p, d->name);
			at += d->size;
		}
	}
	return n < 0 ? -errno : 0;
}

static int run_pass(struct pass *p)
{
	int r;

	p->alive = p->running = 0;
	/* Room for the files of /proc, however many descriptors are in use. */
	(void)close(p->view->spare_fd);
	r = visit_all(p);
	p->view->spare_fd = fcntl(p->view->proc_fd, F_DUPFD_CLOEXEC, 3);
	return r;
}

int tree_count_but(struct tree_view *v, uint64_t mark, pid_t except)
{
	struct pass p = { .view = v, .mark = mark, .except = except };
	int r = run_pass(&p);

	return r < 0 ? r : p.alive;
}

int tree_count(struct tree_view *v, uint64_t mark)
{
	return tree_count_but(v, mark, 0);
}

int tree_signal(struct tree_view *v, uint64_t mark, int signo)
{
	struct pass p = { .view = v, .mark = mark, .signo = signo };
	int r = run_pass(&p);

	return r < 0 ? r : p.alive;
}

/* Whoever got the signal still needs a processor to stop: 20 us at first, 2 ms at the most. */
static void wait_briefly(int pass)
{
	struct timespec t = { .tv_nsec = pass < 7 ? 20000L << pass : 2000000 };

	(void)nanosleep(&t, NULL);
}

/* True when a pass has found none that still runs. */
static bool stop_members(struct pass *p)
{
	p->signo = SIGSTOP;
	for (int i = 0; i < STOP_PASSES; i++) {
		if (run_pass(p) < 0)
			return false;
		/* The first pass has only just stopped them; D in it may mean a fork under way. */
		if (p->alive == 0 || (i > 0 && p->running == 0))
			return true;
		wait_briefly(i);
	}
	return false;
}

/* kill(-1) is one step to the kernel: a fork under way gives its child the signal as well, so
 * nothing is left that could fork. */
int tree_kill_still(struct tree_view *v, uint64_t mark)
{
	struct stopped known = { 0 };
	struct pass p = { .view = v, .mark = mark, .known = &known };
	int r;

	assert(v->is_everything && getpid() == 1); /* else the machine would stand still */
	(void)run_pass(&p);
	(void)kill(-1, SIGSTOP);
	p.known = NULL;
	p.signo = SIGKILL;
	r = run_pass(&p);
	p.known = &known;
	p.do_continue = true;
	(void)run_pass(&p);
	return r;
}

int tree_kill(struct tree_view *v, uint64_t mark)
{
	struct pass p = { .view = v, .mark = mark };
	bool is_stopped = stop_members(&p);
	int r;

	if (!is_stopped && v->is_everything)
		return tree_kill_still(v, mark);
	p.signo = SIGKILL;
	r = run_pass(&p);
	if (r < 0)
		return r;
	return is_stopped ? 0 : -EBUSY;
}
