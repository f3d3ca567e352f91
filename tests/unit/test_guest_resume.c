/* What a client finds in a box that others spoke with before: executions that live, and credit and
 * acknowledgement for them. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/fd.h"
#include "check.h"
#include "client_rig.h"
#include "fault.h"
#include "provider/guest_state.h"

/* What the hooks saw, and what they answer. */
struct hooked {
	struct guest_client *client;
	struct seen *s; /* NULL: nobody knows what lives */
	bool is_manual;
	int ready, live;
	struct guest_ready last_ready;
	struct guest_live last;
	char tag[GUEST_TAG_MAX + 1];
};

static void on_ready(void *user, const struct guest_ready *r)
{
	struct hooked *h = user;

	h->ready++;
	h->last_ready = *r;
}

static bool on_live(void *user, const struct guest_live *live, struct guest_callbacks *ret_cb,
		    void **ret_user)
{
	struct hooked *h = user;

	h->live++;
	h->last = *live;
	(void)snprintf(h->tag, sizeof(h->tag), "%s", live->tag);
	if (!h->s)
		return false;
	if (h->is_manual)
		guest_manual_credit(h->client, live->id);
	*ret_cb = rig_callbacks;
	*ret_user = h->s;
	return true;
}

static void set_hooks(struct client_rig *rig, struct hooked *h)
{
	static const struct guest_hooks hooks = { .ready = on_ready, .live = on_live };

	h->client = rig->client;
	guest_set_hooks(rig->client, &hooks, h);
}

static void say_ready(struct client_rig *rig, uint32_t live)
{
	struct guest_ready ready = { .version = WIRE_VERSION, .resumed = 1, .live = live };
	uint8_t frame[64];

	rig_say(rig, frame, guest_put_ready(frame, sizeof(frame), &ready));
}

static void say_live(struct client_rig *rig, uint32_t id, const char *tag, uint8_t flags)
{
	struct guest_live live = {
		.id = id, .pid = 7, .flags = flags, .stdin_taken = 10, .stdin_kept = 4, .tag = tag
	};
	uint8_t frame[256];

	rig_say(rig, frame, guest_put_live(frame, sizeof(frame), &live));
}

static void what_lives_goes_on_as_if_it_had_been_started_here(void **state)
{
	static const char much[GUEST_WINDOW];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	struct hooked h = { .s = &s };

	set_hooks(rig, &h);
	say_ready(rig, 1);
	say_live(rig, 41, "mine", LIVE_STDIN);
	rig_say_output(rig, 41, 1, 0, "again", 5);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(h.ready, 1);
	assert_int_equal(h.last_ready.live, 1);
	assert_int_equal(h.live, 1);
	assert_int_equal(h.last.id, 41);
	assert_string_equal(h.tag, "mine");
	assert_string_equal(buf_str(&s.out), "again");
	/* Of its input's window the guest still holds 4 bytes. */
	assert_int_equal(guest_stdin(rig->client, 41, much, sizeof(much)), GUEST_WINDOW - 4);
	rig_say_u64(rig, G_TAKEN, 41, 4);
	rig_say_exit(rig, 41, 2, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(s.taken, 4);
	assert_int_equal(s.exited, 1);
	rig_hear_all(rig);
	assert_int_equal(guest_ack(rig->client, 41), 0);
	rig_expect(rig, G_ACK, 41);
	seen_done(&s);
}

static void new_ids_begin_above_those_that_live(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	struct hooked h = { .s = &s };

	set_hooks(rig, &h);
	say_ready(rig, 2);
	say_live(rig, 900, "a", 0);
	say_live(rig, 41, "b", 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(rig_start(rig, &s), 901);
	seen_done(&s);
}

static void an_id_at_the_end_of_its_space_is_passed_by(void **state)
{
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	struct hooked h = { .s = &s };

	set_hooks(rig, &h);
	say_ready(rig, 2);
	say_live(rig, UINT32_MAX, "", 0);
	say_live(rig, 1, "", 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(rig_start(rig, &s), 2);
	seen_done(&s);
}

static void nothing_starts_before_all_that_lives_is_known(void **state)
{
	struct guest_exec e = { .user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" } };
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	struct hooked h = { .s = &s };

	set_hooks(rig, &h);
	say_ready(rig, 2);
	say_live(rig, 1, "", 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(guest_exec(rig->client, &e, &rig_callbacks, &s, NULL, NULL), -EAGAIN);
	assert_int_equal(guest_ping(rig->client, &rig_callbacks, &s, NULL, NULL), -EAGAIN);
	say_live(rig, 2, "", 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(guest_exec(rig->client, &e, &rig_callbacks, &s, NULL, NULL), 0);
}

static void what_nobody_knows_is_cancelled_and_acknowledged(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct hooked h = { .s = NULL };

	set_hooks(rig, &h);
	say_ready(rig, 1);
	say_live(rig, 5, "whose", 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_expect(rig, G_CANCEL, 5);
	rig_expect(rig, G_ACK, 5);
	rig_say_output(rig, 5, 1, 0, chunk, sizeof(chunk)); /* must not stop for want of credit */
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_expect(rig, G_CREDIT, 5);
	rig_say_exit(rig, 5, 0, EXIT_CANCELLED);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(guest_cancel(rig->client, 5), -ENOENT);
}

static void without_hooks_nobody_knows_what_lives(void **state)
{
	struct client_rig *rig = *state;

	say_ready(rig, 1);
	say_live(rig, 5, "", LIVE_ENDED);
	rig_say_exit(rig, 5, 0, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_expect(rig, G_CANCEL, 5);
	rig_expect(rig, G_ACK, 5);
	rig_expect_silence(rig);
}

static void expect_broken(struct client_rig *rig)
{
	void *again = rig;

	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	(void)rig_teardown(&again);
	(void)rig_setup(&again);
}

static void lies_about_what_lives_break_the_connection(void **state)
{
	struct client_rig *rig = *state;

	say_live(rig, 1, "", 0); /* without a word before */
	expect_broken(rig);
	say_ready(rig, 1);
	say_live(rig, 1, "", 0);
	say_live(rig, 2, "", 0); /* more than promised */
	expect_broken(rig);
	say_ready(rig, 2);
	say_live(rig, 1, "", 0);
	say_live(rig, 1, "", 0); /* twice */
	expect_broken(rig);
	say_ready(rig, 0);
	say_ready(rig, 0); /* it begins once */
	expect_broken(rig);
	say_ready(rig, CLIENT_OPS_MAX + 1); /* more than there can be */
	expect_broken(rig);
}

static void by_hand_only_what_is_safe_is_credited(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	uint32_t id = rig_start(rig, &s);
	struct wire_head head;
	struct rd body;

	guest_manual_credit(rig->client, id);
	for (size_t i = 0; i < 3; i++)
		rig_say_output(rig, id, 1, i * sizeof(chunk), chunk, sizeof(chunk));
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_expect_silence(rig);
	assert_int_equal(guest_credit(rig->client, id, 100), 0);
	rig_expect_silence(rig); /* not worth a frame */
	assert_int_equal(guest_credit(rig->client, id, sizeof(chunk)), 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_CREDIT);
	assert_int_equal(rd_u64(&body), sizeof(chunk) + 100);
	assert_int_equal(guest_credit(rig->client, id, 2 * sizeof(chunk) - 99), -EINVAL);
	assert_int_equal(guest_credit(rig->client, id, UINT64_MAX), -EINVAL);
	assert_int_equal(guest_credit(rig->client, id, 2 * sizeof(chunk) - 100), 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(rd_u64(&body), 2 * sizeof(chunk) - 100);
	rig_say_exit(rig, id, 0, 0);
	assert_int_equal(guest_dispatch(rig->client), 0);
	assert_int_equal(guest_credit(rig->client, id, 1), 0); /* the acknowledgement says it */
	rig_expect_silence(rig);
	rig->guest = fd_close(rig->guest);
	assert_int_equal(guest_dispatch(rig->client), -EPIPE);
	assert_int_equal(guest_credit(rig->client, id, 1), -EPIPE);
	assert_int_equal(guest_ack(rig->client, id), -EPIPE);
	seen_done(&s);
}

static void credit_by_hand_can_be_asked_for_while_it_is_told_what_lives(void **state)
{
	static const char chunk[GUEST_CHUNK];
	struct client_rig *rig = *state;
	struct seen s = { 0 };
	struct hooked h = { .s = &s, .is_manual = true };

	set_hooks(rig, &h);
	say_ready(rig, 1);
	say_live(rig, 3, "", 0);
	rig_say_output(rig, 3, 1, 0, chunk, sizeof(chunk));
	assert_int_equal(guest_dispatch(rig->client), 0);
	rig_expect_silence(rig);
	guest_forget(rig->client, 3); /* nobody is left to say what is safe */
	rig_expect(rig, G_CREDIT, 3);
	seen_done(&s);
}

static void the_blocking_exec_acknowledges_what_is_kept(void **state)
{
	struct client_rig *rig = *state;
	struct guest_exec e = {
		.flags = EXEC_KEEP, .user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" }
	};
	struct guest_result r = { 0 };

	rig_say_exit(rig, 1, 0, 0);
	assert_int_equal(guest_exec_sync(rig->client, &e, NULL, 0, &r, NULL), 0);
	rig_expect(rig, G_EXEC, 1);
	rig_expect(rig, G_ACK, 1);
	guest_result_done(&r);
	rig_say_error(rig, 2, ENOENT, "no such program");
	assert_int_equal(guest_exec_sync(rig->client, &e, NULL, 0, &r, NULL), -ENOENT);
	rig_expect(rig, G_EXEC, 2);
	rig_expect_silence(rig);
}

static void without_memory_for_what_lives_the_connection_ends(void **state)
{
	struct client_rig *rig = *state;

	say_ready(rig, 1);
	say_live(rig, 5, "", 0);
	fault_arm(1);
	assert_int_equal(guest_dispatch(rig->client), -EPROTO);
	assert_true(fault_disarm());
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(what_lives_goes_on_as_if_it_had_been_started_here),
		CASE(new_ids_begin_above_those_that_live),
		CASE(an_id_at_the_end_of_its_space_is_passed_by),
		CASE(nothing_starts_before_all_that_lives_is_known),
		CASE(what_nobody_knows_is_cancelled_and_acknowledged),
		CASE(without_hooks_nobody_knows_what_lives),
		CASE(lies_about_what_lives_break_the_connection),
		CASE(by_hand_only_what_is_safe_is_credited),
		CASE(credit_by_hand_can_be_asked_for_while_it_is_told_what_lives),
		CASE(the_blocking_exec_acknowledges_what_is_kept),
		CASE(without_memory_for_what_lives_the_connection_ends),
	};

	return cmocka_run_group_tests_name("guest_resume", tests, NULL, NULL);
}
