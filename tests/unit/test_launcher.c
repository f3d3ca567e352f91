/* The test plays holt-launch: answers are laid down before the question, as ids count from 1. */
#include "provider/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>

#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "fault.h"

#define BOX_ID "abcdefghij0123456789"

struct rig {
	struct launcher *launcher;
	int far; /* holt-launch's end */
};

static void say(int far, const void *frame, long n, const int *fds, size_t nfds)
{
	assert_true(n > 0);
	assert_int_equal(fd_send(far, frame, (size_t)n, fds, nfds), n);
}

static void say_info(int far)
{
	struct launch_info info = { .version = 1, .cgroup = CGROUP_V1, .landlock_abi = 7 };
	uint8_t frame[256];

	say(far, frame, launch_put_info(frame, sizeof(frame), 1, &info), NULL, 0);
}

static void say_type(int far, uint16_t type, uint32_t id)
{
	uint8_t frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), type, id);
	say(far, frame, wire_finish(&w), NULL, 0);
}

static void say_failed(int far, uint32_t id, int code, const char *text)
{
	uint8_t frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_FAILED, id);
	wr_u32(&w, (uint32_t)code);
	wr_str(&w, text);
	say(far, frame, wire_finish(&w), NULL, 0);
}

static void say_died(int far, const char *id, int status)
{
	struct box_usage usage = { .oom_kills = 2 };
	uint8_t frame[256];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), L_DIED, 0);
	wr_str(&w, id);
	wr_u32(&w, (uint32_t)status);
	launch_wr_usage(&w, &usage);
	say(far, frame, wire_finish(&w), NULL, 0);
}

static void say_box(int far, uint32_t id, const int *fds, size_t nfds)
{
	struct launch_box b = {
		.id = BOX_ID, .flags = BOX_WARM, .pid = 42, .step_ns = { 1, 2, 3, 4 }
	};
	uint8_t frame[512];

	b.limits.memory_bytes = 1 << 20;
	say(far, frame, launch_put_box(frame, sizeof(frame), id, &b), fds, nfds);
}

static int open_pair(struct rig *rig)
{
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig->far = pair[1];
	return pair[0];
}

static int setup(void **state)
{
	static struct rig rig;
	int sock = open_pair(&rig);

	say_info(rig.far);
	assert_int_equal(launcher_connect(sock, 0, &rig.launcher, NULL), 0);
	*state = &rig;
	return 0;
}

static int teardown(void **state)
{
	struct rig *rig = *state;

	launcher_stop(rig->launcher);
	rig->far = fd_close(rig->far);
	return 0;
}

static int open_fds(void)
{
	int n = 0;

	for (int fd = 0; fd < 256; fd++)
		n += fcntl(fd, F_GETFD) >= 0;
	return n;
}

static void the_greeting_tells_what_the_launcher_can(void **state)
{
	struct rig *rig = *state;

	assert_int_equal(launcher_info(rig->launcher)->cgroup, CGROUP_V1);
	assert_int_equal(launcher_info(rig->launcher)->landlock_abi, 7);
}

static void a_claim_brings_the_box_and_its_descriptors(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1 };
	int fds[2] = { STDIN_FILENO, STDERR_FILENO };
	struct launcher_box box;

	say_box(rig->far, 2, fds, 2);
	assert_int_equal(launcher_claim_sync(rig->launcher, &spec, &box, NULL), 0);
	assert_string_equal(box.id, BOX_ID);
	assert_int_equal(box.pid, 42);
	assert_int_equal(box.flags, BOX_WARM);
	assert_int_equal(box.step_ns[STEP_LIMITS], 4);
	assert_true(box.sock > 2 && box.pidfd > 2 && box.sock != box.pidfd);
	launcher_box_done(&box);
	assert_int_equal(box.sock, -1);
}

static void a_box_without_its_descriptors_is_not_taken(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1 };
	struct launcher_box box = { .sock = -1 };
	int fd = STDIN_FILENO, before = open_fds();

	say_box(rig->far, 2, &fd, 1);
	assert_int_equal(launcher_claim_sync(rig->launcher, &spec, &box, NULL), -EPROTO);
	assert_int_equal(box.sock, -1);
	assert_int_equal(open_fds(), before);
}

static void a_refusal_keeps_the_launcher_s_words(void **state)
{
	struct rig *rig = *state;
	struct pool_spec pool = { .template_id = 1 };
	struct err err = { 0 };

	say_failed(rig->far, 2, ENOENT, "template 1 is not defined");
	assert_int_equal(launcher_pool_sync(rig->launcher, &pool, &err), -ENOENT);
	assert_string_equal(err.text, "template 1 is not defined");
	say_type(rig->far, L_OK, 3);
	assert_int_equal(launcher_pool_sync(rig->launcher, &pool, NULL), 0);
}

static void deaths_on_the_way_are_kept_in_order(void **state)
{
	struct rig *rig = *state;
	struct box_usage usage = { 0 };
	char id[ID_LEN + 1];
	int status = 0;

	say_died(rig->far, BOX_ID, 9);
	say_died(rig->far, "zzzzzzzzzz0123456789", 256);
	say_type(rig->far, L_OK, 2);
	assert_int_equal(launcher_freeze_sync(rig->launcher, BOX_ID, true, NULL), 0);
	assert_true(launcher_next_death(rig->launcher, id, &status, &usage));
	assert_string_equal(id, BOX_ID);
	assert_int_equal(status, 9);
	assert_int_equal(usage.oom_kills, 2);
	assert_true(launcher_next_death(rig->launcher, id, &status, &usage));
	assert_int_equal(status, 256);
	assert_false(launcher_next_death(rig->launcher, id, &status, &usage));
}

static void a_death_is_heard_without_a_question(void **state)
{
	struct rig *rig = *state;
	struct box_usage usage;
	char id[ID_LEN + 1];
	int status;

	assert_false(launcher_next_death(rig->launcher, id, &status, &usage));
	say_died(rig->far, BOX_ID, 0);
	assert_true(launcher_next_death(rig->launcher, id, &status, &usage));
}

static void an_answer_of_the_wrong_type_ends_the_trust(void **state)
{
	struct rig *rig = *state;

	say_type(rig->far, L_USED, 2);
	assert_int_equal(launcher_freeze_sync(rig->launcher, BOX_ID, true, NULL), -EPROTO);
	assert_int_equal(launcher_freeze_sync(rig->launcher, BOX_ID, true, NULL), -EPIPE);
}

static void a_launcher_that_is_gone_is_an_error_each_time(void **state)
{
	struct rig *rig = *state;
	struct err err = { 0 };

	rig->far = fd_close(rig->far);
	assert_int_equal(launcher_freeze_sync(rig->launcher, BOX_ID, true, &err), -EPIPE);
	assert_string_equal(err.text, "holt-launch is gone");
	assert_int_equal(launcher_usage_sync(rig->launcher, BOX_ID, NULL, NULL), -EPIPE);
}

static void a_template_out_of_bounds_is_refused_before_it_is_sent(void **state)
{
	struct rig *rig = *state;
	struct template_spec t = { .id = TEMPLATE_MAX + 1, .preload = "" };

	assert_int_equal(launcher_template_sync(rig->launcher, &t, -1, NULL), -EINVAL);
}

static void a_launcher_that_cannot_start_says_why(void **state)
{
	struct rig rig;
	struct launcher *l = NULL;
	struct err err = { 0 };
	int sock = open_pair(&rig);

	(void)state;
	say_failed(rig.far, 0, EPERM, "user namespaces are disabled");
	assert_int_equal(launcher_connect(sock, 0, &l, &err), -EPERM);
	assert_string_equal(err.text, "user namespaces are disabled");
	assert_null(l);
	(void)fd_close(rig.far);
}

static void a_program_that_is_no_launcher_is_told_by_its_end(void **state)
{
	struct launcher_options o = { .program = "/bin/false" };
	struct launcher *l = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(launcher_start(&o, &l, &err), -EPIPE);
	assert_string_equal(err.text, "holt-launch ended with code 1");
	assert_int_equal(waitpid(-1, NULL, WNOHANG), -1); /* no zombie is left */
}

static void a_missing_program_is_named(void **state)
{
	struct launcher_options o = { .program = "/nonexistent/holt-launch" };
	struct launcher *l = NULL;
	struct err err = { 0 };
	int before = open_fds();

	(void)state;
	assert_int_equal(launcher_start(&o, &l, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/holt-launch"));
	assert_int_equal(open_fds(), before);
}

static void a_failed_allocation_closes_the_socket(void **state)
{
	struct rig rig;
	struct launcher *l = NULL;
	int sock = open_pair(&rig);

	(void)state;
	fault_arm(1);
	assert_int_equal(launcher_connect(sock, 0, &l, NULL), -ENOMEM);
	assert_true(fault_disarm());
	assert_int_equal(fcntl(sock, F_GETFD), -1);
	(void)fd_close(rig.far);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(the_greeting_tells_what_the_launcher_can),
		CASE(a_claim_brings_the_box_and_its_descriptors),
		CASE(a_box_without_its_descriptors_is_not_taken),
		CASE(a_refusal_keeps_the_launcher_s_words),
		CASE(deaths_on_the_way_are_kept_in_order),
		CASE(a_death_is_heard_without_a_question),
		CASE(an_answer_of_the_wrong_type_ends_the_trust),
		CASE(a_launcher_that_is_gone_is_an_error_each_time),
		CASE(a_template_out_of_bounds_is_refused_before_it_is_sent),
		cmocka_unit_test(a_launcher_that_cannot_start_says_why),
		cmocka_unit_test(a_program_that_is_no_launcher_is_told_by_its_end),
		cmocka_unit_test(a_missing_program_is_named),
		cmocka_unit_test(a_failed_allocation_closes_the_socket),
	};

	return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
