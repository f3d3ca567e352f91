/* gzip, in pieces of any size. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "check.h"
#include "net/gzip.h"

/* Runs all of it in steps, with as little room as said. 0 or -errno. */
static int run(enum gzip_way way, const struct buf *in, size_t step, size_t room, struct buf *ret)
{
	struct gzip *g = gzip_create(way);
	char dst[4096];
	ssize_t len = 0;
	size_t at = 0;

	assert_non_null(g);
	buf_clear(ret);
	do {
		size_t n = in->len - at < step ? in->len - at : step;
		const char *p = buf_str(in) + at;
		bool is_last = at + n == in->len;

		at += n;
		while ((len = gzip_run(g, &p, &n, is_last, dst, room)) >= 0) {
			(void)buf_append(ret, dst, (size_t)len);
			if ((size_t)len < room)
				break;
		}
		assert_true(len < 0 || n == 0);
	} while (len >= 0 && at < in->len);
	if (len >= 0 && !gzip_is_whole(g))
		len = -ENODATA;
	assert_null(gzip_free(g));
	return len < 0 ? (int)len : 0;
}

static void fill(struct buf *b, size_t n)
{
	srand(7);
	for (size_t i = 0; i < n; i++)
		(void)buf_putc(b, i % 3 ? 'a' : (char)rand());
}

static void what_is_packed_is_unpacked_again(void **state)
{
	static const size_t sizes[] = { 0, 1, 1000, 300000 };
	static const size_t rooms[] = { 1, 100, 4096 };

	(void)state;
	for (size_t i = 0; i < 4; i++) {
		_cleanup_(buf_done) struct buf plain = { 0 }, packed = { 0 }, again = { 0 };

		fill(&plain, sizes[i]);
		for (size_t k = 0; k < 3; k++) {
			assert_int_equal(run(GZIP_PACK, &plain, 777, rooms[k], &packed), 0);
			assert_int_equal(run(GZIP_UNPACK, &packed, 100, rooms[k], &again), 0);
			assert_int_equal(again.len, plain.len);
			if (plain.len > 0)
				assert_memory_equal(again.data, plain.data, plain.len);
		}
	}
}

static void several_streams_are_one(void **state)
{
	_cleanup_(buf_done) struct buf plain = { 0 }, packed = { 0 }, both = { 0 }, again = { 0 };

	(void)state;
	(void)buf_puts(&plain, "text");
	assert_int_equal(run(GZIP_PACK, &plain, 10, 4096, &packed), 0);
	(void)buf_append(&both, packed.data, packed.len);
	(void)buf_append(&both, packed.data, packed.len);
	for (size_t step = 1; step < both.len; step += 5) {
		assert_int_equal(run(GZIP_UNPACK, &both, step, 4096, &again), 0);
		assert_string_equal(buf_str(&again), "texttext");
	}
}

static void what_is_cut_off_is_not_whole(void **state)
{
	_cleanup_(buf_done) struct buf plain = { 0 }, packed = { 0 }, again = { 0 };

	(void)state;
	fill(&plain, 5000);
	assert_int_equal(run(GZIP_PACK, &plain, 5000, 4096, &packed), 0);
	while (packed.len > 0) {
		packed.len -= packed.len > 100 ? 97 : 1;
		assert_int_equal(run(GZIP_UNPACK, &packed, 5000, 4096, &again), -ENODATA);
	}
}

static void damage_is_noticed(void **state)
{
	_cleanup_(buf_done) struct buf plain = { 0 }, packed = { 0 }, again = { 0 };

	(void)state;
	fill(&plain, 5000);
	assert_int_equal(run(GZIP_UNPACK, &plain, 5000, 4096, &again), -EBADMSG);
	assert_int_equal(run(GZIP_PACK, &plain, 5000, 4096, &packed), 0);
	packed.data[packed.len - 6] ^= 1; /* of the sum */
	assert_int_equal(run(GZIP_UNPACK, &packed, 5000, 4096, &again), -EBADMSG);
	packed.data[packed.len - 6] ^= 1;
	(void)buf_puts(&packed, "and more");
	assert_int_equal(run(GZIP_UNPACK, &packed, 5000, 4096, &again), -EBADMSG);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_packed_is_unpacked_again),
		cmocka_unit_test(several_streams_are_one),
		cmocka_unit_test(what_is_cut_off_is_not_whole),
		cmocka_unit_test(damage_is_noticed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
