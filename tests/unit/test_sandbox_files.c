#include "check.h"

#include <errno.h>
#include <signal.h>
#include <string.h>

#include "sandbox/files.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

struct seen {
	int entries, dones, fails, armed, events, rooms;
	size_t bytes;
	uint64_t count;
	struct err err;
	struct file_op *op; /* cancelled at the first data */
};

static void on_entry(void *user, const struct guest_entry *entry)
{
	assert_string_equal(entry->path, "/workspace/a");
	((struct seen *)user)->entries++;
}

static void on_data(void *user, const void *data, size_t n)
{
	struct seen *s = user;

	(void)data;
	s->bytes += n;
	if (s->op) {
		file_cancel(s->op);
		s->op = NULL;
	}
}

static void on_room(void *user)
{
	((struct seen *)user)->rooms++;
}

static void on_event(void *user, enum guest_event event, const char *path)
{
	assert_int_equal(event, EVENT_WRITE);
	assert_string_equal(path, "a");
	((struct seen *)user)->events++;
}

static void on_armed(void *user)
{
	((struct seen *)user)->armed++;
}

static void on_done(void *user, uint64_t count)
{
	struct seen *s = user;

	s->dones++;
	s->count = count;
}

static void on_failed(void *user, const struct err *err)
{
	struct seen *s = user;

	s->fails++;
	s->err = *err;
}

static const struct file_ops ops = { .entry = on_entry,
				     .data = on_data,
				     .room = on_room,
				     .event = on_event,
				     .armed = on_armed,
				     .done = on_done,
				     .failed = on_failed };

static struct guest_file ask(enum guest_file_op op)
{
	return (struct guest_file){
		.op = (uint8_t)op, .user = "", .path = "/workspace/a", .target = ""
	};
}

/* Starts it; its id in the box. */
static uint32_t begin(struct sandbox_rig *rig, struct sandbox *sb, enum guest_file_op kind,
		      struct seen *s, struct file_op **ret)
{
	struct guest_file f = ask(kind);
	struct err err = { 0 };

	assert_int_equal(file_start(sb, &f, &ops, s, ret, &err), 0);
	return rig_expect(rig, rig_box(rig, sb->id), G_FILE, NULL);
}

static void say_u64(struct fake_box *box, uint16_t type, uint32_t id, uint64_t v)
{
	uint8_t frame[64];

	rig_say(box, frame, guest_put_u64(frame, sizeof(frame), type, id, v));
}

static void say_data(struct fake_box *box, uint32_t id, size_t n)
{
	static uint8_t frame[GUEST_CHUNK + 64];
	static const char data[GUEST_CHUNK];

	rig_say(box, frame, guest_put_raw(frame, sizeof(frame), G_DATA, id, data, n));
}

static void a_file_is_read_and_written(void **state)
{
	static const char data[GUEST_WINDOW + 10] = { 0 };
	struct guest_entry entry = { .path = "/workspace/a", .target = "" };
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	uint8_t frame[256];
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_READ, &s, &op);
	rig_say(box, frame, guest_put_entry(frame, sizeof(frame), id, &entry));
	say_data(box, id, 100);
	say_u64(box, G_DONE, id, 100);
	rig_run(&rig);
	assert_true(s.entries == 1 && s.bytes == 100 && s.dones == 1 && s.count == 100);
	assert_int_equal(sb->n_file_ops, 0);
	id = begin(&rig, sb, FILE_WRITE, &s, &op);
	assert_int_equal(file_send(op, data, sizeof(data)), GUEST_WINDOW); /* no more at once */
	assert_int_equal(file_send(op, data, 10), 0);
	while (rig_expect(&rig, box, G_DATA, NULL) == id && s.rooms == 0) {
		say_u64(box, G_TAKEN, id, 10);
		rig_run(&rig);
	}
	assert_int_equal(file_send(op, data, 10), 10);
	assert_int_equal(file_send(op, NULL, 0), 0);
	say_u64(box, G_DONE, id, GUEST_WINDOW + 10);
	rig_run(&rig);
	assert_int_equal(s.dones, 2);
	assert_int_equal(s.fails, 0);
	rig_close(&rig);
}

static void a_held_read_stops_within_the_window(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_READ, &s, &op);
	file_hold(op, true);
	for (size_t n = 0; n < GUEST_WINDOW; n += GUEST_CHUNK)
		say_data(box, id, GUEST_CHUNK);
	rig_run(&rig);
	assert_int_equal(s.bytes, GUEST_WINDOW);
	rig_expect_nothing(&rig, box);
	file_hold(op, false);
	assert_int_equal(rig_expect(&rig, box, G_CREDIT, NULL), id);
	file_cancel(op);
	rig_close(&rig);
}

static void a_watch_is_armed_sees_events_and_ends_only_when_cancelled(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	uint8_t frame[64];
	struct sandbox *sb;
	struct fake_box *box;
	struct wr w;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_WATCH, &s, &op);
	say_u64(box, G_DONE, id, 0);
	wire_begin(&w, frame, sizeof(frame), G_EVENT, id);
	wr_u8(&w, EVENT_WRITE);
	wr_str(&w, "a");
	rig_say(box, frame, wire_finish(&w));
	rig_run(&rig);
	assert_true(s.armed == 1 && s.events == 1 && s.dones == 0);
	assert_int_equal(sb->n_file_ops, 1);
	file_cancel(op);
	assert_int_equal(rig_expect(&rig, box, G_CANCEL, NULL), id);
	rig_say(box, frame, guest_put_error(frame, sizeof(frame), id, ECANCELED, "cancelled"));
	rig_run(&rig);
	assert_int_equal(s.fails, 0); /* nothing comes any more */
	assert_int_equal(sb->n_file_ops, 0);
	rig_close(&rig);
}

static void an_operation_may_be_cancelled_from_its_own_data(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_READ, &s, &s.op);
	say_data(box, id, 10);
	say_data(box, id, 10);
	say_u64(box, G_DONE, id, 20);
	rig_run(&rig);
	assert_int_equal(s.bytes, 10);
	assert_int_equal(s.dones + s.fails, 0);
	rig_close(&rig);
}

static void operations_fail_with_the_boxs_error_and_with_its_end(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct told t = { 0 };
	struct file_op *op;
	uint8_t frame[64];
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_STAT, &s, &op);
	rig_say(box, frame, guest_put_error(frame, sizeof(frame), id, ENOENT, "no such file"));
	rig_run(&rig);
	assert_int_equal(s.err.code, ENOENT);
	assert_string_equal(s.err.text, "no such file");
	(void)begin(&rig, sb, FILE_READ, &s, &op);
	fake_kill(&rig.fake, sb->box_id, SIGKILL);
	rig_run(&rig);
	assert_int_equal(s.fails, 2);
	assert_int_equal(s.err.code, EPIPE);
	sb = rig_create(&rig, "");
	(void)begin(&rig, sb, FILE_READ, &s, &op);
	sandbox_delete(sb, "deleted", rig_told, &t);
	assert_int_equal(s.fails, 2); /* not from inside the call */
	rig_run(&rig);
	assert_int_equal(s.fails, 3);
	assert_int_equal(s.err.code, EPIPE);
	rig_close(&rig);
}

#define SILENCE_S (SILENCE_MS / 1000)

static void an_operation_that_a_box_is_silent_about_has_an_end(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	(void)begin(&rig, sb, FILE_READ, &s, &op);
	rig_tick(&rig, SILENCE_S - 2);
	assert_int_equal(s.fails, 0);
	rig_tick(&rig, 4);
	assert_int_equal(s.fails, 1);
	assert_int_equal(s.err.code, ETIMEDOUT);
	/* A write is the box's turn from its end on. */
	sb = rig_create(&rig, "");
	(void)begin(&rig, sb, FILE_WRITE, &s, &op);
	rig_tick(&rig, 3 * SILENCE_S);
	assert_int_equal(s.fails, 1);
	assert_true(file_send(op, NULL, 0) >= 0);
	rig_tick(&rig, SILENCE_S + 2);
	assert_int_equal(s.fails, 2);
	rig_close(&rig);
}

static void an_operation_that_goes_on_is_not_cut(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	id = begin(&rig, sb, FILE_READ, &s, &op);
	for (int i = 0; i < 5; i++) { /* slow, but it moves */
		rig_tick(&rig, SILENCE_S - 2);
		say_data(box, id, 10);
		rig_run(&rig);
	}
	file_hold(op, true); /* its client takes nothing */
	rig_tick(&rig, 3 * SILENCE_S);
	file_hold(op, false);
	assert_int_equal(s.fails, 0);
	say_u64(box, G_DONE, id, 0);
	rig_run(&rig);
	assert_int_equal(s.dones, 1);
	rig_close(&rig);
}

/* To remove a large tree takes its time, and says nothing meanwhile: but the box itself answers. */
static void an_operation_of_a_box_that_answers_has_longer(void **state)
{
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct file_op *op;
	struct sandbox *sb;
	struct fake_box *box;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	box = rig_box(&rig, sb->id);
	(void)begin(&rig, sb, FILE_REMOVE, &s, &op);
	for (int i = 0; i < 6; i++) {
		uint8_t frame[64];
		uint32_t ping;

		rig_tick(&rig, SILENCE_S / 2 + 2);
		ping = rig_expect(&rig, box, G_PING, NULL);
		rig_say(box, frame, guest_put_raw(frame, sizeof(frame), G_PONG, ping, NULL, 0));
		rig_run(&rig);
	}
	assert_int_equal(s.fails, 0);
	rig_tick(&rig, SILENCE_S * 2);
	assert_int_equal(s.fails, 1);
	rig_close(&rig);
}

/* A sandbox with as many operations under way as there may be. */
static struct sandbox *fill(struct sandbox_rig *rig, struct seen *s, struct file_op **many,
			    uint32_t *ret_id)
{
	struct sandbox *sb = rig_create(rig, "");

	for (size_t i = 0; i < SANDBOX_FILE_OPS_MAX; i++)
		*ret_id = begin(rig, sb, FILE_READ, s, &many[i]);
	return sb;
}

static void what_finds_no_room_waits_for_its_turn(void **state)
{
	struct file_op *many[SANDBOX_FILE_OPS_MAX], *first, *second, *third;
	struct guest_file f = ask(FILE_STAT), w = ask(FILE_WRITE);
	struct seen s = { 0 }, mine = { 0 };
	struct sandbox_rig rig;
	struct err err = { 0 };
	struct fake_box *box;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = fill(&rig, &s, many, &id);
	box = rig_box(&rig, sb->id);
	assert_int_equal(file_start(sb, &f, &ops, &mine, &first, &err), 0);
	assert_int_equal(file_start(sb, &f, &ops, &mine, &second, &err), 0);
	assert_int_equal(file_start(sb, &w, &ops, &mine, &third, &err), 0);
	assert_int_equal(file_send(third, "x", 1), 0); /* room() follows */
	rig_expect_nothing(&rig, box);
	file_cancel(second); /* the box never hears of it */
	say_u64(box, G_DONE, id, 0);
	rig_run(&rig);
	id = rig_expect(&rig, box, G_FILE, NULL);
	rig_expect_nothing(&rig, box);
	say_u64(box, G_DONE, id, 0);
	rig_run(&rig);
	assert_int_equal(mine.dones, 1);
	assert_int_equal(mine.rooms, 2); /* a look at it is harmless to who sends nothing */
	id = rig_expect(&rig, box, G_FILE, NULL);
	assert_int_equal(file_send(third, "x", 1), 1);
	assert_int_equal(rig_expect(&rig, box, G_DATA, NULL), id);
	assert_true(sb->n_file_waits == 0 && sb->n_file_ops == SANDBOX_FILE_OPS_MAX);
	file_cancel(third);
	rig_close(&rig);
}

static void what_is_said_to_one_that_waits_is_said_in_its_turn(void **state)
{
	struct file_op *many[SANDBOX_FILE_OPS_MAX], *empty, *held;
	struct guest_file f = ask(FILE_READ), w = ask(FILE_WRITE);
	struct seen s = { 0 }, mine = { 0 };
	struct sandbox_rig rig;
	struct err err = { 0 };
	struct fake_box *box;
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = fill(&rig, &s, many, &id);
	box = rig_box(&rig, sb->id);
	assert_int_equal(file_start(sb, &w, &ops, &mine, &empty, &err), 0);
	assert_int_equal(file_send(empty, NULL, 0), 0);
	assert_int_equal(file_start(sb, &f, &ops, &mine, &held, &err), 0);
	file_hold(held, true);
	say_u64(box, G_DONE, id, 0);
	rig_run(&rig);
	id = rig_expect(&rig, box, G_FILE, NULL);
	assert_int_equal(rig_expect(&rig, box, G_DATA, NULL), id); /* the end of an empty file */
	say_u64(box, G_DONE, id, 0);
	rig_run(&rig);
	id = rig_expect(&rig, box, G_FILE, NULL);
	for (size_t n = 0; n < GUEST_WINDOW; n += GUEST_CHUNK)
		say_data(box, id, GUEST_CHUNK);
	rig_run(&rig);
	rig_expect_nothing(&rig, box); /* no credit */
	rig_close(&rig);
}

static void those_that_wait_end_with_their_box(void **state)
{
	struct file_op *many[SANDBOX_FILE_OPS_MAX], *op;
	struct guest_file f = ask(FILE_STAT);
	struct seen s = { 0 }, mine = { 0 };
	struct sandbox_rig rig;
	struct err err = { 0 };
	struct sandbox *sb;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = fill(&rig, &s, many, &id);
	assert_int_equal(file_start(sb, &f, &ops, &mine, &op, &err), 0);
	fake_kill(&rig.fake, sb->box_id, SIGKILL);
	rig_run(&rig);
	assert_true(mine.fails == 1 && mine.err.code == EPIPE);
	assert_int_equal(s.fails, SANDBOX_FILE_OPS_MAX);
	sb = fill(&rig, &s, many, &id);
	assert_int_equal(file_start(sb, &f, &ops, &mine, &op, &err), 0);
	rig_close(&rig); /* nobody is told */
	assert_int_equal(mine.fails, 1);
}

static void watches_leave_room_for_others(void **state)
{
	struct guest_file f = ask(FILE_WATCH);
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct err err = { 0 };
	struct file_op *op;
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "");
	for (size_t i = 0; i < SANDBOX_WATCHES_MAX; i++)
		(void)begin(&rig, sb, FILE_WATCH, &s, &op);
	assert_int_equal(file_start(sb, &f, &ops, &s, &op, &err), -EAGAIN);
	file_cancel(op);
	(void)rig_expect(&rig, rig_box(&rig, sb->id), G_CANCEL, NULL);
	(void)begin(&rig, sb, FILE_WATCH, &s, &op);
	rig_close(&rig);
}

static void operations_are_bounded_and_need_a_running_sandbox(void **state)
{
	struct guest_file f = ask(FILE_READ);
	struct file_op *many[SANDBOX_FILE_OPS_MAX + SANDBOX_FILE_WAITS_MAX], *op = NULL;
	struct sandbox_rig rig;
	struct seen s = { 0 };
	struct told t = { 0 };
	struct err err = { 0 };
	struct sandbox *sb;
	size_t n = SANDBOX_FILE_OPS_MAX;
	uint32_t id;

	(void)state;
	rig_open(&rig);
	sb = fill(&rig, &s, many, &id);
	while (n < sizeof(many) / sizeof(many[0]))
		assert_int_equal(file_start(sb, &f, &ops, &s, &many[n++], &err), 0);
	assert_int_equal(file_start(sb, &f, &ops, &s, &op, &err), -EAGAIN);
	while (n > 0)
		file_cancel(many[--n]);
	assert_true(sb->n_file_ops == 0 && sb->n_file_waits == 0);
	sandbox_pause(sb, rig_told, &t);
	rig_run(&rig);
	assert_int_equal(file_start(sb, &f, &ops, &s, &op, &err), -EBUSY);
	assert_string_equal(err.text, "the sandbox is paused");
	assert_null(op);
	file_cancel(NULL);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_and_written),
		cmocka_unit_test(a_held_read_stops_within_the_window),
		cmocka_unit_test(a_watch_is_armed_sees_events_and_ends_only_when_cancelled),
		cmocka_unit_test(an_operation_may_be_cancelled_from_its_own_data),
		cmocka_unit_test(operations_fail_with_the_boxs_error_and_with_its_end),
		cmocka_unit_test(an_operation_that_a_box_is_silent_about_has_an_end),
		cmocka_unit_test(an_operation_that_goes_on_is_not_cut),
		cmocka_unit_test(an_operation_of_a_box_that_answers_has_longer),
		cmocka_unit_test(what_finds_no_room_waits_for_its_turn),
		cmocka_unit_test(what_is_said_to_one_that_waits_is_said_in_its_turn),
		cmocka_unit_test(those_that_wait_end_with_their_box),
		cmocka_unit_test(watches_leave_room_for_others),
		cmocka_unit_test(operations_are_bounded_and_need_a_running_sandbox),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
