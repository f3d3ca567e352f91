/* Boxes that write to disk: what bounds them, who sees what, and that nothing is left, whoever is
 * killed meanwhile. What layers do there is in test_disk.c, which runs both ways. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "persist_rig.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "launch/btrfs.h"
#include "launch/copy.h"
#include "launch/loop.h"

#define NOBODY 65534
#define L1 "layeraaaaaaaaaaaaaa1"
#define L2 "layeraaaaaaaaaaaaaa2"
#define MIB (1ull << 20)
#define DISK (32 * MIB)

static int open_rig(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));

	if (!r || !rig_open(r, "auto"))
		return -1;
	*state = r;
	return 0;
}

static int count_name(void *arg, int dir, const char *name)
{
	(void)dir;
	(void)name;
	++*(int *)arg;
	return 0;
}

/* The image as a launcher would mount it; nobody may have it now. */
static int mount_image(const struct rig *r)
{
	_close_ int image = openat(r->dir_fd, "layers.img", O_RDWR | O_CLOEXEC);
	_close_ int loop = -1;
	char path[LOOP_PATH_SIZE];
	struct err err = { 0 };
	int fd;

	assert_true(image >= 0);
	UNTIL(loop_find(image, path, &err) == -ENOENT);
	loop = loop_attach(image, path, &err);
	assert_true(loop >= 0);
	fd = btrfs_mount(path, &err);
	assert_true(fd >= 0);
	return fd;
}

static int count_in(int image, const char *name)
{
	_close_ int dir = openat(image, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int n = 0;

	assert_true(dir >= 0);
	assert_int_equal(copy_each_name(dir, count_name, &n, NULL), 0);
	return n;
}

/* Stops the launcher with all boxes gone, and looks. */
static int close_rig(void **state)
{
	struct rig *r = *state;
	struct listed boxes[BOXES_MAX];

	if (!r->launcher)
		rig_start(r);
	for (size_t n = rig_list(r, boxes); n > 0; n--)
		rig_destroy(r, boxes[n - 1].id);
	(void)launcher_layer_drop_sync(r->launcher, L2, NULL);
	(void)launcher_layer_drop_sync(r->launcher, L1, NULL);
	rig_stop(r);
	rig_start(r); /* what the first had no time for, the next does at its start */
	rig_stop(r);
	if (rig_is_on_disk()) {
		int left = 1;

		for (int i = 0; i < 100 && left > 0; i++) {
			_close_ int image = mount_image(r);

			left = count_in(image, "rooms") + count_in(image, "layers");
			if (left > 0) {
				image = fd_close(image);
				rig_start(r);
				(void)usleep(50000 + i * 20000); /* it ends with its launcher */
				rig_stop(r);
			}
		}
		assert_int_equal(left, 0);
	}
	rig_close(r);
	free(r);
	return 0;
}

static void claim(struct rig *r, const char *layer, struct held *ret)
{
	struct launch_spec spec = { .template_id = HOST,
				    .limits = { .memory_bytes = 256 * MIB, .disk_bytes = DISK } };

	if (layer)
		spec.layers.ids[spec.layers.count++] = layer;
	rig_claim(r, &spec, ret);
}

static void snap(struct rig *r, const struct held *h, const char *layer)
{
	struct snapshot_spec s = { h->box.id, layer, SNAPSHOT_VOLATILE };

	if (launcher_snapshot_sync(r->launcher, &s, NULL, &r->err) < 0)
		fail_msg("snapshot: %s", r->err.text);
}

static void end(struct rig *r, struct held *h)
{
	rig_destroy(r, h->box.id);
	rig_drop(h);
}

#define FILL                                                                                      \
	"head -c 64M /dev/urandom 2>/tmp/e >/workspace/f || true; s=$(stat -c %s /workspace/f); " \
	"test $s -gt 25000000 -a $s -le 33554432 && echo full"

static void bytes_are_bounded_in_all_places_together(void **state)
{
	struct rig *r = *state;
	struct held a, b;

	claim(r, NULL, &a);
	claim(r, NULL, &b);
	rig_expect(r, &a, FILL, "full\n");
	rig_expect(r, &a, "head -c 8M /dev/urandom >/home/user/g 2>/dev/null || echo full too",
		   "full too\n");
	/* It is the box's own bound, and what is deleted can be written again. */
	rig_expect(r, &b, "head -c 8M /dev/urandom >/workspace/f && echo ok", "ok\n");
	rig_expect(r, &a, "rm /workspace/f; head -c 20M /dev/urandom >/workspace/h && echo ok",
		   "ok\n");
	end(r, &a);
	end(r, &b);
}

#define FILES                                                                      \
	"import os\n"                                                              \
	"n = 0\n"                                                                  \
	"try:\n"                                                                   \
	" while n < 100000:\n"                                                     \
	"  os.close(os.open('/workspace/%0100d' % n, os.O_CREAT | os.O_WRONLY))\n" \
	"  n += 1\n"                                                               \
	"except OSError as e:\n"                                                   \
	" print('bounded', n > 100, e.errno in (28, 122))\n"                       \
	"for i in range(n): os.unlink('/workspace/%0100d' % i)\n"                  \
	"open('/workspace/x', 'w').write('x' * 10000)\n"

static void files_are_bounded_by_what_they_take(void **state)
{
	struct rig *r = *state;
	struct launch_spec spec = {
		.template_id = HOST, .limits = { .memory_bytes = 256 * MIB, .disk_bytes = 2 * MIB }
	};
	struct guest_exec e = { .argc = 3,
				.argv = { "/usr/bin/python3", "-c", FILES },
				.timeout_ms = 100000,
				.user = "",
				.cwd = "/",
				.code = "" };
	struct held h;

	rig_claim(r, &spec, &h);
	rig_run(r, &h, &e, "bounded True True\n");
	end(r, &h);
}

static void the_least_room_is_enough_to_begin(void **state)
{
	struct rig *r = *state;
	struct launch_spec spec = { .template_id = HOST,
				    .limits = { .memory_bytes = 64 * MIB,
						.disk_bytes = LIMIT_DISK_MIN } };
	struct held h;

	rig_claim(r, &spec, &h);
	rig_expect(r, &h, "echo hello >/workspace/f && cat /workspace/f", "hello\n");
	rig_expect(r, &h, "head -c 4M /dev/urandom >/workspace/g 2>/dev/null || echo full",
		   "full\n");
	end(r, &h);
}

/* Each would make something that the box's limit does not count, or tell of other boxes: a
 * subvolume, a snapshot, the tree of the whole file system, its devices, a sync of it all. */
#define CALLS                                                                                \
	"import fcntl, os\n"                                                                 \
	"for place in ('/workspace', '/home/user'):\n"                                       \
	" d = os.open(place, os.O_RDONLY)\n"                                                 \
	" name = b'sub'.ljust(4040, b'\\0')\n"                                               \
	" calls = {0x5000940e: bytes(8) + b'sub'.ljust(4088, b'\\0'),\n"                     \
	"  0x50009418: bytes(56) + name, 0x50009417: d.to_bytes(8, 'little') + bytes(48) + " \
	"name,\n"                                                                            \
	"  0x50009401: d.to_bytes(8, 'little') + b'sub'.ljust(4088, b'\\0'),\n"              \
	"  0xd0009411: bytes(4096), 0xd0009412: bytes(4096), 0x8400941f: bytes(1024),\n"     \
	"  0x8030942b: bytes(48), 0xc0109428: bytes(16), 0x9408: bytes(8)}\n"                \
	" for c, arg in calls.items():\n"                                                    \
	"  try:\n"                                                                           \
	"   fcntl.ioctl(d, c, bytearray(arg))\n"                                             \
	"   print('went through', hex(c), place)\n"                                          \
	"  except OSError as e:\n"                                                           \
	"   if e.errno not in (1, 13, 25): print('not refused', hex(c), e)\n"                \
	"print(os.listdir('/workspace'))\n"

static void calls_of_the_file_system_itself_do_not_reach_it(void **state)
{
	struct rig *r = *state;
	struct guest_exec e = { .argc = 3,
				.argv = { "/usr/bin/python3", "-c", CALLS },
				.timeout_ms = 60000,
				.user = "",
				.cwd = "/",
				.code = "" };
	struct held h;

	claim(r, NULL, &h);
	rig_run(r, &h, &e, "[]\n");
	end(r, &h);
}

static void a_box_sees_its_own_files_only(void **state)
{
	struct rig *r = *state;
	struct held a, b;

	claim(r, NULL, &a);
	claim(r, NULL, &b);
	rig_expect(r, &a, "echo secret >/workspace/secret; echo secret >/home/user/secret", "");
	rig_expect(r, &b, "ls /workspace; cat /workspace/../*/secret 2>/dev/null; ls /home/user",
		   "");
	rig_expect(r, &b, "grep -c -e rooms -e layers.img -e /dev/loop /proc/self/mountinfo; true",
		   "0\n");
	/* Where the room was mounted for it, there is nothing any more. */
	rig_expect(r, &b, "ls -A /tmp", "");
	end(r, &a);
	end(r, &b);
}

static void a_snapshot_takes_nothing_of_the_boxs_bound(void **state)
{
	struct rig *r = *state;
	struct held a, b;

	claim(r, NULL, &a);
	rig_expect(r, &a, "head -c 24M /dev/zero | tr '\\0' a >/workspace/f", "");
	snap(r, &a, L1);
	rig_expect(r, &a,
		   "rm /workspace/f; head -c 24M /dev/zero | tr '\\0' b >/workspace/f; echo $?",
		   "0\n");
	claim(r, L1, &b);
	rig_expect(r, &b, "head -c 24M /dev/zero | tr '\\0' a | cmp - /workspace/f && echo same",
		   "same\n");
	/* What it has of a layer is not its own; what it changes is. */
	rig_expect(r, &b, "head -c 6M /dev/urandom >/workspace/g; echo x >>/workspace/f; echo $?",
		   "0\n");
	end(r, &a);
	end(r, &b);
}

static bool is_shared(int fd)
{
	union {
		struct fiemap map;
		char space[sizeof(struct fiemap) + sizeof(struct fiemap_extent)];
	} m = { .map = { .fm_length = UINT64_MAX,
			 .fm_flags = FIEMAP_FLAG_SYNC,
			 .fm_extent_count = 1 } };

	assert_int_equal(ioctl(fd, FS_IOC_FIEMAP, &m), 0);
	assert_int_equal(m.map.fm_mapped_extents, 1);
	return m.map.fm_extents[0].fe_flags & FIEMAP_EXTENT_SHARED;
}

static void layers_share_the_blocks_of_large_files(void **state)
{
	struct rig *r = *state;
	struct held a;
	_close_ int image = -1, fd = -1;

	claim(r, NULL, &a);
	rig_expect(r, &a, "head -c 16M /dev/urandom >/workspace/f", "");
	snap(r, &a, L1);
	snap(r, &a, L2);
	end(r, &a);
	rig_stop(r);
	image = mount_image(r);
	fd = openat(image, "layers/" L1 "/workspace/f", O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	assert_true(is_shared(fd));
}

static void rooms_of_living_boxes_are_kept_and_others_removed(void **state)
{
	struct rig *r = *state;
	struct held kept, lost;
	char id[ID_LEN + 1];

	claim(r, NULL, &kept);
	claim(r, NULL, &lost);
	rig_expect(r, &kept, "echo here >/workspace/f", "");
	memcpy(id, kept.box.id, sizeof(id));
	rig_drop(&kept);
	rig_kill(r);
	assert_int_equal(kill(lost.box.pid, SIGKILL), 0);
	rig_drop(&lost);
	rig_start(r);
	rig_attach(r, id, &kept);
	rig_expect(r, &kept,
		   "cat /workspace/f; head -c 64M /dev/zero >/workspace/g 2>/dev/null || "
		   "echo bounded",
		   "here\nbounded\n");
	snap(r, &kept, L1);
	end(r, &kept);
	claim(r, L1, &kept);
	rig_expect(r, &kept, "cat /workspace/f", "here\n");
	end(r, &kept);
}

/* As after the operator has changed his mind, with boxes alive. */
static void layers_and_boxes_outlive_a_change_of_the_place(void **state)
{
	struct rig *r = *state;
	const char *bytes = getenv("HOLT_TEST_LAYERS");
	struct held a, b;
	char id[ID_LEN + 1];

	claim(r, NULL, &a);
	rig_expect(r, &a, "echo one >/workspace/f; head -c 1M /dev/zero >/workspace/g", "");
	snap(r, &a, L1);
	memcpy(id, a.box.id, sizeof(id));
	rig_drop(&a);
	rig_stop(r);
	assert_int_equal(unsetenv("HOLT_TEST_LAYERS"), 0);
	rig_start(r); /* in memory */
	rig_attach(r, id, &a);
	claim(r, L1, &b);
	rig_expect(r, &b, "cat /workspace/f; echo two >/workspace/h", "one\n");
	snap(r, &b, L2);
	rig_drop(&b);
	rig_stop(r);
	assert_int_equal(setenv("HOLT_TEST_LAYERS", bytes, 1), 0);
	rig_start(r); /* on disk again */
	claim(r, L2, &b);
	rig_expect(r, &b, "cat /workspace/h", "two\n");
	rig_expect(r, &a, "cat /workspace/f", "one\n");
	end(r, &b);
	end(r, &a);
}

static void an_image_grows_and_its_boxes_live_on(void **state)
{
	struct rig *r = *state;
	const char *bytes = getenv("HOLT_TEST_LAYERS");
	struct held h;
	char id[ID_LEN + 1], more[24];
	struct stat st;

	claim(r, NULL, &h);
	rig_expect(r, &h, "echo here >/workspace/f", "");
	memcpy(id, h.box.id, sizeof(id));
	rig_drop(&h);
	rig_stop(r);
	(void)snprintf(more, sizeof(more), "%llu", 1280 * MIB);
	assert_int_equal(setenv("HOLT_TEST_LAYERS", more, 1), 0);
	rig_start(r);
	assert_int_equal(setenv("HOLT_TEST_LAYERS", bytes, 1), 0);
	assert_int_equal(fstatat(r->dir_fd, "layers.img", &st, 0), 0);
	assert_true((uint64_t)st.st_size == 1280 * MIB);
	rig_attach(r, id, &h);
	/* What the box's files lie on says how large it is. */
	rig_expect(r, &h,
		   "cat /workspace/f; test $(stat -fc '%b*%S' /workspace | tr '*' ' ' | "
		   "(read b s; echo $((b * s >> 20)))) -eq 1280 && echo grown",
		   "here\ngrown\n");
	end(r, &h);
}

static int open_small(void **state)
{
	(void)setenv("HOLT_TEST_LAYERS", "268435456", 1);
	return open_rig(state);
}

/* The sum of all limits is more than there is: the last see that it is full, and when they have
 * gone, all is well again. */
static void a_full_image_is_no_lost_image(void **state)
{
	struct rig *r = *state;
	struct launch_spec spec = {
		.template_id = HOST,
		.limits = { .memory_bytes = 512 * MIB, .disk_bytes = 256 * MIB, .cpu_milli = 2000 }
	};
	struct held h[2];

	for (int i = 0; i < 2; i++) {
		rig_claim(r, &spec, &h[i]);
		rig_expect(r, &h[i],
			   "head -c 160M /dev/zero >/workspace/f 2>/dev/null; i=0; "
			   "while test $i -lt 100 && echo $i >/workspace/$i; do i=$((i + 1)); done "
			   "2>/dev/null; sync; echo alive",
			   "alive\n");
	}
	for (int i = 0; i < 2; i++)
		end(r, &h[i]);
	rig_stop(r);
	rig_start(r);
	for (int i = 0; i < 200; i++) { /* the kernel frees it when it comes to it */
		struct guest_result res = { 0 };
		struct guest_exec e = { .argc = 3,
					.argv = { "/bin/sh", "-c",
						  "head -c 100M /dev/zero >/workspace/f" },
					.timeout_ms = 60000,
					.user = "",
					.cwd = "/",
					.code = "" };
		bool fits;

		rig_claim(r, &spec, &h[0]);
		assert_int_equal(guest_exec_sync(h[0].guest, &e, NULL, 0, &res, &r->err), 0);
		fits = res.exit.code == 0;
		guest_result_done(&res);
		end(r, &h[0]);
		if (fits)
			return;
		(void)usleep(100000);
	}
	fail_msg("what was freed cannot be used again");
}

static void without_root_it_is_refused_with_the_reason(void **state)
{
	char dir[] = "/tmp/holt-room.XXXXXX";
	_close_ int fd = mkdtemp(dir) ? open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .persistent = true,
				      .state_fd = fd,
				      .layers_bytes = 1ull << 30 };
	struct launcher *l = NULL;
	struct err err = { 0 };

	(void)state;
	assert_int_equal(launcher_start(&o, &l, &err), -EOPNOTSUPP);
	assert_non_null(strstr(err.text, "root's rights"));
	(void)unlinkat(fd, "lock", 0);
	(void)unlinkat(fd, "instance", 0);
	assert_int_equal(rmdir(dir), 0);
}

static void an_image_that_is_none_is_refused(void **state)
{
	struct rig *r = *state;
	struct launcher_options o = { .program = getenv("HOLT_LAUNCH"),
				      .persistent = true,
				      .state_fd = r->dir_fd,
				      .layers_bytes = 1ull << 30 };
	struct launcher *l = NULL;

	rig_stop(r);
	assert_int_equal(renameat(r->dir_fd, "layers.img", r->dir_fd, "good"), 0);
	rig_put(r, "layers.img", "no file system", 14);
	assert_true(launcher_start(&o, &l, &r->err) < 0);
	assert_non_null(strstr(r->err.text, "layers on disk"));
	assert_int_equal(renameat(r->dir_fd, "good", r->dir_fd, "layers.img"), 0);
}

/* usage: test_room root|nobody */
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(bytes_are_bounded_in_all_places_together),
		CASE(files_are_bounded_by_what_they_take),
		CASE(the_least_room_is_enough_to_begin),
		CASE(calls_of_the_file_system_itself_do_not_reach_it),
		CASE(a_box_sees_its_own_files_only),
		CASE(a_snapshot_takes_nothing_of_the_boxs_bound),
		CASE(layers_share_the_blocks_of_large_files),
		CASE(rooms_of_living_boxes_are_kept_and_others_removed),
		CASE(layers_and_boxes_outlive_a_change_of_the_place),
		CASE(an_image_that_is_none_is_refused),
		CASE(an_image_grows_and_its_boxes_live_on),
		cmocka_unit_test_setup_teardown(a_full_image_is_no_lost_image, open_small,
						close_rig),
	};
	const struct CMUnitTest nobodys[] = {
		cmocka_unit_test(without_root_it_is_refused_with_the_reason),
	};
	bool is_nobody = argc > 1 && strcmp(argv[1], "nobody") == 0;

	if (is_nobody && geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return 1;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	if (is_nobody || geteuid() != 0)
		return cmocka_run_group_tests(nobodys, NULL, NULL);
	if (rig_check_disk())
		return RIG_SKIP;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
