/* Writing sandboxes down. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/log.h"
#include "sandbox/row.h"

struct write {
	struct flight flight;
	struct sandbox *sb; /* owned reference */
	uint64_t seq;
	void (*then)(struct sandbox *sb, int r);
	struct answer *answer; /* owned or NULL */
};

struct err record_error(int r)
{
	struct err err = { 0 };

	(void)err_sys(&err, r, "the store could not take it");
	return err;
}

/* The row in the store is not what we know: it is written again by and by. */
static void mark_dirty(struct sandbox *sb, int r)
{
	struct sandboxes *all = sb->all;

	metrics_inc(all->metrics, METRIC_STORE_ERRORS, LABELS("put_sandbox"));
	log_debug("sandbox", "%s: row not written: %s", sb->id, strerror(-r));
	sb->store_error = -r;
	if (sb->state == SANDBOX_CREATING || !list_is_empty(&sb->dirty))
		return;
	list_push_back(&all->dirty, &sb->dirty);
	tick_need(all);
}

static void written(const struct write *w, int r)
{
	struct err err = record_error(r);
	struct sandbox *sb = w->sb;

	if (r < 0)
		mark_dirty(sb, r);
	else if (w->seq == sb->write_seq) {
		list_remove(&sb->dirty);
		sb->is_recorded = !state_is_live(sb->state);
	}
	if (w->answer)
		answer_give(w->answer, sb, r < 0 ? &err : NULL);
	if (w->then)
		w->then(sb, r);
}

static void on_written(void *user, int r)
{
	_free_ struct write *w = user;

	if (!flight_end(&w->flight)) {
		answer_drop(w->answer);
		return;
	}
	written(w, r);
	stop_forget(w->sb);
	sandbox_unref(w->sb);
}

static int put(struct sandbox *sb, enum sandbox_state state, struct write *w)
{
	struct row_texts texts;
	struct sandbox_row row;
	int r = row_fill(sb, state, &row, &texts);

	if (r == 0)
		r = store_put_sandbox(sb->all->store, &row, on_written, w);
	row_texts_done(&texts);
	return r;
}

static void begin(struct sandbox *sb, enum sandbox_state state, const struct write *what)
{
	struct write *w = malloc(sizeof(*w));
	struct write refused = *what;
	int r = -ENOMEM;

	refused.sb = sb;
	refused.seq = ++sb->write_seq;
	if (w) {
		*w = refused;
		r = put(sb, state, w);
	}
	if (r < 0) {
		free(w);
		written(&refused, r);
		return;
	}
	flight_begin(sb->all, &w->flight);
	(void)sandbox_ref(sb);
}

void record_put(struct sandbox *sb, enum sandbox_state state,
		void (*then)(struct sandbox *sb, int r))
{
	begin(sb, state, &(struct write){ .then = then });
}

void record_answer(struct sandbox *sb, struct answer *a)
{
	begin(sb, sb->state, &(struct write){ .answer = a });
}

bool record_retry(struct sandboxes *all)
{
	struct list todo = LIST_INIT(todo);

	LIST_FOREACH (&all->dirty, sb, struct sandbox, dirty) {
		list_remove(&sb->dirty);
		list_push_back(&todo, &sb->dirty);
	}
	while (!list_is_empty(&todo)) {
		struct sandbox *sb = LIST_ENTRY(todo.next, struct sandbox, dirty);

		list_remove(&sb->dirty); /* a failure puts it back */
		record_put(sb, sb->state, NULL);
	}
	return !list_is_empty(&all->dirty);
}
