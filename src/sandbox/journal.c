#include "sandbox/journal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/err.h"
#include "base/log.h"
#include "loop/loop.h"
#include "store/store.h"
#include "json/jv.h"
#include "json/jw.h"

struct line {
	struct list node;        /* in journal.waiting, by seq */
	struct journal *journal; /* NULL: it is gone */
	struct journal_row row;  /* its texts are behind it */
	bool is_asked, is_done;
	char text[];
};

struct journal {
	struct journal_options o;
	struct loop_timer *retry;
	struct list waiting; /* struct line: not yet told */
	size_t n_waiting;
	struct list listeners;
	uint64_t seq, committed, lost;
	int64_t at_ms;
	bool is_stuck;
};

static void found_last(void *user, const struct journal_row *row)
{
	struct journal *j = user;

	j->seq = j->committed = row->seq;
	j->at_ms = row->at_ms;
	if (j->o.last)
		j->o.last(j->o.user, row);
}

/* ---- writing ---- */

static void written(void *user, int r);

static int ask(struct journal *j, struct line *l)
{
	int r = store_append(j->o.store, &l->row, written, l);

	if (r == 0)
		l->is_asked = true;
	return r;
}

static void get_stuck(struct journal *j, int why)
{
	if (!j->is_stuck)
		log_warn("journal", "%s: the store does not take lines: %s", j->o.stream,
			 strerror(-why));
	j->is_stuck = true;
	loop_timer_start(j->retry, JOURNAL_RETRY_MS, 0);
}

/* Tells what is committed, as far as nothing before it is missing. */
static void tell(struct journal *j)
{
	while (!list_is_empty(&j->waiting)) {
		struct line *l = LIST_ENTRY(j->waiting.next, struct line, node);

		if (!l->is_done)
			return;
		list_remove(&l->node);
		j->n_waiting--;
		j->committed = l->row.seq;
		LIST_FOREACH (&j->listeners, x, struct journal_listener, node)
			x->committed(x->user, &l->row);
		free(l);
	}
}

static void written(void *user, int r)
{
	struct line *l = user;
	struct journal *j = l->journal;

	if (!j) {
		free(l);
		return;
	}
	l->is_asked = false;
	/* Its place is taken: by itself, when the store could not say so the first time. */
	l->is_done = r == 0 || r == -EEXIST;
	if (!l->is_done)
		get_stuck(j, r);
	tell(j);
}

/* All that waits, again; the first that fails leaves it stuck for another second. */
static void retry(void *user)
{
	struct journal *j = user;

	LIST_FOREACH (&j->waiting, l, struct line, node) {
		int r;

		if (l->is_asked || l->is_done)
			continue;
		r = ask(j, l);
		if (r < 0) {
			get_stuck(j, r);
			return;
		}
	}
	j->is_stuck = false;
}

/* ---- lines ---- */

static const char *put(char **at, const char *text)
{
	size_t n = strlen(text) + 1;
	char *dst = *at;

	memcpy(dst, text, n);
	*at += n;
	return dst;
}

static struct line *make_line(struct journal *j, const char *owner, const char *kind,
			      const char *text)
{
	size_t n = strlen(owner) + strlen(kind) + strlen(text) + 3;
	struct line *l = calloc(1, sizeof(*l) + n);
	char *at;

	if (!l)
		return NULL;
	at = l->text;
	l->journal = j;
	l->row.stream = j->o.stream;
	l->row.owner = put(&at, owner);
	l->row.kind = put(&at, kind);
	l->row.text = put(&at, text);
	return l;
}

int64_t journal_append(struct journal *j, const char *owner, const char *kind, const char *text)
{
	int64_t now = clock_wall_ms();
	struct line *l = NULL;
	int r = 0;

	if (j->n_waiting < JOURNAL_WAITING_MAX)
		l = make_line(j, owner, kind, text);
	if (!l) {
		j->lost++;
		return j->n_waiting < JOURNAL_WAITING_MAX ? -ENOMEM : -EAGAIN;
	}
	j->at_ms = now > j->at_ms ? now : j->at_ms; /* a log's time does not go back */
	l->row.at_ms = j->at_ms;
	l->row.seq = ++j->seq;
	if (j->o.seal)
		j->o.seal(j->o.user, &l->row);
	list_push_back(&j->waiting, &l->node);
	j->n_waiting++;
	if (!j->is_stuck)
		r = ask(j, l);
	if (r < 0)
		get_stuck(j, r);
	return (int64_t)l->row.seq;
}

void journal_skip(struct journal *j, uint64_t seq)
{
	if (seq > j->seq)
		j->seq = seq;
}

/* A line's text is JSON of ours; of a log that somebody has changed it may be anything. */
static void write_data(struct jw *w, const char *text)
{
	struct jv_doc *doc = NULL;

	jw_key(w, "data");
	if (jv_parse(text, strlen(text), STORE_TEXT_MAX, &doc, NULL) == 0 &&
	    jv_kind(jv_root(doc)) == JV_OBJECT) {
		jw_value(w, jv_root(doc));
	} else {
		jw_object_begin(w);
		jw_str_field(w, "text", text);
		jw_object_end(w);
	}
	(void)jv_free(doc);
}

void journal_write(struct jw *w, const struct journal_row *row)
{
	jw_uint_field(w, "seq", row->seq);
	jw_iso_field(w, "at", row->at_ms);
	jw_str_field(w, "owner", row->owner);
	jw_str_field(w, "kind", row->kind);
	write_data(w, row->text);
}

uint64_t journal_last(const struct journal *j)
{
	return j->seq;
}

uint64_t journal_committed(const struct journal *j)
{
	return j->committed;
}

bool journal_is_stuck(const struct journal *j)
{
	return j->is_stuck;
}

bool journal_has_room(const struct journal *j)
{
	return j->n_waiting < JOURNAL_WAITING_MAX / 4 * 3;
}

uint64_t journal_lost(const struct journal *j)
{
	return j->lost;
}

void journal_listen(struct journal *j, struct journal_listener *l)
{
	list_push_back(&j->listeners, &l->node);
}

void journal_unlisten(struct journal_listener *l)
{
	list_remove(&l->node);
}

int journal_open(const struct journal_options *o, struct journal **ret, struct err *err)
{
	_cleanup_(journal_free_p) struct journal *j = calloc(1, sizeof(*j));
	int r;

	if (!j)
		return err_sys(err, ENOMEM, "journal");
	j->o = *o;
	list_init(&j->waiting);
	list_init(&j->listeners);
	r = loop_timer_create(o->loop, retry, j, &j->retry);
	if (r < 0)
		return err_sys(err, r, "journal");
	r = store_last_journal(o->store, o->stream, found_last, j, err);
	if (r < 0)
		return r;
	*ret = TAKE(j);
	return 0;
}

struct journal *journal_free(struct journal *j)
{
	if (!j)
		return NULL;
	LIST_FOREACH (&j->waiting, l, struct line, node) {
		list_remove(&l->node);
		l->journal = NULL;
		if (!l->is_asked)
			free(l); /* else the store's callback, which always comes */
	}
	LIST_FOREACH (&j->listeners, x, struct journal_listener, node)
		list_remove(&x->node);
	j->retry = loop_timer_free(j->retry);
	free(j);
	return NULL;
}
