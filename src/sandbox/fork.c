/* New sandboxes from what another has written: one layer, and a box on top of it for each. All of
 * them or none. */
#include <errno.h>
#include <stdlib.h>

#include "base/str.h"
#include "sandbox/check.h"
#include "sandbox/registry.h"
#include "sandbox/snapshot.h"
#include "telemetry/trace.h"

struct fork {
	struct pending pending;
	struct sandboxes *all;
	struct sandbox *parent; /* owned reference */
	uint32_t count, left;
	char name[SANDBOX_NAME_MAX + 1], owner[SANDBOX_OWNER_MAX + 1], key_id[ID_LEN + 1];
	uint64_t timeout_ms;
	struct layers chain;            /* held until the new ones hold it */
	struct sandbox *made[FORK_MAX]; /* owned references */
	size_t n_made;
	struct span *span, *layer_span; /* NULL: in no trace */
	struct err err;
	fork_cb cb;
	void *user;
};

static void drop_fork(struct pending *p)
{
	free(LIST_ENTRY(p, struct fork, pending)); /* sandboxes go with the registry */
}

static void on_undone(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	(void)sb;
	(void)err; /* an end that fails is tried again by itself */
}

static void finish(struct fork *f)
{
	list_remove(&f->pending.node);
	if (f->err.code)
		span_fail(f->span, f->err.text);
	span_end(TAKE(f->span)); /* before who waits is told */
	if (f->err.code) {
		for (size_t i = 0; i < f->n_made; i++)
			sandbox_delete(f->made[i], "its fork failed", on_undone, NULL);
		f->cb(f->user, NULL, 0, &f->err);
	} else {
		f->cb(f->user, f->made, f->n_made, NULL);
	}
	layers_drop(f->all, &f->chain);
	for (size_t i = 0; i < f->n_made; i++)
		sandbox_unref(f->made[i]);
	sandbox_unref(f->parent);
	free(f);
}

static void on_made(void *user, struct sandbox *sb, const struct err *err)
{
	struct fork *f = user;

	if (err && !f->err.code)
		f->err = *err;
	if (!err)
		f->made[f->n_made++] = sandbox_ref(sb);
	if (--f->left == 0)
		finish(f);
}

static void make_one(struct fork *f, uint32_t i)
{
	const struct sandbox *p = f->parent;
	char name[SANDBOX_NAME_MAX + 16];
	struct sandbox_request req = {
		.owner = f->owner,
		.key_id = f->key_id,
		.name = f->name,
		.template = p->template,
		.parent = p,
		.profile = p->profile,
		.strict = p->strict,
		.timeout_ms = f->timeout_ms ? f->timeout_ms : p->timeout_ms,
		.idle_ms = p->idle_ms,
		.life = p->life,
		.note = p->note,
		.grant = p->grant,
		.env = p->env.items,
		.n_env = p->env.len,
		.metadata = p->metadata.items,
		.n_metadata = p->metadata.len,
		.layers = &f->chain,
		.trace = span_context(f->span),
	};

	if (f->name[0] != '\0' && f->count > 1) {
		(void)str_format(name, sizeof(name), "%s-%u", f->name, i + 1);
		req.name = name;
	}
	sandbox_create(f->all, &req, on_made, f);
}

static void on_layer(void *user, const struct layers *chain, const struct layer_info *info,
		     const struct err *err)
{
	struct fork *f = user;
	uint32_t count = f->count;

	(void)info;
	span_end(TAKE(f->layer_span));
	if (err)
		f->err = *err;
	else if (layers_hold(f->all, chain) < 0)
		(void)err_sys(&f->err, ENOMEM, "fork");
	if (f->err.code) {
		finish(f);
		return;
	}
	f->chain = *chain;
	f->left = count;
	for (uint32_t i = 0; i < count; i++)
		make_one(f, i); /* answers come later: f is there until the last */
}

void sandbox_fork(struct sandbox *sb, const struct fork_request *req, fork_cb cb, void *user)
{
	struct fork *f = NULL;
	struct err err = { 0 };
	int r = check_name(req->name, &err);

	if (r == 0 && (req->count < 1 || req->count > FORK_MAX))
		r = err_set(&err, EINVAL, "count: want 1 to %d", FORK_MAX);
	if (r == 0 && !(f = calloc(1, sizeof(*f))))
		(void)err_sys(&err, ENOMEM, "fork");
	if (!f) {
		cb(user, NULL, 0, &err);
		return;
	}
	f->all = sb->all;
	f->parent = sandbox_ref(sb);
	f->count = req->count;
	f->timeout_ms = req->timeout_ms;
	(void)str_copy(f->name, sizeof(f->name), req->name);
	(void)str_copy(f->owner, sizeof(f->owner), req->owner);
	(void)str_copy(f->key_id, sizeof(f->key_id), req->key_id);
	f->cb = cb;
	f->user = user;
	f->pending.drop = drop_fork;
	list_push_back(&sb->all->pending, &f->pending.node);
	f->span = span_begin(sb->all->tracer, req->trace, SPAN_INTERNAL, "sandbox.fork");
	span_str(f->span, "holt.sandbox.id", sb->id);
	span_int(f->span, "holt.fork.count", req->count);
	f->layer_span =
		span_begin(sb->all->tracer, span_context(f->span), SPAN_INTERNAL, "layer.take");
	layer_take(sb, SNAPSHOT_VOLATILE, on_layer, f);
}
