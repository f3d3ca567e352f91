/* A launcher that says anything at all, with any descriptors, to a client with one request of each
 * kind under way. Each request is answered exactly once, and no descriptor is left.
 *
 * Input: messages of { u8 type, u8 id and number of descriptors, u16 length, payload }: the id is
 * in the low six bits, the number in the upper two; type 255 sends the payload as it is. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/fd.h"
#include "fuzz.h"
#include "provider/launcher.h"

#define BOX "abcdefghij0123456789"

enum { REQUESTS = 10, MESSAGES_MAX = 64 };

static void on_reply(void *user, const struct provider_reply *r)
{
	unsigned *calls = user;

	MUST(++*calls == 1);
	MUST(r->code <= 0 && r->text && (r->code < 0 || r->text[0] == '\0'));
	MUST(r->code == 0 || (!r->box && r->n_boxes == 0));
	if (r->box)
		MUST(r->box->sock >= 0 && r->box->pidfd >= 0 && id_is_valid(r->box->id));
	for (size_t i = 0; i < r->n_boxes; i++)
		MUST(id_is_valid(r->boxes[i].id) && spec_tag_is_valid(r->boxes[i].tag));
}

static void on_death(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	(void)user;
	(void)status;
	(void)usage;
	MUST(id_is_valid(box_id));
}

static struct launcher *greet(int far, int near)
{
	struct launch_info info = { .version = WIRE_VERSION };
	struct launcher *l = NULL;
	uint8_t frame[256];
	long n = launch_put_info(frame, sizeof(frame), 1, &info);

	MUST(fd_send(far, frame, (size_t)n, NULL, 0) == n);
	MUST(launcher_connect(near, 0, &l, NULL) == 0);
	launcher_on_death(l, on_death, NULL);
	return l;
}

/* Ids 2 to 11. */
static void ask_all(struct launcher *l, unsigned calls[REQUESTS])
{
	static const struct limits limits;
	struct launch_spec claim = { .template_id = 1 };
	struct template_spec t = { .id = 1, .preload = "" };
	struct pool_spec pool = { .template_id = 1 };

	MUST(spec_fill_limits(&t.limits, NULL, NULL) == 0);
	MUST(launcher_claim(l, &claim, on_reply, &calls[0], NULL) == 0);
	MUST(launcher_attach(l, BOX, on_reply, &calls[1], NULL) == 0);
	MUST(launcher_list(l, on_reply, &calls[2], NULL) == 0);
	MUST(launcher_destroy(l, BOX, on_reply, &calls[3], NULL) == 0);
	MUST(launcher_usage(l, BOX, on_reply, &calls[4], NULL) == 0);
	MUST(launcher_freeze(l, BOX, true, on_reply, &calls[5], NULL) == 0);
	MUST(launcher_limits(l, BOX, &limits, on_reply, &calls[6], NULL) == 0);
	MUST(launcher_template(l, &t, -1, on_reply, &calls[7], NULL) == 0);
	MUST(launcher_pool(l, &pool, on_reply, &calls[8], NULL) == 0);
	MUST(launcher_pool_state(l, 1, on_reply, &calls[9], NULL) == 0);
}

/* Sends one message of the input; how much of the input it was, 0 at its end. */
static size_t say(int far, const uint8_t *data, size_t size)
{
	static const int fds[3] = { STDIN_FILENO, STDOUT_FILENO, STDERR_FILENO };
	static uint8_t frame[WIRE_FRAME_MAX];
	size_t nfds;
	uint16_t len;
	struct wr w;

	if (size < 4)
		return 0;
	nfds = data[1] >> 6;
	memcpy(&len, data + 2, sizeof(len));
	if (len > size - 4)
		len = (uint16_t)(size - 4);
	if (data[0] == 255) {
		(void)fd_send(far, data + 4, len, fds, nfds);
	} else {
		wire_begin(&w, frame, sizeof(frame), data[0], data[1] & 63);
		wr_raw(&w, data + 4, len);
		(void)fd_send(far, frame, (size_t)wire_finish(&w), fds, nfds);
	}
	return 4 + (size_t)len;
}

/* The number that the next descriptor would get: it grows with each that leaks. */
static int next_fd(void)
{
	int fd = dup(STDIN_FILENO);

	(void)close(fd);
	return fd;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	unsigned calls[REQUESTS] = { 0 };
	struct launcher *l;
	int pair[2], r = 0, before = next_fd();
	size_t n;

	MUST(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, pair) == 0);
	l = greet(pair[1], pair[0]);
	ask_all(l, calls);
	for (int i = 0; r == 0 && i < MESSAGES_MAX && (n = say(pair[1], data, size)) > 0; i++) {
		r = launcher_dispatch(l);
		data += n;
		size -= n;
	}
	(void)close(pair[1]);
	MUST(launcher_dispatch(l) < 0);
	for (int i = 0; i < REQUESTS; i++)
		MUST(calls[i] == 1);
	MUST(launcher_list(l, on_reply, &calls[0], NULL) == -EPIPE);
	launcher_stop(l);
	MUST(next_fd() == before);
	return 0;
}
