/* Layers that a box, or somebody with a hand on the disk, has prepared to get at others. */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/fd.h"
#include "launch/disk.h"
#include "persist_rig.h"

#define L1 "layeraaaaaaaaaaaaaa1"
#define V1 "volumeaaaaaaaaaaaaa1"
#define WRITABLE 3u

static int open_rig(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct template_spec w = { .id = WRITABLE, .flags = TEMPLATE_WRITABLE_ROOT, .preload = "" };

	if (!r || !rig_open(r, "auto"))
		return -1;
	*state = r;
	return launcher_template_sync(r->launcher, &w, -1, &r->err);
}

static int close_rig(void **state)
{
	struct rig *r = *state;
	struct listed boxes[BOXES_MAX];

	for (size_t n = rig_list(r, boxes); n > 0; n--)
		rig_destroy(r, boxes[n - 1].id);
	(void)launcher_layer_drop_sync(r->launcher, L1, NULL);
	(void)launcher_volume_drop_sync(r->launcher, V1, NULL);
	for (int i = 0; i < 3000 && rig_count_disk(r) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(rig_count_disk(r), 0);
	rig_close(r);
	free(r);
	return 0;
}

static struct rig *need_root(void **state)
{
	struct rig *r = *state;

	if (launcher_info(r->launcher)->rootless ||
	    launcher_info(r->launcher)->cgroup_missing & CONTROLLER_FREEZER)
		skip(); /* the suite runs as root: other ids and nodes have to be made */
	return r;
}

/* A box that runs a line, and its layer; the box lives on. */
static void prepare(struct rig *r, const struct launch_spec *spec, const char *user,
		    const char *line, uint32_t flags, struct held *ret)
{
	struct guest_exec e = { .argc = 3,
				.argv = { "/bin/sh", "-c", line },
				.user = user,
				.cwd = "/workspace",
				.code = "" };
	struct snapshot_spec s = { .layer_id = L1, .flags = flags | SNAPSHOT_VOLATILE };

	rig_claim(r, spec, ret);
	rig_run(r, ret, &e, "ok\n");
	s.box_id = ret->box.id;
	if (launcher_snapshot_sync(r->launcher, &s, NULL, &r->err) < 0)
		fail_msg("snapshot: %s", r->err.text);
}

static void begin(struct rig *r, uint32_t template_id, struct held *ret)
{
	struct launch_spec spec = { .template_id = template_id,
				    .layers = { .count = 1, .ids = { L1 } } };

	rig_claim(r, &spec, ret);
}

static void end(struct rig *r, struct held *h)
{
	rig_destroy(r, h->box.id);
	rig_drop(h);
}

static const struct launch_spec plain = { .template_id = 1 };
static const struct launch_spec writable = { .template_id = WRITABLE };

static void set_user_id_gives_nothing(void **state)
{
	struct rig *r = need_root(state);
	struct held h;
	struct stat st;

	prepare(r, &writable, "root", "cp /usr/bin/id /opt/id && chmod 6755 /opt/id && echo ok",
		SNAPSHOT_ROOT, &h);
	end(r, &h);
	assert_int_equal(fstatat(r->dir_fd, "layers/" L1 "/root/opt/id", &st, 0), 0);
	assert_true(st.st_mode & S_ISUID);
	assert_true(st.st_uid == LAYER_BASE && st.st_gid == LAYER_BASE);
	begin(r, HOST, &h);
	rig_expect(r, &h, "stat -c '%a %U' /opt/id; /opt/id -u; /opt/id -g",
		   "6755 root\n1000\n1000\n");
	end(r, &h);
}

static void a_device_node_opens_nothing(void **state)
{
	struct rig *r = need_root(state);
	struct held h;

	prepare(r, &writable, "root", "mkdir /opt/x && echo ok", SNAPSHOT_ROOT, &h);
	end(r, &h);
	assert_int_equal(
		mknodat(r->dir_fd, "layers/" L1 "/workspace/null", S_IFCHR | 0666, makedev(1, 3)),
		0);
	assert_int_equal(fchmodat(r->dir_fd, "layers/" L1 "/workspace/null", 0666, 0), 0);
	assert_int_equal(
		mknodat(r->dir_fd, "layers/" L1 "/root/opt/null", S_IFCHR | 0666, makedev(1, 3)),
		0);
	assert_int_equal(fchmodat(r->dir_fd, "layers/" L1 "/root/opt/null", 0666, 0), 0);
	begin(r, WRITABLE, &h);
	rig_expect(r, &h,
		   "(cat /workspace/null && echo open) 2>&1 | grep -c denied; "
		   "(cat /opt/null && echo open) 2>&1 | grep -c denied; cat /dev/null && echo dev",
		   "1\n1\ndev\n");
	end(r, &h);
}

static void quiet(void *user, int code, const char *text)
{
	(void)user;
	(void)code;
	(void)text;
}

static void boxes_of_one_layer_share_neither_writes_nor_locks(void **state)
{
	static const struct guest_callbacks none = { .failed = quiet };
	struct guest_exec hold = { .argc = 4,
				   .argv = { "/usr/bin/flock", "/workspace/f", "/bin/sleep", "30" },
				   .user = "",
				   .cwd = "/",
				   .code = "" };
	struct rig *r = need_root(state);
	struct held source, a, b;
	char text[16] = "";
	uint32_t id;
	int fd;

	prepare(r, &plain, "", "echo layer >f && echo ok", 0, &source);
	begin(r, HOST, &a);
	begin(r, HOST, &b);
	assert_int_equal(guest_exec(a.guest, &hold, &none, NULL, &id, &r->err), 0);
	rig_expect(r, &a,
		   "for i in 1 2 3 4 5 6 7 8 9; do flock -n /workspace/f true || break; sleep 0.1; "
		   "done; flock -n /workspace/f true || echo held",
		   "held\n");
	rig_expect(r, &b, "flock -n /workspace/f echo free", "free\n");
	rig_expect(r, &source, "flock -n /workspace/f echo free", "free\n");
	rig_expect(r, &b, "echo b >/workspace/f; rm -f /workspace/f; ls /workspace | wc -l", "0\n");
	rig_expect(r, &a, "cat /workspace/f; echo a >>/workspace/f", "layer\n");
	fd = openat(r->dir_fd, "layers/" L1 "/workspace/f", O_RDONLY | O_CLOEXEC);
	assert_true(fd_read_all(fd, text, sizeof(text) - 1) > 0);
	assert_string_equal(text, "layer\n");
	fd_close(fd);
	end(r, &a);
	end(r, &b);
	end(r, &source);
}

static void a_watch_does_not_see_another_box(void **state)
{
	static const char watch[] = "import ctypes, os, select\n"
				    "libc = ctypes.CDLL(None)\n"
				    "fd = libc.inotify_init1(0)\n"
				    "assert libc.inotify_add_watch(fd, b'/workspace', 0xfff) >= 0\n"
				    "open('/home/user/ready', 'w').close()\n"
				    "print(len(select.select([fd], [], [], 1.5)[0]))\n";
	struct rig *r = need_root(state);
	struct guest_exec e = { .argc = 3,
				.argv = { "/usr/bin/python3", "-c", watch },
				.user = "",
				.cwd = "/",
				.code = "" };
	struct guest_exec touch = { .argc = 3,
				    .argv = { "/bin/sh", "-c",
					      "for i in $(seq 40); do cat /workspace/f >/dev/null; "
					      "echo >>/workspace/f; sleep 0.1; done" },
				    .user = "",
				    .cwd = "/",
				    .code = "" };
	static const struct guest_callbacks none = { .failed = quiet };
	struct held source, a, b;
	uint32_t id;

	prepare(r, &plain, "", "echo layer >f && echo ok", 0, &source);
	begin(r, HOST, &a);
	begin(r, HOST, &b);
	assert_int_equal(guest_exec(b.guest, &touch, &none, NULL, &id, &r->err), 0);
	rig_run(r, &a, &e, "0\n");
	end(r, &a);
	end(r, &b);
	end(r, &source);
}

static int claim_code(struct rig *r, const struct launch_spec *spec)
{
	struct launcher_box box;
	int e = launcher_claim_sync(r->launcher, spec, &box, &r->err);

	assert_true(e < 0);
	return e;
}

static void what_stands_where_a_mount_is_to_be_ends_the_box(void **state)
{
	struct rig *r = need_root(state);
	struct launch_spec spec = { .template_id = HOST, .layers = { .count = 1, .ids = { L1 } } };
	struct held h;

	prepare(r, &writable, "root", "echo ok", SNAPSHOT_ROOT, &h);
	end(r, &h);
	assert_int_equal(symlinkat("/etc", r->dir_fd, "layers/" L1 "/root/proc"), 0);
	assert_int_equal(claim_code(r, &spec), -ENOTDIR);
	assert_int_equal(unlinkat(r->dir_fd, "layers/" L1 "/root/proc", 0), 0);
}

static void a_volume_is_not_led_astray_by_a_link(void **state)
{
	struct rig *r = need_root(state);
	struct launch_spec spec = { .template_id = HOST,
				    .layers = { .count = 1, .ids = { L1 } },
				    .n_volumes = 1,
				    .volumes = { { V1, "/workspace/v/x", 0 } } };
	struct held h;

	prepare(r, &plain, "", "ln -s /etc v && echo ok", 0, &h);
	end(r, &h);
	if (launcher_volume_make_sync(r->launcher, &(struct volume_spec){ V1, 16u << 20 },
				      &r->err) < 0)
		fail_msg("volume: %s", r->err.text);
	assert_int_equal(claim_code(r, &spec), -ENOTDIR);
	spec.volumes[0].path = "/workspace/w";
	rig_claim(r, &spec, &h);
	rig_expect(r, &h, "echo x >/workspace/w/f; cat /workspace/w/f", "x\n");
	end(r, &h);
}

static void a_full_box_makes_a_bounded_layer(void **state)
{
	static const char fill[] = "import os\n"
				   "os.makedirs('/workspace/many')\n"
				   "d = os.open('/workspace', os.O_RDONLY)\n"
				   "for i in range(700):\n"
				   "    os.mkdir('d', dir_fd=d)\n"
				   "    d, o = os.open('d', os.O_RDONLY, dir_fd=d), d\n"
				   "    os.close(o)\n"
				   "try:\n"
				   "    for i in range(1000000):\n"
				   "        os.symlink('x' * 100, '/workspace/many/%d' % i)\n"
				   "except OSError:\n"
				   "    print('ok')\n";
	struct rig *r = need_root(state);
	struct launch_spec spec = { .template_id = HOST, .limits = { .inodes = 2000 } };
	struct guest_exec e = { .argc = 3,
				.argv = { "/usr/bin/python3", "-c", fill },
				.user = "",
				.cwd = "/",
				.code = "" };
	struct snapshot_spec s = { .layer_id = L1 };
	struct layer_info info;
	struct held h;

	rig_claim(r, &spec, &h);
	rig_run(r, &h, &e, "ok\n");
	s.box_id = h.box.id;
	if (launcher_snapshot_sync(r->launcher, &s, &info, &r->err) < 0)
		fail_msg("snapshot: %s", r->err.text);
	assert_true(info.inodes > 1900 && info.inodes <= 2000);
	end(r, &h);
	begin(r, HOST, &h);
	rig_expect(r, &h, "find /workspace/d -type d | wc -l", "700\n");
	end(r, &h);
}

#define CASE(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(set_user_id_gives_nothing),
		CASE(a_device_node_opens_nothing),
		CASE(boxes_of_one_layer_share_neither_writes_nor_locks),
		CASE(a_watch_does_not_see_another_box),
		CASE(what_stands_where_a_mount_is_to_be_ends_the_box),
		CASE(a_volume_is_not_led_astray_by_a_link),
		CASE(a_full_box_makes_a_bounded_layer),
	};

	if (argc > 1)
		cmocka_set_test_filter(argv[1]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
