#include "provider/launcher.h"

#include <errno.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/list.h"
#include "base/str.h"

#ifndef HOLT_LIBEXECDIR
#define HOLT_LIBEXECDIR "/usr/libexec/holt"
#endif
#define PROGRAM "holt-launch"
#define CHILD_FD 3          /* where the launcher finds its socket */
#define DEATHS_MAX 65536u   /* unread deaths kept; the oldest gives way */
#define SMALL_FRAME_MAX 256 /* every request but a template fits */
#define REPLY_MAX 4096      /* no answer is longer: the longest is an error's text */

struct death {
	struct list node;
	char id[ID_LEN + 1];
	int status;
	struct box_usage usage;
};

struct launcher {
	int sock;  /* owned */
	pid_t pid; /* our child; 0 when it is not */
	uint32_t last_id;
	bool broken; /* the stream of answers can no longer be trusted */
	struct launch_info info;
	struct list deaths; /* owned struct death, oldest first */
	size_t deaths_len;
};

/* One answer, with the descriptors that came along. */
struct reply {
	struct wire_head head;
	struct rd body;
	int fds[2]; /* owned until taken */
	uint8_t frame[REPLY_MAX];
};

static void reply_done(struct reply *r)
{
	for (size_t i = 0; i < 2; i++)
		r->fds[i] = fd_close(r->fds[i]);
}

static void keep_death(struct launcher *l, struct rd *body)
{
	struct death *d = calloc(1, sizeof(*d));

	if (!d)
		return;
	if (str_copy(d->id, sizeof(d->id), rd_str(body)) < 0 || !id_is_valid(d->id)) {
		free(d);
		return;
	}
	d->status = (int)rd_u32(body);
	launch_rd_usage(body, &d->usage);
	if (l->deaths_len == DEATHS_MAX) {
		struct death *old = LIST_ENTRY(l->deaths.next, struct death, node);

		list_remove(&old->node);
		free(old);
		l->deaths_len--;
	}
	list_push_back(&l->deaths, &d->node);
	l->deaths_len++;
}

/* How the launcher ended, for the message: it has written its reason to stderr itself. */
static int gone(struct launcher *l, struct err *err)
{
	int status = 0;

	l->broken = true;
	if (l->pid <= 0 || waitpid(l->pid, &status, 0) != l->pid)
		return err_set(err, EPIPE, PROGRAM " is gone");
	l->pid = 0;
	if (WIFSIGNALED(status))
		return err_set(err, EPIPE, PROGRAM " was killed by signal %d", WTERMSIG(status));
	return err_set(err, EPIPE, PROGRAM " ended with code %d", WEXITSTATUS(status));
}

/* Receives one frame, whatever it is. */
static int receive(struct launcher *l, struct reply *r, struct err *err)
{
	size_t nfds = 2;
	ssize_t n;
	int e;

	reply_done(r);
	n = fd_recv(l->sock, r->frame, sizeof(r->frame), r->fds, &nfds);
	for (size_t i = n < 0 ? 0 : nfds; i < 2; i++)
		r->fds[i] = -1;
	if (n == 0 || n == -ECONNRESET)
		return gone(l, err);
	if (n < 0)
		return err_sys(err, (int)n, "receive from " PROGRAM);
	e = wire_open(r->frame, (size_t)n, &r->head, &r->body);
	if (e < 0) {
		l->broken = true;
		return err_sys(err, e, "frame from " PROGRAM " of another version?");
	}
	return 0;
}

static int refused(struct reply *r, struct err *err)
{
	uint32_t code = rd_u32(&r->body);
	const char *text = rd_str(&r->body);

	if (rd_end(&r->body) < 0 || code == 0 || code > 4095)
		return err_set(err, EPROTO, PROGRAM " refused in a way that cannot be read");
	return err_set(err, (int)code, "%s", text);
}

/* Waits for the answer with this id; what died meanwhile is kept. */
static int await(struct launcher *l, uint32_t id, uint16_t want, struct reply *r, struct err *err)
{
	for (;;) {
		int e = receive(l, r, err);

		if (e < 0)
			return e;
		if (r->head.type == L_DIED) {
			keep_death(l, &r->body);
			continue;
		}
		if (r->head.type == L_FAILED && (r->head.id == id || r->head.id == 0))
			return refused(r, err); /* 0: it could not start */
		if (r->head.id != id)
			continue; /* of a request that was given up */
		if (r->head.type == want)
			return 0;
		l->broken = true;
		return err_set(err, EPROTO, PROGRAM " answered with type %u, wanted %u",
			       r->head.type, want);
	}
}

/* Sends the frame (size or -errno as the encoders return it) and waits for its answer. */
static int request(struct launcher *l, const void *frame, long size, int fd, uint16_t want,
		   struct reply *r, struct err *err)
{
	ssize_t n;

	if (size < 0)
		return err_sys(err, (int)size, "request to " PROGRAM);
	if (l->broken)
		return err_set(err, EPIPE, PROGRAM " is gone");
	n = fd_send(l->sock, frame, (size_t)size, &fd, fd >= 0 ? 1 : 0);
	if (n == -EPIPE || n == -ECONNRESET)
		return gone(l, err);
	if (n < 0)
		return err_sys(err, (int)n, "send to " PROGRAM);
	return await(l, l->last_id, want, r, err);
}

/* The same for an answer that says nothing but yes. */
static int request_ok(struct launcher *l, const void *frame, long size, int fd, struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };

	return request(l, frame, size, fd, L_OK, &r, err);
}

static uint32_t next_id(struct launcher *l)
{
	if (++l->last_id == 0)
		l->last_id = 1;
	return l->last_id;
}

static int malformed(struct launcher *l, struct err *err)
{
	l->broken = true;
	return err_set(err, EPROTO, PROGRAM " sent an answer that cannot be read");
}

static int hello(struct launcher *l, struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;
	int e;

	wire_begin(&w, frame, sizeof(frame), L_HELLO, next_id(l));
	e = request(l, frame, wire_finish(&w), -1, L_INFO, &r, err);
	if (e < 0)
		return e;
	if (launch_get_info(&r.body, &l->info) < 0)
		return malformed(l, err);
	return 0;
}

int launcher_connect(int sock, pid_t pid, struct launcher **ret, struct err *err)
{
	_cleanup_(launcher_stop_p) struct launcher *l = NULL;
	int e;

	l = calloc(1, sizeof(*l));
	if (!l) {
		(void)fd_close(sock);
		return err_sys(err, ENOMEM, "start " PROGRAM);
	}
	l->sock = sock;
	l->pid = pid;
	list_init(&l->deaths);
	e = hello(l, err);
	if (e < 0)
		return e;
	*ret = TAKE(l);
	return 0;
}

/* The launcher lies beside this program in a build tree, in libexec once installed. */
static int find_program(char *dst, size_t size, struct err *err)
{
	char self[PATH_MAX];
	ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
	char *slash;

	self[n > 0 ? n : 0] = '\0';
	slash = strrchr(self, '/');
	if (slash) {
		*slash = '\0';
		if (str_format(dst, size, "%s/" PROGRAM, self) == 0 && access(dst, X_OK) == 0)
			return 0;
	}
	if (str_copy(dst, size, HOLT_LIBEXECDIR "/" PROGRAM) == 0 && access(dst, X_OK) == 0)
		return 0;
	return err_set(err, ENOENT, PROGRAM " is neither in '%s' nor in '" HOLT_LIBEXECDIR "'",
		       self);
}

#define ARGS_MAX 12
struct args {
	const char *argv[ARGS_MAX];
	char netns[16], cgroups[16];
};

static void build_args(struct args *a, const struct launcher_options *o, const char *program)
{
	size_t n = 0;

	a->argv[n++] = program;
	a->argv[n++] = "--fd";
	a->argv[n++] = "3";
	a->argv[n++] = "--cgroup";
	a->argv[n++] = o->cgroup ? o->cgroup : "auto";
	if (o->spare_netns) {
		(void)str_format(a->netns, sizeof(a->netns), "%u", o->spare_netns);
		a->argv[n++] = "--spare-netns";
		a->argv[n++] = a->netns;
	}
	if (o->spare_cgroups) {
		(void)str_format(a->cgroups, sizeof(a->cgroups), "%u", o->spare_cgroups);
		a->argv[n++] = "--spare-cgroups";
		a->argv[n++] = a->cgroups;
	}
	a->argv[n] = NULL;
}

/* In a session of its own: a Ctrl-C at the terminal must reach us and not the launcher, which has
 * the boxes to clear away. It starts with default signals and nothing blocked. */
static int spawn(const char *program, const struct args *a, int sock, pid_t *ret)
{
	posix_spawn_file_actions_t files;
	posix_spawnattr_t attr;
	sigset_t none, all;
	int e;

	(void)sigemptyset(&none);
	(void)sigfillset(&all);
	e = posix_spawn_file_actions_init(&files);
	if (e)
		return -e;
	e = posix_spawnattr_init(&attr);
	if (e) {
		(void)posix_spawn_file_actions_destroy(&files);
		return -e;
	}
	e = posix_spawn_file_actions_adddup2(&files, sock, CHILD_FD);
	if (!e)
		e = posix_spawnattr_setsigmask(&attr, &none);
	if (!e)
		e = posix_spawnattr_setsigdefault(&attr, &all);
	if (!e)
		e = posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF |
							    POSIX_SPAWN_SETSID);
	if (!e)
		e = posix_spawn(ret, program, &files, &attr, (char *const *)a->argv, environ);
	(void)posix_spawnattr_destroy(&attr);
	(void)posix_spawn_file_actions_destroy(&files);
	return -e;
}

int launcher_start(const struct launcher_options *o, struct launcher **ret, struct err *err)
{
	_close_ int ours = -1, theirs = -1;
	char found[PATH_MAX];
	const char *program = o->program;
	struct args args;
	int pair[2], e;
	pid_t pid = 0;

	if (!program) {
		e = find_program(found, sizeof(found), err);
		if (e < 0)
			return e;
		program = found;
	}
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	ours = pair[0];
	theirs = pair[1];
	build_args(&args, o, program);
	e = spawn(program, &args, theirs, &pid);
	if (e < 0)
		return err_sys(err, e, "start '%s'", program);
	theirs = fd_close(theirs); /* so that its end is seen */
	return launcher_connect(TAKE_FD(ours), pid, ret, err);
}

struct launcher *launcher_stop(struct launcher *l)
{
	if (!l)
		return NULL;
	l->sock = fd_close(l->sock);
	while (l->pid > 0 && waitpid(l->pid, NULL, 0) < 0 && errno == EINTR)
		;
	LIST_FOREACH (&l->deaths, d, struct death, node)
		free(d);
	free(l);
	return NULL;
}

int launcher_fd(const struct launcher *l)
{
	return l->sock;
}

pid_t launcher_pid(const struct launcher *l)
{
	return l->pid;
}

const struct launch_info *launcher_info(const struct launcher *l)
{
	return &l->info;
}

int launcher_template_sync(struct launcher *l, const struct template_spec *t, int dir_fd,
			   struct err *err)
{
	uint8_t frame[4096];
	int e = spec_check_template(t, err);

	if (e < 0)
		return e;
	return request_ok(l, frame, launch_put_template(frame, sizeof(frame), next_id(l), t),
			  dir_fd, err);
}

int launcher_pool_sync(struct launcher *l, const struct pool_spec *p, struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];

	return request_ok(l, frame, launch_put_pool(frame, sizeof(frame), next_id(l), p), -1, err);
}

int launcher_pool_state_sync(struct launcher *l, uint32_t template_id, struct pool_state *ret,
			     struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	uint8_t frame[SMALL_FRAME_MAX];
	struct pool_state state;
	struct wr w;
	int e;

	wire_begin(&w, frame, sizeof(frame), L_POOL_STATE, next_id(l));
	wr_u32(&w, template_id);
	e = request(l, frame, wire_finish(&w), -1, L_POOL_IS, &r, err);
	if (e < 0)
		return e;
	if (launch_get_pool_state(&r.body, &state) < 0)
		return malformed(l, err);
	*ret = state;
	return 0;
}

int launcher_claim_sync(struct launcher *l, const struct launch_spec *s, struct launcher_box *ret,
			struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	uint8_t frame[SMALL_FRAME_MAX];
	struct launch_box b;
	int e;

	e = request(l, frame, launch_put_claim(frame, sizeof(frame), next_id(l), s), -1, L_BOX, &r,
		    err);
	if (e < 0)
		return e;
	if (launch_get_box(&r.body, &b) < 0 || !id_is_valid(b.id) || r.fds[0] < 0 || r.fds[1] < 0)
		return malformed(l, err);
	*ret = (struct launcher_box){ .flags = b.flags,
				      .pid = (pid_t)b.pid,
				      .sock = TAKE_FD(r.fds[0]),
				      .pidfd = TAKE_FD(r.fds[1]),
				      .limits = b.limits };
	memcpy(ret->id, b.id, sizeof(ret->id)); /* fits: id_is_valid() */
	memcpy(ret->step_ns, b.step_ns, sizeof(ret->step_ns));
	return 0;
}

void launcher_box_done(struct launcher_box *b)
{
	b->sock = fd_close(b->sock);
	b->pidfd = fd_close(b->pidfd);
}

/* A frame that begins with a box's id. */
static void begin_box(struct wr *w, void *frame, uint16_t type, struct launcher *l, const char *id)
{
	wire_begin(w, frame, SMALL_FRAME_MAX, type, next_id(l));
	wr_str(w, id);
}

int launcher_destroy_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			  struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	uint8_t frame[SMALL_FRAME_MAX];
	struct box_usage usage;
	struct wr w;
	int e;

	begin_box(&w, frame, L_DESTROY, l, box_id);
	e = request(l, frame, wire_finish(&w), -1, L_GONE, &r, err);
	if (e < 0)
		return e;
	(void)rd_str(&r.body);
	launch_rd_usage(&r.body, &usage);
	if (rd_end(&r.body) < 0)
		return malformed(l, err);
	if (ret)
		*ret = usage;
	return 0;
}

int launcher_usage_sync(struct launcher *l, const char *box_id, struct box_usage *ret,
			struct err *err)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	uint8_t frame[SMALL_FRAME_MAX];
	struct box_usage usage;
	struct wr w;
	int e;

	begin_box(&w, frame, L_USAGE, l, box_id);
	e = request(l, frame, wire_finish(&w), -1, L_USED, &r, err);
	if (e < 0)
		return e;
	launch_rd_usage(&r.body, &usage);
	if (rd_end(&r.body) < 0)
		return malformed(l, err);
	*ret = usage;
	return 0;
}

int launcher_freeze_sync(struct launcher *l, const char *box_id, bool on, struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	begin_box(&w, frame, L_FREEZE, l, box_id);
	wr_u8(&w, on);
	return request_ok(l, frame, wire_finish(&w), -1, err);
}

int launcher_limits_sync(struct launcher *l, const char *box_id, const struct limits *limits,
			 struct err *err)
{
	uint8_t frame[SMALL_FRAME_MAX];
	struct wr w;

	begin_box(&w, frame, L_LIMITS, l, box_id);
	launch_wr_limits(&w, limits);
	return request_ok(l, frame, wire_finish(&w), -1, err);
}

/* Takes in what is there without waiting; an answer that nobody awaits is dropped. */
static void drain(struct launcher *l)
{
	_cleanup_(reply_done) struct reply r = { .fds = { -1, -1 } };
	struct pollfd p = { .fd = l->sock, .events = POLLIN };

	while (!l->broken && poll(&p, 1, 0) == 1 && receive(l, &r, NULL) == 0)
		if (r.head.type == L_DIED)
			keep_death(l, &r.body);
}

bool launcher_next_death(struct launcher *l, char ret_id[ID_LEN + 1], int *ret_status,
			 struct box_usage *ret_usage)
{
	struct death *d;

	if (list_is_empty(&l->deaths))
		drain(l);
	if (list_is_empty(&l->deaths))
		return false;
	d = LIST_ENTRY(l->deaths.next, struct death, node);
	memcpy(ret_id, d->id, sizeof(d->id));
	*ret_status = d->status;
	if (ret_usage)
		*ret_usage = d->usage;
	list_remove(&d->node);
	l->deaths_len--;
	free(d);
	return true;
}
