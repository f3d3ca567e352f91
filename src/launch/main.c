/* holt-launch: builds boxes for one client. Nothing of it is reachable from a network. */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <linux/keyctl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/clock.h"
#include "base/fd.h"
#include "base/landlock.h"
#include "base/log.h"
#include "base/machine.h"
#include "base/map.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/btrfs.h"
#include "launch/image.h"
#include "launch/job.h"
#include "launch/launch.h"
#include "launch/process.h"
#include "launch/zygote.h"

#define EVENTS 1 /* handling one may free the object of another */
#define POOL_TICK_MS 100
#define QUIET_MS 3 /* without a claim or an end: then the pools are filled up */
#define CALM_MS 50 /* and then the stock: until there is calm, boxes that end give theirs back */
#define BOXES_MAX 65536
#define DYING_MS 2000
#define ENDING_MS 20000 /* for all boxes, at our end */

struct options {
	uint32_t fd, spare_netns, spare_cgroups;
	uint32_t state;        /* a directory's descriptor; 0: none */
	uint64_t layers_bytes; /* of an image that boxes write to; 0: they write to memory */
	uint32_t build_ms;     /* for a box to become ready; 0: the usual */
	struct cgroups_options cgroup;
};

int launch_watch(struct launch *l, int fd, struct source *source, struct err *err)
{
	struct epoll_event e = { .events = EPOLLIN, .data.ptr = source };

	if (epoll_ctl(l->epoll_fd, EPOLL_CTL_ADD, fd, &e) < 0)
		return err_sys(err, errno, "watch a descriptor");
	return 0;
}

void launch_unwatch(struct launch *l, int fd)
{
	(void)epoll_ctl(l->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static void reap(struct launch *l, struct source *self)
{
	struct signalfd_siginfo info;
	struct rusage ru;
	int status;
	pid_t pid;

	(void)self;
	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		if (info.ssi_signo != SIGCHLD)
			l->closing = true;
	while ((pid = wait4(-1, &status, WNOHANG, &ru)) > 0)
		if (!zygote_reaped(l, pid) && !cell_reaped(l, pid) && !locks_reaped(l, pid))
			boxes_reaped(l, pid, status, &ru);
}

static int userns_error(struct err *err)
{
	int code = errno;

	if (code == ENOSPC)
		return err_set(err, code,
			       "user namespaces are used up or disabled: "
			       "sysctl user.max_user_namespaces=10000, or use sudo");
	return err_set(err, code,
		       "user namespaces are disabled for ordinary users: run "
		       "'sysctl kernel.unprivileged_userns_clone=1' or 'sysctl "
		       "kernel.apparmor_restrict_unprivileged_userns=0' as root, or use sudo");
}

/* An ordinary user becomes root of a user namespace that holds nothing but him. */
static int enter_rootless(struct launch *l, struct err *err)
{
	char map[32];
	uid_t uid = geteuid();
	gid_t gid = getegid();
	int r;

	l->rootless = uid != 0;
	if (!l->rootless)
		return 0;
	if (unshare(CLONE_NEWUSER) < 0)
		return userns_error(err);
	r = fd_write_file_at(l->proc_fd, "self/setgroups", "deny");
	(void)str_format(map, sizeof(map), "0 %u 1\n", uid);
	if (r == 0)
		r = fd_write_file_at(l->proc_fd, "self/uid_map", map);
	(void)str_format(map, sizeof(map), "0 %u 1\n", gid);
	if (r == 0)
		r = fd_write_file_at(l->proc_fd, "self/gid_map", map);
	if (r < 0) {
		errno = -r;
		return userns_error(err);
	}
	return 0;
}

static int own_mounts(struct launch *l, struct err *err)
{
	if (unshare(CLONE_NEWNS) < 0)
		return errno == EPERM
			       ? err_set(err, EPERM,
					 "mount namespaces need root or user namespaces: use "
					 "sudo, or see holt doctor")
			       : err_sys(err, errno, "mount namespace");
	if (mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
		return err_sys(err, errno, "make mounts private");
	l->view_ns = openat(l->proc_fd, "self/ns/mnt", O_RDONLY | O_CLOEXEC);
	return l->view_ns < 0 ? err_sys(err, errno, "mount namespace") : 0;
}

static int watch_basics(struct launch *l, struct err *err)
{
	sigset_t set;
	int r;

	(void)sigemptyset(&set);
	(void)sigaddset(&set, SIGCHLD);
	(void)sigaddset(&set, SIGTERM);
	(void)sigaddset(&set, SIGINT);
	(void)sigaddset(&set, SIGHUP);
	(void)sigprocmask(SIG_BLOCK, &set, NULL);
	(void)signal(SIGPIPE, SIG_IGN);
	l->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	l->signal_fd = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
	if (l->epoll_fd < 0 || l->signal_fd < 0)
		return err_sys(err, errno, "event loop");
	l->client.ready = server_ready;
	l->signals.ready = reap;
	r = launch_watch(l, l->sock, &l->client, err);
	return r < 0 ? r : launch_watch(l, l->signal_fd, &l->signals, err);
}

/* For all that we start, beginning with those who handle what boxes made: a box could not raise a
 * hard limit of 0 to what keeps core handlers away. Who has that limit and no privilege is told. */
static void limit_cores(const struct launch *l)
{
	const struct rlimit core = { CORE_LIMIT, CORE_LIMIT };
	char pattern[256];

	bool is_limited = setrlimit(RLIMIT_CORE, &core) == 0;

	if (fd_read_file_at(l->proc_fd, "sys/kernel/core_pattern", pattern, sizeof(pattern)) < 0)
		return;
	if (pattern[0] == '@') /* since Linux 6.16 */
		log_warn("launch", "a crash in a box is sent to the machine's service for core "
				   "files, for which there is no limit: see holt doctor");
	if (pattern[0] == '|' && !is_limited)
		log_warn("launch",
			 "the hard limit of core files is 0: a crash in a box starts the machine's "
			 "core handler; set it to 1 or more (limits.conf, LimitCORE=)");
}

static void process_setup(const struct launch *l)
{
	struct rlimit files;

	limit_cores(l);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
	/* Rootless, the maps of boxes are written through /proc, which a non-dumpable child closes.
	 */
	if (!l->rootless)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0);
	(void)syscall(SYS_keyctl, KEYCTL_JOIN_SESSION_KEYRING, NULL, 0, 0, 0);
	(void)umask(022);
	if (getrlimit(RLIMIT_NOFILE, &files) == 0) {
		files.rlim_cur = files.rlim_max;
		(void)setrlimit(RLIMIT_NOFILE, &files);
	}
}

/* Where the boxes of the launcher before us are, if there are any, else below our own group. */
static int open_cgroups(struct launch *l, const struct options *o, struct err *err)
{
	struct cgroups_options at = o->cgroup;
	_free_ char *found = NULL;
	int r = adopt_find_groups(l, &found, err);

	if (r < 0)
		return r;
	at.instance = state_is_open(&l->state) ? l->state.instance : NULL;
	at.self = found;
	r = cgroups_open(&at, &l->cgroups, err);
	if (r == 0)
		(void)cgroups_sweep(l->cgroups);
	return r;
}

static int open_ids(struct launch *l, struct err *err)
{
	struct ids_options o = { .proc_fd = l->proc_fd };

	if (l->rootless)
		return 0;
	o.instance = state_is_open(&l->state) ? l->state.instance : NULL;
	return ids_init(&l->ids, &o, err);
}

/* What no box gets more of, and all of them together. */
static void bound_boxes(struct launch *l)
{
	struct machine m;

	machine_read(&m);
	spec_limits_of_machine(&m, l->rootless, &l->most);
	l->most.nofile = 0; /* check_nofile() has its own */
	l->gauge = machine_gauge_open();
	l->reserve_bytes = machine_reserve(&m);
	cgroups_bound(l->cgroups, m.memory_bytes - l->reserve_bytes, m.processes / 8 * 7);
}

/* What is shared with other launchers, and what was left by the one before us. Nothing may be taken
 * from it before we know what that one's boxes have. */
static int setup_shared(struct launch *l, const struct options *o, struct err *err)
{
	int r = o->state ? state_open(&l->state, (int)o->state, l->proc_fd, err) : 0;

	if (r == 0)
		r = open_cgroups(l, o, err);
	if (r == 0) {
		bound_boxes(l);
		r = open_ids(l, err);
	}
	if (r == 0)
		r = watch_basics(l, err);
	return r < 0 || !o->state ? r : adopt_boxes(l, err);
}

static int setup(struct launch *l, const struct options *o, struct err *err)
{
	int r = 0;

	l->proc_fd = open("/proc", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	if (l->proc_fd < 0)
		return err_sys(err, errno, "/proc");
	r = enter_rootless(l, err);
	if (r == 0) {
		process_setup(l);
		r = l->init_fd = image_load("holt-init", err);
	}
	if (r >= 0)
		r = setup_shared(l, o, err);
	if (r == 0)
		r = own_mounts(l, err);
	if (r == 0)
		r = rooms_open(l, o->layers_bytes, err);
	if (r == 0)
		r = disk_open(l, err);
	if (r == 0)
		r = netns_init(&l->netns, l->proc_fd, o->spare_netns, err);
	for (int p = 0; p < PROFILE_COUNT && r == 0; p++)
		r = seccomp_build((enum seccomp_profile)p, &l->filters[p], err);
	if (r == 0)
		r = zygotes_open(l, err);
	l->landlock_abi = landlock_abi();
	l->cell_want = o->spare_cgroups < CELL_STOCK_MAX ? o->spare_cgroups : CELL_STOCK_MAX;
	return r;
}

static void destroy_all(struct launch *l)
{
	MAP_FOREACH (l->by_id, it)
		boxes_destroy(l, it.value);
}

static bool has_children(const struct launch *l)
{
	return map_len(l->by_pid) > 0;
}

/* One more child has ended, or does so before the deadline. */
static bool wait_for_child(struct launch *l, uint64_t deadline_ms)
{
	uint64_t now = clock_now_ms();
	struct signalfd_siginfo info;
	struct rusage ru;
	int status;
	pid_t pid = wait4(-1, &status, WNOHANG, &ru);

	if (pid > 0 && !zygote_reaped(l, pid) && !cell_reaped(l, pid))
		boxes_reaped(l, pid, status, &ru);
	if (pid != 0)
		return pid > 0 || errno == EINTR;
	if (now >= deadline_ms)
		return false;
	(void)process_hear(l->signal_fd, (int)(deadline_ms - now));
	while (read(l->signal_fd, &info, sizeof(info)) == (ssize_t)sizeof(info))
		;
	return true;
}

/* Until none is left, or none has ended for a while. Those that still wait to be killed are, as
 * others end. */
static void wait_for_children(struct launch *l)
{
	uint64_t deadline_ms = clock_now_ms() + ENDING_MS;
	size_t left = map_len(l->by_pid);

	while (has_children(l) && clock_now_ms() < deadline_ms) {
		boxes_end_waiting(l);
		if (!wait_for_child(l, clock_now_ms() + ENDING_SLOW_MS))
			break;
		if (map_len(l->by_pid) < left) {
			left = map_len(l->by_pid);
			deadline_ms = clock_now_ms() + ENDING_MS;
		}
	}
}

/* What cannot be killed outlives us: its ids are seen to be in use, its group is swept later. Those
 * whose turn to end never came are killed as well. */
static void leave_children(struct launch *l)
{
	struct box *found;

	do {
		found = NULL;
		MAP_FOREACH (l->by_pid, it)
			found = it.value;
		if (found) {
			(void)kill(found->pid, SIGKILL); /* not reaped, so the number is its own */
			(void)boxes_free(l, found);
		}
	} while (found);
}

static struct box *next_adopted(const struct launch *l)
{
	MAP_FOREACH (l->by_id, it) {
		struct box *b = it.value;

		if (b->pidfd >= 0 && b->turn.state >= ENDING_UNDER_WAY)
			return b;
	}
	return NULL;
}

/* What is left is dying. Of an adopted box that takes longer the record stays, for the next. */
static void wait_for_boxes(struct launch *l)
{
	struct box *b;

	wait_for_children(l);
	leave_children(l);
	while ((b = next_adopted(l))) {
		if (process_wait(b->pidfd, DYING_MS) == 0)
			boxes_ended(l, &b->source);
		else
			(void)boxes_free(l, b);
	}
}

/* One thing at a time, so that a request never waits for more than one. */
static bool idle_work(struct launch *l, uint64_t idle_ms)
{
	boxes_end_waiting(l);
	if (pool_refill(l, idle_ms >= QUIET_MS))
		return true;
	if (rooms_tidy(l, idle_ms >= CALM_MS) || (idle_ms >= QUIET_MS && cell_cool(l)))
		return true;
	/* A client that wants one box only is not made to wait for more. */
	return idle_ms >= CALM_MS && (l->claims > 1 || pool_is_active(l)) &&
	       (netns_refill(&l->netns) || cell_refill(l));
}

static int wait_ms(const struct launch *l, bool busy, uint64_t idle_ms)
{
	if (busy)
		return 0;
	if (idle_ms < CALM_MS)
		return idle_ms < QUIET_MS ? QUIET_MS : CALM_MS;
	return pool_is_active(l) || l->cooling_count > 0 || l->rooms.left > 0
		       ? POOL_TICK_MS
		       : ending_wait_ms(&l->ending, clock_now_ms());
}

/* Of two times to wait; -1: for ever. */
static int sooner(int a, int b)
{
	return a < 0 || (b >= 0 && b < a) ? b : a;
}

static void serve(struct launch *l)
{
	struct epoll_event events[EVENTS];
	bool busy = true;
	uint64_t idle_ms = 0;

	while (!l->closing) {
		int n = epoll_wait(
			l->epoll_fd, events, EVENTS,
			builds_wait_ms(l, sooner(wait_ms(l, busy, idle_ms), locks_look(l))));

		for (int i = 0; i < n && !l->closing; i++) {
			struct source *s = events[i].data.ptr;

			s->ready(l, s);
		}
		if (!l->closing)
			builds_turn(l);
		idle_ms = clock_now_ms() - l->busy_ms;
		busy = n > 0 || idle_work(l, idle_ms);
	}
	jobs_close(l); /* boxes that stand still for one go on */
	boxes_abandon_unborn(l);
	persist_leave(l);
	destroy_all(l);
	wait_for_boxes(l);
}

static void teardown(struct launch *l)
{
	l->closing = true;
	jobs_close(l);
	server_again(l);  /* which answers nothing any more */
	persist_leave(l); /* also when we could not start after all */
	zygotes_close(l);
	locks_done(&l->locks);
	while (l->cell_count > 0)
		cell_done(l, &l->cells[--l->cell_count]);
	while (l->cooling_count > 0)
		cell_done(l, &l->cooling[--l->cooling_count]);
	cell_abandon_held(l);
	if (l->cgroups)
		l->cgroups = cgroups_close(l->cgroups);
	for (unsigned i = 1; i <= TEMPLATE_MAX; i++) {
		(void)fd_close(l->templates[i].mount_ns);
		(void)fd_close(l->templates[i].fittings_ns);
		free(l->templates[i].preload);
		l->templates[i].disk = disk_use_free(l, l->templates[i].disk);
	}
	/* Back from the last box's mounts: who looks for leaks at our end needs a /proc. */
	if (l->view_ns >= 0)
		(void)setns(l->view_ns, CLONE_NEWNS);
	disk_close(l);
	rooms_close(l);
	netns_done(&l->netns);
	ids_done(&l->ids);
	state_close(&l->state);
	(void)fd_close(l->view_ns);
	(void)fd_close(l->sysdirs_ns);
	(void)fd_close(l->init_fd);
	machine_gauge_close(&l->gauge);
	(void)fd_close(l->proc_fd);
	(void)fd_close(l->signal_fd);
	(void)fd_close(l->epoll_fd);
	(void)fd_close(l->sock);
	(void)map_free(l->by_pid);
	(void)map_free(l->by_id);
}

static struct launch *launch_create(int sock)
{
	struct launch *l = calloc(1, sizeof(*l));

	if (!l)
		return NULL;
	l->sock = sock;
	l->epoll_fd = l->signal_fd = l->proc_fd = l->init_fd = l->view_ns = l->sysdirs_ns = -1;
	l->sysdirs_tree = l->gauge.meminfo = l->gauge.loadavg = -1;
	l->netns.host_fd = l->ids.lock_fd = l->state.dir = l->state.lock = -1;
	for (unsigned i = 0; i <= TEMPLATE_MAX; i++) {
		l->templates[i].mount_ns = l->templates[i].fittings_ns = -1;
		list_init(&l->templates[i].ready);
	}
	l->disk.layers = l->disk.volumes = l->rooms.layers = l->rooms.rooms = -1;
	ending_init(&l->ending);
	locks_init(&l->locks);
	list_init(&l->jobs);
	list_init(&l->later);
	list_init(&l->held);
	l->by_pid = map_create(BOXES_MAX);
	l->by_id = map_create(BOXES_MAX);
	return l;
}

static int parse_cgroup(const char *name, struct cgroups_options *ret)
{
	static const struct {
		const char *name;
		struct cgroups_options how;
	} kinds[] = {
		{ "auto", { .want = CGROUP_NONE } },
		{ "v1", { .want = CGROUP_V1 } },
		{ "v2", { .want = CGROUP_V2 } },
		{ "none", { .off = true } },
	};

	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
		if (strcmp(name, kinds[i].name) == 0) {
			*ret = kinds[i].how;
			return 0;
		}
	return -EINVAL;
}

static int parse_options(int argc, char **argv, struct options *o)
{
	static const struct option longs[] = {
		{ "fd", required_argument, NULL, 'f' },
		{ "cgroup", required_argument, NULL, 'c' },
		{ "spare-netns", required_argument, NULL, 'n' },
		{ "spare-cgroups", required_argument, NULL, 'g' },
		{ "state", required_argument, NULL, 's' },
		{ "layers", required_argument, NULL, 'l' },
		{ "build-timeout", required_argument, NULL, 'b' },
		{ 0 },
	};
	int c, r = 0;

	while (r == 0 && (c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 'f')
			r = parse_u32(optarg, 3, 1u << 20, &o->fd);
		else if (c == 'c')
			r = parse_cgroup(optarg, &o->cgroup);
		else if (c == 'n')
			r = parse_u32(optarg, 0, NETNS_STOCK_MAX, &o->spare_netns);
		else if (c == 'g')
			r = parse_u32(optarg, 0, CELL_STOCK_MAX, &o->spare_cgroups);
		else if (c == 's')
			r = parse_u32(optarg, 3, 1u << 20, &o->state);
		else if (c == 'l')
			r = parse_u64(optarg, BTRFS_MIN_BYTES, 1ull << 50, &o->layers_bytes);
		else if (c == 'b')
			r = parse_u32(optarg, 100, 1u << 30, &o->build_ms);
		else
			r = -EINVAL;
	}
	return r < 0 || o->fd == 0 || optind != argc ? -EINVAL : 0;
}

int main(int argc, char **argv)
{
	struct options o = { .spare_netns = 16, .spare_cgroups = 16 };
	struct err err = { 0 };
	struct launch *l;
	int r;

	if (parse_options(argc, argv, &o) < 0) {
		(void)fprintf(stderr,
			      "holt-launch is started by holt; it takes --fd N and the options "
			      "--cgroup auto|v1|v2|none, --spare-netns N, --spare-cgroups N, "
			      "--state N, --layers BYTES, --build-timeout MS\n");
		return 2;
	}
	(void)fd_cloexec((int)o.fd, true);
	(void)fd_nonblock((int)o.fd, true);
	if (o.state)
		(void)fd_cloexec((int)o.state, true);
	l = launch_create((int)o.fd);
	if (!l || !l->by_pid || !l->by_id)
		return 1;
	builds_init(&l->builds, o.build_ms);
	r = setup(l, &o, &err);
	if (r < 0)
		server_failed(l, 0, &err);
	else
		serve(l);
	teardown(l);
	free(l);
	return r < 0;
}
