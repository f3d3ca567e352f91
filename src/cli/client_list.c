#include <errno.h>
#include <stdio.h>

#include "base/cleanup.h"
#include "cli/client.h"
#include "cli/show.h"
#include "cli/table.h"
#include "httpc/url.h"
#include "json/jw.h"

#define PAGE "500"
#define PAGES_MAX 1000
#define JSON_MAX (256u << 20)

/* One page; the cursor of the next is put into *ret_next, or nothing. */
static int take_page(struct client *c, const char *target, client_item_fn fn, void *user,
		     struct buf *ret_next, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc page = { 0 };
	struct jv items;
	const char *cursor;
	int r = client_json(c, "GET", target, NULL, &page, err);

	buf_clear(ret_next);
	if (r < 0)
		return r;
	items = jv_get(jv_root(page.doc), "items");
	if (jv_kind(items) == JV_ABSENT) /* of sessions, whose envelope is another's */
		items = jv_get(jv_root(page.doc), "data");
	JV_FOREACH (items, it) {
		r = fn(user, it.value);
		if (r != 0)
			return r;
	}
	cursor = jv_text(jv_get(jv_root(page.doc), "nextCursor"));
	return cursor ? buf_puts(ret_next, cursor) : 0;
}

int client_list(struct client *c, const char *target, client_item_fn fn, void *user,
		struct err *err)
{
	_cleanup_(buf_done) struct buf full = { 0 }, cursor = { 0 };
	int r = 0;

	for (int i = 0; r == 0 && i < PAGES_MAX; i++) {
		buf_clear(&full);
		(void)buf_puts(&full, target);
		r = url_add_query(&full, "limit", PAGE);
		if (r == 0 && i > 0)
			r = url_add_query(&full, "cursor", buf_str(&cursor));
		if (r == 0)
			r = take_page(c, full.data, fn, user, &cursor, err);
		if (cursor.len == 0)
			return r;
	}
	return r < 0 ? r : err_set(err, E2BIG, "the list does not end");
}

static int add_json(void *user, struct jv item)
{
	jw_value(user, item);
	return 0;
}

static int print_json(struct client *c, const char *target, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { .max = JSON_MAX };
	struct jw w = jw_begin(&b);
	int r;

	jw_array_begin(&w);
	r = client_list(c, target, add_json, &w, err);
	if (r < 0)
		return r;
	jw_array_end(&w);
	r = jw_end(&w);
	return r < 0 ? r : client_print(&b);
}

int client_print_list(struct client *c, const char *target, const char *const *heads,
		      client_item_fn row, struct err *err)
{
	_cleanup_(table_done) struct table t;
	int r;

	table_init(&t, heads);
	if (c->json)
		return print_json(c, target, err);
	r = client_list(c, target, row, &t, err);
	if (r == 0)
		table_print(&t, stdout);
	return r;
}

int client_print_object(const struct client *c, const struct client_doc *d)
{
	if (c->json)
		return client_print(&d->text);
	show_object(jv_root(d->doc), stdout);
	return 0;
}

int client_show(struct client *c, const char *pattern, const char *id, struct err *err)
{
	_cleanup_(client_doc_done) struct client_doc d = { 0 };
	_cleanup_(buf_done) struct buf target = { 0 };
	int r = client_path(&target, pattern, id);

	if (r == 0)
		r = client_json(c, "GET", target.data, NULL, &d, err);
	return r < 0 ? r : client_print_object(c, &d);
}
