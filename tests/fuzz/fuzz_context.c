/* A context's stream in one piece and in pieces (the first byte says how long): the same bytes and
 * messages come out, nothing is lost, and what a message says is read without harm. */
#include <string.h>

#include "fuzz.h"
#include "sandbox/context_frames.h"
#include "sandbox/context_say.h"

#define TOKEN "tttttttttttttttttttt"
#define MAX 128

static void keep_bytes(void *user, const char *data, size_t n)
{
	MUST(n > 0);
	(void)buf_append(user, data, n);
}

static void keep_message(void *user, enum frame_kind kind, const char *data, size_t n)
{
	struct context_end end = { .exit_code = -1 };
	char cwd[32] = "";

	MUST(kind != FRAME_PART && (!data || (n <= MAX && data[n] == '\0')));
	(void)buf_printf(user, "<%c%zu:", kind, n);
	if (data)
		(void)buf_append(user, data, n);
	(void)buf_putc(user, '>');
	if (!data)
		return;
	(void)context_say_is_sound(kind, data, n);
	context_say_read_end(data, n, &end, cwd, sizeof(cwd));
	MUST(end.exit_code >= -1 && end.exit_code <= 255 && strlen(cwd) < sizeof(cwd));
}

static void read_in_steps(const uint8_t *data, size_t n, size_t step, struct buf *all)
{
	struct context_frames f = { 0 };
	struct context_sink sink = { keep_bytes, keep_message, all };

	context_frames_begin(&f, TOKEN, MAX);
	for (size_t at = 0; at < n; at += step)
		context_frames_feed(&f, (const char *)data + at, n - at < step ? n - at : step,
				    &sink);
	context_frames_flush(&f, &sink);
	context_frames_done(&f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct buf whole = { 0 }, pieces = { 0 };

	if (size < 2)
		return 0;
	read_in_steps(data + 1, size - 1, size, &whole);
	read_in_steps(data + 1, size - 1, 1 + data[0] % 64, &pieces);
	MUST(whole.len == pieces.len);
	MUST(whole.len == 0 || memcmp(whole.data, pieces.data, whole.len) == 0);
	buf_done(&whole);
	buf_done(&pieces);
	return 0;
}
