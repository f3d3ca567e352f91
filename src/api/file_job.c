#include "api/file_job.h"

#include <errno.h>
#include <string.h>

#include "api/call.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/str.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "json/jw.h"

#define MODE_MAX 0777u

static void gone(void *user, struct http_request *r)
{
	(void)r;
	file_job_end(user);
}

void file_job_end(struct file_job *j)
{
	struct file_op *op = j->op;

	j->op = NULL;
	file_cancel(op);
}

int file_job_try(struct file_job *j, const struct guest_file *f, const struct file_ops *ops,
		 void *user, struct err *err)
{
	struct sandbox *sb = call_find_sandbox(j->call);
	int r;

	if (!sb)
		return err_set(err, ENOENT, "there is no sandbox '%.64s'",
			       call_param(j->call, "id"));
	r = file_start(sb, f, ops, user, &j->op, err);
	if (r < 0) {
		j->op = NULL;
		return r;
	}
	file_trace(j->op, call_trace(j->call));
	http_on_gone(j->call->http, gone, j);
	return 0;
}

bool file_job_start(struct file_job *j, const struct guest_file *f, const struct file_ops *ops,
		    void *user)
{
	struct err err = { 0 };

	if (file_job_try(j, f, ops, user, &err) == 0)
		return true;
	problem_reply_box(j->call, &err);
	return false;
}

/* ---- one answer ---- */

static void run_entry(void *user, const struct guest_entry *entry)
{
	struct file_job *j = user;

	j->has_entry = file_entry_copy(http_arena(j->call->http), entry, &j->entry) == 0;
}

static void run_done(void *user, uint64_t count)
{
	struct file_job *j = user;

	j->op = NULL;
	j->count = count;
	j->then(j, NULL);
}

static void run_failed(void *user, const struct err *err)
{
	struct file_job *j = user;

	j->op = NULL;
	j->then(j, err);
}

bool file_job_run(struct file_job *j, const struct guest_file *f,
		  void (*then)(struct file_job *j, const struct err *err))
{
	static const struct file_ops ops = {
		.entry = run_entry,
		.done = run_done,
		.failed = run_failed,
	};

	j->then = then;
	j->has_entry = false;
	j->count = 0;
	return file_job_start(j, f, &ops, j);
}

/* ---- entries ---- */

int file_join(char *dst, size_t size, const char *dir, const char *path)
{
	bool is_root = strcmp(dir, "/") == 0;

	if (path[0] == '\0')
		return str_copy(dst, size, dir);
	return str_format(dst, size, "%s/%s", is_root ? "" : dir, path);
}

void file_entry_json(struct jw *w, const struct guest_entry *e, const char *dir)
{
	static const char *const types[] = { "file", "directory", "symlink", "other" };
	char path[2 * FILE_PATH_MAX], mode[8];

	if (!dir)
		jw_str_field(w, "path", e->path);
	else if (file_join(path, sizeof(path), dir, e->path) == 0)
		jw_str_field(w, "path", path);
	jw_str_field(w, "type", e->type < 4 ? types[e->type] : "other");
	jw_uint_field(w, "size", e->size);
	(void)str_format(mode, sizeof(mode), "%04o", e->mode & 07777u);
	jw_str_field(w, "mode", mode);
	jw_uint_field(w, "uid", e->uid);
	jw_uint_field(w, "gid", e->gid);
	jw_iso_field(w, "mtime", (int64_t)(e->mtime_ns / 1000000));
	jw_str_field(w, "target", e->target[0] ? e->target : NULL);
}

void file_reply_entry(struct api_call *c, int status, const struct guest_entry *e, const char *path)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct guest_entry named = *e;

	named.path = path;
	jw_object_begin(&w);
	file_entry_json(&w, &named, NULL);
	jw_object_end(&w);
	call_reply(c, status, &w);
}

/* ---- the request ---- */

static bool check_path(struct api_call *c, const char *field, const char *path)
{
	if (strlen(path) < FILE_PATH_MAX)
		return true;
	problem_field(c, field, "the path is longer than %d bytes", FILE_PATH_MAX - 1);
	return false;
}

bool file_path(struct api_call *c, const char **ret)
{
	const char *path = arena_printf(http_arena(c->http), "/%s", call_param(c, "path"));

	if (!path) {
		problem_reply(c, &(struct err){ ENOMEM, "path" });
		return false;
	}
	*ret = path;
	return check_path(c, "path", path);
}

bool file_query_path(struct api_call *c, const char **ret)
{
	const char *path = FILE_HOME;

	if (!call_query(c, "path", &path))
		return false;
	if (path[0] != '/') {
		problem_field(c, "path", "want an absolute path");
		return false;
	}
	*ret = path;
	return check_path(c, "path", path);
}

bool file_user(struct api_call *c, const char **ret)
{
	*ret = "";
	return call_query(c, "user", ret);
}

bool file_mode(struct api_call *c, const char *field, const char *text, uint32_t *ret)
{
	size_t n = text ? strlen(text) : 0;
	uint32_t mode = 0;

	if (!text)
		return true;
	for (size_t i = 0; i < n && n <= 5; i++)
		mode = mode * 8 + (uint32_t)(text[i] - '0');
	if (n == 0 || n > 5 || strspn(text, "01234567") != n || mode > MODE_MAX) {
		problem_field(c, field, "want an octal mode of at most 0777, such as 0644");
		return false;
	}
	*ret = mode;
	return true;
}
