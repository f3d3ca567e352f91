/* Layers, snapshots and volumes with real boxes: what a box has written is found by the next one,
 * and by nobody else; nothing is left behind, whoever is killed meanwhile. */
#include <errno.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "persist_rig.h"

#define NOBODY 65534
#define L1 "layeraaaaaaaaaaaaaa1"
#define L2 "layeraaaaaaaaaaaaaa2"
#define L3 "layeraaaaaaaaaaaaaa3"
#define V1 "volumeaaaaaaaaaaaaa1"
#define WRITABLE 3u
#define IMAGE 4u

static int open_rig(void **state)
{
	struct rig *r = calloc(1, sizeof(*r));
	struct template_spec w = { .id = WRITABLE, .flags = TEMPLATE_WRITABLE_ROOT, .preload = "" };

	if (!r || !rig_open(r, "auto"))
		return -1;
	*state = r;
	return launcher_template_sync(r->launcher, &w, -1, &r->err);
}

static void on_layer(void *user, const struct layer_info *layer)
{
	char(*ids)[ID_LEN + 1] = user;

	for (; (*ids)[0]; ids++)
		;
	memcpy(*ids, layer->id, ID_LEN + 1);
}

static void on_volume(void *user, const struct volume_info *volume)
{
	memcpy(user, volume->id, ID_LEN + 1);
}

static int close_rig(void **state)
{
	struct rig *r = *state;
	char ids[64][ID_LEN + 1] = { "" }, volume[ID_LEN + 1] = "";
	struct listed boxes[BOXES_MAX];

	for (size_t n = rig_list(r, boxes); n > 0; n--)
		rig_destroy(r, boxes[n - 1].id);
	for (uint32_t i = WRITABLE; i <= IMAGE; i++)
		(void)launcher_template_drop_sync(r->launcher, i, NULL);
	assert_int_equal(launcher_layers_sync(r->launcher, on_layer, ids, &r->err), 0);
	for (size_t i = 0; ids[i][0]; i++)
		if (launcher_layer_drop_sync(r->launcher, ids[i], &r->err) < 0)
			fail_msg("drop: %s", r->err.text);
	assert_int_equal(launcher_volumes_sync(r->launcher, on_volume, volume, &r->err), 0);
	if (volume[0] && launcher_volume_drop_sync(r->launcher, volume, &r->err) < 0)
		fail_msg("drop: %s", r->err.text);
	for (int i = 0; i < 3000 && rig_count_disk(r) > 0; i++)
		(void)usleep(10000);
	assert_int_equal(rig_count_disk(r), 0);
	rig_close(r);
	free(r);
	return 0;
}

static struct rig *need_freezer(void **state)
{
	struct rig *r = *state;

	if (launcher_info(r->launcher)->cgroup_missing & CONTROLLER_FREEZER)
		skip(); /* nothing can stand still: see without_a_freezer_... */
	return r;
}

static struct rig *need_root(void **state)
{
	struct rig *r = need_freezer(state);

	if (launcher_info(r->launcher)->rootless)
		skip(); /* needs loop devices */
	return r;
}

static struct layer_info snap(struct rig *r, struct held *h, const char *layer, uint32_t flags)
{
	struct snapshot_spec s = { h->box.id, layer, flags };
	struct layer_info info = { 0 };

	if (launcher_snapshot_sync(r->launcher, &s, &info, &r->err) < 0)
		fail_msg("snapshot: %s", r->err.text);
	return info;
}

static void claim(struct rig *r, uint32_t template_id, const char *a, const char *b,
		  struct held *ret)
{
	struct launch_spec spec = { .template_id = template_id };

	if (a)
		spec.layers.ids[spec.layers.count++] = a;
	if (b)
		spec.layers.ids[spec.layers.count++] = b;
	rig_claim(r, &spec, ret);
}

static void end(struct rig *r, struct held *h)
{
	rig_destroy(r, h->box.id);
	rig_drop(h);
}

static void a_box_begins_with_what_another_has_written(void **state)
{
	struct rig *r = need_freezer(state);
	struct layer_info info;
	struct held a, b;

	claim(r, HOST, NULL, NULL, &a);
	rig_expect(r, &a,
		   "cd /workspace; mkdir d; echo one >d/f; ln d/f d/g; ln -s f d/s; mkfifo d/p; "
		   "chmod 751 d; touch -d @1000000 d/f; truncate -s 1T hole; echo h >/home/user/h; "
		   "echo t >/tmp/t; python3 -c 'import os; os.setxattr(\"d/f\", \"user.x\", "
		   "b\"y\")'; echo ok",
		   "ok\n");
	info = snap(r, &a, L1, 0);
	assert_true(info.bytes > 0 && info.bytes < 4096 && info.inodes >= 6);
	assert_int_equal(info.whole, 0);
	rig_expect(r, &a, "echo two >/workspace/d/f; cat /workspace/d/f", "two\n");
	claim(r, HOST, L1, NULL, &b);
	rig_expect(
		r, &b,
		"cd /workspace; cat d/f d/s /home/user/h; stat -c '%a %U %h %Y %n' d/f; stat -c "
		"'%a %F' d "
		"d/p; stat -c %s hole; ls /tmp; python3 -c 'import os; print(os.getxattr(\"d/f\", "
		"\"user.x\"))'",
		"one\none\nh\n644 user 2 1000000 d/f\n751 directory\n644 "
		"fifo\n1099511627776\nb'y'\n");
	rig_expect(r, &b, "cd /workspace; echo three >>d/f; rm d/s; mv d e; cat e/f; ls e",
		   "one\nthree\nf\ng\np\n");
	rig_expect(r, &a, "cat /workspace/d/f; ls /workspace", "two\nd\nhole\n");
	assert_int_equal(launcher_layer_drop_sync(r->launcher, L1, &r->err), -EBUSY);
	end(r, &a);
	end(r, &b);
}

static void layers_lie_over_each_other(void **state)
{
	struct rig *r = need_freezer(state);
	struct held a, b, c;

	claim(r, HOST, NULL, NULL, &a);
	rig_expect(r, &a, "cd /workspace; mkdir d e; echo 1 >d/x; echo 1 >e/x; echo 1 >y; ls",
		   "d\ne\ny\n");
	(void)snap(r, &a, L1, SNAPSHOT_VOLATILE);
	claim(r, HOST, L1, NULL, &b);
	rig_expect(r, &b, "cd /workspace; rm y; rm -r e; mkdir e; echo 2 >e/z; echo 2 >>d/x", "");
	(void)snap(r, &b, L2, SNAPSHOT_VOLATILE);
	(void)snap(r, &b, L3, SNAPSHOT_VOLATILE | SNAPSHOT_WHOLE);
	claim(r, HOST, L1, L2, &c);
	rig_expect(r, &c, "cd /workspace; find . -type f | sort; cat d/x", "./d/x\n./e/z\n1\n2\n");
	end(r, &c);
	claim(r, HOST, L3, NULL, &c);
	rig_expect(r, &c, "cd /workspace; find . -type f | sort; cat d/x", "./d/x\n./e/z\n1\n2\n");
	end(r, &c);
	end(r, &b);
	end(r, &a);
}

static void a_chain_that_is_too_long_becomes_one_layer(void **state)
{
	struct rig *r = need_freezer(state);
	struct launch_spec spec = { .template_id = HOST };
	char ids[LAYERS_MAX + 1][ID_LEN + 1], line[64];
	struct layer_info info = { 0 };
	struct held h;

	for (int i = 0; i <= LAYERS_MAX; i++) {
		(void)snprintf(ids[i], sizeof(ids[i]), "chainaaaaaaaaaaaaa%02d", i);
		rig_claim(r, &spec, &h);
		(void)snprintf(line, sizeof(line), "echo %d >/workspace/f%d", i, i);
		rig_expect(r, &h, line, "");
		info = snap(r, &h, ids[i], SNAPSHOT_VOLATILE);
		assert_int_equal(info.whole, i == LAYERS_MAX);
		end(r, &h);
		if (i < LAYERS_MAX)
			spec.layers.ids[spec.layers.count++] = ids[i];
	}
	spec.layers = (struct layer_list){ .count = 1, .ids = { ids[LAYERS_MAX] } };
	rig_claim(r, &spec, &h);
	rig_expect(r, &h, "cat /workspace/f* | wc -l; cat /workspace/f16", "17\n16\n");
	end(r, &h);
}

static void a_writable_root_is_kept_too(void **state)
{
	struct rig *r = need_freezer(state);
	struct template_spec t = { .id = IMAGE,
				   .preload = "",
				   .layers = { .count = 1, .ids = { L1 } } };
	struct guest_exec e = { .argc = 3,
				.argv = { "/bin/sh", "-c",
					  "mkdir /opt/tool; echo v >/opt/tool/f; rm /etc/shells" },
				.user = "root",
				.cwd = "/",
				.code = "" };
	struct held h;

	if (launcher_info(r->launcher)->rootless)
		e.user = "";
	claim(r, WRITABLE, NULL, NULL, &h);
	rig_run(r, &h, &e, "");
	(void)snap(r, &h, L1, SNAPSHOT_ROOT);
	end(r, &h);
	claim(r, WRITABLE, L1, NULL, &h);
	rig_expect(r, &h,
		   "cat /opt/tool/f; ls /etc/shells 2>&1 | wc -l; echo x >/dev/null; ls /dev",
		   "v\n1\nfd\nfull\nnull\nptmx\npts\nrandom\nshm\nstderr\nstdin\nstdout\ntty\n"
		   "urandom\nzero\n");
	end(r, &h);
	if (launcher_template_sync(r->launcher, &t, -1, &r->err) < 0)
		fail_msg("template: %s", r->err.text);
	claim(r, IMAGE, NULL, NULL, &h);
	rig_expect(r, &h, "cat /opt/tool/f; touch /opt/tool/g 2>/dev/null || echo read-only",
		   "v\nread-only\n");
	assert_int_equal(launcher_layer_drop_sync(r->launcher, L1, &r->err), -EBUSY);
	end(r, &h);
	assert_int_equal(launcher_template_drop_sync(r->launcher, IMAGE, &r->err), 0);
	assert_int_equal(launcher_template_drop_sync(r->launcher, IMAGE, &r->err), -ENOENT);
}

static void as_root(struct rig *r, struct held *h, const char *line, const char *output)
{
	rig_run(r, h,
		&(struct guest_exec){ .argc = 3,
				      .argv = { "/bin/sh", "-c", line },
				      .timeout_ms = 60000,
				      .user = "root",
				      .cwd = "/",
				      .code = "" },
		output);
}

static void the_root_of_a_writable_root_writes_to_system_directories(void **state)
{
	struct rig *r = need_root(state);
	struct held h;

	claim(r, WRITABLE, NULL, NULL, &h);
	as_root(r, &h,
		"set -e; echo 1 >/usr/lib/new; mkdir -p /usr/local/lib/x/y; echo 2 "
		">/usr/local/bin/tool; echo 3 >/etc/ssl/new; mkdir /var/lib/x; rm /usr/bin/env; "
		"cp /usr/bin/id /usr/bin/id2; mv /usr/bin/id2 /usr/bin/id; stat -c %u "
		"/usr/bin/id /usr/lib /etc/ssl",
		"0\n0\n0\n");
	/* The machine's own files are still nobody's, and no other user gets anything. */
	as_root(r, &h, "stat -c %u /usr/bin/stat; (echo x >/usr/bin/stat) 2>/dev/null || echo no",
		"65534\nno\n");
	rig_expect(r, &h, "touch /usr/lib/mine 2>/dev/null || echo no", "no\n");
	(void)snap(r, &h, L1, SNAPSHOT_ROOT);
	end(r, &h);
	claim(r, WRITABLE, L1, NULL, &h);
	rig_expect(
		r, &h,
		"cat /usr/lib/new /usr/local/bin/tool /etc/ssl/new; ls /usr/bin/env 2>&1 | wc -l",
		"1\n2\n3\n1\n");
	as_root(r, &h, "set -e; echo more >>/usr/lib/new; rm -r /usr/local/lib/x; cat /usr/lib/new",
		"1\nmore\n");
	end(r, &h);
	/* Nothing of it is the machine's, and a root that cannot be written to is as it was. */
	assert_int_not_equal(access("/usr/lib/new", F_OK), 0);
	assert_int_equal(access("/usr/bin/env", F_OK), 0);
	claim(r, HOST, NULL, NULL, &h);
	as_root(r, &h, "touch /usr/lib/x 2>/dev/null || echo no; stat -c %u /usr/lib",
		"no\n65534\n");
	end(r, &h);
}

static void a_root_can_be_made_of_layers_alone(void **state)
{
	struct rig *r = *state;
	struct template_spec t = { .id = IMAGE,
				   .root = ROOT_LAYERS,
				   .preload = "",
				   .layers = { .count = 1, .ids = { L1 } } };
	struct held h;

	claim(r, HOST, NULL, NULL, &h);
	rig_expect(r, &h,
		   "cd /workspace; mkdir -p bin lib64 etc lib/x86_64-linux-gnu; cp /bin/sh bin; "
		   "cp /lib64/ld-linux* lib64; cp /lib/x86_64-linux-gnu/libc.so.6 "
		   "lib/x86_64-linux-gnu; echo image >etc/issue; chmod -R a+rX .; echo ok",
		   "ok\n");
	assert_int_equal(snap(r, &h, L1, SNAPSHOT_AS_ROOT).whole, 1);
	end(r, &h);
	if (launcher_template_sync(r->launcher, &t, -1, &r->err) < 0)
		fail_msg("template: %s", r->err.text);
	claim(r, IMAGE, NULL, NULL, &h);
	rig_expect(r, &h, "read x </etc/issue; echo $x; test -e /usr/bin/env || echo nothing else",
		   "image\nnothing else\n");
	end(r, &h);
}

static void what_cannot_be_is_refused(void **state)
{
	struct rig *r = need_freezer(state);
	struct launch_spec spec = { .template_id = HOST, .layers = { .count = 1, .ids = { L2 } } };
	struct snapshot_spec s = { L1, L1, 0 };
	struct launcher_box box;
	struct held h;

	assert_int_equal(launcher_claim_sync(r->launcher, &spec, &box, &r->err), -ENOENT);
	assert_int_equal(launcher_snapshot_sync(r->launcher, &s, NULL, &r->err), -ENOENT);
	assert_int_equal(launcher_layer_drop_sync(r->launcher, L1, &r->err), -ENOENT);
	claim(r, HOST, NULL, NULL, &h);
	(void)snap(r, &h, L1, 0);
	s.box_id = h.box.id;
	assert_int_equal(launcher_snapshot_sync(r->launcher, &s, NULL, &r->err), -EEXIST);
	end(r, &h);
}

/* Nothing can make it stand still but that nothing runs, and then it becomes a root. */
static void without_a_freezer_a_snapshot_is_refused_unless_it_is_of_an_idle_root(void **state)
{
	static const struct guest_callbacks none = { 0 };
	struct rig *r = *state;
	struct guest_exec e = {
		.argc = 2, .argv = { "/bin/sleep", "1000" }, .user = "", .cwd = "/", .code = ""
	};
	struct snapshot_spec s = { .layer_id = L1 };
	struct held h;
	uint32_t id;

	if (!(launcher_info(r->launcher)->cgroup_missing & CONTROLLER_FREEZER))
		skip();
	claim(r, HOST, NULL, NULL, &h);
	s.box_id = h.box.id;
	assert_int_equal(launcher_snapshot_sync(r->launcher, &s, NULL, &r->err), -EOPNOTSUPP);
	s.flags = SNAPSHOT_AS_ROOT;
	assert_int_equal(guest_exec(h.guest, &e, &none, NULL, &id, &r->err), 0);
	rig_expect(r, &h, "while ! pidof sleep >/dev/null; do :; done; echo runs", "runs\n");
	assert_int_equal(launcher_snapshot_sync(r->launcher, &s, NULL, &r->err), -EOPNOTSUPP);
	assert_non_null(strstr(r->err.text, "freezer"));
	rig_expect(r, &h, "kill $(pidof sleep); echo goes on", "goes on\n");
	(void)snap(r, &h, L1, SNAPSHOT_AS_ROOT);
	rig_expect(r, &h, "echo goes on", "goes on\n");
	end(r, &h);
}

static void a_paused_box_stays_paused_and_others_go_on(void **state)
{
	struct rig *r = need_freezer(state);
	struct held h;

	claim(r, HOST, NULL, NULL, &h);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, true, &r->err), 0);
	(void)snap(r, &h, L1, 0);
	assert_int_equal(rig_only(r).info.frozen, 1);
	assert_int_equal(launcher_freeze_sync(r->launcher, h.box.id, false, &r->err), 0);
	rig_expect(r, &h, "echo goes on", "goes on\n");
	(void)snap(r, &h, L2, 0);
	assert_int_equal(rig_only(r).info.frozen, 0);
	rig_expect(r, &h, "echo goes on", "goes on\n");
	end(r, &h);
}

/* Such a box owns its mounts itself. */
static void a_box_of_a_warm_interpreter_has_layers_too(void **state)
{
	struct rig *r = need_freezer(state);
	struct template_spec t = { .id = PYTHON, .flags = TEMPLATE_WARM_PYTHON, .preload = "" };
	struct held h;
	bool warm = false;

	if (launcher_template_sync(r->launcher, &t, -1, &r->err) < 0)
		fail_msg("template: %s", r->err.text);
	for (int i = 0; i < 100 && !warm; i++) {
		claim(r, PYTHON, NULL, NULL, &h);
		warm = h.box.flags & BOX_WARM_PYTHON;
		if (!warm) {
			end(r, &h);
			(void)usleep(50000);
		}
	}
	if (!warm)
		skip(); /* there is no such interpreter here */
	rig_expect(r, &h, "echo warm >/workspace/f; cat /workspace/f", "warm\n");
	(void)snap(r, &h, L1, 0);
	rig_expect(r, &h, "cat /workspace/f", "warm\n");
	end(r, &h);
	claim(r, PYTHON, L1, NULL, &h);
	rig_expect(r, &h, "cat /workspace/f; stat -c %U /workspace/f", "warm\nuser\n");
	end(r, &h);
}

static void quiet(void *user, const struct provider_reply *reply)
{
	(void)user;
	(void)reply;
}

/* Killed at a later and later moment of a snapshot: the box goes on, no half layer is there. */
static void a_launcher_may_be_killed_while_it_takes_a_snapshot(void **state)
{
	struct rig *r = need_freezer(state);
	struct held h;

	claim(r, HOST, NULL, NULL, &h);
	rig_expect(r, &h,
		   "cd /workspace; for i in $(seq 200); do echo $i >f$i; done; "
		   "head -c 40M /dev/zero >big; echo ok",
		   "ok\n");
	for (unsigned i = 0; i < 12; i++) {
		char layer[ID_LEN + 1], id[ID_LEN + 1];
		struct snapshot_spec s = { h.box.id, layer, SNAPSHOT_VOLATILE };

		(void)snprintf(layer, sizeof(layer), "killaaaaaaaaaaaaaa%02u", i);
		memcpy(id, h.box.id, sizeof(id));
		assert_int_equal(launcher_snapshot(r->launcher, &s, quiet, NULL, &r->err), 0);
		(void)launcher_dispatch(r->launcher);
		(void)usleep(i * 4000);
		rig_kill(r);
		rig_drop(&h);
		rig_start(r);
		assert_int_equal(rig_only(r).info.frozen, 0);
		rig_attach(r, id, &h);
		rig_expect(r, &h, "ls /workspace | wc -l", "201\n");
	}
	end(r, &h);
}

static void a_box_may_end_while_its_snapshot_is_taken(void **state)
{
	struct rig *r = need_freezer(state);
	struct snapshot_spec s = { .layer_id = L1, .flags = SNAPSHOT_VOLATILE };
	struct held h;

	claim(r, HOST, NULL, NULL, &h);
	rig_expect(r, &h, "head -c 100M /dev/zero >/workspace/big; echo ok", "ok\n");
	s.box_id = h.box.id;
	assert_int_equal(launcher_snapshot(r->launcher, &s, quiet, NULL, &r->err), 0);
	end(r, &h);
}

static void claim_volume(struct rig *r, const char *path, bool read_only, struct held *h)
{
	struct launch_spec spec = { .template_id = HOST,
				    .n_volumes = 1,
				    .volumes = { { V1, path, read_only } } };

	rig_claim(r, &spec, h);
}

static void make_volume(struct rig *r)
{
	if (launcher_volume_make_sync(r->launcher, &(struct volume_spec){ V1, 16u << 20 },
				      &r->err) < 0)
		fail_msg("volume: %s", r->err.text);
}

static void a_volume_outlives_boxes_and_has_one_at_a_time(void **state)
{
	struct rig *r = need_root(state);
	struct launch_spec spec = { .template_id = HOST,
				    .n_volumes = 1,
				    .volumes = { { V1, "/mnt/data", 0 } } };
	struct launcher_box box;
	struct held h;
	char id[ID_LEN + 1];

	assert_int_equal(launcher_claim_sync(r->launcher, &spec, &box, &r->err), -ENOENT);
	make_volume(r);
	assert_int_equal(launcher_volume_make_sync(r->launcher,
						   &(struct volume_spec){ V1, 16u << 20 }, &r->err),
			 -EEXIST);
	claim_volume(r, "/mnt/data", false, &h);
	rig_expect(r, &h, "echo kept >/mnt/data/f; stat -c %U /mnt/data/f; ls /mnt",
		   "user\ndata\n");
	assert_int_equal(launcher_claim_sync(r->launcher, &spec, &box, &r->err), -EBUSY);
	assert_int_equal(launcher_volume_drop_sync(r->launcher, V1, &r->err), -EBUSY);
	memcpy(id, h.box.id, sizeof(id));
	rig_kill(r);
	rig_drop(&h);
	rig_start(r);
	rig_attach(r, id, &h);
	assert_int_equal(launcher_claim_sync(r->launcher, &spec, &box, &r->err), -EBUSY);
	rig_expect(r, &h, "cat /mnt/data/f", "kept\n");
	end(r, &h);
	claim_volume(r, "/workspace/a/b", true, &h);
	rig_expect(r, &h, "cat /workspace/a/b/f; echo x 2>&1 >/workspace/a/b/g | grep -c Read-only",
		   "kept\n1\n");
	end(r, &h);
}

static void a_full_volume_says_so(void **state)
{
	struct rig *r = need_root(state);
	struct held h;

	make_volume(r);
	claim_volume(r, "/workspace/v", false, &h);
	rig_expect(
		r, &h,
		"cd /workspace/v; head -c 64M /dev/zero 2>/dev/null >big || echo full; "
		"test $(stat -c %s big) -lt 16777216 && echo bounded; rm big; echo x >y && cat y",
		"full\nbounded\nx\n");
	end(r, &h);
	claim_volume(r, "/workspace/v", false, &h);
	rig_expect(r, &h, "ls /workspace/v | grep -v lost", "y\n");
	end(r, &h);
}

static void volumes_need_root(void **state)
{
	struct rig *r = *state;

	if (!launcher_info(r->launcher)->rootless)
		skip();
	assert_int_equal(launcher_volume_make_sync(r->launcher,
						   &(struct volume_spec){ V1, 16u << 20 }, &r->err),
			 -EOPNOTSUPP);
	assert_non_null(strstr(r->err.text, "root"));
}

/* usage: test_disk root|nobody */
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_rig, close_rig)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(a_box_begins_with_what_another_has_written),
		CASE(layers_lie_over_each_other),
		CASE(a_chain_that_is_too_long_becomes_one_layer),
		CASE(a_writable_root_is_kept_too),
		CASE(the_root_of_a_writable_root_writes_to_system_directories),
		CASE(a_root_can_be_made_of_layers_alone),
		CASE(what_cannot_be_is_refused),
		CASE(without_a_freezer_a_snapshot_is_refused_unless_it_is_of_an_idle_root),
		CASE(a_paused_box_stays_paused_and_others_go_on),
		CASE(a_box_of_a_warm_interpreter_has_layers_too),
		CASE(a_launcher_may_be_killed_while_it_takes_a_snapshot),
		CASE(a_box_may_end_while_its_snapshot_is_taken),
		CASE(a_volume_outlives_boxes_and_has_one_at_a_time),
		CASE(a_full_volume_says_so),
		CASE(volumes_need_root),
	};

	if (argc > 1 && strcmp(argv[1], "nobody") == 0 && geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return 1;
	if (rig_check_disk())
		return RIG_SKIP;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
