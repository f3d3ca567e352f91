#include "spec/launch.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/err.h"
#include "check.h"
#include "frame.h"

#define BOX_ID "abcdefghij0123456789"
#define MIB (1ull << 20)

#define LIMITS_EXAMPLE                                         \
	{                                                      \
		256 * MIB, 100 * MIB, 1000, 500, 0x5, 64, 1024 \
	}

static const struct limits limits_example = LIMITS_EXAMPLE;
static const struct template_spec template_example = { TEMPLATE_MAX,
						       ROOT_DIR,
						       LEVEL_HIGH,
						       NET_HOST,
						       TEMPLATE_WARM_PYTHON |
							       TEMPLATE_WRITABLE_ROOT,
						       LIMITS_EXAMPLE,
						       "os.path",
						       "@a/b,c",
						       "/opt/a:/var/b.c",
						       { 1, { BOX_ID } } };
static const struct pool_spec pool_example = { 1, 2, 8, 5000, 80 };
static const struct launch_spec claim_example = { 3,
						  LAUNCH_COLD,
						  LIMITS_EXAMPLE,
						  "web-1",
						  { 1, { BOX_ID } },
						  1,
						  { { BOX_ID, "/mnt/data", 1 } } };
static const struct launch_box box_example = { BOX_ID,         BOX_WARM | BOX_WARM_NODE, 4711,
					       LIMITS_EXAMPLE, { 1, 2, 3, UINT64_MAX },  "no'x'" };
static const struct launch_box_info box_info_example = { BOX_ID,         "web-1", BOX_WARM, 4711,
							 LIMITS_EXAMPLE, 1,       1 };
static const struct launch_info info_example = { 1, 1,         CGROUP_V2, 6, CONTROLLER_CPUSET,
						 1, "not ours" };
static const struct pool_state state_example = {
	1, 2, 3, 4, 5, UINT64_MAX, 7, 8, 9, "no x", { 10, 11, UINT64_MAX, 13 }
};
static const struct build_state builds_example = { 1, 2, UINT64_MAX, 4, 5, "late" };
static const struct box_usage usage_example = { 1, 2, UINT64_MAX, 4, 5 };

static uint8_t frame[WIRE_FRAME_MAX];
static size_t touched; /* so that no read is optimised away */

/* put and get of one message; get checks that a failure leaves the result as it was. */
#define MESSAGE(name, what, frame_type, touch)                                     \
	static what name##_got;                                                    \
	static int decode_##name(struct rd *r)                                     \
	{                                                                          \
		what before;                                                       \
		int ret;                                                           \
		memset(&name##_got, 0xa5, sizeof(before));                         \
		memcpy(&before, &name##_got, sizeof(before));                      \
		ret = launch_get_##name(r, &name##_got);                           \
		if (ret < 0)                                                       \
			assert_memory_equal(&before, &name##_got, sizeof(before)); \
		else                                                               \
			touched += (touch);                                        \
		return ret;                                                        \
	}                                                                          \
	static int try_##name(const what *v)                                       \
	{                                                                          \
		long n = launch_put_##name(frame, sizeof(frame), 77, v);           \
		struct wire_head head;                                             \
		struct rd r;                                                       \
		assert_true(n > 0);                                                \
		assert_int_equal(wire_open(frame, (size_t)n, &head, &r), 0);       \
		assert_int_equal(head.type, frame_type);                           \
		assert_int_equal(head.id, 77);                                     \
		return decode_##name(&r);                                          \
	}

MESSAGE(template, struct template_spec, L_TEMPLATE, strlen(template_got.preload))
MESSAGE(pool, struct pool_spec, L_POOL, pool_got.max)
MESSAGE(claim, struct launch_spec, L_CLAIM, strlen(claim_got.tag))
MESSAGE(box, struct launch_box, L_BOX, strlen(box_got.id))
MESSAGE(box_info, struct launch_box_info, L_BOX_IS, strlen(box_info_got.tag))
MESSAGE(info, struct launch_info, L_INFO, info_got.version)
MESSAGE(pool_state, struct pool_state, L_POOL_IS, pool_state_got.ready)
MESSAGE(builds, struct build_state, L_BUILDS, builds_got.late)

static void assert_limits(const struct limits *a, const struct limits *b)
{
	assert_true(a->memory_bytes == b->memory_bytes);
	assert_true(a->disk_bytes == b->disk_bytes);
	assert_int_equal(a->inodes, b->inodes);
	assert_int_equal(a->cpu_milli, b->cpu_milli);
	assert_true(a->cpu_mask == b->cpu_mask);
	assert_int_equal(a->pids, b->pids);
	assert_int_equal(a->nofile, b->nofile);
}

static void requests_come_back_as_they_were(void **state)
{
	(void)state;
	assert_int_equal(try_template(&template_example), 0);
	assert_int_equal(template_got.id, TEMPLATE_MAX);
	assert_int_equal(template_got.root, ROOT_DIR);
	assert_int_equal(template_got.level, LEVEL_HIGH);
	assert_int_equal(template_got.net, NET_HOST);
	assert_int_equal(template_got.flags, TEMPLATE_WARM_PYTHON | TEMPLATE_WRITABLE_ROOT);
	assert_limits(&template_got.limits, &limits_example);
	assert_string_equal(template_got.preload, "os.path");
	assert_string_equal(template_got.preload_node, "@a/b,c");
	assert_string_equal(template_got.writable, "/opt/a:/var/b.c");
	assert_int_equal(template_got.layers.count, 1);
	assert_string_equal(template_got.layers.ids[0], BOX_ID);
	assert_int_equal(try_pool(&pool_example), 0);
	assert_memory_equal(&pool_got, &pool_example, sizeof(pool_got));
	assert_int_equal(try_claim(&claim_example), 0);
	assert_int_equal(claim_got.template_id, 3);
	assert_int_equal(claim_got.flags, LAUNCH_COLD);
	assert_limits(&claim_got.limits, &limits_example);
	assert_string_equal(claim_got.tag, "web-1");
	assert_int_equal(claim_got.layers.count, 1);
	assert_string_equal(claim_got.layers.ids[0], BOX_ID);
	assert_int_equal(claim_got.n_volumes, 1);
	assert_string_equal(claim_got.volumes[0].id, BOX_ID);
	assert_string_equal(claim_got.volumes[0].path, "/mnt/data");
	assert_int_equal(claim_got.volumes[0].read_only, 1);
}

static void answers_come_back_as_they_were(void **state)
{
	(void)state;
	assert_int_equal(try_box(&box_example), 0);
	assert_string_equal(box_got.id, BOX_ID);
	assert_int_equal(box_got.flags, BOX_WARM | BOX_WARM_NODE);
	assert_int_equal(box_got.pid, 4711);
	assert_limits(&box_got.limits, &limits_example);
	assert_memory_equal(box_got.step_ns, box_example.step_ns, sizeof(box_got.step_ns));
	assert_int_equal(try_info(&info_example), 0);
	assert_int_equal(info_got.version, 1);
	assert_int_equal(info_got.rootless, 1);
	assert_int_equal(info_got.cgroup, CGROUP_V2);
	assert_int_equal(info_got.landlock_abi, 6);
	assert_int_equal(info_got.cgroup_missing, CONTROLLER_CPUSET);
	assert_int_equal(info_got.persistent, 1);
	assert_string_equal(info_got.cgroup_why, "not ours");
	assert_int_equal(try_pool_state(&state_example), 0);
	assert_memory_equal(&pool_state_got, &state_example, sizeof(pool_state_got));
	assert_int_equal(try_builds(&builds_example), 0);
	assert_int_equal(builds_got.late, 1);
	assert_int_equal(builds_got.stuck, 2);
	assert_true(builds_got.given_up == UINT64_MAX);
	assert_string_equal(builds_got.why, "late");
}

static void what_is_told_of_a_box_comes_back_as_it_was(void **state)
{
	(void)state;
	assert_int_equal(try_box_info(&box_info_example), 0);
	assert_string_equal(box_info_got.id, BOX_ID);
	assert_string_equal(box_info_got.tag, "web-1");
	assert_int_equal(box_info_got.flags, BOX_WARM);
	assert_int_equal(box_info_got.pid, 4711);
	assert_limits(&box_info_got.limits, &limits_example);
	assert_int_equal(box_info_got.frozen, 1);
	assert_int_equal(box_info_got.adopted, 1);
}

static void a_tag_is_a_short_name_or_nothing(void **state)
{
	static const char longest[] = "abcdefghijklmnopqrstuvwxyz-01234";
	struct launch_spec s = claim_example;

	(void)state;
	_Static_assert(sizeof(longest) == TAG_MAX + 1, "as long as a tag may be");
	s.tag = NULL;
	assert_int_equal(try_claim(&s), 0);
	assert_string_equal(claim_got.tag, "");
	s.tag = longest;
	assert_int_equal(try_claim(&s), 0);
	s.tag = "abcdefghijklmnopqrstuvwxyz-012345";
	assert_int_equal(try_claim(&s), -EINVAL);
}

static void usage_is_a_part_of_other_messages(void **state)
{
	struct box_usage got;
	struct wire_head head;
	struct wr w;
	struct rd r;

	(void)state;
	wire_begin(&w, frame, sizeof(frame), L_GONE, 1);
	wr_str(&w, BOX_ID);
	launch_wr_usage(&w, &usage_example);
	assert_int_equal(wire_open(frame, (size_t)wire_finish(&w), &head, &r), 0);
	assert_string_equal(rd_str(&r), BOX_ID);
	launch_rd_usage(&r, &got);
	assert_int_equal(rd_end(&r), 0);
	assert_memory_equal(&got, &usage_example, sizeof(got));
}

/* Each row changes one thing of a good message to what must be refused. */
static void values_out_of_bounds_are_refused(void **state)
{
	struct template_spec t;
	struct pool_spec p;
	struct launch_spec c;
	struct launch_box b;
	struct launch_box_info n;
	struct launch_info i;

	(void)state;
#define REFUSED(name, var, change)                           \
	do {                                                 \
		var = name##_example;                        \
		change;                                      \
		assert_int_equal(try_##name(&var), -EINVAL); \
	} while (0)
	REFUSED(template, t, t.id = 0);
	REFUSED(template, t, t.id = TEMPLATE_MAX + 1);
	REFUSED(template, t, t.root = ROOT_KIND_COUNT);
	REFUSED(template, t, t.level = LEVEL_COUNT);
	REFUSED(template, t, t.net = NET_COUNT);
	REFUSED(template, t, t.flags = 1 << 7);
	REFUSED(pool, p, p.template_id = 0);
	REFUSED(pool, p, p.template_id = TEMPLATE_MAX + 1);
	REFUSED(pool, p, p.min = p.max + 1);
	REFUSED(claim, c, c.template_id = 0);
	REFUSED(claim, c, c.template_id = TEMPLATE_MAX + 1);
	REFUSED(claim, c, c.flags = 1 << 1);
	REFUSED(box, b, b.id = "../../etc");
	REFUSED(box, b, b.id = "");
	REFUSED(box, b, b.flags = 1 << 3);
	REFUSED(claim, c, c.tag = "A");
	REFUSED(claim, c, c.tag = "../x");
	REFUSED(box_info, n, n.id = "../../etc");
	REFUSED(box_info, n, n.tag = "a b");
	REFUSED(box_info, n, n.flags = 1 << 3);
	REFUSED(box_info, n, n.frozen = 2);
	REFUSED(box_info, n, n.adopted = 2);
	REFUSED(info, i, i.persistent = 2);
	REFUSED(info, i, i.rootless = 2);
	REFUSED(info, i, i.cgroup = CGROUP_V2 + 1);
	REFUSED(info, i, i.cgroup_missing = 1 << 5);
#undef REFUSED
}

static void cut_or_changed_frames_do_no_harm(void **state)
{
	(void)state;
#define TORTURE(name, v) \
	frame_torture(frame, (size_t)launch_put_##name(frame, sizeof(frame), 1, v), decode_##name)
	TORTURE(template, &template_example);
	TORTURE(pool, &pool_example);
	TORTURE(claim, &claim_example);
	TORTURE(box, &box_example);
	TORTURE(box_info, &box_info_example);
	TORTURE(info, &info_example);
	TORTURE(pool_state, &state_example);
	TORTURE(builds, &builds_example);
#undef TORTURE
}

static void unset_limits_are_the_defaults_and_never_unlimited(void **state)
{
	struct limits l = { 0 };

	(void)state;
	assert_int_equal(spec_fill_limits(&l, NULL, NULL), 0);
	assert_true(l.memory_bytes == LIMIT_MEMORY_DEFAULT);
	assert_true(l.disk_bytes == LIMIT_MEMORY_DEFAULT / 2);
	assert_int_equal(l.inodes, LIMIT_INODES_DEFAULT);
	assert_int_equal(l.cpu_milli, LIMIT_CPU_DEFAULT);
	assert_true(l.cpu_mask == 0);
	assert_int_equal(l.pids, LIMIT_PIDS_DEFAULT);
	assert_int_equal(l.nofile, LIMIT_NOFILE_DEFAULT);
}

static void unset_limits_come_from_the_template(void **state)
{
	struct limits l = { .pids = 10 }, want = limits_example;

	(void)state;
	assert_int_equal(spec_fill_limits(&l, &limits_example, NULL), 0);
	want.pids = 10;
	assert_limits(&l, &want);
	/* A template that leaves something open stands on the defaults too. */
	l = (struct limits){ 0 };
	assert_int_equal(spec_fill_limits(&l, &(struct limits){ .pids = 9 }, NULL), 0);
	assert_int_equal(l.pids, 9);
	assert_int_equal(l.nofile, LIMIT_NOFILE_DEFAULT);
	assert_true(l.disk_bytes == LIMIT_MEMORY_DEFAULT / 2);
}

static uint64_t disk_for(uint64_t memory, uint64_t disk, uint64_t base_disk)
{
	struct limits l = { .memory_bytes = memory, .disk_bytes = disk };
	struct limits base = { .memory_bytes = 256 * MIB, .disk_bytes = base_disk };

	assert_int_equal(spec_fill_limits(&l, &base, NULL), 0);
	return l.disk_bytes;
}

static void an_unnamed_disk_is_half_of_the_memory_at_most(void **state)
{
	(void)state;
	assert_true(disk_for(0, 0, 0) == 128 * MIB);
	assert_true(disk_for(64 * MIB, 0, 0) == 32 * MIB);
	assert_true(disk_for(1024 * MIB, 0, 0) == 512 * MIB);
	assert_true(disk_for(8192 * MIB, 0, 0) == LIMIT_DISK_DEFAULT);
	assert_true(disk_for(0, 0, 200 * MIB) == 200 * MIB);
	assert_true(disk_for(0, 256 * MIB, 0) == 256 * MIB);
	/* Less memory alone is a good request, though the template's disk would not fit. */
	assert_true(disk_for(64 * MIB, 0, 200 * MIB) == 32 * MIB);
}

static void each_limit_is_held_at_both_ends(void **state)
{
	static const struct {
		const char *name;
		size_t at, size;
		uint64_t min, max;
	} rows[] = {
#define ROW(field, lo, hi) \
	{ #field, offsetof(struct limits, field), sizeof(((struct limits *)0)->field), lo, hi }
		ROW(memory_bytes, LIMIT_MEMORY_MIN, LIMIT_MEMORY_MAX),
		ROW(disk_bytes, LIMIT_DISK_MIN, 256 * MIB),
		ROW(inodes, LIMIT_INODES_MIN, LIMIT_INODES_MAX),
		ROW(cpu_milli, LIMIT_CPU_MIN, LIMIT_CPU_MAX),
		ROW(pids, LIMIT_PIDS_MIN, LIMIT_PIDS_MAX),
		ROW(nofile, LIMIT_NOFILE_MIN, LIMIT_NOFILE_MAX),
#undef ROW
	};

	(void)state;
	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		uint64_t values[] = { rows[i].min, rows[i].max, rows[i].min - 1, rows[i].max + 1 };

		for (int k = 0; k < 4; k++) {
			struct limits l = { 0 }, before;
			struct err err = { 0 };
			char want[240];

			memcpy((char *)&l + rows[i].at, &values[k], rows[i].size);
			before = l;
			if (k < 2) {
				assert_int_equal(spec_fill_limits(&l, NULL, &err), 0);
				assert_memory_equal((char *)&l + rows[i].at, &values[k],
						    rows[i].size);
				continue;
			}
			assert_int_equal(spec_fill_limits(&l, NULL, &err), -EINVAL);
			assert_memory_equal(&l, &before, sizeof(l));
			(void)snprintf(
				want, sizeof(want), "limit %s is %llu, allowed are %llu to %llu",
				rows[i].name, (unsigned long long)values[k],
				(unsigned long long)rows[i].min, (unsigned long long)rows[i].max);
			assert_memory_equal(err.text, want, strlen(want));
		}
	}
}

static void too_much_disk_is_explained(void **state)
{
	struct limits l = { .memory_bytes = 64 * MIB, .disk_bytes = 65 * MIB };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(spec_fill_limits(&l, NULL, &err), -EINVAL);
	assert_string_equal(err.text,
			    "limit disk_bytes is 68157440, allowed are 1048576 to 67108864; "
			    "files live in memory, so disk must not exceed memory_bytes");
}

static void a_template_is_checked_whole(void **state)
{
	struct template_spec t = template_example;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(spec_check_template(&t, &err), 0);
	assert_int_equal(err.code, 0);
	t.preload = t.preload_node = NULL;
	t.limits = (struct limits){ 0 };
	assert_int_equal(spec_check_template(&t, &err), 0);
	t.id = TEMPLATE_MAX + 1;
	assert_int_equal(spec_check_template(&t, &err), -EINVAL);
	assert_string_equal(err.text, "template id is 257, allowed are 1 to 256");
	t = template_example;
	t.net = 9;
	assert_int_equal(spec_check_template(&t, &err), -EINVAL);
	assert_string_equal(err.text, "template net is 9, allowed are 0 to 1");
	t = template_example;
	t.flags = 0xe0;
	assert_int_equal(spec_check_template(&t, &err), -EINVAL);
	assert_string_equal(err.text, "template flags are 0xe0, known are 0x7f");
	t = template_example;
	t.limits.pids = 1;
	assert_int_equal(spec_check_template(&t, &err), -EINVAL);
	assert_string_equal(err.text, "limit pids is 1, allowed are 4 to 32768");
}

static void writable_paths_lead_nowhere_else(void **state)
{
	static const char *const good[] = { "", "/a", "/opt/a:/var/b-c_d.e", "/procs", "/a/proc" };
	static const char *const bad[] = { "/",       "a",        "/a/",   "/a//b",  "/..",
					   "/a/../b", "/a/./b",   "/a:",   ":/a",    "/a::/b",
					   "/a b",    "/a\n",     "/proc", "/sys/x", "/dev",
					   "/a:/dev", "/\xc3\xa9" };
	static char big[TEMPLATE_WRITABLE_MAX + 2];
	struct template_spec t = template_example;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t.writable = good[i];
		assert_int_equal(spec_check_template(&t, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t.writable = bad[i];
		assert_int_equal(spec_check_template(&t, NULL), -EINVAL);
	}
	memset(big, 'a', TEMPLATE_WRITABLE_MAX);
	big[0] = '/';
	t.writable = big;
	assert_int_equal(spec_check_template(&t, NULL), 0);
	big[TEMPLATE_WRITABLE_MAX] = 'a';
	assert_int_equal(spec_check_template(&t, NULL), -EINVAL);
	t.writable = "/a"; /* of a root that is not writable */
	t.flags = 0;
	assert_int_equal(spec_check_template(&t, NULL), -EINVAL);
}

static void nothing_but_module_names_is_preloaded(void **state)
{
	static const char *const good[] = { "", "numpy", "a,b", "os.path", "_x9.y_,Z" };
	static const char *const bad[] = { ",",    "a,",  ",a",       "a,,b", "a..b", ".a",
					   "a.",   "9a",  "a b",      "a;b",  "a\nb", "a'",
					   "a.9b", "a,9", "\xc3\xa9", "../",  "a-b",  "(x)" };
	static char big[1026];
	struct template_spec t = template_example;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t.preload = good[i];
		assert_int_equal(spec_check_template(&t, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t.preload = bad[i];
		assert_int_equal(spec_check_template(&t, NULL), -EINVAL);
	}
	memset(big, 'a', 1024);
	t.preload = big;
	assert_int_equal(spec_check_template(&t, NULL), 0);
	big[1024] = 'a';
	assert_int_equal(spec_check_template(&t, NULL), -E2BIG);
}

static void nothing_but_names_of_packages_is_preloaded_by_node(void **state)
{
	static const char *const good[] = { "",         "lodash", "a,b", "@scope/name/part.js",
					    "left-pad", "a_1.b",  "9p" };
	static const char *const bad[] = { ",",      "a,",   ",a",   "a,,b", "a/../b", "./a",
					   "/etc/x", "-r",   "a b",  "a'",   "a\nb",   "a`",
					   "a,/b",   "a,.b", "a\\b", "a:b",  "(x)",    "\xc3\xa9" };
	static char big[TEMPLATE_PRELOAD_MAX + 2];
	struct template_spec t = template_example;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
		t.preload_node = good[i];
		assert_int_equal(spec_check_template(&t, NULL), 0);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
		t.preload_node = bad[i];
		assert_int_equal(spec_check_template(&t, NULL), -EINVAL);
	}
	memset(big, 'a', TEMPLATE_PRELOAD_MAX);
	t.preload_node = big;
	assert_int_equal(spec_check_template(&t, NULL), 0);
	big[TEMPLATE_PRELOAD_MAX] = 'a';
	assert_int_equal(spec_check_template(&t, NULL), -E2BIG);
}

static void a_reason_is_no_longer_than_it_may_be(void **state)
{
	char why[WHY_MAX + 2] = { 0 };
	struct launch_box box = box_example;

	(void)state;
	memset(why, 'w', WHY_MAX);
	box.why = why;
	assert_int_equal(try_box(&box), 0);
	assert_string_equal(box_got.why, why);
	why[WHY_MAX] = 'w';
	assert_int_equal(try_box(&box), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_come_back_as_they_were),
		cmocka_unit_test(answers_come_back_as_they_were),
		cmocka_unit_test(what_is_told_of_a_box_comes_back_as_it_was),
		cmocka_unit_test(a_tag_is_a_short_name_or_nothing),
		cmocka_unit_test(usage_is_a_part_of_other_messages),
		cmocka_unit_test(values_out_of_bounds_are_refused),
		cmocka_unit_test(cut_or_changed_frames_do_no_harm),
		cmocka_unit_test(unset_limits_are_the_defaults_and_never_unlimited),
		cmocka_unit_test(unset_limits_come_from_the_template),
		cmocka_unit_test(an_unnamed_disk_is_half_of_the_memory_at_most),
		cmocka_unit_test(each_limit_is_held_at_both_ends),
		cmocka_unit_test(too_much_disk_is_explained),
		cmocka_unit_test(a_template_is_checked_whole),
		cmocka_unit_test(nothing_but_module_names_is_preloaded),
		cmocka_unit_test(nothing_but_names_of_packages_is_preloaded_by_node),
		cmocka_unit_test(a_reason_is_no_longer_than_it_may_be),
		cmocka_unit_test(writable_paths_lead_nowhere_else),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
