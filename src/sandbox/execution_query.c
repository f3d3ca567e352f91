/* Looking at executions: those in memory, and behind them the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/execution.h"

typedef void (*get_cb)(void *user, const struct exec_info *info, const struct output *output,
		       const struct err *err);
typedef void (*list_cb)(void *user, const struct exec_info *infos, size_t n, bool more,
			const struct err *err);

/* ---- one ---- */

struct get {
	struct later later;
	struct flight flight;
	struct execution *x; /* owned reference or NULL */
	char sandbox_id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1];
	bool is_anybodys;
	size_t keep;
	get_cb cb;
	void *user;
	struct err err;
};

static void run_get(struct later *l, bool is_over)
{
	_free_ struct get *g = LIST_ENTRY(l, struct get, later);
	struct exec_info info;

	if (!is_over && g->x) {
		exec_info(g->x, &info);
		g->cb(g->user, &info, g->x->output, NULL);
	} else if (!is_over) {
		g->cb(g->user, NULL, NULL, &g->err);
	}
	exec_unref(g->x);
}

static void set_missing(struct err *err, int r)
{
	if (r == -ENOENT)
		(void)err_set(err, ENOENT, "there is no such execution");
	else
		(void)err_sys(err, r, "look up the execution");
}

/* -ENOENT for another's, as if it were not there. */
static int check_row(const struct get *g, const struct execution_row *row)
{
	if (strcmp(row->sandbox_id, g->sandbox_id) != 0)
		return -ENOENT;
	return g->is_anybodys || strcmp(row->owner, g->owner) == 0 ? 0 : -ENOENT;
}

static void give_row(struct get *g, const struct execution_row *row)
{
	_cleanup_(output_free_p) struct output *o = NULL;
	struct exec_info info;

	execution_read_row(row, &info);
	if (row->output_len > 0) /* a damaged one counts as not kept */
		(void)output_load(row->output, row->output_len, g->keep, &o, NULL);
	g->cb(g->user, &info, o, NULL);
}

static void on_got(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	_free_ struct get *g = user;

	(void)more;
	if (!flight_end(&g->flight))
		return;
	if (r == 0)
		r = n > 0 ? check_row(g, &rows[0]) : -ENOENT;
	if (r == 0) {
		give_row(g, &rows[0]);
		return;
	}
	set_missing(&g->err, r);
	g->cb(g->user, NULL, NULL, &g->err);
}

static struct execution *find_in_memory(struct sandboxes *all, const struct get *g, const char *id)
{
	struct sandbox *sb = map_get(all->by_id, g->sandbox_id, strlen(g->sandbox_id));

	if (!sb || (!g->is_anybodys && strcmp(sb->owner, g->owner) != 0))
		return NULL;
	return execution_by_id(sb, id);
}

void exec_get(struct sandboxes *all, const char *sandbox_id, const char *owner, const char *id,
	      get_cb cb, void *user)
{
	struct get *g = calloc(1, sizeof(*g));
	int r = -ENOENT;

	if (!g) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	g->cb = cb;
	g->user = user;
	g->is_anybodys = owner == NULL;
	g->keep = OUTPUT_KEEP_MAX;
	if (id_is_valid(id) && str_copy(g->sandbox_id, sizeof(g->sandbox_id), sandbox_id) == 0 &&
	    (!owner || str_copy(g->owner, sizeof(g->owner), owner) == 0)) {
		g->x = find_in_memory(all, g, id);
		if (!g->x)
			r = store_get_execution(all->store, id, on_got, g);
	}
	if (r == 0) {
		flight_begin(all, &g->flight);
		return;
	}
	if (g->x)
		(void)exec_ref(g->x);
	else
		set_missing(&g->err, r);
	later_post(all, &g->later, run_get);
}

/* ---- many ---- */

struct listing {
	struct flight flight;
	struct later later;
	struct sandboxes *all;
	char sandbox_id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1], before_id[ID_LEN + 1];
	bool is_anybodys;
	int64_t before_ms;
	size_t limit;
	list_cb cb;
	void *user;
	struct err err;
};

static void run_list(struct later *l, bool is_over)
{
	_free_ struct listing *q = LIST_ENTRY(l, struct listing, later);

	if (!is_over)
		q->cb(q->user, NULL, 0, false, q->err.code ? &q->err : NULL);
}

static int newest_first(const void *a, const void *b)
{
	const struct exec_info *x = a, *y = b;

	if (x->started_ms != y->started_ms)
		return x->started_ms < y->started_ms ? 1 : -1;
	return strcmp(y->id, x->id);
}

static bool is_behind(const struct listing *q, const struct execution *x)
{
	if (q->before_ms == 0 || x->started_ms < q->before_ms)
		return true;
	return x->started_ms == q->before_ms && strcmp(x->id, q->before_id) < 0;
}

/* What is in memory: running, or ended and not recorded. */
static size_t add_memory(const struct listing *q, const struct sandbox *sb, struct exec_info *infos)
{
	size_t n = 0;

	LIST_FOREACH (&sb->executions, x, struct execution, node)
		if (is_behind(q, x))
			exec_info(x, &infos[n++]);
	return n;
}

static size_t add_rows(const struct listing *q, const struct sandbox *sb,
		       const struct execution_row *rows, size_t n_rows, struct exec_info *infos)
{
	size_t n = 0;

	for (size_t i = 0; i < n_rows; i++) {
		if (sb && execution_by_id(sb, rows[i].id))
			continue;
		if (!q->is_anybodys && strcmp(rows[i].owner, q->owner) != 0)
			continue;
		execution_read_row(&rows[i], &infos[n++]);
	}
	return n;
}

static void give(struct listing *q, const struct execution_row *rows, size_t n_rows, bool more)
{
	struct sandbox *sb = map_get(q->all->by_id, q->sandbox_id, strlen(q->sandbox_id));
	_free_ struct exec_info *infos = NULL;
	size_t n = 0;

	if (sb && !q->is_anybodys && strcmp(sb->owner, q->owner) != 0)
		sb = NULL;
	infos = calloc(n_rows + (sb ? sb->n_running + sb->n_unrecorded : 0) + 1, sizeof(*infos));
	if (!infos) {
		(void)err_sys(&q->err, ENOMEM, "list executions");
		q->cb(q->user, NULL, 0, false, &q->err);
		return;
	}
	if (sb)
		n = add_memory(q, sb, infos);
	n += add_rows(q, sb, rows, n_rows, infos + n);
	qsort(infos, n, sizeof(*infos), newest_first);
	q->cb(q->user, infos, n < q->limit ? n : q->limit, more || n > q->limit, NULL);
}

static void on_rows(void *user, int r, const struct execution_row *rows, size_t n, bool more)
{
	_free_ struct listing *q = user;

	if (!flight_end(&q->flight))
		return;
	if (r < 0) {
		(void)err_sys(&q->err, r, "list executions");
		q->cb(q->user, NULL, 0, false, &q->err);
		return;
	}
	give(q, rows, n, more);
}

void exec_list(struct sandboxes *all, const char *sandbox_id, const char *owner, int64_t before_ms,
	       const char *before_id, size_t limit, list_cb cb, void *user)
{
	struct listing *q = calloc(1, sizeof(*q));
	struct store_cursor cursor = { before_ms, before_id ? before_id : "" };
	int r;

	if (!q) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, 0, false, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	q->all = all;
	q->cb = cb;
	q->user = user;
	q->is_anybodys = owner == NULL;
	q->before_ms = before_ms;
	q->limit = limit < STORE_PAGE_MAX ? limit : STORE_PAGE_MAX;
	if (str_copy(q->sandbox_id, sizeof(q->sandbox_id), sandbox_id) < 0 ||
	    str_copy(q->before_id, sizeof(q->before_id), cursor.before_id) < 0 ||
	    (owner && str_copy(q->owner, sizeof(q->owner), owner) < 0))
		r = -EINVAL;
	else
		r = store_list_executions(all->store, sandbox_id, &cursor, (uint32_t)q->limit,
					  on_rows, q);
	if (r == 0) {
		flight_begin(all, &q->flight);
		return;
	}
	(void)err_sys(&q->err, r, "list executions");
	later_post(all, &q->later, run_list);
}
