/* C1 to C3: the control channel, from inside, and a guest that lies. */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "attack.h"
#include "base/clock.h"
#include "base/fd.h"
#include "spec/wire.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))

/* A client whose guest is us: what we send is what a hostile PID 1 would. */
struct liar {
	struct guest_client *client;
	int fd;
	unsigned failed, exited;
	uint32_t id;
};

static void on_failed(void *user, int code, const char *text)
{
	(void)code, (void)text;
	((struct liar *)user)->failed++;
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	(void)ex;
	((struct liar *)user)->exited++;
}

static void liar_open(struct liar *l)
{
	static const struct guest_callbacks cb = { .failed = on_failed, .exited = on_exited };
	struct guest_exec e = { .argc = 1, .user = "", .cwd = "", .code = "", .argv = { "x" } };
	int pair[2];

	*l = (struct liar){ 0 };
	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(guest_create(pair[0], &l->client, NULL), 0);
	l->fd = pair[1];
	assert_int_equal(guest_exec(l->client, &e, &cb, l, &l->id, NULL), 0);
}

static void liar_close(struct liar *l)
{
	l->client = guest_free(l->client);
	(void)fd_close(l->fd);
}

/* Sends one message; the client survives it: it ignores it or gives this box up. */
static int tell(struct liar *l, const void *bytes, size_t n)
{
	(void)send(l->fd, bytes, n, MSG_NOSIGNAL | MSG_DONTWAIT);
	return guest_dispatch(l->client);
}

/* Frames that are wrong in their length, version, type, id or payload: each ends only this client.
 */
static void lying_frames_end_one_client(struct world *w, const struct attack *a)
{
	const struct {
		struct wire_head head;
		size_t sent; /* bytes of payload that really follow */
	} frames[] = {
		{ { WIRE_VERSION, G_EXIT, 1, 4 }, 2 },
		{ { WIRE_VERSION, G_EXIT, 1, 4 }, 4 },
		{ { WIRE_VERSION, G_EXIT, 1, UINT32_MAX }, 8 },
		{ { WIRE_VERSION + 1, G_EXIT, 1, 4 }, 4 },
		{ { WIRE_VERSION, 9999, 1, 4 }, 4 },
		{ { WIRE_VERSION, G_OUTPUT, 1, 1 }, 1 },
		{ { WIRE_VERSION, G_OUTPUT, 77, 16 }, 16 },
		{ { WIRE_VERSION, G_ENTRY, 1, 16 }, 16 },
		{ { WIRE_VERSION, G_EXEC, 1, 16 }, 16 },
		{ { WIRE_VERSION, G_DATA, 1, 60000 }, 60000 },
		{ { WIRE_VERSION, G_STARTED, 1, 0 }, 0 },
		{ { WIRE_VERSION, G_TAKEN, 1, 8 }, 8 },
		{ { WIRE_VERSION, G_ERROR, 1, 4 }, 4 },
		{ { WIRE_VERSION, G_EVENT, 1, 3 }, 3 },
		{ { WIRE_VERSION, G_READY, 0, 1 }, 1 },
		{ { 0, 0, 0, 0 }, 0 },
	};
	static unsigned char message[WIRE_FRAME_MAX + 4096];

	(void)w, (void)a;
	memset(message, 0xff, sizeof(message));
	for (size_t i = 0; i < COUNT(frames); i++)
		for (int fill = 0; fill < 256; fill += 51) {
			struct liar l;

			liar_open(&l);
			memset(message, fill, sizeof(message));
			memcpy(message, &frames[i].head, sizeof(frames[i].head));
			for (int k = 0; k < 3; k++)
				(void)tell(&l, message, sizeof(struct wire_head) + frames[i].sent);
			assert_true(l.failed + l.exited <= 1); /* one end, never two */
			liar_close(&l);
		}
}

/* Two ends, output after the end, ends of what never began. */
static void frames_out_of_order_end_once(struct world *w, const struct attack *a)
{
	struct guest_exit ex = { .code = 0 };
	unsigned char frame[256];
	struct liar l;
	long n;

	(void)w, (void)a;
	liar_open(&l);
	n = guest_put_exit(frame, sizeof(frame), l.id, &ex);
	assert_true(n > 0);
	(void)tell(&l, frame, (size_t)n);
	(void)tell(&l, frame, (size_t)n);
	(void)tell(&l, frame, (size_t)n);
	assert_int_equal(l.exited, 1);
	liar_close(&l);
	liar_open(&l);
	n = guest_put_exit(frame, sizeof(frame), l.id + 1000, &ex);
	(void)tell(&l, frame, (size_t)n);
	assert_int_equal(l.exited, 0);
	liar_close(&l);
	liar_open(&l);
	(void)tell(&l, frame, 0); /* an empty message looks like the end of the box */
	(void)fd_close(l.fd);
	l.fd = -1;
	(void)guest_dispatch(l.client);
	assert_int_equal(l.failed, 1);
	liar_close(&l);
}

/* A message larger than any frame, and descriptors that nobody asked for. */
static void oversize_and_descriptors_are_dropped(struct world *w, const struct attack *a)
{
	static char big[200 << 10];
	int before = machine_fds(getpid());
	struct liar l;

	(void)w, (void)a;
	liar_open(&l);
	(void)setsockopt(l.fd, SOL_SOCKET, SO_SNDBUF, &(int){ 1 << 20 }, sizeof(int));
	(void)tell(&l, big, sizeof(big));
	assert_int_equal(l.failed, 1);
	liar_close(&l);
	liar_open(&l);
	for (int i = 0; i < 50; i++) {
		int fds[] = { 0, 1, 2, l.fd };

		(void)fd_send(l.fd, "garbage", 7, fds, COUNT(fds));
		(void)guest_dispatch(l.client);
	}
	assert_int_equal(l.failed, 1);
	liar_close(&l);
	assert_int_equal(machine_fds(getpid()), before);
}

/* Noise, shaped a little like frames so that it gets further than the first check. */
static void noise_is_survived(struct world *w, const struct attack *a)
{
	static unsigned char message[4096];
	unsigned seed = 7;

	(void)w, (void)a;
	for (int round = 0; round < 3000; round++) {
		struct wire_head h = { WIRE_VERSION, 0, 1, 0 };
		struct liar l;

		liar_open(&l);
		for (size_t i = 0; i < sizeof(message); i++) {
			seed = seed * 1103515245 + 12345;
			message[i] = (unsigned char)(seed >> 16);
		}
		h.type = (uint16_t)(G_READY + seed % 12);
		h.len = seed >> 8 & 255;
		memcpy(message, &h, sizeof(h));
		(void)tell(&l, message, sizeof(h) + h.len);
		assert_true(l.failed + l.exited <= 1);
		liar_close(&l);
	}
}

/* PID 1 is killed from outside, as if it had crashed: said, cleaned up, and nobody else is hurt. */
static void death_of_init_is_told(struct world *w, const struct attack *a)
{
	char id[ID_LEN + 1] = "";
	uint64_t before;
	struct op op;
	int status = 0;
	bool told = false;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "subreaper", NULL, &op);
	assert_false(box_wait(&w->box, &op, 300));
	before = machine_ticks();
	assert_int_equal(kill(w->box.l.pid, SIGKILL), 0);
	assert_true(box_wait(&w->box, &op, 5000)); /* its execution fails, it does not hang */
	assert_int_not_equal(op.code, 0);
	op_done(&op);
	for (int i = 0; i < 50 && !told; i++) {
		struct pool_state state;

		assert_int_equal(
			launcher_pool_state_sync(w->launcher, TEMPLATE_PLAIN, &state, NULL), 0);
		told = launcher_next_death(w->launcher, id, &status, &(struct box_usage){ 0 });
		if (!told)
			(void)usleep(20000);
	}
	assert_true(told);
	assert_string_equal(id, w->box.l.id);
	box_expect_gone(&w->box, before);
	w->box.guest = guest_free(w->box.guest);
	(void)close(w->box.l.pidfd);
}

/* PID 1 is stopped from outside: it does not answer, and can still be destroyed. */
static void stopped_init_is_destroyed(struct world *w, const struct attack *a)
{
	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	assert_int_equal(kill(w->box.l.pid, SIGSTOP), 0);
	assert_int_equal(guest_ping_sync(w->box.guest, 300), -ETIMEDOUT);
	box_expect_answer(&w->neighbour);
	box_close(w, &w->box, NULL);
}

/* The client's side vanishes while things run: nothing of the box outlives its destruction. */
static void lost_clients_leave_nothing(struct world *w, const struct attack *a)
{
	uint64_t before;
	struct op op;

	(void)a;
	box_open(w, &w->box, TEMPLATE_PLAIN, NULL);
	box_upload(w, &w->box);
	box_start(w, &w->box, "flood 1 1000000 lines", NULL, &op);
	assert_false(box_wait(&w->box, &op, 100));
	guest_forget(w->box.guest, op.id);
	op_done(&op);
	before = machine_ticks();
	w->box.guest = guest_free(w->box.guest); /* the socket is closed under it */
	(void)usleep(300000);
	box_expect_answer(&w->neighbour);
	(void)launcher_destroy_sync(w->launcher, w->box.l.id, NULL, NULL);
	box_expect_gone(&w->box, before);
	(void)close(w->box.l.pidfd);
	while (launcher_next_death(w->launcher, (char[ID_LEN + 1]){ 0 }, &(int){ 0 },
				   &(struct box_usage){ 0 }))
		; /* it may have ended by itself */
}

#define BOTH(name, probe)                                                      \
	{ name, probe, 0, 0, { 0 }, NULL },                                    \
	{                                                                      \
		name ", by the box's root too", probe, AS_ROOT, 0, { 0 }, NULL \
	}

static const struct attack rows[] = {
	BOTH("C1 no descriptor inside takes a frame", "speak"),
	BOTH("C1 no socket inside leads to the control channel", "find-socket"),
	BOTH("C1 no socket file inside leads to the control channel", "find-socket-files"),
	{ "C1 frames that lie end one client and no more",
	  NULL,
	  0,
	  0,
	  { 0 },
	  lying_frames_end_one_client },
	{ "C1 frames out of order end an execution once",
	  NULL,
	  0,
	  0,
	  { 0 },
	  frames_out_of_order_end_once },
	{ "C1 oversize frames and foreign descriptors are dropped",
	  NULL,
	  0,
	  0,
	  { 0 },
	  oversize_and_descriptors_are_dropped },
	{ "C1 noise on the channel is survived", NULL, 0, 0, { 0 }, noise_is_survived },
	{ "C2 the death of PID 1 is told and cleaned up",
	  NULL,
	  0,
	  0,
	  { 0 },
	  death_of_init_is_told },
	{ "C2 a stopped PID 1 is destroyed like any other",
	  NULL,
	  0,
	  0,
	  { 0 },
	  stopped_init_is_destroyed },
	{ "C2 a client that vanishes leaves nothing",
	  NULL,
	  0,
	  0,
	  { 0 },
	  lost_clients_leave_nothing },
	BOTH("C3 nothing of PID 1 can be read", "init-files"),
};

const struct attack_table attacks_control = { rows, COUNT(rows) };
