/* Lists of files: of a directory, and of what a search finds. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

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

#define LIST_ENTRIES_MAX 10000u
#define LIST_BYTES_MAX (8u << 20) /* of an answer, but for what JSON makes of odd characters */
#define LIST_ENTRY_BYTES 160u     /* of one without its texts */

struct listing {             /* in the request's arena */
	struct file_job job; /* first: the job is the listing */
	const char *path;
	struct arena *arena;         /* owned: the entries' texts */
	struct guest_entry *entries; /* owned */
	size_t n, cap, bytes;
	size_t limit; /* of entries */
	bool truncated;
};

static void listing_done(struct listing *l)
{
	file_job_end(&l->job);
	free(l->entries);
	l->entries = NULL;
	l->arena = arena_free(l->arena);
}

static void list_gone(void *user, struct http_request *r)
{
	(void)r;
	listing_done(user);
}

static int by_path(const void *a, const void *b)
{
	return strcmp(((const struct guest_entry *)a)->path, ((const struct guest_entry *)b)->path);
}

static void reply_listing(struct listing *l)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (l->n > 0)
		qsort(l->entries, l->n, sizeof(*l->entries), by_path);
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
	jw_bool_field(&w, "truncated", l->truncated);
	jw_object_end(&w);
	listing_done(l);
	call_reply(l->job.call, 200, &w);
}

/* Every entry is told by its whole path: a long one costs as often as there are entries. */
static int add_entry(struct listing *l, const struct guest_entry *entry)
{
	l->bytes +=
		LIST_ENTRY_BYTES + strlen(l->path) + strlen(entry->path) + strlen(entry->target);
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
	struct listing *l = user;

	if (l->n < l->limit && add_entry(l, entry) == 0)
		return;
	l->truncated = true; /* what a box has in files is its own choice: enough is enough */
	reply_listing(l);
}

static void list_done(void *user, uint64_t count)
{
	struct listing *l = user;

	l->job.op = NULL;
	l->truncated = count > l->limit;
	reply_listing(l);
}

static void list_failed(void *user, const struct err *err)
{
	struct listing *l = user;

	l->job.op = NULL;
	listing_done(l);
	problem_reply_box(l->job.call, err);
}

static void list(struct api_call *c, const struct guest_file *f, size_t limit)
{
	static const struct file_ops ops = {
		.entry = list_entry,
		.done = list_done,
		.failed = list_failed,
	};
	struct listing *l = arena_alloc(http_arena(c->http), sizeof(*l));
	struct err err = { 0 };

	if (l)
		l->arena = arena_create(LIST_BYTES_MAX);
	if (!l || !l->arena)
		return problem_reply(c, &(struct err){ ENOMEM, "list" });
	l->job.call = c;
	l->path = f->path;
	l->limit = limit;
	if (file_job_try(&l->job, f, &ops, l, &err) == 0)
		return http_on_gone(c->http, list_gone, l);
	l->arena = arena_free(l->arena);
	problem_reply_box(c, &err);
}

void api_file_list(struct api_call *c)
{
	struct guest_file f = { .op = FILE_LIST, .target = "" };
	uint64_t depth = 1;

	if (!file_query_path(c, &f.path) || !file_user(c, &f.user) ||
	    !call_query_u64(c, "depth", &depth))
		return;
	f.depth = (uint32_t)depth;
	list(c, &f, LIST_ENTRIES_MAX);
}

void api_find(struct api_call *c)
{
	struct guest_file f;

	if (search_request(c, FILE_FIND, &f))
		list(c, &f, f.search.limit);
}
