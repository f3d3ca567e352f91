/* Any bytes as a server's answer to a WebSocket's opening: more bytes never change a verdict, and a
 * head lies within what was given. */
#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "fuzz.h"
#include "httpc/handshake.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const struct handshake h = { .target = "/",
				     .host = "h",
				     .key = "dGhlIHNhbXBsZSBub25jZQ==" };
	struct handshake_answer a = { 0 }, again = { 0 };
	struct err err = { 0 };
	int r = handshake_read(&h, (const char *)data, size, &a, &err);

	MUST(r == 0 || r == -EAGAIN || r == -EPROTO || r == -E2BIG);
	if (r != 0)
		return 0;
	MUST(a.head_len >= 4 && a.head_len <= size && a.status >= 100 && a.status <= 599);
	MUST(memcmp(data + a.head_len - 4, "\r\n\r\n", 4) == 0);
	MUST(handshake_read(&h, (const char *)data, a.head_len, &again, &err) == 0);
	MUST(again.head_len == a.head_len && again.status == a.status);
	MUST(handshake_read(&h, (const char *)data, a.head_len - 1, &again, &err) == -EAGAIN);
	return 0;
}
