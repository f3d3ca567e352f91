#include "sandbox/build_files.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/cleanup.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/log.h"
#include "base/str.h"
#include "crypto/hash.h"
#include "sandbox/registry.h"
#include "json/jw.h"

#define FILES_MAX 20000u
#define FILES_OWNER_MAX 2000u
#define UPLOADS_MAX 64u
#define TEXT_MAX 1024u

/* ---- as it is kept ---- */

static int file_parse(const char *text, void **ret)
{
	struct build_file *f = calloc(1, sizeof(*f));
	struct jv_doc *doc = NULL;
	int r = f ? jv_parse(text, strlen(text), TEXT_MAX, &doc, NULL) : -ENOMEM;

	if (r == 0)
		r = jv_u64(jv_get(jv_root(doc), "bytes"), &f->bytes);
	if (r == 0 && jv_text(jv_get(jv_root(doc), "sum")))
		r = str_copy(f->sum, sizeof(f->sum), jv_text(jv_get(jv_root(doc), "sum")));
	(void)jv_free(doc);
	if (r == 0)
		*ret = f;
	else
		free(f);
	return r == 0 || r == -ENOMEM ? r : -EINVAL;
}

static uint64_t file_bytes(const void *data)
{
	return ((const struct build_file *)data)->bytes;
}

const struct object_kind build_file_kind = {
	.name = "build-file",
	.noun = "file",
	.max = FILES_MAX,
	.owner_max = FILES_OWNER_MAX,
	.parse = file_parse,
	.free = free,
	.bytes = file_bytes,
};

bool build_hash_is_valid(const char *hash)
{
	return strlen(hash) == BUILD_HASH_LEN && strspn(hash, "0123456789abcdef") == BUILD_HASH_LEN;
}

static bool is_label(const char *name)
{
	return strncmp(name, BUILD_LABEL, strlen(BUILD_LABEL)) == 0;
}

bool build_file_name_is_valid(const char *name)
{
	return build_hash_is_valid(is_label(name) ? name + strlen(BUILD_LABEL) : name);
}

const char *build_file_sum(const struct object *o)
{
	const struct build_file *f = o->data;

	return f->sum[0] ? f->sum : o->name;
}

/* ---- on its way in ---- */

struct build_upload {
	struct pending pending;
	struct sandboxes *all; /* borrowed */
	char owner[OBJECT_OWNER_MAX + 1], name[BUILD_FILE_NAME_MAX + 1], id[ID_LEN + 1];
	struct hash *sum; /* owned */
	int fd;           /* owned */
	uint64_t bytes;   /* counted as the owner's disk */
	object_cb cb;
	void *user;
};

static void upload_free(struct build_upload *u)
{
	list_remove(&u->pending.node);
	(void)fd_close(u->fd);
	(void)hash_free(u->sum);
	free(u);
}

/* The registry goes: what is half-made has no record, and the next start removes it. */
static void drop_upload(struct pending *p)
{
	upload_free(LIST_ENTRY(p, struct build_upload, pending));
}

static size_t count_uploads(const struct sandboxes *all)
{
	size_t n = 0;

	LIST_FOREACH (&all->pending, p, struct pending, node)
		n += p->drop == drop_upload;
	return n;
}

int build_upload_begin(struct sandboxes *all, const char *owner, const char *name,
		       struct build_upload **ret, struct err *err)
{
	struct build_upload *u;
	int r;

	if (!build_file_name_is_valid(name))
		return err_set(err, EINVAL, "hash: want a SHA-256 in lower-case hex");
	if (all->settings.files_fd < 0)
		return err_set(err, EOPNOTSUPP, "there is no place for files here");
	if (count_uploads(all) >= UPLOADS_MAX)
		return err_set(err, EDQUOT, "%u files are on their way already, the limit",
			       UPLOADS_MAX);
	u = calloc(1, sizeof(*u));
	if (!u)
		return err_sys(err, ENOMEM, "file");
	u->all = all;
	u->pending.drop = drop_upload;
	list_push_back(&all->pending, &u->pending.node);
	(void)str_copy(u->owner, sizeof(u->owner), owner);
	(void)str_copy(u->name, sizeof(u->name), name);
	id_make(u->id);
	u->sum = hash_create();
	u->fd = openat(all->settings.files_fd, u->id, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC,
		       0600);
	if (u->fd >= 0 && u->sum) {
		*ret = u;
		return 0;
	}
	r = err_sys(err, u->sum ? errno : ENOMEM, "file");
	build_upload_abort(u);
	return r;
}

int build_upload_write(struct build_upload *u, const void *data, size_t n, struct err *err)
{
	const char *p = data;
	int r = quota_take(u->all, u->owner, QUOTA_DISK, n, err);

	if (r < 0)
		return r;
	u->bytes += n;
	r = hash_update(u->sum, data, n);
	if (r < 0)
		return err_sys(err, r, "file");
	while (n > 0) {
		ssize_t done = write(u->fd, p, n);

		if (done < 0 && errno == EINTR)
			continue;
		if (done < 0)
			return err_sys(err, errno, "file");
		p += done;
		n -= (size_t)done;
	}
	return 0;
}

static void give_back(struct build_upload *u)
{
	quota_give(u->all, u->owner, QUOTA_DISK, u->bytes);
	u->bytes = 0;
}

void build_upload_abort(struct build_upload *u)
{
	if (!u)
		return;
	give_back(u);
	(void)unlinkat(u->all->settings.files_fd, u->id, 0);
	upload_free(u);
}

static void on_added(void *user, struct object *o, const struct err *err)
{
	struct build_upload *u = user;
	object_cb cb = u->cb;
	void *to = u->user;

	if (o)
		((struct build_file *)o->data)->used_ms = wall_ms(u->all);
	/* Another was quicker with the very same. */
	if (!o && err->code == EEXIST)
		o = build_file_find(u->all, u->owner, u->name);
	if (!o || strcmp(o->id, u->id) != 0)
		build_upload_abort(u);
	else
		upload_free(u);
	cb(to, o, o ? NULL : err);
}

/* 0 and the sum, or why it is not what was said. */
static int check_sum(struct build_upload *u, char hex[2 * HASH_LEN + 1], struct err *err)
{
	uint8_t sum[HASH_LEN];
	int r = hash_final(u->sum, sum);

	if (r < 0)
		return err_sys(err, r, "file");
	encode_hex(sum, HASH_LEN, hex);
	if (!is_label(u->name) && strcmp(hex, u->name) != 0)
		return err_set(err, EINVAL, "hash: the bytes are not of this SHA-256, but of %s",
			       hex);
	return 0;
}

void build_upload_finish(struct build_upload *u, object_cb cb, void *user)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	struct jw w = jw_begin(&b);
	struct object *there = build_file_find(u->all, u->owner, u->name);
	char sum[2 * HASH_LEN + 1] = "";
	struct err err = { 0 };
	int r = check_sum(u, sum, &err);

	if (r == 0 && there) {
		build_upload_abort(u);
		cb(user, there, NULL);
		return;
	}
	jw_object_begin(&w);
	jw_uint_field(&w, "bytes", u->bytes);
	if (is_label(u->name))
		jw_str_field(&w, "sum", sum);
	jw_object_end(&w);
	if (r == 0 && (r = jw_end(&w)) < 0)
		(void)err_sys(&err, r, "file");
	if (r < 0) {
		build_upload_abort(u);
		cb(user, NULL, &err);
		return;
	}
	u->cb = cb;
	u->user = user;
	give_back(u); /* the object takes them anew, in this very turn */
	objects_add(u->all->objects[OBJECTS_BUILD_FILE],
		    &(struct object_put){
			    .id = u->id, .owner = u->owner, .name = u->name, .text = b.data },
		    on_added, u);
}

/* ---- using ---- */

struct object *build_file_find(struct sandboxes *all, const char *owner, const char *name)
{
	struct object *o = objects_by_name(all->objects[OBJECTS_BUILD_FILE], owner, name);

	if (o)
		((struct build_file *)o->data)->used_ms = wall_ms(all);
	return o;
}

int build_file_open(struct sandboxes *all, const struct object *o, struct err *err)
{
	int fd = openat(all->settings.files_fd, o->id, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);

	return fd < 0 ? err_sys(err, errno, "file %s", o->name) : fd;
}

struct removal {
	struct pending pending;
	struct sandboxes *all;
	char id[ID_LEN + 1];
};

static void drop_removal(struct pending *p)
{
	free(LIST_ENTRY(p, struct removal, pending));
}

static void on_removed(void *user, struct object *o, const struct err *err)
{
	struct removal *r = user;

	(void)o;
	if (!err)
		(void)unlinkat(r->all->settings.files_fd, r->id, 0);
	list_remove(&r->pending.node);
	free(r);
}

void build_file_drop(struct sandboxes *all, const char *id)
{
	struct removal *r = calloc(1, sizeof(*r));

	if (!r) /* the next sweep has another try */
		return;
	r->all = all;
	r->pending.drop = drop_removal;
	(void)str_copy(r->id, sizeof(r->id), id);
	list_push_back(&all->pending, &r->pending.node);
	objects_remove(all->objects[OBJECTS_BUILD_FILE], r->id, on_removed, r);
}

/* One at a time: the walk does not outlive a removal. */
static bool is_stale(const struct object *o, const void *now_ms)
{
	const struct build_file *f = o->data;
	int64_t used = f->used_ms ? f->used_ms : o->updated_ms;

	return !o->is_writing && used + (int64_t)BUILD_FILE_DAYS_MS < *(const int64_t *)now_ms;
}

void build_files_sweep(struct sandboxes *all)
{
	struct objects *t = all->objects[OBJECTS_BUILD_FILE];
	int64_t now = wall_ms(all);

	for (unsigned i = 0; i < UPLOADS_MAX; i++) { /* the rest is a later sweep's */
		struct object *o = objects_search(t, is_stale, &now);

		if (!o)
			return;
		build_file_drop(all, o->id);
	}
}

void build_files_settle(struct sandboxes *all)
{
	int fd = all->settings.files_fd < 0
			 ? -1
			 : openat(all->settings.files_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);
	const struct dirent *e;

	if (!d) {
		(void)fd_close(fd);
		return;
	}
	while ((e = readdir(d)))
		if (id_is_valid(e->d_name) &&
		    !objects_find(all->objects[OBJECTS_BUILD_FILE], e->d_name, NULL))
			(void)unlinkat(all->settings.files_fd, e->d_name, 0);
	(void)closedir(d);
}
