/* Requests to a launcher that is not there wait for it; how many, and what one more is told. */
#include "sandbox/ask.h"

#include <errno.h>

#include "check.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

#define WAITING_MAX 8192

struct answers {
	unsigned count;
	int code;
};

static void on_answer(void *user, const struct provider_reply *r)
{
	struct answers *a = user;

	a->count++;
	a->code = r->code;
}

static void when_too_many_wait_for_the_launcher_one_more_is_told_to_come_again(void **state)
{
	static struct sandbox_rig rig;
	struct answers waiting = { 0 }, more = { 0 };
	struct told told = { 0 };
	struct sandbox *sb;

	(void)state;
	rig_open(&rig);
	sb = rig_create(&rig, "a");
	fake_go_away(&rig.fake);
	sandboxes_provider_lost(rig.all);
	for (int i = 0; i < WAITING_MAX; i++)
		ask_provider(rig.all, &(struct ask){ .kind = ASK_LIST }, on_answer, &waiting);
	assert_int_equal(waiting.count, 0);
	ask_provider(rig.all, &(struct ask){ .kind = ASK_LIST }, on_answer, &more);
	assert_int_equal(more.count, 1);
	assert_int_equal(more.code, -EAGAIN);
	sandbox_pause(sb, rig_told, &told);
	rig_run(&rig);
	assert_int_equal(told.calls, 1);
	assert_int_equal(told.err.code, EAGAIN);
	assert_string_equal(told.err.text, "too many requests to the launcher wait");
	assert_int_equal(rig_state(sb), SANDBOX_RUNNING);

	/* Those that waited are told of the launcher, and there is room again. */
	rig_tick(&rig, PROVIDER_PATIENCE_MS / 1000);
	assert_int_equal(waiting.count, WAITING_MAX);
	assert_int_equal(waiting.code, -EPIPE);
	rig_ready(&rig);
	rig_run(&rig);
	sandbox_pause(sb, rig_told, &told);
	rig_run(&rig);
	assert_int_equal(told.calls, 2);
	assert_int_equal(rig_state(sb), SANDBOX_PAUSED);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			when_too_many_wait_for_the_launcher_one_more_is_told_to_come_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
