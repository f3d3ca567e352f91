/* multipart/form-data: cut in whatever pieces, the same parts come out. The first byte says how
 * long the pieces are. */
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "e2b/multipart.h"
#include "fuzz.h"

#define TYPE "multipart/form-data; boundary=XX"

static int read_in_steps(const char *body, size_t len, size_t step, struct buf *ret)
{
	struct multipart m;
	int r = multipart_init(&m, TYPE, NULL);

	for (size_t at = 0; r >= 0 && at < len; at += step) {
		const char *p = body + at;
		size_t n = len - at < step ? len - at : step;

		while ((r = multipart_read(&m, &p, &n, NULL)) > 0) {
			if (r == MULTIPART_PART)
				(void)buf_printf(ret, "[%s|%s:", m.name, m.file);
			else if (r == MULTIPART_DATA)
				(void)buf_append(ret, m.data, m.len);
			else
				(void)buf_putc(ret, r == MULTIPART_PART_END ? ']' : '.');
			if (strlen(m.name) >= sizeof(m.name) || strlen(m.file) >= sizeof(m.file))
				abort();
		}
		if (r == 0 && n != 0)
			abort();
	}
	return r < 0 ? r : multipart_finish(&m, NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	_cleanup_(buf_done) struct buf whole = { 0 }, cut = { 0 };
	const char *body;
	int r;

	if (size < 2)
		return 0;
	body = (const char *)data + 1;
	r = read_in_steps(body, size - 1, size - 1, &whole);
	if (read_in_steps(body, size - 1, 1u + data[0] % 16u, &cut) != r)
		abort();
	if (r == 0 &&
	    (whole.len != cut.len || memcmp(buf_str(&whole), buf_str(&cut), cut.len) != 0))
		abort();
	return 0;
}
