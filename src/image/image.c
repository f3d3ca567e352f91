#include "image/image.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "base/fd.h"
#include "base/str.h"
#include "image/archive.h"
#include "image/manifest.h"
#include "image/stream.h"
#include "image/tree.h"

#define CHUNK (64u << 10)
#define CHECK_BYTES (8u << 20)  /* looked at by one call */
#define ARENA_BYTES (16u << 20) /* of what an image says about itself */
#define WHITE_BYTES (32u << 20) /* names that all layers together take away */
#define INDEX_DEPTH 3           /* indexes that name indexes */
#define HEADS_MAX (64u << 20)   /* bytes of an archive that are read to find its parts */

struct layer {
	struct archive_part part;
	bool has_digest, has_diff_id;
	uint8_t digest[HASH_LEN], diff_id[HASH_LEN];
	struct buf white; /* owned: what it takes away */
};

struct image {
	int fd; /* owned; -1: it is a directory */
	enum image_kind kind;
	struct filter_limits limits;
	struct filter_count count, checked;
	struct tree *tree;       /* owned: of a directory */
	struct archive *archive; /* owned: of an OCI archive */
	struct arena *arena;     /* owned */
	struct image_config config;
	struct layer *layers; /* owned */
	size_t n_layers, at;
	struct stream *stream; /* owned: of the layer in progress */
	struct filter filter;
	bool has_filter, is_checked, is_over;
	size_t white_bytes;
	struct buf out; /* what waits to be read */
	uint8_t chunk[CHUNK];
};

struct image *image_free(struct image *i)
{
	if (!i)
		return NULL;
	filter_done(&i->filter);
	(void)stream_free(i->stream);
	(void)tree_free(i->tree);
	(void)archive_free(i->archive);
	(void)arena_free(i->arena);
	for (size_t k = 0; i->layers && k < i->n_layers; k++)
		buf_done(&i->layers[k].white);
	free(i->layers);
	buf_done(&i->out);
	i->fd = fd_close(i->fd);
	free(i);
	return NULL;
}

/* ---- opening ---- */

static int open_beneath(int dir, const char *path, int flags)
{
	struct open_how how = { .flags = (uint64_t)(flags | O_CLOEXEC),
				.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS |
					   RESOLVE_NO_MAGICLINKS };

	return (int)syscall(SYS_openat2, dir, path, &how, sizeof(how));
}

/* A FIFO or a device is not waited for: it is none of what is wanted. */
static int open_source(const struct image_wish *wish, struct stat *st, struct err *err)
{
	_close_ int dir = open(wish->dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	bool is_dir = wish->kind == IMAGE_DIR;
	_close_ int fd = -1;

	if (dir < 0)
		return err_sys(err, errno, "images_dir '%.150s'", wish->dir);
	fd = open_beneath(dir, wish->path,
			  O_RDONLY | (is_dir ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY));
	if (fd < 0 && (errno == ELOOP || errno == EXDEV))
		return err_set(err, EINVAL, "root: '%.150s' leads out of images_dir, or is a link",
			       wish->path);
	if (fd < 0 || fstat(fd, st) < 0)
		return err_sys(err, errno, "root: '%.150s'", wish->path);
	if (!is_dir && !S_ISREG(st->st_mode))
		return err_set(err, EINVAL, "root: '%.150s' is not a file", wish->path);
	return TAKE_FD(fd);
}

static int make_layers(struct image *i, size_t n, struct err *err)
{
	i->layers = calloc(n, sizeof(i->layers[0]));
	if (!i->layers)
		return err_sys(err, ENOMEM, "image");
	i->n_layers = n;
	return 0;
}

/* ---- OCI and docker archives ---- */

static int read_archive(struct image *i, uint64_t size, struct err *err)
{
	uint64_t total = 0;
	int r = 0;

	while (r == 0 && !archive_is_whole(i->archive) && archive_next(i->archive) < size) {
		ssize_t n =
			pread(i->fd, i->chunk, sizeof(i->chunk), (off_t)archive_next(i->archive));

		if (n <= 0)
			return n < 0 ? err_sys(err, errno, "image: read")
				     : err_set(err, EBADMSG, "image: the archive is cut off");
		if (total == 0 && n > 2 && memcmp(i->chunk, "\x1f\x8b", 2) == 0)
			return err_set(err, ENOTSUP, "image: the archive is compressed: gunzip it");
		total += (uint64_t)n;
		if (total > HEADS_MAX + (uint64_t)ARCHIVE_PARTS_MAX * CHUNK)
			return err_set(err, E2BIG, "image: the archive is in too many pieces");
		r = archive_take(i->archive, i->chunk, (size_t)n, err);
	}
	return r;
}

/* A small file of the archive, whole, and what its digest says it is. */
static int slurp(struct image *i, const struct manifest_blob *blob, struct buf *ret,
		 struct err *err)
{
	uint8_t sum[HASH_LEN];
	struct archive_part part;
	ssize_t n;

	buf_init(ret, MANIFEST_BYTES_MAX);
	if (archive_find(i->archive, blob->path, &part) < 0)
		return err_set(err, EINVAL, "image: there is no '%.150s' in the archive",
			       blob->path);
	if (part.size > MANIFEST_BYTES_MAX || buf_reserve(ret, (size_t)part.size + 1) < 0)
		return err_set(err, E2BIG, "image: '%.150s' has %llu bytes, limit %u", blob->path,
			       (unsigned long long)part.size, MANIFEST_BYTES_MAX);
	n = pread(i->fd, ret->data, (size_t)part.size, (off_t)part.offset);
	if (n < 0 || (uint64_t)n != part.size)
		return err_set(err, EBADMSG, "image: '%.150s' is cut off", blob->path);
	ret->len = (size_t)n;
	if (blob->has_digest &&
	    (hash_sha256(ret->data, ret->len, sum) < 0 || memcmp(sum, blob->digest, HASH_LEN) != 0))
		return err_set(err, EBADMSG, "image: '%.150s' is not what its digest says",
			       blob->path);
	return 0;
}

/* Down from index.json to the one manifest. */
static int find_manifest(struct image *i, struct manifest_blob *ret, struct err *err)
{
	bool is_index = true;

	*ret = (struct manifest_blob){ .path = "index.json" };
	for (int depth = 0; is_index; depth++) {
		_cleanup_(buf_done) struct buf text = { 0 };
		int r = slurp(i, ret, &text, err);

		if (r == 0 && depth == INDEX_DEPTH)
			r = err_set(err, EINVAL, "image: indexes name indexes without end");
		if (r == 0)
			r = manifest_read_index(text.data, text.len, manifest_machine(), ret,
						&is_index, err);
		if (r < 0)
			return r;
	}
	return 0;
}

static int read_manifest(struct image *i, struct manifest *ret, struct err *err)
{
	_cleanup_(buf_done) struct buf text = { 0 };
	struct manifest_blob blob = { .path = "manifest.json" };
	struct archive_part part;
	bool is_oci = archive_find(i->archive, "index.json", &part) == 0;
	int r = 0;

	if (!is_oci && archive_find(i->archive, blob.path, &part) < 0)
		return err_set(err, EINVAL,
			       "root: neither index.json nor manifest.json is in the archive: "
			       "want what `docker save` or `skopeo copy ... oci-archive:` write");
	if (is_oci)
		r = find_manifest(i, &blob, err);
	if (r == 0)
		r = slurp(i, &blob, &text, err);
	if (r < 0)
		return r;
	return is_oci ? manifest_read_oci(text.data, text.len, ret, err)
		      : manifest_read_docker(text.data, text.len, ret, err);
}

static int use_manifest(struct image *i, const struct manifest *m,
			const struct manifest_rootfs *rootfs, struct err *err)
{
	int r;

	if (rootfs->n != m->n_layers)
		return err_set(err, EINVAL, "image: %zu layers, but its configuration names %zu",
			       m->n_layers, rootfs->n);
	r = make_layers(i, m->n_layers, err);
	for (size_t k = 0; k < m->n_layers && r == 0; k++) {
		const struct manifest_blob *from = &m->layers[k];
		struct layer *l = &i->layers[k];

		if (archive_find(i->archive, from->path, &l->part) < 0)
			return err_set(err, EINVAL, "image: there is no layer '%.150s'",
				       from->path);
		l->has_digest = from->has_digest;
		memcpy(l->digest, from->digest, HASH_LEN);
		l->has_diff_id = true;
		memcpy(l->diff_id, rootfs->diff_ids[k], HASH_LEN);
	}
	return r;
}

static int open_oci(struct image *i, uint64_t size, struct err *err)
{
	_free_ struct manifest *m = calloc(1, sizeof(*m));
	_free_ struct manifest_rootfs *rootfs = calloc(1, sizeof(*rootfs));
	_cleanup_(buf_done) struct buf text = { 0 };
	int r;

	i->archive = archive_create();
	i->arena = arena_create(ARENA_BYTES);
	if (!m || !rootfs || !i->archive || !i->arena)
		return err_sys(err, ENOMEM, "image");
	r = read_archive(i, size, err);
	if (r == 0)
		r = read_manifest(i, m, err);
	if (r == 0)
		r = slurp(i, &m->config, &text, err);
	if (r == 0)
		r = manifest_read_config(text.data, text.len, manifest_machine(), i->arena,
					 &i->config, rootfs, err);
	return r < 0 ? r : use_manifest(i, m, rootfs, err);
}

/* What the limits bound is known before it is read. */
static int open_dir(struct image *i, struct err *err)
{
	int fd = openat(i->fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_sys(err, errno, "image");
	i->checked.entries = i->limits.entries;
	i->checked.bytes = i->limits.bytes;
	i->is_checked = true;
	r = tree_measure(fd, &i->checked.entries, &i->checked.bytes, err);
	return r < 0 ? r : tree_create(TAKE_FD(i->fd), i->limits.entries, &i->tree, err);
}

int image_open(const struct image_wish *wish, struct image **ret, struct err *err)
{
	_cleanup_(image_free_p) struct image *i = calloc(1, sizeof(*i));
	struct stat st;
	int r;

	if (!i)
		return err_sys(err, ENOMEM, "image");
	i->kind = wish->kind;
	i->limits = wish->limits;
	r = i->fd = open_source(wish, &st, err);
	if (r < 0)
		return r;
	if (wish->kind == IMAGE_DIR) {
		r = open_dir(i, err);
	} else if (wish->kind == IMAGE_TAR) {
		r = make_layers(i, 1, err);
		if (r == 0)
			i->layers[0].part = (struct archive_part){ 0, (uint64_t)st.st_size };
	} else {
		r = open_oci(i, (uint64_t)st.st_size, err);
	}
	if (r < 0)
		return r;
	*ret = TAKE(i);
	return 0;
}

/* ---- reading layers ---- */

static int begin_layer(struct image *i, struct buf *out, struct err *err)
{
	struct layer *l = i->tree ? NULL : &i->layers[i->at];
	int r = 0;

	if (l)
		r = stream_create(i->fd, l->part.offset, l->part.size, &i->stream, err);
	if (r < 0)
		return r;
	i->has_filter = true;
	r = filter_init(&i->filter, &i->limits, &i->count, i->kind == IMAGE_OCI ? &l->white : NULL,
			out);
	return r < 0 ? err_sys(err, r, "image") : 0;
}

static int check_sums(const struct image *i, const struct layer *l, struct err *err)
{
	uint8_t file[HASH_LEN], plain[HASH_LEN];

	if (!l->has_diff_id)
		return 0;
	if (stream_sums(i->stream, file, plain) < 0)
		return err_sys(err, EIO, "image: digest");
	if ((l->has_digest && memcmp(file, l->digest, HASH_LEN) != 0) ||
	    memcmp(plain, l->diff_id, HASH_LEN) != 0)
		return err_set(err, EBADMSG, "image: layer %zu is not what its digest says",
			       i->at + 1);
	return 0;
}

static int end_layer(struct image *i, struct err *err)
{
	int r = filter_finish(&i->filter, err);

	if (r == 0 && i->stream)
		r = check_sums(i, &i->layers[i->at], err);
	if (r == 0 && i->tree)
		i->count.skipped += tree_skipped(i->tree);
	filter_done(&i->filter);
	i->has_filter = false;
	i->stream = stream_free(i->stream);
	i->at++;
	return r;
}

/* One piece of the layer in progress; 0 at its end. */
static ssize_t pump(struct image *i, struct buf *out, struct err *err)
{
	ssize_t n;
	int r = i->has_filter ? 0 : begin_layer(i, out, err);

	if (r < 0)
		return r;
	n = i->tree ? tree_read(i->tree, i->chunk, sizeof(i->chunk), err)
		    : stream_read(i->stream, i->chunk, sizeof(i->chunk), err);
	if (n < 0)
		return n;
	r = n > 0 ? filter_take(&i->filter, i->chunk, (size_t)n, err) : end_layer(i, err);
	return r < 0 ? r : n;
}

static size_t layer_count(const struct image *i)
{
	return i->tree ? 1 : i->n_layers;
}

static int check_whiteouts(struct image *i, struct err *err)
{
	i->white_bytes += i->layers[i->at - 1].white.len;
	return i->white_bytes > WHITE_BYTES
		       ? err_set(err, EFBIG, "image: its layers take away too many files")
		       : 0;
}

int image_check(struct image *i, struct err *err)
{
	for (size_t done = 0; !i->is_checked && done < CHECK_BYTES;) {
		ssize_t n = pump(i, NULL, err);
		int r = n == 0 ? check_whiteouts(i, err) : 0;

		if (n < 0 || r < 0)
			return n < 0 ? (int)n : r;
		done += n > 0 ? (size_t)n : CHUNK;
		if (i->at == layer_count(i)) {
			i->is_checked = true;
			i->at = 0;
			i->checked = i->count;
			i->count = (struct filter_count){ 0 };
		}
	}
	return i->is_checked ? 0 : 1;
}

ssize_t image_read(struct image *i, void *dst, size_t n, struct err *err)
{
	size_t part;

	while (i->out.len == 0 && !i->is_over) {
		ssize_t got = 0;

		if (i->at < layer_count(i))
			got = pump(i, &i->out, err);
		else {
			i->is_over = true;
			if (tar_write_end(&i->out) < 0)
				return err_sys(err, ENOMEM, "image");
		}
		if (got < 0)
			return got;
	}
	part = i->out.len < n ? i->out.len : n;
	if (part > 0)
		memcpy(dst, i->out.data, part);
	buf_drop(&i->out, part);
	return (ssize_t)part;
}

void image_stats(const struct image *i, struct image_stats *ret)
{
	const struct filter_count *c =
		i->checked.entries > i->count.entries ? &i->checked : &i->count;

	*ret = (struct image_stats){ i->at, layer_count(i), c->bytes, c->entries, c->skipped };
}

const struct image_config *image_config(const struct image *i)
{
	return i->kind == IMAGE_OCI ? &i->config : NULL;
}
