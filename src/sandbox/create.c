/* Making a sandbox: claim a box, connect to it, write it down; one commit on the path. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/announce.h"
#include "sandbox/ask.h"
#include "sandbox/check.h"
#include "sandbox/execution.h"
#include "sandbox/prepare.h"
#include "sandbox/profile.h"
#include "sandbox/registry.h"
#include "sandbox/slot.h"
#include "sandbox/snapshot.h"
#include "sandbox/template_own.h"
#include "sandbox/tracing.h"
#include "sandbox/volume_box.h"

/* Undoes all of it: no box, no struct, and the callers know why. */
static void fail(struct sandbox *sb, const char *stage, const struct err *err)
{
	struct sandboxes *all = sb->all;

	metrics_inc(all->metrics, METRIC_SANDBOX_CREATE_FAILURES, LABELS(stage));
	tracing_created(sb, err);
	sandbox_set_state(sb, SANDBOX_FAILED);
	sandbox_tell(sb, WAIT_CREATE, err);
	sandbox_tell(sb, WAIT_END, NULL); /* as asked for: it is gone */
	link_close(sb);
	if (sb->box_id[0] != '\0' && !sb->is_died)
		stop_stranger(all, sb->box_id);
	sandbox_drop_layers(sb);
	executions_interrupt(sb, "the sandbox could not be made");
	sb->is_recorded = true; /* there is nothing to record */
	stop_forget(sb);
}

/* The box ended while the row was on its way: that the row is of a sandbox that failed must be
 * written, too, for as long as it takes. */
static void fail_died(struct sandbox *sb)
{
	struct err err = { 0 };

	metrics_inc(sb->all->metrics, METRIC_SANDBOX_CREATE_FAILURES, LABELS("box"));
	(void)err_set(&err, EPIPE, "%s", sb->reason);
	tracing_created(sb, &err);
	sandbox_tell(sb, WAIT_CREATE, &err);
	stop_failed(sb);
}

static void on_recorded(struct sandbox *sb, int r)
{
	struct err err = record_error(r);
	uint64_t now = clock_now_ns();

	if (sb->is_died && r == 0) {
		fail_died(sb);
		return;
	}
	if (r < 0) {
		fail(sb, "store", &err);
		return;
	}
	sb->total_us = (now - sb->began_ns) / 1000;
	sb->store_us = sb->total_us - sb->claim_us;
	tracing_created(sb, NULL);
	sandbox_set_state(sb, SANDBOX_RUNNING);
	metrics_observe(sb->all->metrics, METRIC_SANDBOX_CREATE_SECONDS,
			LABELS(sb->is_warm ? "warm" : "cold"), (double)sb->total_us / 1e6);
	sandbox_touch(sb);
	reaper_note(sb);
	prepare_record(sb);
	sandbox_tell(sb, WAIT_CREATE, NULL);
	if (!list_is_empty(&sb->waits[WAIT_END]))
		stop_begin(sb, "deleted");
}

/* 0, or why the box cannot be used. */
int create_take_box(struct sandbox *sb, struct launcher_box *box, struct err *err)
{
	int r = sandbox_set_box(sb, box->id);

	if (r < 0)
		return err_sys(err, r, "the box");
	sb->limits = box->limits;
	quota_settle(sb);
	usage_new_box(sb);
	sb->is_warm = (box->flags & BOX_WARM) != 0;
	memcpy(sb->step_ns, box->step_ns, sizeof(sb->step_ns));
	if (box->why[0] != '\0')
		announce_preload(sb, box->why);
	return link_open(sb, TAKE_FD(box->sock), true, err);
}

static void on_prepared(struct sandbox *sb, const struct err *err)
{
	if (err) {
		fail(sb, "start", err);
		return;
	}
	ttl_begin(sb);
	record_put(sb, SANDBOX_RUNNING, on_recorded);
}

static void on_claimed(void *user, const struct provider_reply *reply)
{
	struct sandbox *sb = user;
	struct err err = { 0 };
	int r = reply->code;

	sb->claim_us = (clock_now_ns() - sb->began_ns) / 1000;
	if (r == -ENOENT && slot_error(sb->all, sb->template_id, &err) < 0)
		r = -err.code; /* why there is no such template */
	else if (r < 0)
		err = ask_error(reply);
	else
		r = create_take_box(sb, reply->box, &err);
	slot_drop(sb->all, sb->template_id);
	if (r < 0) {
		fail(sb, "claim", &err);
		return;
	}
	tracing_claimed(sb);
	prepare_begin(sb, on_prepared);
}

/* What it is made of: a template, what a snapshot was taken of, or what another is. */
struct origin {
	const char *template; /* as people call it; borrowed, as all of it */
	struct kit kit;
	const struct limits *limits;
	const struct pairs *env;
	struct layers layers; /* on top of the kit's */
};

static void set_template(const char *name, const struct template_own *t, struct origin *ret)
{
	ret->template = name[0] != '\0' ? name : t->base;
	ret->kit = kit_of_template(t, &ret->layers);
	ret->limits = &t->limits;
	ret->env = &t->env;
}

static int find_template(struct sandboxes *all, const struct sandbox_request *req,
			 struct origin *ret, struct err *err)
{
	const struct template_row *row = template_find(req->template);
	const struct object *o;

	if (row) {
		ret->template = row->name;
		ret->limits = &all->settings.limits;
		return str_copy(ret->kit.runtime, sizeof(ret->kit.runtime), row->name);
	}
	o = template_own_find(all, req->owner, req->template);
	if (!o)
		return err_set(err, EINVAL, "template: there is no '%.60s'", req->template);
	set_template(o->name, o->data, ret);
	return 0;
}

static int find_snapshot(struct sandboxes *all, const struct sandbox_request *req,
			 struct origin *ret, struct err *err)
{
	const struct object *o =
		objects_find(all->objects[OBJECTS_SNAPSHOT], req->snapshot, req->owner);
	const struct snapshot *s;

	if (!o)
		return err_set(err, EINVAL, "snapshot: there is no '%.64s'", req->snapshot);
	s = o->data;
	ret->template = s->template;
	ret->kit = s->kit;
	ret->limits = &s->limits;
	ret->env = &s->env;
	ret->layers = s->layers;
	return 0;
}

static int find_origin(struct sandboxes *all, const struct sandbox_request *req, struct origin *ret,
		       struct err *err)
{
	*ret = (struct origin){ 0 };
	if (req->snapshot && req->snapshot[0] != '\0')
		return find_snapshot(all, req, ret, err);
	if (req->model) {
		set_template(req->template, req->model, ret);
		return 0;
	}
	if (!req->parent)
		return find_template(all, req, ret, err);
	ret->template = req->parent->template;
	ret->kit = req->parent->kit;
	ret->limits = &req->parent->limits;
	ret->layers = *req->layers;
	return 0;
}

/* The snapshot's variables, and the request's before them. */
static int fill_pairs(struct sandbox *sb, const struct sandbox_request *req,
		      const struct origin *from)
{
	int r = from->env ? pairs_merge(from->env->items, from->env->len, req->env, req->n_env,
					&sb->env)
			  : pairs_copy(req->env, req->n_env, &sb->env);

	if (r == 0 && req->note && !(sb->note = strdup(req->note)))
		r = -ENOMEM;
	if (r == 0 && req->grant && !(sb->grant = strdup(req->grant)))
		r = -ENOMEM;
	return r < 0 ? r : pairs_copy(req->metadata, req->n_metadata, &sb->metadata);
}

static int fill_disk(struct sandbox *sb, const struct sandbox_request *req,
		     const struct origin *from, struct err *err)
{
	int r;

	if (req->volumes) {
		sb->volumes = *req->volumes;
		r = volumes_resolve(sb->all, req->owner, &sb->volumes, err);
		if (r == 0)
			r = volumes_check(sb, err);
		if (r < 0)
			return r;
	}
	if (layers_hold(sb->all, &from->layers) < 0)
		return err_sys(err, ENOMEM, "sandbox");
	sb->layers = from->layers;
	if (layers_hold(sb->all, &from->kit.layers) < 0)
		return err_sys(err, ENOMEM, "sandbox");
	sb->kit.layers = from->kit.layers;
	return 0;
}

/* It is never less strict than its template. */
static void fill_profile(struct sandbox *sb, const struct sandbox_request *req)
{
	const struct makeup *m = &sb->kit.make;

	sb->profile = req->profile == PROFILE_ID_STANDARD ? m->profile : req->profile;
	sb->strict = req->strict | m->strict;
}

/* What is asked for by name is refused above the maximum; what comes from a template, a snapshot or
 * a parent is lowered to it. */
static int fill_limits(struct sandbox *sb, const struct sandbox_request *req,
		       const struct limits *from, struct err *err)
{
	const struct sandbox_settings *s = &sb->all->settings;
	struct limits base = *from;
	int r = check_limits(s, &req->limits, err);

	if (r < 0)
		return r;
	spec_clamp_limits(&base, &s->limits_max);
	sb->limits = req->limits;
	return spec_fill_limits(&sb->limits, &base, err);
}

/* Fills in what the request says. */
static int fill(struct sandbox *sb, const struct sandbox_request *req, struct err *err)
{
	const struct sandbox_settings *s = &sb->all->settings;
	struct origin from;
	int r = find_origin(sb->all, req, &from, err);

	if (r < 0)
		return r;
	r = fill_limits(sb, req, from.limits, err);
	if (r < 0)
		return r;
	r = fill_pairs(sb, req, &from);
	if (r == 0)
		r = kit_copy(&from.kit, &sb->kit);
	sb->kit.layers.n = 0; /* until they are held */
	if (r < 0)
		return err_sys(err, r, "sandbox");
	id_make(sb->id);
	(void)str_copy(sb->owner, sizeof(sb->owner), req->owner); /* fits: check_request() */
	(void)str_copy(sb->key_id, sizeof(sb->key_id), req->key_id ? req->key_id : "");
	(void)str_copy(sb->name, sizeof(sb->name), req->name);
	(void)str_format(sb->template, sizeof(sb->template), "%.63s", from.template);
	fill_profile(sb, req);
	sb->is_internal = req->is_internal;
	sb->timeout_ms = req->timeout_ms ? req->timeout_ms : s->timeout_ms;
	sb->idle_ms = req->idle_ms ? req->idle_ms : s->idle_ms;
	sb->life = req->life;
	sb->created_ms = wall_ms(sb->all);
	sb->began_ns = clock_now_ns();
	r = fill_disk(sb, req, &from, err);
	return r < 0 ? r : kit_slot(sb->all, &sb->kit, sb->strict, &sb->template_id, err);
}

struct claim { /* of a sandbox whose volumes are not free yet */
	struct pending pending;
	struct sandbox *sb; /* borrowed, as by who is asked for the box */
	uint32_t flags;
	provider_cb then;
	void *user;
};

static void drop_claim(struct pending *p)
{
	free(LIST_ENTRY(p, struct claim, pending));
}

static void ask_box(struct sandbox *sb, uint32_t flags, provider_cb then, void *user)
{
	struct launch_spec spec = { .template_id = sb->template_id,
				    .flags = flags,
				    .limits = sb->limits,
				    .tag = sb->id,
				    .layers = layers_list(&sb->layers) };

	volumes_fill_spec(&sb->volumes, &spec);
	ask_provider(sb->all, &(struct ask){ .kind = ASK_CLAIM, .spec = &spec }, then, user);
}

static void on_free(void *user)
{
	struct claim *c = user;

	list_remove(&c->pending.node);
	ask_box(c->sb, c->flags, c->then, c->user);
	free(c);
}

void create_claim(struct sandbox *sb, uint32_t flags, provider_cb then, void *user)
{
	struct claim *c = sb->volumes.n > 0 ? calloc(1, sizeof(*c)) : NULL;

	if (!c) /* then the launcher says what is in use */
		return ask_box(sb, flags, then, user);
	*c = (struct claim){ .sb = sb, .flags = flags, .then = then, .user = user };
	c->pending.drop = drop_claim;
	list_push_back(&sb->all->pending, &c->pending.node);
	if (!volume_boxes_end(sb->all, &sb->volumes, sb, on_free, c))
		on_free(c);
}

int create_check_disk(struct sandbox *sb, struct err *err)
{
	return volumes_check(sb, err);
}

/* The live one of that name answers the request. */
static void use_existing(struct sandbox *sb, const struct sandbox_request *req, struct answer *a)
{
	struct err err = { 0 };

	if (!req->get_or_create) {
		(void)err_set(&err, EEXIST, "name: '%s' is taken", req->name);
		answer_give(a, NULL, &err);
		return;
	}
	/* Who asks for a stricter one must not get what there is without a word. */
	if ((req->strict & ~sb->strict) != 0) {
		(void)err_set(&err, EEXIST, "name: '%s' is less strict than that", req->name);
		answer_give(a, NULL, &err);
		return;
	}
	answer_mark_existing(a);
	if (sb->state == SANDBOX_CREATING)
		(void)sandbox_wait(sb, WAIT_CREATE, a);
	else if (sb->state == SANDBOX_STOPPING || !state_is_live(sb->state)) {
		(void)err_set(&err, EBUSY, "the sandbox '%s' is ending", req->name);
		answer_give(a, NULL, &err);
	} else {
		sandbox_touch(sb);
		answer_give(a, sb, NULL);
	}
}

/* NULL: *err says why. */
static struct sandbox *make(struct sandboxes *all, const struct sandbox_request *req,
			    struct err *err)
{
	struct sandbox *sb;
	int r;

	if (map_len(all->by_id) >= all->settings.max_sandboxes) {
		(void)err_set(err, EDQUOT,
			      "there are %u sandboxes already, the limit (max_sandboxes)",
			      all->settings.max_sandboxes);
		return NULL;
	}
	sb = sandbox_alloc(all);
	if (!sb) {
		(void)err_sys(err, ENOMEM, "sandbox");
		return NULL;
	}
	r = fill(sb, req, err);
	if (r == 0)
		r = quota_admit(sb, SANDBOX_CREATING, err);
	if (r == 0 && (r = sandbox_register(sb)) < 0)
		(void)err_sys(err, r, "sandbox");
	if (r == 0) {
		quota_settle(sb);
		announce_created(sb);
		return sb;
	}
	slot_drop(all, sb->template_id);
	sandbox_drop_layers(sb);
	sandbox_unref(sb);
	return NULL;
}

void sandbox_create(struct sandboxes *all, const struct sandbox_request *req, sandbox_cb cb,
		    void *user)
{
	struct answer *a = answer_create(all, cb, user);
	struct sandbox *sb = NULL;
	struct err err = { 0 };

	if (!a)
		return;
	if (check_request(&all->settings, req, &err) == 0) {
		sb = sandboxes_by_name(all, req->owner, req->name);
		if (sb) {
			use_existing(sb, req, a);
			return;
		}
		sb = make(all, req, &err);
	}
	if (!sb) {
		answer_give(a, NULL, &err);
		return;
	}
	(void)sandbox_wait(sb, WAIT_CREATE, a); /* the first: there is room */
	tracing_create(sb, req->trace);
	create_claim(sb, req->cold ? LAUNCH_COLD : 0, on_claimed, sb);
}
