/* A launcher that hangs, and one that is only slow. The test forks processes that play holt-launch:
 * they speak its protocol as far as the start needs it, and then do what the case is about. */
#include "daemon/machinery.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/fd.h"
#include "check.h"
#include "launcher_rig.h"
#include "loop/loop.h"
#include "provider/launcher_impl.h"

#define HANG_MS 300u
#define LAUNCHERS_MAX 4

/* What a launcher does, each of them in turn. */
enum conduct {
	ANSWERS,
	STOPS,          /* once it has been asked to destroy a box */
	STOPS_AT_START, /* before its templates are made */
	IS_SLOW,        /* destroys no box, but says everything else */
};

struct world {
	struct loop *loop;
	struct loop_timer *end;
	struct machinery *machinery;
	const enum conduct *conducts;
	pid_t pids[LAUNCHERS_MAX];
	int n, ready, lost;
	bool destroys; /* when the first is there */
	struct heard heard;
};

/* ---- being holt-launch ---- */

static void say_info(int far, uint32_t id)
{
	struct launch_info info = { .version = WIRE_VERSION };
	uint8_t frame[512];
	long n = launch_put_info(frame, sizeof(frame), id, &info);

	(void)fd_send(far, frame, (size_t)n, NULL, 0);
}

static void say(int far, uint16_t type, uint32_t id)
{
	uint8_t frame[64];
	struct wr w;
	long n;

	wire_begin(&w, frame, sizeof(frame), type, id);
	n = wire_finish(&w);
	(void)fd_send(far, frame, (size_t)n, NULL, 0);
}

static _Noreturn void be_launcher(int far, enum conduct conduct)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct wire_head head;
	struct rd body;
	size_t nfds = 0;
	ssize_t n;

	while ((n = fd_recv(far, frame, sizeof(frame), NULL, &nfds)) > 0) {
		if (wire_open(frame, (size_t)n, &head, &body) < 0)
			_exit(1);
		if ((head.type == L_DESTROY && conduct == STOPS) ||
		    (head.type == L_TEMPLATE && conduct == STOPS_AT_START))
			(void)raise(SIGSTOP);
		if (head.type == L_HELLO)
			say_info(far, head.id);
		else if (head.type != L_DESTROY)
			say(far, L_OK, head.id);
	}
	_exit(0);
}

static int get(void *self, int *ret_sock, pid_t *ret_pid, struct err *err)
{
	struct world *w = self;
	int pair[2];
	pid_t pid;

	assert_true(w->n < LAUNCHERS_MAX);
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair) < 0)
		return err_sys(err, errno, "socketpair");
	pid = fork();
	if (pid == 0) {
		(void)close(pair[0]);
		be_launcher(pair[1], w->conducts[w->n]);
	}
	(void)close(pair[1]);
	w->pids[w->n++] = pid;
	*ret_sock = pair[0];
	*ret_pid = pid;
	return 0;
}

/* ---- being the daemon ---- */

static void on_ready(void *user, const struct provider *p, const struct launch_info *info)
{
	struct world *w = user;

	(void)info;
	if (w->ready++ == 0 && w->destroys)
		assert_int_equal(p->ops->destroy(p->self, BOX_ID, rig_hear, &w->heard, NULL), 0);
	if (w->ready == 2)
		loop_stop(w->loop);
}

static void on_lost(void *user)
{
	((struct world *)user)->lost++;
}

static void on_failed(void *user, const struct err *err)
{
	(void)err;
	loop_stop(((struct world *)user)->loop);
}

static void on_died(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	(void)user;
	(void)box_id;
	(void)status;
	(void)usage;
}

static void on_end(void *user)
{
	loop_stop(((struct world *)user)->loop);
}

static const struct machinery_ops ops = {
	.ready = on_ready, .lost = on_lost, .failed = on_failed, .died = on_died
};

/* Runs until there was a second launcher, or so long. */
static void run(struct world *w, unsigned ms)
{
	struct launcher_source source = { get, w };
	struct machinery_settings s = { .hang_ms = HANG_MS };

	assert_int_equal(loop_create(&w->loop, NULL), 0);
	assert_int_equal(loop_timer_create(w->loop, on_end, w, &w->end), 0);
	loop_timer_start(w->end, ms, 0);
	assert_int_equal(machinery_start(w->loop, &source, &s, &ops, w, &w->machinery, NULL), 0);
	loop_run(w->loop);
}

static void finish(struct world *w)
{
	w->machinery = machinery_stop(w->machinery);
	w->end = loop_timer_free(w->end);
	w->loop = loop_free(w->loop);
	for (int i = 0; i < w->n; i++) /* all have been waited for */
		assert_int_equal(kill(w->pids[i], 0), -1);
}

static void one_that_is_stopped_is_killed_and_replaced(void **state)
{
	static const enum conduct conducts[] = { STOPS, ANSWERS };
	struct world w = { .conducts = conducts, .destroys = true };
	uint64_t began = clock_now_ms();

	(void)state;
	run(&w, 20000);
	assert_int_equal(w.ready, 2);
	assert_int_equal(w.lost, 1);
	assert_true(clock_now_ms() - began >= HANG_MS);
	assert_int_equal(w.heard.calls, 1); /* who waited was told */
	assert_int_equal(w.heard.code, -EPIPE);
	finish(&w);
	assert_int_equal(w.n, 2);
}

static void one_that_takes_long_for_a_request_but_answers_others_is_left_alone(void **state)
{
	static const enum conduct conducts[] = { IS_SLOW, ANSWERS };
	struct world w = { .conducts = conducts, .destroys = true };

	(void)state;
	run(&w, HANG_MS * 5);
	assert_int_equal(w.ready, 1);
	assert_int_equal(w.lost, 0);
	assert_int_equal(w.heard.calls, 1); /* whoever waits for that is not left alone either */
	assert_int_equal(w.heard.code, -ETIMEDOUT);
	finish(&w);
	assert_int_equal(w.n, 1);
}

static void one_that_has_nothing_to_do_is_left_alone(void **state)
{
	static const enum conduct conducts[] = { ANSWERS, ANSWERS };
	struct world w = { .conducts = conducts };

	(void)state;
	run(&w, HANG_MS * 5);
	assert_int_equal(w.ready, 1);
	assert_int_equal(w.lost, 0);
	finish(&w);
}

static void one_that_stops_while_it_is_started_anew_is_replaced_too(void **state)
{
	static const enum conduct conducts[] = { STOPS, STOPS_AT_START, ANSWERS };
	struct world w = { .conducts = conducts, .destroys = true };

	(void)state;
	run(&w, 20000);
	assert_int_equal(w.ready, 2);
	assert_int_equal(w.n, 3);
	finish(&w);
}

static void one_that_does_not_end_is_killed_in_the_end(void **state)
{
	pid_t pid = fork();

	(void)state;
	if (pid == 0) {
		(void)raise(SIGSTOP);
		_exit(0);
	}
	launcher_bury(pid, 100);
	assert_int_equal(kill(pid, 0), -1);
	launcher_bury(getppid(), 100000); /* not ours: left alone, and not waited for */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(one_that_is_stopped_is_killed_and_replaced),
		cmocka_unit_test(
			one_that_takes_long_for_a_request_but_answers_others_is_left_alone),
		cmocka_unit_test(one_that_has_nothing_to_do_is_left_alone),
		cmocka_unit_test(one_that_does_not_end_is_killed_in_the_end),
		cmocka_unit_test(one_that_stops_while_it_is_started_anew_is_replaced_too),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
