#include "guest_rig.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/fd.h"
#include "fault.h"
#include "guest/serve.h"

#define PATIENCE_MS 20000
#define RIG_NO_BOX 77

static _Noreturn void run_guest(int sock, size_t fault)
{
	struct guest_options options = { .python_fd = -1 };
	int null = open("/dev/null", O_RDWR);
	sigset_t all;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* a test that fails leaves nobody behind */
	(void)dup2(null, 0);
	(void)sigfillset(&all);
	(void)sigprocmask(SIG_SETMASK, &all, NULL);
	(void)prctl(PR_SET_CHILD_SUBREAPER, 1); /* orphans come to it as they come to PID 1 */
	fault_arm(fault);
	_exit(guest_serve(sock, &options) < 0 ? 1 : 0);
}

/* One id of ours inside: enough to mount a /proc, whoever runs the test. */
static void map_self(unsigned uid, unsigned gid)
{
	char map[64];

	(void)fd_write_file_at(AT_FDCWD, "/proc/self/setgroups", "deny");
	(void)snprintf(map, sizeof(map), "0 %u 1", uid);
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/uid_map", map);
	(void)snprintf(map, sizeof(map), "0 %u 1", gid);
	(void)fd_write_file_at(AT_FDCWD, "/proc/self/gid_map", map);
}

static bool enter_namespaces(void)
{
	unsigned uid = getuid(), gid = getgid();

	if (unshare(CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNS) < 0)
		return false;
	map_self(uid, gid);
	return mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

/* PID 1 of a namespace with its own /proc; the outer process hands its exit code on. */
static _Noreturn void run_boxed(int sock)
{
	int status = 0;
	pid_t pid;

	(void)prctl(PR_SET_PDEATHSIG, SIGKILL);
	pid = fork();
	if (pid == 0) {
		if (mount("proc", "/proc", "proc", 0, NULL) < 0)
			_exit(RIG_NO_BOX);
		run_guest(sock, 0);
	}
	(void)close(sock);
	(void)waitpid(pid, &status, 0);
	_exit(WIFEXITED(status) ? WEXITSTATUS(status) : 99);
}

static void expect_ready(struct guest_rig *rig, struct guest_ready *ret)
{
	struct wire_head head;
	struct guest_ready ready;
	struct rd payload;

	assert_true(rig_recv(rig, &head, &payload));
	assert_int_equal(head.type, G_READY);
	assert_int_equal(guest_get_ready(&payload, &ready), 0);
	assert_int_equal(ready.version, WIRE_VERSION);
	*ret = ready;
}

static void begin(struct guest_rig *rig, int pair[2])
{
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig->sock = pair[0];
	rig->pid = fork();
	assert_true(rig->pid >= 0);
	if (rig->pid == 0)
		(void)close(pair[0]);
	else
		(void)close(pair[1]);
}

void rig_start_faulty(struct guest_rig *rig, size_t n)
{
	struct guest_ready ready;
	int pair[2];

	begin(rig, pair);
	if (rig->pid == 0)
		run_guest(pair[1], n);
	expect_ready(rig, &ready);
	assert_int_equal(ready.resumed, 0);
	assert_int_equal(ready.live, 0);
}

void rig_start(struct guest_rig *rig)
{
	rig_start_faulty(rig, 0);
}

bool rig_start_boxed(struct guest_rig *rig)
{
	struct guest_ready ready;
	struct pollfd p;
	int pair[2], status;

	begin(rig, pair);
	if (rig->pid == 0) {
		if (!enter_namespaces())
			_exit(RIG_NO_BOX);
		run_boxed(pair[1]);
	}
	p = (struct pollfd){ .fd = rig->sock, .events = POLLIN };
	assert_int_equal(poll(&p, 1, PATIENCE_MS), 1);
	if (!(p.revents & POLLIN)) {
		(void)close(rig->sock);
		assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
		assert_int_equal(WEXITSTATUS(status), RIG_NO_BOX);
		return false;
	}
	expect_ready(rig, &ready);
	return true;
}

void rig_stop(struct guest_rig *rig, int want_status)
{
	int status = 0;

	(void)close(rig->sock);
	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), want_status);
}

static struct sockaddr_un address_of(const struct guest_rig *rig)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	(void)snprintf(a.sun_path, sizeof(a.sun_path), "%s", rig->path);
	return a;
}

static int listen_at(struct guest_rig *rig)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a;

	(void)snprintf(rig->path, sizeof(rig->path), "/tmp/guest-rig-%d.sock", rig->pid);
	a = address_of(rig);
	(void)unlink(rig->path);
	assert_true(sock >= 0);
	assert_int_equal(bind(sock, (struct sockaddr *)&a, sizeof(a)), 0);
	assert_int_equal(listen(sock, 64), 0);
	return sock;
}

void rig_persist(struct guest_rig *rig)
{
	uint8_t frame[64];
	long n = guest_put_raw(frame, sizeof(frame), G_PERSIST, 0, NULL, 0);
	int sock = listen_at(rig);

	assert_int_equal(fd_send(rig->sock, frame, (size_t)n, &sock, 1), n);
	(void)close(sock);
}

void rig_hang_up(struct guest_rig *rig)
{
	rig->sock = fd_close(rig->sock);
}

int rig_dial(const struct guest_rig *rig)
{
	int sock = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
	struct sockaddr_un a = address_of(rig);

	assert_true(sock >= 0);
	assert_int_equal(connect(sock, (struct sockaddr *)&a, sizeof(a)), 0);
	return sock;
}

void rig_connect(struct guest_rig *rig, struct guest_ready *ret)
{
	rig_hang_up(rig);
	rig->sock = rig_dial(rig);
	expect_ready(rig, ret);
	assert_int_equal(ret->resumed, 1);
}

void rig_expect_live(struct guest_rig *rig, struct guest_live *ret)
{
	struct wire_head head;
	struct rd payload;

	assert_true(rig_recv(rig, &head, &payload));
	assert_int_equal(head.type, G_LIVE);
	assert_int_equal(guest_get_live(&payload, head.id, ret), 0);
}

/* What is no longer kept ends with the connection, and so does its tree. */
static void forget_all(struct guest_rig *rig)
{
	struct guest_ready ready;
	struct guest_live live;

	rig_connect(rig, &ready);
	for (uint32_t i = 0; i < ready.live; i++) {
		rig_expect_live(rig, &live);
		rig_raw(rig, G_ACK, live.id, NULL, 0);
	}
	rig_connect(rig, &ready);
	assert_int_equal(ready.live, 0);
}

void rig_end(struct guest_rig *rig)
{
	struct wire_head head;
	struct rd payload;
	int status = 0;

	forget_all(rig);
	rig_raw(rig, G_PING, 4711, NULL, 0); /* whatever happened, it answers */
	assert_true(rig_recv(rig, &head, &payload));
	assert_int_equal(head.type, G_PONG);
	rig_hang_up(rig);
	assert_int_equal(waitpid(rig->pid, &status, WNOHANG), 0);
	assert_int_equal(kill(rig->pid, SIGKILL), 0);
	assert_int_equal(waitpid(rig->pid, &status, 0), rig->pid);
	(void)unlink(rig->path);
}

struct guest_exec rig_command(const char *const *argv)
{
	struct guest_exec e = { .user = "0", .cwd = "/", .code = "", .grace_ms = 100 };
	static char user[16];

	(void)snprintf(user, sizeof(user), "%u", getuid());
	e.user = user;
	for (; argv[e.argc]; e.argc++)
		e.argv[e.argc] = argv[e.argc];
	return e;
}

static void send_frame(struct guest_rig *rig, const void *frame, long n)
{
	assert_true(n > 0);
	assert_int_equal(fd_send(rig->sock, frame, (size_t)n, NULL, 0), n);
}

void rig_exec(struct guest_rig *rig, uint32_t id, const struct guest_exec *e)
{
	uint8_t frame[WIRE_FRAME_MAX];

	send_frame(rig, frame, guest_put_exec(frame, sizeof(frame), id, e));
}

void rig_file(struct guest_rig *rig, uint32_t id, const struct guest_file *f)
{
	uint8_t frame[WIRE_FRAME_MAX];

	send_frame(rig, frame, guest_put_file(frame, sizeof(frame), id, f));
}

void rig_raw(struct guest_rig *rig, uint16_t type, uint32_t id, const void *data, size_t n)
{
	uint8_t frame[WIRE_FRAME_MAX];

	send_frame(rig, frame, guest_put_raw(frame, sizeof(frame), type, id, data, n));
}

void rig_u64(struct guest_rig *rig, uint16_t type, uint32_t id, uint64_t v)
{
	uint8_t frame[64];

	send_frame(rig, frame, guest_put_u64(frame, sizeof(frame), type, id, v));
}

void rig_signal(struct guest_rig *rig, uint32_t id, uint32_t signo, bool is_tree)
{
	uint8_t frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_SIGNAL, id);
	wr_u32(&w, signo);
	wr_u8(&w, is_tree);
	send_frame(rig, frame, wire_finish(&w));
}

bool rig_is_quiet(struct guest_rig *rig, int ms)
{
	struct pollfd p = { .fd = rig->sock, .events = POLLIN };

	return poll(&p, 1, ms) == 0;
}

bool rig_recv(struct guest_rig *rig, struct wire_head *head, struct rd *payload)
{
	size_t no_fds = 0;
	ssize_t n;

	assert_false(rig_is_quiet(rig, PATIENCE_MS));
	n = fd_recv(rig->sock, rig->frame, sizeof(rig->frame), NULL, &no_fds);
	if (n == 0 || n == -ECONNRESET)
		return false;
	assert_true(n > 0);
	assert_int_equal(wire_open(rig->frame, (size_t)n, head, payload), 0);
	return true;
}

static void take_output(struct guest_rig *rig, uint32_t id, struct rd *payload, bool do_credit,
			struct rig_result *ret)
{
	uint8_t stream = rd_u8(payload);
	uint64_t offset = rd_u64(payload);
	struct buf *b = stream == 1 ? &ret->out : &ret->err;
	size_t n;
	const void *data = rd_rest(payload, &n);

	assert_true(stream == 1 || stream == 2);
	assert_true(n > 0 && n <= GUEST_CHUNK);
	assert_int_equal(offset, b->len);
	assert_int_equal(buf_append(b, data, n), 0);
	if (do_credit)
		rig_u64(rig, G_CREDIT, id, n);
}

static void take_error(struct rd *payload, struct rig_result *ret)
{
	ret->code = (int)rd_u32(payload);
	(void)snprintf(ret->text, sizeof(ret->text), "%s", rd_str(payload));
	assert_int_equal(rd_end(payload), 0);
	ret->ends++;
}

bool rig_take(struct guest_rig *rig, uint32_t id, const struct wire_head *head, struct rd *payload,
	      bool do_credit, struct rig_result *ret)
{
	const void *data;
	size_t n;

	if (head->id != id)
		return false;
	switch (head->type) {
	case G_STARTED:
		ret->pid = rd_u32(payload);
		return false;
	case G_OUTPUT:
		take_output(rig, id, payload, do_credit, ret);
		return false;
	case G_DATA:
		data = rd_rest(payload, &n);
		assert_int_equal(buf_append(&ret->out, data, n), 0);
		return false;
	case G_ENTRY:
		ret->entries++;
		return false;
	case G_TAKEN:
		ret->taken += rd_u64(payload);
		return false;
	case G_EXIT:
		assert_int_equal(guest_get_exit(payload, &ret->exit), 0);
		ret->is_exit = true;
		ret->ends++;
		return true;
	case G_DONE:
		ret->done = rd_u64(payload);
		ret->ends++;
		return true;
	case G_ERROR:
		take_error(payload, ret);
		return true;
	default:
		fail_msg("frame of type %u", head->type);
		return true;
	}
}

void rig_collect(struct guest_rig *rig, uint32_t id, bool do_credit, struct rig_result *ret)
{
	struct wire_head head;
	struct rd payload;

	do
		assert_true(rig_recv(rig, &head, &payload));
	while (!rig_take(rig, id, &head, &payload, do_credit, ret));
}

void rig_result_done(struct rig_result *r)
{
	buf_done(&r->out);
	buf_done(&r->err);
	*r = (struct rig_result){ 0 };
}

struct guest_exec rig_script(const char *script)
{
	const char *argv[] = { "/bin/sh", "-c", script, NULL };

	return rig_command(argv);
}

void rig_run(struct guest_rig *rig, uint32_t id, const struct guest_exec *e, struct rig_result *ret)
{
	rig_exec(rig, id, e);
	*ret = (struct rig_result){ 0 };
	rig_collect(rig, id, true, ret);
}

void rig_shell(struct guest_rig *rig, uint32_t id, const char *script, struct rig_result *ret)
{
	struct guest_exec e = rig_script(script);

	rig_run(rig, id, &e, ret);
}
