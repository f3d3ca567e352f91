#include "fileop_rig.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "guest/fileop.h"

#define NOBODY 65534
#define LEAKED 99

/* Present when the leak sanitizer is: a forked process that ends by _exit() is not checked else. */
int __lsan_do_recoverable_leak_check(void) __attribute__((weak));

int rig_drop_root(void **state)
{
	(void)state;
	if (geteuid() != 0)
		return 0;
	if (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	    setresuid(NOBODY, NOBODY, NOBODY) < 0)
		return -1;
	return prctl(PR_SET_DUMPABLE, 1); /* the leak check traces its own process */
}

static void write_at(int dir_fd, const char *name, const char *text)
{
	_close_ int fd = openat(dir_fd, name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, text, strlen(text)), 0);
}

int rig_setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	(void)snprintf(g->base, sizeof(g->base), "/tmp/holt-test-XXXXXX");
	assert_non_null(mkdtemp(g->base));
	(void)snprintf(g->root, sizeof(g->root), "%s/root", g->base);
	(void)snprintf(g->canary, sizeof(g->canary), "%s/canary", g->base);
	assert_int_equal(mkdir(g->root, 0755), 0);
	write_at(AT_FDCWD, g->canary, RIG_CANARY);
	g->root_fd = open(g->root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	g->lock_fd = memfd_create("lock", MFD_CLOEXEC);
	assert_true(g->root_fd >= 0 && g->lock_fd >= 0);
	*state = g;
	return 0;
}

int rig_teardown(void **state)
{
	struct rig *g = *state;
	const char *const rm[] = { "rm", "-rf", g->base, NULL };

	rig_check_canary(g);
	assert_int_equal(rig_command(g, rm), 0);
	(void)close(g->root_fd);
	(void)close(g->lock_fd);
	free(g);
	return 0;
}

void rig_check_canary(const struct rig *g)
{
	char text[64];
	struct stat st;

	assert_true(fd_read_file_at(AT_FDCWD, g->canary, text, sizeof(text)) >= 0);
	assert_string_equal(text, RIG_CANARY);
	assert_int_equal(stat(g->canary, &st), 0);
	assert_int_equal(st.st_mode & 07777, 0644);
	assert_int_equal(st.st_nlink, 1);
}

static void fill_search(struct guest_search *s)
{
	s->limit = s->limit ? s->limit : 100;
	s->name = s->name ? s->name : "";
	s->exclude = s->exclude ? s->exclude : "";
	s->pattern = s->pattern ? s->pattern : "";
	s->replacement = s->replacement ? s->replacement : "";
}

struct rig_op rig_start(const struct rig *g, const struct guest_file *f)
{
	struct guest_file full = *f;
	struct rig_op op = { .id = 7 };
	int pair[2], code;

	full.user = "";
	full.path = f->path ? f->path : "";
	full.target = f->target ? f->target : "";
	fill_search(&full.search);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	op.pid = fork();
	assert_true(op.pid >= 0);
	if (op.pid == 0) {
		(void)close(pair[0]);
		fault_arm(g->fail_allocation);
		code = fileop_run(pair[1], op.id, &full, g->root_fd, g->lock_fd);
		(void)fault_disarm();
		if (!g->skip_leak_check && __lsan_do_recoverable_leak_check &&
		    __lsan_do_recoverable_leak_check())
			code = LEAKED;
		_exit(code);
	}
	(void)close(pair[1]);
	op.sock = pair[0];
	return op;
}

void rig_send(const struct rig_op *op, uint16_t type, const void *data, size_t n)
{
	uint8_t frame[WIRE_FRAME_MAX];
	long len = guest_put_raw(frame, sizeof(frame), type, op->id, data, n);

	assert_true(len > 0);
	(void)fd_send(op->sock, frame, (size_t)len, NULL, 0); /* it may have ended */
}

void rig_credit(const struct rig_op *op, uint64_t n)
{
	rig_send(op, G_CREDIT, &n, sizeof(n));
}

static void on_entry(struct rig_answer *a, struct rd *r)
{
	struct guest_entry e = { 0 };
	struct rig_entry *kept;

	assert_int_equal(guest_get_entry(r, &e), 0);
	if (strlen(e.path) > a->longest_path)
		a->longest_path = strlen(e.path);
	if (a->entry_count < RIG_ENTRIES) {
		kept = &a->entries[a->entry_count];
		kept->e = e;
		(void)snprintf(kept->path, sizeof(kept->path), "%s", e.path);
		(void)snprintf(kept->target, sizeof(kept->target), "%s", e.target);
		(void)snprintf(kept->owner, sizeof(kept->owner), "%s", e.owner ? e.owner : "");
		(void)snprintf(kept->group, sizeof(kept->group), "%s", e.group ? e.group : "");
		if (e.attrs_len > 0)
			memcpy(kept->attrs, e.attrs, e.attrs_len); /* fits: it was decoded */
	}
	a->entry_count++;
}

static void on_found(struct rig_answer *a, struct rd *r)
{
	struct guest_found f = { 0 };
	struct rig_found *kept;

	assert_int_equal(guest_get_found(r, &f), 0);
	if (a->found_count < RIG_FOUND) {
		kept = &a->found[a->found_count];
		kept->f = f;
		(void)snprintf(kept->path, sizeof(kept->path), "%s", f.path);
		(void)snprintf(kept->text, sizeof(kept->text), "%s", f.text);
		kept->len = strlen(f.text);
	}
	a->found_count++;
}

static void on_frame(const struct rig_op *op, const struct wire_head *head, struct rd *r,
		     struct rig_answer *a)
{
	const void *data;
	size_t n;

	assert_int_equal(head->id, op->id);
	assert_true(a->error == 0); /* an error is the last word */
	if (head->type == G_ENTRY) {
		on_entry(a, r);
	} else if (head->type == G_FOUND) {
		on_found(a, r);
	} else if (head->type == G_DATA) {
		data = rd_rest(r, &n);
		assert_true(n > 0 && n <= GUEST_CHUNK);
		assert_int_equal(buf_append(&a->data, data, n), 0);
		rig_credit(op, n);
	} else if (head->type == G_TAKEN) {
		a->taken += rd_u64(r);
	} else if (head->type == G_DONE) {
		a->done = rd_u64(r);
		a->is_done = true;
	} else if (head->type == G_ERROR) {
		a->error = rd_u32(r);
		(void)snprintf(a->text, sizeof(a->text), "%s", rd_str(r));
	} else {
		fail_msg("frame of type %u", head->type);
	}
}

/* 0 when the operation has closed its end. */
static bool take_frame(const struct rig_op *op, struct rig_answer *a)
{
	uint8_t frame[WIRE_FRAME_MAX];
	ssize_t n = fd_recv(op->sock, frame, sizeof(frame), NULL, NULL);
	struct wire_head head;
	struct rd payload;

	if (n <= 0)
		return false;
	assert_int_equal(wire_open(frame, (size_t)n, &head, &payload), 0);
	on_frame(op, &head, &payload, a);
	return true;
}

void rig_finish(struct rig_op *op, struct rig_answer *a)
{
	int status;

	while (take_frame(op, a))
		;
	(void)close(op->sock);
	assert_int_equal(waitpid(op->pid, &status, 0), op->pid);
	assert_true(WIFEXITED(status));
	a->exit_code = WEXITSTATUS(status);
	assert_int_equal(a->exit_code, a->error ? 1 : 0);
	assert_true(a->error || a->is_done);
}

void rig_answer_done(struct rig_answer *a)
{
	buf_done(&a->data);
}

/* Sends within the window, as a client must. */
static void feed(const struct rig_op *op, const char *in, size_t n, struct rig_answer *a)
{
	uint64_t sent = 0;
	size_t part;

	while (sent < n && !a->error) {
		part = n - sent < GUEST_CHUNK ? n - sent : GUEST_CHUNK;
		if (sent + part - a->taken > GUEST_WINDOW) {
			if (!take_frame(op, a))
				return;
			continue;
		}
		rig_send(op, G_DATA, in + sent, part);
		sent += part;
	}
	rig_send(op, G_DATA, "", 0);
}

void rig_run(const struct rig *g, const struct guest_file *f, const void *in, size_t n,
	     struct rig_answer *a)
{
	struct rig_op op;

	memset(a, 0, sizeof(*a));
	op = rig_start(g, f);
	if (f->op == FILE_WRITE || f->op == FILE_TAR_PUT)
		feed(&op, in, n, a);
	rig_finish(&op, a);
}

int rig_do(const struct rig *g, const struct guest_file *f, const void *in, size_t n)
{
	_free_ struct rig_answer *a = malloc(sizeof(*a));

	assert_non_null(a);
	rig_run(g, f, in, n, a);
	rig_answer_done(a);
	return (int)a->error;
}

void rig_write(const struct rig *g, const char *name, const char *text)
{
	write_at(g->root_fd, name, text);
}

const char *rig_text(const struct rig *g, const char *name)
{
	static char text[4096];

	return fd_read_file_at(g->root_fd, name, text, sizeof(text)) < 0 ? "" : text;
}

bool rig_exists(const struct rig *g, const char *name)
{
	struct stat st;

	return fstatat(g->root_fd, name, &st, AT_SYMLINK_NOFOLLOW) == 0;
}

void rig_mkdir(const struct rig *g, const char *name)
{
	assert_int_equal(mkdirat(g->root_fd, name, 0755), 0);
}

void rig_symlink(const struct rig *g, const char *target, const char *name)
{
	assert_int_equal(symlinkat(target, g->root_fd, name), 0);
}

unsigned rig_count(const struct rig *g, const char *dir)
{
	int fd = openat(g->root_fd, dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fdopendir(fd);
	unsigned n = 0;

	assert_non_null(d);
	while (readdir(d))
		n++;
	(void)closedir(d);
	return n - 2; /* "." and ".." */
}

int rig_command(const struct rig *g, const char *const *argv)
{
	pid_t pid = fork();
	int status;

	assert_true(pid >= 0);
	if (pid == 0) {
		if (fchdir(g->root_fd) == 0)
			(void)execvp(argv[0], (char *const *)(uintptr_t)argv);
		_exit(127);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}
