/* What boxes take just now: of one sandbox, and of a page of them. */
#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/sandbox_json.h"
#include "api/sandbox_usage.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/sandbox.h"
#include "json/jw.h"

#define PAGE_BYTES (2u << 20) /* of the sandboxes' own texts; a page ends early above this */
#define AT_ONCE 32u           /* boxes that the launcher is asked of */

static void write_usage(struct jw *w, const struct box_usage *u)
{
	jw_object_begin(w);
	jw_double_field(w, "cpuSeconds", (double)u->cpu_us / 1e6);
	jw_uint_field(w, "memory", u->memory_bytes);
	jw_uint_field(w, "memoryPeak", u->memory_peak_bytes);
	jw_uint_field(w, "processes", u->pids);
	jw_uint_field(w, "outOfMemoryKills", u->oom_kills);
	jw_object_end(w);
}

static void looked(void *user, const struct box_usage *u, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = user;
	struct jw w = jw_begin(&b);

	if (err)
		return problem_reply(c, err);
	write_usage(&w, u);
	call_reply(c, 200, &w);
}

void api_sandbox_usage(struct api_call *c)
{
	struct sandbox *sb = call_sandbox(c);

	if (sb)
		sandbox_usage(sb, looked, c);
}

/* ---- a page ---- */

struct page;

struct item {
	struct page *page;
	char id[ID_LEN + 1];
	const char *text; /* its JSON */
	size_t len;
	struct box_usage usage;
	bool is_known;
};

struct page { /* in the request's arena, which waits for the answer */
	struct api_call *call;
	struct item *items;
	size_t n, next, asked; /* next to be asked of; asked and not told */
	bool is_asking;        /* an answer may come from inside the question */
	bool more;
	int64_t last_ms;
	char last_id[ID_LEN + 1];
};

/* "{...}" with one member more. */
static void write_item(struct jw *w, const struct item *item)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw own;

	(void)buf_append(&b, item->text, item->len - 1);
	(void)buf_puts(&b, ",\"usage\":");
	own = jw_begin(&b);
	if (item->is_known)
		write_usage(&own, &item->usage);
	else
		jw_null(&own);
	if (jw_end(&own) < 0 || buf_putc(&b, '}') < 0)
		w->failed = -ENOMEM;
	else
		jw_raw(w, b.data, b.len);
}

static void reply(struct page *p)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	jw_object_begin(&w);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < p->n; i++)
		write_item(&w, &p->items[i]);
	jw_array_end(&w);
	call_write_cursor(&w, p->more, p->last_ms, p->last_id);
	jw_object_end(&w);
	call_reply(p->call, 200, &w);
}

static void ask(struct page *p);

static void told(void *user, const struct box_usage *u, const struct err *err)
{
	struct item *item = user;

	item->is_known = !err;
	if (!err)
		item->usage = *u;
	item->page->asked--;
	if (!item->page->is_asking)
		ask(item->page);
}

static void ask(struct page *p)
{
	struct sandboxes *all = p->call->api->deps.sandboxes;

	p->is_asking = true;
	while (p->next < p->n && p->asked < AT_ONCE) {
		struct item *item = &p->items[p->next++];
		struct sandbox *sb = sandboxes_find(all, item->id, NULL);

		if (!sb)
			continue; /* it has ended meanwhile, or before */
		p->asked++;
		sandbox_usage(sb, told, item);
	}
	p->is_asking = false;
	if (p->next == p->n && p->asked == 0)
		reply(p);
}

static int add(struct page *p, const struct sandbox_info *info, size_t *bytes)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct item *item = &p->items[p->n];
	int r;

	sandbox_json(&w, info);
	r = jw_end(&w);
	if (r < 0)
		return r;
	item->page = p;
	item->len = b.len;
	item->text = arena_strndup(http_arena(p->call->http), b.data, b.len);
	if (!item->text)
		return -ENOMEM;
	(void)str_copy(item->id, sizeof(item->id), info->id);
	(void)str_copy(p->last_id, sizeof(p->last_id), info->id);
	p->last_ms = info->created_ms;
	p->n++;
	*bytes += b.len;
	return 0;
}

void sandbox_usage_page(struct api_call *c, const struct sandbox_info *infos, size_t n, bool more)
{
	struct arena *a = http_arena(c->http);
	struct page *p = arena_alloc(a, sizeof(*p));
	size_t bytes = 0;
	int r = 0;

	if (p)
		p->items = arena_array(a, n ? n : 1, sizeof(p->items[0]));
	if (!p || !p->items)
		return problem_reply(c, &(struct err){ ENOMEM, "sandboxes" });
	p->call = c;
	while (r == 0 && p->n < n && bytes < PAGE_BYTES)
		r = add(p, &infos[p->n], &bytes);
	if (r < 0)
		return problem_reply(c, &(struct err){ -r, "sandboxes" });
	p->more = p->n > 0 && (more || p->n < n);
	ask(p);
}
