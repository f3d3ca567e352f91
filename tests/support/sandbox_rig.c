#include "sandbox_rig.h"

#include "check.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "base/str.h"
#include "sandbox/registry.h"

#define ROUNDS_MAX 200

static uint64_t now(void *user)
{
	return ((struct sandbox_rig *)user)->now_ms;
}

static int64_t wall(void *user)
{
	return ((struct sandbox_rig *)user)->wall_ms;
}

static void on_death(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	struct sandbox_rig *rig = user;

	if (rig->all)
		sandboxes_box_died(rig->all, box_id, status, usage);
}

void rig_birth(struct sandbox_rig *rig)
{
	struct sandboxes_deps deps = { .loop = rig->loop,
				       .store = &rig->store,
				       .metrics = rig->metrics,
				       .settings = rig->settings,
				       .clock = &rig->clock };
	struct err err = { 0 };

	assert_int_equal(sandboxes_create(&deps, &rig->all, &err), 0);
}

void rig_death(struct sandbox_rig *rig)
{
	rig->all = sandboxes_free(rig->all);
}

static void on_ready(void *user, const struct err *err)
{
	struct sandbox_rig *rig = user;

	rig->ready++;
	rig->ready_err = err ? *err : (struct err){ 0 };
}

void rig_ready(struct sandbox_rig *rig)
{
	rig->fake.gone = false;
	sandboxes_provider_ready(rig->all, &rig->provider, on_ready, rig);
}

/* A test that fails never comes to rig_close(): what it leaves goes with the next rig, or at the
 * end.
 */
static char spool_left[32];

static void remove_spool(void)
{
	DIR *d = spool_left[0] ? opendir(spool_left) : NULL;

	if (!d)
		return;
	for (struct dirent *e; (e = readdir(d));)
		(void)unlinkat(dirfd(d), e->d_name, 0);
	(void)closedir(d);
	(void)rmdir(spool_left);
	spool_left[0] = '\0';
}

static void make_spool(struct sandbox_rig *rig)
{
	static bool is_registered;

	if (!is_registered)
		is_registered = atexit(remove_spool) == 0;
	remove_spool();
	assert_int_equal(str_copy(rig->spool, sizeof(rig->spool), "/tmp/holt-spool-XXXXXX"), 0);
	assert_non_null(mkdtemp(rig->spool));
	assert_int_equal(str_copy(spool_left, sizeof(spool_left), rig->spool), 0);
}

void rig_open(struct sandbox_rig *rig)
{
	struct err err = { 0 };

	*rig = (struct sandbox_rig){ .now_ms = 1000000, .wall_ms = 1700000000000 };
	assert_int_equal(loop_create(&rig->loop, &err), 0);
	assert_int_equal(store_open_memory(&rig->faults, &rig->store, &err), 0);
	rig->metrics = metrics_create();
	assert_non_null(rig->metrics);
	rig->provider = provider_fake(&rig->fake);
	rig->provider.ops->on_death(rig->provider.self, on_death, rig);
	rig->clock = (struct sandbox_clock){ now, wall, rig };
	make_spool(rig);
	rig->settings = (struct sandbox_settings){
		.max_sandboxes = 32,
		.max_builds = 2,
		.timeout_ms = 600000,
		.timeout_max_ms = 3600000,
		.exec_timeout_ms = 30000,
		.exec_timeout_max_ms = 600000,
		.output_keep = 1 << 20,
		.output_max = 1 << 30,
		.retention_ms = 86400000,
		.spool_fd = open(rig->spool, O_RDONLY | O_DIRECTORY | O_CLOEXEC),
		.files_fd = -1,
	};
	assert_true(rig->settings.spool_fd >= 0);
	rig_birth(rig);
	rig_ready(rig);
	rig_run(rig);
	assert_int_equal(rig->ready, 1);
	assert_int_equal(rig->ready_err.code, 0);
	rig_tick(rig, 1);
	assert_false(rig->all->is_ticking); /* nothing is left to be tried again */
}

void rig_close(struct sandbox_rig *rig)
{
	rig_death(rig);
	fake_go_away(&rig->fake); /* calls of a life that is over end quietly */
	fake_done(&rig->fake);
	store_close(&rig->store);
	rig_turn(rig);
	(void)metrics_free(rig->metrics);
	(void)loop_free(rig->loop);
	(void)close(rig->settings.spool_fd);
	remove_spool();
	assert_int_not_equal(access(rig->spool, F_OK), 0);
}

static void on_stop(void *user)
{
	loop_stop(user);
}

void rig_turn(struct sandbox_rig *rig)
{
	struct loop_task stop;

	if (rig->all) { /* the test is the clock: nothing may happen because it is slow */
		loop_timer_stop(rig->all->tick);
		loop_timer_stop(rig->all->reap);
		loop_timer_stop(rig->all->sweep);
	}
	loop_task_init(&stop, on_stop, rig->loop);
	loop_task_post(rig->loop, &stop);
	loop_run(rig->loop);
}

/* Something was called back, or is to be. */
static bool round_once(struct sandbox_rig *rig)
{
	unsigned before = rig->fake.calls + rig->faults.writes + rig->faults.queries;
	size_t answered = fake_run(&rig->fake);

	store_dispatch(&rig->store);
	rig_turn(rig);
	return answered > 0 || before != rig->fake.calls + rig->faults.writes + rig->faults.queries;
}

void rig_run(struct sandbox_rig *rig)
{
	int quiet = 0;

	for (int i = 0; i < ROUNDS_MAX && quiet < 3; i++)
		quiet = round_once(rig) ? 0 : quiet + 1;
	assert_int_equal(quiet, 3);
}

void rig_pass(struct sandbox_rig *rig, uint64_t ms)
{
	rig->now_ms += ms;
	rig->wall_ms += (int64_t)ms;
	reaper_run(rig->all);
	rig_run(rig);
}

void rig_tick(struct sandbox_rig *rig, unsigned seconds)
{
	for (; seconds > 0; seconds--) {
		rig->now_ms += 1000;
		rig->wall_ms += 1000;
		reaper_run(rig->all);
		if (rig->all->is_ticking) /* as the timer would: only when somebody asked for it */
			tick_run(rig->all);
		rig_run(rig);
	}
}

/* ---- callers ---- */

void rig_told(void *user, struct sandbox *sb, const struct err *err)
{
	struct told *t = user;
	struct sandbox_info info;

	t->calls++;
	t->sb = sb;
	t->err = err ? *err : (struct err){ 0 };
	assert_true(!err || !sb);
	assert_true(!err || err->code > 0);
	if (!sb)
		return;
	sandbox_info(sb, &info);
	t->is_existing = info.is_existing;
	t->state = info.state;
	assert_int_equal(str_copy(t->id, sizeof(t->id), info.id), 0);
}

struct sandbox_request rig_request(const char *name)
{
	return (struct sandbox_request){ .owner = "ann", .name = name, .template = "" };
}

struct sandbox *rig_create(struct sandbox_rig *rig, const char *name)
{
	struct sandbox_request req = rig_request(name);
	struct told t = { 0 };

	sandbox_create(rig->all, &req, rig_told, &t);
	assert_int_equal(t.calls, 0); /* never from inside the call */
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_string_equal(t.err.text, "");
	assert_non_null(t.sb);
	return t.sb;
}

enum sandbox_state rig_state(struct sandbox *sb)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	return info.state;
}

struct row_look {
	int result;
	char *reason;
};

static void on_row(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	struct row_look *l = user;

	(void)more;
	l->result = r < 0 ? r : rows[0].state;
	assert_true(r < 0 || n == 1);
	if (r == 0)
		l->reason = strdup(rows[0].reason);
}

int rig_row_state(struct sandbox_rig *rig, const char *id, char **ret_reason)
{
	struct row_look l = { .result = -EIO };

	assert_int_equal(store_get_sandbox(&rig->store, id, on_row, &l), 0);
	store_dispatch(&rig->store);
	if (ret_reason)
		*ret_reason = l.reason;
	else
		free(l.reason);
	return l.result;
}

void rig_exec_told(void *user, struct execution *x, const struct err *err)
{
	struct exec_told *t = user;

	t->calls++;
	assert_true(!x == !!err);
	if (x)
		t->x = exec_ref(x);
	t->err = err ? *err : (struct err){ 0 };
}

void rig_exec_ended(void *user, struct execution *x)
{
	struct exec_told *t = user;

	t->ends++;
	assert_ptr_equal(x, t->x);
}

void exec_told_done(struct exec_told *t)
{
	exec_unref(t->x);
	*t = (struct exec_told){ 0 };
}

static void on_exec_row(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	struct exec_row_look *l = user;

	(void)more;
	l->r = r;
	if (r < 0)
		return;
	assert_int_equal(n, 1);
	l->is_live = rows[0].is_live;
	l->state = rows[0].state;
	l->flags = rows[0].flags;
	l->exit_code = rows[0].exit_code;
	l->output_len = rows[0].output_len;
	l->output_bytes = rows[0].output_bytes;
	(void)snprintf(l->reason, sizeof(l->reason), "%s", rows[0].reason);
	(void)snprintf(l->content, sizeof(l->content), "%s", rows[0].content);
}

struct exec_row_look rig_exec_row(struct sandbox_rig *rig, const char *id)
{
	struct exec_row_look l = { .r = -EIO };

	assert_int_equal(store_get_execution(&rig->store, id, on_exec_row, &l), 0);
	store_dispatch(&rig->store);
	return l;
}

/* ---- being the guest ---- */

struct fake_box *rig_box(struct sandbox_rig *rig, const char *sandbox_id)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (strcmp(rig->fake.boxes[i].tag, sandbox_id) == 0 &&
		    rig->fake.boxes[i].id[0] != '\0')
			return &rig->fake.boxes[i];
	return NULL;
}

bool rig_recv(struct sandbox_rig *rig, struct fake_box *box, struct wire_head *head,
	      struct rd *payload)
{
	size_t no_fds = 0;
	ssize_t n;

	assert_int_equal(fd_nonblock(box->guest, true), 0);
	n = fd_recv(box->guest, rig->frame, sizeof(rig->frame), NULL, &no_fds);
	if (n == -EAGAIN)
		return false;
	assert_true(n > 0);
	assert_int_equal(wire_open(rig->frame, (size_t)n, head, payload), 0);
	return true;
}

uint32_t rig_expect(struct sandbox_rig *rig, struct fake_box *box, uint16_t type,
		    struct rd *ret_payload)
{
	struct wire_head head;
	struct rd payload;

	assert_true(rig_recv(rig, box, &head, &payload));
	assert_int_equal(head.type, type);
	if (ret_payload)
		*ret_payload = payload;
	return head.id;
}

void rig_expect_nothing(struct sandbox_rig *rig, struct fake_box *box)
{
	struct wire_head head;
	struct rd payload;

	if (rig_recv(rig, box, &head, &payload))
		fail_msg("a frame of type %u", head.type);
}

void rig_say(struct fake_box *box, const void *frame, long n)
{
	assert_true(n > 0);
	assert_int_equal(fd_send(box->guest, frame, (size_t)n, NULL, 0), n);
}

void rig_say_started(struct fake_box *box, uint32_t id, uint32_t pid)
{
	uint8_t frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_STARTED, id);
	wr_u32(&w, pid);
	wr_u8(&w, 0);
	rig_say(box, frame, wire_finish(&w));
}

void rig_say_output(struct fake_box *box, uint32_t id, int stream, uint64_t offset,
		    const void *data, size_t n)
{
	static uint8_t frame[GUEST_CHUNK + 64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_OUTPUT, id);
	wr_u8(&w, (uint8_t)stream);
	wr_u64(&w, offset);
	wr_raw(&w, data, n);
	rig_say(box, frame, wire_finish(&w));
}

void rig_say_exit(struct fake_box *box, uint32_t id, uint32_t code, uint32_t flags)
{
	struct guest_exit e = { .code = code,
				.flags = flags,
				.wall_us = 1500,
				.user_us = 200,
				.sys_us = 100,
				.max_rss_bytes = 4096 };
	uint8_t frame[128];

	rig_say(box, frame, guest_put_exit(frame, sizeof(frame), id, &e));
}

void rig_say_ready(struct fake_box *box, uint32_t live)
{
	struct guest_ready r = { .version = WIRE_VERSION, .resumed = 1, .live = live };
	uint8_t frame[128];

	rig_say(box, frame, guest_put_ready(frame, sizeof(frame), &r));
}

uint32_t rig_exec(struct sandbox_rig *rig, struct sandbox *sb, const struct exec_request *req,
		  struct exec_told *ret)
{
	struct sandbox_info info;
	struct fake_box *box;
	uint32_t id;

	sandbox_info(sb, &info);
	box = rig_box(rig, info.id);
	*ret = (struct exec_told){ 0 };
	exec_start(sb, req, rig_exec_told, ret);
	assert_int_equal(ret->calls, 0);
	id = rig_expect(rig, box, G_EXEC, NULL);
	rig_say_started(box, id, 7);
	rig_run(rig);
	assert_int_equal(ret->calls, 1);
	assert_int_equal(ret->err.code, 0);
	assert_non_null(ret->x);
	return id;
}

void rig_assert_nothing_left(struct sandbox_rig *rig)
{
	struct sandboxes_stats s;

	sandboxes_stats(rig->all, &s);
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		assert_int_equal(s.by_state[i], 0);
	assert_int_equal(rig->fake.live, 0);
}
