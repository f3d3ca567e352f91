/* Lists, page after page, as one. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/map.h"
#include "base/str.h"
#include "mcpc/client_impl.h"
#include "mcpc/mirror.h"
#include "json/jw.h"

#define PAGES_MAX 200u
#define ITEMS_MAX 10000u

CLEANUP_FUNC(struct jv_doc *, jv_free)

struct mcpc_paging {
	struct list node;
	struct mcpc *c;
	char *method, *member; /* owned */
	struct buf all;        /* {"member":[... */
	size_t pages, items;
	mcpc_done_fn done;
	void *user;
};

static int ask_page(struct mcpc_paging *p, struct jv cursor, struct err *err);

static void paging_free(struct mcpc_paging *p)
{
	list_remove(&p->node);
	free(p->method);
	free(p->member);
	buf_done(&p->all);
	free(p);
}

void mcpc_pagings_free(struct mcpc *c)
{
	LIST_FOREACH (&c->pagings, p, struct mcpc_paging, node)
		paging_free(p);
}

void mcpc_mirrors_free(struct mcpc *c)
{
	if (!c->mirrors)
		return;
	MAP_FOREACH (c->mirrors, it)
		(void)mcpc_mirror_free(it.value);
	c->mirrors = map_free(c->mirrors);
}

static void end(struct mcpc_paging *p, const struct mcpc_outcome *o)
{
	mcpc_done_fn done = p->done;
	void *user = p->user;

	paging_free(p);
	done(user, o);
}

static void end_whole(struct mcpc_paging *p)
{
	_cleanup_(jv_free_p) struct jv_doc *doc = NULL;
	struct mcpc_outcome o = { 0 };
	int r = buf_puts(&p->all, "]}");

	if (r == 0)
		r = jv_parse(p->all.data, p->all.len, p->all.len, &doc, &o.err);
	if (r < 0)
		(void)err_sys(&o.err, r, "%s", p->method);
	else
		o.result = jv_root(doc);
	end(p, &o);
}

/* False: the tool must not be used, so it is not there. */
static bool learn_tool(struct mcpc *c, struct jv tool)
{
	const char *name = jv_text(jv_get(tool, "name"));
	struct mcpc_mirror *mirror = NULL;
	void *old = NULL;
	int r = mcpc_mirror_read(tool, &mirror);

	if (r < 0 || !name) {
		log_debug("mcpc", "tool '%.80s' is left out: its headers are wrong",
			  name ? name : "");
		(void)mcpc_mirror_free(mirror);
		return false;
	}
	if (!c->mirrors)
		c->mirrors = map_create(ITEMS_MAX);
	if (!c->mirrors)
		r = -ENOMEM;
	else if (mirror)
		r = map_put(c->mirrors, name, strlen(name), mirror, &old);
	else
		old = map_remove(c->mirrors, name, strlen(name));
	(void)mcpc_mirror_free(old);
	if (r < 0)
		(void)mcpc_mirror_free(mirror);
	return r == 0;
}

static int take_items(struct mcpc_paging *p, struct jv items, struct err *err)
{
	bool are_tools = strcmp(p->method, "tools/list") == 0;

	if (jv_kind(items) != JV_ARRAY)
		return err_set(err, EPROTO, "%s: '%s' is no array", p->method, p->member);
	JV_FOREACH (items, it) {
		struct jw w = jw_begin(&p->all);

		if (are_tools && p->c->is_modern && !learn_tool(p->c, it.value))
			continue;
		if (++p->items > ITEMS_MAX)
			return err_set(err, E2BIG, "%s: more than %u", p->method, ITEMS_MAX);
		if (p->items > 1)
			(void)buf_putc(&p->all, ',');
		jw_value(&w, it.value);
		if (jw_end(&w) < 0)
			return err_set(err, E2BIG, "%s: more than %u bytes", p->method,
				       MCPC_MESSAGE_MAX);
	}
	return 0;
}

static void page_came(void *user, const struct mcpc_outcome *o)
{
	struct mcpc_paging *p = user;
	struct jv cursor = jv_get(o->result, "nextCursor");
	struct err err = { 0 };
	int r = 0;

	if (o->err.code) {
		end(p, o);
		return;
	}
	r = take_items(p, jv_get(o->result, p->member), &err);
	if (r == 0 && jv_kind(cursor) != JV_STRING) {
		end_whole(p);
		return;
	}
	if (r == 0)
		r = ask_page(p, cursor, &err);
	if (r < 0)
		end(p, &(struct mcpc_outcome){ .err = err });
}

static int ask_page(struct mcpc_paging *p, struct jv cursor, struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (++p->pages > PAGES_MAX)
		return err_set(err, E2BIG, "%s: more than %u pages", p->method, PAGES_MAX);
	jw_object_begin(&w);
	if (jv_kind(cursor) == JV_STRING) {
		jw_key(&w, "cursor");
		jw_value(&w, cursor);
	}
	jw_object_end(&w);
	if (jw_end(&w) < 0)
		return err_sys(err, ENOMEM, "%s", p->method);
	return mcpc_request(
		p->c,
		&(struct mcpc_request){
			.method = p->method, .params = b.data, .done = page_came, .user = p },
		NULL, err);
}

int mcpc_list(struct mcpc *c, const char *method, const char *member, mcpc_done_fn done, void *user,
	      struct err *err)
{
	struct mcpc_paging *p = calloc(1, sizeof(*p));
	int r;

	if (!p)
		return err_sys(err, ENOMEM, "%s", method);
	list_push_back(&c->pagings, &p->node);
	p->c = c;
	p->done = done;
	p->user = user;
	p->method = str_dup(str_of(method));
	p->member = str_dup(str_of(member));
	buf_init(&p->all, MCPC_MESSAGE_MAX);
	r = buf_printf(&p->all, "{\"%s\":[", member);
	if (r == 0 && (!p->method || !p->member))
		r = -ENOMEM;
	r = r < 0 ? err_sys(err, r, "%s", method) : ask_page(p, (struct jv){ 0 }, err);
	if (r < 0)
		paging_free(p);
	return r;
}
