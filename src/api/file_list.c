/* Lists of files: of a directory, and of what a search finds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/file_list.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "api/search_bodies.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "json/jw.h"

#define LIST_BYTES_MAX (8u << 20) /* of an answer, but for what JSON makes of odd characters */
#define LIST_ENTRY_BYTES 160u     /* of one without its texts */

void file_listing_done(struct file_listing *l)
{
	file_job_end(&l->job);
	free(l->entries);
	l->entries = NULL;
	l->arena = arena_free(l->arena);
}

static void list_gone(void *user, struct http_request *r)
{
	(void)r;
	file_listing_done(user);
}

/* A slash comes before all else: a directory's inside right behind it. */
static int by_path(const void *a, const void *b)
{
	const char *p = ((const struct guest_entry *)a)->path;
	const char *q = ((const struct guest_entry *)b)->path;

	while (*p != '\0' && *p == *q) {
		p++;
		q++;
	}
	if (*p == '\0' || *q == '\0')
		return (*p != '\0') - (*q != '\0');
	if (*p == '/' || *q == '/')
		return *p == '/' ? -1 : 1;
	return (unsigned char)*p < (unsigned char)*q ? -1 : *p != *q;
}

static void end_listing(struct file_listing *l)
{
	file_job_end(&l->job);
	if (l->n > 0)
		qsort(l->entries, l->n, sizeof(*l->entries), by_path);
	l->then(l, NULL);
}

static void reply_listing(struct file_listing *l, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (err) {
		file_listing_done(l);
		return problem_reply_box(l->job.call, err);
	}
	jw_object_begin(&w);
	jw_str_field(&w, "path", l->path);
	jw_key(&w, "items");
	jw_array_begin(&w);
	for (size_t i = 0; i < l->n; i++) {
		jw_object_begin(&w);
		file_entry_json(&w, &l->entries[i], l->path);
		jw_object_end(&w);
	}
	jw_array_end(&w);
	jw_bool_field(&w, "truncated", l->is_truncated);
	jw_object_end(&w);
	file_listing_done(l);
	call_reply(l->job.call, 200, &w);
}

/* Every entry is told by its whole path: a long one costs as often as there are entries. */
static int add_entry(struct file_listing *l, const struct guest_entry *entry)
{
	l->bytes += LIST_ENTRY_BYTES + strlen(l->path) + strlen(entry->path) +
		    strlen(entry->target) + entry->attrs_len;
	if (l->bytes > LIST_BYTES_MAX)
		return -E2BIG;
	if (l->n == l->cap) {
		size_t cap = l->cap ? 2 * l->cap : 64;
		struct guest_entry *entries = reallocarray(l->entries, cap, sizeof(*entries));

		if (!entries)
			return -ENOMEM;
		l->entries = entries;
		l->cap = cap;
	}
	if (file_entry_copy(l->arena, entry, &l->entries[l->n]) < 0)
		return -ENOMEM;
	l->n++;
	return 0;
}

static void list_entry(void *user, const struct guest_entry *entry)
{
	struct file_listing *l = user;

	if (l->n < l->limit && add_entry(l, entry) == 0)
		return;
	l->is_truncated = true; /* what a box has in files is its own choice: enough is enough */
	end_listing(l);
}

static void list_done(void *user, uint64_t count)
{
	struct file_listing *l = user;

	l->job.op = NULL;
	l->is_truncated = count > l->limit;
	end_listing(l);
}

static void list_failed(void *user, const struct err *err)
{
	struct file_listing *l = user;

	l->job.op = NULL;
	l->then(l, err);
}

void file_listing_start(struct api_call *c, const struct guest_file *f, size_t limit,
			void (*then)(struct file_listing *l, const struct err *err))
{
	static const struct file_ops ops = {
		.entry = list_entry,
		.done = list_done,
		.failed = list_failed,
	};
	struct file_listing *l = arena_alloc(http_arena(c->http), sizeof(*l));
	struct err err = { 0 };

	if (l)
		l->arena = arena_create(LIST_BYTES_MAX);
	if (!l || !l->arena)
		return problem_reply(c, &(struct err){ ENOMEM, "list" });
	l->job.call = c;
	l->path = f->path;
	l->limit = limit;
	l->then = then;
	if (file_job_try(&l->job, f, &ops, l, &err) == 0)
		return http_on_gone(c->http, list_gone, l);
	l->then(l, &err);
}

void api_file_list(struct api_call *c)
{
	struct guest_file f = { .op = FILE_LIST, .target = "" };
	uint64_t depth = 1;

	if (!file_query_path(c, &f.path) || !file_user(c, &f.user) ||
	    !call_query_u64(c, "depth", &depth))
		return;
	f.depth = (uint32_t)depth;
	file_listing_start(c, &f, FILE_LIST_MAX, reply_listing);
}

void api_find(struct api_call *c)
{
	struct guest_file f;

	if (search_request(c, FILE_FIND, &f))
		file_listing_start(c, &f, f.search.limit, reply_listing);
}
