/* Imports over the fake provider: the test is the box that unpacks. Whoever ends, fails or is
 * killed at whatever point, nothing is left. */
#include "check.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "base/cleanup.h"
#include "image/config.h"
#include "image_rig.h"
#include "sandbox/registry.h"
#include "sandbox/root_import.h"
#include "sandbox_rig.h"

#define PATIENCE 20000 /* turns of a millisecond: a thread of the pool reads */

struct seen {
	int dones;
	unsigned lines;
	struct err err;
	struct layers chain;
	char workdir[64];
	struct sandboxes *holds; /* the chain is kept */
};

static void on_progress(void *user, const char *line)
{
	assert_true(strlen(line) > 0 && !strchr(line, '\n'));
	((struct seen *)user)->lines++;
}

static void on_done(void *user, const struct layers *chain, const struct image_config *config,
		    const struct err *err)
{
	struct seen *s = user;

	s->dones++;
	if (err)
		s->err = *err;
	if (chain) {
		s->chain = *chain;
		if (s->holds)
			assert_int_equal(layers_hold(s->holds, chain), 0);
	}
	if (config)
		assert_true(snprintf(s->workdir, sizeof(s->workdir), "%s", config->workdir) > 0);
}

static const struct root_events events = { on_progress, on_done };

struct world {
	struct sandbox_rig rig;
	struct image_rig images;
};

static int open_world(void **state)
{
	struct world *w = calloc(1, sizeof(*w));
	struct buf l = { 0 };

	assert_non_null(w);
	image_rig_open(&w->images);
	rig_open(&w->rig);
	w->rig.all->settings.images_dir = w->images.dir;
	w->rig.all->settings.image_bytes = 16 << 20;
	image_file(&l, "hello", "world");
	image_save(&w->images, "good.tar", &l, 1,
		   &(struct image_shape){ .config = "{\"WorkingDir\":\"/srv\"}" });
	*state = w;
	return 0;
}

static int close_world(void **state)
{
	struct world *w = *state;

	rig_close(&w->rig);
	image_rig_close(&w->images);
	free(w);
	return 0;
}

static struct root_import *begin(struct world *w, const char *path, struct seen *s)
{
	struct root_wish wish = { .owner = "ann", .kind = ROOT_OF_OCI, .path = path };
	struct root_import *i = NULL;
	struct err err = { 0 };

	assert_int_equal(root_import(w->rig.all, &wish, &events, s, &i, &err), 0);
	assert_int_equal(s->dones, 0);
	return i;
}

static struct fake_box *only_box(struct world *w)
{
	for (size_t i = 0; i < FAKE_BOXES_MAX; i++)
		if (w->rig.fake.boxes[i].id[0])
			return &w->rig.fake.boxes[i];
	return NULL;
}

static size_t count_layers(const struct world *w)
{
	size_t n = 0;

	for (size_t i = 0; i < FAKE_LAYERS_MAX; i++)
		n += w->rig.fake.layers[i].id[0] != '\0';
	return n;
}

static void wait_done(struct world *w, const struct seen *s)
{
	for (int i = 0; i < PATIENCE && s->dones == 0; i++) {
		rig_run(&w->rig);
		(void)usleep(1000);
	}
	rig_run(&w->rig);
	assert_int_equal(s->dones, 1);
}

/* Until the archive is on its way into a box; the operation's id there. */
static struct fake_box *wait_file(struct world *w, uint32_t *ret_id)
{
	struct guest_file f;
	struct wire_head head;
	struct rd payload;

	for (int i = 0; i < PATIENCE; i++) {
		struct fake_box *box = only_box(w);

		rig_run(&w->rig);
		if (box && rig_recv(&w->rig, box, &head, &payload) && head.type == G_FILE) {
			assert_int_equal(guest_get_file(&payload, &f), 0);
			assert_int_equal(f.op, FILE_TAR_PUT);
			assert_int_equal(f.flags, FILE_OWNERS | FILE_LAYERS);
			assert_string_equal(f.path, "/workspace");
			*ret_id = head.id;
			return box;
		}
		(void)usleep(1000);
	}
	fail_msg("no file operation came");
	return NULL;
}

/* All that is sent, up to the empty frame. */
static void take_all(struct world *w, struct fake_box *box, uint32_t id, struct buf *ret)
{
	struct wire_head head;
	struct rd payload;
	uint8_t frame[64];

	for (int i = 0; i < PATIENCE; i++) {
		while (rig_recv(&w->rig, box, &head, &payload)) {
			if (head.type != G_DATA)
				continue;
			if (head.len == 0)
				return;
			assert_int_equal(buf_append(ret, payload.p, head.len), 0);
			rig_say(box, frame,
				guest_put_u64(frame, sizeof(frame), G_TAKEN, id, head.len));
		}
		rig_run(&w->rig);
		(void)usleep(1000);
	}
	fail_msg("the archive does not end");
}

static void say_done(struct fake_box *box, uint32_t id)
{
	uint8_t frame[64];

	rig_say(box, frame, guest_put_u64(frame, sizeof(frame), G_DONE, id, 1));
}

static void an_image_becomes_one_layer_and_its_box_goes(void **state)
{
	struct world *w = *state;
	_cleanup_(buf_done) struct buf tar = { 0 };
	struct seen s = { .holds = w->rig.all };
	struct fake_box *box;
	uint32_t id;

	(void)begin(w, "good.tar", &s);
	box = wait_file(w, &id);
	assert_true(box->limits.disk_bytes < (64 << 20)); /* as large as it has to be */
	take_all(w, box, id, &tar);
	assert_non_null(memmem(tar.data, tar.len, "world", 5));
	say_done(box, id);
	wait_done(w, &s);
	assert_int_equal(s.err.code, 0);
	assert_int_equal(s.chain.n, 1);
	assert_string_equal(s.workdir, "/srv");
	assert_true(s.lines >= 3);
	assert_int_equal(count_layers(w), 1);
	rig_run(&w->rig);
	rig_assert_nothing_left(&w->rig);
	layers_drop(w->rig.all, &s.chain);
	rig_run(&w->rig);
	assert_int_equal(count_layers(w), 0);
}

static void nobody_who_keeps_it_nothing_that_is_kept(void **state)
{
	struct world *w = *state;
	_cleanup_(buf_done) struct buf tar = { 0 };
	struct seen s = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)begin(w, "good.tar", &s);
	box = wait_file(w, &id);
	take_all(w, box, id, &tar);
	say_done(box, id);
	wait_done(w, &s);
	assert_int_equal(s.chain.n, 1);
	rig_run(&w->rig);
	assert_int_equal(count_layers(w), 0);
	rig_assert_nothing_left(&w->rig);
}

static void refuse(struct world *w, const char *path, enum root_source kind, int code,
		   const char *why)
{
	struct root_wish wish = { .owner = "ann", .kind = kind, .path = path };
	struct root_import *i = NULL;
	struct err err = { 0 };

	assert_int_equal(root_import(w->rig.all, &wish, &events, NULL, &i, &err), -code);
	assert_non_null(strstr(err.text, why));
	assert_null(i);
}

static void what_cannot_be_is_refused_at_once(void **state)
{
	struct world *w = *state;
	char path[ROOT_PATH_MAX + 2];

	memset(path, 'a', sizeof(path));
	path[sizeof(path) - 1] = '\0';
	refuse(w, "", ROOT_OF_TAR, EINVAL, "images_dir");
	refuse(w, "/etc/passwd", ROOT_OF_TAR, EINVAL, "images_dir");
	refuse(w, path, ROOT_OF_TAR, EINVAL, "1023");
	refuse(w, "a", ROOT_SOURCE_COUNT, EINVAL, "want dir, tar or oci");
	w->rig.all->settings.images_dir = NULL;
	refuse(w, "good.tar", ROOT_OF_OCI, EINVAL, "images_dir is empty");
}

static void what_is_no_image_needs_no_box(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 }, t = { 0 };
	unsigned calls = w->rig.fake.calls;

	(void)begin(w, "../good.tar", &s);
	wait_done(w, &s);
	assert_int_equal(s.err.code, EINVAL);
	(void)begin(w, "none.tar", &t);
	wait_done(w, &t);
	assert_int_equal(t.err.code, ENOENT);
	assert_int_equal(w->rig.fake.calls, calls);
}

static void a_box_that_fails_ends_it_with_the_boxs_reason(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct fake_box *box;
	uint8_t frame[128];
	uint32_t id;

	(void)begin(w, "good.tar", &s);
	box = wait_file(w, &id);
	rig_say(box, frame,
		guest_put_error(frame, sizeof(frame), id, ENOSPC, "archive: write 'x': no space"));
	wait_done(w, &s);
	assert_int_equal(s.err.code, EFBIG);
	rig_run(&w->rig);
	rig_assert_nothing_left(&w->rig);
}

static void a_box_that_dies_or_says_it_is_done_too_early_ends_it(void **state)
{
	struct world *w = *state;
	struct seen s = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)begin(w, "good.tar", &s);
	box = wait_file(w, &id);
	fake_kill(&w->rig.fake, box->id, 9);
	wait_done(w, &s);
	assert_int_equal(s.err.code, EPIPE);
	rig_run(&w->rig);
	rig_assert_nothing_left(&w->rig);
}

static void no_space_for_the_layer_leaves_nothing(void **state)
{
	struct world *w = *state;
	_cleanup_(buf_done) struct buf tar = { 0 };
	struct seen s = { 0 };
	struct fake_box *box;
	uint32_t id;

	(void)begin(w, "good.tar", &s);
	box = wait_file(w, &id);
	take_all(w, box, id, &tar);
	w->rig.fake.fail_in = 1;
	w->rig.fake.fail_with = ENOSPC;
	say_done(box, id);
	wait_done(w, &s);
	assert_int_equal(s.err.code, EREMOTEIO);
	assert_non_null(strstr(s.err.text, "no space"));
	rig_run(&w->rig);
	assert_int_equal(count_layers(w), 0);
	rig_assert_nothing_left(&w->rig);
}

static void it_takes_no_longer_than_it_may(void **state)
{
	struct world *w = *state;
	struct root_wish wish = {
		.owner = "ann", .kind = ROOT_OF_OCI, .path = "good.tar", .limits.time_ms = 50
	};
	struct root_import *i = NULL;
	struct err err = { 0 };
	struct seen s = { 0 };

	assert_int_equal(root_import(w->rig.all, &wish, &events, &s, &i, &err), 0);
	wait_done(w, &s); /* nobody in the box says anything */
	assert_int_equal(s.err.code, ETIMEDOUT);
	rig_run(&w->rig);
	rig_assert_nothing_left(&w->rig);
}

/* Canceled, or the registry gone, after so many turns: at every stage. */
static void end_after(struct world *w, int turns, bool is_killed)
{
	struct seen s = { 0 };
	struct root_import *i = begin(w, "good.tar", &s);
	struct wire_head head;
	struct rd payload;

	for (int n = 0; n < turns && s.dones == 0; n++) {
		struct fake_box *box = only_box(w);

		while (box && rig_recv(&w->rig, box, &head, &payload))
			if (head.type == G_DATA && head.len == 0)
				say_done(box, head.id);
		(void)fake_step(&w->rig.fake);
		rig_turn(&w->rig);
		(void)usleep(500);
	}
	if (is_killed) {
		rig_death(&w->rig);
		rig_birth(&w->rig);
		w->rig.all->settings.images_dir = w->images.dir;
		w->rig.all->settings.image_bytes = 16 << 20;
		rig_ready(&w->rig);
	} else if (s.dones == 0) {
		root_import_cancel(i);
	}
	for (int n = 0; n < PATIENCE && (w->rig.fake.live > 0 || count_layers(w) > 0); n++) {
		rig_run(&w->rig);
		if (is_killed)
			layers_sweep(w->rig.all);
		(void)usleep(500);
	}
	rig_run(&w->rig);
	assert_true(s.dones <= 1);
	assert_int_equal(count_layers(w), 0);
	rig_assert_nothing_left(&w->rig);
}

static void canceled_at_any_point_it_leaves_nothing(void **state)
{
	for (int turns = 0; turns < 24; turns++)
		end_after(*state, turns, false);
}

static void killed_at_any_point_it_leaves_nothing(void **state)
{
	for (int turns = 0; turns < 24; turns++)
		end_after(*state, turns, true);
}

static void only_so_many_at_once(void **state)
{
	struct world *w = *state;
	struct seen s[5] = { 0 };
	struct root_import *i[4];

	for (size_t n = 0; n < 4; n++)
		i[n] = begin(w, "good.tar", &s[n]);
	refuse(w, "good.tar", ROOT_OF_OCI, EAGAIN, "the limit");
	for (size_t n = 0; n < 4; n++)
		root_import_cancel(i[n]);
	for (int n = 0; n < PATIENCE && !list_is_empty(&w->rig.all->pending); n++) {
		rig_run(&w->rig);
		(void)usleep(1000);
	}
	i[0] = begin(w, "good.tar", &s[4]);
	root_import_cancel(i[0]);
	root_import_cancel(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(an_image_becomes_one_layer_and_its_box_goes),
		TEST(nobody_who_keeps_it_nothing_that_is_kept),
		TEST(what_cannot_be_is_refused_at_once),
		TEST(what_is_no_image_needs_no_box),
		TEST(a_box_that_fails_ends_it_with_the_boxs_reason),
		TEST(a_box_that_dies_or_says_it_is_done_too_early_ends_it),
		TEST(no_space_for_the_layer_leaves_nothing),
		TEST(it_takes_no_longer_than_it_may),
		TEST(canceled_at_any_point_it_leaves_nothing),
		TEST(killed_at_any_point_it_leaves_nothing),
		TEST(only_so_many_at_once),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
