/* Everything at once in an order that nobody thought of: callers, boxes that say anything, a store
 * and a launcher that fail and heal, and the daemon's own death. Whatever happens, every caller is
 * told exactly once, and when all has healed nothing is left. */
#include "check.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/execution.h"
#include "sandbox/files.h"
#include "sandbox_rig.h"

#define SEEDS 20
#define STEPS 1500
#define HELD 16

struct chaos {
	struct sandbox_rig rig;
	uint32_t seed;
	int asked, told; /* of this life */
	struct execution *x[HELD];
	struct exec_reader *r[HELD];
	struct file_op *op[HELD];
};

static uint32_t roll(struct chaos *c, uint32_t sides)
{
	c->seed = c->seed * 1664525u + 1013904223u;
	return (c->seed >> 8) % sides;
}

/* ---- callers ---- */

static void on_sandbox(void *user, struct sandbox *sb, const struct err *err)
{
	(void)sb;
	(void)err;
	((struct chaos *)user)->told++;
}

static void on_exec(void *user, struct execution *x, const struct err *err)
{
	struct chaos *c = user;
	uint32_t i = roll(c, HELD);

	c->told++;
	assert_true(!x == !!err);
	if (x && !c->x[i])
		c->x[i] = exec_ref(x);
}

static void on_ended(void *user, struct execution *x)
{
	assert_int_not_equal(x->state, EXECUTION_RUNNING);
	((struct chaos *)user)->told++;
}

static void on_readable(void *user)
{
	(void)user;
}

static void on_file_failed(void *user, const struct err *err)
{
	struct file_op **slot = user;

	assert_true(err->code > 0);
	*slot = NULL;
}

static void on_file_done(void *user, uint64_t count)
{
	struct file_op **slot = user;

	(void)count;
	*slot = NULL;
}

static void on_get(void *user, const struct sandbox_info *info, const struct err *err)
{
	(void)info;
	(void)err;
	((struct chaos *)user)->told++;
}

static void on_list(void *user, const struct exec_info *infos, size_t n, bool more,
		    const struct err *err)
{
	(void)infos;
	(void)n;
	(void)more;
	(void)err;
	((struct chaos *)user)->told++;
}

/* One of the living, or NULL. */
static struct sandbox *pick(struct chaos *c)
{
	struct sandbox *found = NULL;
	uint32_t seen = 0;

	LIST_FOREACH (&c->rig.all->sandboxes, sb, struct sandbox, node)
		if (sb->is_registered && state_is_live(sb->state) && roll(c, ++seen) == 0)
			found = sb;
	return found;
}

static void act_create(struct chaos *c)
{
	static const char *const names[] = { "", "a", "b", "c" };
	struct sandbox_request req = rig_request(names[roll(c, 4)]);

	req.get_or_create = req.name[0] != '\0' && roll(c, 2);
	req.idle_ms = roll(c, 3) == 0 ? 20000 : 0;
	req.life.on_timeout = (uint8_t)roll(c, LAPSE_COUNT);
	c->asked++;
	sandbox_create(c->rig.all, &req, on_sandbox, c);
}

static void act_change(struct chaos *c)
{
	struct sandbox_patch patch = { .has_timeout = true, .timeout_ms = 1000 + roll(c, 100000) };
	struct sandbox *sb = pick(c);

	if (!sb)
		return;
	c->asked++;
	switch (roll(c, 6)) {
	case 0:
		sandbox_delete(sb, "deleted", on_sandbox, c);
		return;
	case 1:
		sandbox_pause(sb, on_sandbox, c);
		return;
	case 2:
		sandbox_resume(sb, on_sandbox, c);
		return;
	case 3:
		sandbox_patch(sb, &patch, on_sandbox, c);
		return;
	case 4:
		sandbox_wake(sb, on_sandbox, c);
		return;
	default:
		sandbox_get(c->rig.all, sb->id, roll(c, 2) ? "ann" : "bob", on_get, c);
	}
}

static void act_exec(struct chaos *c)
{
	struct exec_request req = { .command = "x",
				    .background = roll(c, 2),
				    .has_stdin = roll(c, 2),
				    .keep = roll(c, 2) ? 4096 : 0 };
	struct sandbox *sb = pick(c);

	if (!sb)
		return;
	if (roll(c, 4) == 0)
		req = (struct exec_request){ .kind = EXECUTION_PTY };
	c->asked++;
	if (roll(c, 8) == 0)
		exec_list(c->rig.all, sb->id, "ann", 0, NULL, 5, on_list, c);
	else
		exec_start(sb, &req, on_exec, c);
}

static void act_use(struct chaos *c)
{
	static const char data[1000];
	uint32_t i = roll(c, HELD);
	struct execution *x = c->x[i];

	if (!x)
		return;
	switch (roll(c, 7)) {
	case 0:
		(void)exec_cancel(x);
		return;
	case 1:
		(void)exec_stdin(x, data, roll(c, sizeof(data)));
		return;
	case 2:
		(void)exec_stdin_end(x);
		return;
	case 3:
		(void)exec_signal(x, SIGINT, roll(c, 2));
		return;
	case 4:
		if (exec_wait(x, on_ended, c))
			c->asked++;
		return;
	case 5:
		if (!c->r[i])
			c->r[i] = exec_reader_open(x, roll(c, 5000), on_readable, c);
		return;
	default:
		if (!c->r[i] && list_is_empty(&x->waits)) { /* who waits holds on */
			exec_unref(x);
			c->x[i] = NULL;
		}
	}
}

static void act_read(struct chaos *c)
{
	uint32_t i = roll(c, HELD);
	struct output_chunk chunk;
	uint64_t omitted;

	if (!c->r[i])
		return;
	if (roll(c, 4) == 0) {
		exec_reader_close(c->r[i]);
		c->r[i] = NULL;
		return;
	}
	(void)exec_read(c->r[i], &chunk, &omitted);
}

static void act_file(struct chaos *c)
{
	static const struct file_ops ops = { .done = on_file_done, .failed = on_file_failed };
	struct guest_file f = {
		.op = (uint8_t)roll(c, FILE_OP_COUNT), .user = "", .path = "/a", .target = ""
	};
	uint32_t i = roll(c, HELD);
	struct sandbox *sb = pick(c);

	if (c->op[i] && roll(c, 2)) {
		file_cancel(c->op[i]);
		c->op[i] = NULL;
	} else if (c->op[i]) {
		(void)file_send(c->op[i], "abc", roll(c, 4));
		file_hold(c->op[i], roll(c, 2));
	} else if (sb) {
		(void)file_start(sb, &f, &ops, &c->op[i], &c->op[i], NULL);
	}
}

/* ---- boxes ---- */

static struct fake_box *pick_box(struct chaos *c)
{
	struct fake_box *found = NULL;
	uint32_t seen = 0;

	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (c->rig.fake.boxes[i].id[0] != '\0' && roll(c, ++seen) == 0)
			found = &c->rig.fake.boxes[i];
	return found;
}

/* What nobody asked for. */
static long make_odd(struct chaos *c, uint32_t id, uint8_t *frame, size_t cap)
{
	struct guest_ready ready = { .version = WIRE_VERSION, .live = roll(c, 2) };
	struct guest_live live = { .id = id, .flags = (uint8_t)roll(c, 16), .tag = "zz" };

	switch (roll(c, 5)) {
	case 0:
		return guest_put_u64(frame, cap, G_DONE, id, 3);
	case 1:
		return guest_put_u64(frame, cap, G_TAKEN, id, roll(c, 3));
	case 2:
		return guest_put_ready(frame, cap, &ready);
	case 3:
		return guest_put_live(frame, cap, &live);
	default:
		return guest_put_error(frame, cap, id, 1 + (int)roll(c, 40), "no");
	}
}

/* The offset at which the box's next byte of this stream lies. */
static uint64_t next_offset(struct chaos *c, const char *tag, uint32_t id, int stream)
{
	struct sandbox *sb = sandboxes_find(c->rig.all, tag, NULL);

	if (sb)
		LIST_FOREACH (&sb->executions, x, struct execution, node)
			if (x->guest_id == id && x->output)
				return output_stream_end(x->output, stream) + x->queued[stream - 1];
	return 0;
}

/* What a box says about an execution: right most of the time. */
static long make_frame(struct chaos *c, const struct fake_box *box, uint32_t id, uint8_t *frame,
		       size_t cap)
{
	static const char data[3000];
	struct guest_exit e = { .code = roll(c, 140), .flags = roll(c, 32) };
	int stream = 1 + (int)roll(c, 2);
	struct wr w;

	if (roll(c, 60) == 0)
		return make_odd(c, id, frame, cap);
	switch (roll(c, 8)) {
	case 0:
		return guest_put_exit(frame, cap, id, &e);
	case 1:
		wire_begin(&w, frame, cap, G_STARTED, id);
		wr_u32(&w, 7);
		wr_u8(&w, (uint8_t)roll(c, 2));
		return wire_finish(&w);
	default:
		wire_begin(&w, frame, cap, G_OUTPUT, id);
		wr_u8(&w, (uint8_t)stream);
		wr_u64(&w, next_offset(c, box->tag, id, stream) + (roll(c, 20) ? 0 : 5));
		wr_raw(&w, data, roll(c, sizeof(data)));
		return wire_finish(&w);
	}
}

/* An execution that lives there, as the box numbers them; 0: none. */
static uint32_t pick_id(struct chaos *c, const struct fake_box *box)
{
	struct sandbox *sb = sandboxes_find(c->rig.all, box->tag, NULL);
	uint32_t seen = 0, id = 0;

	if (sb)
		LIST_FOREACH (&sb->executions, x, struct execution, node)
			if (x->is_bound && roll(c, ++seen) == 0)
				id = x->guest_id;
	return id;
}

static void act_box(struct chaos *c)
{
	struct fake_box *box = pick_box(c);
	uint8_t frame[4096];
	uint32_t id;
	long n;

	if (!box || box->guest < 0)
		return;
	(void)fd_nonblock(box->guest, true);
	for (int i = 0; i < 4; i++) { /* what it is told is of no interest, but makes room */
		size_t no_fds = 0;

		(void)fd_recv(box->guest, frame, sizeof(frame), NULL, &no_fds);
	}
	id = pick_id(c, box);
	if (id == 0 && roll(c, 10) == 0)
		id = 1 + roll(c, 8);
	n = id > 0 ? make_frame(c, box, id, frame, sizeof(frame)) : 0;
	if (n > 0)
		(void)fd_send(box->guest, frame, (size_t)n, NULL, 0);
}

/* A box that was connected to anew says that nothing lives, as one that is new to it all. */
static void act_speak(struct chaos *c)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++) {
		struct guest_ready r = { .version = WIRE_VERSION };
		struct sandbox *sb = NULL;
		uint8_t frame[64];

		if (c->rig.fake.boxes[i].id[0] == '\0' || c->rig.fake.boxes[i].guest < 0)
			continue;
		sb = sandboxes_find(c->rig.all, c->rig.fake.boxes[i].tag, NULL);
		if (!sb || !sb->guest || sb->is_guest_ready || sb->live_left > 0)
			continue;
		(void)fd_send(c->rig.fake.boxes[i].guest, frame,
			      (size_t)guest_put_ready(frame, sizeof(frame), &r), NULL, 0);
	}
}

/* ---- trouble ---- */

static void act_trouble(struct chaos *c)
{
	struct fake_box *box = pick_box(c);

	if (roll(c, 3) != 0) { /* it heals more often than it breaks */
		c->rig.faults = (struct store_faults){ 0 };
		return;
	}
	switch (roll(c, 6)) {
	case 0:
		c->rig.faults.fail_in = 1 + roll(c, 4);
		c->rig.faults.fail_with = roll(c, 2) ? ENOSPC : EIO;
		c->rig.faults.fail_on = roll(c, 4) == 0;
		return;
	case 1:
		c->rig.faults.refuse_in = 1 + roll(c, 3);
		return;
	case 2:
		c->rig.fake.fail_in = 1 + roll(c, 3);
		c->rig.fake.fail_with = roll(c, 2) ? EIO : EAGAIN;
		c->rig.fake.fail_at_once = roll(c, 2);
		return;
	case 3:
		c->rig.faults.is_held = !c->rig.faults.is_held;
		return;
	case 4:
		if (box && box->guest >= 0 && roll(c, 3) == 0) {
			(void)close(box->guest);
			box->guest = -1;
		}
		return;
	default:
		if (box && roll(c, 3) == 0)
			fake_kill(&c->rig.fake, box->id, roll(c, 2) ? SIGKILL : 1 << 8);
	}
}

static void act_launcher(struct chaos *c)
{
	if (c->rig.fake.gone) {
		rig_ready(&c->rig);
	} else if (roll(c, 10) == 0) {
		fake_go_away(&c->rig.fake);
		sandboxes_provider_lost(c->rig.all);
	}
}

/* Whatever callers hold is theirs, and goes with them. */
static void let_go(struct chaos *c)
{
	for (size_t i = 0; i < HELD; i++) {
		exec_reader_close(c->r[i]);
		exec_unref(c->x[i]);
		c->r[i] = NULL;
		c->x[i] = NULL;
	}
}

static void cancel_ops(struct chaos *c)
{
	for (size_t i = 0; i < HELD; i++) {
		file_cancel(c->op[i]);
		c->op[i] = NULL;
	}
}

static void act_death(struct chaos *c)
{
	if (roll(c, 40) != 0)
		return;
	for (size_t i = 0; i < HELD; i++) /* who waits is told, or lets go: here nobody can be */
		if (c->x[i] && !list_is_empty(&c->x[i]->waits))
			return;
	cancel_ops(c);
	let_go(c);
	rig_death(&c->rig);
	rig_birth(&c->rig);
	rig_ready(&c->rig);
	c->asked = c->told = 0;
}

static void pass_time(struct chaos *c)
{
	uint32_t ms = roll(c, 1500);

	c->rig.now_ms += ms;
	c->rig.wall_ms += ms;
	reaper_run(c->rig.all);
	if (c->rig.all->is_ticking)
		tick_run(c->rig.all);
	if (roll(c, 10) == 0)
		sweep_run(c->rig.all);
}

static void some_turns(struct chaos *c)
{
	if (roll(c, 2))
		(void)fake_step(&c->rig.fake);
	if (roll(c, 2))
		store_dispatch(&c->rig.store);
	if (roll(c, 2))
		rig_turn(&c->rig);
}

static void (*const acts[])(struct chaos *c) = {
	act_create, act_change,  act_exec,   act_exec,     act_exec,   act_use,
	act_use,    act_use,     act_read,   act_read,     act_file,   act_box,
	act_box,    act_box,     act_box,    act_box,      act_box,    act_speak,
	act_speak,  act_trouble, act_death,  act_launcher, pass_time,  some_turns,
	some_turns, some_turns,  some_turns, some_turns,   some_turns, some_turns,
};

/* All faults are over; everybody is deleted; time goes by until nothing is left. */
static void heal(struct chaos *c)
{
	struct sandbox_rig *rig = &c->rig;

	rig->faults = (struct store_faults){ 0 };
	rig->fake.fail_in = 0;
	cancel_ops(c);
	let_go(c);
	if (rig->fake.gone)
		rig_ready(rig);
	for (int i = 0; i < 120; i++) {
		struct sandbox *sb = NULL;

		rig_run(rig);
		act_speak(c);
		LIST_FOREACH (&rig->all->sandboxes, one, struct sandbox, node)
			if (one->is_registered && state_is_live(one->state) &&
			    one->state != SANDBOX_STOPPING && one->state != SANDBOX_CREATING)
				sb = one;
		if (sb) {
			c->asked++;
			sandbox_delete(sb, "deleted", on_sandbox, c);
		}
		rig_tick(rig, 1);
	}
	sweep_run(rig->all);
	rig_run(rig);
	let_go(c); /* what was started last */
	rig_run(rig);
}

static void count_row(void *user, const struct sandbox_row *row)
{
	print_error("sandbox %s is %s in the store\n", row->id, state_name(row->state));
	++*(int *)user;
}

static void count_execution(void *user, const struct execution_row *row)
{
	print_error("execution %s is live in the store\n", row->id);
	++*(int *)user;
}

static void run_seed(uint32_t seed)
{
	static struct chaos c;
	struct sandboxes_stats stats;
	int live = 0;

	c = (struct chaos){ .seed = seed };
	rig_open(&c.rig);
	for (int i = 0; i < STEPS; i++)
		acts[roll(&c, sizeof(acts) / sizeof(acts[0]))](&c);
	heal(&c);
	sandboxes_stats(c.rig.all, &stats);
	for (int i = 0; i < SANDBOX_STATE_COUNT; i++)
		if (stats.by_state[i] != 0)
			fail_msg("seed %u: %zu are %s", seed, stats.by_state[i], state_name(i));
	assert_int_equal(stats.executions, 0);
	assert_int_equal(c.rig.fake.live, 0);
	if (c.asked != c.told)
		fail_msg("seed %u: %d asked, %d told", seed, c.asked, c.told);
	assert_int_equal(store_load_live_sandboxes(&c.rig.store, count_row, &live, NULL), 0);
	assert_int_equal(store_load_live_executions(&c.rig.store, count_execution, &live, NULL), 0);
	assert_int_equal(live, 0);
	rig_close(&c.rig);
}

static void whatever_happens_every_caller_is_told_once_and_nothing_is_left(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= SEEDS; seed++)
		run_seed(seed);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(whatever_happens_every_caller_is_told_once_and_nothing_is_left),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
