/* What the machine says about itself, as texts and as it is. */
#include "check.h"

#include "base/machine.h"

#define MIB ((uint64_t)1 << 20)

static void meminfo_is_read_by_whole_names(void **state)
{
	static const char text[] = "MemTotal:       24684104 kB\nMemFree:  1 kB\n"
				   "MemAvailable:   24019752 kB\nSwapTotal:     0 kB\n";
	uint64_t v = 7;

	(void)state;
	assert_true(machine_parse_meminfo(text, "MemTotal", &v));
	assert_int_equal(v, 24684104ull * 1024);
	assert_true(machine_parse_meminfo(text, "SwapTotal", &v));
	assert_int_equal(v, 0);
	assert_false(machine_parse_meminfo(text, "Mem", &v));
	assert_false(machine_parse_meminfo(text, "MemAvail", &v));
	assert_false(machine_parse_meminfo("", "MemTotal", &v));
	assert_false(machine_parse_meminfo("MemTotal:", "MemTotal", &v));
	assert_false(machine_parse_meminfo("MemTotal: x kB", "MemTotal", &v));
	assert_false(machine_parse_meminfo("MemTotal: 18446744073709551615 kB", "MemTotal", &v));
}

static void the_threads_of_the_machine_are_behind_the_slash(void **state)
{
	uint32_t v = 7;

	(void)state;
	assert_true(machine_parse_loadavg("3.08 3.07 1.65 5/109 16933\n", &v));
	assert_int_equal(v, 109);
	assert_false(machine_parse_loadavg("3.08 3.07 1.65", &v));
	assert_false(machine_parse_loadavg("0/x", &v));
	assert_false(machine_parse_loadavg("0/4294967296", &v));
}

static void a_tenth_is_kept_within_bounds(void **state)
{
	static const struct {
		uint64_t memory, reserve;
	} rows[] = { { 100 * MIB, 50 * MIB },
		     { 1000 * MIB, 128 * MIB },
		     { 20480 * MIB, 2048 * MIB },
		     { 1048576 * MIB, 4096 * MIB } };

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
		assert_int_equal(machine_reserve(&(struct machine){ rows[i].memory, 1, 1 }),
				 rows[i].reserve);
}

static void this_machine_can_be_read(void **state)
{
	struct machine_gauge gauge = machine_gauge_open(), none = { -1, -1 };
	struct machine_use use = { 0 };
	struct machine m;

	(void)state;
	machine_read(&m);
	assert_true(m.memory_bytes > MIB && m.memory_bytes < UINT64_MAX);
	assert_true(m.cpus >= 1 && m.cpus < 100000);
	assert_true(m.processes > 100 && m.processes < UINT32_MAX);
	for (int i = 0; i < 2; i++) { /* from the beginning each time */
		assert_true(machine_gauge_read(&gauge, &use));
		assert_true(use.memory_left > 0 && use.processes > 0);
	}
	machine_gauge_close(&gauge);
	assert_int_equal(gauge.meminfo, -1);
	assert_false(machine_gauge_read(&none, &use));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(meminfo_is_read_by_whole_names),
		cmocka_unit_test(the_threads_of_the_machine_are_behind_the_slash),
		cmocka_unit_test(a_tenth_is_kept_within_bounds),
		cmocka_unit_test(this_machine_can_be_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
