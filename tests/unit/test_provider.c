#include <errno.h>
#include <string.h>

#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "provider/fake.h"
#include "provider/guest_client.h"

/* What a callback was given, and how often. */
struct heard {
	unsigned calls;
	int code;
	char text[240];
	struct launcher_box box; /* its socket taken */
	struct box_usage usage;
	struct pool_state pool;
	size_t n_boxes;
	char first_id[ID_LEN + 1], first_tag[TAG_MAX + 1];
};

static void hear(void *user, const struct provider_reply *r)
{
	struct heard *h = user;

	h->calls++;
	h->code = r->code;
	assert_int_equal(str_copy(h->text, sizeof(h->text), r->text), 0);
	h->usage = r->usage;
	h->pool = r->pool;
	h->n_boxes = r->n_boxes;
	if (r->box) {
		h->box = *r->box;
		h->box.sock = TAKE_FD(r->box->sock);
	}
	if (r->n_boxes > 0) {
		assert_int_equal(str_copy(h->first_id, sizeof(h->first_id), r->boxes[0].id), 0);
		assert_int_equal(str_copy(h->first_tag, sizeof(h->first_tag), r->boxes[0].tag), 0);
	}
}

struct death {
	unsigned calls;
	char id[ID_LEN + 1];
	int status;
};

static void mourn(void *user, const char *box_id, int status, const struct box_usage *usage)
{
	struct death *d = user;

	d->calls++;
	d->status = status;
	assert_int_equal(str_copy(d->id, sizeof(d->id), box_id), 0);
	assert_int_equal(usage->cpu_us, 12);
}

static struct launcher_box claim(struct fake *f, struct provider p, const char *tag)
{
	struct launch_spec spec = { .template_id = 1, .tag = tag };
	struct heard h = { 0 };

	assert_int_equal(p.ops->claim(p.self, &spec, hear, &h, NULL), 0);
	assert_int_equal(h.calls, 0); /* never from inside the call */
	assert_int_equal(fake_run(f), 1);
	assert_int_equal(h.calls, 1);
	assert_int_equal(h.code, 0);
	return h.box;
}

static void a_claimed_box_has_every_limit_filled_in(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, NULL);

	(void)state;
	assert_int_equal(box.limits.memory_bytes, LIMIT_MEMORY_DEFAULT);
	assert_int_equal(box.limits.pids, LIMIT_PIDS_DEFAULT);
	assert_true(id_is_valid(box.id));
	assert_int_equal(f.live, 1);
	launcher_box_done(&box);
	fake_done(&f);
	assert_int_equal(f.live, 0);
}

static void a_limit_out_of_bounds_is_refused(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launch_spec spec = { .template_id = 1, .limits = { .pids = LIMIT_PIDS_MAX + 1 } };
	struct heard h = { 0 };

	(void)state;
	assert_int_equal(p.ops->claim(p.self, &spec, hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_true(h.code < 0 && h.text[0] != '\0');
	assert_int_equal(f.live, 0);
}

static void a_destroyed_box_is_gone_and_its_socket_hangs_up(void **state)
{
	struct fake f = { .usage = { .cpu_us = 12 } };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "");
	struct heard first = { 0 }, second = { 0 };
	struct guest_client *g;

	(void)state;
	assert_int_equal(guest_create(TAKE_FD(box.sock), &g, NULL), 0);
	assert_int_equal(p.ops->destroy(p.self, box.id, hear, &first, NULL), 0);
	assert_int_equal(p.ops->usage(p.self, box.id, hear, &second, NULL), 0);
	assert_int_equal(f.live, 1); /* it takes effect with its answer */
	assert_int_equal(fake_run(&f), 2);
	assert_int_equal(first.code, 0);
	assert_int_equal(first.usage.cpu_us, 12);
	assert_int_equal(second.code, -ENOENT);
	assert_int_equal(guest_dispatch(g), -EPIPE);
	guest_free(g);
}

static void freeze_and_limits_reach_the_right_box(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box a = claim(&f, p, "a"), b = claim(&f, p, "b");
	struct limits more = { .memory_bytes = 512u << 20 };
	struct heard h = { 0 };

	(void)state;
	assert_int_equal(p.ops->freeze(p.self, b.id, true, hear, &h, NULL), 0);
	assert_int_equal(p.ops->limits(p.self, b.id, &more, hear, &h, NULL), 0);
	assert_true(fake_step(&f));
	assert_int_equal(h.calls, 1);
	assert_true(fake_find(&f, b.id)->frozen);
	assert_int_equal(fake_find(&f, b.id)->limits.memory_bytes, LIMIT_MEMORY_DEFAULT);
	assert_true(fake_step(&f));
	assert_false(fake_step(&f));
	assert_false(fake_find(&f, a.id)->frozen);
	assert_int_equal(fake_find(&f, b.id)->limits.memory_bytes, 512u << 20);
	assert_int_equal(fake_find(&f, b.id)->limits.pids, LIMIT_PIDS_DEFAULT);
	launcher_box_done(&a);
	launcher_box_done(&b);
	fake_done(&f);
}

static void an_attached_box_hangs_up_on_its_former_client(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "");
	struct heard h = { 0 };
	char byte;

	(void)state;
	assert_int_equal(p.ops->attach(p.self, box.id, hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(h.code, 0);
	assert_string_equal(h.box.id, box.id);
	assert_int_equal(fd_recv(box.sock, &byte, 1, NULL, &(size_t){ 0 }), 0);
	assert_int_equal(fd_send(h.box.sock, "x", 1, NULL, 0), 1);
	assert_int_equal(fd_recv(fake_find(&f, box.id)->guest, &byte, 1, NULL, &(size_t){ 0 }), 1);
	launcher_box_done(&box);
	launcher_box_done(&h.box);
	assert_int_equal(p.ops->attach(p.self, "", hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(h.code, -ENOENT); /* the free slots have no name */
	fake_done(&f);
}

static void the_list_has_the_boxes_by_their_tags(void **state)
{
	struct fake f = { .pool = { .ready = 3 } };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "sandbox-1");
	struct heard h = { 0 };

	(void)state;
	assert_int_equal(p.ops->list(p.self, hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(h.n_boxes, 1);
	assert_string_equal(h.first_id, box.id);
	assert_string_equal(h.first_tag, "sandbox-1");
	assert_int_equal(p.ops->pool_state(p.self, 1, hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(h.pool.ready, 3);
	launcher_box_done(&box);
	fake_done(&f);
}

static void the_armed_call_fails_and_no_other(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "");
	struct heard freeze = { 0 }, destroy = { 0 };
	struct err err = { 0 };

	(void)state;
	f.fail_in = 2;
	f.fail_with = EDQUOT;
	assert_int_equal(p.ops->freeze(p.self, box.id, true, hear, &freeze, NULL), 0);
	assert_int_equal(p.ops->destroy(p.self, box.id, hear, &destroy, NULL), 0);
	assert_int_equal(fake_run(&f), 2);
	assert_int_equal(freeze.code, 0);
	assert_int_equal(destroy.code, -EDQUOT);
	assert_string_equal(destroy.text, "destroy refused");
	assert_int_equal(f.live, 1);
	f.fail_in = 1;
	f.fail_at_once = true;
	assert_int_equal(p.ops->destroy(p.self, box.id, hear, &destroy, &err), -EDQUOT);
	assert_string_equal(err.text, "destroy refused");
	assert_int_equal(fake_run(&f), 0);
	assert_int_equal(p.ops->destroy(p.self, box.id, hear, &destroy, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(f.live, 0);
	launcher_box_done(&box);
}

static void a_killed_box_is_told_in_its_turn(void **state)
{
	struct fake f = { .usage = { .cpu_us = 12 } };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "");
	struct death death = { 0 };
	struct heard h = { 0 };
	char byte;

	(void)state;
	p.ops->on_death(p.self, mourn, &death);
	fake_kill(&f, box.id, 9);
	assert_int_equal(p.ops->destroy(p.self, box.id, hear, &h, NULL), 0);
	assert_int_equal(fd_recv(box.sock, &byte, 1, NULL, &(size_t){ 0 }), 0);
	assert_int_equal(death.calls, 0);
	assert_true(fake_step(&f));
	assert_int_equal(death.calls, 1);
	assert_int_equal(death.status, 9);
	assert_string_equal(death.id, box.id);
	assert_int_equal(h.calls, 0);
	assert_true(fake_step(&f));
	assert_int_equal(h.code, -ENOENT);
	launcher_box_done(&box);
	fake_done(&f);
}

static void a_provider_that_goes_away_answers_every_call(void **state)
{
	struct launch_spec spec = { .template_id = 1 };
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launcher_box box = claim(&f, p, "");
	struct heard claimed = { 0 }, listed = { 0 };

	(void)state;
	assert_int_equal(p.ops->claim(p.self, &spec, hear, &claimed, NULL), 0);
	assert_int_equal(p.ops->list(p.self, hear, &listed, NULL), 0);
	fake_go_away(&f);
	assert_int_equal(claimed.calls, 1);
	assert_int_equal(claimed.code, -EPIPE);
	assert_int_equal(listed.code, -EPIPE);
	assert_int_equal(p.ops->list(p.self, hear, &listed, NULL), -EPIPE);
	assert_int_equal(fake_run(&f), 0);
	f.gone = false; /* another one in its place finds the boxes */
	assert_int_equal(p.ops->list(p.self, hear, &listed, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(listed.n_boxes, 1);
	launcher_box_done(&box);
	fake_done(&f);
}

static void note_id(void *user, const struct provider_reply *r)
{
	struct heard *h = user;

	memcpy(h->box.id, r->box->id, sizeof(h->box.id));
}

static void a_box_that_nobody_takes_is_hung_up_on(void **state)
{
	struct launch_spec spec = { .template_id = 1 };
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct heard h = { 0 };
	char byte;

	(void)state;
	assert_int_equal(p.ops->claim(p.self, &spec, note_id, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(fd_recv(fake_find(&f, h.box.id)->guest, &byte, 1, NULL, &(size_t){ 0 }),
			 0);
	fake_done(&f);
}

static void the_table_and_the_queue_have_an_end(void **state)
{
	struct fake f = { 0 };
	struct provider p = provider_fake(&f);
	struct launch_spec spec = { .template_id = 1 };
	struct launch_spec bad = { .template_id = 1, .tag = "UPPER" };
	struct heard h = { 0 };

	(void)state;
	for (int i = 0; i < FAKE_BOXES_MAX; i++) {
		struct launcher_box box = claim(&f, p, "");

		launcher_box_done(&box);
	}
	assert_int_equal(p.ops->claim(p.self, &spec, hear, &h, NULL), 0);
	assert_int_equal(fake_run(&f), 1);
	assert_int_equal(h.code, -EAGAIN);
	assert_int_equal(p.ops->claim(p.self, &bad, hear, &h, NULL), -EINVAL);
	assert_int_equal(p.ops->usage(p.self, "longer-than-any-box-id", hear, &h, NULL), -EINVAL);
	for (int i = 0; i < FAKE_QUEUE_MAX; i++)
		assert_int_equal(p.ops->list(p.self, hear, &h, NULL), 0);
	assert_int_equal(p.ops->list(p.self, hear, &h, NULL), -EAGAIN);
	fake_done(&f);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_claimed_box_has_every_limit_filled_in),
		cmocka_unit_test(a_limit_out_of_bounds_is_refused),
		cmocka_unit_test(a_destroyed_box_is_gone_and_its_socket_hangs_up),
		cmocka_unit_test(freeze_and_limits_reach_the_right_box),
		cmocka_unit_test(an_attached_box_hangs_up_on_its_former_client),
		cmocka_unit_test(the_list_has_the_boxes_by_their_tags),
		cmocka_unit_test(the_armed_call_fails_and_no_other),
		cmocka_unit_test(a_killed_box_is_told_in_its_turn),
		cmocka_unit_test(a_provider_that_goes_away_answers_every_call),
		cmocka_unit_test(a_box_that_nobody_takes_is_hung_up_on),
		cmocka_unit_test(the_table_and_the_queue_have_an_end),
	};

	return cmocka_run_group_tests_name("provider", tests, NULL, NULL);
}
