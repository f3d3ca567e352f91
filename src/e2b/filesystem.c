/* filesystem.Filesystem: what is asked and answered at once. Watching is in filesystem_watch.c. */
#include "e2b/filesystem.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/file_job.h"
#include "api/file_list.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "e2b/entry.h"
#include "e2b/handlers.h"
#include "e2b/rpc.h"
#include "e2b/target.h"
#include "net/http.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define COUNT(a) (sizeof(a) / sizeof((a)[0]))
#define LIST_DEPTH_MAX 256u

enum connect_code filesystem_code(int code)
{
	static const struct {
		int code;
		enum connect_code connect;
	} rows[] = {
		{ ENOENT, CONNECT_NOT_FOUND },
		{ EEXIST, CONNECT_ALREADY_EXISTS },
		{ EINVAL, CONNECT_INVALID_ARGUMENT },
		{ E2BIG, CONNECT_INVALID_ARGUMENT },
		{ ENAMETOOLONG, CONNECT_INVALID_ARGUMENT },
		{ ENOTDIR, CONNECT_INVALID_ARGUMENT },
		{ EISDIR, CONNECT_INVALID_ARGUMENT },
		{ ELOOP, CONNECT_INVALID_ARGUMENT },
		{ EXDEV, CONNECT_INVALID_ARGUMENT },
		{ ENOTEMPTY, CONNECT_FAILED_PRECONDITION },
		{ ETXTBSY, CONNECT_FAILED_PRECONDITION },
		{ EOPNOTSUPP, CONNECT_FAILED_PRECONDITION },
		{ EACCES, CONNECT_PERMISSION_DENIED },
		{ EPERM, CONNECT_PERMISSION_DENIED },
		{ EROFS, CONNECT_PERMISSION_DENIED },
		{ ESRCH, CONNECT_UNAUTHENTICATED }, /* a user that the box has not */
		{ EAGAIN, CONNECT_RESOURCE_EXHAUSTED },
		{ ENOSPC, CONNECT_RESOURCE_EXHAUSTED },
		{ EDQUOT, CONNECT_RESOURCE_EXHAUSTED },
		{ ENOMEM, CONNECT_UNAVAILABLE },
		{ ECANCELED, CONNECT_ABORTED },
	};

	for (size_t i = 0; i < COUNT(rows); i++)
		if (rows[i].code == code)
			return rows[i].connect;
	return CONNECT_INTERNAL;
}

void filesystem_fail(struct api_call *c, const struct err *err)
{
	enum connect_code code = filesystem_code(err->code);

	if (err->code == EPIPE || err->code == EBUSY)
		return e2b_reply_gone(c);
	if (code == CONNECT_INTERNAL) /* the log has what the client does not learn */
		return problem_reply_box(c, err);
	rpc_fail(c, code, "%s", err->text);
}

/* ---- messages ---- */

struct message { /* of all of them: each fills in its part */
	const char *path, *destination;
	uint32_t depth;
};

#define PATH_FIELD(name_, member_) \
	JV_FIELD(name_, STRING, struct message, member_, .max = FILE_PATH_MAX - 1)
static const struct message nothing = { .path = "", .destination = "" };
static const struct jv_field path_fields[] = { PATH_FIELD("path", path) };
static const struct jv_field list_fields[] = {
	PATH_FIELD("path", path),
	JV_FIELD("depth", U32, struct message, depth),
};
static const struct jv_field move_fields[] = {
	PATH_FIELD("source", path),
	PATH_FIELD("destination", destination),
};

#define METHOD(fields_, handle_)                                                                  \
	{                                                                                         \
		CONNECT_UNARY, fields_, COUNT(fields_), sizeof(struct message), &nothing, handle_ \
	}

/* An operation on the message's path as its user; false: answered. */
static bool begin(struct api_call *c, struct guest_file *f, struct file_job **ret)
{
	const struct message *m = c->body;

	f->path = m->path;
	f->target = m->destination;
	f->flags |= FILE_AT_HOME | FILE_AS_ROOT | FILE_DETAILS;
	f->user = rpc_user(c);
	if (!f->user || !e2b_sandbox(c))
		return false;
	*ret = arena_alloc(http_arena(c->http), sizeof(**ret));
	if (!*ret) {
		rpc_fail(c, CONNECT_UNAVAILABLE, "out of memory");
		return false;
	}
	(*ret)->call = c;
	return true;
}

static void run(struct api_call *c, struct guest_file *f,
		void (*then)(struct file_job *j, const struct err *err))
{
	struct file_job *j;

	if (begin(c, f, &j))
		(void)file_job_run(j, f, then);
}

static void reply_entry(struct file_job *j, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	if (err)
		return filesystem_fail(j->call, err);
	if (!j->has_entry) /* made, and gone again */
		return rpc_fail(j->call, CONNECT_NOT_FOUND, "it is not there any more");
	jw_object_begin(&w);
	jw_key(&w, "entry");
	jw_object_begin(&w);
	entry_json(&w, &j->entry);
	jw_object_end(&w);
	jw_object_end(&w);
	rpc_reply(j->call, &w);
}

/* ---- one file ---- */

static void stat_file(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_STAT, .flags = FILE_NOFOLLOW }, reply_entry);
}

void e2b_stat(struct api_call *c)
{
	static const struct rpc_method method = METHOD(path_fields, stat_file);

	rpc_take(c, &method);
}

static void made(struct file_job *j, const struct err *err)
{
	const struct message *m = j->call->body;

	if (!err && j->count == 0)
		return rpc_fail(j->call, CONNECT_ALREADY_EXISTS, "directory '%.200s' exists",
				m->path);
	if (err && err->code == EEXIST)
		return rpc_fail(j->call, CONNECT_INVALID_ARGUMENT,
				"'%.200s' exists and is no directory", m->path);
	reply_entry(j, err);
}

static void make_dir(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_MKDIR, .flags = FILE_PARENTS, .mode = 0755 }, made);
}

void e2b_make_dir(struct api_call *c)
{
	static const struct rpc_method method = METHOD(path_fields, make_dir);

	rpc_take(c, &method);
}

static void move(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_RENAME, .flags = FILE_PARENTS }, reply_entry);
}

void e2b_move(struct api_call *c)
{
	static const struct rpc_method method = METHOD(move_fields, move);

	rpc_take(c, &method);
}

static void removed(struct file_job *j, const struct err *err)
{
	if (err && err->code != ENOENT) /* what is not there need not be removed */
		return filesystem_fail(j->call, err);
	rpc_reply_empty(j->call);
}

static void remove_file(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_REMOVE, .flags = FILE_RECURSIVE }, removed);
}

void e2b_remove(struct api_call *c)
{
	static const struct rpc_method method = METHOD(path_fields, remove_file);

	rpc_take(c, &method);
}

/* ---- directories ---- */

static void reply_list(struct file_listing *l, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct api_call *c = l->job.call;
	bool is_truncated = l->is_truncated;

	if (!err && !is_truncated) {
		jw_object_begin(&w);
		jw_key(&w, "entries");
		jw_array_begin(&w);
		for (size_t i = 0; i < l->n; i++) {
			jw_object_begin(&w);
			entry_json(&w, &l->entries[i]);
			jw_object_end(&w);
		}
		jw_array_end(&w);
		jw_object_end(&w);
	}
	file_listing_done(l);
	if (err)
		return filesystem_fail(c, err);
	if (is_truncated) /* the answer has no place to say that it is not all */
		return rpc_fail(c, CONNECT_RESOURCE_EXHAUSTED,
				"there is more than can be told at once (%u entries)",
				FILE_LIST_MAX);
	rpc_reply(c, &w);
}

static void list_dir(struct api_call *c)
{
	const struct message *m = c->body;
	struct guest_file f = { .op = FILE_LIST };
	struct file_job *unused;

	if (m->depth > LIST_DEPTH_MAX)
		return rpc_fail(c, CONNECT_INVALID_ARGUMENT, "depth: want at most %u",
				LIST_DEPTH_MAX);
	f.depth = m->depth; /* 0 is 1 there, too */
	if (begin(c, &f, &unused))
		file_listing_start(c, &f, FILE_LIST_MAX, reply_list);
}

void e2b_list_dir(struct api_call *c)
{
	static const struct rpc_method method = METHOD(list_fields, list_dir);

	rpc_take(c, &method);
}
