#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "check.h"
#include "frame.h"
#include "spec/launch.h"

#define ID1 "abcdefghij0123456789"
#define ID2 "bbcdefghij0123456789"

static uint8_t frame[WIRE_FRAME_MAX];

static const struct snapshot_spec snapshot = { ID1, ID2, SNAPSHOT_ROOT | SNAPSHOT_VOLATILE };
static const struct layer_info layer = { ID1, UINT64_MAX, 2, 3, 1, 1 };
static const struct volume_spec volume = { ID1, VOLUME_BYTES_MAX };
static const struct volume_info volume_is = { ID1, ID2, 4, 3 };

#define DECODER(name, what)                                                  \
	static what name##_got;                                              \
	static int decode_##name(struct rd *r)                               \
	{                                                                    \
		return launch_get_##name(r, &name##_got);                    \
	}                                                                    \
	static int try_##name(const what *v)                                 \
	{                                                                    \
		long n = launch_put_##name(frame, sizeof(frame), 7, v);      \
		struct wire_head head;                                       \
		struct rd r;                                                 \
		assert_true(n > 0);                                          \
		assert_int_equal(wire_open(frame, (size_t)n, &head, &r), 0); \
		return decode_##name(&r);                                    \
	}
DECODER(snapshot, struct snapshot_spec)
DECODER(layer, struct layer_info)
DECODER(volume, struct volume_spec)
DECODER(volume_info, struct volume_info)

static void messages_about_disks_come_back_as_they_were(void **state)
{
	(void)state;
	assert_int_equal(try_snapshot(&snapshot), 0);
	assert_string_equal(snapshot_got.box_id, ID1);
	assert_string_equal(snapshot_got.layer_id, ID2);
	assert_int_equal(snapshot_got.flags, SNAPSHOT_ROOT | SNAPSHOT_VOLATILE);
	assert_int_equal(try_layer(&layer), 0);
	assert_string_equal(layer_got.id, ID1);
	assert_true(layer_got.bytes == UINT64_MAX && layer_got.inodes == 2);
	assert_true(layer_got.skipped == 3 && layer_got.whole && layer_got.used);
	assert_int_equal(try_volume(&volume), 0);
	assert_string_equal(volume_got.id, ID1);
	assert_true(volume_got.bytes == VOLUME_BYTES_MAX);
	assert_int_equal(try_volume_info(&volume_is), 0);
	assert_string_equal(volume_info_got.id, ID1);
	assert_string_equal(volume_info_got.box_id, ID2);
	assert_true(volume_info_got.bytes == 4 && volume_info_got.used == 3);
}

static void what_cannot_be_is_refused(void **state)
{
	(void)state;
	assert_int_equal(try_snapshot(&(struct snapshot_spec){ ID1, "../x", 0 }), -EINVAL);
	assert_int_equal(try_snapshot(&(struct snapshot_spec){ "", ID2, 0 }), -EINVAL);
	assert_int_equal(try_snapshot(&(struct snapshot_spec){ ID1, ID2, 1 << 4 }), -EINVAL);
	assert_int_equal(
		try_snapshot(&(struct snapshot_spec){ ID1, ID2, SNAPSHOT_ROOT | SNAPSHOT_AS_ROOT }),
		-EINVAL);
	assert_int_equal(try_layer(&(struct layer_info){ .id = "x" }), -EINVAL);
	assert_int_equal(try_layer(&(struct layer_info){ .id = ID1, .whole = 2 }), -EINVAL);
	assert_int_equal(try_volume(&(struct volume_spec){ ID1, VOLUME_BYTES_MIN - 1 }), -EINVAL);
	assert_int_equal(try_volume(&(struct volume_spec){ ID1, VOLUME_BYTES_MAX + 1 }), -EINVAL);
	assert_int_equal(try_volume(&(struct volume_spec){ "..", VOLUME_BYTES_MIN }), -EINVAL);
	assert_int_equal(try_volume_info(&(struct volume_info){ .id = ID1, .box_id = "/" }),
			 -EINVAL);
}

static void cut_or_changed_frames_do_no_harm(void **state)
{
	(void)state;
	frame_torture(frame, (size_t)launch_put_snapshot(frame, sizeof(frame), 1, &snapshot),
		      decode_snapshot);
	frame_torture(frame, (size_t)launch_put_layer(frame, sizeof(frame), 1, &layer),
		      decode_layer);
	frame_torture(frame, (size_t)launch_put_volume(frame, sizeof(frame), 1, &volume),
		      decode_volume);
	frame_torture(frame, (size_t)launch_put_volume_info(frame, sizeof(frame), 1, &volume_is),
		      decode_volume_info);
}

static void a_volume_is_below_the_workspace_or_in_mnt(void **state)
{
	static const char *const good[] = { "/workspace/a", "/workspace/a/b.c/_-", "/mnt/data",
					    "/workspace/..a", "/mnt/.x" };
	static const char *const bad[] = { "",
					   "/",
					   "/workspace",
					   "/workspace/",
					   "/workspace//a",
					   "/workspace/a/",
					   "/workspace/../etc",
					   "/workspace/a/..",
					   "/workspace/.",
					   "/mnt",
					   "/mnt/",
					   "/mnt/a/b",
					   "/mnt/..",
					   "/etc/x",
					   "workspace/a",
					   "/workspace/a b",
					   "/workspacex/a" };
	char path[VOLUME_PATH_MAX + 2];

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++)
		assert_true(spec_volume_path_is_valid(good[i]));
	for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++)
		assert_false(spec_volume_path_is_valid(bad[i]));
	memset(path, 'a', sizeof(path));
	memcpy(path, "/mnt/", 5);
	path[VOLUME_PATH_MAX] = '\0';
	assert_true(spec_volume_path_is_valid(path));
	path[VOLUME_PATH_MAX] = 'a';
	path[VOLUME_PATH_MAX + 1] = '\0';
	assert_false(spec_volume_path_is_valid(path));
}

static void layers_are_few_and_different(void **state)
{
	struct layer_list l = { .count = 2, .ids = { ID1, ID2 } };
	struct err err = { 0 };

	(void)state;
	assert_int_equal(spec_check_layers(&l, NULL), 0);
	l.ids[1] = ID1;
	assert_int_equal(spec_check_layers(&l, &err), -EINVAL);
	assert_string_equal(err.text, "layer " ID1 " is named twice");
	l.ids[1] = "x";
	assert_int_equal(spec_check_layers(&l, NULL), -EINVAL);
	l.count = LAYERS_MAX + 1;
	assert_int_equal(spec_check_layers(&l, NULL), -EINVAL);
}

static int two_volumes(const char *a, const char *path_a, const char *b, const char *path_b)
{
	struct launch_spec s = { .template_id = 1,
				 .n_volumes = 2,
				 .volumes = { { a, path_a, 0 }, { b, path_b, 0 } } };

	return spec_check_launch(&s, NULL);
}

static void volumes_do_not_cover_each_other(void **state)
{
	struct launch_spec s = { .template_id = 1, .n_volumes = VOLUMES_MAX + 1 };

	(void)state;
	assert_int_equal(two_volumes(ID1, "/mnt/a", ID2, "/mnt/ab"), 0);
	assert_int_equal(two_volumes(ID1, "/mnt/a", ID1, "/mnt/b"), -EINVAL);
	assert_int_equal(two_volumes(ID1, "/mnt/a", ID2, "/mnt/a"), -EINVAL);
	assert_int_equal(two_volumes(ID1, "/workspace/a", ID2, "/workspace/a/b"), -EINVAL);
	assert_int_equal(two_volumes(ID1, "/workspace/a/b", ID2, "/workspace/a"), -EINVAL);
	assert_int_equal(spec_check_launch(&s, NULL), -EINVAL);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_about_disks_come_back_as_they_were),
		cmocka_unit_test(what_cannot_be_is_refused),
		cmocka_unit_test(cut_or_changed_frames_do_no_harm),
		cmocka_unit_test(a_volume_is_below_the_workspace_or_in_mnt),
		cmocka_unit_test(layers_are_few_and_different),
		cmocka_unit_test(volumes_do_not_cover_each_other),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
