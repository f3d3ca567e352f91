#include "spec/wire.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "frame.h"

static void a_frame_comes_back_as_it_was_written(void **state)
{
	uint8_t data[256];
	struct wire_head head;
	struct wr w;
	struct rd r;
	size_t n;
	long len;

	(void)state;
	wire_begin(&w, data, sizeof(data), 7, 0xabcdef01);
	wr_u8(&w, 0xff);
	wr_u16(&w, 0xfffe);
	wr_u32(&w, 0xfffffffd);
	wr_u64(&w, 0xfffffffffffffffcull);
	wr_str(&w, "text");
	wr_str(&w, NULL);
	wr_bytes(&w, "a\0b", 3);
	wr_bytes(&w, NULL, 0);
	wr_raw(&w, "rest", 4);
	len = wire_finish(&w);
	assert_true(len > 0);

	assert_int_equal(wire_open(data, (size_t)len, &head, &r), 0);
	assert_int_equal(head.version, WIRE_VERSION);
	assert_int_equal(head.type, 7);
	assert_int_equal(head.id, 0xabcdef01);
	assert_int_equal(head.len, (size_t)len - sizeof(head));
	assert_int_equal(rd_u8(&r), 0xff);
	assert_int_equal(rd_u16(&r), 0xfffe);
	assert_int_equal(rd_u32(&r), 0xfffffffd);
	assert_true(rd_u64(&r) == 0xfffffffffffffffcull);
	assert_string_equal(rd_str(&r), "text");
	assert_string_equal(rd_str(&r), "");
	assert_memory_equal(rd_bytes(&r, &n), "a\0b", 3);
	assert_int_equal(n, 3);
	assert_non_null(rd_bytes(&r, &n));
	assert_int_equal(n, 0);
	assert_int_equal(rd_end(&r), -EPROTO); /* not all of it is read */
	assert_memory_equal(rd_rest(&r, &n), "rest", 4);
	assert_int_equal(n, 4);
	assert_int_equal(rd_end(&r), 0);
	assert_non_null(rd_rest(&r, &n));
	assert_int_equal(n, 0);
	assert_int_equal(rd_end(&r), 0);
}

static void another_version_is_told_from_nonsense(void **state)
{
	struct wire_head head = { WIRE_VERSION + 1, 1, 1, 0 }, got = { 0 };
	struct rd r;

	(void)state;
	assert_int_equal(wire_open(&head, sizeof(head), &got, &r), -EPROTONOSUPPORT);
	head.version = WIRE_VERSION;
	head.len = 1;
	assert_int_equal(wire_open(&head, sizeof(head), &got, &r), -EPROTO);
	assert_int_equal(wire_open(&head, 0, &got, &r), -EPROTO);
	assert_int_equal(got.version, 0); /* untouched */
	head.len = 0;
	assert_int_equal(wire_open(&head, sizeof(head), &got, &r), 0);
	assert_int_equal(rd_end(&r), 0);
}

static void a_payload_above_the_ceiling_is_refused_on_both_sides(void **state)
{
	static uint8_t data[WIRE_FRAME_MAX + 1];
	static const uint8_t zeros[WIRE_PAYLOAD_MAX + 1];
	struct wire_head head;
	struct wr w;
	struct rd r;

	(void)state;
	wire_begin(&w, data, sizeof(data), 1, 1);
	wr_raw(&w, zeros, WIRE_PAYLOAD_MAX);
	assert_int_equal(wire_finish(&w), WIRE_FRAME_MAX);
	assert_int_equal(wire_open(data, WIRE_FRAME_MAX, &head, &r), 0);

	wire_begin(&w, data, sizeof(data), 1, 1);
	wr_raw(&w, zeros, WIRE_PAYLOAD_MAX + 1);
	assert_int_equal(wire_finish(&w), -E2BIG);
	head = (struct wire_head){ WIRE_VERSION, 1, 1, WIRE_PAYLOAD_MAX + 1 };
	memcpy(data, &head, sizeof(head));
	assert_int_equal(wire_open(data, WIRE_FRAME_MAX + 1, &head, &r), -EPROTO);
}

static void a_writer_without_room_fails_at_the_end(void **state)
{
	uint8_t data[64];

	(void)state;
	for (size_t cap = 0; cap <= 12 + 4 + 4 + 3; cap++) {
		struct wr w;
		bool fits = cap == 12 + 4 + 4 + 3;

		memset(data, 0xee, sizeof(data));
		wire_begin(&w, data, cap, 1, 1);
		wr_u32(&w, 1);
		wr_str(&w, "ab");
		assert_int_equal(wire_finish(&w), fits ? 23 : -E2BIG);
		for (size_t i = cap; i < sizeof(data); i++)
			assert_int_equal(data[i], 0xee);
	}
}

static void one_overflow_makes_all_later_writes_void(void **state)
{
	uint8_t data[20];
	struct wr w;

	(void)state;
	wire_begin(&w, data, sizeof(data), 1, 1);
	wr_str(&w, "much too long for it");
	wr_u8(&w, 1); /* would fit */
	assert_int_equal(wire_finish(&w), -E2BIG);
	wire_begin(&w, data, sizeof(data), 1, 1);
	wr_bytes(&w, "", (size_t)UINT32_MAX + 1);
	assert_int_equal(wire_finish(&w), -E2BIG);
}

static void after_one_bad_value_everything_is_empty(void **state)
{
	static const uint8_t two[2] = { 1, 2 };
	struct rd r = { two, two + 2, false };
	size_t n = 9;

	(void)state;
	assert_int_equal(rd_u32(&r), 0);
	assert_true(r.bad);
	assert_int_equal(rd_u8(&r), 0);
	assert_int_equal(rd_u16(&r), 0);
	assert_true(rd_u64(&r) == 0);
	assert_string_equal(rd_str(&r), "");
	assert_non_null(rd_bytes(&r, &n));
	assert_int_equal(n, 0);
	n = 9;
	assert_non_null(rd_rest(&r, &n));
	assert_int_equal(n, 0);
	assert_int_equal(rd_end(&r), -EPROTO);
}

static bool str_is_good(const void *bytes, size_t n)
{
	struct rd r = { bytes, (const uint8_t *)bytes + n, false };

	(void)rd_str(&r);
	return !r.bad;
}

static void a_string_ends_with_its_only_nul(void **state)
{
	(void)state;
	assert_true(str_is_good("\x01\0\0\0\0", 5));
	assert_true(str_is_good("\x03\0\0\0ab\0", 7));
	assert_false(str_is_good("\x00\0\0\0", 4));         /* no terminator */
	assert_false(str_is_good("\x02\0\0\0ab", 6));       /* no terminator */
	assert_false(str_is_good("\x03\0\0\0a\0\0", 7));    /* one inside */
	assert_false(str_is_good("\x04\0\0\0ab\0", 7));     /* more than is there */
	assert_false(str_is_good("\xff\xff\xff\xff\0", 5)); /* much more */
}

static int decode_some(struct rd *r)
{
	size_t n;

	(void)rd_u8(r);
	(void)rd_u64(r);
	(void)strlen(rd_str(r));
	(void)rd_bytes(r, &n);
	return rd_end(r);
}

static void cut_or_changed_frames_do_no_harm(void **state)
{
	uint8_t data[64];
	struct wr w;

	(void)state;
	wire_begin(&w, data, sizeof(data), 1, 1);
	wr_u8(&w, 1);
	wr_u64(&w, 2);
	wr_str(&w, "abc");
	wr_bytes(&w, "defg", 4);
	frame_torture(data, (size_t)wire_finish(&w), decode_some);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_frame_comes_back_as_it_was_written),
		cmocka_unit_test(another_version_is_told_from_nonsense),
		cmocka_unit_test(a_payload_above_the_ceiling_is_refused_on_both_sides),
		cmocka_unit_test(a_writer_without_room_fails_at_the_end),
		cmocka_unit_test(one_overflow_makes_all_later_writes_void),
		cmocka_unit_test(after_one_bad_value_everything_is_empty),
		cmocka_unit_test(a_string_ends_with_its_only_nul),
		cmocka_unit_test(cut_or_changed_frames_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
