/* The stages of an import: open and check the image (on a thread), get a box, send it what is read
 * (on a thread again, a piece at a time), take the layer, end the box. */
#include "sandbox/root_import.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/str.h"
#include "image/image.h"
#include "sandbox/files.h"
#include "sandbox/registry.h"
#include "sandbox/snapshot.h"

#define IMPORTS_MAX 4u /* at once: each has a thread of the pool for most of its time */
#define PIECE (256u << 10)
#define ENTRIES_DEFAULT 200000u
#define ENTRIES_MAX 4000000u
#define TIME_DEFAULT_MS (30 * 60000ull)
/* What a box needs beside the bytes of the files: a page for the end of each, the kernel's own of
 * each, and the processes. */
#define BOX_FILE_BYTES 4096u
#define BOX_INODE_BYTES 2048u
#define BOX_SPARE_BYTES (16ull << 20)
#define BOX_MEMORY_BYTES (96ull << 20)
#define BOX_INODES 1024u

enum busy { /* somebody will call back */
	    BUSY_WORK = 1 << 0,
	    BUSY_CREATE = 1 << 1,
	    BUSY_TAKE = 1 << 2,
};

struct root_import {
	struct pending pending; /* in sandboxes.pending until it is freed */
	struct sandboxes *all;  /* borrowed; NULL: the registry is gone */
	unsigned busy;          /* enum busy, or-ed */
	bool is_over;           /* told or canceled: nothing but the end is left to do */
	struct root_events events;
	void *user;
	char owner[SANDBOX_OWNER_MAX + 1], key_id[ID_LEN + 1], path[ROOT_PATH_MAX + 1];
	enum root_source kind;
	struct filter_limits limits;
	uint64_t time_ms;
	char *dir; /* owned: images_dir */
	struct loop_timer *timer;
	struct sandbox *sb; /* owned reference */
	struct file_op *op; /* borrowed; NULL: none runs */

	struct image *image; /* owned; the thread's while BUSY_WORK */
	void (*run)(struct root_import *i);
	void (*then)(struct root_import *i);
	int result;
	struct err err;
	uint8_t *piece; /* owned */
	size_t len, at; /* of the piece */
	size_t layer;   /* that was told last, from 1 */
	bool is_whole;  /* all was read */
	uint64_t bytes; /* of the layer */
};

static const char *const names[ROOT_SOURCE_COUNT] = {
	[ROOT_OF_DIR] = "dir",
	[ROOT_OF_TAR] = "tar",
	[ROOT_OF_OCI] = "oci",
};

const char *root_source_name(enum root_source kind)
{
	return (unsigned)kind < ROOT_SOURCE_COUNT ? names[kind] : NULL;
}

int root_source_from(const char *name, enum root_source *ret)
{
	for (int i = 0; i < ROOT_SOURCE_COUNT; i++)
		if (strcmp(names[i], name) == 0) {
			*ret = (enum root_source)i;
			return 0;
		}
	return -EINVAL;
}

/* ---- the end ---- */

static void free_import(struct root_import *i)
{
	list_remove(&i->pending.node);
	(void)loop_timer_free(i->timer);
	(void)image_free(i->image);
	free(i->piece);
	free(i->dir);
	free(i);
}

static void on_deleted(void *user, struct sandbox *sb, const struct err *err)
{
	(void)user;
	(void)sb;
	(void)err; /* an end that fails is tried again by itself */
}

/* Nothing is told any more; what others still have to call back for frees it. */
static void leave(struct root_import *i)
{
	i->is_over = true;
	loop_timer_stop(i->timer);
	file_cancel(i->op);
	i->op = NULL;
	if (i->sb) {
		struct sandbox *sb = i->sb;

		i->sb = NULL;
		sandbox_delete(sb, "its import is over", on_deleted, NULL);
		sandbox_unref(sb);
	}
	if (i->busy == 0)
		free_import(i);
}

/* True: it was over before; it may be gone. */
static bool returned(struct root_import *i, enum busy what)
{
	i->busy &= ~(unsigned)what;
	if (!i->is_over)
		return false;
	if (i->busy == 0)
		free_import(i);
	return true;
}

/* The registry goes, with sandboxes and all that would call back but the thread. */
static void drop_import(struct pending *p)
{
	struct root_import *i = LIST_ENTRY(p, struct root_import, pending);

	list_remove(&i->pending.node);
	list_init(&i->pending.node);
	i->all = NULL;
	i->is_over = true;
	i->timer = loop_timer_free(i->timer);
	i->busy &= BUSY_WORK;
	if (i->busy == 0)
		free_import(i);
}

static void finish(struct root_import *i, const struct layers *chain, const struct err *err)
{
	const struct image_config *config = chain ? image_config(i->image) : NULL;

	i->is_over = true; /* whoever is told may not cancel it */
	i->events.done(i->user, chain, config, err);
	leave(i);
}

static void fail(struct root_import *i, int code, const char *text)
{
	struct err err = { 0 };

	(void)err_set(&err, code, "%s", text);
	finish(i, NULL, &err);
}

__attribute__((format(printf, 2, 3))) static void say(struct root_import *i, const char *fmt, ...)
{
	char line[ROOT_PATH_MAX + 200];
	va_list ap;

	if (!i->events.progress)
		return;
	va_start(ap, fmt);
	(void)vsnprintf(line, sizeof(line), fmt, ap);
	va_end(ap);
	i->events.progress(i->user, line);
}

/* ---- on a thread ---- */

static void work_run(void *user)
{
	struct root_import *i = user;

	i->run(i);
}

static void work_done(void *user)
{
	struct root_import *i = user;

	if (returned(i, BUSY_WORK))
		return;
	if (i->result < 0)
		finish(i, NULL, &i->err);
	else
		i->then(i);
}

static void work(struct root_import *i, void (*run)(struct root_import *),
		 void (*then)(struct root_import *))
{
	i->run = run;
	i->then = then;
	i->busy |= BUSY_WORK;
	if (loop_work(i->all->loop, work_run, work_done, i) == 0)
		return;
	i->busy &= ~(unsigned)BUSY_WORK;
	fail(i, ENOMEM, "import: no memory");
}

static void run_open(struct root_import *i)
{
	static const enum image_kind kinds[] = {
		[ROOT_OF_DIR] = IMAGE_DIR, [ROOT_OF_TAR] = IMAGE_TAR, [ROOT_OF_OCI] = IMAGE_OCI
	};

	i->result = image_open(&(struct image_wish){ .dir = i->dir,
						     .path = i->path,
						     .kind = kinds[i->kind],
						     .limits = i->limits },
			       &i->image, &i->err);
}

static void run_check(struct root_import *i)
{
	i->result = image_check(i->image, &i->err);
}

static void run_read(struct root_import *i)
{
	ssize_t n = image_read(i->image, i->piece, PIECE, &i->err);

	i->result = n < 0 ? (int)n : 0;
	i->len = n > 0 ? (size_t)n : 0;
	i->at = 0;
	i->is_whole = n == 0;
}

/* ---- the layer ---- */

static void on_layer(void *user, const struct layers *chain, const struct layer_info *info,
		     const struct err *err)
{
	struct root_import *i = user;

	if (returned(i, BUSY_TAKE))
		return; /* nobody holds what was made: it goes */
	if (!err && info) {
		i->bytes = info->bytes;
		say(i, "kept %llu bytes in %u files", (unsigned long long)info->bytes,
		    info->inodes);
	}
	finish(i, err ? NULL : chain, err);
}

/* ---- sending ---- */

static void read_more(struct root_import *i);

static void push(struct root_import *i)
{
	ssize_t n = 1;

	if (i->busy & BUSY_WORK || !i->op)
		return;
	while (i->at < i->len && n > 0) {
		n = file_send(i->op, i->piece + i->at, i->len - i->at);
		i->at += n > 0 ? (size_t)n : 0;
	}
	if (n < 0)
		fail(i, EPIPE, "import: the sandbox takes no more");
	else if (i->at < i->len)
		return; /* on_room() follows */
	else if (!i->is_whole)
		read_more(i);
	else
		(void)file_send(i->op, NULL, 0);
}

static void on_read(struct root_import *i)
{
	struct image_stats s;

	image_stats(i->image, &s);
	if (s.layer < s.n_layers && s.layer + 1 > i->layer) {
		i->layer = s.layer + 1;
		say(i, "unpacking layer %zu of %zu", i->layer, s.n_layers);
	}
	push(i);
}

static void read_more(struct root_import *i)
{
	work(i, run_read, on_read);
}

static void on_room(void *user)
{
	push(user);
}

static void on_unpacked(void *user, uint64_t count)
{
	struct root_import *i = user;
	struct image_stats s;

	i->op = NULL;
	if (!i->is_whole) { /* an end mark that we did not write */
		fail(i, EPIPE, "import: the sandbox ended the archive too early");
		return;
	}
	image_stats(i->image, &s);
	say(i, "unpacked %llu entries; %llu left out", (unsigned long long)count,
	    (unsigned long long)s.skipped);
	i->busy |= BUSY_TAKE;
	layer_take(i->sb, SNAPSHOT_AS_ROOT, on_layer, i);
}

static void on_failed(void *user, const struct err *err)
{
	struct root_import *i = user;

	i->op = NULL;
	if (err->code == ENOSPC)
		fail(i, EFBIG, "image: its files do not fit into the sandbox that unpacks it");
	else
		finish(i, NULL, err);
}

static const struct file_ops file_ops = { .room = on_room,
					  .done = on_unpacked,
					  .failed = on_failed };

/* ---- the box ---- */

static void on_box(void *user, struct sandbox *sb, const struct err *err)
{
	struct root_import *i = user;
	struct err why = { 0 };

	if (i->is_over && sb)
		sandbox_delete(sb, "its import is over", on_deleted, NULL);
	if (returned(i, BUSY_CREATE))
		return;
	if (err) {
		finish(i, NULL, err);
		return;
	}
	i->sb = sandbox_ref(sb);
	if (file_start(sb,
		       &(struct guest_file){ .op = FILE_TAR_PUT,
					     .flags = FILE_OWNERS | FILE_LAYERS,
					     .user = "",
					     .path = "/workspace",
					     .target = "" },
		       &file_ops, i, &i->op, &why) < 0)
		finish(i, NULL, &why);
	else
		read_more(i);
}

/* As large as the image needs it, and no larger. */
static void make_box(struct root_import *i)
{
	static const struct sandbox_pair purpose[] = { { "holt.job", "root-import" } };
	const struct sandbox_settings *settings = &i->all->settings;
	uint64_t time_ms = i->time_ms + 60000;
	struct sandbox_request req = { .owner = i->owner,
				       .key_id = i->key_id,
				       .name = "",
				       .template = "bash", /* nothing waits in it */
				       .cold = true,
				       .is_internal = true,
				       .metadata = purpose,
				       .n_metadata = 1 };
	struct image_stats s;

	image_stats(i->image, &s);
	say(i, "%u entries, %llu bytes", s.entries, (unsigned long long)s.bytes);
	req.limits.disk_bytes = s.bytes + (uint64_t)s.entries * BOX_FILE_BYTES + BOX_SPARE_BYTES;
	req.limits.inodes = s.entries + BOX_INODES;
	req.limits.memory_bytes =
		req.limits.disk_bytes + (uint64_t)s.entries * BOX_INODE_BYTES + BOX_MEMORY_BYTES;
	req.timeout_ms = settings->timeout_max_ms > 0 && time_ms > settings->timeout_max_ms
				 ? settings->timeout_max_ms
				 : time_ms;
	i->busy |= BUSY_CREATE;
	sandbox_create(i->all, &req, on_box, i);
}

static void on_checked(struct root_import *i)
{
	if (i->result > 0)
		work(i, run_check, on_checked);
	else
		make_box(i);
}

static void on_open(struct root_import *i)
{
	struct image_stats s;

	image_stats(i->image, &s);
	if (i->kind == ROOT_OF_OCI)
		say(i, "checking %zu layers of %s", s.n_layers, i->path);
	else
		say(i, "checking %s", i->path);
	work(i, run_check, on_checked);
}

/* ---- the beginning ---- */

static void on_time(void *user)
{
	struct root_import *i = user;

	fail(i, ETIMEDOUT, "import: it took too long");
}

static size_t running(const struct sandboxes *all)
{
	size_t n = 0;

	LIST_FOREACH (&all->pending, p, struct pending, node)
		n += p->drop == drop_import;
	return n;
}

static int check(const struct sandboxes *all, const struct root_wish *wish, struct err *err)
{
	const char *dir = all->settings.images_dir;
	size_t n = strlen(wish->path);

	if ((unsigned)wish->kind >= ROOT_SOURCE_COUNT)
		return err_set(err, EINVAL, "root: want dir, tar or oci");
	if (n == 0 || n > ROOT_PATH_MAX || wish->path[0] == '/')
		return err_set(err, EINVAL,
			       "root: want the path of an image below images_dir, up to %d bytes",
			       ROOT_PATH_MAX);
	if (!dir || dir[0] == '\0')
		return err_set(err, EINVAL,
			       "root: no images can be used here: the setting images_dir is empty");
	if (strlen(wish->owner) > SANDBOX_OWNER_MAX ||
	    (wish->key_id && strlen(wish->key_id) > ID_LEN))
		return err_set(err, EINVAL, "root: the owner's name is too long");
	if (running(all) >= IMPORTS_MAX)
		return err_set(err, EAGAIN, "root: %u images are being unpacked, the limit",
			       IMPORTS_MAX);
	return 0;
}

static void fill(struct root_import *i, const struct sandboxes *all, const struct root_wish *wish)
{
	const struct root_limits *l = &wish->limits;
	uint64_t most = all->settings.image_bytes;

	(void)str_copy(i->owner, sizeof(i->owner), wish->owner); /* fit: check() */
	(void)str_copy(i->key_id, sizeof(i->key_id), wish->key_id ? wish->key_id : "");
	(void)str_copy(i->path, sizeof(i->path), wish->path);
	i->kind = wish->kind;
	i->limits.bytes = l->bytes > 0 && l->bytes < most ? l->bytes : most;
	i->limits.entries = l->entries == 0            ? ENTRIES_DEFAULT
			    : l->entries < ENTRIES_MAX ? l->entries
						       : ENTRIES_MAX;
	i->time_ms = l->time_ms > 0 ? l->time_ms : TIME_DEFAULT_MS;
}

int root_import(struct sandboxes *all, const struct root_wish *wish,
		const struct root_events *events, void *user, struct root_import **ret,
		struct err *err)
{
	struct root_import *i;
	int r = check(all, wish, err);

	if (r < 0)
		return r;
	i = calloc(1, sizeof(*i));
	if (!i)
		return err_sys(err, ENOMEM, "import");
	list_init(&i->pending.node);
	fill(i, all, wish);
	i->dir = str_dup(str_of(all->settings.images_dir));
	i->piece = malloc(PIECE);
	if (!i->dir || !i->piece || loop_timer_create(all->loop, on_time, i, &i->timer) < 0) {
		free_import(i);
		return err_sys(err, ENOMEM, "import");
	}
	i->all = all;
	i->events = *events;
	i->user = user;
	i->pending.drop = drop_import;
	i->run = run_open;
	i->then = on_open;
	i->busy = BUSY_WORK;
	r = loop_work(all->loop, work_run, work_done, i);
	if (r < 0) {
		free_import(i);
		return err_sys(err, r, "import");
	}
	list_push_back(&all->pending, &i->pending.node);
	loop_timer_start(i->timer, i->time_ms, 0);
	*ret = i;
	return 0;
}

uint64_t root_import_bytes(const struct root_import *i)
{
	return i->bytes;
}

void root_import_cancel(struct root_import *i)
{
	if (i && !i->is_over)
		leave(i);
}
