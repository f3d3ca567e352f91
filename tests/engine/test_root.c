/* Images become roots of real boxes: what is in the archive is in the box, with its owners and
 * without its tricks; and when something ends it half-way, nothing is left. */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "persist_rig.h"

#include "base/cleanup.h"
#include "base/fd.h"
#include "image_rig.h"
#include "loop/loop.h"
#include "provider/provider.h"
#include "sandbox/layers.h"
#include "sandbox/registry.h"
#include "sandbox/root_import.h"
#include "sandbox/sandbox.h"
#include "sandbox/template.h"
#include "store/memory.h"

#define NOBODY 65534
#define BUSYBOX "/bin/busybox"
#define IMAGE 200u
#define STEPS_MAX 60000 /* of a millisecond */

struct world {
	struct rig rig;
	struct image_rig images;
	struct loop *loop;
	struct loop_io *io;
	struct loop_timer *tick;
	struct store store;
	struct sandboxes *all;
	bool is_ready;
	int spool;
	/* What root_events were told. */
	int dones;
	struct err err;
	struct layers chain; /* held */
};

static void on_launcher(void *user, unsigned events)
{
	struct world *w = user;

	(void)events;
	(void)launcher_dispatch(w->rig.launcher);
}

/* Requests that were not sent at once, and the end of a turn. */
static void on_tick(void *user)
{
	struct world *w = user;

	if (w->rig.launcher)
		(void)launcher_dispatch(w->rig.launcher);
	store_dispatch(&w->store);
	loop_stop(w->loop);
}

static void on_ready(void *user, const struct err *err)
{
	assert_null(err);
	((struct world *)user)->is_ready = true;
}

static void turn(struct world *w)
{
	loop_timer_start(w->tick, 1, 0);
	loop_run(w->loop);
}

#define RUN_UNTIL(w, cond)                                        \
	do {                                                      \
		for (int i_ = 0; !(cond) && i_ < STEPS_MAX; i_++) \
			turn(w);                                  \
		assert_true(cond);                                \
	} while (0)

/* The service as the daemon has it. */
static void live(struct world *w)
{
	const struct template_row *rows;
	struct provider p = provider_native(w->rig.launcher);
	struct sandboxes_deps deps = { .loop = w->loop,
				       .store = &w->store,
				       .settings = { .max_sandboxes = 8,
						     .timeout_ms = 600000,
						     .timeout_max_ms = 3600000,
						     .output_keep = 1 << 16,
						     .output_max = 1 << 20,
						     .retention_ms = 86400000,
						     .images_dir = w->images.dir,
						     .image_bytes = 64 << 20,
						     .spool_fd = w->spool,
						     .files_fd = -1 } };
	size_t n;

	rows = template_rows(&n);
	for (size_t i = 0; i < n; i++)
		if (launcher_template_sync(
			    w->rig.launcher,
			    &(struct template_spec){ .id = rows[i].id, .preload = "" }, -1,
			    &w->err) < 0)
			fail_msg("template: %s", w->err.text);
	assert_int_equal(spec_fill_limits(&deps.settings.limits, NULL, &w->err), 0);
	assert_int_equal(sandboxes_create(&deps, &w->all, &w->err), 0);
	assert_int_equal(
		loop_io_create(w->loop, launcher_fd(w->rig.launcher), on_launcher, w, &w->io), 0);
	assert_int_equal(loop_io_want(w->io, LOOP_READ), 0);
	w->is_ready = false;
	sandboxes_provider_ready(w->all, &p, on_ready, w);
	RUN_UNTIL(w, w->is_ready);
}

/* As by SIGKILL: boxes and layers stay, and so does what is written down. */
static void die(struct world *w)
{
	w->io = loop_io_free(w->io);
	w->all = sandboxes_free(w->all);
	launcher_kill(w->rig.launcher); /* what it was asked for ends, unheard */
	w->rig.launcher = launcher_stop(w->rig.launcher);
}

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));

	assert_non_null(w);
	if (!rig_open(&w->rig, "auto"))
		return -1;
	image_rig_open(&w->images);
	w->spool = open(w->images.dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(loop_create(&w->loop, &w->err), 0);
	assert_int_equal(loop_timer_create(w->loop, on_tick, w, &w->tick), 0);
	assert_int_equal(store_open_memory(NULL, &w->store, &w->err), 0);
	live(w);
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;
	struct listed boxes[BOXES_MAX];

	for (size_t n = rig_list(&w->rig, boxes); n > 0; n--) /* of a test that failed */
		rig_destroy(&w->rig, boxes[n - 1].id);
	(void)launcher_template_drop_sync(w->rig.launcher, IMAGE, NULL);
	layers_drop(w->all, &w->chain);
	for (int i = 0; i < STEPS_MAX && rig_count_disk(&w->rig) > 0; i++)
		turn(w);
	assert_int_equal(rig_count_disk(&w->rig), 0);
	RUN_UNTIL(w, list_is_empty(&w->all->flights));
	w->io = loop_io_free(w->io);
	w->all = sandboxes_free(w->all);
	store_close(&w->store);
	w->tick = loop_timer_free(w->tick);
	w->loop = loop_free(w->loop);
	rig_close(&w->rig);
	image_rig_close(&w->images);
	(void)close(w->spool);
	free(w);
	return 0;
}

/* ---- the image ---- */

static void add_owned(struct buf *b, enum tar_type type, const char *path, uint32_t mode,
		      uint32_t owner, const char *data)
{
	image_add(b,
		  &(struct tar_member){
			  .type = type, .path = path, .mode = mode, .uid = owner, .gid = owner },
		  data, strlen(data));
}

static void add_busybox(struct buf *b)
{
	_cleanup_(buf_done) struct buf program = { 0 };
	_close_ int fd = open(BUSYBOX, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(fd_slurp(fd, &program), 0);
	image_add(b, &(struct tar_member){ .type = TAR_FILE, .path = "bin/busybox", .mode = 0755 },
		  program.data, program.len);
	image_link(b, TAR_SYMLINK, "bin/sh", "busybox");
	image_link(b, TAR_HARDLINK, "bin/stat", "bin/busybox");
	image_link(b, TAR_SYMLINK, "bin/cat", "/bin/busybox");
	image_link(b, TAR_SYMLINK, "bin/ls", "busybox");
}

static void make_image(struct world *w, const struct image_shape *shape)
{
	struct buf l[2] = { { 0 } };

	image_dir(&l[0], "bin");
	add_busybox(&l[0]);
	image_dir(&l[0], "etc");
	image_file(&l[0], "etc/old", "old\n");
	image_file(&l[0], "etc/issue", "first\n");
	image_dir(&l[0], "opt");
	image_file(&l[0], "opt/old", "");
	add_owned(&l[0], TAR_DIR, "var/www", 0750, 33, "");
	add_owned(&l[0], TAR_FILE, "var/www/page", 0640, 33, "page\n");
	add_owned(&l[0], TAR_FILE, "bin/su", 04755, 0, "#!/bin/sh\n");
	image_raw(&l[0], '4', "dev/sda");
	image_file(&l[1], "etc/issue", "second\n");
	image_file(&l[1], "etc/.wh.old", "");
	image_file(&l[1], "opt/.wh..wh..opq", "");
	image_file(&l[1], "opt/new", "new\n");
	image_save(&w->images, "image.tar", l, 2, shape);
}

static void on_done(void *user, const struct layers *chain, const struct image_config *config,
		    const struct err *err)
{
	struct world *w = user;

	(void)config;
	w->dones++;
	if (err)
		w->err = *err;
	if (chain) {
		w->chain = *chain;
		assert_int_equal(layers_hold(w->all, chain), 0);
	}
}

static void on_progress(void *user, const char *line)
{
	assert_true(((struct world *)user)->dones == 0 && strlen(line) > 0);
}

static struct root_import *begin(struct world *w, enum root_source kind, const char *path)
{
	static const struct root_events events = { on_progress, on_done };
	struct root_wish wish = { .owner = "ann", .kind = kind, .path = path };
	struct root_import *i = NULL;

	w->dones = 0;
	w->err = (struct err){ 0 };
	if (root_import(w->all, &wish, &events, w, &i, &w->err) < 0)
		fail_msg("import: %s", w->err.text);
	return i;
}

static bool has_boxes(struct world *w)
{
	struct listed boxes[BOXES_MAX];

	return rig_list(&w->rig, boxes) > 0;
}

static void import(struct world *w, enum root_source kind, const char *path)
{
	(void)begin(w, kind, path);
	RUN_UNTIL(w, w->dones > 0);
	RUN_UNTIL(w, !has_boxes(w));
	if (w->err.code)
		fail_msg("import: %s", w->err.text);
	assert_int_equal(w->chain.n, 1);
}

static void claim(struct world *w, uint32_t flags, struct held *h)
{
	struct template_spec t = { .id = IMAGE,
				   .root = ROOT_LAYERS,
				   .flags = flags,
				   .preload = "",
				   .layers = layers_list(&w->chain) };

	if (launcher_template_sync(w->rig.launcher, &t, -1, &w->err) < 0)
		fail_msg("template: %s", w->err.text);
	rig_claim(&w->rig, &(struct launch_spec){ .template_id = IMAGE }, h);
}

static void end(struct world *w, struct held *h)
{
	rig_destroy(&w->rig, h->box.id);
	rig_drop(h);
	assert_int_equal(launcher_template_drop_sync(w->rig.launcher, IMAGE, &w->err), 0);
}

static bool is_rootless(struct world *w)
{
	return launcher_info(w->rig.launcher)->rootless;
}

/* ---- tests ---- */

static void check_box(struct world *w)
{
	struct held h;

	claim(w, 0, &h);
	rig_expect(&w->rig, &h,
		   "cat /etc/issue /opt/new; ls /opt; ls /etc/old 2>/dev/null || echo gone",
		   "second\nnew\nnew\ngone\n");
	rig_expect(&w->rig, &h, "ls /usr/bin 2>/dev/null || echo nothing of the machine",
		   "nothing of the machine\n");
	rig_expect(&w->rig, &h, "stat -c %a /bin/su /bin; stat -c %h /bin/busybox",
		   "755\n755\n2\n");
	rig_expect(&w->rig, &h, "ls /dev/sda 2>/dev/null || echo no such device",
		   "no such device\n");
	if (!is_rootless(w))
		rig_expect(&w->rig, &h,
			   "stat -c '%u %g %a' /var/www /bin/su /bin/sh; "
			   "cat /var/www/page 2>/dev/null || echo closed",
			   "33 33 750\n0 0 755\n0 0 777\nclosed\n");
	end(w, &h);
}

static void archives_of_docker_and_oci_become_roots(void **state)
{
	static const struct image_shape shapes[] = { { .is_docker = true }, { .is_gzip = true } };
	struct world *w = *state;

	for (size_t i = 0; i < 2; i++) {
		make_image(w, &shapes[i]);
		import(w, ROOT_OF_OCI, "image.tar");
		check_box(w);
		layers_drop(w->all, &w->chain);
		w->chain.n = 0;
	}
}

static void a_tar_and_a_directory_become_roots(void **state)
{
	struct world *w = *state;
	_cleanup_(buf_done) struct buf b = { 0 }, page = { 0 };
	char path[64], bin[96];
	struct held h;

	image_dir(&b, "bin");
	add_busybox(&b);
	image_file(&b, "hello", "of a tar\n");
	assert_int_equal(tar_write_end(&b), 0);
	image_rig_write(&w->images, "root.tar", &b);
	import(w, ROOT_OF_TAR, "root.tar");
	claim(w, 0, &h);
	rig_expect(&w->rig, &h, "cat /hello", "of a tar\n");
	end(w, &h);
	layers_drop(w->all, &w->chain);
	w->chain.n = 0;

	(void)snprintf(path, sizeof(path), "%s/root", w->images.dir);
	assert_int_equal(mkdir(path, 0755), 0);
	(void)snprintf(bin, sizeof(bin), "%s/bin", path);
	assert_int_equal(mkdir(bin, 0755), 0);
	(void)snprintf(bin, sizeof(bin), "%s/bin/sh", path);
	assert_int_equal(symlink("busybox", bin), 0);
	(void)snprintf(bin, sizeof(bin), "%s/bin/cat", path);
	assert_int_equal(symlink("busybox", bin), 0);
	b.len = 0;
	{
		_close_ int fd = open(BUSYBOX, O_RDONLY | O_CLOEXEC);

		assert_int_equal(fd_slurp(fd, &b), 0);
	}
	image_rig_write(&w->images, "root/bin/busybox", &b);
	(void)snprintf(bin, sizeof(bin), "%s/bin/busybox", path);
	assert_int_equal(chmod(bin, 0755), 0);
	assert_int_equal(buf_puts(&page, "of a directory\n"), 0);
	image_rig_write(&w->images, "root/hello", &page);
	import(w, ROOT_OF_DIR, "root");
	claim(w, 0, &h);
	rig_expect(&w->rig, &h, "cat /hello", "of a directory\n");
	end(w, &h);
}

static void an_image_has_a_sudo_where_its_template_says_so(void **state)
{
	struct world *w = *state;
	bool rootless = is_rootless(w);
	struct held h;

	make_image(w, &(struct image_shape){ 0 });
	import(w, ROOT_OF_OCI, "image.tar");
	claim(w, TEMPLATE_WRITABLE_ROOT | TEMPLATE_SUDO, &h);
	rig_expect(&w->rig, &h, "/usr/bin/sudo /bin/busybox id -u 2>/dev/null",
		   rootless ? "1000\n" : "0\n");
	rig_expect(
		&w->rig, &h,
		"s='/usr/bin/sudo /bin/busybox sh -c'; exec 2>/dev/null; "
		"$s 'echo a > /0; echo b >> /etc/issue; echo c > /usr/bin/c; echo d > /opt/new'; "
		"cat /0 /etc/issue /usr/bin/c /opt/new",
		"a\nsecond\nb\nc\nd\n");
	if (!rootless)
		rig_expect(&w->rig, &h, "/usr/bin/sudo /bin/busybox cat /var/www/page", "page\n");
	end(w, &h);
	claim(w, TEMPLATE_WRITABLE_ROOT, &h);
	rig_expect(&w->rig, &h, "ls /usr/bin/sudo /run/sudo.sock 2>/dev/null || echo none",
		   "none\n");
	end(w, &h);
}

static void an_image_that_lies_leaves_nothing(void **state)
{
	struct world *w = *state;

	make_image(w, &(struct image_shape){ .is_damaged = true });
	(void)begin(w, ROOT_OF_OCI, "image.tar");
	RUN_UNTIL(w, w->dones > 0);
	assert_int_equal(w->err.code, EBADMSG);
	assert_false(has_boxes(w));
}

/* Killed as soon as a box is there: the next life ends it, and the layer if there is one. */
static void what_was_killed_half_way_is_cleared_away(void **state)
{
	struct world *w = *state;

	make_image(w, &(struct image_shape){ 0 });
	(void)begin(w, ROOT_OF_OCI, "image.tar");
	RUN_UNTIL(w, has_boxes(w) || w->dones > 0);
	die(w);
	rig_start(&w->rig);
	live(w);
	RUN_UNTIL(w, !has_boxes(w));
	if (w->dones > 0)
		w->chain.n = 0; /* held by the first life alone */
	layers_sweep(w->all);
	RUN_UNTIL(w, rig_count_disk(&w->rig) == 0);
}

static void canceled_half_way_it_leaves_nothing(void **state)
{
	struct world *w = *state;
	struct root_import *i;

	make_image(w, &(struct image_shape){ 0 });
	i = begin(w, ROOT_OF_OCI, "image.tar");
	RUN_UNTIL(w, has_boxes(w) || w->dones > 0);
	if (w->dones == 0)
		root_import_cancel(i);
	RUN_UNTIL(w, !has_boxes(w));
}

/* usage: test_root root|nobody */
#define CASE(f) cmocka_unit_test_setup_teardown(f, open_world, close_world)

int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		CASE(archives_of_docker_and_oci_become_roots),
		CASE(a_tar_and_a_directory_become_roots),
		CASE(an_image_has_a_sudo_where_its_template_says_so),
		CASE(an_image_that_lies_leaves_nothing),
		CASE(what_was_killed_half_way_is_cleared_away),
		CASE(canceled_half_way_it_leaves_nothing),
	};

	if (argc > 1 && strcmp(argv[1], "nobody") == 0 && geteuid() == 0 &&
	    (setgroups(0, NULL) < 0 || setresgid(NOBODY, NOBODY, NOBODY) < 0 ||
	     setresuid(NOBODY, NOBODY, NOBODY) < 0))
		return 1;
	if (argc > 2)
		cmocka_set_test_filter(argv[2]);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
