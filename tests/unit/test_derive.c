/* What settings are when nobody has set them, on machines of all sizes. */
#include "check.h"

#include <string.h>

#include "base/machine.h"
#include "config/config.h"
#include "config/derive.h"
#include "spec/quota.h"

#define MIB ((uint64_t)1 << 20)
#define GIB ((uint64_t)1 << 30)

static struct config fresh(void)
{
	return (struct config){
		.state_dir = "/not/there/yet",
		.max_sandboxes = 2000,
		.max_connections = 4096,
		.pool_min = 2,
		.max_connections_user = SETTING_AUTO_U32,
		.limits = { .memory_bytes = 256 * MIB, .cpu_milli = 500, .pids = 64 },
		.limits_max = { .memory_bytes = SETTING_AUTO_U64,
				.disk_bytes = SETTING_AUTO_U64,
				.inodes = SETTING_AUTO_U32,
				.cpu_milli = SETTING_AUTO_U32,
				.pids = SETTING_AUTO_U32,
				.nofile = SETTING_AUTO_U32 },
		.reserve_bytes = SETTING_AUTO_U64,
		.commit_memory_bytes = SETTING_AUTO_U64,
		.commit_cpu_milli = SETTING_AUTO_U32,
		.commit_pids = SETTING_AUTO_U32,
		.quota_sandboxes = SETTING_AUTO_U32,
		.quota_cpu_milli = SETTING_AUTO_U32,
		.quota_memory_bytes = SETTING_AUTO_U64,
		.quota_disk_bytes = SETTING_AUTO_U64,
		.quota_executions = SETTING_AUTO_U32,
		.quota_pids = SETTING_AUTO_U32,
	};
}

static void every_machine_gives_every_limit_a_number(void **state)
{
	static const struct machine machines[] = { { 512 * MIB, 1, 4096 },
						   { 2 * GIB, 2, 15000 },
						   { 23 * GIB, 2, 32768 },
						   { 2048 * GIB, 512, 4194304 },
						   { UINT64_MAX, UINT32_MAX, UINT32_MAX } };

	(void)state;
	for (size_t i = 0; i < sizeof(machines) / sizeof(machines[0]); i++) {
		const struct machine *m = &machines[i];
		struct config c = fresh();
		uint64_t standard;

		derive_from_machine(&c, m);
		assert_true(c.limits_max.memory_bytes < m->memory_bytes);
		assert_true(c.limits_max.memory_bytes <= LIMIT_MEMORY_MAX);
		assert_true(c.limits_max.disk_bytes <= c.limits_max.memory_bytes);
		assert_in_range(c.limits_max.cpu_milli, 1000, LIMIT_CPU_MAX);
		assert_true(c.limits_max.cpu_milli <= (uint64_t)m->cpus * 1000);
		assert_in_range(c.limits_max.pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX);
		assert_true(c.limits_max.pids <= m->processes);
		assert_in_range(c.limits_max.inodes, LIMIT_INODES_DEFAULT, LIMIT_INODES_MAX);
		assert_in_range(c.limits_max.nofile, LIMIT_NOFILE_MIN, LIMIT_NOFILE_MAX);
		assert_true(c.quota_sandboxes == 500 && c.quota_cpu_milli > 0 && c.quota_pids > 0);
		assert_true(c.quota_memory_bytes > 0 && c.quota_disk_bytes > 0);
		assert_int_equal(c.quota_auto, (1u << QUOTA_COUNT) - 1);
		assert_int_equal(c.max_connections_user, 1024);
		/* As many sandboxes as there may be, of the default size, fit into what is
		 * promised. */
		assert_true(c.commit_memory_bytes >= 2002 * 256 * MIB);
		assert_true(c.commit_cpu_milli >= 2002 * 500 && c.commit_pids >= 2002 * 64);
		/* And one of them fits into an idle machine. */
		standard = derive_memory(&c, m);
		assert_in_range(standard, LIMIT_MEMORY_MIN, 256 * MIB);
		assert_true(standard + c.reserve_bytes <= m->memory_bytes / 2);
	}
}

static void what_was_set_stays_within_the_machine(void **state)
{
	struct machine m = { 8 * GIB, 4, 32768 };
	struct config c = fresh();

	(void)state;
	c.limits_max.memory_bytes = 1024 * GIB;
	c.limits_max.cpu_milli = 1000;
	c.quota_memory_bytes = 0;
	c.quota_sandboxes = 7;
	c.reserve_bytes = 5;
	c.commit_memory_bytes = 9;
	derive_from_machine(&c, &m);
	assert_int_equal(c.limits_max.memory_bytes, 8 * GIB);
	assert_int_equal(c.limits_max.cpu_milli, 1000);
	assert_int_equal(c.quota_memory_bytes, 0);
	assert_int_equal(c.quota_sandboxes, 7);
	assert_int_equal(c.quota_auto & (1u << QUOTA_MEMORY | 1u << QUOTA_SANDBOXES), 0);
	assert_int_equal(c.reserve_bytes, 5);
	assert_int_equal(c.commit_memory_bytes, 9);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_machine_gives_every_limit_a_number),
		cmocka_unit_test(what_was_set_stays_within_the_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
