/* Grep and replace. */
#include <errno.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/search_bodies.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "json/jw.h"

#define ANSWER_BYTES (8u << 20) /* of items; what a box has in files is its own choice */
#define SKIPPED_MAX 100u        /* that are told by name */

struct hunt {                /* in the request's arena */
	struct file_job job; /* first: the job is the hunt */
	const char *path;
	uint64_t limit;
	struct buf items; /* owned: JSON, as it comes */
	struct buf skipped;
	struct jw items_w, skipped_w; /* write into those */
	uint64_t n, n_skipped;        /* lines or replacements; files */
	bool truncated;
};

static void hunt_done(struct hunt *h)
{
	file_job_end(&h->job);
	buf_done(&h->items);
	buf_done(&h->skipped);
}

static void hunt_gone(void *user, struct http_request *r)
{
	(void)r;
	hunt_done(user);
}

static void hunt_failed(void *user, const struct err *err)
{
	struct hunt *h = user;

	h->job.op = NULL;
	hunt_done(h);
	problem_reply_box(h->job.call, err);
}

/* "items" and what both answers have; the caller goes on behind. */
static void begin_answer(struct hunt *h, struct jw *w)
{
	jw_array_end(&h->items_w);
	jw_array_end(&h->skipped_w);
	if (h->items_w.failed || h->skipped_w.failed)
		w->failed = -ENOMEM;
	jw_object_begin(w);
	jw_str_field(w, "path", h->path);
	jw_raw_field(w, "items", buf_str(&h->items), h->items.len);
	jw_bool_field(w, "truncated", h->truncated);
}

static void write_path(struct hunt *h, struct jw *w, const char *path)
{
	char whole[2 * FILE_PATH_MAX];

	if (file_join(whole, sizeof(whole), h->path, path) == 0)
		jw_str_field(w, "path", whole);
	else
		jw_str_field(w, "path", path);
}

static bool is_full(const struct hunt *h)
{
	return h->items.len > ANSWER_BYTES;
}

static void skipped(struct hunt *h, const struct guest_found *f)
{
	if (h->n_skipped++ >= SKIPPED_MAX)
		return;
	jw_object_begin(&h->skipped_w);
	write_path(h, &h->skipped_w, f->path);
	jw_str_field(&h->skipped_w, "reason", f->text);
	jw_object_end(&h->skipped_w);
}

/* False: answered. */
static void hunt_start(struct api_call *c, uint8_t op, const struct file_ops *ops)
{
	struct hunt *h = arena_alloc(http_arena(c->http), sizeof(*h));
	struct guest_file f;

	if (!h)
		return problem_reply(c, &(struct err){ ENOMEM, "search" });
	if (!search_request(c, op, &f))
		return;
	h->job.call = c;
	h->path = f.path;
	h->limit = f.search.limit;
	if (!file_job_start(&h->job, &f, ops, h))
		return;
	http_on_gone(c->http, hunt_gone, h);
	h->items_w = jw_begin(&h->items);
	h->skipped_w = jw_begin(&h->skipped);
	jw_array_begin(&h->items_w);
	jw_array_begin(&h->skipped_w);
}

/* ---- grep ---- */

static void reply_grep(struct hunt *h)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	begin_answer(h, &w);
	jw_uint_field(&w, "matches", h->n);
	jw_uint_field(&w, "skipped", h->n_skipped);
	jw_object_end(&w);
	hunt_done(h);
	call_reply(h->job.call, 200, &w);
}

static void uint_or_null(struct jw *w, const char *key, uint64_t v)
{
	if (v > 0)
		jw_uint_field(w, key, v);
	else
		jw_null_field(w, key);
}

static void grep_found(void *user, const struct guest_found *f)
{
	struct hunt *h = user;
	bool is_file = f->kind == FOUND_FILE;

	if (f->kind == FOUND_SKIPPED)
		return skipped(h, f);
	jw_object_begin(&h->items_w);
	write_path(h, &h->items_w, f->path);
	uint_or_null(&h->items_w, "line", is_file ? 0 : f->number);
	uint_or_null(&h->items_w, "column", f->column);
	jw_str_field(&h->items_w, "text", is_file ? NULL : f->text);
	jw_bool_field(&h->items_w, "isMatch", f->kind != FOUND_CONTEXT);
	jw_bool_field(&h->items_w, "isCut", f->is_cut);
	jw_object_end(&h->items_w);
	h->n += f->kind != FOUND_CONTEXT;
	if (!is_full(h))
		return;
	h->truncated = true;
	reply_grep(h);
}

static void grep_done(void *user, uint64_t count)
{
	struct hunt *h = user;

	h->job.op = NULL;
	h->truncated = count > h->limit;
	reply_grep(h);
}

void api_grep(struct api_call *c)
{
	static const struct file_ops ops = {
		.found = grep_found,
		.done = grep_done,
		.failed = hunt_failed,
	};

	hunt_start(c, FILE_GREP, &ops);
}

/* ---- replace ---- */

static void replace_found(void *user, const struct guest_found *f)
{
	struct hunt *h = user;

	if (f->kind == FOUND_SKIPPED)
		return skipped(h, f);
	h->n += f->number;
	/* No reason to stop in the middle of it: only the list of files ends here. */
	if (is_full(h)) {
		h->truncated = true;
		return;
	}
	jw_object_begin(&h->items_w);
	write_path(h, &h->items_w, f->path);
	jw_uint_field(&h->items_w, "replacements", f->number);
	jw_object_end(&h->items_w);
}

static void replace_done(void *user, uint64_t count)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct hunt *h = user;
	const struct body_search *body = h->job.call->body;
	struct jw w = jw_begin(&b);

	h->job.op = NULL;
	h->truncated = h->truncated || count > h->limit;
	begin_answer(h, &w);
	jw_uint_field(&w, "files", count > h->limit ? h->limit : count);
	jw_uint_field(&w, "replacements", h->n);
	jw_bool_field(&w, "dryRun", body->dry_run);
	jw_raw_field(&w, "skipped", buf_str(&h->skipped), h->skipped.len);
	jw_object_end(&w);
	hunt_done(h);
	call_reply(h->job.call, 200, &w);
}

void api_replace(struct api_call *c)
{
	static const struct file_ops ops = {
		.found = replace_found,
		.done = replace_done,
		.failed = hunt_failed,
	};

	hunt_start(c, FILE_REPLACE, &ops);
}
