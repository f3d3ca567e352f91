/* Webhooks over a store in memory; the test is every server that they lead to. */
#include "outbound/webhooks.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/str.h"
#include "check.h"
#include "fault.h"
#include "outbound/courier.h"
#include "outbound/webhook_line.h"
#include "sandbox/events.h"
#include "sandbox/journal.h"
#include "sandbox_rig.h"

#define URL "https://hooks.example.com/x"
#define SENT_MAX 64

/* ---- the courier ---- */

struct sent {
	courier_fn *done;
	void *user;
	char *body; /* owned */
	char url[64];
	bool public_only;
};

static struct {
	struct sent all[SENT_MAX];
	size_t n, answered;
	int refuse; /* the next one is, with this */
} courier;

int courier_check_url(const char *url, struct err *err)
{
	return strstr(url, "example") ? 0 : err_set(err, EINVAL, "url: not this one");
}

int courier_send(struct courier *c, const struct courier_request *req, courier_fn *done, void *user)
{
	struct sent *s = &courier.all[courier.n];
	int refuse = courier.refuse;

	(void)c;
	courier.refuse = 0;
	if (refuse)
		return refuse;
	assert_true(courier.n < SENT_MAX);
	s->body = str_dup((struct str){ req->body, req->body_len });
	if (!s->body)
		return -ENOMEM;
	assert_int_equal(str_copy(s->url, sizeof(s->url), req->url), 0);
	s->done = done;
	s->user = user;
	s->public_only = req->public_only;
	courier.n++;
	return 0;
}

/* ---- the rig ---- */

struct rig {
	struct sandbox_rig base;
	struct events *events;
	struct webhooks *hooks;
	enum webhook_reach reach;
	/* what a webhook_cb was given */
	int calls;
	struct err err;
	char id[ID_LEN + 1], secret[128];
};

static enum webhook_reach reach(void *user, const char *owner)
{
	struct rig *g = user;

	return strcmp(owner, "boss") == 0 ? g->reach : WEBHOOK_REACH_OWN;
}

static int open_hooks(void *user)
{
	struct rig *g = user;
	struct webhooks_options o = { .loop = g->base.loop,
				      .store = &g->base.store,
				      .sandboxes = g->base.all,
				      .events = g->events,
				      .metrics = g->base.metrics,
				      .reach = reach,
				      .user = g,
				      .timeout_ms = 1000,
				      .give_up_ms = 1u << 30 };

	return webhooks_open(&o, &g->hooks, &g->err);
}

static int setup(void **state)
{
	struct rig *g = calloc(1, sizeof(*g));
	struct events_options o = { .retention_ms = 1u << 30 };

	assert_non_null(g);
	memset(&courier, 0, sizeof(courier));
	rig_open(&g->base);
	o.loop = g->base.loop;
	o.store = &g->base.store;
	g->reach = WEBHOOK_REACH_ALL;
	assert_int_equal(events_open(&o, &g->events, NULL), 0);
	assert_int_equal(open_hooks(g), 0);
	*state = g;
	return 0;
}

static int teardown(void **state)
{
	struct rig *g = *state;

	g->hooks = webhooks_free(g->hooks);
	rig_run(&g->base);
	g->events = events_free(g->events);
	rig_close(&g->base);
	for (size_t i = 0; i < courier.n; i++)
		free(courier.all[i].body);
	free(g);
	return 0;
}

static void told(void *user, struct object *o, const char *secret, const struct err *err)
{
	struct rig *g = user;

	g->calls++;
	g->err = err ? *err : (struct err){ 0 };
	(void)str_copy(g->id, sizeof(g->id), o ? o->id : "");
	(void)str_copy(g->secret, sizeof(g->secret), secret ? secret : "");
}

static void removed(void *user, struct object *o, const struct err *err)
{
	told(user, o, NULL, err);
}

static const char *add(struct rig *g, const char *owner, const char *name, bool all)
{
	const char *events[] = { "sandbox.*" };
	struct webhook_wish wish = webhook_defaults;

	wish.name = name;
	wish.url = URL;
	wish.events = (struct jv_strings){ events, 1 };
	wish.all_owners = all;
	g->calls = 0;
	webhooks_add(g->hooks, owner, &wish, told, g);
	rig_run(&g->base);
	assert_int_equal(g->calls, 1);
	assert_int_equal(g->err.code, 0);
	assert_true(strlen(g->secret) > 40);
	return g->id;
}

static void patch(struct rig *g, const char *id, bool on)
{
	struct webhook_patch p = webhook_patch_defaults;

	p.enabled.on = on;
	webhooks_change(g->hooks, id, &p, told, g);
	rig_run(&g->base);
	assert_int_equal(g->err.code, 0);
}

static const struct webhook_line *line_of(struct rig *g, const char *id)
{
	return webhook_line_of(
		objects_find(sandboxes_objects(g->base.all, OBJECTS_WEBHOOK), id, NULL));
}

static void emit(struct rig *g, const char *owner, const char *subject)
{
	events_emit(
		g->events,
		&(struct event){ .kind = "sandbox.created", .owner = owner, .subject = subject });
	events_emit(g->events,
		    &(struct event){ .kind = "key.created", .owner = owner, .subject = "no" });
	rig_run(&g->base);
}

/* The oldest message that was not answered yet is about this. */
static void answer(struct rig *g, const char *subject, int status)
{
	struct courier_answer a = { .status = status, .r = status < 300 ? 0 : -EIO };
	struct sent *s = &courier.all[courier.answered];
	char want[64];

	assert_true(courier.answered < courier.n);
	assert_int_equal(str_format(want, sizeof(want), "\"subject\":\"%s\"", subject), 0);
	if (!strstr(s->body, want))
		fail_msg("want %s in %s", want, s->body);
	courier.answered++;
	s->done(s->user, &a);
	rig_run(&g->base);
}

static size_t under_way(void)
{
	return courier.n - courier.answered;
}

/* ---- tests ---- */

static void one_goes_at_a_time_and_in_order(void **state)
{
	struct rig *g = *state;

	(void)add(g, "ann", "a", false);
	for (char name[2] = "a"; name[0] <= 'z'; name[0]++) /* more than wait in memory */
		emit(g, "ann", name);
	assert_int_equal(under_way(), 1);
	assert_true(courier.all[0].public_only);
	answer(g, "a", 500);
	assert_int_equal(under_way(), 1);
	for (char name[2] = "a"; name[0] <= 'z'; name[0]++) {
		answer(g, name, 204);
		assert_int_equal(under_way(), name[0] < 'z');
	}
}

static void nobody_gets_what_is_not_theirs(void **state)
{
	struct rig *g = *state;

	(void)add(g, "ann", "a", false);
	(void)add(g, "boss", "b", true);
	emit(g, "bob", "bobs");
	emit(g, "", "nobodys");
	assert_int_equal(under_way(), 1);
	answer(g, "bobs", 200);
	answer(g, "nobodys", 200);
	g->reach = WEBHOOK_REACH_OWN; /* no admin any more */
	emit(g, "bob", "bobs2");
	emit(g, "boss", "own");
	assert_int_equal(under_way(), 1);
	answer(g, "own", 200);
	g->reach = WEBHOOK_REACH_NONE; /* shut out */
	emit(g, "boss", "later");
	assert_int_equal(under_way(), 0);
	g->reach = WEBHOOK_REACH_OWN;
	emit(g, "boss", "last");
	answer(g, "later", 200);
	answer(g, "last", 200);
	assert_int_equal(under_way(), 0);
}

static void the_next_process_goes_on_where_it_stopped(void **state)
{
	struct rig *g = *state;
	const char *id = add(g, "ann", "a", false);

	emit(g, "ann", "one");
	emit(g, "ann", "two");
	answer(g, "one", 200);
	answer(g, "two", 500);
	g->hooks = webhooks_free(g->hooks);
	courier.answered = courier.n; /* the courier went with it */
	rig_run(&g->base);
	emit(g, "ann", "three");
	assert_int_equal(open_hooks(g), 0);
	assert_int_equal(line_of(g, id)->delivered, 1);
	emit(g, "ann", "four");
	answer(g, "two", 200);
	answer(g, "three", 200);
	answer(g, "four", 200);
	assert_int_equal(line_of(g, id)->failed, 1);
	assert_int_equal(line_of(g, id)->missed_total, 0);
}

static void a_removed_one_is_not_heard_of_again(void **state)
{
	struct rig *g = *state;
	char id[ID_LEN + 1];

	(void)str_copy(id, sizeof(id), add(g, "ann", "a", false));
	emit(g, "ann", "one");
	assert_int_equal(under_way(), 1);
	webhooks_remove(g->hooks, id, removed, g);
	rig_run(&g->base);
	assert_int_equal(g->err.code, 0);
	assert_null(objects_find(sandboxes_objects(g->base.all, OBJECTS_WEBHOOK), id, NULL));
	answer(g, "one", 500); /* of one that is gone */
	emit(g, "ann", "two");
	assert_int_equal(under_way(), 0);
	webhooks_remove(g->hooks, id, removed, g);
	assert_int_equal(g->err.code, ENOENT);
	(void)add(g, "ann", "a", false);
	(void)add(g, "bob", "b", false);
	webhooks_end_owner(g->hooks, "ann");
	rig_run(&g->base);
	emit(g, "ann", "three");
	emit(g, "bob", "four");
	answer(g, "four", 200);
	assert_int_equal(under_way(), 0);
}

static void gone_and_disabled_ones_keep_their_place(void **state)
{
	struct rig *g = *state;
	char id[ID_LEN + 1];

	(void)str_copy(id, sizeof(id), add(g, "ann", "a", false));
	emit(g, "ann", "one");
	answer(g, "one", 410);
	emit(g, "ann", "two");
	assert_int_equal(under_way(), 0);
	patch(g, id, true);
	answer(g, "one", 200);
	patch(g, id, false); /* with "two" under way */
	answer(g, "two", 200);
	emit(g, "ann", "three");
	assert_int_equal(under_way(), 0);
	patch(g, id, true);
	answer(g, "two", 200); /* nobody knew that it had arrived: at least once */
	answer(g, "three", 200);
}

static void what_the_log_forgot_is_said(void **state)
{
	struct rig *g = *state;
	char id[ID_LEN + 1];

	(void)str_copy(id, sizeof(id), add(g, "ann", "a", false));
	patch(g, id, false);
	emit(g, "ann", "one");
	emit(g, "ann", "two");
	assert_int_equal(store_trim_journal(&g->base.store, EVENT_STREAM, clock_wall_ms() + 1000,
					    1000, NULL, NULL),
			 0);
	rig_run(&g->base);
	emit(g, "ann", "three");
	patch(g, id, true);
	assert_int_equal(under_way(), 1);
	assert_non_null(strstr(courier.all[0].body, "\"missed\":4"));
	answer(g, "three", 200);
	emit(g, "ann", "four");
	assert_null(strstr(courier.all[1].body, "missed"));
	answer(g, "four", 200);
	assert_int_equal(line_of(g, id)->missed_total, 4);
}

static void strange_records_are_survived(void **state)
{
	struct rig *g = *state;
	struct object_row row = { .kind = "webhook_state", .text = "{\"cursor\":\"x\"}" };
	char id[ID_LEN + 1];

	(void)str_copy(id, sizeof(id), add(g, "ann", "a", false));
	g->hooks = webhooks_free(g->hooks);
	row.id = id;
	assert_int_equal(store_put_object(&g->base.store, &row, NULL, NULL), 0);
	row.id = "of one that is not there";
	assert_int_equal(store_put_object(&g->base.store, &row, NULL, NULL), 0);
	rig_run(&g->base);
	assert_int_equal(open_hooks(g), 0);
	emit(g, "ann", "one");
	answer(g, "one", 200);
}

static int open_again(void *user)
{
	struct rig *g = user;

	g->err = (struct err){ 0 };
	return open_hooks(g);
}

static void without_memory_nothing_is_left(void **state)
{
	struct rig *g = *state;
	struct webhook_wish wish = webhook_defaults;

	wish.name = "b";
	wish.url = URL;
	(void)add(g, "ann", "a", false);
	g->hooks = webhooks_free(g->hooks);
	rig_run(&g->base);
	assert_true(fault_each(open_again, g) > 2);
	for (size_t n = 1; n < 40; n++) {
		g->calls = 0;
		fault_arm(n);
		webhooks_add(g->hooks, "ann", &wish, told, g);
		if (!fault_disarm())
			break;
		rig_run(&g->base);
		assert_int_equal(g->calls, 1);
		if (g->err.code) {
			assert_int_equal(g->err.code, ENOMEM);
			continue;
		}
		webhooks_remove(g->hooks, g->id, removed, g);
		rig_run(&g->base);
	}
	rig_run(&g->base);
	assert_int_equal(g->err.code, 0);
	webhooks_remove(g->hooks, g->id, removed, g);
	rig_run(&g->base);
	courier.refuse = -EAGAIN; /* too much waits elsewhere: the next event asks again */
	emit(g, "ann", "one");
	answer(g, "one", 200);
	assert_int_equal(under_way(), 0);
}

static void bad_values_are_named(void **state)
{
	struct rig *g = *state;
	const char *strange[] = { "nothing.*" };
	struct webhook_wish good = { .name = "x", .url = URL, .enabled = true }, w;

	w = good;
	w.url = "http://plain.example.com/";
	webhooks_add(g->hooks, "ann", &w, told, g);
	assert_int_equal(g->err.code, EINVAL);
	assert_non_null(strstr(g->err.text, "https"));
	w = good;
	w.url = "https://other/";
	webhooks_add(g->hooks, "ann", &w, told, g);
	assert_int_equal(g->err.code, EINVAL);
	w = good;
	w.events = (struct jv_strings){ strange, 1 };
	webhooks_add(g->hooks, "ann", &w, told, g);
	assert_non_null(strstr(g->err.text, "nothing.*"));
	w = good;
	w.secret = "with a blank in it";
	webhooks_add(g->hooks, "ann", &w, told, g);
	assert_non_null(strstr(g->err.text, "secret"));
	assert_null(strstr(g->err.text, "blank in it"));
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(one_goes_at_a_time_and_in_order),
		TEST(nobody_gets_what_is_not_theirs),
		TEST(the_next_process_goes_on_where_it_stopped),
		TEST(a_removed_one_is_not_heard_of_again),
		TEST(gone_and_disabled_ones_keep_their_place),
		TEST(what_the_log_forgot_is_said),
		TEST(strange_records_are_survived),
		TEST(without_memory_nothing_is_left),
		TEST(bad_values_are_named),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
