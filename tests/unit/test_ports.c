#include "check.h"

#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "sandbox/ports.h"
#include "sandbox/registry.h"
#include "sandbox_rig.h"

struct port_told {
	int calls;
	bool is_done;
	struct err err;
};

static void on_port(void *user, const struct port_info *port, const struct err *err)
{
	struct port_told *t = user;

	t->calls++;
	t->is_done = port != NULL;
	t->err = err ? *err : (struct err){ 0 };
	assert_true(!port == !!err);
}

static struct port_told expose(struct sandbox_rig *rig, struct sandbox *sb, uint16_t port)
{
	struct port_info info = { .port = port };
	struct port_told t = { 0 };

	port_expose(sb, &info, on_port, &t);
	assert_int_equal(t.calls, 0); /* never from inside the call */
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

static struct port_told closes(struct sandbox_rig *rig, struct sandbox *sb, uint16_t port)
{
	struct port_told t = { 0 };

	port_close(sb, port, on_port, &t);
	rig_run(rig);
	assert_int_equal(t.calls, 1);
	return t;
}

struct use_told {
	int fd;
	int ends, fails;
	struct err err;
};

static void connected(void *user, int fd)
{
	((struct use_told *)user)->fd = fd;
}

static void failed(void *user, const struct err *err)
{
	struct use_told *t = user;

	t->fails++;
	t->err = *err;
}

static void ended(void *user)
{
	((struct use_told *)user)->ends++;
}

static const struct port_use_ops ops = { .connected = connected, .failed = failed, .ended = ended };

/* What the guest is asked for; its id. */
static uint32_t take_connect(struct sandbox_rig *rig, struct fake_box *box,
			     struct guest_connect *ret)
{
	struct rd payload;
	uint32_t id = rig_expect(rig, box, G_CONNECT, &payload);

	assert_int_equal(guest_get_connect(&payload, G_CONNECT, ret), 0);
	return id;
}

static void say_error(struct sandbox_rig *rig, struct fake_box *box, uint32_t id, int code)
{
	uint8_t frame[256];

	rig_say(box, frame, guest_put_error(frame, sizeof(frame), id, code, "no"));
	rig_run(rig);
}

/* A real connection of this machine, as the guest hands one out; *other is its far end. */
static void say_socket(struct sandbox_rig *rig, struct fake_box *box, uint32_t id, int *other)
{
	struct sockaddr_in at = { .sin_family = AF_INET };
	_close_ int server = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0), fd;
	socklen_t len = sizeof(at);
	uint8_t frame[64];
	struct wr w;
	long n;

	at.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	assert_int_equal(bind(server, (struct sockaddr *)&at, sizeof(at)), 0);
	assert_int_equal(listen(server, 1), 0);
	assert_int_equal(getsockname(server, (struct sockaddr *)&at, &len), 0);
	fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	assert_int_equal(connect(fd, (struct sockaddr *)&at, sizeof(at)), 0);
	*other = accept4(server, NULL, NULL, SOCK_CLOEXEC);
	assert_true(*other >= 0);
	wire_begin(&w, frame, sizeof(frame), G_SOCKET, id);
	n = wire_finish(&w);
	assert_int_equal(fd_send(box->guest, frame, (size_t)n, &fd, 1), n);
	(void)close(fd);
	wire_begin(&w, frame, sizeof(frame), G_DONE, id);
	wr_u64(&w, 0);
	rig_say(box, frame, wire_finish(&w));
	rig_run(rig);
}

static struct sandbox *open_box(struct sandbox_rig *rig, struct fake_box **box)
{
	struct sandbox_info info;
	struct sandbox *sb;

	rig_open(rig);
	sb = rig_create(rig, "box");
	sandbox_info(sb, &info);
	*box = rig_box(rig, info.id);
	return sb;
}

/* ---- */

static void a_port_is_closed_until_the_store_has_it(void **state)
{
	struct port_info info = { .port = 80 };
	struct port_told t = { 0 };
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);

	(void)state;
	rig.faults.is_held = true;
	port_expose(sb, &info, on_port, &t);
	rig_turn(&rig);
	assert_null(port_find(sb, 80));
	rig.faults.is_held = false;
	rig_run(&rig);
	assert_true(t.is_done);
	assert_int_equal(port_find(sb, 80)->port, 80);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = ENOSPC;
	assert_int_equal(expose(&rig, sb, 81).err.code, ENOSPC);
	assert_null(port_find(sb, 81));
	rig.faults.refuse_in = 1;
	assert_int_equal(expose(&rig, sb, 81).err.code, EAGAIN);
	assert_null(port_find(sb, 81));
	assert_int_equal(sb->n_ports_coming, 0);
	rig_close(&rig);
}

static void a_port_that_cannot_be_forgotten_stays_open(void **state)
{
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);

	(void)state;
	assert_int_equal(closes(&rig, sb, 80).err.code, ENOENT);
	assert_true(expose(&rig, sb, 80).is_done);
	rig.faults.fail_in = 1;
	rig.faults.fail_with = EIO;
	assert_int_equal(closes(&rig, sb, 80).err.code, EIO);
	assert_non_null(port_find(sb, 80));
	assert_true(closes(&rig, sb, 80).is_done);
	assert_null(port_find(sb, 80));
	rig_close(&rig);
}

static void exposed_ports_have_a_limit_also_when_they_come_all_at_once(void **state)
{
	struct port_told t[PORT_EXPOSED_MAX + 3] = { { 0 } };
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);
	unsigned n = 0;

	(void)state;
	rig.faults.is_held = true;
	for (unsigned i = 0; i < PORT_EXPOSED_MAX + 3; i++) {
		struct port_info info = { .port = (uint16_t)(1000 + i) };

		port_expose(sb, &info, on_port, &t[i]);
	}
	rig.faults.is_held = false;
	rig_run(&rig);
	for (unsigned i = 0; i < PORT_EXPOSED_MAX + 3; i++) {
		n += t[i].is_done;
		assert_true(t[i].is_done || t[i].err.code == EDQUOT);
	}
	assert_int_equal(n, PORT_EXPOSED_MAX);
	assert_int_equal(port_list(sb, NULL, 0), PORT_EXPOSED_MAX);
	assert_true(expose(&rig, sb, 1000).is_done); /* one that is there may be changed */
	assert_int_equal(expose(&rig, sb, 9).err.code, EDQUOT);
	assert_true(closes(&rig, sb, 1000).is_done);
	assert_true(expose(&rig, sb, 9).is_done);
	rig_close(&rig);
}

static void another_life_knows_the_ports_of_what_lives_and_forgets_the_others(void **state)
{
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);
	const struct port_info *got[2];

	(void)state;
	assert_true(expose(&rig, sb, 80).is_done);
	assert_true(expose(&rig, sb, 22).is_done);
	rig_death(&rig);
	rig_birth(&rig);
	rig_ready(&rig);
	rig_run(&rig);
	sb = sandboxes_find(rig.all, "box", "ann");
	assert_non_null(sb);
	assert_int_equal(port_list(sb, got, 2), 2);
	assert_int_equal(got[0]->port, 22);
	assert_int_equal(got[1]->port, 80);
	rig_close(&rig);
}

static void what_listens_nowhere_is_tried_on_both_loopbacks_and_then_refused(void **state)
{
	struct use_told t = { .fd = -1 };
	struct guest_connect c;
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);
	struct port_use *use = NULL;
	struct err err = { 0 };
	uint32_t id;

	(void)state;
	assert_int_equal(port_dial(sb, 80, &ops, &t, &use, &err), 0);
	rig_run(&rig);
	id = take_connect(&rig, box, &c);
	assert_int_equal(c.port, 80);
	say_error(&rig, box, id, ECONNREFUSED);
	assert_int_equal(t.fails, 0);
	id = take_connect(&rig, box, &c); /* the other one */
	say_error(&rig, box, id, ECONNREFUSED);
	assert_int_equal(t.fails, 1);
	assert_int_equal(t.err.code, ECONNREFUSED);
	assert_int_equal(sb->n_port_uses, 0);
	assert_int_equal(port_dial(sb, 80, &ops, &t, &use, &err), 0);
	rig_run(&rig);
	say_error(&rig, box, take_connect(&rig, box, &c), ETIMEDOUT);
	assert_int_equal(t.err.code, ETIMEDOUT); /* that says nothing about the other loopback */
	assert_int_equal(sb->n_port_uses + sb->n_port_busy, 0);
	rig_close(&rig);
}

static void closing_a_port_ends_what_goes_over_it_and_nothing_else(void **state)
{
	struct use_told t[3] = { { .fd = -1 }, { .fd = -1 }, { .fd = -1 } };
	static const uint16_t ports[] = { 80, 81, 80 };
	struct guest_connect c;
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);
	struct port_use *use[3];
	struct err err = { 0 };
	int other[2];

	(void)state;
	assert_true(expose(&rig, sb, 80).is_done);
	for (int i = 0; i < 3; i++) {
		assert_int_equal(port_dial(sb, ports[i], &ops, &t[i], &use[i], &err), 0);
		rig_run(&rig);
		if (i < 2) {
			say_socket(&rig, box, take_connect(&rig, box, &c), &other[i]);
			assert_true(t[i].fd >= 0);
		}
	}
	assert_true(closes(&rig, sb, 80).is_done);
	assert_int_equal(t[0].ends, 1);
	assert_int_equal(t[1].ends + t[1].fails, 0);
	assert_int_equal(t[2].fails, 1); /* it was still being connected */
	assert_int_equal(t[2].err.code, EPIPE);
	assert_int_equal(sb->n_port_uses, 1);
	port_use_end(use[1]);
	assert_int_equal(t[1].ends, 0); /* who ends it is not told */
	assert_int_equal(sb->n_port_uses + sb->n_port_busy, 0);
	for (int i = 0; i < 2; i++) {
		(void)close(t[i].fd);
		(void)close(other[i]);
	}
	rig_close(&rig);
}

static void connections_to_one_sandbox_have_a_limit_and_end_with_it(void **state)
{
	struct use_told t[PORT_USES_MAX];
	struct port_use *use = NULL;
	struct sandbox_rig rig;
	struct fake_box *box;
	struct sandbox *sb = open_box(&rig, &box);
	struct told gone = { 0 };
	struct err err = { 0 };

	(void)state;
	memset(t, 0, sizeof(t));
	for (unsigned i = 0; i < PORT_USES_MAX; i++) {
		assert_int_equal(port_dial(sb, 80, &ops, &t[i], &use, &err), 0);
		rig_run(&rig);
	}
	assert_int_equal(port_dial(sb, 80, &ops, &t[0], &use, &err), -EAGAIN);
	assert_string_equal(err.text, "256 connections to this sandbox are open, the limit");
	sandbox_delete(sb, "over", rig_told, &gone);
	rig_run(&rig);
	for (unsigned i = 0; i < PORT_USES_MAX; i++)
		assert_int_equal(t[i].fails, 1);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_port_is_closed_until_the_store_has_it),
		cmocka_unit_test(a_port_that_cannot_be_forgotten_stays_open),
		cmocka_unit_test(exposed_ports_have_a_limit_also_when_they_come_all_at_once),
		cmocka_unit_test(another_life_knows_the_ports_of_what_lives_and_forgets_the_others),
		cmocka_unit_test(what_listens_nowhere_is_tried_on_both_loopbacks_and_then_refused),
		cmocka_unit_test(closing_a_port_ends_what_goes_over_it_and_nothing_else),
		cmocka_unit_test(connections_to_one_sandbox_have_a_limit_and_end_with_it),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
