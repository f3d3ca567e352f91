/* What is used is counted once, on its day, whatever happens to the daemon on the way. */
#include "check.h"

#include <string.h>

#include "base/map.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

#define DAY_MS 86400000ll
#define DAY 20000 /* of the test's clock */
#define MIB ((uint64_t)1 << 20)

struct sums {
	struct usage_sum_row row;
	size_t n; /* rows that it is of */
	bool is_kept;
};

static void see(void *user, int r, const struct usage_sum_row *rows, size_t n, bool more)
{
	struct sums *s = user;

	(void)more;
	assert_int_equal(r, 0);
	s->n = n;
	if (n > 0)
		s->row = rows[0];
	for (size_t i = 0; i < n; i++)
		s->is_kept = s->is_kept || strcmp(rows[i].sandbox_id, STORE_KEPT) == 0;
}

/* Of one day, or of all: 0. */
static struct usage_sum_row of_day(struct sandbox_rig *rig, int32_t day)
{
	struct store_usage_filter f = { .from_day = day, .to_day = day ? day + 1 : 0 };
	struct sums s = { 0 };

	rig_run(rig);
	assert_int_equal(store_list_usage(&rig->store, &f, 10, see, &s), 0);
	store_dispatch(&rig->store);
	return s.row;
}

static size_t count_days(struct sandbox_rig *rig)
{
	struct store_usage_filter f = { .group = STORE_BY_DAY };
	struct sums s = { 0 };

	rig_run(rig);
	assert_int_equal(store_list_usage(&rig->store, &f, 1000, see, &s), 0);
	store_dispatch(&rig->store);
	return s.n;
}

/* So long before midnight. */
static struct sandbox *open_at(struct sandbox_rig *rig, int64_t before_midnight_ms)
{
	struct sandbox_request req = rig_request("");
	struct told t = { 0 };

	rig_open(rig);
	rig->wall_ms = (DAY + 1) * DAY_MS - before_midnight_ms;
	req.limits = (struct limits){ .memory_bytes = 64 * MIB, .disk_bytes = 16 * MIB };
	req.timeout_ms = 5 * DAY_MS;
	rig->all->settings.timeout_max_ms = 5 * DAY_MS;
	sandbox_create(rig->all, &req, rig_told, &t);
	rig_run(rig);
	assert_string_equal(t.err.text, "");
	return t.sb;
}

static void ask(struct sandbox_rig *rig, struct sandbox *sb,
		void (*what)(struct sandbox *sb, sandbox_cb cb, void *user))
{
	struct told t = { 0 };

	what(sb, rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	assert_int_equal(t.err.code, 0);
}

static void end(struct sandbox_rig *rig, struct sandbox *sb)
{
	struct told t = { 0 };

	sandbox_delete(sb, "deleted", rig_told, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
}

/* Killed, and there again so much later. */
static void die(struct sandbox_rig *rig, int64_t ms)
{
	rig_run(rig);
	rig_death(rig);
	rig->wall_ms += ms; /* another process has another clock */
	rig->now_ms = 5000;
	rig_birth(rig);
}

static struct sandbox *find(struct sandbox_rig *rig, const char *id)
{
	struct sandbox *sb = map_get(rig->all->by_id, id, strlen(id));

	assert_non_null(sb);
	return sb;
}

static void recover(struct sandbox_rig *rig, const char *id)
{
	rig_ready(rig);
	rig_run(rig);
	if (rig_box(rig, id)) {
		rig_say_ready(rig_box(rig, id), 0);
		rig_run(rig);
	}
}

static void a_sandbox_over_midnight_has_two_rows_whose_sum_is_right(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, 10000);

	(void)state;
	rig_pass(&rig, 25000);
	end(&rig, sb);
	assert_int_equal(of_day(&rig, DAY).wall_ms, 10000);
	assert_int_equal(of_day(&rig, DAY + 1).wall_ms, 15000);
	assert_int_equal(of_day(&rig, 0).wall_ms, 25000);
	assert_int_equal(of_day(&rig, DAY).memory_mib_ms, 64 * 10000);
	assert_int_equal(of_day(&rig, 0).memory_mib_ms, 64 * 25000);
	assert_int_equal(of_day(&rig, 0).disk_mib_ms, 16 * 25000);
	assert_int_equal(count_days(&rig), 2);
	rig_close(&rig);
}

static void time_is_counted_once_however_often_it_is_written(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, 3 * 7000 + 500);

	(void)state;
	for (int i = 0; i < 10; i++) {
		rig_pass(&rig, 7000);
		usage_checkpoint(rig.all);
		rig_run(&rig);
	}
	assert_int_equal(of_day(&rig, DAY).wall_ms, 21500);
	end(&rig, sb);
	assert_int_equal(of_day(&rig, 0).wall_ms, 70000);
	rig_close(&rig);
}

static void a_clock_that_is_set_back_takes_nothing_away(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);

	(void)state;
	rig_pass(&rig, 60000);
	usage_checkpoint(rig.all);
	rig_run(&rig);
	rig.wall_ms -= DAY_MS;
	rig_pass(&rig, 40000);
	end(&rig, sb);
	assert_int_equal(of_day(&rig, 0).wall_ms, 100000);
	assert_int_equal(count_days(&rig), 1);
	rig_close(&rig);
}

static void the_time_that_the_daemon_was_away_is_counted_when_the_box_lived_on(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	char id[ID_LEN + 1];

	(void)state;
	memcpy(id, sb->id, sizeof(id));
	rig_pass(&rig, 60000);
	usage_checkpoint(rig.all);
	rig_pass(&rig, 12000); /* not written any more */
	die(&rig, 2 * DAY_MS);
	recover(&rig, id);
	rig_pass(&rig, 1000);
	end(&rig, find(&rig, id));
	assert_int_equal(of_day(&rig, 0).wall_ms, 60000 + 12000 + 2 * DAY_MS + 1000);
	assert_int_equal(of_day(&rig, DAY).wall_ms, DAY_MS / 2);
	assert_int_equal(of_day(&rig, DAY + 1).wall_ms, DAY_MS);
	assert_int_equal(count_days(&rig), 3);
	rig_close(&rig);
}

static void before_the_first_write_its_creation_says_since_when(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	char id[ID_LEN + 1];

	(void)state;
	memcpy(id, sb->id, sizeof(id));
	rig_pass(&rig, 5000);
	die(&rig, 3000);
	recover(&rig, id);
	end(&rig, find(&rig, id));
	assert_int_equal(of_day(&rig, 0).wall_ms, 8000);
	rig_close(&rig);
}

static void of_a_box_that_died_meanwhile_no_more_is_counted_than_is_known(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	char id[ID_LEN + 1];

	(void)state;
	memcpy(id, sb->id, sizeof(id));
	rig_pass(&rig, 60000);
	usage_checkpoint(rig.all);
	rig_run(&rig);
	rig_death(&rig);
	rig.fake.boxes[0].id[0] = '\0';
	fake_kill(&rig.fake, id, 9);
	rig.wall_ms += DAY_MS;
	rig_birth(&rig);
	recover(&rig, id);
	assert_int_equal(of_day(&rig, 0).wall_ms, 60000);
	rig_close(&rig);
}

static void a_paused_one_holds_its_memory_and_a_stopped_one_its_disk(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	char id[ID_LEN + 1];

	(void)state;
	memcpy(id, sb->id, sizeof(id));
	rig_pass(&rig, 1000);
	ask(&rig, sb, sandbox_pause);
	rig_pass(&rig, 2000);
	assert_int_equal(of_day(&rig, 0).wall_ms, 1000);
	ask(&rig, sb, sandbox_suspend);
	rig_pass(&rig, 4000);
	die(&rig, 8000); /* what has no box outlives everything */
	recover(&rig, id);
	end(&rig, find(&rig, id));
	assert_int_equal(of_day(&rig, 0).wall_ms, 1000);
	assert_int_equal(of_day(&rig, 0).memory_mib_ms, 64 * 3000);
	assert_int_equal(of_day(&rig, 0).disk_mib_ms, 16 * 15000);
	rig_close(&rig);
}

static void exit_one(struct sandbox_rig *rig, struct sandbox *sb)
{
	const struct exec_request req = { .kind = EXECUTION_COMMAND, .command = "true" };
	struct exec_told t = { 0 };
	uint32_t n = rig_exec(rig, sb, &req, &t);

	rig_say_exit(rig_box(rig, sb->id), n, 0, 0); /* 300 us */
	rig_run(rig);
	(void)rig_expect(rig, rig_box(rig, sb->id), G_ACK, NULL);
	exec_told_done(&t);
}

static void the_box_says_what_its_executions_have_not_said_yet(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	char id[ID_LEN + 1];

	(void)state;
	memcpy(id, sb->id, sizeof(id));
	exit_one(&rig, sb);
	assert_int_equal(of_day(&rig, 0).cpu_us, 300);
	rig.fake.usage.cpu_us = 1000; /* something that still runs */
	usage_checkpoint(rig.all);
	assert_int_equal(of_day(&rig, 0).cpu_us, 1000);
	exit_one(&rig, sb); /* that was in it */
	assert_int_equal(of_day(&rig, 0).cpu_us, 1000);
	rig.fake.usage.cpu_us = 1500;
	die(&rig, 1000);
	recover(&rig, id); /* asks for what was used meanwhile */
	assert_int_equal(of_day(&rig, 0).cpu_us, 1500);
	exit_one(&rig, find(&rig, id));
	assert_int_equal(of_day(&rig, 0).cpu_us, 1500);
	rig.fake.usage.cpu_us = 1700;
	end(&rig, find(&rig, id)); /* the last word */
	assert_int_equal(of_day(&rig, 0).cpu_us, 1700);
	assert_int_equal(of_day(&rig, 0).executions, 3);
	rig_close(&rig);
}

static void without_a_control_group_executions_are_all_that_is_known(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);

	(void)state;
	exit_one(&rig, sb);
	usage_checkpoint(rig.all);
	exit_one(&rig, sb);
	end(&rig, sb);
	assert_int_equal(of_day(&rig, 0).cpu_us, 600);
	rig_close(&rig);
}

static void another_box_begins_at_nothing(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);

	(void)state;
	rig.fake.usage.cpu_us = 1000;
	ask(&rig, sb, sandbox_suspend);
	assert_int_equal(of_day(&rig, 0).cpu_us, 1000);
	ask(&rig, sb, sandbox_start);
	rig.fake.usage.cpu_us = 400;
	end(&rig, sb);
	assert_int_equal(of_day(&rig, 0).cpu_us, 1400);
	rig_close(&rig);
}

static void an_execution_whose_end_was_not_recorded_is_not_counted_either(void **state)
{
	const struct exec_request req = { .kind = EXECUTION_COMMAND, .command = "true" };
	struct exec_told t = { 0 };
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);
	uint32_t n = rig_exec(&rig, sb, &req, &t);

	(void)state;
	rig_run(&rig);
	rig.faults = (struct store_faults){ .fail_in = 1, .fail_with = ENOSPC, .fail_on = true };
	rig_say_exit(rig_box(&rig, sb->id), n, 0, 0);
	rig_run(&rig);
	exec_told_done(&t);
	rig.faults.fail_in = 0;
	assert_int_equal(of_day(&rig, 0).executions, 0);
	rig_tick(&rig, 2); /* it is tried again: with the execution, and once */
	assert_int_equal(of_day(&rig, 0).executions, 1);
	rig_close(&rig);
}

static void network_bytes_are_written_with_the_rest(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, 1000);

	(void)state;
	usage_net(sb, 100);
	rig_pass(&rig, 2000); /* midnight */
	usage_net(sb, 11);
	usage_checkpoint(rig.all);
	assert_int_equal(of_day(&rig, DAY).net_bytes, 100);
	assert_int_equal(of_day(&rig, DAY + 1).net_bytes, 11);
	rig_close(&rig);
}

static void on_volume(void *user, struct object *o, const struct err *err)
{
	(void)err;
	if (o)
		memcpy(user, o->id, ID_LEN + 1);
}

static void what_is_kept_counts_as_disk_for_as_long_as_it_is_there(void **state)
{
	struct store_usage_filter kept = { .group = STORE_BY_SANDBOX };
	char id[ID_LEN + 1] = "";
	struct sandbox_rig rig;
	struct sums s = { 0 };

	(void)state;
	end(&rig, open_at(&rig, 10000));
	volume_create(rig.all, "ann", "v", 8 * MIB, on_volume, id);
	rig_run(&rig);
	rig_pass(&rig, 4000);
	die(&rig, 11000); /* it is there whether we are or not, also over midnight */
	rig_ready(&rig);
	rig_run(&rig);
	rig_pass(&rig, 1000);
	assert_int_equal(of_day(&rig, DAY).disk_mib_ms, 8 * 10000);
	volume_delete(rig.all, id, on_volume, id);
	rig_run(&rig);
	rig_pass(&rig, 50000); /* it is not there any more */
	usage_checkpoint(rig.all);
	assert_int_equal(of_day(&rig, 0).disk_mib_ms, 8 * 16000);
	assert_int_equal(store_list_usage(&rig.store, &kept, 10, see, &s), 0);
	store_dispatch(&rig.store);
	assert_true(s.is_kept);
	rig_close(&rig);
}

static void a_launcher_that_is_away_stops_no_round(void **state)
{
	struct sandbox_rig rig;
	struct sandbox *sb = open_at(&rig, DAY_MS / 2);

	(void)state;
	for (int i = 0; i < 3; i++)
		(void)rig_create(&rig, "");
	rig_pass(&rig, 30000);
	rig.fake.gone = true;
	usage_checkpoint(rig.all);
	assert_int_equal(of_day(&rig, 0).wall_ms, 4 * 30000);
	rig.fake.gone = false;
	rig_pass(&rig, 30000);
	usage_checkpoint(rig.all);
	assert_int_equal(of_day(&rig, 0).wall_ms, 4 * 60000);
	end(&rig, sb);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sandbox_over_midnight_has_two_rows_whose_sum_is_right),
		cmocka_unit_test(time_is_counted_once_however_often_it_is_written),
		cmocka_unit_test(a_clock_that_is_set_back_takes_nothing_away),
		cmocka_unit_test(
			the_time_that_the_daemon_was_away_is_counted_when_the_box_lived_on),
		cmocka_unit_test(before_the_first_write_its_creation_says_since_when),
		cmocka_unit_test(of_a_box_that_died_meanwhile_no_more_is_counted_than_is_known),
		cmocka_unit_test(a_paused_one_holds_its_memory_and_a_stopped_one_its_disk),
		cmocka_unit_test(the_box_says_what_its_executions_have_not_said_yet),
		cmocka_unit_test(without_a_control_group_executions_are_all_that_is_known),
		cmocka_unit_test(another_box_begins_at_nothing),
		cmocka_unit_test(an_execution_whose_end_was_not_recorded_is_not_counted_either),
		cmocka_unit_test(network_bytes_are_written_with_the_rest),
		cmocka_unit_test(what_is_kept_counts_as_disk_for_as_long_as_it_is_there),
		cmocka_unit_test(a_launcher_that_is_away_stops_no_round),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
