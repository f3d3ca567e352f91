#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/template.h"
#include "service_impl.h"

void service_init(struct sandboxes *s, struct loop *loop)
{
	memset(s, 0, sizeof(*s));
	s->loop = loop;
	list_init(&s->boxes);
	list_init(&s->execs);
	list_init(&s->ops);
	s->is_ready = true;
	s->auto_end = true;
	s->keep = 256 << 10;
	s->stdin_room = SIZE_MAX;
	s->chunk = 1000;
	s->window = SIZE_MAX;
}

static void sandbox_free(struct sandbox *sb)
{
	list_remove(&sb->node);
	for (size_t i = 0; i < sb->n_pairs; i++) {
		free((char *)(uintptr_t)sb->pairs[i].name);
		free((char *)(uintptr_t)sb->pairs[i].value);
	}
	free(sb);
}

void service_done(struct sandboxes *s)
{
	service_files_done(s);
	service_execs_done(s);
	while (!list_is_empty(&s->boxes))
		sandbox_free(LIST_ENTRY(s->boxes.next, struct sandbox, node));
}

/* ---- calling back ---- */

static void run_call(void *user)
{
	struct service_call *c = user;

	c->run(c);
	free(c);
}

struct service_call *service_call(struct sandboxes *all, void (*run)(struct service_call *c),
				  void *user)
{
	struct service_call *c = calloc(1, sizeof(*c));

	if (!c)
		abort();
	loop_task_init(&c->task, run_call, c);
	loop_task_post(all->loop, &c->task);
	c->run = run;
	c->all = all;
	c->user = user;
	if (all->fail_with) {
		c->err.code = all->fail_with;
		(void)str_copy(c->err.text, sizeof(c->err.text), all->fail_text);
		all->fail_with = 0;
	}
	return c;
}

const struct err *service_err(const struct service_call *c)
{
	return c->err.code ? &c->err : NULL;
}

/* ---- sandboxes ---- */

struct sandbox *service_add(struct sandboxes *s, const char *id, const char *owner,
			    const char *name)
{
	struct sandbox *sb = calloc(1, sizeof(*sb));

	if (!sb)
		abort();
	sb->all = s;
	if (id)
		(void)str_copy(sb->id, sizeof(sb->id), id);
	else
		id_make(sb->id);
	(void)str_copy(sb->owner, sizeof(sb->owner), owner);
	(void)str_copy(sb->name, sizeof(sb->name), name);
	(void)str_copy(sb->template, sizeof(sb->template), "python");
	sb->state = SANDBOX_RUNNING;
	sb->timeout_ms = 3600000;
	sb->created_ms = 1767323045678 + (int64_t)s->creates;
	list_push_front(&s->boxes, &sb->node);
	return sb;
}

static void set_pairs(struct sandbox *sb, const struct sandbox_pair *pairs, size_t n)
{
	for (size_t i = 0; i < n && i < 4; i++) {
		sb->pairs[i].name = strdup(pairs[i].name);
		sb->pairs[i].value = strdup(pairs[i].value);
	}
	sb->n_pairs = n < 4 ? n : 4;
}

const char *sandbox_id(const struct sandbox *sb)
{
	return sb->id;
}

void sandbox_info(const struct sandbox *sb, struct sandbox_info *ret)
{
	*ret = (struct sandbox_info){
		.id = sb->id,
		.owner = sb->owner,
		.name = sb->name,
		.template = sb->template,
		.runtime = sb->template,
		.reason = "",
		.box_id = "",
		.grant = "",
		.state = sb->state,
		.is_existing = sb->is_existing,
		.warm = true,
		.claim_us = 400,
		.total_us = 1200,
		.step_ns = { 1, 2, 3, 4 },
		.limits = { .memory_bytes = 256 << 20, .cpu_milli = 500, .pids = 64 },
		.env = sb->pairs,
		.metadata = sb->pairs,
		.n_env = sb->n_pairs,
		.n_metadata = sb->n_pairs,
		.created_ms = sb->created_ms,
		.expires_ms = sb->created_ms + (int64_t)sb->timeout_ms,
		.timeout_ms = sb->timeout_ms,
	};
}

struct sandbox *sandboxes_find(struct sandboxes *all, const char *id_or_name, const char *owner)
{
	LIST_FOREACH (&all->boxes, sb, struct sandbox, node) {
		if (owner && strcmp(sb->owner, owner) != 0)
			continue;
		if (state_is_live(sb->state) &&
		    (strcmp(sb->id, id_or_name) == 0 ||
		     (sb->name[0] && strcmp(sb->name, id_or_name) == 0)))
			return sb;
	}
	return NULL;
}

static void run_sandbox(struct service_call *c)
{
	c->cb.sandbox(c->user, service_err(c) ? NULL : c->sb, service_err(c));
}

static void call_sandbox_cb(struct sandboxes *all, struct sandbox *sb, sandbox_cb cb, void *user)
{
	struct service_call *c = service_call(all, run_sandbox, user);

	c->sb = sb;
	c->cb.sandbox = cb;
}

void sandbox_create(struct sandboxes *all, const struct sandbox_request *req, sandbox_cb cb,
		    void *user)
{
	struct sandbox *sb = req->name[0] ? sandboxes_find(all, req->name, req->owner) : NULL;

	all->creates++;
	all->limits = req->limits;
	all->cold = req->cold;
	all->timeout_ms = req->timeout_ms;
	(void)str_copy(all->template, sizeof(all->template), req->template);
	if (sb && !req->get_or_create) {
		all->fail_with = EEXIST;
		(void)str_copy(all->fail_text, sizeof(all->fail_text), "name: it is taken");
	} else if (sb) {
		sb->is_existing = true;
	} else if (!all->fail_with) {
		sb = service_add(all, NULL, req->owner, req->name);
		set_pairs(sb, req->metadata, req->n_metadata);
	}
	call_sandbox_cb(all, sb, cb, user);
}

static void run_get(struct service_call *c)
{
	struct sandbox_info info;

	if (c->sb)
		sandbox_info(c->sb, &info);
	c->cb.info(c->user, c->sb ? &info : NULL, service_err(c));
}

void sandbox_get(struct sandboxes *all, const char *id_or_name, const char *owner,
		 void (*cb)(void *user, const struct sandbox_info *info, const struct err *err),
		 void *user)
{
	struct service_call *c = service_call(all, run_get, user);

	c->cb.info = cb;
	LIST_FOREACH (&all->boxes, sb, struct sandbox, node)
		if (strcmp(sb->id, id_or_name) == 0 && (!owner || strcmp(sb->owner, owner) == 0))
			c->sb = sb;
	if (!c->sb)
		c->err = (struct err){ ENOENT, "there is no such sandbox" };
}

struct list_call {
	struct service_call *call;
	struct sandbox_info infos[8];
	size_t n;
	bool more;
};

static void run_list(struct service_call *c)
{
	struct list_call *l = (struct list_call *)(void *)c->sb;

	c->cb.list(c->user, l->infos, l->n, l->more, service_err(c));
	free(l);
}

static bool matches(const struct sandbox *sb, const struct sandbox_filter *f)
{
	for (size_t i = 0; i < f->n_metadata; i++)
		if (sb->n_pairs == 0 || strcmp(sb->pairs[0].name, f->metadata[i].name) != 0 ||
		    strcmp(sb->pairs[0].value, f->metadata[i].value) != 0)
			return false;
	if (f->states ? !(f->states & 1u << sb->state) : !state_is_live(sb->state))
		return false;
	if (f->before_id && (sb->created_ms > f->before_ms ||
			     (sb->created_ms == f->before_ms && strcmp(sb->id, f->before_id) >= 0)))
		return false;
	return (!f->owner || strcmp(f->owner, sb->owner) == 0) &&
	       (!f->name || strcmp(f->name, sb->name) == 0) &&
	       (!f->template || strcmp(f->template, sb->template) == 0);
}

void sandbox_list(struct sandboxes *all, const struct sandbox_filter *f,
		  void (*cb)(void *user, const struct sandbox_info *infos, size_t n, bool more,
			     const struct err *err),
		  void *user)
{
	struct service_call *c = service_call(all, run_list, user);
	struct list_call *l = calloc(1, sizeof(*l));

	if (!l)
		abort();
	c->cb.list = cb;
	c->sb = (struct sandbox *)(void *)l;
	LIST_FOREACH (&all->boxes, sb, struct sandbox, node) {
		if (!matches(sb, f))
			continue;
		if (l->n == f->limit || l->n == 8) {
			l->more = true;
			return;
		}
		sandbox_info(sb, &l->infos[l->n++]);
	}
}

void sandbox_patch(struct sandbox *sb, const struct sandbox_patch *p, sandbox_cb cb, void *user)
{
	if (p->has_timeout)
		sb->timeout_ms = p->timeout_ms;
	if (p->has_metadata && sb->n_pairs == 0)
		set_pairs(sb, p->metadata, p->n_metadata);
	call_sandbox_cb(sb->all, sb, cb, user);
}

void sandbox_usage(struct sandbox *sb,
		   void (*cb)(void *user, const struct box_usage *usage, const struct err *err),
		   void *user)
{
	struct box_usage used = { .cpu_us = 1500000, .memory_bytes = 4096, .pids = 3 };

	(void)sb;
	cb(user, &used, NULL);
}

void sandbox_pause(struct sandbox *sb, sandbox_cb cb, void *user)
{
	sb->state = SANDBOX_PAUSED;
	call_sandbox_cb(sb->all, sb, cb, user);
}

void sandbox_resume(struct sandbox *sb, sandbox_cb cb, void *user)
{
	sb->state = SANDBOX_RUNNING;
	call_sandbox_cb(sb->all, sb, cb, user);
}

void sandbox_wake(struct sandbox *sb, sandbox_cb cb, void *user)
{
	sandbox_resume(sb, cb, user);
}

bool sandbox_wakes(const struct sandbox *sb)
{
	(void)sb;
	return false;
}

void sandbox_delete(struct sandbox *sb, const char *reason, sandbox_cb cb, void *user)
{
	(void)reason;
	sb->state = SANDBOX_STOPPED;
	call_sandbox_cb(sb->all, NULL, cb, user);
}

void sandboxes_end_owner(struct sandboxes *all, const char *owner, const char *reason)
{
	(void)reason;
	LIST_FOREACH (&all->boxes, sb, struct sandbox, node)
		if (strcmp(sb->owner, owner) == 0)
			sb->state = SANDBOX_STOPPED;
}

void quota_of(struct sandboxes *all, const char *owner, struct quota *ret_limits,
	      struct quota *ret_used)
{
	(void)owner;
	*ret_limits = all->quota;
	*ret_used = all->used;
}

void sandbox_touch(struct sandbox *sb)
{
	sb->all->touches++;
}

void sandboxes_stats(const struct sandboxes *all, struct sandboxes_stats *ret)
{
	static const struct build_state none;

	memset(ret, 0, sizeof(*ret));
	ret->is_ready = all->is_ready;
	ret->builds = &none;
}

static void run_pool(struct service_call *c)
{
	c->cb.pool(c->user, &(struct pool_state){ .ready = 2, .target = 3, .hits = 10 },
		   service_err(c));
}

void sandboxes_pool_state(struct sandboxes *all, const char *template,
			  void (*cb)(void *user, const struct pool_state *s, const struct err *err),
			  void *user)
{
	struct service_call *c = service_call(all, run_pool, user);

	c->cb.pool = cb;
	if (!template_find(template))
		c->err = (struct err){ ENOENT, "no such template" };
}
