#include "cli/bench.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/machine.h"
#include "check.h"
#include "cli/bench_bundle.h"
#include "cli/bench_daemon.h"
#include "fault.h"

static void quantiles_are_by_nearest_rank(void **state)
{
	struct samples s = { 0 };

	(void)state;
	assert_true(samples_ms(&s, 0.5) == 0);
	for (uint64_t i = 1000; i > 0; i--)
		assert_int_equal(samples_add(&s, i * 1000000), 0);
	assert_int_equal(s.len, 1000);
	assert_true(samples_ms(&s, 0) == 1);
	assert_true(samples_ms(&s, 0.5) == 501);
	assert_true(samples_ms(&s, 0.99) == 991);
	assert_true(samples_ms(&s, 1) == 1000);
	samples_done(&s);
}

static void a_sandbox_has_no_more_cores_than_the_machine(void **state)
{
	char body[BENCH_BOX], want[BENCH_BOX];
	struct machine m;

	(void)state;
	machine_read(&m);
	bench_box(body, 0, "");
	assert_string_equal(body, "{}");
	bench_box(body, 1, "");
	assert_string_equal(body, "{\"resources\":{\"cpu\":1}}");
	bench_box(body, m.cpus + 2, ",\"memory\":\"512Mi\"");
	(void)snprintf(want, sizeof(want), "{\"resources\":{\"cpu\":%u,\"memory\":\"512Mi\"}}",
		       m.cpus);
	assert_string_equal(body, want);
}

static void a_sample_that_finds_no_memory_is_refused(void **state)
{
	struct samples s = { 0 };

	(void)state;
	fault_arm(1);
	assert_int_equal(samples_add(&s, 1), -ENOMEM);
	assert_true(fault_disarm());
	assert_int_equal(s.len, 0);
	assert_int_equal(samples_add(&s, 1), 0);
	samples_done(&s);
}

static void a_ratio_is_judged_by_its_demand(void **state)
{
	struct bench_row row = { .ratio = 0.5 };

	(void)state;
	bench_judge(&row, 0.5, false);
	assert_int_equal(row.verdict, VERDICT_MET);
	bench_judge(&row, 0.49, false);
	assert_int_equal(row.verdict, VERDICT_MISSED);
	bench_judge(&row, 0.49, true);
	assert_int_equal(row.verdict, VERDICT_MET);
	bench_judge(&row, 4, true);
	assert_int_equal(row.verdict, VERDICT_MISSED);
}

static int counts(void *self, uint64_t *ret_ns, struct err *err)
{
	char **order = self;

	(void)err;
	*(*order)++ = 'x';
	*ret_ns = 2000000;
	return 0;
}

static int fails(void *self, uint64_t *ret_ns, struct err *err)
{
	(void)self;
	(void)ret_ns;
	return err_set(err, EIO, "it broke");
}

static void subject_and_reference_run_equally_often(void **state)
{
	static char a[64], c[64];
	char *at_a = a, *at_c = c;
	struct probe subject = { "subject", counts, &at_a },
		     reference = { "reference", counts, &at_c };
	struct bench b = { 0 };
	struct bench_row *row = bench_add(&b, "group", "what");

	(void)state;
	assert_int_equal(bench_pair(&b, row, &subject, &reference, 25, NULL), 0);
	assert_int_equal(row->n, 25);
	assert_int_equal(at_a - a, at_c - c);
	assert_true(row->p50 == 2 && row->ref_p99 == 2 && row->ratio == 1);
	assert_string_equal(row->reference, "reference");
}

static void a_probe_that_fails_ends_the_measurement(void **state)
{
	static char c[64];
	char *at_c = c;
	struct probe subject = { "subject", fails, NULL },
		     reference = { "reference", counts, &at_c };
	struct bench b = { 0 };
	struct bench_row *row = bench_add(&b, "group", "what");
	struct err err = { 0 };

	(void)state;
	assert_int_equal(bench_pair(&b, row, &subject, &reference, 25, &err), -EIO);
	assert_string_equal(err.text, "it broke");
	assert_int_equal(row->n, 0);
}

static void rows_have_an_end(void **state)
{
	static struct bench b;

	(void)state;
	for (int i = 0; i < BENCH_ROWS_MAX + 3; i++)
		assert_non_null(bench_add(&b, "group", "what"));
	assert_int_equal(b.len, BENCH_ROWS_MAX);
}

static void every_form_says_what_was_found(void **state)
{
	static void (*const forms[])(const struct bench *b,
				     struct buf *to) = { bench_print_text, bench_print_markdown,
							 bench_print_json };
	struct bench b = { .load_before = "0.1" };
	struct bench_row *row = bench_add(&b, "g", "a thing");

	(void)state;
	row->p50 = 1.25;
	row->ratio = 0.5;
	(void)snprintf(row->reference, sizeof(row->reference), "another");
	bench_judge(row, 0.4, false);
	row = bench_add(&b, "g", "a peer");
	row->verdict = VERDICT_ABSENT;
	(void)snprintf(row->note, sizeof(row->note), "not installed");
	for (size_t i = 0; i < sizeof(forms) / sizeof(forms[0]); i++) {
		struct buf text = { 0 };

		forms[i](&b, &text);
		assert_non_null(strstr(buf_str(&text), "a thing"));
		assert_non_null(strstr(buf_str(&text), "1.25"));
		assert_non_null(strstr(buf_str(&text), "MISSED"));
		assert_non_null(strstr(buf_str(&text), "absent"));
		assert_non_null(strstr(buf_str(&text), "not installed"));
		buf_done(&text);
	}
}

/* A process that has ended, whose number nobody has for a while. */
static pid_t ended_pid(void)
{
	pid_t pid = fork();

	if (pid == 0)
		_exit(0);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
	return pid;
}

static void what_killed_benchmarks_left_is_swept_away(void **state)
{
	const struct timespec old[2] = { { .tv_sec = 1000 }, { .tv_sec = 1000 } };
	char tmp[] = "/tmp/holt-sweep.XXXXXX", path[5][100];
	static const bool stays[] = { false, true, false, true, true };

	(void)state;
	assert_non_null(mkdtemp(tmp));
	(void)snprintf(path[0], 100, "%s/holt-bench.%d.abc", tmp, ended_pid());
	(void)snprintf(path[1], 100, "%s/holt-bench.%d.abc", tmp, getpid());
	(void)snprintf(path[2], 100, "%s/holt-bench.old", tmp);
	(void)snprintf(path[3], 100, "%s/holt-bench.new", tmp);
	(void)snprintf(path[4], 100, "%s/other", tmp);
	for (int i = 0; i < 5; i++)
		assert_int_equal(mkdir(path[i], 0755), 0);
	assert_int_equal(utimensat(AT_FDCWD, path[2], old, 0), 0);
	assert_int_equal(utimensat(AT_FDCWD, path[4], old, 0), 0);
	bundle_sweep(tmp);
	for (int i = 0; i < 5; i++)
		assert_int_equal(rmdir(path[i]) == 0, stays[i]);
	assert_int_equal(rmdir(tmp), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(quantiles_are_by_nearest_rank),
		cmocka_unit_test(a_sandbox_has_no_more_cores_than_the_machine),
		cmocka_unit_test(a_sample_that_finds_no_memory_is_refused),
		cmocka_unit_test(a_ratio_is_judged_by_its_demand),
		cmocka_unit_test(subject_and_reference_run_equally_often),
		cmocka_unit_test(a_probe_that_fails_ends_the_measurement),
		cmocka_unit_test(rows_have_an_end),
		cmocka_unit_test(every_form_says_what_was_found),
		cmocka_unit_test(what_killed_benchmarks_left_is_swept_away),
	};

	return cmocka_run_group_tests_name("bench", tests, NULL, NULL);
}
