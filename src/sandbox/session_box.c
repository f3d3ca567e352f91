/* The sandbox of a session: asked for by many at once, made by one. Whoever asks looks at how it
 * stands and waits for what is under way, then looks again, until it runs or the time is over. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "sandbox/registry.h"
#include "sandbox/session.h"

#define AGAIN_MS 50u /* an earlier one has ended and is being written down */

struct provision {
	struct pending pending;
	struct sandboxes *all;
	struct loop_timer *timer; /* owned */
	char uid[ID_LEN + 1], key_id[ID_LEN + 1];
	uint64_t until_ms;
	bool is_under_way; /* a callback comes: this must be there for it */
	bool is_answered;
	sandbox_cb cb;
	void *user;
};

static void drop(struct pending *pending)
{
	struct provision *p = LIST_ENTRY(pending, struct provision, pending);

	(void)loop_timer_free(p->timer);
	free(p);
}

/* p is gone afterwards, unless something is under way. */
static void finish(struct provision *p, struct sandbox *sb, const struct err *err)
{
	if (!p->is_answered) {
		p->is_answered = true;
		p->cb(p->user, sb, err);
	}
	if (p->is_under_way)
		return;
	list_remove(&p->pending.node);
	drop(&p->pending);
}

static void fail(struct provision *p, int code, const char *why)
{
	struct err err = { 0 };

	(void)err_set(&err, code, "%s", why);
	finish(p, NULL, &err);
}

static void watch(struct provision *p, uint64_t after_ms)
{
	uint64_t now = now_ms(p->all), left = p->until_ms > now ? p->until_ms - now : 0;

	loop_timer_start(p->timer, after_ms < left ? after_ms : left, 0);
}

/* What was under way is over; false: so is all of it. */
static bool go_on(struct provision *p)
{
	p->is_under_way = false;
	if (!p->is_answered)
		return true;
	finish(p, NULL, NULL);
	return false;
}

static void step(struct provision *p);

static void on_failed(struct provision *p, const struct err *err)
{
	if (!session_find_any(p->all, p->uid))
		fail(p, ENOENT, "the session was ended");
	else if (err->code == EBUSY || err->code == ECANCELED)
		watch(p, AGAIN_MS); /* ended in that very moment: there will be another one */
	else
		finish(p, NULL, err);
}

static void give(struct provision *p, struct sandbox *sb)
{
	struct sandbox_info info;

	sandbox_info(sb, &info);
	if (session_is_kept(p->all, &info))
		sandbox_prolong(sb);
	finish(p, sb, NULL);
}

static void on_given(void *user, struct sandbox *sb, const struct err *err)
{
	struct provision *p = user;

	if (!go_on(p))
		return;
	if (err)
		on_failed(p, err);
	else if (sb->state != SANDBOX_RUNNING || !session_find_any(p->all, p->uid))
		step(p);
	else
		give(p, sb);
}

/* Then it is asked for as any other that runs. */
static void on_woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct provision *p = user;

	(void)sb;
	if (!go_on(p))
		return;
	if (err)
		on_failed(p, err);
	else
		step(p);
}

static void on_ended(void *user, struct sandbox *sb, const struct err *err)
{
	struct provision *p = user;

	(void)sb;
	(void)err; /* it is still there then, and is looked at anew */
	if (go_on(p))
		watch(p, AGAIN_MS);
}

static size_t add_pairs(struct sandbox_pair *to, size_t n, const struct jv_pairs *from)
{
	for (size_t i = 0; i < from->len && i < SESSION_PAIRS_MAX; i++)
		if (n == 0 || strcmp(from->items[i].name, to[0].name) != 0)
			to[n++] =
				(struct sandbox_pair){ from->items[i].name, from->items[i].value };
	return n;
}

static void make(struct provision *p, const struct object *o, const char *name)
{
	const struct session_workspace *s = &((const struct session *)o->data)->wish.workspace;
	struct sandbox_pair metadata[SESSION_PAIRS_MAX + 1] = { { SESSION_METADATA, o->name } };
	struct sandbox_pair env[SESSION_PAIRS_MAX];
	struct sandbox_request req = {
		.owner = o->owner,
		.key_id = p->key_id,
		.name = name,
		.get_or_create = true,
		.template = s->template ? s->template : "",
		.limits = s->limits,
		.timeout_ms = s->timeout_ms,
		.idle_ms = s->idle_ms,
		.grant = p->all->settings.agent_grant,
		.life = { (uint8_t)s->on_timeout, s->on_timeout != LAPSE_DELETE },
		.env = env,
		.metadata = metadata,
		.n_env = add_pairs(env, 0, &s->env),
		.n_metadata = add_pairs(metadata, 1, &s->metadata),
	};

	sandbox_create(p->all, &req, on_given, p);
}

/* May be the end of p. */
static void step(struct provision *p)
{
	const struct object *o = session_find_any(p->all, p->uid);
	char name[SESSION_BOX_NAME_SIZE];
	struct sandbox *sb;

	if (!o)
		return fail(p, ENOENT, "the session was ended");
	session_box_name(p->uid, name);
	sb = sandboxes_by_name(p->all, o->owner, name);
	if (sb && !state_is_live(sb->state))
		return watch(p, AGAIN_MS);
	p->is_under_way = true;
	watch(p, UINT64_MAX);
	if (sb && sb->state == SANDBOX_STOPPING)
		sandbox_delete(sb, "deleted", on_ended, p);
	else if (sb && sb->state != SANDBOX_CREATING && sb->state != SANDBOX_RUNNING)
		sandbox_wake(sb, on_woken, p);
	else
		make(p, o, name);
}

static void on_time(void *user)
{
	struct provision *p = user;

	if (now_ms(p->all) >= p->until_ms)
		fail(p, ETIMEDOUT, "the session's sandbox is not ready yet");
	else if (!p->is_under_way)
		step(p);
	else
		watch(p, UINT64_MAX); /* the two clocks are not one */
}

void session_provision(struct sandboxes *all, const struct object *session, const char *key_id,
		       uint64_t wait_ms, sandbox_cb cb, void *user)
{
	struct provision *p = calloc(1, sizeof(*p));
	int r = p ? loop_timer_create(all->loop, on_time, p, &p->timer) : -ENOMEM;

	if (r < 0) { /* NOTE: from inside the call, which without memory cannot be helped. */
		free(p);
		return cb(user, NULL, &(struct err){ ENOMEM, "session" });
	}
	p->pending.drop = drop;
	p->all = all;
	p->cb = cb;
	p->user = user;
	p->until_ms = now_ms(all) + wait_ms;
	(void)str_copy(p->uid, sizeof(p->uid), session->id);
	(void)str_copy(p->key_id, sizeof(p->key_id), key_id);
	list_push_back(&all->pending, &p->pending.node);
	step(p);
}
