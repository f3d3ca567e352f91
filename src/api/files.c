/* Listing, removing, making and moving. */
#include "sandbox/files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "net/http.h"
#include "json/jw.h"

#define LIST_ENTRIES_MAX 10000u
#define LIST_BYTES_MAX (8u << 20) /* of an answer, but for what JSON makes of odd characters */
#define LIST_ENTRY_BYTES 160u     /* of one without its texts */

/* ---- list ---- */

struct listing {             /* in the request's arena */
	struct file_job job; /* first: the job is the listing */
	const char *path;
	struct arena *arena;         /* owned: the entries' texts */
	struct guest_entry *entries; /* owned */
	size_t n, cap, bytes;
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

	if (l->n < LIST_ENTRIES_MAX && add_entry(l, entry) == 0)
		return;
	l->truncated = true; /* what a box has in files is its own choice: enough is enough */
	reply_listing(l);
}

static void list_done(void *user, uint64_t count)
{
	struct listing *l = user;

	(void)count;
	l->job.op = NULL;
	reply_listing(l);
}

static void list_failed(void *user, const struct err *err)
{
	struct listing *l = user;

	l->job.op = NULL;
	listing_done(l);
	problem_reply_box(l->job.call, err);
}

void api_file_list(struct api_call *c)
{
	static const struct file_ops ops = {
		.entry = list_entry,
		.done = list_done,
		.failed = list_failed,
	};
	struct listing *l = arena_alloc(http_arena(c->http), sizeof(*l));
	struct guest_file f = { .op = FILE_LIST, .target = "" };
	struct err err = { 0 };
	uint64_t depth = 1;

	if (!file_query_path(c, &f.path) || !file_user(c, &f.user) ||
	    !call_query_u64(c, "depth", &depth))
		return;
	if (l)
		l->arena = arena_create(LIST_BYTES_MAX);
	if (!l || !l->arena)
		return problem_reply(c, &(struct err){ ENOMEM, "list" });
	l->job.call = c;
	l->path = f.path;
	f.depth = (uint32_t)depth;
	if (file_job_try(&l->job, &f, &ops, l, &err) == 0)
		return http_on_gone(c->http, list_gone, l);
	l->arena = arena_free(l->arena);
	problem_reply_box(c, &err);
}

/* ---- remove, make, move ---- */

static struct file_job *job_create(struct api_call *c)
{
	struct file_job *j = arena_alloc(http_arena(c->http), sizeof(*j));

	if (!j) {
		problem_reply(c, &(struct err){ ENOMEM, "file" });
		return NULL;
	}
	j->call = c;
	return j;
}

static void removed(struct file_job *j, const struct err *err)
{
	if (err)
		return problem_reply_box(j->call, err);
	call_reply_empty(j->call);
}

void api_file_delete(struct api_call *c)
{
	struct file_job *j = job_create(c);
	struct guest_file f = { .op = FILE_REMOVE, .target = "" };
	bool recursive = false;

	if (!j || !file_path(c, &f.path) || !file_user(c, &f.user) ||
	    !call_query_bool(c, "recursive", &recursive))
		return;
	f.flags = recursive ? FILE_RECURSIVE : 0;
	(void)file_job_run(j, &f, removed);
}

/* The path that the entry is now at. */
static const char *new_path(struct api_call *c, const char *path)
{
	const struct body_file *body = c->body;

	return body->op == BODY_FILE_MOVE ? body->to : path;
}

static void looked(struct file_job *j, const struct err *err)
{
	struct api_call *c = j->call;
	const struct body_file *body = c->body;

	if (err)
		return problem_reply_box(c, err);
	if (!j->has_entry)
		return problem_reply(c, &(struct err){ ENOMEM, "entry" });
	file_reply_entry(c, body->op == BODY_FILE_MKDIR ? 201 : 200, &j->entry, j->entry.path);
}

static void changed(struct file_job *j, const struct err *err)
{
	struct guest_file f = { .op = FILE_STAT, .flags = FILE_NOFOLLOW, .target = "" };
	struct api_call *c = j->call;

	if (err)
		return problem_reply_box(c, err);
	if (!file_path(c, &f.path) || !file_user(c, &f.user))
		return;
	f.path = new_path(c, f.path);
	(void)file_job_run(j, &f, looked);
}

void api_file_change(struct api_call *c)
{
	const struct body_file *body = c->body;
	struct file_job *j = job_create(c);
	struct guest_file f = { .flags = FILE_PARENTS, .mode = 0755, .target = "" };

	if (!j || !file_path(c, &f.path) || !file_user(c, &f.user))
		return;
	if (body->op == BODY_FILE_MKDIR) {
		f.op = FILE_MKDIR;
		if (body->to)
			return problem_field(c, "to", "mkdir takes none");
		if (!file_mode(c, "mode", body->mode, &f.mode))
			return;
	} else {
		f.op = FILE_RENAME;
		if (body->mode)
			return problem_field(c, "mode", "move takes none");
		if (!body->to || body->to[0] != '/')
			return problem_field(c, "to", "want an absolute path");
		f.target = body->to;
	}
	(void)file_job_run(j, &f, changed);
}
