#include "sandbox/build.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/log.h"
#include "base/str.h"
#include "sandbox/build_impl.h"
#include "sandbox/check.h"
#include "sandbox/tracing.h"
#include "telemetry/trace.h"

#define ARENA_MAX (256u << 10)
#define WAITING_OWNER_MAX 32u /* builds of an owner that wait or are under way */
#define KEEP_OWNER 100u       /* records of an owner's that are over */

static struct objects *table(struct sandboxes *all)
{
	return all->objects[OBJECTS_BUILD];
}

/* ---- jobs ---- */

void build_job_free(struct build_job *j)
{
	LIST_FOREACH (&j->followers, f, struct build_follower, node) {
		list_remove(&f->node);
		list_init(&f->node);
	}
	list_remove(&j->node);
	(void)build_root_stop(j);
	(void)loop_timer_free(j->timer);
	layers_drop(j->all, &j->model.layers);
	pairs_done(&j->model.env);
	(void)arena_free(j->arena);
	span_drop(j->step_span);
	span_drop(j->span);
	free(j);
}

void build_tell(struct build_job *j)
{
	LIST_FOREACH (&j->followers, f, struct build_follower, node)
		f->changed(f->user);
}

static void on_late(void *user)
{
	struct build_job *j = user;

	if (!j->err.code)
		(void)err_set(&j->err, ETIMEDOUT, "it took too long");
	build_box_stop(j);
}

static struct build_job *find_job(struct sandboxes *all, const char *id)
{
	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node)
		if (strcmp(j->id, id) == 0)
			return j;
	return NULL;
}

void builds_next(struct sandboxes *all)
{
	size_t n = 0;

	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node)
		n += j->is_started && !j->is_unsaved;
	while (n < all->settings.max_builds) {
		struct build_job *first = NULL;

		LIST_FOREACH (&all->builds->jobs, j, struct build_job, node)
			if (!first && j->b && !j->is_started && !j->is_canceled)
				first = j;
		if (!first)
			return;
		n++;
		build_begin(first);
	}
}

/* ---- what may be asked for ---- */

static bool is_path(const char *path)
{
	struct str rest = str_of(path), name;

	if (path[0] == '\0' || strlen(path) > MAKEUP_PATH_MAX)
		return false;
	while (str_split(&rest, '/', &name))
		if (str_is(name, ".."))
			return false;
	return true;
}

static bool is_user(const char *user)
{
	return user[0] != '\0' && user[0] != '-' && strlen(user) <= BUILD_USER_MAX &&
	       user[strspn(user, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
				 "0123456789._-")] == '\0';
}

static int check_files(struct sandboxes *all, const char *owner, const struct build_step *s,
		       struct err *err)
{
	if (!build_file_name_is_valid(s->files))
		return err_set(err, EINVAL, "filesHash: want a SHA-256 in lower-case hex");
	if (!build_file_find(all, owner, s->files))
		return err_set(err, EINVAL, "there is no archive %.18s...: send it first",
			       s->files);
	return 0;
}

static int check_copy(struct sandboxes *all, const char *owner, const struct build_step *s,
		      struct err *err)
{
	if (s->args.len < 2 || !is_path(s->args.items[s->args.len - 1]))
		return err_set(err, EINVAL, "COPY wants what, and a directory without '..'");
	if (!s->files)
		return err_set(err, EINVAL, "COPY wants the filesHash of its archive");
	return check_files(all, owner, s, err);
}

static int check_env_step(const struct build_step *s, struct err *err)
{
	if (s->args.len % 2 != 0)
		return err_set(err, EINVAL, "ENV wants names and values in turn");
	for (size_t i = 0; i < s->args.len; i += 2) {
		struct sandbox_pair one = { s->args.items[i], s->args.items[i + 1] };
		int r = check_env(&one, 1, err);

		if (r < 0)
			return r;
	}
	return 0;
}

static int check_packages(struct sandboxes *all, const struct build_step *s, struct err *err)
{
	const struct build_network *n = all->builds->network;

	if (!n)
		return err_set(err, EOPNOTSUPP, "no packages can be installed here");
	return n->check(n->user, s->type, &s->args, err);
}

static int check_step(struct sandboxes *all, const char *owner, const struct build_step *s,
		      struct err *err)
{
	if (s->user && !is_user(s->user))
		return err_set(err, EINVAL, "user: want a name or a number");
	switch (s->type) {
	case BUILD_COPY:
		return check_copy(all, owner, s, err);
	case BUILD_ENV:
		return check_env_step(s, err);
	case BUILD_WORKDIR:
		if (s->args.len != 1 || !is_path(s->args.items[0]))
			return err_set(err, EINVAL, "WORKDIR wants one path without '..'");
		return 0;
	case BUILD_USER:
		if (s->args.len != 1 || !is_user(s->args.items[0]))
			return err_set(err, EINVAL, "USER wants one name or number");
		return 0;
	case BUILD_PIP:
	case BUILD_NPM:
		return check_packages(all, s, err);
	default:
		if (s->args.items[0][0] == '\0')
			return err_set(err, EINVAL, "RUN wants a command");
		return s->files ? check_files(all, owner, s, err) : 0;
	}
}

static int check(struct sandboxes *all, const struct build_wish *w, struct err *err)
{
	size_t n = 0;

	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node)
		n += strcmp(j->owner, w->owner) == 0;
	if (n >= WAITING_OWNER_MAX)
		return err_set(err, EDQUOT, "%u builds of this owner wait already, the limit",
			       WAITING_OWNER_MAX);
	if (w->id) {
		int r = build_reserved(all, w->owner, w->id, err);

		if (r < 0)
			return r;
	}
	for (size_t i = 0; i < w->n_steps; i++) {
		struct err why = { 0 };
		int r = check_step(all, w->owner, &w->steps[i], &why);

		if (r < 0)
			return err_set(err, why.code, "steps[%zu]: %s", i, why.text);
	}
	return 0;
}

/* ---- a new one ---- */

static int fill_job(struct build_job *j, const struct build_wish *w, struct err *err)
{
	const char *user, *workdir;
	int r = template_check_name(w->name, err);

	if (r == 0)
		r = template_begin(j->all, w->owner, w->from, w->snapshot, &j->model, err);
	if (r == 0)
		r = check_limits(&j->all->settings, &w->said.limits, err);
	if (r == 0)
		r = template_apply(&j->model, &w->said, err);
	/* What it begins with must not go while it waits. */
	if (r == 0 && (r = layers_hold(j->all, &j->model.layers)) < 0)
		(void)err_sys(err, r, "build");
	if (r < 0) {
		j->model.layers.n = 0;
		return r;
	}
	r = makeup_copy(&j->model.make, j->arena, &j->model.make);
	if (r == 0)
		r = loop_timer_create(j->all->loop, on_late, j, &j->timer);
	if (r < 0)
		return err_sys(err, r, "build");
	if (str_copy(j->root_path, sizeof(j->root_path), w->root ? w->root : "") < 0)
		return err_set(err, EINVAL, "root: its path is longer than %d", ROOT_PATH_MAX);
	j->root_kind = w->root_kind;
	user = j->model.make.user ? j->model.make.user : "";
	workdir = j->model.make.workdir ? j->model.make.workdir : "";
	(void)str_copy(j->user, sizeof(j->user), user);
	(void)str_copy(j->workdir, sizeof(j->workdir), workdir);
	return 0;
}

static int make_job(struct sandboxes *all, const struct build_wish *w, struct build_job **ret,
		    struct err *err)
{
	struct build_job *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_sys(err, ENOMEM, "build");
	j->all = all;
	j->box.fd = -1;
	list_init(&j->followers);
	list_push_back(&all->builds->jobs, &j->node);
	if (w->id)
		(void)str_copy(j->id, sizeof(j->id), w->id);
	else
		id_make(j->id);
	(void)str_copy(j->owner, sizeof(j->owner), w->owner);
	(void)str_copy(j->key_id, sizeof(j->key_id), w->key_id ? w->key_id : "");
	j->arena = arena_create(ARENA_MAX);
	r = j->arena ? fill_job(j, w, err) : err_sys(err, ENOMEM, "build");
	if (r < 0)
		build_job_free(j);
	else
		*ret = j;
	return r;
}

static int write_record(const struct build_job *j, const struct build_wish *w, struct buf *b,
			struct err *err)
{
	struct build first = { .status = BUILD_WAITING,
			       .owner = j->owner,
			       .name = w->name,
			       .from = j->root_path[0]  ? j->root_path
				       : w->snapshot[0] ? w->snapshot
							: w->from,
			       .steps = (struct build_step *)w->steps,
			       .n_steps = w->n_steps,
			       .tags = w->tags };
	int r = build_write(&first, b);

	if (r == -E2BIG)
		return err_set(err, EINVAL, "steps: they are more than %u bytes", OBJECT_TEXT_MAX);
	return r < 0 ? err_sys(err, r, "build") : 0;
}

struct record_search {
	const char *owner;
	bool (*is)(const struct build *b);
	struct object *oldest;
	size_t n;
};

static void look(void *user, struct object *o)
{
	struct record_search *s = user;

	if (!s->is(o->data) || o->is_writing || strcmp(o->owner, s->owner) != 0)
		return;
	s->n++;
	if (!s->oldest || o->created_ms < s->oldest->created_ms)
		s->oldest = o;
}

static void on_forgotten(void *user, struct object *o, const struct err *err)
{
	(void)user;
	(void)o;
	if (err)
		log_debug("sandbox", "a build could not be forgotten: %s", err->text);
}

void build_forget_oldest(struct sandboxes *all, const char *owner,
			 bool (*is)(const struct build *b), size_t max)
{
	struct record_search s = { .owner = owner, .is = is };

	objects_each(table(all), look, &s);
	if (s.n > max)
		objects_remove(table(all), s.oldest->id, on_forgotten, NULL);
}

static bool is_past(const struct build *b)
{
	return build_is_over((enum build_status)b->status);
}

static void on_added(void *user, struct object *o, const struct err *err)
{
	struct build_job *j = user;
	struct sandboxes *all = j->all;
	object_cb cb = j->cb;
	void *to = j->user_of_cb;

	if (err) {
		build_job_free(j);
		cb(to, NULL, err);
		return;
	}
	j->b = o->data;
	cb(to, o, NULL);
	build_forget_oldest(all, o->owner, is_past, KEEP_OWNER);
	builds_next(all);
}

void build_create(struct sandboxes *all, const struct build_wish *w, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct build_job *j = NULL;
	struct err err = { 0 };
	int r = check(all, w, &err);

	if (r == 0)
		r = make_job(all, w, &j, &err);
	if (r == 0 && j) /* which it is: said to the compiler */
		r = write_record(j, w, &b, &err);
	if (r < 0 || !j) {
		if (j)
			build_job_free(j);
		cb(user, NULL, &err);
		return;
	}
	j->cb = cb;
	j->user_of_cb = user;
	tracing_build(j, w->trace);
	if (w->id)
		return objects_change(table(all), j->id, BUILD_WAITING, b.data, on_added, j);
	objects_add(table(all),
		    &(struct object_put){ .id = j->id,
					  .owner = j->owner,
					  .name = "",
					  .state = BUILD_WAITING,
					  .text = b.data },
		    on_added, j);
}

/* ---- its end by others ---- */

void build_delete(struct sandboxes *all, const char *id, object_cb cb, void *user)
{
	struct build_job *j = find_job(all, id);

	if (!j) {
		objects_remove(table(all), id, cb, user);
		return;
	}
	if (j->is_unsaved || !j->b) {
		cb(user, NULL, &(struct err){ EBUSY, "the build is ending" });
		return;
	}
	if (!j->is_canceled) {
		j->is_canceled = true;
		(void)err_set(&j->err, ECANCELED, "canceled");
		if (j->is_started && !build_root_stop(j))
			build_box_stop(j);
		else
			build_end(j);
	}
	cb(user, NULL, NULL);
}

bool build_follow(struct sandboxes *all, const char *id, struct build_follower *f)
{
	struct build_job *j = find_job(all, id);

	list_init(&f->node);
	if (!j)
		return false;
	list_push_back(&j->followers, &f->node);
	return true;
}

void build_unfollow(struct build_follower *f)
{
	list_remove(&f->node);
	list_init(&f->node);
}

const struct build_network *builds_network(const struct sandboxes *all)
{
	return all->builds->network;
}

void builds_set_network(struct sandboxes *all, const struct build_network *network)
{
	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node) {
		if (j->box.way && all->builds->network)
			all->builds->network->close(j->box.way);
		j->box.way = NULL;
	}
	all->builds->network = network;
}

/* ---- the whole ---- */

static void on_again(void *user)
{
	struct sandboxes *all = user;

	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node)
		if (j->is_unsaved)
			build_save(j);
}

int builds_create(struct sandboxes *all, struct builds **ret)
{
	struct builds *b = calloc(1, sizeof(*b));
	int r = b ? loop_timer_create(all->loop, on_again, all, &b->again) : -ENOMEM;

	if (r < 0) {
		free(b);
		return r;
	}
	list_init(&b->jobs);
	*ret = b;
	return 0;
}

void builds_stop(struct sandboxes *all)
{
	if (!all->builds)
		return;
	LIST_FOREACH (&all->builds->jobs, j, struct build_job, node) {
		build_box_release(j);
		if (j->box.sb)
			sandbox_unref(j->box.sb);
		j->box.sb = NULL;
		j->model.layers.n = 0; /* the counts go with the registry */
		build_job_free(j);
	}
}

struct builds *builds_free(struct builds *b)
{
	if (b)
		(void)loop_timer_free(b->again);
	free(b);
	return NULL;
}

static void settle_one(void *user, struct object *o)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct sandboxes *all = user;
	struct build *b = o->data;

	if (build_is_over((enum build_status)b->status) || find_job(all, o->id) || o->is_writing)
		return;
	b->status = BUILD_FAILED;
	b->ended_ms = (uint64_t)wall_ms(all);
	(void)str_copy(b->reason, sizeof(b->reason), "interrupted: the daemon ended meanwhile");
	if (build_write(b, &text) == 0)
		objects_change(table(all), o->id, BUILD_FAILED, text.data, on_forgotten, NULL);
}

void builds_settle(struct sandboxes *all)
{
	if (all->builds->is_settled)
		return;
	all->builds->is_settled = true;
	objects_each(table(all), settle_one, all);
}
