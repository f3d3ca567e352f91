/* Files of sandboxes as resources: read by the box's own file operations, so that what a link in
 * there leads to is in there, too. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "auth/principal.h"
#include "base/arena.h"
#include "base/err.h"
#include "base/str.h"
#include "mcp/box.h"
#include "mcp/server_impl.h"
#include "sandbox/files.h"
#include "tools/media_type.h"

struct reading { /* arena */
	struct mcp_request *q;
	const char *uri; /* as it was asked for */
	struct mcp_box_uri at;
	struct file_op *op; /* owned; NULL: none is under way */
	bool is_waking;     /* a callback of the sandbox's will come */
	bool wants_dir;     /* a file will not do */
	uint64_t size;      /* as the box says */
	struct buf data;    /* owned */
	struct mcp_listing list;
	size_t n_entries; /* all that came */
};

static void start_file(struct reading *r, struct sandbox *sb);
static void start_dir(struct reading *r, struct sandbox *sb);

static void release(struct reading *r)
{
	file_cancel(r->op);
	r->op = NULL;
	buf_done(&r->data);
}

/* What cannot be given, and why, with the address. */
static void refuse(struct reading *r, const char *text)
{
	struct mcp_request *q = r->q;

	release(r);
	mcp_fail_data(q, RPC_PARAMS, text, mcp_uri_data(q, r->uri));
}

static void failed(struct reading *r, const struct err *err)
{
	struct mcp_request *q = r->q;

	r->op = NULL;
	if (!r->wants_dir && (err->code == ENOENT || err->code == ENOTDIR)) {
		release(r);
		return mcp_no_resource(q, r->uri);
	}
	refuse(r, err->text[0] ? err->text : strerror(err->code));
}

/* A wake cannot be called back: the request stays until it has come. */
static void cancelled(struct mcp_request *q)
{
	struct reading *r = q->work;

	release(r);
	if (!r->is_waking || q->server->is_closing)
		mcp_drop(q);
}

/* ---- a file ---- */

static void too_large(struct reading *r)
{
	const char *text = arena_printf(r->q->arena,
					"the file has more than %u bytes: read a part of it with "
					"the tool read_file",
					MCP_BOX_FILE_MAX);

	refuse(r, text ? text : "the file is too large");
}

static void file_entry(void *user, const struct guest_entry *e)
{
	struct reading *r = user;

	if (e->size > MCP_BOX_FILE_MAX)
		too_large(r);
}

/* Some files have no size before they are read. */
static void file_data(void *user, const void *data, size_t n)
{
	struct reading *r = user;

	if (buf_append(&r->data, data, n) < 0)
		too_large(r);
}

static void file_done(void *user, uint64_t count)
{
	struct reading *r = user;
	struct buf data = r->data;

	(void)count;
	r->op = NULL;
	r->data = (struct buf){ 0 };
	mcp_content_answer(r->q, r->uri, media_type(r->at.path), buf_str(&data), data.len);
	buf_done(&data);
}

static void file_failed(void *user, const struct err *err)
{
	struct reading *r = user;
	struct sandbox *sb;

	r->op = NULL;
	if (err->code != EISDIR)
		return failed(r, err);
	sb = mcp_box_find(r->q->server, &r->q->who, r->q->box_id, r->at.id);
	if (!sb)
		return failed(r, &(struct err){ .code = ENOENT });
	start_dir(r, sb);
}

static void start(struct reading *r, struct sandbox *sb, const struct guest_file *f,
		  const struct file_ops *ops)
{
	struct err err = { 0 };

	if (file_start(sb, f, ops, r, &r->op, &err) < 0)
		failed(r, &err);
}

static void start_file(struct reading *r, struct sandbox *sb)
{
	static const struct file_ops ops = {
		.entry = file_entry, .data = file_data, .done = file_done, .failed = file_failed
	};
	struct guest_file f = { .op = FILE_READ, .user = "", .path = r->at.path, .target = "" };

	start(r, sb, &f, &ops);
}

/* ---- a directory ---- */

static const char *uri_below(struct reading *r, const char *name)
{
	_cleanup_(buf_done) struct buf path = { 0 }, uri = { 0 };

	(void)buf_puts(&path, r->at.path);
	if (r->at.path[1] != '\0')
		(void)buf_putc(&path, '/');
	if (buf_puts(&path, name) < 0 || mcp_box_uri_write(&uri, r->at.id, buf_str(&path)) < 0)
		return NULL;
	return arena_strndup(r->q->arena, uri.data, uri.len);
}

/* A name that is no text cannot be written in an address that leads back to it. */
static void dir_entry(void *user, const struct guest_entry *e)
{
	struct reading *r = user;
	const char *name = arena_strndup(r->q->arena, e->path, strlen(e->path));
	bool is_dir = e->type == ENTRY_DIR;

	if (r->n_entries++ >= MCP_BOX_ENTRIES_MAX || !name)
		return;
	mcp_listing_add(&r->list, &(struct mcp_resource){
					  .uri = uri_below(r, name),
					  .name = name,
					  .type = is_dir ? MCP_DIRECTORY : media_type(name),
					  .size = e->type == ENTRY_FILE ? (int64_t)e->size : -1,
				  });
}

/* As the text of a resource: one line for each, directories with a slash. */
static void answer_text(struct reading *r)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	for (size_t i = 0; i < r->list.n; i++) {
		const struct mcp_resource *e = &r->list.items[i];
		bool is_dir = strcmp(e->type, MCP_DIRECTORY) == 0;

		(void)buf_printf(&b, "%s%s\n", e->name, is_dir ? "/" : "");
	}
	mcp_content_answer(r->q, r->uri, "text/plain", buf_str(&b), b.len);
}

static void dir_done(void *user, uint64_t count)
{
	struct reading *r = user;

	(void)count;
	r->op = NULL;
	if (r->n_entries > MCP_BOX_ENTRIES_MAX) {
		const char *text = arena_printf(r->q->arena,
						"the directory has more than %u entries: use the "
						"tool list_dir",
						MCP_BOX_ENTRIES_MAX);

		return refuse(r, text ? text : "the directory is too large");
	}
	if (r->wants_dir)
		mcp_listing_answer(&r->list);
	else
		answer_text(r);
}

static void dir_failed(void *user, const struct err *err)
{
	failed(user, err);
}

static void start_dir(struct reading *r, struct sandbox *sb)
{
	static const struct file_ops ops = { .entry = dir_entry,
					     .done = dir_done,
					     .failed = dir_failed };
	struct guest_file f = {
		.op = FILE_LIST, .user = "", .path = r->at.path, .target = "", .depth = 1
	};

	start(r, sb, &f, &ops);
}

/* ---- any ---- */

static void enter(struct reading *r, struct sandbox *sb)
{
	sandbox_touch(sb);
	if (r->wants_dir)
		start_dir(r, sb);
	else
		start_file(r, sb);
}

static void woken(void *user, struct sandbox *sb, const struct err *err)
{
	struct reading *r = user;

	r->is_waking = false;
	if (r->q->is_cancelled)
		return mcp_drop(r->q);
	if (err)
		return failed(r, err);
	enter(r, sb);
}

static void begin(struct mcp_request *q, const char *uri, bool wants_dir)
{
	struct reading *r = arena_alloc(q->arena, sizeof(*r));
	struct err err = { 0 };
	struct sandbox *sb;

	if (!r)
		return mcp_fail(q, RPC_INTERNAL, "out of memory");
	*r = (struct reading){ .q = q, .uri = uri, .wants_dir = wants_dir, .list = { .q = q } };
	buf_init(&r->data, MCP_BOX_FILE_MAX);
	if (principal_check(&q->who, SCOPE_FILE_READ, &err) < 0)
		return refuse(r, err.text);
	sb = mcp_box_uri_read(uri, &r->at) < 0
		     ? NULL
		     : mcp_box_find(q->server, &q->who, q->box_id, r->at.id);
	if (!sb)
		return wants_dir ? refuse(r, "there is no such directory")
				 : mcp_no_resource(q, uri);
	q->work = r;
	q->cancelled = cancelled;
	if (!sandbox_wakes(sb))
		return enter(r, sb);
	r->is_waking = true;
	sandbox_wake(sb, woken, r);
}

static void read_any(struct mcp_request *q, const char *uri)
{
	begin(q, uri, false);
}

static void read_dir(struct mcp_request *q, const char *uri)
{
	begin(q, uri, true);
}

struct add_to {
	struct mcp_request *q;
	struct mcp_listing *l;
};

static void add(void *user, const struct sandbox_info *info)
{
	_cleanup_(buf_done) struct buf uri = { 0 };
	struct add_to *a = user;
	const char *name = info->name[0] ? info->name : info->id;

	if (mcp_box_uri_write(&uri, info->id, MCP_BOX_HOME) < 0)
		return;
	mcp_listing_add(a->l, &(struct mcp_resource){
				      .uri = arena_strndup(a->q->arena, uri.data, uri.len),
				      .name = arena_strndup(a->q->arena, name, strlen(name)),
				      .about = "Files of a sandbox that lives",
				      .type = MCP_DIRECTORY,
				      .size = -1,
			      });
}

static void list(struct mcp_request *q, struct mcp_listing *l)
{
	struct add_to a = { q, l };

	mcp_box_each(q, add, &a);
}

static void templates(struct mcp_request *q, struct jw *w)
{
	(void)q;
	jw_object_begin(w);
	jw_str_field(w, "uriTemplate", MCP_BOX_SCHEME "{sandbox_id}" MCP_BOX_FILES "/{+path}");
	jw_str_field(w, "name", "sandbox file");
	jw_str_field(w, "description",
		     "A file of a sandbox by its absolute path, such as workspace/notes.md; a "
		     "directory gives the names in it.");
	jw_object_end(w);
}

const struct mcp_resources mcp_box_resources = {
	.scheme = MCP_BOX_SCHEME,
	.list = list,
	.templates = templates,
	.read = read_any,
	.read_dir = read_dir,
	.watch = mcp_box_watch,
};
