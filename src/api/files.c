/* Removing, making and moving. */
#include <errno.h>
#include <string.h>

#include "api/bodies.h"
#include "api/call.h"
#include "api/file_job.h"
#include "api/handlers.h"
#include "api/problem.h"
#include "base/arena.h"
#include "base/err.h"
#include "net/http.h"

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
