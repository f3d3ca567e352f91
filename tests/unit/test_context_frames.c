#include "check.h"

#include <stdio.h>
#include <string.h>

#include "sandbox/context_frames.h"
#include "sandbox/context_say.h"

#define TOKEN "abcdefghij0123456789"

struct heard {
	struct buf bytes, messages;
};

static void on_bytes(void *user, const char *data, size_t n)
{
	struct heard *h = user;

	assert_true(n > 0);
	assert_int_equal(buf_append(&h->bytes, data, n), 0);
}

static void on_message(void *user, enum frame_kind kind, const char *data, size_t n)
{
	struct heard *h = user;

	(void)n;
	assert_int_equal(buf_printf(&h->messages, "%c(%s)", kind, data ? data : "too long"), 0);
}

static void heard_done(struct heard *h)
{
	buf_done(&h->bytes);
	buf_done(&h->messages);
}

/* What comes out of a text that arrives in pieces of `step` bytes. */
static void hear(const char *text, size_t step, size_t max, struct heard *ret)
{
	struct context_sink sink = { on_bytes, on_message, ret };
	struct context_frames f = { 0 };
	size_t n = strlen(text);

	context_frames_begin(&f, TOKEN, max);
	for (size_t at = 0; at < n; at += step)
		context_frames_feed(&f, text + at, n - at < step ? n - at : step, &sink);
	context_frames_flush(&f, &sink);
	context_frames_done(&f);
}

static void check_heard(const char *text, const char *bytes, const char *messages)
{
	for (size_t step = 1; step <= strlen(text); step++) {
		struct heard h = { 0 };

		hear(text, step, 64, &h);
		assert_string_equal(buf_str(&h.bytes), bytes);
		assert_string_equal(buf_str(&h.messages), messages);
		heard_done(&h);
	}
}

#define FRAME(kind_size, body) "\x1e" TOKEN kind_size body

static void frames_are_taken_out_of_what_programs_write(void **state)
{
	(void)state;
	check_heard("before " FRAME("r000c", "{\"text\":\"2\"}") "after", "before after",
		    "r({\"text\":\"2\"})");
	check_heard(FRAME("e0000", "") "tail", "tail", "e()");
}

static void parts_make_one_message_and_others_bytes_lie_between_them(void **state)
{
	(void)state;
	check_heard(FRAME("p0003", "abc") "noise" FRAME("p0002", "de") FRAME("d0001", "f"), "noise",
		    "d(abcdef)");
}

static void what_only_looks_like_a_frame_is_the_programs_own(void **state)
{
	static const char *const texts[] = {
		"\x1e",
		"\x1e\x1e\x1e",
		"\x1e"
		"abcdefghij012345678X",
		"\x1e" TOKEN "z0000",
		"\x1e" TOKEN "r00G0",
		"\x1e" TOKEN "rffff body",
		"\x1e" TOKEN "r",
		"\x1e"
		"zzzzzzzzzzzzzzzzzzzzr0000",
	};

	(void)state;
	for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
		check_heard(texts[i], texts[i], "");
	check_heard("\x1e"
		    "abc" FRAME("m0000", ""),
		    "\x1e"
		    "abc",
		    "m()");
}

static void a_message_above_the_limit_is_told_without_its_text_and_the_next_is_whole(void **state)
{
	struct heard h = { 0 };

	(void)state;
	hear(FRAME("p0006", "123456") FRAME("r0006", "123456") FRAME("r0002", "ok"), 5, 8, &h);
	assert_string_equal(buf_str(&h.messages), "r(too long)r(ok)");
	assert_int_equal(h.bytes.len, 0);
	heard_done(&h);
}

static void without_a_token_every_byte_is_the_programs_own(void **state)
{
	struct heard h = { 0 };
	struct context_sink sink = { on_bytes, on_message, &h };
	struct context_frames f = { 0 };
	const char text[] = FRAME("e0000", "");

	(void)state;
	context_frames_feed(&f, text, sizeof(text) - 1, &sink);
	assert_string_equal(buf_str(&h.bytes), text);
	assert_int_equal(h.messages.len, 0);
	heard_done(&h);
}

static void only_members_that_a_value_has_are_passed_on(void **state)
{
	static const struct {
		enum frame_kind kind;
		const char *text;
		bool is_sound;
	} cases[] = {
		{ FRAME_RESULT, "{\"text\":\"2\"}", true },
		{ FRAME_DISPLAY, "{\"png\":\"aGk=\",\"chart\":{\"type\":\"line\"}}", true },
		{ FRAME_RESULT, "{\"json\":[1,null],\"data\":{}}", true },
		{ FRAME_RESULT, "{}", false },
		{ FRAME_RESULT, "[]", false },
		{ FRAME_RESULT, "{\"text\":2}", false },
		{ FRAME_RESULT, "{\"isMain\":true}", false },
		{ FRAME_RESULT, "{\"text\":\"2\",\"text\":\"3\"}", false },
		{ FRAME_RESULT, "{\"text\":\"2\"} ,\"status\":\"ok\"", false },
		{ FRAME_RESULT, "{\"json\":NaN}", false },
		{ FRAME_ERROR, "{\"name\":\"E\",\"value\":\"\",\"traceback\":\"\"}", true },
		{ FRAME_ERROR, "{\"name\":\"E\",\"value\":\"\"}", false },
		{ FRAME_ERROR, "{\"name\":\"E\",\"value\":\"\",\"traceback\":[]}", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
		if (context_say_is_sound(cases[i].kind, cases[i].text, strlen(cases[i].text)) !=
		    cases[i].is_sound)
			fail_msg("%s", cases[i].text);
}

static void an_end_is_read_as_far_as_it_can_be(void **state)
{
	struct context_end end = { .exit_code = -1 };
	char cwd[16] = "";
	const char good[] = "{\"count\":7,\"exitCode\":3,\"cwd\":\"/tmp\"}";
	const char bad[] = "{\"count\":-1,\"exitCode\":256,\"cwd\":\"/a/very/long/directory\"}";

	(void)state;
	context_say_read_end(bad, sizeof(bad) - 1, &end, cwd, sizeof(cwd));
	assert_int_equal(end.count, 0);
	assert_int_equal(end.exit_code, -1);
	assert_string_equal(cwd, "");
	context_say_read_end("nonsense", 8, &end, cwd, sizeof(cwd));
	context_say_read_end(good, sizeof(good) - 1, &end, cwd, sizeof(cwd));
	assert_int_equal(end.count, 7);
	assert_int_equal(end.exit_code, 3);
	assert_string_equal(cwd, "/tmp");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frames_are_taken_out_of_what_programs_write),
		cmocka_unit_test(parts_make_one_message_and_others_bytes_lie_between_them),
		cmocka_unit_test(what_only_looks_like_a_frame_is_the_programs_own),
		cmocka_unit_test(
			a_message_above_the_limit_is_told_without_its_text_and_the_next_is_whole),
		cmocka_unit_test(without_a_token_every_byte_is_the_programs_own),
		cmocka_unit_test(only_members_that_a_value_has_are_passed_on),
		cmocka_unit_test(an_end_is_read_as_far_as_it_can_be),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
