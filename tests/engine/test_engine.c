/* Boxes from their claim to their end, through the client that the daemon uses. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "launch/ending.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

#define HOST 1u /* template ids */
#define POOLED 2u
#define DIRECTORY 3u
#define WRITABLE 4u

struct rig {
	struct launcher *launcher;
	struct err err;
};

struct held {
	struct launcher_box box;
	struct guest_client *guest;
};

static int start(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct template_spec host = { .id = HOST, .preload = "" };
	struct template_spec pooled = { .id = POOLED, .preload = "" };
	struct launcher_options options = { .program = getenv("HOLT_LAUNCH") };

	if (!r || launcher_start(&options, &r->launcher, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &host, -1, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &pooled, -1, &r->err) < 0) {
		print_error("start: %s\n", r ? r->err.text : "no memory");
		return -1;
	}
	*state = r;
	return 0;
}

static int stop(void **state)
{
	struct rig *r = *state;

	r->launcher = launcher_stop(r->launcher);
	free(r);
	return 0;
}

static void claim_with(struct rig *r, const struct launch_spec *spec, struct held *ret)
{
	if (launcher_claim_sync(r->launcher, spec, &ret->box, &r->err) < 0)
		fail_msg("claim: %s", r->err.text);
	assert_int_equal(guest_create(ret->box.sock, &ret->guest, &r->err), 0);
}

static void claim(struct rig *r, uint32_t template_id, struct held *ret)
{
	claim_with(r, &(struct launch_spec){ .template_id = template_id }, ret);
}

static void release(struct rig *r, struct held *h, struct box_usage *usage)
{
	if (launcher_destroy_sync(r->launcher, h->box.id, usage, &r->err) < 0)
		fail_msg("destroy: %s", r->err.text);
	guest_free(h->guest);
	(void)close(h->box.pidfd);
}

/* Runs a shell line; its output must be freed with guest_result_done(). */
static void run(struct rig *r, struct held *h, const char *line, struct guest_result *ret)
{
	struct guest_exec e = { .argc = 3,
				.argv = { "/bin/sh", "-c", line },
				.timeout_ms = 20000,
				.user = "",
				.cwd = "/",
				.code = "" };

	memset(ret, 0, sizeof(*ret));
	if (guest_exec_sync(h->guest, &e, NULL, 0, ret, &r->err) < 0)
		fail_msg("%s: %s", line, r->err.text);
}

static void expect(struct rig *r, struct held *h, const char *line, const char *output)
{
	struct guest_result res;

	run(r, h, line, &res);
	assert_string_equal(buf_str(&res.out), output);
	assert_int_equal(res.exit.code, 0);
	guest_result_done(&res);
}

static void wait_for_pool(struct rig *r, uint32_t template_id, uint32_t ready)
{
	struct pool_state s = { 0 };

	for (int i = 0; i < 500 && s.ready < ready; i++) {
		(void)poll(NULL, 0, 10);
		assert_int_equal(launcher_pool_state_sync(r->launcher, template_id, &s, &r->err),
				 0);
	}
	assert_true(s.ready >= ready);
}

static void a_cold_box_runs_a_command_and_says_that_it_was_cold(void **state)
{
	struct rig *r = *state;
	struct held h;

	claim(r, HOST, &h);
	assert_false(h.box.flags & BOX_WARM);
	assert_true(h.box.step_ns[STEP_CLONE] > 0 && h.box.step_ns[STEP_READY] > 0);
	expect(r, &h, "echo hello; id -u; hostname", "hello\n1000\nsandbox\n");
	release(r, &h, NULL);
}

static void unset_limits_are_the_defaults(void **state)
{
	struct rig *r = *state;
	struct held h;

	claim(r, HOST, &h);
	assert_int_equal(h.box.limits.memory_bytes, LIMIT_MEMORY_DEFAULT);
	assert_int_equal(h.box.limits.disk_bytes, LIMIT_MEMORY_DEFAULT / 2);
	assert_int_equal(h.box.limits.pids, LIMIT_PIDS_DEFAULT);
	assert_int_equal(h.box.limits.cpu_milli, LIMIT_CPU_DEFAULT);
	release(r, &h, NULL);
}

static void a_pool_hands_out_waiting_boxes_and_refills(void **state)
{
	struct rig *r = *state;
	struct pool_spec pool = { POOLED, 3, 8, 1000, 0 };
	struct pool_state s;
	struct held h[3];

	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	wait_for_pool(r, POOLED, 3);
	for (int i = 0; i < 3; i++) {
		claim(r, POOLED, &h[i]);
		assert_true(h[i].box.flags & BOX_WARM);
		expect(r, &h[i], "echo here", "here\n");
	}
	wait_for_pool(r, POOLED, 3);
	assert_int_equal(launcher_pool_state_sync(r->launcher, POOLED, &s, &r->err), 0);
	assert_int_equal(s.hits, 3);
	assert_int_equal(s.claimed, 3);
	for (int i = 0; i < 3; i++)
		release(r, &h[i], NULL);
	assert_int_equal(
		launcher_pool_sync(r->launcher, &(struct pool_spec){ POOLED, 0, 0, 0, 0 }, &r->err),
		0);
}

struct burst {
	struct held held[32];
	unsigned n, warm;
};

static void burst_claimed(void *user, const struct provider_reply *reply)
{
	struct burst *b = user;

	if (reply->code < 0)
		fail_msg("claim: %s", reply->text);
	b->warm += (reply->box->flags & BOX_WARM) != 0;
	b->held[b->n].box = *reply->box;
	reply->box->sock = reply->box->pidfd = -1; /* ours now */
	b->n++;
}

static void wait_for_answers(struct rig *r)
{
	struct pollfd p = { launcher_fd(r->launcher), POLLIN, 0 };

	p.events |= launcher_wants_write(r->launcher) ? POLLOUT : 0;
	(void)poll(&p, 1, -1);
	assert_int_equal(launcher_dispatch(r->launcher), 0);
}

/* So many claims at once, and all of them given back. How many came from the pool. */
static unsigned burst(struct rig *r, unsigned n)
{
	struct burst *b = calloc(1, sizeof(*b));
	unsigned warm;

	assert_non_null(b);
	assert_true(n <= 32);
	for (unsigned i = 0; i < n; i++)
		assert_int_equal(launcher_claim(r->launcher,
						&(struct launch_spec){ .template_id = POOLED },
						burst_claimed, b, &r->err),
				 0);
	while (b->n < n)
		wait_for_answers(r);
	for (unsigned i = 0; i < n; i++) {
		assert_int_equal(guest_create(b->held[i].box.sock, &b->held[i].guest, &r->err), 0);
		release(r, &b->held[i], NULL);
	}
	warm = b->warm;
	free(b);
	return warm;
}

/* Whatever the machine's speed: a burst raises the target, and what the pool then has it gives. */
static void a_burst_makes_the_pool_larger_and_the_next_is_served_from_it(void **state)
{
	struct rig *r = *state;
	struct pool_spec pool = { .template_id = POOLED, .min = 1, .max = 16, .quiet_ms = 600000 };
	struct pool_state s = { 0 };

	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	wait_for_pool(r, POOLED, 1);
	assert_true(burst(r, 12) >= 1);
	assert_int_equal(launcher_pool_state_sync(r->launcher, POOLED, &s, &r->err), 0);
	assert_true(s.target > 1);
	wait_for_pool(r, POOLED, s.target);
	assert_int_equal(burst(r, s.target), s.target);
	/* With another delay it begins anew, and all but the smallest number go. */
	pool.quiet_ms = 1;
	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	do {
		(void)poll(NULL, 0, 10);
		assert_int_equal(launcher_pool_state_sync(r->launcher, POOLED, &s, &r->err), 0);
	} while (s.ready != 1 || s.building != 0);
	assert_int_equal(s.target, 1);
	pool.min = pool.max = 0;
	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
}

static void count_destroyed(void *user, const struct provider_reply *reply)
{
	unsigned *n = user;

	if (reply->code < 0)
		fail_msg("destroy: %s", reply->text);
	++*n;
}

/* More than end at a time: those that have to wait end as well, and each is answered. */
static void many_boxes_can_be_destroyed_at_once(void **state)
{
	enum { BOXES = ENDING_MAX + 8 };
	struct rig *r = *state;
	static struct held held[BOXES];
	unsigned n = 0;

	for (int i = 0; i < BOXES; i++)
		claim(r, HOST, &held[i]);
	for (int i = 0; i < BOXES; i++)
		assert_int_equal(
			launcher_destroy(r->launcher, held[i].box.id, count_destroyed, &n, &r->err),
			0);
	while (n < BOXES)
		wait_for_answers(r);
	for (int i = 0; i < BOXES; i++) {
		struct pollfd p = { held[i].box.pidfd, POLLIN, 0 };

		assert_int_equal(poll(&p, 1, 0), 1); /* it has ended */
		guest_free(held[i].guest);
		(void)close(held[i].box.pidfd);
	}
}

/* A waiting box becomes larger or smaller; what cannot be changed makes the claim cold, and is
 * told.
 */
static void a_waiting_box_gets_the_disk_that_is_asked_for(void **state)
{
	static const char size[] = "df -k --output=size,itotal /tmp | tail -1 | xargs";
	struct rig *r = *state;
	struct pool_spec pool = { POOLED, 2, 2, 1000, 0 };
	struct launch_spec small = { .template_id = POOLED,
				     .limits = { .disk_bytes = 8u << 20, .inodes = 512 } };
	struct launch_spec large = { .template_id = POOLED,
				     .limits = { .memory_bytes = 1u << 30,
						 .disk_bytes = 512u << 20 } };
	struct launch_spec files = { .template_id = POOLED, .limits = { .nofile = 100 } };
	struct pool_state s = { 0 }, before = { 0 };
	struct held h;

	assert_int_equal(launcher_pool_sync(r->launcher, &pool, &r->err), 0);
	assert_int_equal(launcher_pool_state_sync(r->launcher, POOLED, &before, &r->err), 0);
	wait_for_pool(r, POOLED, 2);
	claim_with(r, &small, &h);
	assert_true(h.box.flags & BOX_WARM);
	assert_int_equal(h.box.limits.disk_bytes, 8u << 20);
	expect(r, &h, size, "8192 512\n");
	expect(r, &h, "head -c 9M /dev/zero >/workspace/a 2>/dev/null || echo full", "full\n");
	release(r, &h, NULL);
	claim_with(r, &large, &h);
	assert_true(h.box.flags & BOX_WARM);
	assert_int_equal(h.box.limits.memory_bytes, 1u << 30);
	expect(r, &h, size, "524288 65536\n");
	release(r, &h, NULL);
	wait_for_pool(r, POOLED, 2);
	claim_with(r, &files, &h);
	assert_false(h.box.flags & BOX_WARM);
	release(r, &h, NULL);
	assert_int_equal(launcher_pool_state_sync(r->launcher, POOLED, &s, &r->err), 0);
	assert_int_equal(s.hits - before.hits, 2);
	assert_int_equal(s.misses - before.misses, 1);
	assert_int_equal(s.missed[MISS_LIMITS] - before.missed[MISS_LIMITS], 1);
	assert_int_equal(s.missed[MISS_EMPTY], before.missed[MISS_EMPTY]);
	assert_int_equal(
		launcher_pool_sync(r->launcher, &(struct pool_spec){ POOLED, 0, 0, 0, 0 }, &r->err),
		0);
}

static bool lacks(const struct rig *r, unsigned controllers)
{
	return launcher_info(r->launcher)->cgroup_missing & controllers;
}

static void a_paused_box_stands_still_and_goes_on(void **state)
{
	struct rig *r = *state;
	struct guest_exec e = { .argc = 3,
				.argv = { "/bin/sh", "-c",
					  "i=0; while :; do i=$((i+1)); echo $i >/tmp/i; done" },
				.user = "",
				.cwd = "",
				.code = "" };
	struct buf a = { 0 }, b = { 0 }, c = { 0 };
	struct held h;
	uint32_t id;

	if (lacks(r, CONTROLLER_FREEZER))
		skip();
	claim(r, HOST, &h);
	assert_int_equal(
		guest_exec(h.guest, &e, &(struct guest_callbacks){ 0 }, NULL, &id, &r->err), 0);
	(void)poll(NULL, 0, 50);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	assert_true(guest_ping_sync(h.guest, 200) < 0);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, false, &r->err), 0);
	assert_int_equal(guest_ping_sync(h.guest, 5000), 0);
	assert_int_equal(guest_read_sync(h.guest, "/tmp/i", &a, &r->err), 0);
	for (int i = 0; i < 200; i++) {
		buf_clear(&b);
		assert_int_equal(guest_read_sync(h.guest, "/tmp/i", &b, &r->err), 0);
		if (strcmp(buf_str(&a), buf_str(&b)) != 0)
			break;
	}
	assert_string_not_equal(buf_str(&a), buf_str(&b));
	buf_done(&a);
	buf_done(&b);
	buf_done(&c);
	release(r, &h, NULL);
}

static void a_paused_box_can_be_destroyed(void **state)
{
	struct rig *r = *state;
	struct held h;

	if (lacks(r, CONTROLLER_FREEZER))
		skip();
	claim(r, HOST, &h);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	release(r, &h, NULL);
}

static void too_much_memory_ends_the_program_and_is_counted(void **state)
{
	struct rig *r = *state;
	struct launch_spec small = { .template_id = HOST, .limits = { .memory_bytes = 32u << 20 } };
	struct guest_result res;
	struct box_usage usage;
	struct held h;

	if (lacks(r, CONTROLLER_MEMORY))
		skip();
	claim_with(r, &small, &h);
	run(r, &h, "exec /usr/bin/python3 -c 'x = bytearray(200 << 20); print(len(x))'", &res);
	assert_true(res.exit.flags & EXIT_SIGNALED);
	assert_int_equal(res.exit.code, SIGKILL);
	guest_result_done(&res);
	assert_int_equal(guest_ping_sync(h.guest, 1000), 0);
	assert_int_equal(launcher_usage_sync(r->launcher, h.box.id, &usage, &r->err), 0);
	assert_int_equal(usage.oom_kills, 1);
	release(r, &h, &usage);
	assert_in_range(usage.memory_peak_bytes, 16u << 20, 33u << 20);
	assert_true(usage.cpu_us > 0);
}

static void limits_of_a_live_box_can_be_changed(void **state)
{
	struct rig *r = *state;
	struct limits more = { .memory_bytes = 300u << 20 };
	struct held h;

	if (lacks(r, CONTROLLER_MEMORY))
		skip();
	claim_with(r,
		   &(struct launch_spec){ .template_id = HOST,
					  .limits = { .memory_bytes = 32u << 20 } },
		   &h);
	assert_int_equal(launcher_limits_sync(r->launcher, h.box.id, &more, &r->err), 0);
	expect(r, &h, "/usr/bin/python3 -c 'x = bytearray(200 << 20); print(len(x) >> 20)'",
	       "200\n");
	release(r, &h, NULL);
}

static void closing_the_control_socket_ends_the_box(void **state)
{
	struct rig *r = *state;
	struct pollfd p = { .events = POLLIN };
	struct held h;

	claim(r, HOST, &h);
	p.fd = h.box.pidfd;
	guest_free(h.guest);
	assert_int_equal(poll(&p, 1, 5000), 1);
	(void)close(h.box.pidfd);
}

static void a_box_that_dies_is_reported(void **state)
{
	struct rig *r = *state;
	char id[ID_LEN + 1] = "";
	struct box_usage usage;
	struct held h;
	int status = 0;

	while (launcher_next_death(r->launcher, id, &status, &usage))
		; /* of the case before */
	claim(r, HOST, &h);
	(void)kill(h.box.pid, SIGKILL);
	for (int i = 0; i < 500 && strcmp(id, h.box.id) != 0; i++) {
		struct pollfd p = { launcher_fd(r->launcher), POLLIN, 0 };

		(void)poll(&p, 1, 10);
		(void)launcher_next_death(r->launcher, id, &status, &usage);
	}
	assert_string_equal(id, h.box.id);
	assert_true(WIFSIGNALED(status));
	assert_int_equal(launcher_destroy_sync(r->launcher, h.box.id, NULL, &r->err), -ENOENT);
	guest_free(h.guest);
	(void)close(h.box.pidfd);
}

static void bad_requests_are_refused_by_name_and_cost_nothing(void **state)
{
	static const struct {
		struct launch_spec spec;
		const char *names;
	} rows[] = {
		{ { .template_id = 60 }, "template 60" },
		{ { .template_id = HOST, .limits = { .memory_bytes = 1 } }, "memory" },
		{ { .template_id = HOST, .limits = { .pids = 1 } }, "pids" },
		{ { .template_id = HOST, .limits = { .disk_bytes = 1ull << 50 } }, "disk" },
	};
	struct rig *r = *state;
	struct launcher_box box;

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_true(launcher_claim_sync(r->launcher, &rows[i].spec, &box, &r->err) < 0);
		if (!strstr(r->err.text, rows[i].names))
			fail_msg("'%s' does not name %s", r->err.text, rows[i].names);
	}
	assert_int_equal(launcher_destroy_sync(r->launcher, "nosuchboxnosuchboxno", NULL, &r->err),
			 -ENOENT);
}

static void a_directory_template_is_never_changed(void **state)
{
	struct rig *r = *state;
	char dir[] = "/tmp/holt-engine.XXXXXX", path[64];
	struct template_spec spec = {
		.id = DIRECTORY, .root = ROOT_DIR, .flags = TEMPLATE_WRITABLE_ROOT, .preload = ""
	};
	struct guest_result res;
	struct held h;
	int fd;

	assert_non_null(mkdtemp(dir));
	(void)chmod(dir, 0755);
	(void)snprintf(path, sizeof(path), "%s/bin", dir);
	assert_int_equal(mkdir(path, 0755), 0);
	fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	if (launcher_template_sync(r->launcher, &spec, fd, &r->err) < 0)
		fail_msg("template: %s", r->err.text);
	claim(r, DIRECTORY, &h);
	/* There is no shell in it: holt-init needs nothing of the root. */
	memset(&res, 0, sizeof(res));
	assert_true(guest_exec_sync(h.guest,
				    &(struct guest_exec){ .argc = 1,
							  .argv = { "/bin/sh" },
							  .user = "",
							  .cwd = "/",
							  .code = "" },
				    NULL, 0, &res, &r->err) < 0);
	guest_result_done(&res);
	assert_int_equal(guest_write_sync(h.guest, "/workspace/x", "abc", 3, 0644, &r->err), 0);
	release(r, &h, NULL);
	(void)snprintf(path, sizeof(path), "%s/workspace", dir);
	assert_int_equal(access(path, F_OK), -1);
	(void)close(fd);
	(void)snprintf(path, sizeof(path), "%s/bin", dir);
	(void)rmdir(path);
	assert_int_equal(rmdir(dir), 0);
}

static void a_writable_root_is_private_to_its_box(void **state)
{
	struct rig *r = *state;
	struct template_spec spec = { .id = WRITABLE,
				      .flags = TEMPLATE_WRITABLE_ROOT,
				      .preload = "" };
	struct guest_exec root = {
		.argc = 3,
		.argv = { "/bin/sh", "-c",
			  "echo mine >/etc/mark && echo x >/usr/mark && cat /etc/mark" },
		.user = launcher_info(r->launcher)->rootless ? "" : "root",
		.cwd = "/",
		.code = ""
	};
	struct guest_result res = { 0 };
	struct held a, b;

	assert_int_equal(launcher_template_sync(r->launcher, &spec, -1, &r->err), 0);
	claim(r, WRITABLE, &a);
	claim(r, WRITABLE, &b);
	assert_int_equal(guest_exec_sync(a.guest, &root, NULL, 0, &res, &r->err), 0);
	assert_string_equal(buf_str(&res.out), "mine\n");
	guest_result_done(&res);
	expect(r, &b, "ls /etc | grep -c mark || true", "0\n");
	release(r, &a, NULL);
	release(r, &b, NULL);
	claim(r, WRITABLE, &a);
	expect(r, &a, "ls /etc | grep -c mark || true", "0\n");
	release(r, &a, NULL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_cold_box_runs_a_command_and_says_that_it_was_cold),
		cmocka_unit_test(unset_limits_are_the_defaults),
		cmocka_unit_test(a_pool_hands_out_waiting_boxes_and_refills),
		cmocka_unit_test(a_burst_makes_the_pool_larger_and_the_next_is_served_from_it),
		cmocka_unit_test(many_boxes_can_be_destroyed_at_once),
		cmocka_unit_test(a_waiting_box_gets_the_disk_that_is_asked_for),
		cmocka_unit_test(a_paused_box_stands_still_and_goes_on),
		cmocka_unit_test(a_paused_box_can_be_destroyed),
		cmocka_unit_test(too_much_memory_ends_the_program_and_is_counted),
		cmocka_unit_test(limits_of_a_live_box_can_be_changed),
		cmocka_unit_test(closing_the_control_socket_ends_the_box),
		cmocka_unit_test(a_box_that_dies_is_reported),
		cmocka_unit_test(bad_requests_are_refused_by_name_and_cost_nothing),
		cmocka_unit_test(a_directory_template_is_never_changed),
		cmocka_unit_test(a_writable_root_is_private_to_its_box),
	};

	return cmocka_run_group_tests(tests, start, stop);
}
