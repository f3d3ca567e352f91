/* Watches that keep what happens until somebody asks. */
#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "check.h"
#include "sandbox/registry.h"
#include "sandbox/watcher.h"
#include "sandbox_rig.h"

struct seen {
	struct watcher *w; /* that is ready */
	int readies;
	struct err err;
	size_t n, with_entry; /* events that were told */
	char last[64];
};

static void on_ready(void *user, struct watcher *w, const struct err *err)
{
	struct seen *s = user;

	s->readies++;
	s->w = w;
	if (err)
		s->err = *err;
}

static void each(void *user, const struct watcher_event *e)
{
	struct seen *s = user;

	s->n++;
	s->with_entry += e->entry != NULL;
	if (e->entry)
		assert_string_equal(e->entry->owner, "user");
	(void)snprintf(s->last, sizeof(s->last), "%s", e->path);
}

static const struct guest_file file = {
	.op = FILE_WATCH, .flags = FILE_DETAILS, .user = "", .path = "/d", .target = ""
};

struct scene {
	struct sandbox_rig rig;
	struct sandbox *sb;
	struct fake_box *box;
	uint32_t id; /* of the watch in the box */
	struct seen seen;
};

static void say_done(struct scene *s)
{
	uint8_t frame[64];

	rig_say(s->box, frame, guest_put_u64(frame, sizeof(frame), G_DONE, s->id, 0));
	rig_run(&s->rig);
}

static void say_event(struct scene *s, enum guest_event event, const char *path)
{
	uint8_t frame[4200];
	struct wr w;

	wire_begin(&w, frame, sizeof(frame), G_EVENT, s->id);
	wr_u8(&w, (uint8_t)event);
	wr_str(&w, path);
	rig_say(s->box, frame, wire_finish(&w));
}

static void say_entry(struct scene *s)
{
	struct guest_entry e = { .path = "/d/a", .target = "", .owner = "user", .group = "user" };
	uint8_t frame[256];

	e.attrs = "";
	rig_say(s->box, frame, guest_put_entry(frame, sizeof(frame), s->id, &e));
}

static void open_scene(struct scene *s)
{
	struct watcher *w = NULL;
	struct err err = { 0 };

	memset(s, 0, sizeof(*s));
	rig_open(&s->rig);
	s->sb = rig_create(&s->rig, "");
	s->box = rig_box(&s->rig, s->sb->id);
	assert_int_equal(watcher_create(s->sb, &file, on_ready, &s->seen, &w, &err), 0);
	s->id = rig_expect(&s->rig, s->box, G_FILE, NULL);
	assert_null(watcher_find(s->sb, watcher_id(w))); /* not before it is ready */
	say_done(s);
	assert_int_equal(s->seen.readies, 1);
	assert_ptr_equal(s->seen.w, w);
	assert_ptr_equal(watcher_find(s->sb, watcher_id(w)), w);
}

static void what_happened_is_told_once(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	say_entry(&s);
	say_event(&s, EVENT_CREATE, "a");
	say_event(&s, EVENT_REMOVE, "a");
	rig_run(&s.rig);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_true(s.seen.n == 2 && s.seen.with_entry == 1);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_int_equal(s.seen.n, 2);
	rig_close(&s.rig);
}

static void a_loss_is_told_behind_what_was_kept(void **state)
{
	struct scene s;

	(void)state;
	open_scene(&s);
	for (unsigned i = 0; i < WATCHER_EVENTS_MAX; i++) {
		say_event(&s, EVENT_WRITE, "a");
		rig_run(&s.rig);
	}
	say_event(&s, EVENT_WRITE, "too many");
	rig_run(&s.rig);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_int_equal(s.seen.n, WATCHER_EVENTS_MAX);
	assert_string_equal(s.seen.last, "a");
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), -EOVERFLOW);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	say_event(&s, EVENT_OVERFLOW, "");
	say_event(&s, EVENT_WRITE, "behind");
	rig_run(&s.rig);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), -EOVERFLOW);
	say_event(&s, EVENT_WRITE, "again");
	rig_run(&s.rig);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_string_equal(s.seen.last, "again");
	rig_close(&s.rig);
}

static void long_names_are_bounded_together(void **state)
{
	static char path[4096];
	struct scene s;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	open_scene(&s);
	for (unsigned i = 0; i < WATCHER_BYTES_MAX / sizeof(path) + 1; i++) {
		say_event(&s, EVENT_WRITE, path);
		rig_run(&s.rig);
	}
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_true(s.seen.n > 0 && s.seen.n <= WATCHER_BYTES_MAX / sizeof(path));
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), -EOVERFLOW);
	rig_close(&s.rig);
}

static void one_that_has_ended_tells_the_rest_and_goes(void **state)
{
	uint8_t frame[128];
	char id[ID_LEN + 1];
	struct scene s;

	(void)state;
	open_scene(&s);
	(void)snprintf(id, sizeof(id), "%s", watcher_id(s.seen.w));
	say_event(&s, EVENT_REMOVE, "");
	rig_say(s.box, frame, guest_put_error(frame, sizeof(frame), s.id, ENOENT, "gone"));
	rig_run(&s.rig);
	assert_int_equal(s.sb->n_watches, 0);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), 0);
	assert_int_equal(s.seen.n, 1);
	assert_int_equal(watcher_take(s.seen.w, each, &s.seen), -ENOENT);
	assert_null(watcher_find(s.sb, id));
	assert_int_equal(s.sb->n_watchers, 0);
	assert_int_equal(s.seen.readies, 1);
	rig_close(&s.rig);
}

static void one_that_cannot_begin_says_why_and_is_gone(void **state)
{
	struct watcher *w = NULL;
	struct seen seen = { 0 };
	struct err err = { 0 };
	uint8_t frame[128];
	struct scene s;
	uint32_t id;

	(void)state;
	open_scene(&s);
	assert_int_equal(watcher_create(s.sb, &file, on_ready, &seen, &w, &err), 0);
	id = rig_expect(&s.rig, s.box, G_FILE, NULL);
	rig_say(s.box, frame, guest_put_error(frame, sizeof(frame), id, ENOENT, "no such thing"));
	rig_run(&s.rig);
	assert_true(seen.readies == 1 && !seen.w && seen.err.code == ENOENT);
	assert_int_equal(s.sb->n_watchers, 1);
	rig_close(&s.rig);
}

static void there_are_only_so_many(void **state)
{
	struct watcher *w = NULL;
	struct err err = { 0 };
	struct scene s;

	(void)state;
	open_scene(&s);
	while (s.sb->n_watchers < WATCHERS_MAX)
		assert_int_equal(watcher_create(s.sb, &file, on_ready, &s.seen, &w, &err), 0);
	assert_int_equal(watcher_create(s.sb, &file, on_ready, &s.seen, &w, &err), -EAGAIN);
	watcher_free(s.seen.w);
	assert_int_equal(watcher_create(s.sb, &file, on_ready, &s.seen, &w, &err), 0);
	assert_int_equal(s.sb->n_watches, WATCHERS_MAX);
	rig_close(&s.rig); /* and all of them with it */
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_happened_is_told_once),
		cmocka_unit_test(a_loss_is_told_behind_what_was_kept),
		cmocka_unit_test(long_names_are_bounded_together),
		cmocka_unit_test(one_that_has_ended_tells_the_rest_and_goes),
		cmocka_unit_test(one_that_cannot_begin_says_why_and_is_gone),
		cmocka_unit_test(there_are_only_so_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
