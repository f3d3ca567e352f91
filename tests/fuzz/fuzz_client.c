/* A hostile guest: any frames at all, to a client with one operation of each kind alive. Every
 * operation ends at most once, and all of them have ended when the client gives up; the same holds
 * for what the guest says lives.
 *
 * Input: messages of { u8 type, u8 id, u16 length, payload }; type 255 sends the payload as it is.
 */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "provider/guest_client.h"

enum { OPS = 6, MESSAGES_MAX = 64, LIVE_MAX = MESSAGES_MAX };

struct op {
	int ended; /* exited, failed, or done where that is the end */
	bool is_watch;
};

static void on_output(void *user, int stream, uint64_t offset, const void *data, size_t n)
{
	(void)offset;
	(void)data;
	MUST(((struct op *)user)->ended == 0);
	MUST((stream == 1 || stream == 2) && n <= WIRE_PAYLOAD_MAX);
}

static void on_data(void *user, const void *data, size_t n)
{
	(void)data;
	MUST(((struct op *)user)->ended == 0 && n <= WIRE_PAYLOAD_MAX);
}

static void on_entry(void *user, const struct guest_entry *entry)
{
	MUST(((struct op *)user)->ended == 0);
	MUST(strlen(entry->path) <= WIRE_PAYLOAD_MAX && strlen(entry->target) <= WIRE_PAYLOAD_MAX);
}

static void on_event(void *user, enum guest_event event, const char *path)
{
	MUST(((struct op *)user)->ended == 0);
	MUST(event <= EVENT_OVERFLOW && strlen(path) <= WIRE_PAYLOAD_MAX);
}

static void on_done(void *user, uint64_t count)
{
	struct op *op = user;

	(void)count;
	MUST(op->ended == 0);
	op->ended += !op->is_watch;
}

static void on_exited(void *user, const struct guest_exit *ex)
{
	(void)ex;
	MUST(((struct op *)user)->ended++ == 0);
}

static void on_failed(void *user, int code, const char *text)
{
	MUST(code > 0 && strlen(text) <= WIRE_PAYLOAD_MAX);
	MUST(((struct op *)user)->ended++ == 0);
}

static void on_socket(void *user, int fd)
{
	MUST(fd >= 0 && ((struct op *)user)->ended == 0);
	(void)close(fd);
}

static const struct guest_callbacks callbacks = {
	.socket = on_socket,
	.output = on_output,
	.data = on_data,
	.entry = on_entry,
	.event = on_event,
	.done = on_done,
	.exited = on_exited,
	.failed = on_failed,
};

/* What the guest says lives: each is followed, but for every third. */
struct world {
	struct guest_client *client;
	struct op live[LIVE_MAX];
	unsigned n_live;
};

static bool on_live(void *user, const struct guest_live *live, struct guest_callbacks *ret_cb,
		    void **ret_user)
{
	struct world *w = user;

	MUST(live->id != 0 && strlen(live->tag) <= GUEST_TAG_MAX);
	MUST(w->n_live < LIVE_MAX);
	*ret_cb = callbacks;
	*ret_user = &w->live[w->n_live++];
	if (live->id % 2)
		guest_manual_credit(w->client, live->id);
	if (live->id % 3 == 0)
		((struct op *)*ret_user)->ended = 1; /* must never hear of it */
	(void)guest_credit(w->client, live->id, live->age_ms);
	return live->id % 3 != 0;
}

static void start_all(struct guest_client *g, struct op ops[OPS])
{
	static struct guest_exec e = {
		.user = "", .cwd = "", .code = "", .argc = 1, .argv = { "x" }
	};
	static const struct guest_file read = {
		.op = FILE_READ, .user = "", .path = "/", .target = ""
	};
	static const struct guest_file watch = {
		.op = FILE_WATCH, .user = "", .path = "/", .target = ""
	};

	static const struct guest_connect port = { .port = 80 };

	ops[2].is_watch = ops[5].is_watch = true;
	MUST(guest_exec(g, &e, &callbacks, &ops[0], NULL, NULL) == 0);
	MUST(guest_file(g, &read, &callbacks, &ops[1], NULL, NULL) == 0);
	MUST(guest_file(g, &watch, &callbacks, &ops[2], NULL, NULL) == 0);
	MUST(guest_ping(g, &callbacks, &ops[3], NULL, NULL) == 0);
	MUST(guest_connect(g, &port, &callbacks, &ops[4], NULL, NULL) == 0);
	MUST(guest_listen(g, &port, &callbacks, &ops[5], NULL, NULL) == 0);
	MUST(guest_stdin(g, 1, "some input", 10) == 10);
}

/* With every other id a descriptor comes along, and it is as bad as it may be good. */
static size_t pick_fd(uint8_t id, int *ret)
{
	static int null = -1, tcp = -1;

	if (null < 0) {
		null = open("/dev/null", O_RDWR | O_CLOEXEC);
		tcp = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
	}
	*ret = id % 4 == 0 ? null : tcp;
	return id % 2 == 0 || id == 5;
}

/* Sends one message of the input; how much of the input it was, 0 at its end. */
static size_t say(int guest, const uint8_t *data, size_t size)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	size_t n_fds;
	int fd;
	uint16_t len;
	long n;

	if (size < 4)
		return 0;
	memcpy(&len, data + 2, sizeof(len));
	if (len > size - 4)
		len = (uint16_t)(size - 4);
	if (data[0] == 255)
		(void)fd_send(guest, data + 4, len, NULL, 0);
	else {
		n = guest_put_raw(frame, sizeof(frame), data[0], data[1], data + 4, len);
		n_fds = pick_fd(data[1], &fd);
		(void)fd_send(guest, frame, (size_t)n, &fd, n_fds);
	}
	return 4 + (size_t)len;
}

static void drain(int guest)
{
	static uint8_t frame[WIRE_FRAME_MAX];
	size_t nfds = 0;

	while (fd_recv(guest, frame, sizeof(frame), NULL, &nfds) > 0)
		;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static const struct guest_hooks hooks = { .live = on_live };
	struct op ops[OPS] = { { 0 } };
	struct world world = { 0 };
	struct guest_client *g;
	int pair[2], r = 0;
	size_t n;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	MUST(guest_create(pair[0], &g, NULL) == 0);
	world.client = g;
	guest_set_hooks(g, &hooks, &world);
	start_all(g, ops);
	for (int i = 0; r == 0 && i < MESSAGES_MAX && (n = say(pair[1], data, size)) > 0; i++) {
		r = guest_dispatch(g);
		drain(pair[1]);
		data += n;
		size -= n;
	}
	MUST(r == 0 || r == -EPIPE || r == -EPROTO);
	(void)close(pair[1]);
	MUST(guest_dispatch(g) < 0);
	for (int i = 0; i < OPS; i++)
		MUST(ops[i].ended == 1);
	for (unsigned i = 0; i < world.n_live; i++)
		MUST(world.live[i].ended == 1);
	guest_free(g);
	return 0;
}
