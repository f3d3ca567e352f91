/* The blocking forms, the start of holt-launch and its ends. Here the answer is laid down before
 * the question. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/buf.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "launcher_rig.h"

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

	rig_say_box(rig->far, 2, fds, 2);
	assert_int_equal(launcher_claim_sync(rig->launcher, &spec, &box, NULL), 0);
	assert_string_equal(box.id, BOX_ID);
	assert_int_equal(box.pid, 42);
	assert_int_equal(box.flags, BOX_WARM);
	assert_int_equal(box.step_ns[STEP_LIMITS], 4);
	assert_true(box.sock > 2 && box.pidfd > 2 && box.sock != box.pidfd);
	launcher_box_done(&box);
	assert_int_equal(box.sock, -1);
}

/* Whoever has as many open as may be is not sent them, and the launcher has done nothing wrong. */
static void a_box_without_its_descriptors_is_not_taken(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1 };
	struct launcher_box box = { .sock = -1 };
	int fd = STDIN_FILENO, before = rig_open_fds();

	rig_say_box(rig->far, 2, &fd, 1);
	assert_int_equal(launcher_claim_sync(rig->launcher, &spec, &box, NULL), -EAGAIN);
	assert_int_equal(box.sock, -1);
	assert_int_equal(rig_open_fds(), before);
	rig_say_type(rig->far, L_OK, 3);
	assert_int_equal(launcher_freeze_sync(rig->launcher, BOX_ID, true, NULL), 0);
}

static void a_refusal_keeps_the_launcher_s_words(void **state)
{
	struct rig *rig = *state;
	struct pool_spec pool = { .template_id = 1 };
	struct err err = { 0 };

	rig_say_failed(rig->far, 2, ENOENT, "template 1 is not defined");
	assert_int_equal(launcher_pool_sync(rig->launcher, &pool, &err), -ENOENT);
	assert_string_equal(err.text, "template 1 is not defined");
	rig_say_type(rig->far, L_OK, 3);
	assert_int_equal(launcher_pool_sync(rig->launcher, &pool, NULL), 0);
}

static void deaths_on_the_way_are_kept_in_order(void **state)
{
	struct rig *rig = *state;
	struct box_usage usage = { 0 };
	char id[ID_LEN + 1];
	int status = 0;

	rig_say_died(rig->far, BOX_ID, 9);
	rig_say_died(rig->far, "zzzzzzzzzz0123456789", 256);
	rig_say_type(rig->far, L_OK, 2);
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
	rig_say_died(rig->far, BOX_ID, 0);
	assert_true(launcher_next_death(rig->launcher, id, &status, &usage));
}

static void an_answer_of_the_wrong_type_ends_the_trust(void **state)
{
	struct rig *rig = *state;

	rig_say_type(rig->far, L_USED, 2);
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
	int sock = rig_open_pair(&rig);

	(void)state;
	rig_say_failed(rig.far, 0, EPERM, "user namespaces are disabled");
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
	int before = rig_open_fds();

	(void)state;
	assert_int_equal(launcher_start(&o, &l, &err), -ENOENT);
	assert_non_null(strstr(err.text, "/nonexistent/holt-launch"));
	assert_int_equal(rig_open_fds(), before);
}

static void a_failed_allocation_closes_the_socket(void **state)
{
	struct rig rig;
	struct launcher *l = NULL;
	int sock = rig_open_pair(&rig);

	(void)state;
	fault_arm(1);
	assert_int_equal(launcher_connect(sock, 0, &l, NULL), -ENOMEM);
	assert_true(fault_disarm());
	assert_int_equal(fcntl(sock, F_GETFD), -1);
	(void)fd_close(rig.far);
}

static void print_id(void *user, const struct launch_box_info *box)
{
	struct buf *b = user;

	assert_int_equal(buf_puts(b, box->tag), 0);
}

static void the_blocking_forms_of_list_and_attach_give_the_same(void **state)
{
	struct rig *rig = *state;
	int fds[2] = { STDIN_FILENO, STDERR_FILENO };
	struct launcher_box box;
	struct buf b = { 0 };

	rig_say_box_is(rig->far, 2, BOX_ID, "one");
	rig_say_box_is(rig->far, 2, BOX_ID, "two");
	rig_say_type(rig->far, L_OK, 2);
	assert_int_equal(launcher_list_sync(rig->launcher, print_id, &b, NULL), 0);
	assert_string_equal(buf_str(&b), "onetwo");
	buf_done(&b);
	rig_say_box(rig->far, 3, fds, 2);
	assert_int_equal(launcher_attach_sync(rig->launcher, BOX_ID, &box, NULL), 0);
	assert_string_equal(box.id, BOX_ID);
	launcher_box_done(&box);
}

static void write_script(const char *path, const char *text)
{
	FILE *f = fopen(path, "we");

	assert_non_null(f);
	assert_true(fputs(text, f) >= 0);
	assert_int_equal(fclose(f), 0);
	assert_int_equal(chmod(path, 0755), 0);
}

static void a_persistent_launcher_finds_its_state_behind_its_socket(void **state)
{
	char dir[] = "/tmp/holt-launcher-XXXXXX", path[64], line[128] = "";
	struct launcher_options o = { .program = path, .cgroup = "none", .persistent = true };
	struct err err = { 0 };
	int sock = -1, before;
	pid_t pid = 0;

	(void)state;
	assert_non_null(mkdtemp(dir));
	assert_int_equal(str_format(path, sizeof(path), "%s/launch", dir), 0);
	/* What it is told and what lies at 3 and 4, said on the socket's own descriptor. */
	write_script(
		path,
		"#!/bin/sh\n"
		"{ echo \"$*\"; ls -d /proc/self/fd/4/launch; } | tr '\\n' ' ' >\"${0%/*}/said\"\n"
		"[ -S /proc/self/fd/3 ] && echo hello >&3\n");
	/* The lowest descriptor: the directory lies where the socket has to go. */
	o.state_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	before = rig_open_fds();
	assert_int_equal(launcher_spawn(&o, &sock, &pid, &err), 0);
	assert_int_equal(rig_open_fds(), before + 1);
	assert_int_equal(fd_recv(sock, line, sizeof(line), NULL, &(size_t){ 0 }), 6);
	assert_memory_equal(line, "hello\n", 6);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	assert_int_equal(str_format(path, sizeof(path), "%s/said", dir), 0);
	assert_true(fd_read_file_at(AT_FDCWD, path, line, sizeof(line)) > 0);
	assert_string_equal(line, "--fd 3 --cgroup none --state 4 /proc/self/fd/4/launch ");
	(void)unlink(path);
	(void)str_format(path, sizeof(path), "%s/launch", dir);
	(void)unlink(path);
	(void)rmdir(dir);
	(void)fd_close(sock);
	(void)fd_close(o.state_fd);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

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
		CASE(the_blocking_forms_of_list_and_attach_give_the_same),
		cmocka_unit_test(a_persistent_launcher_finds_its_state_behind_its_socket),
	};

	return cmocka_run_group_tests_name("launcher_sync", tests, NULL, NULL);
}
