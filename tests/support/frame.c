#include "frame.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "check.h"

static void set_len(uint8_t *frame, size_t n)
{
	uint32_t len = (uint32_t)(n - sizeof(struct wire_head));

	memcpy(frame + offsetof(struct wire_head, len), &len, sizeof(len));
}

int frame_try(const void *frame, size_t n, frame_decode *decode)
{
	_free_ uint8_t *copy = malloc(n ? n : 1);
	struct wire_head head;
	struct rd r;
	int ret;

	assert_non_null(copy);
	memcpy(copy, frame, n);
	ret = wire_open(copy, n, &head, &r);
	return ret < 0 ? ret : decode(&r);
}

static void cut_everywhere(const uint8_t *frame, size_t n, frame_decode *decode)
{
	_free_ uint8_t *copy = malloc(n + 1);

	assert_non_null(copy);
	for (size_t len = 0; len < n; len++) {
		assert_int_equal(frame_try(frame, len, decode), -EPROTO);
		if (len < sizeof(struct wire_head))
			continue;
		/* The same cut by a sender whose length agrees with it. */
		memcpy(copy, frame, len);
		set_len(copy, len);
		assert_int_equal(frame_try(copy, len, decode), -EPROTO);
	}
	memcpy(copy, frame, n);
	copy[n] = 0;
	assert_int_equal(frame_try(copy, n + 1, decode), -EPROTO);
	set_len(copy, n + 1);
	assert_int_equal(frame_try(copy, n + 1, decode), -EPROTO);
}

static void change_each_byte(const uint8_t *frame, size_t n, frame_decode *decode)
{
	_free_ uint8_t *copy = malloc(n);

	assert_non_null(copy);
	memcpy(copy, frame, n);
	for (size_t at = 0; at < n; at++) {
		for (unsigned flip = 1; flip < 256; flip++) {
			int r;

			copy[at] = (uint8_t)(frame[at] ^ flip);
			r = frame_try(copy, n, decode);
			assert_true(r == 0 || r == -EPROTO || r == -EINVAL ||
				    r == -EPROTONOSUPPORT);
		}
		copy[at] = frame[at];
	}
}

void frame_torture(const void *frame, size_t n, frame_decode *decode)
{
	assert_int_equal(frame_try(frame, n, decode), 0);
	cut_everywhere(frame, n, decode);
	change_each_byte(frame, n, decode);
}
