/* What happens later: in the loop's next turn, or when store and provider call back. */
#include <errno.h>
#include <stdlib.h>

#include "sandbox/registry.h"

void later_post(struct sandboxes *all, struct later *l, void (*run)(struct later *l, bool is_over))
{
	l->run = run;
	list_push_back(&all->later, &l->node);
	loop_task_post(all->loop, &all->turn);
}

struct refusal {
	struct later later;
	refusal_fn tell;
	void (*cb)(void);
	void *user;
	struct err err;
};

static void run_refusal(struct later *l, bool is_over)
{
	struct refusal *f = LIST_ENTRY(l, struct refusal, later);

	if (!is_over)
		f->tell(f->cb, f->user, &f->err);
	free(f);
}

void later_refuse(struct sandboxes *all, refusal_fn tell, void (*cb)(void), void *user,
		  const struct err *err)
{
	struct refusal *f = malloc(sizeof(*f));

	if (!f) {
		tell(cb, user, err);
		return;
	}
	*f = (struct refusal){ .tell = tell, .cb = cb, .user = user, .err = *err };
	later_post(all, &f->later, run_refusal);
}

void flight_begin(struct sandboxes *all, struct flight *f)
{
	f->all = all;
	list_push_back(&all->flights, &f->node);
}

bool flight_end(struct flight *f)
{
	if (!f->all)
		return false;
	list_remove(&f->node);
	return true;
}

struct answer {
	struct later later; /* its node is in a list of sandbox.waits before */
	struct sandboxes *all;
	sandbox_cb cb;
	void *user;
	struct sandbox *sb; /* owned reference or NULL */
	bool is_existing;
	struct err err;
};

struct answer *answer_create(struct sandboxes *all, sandbox_cb cb, void *user)
{
	struct answer *a = calloc(1, sizeof(*a));

	if (!a) {
		/* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return NULL;
	}
	list_init(&a->later.node);
	a->all = all;
	a->cb = cb;
	a->user = user;
	return a;
}

void answer_drop(struct answer *a)
{
	free(a);
}

void answer_mark_existing(struct answer *a)
{
	a->is_existing = true;
}

static void run_answer(struct later *l, bool is_over)
{
	struct answer *a = LIST_ENTRY(l, struct answer, later);

	if (!is_over && a->err.code != 0)
		a->cb(a->user, NULL, &a->err);
	if (!is_over && a->err.code == 0) {
		if (a->sb)
			a->sb->is_existing = a->is_existing;
		a->cb(a->user, a->sb, NULL);
	}
	if (a->sb)
		sandbox_unref(a->sb);
	free(a);
}

void answer_give(struct answer *a, struct sandbox *sb, const struct err *err)
{
	if (err)
		a->err = *err;
	else if (sb)
		a->sb = sandbox_ref(sb);
	later_post(a->all, &a->later, run_answer);
}

void answer_busy(struct answer *a, const struct sandbox *sb)
{
	struct err err = { 0 };

	(void)err_set(&err, EBUSY, "the sandbox is %s", state_name(sb->state));
	answer_give(a, NULL, &err);
}

int sandbox_wait(struct sandbox *sb, enum wait_kind kind, struct answer *a)
{
	struct err err = { 0 };

	if (sb->n_waits[kind] >= SANDBOX_WAITERS_MAX) {
		(void)err_set(&err, EAGAIN, "%u callers wait for this sandbox already",
			      SANDBOX_WAITERS_MAX);
		answer_give(a, NULL, &err);
		return -EAGAIN;
	}
	list_push_back(&sb->waits[kind], &a->later.node);
	sb->n_waits[kind]++;
	return 0;
}

void sandbox_tell(struct sandbox *sb, enum wait_kind kind, const struct err *err)
{
	LIST_FOREACH (&sb->waits[kind], l, struct later, node) {
		list_remove(&l->node);
		answer_give(LIST_ENTRY(l, struct answer, later), sb, err);
	}
	sb->n_waits[kind] = 0;
}

void sandbox_drop_waits(struct sandbox *sb)
{
	for (int i = 0; i < WAIT_COUNT; i++)
		LIST_FOREACH (&sb->waits[i], l, struct later, node) {
			list_remove(&l->node);
			answer_drop(LIST_ENTRY(l, struct answer, later));
		}
}
