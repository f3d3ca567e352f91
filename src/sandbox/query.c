/* Looking at sandboxes: living ones in memory, ended ones in the store. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/cleanup.h"
#include "base/map.h"
#include "base/str.h"
#include "sandbox/ask.h"
#include "sandbox/pool.h"
#include "sandbox/row.h"

typedef void (*get_cb)(void *user, const struct sandbox_info *info, const struct err *err);
typedef void (*list_cb)(void *user, const struct sandbox_info *infos, size_t n, bool more,
			const struct err *err);

/* ---- one ---- */

struct get {
	struct later later;
	struct flight flight;
	struct sandbox *sb; /* owned reference or NULL */
	char id[ID_LEN + 1], owner[SANDBOX_OWNER_MAX + 1];
	bool is_anybodys;
	get_cb cb;
	void *user;
	struct err err;
};

static void run_get(struct later *l, bool is_over)
{
	_free_ struct get *g = LIST_ENTRY(l, struct get, later);
	struct sandbox_info info;

	if (!is_over && g->sb) {
		sandbox_info(g->sb, &info);
		g->cb(g->user, &info, NULL);
	} else if (!is_over) {
		g->cb(g->user, NULL, &g->err);
	}
	if (g->sb)
		sandbox_unref(g->sb);
}

static void on_got(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	_free_ struct get *g = user;
	struct row_info i;

	(void)more;
	if (!flight_end(&g->flight))
		return;
	if (r == 0 && (n == 0 || (!g->is_anybodys && strcmp(rows[0].owner, g->owner) != 0)))
		r = -ENOENT;
	if (r == 0)
		r = row_read(&rows[0], &i);
	if (r == 0) {
		g->cb(g->user, &i.info, NULL);
		row_info_done(&i);
		return;
	}
	if (r == -ENOENT)
		(void)err_set(&g->err, ENOENT, "there is no such sandbox");
	else
		(void)err_sys(&g->err, r, "look up the sandbox");
	g->cb(g->user, NULL, &g->err);
}

void sandbox_get(struct sandboxes *all, const char *id_or_name, const char *owner, get_cb cb,
		 void *user)
{
	struct get *g = calloc(1, sizeof(*g));
	int r = -ENOENT;

	if (!g) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	g->cb = cb;
	g->user = user;
	g->is_anybodys = owner == NULL;
	g->sb = sandboxes_find(all, id_or_name, owner);
	if (g->sb) {
		(void)sandbox_ref(g->sb);
		later_post(all, &g->later, run_get);
		return;
	}
	if (id_is_valid(id_or_name) && (!owner || str_copy(g->owner, sizeof(g->owner), owner) == 0))
		r = store_get_sandbox(all->store, id_or_name, on_got, g);
	if (r == 0) {
		flight_begin(all, &g->flight);
		return;
	}
	if (r == -ENOENT)
		(void)err_set(&g->err, ENOENT, "there is no such sandbox");
	else
		(void)err_sys(&g->err, r, "look up the sandbox");
	later_post(all, &g->later, run_get);
}

/* ---- many ---- */

struct listing {
	struct later later;
	struct flight flight;
	struct sandboxes *all;
	struct sandbox **found; /* owned array of owned references */
	size_t n;
	bool more;
	list_cb cb;
	void *user;
	struct err err;
};

static bool has_pair(const struct pairs *p, const struct sandbox_pair *want)
{
	for (size_t i = 0; i < p->len; i++)
		if (strcmp(p->items[i].name, want->name) == 0)
			return strcmp(p->items[i].value, want->value) == 0;
	return false;
}

/* Which of two comes first in a list of the newest: below 0 for the first. */
static int compare(int64_t a_ms, const char *a_id, int64_t b_ms, const char *b_id)
{
	if (a_ms != b_ms)
		return a_ms > b_ms ? -1 : 1;
	return strcmp(b_id, a_id);
}

static bool is_behind(const struct sandbox *sb, const struct sandbox_filter *f)
{
	int order;

	if (f->before_ms == 0)
		return true;
	if (sb->created_ms == f->before_ms && !f->before_id)
		return false;
	order = compare(sb->created_ms, sb->id, f->before_ms, f->before_id ? f->before_id : "");
	return f->oldest_first ? order < 0 : order > 0;
}

static bool has_pairs(const struct sandbox *sb, const struct sandbox_filter *f)
{
	for (size_t i = 0; i < f->n_metadata; i++)
		if (!has_pair(&sb->metadata, &f->metadata[i]))
			return false;
	return true;
}

static bool matches(const struct sandbox *sb, const struct sandbox_filter *f)
{
	/* One being created is announced by its answer only: it may yet leave nothing. */
	if (sb->state == SANDBOX_CREATING || !state_is_live(sb->state) || !is_behind(sb, f))
		return false;
	if (f->states != 0 && !(f->states >> sb->state & 1))
		return false;
	if ((f->owner && strcmp(sb->owner, f->owner) != 0) ||
	    (f->template && strcmp(sb->template, f->template) != 0) ||
	    (f->name && strcmp(sb->name, f->name) != 0))
		return false;
	return has_pairs(sb, f) && sb->created_ms >= f->created_after &&
	       (!f->also || f->also(f->also_user, sb));
}

static int newest_first(const void *a, const void *b)
{
	const struct sandbox *x = *(struct sandbox *const *)a, *y = *(struct sandbox *const *)b;

	return compare(x->created_ms, x->id, y->created_ms, y->id);
}

static int oldest_first(const void *a, const void *b)
{
	return newest_first(b, a);
}

/* The living ones that match, a page of them, from memory. */
static int select_live(struct listing *l, const struct sandbox_filter *f)
{
	struct sandboxes *all = l->all;
	size_t n = 0;

	l->found = calloc(map_len(all->by_id) + 1, sizeof(struct sandbox *));
	if (!l->found)
		return -ENOMEM;
	LIST_FOREACH (&all->sandboxes, sb, struct sandbox, node)
		if (sb->is_registered && matches(sb, f))
			l->found[n++] = sb;
	qsort(l->found, n, sizeof(struct sandbox *), f->oldest_first ? oldest_first : newest_first);
	l->more = n > f->limit;
	l->n = l->more ? f->limit : n;
	for (size_t i = 0; i < l->n; i++)
		(void)sandbox_ref(l->found[i]);
	return 0;
}

static void give_live(struct listing *l)
{
	struct sandbox_info *infos = calloc(l->n + 1, sizeof(*infos));

	if (!infos)
		(void)err_sys(&l->err, ENOMEM, "list sandboxes");
	for (size_t i = 0; infos && i < l->n; i++)
		sandbox_info(l->found[i], &infos[i]);
	if (l->err.code)
		l->cb(l->user, NULL, 0, false, &l->err);
	else
		l->cb(l->user, infos, l->n, l->more, NULL);
	free(infos);
}

static void listing_free(struct listing *l)
{
	for (size_t i = 0; i < l->n; i++)
		sandbox_unref(l->found[i]);
	free(l->found);
	free(l);
}

static void run_list(struct later *later, bool is_over)
{
	struct listing *l = LIST_ENTRY(later, struct listing, later);

	if (!is_over)
		give_live(l);
	listing_free(l);
}

/* What is in memory is newer than its row. */
static int read_one(struct sandboxes *all, const struct sandbox_row *row, struct row_info *ret)
{
	struct sandbox *sb = map_get(all->by_id, row->id, strlen(row->id));

	if (!sb)
		return row_read(row, ret);
	*ret = (struct row_info){ 0 };
	sandbox_info(sb, &ret->info);
	return 0;
}

static void give_rows(struct listing *l, const struct sandbox_row *rows, size_t n, bool more)
{
	_free_ struct row_info *read = calloc(n + 1, sizeof(*read));
	_free_ struct sandbox_info *infos = calloc(n + 1, sizeof(*infos));
	size_t k = 0;

	if (!read || !infos) {
		(void)err_sys(&l->err, ENOMEM, "list sandboxes");
		l->cb(l->user, NULL, 0, false, &l->err);
		return;
	}
	for (size_t i = 0; i < n; i++)
		if (read_one(l->all, &rows[i], &read[k]) == 0) { /* a damaged one is left out */
			infos[k] = read[k].info;
			k++;
		}
	l->cb(l->user, infos, k, more, NULL);
	for (size_t i = 0; i < k; i++)
		row_info_done(&read[i]);
}

static void on_rows(void *user, int r, const struct sandbox_row *rows, size_t n, bool more)
{
	struct listing *l = user;

	if (flight_end(&l->flight)) {
		if (r < 0) {
			(void)err_sys(&l->err, r, "list sandboxes");
			l->cb(l->user, NULL, 0, false, &l->err);
		} else {
			give_rows(l, rows, n, more);
		}
	}
	free(l);
}

static int query(struct listing *l, const struct sandbox_filter *f)
{
	struct store_pair pairs[STORE_FILTER_PAIRS_MAX];
	struct store_sandbox_filter sf = { .owner = f->owner,
					   .states = f->states,
					   .template = f->template,
					   .name = f->name,
					   .metadata = pairs,
					   .n_metadata = f->n_metadata };
	struct store_cursor cursor = { f->before_ms, f->before_id ? f->before_id : "" };
	size_t limit = f->limit < STORE_PAGE_MAX ? f->limit : STORE_PAGE_MAX;

	if (f->oldest_first || f->created_after || f->also)
		return err_set(&l->err, EINVAL,
			       "status: ended ones come newest first, all of them");
	if (f->n_metadata > STORE_FILTER_PAIRS_MAX)
		return err_set(&l->err, EINVAL, "metadata: at most %u pairs to look for",
			       STORE_FILTER_PAIRS_MAX);
	for (size_t i = 0; i < f->n_metadata; i++)
		pairs[i] = (struct store_pair){ f->metadata[i].name, f->metadata[i].value };
	return store_list_sandboxes(l->all->store, &sf, &cursor, (uint32_t)limit, on_rows, l);
}

void sandbox_list(struct sandboxes *all, const struct sandbox_filter *f, list_cb cb, void *user)
{
	const unsigned ended = 1u << SANDBOX_STOPPED | 1u << SANDBOX_FAILED;
	struct listing *l = calloc(1, sizeof(*l));
	bool is_live = (f->states & ended) == 0;
	int r;

	if (!l) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, 0, false, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	l->all = all;
	l->cb = cb;
	l->user = user;
	r = is_live ? select_live(l, f) : query(l, f);
	if (r == 0 && !is_live) {
		flight_begin(all, &l->flight);
		return;
	}
	if (r < 0 && !l->err.code)
		(void)err_sys(&l->err, r, "list sandboxes");
	later_post(all, &l->later, run_list);
}

/* ---- what it takes ---- */

struct look {
	struct sandbox *sb; /* owned reference */
	void (*cb)(void *user, const struct box_usage *usage, const struct err *err);
	void *user;
};

static void on_usage(void *user, const struct provider_reply *r)
{
	struct look *l = user;
	struct err err;

	if (r->code < 0) {
		err = ask_error(r);
		l->cb(l->user, NULL, &err);
	} else {
		series_add(l->sb, &r->usage);
		l->cb(l->user, &r->usage, NULL);
	}
	sandbox_unref(l->sb);
	free(l);
}

void sandbox_usage(struct sandbox *sb,
		   void (*cb)(void *user, const struct box_usage *usage, const struct err *err),
		   void *user)
{
	struct look *l = malloc(sizeof(*l));
	struct err err = { 0 };

	if (l && sb->box_id[0]) {
		*l = (struct look){ sandbox_ref(sb), cb, user };
		ask_provider(sb->all,
			     &(struct ask){ .kind = ASK_USAGE, .box_id = sb->box_id, .drop = free },
			     on_usage, l);
		return;
	}
	if (l)
		(void)err_set(&err, EBUSY, "the sandbox is %s", state_name(sb->state));
	else
		(void)err_sys(&err, ENOMEM, "usage");
	free(l);
	cb(user, NULL, &err);
}

/* ---- pools ---- */

struct pool_get {
	struct later later;
	struct sandboxes *all;
	char label[SANDBOX_TEMPLATE_MAX + 1]; /* in metrics */
	void (*cb)(void *user, const struct pool_state *s, const struct err *err);
	void *user;
	struct pool_state state;
	struct err err;
};

static void run_pool(struct later *l, bool is_over)
{
	_free_ struct pool_get *p = LIST_ENTRY(l, struct pool_get, later);

	if (!is_over)
		p->cb(p->user, p->err.code ? NULL : &p->state, p->err.code ? &p->err : NULL);
}

static void on_pool(void *user, const struct provider_reply *r)
{
	struct pool_get *p = user;
	struct metrics *m = p->all->metrics;

	if (r->code < 0)
		p->err = ask_error(r);
	p->state = r->pool;
	if (r->code == 0) {
		metrics_set(m, METRIC_POOL_SIZE, LABELS(p->label), r->pool.ready);
		metrics_set(m, METRIC_POOL_TARGET, LABELS(p->label), r->pool.target);
		metrics_set(m, METRIC_POOL_HITS, LABELS(p->label), (double)r->pool.hits);
		metrics_set(m, METRIC_POOL_MISSES, LABELS(p->label), (double)r->pool.misses);
	}
	later_post(p->all, &p->later, run_pool);
}

/* slot 0: there is none, and nothing waits. */
static void ask_pool(struct sandboxes *all, const char *label, uint32_t slot, const struct err *err,
		     pool_state_cb cb, void *user)
{
	struct pool_get *p = calloc(1, sizeof(*p));

	if (!p) { /* NOTE: from inside the call, which without memory cannot be helped. */
		cb(user, NULL, &(struct err){ ENOMEM, "out of memory" });
		return;
	}
	p->all = all;
	p->cb = cb;
	p->user = user;
	(void)str_format(p->label, sizeof(p->label), "%.63s", label);
	if (err)
		p->err = *err;
	if (slot == 0) {
		later_post(all, &p->later, run_pool);
		return;
	}
	ask_provider(
		all,
		&(struct ask){
			.kind = ASK_POOL, .template_id = slot, .is_impatient = true, .drop = free },
		on_pool, p);
}

void sandboxes_pool_state(struct sandboxes *all, const char *template, pool_state_cb cb, void *user)
{
	const struct template_row *row = template_find(template);
	const struct pool *pool = row ? pool_of_template(all, row->name) : NULL;
	struct err err = { 0 };

	if (row) {
		ask_pool(all, row->name, pool && pool->slot ? pool->slot : row->id, NULL, cb, user);
		return;
	}
	(void)err_set(&err, ENOENT, "there is no template '%.60s'", template);
	ask_pool(all, template, 0, &err, cb, user);
}

void pool_state(struct sandboxes *all, const struct pool *p, pool_state_cb cb, void *user)
{
	ask_pool(all, p->wish.runtime, p->slot, NULL, cb, user);
}
