#include "launch/record.h"

#include <errno.h>
#include <string.h>

#include "check.h"
#include "launch/ids.h"
#include "spec/wire.h"

#define BOX_ID "abcdefghij0123456789"
#define BOOT_ID "01234567-89ab-cdef-0123-456789abcdef"

static struct record example(void)
{
	struct record rec = { .id = BOX_ID,
			      .tag = "web-1",
			      .boot_id = BOOT_ID,
			      .pid = 4711,
			      .start_ticks = UINT64_MAX,
			      .group = { CGROUP_V2, "1f", 1, 2, 3, 4 },
			      .uid_base = IDS_FIRST + 4096,
			      .root = ROOT_DIR,
			      .level = LEVEL_HIGH,
			      .net = NET_HOST,
			      .template_flags = TEMPLATE_WARM_NODE,
			      .box_flags = BOX_WARM };

	assert_int_equal(spec_fill_limits(&rec.limits, NULL, NULL), 0);
	return rec;
}

static char data[RECORD_MAX];
static struct record got;

static int again(const struct record *rec)
{
	long n = record_put(data, sizeof(data), rec);

	assert_true(n > 0);
	return record_get(data, (size_t)n, &got);
}

static void a_record_comes_back_as_it_was(void **state)
{
	struct record rec = example();

	(void)state;
	assert_int_equal(again(&rec), 0);
	assert_string_equal(got.id, BOX_ID);
	assert_string_equal(got.tag, "web-1");
	assert_string_equal(got.boot_id, BOOT_ID);
	assert_int_equal(got.pid, 4711);
	assert_true(got.start_ticks == UINT64_MAX);
	assert_int_equal(got.group.kind, CGROUP_V2);
	assert_string_equal(got.group.name, "1f");
	assert_int_equal(got.group.reused, 1);
	assert_int_equal(got.group.memory_base, 2);
	assert_int_equal(got.group.cpu_base_us, 3);
	assert_int_equal(got.group.oom_base, 4);
	assert_int_equal(got.uid_base, IDS_FIRST + 4096);
	assert_int_equal(got.root, ROOT_DIR);
	assert_int_equal(got.level, LEVEL_HIGH);
	assert_int_equal(got.net, NET_HOST);
	assert_int_equal(got.template_flags, TEMPLATE_WARM_NODE);
	assert_int_equal(got.box_flags, BOX_WARM);
	assert_memory_equal(&got.limits, &rec.limits, sizeof(rec.limits));
}

static void the_longest_record_fits(void **state)
{
	struct record rec = example();

	(void)state;
	rec.tag = "abcdefghijklmnopqrstuvwxyz-01234";
	memcpy(rec.group.name, "ffffffff", 9);
	assert_int_equal(again(&rec), 0);
	assert_string_equal(got.group.name, "ffffffff");
	rec.tag = "";
	rec.uid_base = 0; /* rootless */
	assert_int_equal(again(&rec), 0);
}

static void values_that_cannot_be_are_refused(void **state)
{
	struct record r;

	(void)state;
#define REFUSED(change)                                \
	do {                                           \
		r = example();                         \
		change;                                \
		memset(&got, 0x5a, sizeof(got));       \
		assert_int_equal(again(&r), -EINVAL);  \
		assert_int_equal(got.pid, 0x5a5a5a5a); \
	} while (0)
	REFUSED(r.id = "../../../etc/passwd0");
	REFUSED(r.id = "");
	REFUSED(r.tag = "a/b");
	REFUSED(r.boot_id = "");
	REFUSED(r.boot_id = BOOT_ID "0");
	REFUSED(r.boot_id = "01234567-89ab-cdef-0123-456789abcdeg");
	REFUSED(r.pid = 0);
	REFUSED(r.pid = 1);
	REFUSED(r.pid = 0x80000000u);
	REFUSED(r.group.kind = CGROUP_V2 + 1);
	REFUSED(r.group.reused = 2);
	REFUSED(r.group.name[0] = '\0');
	REFUSED(memcpy(r.group.name, "..", 3));
	REFUSED(memcpy(r.group.name, "1/2", 4));
	REFUSED(memcpy(r.group.name, "123456789", 10));
	REFUSED(memcpy(r.group.name, "A", 2));
	REFUSED(r.uid_base = 1000);
	REFUSED(r.uid_base = IDS_FIRST + 1);
	REFUSED(r.uid_base = IDS_FIRST - 4096);
	REFUSED(r.uid_base = IDS_FIRST + IDS_CHUNKS * IDS_CHUNK * 4096u);
	REFUSED(r.root = ROOT_KIND_COUNT);
	REFUSED(r.level = LEVEL_COUNT);
	REFUSED(r.net = NET_COUNT);
	REFUSED(r.template_flags = 1u << 7);
	REFUSED(r.box_flags = 1u << 3);
	REFUSED(r.limits.pids = 0);
	REFUSED(r.limits.disk_bytes = 0);
	REFUSED(r.limits.memory_bytes = 1);
#undef REFUSED
}

static void another_version_is_named_as_such(void **state)
{
	struct record rec = example();
	long n = record_put(data, sizeof(data), &rec);
	uint32_t id = 3;
	uint16_t type = 3;

	(void)state;
	memcpy(data + offsetof(struct wire_head, id), &id, sizeof(id));
	assert_int_equal(record_get(data, (size_t)n, &got), -EPROTONOSUPPORT);
	memcpy(data + offsetof(struct wire_head, type), &type, sizeof(type));
	assert_int_equal(record_get(data, (size_t)n, &got), -EPROTO);
}

/* Every length, and every byte changed: refused, or a record that is written as it was read. */
static void cut_or_changed_records_do_no_harm(void **state)
{
	struct record rec = example();
	long n = record_put(data, sizeof(data), &rec);
	char copy[RECORD_MAX], out[RECORD_MAX];

	(void)state;
	for (long i = 0; i < n; i++)
		assert_true(record_get(data, (size_t)i, &got) < 0);
	for (long i = 0; i < n; i++) {
		for (int bit = 0; bit < 8; bit++) {
			memcpy(copy, data, (size_t)n);
			copy[i] ^= (char)(1 << bit);
			if (record_get(copy, (size_t)n, &got) < 0)
				continue;
			assert_int_equal(record_put(out, sizeof(out), &got), n);
			assert_memory_equal(out, copy, (size_t)n);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_record_comes_back_as_it_was),
		cmocka_unit_test(the_longest_record_fits),
		cmocka_unit_test(values_that_cannot_be_are_refused),
		cmocka_unit_test(another_version_is_named_as_such),
		cmocka_unit_test(cut_or_changed_records_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
