#include "client_rig.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>

#include "base/fd.h"
#include "check.h"

int rig_setup(void **state)
{
	static struct client_rig rig;
	int pair[2];

	assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
	assert_int_equal(guest_create(pair[0], &rig.client, NULL), 0);
	rig.guest = pair[1];
	assert_int_equal(fd_nonblock(rig.guest, true), 0);
	*state = &rig;
	return 0;
}

int rig_teardown(void **state)
{
	struct client_rig *rig = *state;

	guest_free(rig->client);
	rig->guest = fd_close(rig->guest);
	return 0;
}

static void on_started(void *user, uint32_t pid, bool warm)
{
	struct seen *s = user;

	assert_int_equal(pid, 7);
	s->started++;
	s->warm = warm;
}

static void on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	struct seen *s = user;
	struct buf *b = stream == 2 ? &s->err : &s->out;

	assert_int_equal(offset, b->len);
	assert_int_equal(buf_append(b, data, n), 0);
}

static void on_taken(void *user, uint64_t bytes)
{
	((struct seen *)user)->taken += bytes;
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	assert_string_equal(entry->path, "notes");
	((struct seen *)user)->entries++;
}

static void on_data(void *user, const void *data, size_t n)
{
	assert_int_equal(buf_append(&((struct seen *)user)->data, data, n), 0);
}

static void on_event(void *user, enum guest_event event, const char *path)
{
	assert_int_equal(event, EVENT_CREATE);
	assert_string_equal(path, "new");
	((struct seen *)user)->events++;
}

static void on_done(void *user, uint64_t count)
{
	((struct seen *)user)->done++;
	((struct seen *)user)->count = count;
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	((struct seen *)user)->exited++;
	((struct seen *)user)->exit = *ex;
}

static void on_failed(void *user, int code, const char *text)
{
	struct seen *s = user;

	s->failed++;
	s->code = code;
	(void)snprintf(s->text, sizeof(s->text), "%s", text);
}

const struct guest_callbacks rig_callbacks = {
	.started = on_started,
	.output = on_output,
	.taken = on_taken,
	.entry = on_entry,
	.data = on_data,
	.event = on_event,
	.done = on_done,
	.exited = on_exited,
	.failed = on_failed,
};

void seen_done(struct seen *s)
{
	buf_done(&s->out);
	buf_done(&s->err);
	buf_done(&s->data);
}

void rig_say(struct client_rig *rig, const void *frame, long n)
{
	assert_true(n > 0);
	assert_int_equal(fd_send(rig->guest, frame, (size_t)n, NULL, 0), n);
}

void rig_say_started(struct client_rig *rig, uint32_t id, bool warm)
{
	uint8_t frame[64];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_STARTED, id);
	wr_u32(&w, 7);
	wr_u8(&w, warm);
	rig_say(rig, frame, wire_finish(&w));
}

void rig_say_output(struct client_rig *rig, uint32_t id, int stream, uint64_t offset,
		    const void *data, size_t n)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_OUTPUT, id);
	wr_u8(&w, (uint8_t)stream);
	wr_u64(&w, offset);
	wr_raw(&w, data, n);
	rig_say(rig, frame, wire_finish(&w));
}

void rig_say_exit(struct client_rig *rig, uint32_t id, uint32_t code, uint32_t flags)
{
	struct guest_exit ex = { .code = code, .flags = flags, .wall_us = 5 };
	uint8_t frame[128];

	rig_say(rig, frame, guest_put_exit(frame, sizeof(frame), id, &ex));
}

void rig_say_u64(struct client_rig *rig, uint16_t type, uint32_t id, uint64_t v)
{
	uint8_t frame[64];

	rig_say(rig, frame, guest_put_u64(frame, sizeof(frame), type, id, v));
}

void rig_say_error(struct client_rig *rig, uint32_t id, int code, const char *text)
{
	uint8_t frame[256];

	rig_say(rig, frame, guest_put_error(frame, sizeof(frame), id, code, text));
}

/* The next frame that the client sent; false when there is none. */
bool rig_hear(struct client_rig *rig, struct wire_head *head, struct rd *body)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	size_t nfds = 0;
	ssize_t n = fd_recv(rig->guest, frame, sizeof(frame), NULL, &nfds);

	if (n == -EAGAIN)
		return false;
	assert_true(n > 0);
	assert_int_equal(wire_open(frame, (size_t)n, head, body), 0);
	return true;
}

uint32_t rig_start(struct client_rig *rig, struct seen *s)
{
	struct guest_exec e = { .kind = EXEC_COMMAND,
				.flags = EXEC_STDIN,
				.user = "",
				.cwd = "",
				.code = "",
				.argc = 1,
				.argv = { "cat" } };
	struct wire_head head;
	struct rd body;
	uint32_t id = 0;

	assert_int_equal(guest_exec(rig->client, &e, &rig_callbacks, s, &id, NULL), 0);
	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, G_EXEC);
	assert_int_equal(head.id, id);
	return id;
}

void rig_expect(struct client_rig *rig, uint16_t type, uint32_t id)
{
	struct wire_head head;
	struct rd body;

	assert_true(rig_hear(rig, &head, &body));
	assert_int_equal(head.type, type);
	assert_int_equal(head.id, id);
}

/* Everything so far, also what was queued. */
void rig_hear_all(struct client_rig *rig)
{
	struct wire_head head;
	struct rd body;

	while (rig_hear(rig, &head, &body))
		assert_int_equal(guest_dispatch(rig->client), 0);
}

void rig_expect_silence(struct client_rig *rig)
{
	struct wire_head head;
	struct rd body;

	assert_false(rig_hear(rig, &head, &body));
}
