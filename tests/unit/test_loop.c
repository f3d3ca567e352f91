#include "loop/loop.h"

#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "base/err.h"
#include "check.h"
#include "fault.h"

struct rig {
	struct loop *loop;
	struct loop_timer *timer;
	struct loop_io *io;
	struct loop_wake *wake;
	struct loop_signal *sig;
	struct loop_task a, b;
	int fd;
	unsigned calls, events, order;
	pthread_t thread;
};

static int setup(void **state)
{
	static struct rig g;

	g = (struct rig){ .fd = -1 };
	assert_int_equal(loop_create(&g.loop, NULL), 0);
	*state = &g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->loop = loop_free(g->loop);
	return 0;
}

static void stop_at_three(void *user)
{
	struct rig *g = user;

	if (++g->calls == 3)
		loop_stop(g->loop);
}

static void a_repeating_timer_fires_again_and_again(void **state)
{
	struct rig *g = *state;
	uint64_t before = loop_now_ms(g->loop);

	assert_int_equal(loop_timer_create(g->loop, stop_at_three, g, &g->timer), 0);
	loop_timer_start(g->timer, 5, 5);
	loop_run(g->loop);
	assert_int_equal(g->calls, 3);
	assert_true(loop_now_ms(g->loop) >= before + 15);
	g->timer = loop_timer_free(g->timer);
}

static void count(void *user)
{
	((struct rig *)user)->calls++;
}

static void a_single_timer_fires_once_and_a_stopped_one_never(void **state)
{
	struct rig *g = *state;
	struct loop_timer *never = NULL;

	assert_int_equal(loop_timer_create(g->loop, count, g, &g->timer), 0);
	assert_int_equal(loop_timer_create(g->loop, count, g, &never), 0);
	loop_timer_start(g->timer, 1, 0);
	loop_timer_start(never, 1, 0);
	loop_timer_stop(never);
	loop_run(g->loop); /* ends by itself: nothing is left to wait for */
	assert_int_equal(g->calls, 1);
	never = loop_timer_free(never);
	g->timer = loop_timer_free(g->timer);
}

static void free_own_timer(void *user)
{
	struct rig *g = user;

	g->calls++;
	g->timer = loop_timer_free(g->timer);
}

static void a_timer_may_free_itself_in_its_callback(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_timer_create(g->loop, free_own_timer, g, &g->timer), 0);
	loop_timer_start(g->timer, 1, 1);
	loop_run(g->loop);
	assert_int_equal(g->calls, 1);
	assert_null(g->timer);
}

static void drain_and_count(void *user, unsigned events)
{
	struct rig *g = user;
	char c[8];

	g->events |= events;
	if (events & LOOP_READ && read(g->fd, c, 1) <= 0)
		g->io = loop_io_free(g->io);
	else
		g->calls++;
}

static void unread_data_is_told_again_and_the_end_too(void **state)
{
	struct rig *g = *state;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	g->fd = sv[0];
	assert_int_equal(loop_io_create(g->loop, sv[0], drain_and_count, g, &g->io), 0);
	assert_int_equal(loop_io_want(g->io, LOOP_READ), 0);
	assert_int_equal(write(sv[1], "abc", 3), 3);
	assert_int_equal(close(sv[1]), 0);
	loop_run(g->loop);
	assert_int_equal(g->calls, 3);
	assert_null(g->io);
	assert_int_equal(close(sv[0]), 0);
}

static void stop_on_hangup(void *user, unsigned events)
{
	struct rig *g = user;

	g->calls++;
	g->events = events;
	if (events & LOOP_HANGUP)
		g->io = loop_io_free(g->io);
}

static void a_hangup_is_told_without_wanting_to_read(void **state)
{
	struct rig *g = *state;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(write(sv[1], "abc", 3), 3);
	assert_int_equal(loop_io_create(g->loop, sv[0], stop_on_hangup, g, &g->io), 0);
	assert_int_equal(loop_io_want(g->io, LOOP_HANGUP), 0);
	assert_int_equal(close(sv[1]), 0);
	loop_run(g->loop);
	assert_int_equal(g->calls, 1);
	assert_true(g->events & LOOP_HANGUP);
	assert_int_equal(close(sv[0]), 0);
}

static void stop_when_writable(void *user, unsigned events)
{
	struct rig *g = user;

	g->events = events;
	assert_int_equal(loop_io_want(g->io, 0), 0);
}

static void writability_is_told_until_it_is_not_wanted(void **state)
{
	struct rig *g = *state;
	int sv[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	assert_int_equal(loop_io_create(g->loop, sv[0], stop_when_writable, g, &g->io), 0);
	assert_int_equal(loop_io_want(g->io, LOOP_WRITE), 0);
	loop_run(g->loop);
	assert_int_equal(g->events, LOOP_WRITE);
	g->io = loop_io_free(g->io);
	assert_int_equal(close(sv[0]) + close(sv[1]), 0);
}

static void a_file_cannot_be_watched(void **state)
{
	struct rig *g = *state;
	_fclose_ FILE *f = tmpfile();

	assert_non_null(f);
	assert_int_equal(loop_io_create(g->loop, fileno(f), drain_and_count, g, &g->io), -EPERM);
	assert_null(g->io);
}

static void note_thread(void *user)
{
	struct rig *g = user;

	g->thread = pthread_self();
	g->calls++;
}

static void check_done(void *user)
{
	struct rig *g = user;

	assert_int_equal(g->calls, 1);
	assert_false(pthread_equal(g->thread, pthread_self()));
	g->order = 7;
}

static void work_runs_on_another_thread_and_ends_on_the_loop(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_work(g->loop, note_thread, check_done, g), 0);
	loop_run(g->loop);
	assert_int_equal(g->order, 7);
}

static void work_under_way_is_waited_for_when_the_loop_is_freed(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_work(g->loop, note_thread, check_done, g), 0);
	g->loop = loop_free(g->loop);
	assert_int_equal(g->order, 7);
}

/* ---- work behind work ---- */

struct queue {
	struct rig *rig;
	pthread_mutex_t lock;
	pthread_cond_t change;
	bool is_open; /* those that take all threads of the pool may end */
	unsigned ended;
	bool is_done;
};

static void take_thread(void *user)
{
	struct queue *q = user;

	(void)pthread_mutex_lock(&q->lock);
	while (!q->is_open)
		(void)pthread_cond_wait(&q->change, &q->lock);
	(void)pthread_mutex_unlock(&q->lock);
}

static void count_end(void *user)
{
	((struct queue *)user)->ended++;
}

static void do_nothing(void *user)
{
	(void)user;
}

static void open_queue(void *user)
{
	struct queue *q = user;

	assert_int_equal(q->ended, 0); /* nothing of the pool was waited for */
	q->is_done = true;
	(void)pthread_mutex_lock(&q->lock);
	q->is_open = true;
	(void)pthread_cond_broadcast(&q->change);
	(void)pthread_mutex_unlock(&q->lock);
}

static void work_with_a_thread_of_its_own_waits_for_no_other(void **state)
{
	struct rig *g = *state;
	struct queue q = { .rig = g,
			   .lock = PTHREAD_MUTEX_INITIALIZER,
			   .change = PTHREAD_COND_INITIALIZER };

	for (int i = 0; i < 64; i++)
		assert_int_equal(loop_work(g->loop, take_thread, count_end, &q), 0);
	assert_int_equal(loop_work_alone(g->loop, do_nothing, open_queue, &q), 0);
	loop_run(g->loop);
	assert_true(q.is_done);
	assert_int_equal(q.ended, 64);
	assert_int_equal(loop_work_alone(g->loop, note_thread, check_done, g), 0);
	g->loop = loop_free(g->loop); /* it is waited for */
	assert_int_equal(g->order, 7);
}

static void *send_many(void *arg)
{
	struct rig *g = arg;

	for (int i = 0; i < 100; i++)
		loop_wake_send(g->wake);
	return NULL;
}

static void woken(void *user)
{
	struct rig *g = user;

	g->calls++;
	g->wake = loop_wake_free(g->wake);
}

static void another_thread_wakes_the_loop(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_wake_create(g->loop, woken, g, &g->wake), 0);
	assert_int_equal(pthread_create(&g->thread, NULL, send_many, g), 0);
	assert_int_equal(pthread_join(g->thread, NULL), 0);
	loop_run(g->loop);
	assert_int_equal(g->calls, 1);
}

static void caught(void *user, int signo)
{
	struct rig *g = user;

	g->events = (unsigned)signo;
	g->sig = loop_signal_free(g->sig);
}

static void a_signal_is_a_call_on_the_loop(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_signal_create(g->loop, SIGUSR1, caught, g, &g->sig), 0);
	assert_int_equal(raise(SIGUSR1), 0);
	loop_run(g->loop);
	assert_int_equal(g->events, SIGUSR1);
}

static void a_signal_that_cannot_be_caught_is_refused(void **state)
{
	struct rig *g = *state;

	assert_int_equal(loop_signal_create(g->loop, SIGKILL, caught, g, &g->sig), -EINVAL);
	assert_null(g->sig);
}

static void run_a(void *user)
{
	struct rig *g = user;

	g->order = g->order * 10 + 1;
	if (++g->calls < 3)
		loop_task_post(g->loop, &g->a); /* for the next turn */
}

static void run_b(void *user)
{
	struct rig *g = user;

	g->order = g->order * 10 + 2;
}

static void tasks_run_in_order_once_and_a_turn_later(void **state)
{
	struct rig *g = *state;

	loop_task_init(&g->a, run_a, g);
	loop_task_init(&g->b, run_b, g);
	loop_task_post(g->loop, &g->a);
	loop_task_post(g->loop, &g->b);
	loop_task_post(g->loop, &g->a); /* is posted already */
	assert_int_equal(g->calls, 0);
	loop_run(g->loop);
	assert_int_equal(g->order, 1211);
}

static void cancel_b(void *user)
{
	struct rig *g = user;

	loop_task_cancel(&g->b);
}

static void a_task_may_cancel_another_of_the_same_turn(void **state)
{
	struct rig *g = *state;

	loop_task_init(&g->a, cancel_b, g);
	loop_task_init(&g->b, run_b, g);
	loop_task_post(g->loop, &g->a);
	loop_task_post(g->loop, &g->b);
	loop_run(g->loop);
	assert_int_equal(g->order, 0);
	loop_task_cancel(&g->b); /* again is harmless */
}

static void a_posted_task_runs_even_when_the_loop_is_freed(void **state)
{
	struct rig *g = *state;

	loop_task_init(&g->a, count, g);
	loop_task_post(g->loop, &g->a);
	g->loop = loop_free(g->loop);
	assert_int_equal(g->calls, 1);
}

static int make_all(void *arg)
{
	struct rig *g = arg;
	int r;

	g->loop = NULL, g->timer = NULL, g->io = NULL, g->wake = NULL, g->sig = NULL;
	r = loop_create(&g->loop, NULL);
	if (r == 0)
		r = loop_timer_create(g->loop, count, g, &g->timer);
	if (r == 0)
		r = loop_io_create(g->loop, g->fd, drain_and_count, g, &g->io);
	if (r == 0)
		r = loop_wake_create(g->loop, count, g, &g->wake);
	if (r == 0)
		r = loop_signal_create(g->loop, SIGUSR2, caught, g, &g->sig);
	if (r == 0)
		r = loop_work(g->loop, count, run_b, g);
	g->timer = loop_timer_free(g->timer);
	g->io = loop_io_free(g->io);
	g->wake = loop_wake_free(g->wake);
	g->sig = loop_signal_free(g->sig);
	g->loop = loop_free(g->loop);
	return r;
}

static void every_creation_copes_without_memory(void **state)
{
	struct rig g = { 0 };
	int sv[2];

	(void)state;
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, sv), 0);
	g.fd = sv[0];
	assert_int_equal(fault_each(make_all, &g), 6);
	assert_int_equal(close(sv[0]) + close(sv[1]), 0);
}

#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		T(a_repeating_timer_fires_again_and_again),
		T(a_single_timer_fires_once_and_a_stopped_one_never),
		T(a_timer_may_free_itself_in_its_callback),
		T(unread_data_is_told_again_and_the_end_too),
		T(a_hangup_is_told_without_wanting_to_read),
		T(writability_is_told_until_it_is_not_wanted),
		T(a_file_cannot_be_watched),
		T(work_runs_on_another_thread_and_ends_on_the_loop),
		T(work_under_way_is_waited_for_when_the_loop_is_freed),
		T(work_with_a_thread_of_its_own_waits_for_no_other),
		T(another_thread_wakes_the_loop),
		T(a_signal_is_a_call_on_the_loop),
		T(a_signal_that_cannot_be_caught_is_refused),
		T(tasks_run_in_order_once_and_a_turn_later),
		T(a_task_may_cancel_another_of_the_same_turn),
		T(a_posted_task_runs_even_when_the_loop_is_freed),
		cmocka_unit_test(every_creation_copes_without_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
