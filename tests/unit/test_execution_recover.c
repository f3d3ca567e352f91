#include "check.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "sandbox/execution.h"
#include "sandbox_rig.h"

/* ---- a box that remembers, as holt-init does ---- */

#define WRITTEN_MAX (512u << 10)

struct program {
	uint32_t id;
	char tag[ID_LEN + 1];
	uint8_t stream[WRITTEN_MAX]; /* whose each byte was, in the order of writing */
	size_t written, sent, credited;
	uint64_t offset[2]; /* of the next byte to be said, of each stream */
	bool is_ended, is_acked;
};

static char byte_at(int stream, uint64_t offset)
{
	return (char)(stream == 1 ? 'a' + offset % 26 : 'A' + offset % 23);
}

static void hear(struct sandbox_rig *rig, struct fake_box *box, struct program *p)
{
	struct wire_head head;
	struct rd payload;

	while (rig_recv(rig, box, &head, &payload)) {
		if (head.id != p->id)
			continue;
		if (head.type == G_CREDIT)
			p->credited += rd_u64(&payload);
		p->is_acked = p->is_acked || head.type == G_ACK;
	}
}

/* Says what was written, within the window; a run of one stream is one frame. */
static void say(struct sandbox_rig *rig, struct fake_box *box, struct program *p)
{
	for (int frames = 1; p->sent < p->written && p->sent < p->credited + GUEST_WINDOW;
	     frames++) {
		char data[1000];
		uint8_t s = p->stream[p->sent];
		size_t n = 0;

		while (n < sizeof(data) && p->sent < p->written && p->stream[p->sent] == s &&
		       p->sent < p->credited + GUEST_WINDOW) {
			data[n] = byte_at(s, p->offset[s - 1] + n);
			n++;
			p->sent++;
		}
		rig_say_output(box, p->id, s, p->offset[s - 1], data, n);
		p->offset[s - 1] += n;
		if (frames % 32 == 0) /* a socket holds only so many */
			rig_turn(rig);
	}
}

/* A new client: nothing has been said to it, and what was not credited is said again. */
static void say_live(struct fake_box *box, struct program *p)
{
	struct guest_live live = { .id = p->id, .pid = 7, .age_ms = 1234, .tag = p->tag };
	uint8_t frame[256];

	p->sent = p->credited;
	p->offset[0] = p->offset[1] = 0;
	for (size_t i = 0; i < p->credited; i++)
		p->offset[p->stream[i] - 1]++;
	live.offset[0] = p->offset[0];
	live.offset[1] = p->offset[1];
	live.flags = p->is_ended ? LIVE_ENDED : 0;
	rig_say(box, frame, guest_put_live(frame, sizeof(frame), &live));
}

static uint32_t next_random(uint32_t *seed)
{
	*seed = *seed * 1664525u + 1013904223u;
	return *seed >> 8;
}

static void write_random(struct program *p, size_t n, uint32_t *seed)
{
	while (n > 0 && p->written < WRITTEN_MAX) {
		size_t run = 1 + next_random(seed) % (next_random(seed) % 8 == 0 ? 5000 : 20);
		uint8_t s = (uint8_t)(1 + next_random(seed) % 2);

		for (; run > 0 && n > 0 && p->written < WRITTEN_MAX; run--, n--)
			p->stream[p->written++] = s;
	}
}

/* ---- what comes back ---- */

static void on_readable(void *user)
{
	(void)user;
}

struct reading {
	uint64_t at;
	size_t n; /* into program.stream */
	uint64_t streams[2];
};

/* Reads all there is from where it was, and checks it against what was written. */
static void read_on(struct execution *x, const struct program *p, struct reading *to)
{
	struct exec_reader *r = exec_reader_open(x, to->at, on_readable, NULL);
	struct output_chunk c;
	uint64_t omitted;

	assert_non_null(r);
	while (exec_read(r, &c, &omitted) == 1) {
		assert_int_equal(omitted, 0);
		assert_int_equal(c.seq, to->at);
		for (size_t i = 0; i < c.len; i++, to->n++) {
			assert_true(to->n < p->written);
			assert_int_equal(p->stream[to->n], c.stream);
			assert_int_equal(c.data[i], byte_at(c.stream, to->streams[c.stream - 1]++));
		}
		to->at += c.len;
	}
	exec_reader_close(r);
}

static void start(struct sandbox_rig *rig, struct sandbox *sb, bool is_background,
		  struct program *p, struct exec_told *t)
{
	struct exec_request req = { .command = "x", .background = is_background };

	*p = (struct program){ 0 };
	p->id = rig_exec(rig, sb, &req, t);
	memcpy(p->tag, t->x->id, sizeof(p->tag));
}

/* The daemon is killed, and starts again; its boxes wait to speak. */
static void restart(struct sandbox_rig *rig)
{
	rig_death(rig);
	store_dispatch(&rig->store); /* of the former life: nobody is there */
	rig_birth(rig);
	rig_ready(rig);
	rig_run(rig);
}

static void check_replay(uint32_t seed, bool is_background, size_t total)
{
	static struct program p;
	struct reading reading = { 0 };
	struct sandbox_rig rig;
	struct exec_told t;
	struct sandbox *sb;
	struct fake_box *box;
	struct execution *x;
	char id[ID_LEN + 1];

	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	start(&rig, sb, is_background, &p, &t);
	x = t.x;
	box = rig_box(&rig, id);
	for (int life = 0; life < 4; life++) {
		for (int i = 0; i < 6; i++) {
			write_random(&p, next_random(&seed) % (total / 12), &seed);
			hear(&rig, box, &p);
			say(&rig, box, &p);
			/* The end of a life may come before we have heard, or before it has. */
			if (next_random(&seed) % 4 != 0)
				rig_run(&rig);
			if (next_random(&seed) % 3 == 0)
				read_on(x, &p, &reading);
		}
		exec_told_done(&t);
		restart(&rig);
		box = rig_box(&rig, id);
		rig_say_ready(box, 1);
		say_live(box, &p);
		rig_run(&rig);
		sb = sandboxes_find(rig.all, id, "ann");
		x = exec_find(sb, p.tag);
		assert_non_null(x);
		assert_int_equal(x->state, EXECUTION_RUNNING);
		t.x = exec_ref(x);
	}
	while (p.sent < p.written) {
		hear(&rig, box, &p);
		say(&rig, box, &p);
		rig_run(&rig);
	}
	rig_say_exit(box, p.id, 5, 0);
	rig_run(&rig);
	hear(&rig, box, &p);
	assert_true(p.is_acked);
	read_on(x, &p, &reading);
	assert_int_equal(reading.n, p.written); /* nothing lost, nothing twice */
	assert_int_equal(x->state, EXECUTION_EXITED);
	assert_int_equal(x->exit_code, 5);
	assert_int_equal(x->flags & EXECUTION_TRUNCATED, 0);
	exec_told_done(&t);
	rig_close(&rig);
}

static void a_reader_goes_on_behind_any_crash_without_loss_or_doubling(void **state)
{
	(void)state;
	for (uint32_t seed = 1; seed <= 12; seed++) {
		check_replay(seed, seed % 2 == 0, 20 << 10);  /* all of it left with the box */
		check_replay(seed, seed % 2 == 0, 400 << 10); /* most of it in a file */
	}
}

/* ---- what lives and what does not ---- */

struct row_look {
	int r;
	unsigned state;
	bool is_live;
	uint64_t output_bytes;
	int32_t exit_code;
	char content[100], reason[100];
};

static void on_row(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	struct row_look *l = user;

	(void)n;
	(void)more;
	l->r = r;
	if (r < 0)
		return;
	l->state = rows[0].state;
	l->is_live = rows[0].is_live;
	l->exit_code = rows[0].exit_code;
	l->output_bytes = rows[0].output_bytes;
	(void)snprintf(l->content, sizeof(l->content), "%s", rows[0].content);
	(void)snprintf(l->reason, sizeof(l->reason), "%s", rows[0].reason);
}

static struct row_look look_up(struct sandbox_rig *rig, const char *id)
{
	struct row_look l = { .r = -EIO };

	assert_int_equal(store_get_execution(&rig->store, id, on_row, &l), 0);
	store_dispatch(&rig->store);
	return l;
}

static void one_that_was_never_recorded_is_found_by_its_name_and_recorded_at_its_end(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct exec_told t;
	struct exec_info info;
	struct row_look row;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t seed = 3;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	start(&rig, sb, false, &p, &t);
	exec_told_done(&t);
	write_random(&p, 5000, &seed);
	p.is_ended = true;
	restart(&rig); /* it ended while nobody listened */
	box = rig_box(&rig, id);
	rig_say_ready(box, 1);
	say_live(box, &p);
	say(&rig, box, &p);
	rig_turn(&rig);
	exec_info(exec_find(sandboxes_find(rig.all, id, "ann"), p.tag), &info);
	assert_string_equal(info.content, "null");
	assert_int_equal(info.started_ms, rig.wall_ms - 1234);
	rig_say_exit(box, p.id, 9, 0);
	rig_run(&rig);
	hear(&rig, box, &p);
	assert_true(p.is_acked);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.r, 0);
	assert_int_equal(row.exit_code, 9);
	assert_int_equal(row.output_bytes, 5000);
	rig_close(&rig);
}

static void one_whose_end_was_recorded_but_not_acknowledged_is_not_recorded_again(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct exec_told t;
	struct row_look row;
	struct sandbox *sb;
	struct fake_box *box;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	start(&rig, sb, false, &p, &t);
	exec_told_done(&t);
	rig_say_exit(rig_box(&rig, id), p.id, 4, 0);
	rig_turn(&rig); /* the row is written, and its callback never comes */
	p.is_ended = true;
	restart(&rig);
	box = rig_box(&rig, id);
	for (int is_failing = 1; is_failing >= 0; is_failing--) {
		if (is_failing) {
			rig.faults.refuse_in = 1; /* it is asked again later */
			rig_say_ready(box, 1);
			say_live(box, &p);
			rig_say_exit(box, p.id, 4, 0);
			rig_run(&rig);
			hear(&rig, box, &p);
			assert_false(p.is_acked);
		}
		rig_tick(&rig, 1);
	}
	hear(&rig, box, &p);
	assert_true(p.is_acked);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.exit_code, 4);
	assert_string_equal(row.content, "{\"type\":\"command\",\"command\":\"x\"}");
	sb = sandboxes_find(rig.all, id, "ann");
	assert_null(exec_find(sb, p.tag));
	assert_int_equal(sb->n_running + sb->n_unrecorded, 0);
	rig_close(&rig);
}

static void one_that_its_box_does_not_know_was_interrupted_with_what_the_file_has(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct exec_told t;
	struct row_look row;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t seed = 5;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	box = rig_box(&rig, id);
	start(&rig, sb, true, &p, &t);
	write_random(&p, 60000, &seed);
	say(&rig, box, &p);
	rig_run(&rig);
	assert_true(output_is_persistent(t.x->output));
	exec_told_done(&t);
	restart(&rig);
	rig_say_ready(rig_box(&rig, id), 0);
	rig_run(&rig);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.state, EXECUTION_INTERRUPTED);
	assert_false(row.is_live);
	assert_int_equal(row.output_bytes, 60000);
	assert_string_equal(row.reason, "its box does not know it any more");
	assert_int_not_equal(faccessat(rig.settings.spool_fd, p.tag, F_OK, 0), 0);
	rig_close(&rig);
}

static void those_of_a_sandbox_without_a_box_were_interrupted(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct exec_told t;
	struct row_look row;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	start(&rig, sb, true, &p, &t);
	exec_told_done(&t);
	rig.fake.on_death = NULL;
	fake_kill(&rig.fake, sb->box_id, 9);
	restart(&rig);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.state, EXECUTION_INTERRUPTED);
	assert_string_equal(row.reason, "its box ended while nobody watched");
	rig_close(&rig);
}

static void those_whose_sandbox_had_ended_were_interrupted(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct exec_told t;
	struct row_look row;
	struct told ended = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	start(&rig, sb, true, &p, &t);
	exec_told_done(&t);
	/* The sandbox's end is written, the execution's is not. */
	sandbox_delete(sb, "deleted", rig_told, &ended);
	rig_turn(&rig);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EIO;
	rig_run(&rig);
	assert_int_equal(ended.err.code, 0);
	assert_true(look_up(&rig, p.tag).is_live);
	restart(&rig);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.state, EXECUTION_INTERRUPTED);
	assert_false(row.is_live);
	rig_close(&rig);
}

static void a_name_that_cannot_be_ours_is_cancelled_and_forgotten(void **state)
{
	static struct program p;
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct fake_box *box;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	p = (struct program){ .id = 77 };
	memcpy(p.tag, "Not/One/Of/Ours", 16);
	restart(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	box = rig_box(&rig, sb->id);
	rig_say_ready(box, 1);
	say_live(box, &p);
	rig_run(&rig);
	assert_int_equal(rig_expect(&rig, box, G_CANCEL, NULL), 77);
	assert_int_equal(sb->n_running, 0);
	rig_close(&rig);
}

/* What a box says is its own word: it must not become the end, the output or the owner of what runs
 * or ran in another. */
static void one_of_another_sandbox_is_not_believed(void **state)
{
	static struct program p, lie;
	struct sandbox_rig rig;
	struct fake_box *liar;
	struct exec_told t;
	struct row_look row;
	char id[ID_LEN + 1], lying_id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	memcpy(id, rig_create(&rig, "web")->id, sizeof(id));
	memcpy(lying_id, rig_create(&rig, "liar")->id, sizeof(lying_id));
	start(&rig, sandboxes_find(rig.all, id, "ann"), true, &p, &t);
	exec_told_done(&t);
	restart(&rig);
	liar = rig_box(&rig, lying_id);
	lie = (struct program){ .id = 77 };
	memcpy(lie.tag, p.tag, sizeof(lie.tag));
	rig_say_ready(liar, 1); /* it runs still */
	say_live(liar, &lie);
	rig_say_output(liar, 77, 1, 0, "lies", 4);
	rig_say_exit(liar, 77, 66, 0);
	rig_say_ready(rig_box(&rig, id), 1);
	say_live(rig_box(&rig, id), &p);
	rig_run(&rig);
	assert_int_equal(rig_expect(&rig, liar, G_CANCEL, NULL), 77);
	assert_true(look_up(&rig, p.tag).is_live);
	rig_say_exit(rig_box(&rig, id), p.id, 9, 0);
	rig_run(&rig);
	assert_int_equal(look_up(&rig, p.tag).exit_code, 9);

	restart(&rig); /* now it has ended and is only in the store */
	liar = rig_box(&rig, lying_id);
	rig_say_ready(liar, 1);
	say_live(liar, &lie);
	rig_say_exit(liar, 77, 66, 0);
	rig_say_ready(rig_box(&rig, id), 0);
	rig_run(&rig);
	row = look_up(&rig, p.tag);
	assert_int_equal(row.exit_code, 9);
	assert_int_equal(row.output_bytes, 0);
	rig_close(&rig);
}

static void one_in_a_frozen_box_is_found_again_when_that_is_resumed(void **state)
{
	static struct program p, sync;
	struct sandbox_rig rig;
	struct exec_told t;
	struct told changed = { 0 };
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t seed = 9;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	memcpy(id, sb->id, sizeof(id));
	start(&rig, sb, true, &p, &t);
	exec_told_done(&t);
	start(&rig, sb, false, &sync, &t);
	write_random(&sync, 60000, &seed); /* has a file, and no row */
	say(&rig, rig_box(&rig, id), &sync);
	rig_run(&rig);
	exec_told_done(&t);
	sandbox_pause(sb, rig_told, &changed);
	rig_run(&rig);
	restart(&rig);
	assert_int_equal(rig.ready, 2); /* nobody waits for a frozen one */
	sweep_run(rig.all);
	rig_run(&rig);
	/* Its file is not taken for nobody's. */
	assert_int_equal(faccessat(rig.settings.spool_fd, sync.tag, F_OK, 0), 0);
	sb = sandboxes_find(rig.all, id, "ann");
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	assert_int_equal(sb->n_running, 1);
	box = rig_box(&rig, id);
	sandbox_resume(sb, rig_told, &changed);
	rig_run(&rig);
	assert_int_equal(changed.calls, 1);
	hear(&rig, box, &sync);
	rig_say_ready(box, 2);
	say_live(box, &p);
	say_live(box, &sync);
	rig_run(&rig);
	assert_int_equal(changed.calls, 2);
	assert_int_equal(changed.err.code, 0);
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);
	assert_int_equal(sb->n_running, 2);
	assert_int_equal(output_end(exec_output(exec_find(sb, sync.tag))), 60000);
	rig_close(&rig);
}

struct infos {
	size_t n;
};

static void check_failed(struct infos *to, const struct exec_info *info)
{
	assert_int_equal(info->state, EXECUTION_FAILED);
	assert_int_equal(info->kind, EXECUTION_COMMAND);
	assert_int_equal(info->signal, 0);
	assert_string_equal(info->reason, "its record is damaged");
	to->n++;
}

static void on_damaged(void *user, const struct exec_info *info, const struct output *output,
		       const struct err *err)
{
	assert_null(err);
	assert_null(output);
	check_failed(user, info);
}

static void on_damaged_list(void *user, const struct exec_info *infos, size_t n, bool more,
			    const struct err *err)
{
	assert_null(err);
	assert_false(more);
	for (size_t i = 0; i < n; i++)
		check_failed(user, &infos[i]);
}

static void a_record_with_impossible_numbers_reads_as_a_failure(void **state)
{
	static const struct {
		uint8_t kind, state;
		int32_t signal;
	} rows[] = {
		{ EXECUTION_KIND_COUNT, EXECUTION_EXITED, 0 },
		{ 255, EXECUTION_EXITED, 0 },
		{ EXECUTION_CODE, EXECUTION_STATE_COUNT, 0 },
		{ EXECUTION_CODE, 255, 0 },
		{ EXECUTION_CODE, EXECUTION_EXITED, INT32_MAX },
		{ EXECUTION_CODE, EXECUTION_EXITED, -1 },
	};
	const size_t n = sizeof(rows) / sizeof(rows[0]);
	struct sandbox_rig rig;
	struct infos got = { 0 };
	struct sandbox *sb;
	char id[ID_LEN + 1];

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	for (size_t i = 0; i < n; i++) {
		struct execution_row row = { .id = id,
					     .sandbox_id = sb->id,
					     .owner = "ann",
					     .kind = rows[i].kind,
					     .state = rows[i].state,
					     .signal = rows[i].signal,
					     .reason = "",
					     .content = "null" };

		id_make(id);
		assert_int_equal(store_put_execution(&rig.store, &row, NULL, NULL), 0);
		exec_get(rig.all, sb->id, "ann", id, on_damaged, &got);
		rig_run(&rig);
		assert_int_equal(got.n, i + 1);
	}
	got.n = 0;
	exec_list(rig.all, sb->id, "ann", 0, NULL, 50, on_damaged_list, &got);
	rig_run(&rig);
	assert_int_equal(got.n, n);
	rig_close(&rig);
}

static void one_that_ran_with_an_impossible_kind_goes_on_as_a_command(void **state)
{
	struct sandbox_rig rig;
	struct exec_info info;
	struct sandbox *sb;
	char id[ID_LEN + 1];
	struct execution_row row = { .id = id,
				     .owner = "ann",
				     .kind = 255,
				     .is_live = true,
				     .reason = "",
				     .content = "null" };

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	id_make(id);
	row.sandbox_id = sb->id;
	assert_int_equal(store_put_execution(&rig.store, &row, NULL, NULL), 0);
	restart(&rig);
	sb = sandboxes_find(rig.all, "web", "ann");
	exec_info(exec_find(sb, id), &info);
	assert_int_equal(info.kind, EXECUTION_COMMAND);
	rig_close(&rig);
}

static void files_of_nobody_are_removed(void **state)
{
	struct sandbox_rig rig;
	char stale[ID_LEN + 1];
	int fd;

	(void)state;
	rig_open(&rig);
	rig_death(&rig);
	id_make(stale);
	fd = openat(rig.settings.spool_fd, stale, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	assert_true(fd >= 0);
	(void)close(fd);
	fd = openat(rig.settings.spool_fd, "not-ours", O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
	(void)close(fd);
	rig_birth(&rig);
	assert_int_equal(faccessat(rig.settings.spool_fd, stale, F_OK, 0), 0);
	rig_ready(&rig);
	rig_run(&rig);
	assert_int_not_equal(faccessat(rig.settings.spool_fd, stale, F_OK, 0), 0);
	assert_int_equal(faccessat(rig.settings.spool_fd, "not-ours", F_OK, 0), 0);
	rig_close(&rig);
}

static void a_connection_that_is_lost_and_found_loses_nothing(void **state)
{
	static struct program p;
	struct reading reading = { 0 };
	struct sandbox_rig rig;
	struct exec_told t;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t seed = 11;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "web");
	box = rig_box(&rig, sb->id);
	start(&rig, sb, false, &p, &t);
	write_random(&p, 100000, &seed);
	hear(&rig, box, &p);
	say(&rig, box, &p);
	rig_run(&rig);
	hear(&rig, box, &p);
	(void)close(box->guest);
	box->guest = -1;
	rig_run(&rig);
	assert_int_equal(t.x->state, EXECUTION_RUNNING);
	rig_tick(&rig, 2);
	rig_say_ready(box, 1);
	say_live(box, &p);
	write_random(&p, 1000, &seed);
	say(&rig, box, &p);
	rig_run(&rig);
	read_on(t.x, &p, &reading);
	assert_int_equal(reading.n, 101000);
	rig_say_exit(box, p.id, 0, 0);
	rig_run(&rig);
	hear(&rig, box, &p);
	assert_true(p.is_acked);
	exec_told_done(&t);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_reader_goes_on_behind_any_crash_without_loss_or_doubling),
		cmocka_unit_test(
			one_that_was_never_recorded_is_found_by_its_name_and_recorded_at_its_end),
		cmocka_unit_test(
			one_whose_end_was_recorded_but_not_acknowledged_is_not_recorded_again),
		cmocka_unit_test(
			one_that_its_box_does_not_know_was_interrupted_with_what_the_file_has),
		cmocka_unit_test(those_of_a_sandbox_without_a_box_were_interrupted),
		cmocka_unit_test(those_whose_sandbox_had_ended_were_interrupted),
		cmocka_unit_test(a_name_that_cannot_be_ours_is_cancelled_and_forgotten),
		cmocka_unit_test(one_of_another_sandbox_is_not_believed),
		cmocka_unit_test(one_in_a_frozen_box_is_found_again_when_that_is_resumed),
		cmocka_unit_test(a_record_with_impossible_numbers_reads_as_a_failure),
		cmocka_unit_test(one_that_ran_with_an_impossible_kind_goes_on_as_a_command),
		cmocka_unit_test(files_of_nobody_are_removed),
		cmocka_unit_test(a_connection_that_is_lost_and_found_loses_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
