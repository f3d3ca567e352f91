#include <errno.h>
#include <string.h>

#include "check.h"
#include "launch/cgroup_parse.h"

/* The shapes are those of real machines; the names are ours. */
static const char systemd_mounts[] =
	"23 29 0:21 / /proc rw,nosuid,nodev,noexec,relatime shared:12 - proc proc rw\n"
	"24 29 0:22 / /sys rw,nosuid,nodev,noexec,relatime shared:6 - sysfs sysfs rw\n"
	"29 1 254:1 / / rw,relatime shared:1 - ext4 /dev/vda1 rw,discard,errors=remount-ro\n"
	"31 24 0:26 / /sys/fs/cgroup rw,nosuid,nodev,noexec,relatime shared:9 - cgroup2 cgroup2 "
	"rw,nsdelegate,memory_recursiveprot\n";
static const char systemd_self[] = "0::/user.slice/user-1000.slice/session-4.scope\n";

static const char hybrid_mounts[] =
	"25 30 0:23 / /sys rw,nosuid,nodev,noexec,relatime shared:7 - sysfs sysfs rw\n"
	"30 1 8:1 / / rw,relatime shared:1 - ext4 /dev/sda1 rw\n"
	"32 25 0:27 / /sys/fs/cgroup ro,nosuid,nodev,noexec shared:9 - tmpfs tmpfs ro,mode=755\n"
	"33 32 0:28 / /sys/fs/cgroup/unified rw,nosuid shared:10 - cgroup2 cgroup2 rw,nsdelegate\n"
	"34 32 0:29 / /sys/fs/cgroup/systemd rw,nosuid shared:11 - cgroup cgroup "
	"rw,xattr,name=systemd\n"
	"37 32 0:32 / /sys/fs/cgroup/cpu,cpuacct rw,nosuid shared:15 - cgroup cgroup "
	"rw,cpu,cpuacct\n"
	"38 32 0:33 / /sys/fs/cgroup/memory rw,nosuid shared:16 - cgroup cgroup rw,memory\n"
	"39 32 0:34 / /sys/fs/cgroup/cpuset rw,nosuid shared:17 - cgroup cgroup rw,cpuset\n"
	"40 32 0:35 / /sys/fs/cgroup/pids rw,nosuid shared:18 - cgroup cgroup rw,pids\n";
static const char hybrid_self[] = "12:pids:/user.slice/user-0.slice\n"
				  "9:cpuset:/\n"
				  "7:memory:/user.slice\n"
				  "4:cpu,cpuacct:/batch/a:b\n"
				  "1:name=systemd:/user.slice/user-0.slice/session-1.scope\n"
				  "0::/user.slice/user-0.slice/session-1.scope\n";

static void finds_the_own_group_of_a_systemd_machine(void **state)
{
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(systemd_mounts, systemd_self, NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/sys/fs/cgroup/user.slice/user-1000.slice/session-4.scope");
}

static void a_v2_machine_has_no_v1_controllers(void **state)
{
	char dir[128] = "same";

	(void)state;
	assert_int_equal(cgroup_parse_dir(systemd_mounts, systemd_self, "memory", dir, sizeof(dir)),
			 -ENOENT);
	assert_string_equal(dir, "same");
}

static void finds_each_hierarchy_of_a_hybrid_machine(void **state)
{
	static const struct {
		const char *controller, *dir;
	} rows[] = {
		{ "memory", "/sys/fs/cgroup/memory/user.slice" },
		{ "pids", "/sys/fs/cgroup/pids/user.slice/user-0.slice" },
		{ "cpuset", "/sys/fs/cgroup/cpuset" },
		{ NULL, "/sys/fs/cgroup/unified/user.slice/user-0.slice/session-1.scope" },
	};
	char dir[128];

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		assert_int_equal(cgroup_parse_dir(hybrid_mounts, hybrid_self, rows[i].controller,
						  dir, sizeof(dir)),
				 0);
		assert_string_equal(dir, rows[i].dir);
	}
}

static void controllers_mounted_together_are_one_directory(void **state)
{
	char cpu[128], acct[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(hybrid_mounts, hybrid_self, "cpu", cpu, sizeof(cpu)), 0);
	assert_int_equal(
		cgroup_parse_dir(hybrid_mounts, hybrid_self, "cpuacct", acct, sizeof(acct)), 0);
	assert_string_equal(cpu, "/sys/fs/cgroup/cpu,cpuacct/batch/a:b");
	assert_string_equal(cpu, acct);
}

static void a_controller_is_a_whole_word(void **state)
{
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(hybrid_mounts, hybrid_self, "mem", dir, sizeof(dir)),
			 -ENOENT);
	assert_int_equal(cgroup_parse_dir(hybrid_mounts, hybrid_self, "systemd", dir, sizeof(dir)),
			 -ENOENT);
}

static void a_container_with_its_own_namespace_sees_its_group_as_the_root(void **state)
{
	static const char mounts[] =
		"731 726 0:150 / /sys ro,nosuid,nodev,noexec,relatime - sysfs sysfs ro\n"
		"732 731 0:26 / /sys/fs/cgroup ro,nosuid,nodev,noexec,relatime - cgroup2 cgroup "
		"rw,nsdelegate\n";
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(mounts, "0::/\n", NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/sys/fs/cgroup");
}

static void a_container_without_one_sees_its_part_of_the_hierarchy(void **state)
{
	static const char mounts[] =
		"900 899 0:33 /docker/0aff /sys/fs/cgroup/memory ro master:16 - cgroup cgroup "
		"rw,memory\n";
	char dir[128];

	(void)state;
	assert_int_equal(
		cgroup_parse_dir(mounts, "7:memory:/docker/0aff\n", "memory", dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/sys/fs/cgroup/memory");
	assert_int_equal(
		cgroup_parse_dir(mounts, "7:memory:/docker/0aff/in\n", "memory", dir, sizeof(dir)),
		0);
	assert_string_equal(dir, "/sys/fs/cgroup/memory/in");
	assert_int_equal(
		cgroup_parse_dir(mounts, "7:memory:/docker/0affe\n", "memory", dir, sizeof(dir)),
		-ENOENT);
}

static void a_group_outside_the_namespace_has_no_path(void **state)
{
	static const char above[] =
		"31 24 0:26 /../.. /sys/fs/cgroup rw shared:9 - cgroup2 cgroup2 rw\n";
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(systemd_mounts, "0::/../x\n", NULL, dir, sizeof(dir)),
			 -ENOENT);
	assert_int_equal(cgroup_parse_dir(above, "0::/\n", NULL, dir, sizeof(dir)), -ENOENT);
}

static void a_later_mount_serves_when_the_first_does_not_show_the_group(void **state)
{
	static const char mounts[] = "31 24 0:26 /other /mnt/part rw - cgroup2 cgroup2 rw\n"
				     "32 24 0:26 / /mnt/whole rw - cgroup2 cgroup2 rw\n";
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(mounts, "0::/mine\n", NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/mnt/whole/mine");
}

static void escaped_blanks_in_paths_are_read(void **state)
{
	static const char mounts[] =
		"31 24 0:26 / /mnt/two\\040words\\134x rw - cgroup2 cgroup2 rw\n";
	char dir[128];

	(void)state;
	assert_int_equal(cgroup_parse_dir(mounts, "0::/a b\n", NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/mnt/two words\\x/a b");
}

static void a_launcher_in_the_leaf_works_one_level_up(void **state)
{
	char dir[128];

	(void)state;
	assert_int_equal(
		cgroup_parse_dir(systemd_mounts, "0::/svc/holt.main\n", NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/sys/fs/cgroup/svc");
	assert_int_equal(
		cgroup_parse_dir(systemd_mounts, "0::/holt.main\n", NULL, dir, sizeof(dir)), 0);
	assert_string_equal(dir, "/sys/fs/cgroup");
}

static void broken_text_is_absence_and_not_a_crash(void **state)
{
	static const char *const mounts[] = { "",
					      "\n\n",
					      "1 2 3",
					      "1 2 3 / /x rw shared:1",
					      "1 2 3 / /x rw - cgroup2",
					      "- - - - - - - - -" };
	char dir[16];

	(void)state;
	for (size_t i = 0; i < sizeof(mounts) / sizeof(mounts[0]); i++)
		assert_int_equal(cgroup_parse_dir(mounts[i], "0::/\n", NULL, dir, sizeof(dir)),
				 -ENOENT);
	assert_int_equal(cgroup_parse_dir(systemd_mounts, "", NULL, dir, sizeof(dir)), -ENOENT);
	assert_int_equal(cgroup_parse_dir(systemd_mounts, "0\n:\n", NULL, dir, sizeof(dir)),
			 -ENOENT);
	assert_int_equal(cgroup_parse_dir(systemd_mounts, systemd_self, NULL, dir, sizeof(dir)),
			 -E2BIG);
}

static void a_mask_becomes_a_list_of_cpus(void **state)
{
	char cpus[CGROUP_CPUS_SIZE];

	(void)state;
	cgroup_format_cpus(0, cpus);
	assert_string_equal(cpus, "");
	cgroup_format_cpus(1, cpus);
	assert_string_equal(cpus, "0");
	cgroup_format_cpus(1ull << 63 | 0x25, cpus);
	assert_string_equal(cpus, "0,2,5,63");
	cgroup_format_cpus(UINT64_MAX, cpus);
	assert_int_equal(strlen(cpus), 10 + 54 * 2 + 63);
}

static void a_small_share_of_cpu_lengthens_the_period_and_not_the_share(void **state)
{
	static const struct {
		uint32_t milli;
		uint64_t quota_us, period_us;
	} rows[] = {
		{ 500, 50000, 100000 }, { 1000, 100000, 100000 }, { 64000, 6400000, 100000 },
		{ 10, 1000, 100000 },   { 5, 1000, 200000 },      { 1, 1000, 1000000 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct cgroup_quota q = cgroup_quota(rows[i].milli);

		assert_int_equal(q.quota_us, rows[i].quota_us);
		assert_int_equal(q.period_us, rows[i].period_us);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_the_own_group_of_a_systemd_machine),
		cmocka_unit_test(a_v2_machine_has_no_v1_controllers),
		cmocka_unit_test(finds_each_hierarchy_of_a_hybrid_machine),
		cmocka_unit_test(controllers_mounted_together_are_one_directory),
		cmocka_unit_test(a_controller_is_a_whole_word),
		cmocka_unit_test(a_container_with_its_own_namespace_sees_its_group_as_the_root),
		cmocka_unit_test(a_container_without_one_sees_its_part_of_the_hierarchy),
		cmocka_unit_test(a_group_outside_the_namespace_has_no_path),
		cmocka_unit_test(a_later_mount_serves_when_the_first_does_not_show_the_group),
		cmocka_unit_test(escaped_blanks_in_paths_are_read),
		cmocka_unit_test(a_launcher_in_the_leaf_works_one_level_up),
		cmocka_unit_test(broken_text_is_absence_and_not_a_crash),
		cmocka_unit_test(a_mask_becomes_a_list_of_cpus),
		cmocka_unit_test(a_small_share_of_cpu_lengthens_the_period_and_not_the_share),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
