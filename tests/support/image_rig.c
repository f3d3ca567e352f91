#include "image_rig.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <zlib.h>

#include "base/cleanup.h"
#include "base/encode.h"
#include "base/fd.h"
#include "base/str.h"
#include "check.h"
#include "crypto/hash.h"
#include "image/manifest.h"

#define LAYERS 8

void image_rig_open(struct image_rig *g)
{
	(void)str_copy(g->dir, sizeof(g->dir), "/tmp/holt-image-XXXXXX");
	assert_non_null(mkdtemp(g->dir));
}

void image_rig_close(struct image_rig *g)
{
	char path[64];

	(void)snprintf(path, sizeof(path), "%s", g->dir);
	if (fork() == 0) {
		(void)execlp("rm", "rm", "-rf", path, (char *)NULL);
		_exit(1);
	}
	(void)wait(NULL);
}

void image_rig_write(const struct image_rig *g, const char *name, const struct buf *b)
{
	char path[256];
	_close_ int fd = -1;

	(void)snprintf(path, sizeof(path), "%s/%s", g->dir, name);
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
	assert_true(fd >= 0);
	assert_int_equal(fd_write_all(fd, b->data, b->len), 0);
}

void image_add(struct buf *b, const struct tar_member *m, const char *data, size_t n)
{
	struct tar_member full = *m;

	full.link = m->link ? m->link : "";
	full.size = n;
	assert_int_equal(tar_write_member(b, &full), 0);
	assert_int_equal(buf_append(b, data, n), 0);
	assert_int_equal(buf_append(b, (char[TAR_BLOCK]){ 0 }, tar_padding(n)), 0);
}

void image_file(struct buf *b, const char *path, const char *data)
{
	image_add(b, &(struct tar_member){ .type = TAR_FILE, .path = path, .mode = 0644 }, data,
		  strlen(data));
}

void image_dir(struct buf *b, const char *path)
{
	image_add(b, &(struct tar_member){ .type = TAR_DIR, .path = path, .mode = 0755 }, "", 0);
}

void image_link(struct buf *b, enum tar_type type, const char *path, const char *target)
{
	image_add(b, &(struct tar_member){ .type = type, .path = path, .link = target }, "", 0);
}

void image_raw(struct buf *b, char type, const char *name)
{
	struct tar_header h = { .magic = "ustar\00000", .mode = "0000644", .size = "00000000000" };
	unsigned sum = 0;
	char text[8];

	h.type = type;
	(void)snprintf(h.name, sizeof(h.name), "%s", name);
	memset(h.checksum, ' ', sizeof(h.checksum));
	for (size_t i = 0; i < sizeof(h); i++)
		sum += ((const uint8_t *)&h)[i];
	(void)snprintf(text, sizeof(text), "%06o", sum);
	memcpy(h.checksum, text, 7);
	assert_int_equal(buf_append(b, &h, sizeof(h)), 0);
}

void image_gzip(const struct buf *plain, struct buf *ret)
{
	z_stream z = { 0 };

	assert_int_equal(deflateInit2(&z, 6, Z_DEFLATED, 15 + 16, 8, Z_DEFAULT_STRATEGY), Z_OK);
	assert_int_equal(buf_reserve(ret, deflateBound(&z, plain->len) + 64), 0);
	z.next_in = (Bytef *)plain->data;
	z.avail_in = (unsigned)plain->len;
	z.next_out = (Bytef *)ret->data + ret->len;
	z.avail_out = (unsigned)(ret->cap - ret->len - 1);
	assert_int_equal(deflate(&z, Z_FINISH), Z_STREAM_END);
	ret->len += z.total_out;
	(void)deflateEnd(&z);
}

void image_digest(const struct buf *b, char ret[65])
{
	uint8_t sum[HASH_LEN];

	assert_int_equal(hash_sha256(b->data, b->len, sum), 0);
	encode_hex(sum, HASH_LEN, ret);
}

/* What an archive is put together of. */
struct saving {
	const struct image_shape *shape;
	struct buf out;
	size_t n;
	char diff_ids[LAYERS][65], digests[LAYERS][65], config[65];
};

static void add_buf(struct saving *s, const char *path, const struct buf *b)
{
	image_add(&s->out, &(struct tar_member){ .type = TAR_FILE, .path = path, .mode = 0644 },
		  b->len ? b->data : "", b->len);
}

/* Named by its digest, as OCI does; or as docker did. */
static void add_layer(struct saving *s, size_t i, struct buf *plain, bool is_last)
{
	_cleanup_(buf_done) struct buf packed = { 0 };
	struct buf *b = plain;
	char path[128];

	assert_int_equal(tar_write_end(plain), 0);
	image_digest(plain, s->diff_ids[i]);
	if (s->shape->is_gzip) {
		image_gzip(plain, &packed);
		b = &packed;
	}
	image_digest(b, s->digests[i]);
	if (is_last && s->shape->is_damaged)
		b->data[b->len - 1] ^= 0x10;
	if (s->shape->is_docker)
		(void)snprintf(path, sizeof(path), "%.20s%zu/layer.tar", s->digests[i], i);
	else
		(void)snprintf(path, sizeof(path), "blobs/sha256/%s", s->digests[i]);
	if (s->shape->is_link && i == 1) {
		char to[128];

		(void)snprintf(to, sizeof(to), "../%.20s0/layer.tar", s->digests[0]);
		image_link(&s->out, TAR_SYMLINK, path, to);
	} else {
		add_buf(s, path, b);
	}
	buf_done(plain);
}

static void add_config(struct saving *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };
	char path[128];

	(void)buf_printf(&b,
			 "{\"architecture\":\"%s\",\"os\":\"linux\",\"config\":%s,\"rootfs\":"
			 "{\"type\":\"layers\",\"diff_ids\":[",
			 s->shape->machine ? s->shape->machine : manifest_machine(),
			 s->shape->config ? s->shape->config : "{}");
	for (size_t i = 0; i + s->shape->lacks_diff_id < s->n; i++)
		(void)buf_printf(&b, "%s\"sha256:%s\"", i ? "," : "", s->diff_ids[i]);
	(void)buf_puts(&b, "]}}");
	image_digest(&b, s->config);
	(void)snprintf(path, sizeof(path), "%s%s%s", s->shape->is_docker ? "" : "blobs/sha256/",
		       s->config, s->shape->is_docker ? ".json" : "");
	add_buf(s, path, &b);
}

static void add_docker(struct saving *s)
{
	_cleanup_(buf_done) struct buf b = { 0 };

	if (s->shape->manifest) {
		(void)buf_puts(&b, s->shape->manifest);
	} else {
		(void)buf_printf(&b, "[{\"Config\":\"%s.json\",\"RepoTags\":[\"x:1\"],\"Layers\":[",
				 s->config);
		for (size_t i = 0; i < s->n; i++)
			(void)buf_printf(&b, "%s\"%.20s%zu/layer.tar\"", i ? "," : "",
					 s->digests[i], i);
		(void)buf_puts(&b, "]}]");
	}
	add_buf(s, "manifest.json", &b);
}

static void add_oci(struct saving *s)
{
	static const char layout[] = "{\"imageLayoutVersion\":\"1.0.0\"}";
	_cleanup_(buf_done) struct buf m = { 0 }, index = { 0 };
	char digest[65], path[128];

	if (s->shape->manifest) {
		(void)buf_puts(&m, s->shape->manifest);
	} else {
		(void)buf_printf(&m,
				 "{\"schemaVersion\":2,\"config\":{\"digest\":\"sha256:%s\"},"
				 "\"layers\":[",
				 s->config);
		for (size_t i = 0; i < s->n; i++)
			(void)buf_printf(&m, "%s{\"digest\":\"sha256:%s\",\"size\":1}",
					 i ? "," : "", s->digests[i]);
		(void)buf_puts(&m, "]}");
	}
	image_digest(&m, digest);
	(void)snprintf(path, sizeof(path), "blobs/sha256/%s", digest);
	add_buf(s, path, &m);
	if (s->shape->index)
		(void)buf_puts(&index, s->shape->index);
	else
		(void)buf_printf(&index,
				 "{\"schemaVersion\":2,\"manifests\":[{\"mediaType\":"
				 "\"application/vnd.oci.image.manifest.v1+json\",\"digest\":"
				 "\"sha256:%s\",\"size\":1}]}",
				 digest);
	add_buf(s, "index.json", &index);
	image_file(&s->out, "oci-layout", layout);
}

void image_save(const struct image_rig *g, const char *name, struct buf *layers, size_t n,
		const struct image_shape *shape)
{
	struct saving s = { .shape = shape, .n = n };

	assert_true(n <= LAYERS);
	for (size_t i = 0; i < n; i++)
		add_layer(&s, i, &layers[i], i + 1 == n);
	add_config(&s);
	if (shape->is_docker)
		add_docker(&s);
	else
		add_oci(&s);
	if (shape->is_cut)
		s.out.len -= 2500; /* and of what says which image it is */
	else
		assert_int_equal(tar_write_end(&s.out), 0);
	image_rig_write(g, name, &s.out);
	buf_done(&s.out);
}
