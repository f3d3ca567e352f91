/* Taking a layer of a sandbox: the first step of snapshots, forks, stops and builds. */
#include <errno.h>
#include <stdlib.h>

#include "base/cleanup.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/registry.h"
#include "sandbox/snapshot.h"

struct taking {
	struct sandbox *sb;    /* owned reference */
	struct layers parents; /* held */
	struct layers fresh;   /* held: the new one, so that no sweep takes it away */
	layer_cb cb;
	void *user;
};

static void drop_taking(void *user)
{
	free(user); /* the registry is gone, with the sandbox */
}

/* Lets go of what nobody else has taken over. */
static void finish(struct taking *t, const struct layers *chain, const struct layer_info *info,
		   const struct err *err)
{
	struct sandboxes *all = t->sb->all;

	t->cb(t->user, chain, info, err);
	layers_drop(all, &t->fresh);
	layers_drop(all, &t->parents);
	sandbox_unref(t->sb);
	free(t);
}

static void on_taken(void *user, const struct provider_reply *r)
{
	struct taking *t = user;
	struct layers chain = { 0 };
	struct err err = { 0 };
	bool is_alone;

	if (r->code == -ENOSPC)
		(void)err_set(&err, EREMOTEIO, "there is no space left for a snapshot");
	else if (r->code < 0)
		err = ask_error(r);
	else if (r->n_layers != 1)
		(void)err_set(&err, EREMOTEIO, "the launcher did not say what it has kept");
	if (err.code) {
		finish(t, NULL, NULL, &err);
		return;
	}
	is_alone = r->layers[0].whole != 0;
	if (!is_alone)
		chain = t->parents;
	if (layers_push(&chain, t->fresh.ids[0]) < 0) {
		(void)err_set(&err, EREMOTEIO, "there are too many layers");
		finish(t, NULL, NULL, &err);
		return;
	}
	finish(t, &chain, &r->layers[0], NULL);
}

static int begin(struct taking *t, struct sandbox *sb, struct err *err)
{
	char id[ID_LEN + 1];
	int r;

	if (sb->state != SANDBOX_RUNNING && sb->state != SANDBOX_PAUSED &&
	    sb->state != SANDBOX_SUSPENDING && sb->state != SANDBOX_SUSPENDED)
		return err_set(err, EBUSY, "the sandbox is %s", state_name(sb->state));
	id_make(id);
	(void)layers_push(&t->fresh, id);
	t->parents = sb->layers;
	r = layers_hold(sb->all, &t->parents);
	if (r == 0 && (r = layers_hold(sb->all, &t->fresh)) < 0)
		layers_drop(sb->all, &t->parents);
	return r < 0 ? err_sys(err, r, "snapshot") : 0;
}

void layer_take(struct sandbox *sb, uint32_t flags, layer_cb cb, void *user)
{
	struct taking *t = calloc(1, sizeof(*t));
	struct err err = { 0 };

	if (!t || begin(t, sb, &err) < 0) {
		if (!err.code)
			(void)err_sys(&err, ENOMEM, "snapshot");
		free(t);
		cb(user, NULL, NULL, &err);
		return;
	}
	t->sb = sandbox_ref(sb);
	t->cb = cb;
	t->user = user;
	if (sb->state == SANDBOX_SUSPENDED) { /* it lies in layers already */
		finish(t, &t->parents, NULL, NULL);
		return;
	}
	ask_provider(sb->all,
		     &(struct ask){ .kind = ASK_SNAPSHOT,
				    .box_id = sb->box_id,
				    .disk_id = t->fresh.ids[0],
				    .flags = flags | kit_snapshot_flags(&sb->kit),
				    .is_impatient = true,
				    .drop = drop_taking },
		     on_taken, t);
}
