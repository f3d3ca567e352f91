#include "provider/launcher.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "launcher_rig.h"
#include "provider/launcher_impl.h"

/* The next request that holt-launch would read: its head. */
static struct wire_head take_request(int far, int *ret_fd)
{
	uint8_t msg[4096];
	struct wire_head head = { 0 };
	struct rd body;
	size_t nfds = 1;
	int fd = -1;
	ssize_t n = fd_recv(far, msg, sizeof(msg), &fd, &nfds);

	assert_true(n > 0);
	assert_int_equal(wire_open(msg, (size_t)n, &head, &body), 0);
	if (ret_fd)
		*ret_fd = nfds > 0 ? fd : -1;
	else if (nfds > 0)
		(void)fd_close(fd);
	return head;
}

static void answers_in_any_order_find_their_requests(void **state)
{
	struct rig *rig = *state;
	struct heard a = { 0 }, b = { 0 }, c = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &a, NULL), 0);
	assert_int_equal(launcher_freeze(rig->launcher, BOX_ID, true, rig_hear, &b, NULL), 0);
	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &c, NULL), 0);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(a.calls + b.calls + c.calls, 0);
	rig_say_usage(rig->far, 4, 44);
	rig_say_failed(rig->far, 3, ENOTSUP, "no freezer");
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(c.usage.cpu_us, 44);
	assert_int_equal(b.code, -ENOTSUP);
	assert_string_equal(b.text, "no freezer");
	assert_int_equal(a.calls, 0);
	rig_say_usage(rig->far, 2, 22);
	rig_say_usage(rig->far, 2, 23); /* a second answer is nobody's */
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(a.usage.cpu_us, 22);
	assert_int_equal(a.calls, 1);
	assert_int_equal(b.calls, 1);
	assert_int_equal(c.calls, 1);
}

static void a_box_that_the_callback_leaves_is_closed(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1, .tag = "sandbox-7" };
	int fds[2] = { STDIN_FILENO, STDERR_FILENO };
	int before = rig_open_fds();
	struct heard h = { 0 };

	assert_int_equal(launcher_claim(rig->launcher, &spec, rig_hear, &h, NULL), 0);
	assert_int_equal(launcher_attach(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	rig_say_box(rig->far, 2, fds, 2);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_string_equal(h.box.id, BOX_ID);
	assert_int_equal(rig_open_fds(), before + 1);
	(void)fd_close(h.box.sock);
	rig_say_box(rig->far, 3, fds, 2);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(h.calls, 2);
	(void)fd_close(h.box.sock);
	assert_int_equal(rig_open_fds(), before);
}

static void a_tag_that_is_none_is_refused_before_it_is_sent(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1, .tag = "no blanks" };
	struct heard h = { 0 };

	assert_int_equal(launcher_claim(rig->launcher, &spec, rig_hear, &h, NULL), -EINVAL);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(h.calls, 0);
}

static void a_list_is_whole_when_it_is_told(void **state)
{
	struct rig *rig = *state;
	struct heard h = { 0 };

	assert_int_equal(launcher_list(rig->launcher, rig_hear, &h, NULL), 0);
	for (int i = 0; i < 40; i++) {
		rig_say_box_is(rig->far, 2, BOX_ID, "first");
		assert_int_equal(launcher_dispatch(rig->launcher), 0);
	}
	rig_say_box_is(rig->far, 2, "zzzzzzzzzz0123456789", "last");
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(h.calls, 0);
	rig_say_type(rig->far, L_OK, 2);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(h.n_boxes, 41);
	assert_string_equal(h.last_id, "zzzzzzzzzz0123456789");
	assert_string_equal(h.last_tag, "last");
}

static void a_list_beyond_any_launcher_s_boxes_is_given_up(void **state)
{
	struct rig *rig = *state;
	struct heard list = { 0 }, usage = { 0 };

	assert_int_equal(launcher_list(rig->launcher, rig_hear, &list, NULL), 0);
	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &usage, NULL), 0);
	for (unsigned i = 0; i < LAUNCHER_LIST_MAX + 64; i++) {
		rig_say_box_is(rig->far, 2, BOX_ID, "");
		if (i % 64 == 0)
			assert_int_equal(launcher_dispatch(rig->launcher), 0);
	}
	rig_say_type(rig->far, L_OK, 2);
	rig_say_usage(rig->far, 3, 1);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(list.calls, 1);
	assert_int_equal(list.code, -E2BIG);
	assert_int_equal(usage.code, 0);
}

static void a_box_in_the_list_that_nobody_asked_for_ends_the_trust(void **state)
{
	struct rig *rig = *state;
	struct heard h = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	rig_say_box_is(rig->far, 2, BOX_ID, "");
	assert_int_equal(launcher_dispatch(rig->launcher), -EPROTO);
	assert_int_equal(h.code, -EPROTO);
}

static void a_launcher_of_another_version_is_told_as_such(void **state)
{
	struct wire_head head = { WIRE_VERSION + 1, L_OK, 1, 0 };
	struct rig *rig = *state;
	struct heard h = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	assert_int_equal(fd_send(rig->far, &head, sizeof(head), NULL, 0), sizeof(head));
	assert_int_equal(launcher_dispatch(rig->launcher), -EPROTO);
	assert_int_equal(h.calls, 1);
	assert_int_equal(h.code, -EPROTO);
	assert_non_null(strstr(h.text, "another version"));
}

static void every_request_gets_its_failure_when_the_launcher_is_gone(void **state)
{
	struct rig *rig = *state;
	struct heard a = { 0 }, b = { 0 };
	struct err err = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &a, NULL), 0);
	rig->far = fd_close(rig->far);
	/* Whether the call already sees it or not: it is told by the callback. */
	assert_int_equal(launcher_list(rig->launcher, rig_hear, &b, NULL), 0);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_int_equal(a.code, -EPIPE);
	assert_string_equal(a.text, "holt-launch is gone");
	assert_int_equal(b.code, -EPIPE);
	assert_int_equal(a.calls + b.calls, 2);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_int_equal(launcher_list(rig->launcher, rig_hear, &b, &err), -EPIPE);
	assert_int_equal(a.calls + b.calls, 2);
}

static void last_words_are_heard_before_the_end(void **state)
{
	struct rig *rig = *state;
	struct heard a = { 0 }, b = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &a, NULL), 0);
	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &b, NULL), 0);
	rig_say_usage(rig->far, 2, 22);
	rig->far = fd_close(rig->far); /* with a request unread: a reset */
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_int_equal(a.code, 0);
	assert_int_equal(a.usage.cpu_us, 22);
	assert_int_equal(b.code, -EPIPE);
}

/* Asks again from inside its callback, each time. */
struct chain {
	struct launcher *l;
	unsigned calls;
	int code, refused;
};

static void ask_again(void *user, const struct provider_reply *r)
{
	struct chain *c = user;

	c->calls++;
	c->code = r->code;
	c->refused = launcher_usage(c->l, BOX_ID, ask_again, c, NULL);
}

static void a_callback_may_ask_and_is_refused_at_the_end(void **state)
{
	struct rig *rig = *state;
	struct chain c = { .l = rig->launcher };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, ask_again, &c, NULL), 0);
	rig_say_usage(rig->far, 2, 1);
	rig_say_usage(rig->far, 3, 1);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(c.calls, 2);
	assert_int_equal(c.refused, 0);
	rig->far = fd_close(rig->far);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_int_equal(c.calls, 3);
	assert_int_equal(c.code, -EPIPE);
	assert_int_equal(c.refused, -EPIPE);
}

static void requests_on_their_way_have_an_end(void **state)
{
	struct rig *rig = *state;
	struct heard h = { 0 };
	struct err err = { 0 };

	for (unsigned i = 0; i < LAUNCHER_PENDING_MAX; i++)
		assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, &err), -EAGAIN);
	assert_string_equal(err.text, "4096 requests wait for holt-launch, no more");
	rig_say_usage(rig->far, 2, 1);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	rig->far = fd_close(rig->far);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_int_equal(h.calls, LAUNCHER_PENDING_MAX + 1);
}

static void what_a_slow_launcher_has_not_read_waits_in_order(void **state)
{
	struct rig *rig = *state;
	struct heard h = { 0 };
	uint32_t expect = 2;
	unsigned sent = 0;

	while (!launcher_wants_write(rig->launcher)) {
		assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
		sent++;
	}
	for (int i = 0; i < 100; i++, sent++)
		assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	(void)take_request(rig->far, NULL); /* the greeting */
	for (unsigned i = 0; i < sent; i++) {
		assert_int_equal(take_request(rig->far, NULL).id, expect++);
		assert_int_equal(launcher_dispatch(rig->launcher), 0);
	}
	assert_false(launcher_wants_write(rig->launcher));
	assert_int_equal(h.calls, 0);
}

static void a_queued_template_keeps_its_directory(void **state)
{
	struct rig *rig = *state;
	struct template_spec t = { .id = 1, .root = ROOT_DIR, .preload = "" };
	int fd = open("/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), got = -1;
	int before = rig_open_fds();
	struct heard h = { 0 };
	struct stat st, root;

	assert_int_equal(spec_fill_limits(&t.limits, NULL, NULL), 0);
	while (!launcher_wants_write(rig->launcher))
		assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	assert_int_equal(launcher_template(rig->launcher, &t, fd, rig_hear, &h, NULL), 0);
	assert_int_equal(rig_open_fds(), before + 1);
	(void)fd_close(fd);
	while (take_request(rig->far, &got).type != L_TEMPLATE)
		assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(fstat(got, &st), 0);
	assert_int_equal(stat("/", &root), 0);
	assert_int_equal(st.st_ino, root.st_ino);
	(void)fd_close(got);
	assert_int_equal(rig_open_fds(), before - 1);
}

static void a_launcher_that_does_not_read_is_not_fed_for_ever(void **state)
{
	struct rig *rig = *state;
	static char modules[1000];
	struct template_spec t = { .id = 1, .root = ROOT_HOST, .preload = modules };
	struct heard h = { 0 };
	struct err err = { 0 };
	int r = 0;

	memset(modules, 'm', sizeof(modules) - 1);
	assert_int_equal(spec_fill_limits(&t.limits, NULL, NULL), 0);
	for (unsigned i = 0; i < LAUNCHER_PENDING_MAX && r == 0; i++)
		r = launcher_template(rig->launcher, &t, -1, rig_hear, &h, &err);
	assert_int_equal(r, -EAGAIN);
	assert_non_null(strstr(err.text, "does not keep up"));
	rig->far = fd_close(rig->far);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPIPE);
	assert_false(launcher_wants_write(rig->launcher));
}

struct mourner {
	unsigned calls;
	char id[ID_LEN + 1];
	int status;
};

static void mourn(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	struct mourner *m = user;

	m->calls++;
	m->status = status;
	assert_int_equal(usage->oom_kills, 2);
	assert_int_equal(str_copy(m->id, sizeof(m->id), box_id), 0);
}

static void deaths_are_told_to_whom_they_are_to_be_told(void **state)
{
	struct rig *rig = *state;
	struct mourner m = { 0 };
	struct box_usage usage;
	char id[ID_LEN + 1];
	int status;

	rig_say_died(rig->far, BOX_ID, 9);
	assert_int_equal(launcher_dispatch(rig->launcher), 0); /* kept */
	launcher_on_death(rig->launcher, mourn, &m);
	assert_int_equal(m.calls, 0);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(m.calls, 1);
	assert_int_equal(m.status, 9);
	rig_say_died(rig->far, "zzzzzzzzzz0123456789", (int)DIED_UNKNOWN);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(m.calls, 2);
	assert_int_equal(m.status, -1);
	assert_string_equal(m.id, "zzzzzzzzzz0123456789");
	assert_false(launcher_next_death(rig->launcher, id, &status, &usage));
}

/* The next request that the client has sent. */
static struct wire_head read_request(int far)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct wire_head head = { 0 };
	struct rd body;
	size_t nfds = 0;
	ssize_t n = fd_recv(far, frame, sizeof(frame), NULL, &nfds);

	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, &head, &body), 0);
	return head;
}

static void a_request_that_waits_too_long_fails_and_a_box_that_comes_late_is_destroyed(void **state)
{
	struct rig *rig = *state;
	struct launch_spec spec = { .template_id = 1 };
	struct heard claim = { 0 }, attach = { 0 };
	struct wire_head first, second, last;
	int pair[2];

	assert_int_equal(launcher_claim(rig->launcher, &spec, rig_hear, &claim, NULL), 0);
	assert_int_equal(launcher_attach(rig->launcher, BOX_ID, rig_hear, &attach, NULL), 0);
	(void)read_request(rig->far); /* the greeting */
	first = read_request(rig->far);
	second = read_request(rig->far);
	launcher_expire(rig->launcher, 600000);
	assert_int_equal(claim.calls + attach.calls, 0);
	launcher_expire(rig->launcher, 0);
	launcher_expire(rig->launcher, 0);
	assert_int_equal(claim.calls, 1);
	assert_int_equal(claim.code, -ETIMEDOUT);
	assert_int_equal(attach.code, -ETIMEDOUT);
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	rig_say_box(rig->far, second.id, pair, 2); /* one that is somebody's: left alone */
	rig_say_box(rig->far, first.id, pair, 2);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(claim.calls + attach.calls, 2);
	last = read_request(rig->far);
	assert_int_equal(last.type, L_DESTROY);
	assert_int_equal(fd_nonblock(rig->far, true), 0);
	assert_int_equal(recv(rig->far, &last, 1, MSG_DONTWAIT), -1);
	(void)close(pair[0]);
	(void)close(pair[1]);
}

static void on_builds(void *user, const struct build_state *s)
{
	*(struct build_state *)user = *s;
}

static void how_building_goes_is_told(void **state)
{
	struct rig *rig = *state;
	struct build_state s = { 2, 1, 3, 4, 5, "late" }, got = { 0 };
	uint8_t frame[512];

	rig_say(rig->far, frame, launch_put_builds(frame, sizeof(frame), 0, &s), NULL, 0);
	assert_int_equal(launcher_dispatch(rig->launcher), 0); /* kept */
	launcher_on_builds(rig->launcher, on_builds, &got);
	assert_int_equal(got.late, 2);
	s.late = 0;
	rig_say(rig->far, frame, launch_put_builds(frame, sizeof(frame), 0, &s), NULL, 0);
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	assert_int_equal(got.late, 0);
	assert_int_equal(got.given_up, 3);
}

static void a_death_of_no_box_ends_the_trust(void **state)
{
	struct rig *rig = *state;
	struct heard h = { 0 };

	assert_int_equal(launcher_usage(rig->launcher, BOX_ID, rig_hear, &h, NULL), 0);
	rig_say_died(rig->far, "no/box", 9);
	assert_int_equal(launcher_dispatch(rig->launcher), -EPROTO);
	assert_int_equal(h.code, -EPROTO);
}

static void of_too_many_unread_deaths_the_newest_are_kept(void **state)
{
	struct rig *rig = *state;
	struct box_usage usage;
	char id[ID_LEN + 1];
	unsigned n = 0;
	int status;

	for (unsigned i = 0; i < LAUNCHER_DEATHS_MAX + 5; i++) {
		rig_say_died(rig->far, BOX_ID, (int)i);
		if (i % 64 == 0)
			assert_int_equal(launcher_dispatch(rig->launcher), 0);
	}
	assert_int_equal(launcher_dispatch(rig->launcher), 0);
	while (launcher_next_death(rig->launcher, id, &status, &usage))
		assert_int_equal(status, 5 + n++);
	assert_int_equal(n, LAUNCHER_DEATHS_MAX);
}

/* Runs through every allocation of a connection, a request and its answer. */
static int whole_life(void *arg)
{
	struct rig rig;
	struct launcher *l = NULL;
	struct heard h = { 0 };
	int sock = rig_open_pair(&rig), r;

	(void)arg;
	rig_say_info(rig.far);
	r = launcher_connect(sock, 0, &l, NULL);
	if (r == 0)
		r = launcher_list(l, rig_hear, &h, NULL);
	if (r == 0) {
		rig_say_box_is(rig.far, 2, BOX_ID, "tag");
		rig_say_type(rig.far, L_OK, 2);
		assert_int_equal(launcher_dispatch(l), 0);
		assert_int_equal(h.calls, 1);
		r = h.code;
	}
	launcher_stop(l);
	(void)fd_close(rig.far);
	return r;
}

static void no_allocation_s_failure_goes_unnoticed(void **state)
{
	int before = rig_open_fds();

	(void)state;
	assert_true(fault_each(whole_life, NULL) >= 5);
	assert_int_equal(rig_open_fds(), before);
}

#define CASE(fn) cmocka_unit_test_setup_teardown(fn, rig_setup, rig_teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		CASE(answers_in_any_order_find_their_requests),
		CASE(a_box_that_the_callback_leaves_is_closed),
		CASE(a_tag_that_is_none_is_refused_before_it_is_sent),
		CASE(a_list_is_whole_when_it_is_told),
		CASE(a_list_beyond_any_launcher_s_boxes_is_given_up),
		CASE(a_box_in_the_list_that_nobody_asked_for_ends_the_trust),
		CASE(every_request_gets_its_failure_when_the_launcher_is_gone),
		CASE(a_launcher_of_another_version_is_told_as_such),
		CASE(last_words_are_heard_before_the_end),
		CASE(a_callback_may_ask_and_is_refused_at_the_end),
		CASE(requests_on_their_way_have_an_end),
		CASE(what_a_slow_launcher_has_not_read_waits_in_order),
		CASE(a_queued_template_keeps_its_directory),
		CASE(a_launcher_that_does_not_read_is_not_fed_for_ever),
		CASE(deaths_are_told_to_whom_they_are_to_be_told),
		CASE(a_death_of_no_box_ends_the_trust),
		CASE(of_too_many_unread_deaths_the_newest_are_kept),
		CASE(a_request_that_waits_too_long_fails_and_a_box_that_comes_late_is_destroyed),
		CASE(how_building_goes_is_told),
		cmocka_unit_test(no_allocation_s_failure_goes_unnoticed),
	};

	return cmocka_run_group_tests_name("launcher", tests, NULL, NULL);
}
