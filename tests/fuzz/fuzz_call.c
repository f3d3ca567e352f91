/* A line as the answer to holt-call: what is printed is never more than what came. */
#include <string.h>

#include "base/buf.h"
#include "fuzz.h"
#include "guest/call.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf line = { 0 }, text = { 0 };

	MUST(buf_append(&line, data, size) == 0);
	for (int is_raw = 0; is_raw < 2; is_raw++) {
		buf_clear(&text);
		(void)call_read(buf_str(&line), is_raw, &text);
		MUST(text.len <= size);
	}
	buf_done(&line);
	buf_done(&text);
	return 0;
}
