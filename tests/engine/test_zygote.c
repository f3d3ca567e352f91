/* Boxes that a template's Python makes: which of them have one waiting, and what happens when that
 * Python fails. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/parse.h"
#include "base/str.h"
#include "launch/zygote.h"
#include "provider/guest_client.h"
#include "provider/launcher.h"

#define PYTHON "/usr/bin/python3"
#define TEMPLATE 1u
#define WAIT_MS 20000
#define PIDS_MAX 256

struct rig {
	struct launcher *launcher;
	struct err err;
};

struct held {
	struct launcher_box box;
	struct guest_client *guest;
};

static int start_with(void **state, const char *preload, unsigned pool)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct template_spec t = { .id = TEMPLATE,
				   .flags = TEMPLATE_WARM_PYTHON,
				   .preload = preload };
	struct pool_spec p = {
		.template_id = TEMPLATE, .min = pool, .max = pool, .quiet_ms = 60000
	};
	struct launcher_options options = { .program = getenv("HOLT_LAUNCH") };

	if (!r || launcher_start(&options, &r->launcher, &r->err) < 0 ||
	    launcher_template_sync(r->launcher, &t, -1, &r->err) < 0 ||
	    launcher_pool_sync(r->launcher, &p, &r->err) < 0) {
		print_error("start: %s\n", r ? r->err.text : "no memory");
		return -1;
	}
	*state = r;
	return 0;
}

static int start(void **state)
{
	return start_with(state, "", 2);
}

static int start_broken(void **state)
{
	return start_with(state, "no_such_module", 2);
}

static int stop(void **state)
{
	struct rig *r = *state;

	r->launcher = launcher_stop(r->launcher);
	free(r);
	return 0;
}

static void nap(void)
{
	(void)nanosleep(&(struct timespec){ .tv_nsec = 5000000 }, NULL);
}

/* From the pool: a claim before anything waits would be answered by a plain box. */
static struct held claim(struct rig *r)
{
	struct launch_spec spec = { .template_id = TEMPLATE };
	struct pool_state state = { 0 };
	struct held h = { 0 };

	for (int ms = 0; ms < WAIT_MS && state.ready == 0; ms += 5) {
		assert_int_equal(launcher_pool_state_sync(r->launcher, TEMPLATE, &state, &r->err),
				 0);
		nap();
	}
	assert_int_equal(launcher_claim_sync(r->launcher, &spec, &h.box, &r->err), 0);
	assert_int_equal(guest_create(h.box.sock, &h.guest, &r->err), 0);
	return h;
}

static void release(struct rig *r, struct held *h)
{
	(void)guest_free(h->guest);
	(void)close(h->box.pidfd);
	/* The box ends with its socket; then there is nothing left to destroy. */
	(void)launcher_destroy_sync(r->launcher, h->box.id, NULL, &r->err);
}

/* What the program printed; whether a waiting Python ran it. */
static bool run(struct rig *r, struct held *h, const char *code, char *dst, size_t size)
{
	struct guest_exec e = { .kind = EXEC_PYTHON, .user = "", .cwd = "", .code = code };
	struct guest_result result = { 0 };
	bool warm;

	e.envp[e.envc++] = "PATH=" GUEST_PATH;
	assert_int_equal(guest_exec_sync(h->guest, &e, NULL, 0, &result, &r->err), 0);
	assert_int_equal(result.exit.code, 0);
	assert_int_equal(str_copy(dst, size, buf_str(&result.out)), 0);
	warm = result.warm;
	guest_result_done(&result);
	return warm;
}

/* Children of the launcher that are template interpreters. */
static size_t find_zygotes(struct rig *r, pid_t ret[PIDS_MAX])
{
	char path[64], text[4096], comm[32];
	struct str rest, word;
	size_t n = 0;

	(void)str_format(path, sizeof(path), "/proc/%d/task/%d/children",
			 (int)launcher_pid(r->launcher), (int)launcher_pid(r->launcher));
	assert_true(fd_read_file_at(-1, path, text, sizeof(text)) >= 0);
	rest = str_of(text);
	while (n < PIDS_MAX && str_split(&rest, ' ', &word)) {
		char digits[16] = "";
		uint32_t pid;

		if (word.len == 0 || word.len >= sizeof(digits))
			continue;
		memcpy(digits, word.data, word.len);
		if (parse_u32(digits, 1, INT32_MAX, &pid) < 0)
			continue;
		(void)str_format(path, sizeof(path), "/proc/%u/comm", pid);
		if (fd_read_file_at(-1, path, comm, sizeof(comm)) > 0 &&
		    strncmp(comm, "python3", 7) == 0)
			ret[n++] = (pid_t)pid;
	}
	return n;
}

static void need_python(void)
{
	if (access(PYTHON, X_OK) < 0)
		skip();
}

static void every_box_has_a_python_waiting_across_generations(void **state)
{
	struct rig *r = *state;
	char out[64];

	need_python();
	for (int i = 0; i < 2 * ZYGOTE_BOXES_MAX + 3; i++) {
		struct held h = claim(r);

		assert_true(h.box.flags & BOX_WARM_PYTHON);
		assert_true(run(r, &h, "print(1)", out, sizeof(out)));
		assert_string_equal(out, "1\n");
		release(r, &h);
	}
}

static void a_hash_seed_is_shared_by_one_generation_only(void **state)
{
	struct rig *r = *state;
	char seeds[2 * ZYGOTE_BOXES_MAX + 3][64];
	int most = 0, n = sizeof(seeds) / sizeof(seeds[0]);

	need_python();
	for (int i = 0; i < n; i++) {
		struct held h = claim(r);

		(void)run(r, &h, "print(hash('seed'))", seeds[i], sizeof(seeds[i]));
		release(r, &h);
	}
	for (int i = 0; i < n; i++) {
		int same = 0;

		for (int k = 0; k < n; k++)
			same += strcmp(seeds[i], seeds[k]) == 0;
		most = same > most ? same : most;
	}
	assert_in_range(most, 1, ZYGOTE_BOXES_MAX);
}

static void a_preload_that_fails_leaves_boxes_without_a_waiting_python(void **state)
{
	struct rig *r = *state;
	struct held h = claim(r);
	char out[64];

	need_python();
	assert_false(h.box.flags & BOX_WARM_PYTHON);
	assert_false(run(r, &h, "print(2)", out, sizeof(out)));
	assert_string_equal(out, "2\n");
	release(r, &h);
}

static void a_killed_template_interpreter_is_replaced(void **state)
{
	struct rig *r = *state;
	pid_t pids[PIDS_MAX];
	bool is_back = false;
	struct held h;
	size_t n;

	need_python();
	h = claim(r);
	n = find_zygotes(r, pids);
	assert_true(n > 0);
	while (n-- > 0)
		(void)kill(pids[n], SIGKILL);
	release(r, &h);
	for (int i = 0; i < 40 && !is_back; i++) { /* those in the pool are older */
		h = claim(r);
		n = find_zygotes(r, pids);
		is_back = i > 4 && n > 0 && (h.box.flags & BOX_WARM_PYTHON);
		release(r, &h);
	}
	assert_true(is_back);
}

static void a_box_outlives_the_interpreter_that_made_it(void **state)
{
	struct rig *r = *state;
	pid_t pids[PIDS_MAX];
	struct held h;
	char out[64];
	size_t n;

	need_python();
	h = claim(r);
	n = find_zygotes(r, pids);
	while (n-- > 0)
		(void)kill(pids[n], SIGKILL);
	for (int i = 0; i < 3; i++) {
		assert_true(run(r, &h, "print(3)", out, sizeof(out)));
		assert_string_equal(out, "3\n");
	}
	release(r, &h);
}

static void the_end_of_the_launcher_ends_its_interpreters(void **state)
{
	struct rig *r = *state;
	pid_t pids[PIDS_MAX];
	struct held h;
	size_t n;

	need_python();
	h = claim(r);
	n = find_zygotes(r, pids);
	assert_true(n > 0);
	release(r, &h);
	r->launcher = launcher_stop(r->launcher);
	while (n-- > 0)
		assert_int_equal(kill(pids[n], 0), -1);
}

static void a_deadline_ends_a_waiting_python_and_what_it_started(void **state)
{
	struct rig *r = *state;
	struct guest_exec e = { .kind = EXEC_PYTHON, .user = "", .cwd = "", .timeout_ms = 300 };
	struct guest_result result = { 0 };
	struct held h;
	char out[64];

	need_python();
	h = claim(r);
	e.code = "import subprocess, signal\n"
		 "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
		 "subprocess.Popen(['sh', '-c', 'trap \"\" TERM; sleep 1; touch /tmp/alive'])\n"
		 "while True: pass";
	assert_int_equal(guest_exec_sync(h.guest, &e, NULL, 0, &result, &r->err), 0);
	assert_true(result.warm);
	assert_true(result.exit.flags & EXIT_TIMED_OUT);
	guest_result_done(&result);
	assert_true(run(r, &h,
			"import os, time\n"
			"time.sleep(1.5); print(os.path.exists('/tmp/alive'))",
			out, sizeof(out)));
	assert_string_equal(out, "False\n");
	release(r, &h);
}

/* What a lying program could gain by saying that it ends: it does. */
static void a_program_cannot_live_on_after_its_streams_and_its_word(void **state)
{
	struct rig *r = *state;
	struct held h;
	char out[256];

	need_python();
	h = claim(r);
	assert_true(run(
		r, &h,
		"import os, mmap, ctypes, struct, time\n"
		"line = [l for l in open('/proc/self/maps') if 'memfd:end' in l][0]\n"
		"at = int(line.split('-')[0], 16)\n"
		"ctypes.memmove(at + 4, struct.pack('<iIQQQ', os.getpid(), 0, 0, 0, 0)[:4], 4)\n"
		"ctypes.memmove(at, struct.pack('<I', 1), 4)\n"
		"os.closerange(0, 3)\n"
		"time.sleep(1)\n"
		"open('/tmp/alive', 'w').close()\n",
		out, sizeof(out)));
	assert_true(run(r, &h,
			"import os, time\n"
			"time.sleep(1.5); print(os.path.exists('/tmp/alive'))",
			out, sizeof(out)));
	assert_string_equal(out, "False\n");
	release(r, &h);
}

int main(void)
{
#define WITH_POOL(f) cmocka_unit_test_setup_teardown(f, start, stop)
	const struct CMUnitTest tests[] = {
		WITH_POOL(every_box_has_a_python_waiting_across_generations),
		WITH_POOL(a_hash_seed_is_shared_by_one_generation_only),
		cmocka_unit_test_setup_teardown(
			a_preload_that_fails_leaves_boxes_without_a_waiting_python, start_broken,
			stop),
		WITH_POOL(a_killed_template_interpreter_is_replaced),
		WITH_POOL(a_box_outlives_the_interpreter_that_made_it),
		WITH_POOL(the_end_of_the_launcher_ends_its_interpreters),
		WITH_POOL(a_deadline_ends_a_waiting_python_and_what_it_started),
		WITH_POOL(a_program_cannot_live_on_after_its_streams_and_its_word),
	};

	return cmocka_run_group_tests_name("zygote", tests, NULL, NULL);
}
