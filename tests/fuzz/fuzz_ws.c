/* Frames of a WebSocket client, behind a good handshake, to a handler that answers each message and
 * pauses, closes and goes on as the messages say. */
#include <string.h>

#include "base/utf8.h"
#include "fuzz.h"
#include "net/ws.h"
#include "net_fuzz.h"

#define INPUT_MAX ((size_t)16 << 10)
#define MESSAGE_MAX 4000

struct state {
	struct net_fuzz f;
	unsigned open;
};

static void on_message(void *user, struct ws *w, bool text, const void *data, size_t n)
{
	const char *p = data;

	(void)user;
	MUST(n <= MESSAGE_MAX);
	MUST(!text || utf8_is_valid(data, n));
	if (n > 0 && p[0] == 'c')
		ws_close(w, 4000, "bye");
	if (n > 0 && p[0] == 'p') {
		ws_pause(w, true);
		ws_pause(w, false);
	}
	if (text)
		(void)ws_send_text(w, data, n);
	else
		(void)ws_send_binary(w, data, n);
}

static void on_closed(void *user, struct ws *w, unsigned code, const char *reason)
{
	struct state *s = user;

	(void)w;
	MUST(s->open == 1);
	MUST(code >= 1000 && code < 5000);
	MUST(utf8_is_valid(reason, strlen(reason)));
	s->open--;
}

static void handle(void *user, struct http_request *r)
{
	static const struct ws_ops ops = { on_message, NULL, on_closed };
	static const struct ws_options options = { .message_max = MESSAGE_MAX };
	struct state *s = user;

	MUST(ws_accept(r, &ops, s, &options));
	s->open++;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	static struct state s;

	if (!s.f.loop) {
		net_fuzz_open(&s.f, &(struct http_server_options){ .handle = handle, .user = &s });
		s.f.prefix = "GET / HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
			     "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
			     "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n";
	}
	if (size < 1 || size > INPUT_MAX)
		return 0;
	net_fuzz_run(&s.f, data + 1, size - 1, data[0] % 16 ? data[0] : INPUT_MAX);
	MUST(s.open == 0);
	return 0;
}
