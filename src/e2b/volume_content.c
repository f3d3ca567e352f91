/* What is in a volume: files by the volume's own token, whether or not a sandbox has it. Every path
 * is resolved in the box that has the volume, below where it is mounted and nowhere else. */
#include <errno.h>
#include <string.h>
#include <strings.h>

#include "api/call.h"
#include "api/file_get.h"
#include "api/file_list.h"
#include "api/problem.h"
#include "api/upload.h"
#include "auth/box_token.h"
#include "auth/scope.h"
#include "base/arena.h"
#include "base/buf.h"
#include "base/cleanup.h"
#include "base/err.h"
#include "base/str.h"
#include "e2b/entry.h"
#include "e2b/handlers.h"
#include "e2b/queries.h"
#include "e2b/template_names.h"
#include "e2b/volume_content.h"
#include "net/http.h"
#include "sandbox/files.h"
#include "sandbox/volume.h"
#include "sandbox/volume_box.h"
#include "json/jv_decode.h"
#include "json/jw.h"

#define DEPTH_MAX 256u
#define MODE_MAX 01777u /* the guest takes no bits that change who runs it */
#define ABSENT UINT32_MAX
#define BEARER "Bearer "

/* ---- who may ---- */

bool e2b_claims_volume(struct api_call *c)
{
	return str_starts(str_of(http_path(c->http)), "/volumecontent/");
}

static const struct object *find_volume(struct api_call *c, const char *id)
{
	const struct object *o =
		objects_find(sandboxes_objects(c->api->deps.sandboxes, OBJECTS_VOLUME), id, NULL);

	return o && o->state == VOLUME_READY ? o : NULL;
}

int e2b_authenticate_volume(struct api_call *c, void (*again)(struct api_call *c),
			    struct principal *ret, struct err *err)
{
	const char *bearer = http_header(c->http, "Authorization");
	const char *id = call_param(c, "vid");
	const struct object *o;

	(void)again;
	if (!bearer || strncasecmp(bearer, BEARER, strlen(BEARER)) != 0)
		return err_set(err, EACCES, "want the volume's token as 'Authorization: Bearer'");
	if (!box_token_is(c->api->deps.secret, BOX_TOKEN_VOLUME, id, bearer + strlen(BEARER)))
		return err_set(err, EACCES, "the token is not this volume's");
	o = find_volume(c, id);
	if (!o) {
		problem_status(c, 404, "there is no volume '%.64s'", id);
		return -EINPROGRESS;
	}
	*ret = (struct principal){ .role = ROLE_USER,
				   .scopes = box_token_scopes(BOX_TOKEN_VOLUME),
				   .expires_ms = INT64_MAX };
	(void)str_copy(ret->owner, sizeof(ret->owner), o->owner);
	return 0;
}

/* ---- the box that has it ---- */

struct content { /* in the request's arena */
	struct api_call *call;
	struct guest_file file;
	void (*go)(struct content *x);
};

static void fail(struct api_call *c, const struct err *err)
{
	switch (err->code) {
	case EPIPE:
	case EBUSY:
		return problem_status(c, 409, "the volume has gone to a sandbox: try again");
	case EISDIR:
	case ENOTDIR:
	case ENXIO:
		return problem_status(c, 400, "%s", err->text);
	case ENOSPC:
	case EDQUOT:
		return problem_status(c, 507, "the volume is full");
	default:
		return problem_reply_box(c, err);
	}
}

static void opened(void *user, struct sandbox *sb, const struct err *err)
{
	struct content *x = user;
	struct api_call *c = x->call;
	const char *root = sb ? volume_path(sb, call_param(c, "vid")) : NULL, *id;
	struct sandbox_info info = { .state = SANDBOX_STOPPED };

	if (err)
		return problem_reply(c, err);
	if (sb)
		sandbox_info(sb, &info);
	/* It may have given way since it was found. */
	root = root && info.state == SANDBOX_RUNNING
		       ? arena_strndup(http_arena(c->http), root, strlen(root))
		       : NULL;
	if (!root)
		return fail(c, &(struct err){ .code = EBUSY });
	id = arena_strndup(http_arena(c->http), sandbox_id(sb), ID_LEN);
	if (!id)
		return fail(c, &(struct err){ ENOMEM, "volume" });
	c->box_id = id;
	x->file.target = root;
	x->go(x);
}

/* Paths begin at the volume's root, with a slash or without one. */
static bool take_path(struct api_call *c, const char **ret)
{
	const char *path = "";

	if (!call_query(c, "path", &path))
		return false;
	*ret = arena_printf(http_arena(c->http), "/%s", path);
	if (!*ret)
		problem_reply(c, &(struct err){ ENOMEM, "path" });
	return *ret != NULL;
}

static void run(struct api_call *c, const struct guest_file *f, void (*go)(struct content *x))
{
	struct content *x = arena_alloc(http_arena(c->http), sizeof(*x));

	if (!x)
		return problem_reply(c, &(struct err){ ENOMEM, "volume" });
	*x = (struct content){ .call = c, .file = *f, .go = go };
	x->file.flags |= FILE_BELOW | FILE_AT_HOME | FILE_AS_ROOT | FILE_DETAILS;
	x->file.user = "";
	if (take_path(c, &x->file.path))
		volume_open(c->api->deps.sandboxes, call_param(c, "vid"),
			    template_names_own("base"), opened, x);
}

/* ---- answers ---- */

static void write_entry(struct jw *w, const struct guest_entry *e)
{
	static const char *const types[] = { "file", "directory", "symlink", "unknown" };
	static const char *const times[] = { "atime", "mtime", "ctime" };
	char text[ENTRY_TIME_SIZE];

	jw_object_begin(w);
	jw_str_field(w, "name", entry_name(e->path));
	jw_str_field(w, "path", e->path);
	jw_str_field(w, "type", types[e->type <= ENTRY_OTHER ? e->type : ENTRY_OTHER]);
	jw_uint_field(w, "size", e->size);
	jw_uint_field(w, "mode", e->mode & 07777u);
	jw_uint_field(w, "uid", e->uid);
	jw_uint_field(w, "gid", e->gid);
	entry_time(e->mtime_ns, text);
	for (size_t i = 0; i < 3; i++) /* of the three, boxes tell the one that matters */
		jw_str_field(w, times[i], text);
	if (e->type == ENTRY_SYMLINK)
		jw_str_field(w, "target", e->target);
	jw_object_end(w);
}

static void reply_entry(struct api_call *c, int status, const struct guest_entry *e)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);

	write_entry(&w, e);
	call_reply(c, status, &w);
}

struct look {                /* in the request's arena */
	struct file_job job; /* first */
	struct guest_file file;
	int status;
};

static void looked(struct file_job *j, const struct err *err)
{
	const struct look *l = (const struct look *)(const void *)j;

	if (err)
		return fail(j->call, err);
	if (!j->has_entry)
		return problem_status(j->call, 404, "it is not there any more");
	reply_entry(j->call, l->status, &j->entry);
}

/* Answers with what is there now. */
static void look(struct file_job *j)
{
	struct look *l = (struct look *)(void *)j;

	l->file.op = FILE_STAT;
	l->file.flags |= FILE_NOFOLLOW;
	(void)file_job_run(j, &l->file, looked);
}

static struct look *begin(struct content *x, int status)
{
	struct look *l = arena_alloc(http_arena(x->call->http), sizeof(*l));

	if (!l) {
		problem_reply(x->call, &(struct err){ ENOMEM, "volume" });
		return NULL;
	}
	l->job.call = x->call;
	l->file = x->file;
	l->status = status;
	return l;
}

/* ---- looking ---- */

static void stat_file(struct content *x)
{
	struct look *l = begin(x, 200);

	if (l)
		look(&l->job);
}

void e2b_volume_stat(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_STAT }, stat_file);
}

static void reply_list(struct file_listing *l, const struct err *err)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct api_call *c = l->job.call;
	bool is_truncated = l->is_truncated;
	struct jw w = jw_begin(&b);

	jw_array_begin(&w);
	for (size_t i = 0; !err && i < l->n; i++)
		write_entry(&w, &l->entries[i]);
	jw_array_end(&w);
	file_listing_done(l);
	if (err)
		return fail(c, err);
	if (is_truncated) /* the answer has no place to say that it is not all */
		return problem_status(c, 400, "there is more than can be told at once (%u entries)",
				      FILE_LIST_MAX);
	call_reply(c, 200, &w);
}

static void list(struct content *x)
{
	file_listing_start(x->call, &x->file, FILE_LIST_MAX, reply_list);
}

void e2b_volume_dir(struct api_call *c)
{
	uint64_t depth = 1;

	if (call_query_u64(c, "depth", &depth))
		run(c, &(struct guest_file){ .op = FILE_LIST, .depth = (uint32_t)depth }, list);
}

static void read_file(struct content *x)
{
	struct file_get *g = arena_alloc(http_arena(x->call->http), sizeof(*g));

	if (!g)
		return problem_reply(x->call, &(struct err){ ENOMEM, "file" });
	g->download.job.call = x->call;
	g->download.content_type = "application/octet-stream";
	g->download.failed = fail;
	g->path = x->file.path;
	g->user = x->file.user;
	g->root = x->file.target;
	g->flags = x->file.flags;
	file_get_start(g);
}

void e2b_volume_read(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_READ }, read_file);
}

/* ---- changing ---- */

/* What is made belongs to the user of the box; nobody else can be given it. */
static bool check_owner(struct api_call *c, uint64_t uid, uint64_t gid)
{
	if (uid == ABSENT && gid == ABSENT)
		return true;
	problem_status(c, 501, "uid, gid: this server gives files of volumes to nobody else");
	return false;
}

/* Who says that nothing is to be forced wants no file replaced; who says nothing does not mind. */
static bool take_force(struct api_call *c, unsigned *flags)
{
	const char *text = NULL;
	bool force = false;

	if (!call_query(c, "force", &text) || !call_query_bool(c, "force", &force))
		return false;
	*flags = force ? FILE_PARENTS : text ? FILE_EXCL : 0;
	return true;
}

/* ?uid= ?gid= ?mode= ?force= */
static bool take_making(struct api_call *c, struct guest_file *f)
{
	uint64_t uid = ABSENT, gid = ABSENT, mode = 0;
	unsigned flags = 0;

	if (!call_query_u64(c, "uid", &uid) || !call_query_u64(c, "gid", &gid) ||
	    !call_query_u64(c, "mode", &mode) || !take_force(c, &flags) ||
	    !check_owner(c, uid, gid))
		return false;
	f->mode = (uint32_t)mode;
	f->flags = flags;
	return true;
}

static void dir_made(struct file_job *j, const struct err *err)
{
	if (err)
		return fail(j->call, err);
	look(j); /* also of one that was there */
}

static void make_dir(struct content *x)
{
	struct look *l = begin(x, 201);

	if (l)
		(void)file_job_run(&l->job, &l->file, dir_made);
}

void e2b_volume_make_dir(struct api_call *c)
{
	struct guest_file f = { .op = FILE_MKDIR };

	if (take_making(c, &f))
		run(c, &f, make_dir);
}

static void written(struct upload *u, uint64_t count, const struct err *err)
{
	const struct file_job *j = &u->sink.job;

	(void)count;
	if (err)
		return fail(j->call, err);
	if (!j->has_entry)
		return problem_status(j->call, 404, "it is not there any more");
	reply_entry(j->call, 201, &j->entry);
}

static void write_file(struct content *x)
{
	struct upload *u = arena_alloc(http_arena(x->call->http), sizeof(*u));

	if (!u)
		return problem_reply(x->call, &(struct err){ ENOMEM, "upload" });
	u->sink.job.call = x->call;
	u->finished = written;
	upload_start(u, &x->file);
}

void e2b_volume_write(struct api_call *c)
{
	const char *coding = http_header(c->http, "Content-Encoding");
	struct guest_file f = { .op = FILE_WRITE };

	if (coding && strcasecmp(coding, "identity") != 0)
		return problem_status(c, 415, "Content-Encoding: send the file as it is");
	if (take_making(c, &f))
		run(c, &f, write_file);
}

struct body_volume_path {
	uint32_t uid, gid, mode;
};
#define ID_FIELD(name_)                                                             \
	JV_FIELD(#name_, U32, struct body_volume_path, name_, .flags = JV_NULLABLE, \
		 .max = INT32_MAX)
static const struct jv_field path_fields[] = {
	ID_FIELD(uid),
	ID_FIELD(gid),
	JV_FIELD("mode", U32, struct body_volume_path, mode, .flags = JV_NULLABLE, .max = MODE_MAX),
};
static const struct body_volume_path unsaid = { ABSENT, ABSENT, ABSENT };
const struct route_body e2b_body_volume_path = {
	.name = "VolumePath",
	.fields = path_fields,
	.count = sizeof(path_fields) / sizeof(path_fields[0]),
	.size = sizeof(struct body_volume_path),
	.defaults = &unsaid,
};

static void change(struct content *x)
{
	const struct body_volume_path *body = x->call->body;
	struct look *l = begin(x, 200);

	if (l && body->mode == ABSENT)
		look(&l->job);
	else if (l)
		(void)file_job_run(&l->job, &l->file, dir_made);
}

void e2b_volume_change(struct api_call *c)
{
	const struct body_volume_path *body = c->body;
	struct guest_file f = { .op = FILE_CHMOD, .flags = FILE_NOFOLLOW };

	f.mode = body->mode == ABSENT ? 0 : body->mode;
	if (check_owner(c, body->uid, body->gid))
		run(c, &f, change);
}

static void removed(struct file_job *j, const struct err *err)
{
	if (err)
		return fail(j->call, err);
	call_reply_empty(j->call);
}

static void remove_file(struct content *x)
{
	struct look *l = begin(x, 204);

	if (l)
		(void)file_job_run(&l->job, &l->file, removed);
}

void e2b_volume_remove(struct api_call *c)
{
	run(c, &(struct guest_file){ .op = FILE_REMOVE, .flags = FILE_RECURSIVE }, remove_file);
}

/* ---- queries ---- */

#define PATH_ROW                                                                \
	{                                                                       \
		"path", QUERY_TEXT, 0, FILE_PATH_MAX - 2, NULL, "in the volume" \
	}
#define NUMBER_ROW(name_, max_, help_)                 \
	{                                              \
		name_, QUERY_U64, 0, max_, NULL, help_ \
	}
const struct route_query e2b_query_volume_path[] = { PATH_ROW, { 0 } };
const struct route_query e2b_query_volume_dir[] = {
	PATH_ROW,
	NUMBER_ROW("depth", DEPTH_MAX, "levels; 0 is 1"),
	{ 0 },
};
const struct route_query e2b_query_volume_make[] = {
	PATH_ROW,
	NUMBER_ROW("uid", INT32_MAX, "not here"),
	NUMBER_ROW("gid", INT32_MAX, "not here"),
	NUMBER_ROW("mode", MODE_MAX, "of what is made"),
	{ "force", QUERY_BOOL, 0, 0, NULL, "makes missing parents" },
	{ 0 },
};
