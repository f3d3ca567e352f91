/* One build, step by step, from its beginning to its last record. */
#include <errno.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/parse.h"
#include "base/str.h"
#include "sandbox/build_cache.h"
#include "sandbox/build_impl.h"
#include "sandbox/events.h"
#include "sandbox/template_alias.h"
#include "sandbox/tracing.h"
#include "json/jw.h"

/* ---- what a step is made of, as a sum ---- */

static void sum_text(struct hash *h, int *r, const char *text)
{
	uint64_t n = text ? strlen(text) : 0;

	/* With its length, so that no two lists of texts are one. */
	if (*r == 0)
		*r = hash_update(h, &n, sizeof(n));
	if (*r == 0 && n > 0)
		*r = hash_update(h, text, n);
}

static void sum_number(struct hash *h, int *r, uint64_t n)
{
	if (*r == 0)
		*r = hash_update(h, &n, sizeof(n));
}

/* What the build begins with. */
static int sum_start(struct build_job *j)
{
	const struct template_own *t = &j->model;
	struct hash *h = hash_create();
	int r = h ? 0 : -ENOMEM;

	if (r == 0)
		sum_text(h, &r, "holt build 1");
	if (r == 0) {
		sum_text(h, &r, t->base);
		sum_number(h, &r, t->make.root);
		sum_number(h, &r, t->layers.n);
		for (unsigned i = 0; i < t->layers.n; i++)
			sum_text(h, &r, t->layers.ids[i]);
	}
	if (r == 0)
		r = hash_final(h, j->key);
	(void)hash_free(h);
	return r;
}

/* The step on top of all before it: its own words, its files, and who does it where. */
static int sum_step(struct build_job *j, const struct build_step *s)
{
	const struct pairs *env = &j->model.env;
	struct hash *h = hash_create();
	int r = h ? hash_update(h, j->key, HASH_LEN) : -ENOMEM;

	if (r == 0) {
		sum_number(h, &r, (uint64_t)s->type);
		sum_text(h, &r, s->files);
		sum_text(h, &r, s->user ? s->user : j->user);
		sum_text(h, &r, j->workdir);
		sum_number(h, &r, s->args.len);
		for (size_t i = 0; i < s->args.len; i++)
			sum_text(h, &r, s->args.items[i]);
		sum_number(h, &r, env->len);
		for (size_t i = 0; i < env->len; i++) {
			sum_text(h, &r, env->items[i].name);
			sum_text(h, &r, env->items[i].value);
		}
	}
	if (r == 0)
		r = hash_final(h, j->key);
	(void)hash_free(h);
	return r;
}

/* ---- steps without a box ---- */

static int set_env(struct build_job *j, const struct build_step *s)
{
	struct pairs merged = { 0 };

	for (size_t i = 0; i + 1 < s->args.len; i += 2) {
		struct sandbox_pair one = { s->args.items[i], s->args.items[i + 1] };
		int r = pairs_merge(j->model.env.items, j->model.env.len, &one, 1, &merged);

		if (r < 0)
			return r;
		pairs_done(&j->model.env);
		j->model.env = merged;
	}
	return 0;
}

/* Below the one before it when it is not absolute. */
static int set_workdir(struct build_job *j, const char *path)
{
	char full[sizeof(j->workdir)];
	const char *base = j->workdir[0] ? j->workdir : "/workspace";
	int r = path[0] == '/' ? str_copy(full, sizeof(full), path)
			       : str_format(full, sizeof(full), "%s%s%s", base,
					    strcmp(base, "/") == 0 ? "" : "/", path);

	if (r < 0)
		return r;
	(void)str_copy(j->workdir, sizeof(j->workdir), full);
	j->model.make.workdir = arena_strndup(j->arena, full, strlen(full));
	return j->model.make.workdir ? 0 : -ENOMEM;
}

static bool needs_box(const struct build_step *s)
{
	return s->type != BUILD_ENV && s->type != BUILD_WORKDIR && s->type != BUILD_USER;
}

const char *build_user(const struct build_job *j, const char *said)
{
	bool is_root = strcmp(said, "root") == 0 || strcmp(said, "0") == 0;

	return is_root && j->all->settings.is_rootless ? "" : said;
}

static int apply(struct build_job *j, const struct build_step *s)
{
	int r;

	switch (s->type) {
	case BUILD_ENV:
		return set_env(j, s);
	case BUILD_WORKDIR:
		return set_workdir(j, s->args.items[0]);
	case BUILD_USER:
		r = str_copy(j->user, sizeof(j->user), build_user(j, s->args.items[0]));
		j->model.make.user = arena_strndup(j->arena, j->user, strlen(j->user));
		return r < 0 ? r : j->model.make.user ? 0 : -ENOMEM;
	default:
		return 0;
	}
}

/* 1: taken from the cache. */
static int take_cached(struct build_job *j)
{
	const struct build_entry *cached =
		j->is_forced ? NULL : build_cache_find(j->all, j->owner, j->key);

	if (!cached || layers_hold(j->all, &cached->layers) < 0)
		return 0;
	build_take_layers(j, &cached->layers, cached->bytes);
	build_step_now(j)->is_cached = true;
	return 1;
}

/* ---- from one to the next ---- */

static void step_done(struct build_job *j)
{
	struct build_step *s = build_step_now(j);

	s->state = BUILD_STEP_DONE;
	s->ms = now_ms(j->all) - j->began_ms;
	tracing_build_step_over(j);
	j->b->at++;
	build_tell(j);
}

static void fail_step(struct build_job *j, int code)
{
	if (!j->err.code)
		(void)err_sys(&j->err, code, "step %zu", j->b->at + 1);
	build_end(j);
}

/* One after the other. The version is there whatever becomes of them. */
static void tag_next(void *user, struct object *o, const struct err *err)
{
	struct build_job *j = user;
	const char *version = strchr(j->b->template, ':');
	uint64_t number = 0;

	(void)o;
	if (err)
		log_warn("sandbox", "%s has not got a tag: %s", j->b->template, err->text);
	if (j->tag >= j->b->tags.len || !version ||
	    parse_u64(version + 1, 1, UINT64_MAX, &number) < 0)
		return build_end(j);
	alias_put(j->all, j->owner, j->b->name, j->b->tags.items[j->tag++], number, tag_next, j);
}

static void on_put(void *user, struct object *o, const struct err *err)
{
	struct build_job *j = user;

	if (err) {
		j->err = *err;
		return build_end(j);
	}
	(void)str_copy(j->b->template, sizeof(j->b->template), o->name);
	tag_next(j, NULL, NULL);
}

static void run(struct build_job *j)
{
	while (j->b->at < j->b->n_steps) {
		struct build_step *s = build_step_now(j);
		int r;

		j->began_ms = now_ms(j->all);
		s->state = BUILD_STEP_RUNNING;
		tracing_build_step(j);
		j->is_forced |= s->force;
		build_tell(j);
		r = apply(j, s);
		if (r == 0)
			r = sum_step(j, s);
		if (r < 0)
			return fail_step(j, r);
		if (needs_box(s) && !take_cached(j))
			return build_box_begin(j);
		step_done(j);
	}
	template_put(j->all, j->owner, j->b->name, &j->model, on_put, j);
}

void build_begin(struct build_job *j)
{
	j->is_started = true;
	j->b->status = BUILD_BUILDING;
	j->b->at = 0;
	j->b->started_ms = (uint64_t)wall_ms(j->all);
	build_tell(j);
	if (j->root_path[0] != '\0')
		build_root_begin(j);
	else
		build_go(j);
}

void build_go(struct build_job *j)
{
	if (sum_start(j) < 0)
		return fail_step(j, -ENOMEM);
	run(j);
}

void build_step_over(struct build_job *j)
{
	if (j->err.code || j->is_canceled) {
		build_end(j);
		return;
	}
	step_done(j);
	run(j);
}

/* ---- the end ---- */

static void announce(const struct build_job *j)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	bool ready = j->result == BUILD_READY;

	jw_object_begin(&w);
	jw_str_field(&w, "name", j->b->name);
	if (ready)
		jw_str_field(&w, "template", j->b->template);
	else
		jw_str_field(&w, "reason", j->b->reason);
	jw_object_end(&w);
	if (jw_end(&w) == 0)
		events_emit(
			j->all->events,
			&(struct event){ .kind = ready ? "template.built" : "template.build_failed",
					 .owner = j->owner,
					 .subject = j->id,
					 .text = buf_str(&b) });
}

void build_end(struct build_job *j)
{
	struct build *b = j->b;
	bool in_step = j->is_started && b->at < b->n_steps;

	if (j->err.code && in_step && build_step_now(j)->state == BUILD_STEP_RUNNING) {
		build_step_now(j)->state = BUILD_STEP_FAILED;
		build_step_now(j)->ms = now_ms(j->all) - j->began_ms;
		tracing_build_step_over(j);
	}
	j->result = j->is_canceled ? BUILD_CANCELED : j->err.code ? BUILD_FAILED : BUILD_READY;
	if (b->template[0] != '\0')
		j->result = BUILD_READY; /* it was canceled too late */
	if (j->result != BUILD_READY)
		(void)str_format(b->reason, sizeof(b->reason), "%.239s",
				 j->is_canceled ? "canceled" : j->err.text);
	b->ended_ms = (uint64_t)wall_ms(j->all);
	tracing_build_over(j);
	j->is_unsaved = true;
	build_tell(j); /* all of the output, before a record keeps the end of it only */
	build_save(j);
}

/* It is over when the store knows. The object has its last data by now; ours goes with this call.
 */
static void on_saved(void *user, struct object *o, const struct err *err)
{
	struct build_job *j = user;
	struct sandboxes *all = j->all;

	(void)o;
	j->is_saving = false;
	if (err && err->code != ENOENT) {
		log_warn("sandbox", "the end of build %s is not written: %s", j->id, err->text);
		loop_timer_start(all->builds->again, TICK_MS, 0);
		return;
	}
	j->is_unsaved = false;
	announce(j);
	build_tell(j);
	build_job_free(j);
	builds_next(all);
}

void build_save(struct build_job *j)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	int before = j->b->status, r;

	if (j->is_saving)
		return;
	j->b->status = j->result;
	r = build_write(j->b, &b);
	j->b->status = before;
	if (r < 0) {
		loop_timer_start(j->all->builds->again, TICK_MS, 0);
		return;
	}
	j->is_saving = true;
	objects_change(j->all->objects[OBJECTS_BUILD], j->id, (uint32_t)j->result, b.data, on_saved,
		       j);
}
