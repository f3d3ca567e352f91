#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/err.h"
#include "check.h"
#include "sandbox/output.h"

#define KEEP (16u << 10)

/* What a reader from the beginning would have seen, kept in full: the model. */
struct model {
	struct buf text, streams; /* a byte and, in the other, whose it was */
	uint64_t ends[3];
};

static void model_add(struct model *m, int stream, const void *data, size_t n)
{
	assert_int_equal(buf_append(&m->text, data, n), 0);
	for (size_t i = 0; i < n; i++)
		assert_int_equal(buf_putc(&m->streams, (char)stream), 0);
	m->ends[stream] += n;
}

static void model_done(struct model *m)
{
	buf_done(&m->text);
	buf_done(&m->streams);
}

static uint64_t next(uint64_t *seed)
{
	*seed = *seed * 6364136223846793005ull + 1442695040888963407ull;
	return *seed >> 33;
}

/* Everything from `from` on, byte by byte, is what the model has. */
static void assert_reads_like(const struct output *o, const struct model *m, uint64_t from)
{
	struct output_chunk c;
	uint64_t at = from, omitted = 0;

	while (output_read(o, at, &c, &omitted)) {
		assert_true(c.len > 0);
		assert_int_equal(c.seq, at + omitted);
		assert_true(c.seq + c.len <= m->text.len);
		assert_memory_equal(c.data, m->text.data + c.seq, c.len);
		for (size_t i = 0; i < c.len; i++)
			assert_int_equal(m->streams.data[c.seq + i], c.stream);
		if (at > from)
			assert_int_equal(omitted, 0);
		at = c.seq + c.len;
	}
	assert_int_equal(at > from ? at : m->text.len, m->text.len);
	assert_int_equal(output_end(o), m->text.len);
	assert_int_equal(output_stream_end(o, 1), m->ends[1]);
	assert_int_equal(output_stream_end(o, 2), m->ends[2]);
}

static void append(struct output *o, struct model *m, int stream, size_t n, uint64_t *seed)
{
	char data[3 * KEEP] = { 0 };

	for (size_t i = 0; i < n; i++)
		data[i] = (char)next(seed);
	assert_int_equal(output_append(o, stream, data, n), 0);
	model_add(m, stream, data, n);
}

static void what_is_kept_is_what_was_written(void **state)
{
	uint64_t seed = 42;

	(void)state;
	for (int round = 0; round < 40; round++) {
		_cleanup_(output_free_p) struct output *o = output_create(KEEP);
		_cleanup_(model_done) struct model m = { 0 };
		size_t most = round % 4 == 0   ? 3
			      : round % 4 == 1 ? 300
			      : round % 4 == 2 ? 9000
					       : 2 * KEEP;

		assert_non_null(o);
		for (int i = 0; i < 60; i++) {
			append(o, &m, 1 + (int)(next(&seed) % 2), next(&seed) % most, &seed);
			assert_reads_like(o, &m, 0);
			if (m.text.len > 0)
				assert_reads_like(o, &m, next(&seed) % m.text.len);
			assert_true(output_end(o) - output_begin(o) <= KEEP);
		}
	}
}

static void nothing_is_given_up_before_the_ring_is_full(void **state)
{
	_cleanup_(output_free_p) struct output *o = output_create(KEEP);
	_cleanup_(model_done) struct model m = { 0 };
	uint64_t seed = 1;

	(void)state;
	for (int i = 0; i < 16; i++) {
		assert_true(output_has_room(o, KEEP / 16, 0));
		append(o, &m, 1, KEEP / 16, &seed);
	}
	assert_int_equal(output_begin(o), 0);
	assert_false(output_has_room(o, 1, 0));
	assert_true(output_has_room(o, 1, 1));
	append(o, &m, 1, 1, &seed);
	assert_int_equal(output_begin(o), 1);
}

static void room_is_promised_only_where_a_reader_loses_nothing(void **state)
{
	uint64_t seed = 7;

	(void)state;
	for (int round = 0; round < 200; round++) {
		_cleanup_(output_free_p) struct output *o = output_create(OUTPUT_KEEP_MIN);
		_cleanup_(model_done) struct model m = { 0 };
		uint64_t reader = 0;

		for (int i = 0; i < 300; i++) {
			size_t n = 1 + next(&seed) % (round % 2 ? 40 : 2);

			if (!output_has_room(o, n, reader)) {
				reader = output_end(o);
				continue;
			}
			append(o, &m, 1 + i % 2, n, &seed);
			assert_true(output_begin(o) <= reader);
		}
	}
}

static void streams_that_alternate_forever_are_bounded(void **state)
{
	_cleanup_(output_free_p) struct output *o = output_create(KEEP);
	_cleanup_(model_done) struct model m = { 0 };
	uint64_t seed = 3;

	(void)state;
	for (int i = 0; i < 100000; i++)
		append(o, &m, 1 + i % 2, 1, &seed);
	assert_true(output_end(o) - output_begin(o) >= KEEP / 64 - 1);
	assert_reads_like(o, &m, 0);
}

static void each_stream_is_collected_by_itself(void **state)
{
	_cleanup_(output_free_p) struct output *o = output_create(KEEP);
	_cleanup_(buf_done) struct buf out = { 0 }, err = { 0 };

	(void)state;
	assert_int_equal(output_append(o, 1, "one ", 4), 0);
	assert_int_equal(output_append(o, 2, "oops", 4), 0);
	assert_int_equal(output_append(o, 1, "two", 3), 0);
	assert_int_equal(output_collect(o, 1, &out), 0);
	assert_int_equal(output_collect(o, 2, &err), 0);
	assert_string_equal(buf_str(&out), "one two");
	assert_string_equal(buf_str(&err), "oops");
}

static void a_saved_one_is_loaded_with_its_positions(void **state)
{
	uint64_t seed = 11;

	(void)state;
	for (int round = 0; round < 30; round++) {
		_cleanup_(output_free_p) struct output *o = output_create(KEEP), *back = NULL;
		_cleanup_(model_done) struct model m = { 0 };
		_cleanup_(buf_done) struct buf saved = { 0 };

		for (int i = 0; i < round * 3; i++)
			append(o, &m, 1 + (int)(next(&seed) % 2), next(&seed) % 2000, &seed);
		assert_int_equal(output_save(o, &saved), 0);
		assert_int_equal(output_load(saved.data, saved.len, KEEP, &back, NULL), 0);
		assert_int_equal(output_begin(back), output_begin(o));
		assert_reads_like(back, &m, output_begin(o));
	}
}

static void a_damaged_one_is_refused_or_harmless(void **state)
{
	_cleanup_(output_free_p) struct output *o = output_create(KEEP);
	_cleanup_(model_done) struct model m = { 0 };
	_cleanup_(buf_done) struct buf saved = { 0 };
	uint64_t seed = 5;

	(void)state;
	for (int i = 0; i < 20; i++)
		append(o, &m, 1 + i % 2, 50, &seed);
	assert_int_equal(output_save(o, &saved), 0);
	for (size_t cut = 0; cut < saved.len; cut += 7) {
		_cleanup_(output_free_p) struct output *back = NULL;

		(void)output_load(saved.data, cut, KEEP, &back, NULL);
	}
	for (int i = 0; i < 5000; i++) {
		_cleanup_(output_free_p) struct output *back = NULL;
		size_t at = next(&seed) % saved.len;
		char was = saved.data[at];

		saved.data[at] = (char)next(&seed);
		(void)output_load(saved.data, saved.len, KEEP, &back, NULL);
		saved.data[at] = was;
	}
}

static int open_dir(char path[])
{
	int fd;

	assert_non_null(mkdtemp(path));
	fd = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	return fd;
}

static void a_file_behind_it_is_found_again(void **state)
{
	char path[] = "/tmp/holt-output.XXXXXX";
	_close_ int dir = open_dir(path);
	_cleanup_(output_free_p) struct output *o = output_create(KEEP), *back = NULL, *none = NULL;
	_cleanup_(model_done) struct model m = { 0 };
	uint64_t seed = 8;

	(void)state;
	append(o, &m, 1, 100, &seed);
	assert_int_equal(output_persist(o, dir, "x"), 0);
	assert_true(output_is_persistent(o));
	assert_int_equal(output_persist(o, dir, "x"), -EEXIST);
	for (int i = 0; i < 100; i++)
		append(o, &m, 1 + i % 2, 999, &seed);
	o = output_free(o);
	assert_int_equal(output_open(dir, "x", &back, NULL), 0);
	assert_reads_like(back, &m, 0);
	append(back, &m, 2, 10, &seed);
	assert_reads_like(back, &m, 0);
	assert_int_equal(output_open(dir, "y", &none, NULL), -ENOENT);
	assert_int_equal(unlinkat(dir, "x", 0), 0);
	assert_int_equal(rmdir(path), 0);
}

static void a_damaged_file_is_refused_or_harmless(void **state)
{
	char path[] = "/tmp/holt-output.XXXXXX";
	_close_ int dir = open_dir(path), fd = -1;
	_cleanup_(output_free_p) struct output *o = output_create(OUTPUT_KEEP_MIN);
	_cleanup_(model_done) struct model m = { 0 };
	uint64_t seed = 9;
	int refused = 0;

	(void)state;
	assert_int_equal(output_persist(o, dir, "x"), 0);
	for (int i = 0; i < 50; i++)
		append(o, &m, 1 + i % 2, 30, &seed);
	fd = openat(dir, "x", O_RDWR | O_CLOEXEC);
	for (int i = 0; i < 3000; i++) {
		_cleanup_(output_free_p) struct output *back = NULL;
		off_t at = (off_t)(next(&seed) % 300);
		char was, now = (char)next(&seed);

		assert_int_equal(pread(fd, &was, 1, at), 1);
		assert_int_equal(pwrite(fd, &now, 1, at), 1);
		if (output_open(dir, "x", &back, NULL) < 0) {
			refused++;
		} else {
			struct output_chunk c;
			uint64_t omitted;

			for (uint64_t p = 0; output_read(back, p, &c, &omitted); p = c.seq + c.len)
				assert_true(c.len > 0 && c.len <= OUTPUT_KEEP_MIN);
		}
		assert_int_equal(pwrite(fd, &was, 1, at), 1);
	}
	assert_true(refused > 100);
	assert_int_equal(ftruncate(fd, 100), 0);
	o = output_free(o);
	assert_int_equal(output_open(dir, "x", &o, NULL), -EBADMSG);
	assert_int_equal(unlinkat(dir, "x", 0), 0);
	assert_int_equal(rmdir(path), 0);
}

/* The writer is killed at a random point; what the file says is a prefix of what it wrote. */
static void a_killed_writer_leaves_a_whole_one(void **state)
{
	(void)state;
	for (int round = 0; round < 30; round++) {
		char path[] = "/tmp/holt-output.XXXXXX";
		_close_ int dir = open_dir(path);
		_cleanup_(output_free_p) struct output *o = NULL;
		struct output_chunk c;
		uint64_t omitted = 0, at = 0;
		pid_t pid = fork();
		int r;

		assert_true(pid >= 0);
		if (pid == 0) {
			uint64_t n = 0;

			o = output_create(KEEP);
			if (!o || output_persist(o, dir, "x") < 0)
				_exit(1);
			for (;;) { /* byte number n is n % 251, on a stream that n tells */
				char data[64];

				for (size_t i = 0; i < sizeof(data); i++)
					data[i] = (char)((n + i) % 251);
				(void)output_append(o, n / 64 % 3 == 0 ? 2 : 1, data, sizeof(data));
				n += sizeof(data);
			}
		}
		(void)usleep(1000 + (useconds_t)round * 300);
		assert_int_equal(kill(pid, SIGKILL), 0);
		assert_int_equal(waitpid(pid, NULL, 0), pid);
		r = output_open(dir, "x", &o, NULL);
		if (r == 0) {
			for (; output_read(o, at, &c, &omitted); at = c.seq + c.len)
				for (size_t i = 0; i < c.len; i++) {
					uint64_t n = c.seq + i;

					assert_int_equal((unsigned char)c.data[i], n % 251);
					assert_int_equal(c.stream, n / 64 % 3 == 0 ? 2 : 1);
				}
		} else {
			assert_true(r == -ENOENT || r == -EBADMSG); /* it never came so far */
		}
		(void)unlinkat(dir, "x", 0);
		assert_int_equal(rmdir(path), 0);
	}
}

static void check_newest(const struct output *o, const char *all, size_t n)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	assert_int_equal(output_end(o), n);
	assert_int_equal(output_collect(o, 1, &b), 0);
	assert_int_equal(b.len, n - output_begin(o));
	assert_memory_equal(b.data, all + output_begin(o), b.len);
}

static void rings_together_hold_no_more_than_they_may(void **state)
{
	enum { MAX = 256 << 10, RINGS = 40, SAID = 100000 };
	struct output_budget *b = output_budget_create(MAX);
	struct output *rings[RINGS];
	char *all = malloc(SAID);
	char path[] = "/tmp/holt-output-XXXXXX";
	int dir;

	(void)state;
	assert_non_null(mkdtemp(path));
	dir = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	for (size_t i = 0; i < SAID; i++)
		all[i] = (char)('a' + i % 23);
	for (size_t i = 0; i < RINGS; i++) {
		rings[i] = output_create(64 << 10);
		output_limit(rings[i], b);
		for (size_t at = 0; at < SAID; at += 1000) {
			assert_int_equal(output_append(rings[i], 1, all + at, 1000), 0);
			if (at == 50000 && i % 2)
				assert_int_equal(output_persist(rings[i], dir, "x"), 0);
		}
		if (i % 2)
			assert_int_equal(unlinkat(dir, "x", 0), 0);
		/* The least of each comes on top: without it nothing could be read at all. */
		assert_true(output_budget_used(b) <= MAX + (i + 1) * 2 * OUTPUT_KEEP_MIN);
		assert_true(SAID - output_begin(rings[i]) >= OUTPUT_KEEP_MIN);
		check_newest(rings[i], all, SAID);
	}
	assert_true(SAID - output_begin(rings[0]) > 32 << 10); /* the first had what it wanted */
	assert_true(SAID - output_begin(rings[RINGS - 1]) <= 8 << 10);
	for (size_t i = 0; i < RINGS; i++)
		rings[i] = output_free(rings[i]);
	assert_int_equal(output_budget_used(b), 0);
	(void)output_budget_unref(b);
	free(all);
	(void)close(dir);
	(void)rmdir(path);
}

static void room_that_others_have_taken_is_not_promised(void **state)
{
	struct output_budget *b = output_budget_create(24 << 10);
	_cleanup_(output_free_p) struct output *o = output_create(KEEP),
					       *other = output_create(KEEP);
	uint64_t from = 0;
	uint32_t seed = 7;

	(void)state;
	output_limit(o, b);
	output_limit(other, b);
	assert_int_equal(output_append(other, 1, &(char[9000]){ 0 }, 9000), 0);
	for (int i = 0; i < 2000; i++) {
		size_t n = 1 + (seed = seed * 1664525 + 1013904223) % 700;

		if (output_has_room(o, n, from)) {
			assert_int_equal(output_append(o, 1 + i % 2, &(char[700]){ 0 }, n), 0);
			assert_true(output_begin(o) <= from);
		} else {
			assert_true(output_end(o) > from); /* who has read all finds room */
			from = output_end(o);
		}
	}
	assert_true(from > 0);
	assert_true(output_budget_used(b) <= 24 << 10);
	(void)output_budget_unref(b); /* the rings have it still */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_kept_is_what_was_written),
		cmocka_unit_test(nothing_is_given_up_before_the_ring_is_full),
		cmocka_unit_test(room_is_promised_only_where_a_reader_loses_nothing),
		cmocka_unit_test(streams_that_alternate_forever_are_bounded),
		cmocka_unit_test(each_stream_is_collected_by_itself),
		cmocka_unit_test(a_saved_one_is_loaded_with_its_positions),
		cmocka_unit_test(a_damaged_one_is_refused_or_harmless),
		cmocka_unit_test(a_file_behind_it_is_found_again),
		cmocka_unit_test(a_damaged_file_is_refused_or_harmless),
		cmocka_unit_test(a_killed_writer_leaves_a_whole_one),
		cmocka_unit_test(rings_together_hold_no_more_than_they_may),
		cmocka_unit_test(room_that_others_have_taken_is_not_promised),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
